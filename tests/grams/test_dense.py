"""Dense grams: kernels as functions, as given matrices, and evaluated again in every pass."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams.dense import DenseGrams
from multikernel.grams.memory import MemoryBudget
from tests import naive
from tests.grams.contract import AMPLE, HOWS, N_NEW, GramsContract, N, assert_close, sample
from tests.grams.test_shared import CONSTANT, KERNELS, PSD, TWINS, exact_gaussian, twins

CALLABLES = mk.KernelBank(
    [
        mk.Callable(twin, label=f"twin {k}", psd=psd)
        for k, (twin, psd) in enumerate(zip(TWINS, PSD, strict=True))
    ]
)


def dense(bank, X, budget=AMPLE, **options):
    plan = bank.plan(X, memory_budget=budget)
    assert [part.kind for part in plan.parts] == ["dense"]
    return plan.grams(X, budget=budget, **options)


class TestCallables(GramsContract):
    constant, psd = CONSTANT, PSD

    def naive_kernels(self, X, Z):
        return twins(X, Z)

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        grams = dense(CALLABLES, X, budget, sample_weight=sample_weight, n_jobs=n_jobs)
        assert isinstance(grams, DenseGrams) and grams.matrices is not None
        return grams


class TestEvaluatedAgain(TestCallables):
    """Too little memory for the matrices: the functions are called panel by panel."""

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        held = 8 * len(PSD) * len(X) ** 2  # bytes of the matrices; evaluating them takes twice that
        budget = MemoryBudget.of(1.5 * held if budget is AMPLE else 1.6 * held)
        grams = dense(CALLABLES, X, budget, sample_weight=sample_weight, n_jobs=n_jobs)
        assert grams.matrices is None
        return grams


class TestComposites(GramsContract):
    """Sums, products, powers and multiples of kernels go to the dense implementation."""

    constant, psd = [False] * 3, [True, False, True]

    def naive_kernels(self, X, Z):
        linear = naive.polynomial(X, Z, 1, 0.0)
        return np.array(
            [
                naive.gaussian(X, Z, 0.1) + 0.5 * linear,
                naive.gaussian(X, Z, 0.2) * naive.sigmoid(X, Z, 0.02),
                naive.laplacian(X, Z, 0.1) ** 2,
            ]
        )

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        bank = mk.KernelBank(
            [
                mk.Gaussian(0.1) + 0.5 * mk.Linear(),
                mk.Gaussian(0.2) * mk.Sigmoid(0.02),
                mk.Laplacian(0.1) ** 2,
            ]
        )
        return dense(bank, X, budget, sample_weight=sample_weight, n_jobs=n_jobs)


POOL = 60


def pool_matrices():
    Z = sample(POOL)
    counts = np.random.default_rng(3).integers(-3, 4, size=(POOL, 6))
    return [
        naive.gaussian(Z, Z, 0.2),
        naive.laplacian(Z, Z, 0.3).astype(np.float32),
        counts @ counts.T,
        np.full((POOL, POOL), 0.1),
        np.equal.outer(counts[:, 0], counts[:, 0]),
    ]


class TestPrecomputed(GramsContract):
    """Matrices of several types over a larger pool, the sample being some of its rows."""

    constant, psd = [False, False, False, True, False], [False] * 5
    matrices = pool_matrices()
    bank = mk.precomputed(matrices)

    @property
    def X(self):
        return mk.sample_ids(POOL)[np.random.default_rng(0).permutation(POOL)[:N]]

    @property
    def X_new(self):
        return mk.sample_ids(POOL)[np.random.default_rng(0).permutation(POOL)[N:][:N_NEW]]

    def naive_kernels(self, X, Z):
        return np.array([K[np.ix_(X[:, 0], Z[:, 0])].astype(float) for K in self.matrices])

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        return dense(self.bank, X, budget, sample_weight=sample_weight, n_jobs=n_jobs)

    def test_matrices_are_neither_copied_nor_changed(self):
        grams = self.make(mk.sample_ids(POOL)).corrected(True, "spherical")
        grams.summary(np.arange(POOL, dtype=float)[:, None])
        grams.combine(np.ones(5)).dense()
        for held, given, fresh in zip(grams.matrices, self.matrices, pool_matrices(), strict=True):
            assert held is given
            np.testing.assert_array_equal(given, fresh)


class TestPrecomputedWhole(TestPrecomputed):
    """The sample is the whole pool in order, read by plain slices; float32 throughout."""

    constant, psd = [False, False, True], [False] * 3
    matrices = [
        K.astype(np.float32)
        for K in (
            naive.gaussian(sample(N), sample(N), 0.2),
            naive.laplacian(sample(N), sample(N), 0.3),
            np.full((N, N), 0.5),
        )
    ]
    bank = mk.precomputed(matrices)

    @property
    def X(self):
        return mk.sample_ids(N)

    @property
    def X_new(self):
        return mk.sample_ids(N)[[3, 1, 4, 1, 5, 9, 2, 6, 0]]

    def test_matrices_are_neither_copied_nor_changed(self):
        grams = self.make(self.X)
        assert grams.dtype == np.float32
        assert all(h is g for h, g in zip(grams.matrices, self.matrices, strict=True))


class TestGivenArrays(GramsContract):
    """What ``kernels="precomputed"`` hands over: matrices alone, new points as (m, n, p) values."""

    constant, psd = [False, False], [False, False]
    knows_new_diagonals = False

    def naive_kernels(self, X, Z):
        return np.array([naive.gaussian(X, Z, 0.2), naive.polynomial(X, Z, 2, 1.0, 0.1)])

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True):
        values = self.naive_kernels(X, X).transpose(1, 2, 0)
        matrices = [values[:, :, k] for k in range(2)]
        options = {"sample_weight": sample_weight, "n_jobs": n_jobs}
        return DenseGrams(matrices, np.arange(len(X)), None, None, ["a", "b"], budget, **options)

    def new_points(self):
        return self.naive_kernels(self.X_new, self.X).transpose(1, 2, 0)

    def test_spherical_new_points_need_their_diagonal(self):
        grams = self.make(self.X).corrected(True, "spherical")
        expansion = grams.expand(np.ones(2), self.coefficients("free"))
        with pytest.raises(ValueError, match=r"needs K\(x, x\) of new samples.*mk.sample_ids"):
            expansion.values(expansion.encode(self.new_points()))


def test_shared_and_dense_agree():
    """Every pass of the two on the same bank, entry by entry, to 1e-10."""
    X, y = sample(N), np.random.default_rng(1).normal(size=(N, 1))
    for center in (True, False):
        for how in HOWS:
            one = mk.KernelBank(KERNELS).plan(X).grams(X, budget=AMPLE).corrected(center, how)
            two = dense(CALLABLES, X).corrected(center, how)
            assert_close(one.block(slice(0, N)), two.block(slice(0, N)), 1e-10, "block")
            a, b = one.summary(y), two.summary(y)
            assert_close(a.norms, b.norms, 1e-10, "norms")
            assert_close(a.traces, b.traces, 1e-10, "traces")
            np.testing.assert_allclose(a.alignments, b.alignments, rtol=0, atol=1e-10)
            norms = np.outer(b.norms, b.norms)
            assert np.all(np.abs(a.M - b.M) <= 1e-10 * norms)


def test_what_dense_can_know_of_very_wide_gaussians(rng):
    """Entries near 1 are off by eps; a centred kernel of size gamma d keeps eps / (gamma d)."""
    X, y = rng.normal(size=(90, 3)), rng.normal(size=(90, 1))
    gamma = 1e-8
    K = exact_gaussian(X, gamma).astype(float)
    bank = mk.KernelBank([mk.Callable(partial(naive.gaussian, gamma=gamma), label="wide")])
    grams = dense(bank, X).corrected(True, None)
    lost = 10 * np.finfo(float).eps / np.abs(K).max()  # about 1e-7
    assert lost < 1e-6
    assert_close(grams.block(slice(0, 90)), K[None], lost, "block")
    found = grams.summary(y)
    assert found.norms[0] == pytest.approx(np.linalg.norm(K), rel=lost)
    assert found.traces[0] == pytest.approx(np.trace(K), rel=lost)


def test_a_kernel_without_trace_need_not_be_constant():
    """An indefinite kernel whose centred trace is zero still says something."""
    y = np.array([1.0, 1.0, -1.0, -1.0])
    z = np.array([1.0, -1.0, 1.0, -1.0])
    bank = mk.precomputed([np.outer(y, y) - np.outer(z, z), np.eye(4)])
    grams = dense(bank, mk.sample_ids(4)).corrected(True, None)
    np.testing.assert_array_equal(grams.degenerate, [False, False])
    assert grams.summary(y[:, None]).alignments[0] == pytest.approx(np.sqrt(0.5))
    with pytest.raises(ValueError, match=r"precomputed\[0\].*has trace 0.*'frobenius'"):
        grams.corrected(True, "trace").block(slice(0, 4))


def test_a_kernel_without_positive_trace_cannot_have_trace_one():
    K = -np.eye(5) - 1.0
    for how, word in (("trace", "trace"), ("multiplicative", "multiplicative")):
        grams = dense(mk.precomputed([K], ["minus"]), mk.sample_ids(5)).corrected(True, how)
        with pytest.raises(ValueError, match=f"'minus'.*{word}.*'frobenius'"):
            grams.block(slice(0, 5))
    grams = dense(mk.precomputed([K]), mk.sample_ids(5)).corrected(True, "frobenius")
    assert np.linalg.norm(grams.block(slice(0, 5))) == pytest.approx(1.0)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_point_at_the_centre_stays_there(offset):
    """Spherical: what is zero up to rounding has no direction, wherever the kernel's origin is."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50, 3))
        X[0] = X[1:].mean(axis=0)
        bank = mk.precomputed([X @ X.T + offset])
        grams = dense(bank, mk.sample_ids(50)).corrected(True, "spherical")
        np.testing.assert_array_equal(grams.block(slice(0, 1)), np.zeros((1, 1, 50)))
        np.testing.assert_allclose(grams.diagonals()[0], np.r_[0.0, np.ones(49)], atol=1e-9)
        expansion = grams.expand(np.ones(1), rng.normal(size=(50, 1)))
        np.testing.assert_array_equal(expansion.values(grams.points(np.array([0]))), [[0.0]])


def test_two_samples():
    K = np.array([[2.0, 0.5], [0.5, 1.0]])
    for how in HOWS:
        grams = dense(mk.precomputed([K]), mk.sample_ids(2)).corrected(True, how)
        want = naive.correct(K, True, how)
        assert_close(grams.block(slice(0, 2)), want[None], 1e-14, "block")
        assert grams.summary(np.array([[1.0], [-1.0]])).alignments[0] == pytest.approx(1.0)


def test_zero_kernels(rng):
    bank = mk.precomputed([np.zeros((6, 6)), np.eye(6)])
    for how in HOWS:
        grams = dense(bank, mk.sample_ids(6)).corrected(True, how)
        np.testing.assert_array_equal(grams.degenerate, [True, False])
        assert not grams.block(slice(0, 6))[0].any()
        found = grams.summary(rng.normal(size=(6, 1)))
        assert found.alignments[0] == found.norms[0] == found.M[0, 0] == 0.0


@pytest.mark.parametrize("n", [1, 2, 5, 130])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fused_combination_changes_nothing(rng, n, dtype, monkeypatch):
    """Statistics and sum in one reading are those of two, whatever the number of kernels."""
    monkeypatch.setattr(DenseGrams, "_is_small", False)  # small samples are not read in one pass
    A = rng.normal(size=(7, n, 3))
    bank = mk.precomputed([(a @ a.T).astype(dtype) for a in A])
    Y, omega = rng.normal(size=(n, 2)), rng.uniform(0.5, 2.0, n)
    raw = rng.uniform(0.1, 1.0, 7)
    for weights in (None, omega):
        plain, told = (dense(bank, mk.sample_ids(n), sample_weight=weights) for _ in range(2))
        alone, fused = plain.raw_statistics(Y, False), told.raw_statistics(Y, False, raw)
        for part in ("row_sums", "squares", "a", "diagonals"):
            want, got = (getattr(found, part) for found in (alone, fused))
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13 * np.abs(want).max())
        assert alone.combined is None
        np.testing.assert_allclose(fused.combined, plain.raw_combine(raw), rtol=1e-12, atol=1e-12)


def test_support_products_of_points_in_any_order(rng):
    """Points of a pool may come in any order and more than once; odd counts leave a rest."""
    A = rng.normal(size=(3, 40, 5))
    pool = [a @ a.T for a in A]
    for count in (1, 2, 3, 4, 5, 23):
        rows = rng.integers(0, 40, count)
        grams = dense(mk.precomputed(pool), rows[:, None]).corrected(False, None)
        V = rng.normal(size=(count, 2))
        V[::3, 0] = 0.0
        support = np.flatnonzero(np.any(V != 0, axis=1))
        got = grams.matvecs(V, at=support)
        want = np.stack([K[np.ix_(rows, rows)] @ V for K in pool])[:, support]
        # A kernel of rank one minus its mean may vanish on one point.
        keep = ~grams.degenerate
        assert_close(got[keep], want[keep], 1e-12, "products")


# -- matrices that need not be symmetric ----------------------------------------------------------


def lopsided(X, Z, slope=1.0):
    return np.tanh(slope * X @ Z.T + X[:, :1] - 0.3 * Z[:, 1:2].T)


LOPSIDED = [partial(lopsided, slope=slope) for slope in (0.5, -2.0)]


def asymmetric_grams(how, X):
    """Grams of two kernels that are not symmetric, and their matrices."""
    K = np.array([f(X, X) for f in LOPSIDED])
    if how == "given":
        array = np.ascontiguousarray(K.transpose(1, 2, 0))
        return DenseGrams.given(array, np.arange(len(X)), ["a", "b"], AMPLE, symmetric=False), K
    bank = mk.KernelBank([mk.Callable(f, label=f"lopsided {k}") for k, f in enumerate(LOPSIDED)])
    budget = AMPLE if how == "evaluated" else MemoryBudget.of(12 * K.size)
    grams = dense(bank, X, budget, symmetric=False)
    assert (grams.matrices is None) == (how == "evaluated again")
    return grams, K


every_kind = pytest.mark.parametrize("how", ["given", "evaluated", "evaluated again"])


@every_kind
@pytest.mark.parametrize("part", ["whole", "taken", "copied"])
def test_asymmetric_products_and_entries(how, part, rng, monkeypatch):
    monkeypatch.setattr("multikernel.grams.protocol.MAX_PANEL_ROWS", 7)
    grams, K = asymmetric_grams(how, sample(N))
    if part != "whole":
        rows = rng.permutation(N)[:30]
        grams = grams.take(rows, copy=part == "copied")
        K = K[:, rows][:, :, rows]
    n = grams.n
    V, index = rng.normal(size=(n, 3)), np.array([n - 1, 0, 7, 7])
    assert_close(grams.block(slice(0, n)), K, 1e-12, "block")
    assert_close(grams.block(index), K[:, index], 1e-12, "rows of each kernel")
    assert_close(grams.matvecs(V), K @ V, 1e-12, "products")
    assert_close(grams.matvecs(V, at=index), (K @ V)[:, index], 1e-12, "products at some samples")
    sparse = V * (np.arange(n) % 5 == 0)[:, None]
    support = np.flatnonzero(sparse[:, 0])
    assert_close(grams.matvecs(sparse, at=support), (K @ sparse)[:, support], 1e-12, "support")
    assert_close(grams.column_products(V), K.transpose(0, 2, 1) @ V, 1e-12, "column products")
    assert_close(grams.diagonals(), np.einsum("kii->ki", K), 1e-12, "diagonals")
    for weights in ([0.7, -1.2], [0.0, 1.0]):
        want, operator = np.tensordot(weights, K, axes=1), grams.combine(np.array(weights))
        pairs = [
            (operator.rows(index), want[index]),
            (operator.columns(index), want[:, index]),
            (operator.columns(slice(2, 9)), want[:, 2:9]),
            (operator.submatrix(index), want[np.ix_(index, index)]),
            (operator.matvec(V), want @ V),
            (operator.matvec(V[:, 0]), want @ V[:, 0]),
            (operator.diagonal(), np.diag(want)),
            (operator.scaled(2.0).columns(index), 2.0 * want[:, index]),
        ]
        for got, expected in pairs:
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


@every_kind
def test_asymmetric_expansions_are_functions_of_their_first_argument(how, rng):
    X, X_new = sample(N), sample(N_NEW, seed=1)
    grams, K = asymmetric_grams(how, X)
    coef = rng.normal(size=(N, 2))
    expansion = grams.expand(np.array([0.0, 2.0]), coef)
    inside = expansion.values(grams.points(np.arange(N)))
    np.testing.assert_allclose(inside, 2.0 * K[1] @ coef, rtol=0, atol=1e-12)
    new = np.array([f(X_new, X) for f in LOPSIDED])
    points = expansion.encode(new.transpose(1, 2, 0) if how == "given" else X_new)
    np.testing.assert_allclose(expansion.values(points), 2.0 * new[1] @ coef, rtol=0, atol=1e-12)


@every_kind
def test_passes_that_need_symmetric_matrices_refuse_others(how):
    grams, _ = asymmetric_grams(how, sample(N))
    operator = grams.combine(np.ones(2))
    refused = [
        lambda: grams.corrected(True, None),
        lambda: grams.corrected(False, "trace"),
        lambda: grams.summary(np.ones((N, 1))),
        lambda: grams.degenerate,
        lambda: operator.solve(np.ones(N), np.ones(N)),
        lambda: operator.lowest_eigenvalue(),
        lambda: operator.centred_norm(None),
    ]
    for pass_ in refused:
        with pytest.raises(ValueError, match=r"needs symmetric kernels.*\(K \+ K\.T\) / 2"):
            pass_()
    assert not {"solve", "lowest_eigenvalue", "dense", "factor"} & operator.offers


def test_matrices_are_checked_for_symmetry_unless_told_otherwise():
    X = sample(N)
    bank = mk.KernelBank([mk.Callable(lopsided)])
    with pytest.raises(ValueError, match="not symmetric"):
        dense(bank, X)
    array = lopsided(X, X)[:, :, None]
    with pytest.raises(ValueError, match="not symmetric"):
        DenseGrams.given(array, np.arange(N), ["lopsided"], AMPLE)


def test_one_kernel_is_asked_for_without_the_others():
    """A column of one kernel must not cost the evaluation of all of them."""

    def unused(X, Z):
        raise AssertionError("another kernel was evaluated")

    X = sample(N)
    bank = mk.KernelBank([mk.Callable(lopsided), mk.Callable(unused)])
    grams = dense(bank, X, MemoryBudget.of(12 * 2 * N * N), symmetric=False)
    assert grams.matrices is None
    found = grams.combine(np.array([1.0, 0.0])).columns(np.array([3, 1]))
    np.testing.assert_allclose(found, lopsided(X, X)[:, [3, 1]], rtol=1e-12)
