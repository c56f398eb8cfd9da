"""Ensembles against kernel learning, on the sets of Cortes, Mohri and Rostamizadeh 2012, Table 2.

The paper describes ensembles (section 3.3) and leaves the comparison open; unif and alignf are
printed. Sets, kernels, scaling and draws are those of :mod:`.alignment`. Five folds: three for
training, one for choosing C or the ridge, one for the score (misclassification, or root mean
squared error).

Run ``python -m multikernel.experiments.ensembles --help``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from ..estimators.classifier import MultiKernelClassifier
from ..estimators.ensemble import KernelEnsembleClassifier, KernelEnsembleRegressor
from ..estimators.regressor import MultiKernelRegressor
from ..kernels.bank import KernelBank, gaussians
from .alignment import GRIDS, PROBLEMS, Problem

#: errors that are printed: unif and alignf, mean and standard deviation
PRINTED = {
    "kinematics": {"unif": (0.138, 0.005), "alignf": (0.115, 0.004)},
    "ionosphere": {"unif": (0.479, 0.033), "alignf": (0.444, 0.034)},
    "german": {"unif": (0.259, 0.018), "alignf": (0.242, 0.015)},
    "spambase": {"unif": (0.187, 0.028), "alignf": (0.180, 0.024)},
    "splice": {"unif": (0.152, 0.022), "alignf": (0.139, 0.013)},
}

METHODS: dict[str, dict[str, Any]] = {
    "unif": {"weighting": "uniform"},
    "alignf": {"weighting": "alignf"},
    "best single": {"weighting": "best"},
    "ensemble l1": {"norm": "l1"},
    "ensemble l2": {"norm": "l2"},
    "ensemble l1, signed": {"norm": "l1", "signed": True},
    "ensemble l1, one stage": {"norm": "l1", "stages": 1},
}


@dataclass(frozen=True)
class Outcome:
    """Errors of a method on a set, one per fold, and the largest gap of a second stage."""

    data: str
    method: str
    errors: np.ndarray
    gap: float
    seconds: float


def make(method: str, task: str, bank: KernelBank, value: float) -> Any:
    """The estimator that a method is."""
    options = METHODS[method]
    one_kernel = "weighting" in options
    if task == "classification":
        classifier: Any = MultiKernelClassifier if one_kernel else KernelEnsembleClassifier
        return classifier(bank, C=value, **options)
    regressor: Any = MultiKernelRegressor if one_kernel else KernelEnsembleRegressor
    return regressor(bank, alpha=value, **options)


def error(model: Any, X: np.ndarray, y: np.ndarray, task: str) -> float:
    wrong = model.predict(X)
    if task == "classification":
        return float(np.mean(wrong != y))
    return float(np.sqrt(np.mean((wrong - y) ** 2)))


def run_one(problem: Problem, method: str, rows: int, grid: Sequence[float], seed: int) -> Outcome:
    """One method on one set."""
    started = time.perf_counter()
    X, y = problem.load(rows, seed)
    low, high = problem.exponents
    bank = gaussians([2.0**j for j in range(low, high + 1)])
    cut = StratifiedKFold if problem.task == "classification" else KFold
    folds = [test for _, test in cut(5, shuffle=True, random_state=seed).split(X, y)]
    errors, gap = [], 0.0
    for fold, test in enumerate(folds):
        choosing = folds[(fold + 1) % 5]
        train = np.setdiff1d(np.arange(len(X)), np.concatenate([test, choosing]))
        models = [make(method, problem.task, bank, v).fit(X[train], y[train]) for v in grid]
        chosen = [error(model, X[choosing], y[choosing], problem.task) for model in models]
        best = models[int(np.argmin(chosen))]
        errors.append(error(best, X[test], y[test], problem.task))
        gap = max(gap, getattr(best, "weights_gap_", 0.0))
    seconds = time.perf_counter() - started
    return Outcome(problem.name, method, np.array(errors), gap, seconds)


def run(*, quick: bool = False, seed: int = 0, verbose: bool = False) -> list[Outcome]:
    """All methods on all sets.

    Parameters
    ----------
    quick : bool, default=False
        300 rows, and two values of C or the ridge.
    seed : int, default=0
        For rows and folds.
    verbose : bool, default=False
        Print every outcome.
    """
    out = []
    with threadpool_limits(1):
        for problem in PROBLEMS:
            grid = GRIDS[problem.task][2::2] if quick else GRIDS[problem.task][1::2]
            for method in METHODS:
                found = run_one(problem, method, 300 if quick else 1000, grid, seed)
                out.append(found)
                if verbose:
                    print(
                        f"{found.data:<11} {method:<23} {found.errors.mean():.3f} ± "
                        f"{found.errors.std():.3f}  gap {found.gap:.1e}  {found.seconds:.0f} s",
                        flush=True,
                    )
    return out


def markdown(outcomes: Sequence[Outcome]) -> str:
    """A table of errors, mean ± standard deviation over the folds, with what is printed."""
    sets = list(dict.fromkeys(found.data for found in outcomes))
    at = {(found.data, found.method): found.errors for found in outcomes}
    lines = ["| | " + " | ".join(sets) + " |", "|---|" + "---|" * len(sets)]
    for name in ("unif", "alignf"):
        cells = [f"{PRINTED[s][name][0]:.3f} ± {PRINTED[s][name][1]:.3f}" for s in sets]
        lines.append(f"| {name}, printed | " + " | ".join(cells) + " |")
    for method in dict.fromkeys(found.method for found in outcomes):
        cells = [f"{at[s, method].mean():.3f} ± {at[s, method].std():.3f}" for s in sets]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m multikernel.experiments.ensembles",
        description="Ensembles against kernel learning on the sets of CMR 2012, Table 2.",
    )
    parser.add_argument("--quick", action="store_true", help="300 rows, coarse grids")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    print(markdown(run(quick=given.quick, seed=given.seed, verbose=True)))


if __name__ == "__main__":
    main()
