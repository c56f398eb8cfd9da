"""The dense simplex method: against a general solver, from anywhere, at any scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import multikernel as mk
from multikernel.solvers.voted import master as voted_master
from multikernel.solvers.voted import simplex as voted_simplex
from multikernel.solvers.voted.generation import ColumnPool
from multikernel.solvers.voted.master import DenseMaster, HighsMaster
from multikernel.solvers.voted.simplex import DenseSimplex, SimplexBasis, equilibrate, regular_part
from tests.naive_voted import full_program, make_problem, sample

MANY = 100_000


def reference(A, limits, box):
    """The optimum by HiGHS."""
    bounds = np.stack([np.zeros_like(box), box], axis=1)
    found = linprog(
        -np.ones(len(box)),
        np.concatenate([A, -A]),
        np.concatenate([limits, limits]),
        bounds=bounds,
        method="highs",
    )
    assert found.status == 0
    return -found.fun


def check(A, limits, box, simplex, rel=1e-8):
    """Both sides of the optimum, written out: feasible, dual feasible, and of one value."""
    z, alpha = simplex.z, simplex.alpha
    assert np.all(z >= -1e-8 * box) and np.all(z <= box * (1 + 1e-8))
    assert np.all(np.abs(A @ z) <= limits * (1 + 1e-8) + 1e-14 * (np.abs(A) @ np.abs(z)))
    # The dual of the box and of the rows: any alpha bounds the optimum from above.
    bound = limits @ np.abs(alpha) + box @ np.maximum(0.0, 1.0 - alpha @ A)
    assert bound == pytest.approx(z.sum(), rel=rel, abs=1e-13)
    return z.sum()


def random_program(seed, n=60, q=40, level=-1.5):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(q, n))
    limits = 10.0**level * rng.uniform(0.5, 2.0, size=q)
    return A, limits, rng.uniform(0.5, 2.0, size=n) / n


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 50),
    q=st.integers(0, 50),
    level=st.floats(-5, 0),
)
def test_equals_a_general_solver(seed, n, q, level):
    A, limits, box = random_program(seed, n, q, level)
    simplex = DenseSimplex(box)
    assert simplex.solve(A, limits, MANY)
    best = reference(A, limits, box) if q else box.sum()
    assert check(A, limits, box, simplex) == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_scales_of_rows_and_points_do_not_matter(seed):
    """Rows times r, variables times c, the same program: what z is worth stays what it was."""
    A, limits, box = random_program(seed)
    rng = np.random.default_rng(seed)
    one, other = DenseSimplex(box), DenseSimplex(box)
    rows = 10.0 ** rng.uniform(-12, 12, size=len(A))
    assert one.solve(A, limits, MANY)
    assert other.solve(A * rows[:, None], limits * rows, MANY)
    np.testing.assert_allclose(other.z, one.z, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(other.alpha * rows, one.alpha, rtol=1e-6, atol=1e-9)


def test_equilibrated_entries_are_near_one():
    rng = np.random.default_rng(0)
    correlations = np.cos(rng.uniform(-1, 1, size=(30, 30)))
    sizes = 10.0 ** rng.uniform(-8, 8, size=30)
    rows, points = equilibrate(sizes[:, None] * correlations * sizes)
    scaled = np.abs(rows[:, None] * (sizes[:, None] * correlations * sizes) * points)
    for largest in (scaled.max(axis=0), scaled.max(axis=1)):
        assert largest.max() < 4 and largest.min() > 0.25
    for scale in (rows, points):
        np.testing.assert_array_equal(np.exp2(np.round(np.log2(scale))), scale)


@pytest.mark.parametrize("seed", range(4))
def test_copies_of_rows_and_points(seed):
    """Everything twice: degenerate at every vertex, and the optimum is known."""
    A, limits, box = random_program(seed, 30, 20)
    simplex, twice = DenseSimplex(box), DenseSimplex(np.tile(box, 2))
    assert simplex.solve(A, limits, MANY)
    A2, limits2 = np.tile(A, (2, 2)), np.tile(2.0 * limits, 2)
    assert twice.solve(A2, limits2, MANY)
    value = check(A2, limits2, np.tile(box, 2), twice)
    assert value == pytest.approx(2.0 * simplex.z.sum(), rel=1e-9)


def test_ties_everywhere():
    """Entries and bounds from three values: many vertices, many equal breakpoints."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        A = rng.integers(-1, 2, size=(25, 30)).astype(float)
        limits, box = np.full(25, 1.0), np.ones(30)
        simplex = DenseSimplex(box)
        assert simplex.solve(A, limits, MANY)
        assert check(A, limits, box, simplex) == pytest.approx(reference(A, limits, box), abs=1e-7)


def test_rows_come_and_go_and_limits_move():
    A, limits, box = random_program(0, 80, 60)
    simplex = DenseSimplex(box)
    rng = np.random.default_rng(0)
    have = np.arange(10)
    for level in (1.0, 0.1, 3.0, 0.01, 0.3, 10.0, 0.03):
        new = np.setdiff1d(np.arange(60), have)[:9]
        have = np.append(have, new)
        now = level * limits[have]
        assert simplex.solve(A[have], now, MANY)
        assert check(A[have], now, box, simplex) == pytest.approx(
            reference(A[have], now, box), abs=1e-7
        )
        loose = np.setdiff1d(np.arange(len(have)), simplex.basis.rows)
        stay = np.ones(len(have), dtype=bool)
        stay[rng.permutation(loose)[: len(loose) // 2]] = False
        have = have[stay]
        simplex.renumber(stay)


def test_a_row_without_room_is_an_equation():
    A, limits, box = random_program(3)
    limits[0] = 0.0
    simplex = DenseSimplex(box)
    assert simplex.solve(A, limits, MANY)
    assert abs(A[0] @ simplex.z) < 1e-12
    assert simplex.z.sum() == pytest.approx(reference(A, limits, box), abs=1e-7)


@pytest.mark.filterwarnings("error")
def test_variables_without_room_stay_at_zero():
    A, limits, box = random_program(4)
    box[::3] = 0.0
    simplex = DenseSimplex(box)
    assert simplex.solve(A, limits, MANY)
    assert np.all(simplex.z[::3] == 0)
    assert simplex.z.sum() == pytest.approx(reference(A, limits, box), abs=1e-7)


def test_a_singular_basis_is_cut_down():
    A, limits, box = random_program(5)
    A[3] = A[2]
    bad = SimplexBasis(np.array([1, 2, 3, 4]), np.array([7, 8, 9, 10]))
    good = regular_part(A, bad, 1e-9)
    assert len(good.rows) == len(good.inner) == 3
    assert np.linalg.cond(A[np.ix_(good.rows, good.inner)]) < 1e6
    simplex = DenseSimplex(box)
    simplex.basis = bad
    assert simplex.solve(A, limits, MANY)
    assert check(A, limits, box, simplex) == pytest.approx(reference(A, limits, box), abs=1e-7)


def test_too_few_pivots_are_admitted():
    A, limits, box = random_program(0)
    simplex = DenseSimplex(box)
    assert not simplex.solve(A, limits, 2)
    assert len(simplex.basis.rows) == 0  # the next call begins where this one did
    assert simplex.solve(A, limits, MANY)
    check(A, limits, box, simplex)


# -- as the master of a vote ----------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("penalty", [0.3, 1e-2, 1e-4])
def test_both_masters_find_the_same(fit_intercept, penalty):
    X, y = sample(80)
    bank = mk.polynomials(range(1, 11))
    problem = make_problem(bank, X / 3**0.5, y, fit_intercept)
    penalties = penalty * np.array([np.sqrt(K.diag(X).max()) for K in bank])
    found = []
    for kind in (DenseMaster, HighsMaster):
        pool = ColumnPool(problem, whole=False)
        pool.master = kind(problem)
        found.append(pool.solve(penalties))
    assert found[0].gap <= 1e-8
    assert found[0].objective == pytest.approx(found[1].objective, abs=1e-7)


@pytest.mark.parametrize(("degree", "factor"), [(4, 30.0), (8, 5.0), (8, 10.0)])
def test_points_of_very_different_length(degree, factor):
    """Entries up to 1e24, as outliers and high degrees make them."""
    X, y = sample(90, seed=2)
    X[:4] *= factor
    problem = make_problem([mk.Polynomial(degree)], X, y)
    for beta in (1.0, 1e-2):
        found = ColumnPool(problem, whole=False).solve(np.array([beta]), tol=1e-6)
        assert found.gap <= 1e-6
    K = np.abs(problem.columns.take(0, np.arange(90)))
    assert K.max() > 1e9 * np.median(K)


def test_what_rounding_leaves_unfinished_is_said(monkeypatch):
    """A master that gives up ends the rounds with a true objective and a true bound."""
    X, y = sample(60)
    problem = make_problem([mk.Gaussian(1.0)], X, y)
    penalties = np.array([0.01])
    best = full_program([mk.Gaussian(1.0)(X, X)], y, penalties)
    monkeypatch.setattr(voted_master, "PIVOTS_PER_ROW", 0)
    monkeypatch.setattr(voted_master, "MAX_RESCUE_ENTRIES", 0)
    found = ColumnPool(problem, whole=False).solve(penalties)
    assert found.gap > 1e-3
    assert found.bound <= best + 1e-12 <= found.objective + 1e-9
    # Small programs are left to HiGHS.
    monkeypatch.setattr(voted_master, "MAX_RESCUE_ENTRIES", 10**6)
    found = ColumnPool(problem, whole=False).solve(penalties)
    assert found.gap <= 1e-8
    assert found.objective == pytest.approx(best, abs=1e-7)


def test_an_inverse_that_is_no_inverse_is_not_worked_with(monkeypatch):
    A, limits, box = random_program(0)
    monkeypatch.setattr(voted_simplex, "MAX_INVERSE_ERROR", 0.0)
    simplex = DenseSimplex(box)
    assert not simplex.solve(A, limits, MANY)
