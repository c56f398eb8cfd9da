"""Passes over the rows that losses with kinks need, and the duality gap that they prove.

    python benchmarks/bench_passes.py [--n 100000] [--C 1 10] [--held 0 2000 10000]

Generated rows with ten columns, two Gaussians with 100 landmarks each, `alignf`. ``held`` is the
number of rows in memory that choose the start and the lengths of steps (0: none of them). Passes
include the two that every loss needs; the limit is 22, ``tol`` is 1e-3 for labels and 1e-4 for
numbers. CPU seconds, since the machine may be busy.
"""

from __future__ import annotations

import argparse
import warnings
from time import process_time
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from multikernel.estimators import from_sums

COLUMNS, LANDMARKS = 10, 100


def problems(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(0)
    X = random.standard_normal((n, COLUMNS))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 - 0.5
    noise = random.standard_normal(n)
    return {
        "labels, noisy": (X, np.sign(f + noise)),
        "labels, clean": (X, np.sign(f + 0.1 * noise)),
        "numbers": (X, f + 0.3 * noise),
    }


def measure(name: str, X: np.ndarray, y: np.ndarray, C: float, held: int) -> None:
    bank, way = mk.gaussians([0.02, 0.2]), mk.Nystroem(rank=LANDMARKS)
    model: Any = mk.MultiKernelClassifier(bank, "alignf", C=C, loss="hinge", approximation=way)
    if name == "numbers":
        model = mk.MultiKernelRegressor(
            bank, "alignf", alpha=1.0 / C, loss="epsilon_insensitive", approximation=way
        )
    from_sums.MAX_HELD_FEATURES = max(held, 1) * LANDMARKS * len(bank)
    start = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    print(
        f"{name:15s} C {C:5g}  held {held:6,d}  passes {2 + len(model.history_):2d}  "
        f"gap {model.duality_gap_:.1e}  {process_time() - start:6.1f} CPU s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--C", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--held", type=int, nargs="+", default=[0, 2000, 10_000])
    options = parser.parse_args()
    for name, (X, y) in problems(options.n).items():
        for C in options.C:
            for held in options.held:
                measure(name, X, y, C, held)


if __name__ == "__main__":
    main()
