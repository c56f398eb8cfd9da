"""Shared kernels on a device: the contract, and the same answers as the engine "cpu"."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams import engines
from multikernel.grams.gpu.device import device_budget
from multikernel.grams.memory import MemoryBudget
from tests import naive
from tests.grams.contract import AMPLE, GramsContract, assert_close, sample, sample_weights
from tests.grams.gpu.cases import DEVICE, DEVICES, needs_torch
from tests.grams.test_shared import CONSTANT, KERNELS, PSD, exact_gaussian, twins

pytestmark = needs_torch


def on_device(kernels, X, dtype=np.float64, budget=AMPLE, device=DEVICE, **options):
    plan = mk.KernelBank(kernels).plan(X, engine=f"torch:{device}")
    assert {part.engine for part in plan.parts} == {f"torch:{device}"}
    return plan.grams(X, budget=budget, dtype=dtype, **options)


class TestShared(GramsContract):
    constant, psd = CONSTANT, PSD
    same_bits_in_any_block = False
    # BLAS adds up rows of other matrices in another order.
    exact = 1e-11

    @pytest.fixture(scope="class", params=["multiplicative", "spherical"])
    @classmethod
    def how(cls, request):
        return request.param

    @pytest.fixture(scope="class", params=["reals"])
    @classmethod
    def omega(cls, request):
        return sample_weights(request.param, cls.N)

    def naive_kernels(self, X, Z):
        return twins(X, Z)

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        return on_device(KERNELS, X, budget=budget, sample_weight=sample_weight, n_jobs=n_jobs)


class TestOneDistance(GramsContract):
    """Gaussians alone: sums of polynomials, and combinations from a table."""

    rates = np.geomspace(1e-3, 1e1, 8)
    constant, psd = [False] * 8, [True] * 8
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

    def naive_kernels(self, X, Z):
        return np.array([naive.gaussian(X, Z, gamma) for gamma in self.rates])

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        kernels, options = mk.gaussians(self.rates), {"n_jobs": n_jobs}
        grams = on_device(kernels, X, budget=budget, sample_weight=sample_weight, **options)
        assert grams.passes.levels is not None
        return grams


class TestFloat32(TestOneDistance):
    """Inputs are rounded to float32; arithmetic is float64."""

    rtol, exact = 3e-5, 3e-6

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        return on_device(
            mk.gaussians(self.rates), X, np.float32, budget, sample_weight=sample_weight
        )


BANKS = {
    "gaussians": list(mk.gaussians(np.geomspace(1e-3, 1e2, 40))),
    "laplacians": [mk.Laplacian(gamma) for gamma in (0.01, 0.1, 1.0)],
    "others": [
        mk.Exponential(2.0, power=1.0),
        mk.Exponential(3.0, power=1.5),
        mk.Matern(1.5, 2.0),
        mk.Matern(2.5, 1.0),
        mk.Polynomial(2, gamma=0.3),
        mk.Gaussian(0.2),
    ],
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("targets", ["classes", "numbers"])
@pytest.mark.parametrize("weights", ["equal", "reals"])
@pytest.mark.parametrize("bank", list(BANKS))
def test_statistics_are_those_of_the_processor(bank, weights, targets, device):
    X, rng = sample(300), np.random.default_rng(0)
    Y = rng.normal(size=(300, 2))
    Y = np.sign(Y[:, :1]) if targets == "classes" else Y
    omega = rng.uniform(0.5, 2.0, size=300) if weights == "reals" else None
    ours = on_device(BANKS[bank], X, device=device, sample_weight=omega).corrected(True, "trace")
    plan = mk.KernelBank(BANKS[bank]).plan(X)
    other = plan.grams(X, budget=AMPLE, sample_weight=omega).corrected(True, "trace")
    found, want = ours.summary(Y), other.summary(Y)
    for name in ("traces", "norms", "a"):
        got, size = getattr(found, name), np.max(np.abs(getattr(want, name)))
        np.testing.assert_allclose(got, getattr(want, name), rtol=0, atol=1e-11 * size)
    norms = np.outer(want.norms, want.norms)
    assert np.max(np.abs(found.M - want.M) / norms) < 1e-11


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("gamma", [1e-8, 1e-2, 1e8])
def test_near_points_far_from_the_origin_keep_their_digits(gamma, device):
    """Pairs at distance 1e-4 among points at distance 1e3 from the origin."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(20, 6)), 3, axis=0) + 1e-4 * rng.normal(size=(60, 6))
    X = X * [1.0, 1.0, 1.0, 1.0, 1.0, 1e3]
    kernels = mk.KernelBank([mk.Gaussian(gamma), mk.Gaussian(2 * gamma)])
    grams = on_device(kernels, X, device=device).corrected(True, None)
    exact = np.array([exact_gaussian(X, g) for g in (gamma, 2 * gamma)]).astype(float)
    for k, unit in enumerate(np.eye(2)):
        assert_close(grams.combine(unit).dense()[None], exact[k][None], 1e-9, "combination")
    assert_close(grams.block(slice(0, 60)), exact, 1e-9, "block")
    norms = np.linalg.norm(exact, axis=(1, 2))
    np.testing.assert_allclose(grams.summary(X[:, :1]).norms, norms, rtol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_two_runs_have_the_same_bits(device):
    X, rng = sample(400), np.random.default_rng(0)
    Y, V, w = rng.normal(size=(400, 1)), rng.normal(size=(400, 2)), np.linspace(0.1, 1.0, 40)

    def run():
        grams = on_device(BANKS["gaussians"], X, device=device).corrected(True, "trace")
        summary, gram = grams.summary(Y), grams.combine(w)
        yield from (summary.a, summary.M, gram.matvec(V), gram.solve(np.ones(400), V))
        yield from (gram.dense(), grams.matvecs(V), grams.expand(w, V).values(X[:50]))

    for first, second in zip(run(), run(), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("device", DEVICES)
def test_solves_in_blocks_are_those_of_numpy(device, monkeypatch):
    from multikernel.grams.gpu import cholesky

    monkeypatch.setattr(cholesky, "BLOCK", 32)
    X, rng = sample(150), np.random.default_rng(0)
    grams = on_device(BANKS["gaussians"], X, device=device).corrected(True, "trace")
    gram, ridge, B = grams.combine(np.ones(40)), rng.uniform(0.01, 1.0, 150), rng.normal(size=150)
    want = np.linalg.solve(gram.dense() + np.diag(ridge), B)
    np.testing.assert_allclose(gram.solve(ridge, B), want, rtol=0, atol=1e-10 * np.abs(want).max())
    indefinite = -5.0 * np.linspace(0.5, 1.0, 150)
    want = np.linalg.solve(gram.dense() + np.diag(indefinite), B)
    np.testing.assert_allclose(gram.solve(indefinite, B), want, atol=1e-9)


def test_what_does_not_fit_is_not_offered():
    X = sample(400)
    tight = on_device(BANKS["gaussians"], X, budget=MemoryBudget.of("1.2MB"))
    gram = tight.corrected(True, "trace").combine(np.ones(40))
    assert not {"dense", "factor"} & gram.offers
    B = np.random.default_rng(0).normal(size=400)
    ample = on_device(BANKS["gaussians"], X).corrected(True, "trace").combine(np.ones(40))
    want = ample.solve(np.ones(400), B)
    np.testing.assert_allclose(gram.solve(np.ones(400), B), want, rtol=0, atol=1e-9)
    for _ in range(4):  # products from the samples, then from a kept matrix
        np.testing.assert_allclose(ample.matvec(B), gram.matvec(B), rtol=0, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("bank", ["gaussians", "matrices"])
def test_parts_of_a_combination_are_computed_on_the_device(bank, device, kept):
    """What block steps and preconditioners ask for, with and without the matrix on the device."""
    X, rng = sample(150), np.random.default_rng(0)
    kernels = BANKS["gaussians"] if bank == "gaussians" else [mk.Linear() + mk.Gaussian(0.1)]
    grams = on_device(kernels, X, device=device).corrected(True, "trace")
    gram, w = grams.combine(np.ones(grams.p)), rng.normal(size=(20, 1))
    K = grams.combine(np.ones(grams.p)).dense()
    gram.on_device = True
    some, others = rng.permutation(150)[:20], np.array([7, 0, 149])
    for _ in range(4 if kept else 1):
        got = gram.partial_matvec(some, w)
        np.testing.assert_allclose(got, K[:, some] @ w, rtol=0, atol=1e-13)
    assert (gram._tensor is not None) == kept
    np.testing.assert_allclose(gram.partial_matvec(some, w[:, 0]), K[:, some] @ w[:, 0], atol=1e-13)
    np.testing.assert_allclose(gram.entries(others, some), K[np.ix_(others, some)], atol=1e-14)
    np.testing.assert_allclose(gram.submatrix(some), K[np.ix_(some, some)], atol=1e-14)
    raw = grams.raw_between(np.ones(grams.p), others, some)
    want = grams.raw_combine(np.ones(grams.p))[np.ix_(others, some)]
    np.testing.assert_allclose(raw, want, rtol=0, atol=1e-13)
    ridge = np.linspace(0.1, 1.0, 20)
    want = np.linalg.solve(K[np.ix_(some, some)] + np.diag(ridge), w)
    np.testing.assert_allclose(gram.solve_among(some, ridge, w), want, rtol=0, atol=1e-9)
    with pytest.raises(np.linalg.LinAlgError):
        gram.solve_among(some, -10.0, w)
    doubled = gram.scaled(2.0)
    np.testing.assert_allclose(doubled.matvec(X[:, 0]), 2.0 * K @ X[:, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_products_of_features(device):
    rng = np.random.default_rng(0)
    F, omega = rng.normal(size=(100, 7)), rng.uniform(0.5, 2.0, 100)
    found = engines.find_products(f"torch:{device}")
    np.testing.assert_allclose(found(F, None), F.T @ F, rtol=1e-12, atol=1e-12)
    weighted = found(F, omega)
    np.testing.assert_allclose(weighted, F.T @ (omega[:, None] * F), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(weighted, weighted.T)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("center", [True, False])
def test_the_inverse_of_a_low_rank_approximation(device, center):
    """The same pivots and products as in host memory, and of full rank the inverse itself."""
    X = sample(60, d=3)
    kernels = list(mk.gaussians([0.1, 1.0]))
    w, ridge = np.array([1.0, 0.5]), np.linspace(0.1, 0.2, 60)
    gram = on_device(kernels, X, device=device).corrected(center, "multiplicative").combine(w)
    plan = mk.KernelBank(kernels).plan(X, engine="cpu")
    twin = plan.grams(X, budget=AMPLE).corrected(center, "multiplicative").combine(w)
    V = np.random.default_rng(3).normal(size=(60, 2))
    for R in (V, V[:, :1]):
        found, want = gram.low_rank_inverse(ridge, 12), twin.low_rank_inverse(ridge, 12)
        assert found.rank == want.rank == 12
        assert found.condition == pytest.approx(want.condition, rel=1e-9)
        np.testing.assert_allclose(found.solve(R), want.solve(R), rtol=0, atol=1e-8)
        whole = gram.low_rank_inverse(ridge, 60).solve(R)
        back = twin.matvec(whole) + ridge[:, None] * whole
        np.testing.assert_allclose(back, R, rtol=0, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_rough_products_are_near_and_have_the_same_bits(device):
    X = sample(300, d=20)
    gram = on_device(list(mk.gaussians([0.01, 0.02])), X, device=device)
    gram = gram.corrected(True, "trace").combine(np.array([1.0, 2.0]))
    V = np.random.default_rng(1).normal(size=(300, 1))
    found, want = gram.rough_matvec(V), gram.matvec(V)
    assert np.abs(found - want).max() <= 1e-5 * np.abs(want).max()
    np.testing.assert_array_equal(gram.rough_matvec(V), found)


def test_memory_that_torch_keeps_for_new_arrays_is_free():
    """Otherwise a second fit in a process would have a smaller budget than the first."""
    cuda = SimpleNamespace(
        mem_get_info=lambda name: (40_000, 100_000),
        memory_reserved=lambda name: 55_000,
        memory_allocated=lambda name: 5000,
    )
    card = SimpleNamespace(name="cuda:0", on_gpu=True, torch=SimpleNamespace(cuda=cuda))
    assert device_budget(card, None).bytes == 81_000
    assert device_budget(card, "1MB").bytes == 1_000_000
