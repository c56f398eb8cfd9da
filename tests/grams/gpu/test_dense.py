"""Given, evaluated and rank-one kernels on a device: the contract, and matrices in a file."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import multikernel as mk
from multikernel.grams import engines
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.planning import plan_matrices
from tests import naive
from tests.grams.contract import AMPLE, GramsContract, sample, sample_weights
from tests.grams.gpu.cases import DEVICE, DEVICES, needs_torch

pytestmark = needs_torch


class OneWay(GramsContract):
    """Fewer ways to correct the kernels than the contract of the engine "cpu" has."""

    same_bits_in_any_block = False
    exact = 1e-11

    @pytest.fixture(scope="class", params=["multiplicative"])
    @classmethod
    def how(cls, request):
        return request.param

    @pytest.fixture(scope="class", params=["reals"])
    @classmethod
    def omega(cls, request):
        return sample_weights(request.param, cls.N)


class TestEvaluated(OneWay):
    """Sums and products of kernels are matrices that the host evaluates."""

    constant, psd = [False] * 3, [True] * 3

    def naive_kernels(self, X, Z):
        linear, gaussian = naive.polynomial(X, Z, 1, 0.0), naive.gaussian(X, Z, 0.3)
        return np.array([linear + gaussian, linear * gaussian, gaussian * gaussian])

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        linear, gaussian = mk.Linear(), mk.Gaussian(0.3)
        bank = mk.KernelBank([linear + gaussian, linear * gaussian, gaussian * gaussian])
        plan = bank.plan(X, engine=f"torch:{DEVICE}")
        grams = plan.grams(X, budget=budget, sample_weight=sample_weight, n_jobs=n_jobs)
        assert type(grams).__name__ == "DeviceDenseGrams"
        return grams


class TestRankOne(OneWay):
    constant, psd = [False] * 4 + [True], [True] * 5
    sparse = False

    def naive_kernels(self, X, Z):
        return np.array([np.outer(x, z) for x, z in zip(X.T, Z.T, strict=True)])

    def new_points(self):
        return sp.csr_matrix(self.X_new) if self.sparse else self.X_new

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        X = sp.csr_matrix(X) if self.sparse else X
        plan = mk.per_feature().plan(X, engine=f"torch:{DEVICE}")
        grams = plan.grams(X, budget=budget, sample_weight=sample_weight, n_jobs=n_jobs)
        assert type(grams).__name__ == "DeviceRankOneGrams"
        return grams


class TestSparseRankOne(TestRankOne):
    sparse = True


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("budget", ["1GB", "600kB"])
def test_matrices_in_a_file_are_read_where_they_are(tmp_path, device, budget):
    X, rng = sample(120), np.random.default_rng(0)
    K = np.lib.format.open_memmap(tmp_path / "K.npy", "w+", shape=(120, 120, 3))
    for k, gamma in enumerate((0.01, 0.1, 1.0)):
        K[:, :, k] = naive.gaussian(X, X, gamma)
    K.flush()
    given = np.load(tmp_path / "K.npy", mmap_mode="r")
    Y, w, V = rng.normal(size=(120, 1)), np.array([0.5, 0.0, 2.0]), rng.normal(size=(120, 2))
    plan, memory = plan_matrices(120, 3), MemoryBudget.of(budget)
    ours = engines.build(plan, given, engine=f"torch:{device}", budget=memory)
    assert (ours.passes.resident is None) == (budget == "600kB")
    ours = ours.corrected(True, "trace")
    other = engines.build(plan, given).corrected(True, "trace")
    found, want = ours.summary(Y), other.summary(Y)
    np.testing.assert_allclose(found.M, want.M, rtol=1e-11)
    np.testing.assert_allclose(found.a, want.a, rtol=1e-11)
    gram, twin = ours.combine(w), other.combine(w)
    np.testing.assert_allclose(gram.matvec(V), twin.matvec(V), rtol=0, atol=1e-12)
    ridge = np.full(120, 0.1)
    np.testing.assert_allclose(gram.solve(ridge, V), twin.solve(ridge, V), rtol=1e-8, atol=1e-9)


def test_a_plan_shows_what_stays_on_the_host():
    X = sample(40)
    bank = mk.KernelBank([mk.Gaussian(0.1), mk.Linear(columns=1), mk.Linear() + mk.Gaussian(1.0)])
    plan = bank.plan(X, engine="torch")
    assert [part.engine for part in plan.parts] == ["torch"] * 3
    assert str(plan).count("(engine 'torch')") == 3
    linear = mk.KernelBank([mk.Linear(columns=[0, 1]), mk.Linear(columns=[2, 3])])
    assert [part.engine for part in linear.plan(X, engine="torch:cuda").parts] == ["cpu"]


@pytest.mark.parametrize("device", DEVICES)
def test_conjugate_gradients_on_matrices(device, rng):
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    bank = mk.KernelBank([mk.Linear() * mk.Gaussian(0.3), mk.Gaussian(0.2) * mk.Laplacian(0.3)])
    options = {"weighting": "uniform", "engine": f"torch:{device}", "tol": 1e-10}
    found = mk.MultiKernelRegressor(bank, solver="cg", **options).fit(X, y)
    exact = mk.MultiKernelRegressor(bank, solver="cholesky", **options).fit(X, y)
    np.testing.assert_allclose(found.predict(X), exact.predict(X), rtol=1e-5, atol=1e-7)
