"""The methods of the experiment on voted kernels, each for all of its settings at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from multikernel.estimators.voted_search import PAPER_GRID
from multikernel.grams.memory import MemoryBudget
from multikernel.kernels import KernelBank, gaussians, polynomials
from multikernel.learners.smo import svc
from multikernel.solvers.voted.columns import KernelColumns, planned_kernels
from multikernel.solvers.voted.complexity import complexities
from multikernel.solvers.voted.path import solve_grid
from multikernel.solvers.voted.problem import VotedProblem

DEGREES = tuple(range(1, 11))
GAMMAS = tuple(float(10.0 ** (i / 2)) for i in range(-4, 5))
COSTS = tuple(float(10.0**i) for i in range(-4, 8))
UNIFORM_COSTS = tuple(float(10.0**i) for i in range(-5, 8))
#: Steps of a support vector machine.
SVM_STEPS = 100_000
#: Relative duality gap of every vote.
TOL = 1e-6


@dataclass(frozen=True)
class Grids:
    """The values every method chooses from."""

    degrees: tuple[int, ...] = DEGREES
    gammas: tuple[float, ...] = GAMMAS
    penalties: tuple[float, ...] = PAPER_GRID
    costs: tuple[float, ...] = COSTS
    uniform_costs: tuple[float, ...] = UNIFORM_COSTS

    @classmethod
    def quick(cls) -> Grids:
        return cls(DEGREES[::2], GAMMAS[::2], PAPER_GRID[1:7:2], COSTS[1:8:2], UNIFORM_COSTS[1:8:2])


@dataclass(frozen=True)
class Outcome:
    """What one method does on one assignment of folds, for all its settings.

    Attributes
    ----------
    settings : list of str
    validation, test : arrays of shape (n_settings, n_points)
        Decision values on the validation and test points.
    support : array of shape (n_settings,)
        Training points with a coefficient.
    failures : int
        Settings that stopped before their tolerance.
    """

    settings: list[str]
    validation: np.ndarray
    test: np.ndarray
    support: np.ndarray
    failures: int


#: From prepared training points, labels, other points and grids to an outcome on the other points.
Method = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Grids], Outcome]


def columns_of(bank: KernelBank, X: np.ndarray) -> KernelColumns:
    plan, budget = bank.plan(X), MemoryBudget.of(None)
    grams = plan.grams(X, budget=budget, symmetric=False)
    return KernelColumns(grams, planned_kernels(plan), budget)


def vote(
    bank: Callable[[Grids], KernelBank],
    how: str,
    X: np.ndarray,
    y: np.ndarray,
    X_val: np.ndarray,
    X_test: np.ndarray,
    grids: Grids,
) -> Outcome:
    """Voted kernels for all lambda and beta."""
    columns = columns_of(bank(grids), X)
    r = complexities(how, columns, X.shape[1]).values
    grid, names = [], []
    for turn, lam in enumerate(grids.penalties):
        for beta in grids.penalties if turn % 2 == 0 else grids.penalties[::-1]:
            grid.append(lam * r + beta)
            names.append(f"lambda={lam:g} beta={beta:g}")
    return walk(columns, y, grid, names, X_val, X_test)


def norm_one(
    X: np.ndarray, y: np.ndarray, X_val: np.ndarray, X_test: np.ndarray, grids: Grids
) -> Outcome:
    """One polynomial, lambda = 0, for all degrees and beta."""
    each = []
    for degree in grids.degrees:
        columns = columns_of(polynomials([degree]), X)
        grid = [np.array([beta]) for beta in grids.penalties]
        names = [f"degree={degree} beta={beta:g}" for beta in grids.penalties]
        each.append(walk(columns, y, grid, names, X_val, X_test))
    return join(each)


def walk(
    columns: KernelColumns,
    y: np.ndarray,
    grid: Sequence[np.ndarray],
    names: list[str],
    X_val: np.ndarray,
    X_test: np.ndarray,
) -> Outcome:
    problem = VotedProblem(columns, y, np.full(len(y), 1.0 / len(y)))
    found = solve_grid(problem, grid, tol=TOL)
    function = columns.expand([one.terms for one in found])
    return Outcome(
        names,
        function.values(function.encode(X_val)).T,
        function.values(function.encode(X_test)).T,
        np.array([len(np.unique(one.terms.points)) for one in found]),
        sum(one.gap > TOL for one in found),
    )


def machine(
    bank: Callable[[Grids], Iterable[tuple[str, Any]]],
    costs: Callable[[Grids], tuple[float, ...]],
    X: np.ndarray,
    y: np.ndarray,
    X_val: np.ndarray,
    X_test: np.ndarray,
    grids: Grids,
) -> Outcome:
    """Support vector machines for all kernels and C, each from the solution at the C before."""
    each = []
    for name, kernel in bank(grids):
        K, K_val, K_test = kernel(X, X), kernel(X_val, X), kernel(X_test, X)
        coefs, intercepts, failures = [], [], 0
        alpha = None
        for C in costs(grids):
            result = svc(K, y, C, alpha0=alpha, max_iter=SVM_STEPS)
            alpha = result.alpha
            coefs.append(result.coef)
            intercepts.append(result.intercept)
            failures += result.status == "max_iter"
        coef, b = np.array(coefs), np.array(intercepts)[:, None]
        each.append(
            Outcome(
                [f"{name}C={C:g}" for C in costs(grids)],
                coef @ K_val.T + b,
                coef @ K_test.T + b,
                np.count_nonzero(coef, axis=1),
                failures,
            )
        )
    return join(each)


def join(outcomes: Sequence[Outcome]) -> Outcome:
    return Outcome(
        [name for one in outcomes for name in one.settings],
        np.concatenate([one.validation for one in outcomes]),
        np.concatenate([one.test for one in outcomes]),
        np.concatenate([one.support for one in outcomes]),
        sum(one.failures for one in outcomes),
    )


def polynomial_bank(grids: Grids) -> KernelBank:
    return polynomials(grids.degrees)


def gaussian_bank(grids: Grids) -> KernelBank:
    return gaussians(grids.gammas)


def single_polynomials(grids: Grids) -> Iterable[tuple[str, Any]]:
    for degree in grids.degrees:
        yield f"degree={degree} ", polynomials([degree])[0]


def mean_gaussian(grids: Grids) -> Iterable[tuple[str, Any]]:
    bank = gaussian_bank(grids)
    yield "", lambda X, Z: sum(kernel(X, Z) for kernel in bank) / len(bank)


METHODS: dict[str, Method] = {
    "L2": partial(machine, single_polynomials, lambda grids: grids.costs),
    "L1": norm_one,
    "VKRT": partial(vote, polynomial_bank, "trace"),
    "VKRD": partial(vote, polynomial_bank, "degree"),
    "L2-unif": partial(machine, mean_gaussian, lambda grids: grids.uniform_costs),
    "VKRG": partial(vote, gaussian_bank, "gamma"),
}
