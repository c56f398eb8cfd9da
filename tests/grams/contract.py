"""One suite for every implementation of the waist: a case says what, the contract checks all of it.

A case has a sample, new points, a bank and the obvious values of its kernels; every pass of the
grams, corrected in every way and with every kind of sample weights, must agree with the naive twin.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from multikernel.grams import protocol
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.protocol import Grams, encode_once
from tests import naive

N, N_NEW, N_TARGETS = 45, 9, 2
PANEL = 16  # rows of a panel in these tests, so that every pass has several
HOWS = ["trace", "trace-first", "multiplicative", "spherical", "frobenius", None]
WEIGHTS = ["none", "reals"]  # whole numbers are repetitions, which a test of its own compares
AMPLE = MemoryBudget.of("2GB")


def sample(n, d=5, seed=2313):
    """Columns of different location; the last one is constant.

    With the usual seed no point lies so near the mean of a column that the twins, which centre
    matrices and not features, lose digits under the spherical normalisation.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + np.linspace(-1, 1, d)
    X[:, -1] = 2.0
    return X


def sample_weights(kind, n):
    rng = np.random.default_rng(7)
    if kind == "integers":
        return rng.integers(1, 4, size=n).astype(float)
    return rng.uniform(0.1, 3.0, size=n) if kind == "reals" else None


def assert_close(actual, expected, rtol, what=""):
    """Each kernel (first axis) by its largest entry; a kernel that is zero must be exactly zero."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (what, actual.shape, expected.shape)
    for k, (got, want) in enumerate(zip(actual, expected, strict=True)):
        error, scale = np.max(np.abs(got - want), initial=0.0), np.max(np.abs(want), initial=0.0)
        assert error <= rtol * scale, f"{what} of kernel {k}: {error:.3g} against {scale:.3g}"


def assert_products_close(actual, expected, rtol):
    """Frobenius products, relative to the norms of the two kernels."""
    norms = np.sqrt(np.diag(expected))
    bound = rtol * np.outer(norms, norms)
    assert actual.shape == expected.shape
    assert np.all(np.abs(actual - expected) <= bound), np.max(
        np.abs(actual - expected) / np.where(bound > 0, bound, 1.0)
    )


class GramsContract:
    """A case supplies ``make``, ``naive_kernels`` and, where the defaults do not fit, the rest."""

    #: samples, and rows of a panel, so that every pass has several
    N, PANEL = N, PANEL
    #: relative accuracy against the twins, and of weights against repetitions
    rtol = 1e-10
    exact = 1e-12
    #: which kernels are constant on the sample, and which are known to be PSD
    constant: list[bool]
    psd: list[bool]
    #: whether a row has the same bits whichever rows are read with it: not if BLAS computes blocks
    same_bits_in_any_block = True
    #: whether new points are known well enough for the spherical normalisation
    knows_new_diagonals = True

    def make(self, X, *, sample_weight=None, n_jobs=1, budget=AMPLE, center=True) -> Grams:
        """Uncorrected grams of the case's bank; ``center`` says what they will be used for."""
        raise NotImplementedError

    def naive_kernels(self, X, Z) -> np.ndarray:
        """All kernels, shape (p, n_X, n_Z), float64, the obvious way."""
        raise NotImplementedError

    @cached_property
    def X(self):
        return sample(self.N)

    @cached_property
    def X_new(self):
        return sample(N_NEW, seed=1)

    @cached_property
    def Y(self):
        return np.random.default_rng(2).normal(size=(self.N, N_TARGETS)) + 1.5

    @cached_property
    def V(self):
        return np.random.default_rng(3).normal(size=(self.N, 3))

    @cached_property
    def mu(self):
        """Weights with a zero and a negative one."""
        mu = np.random.default_rng(4).uniform(0.2, 1.0, size=len(self.constant))
        mu[1] = 0.0
        mu[-1] *= -1.0
        return mu

    # Fixtures of a class are made once for all tests that share them: twins are slow.

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def small_and_quick(cls):
        """Several panels in a small problem, and no threads for products of a few numbers."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(protocol, "MAX_PANEL_ROWS", cls.PANEL)
            with threadpool_limits(limits=1, user_api="blas"):
                yield

    @pytest.fixture(scope="class", params=[True, False], ids=["centred", "raw"])
    @classmethod
    def center(cls, request):
        return request.param

    @pytest.fixture(scope="class", params=HOWS, ids=str)
    @classmethod
    def how(cls, request):
        return request.param

    @pytest.fixture(scope="class", params=WEIGHTS)
    @classmethod
    def omega(cls, request):
        return sample_weights(request.param, cls.N)

    @pytest.fixture
    def grams(self, center, how, omega):
        return self.make(self.X, sample_weight=omega, center=center).corrected(center, how)

    @pytest.fixture(scope="class")
    @classmethod
    def twin(cls, center, how, omega):
        """The corrected bank, (p, n, n)."""
        return cls().corrected_twin(center, how, omega)

    @pytest.fixture(scope="class")
    @classmethod
    def twin_new(cls, center, how, omega):
        """The corrected bank between new and training points, (p, n_new, n)."""
        return cls().corrected_twin_new(center, how, omega)

    def corrected_twin(self, center, how, omega, rows=slice(None)):
        raw = self.naive_kernels(self.X, self.X)[:, rows][:, :, rows]
        return np.array([naive.correct(K, center, how, omega) for K in raw])

    def corrected_twin_new(self, center, how, omega):
        raw, new = self.naive_kernels(self.X, self.X), self.naive_kernels(self.X_new, self.X)
        own = np.array([np.diag(K) for K in self.naive_kernels(self.X_new, self.X_new)])
        together = zip(raw, new, own, strict=True)
        return np.array([naive.correct_new(K, L, d, center, how, omega) for K, L, d in together])

    # -- every pass against its twin --------------------------------------------------------------

    def test_block_diagonals_and_masks(self, grams, twin):
        assert grams.p == len(twin) and grams.n == self.N and len(grams.names) == grams.p
        np.testing.assert_array_equal(grams.degenerate, self.constant)
        np.testing.assert_array_equal(grams.known_psd, self.psd)
        whole = grams.block(slice(0, self.N))
        assert_close(whole, twin, self.rtol, "block")
        assert_close(grams.diagonals(), np.einsum("kii->ki", twin), self.rtol, "diagonals")
        for rows in (slice(0, 1), slice(3, 17), slice(30, self.N), slice(self.N - 1, self.N)):
            some = grams.block(rows)
            if self.same_bits_in_any_block:
                np.testing.assert_array_equal(some, whole[:, rows])
            again = whole.copy()
            again[:, rows] = some
            assert_close(again, twin, self.rtol, "block of some rows")

    @pytest.mark.parametrize("products", [True, False])
    def test_summary(self, grams, twin, omega, products):
        got, want = grams.summary(self.Y, products), naive.summary(twin, self.Y, omega)
        self.check_summary(got, want, products)
        # Asking again, now that things are known, changes nothing that matters.
        self.check_summary(grams.summary(self.Y, products), want, products)
        self.check_summary(grams.summary(self.Y, not products), want, not products)

    def check_summary(self, got, want, products):
        size = want["norms"] * want["target_norm"]
        assert_close(got.traces, want["traces"], self.rtol, "traces")
        assert_close(got.norms, want["norms"], self.rtol, "norms")
        assert np.all(np.abs(got.a - want["a"]) <= self.rtol * size)
        assert got.target_norm == pytest.approx(want["target_norm"], rel=1e-12)
        alignments = np.divide(want["a"], size, out=np.zeros_like(size), where=size > 0)
        np.testing.assert_allclose(got.alignments, alignments, rtol=0, atol=self.rtol)
        if not products:
            assert got.M is None
            with pytest.raises(ValueError, match="products=True"):
                got.alignment(self.mu)
            return
        assert_products_close(got.M, want["M"], self.rtol)
        M, a = want["M"], want["a"]
        for w in (np.abs(self.mu), self.mu):
            expected = w @ a / np.sqrt(w @ M @ w) / want["target_norm"]
            assert got.alignment(w) == pytest.approx(expected, abs=20 * self.rtol)

    def test_combine_and_products(self, grams, twin):
        want = naive.combine(twin, self.mu)
        scale = np.max(np.abs(want)) * self.rtol
        operator, one, rows = grams.combine(self.mu), self.V[:, 0], slice(5, 20)
        before = [operator.rows(rows), operator.matvec(self.V), operator.matvec(one)]
        np.testing.assert_allclose(operator.diagonal(), np.diag(want), rtol=0, atol=scale)
        K = operator.dense()
        assert K.dtype == np.float64 and operator.dense() is K and operator.n == self.N
        np.testing.assert_allclose(K, want, rtol=0, atol=scale)
        after = [operator.rows(rows), operator.matvec(self.V), operator.matvec(one)]
        products = want @ self.V
        for some, several, single in (before, after):
            np.testing.assert_allclose(some, want[5:20], rtol=0, atol=scale)
            assert_close(several[None], products[None], self.rtol, "matvec")
            assert_close(single[None], products[None, :, 0], 2 * self.rtol, "matvec of a vector")
        assert_close(grams.matvecs(self.V), naive.matvecs(twin, self.V), self.rtol, "matvecs")
        products = naive.matvecs(twin.transpose(0, 2, 1), self.V)
        assert_close(grams.column_products(self.V), products, self.rtol, "column products")
        index = np.array([self.N - 1, 0, 7, 7])
        assert_close(grams.block(index), twin[:, index], self.rtol, "rows of each kernel")
        assert_close(
            grams.matvecs(self.V, at=index), naive.matvecs(twin, self.V)[:, index], self.rtol, "at"
        )
        # A form may cancel; its terms do not.
        sparse = self.V * (np.arange(self.N) % 10 == 0)[:, None]
        support = np.flatnonzero(sparse[:, 0])
        want = naive.matvecs(twin, sparse)[:, support]
        products = grams.matvecs(sparse, at=support)
        assert_close(products, want, 3 * self.rtol, "products at the support")
        nothing = grams.matvecs(0.0 * self.V, at=support[:0])
        assert nothing.shape == (grams.p, 0, self.V.shape[1])
        for V in (self.V, sparse):
            size = np.abs(V).T @ np.abs(twin) @ np.abs(V)
            bound = self.rtol * np.einsum("ktt->kt", size)
            forms = naive.quadratic_forms(twin, V)
            assert np.all(np.abs(grams.quadratic_forms(V) - forms) <= bound)
            single = grams.quadratic_forms(V[:, 0])
            assert single.shape == (grams.p,)
            assert np.all(np.abs(single - forms[:, 0]) <= bound[:, 0])

    def test_columns_of_combinations_and_of_single_kernels(self, grams, twin):
        index = np.array([self.N - 1, 0, 7, 7])
        for weights in (self.mu, *np.eye(grams.p)):
            want = naive.combine(twin, weights)
            bound = self.rtol * np.max(np.abs(want))
            operator = grams.combine(weights)
            assert "columns" in operator.offers
            for _ in range(2):
                for some in (index, slice(3, 8)):
                    got = operator.columns(some)
                    assert got.shape == want[:, some].shape
                    np.testing.assert_allclose(got, want[:, some], rtol=0, atol=bound)
                if "dense" in operator.offers:
                    operator.dense()
            doubled = grams.combine(weights).scaled(2.0).columns(index)
            np.testing.assert_allclose(doubled, 2.0 * want[:, index], rtol=0, atol=3 * bound)

    def test_expansions_that_share_an_encoding(self, grams):
        """Equal keys mean that one may read what the other has encoded."""
        coef = self.coefficients("zero-sum")
        each = [grams.expand(alone, coef) for alone in np.eye(grams.p)]
        if grams.how == "spherical" and not self.knows_new_diagonals:
            return
        for one, points in zip(each, encode_once(each, self.new_points()), strict=True):
            own = one.values(one.encode(self.new_points()))
            np.testing.assert_array_equal(one.values(points), own)

    def test_derived_operations_of_a_combination(self, grams, twin):
        """Solves, eigenvalues, submatrices and inner products, with and without the matrix."""
        mu = np.abs(self.mu)
        K = naive.combine(twin, mu)
        scale = float(np.max(np.abs(K))) or 1.0
        values = np.linalg.eigvalsh(K)
        ridge = np.linspace(1.0, 2.0, self.N) * max(scale, -2.0 * values[0])
        want = np.linalg.solve(K + np.diag(ridge), self.V)
        size = np.max(np.abs(want))
        index = np.array([self.N - 1, 0, 7, 7])
        operator = grams.combine(mu)
        for _ in range(2):
            np.testing.assert_allclose(
                operator.solve(ridge, self.V), want, rtol=0, atol=20 * self.rtol * size
            )
            np.testing.assert_allclose(
                operator.solve(ridge, self.V[:, 0]), want[:, 0], rtol=0, atol=20 * self.rtol * size
            )
            some = operator.submatrix(index)
            np.testing.assert_allclose(
                some, K[np.ix_(index, index)], rtol=0, atol=self.rtol * scale
            )
            found = operator.lowest_eigenvalue()
            if found.proven:
                assert values[0] >= found.lowest - 1e-6 * scale * self.N
            else:
                assert found.lowest == pytest.approx(values[0], abs=1e-2 * abs(values).max())
            operator.dense()
        assert {"matvec", "rows", "solve", "dense"} <= operator.offers
        doubled = grams.combine(mu).scaled(2.0)
        np.testing.assert_allclose(
            doubled.rows(slice(0, self.N)), 2.0 * K, atol=3 * self.rtol * scale
        )
        G = np.random.default_rng(11).normal(size=(self.N, self.N))
        terms = np.einsum("ij,kij->k", np.abs(G), np.abs(twin))
        got, forms = grams.inner_products(G), np.einsum("ij,kij->k", G, twin)
        assert got.shape == (grams.p,)
        assert np.all(np.abs(got - forms) <= self.rtol * terms)

    def test_parts_and_norm_of_a_combination(self, grams, twin, omega):
        """Some rows and columns, their products, and the norm: without the matrix, and with it."""
        want = naive.combine(twin, self.mu)
        scale = np.max(np.abs(want)) * self.rtol
        centred = naive.center(want, omega)
        norm = np.sqrt(naive.inner(centred, centred, omega))
        operator, index = grams.combine(self.mu), np.array([self.N - 1, 0, 7, 31])
        for _ in range(2):
            np.testing.assert_allclose(operator.rows(index), want[index], rtol=0, atol=scale)
            among = operator.submatrix(index)
            np.testing.assert_allclose(among, want[np.ix_(index, index)], rtol=0, atol=scale)
            got = operator.entries(index[:2], index)
            np.testing.assert_allclose(got, want[np.ix_(index[:2], index)], rtol=0, atol=scale)
            for v in (np.arange(1.0, 5.0), np.ones((4, 2))):
                got = operator.partial_matvec(index, v)
                np.testing.assert_allclose(got, want[:, index] @ v, rtol=0, atol=10 * scale)
            none = np.zeros(0, dtype=np.intp)
            assert operator.submatrix(none).shape == (0, 0)
            assert operator.entries(none, index).shape == (0, 4)
            assert np.all(operator.partial_matvec(none, np.zeros(0)) == np.zeros(self.N))
            ridge = np.full(4, 5.0 * np.abs(want).max())  # the weights may be negative
            got = (want[np.ix_(index, index)] + np.diag(ridge)) @ operator.solve_among(
                index, ridge, np.eye(4)
            )
            np.testing.assert_allclose(got, np.eye(4), atol=100 * self.rtol)
            assert operator.centred_norm(omega) == pytest.approx(norm, rel=20 * self.rtol)
            operator.dense()

    def coefficients(self, kind):
        coef = np.random.default_rng(5).normal(size=(self.N, 2))
        coef[::3] = 0.0
        if kind != "free":
            coef[1] -= coef.sum(axis=0)
        if kind == "nearly zero-sum":
            # A sum that is small beside the coefficients, and far from negligible.
            coef[1] += 1e-4 * np.abs(coef).sum(axis=0)
        return coef

    def new_points(self):
        return self.X_new

    @pytest.mark.parametrize("kind", ["zero-sum", "nearly zero-sum", "free"])
    def test_expand(self, grams, twin, twin_new, kind):
        coef, rows = self.coefficients(kind), np.array([self.N - 1, 0, 3, 3, 20])
        expansion = grams.expand(self.mu, coef)
        assert expansion.n_kernels == grams.p
        self.check_expansion(expansion, grams.points(rows), twin[:, rows], coef)
        if grams.how == "spherical" and not self.knows_new_diagonals:
            return
        points = expansion.encode(self.new_points())
        self.check_expansion(expansion, points, twin_new, coef)
        values = expansion.values(points)
        expansion.release()
        again = expansion.encode(self.new_points())
        np.testing.assert_array_equal(expansion.values(again), values)
        between = grams.expand(np.ones(grams.p), np.eye(self.N))
        cross = between.shares(between.encode(self.new_points())).transpose(1, 0, 2)
        assert_close(cross, twin_new, self.rtol, "cross")

    def check_expansion(self, expansion, points, cross, coef):
        """Shares and values, relative to the sums of the sizes of their terms."""
        want = naive.shares(cross, self.mu, coef)
        terms = naive.shares(np.abs(cross), np.abs(self.mu), np.abs(coef)).max(axis=0)
        got = expansion.shares(points)
        assert got.shape == want.shape
        assert np.all(np.abs(got - want).max(axis=0) <= self.rtol * terms)
        bound = self.rtol * terms.sum(axis=0)
        values = expansion.values(points)
        assert values.shape == want.sum(axis=1).shape
        assert np.all(np.abs(values - want.sum(axis=1)).max(axis=0) <= bound)

    def test_take(self, center, how):
        rows = np.random.default_rng(6).permutation(self.N)[:30]
        omega = np.random.default_rng(8).uniform(0.5, 2.0, size=30)
        grams = self.make(self.X, center=center).corrected(center, how)
        self.check_taken(grams, grams.take(rows, omega).corrected(center, how), rows, omega)
        copied = grams.take(rows, omega, copy=True)
        self.check_taken(grams, copied.corrected(center, how), rows, omega)

    def check_taken(self, grams, taken, rows, omega):
        want = self.corrected_twin(grams.center, grams.how, omega, rows)
        assert_close(taken.block(slice(0, 30)), want, self.rtol, "block of some points")
        summary = naive.summary(want, self.Y[rows], omega)
        self.check_summary(taken.summary(self.Y[rows]), summary, True)
        # What was taken belongs to the same pool: points of the whole are read by its expansions.
        coef = np.random.default_rng(9).normal(size=(30, 1))
        expansion = taken.expand(self.mu, coef)
        self.check_expansion(expansion, grams.points(rows[:7]), want[:, :7], coef)
        assert_close(taken.matvecs(coef), naive.matvecs(want, coef), self.rtol, "matvecs")
        K = naive.combine(want, self.mu)
        assert_close(taken.combine(self.mu).dense()[None], K[None], self.rtol, "combination")

    # -- weights are repetitions ------------------------------------------------------------------

    def test_integer_weights_are_repeated_samples(self, center, how):
        omega = sample_weights("integers", self.N)
        index = np.repeat(np.arange(self.N), omega.astype(int))
        first = np.flatnonzero(np.r_[True, np.diff(index) > 0])
        once = self.make(self.X, sample_weight=omega, center=center).corrected(center, how)
        often = self.make(self.X, center=center).take(index).corrected(center, how)
        exact = self.exact
        repeated = often.block(slice(0, len(index)))
        assert_close(once.block(slice(0, self.N)), repeated[:, first][:, :, first], exact, "block")
        assert_close(
            once.matvecs(omega[:, None] * self.V),
            often.matvecs(self.V[index])[:, first],
            exact,
            "matvecs",
        )
        ours, theirs = once.summary(self.Y), often.summary(self.Y[index])
        assert_close(ours.traces, theirs.traces, exact, "traces")
        assert_close(ours.norms, theirs.norms, exact, "norms")
        assert ours.target_norm == pytest.approx(theirs.target_norm, rel=1e-12)
        assert np.all(np.abs(ours.a - theirs.a) <= exact * theirs.norms * theirs.target_norm)
        assert_products_close(ours.M, theirs.M, exact)

    def test_weights_of_one_are_no_weights(self, center, how):
        ones = self.make(self.X, sample_weight=np.ones(self.N), center=center).corrected(
            center, how
        )
        none = self.make(self.X, center=center).corrected(center, how)
        assert_close(
            ones.block(slice(0, self.N)), none.block(slice(0, self.N)), self.exact, "block"
        )

    # -- bits, and what was given -----------------------------------------------------------------

    @pytest.mark.parametrize(
        "change", [{"n_jobs": 2}, {"budget": MemoryBudget.of("64MB")}], ids=str
    )
    def test_bits_do_not_depend_on_threads_or_memory(self, how, change):
        one = self.make(self.X, sample_weight=sample_weights("reals", self.N)).corrected(True, how)
        two = self.make(self.X, sample_weight=sample_weights("reals", self.N), **change).corrected(
            True, how
        )
        assert type(one) is type(two)
        rows = slice(10, 41)
        np.testing.assert_array_equal(one.block(rows), two.block(rows))
        np.testing.assert_array_equal(one.diagonals(), two.diagonals())
        a, b = one.summary(self.Y), two.summary(self.Y)
        for field in ("traces", "norms", "a", "M", "alignments"):
            np.testing.assert_array_equal(getattr(a, field), getattr(b, field), err_msg=field)
        assert a.target_norm == b.target_norm
        np.testing.assert_array_equal(one.matvecs(self.V), two.matvecs(self.V))
        f, g = one.combine(self.mu), two.combine(self.mu)
        np.testing.assert_array_equal(f.matvec(self.V), g.matvec(self.V))
        np.testing.assert_array_equal(f.rows(rows), g.rows(rows))
        np.testing.assert_array_equal(f.dense(), g.dense())

    def test_inputs_stay_as_they_were(self, how):
        omega, mu, Y, V = (
            sample_weights("reals", self.N),
            self.mu.copy(),
            self.Y.copy(),
            self.V.copy(),
        )
        X = self.X.copy()
        grams = self.make(X, sample_weight=omega).corrected(True, how)
        grams.summary(Y)
        grams.combine(mu).dense()
        grams.matvecs(V)
        grams.expand(mu, V).values(grams.points(np.arange(4)))
        np.testing.assert_array_equal(omega, sample_weights("reals", self.N))
        for ours, before in ((mu, self.mu), (Y, self.Y), (V, self.V)):
            np.testing.assert_array_equal(ours, before)
        assert_same_input(X, self.X)

    def test_correcting_is_not_remembered_by_the_original(self):
        grams = self.make(self.X)
        before = grams.block(slice(0, 4)).copy()
        centred = grams.corrected(True, "frobenius")
        centred.summary(self.Y)
        np.testing.assert_array_equal(grams.block(slice(0, 4)), before)
        assert (grams.center, grams.how) == (False, None)
        assert (centred.center, centred.how) == (True, "frobenius")

    def test_unknown_normalisation(self):
        with pytest.raises(ValueError, match="'trace', 'multiplicative', 'spherical', 'frobenius'"):
            self.make(self.X).corrected(True, "unit")

    # -- nothing to combine, nothing to expand ----------------------------------------------------

    def test_zero_weights_give_the_zero_kernel(self):
        operator = self.make(self.X).corrected(True, "trace").combine(np.zeros(len(self.constant)))
        assert_zero(operator.rows(slice(0, 3)), (3, self.N))
        assert_zero(operator.matvec(self.V), self.V.shape)
        assert_zero(operator.matvec(self.V[:, 0]), (self.N,))
        assert_zero(operator.diagonal(), (self.N,))
        assert_zero(operator.dense(), (self.N, self.N))

    @pytest.mark.parametrize("empty", ["weights", "coefficients"])
    def test_zero_functions(self, empty):
        grams = self.make(self.X).corrected(True, "trace")
        mu = np.zeros(grams.p) if empty == "weights" else self.mu
        coef = np.zeros((self.N, 2)) if empty == "coefficients" else self.coefficients("free")
        expansion = grams.expand(mu, coef)
        points = expansion.encode(self.new_points())
        assert_zero(expansion.values(points), (N_NEW, 2))
        assert_zero(expansion.shares(points), (N_NEW, grams.p, 2))


def assert_zero(values, shape):
    assert np.shape(values) == shape
    assert not np.any(values)


def assert_same_input(got, want):
    got = got.toarray() if hasattr(got, "toarray") else got
    want = want.toarray() if hasattr(want, "toarray") else want
    np.testing.assert_array_equal(got, want)
