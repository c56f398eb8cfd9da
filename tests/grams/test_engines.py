"""Engines: how they are found, what they are asked, and the engine of the manual as a case."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams import engines
from multikernel.grams.dense import DenseGrams
from multikernel.grams.planning import plan_matrices
from multikernel.grams.shared import SharedGrams
from multikernel.grams.stacked import StackedGrams
from tests import naive
from tests.grams.contract import AMPLE, GramsContract, N, sample

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
KERNELS = [mk.Gaussian(0.1), mk.Gaussian(1.0, columns=[0, 1]), mk.Gaussian(0.5, columns=4)]


@pytest.fixture(autouse=True, scope="module")
def page():
    """The engine of the manual, registered as the page does it."""
    known = dict(engines._ENGINES)
    section = PAGE.read_text(encoding="utf-8").split("\n## An engine\n")[1]
    code = re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL).group(1)
    module = types.ModuleType("page")
    module.__dict__.update(np=np, mk=mk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "page", module)
        exec(compile(code, str(PAGE), "exec", dont_inherit=True), module.__dict__)
        yield module
    engines._ENGINES.clear()
    engines._ENGINES.update(known)


@pytest.fixture
def own_engines(monkeypatch):
    """Engines that a test registers are forgotten after it."""
    monkeypatch.setattr(engines, "_ENGINES", dict(engines._ENGINES))


def features(X):
    return np.array([sys.modules["page"].fourier_features(kernel, X) for kernel in KERNELS])


class TestFourier(GramsContract):
    """``K_k = Phi_k Phi_k'``; the last kernel sees a constant column."""

    constant, psd = [False, False, True], [True] * 3
    same_bits_in_any_block = False

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        plan = mk.KernelBank(KERNELS).plan(X, engine="fourier")
        assert [part.engine for part in plan.parts] == ["fourier"]
        grams = plan.grams(X, budget=budget, sample_weight=sample_weight, n_jobs=n_jobs).stored(
            center
        )
        assert type(grams).__name__ == "FourierGrams"
        return grams

    def naive_kernels(self, X, Z):
        return features(X) @ features(Z).transpose(0, 2, 1)


class TestFourierBesideOthers(GramsContract):
    """Kernels that the engine does not serve go to the one that it falls back to."""

    constant, psd = [False, False, False, True, False], [True] * 5
    same_bits_in_any_block = False

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        bank = mk.KernelBank([mk.Linear(), *KERNELS, mk.Linear(columns=2)])
        plan = bank.plan(X, engine="fourier")
        assert sorted(part.engine for part in plan.parts) == ["cpu", "cpu", "fourier"]
        grams = plan.grams(X, budget=budget, sample_weight=sample_weight, n_jobs=n_jobs)
        assert isinstance(grams, StackedGrams)
        return grams

    def naive_kernels(self, X, Z):
        middle = features(X) @ features(Z).transpose(0, 2, 1)
        linear = naive.polynomial(X, Z, 1, 0.0)
        return np.array([linear, *middle, np.outer(X[:, 2], Z[:, 2])])


def test_features_and_direct_solves_are_offered():
    X = sample(N)
    plan = mk.KernelBank(KERNELS).plan(X, engine="fourier")
    grams = plan.grams(X, budget=AMPLE).corrected(True, "trace")
    gram = grams.combine(np.array([0.5, 2.0, 1.0]))
    assert {"features", "factor", "dense"} <= gram.offers
    np.testing.assert_allclose(gram.features() @ gram.features().T, gram.dense(), atol=1e-14)
    assert gram.lowest_eigenvalue() == (0.0, pytest.approx(np.trace(gram.dense())), True)
    doubled = gram.scaled(2.0)
    assert doubled.offers == gram.offers
    np.testing.assert_allclose(doubled.features() @ doubled.features().T, 2.0 * gram.dense())
    ridge = np.linspace(0.5, 1.0, N)
    want = np.linalg.solve(2.0 * gram.dense() + np.diag(ridge), X)
    np.testing.assert_allclose(doubled.solve(ridge, X), want, atol=1e-12)
    signed = grams.combine(np.array([0.5, -2.0, 1.0]))
    assert not {"features", "factor"} & signed.offers


def test_a_scaled_operator_uses_the_shortcuts_of_the_other(monkeypatch):
    X, index = sample(N), np.array([5, 0, 7])
    grams = mk.per_feature().plan(X).grams(X, budget=AMPLE).corrected(True, "trace")
    gram, doubled = (grams.combine(np.arange(5.0)) for _ in range(2))
    doubled, norm = doubled.scaled(2.0), gram.centred_norm(None)
    gram.dense()
    among = doubled.submatrix(index, np.float32)
    assert among.dtype == np.float32
    np.testing.assert_allclose(among, 2.0 * gram.dense()[np.ix_(index, index)], rtol=1e-6)
    monkeypatch.setattr(type(gram), "rows", lambda *_: pytest.fail("no rows are needed"))
    assert doubled.centred_norm(None) == pytest.approx(2.0 * norm)


def test_a_plan_prints_engines_that_are_not_the_default():
    X = sample(20)
    bank = mk.KernelBank([mk.Gaussian(0.1), mk.Gaussian(1.0), mk.Linear(), mk.Laplacian()])
    lines = str(bank.plan(X, engine="fourier")).splitlines()
    assert lines == [
        "4 kernels on 20 samples",
        "  shared  kernels 0..1  2 of 4: Gaussian (engine 'fourier')",
        "  shared  kernels 2..3  2 of 4: Linear, Laplacian",
    ]
    assert "engine" not in str(bank.plan(X))
    assert bank.plan(X, engine="cpu").parts[0].kernels == bank.plan(X).parts[0].kernels


@pytest.mark.parametrize(
    "make",
    [
        lambda: mk.MultiKernelClassifier(engine="fourrier"),
        lambda: mk.MultiKernelRegressor(engine="fourrier"),
        lambda: mk.MultiKernelOneClass(engine="fourrier"),
        lambda: mk.MultiKernelClassifierCV(engine="fourrier"),
        lambda: mk.MultiKernelRegressorCV(engine="fourrier"),
        lambda: mk.KernelEnsembleClassifier(engine="fourrier"),
        lambda: mk.KernelEnsembleRegressor(engine="fourrier"),
        lambda: mk.SpectralKernelClassifier(engine="fourrier"),
    ],
)
def test_unknown_engines_are_named_with_the_known_ones(make):
    X, y = sample(20), np.arange(20) % 2
    message = (
        r"no engine 'fourrier'; known engines: 'cpu', 'torch', 'fourier'. Did you mean 'fourier'\?"
    )
    with pytest.raises(ValueError, match=message):
        make().fit(X, y)


def test_kernels_that_no_engine_serves_are_named(own_engines, page):
    engines.register("only", "shared", page.build, serves=lambda k: type(k) is mk.Gaussian)
    X = sample(20)
    with pytest.raises(
        ValueError,
        match=r"'only' cannot serve 'Linear\(\)', of kind 'shared'.*"
        r"kinds 'shared' \(some kernels of it\)\. Use engine='cpu'.*falls_back_to",
    ):
        mk.KernelBank([mk.Gaussian(), mk.Linear()]).plan(X, engine="only")
    with pytest.raises(ValueError, match=r"cannot serve .*and 2 more, of kind 'rank-one'"):
        mk.MultiKernelClassifier(mk.per_feature(), engine="only").fit(X, np.arange(20) % 2)
    with pytest.raises(ValueError, match=r"cannot serve 'precomputed\[0\]'.*of kind 'given'"):
        K = np.stack([X @ X.T, np.eye(20)], axis=-1)
        mk.MultiKernelClassifier("precomputed", engine="only").fit(K, np.arange(20) % 2)
    with pytest.raises(ValueError, match=r"plan asks engine 'only' for kernels of kind 'given'"):
        plan = plan_matrices(20, 2)
        engines.build(
            engines.replace(plan, parts=(engines.replace(plan.parts[0], engine="only"),)), K
        )


def test_fallbacks_form_a_chain_and_may_not_know_the_engine(own_engines, page):
    X = sample(20)
    engines.register("first", "given", page.build, falls_back_to="second")
    bank = mk.KernelBank([mk.Gaussian(), mk.Linear()])
    with pytest.raises(ValueError, match="no engine 'second'"):
        bank.plan(X, engine="first")
    engines.register("second", "rank-one", page.build, falls_back_to="fourier")
    assert [part.engine for part in bank.plan(X, engine="first").parts] == ["fourier", "cpu"]
    engines.register("second", "rank-one", page.build, falls_back_to="first")  # a circle
    with pytest.raises(ValueError, match=r"falls back to \('second', \.\.\.\)"):
        bank.plan(X, engine="first")


def test_builders_get_the_part_the_sample_and_the_options(own_engines):
    asked = []

    def build(part, X, options):
        asked.append((part.kind, X, options))
        return engines._ENGINES["cpu"].builders[part.kind](part, X, options)

    for kind in engines._ENGINES["cpu"].builders:
        engines.register("mine", kind, build)
    X, y, omega = sample(20), np.arange(20) % 2, np.linspace(0.5, 2.0, 20)
    bank = mk.KernelBank([mk.Linear(columns=1), mk.Gaussian(), mk.Linear() + mk.Gaussian()])
    omega[3] = 0.0
    model = mk.MultiKernelClassifier(bank, dtype="float32", n_jobs=2, engine="mine")
    model.fit(X, y, sample_weight=omega)
    assert [kind for kind, _, _ in asked] == ["shared", "rank-one", "dense"]
    for _, given, options in asked:
        np.testing.assert_array_equal(given, np.delete(X, 3, axis=0))
        np.testing.assert_array_equal(options.sample_weight, np.delete(omega, 3))
        assert options.dtype == np.float32 and options.n_jobs == 2 and options.rows is None
        assert len(options.names) == 1
    assert model.plan_ is model.grams_ and "(engine 'mine')" in str(model.plan_)
    asked.clear()
    K = np.stack([X @ X.T, np.eye(20)], axis=-1)
    mk.MultiKernelClassifier("precomputed", engine="mine").fit(K, y, sample_weight=omega)
    ((kind, given, options),) = asked
    assert kind == "given" and given is K
    np.testing.assert_array_equal(options.rows, np.delete(np.arange(20), 3))


def test_one_function_builds_everything():
    X = sample(20)
    K = np.stack([X @ X.T, np.eye(20)], axis=-1)
    given = engines.build(plan_matrices(20, 2), K)
    assert type(given) is DenseGrams and list(given.names) == ["precomputed[0]", "precomputed[1]"]
    some = engines.build(plan_matrices(3, 2, ["a", "b"]), K, rows=np.array([4, 0, 4]))
    assert some.names == ["a", "b"]
    np.testing.assert_array_equal(
        some.block(slice(0, 3))[0], K[:, :, 0][np.ix_([4, 0, 4], [4, 0, 4])]
    )
    plan = mk.gaussians([0.1, 1.0]).plan(X)
    assert type(engines.build(plan, X)) is SharedGrams
    assert type(engines.build(plan, X, engine="fourier")).__name__ == "FourierGrams"
