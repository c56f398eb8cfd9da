"""Joint learning over linear kernels of few columns: in feature space, and through the dual.

    python benchmarks/bench_linear.py [--quick]

Ten linear kernels on five columns each, centred and normalised, `LpNorm(4/3)` to a gap of 1e-3, C =
alpha = 1, on Gaussian columns with a noisy linear target. Every row is the whole ``fit`` of the
estimator, on one thread, in one process; ``ratio`` is the time relative to ``solver="primal"`` with
the same loss. With ``memory_budget="2GB"`` there is no n x n matrix at n = 20,000: support vector
machines read rows on demand. *columns* means that the kernels are held as their columns, *entries*
that entries of the kernel matrices are computed tile by tile, as for other kernels (for the hinge
loss only: other losses would need conjugate gradients with products of n x n entries).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from bench_joint import Row, markdown, save
from threadpoolctl import threadpool_limits

import multikernel as mk
from multikernel._places import write_atomically
from multikernel.grams import engines
from multikernel.grams.shared import SharedGrams

RESULTS = Path(__file__).parent / "results"
KERNELS, WIDTH = 10, 5


def problem(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, labels, and values."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, KERNELS * WIDTH))
    f = X[:, 0] - X[:, 13] + 0.5 * X[:, 27] + 0.2 * X[:, 31]
    labels = np.where(f + 0.7 * rng.normal(size=n) > 0, 1, -1)
    return X, labels, f + 0.3 * rng.normal(size=n)


def build_entries(part: Any, X: Any, options: engines.BuildOptions) -> SharedGrams:
    return SharedGrams.evaluate(part.kernels, X, options.names, options.budget, **options.common)


def fit(n: int, loss: str, solver: str, engine: str) -> Any:
    X, labels, values = problem(n)
    columns = np.arange(KERNELS * WIDTH).reshape(KERNELS, WIDTH).tolist()
    bank = mk.KernelBank([mk.Linear(columns=own) for own in columns])
    options = {"weighting": mk.LpNorm(4 / 3, solver=solver), "engine": engine}
    options["memory_budget"] = "2GB"
    if loss == "squared":
        return mk.MultiKernelRegressor(bank, **options).fit(X, values)
    return mk.MultiKernelClassifier(bank, loss=loss, **options).fit(X, labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    engines.register("entries", "shared", build_entries, falls_back_to="cpu")
    n = 2000 if options.quick else 20_000
    table: list[Row] = []
    with threadpool_limits(1):
        for loss in ("hinge", "logistic", "squared"):
            unit = None
            for solver, engine in [
                ("primal", "cpu"),
                ("alternation", "cpu"),
                ("cutting-planes", "cpu"),
                ("cutting-planes", "entries"),
            ]:
                if engine == "entries" and loss != "hinge" and not options.quick:
                    continue
                fit(500, loss, solver, engine)  # compile
                start = perf_counter()
                model = fit(n, loss, solver, engine)
                seconds = perf_counter() - start
                unit = seconds if unit is None else unit
                table.append(
                    {
                        "n": n,
                        "loss": loss,
                        "solver": solver,
                        "kernels as": "columns" if engine == "cpu" else "entries",
                        "seconds": round(seconds, 2),
                        "ratio": round(seconds / unit, 2),
                        "objective": f"{model.objective_:.6g}",
                        "gap": f"{model.duality_gap_:.1e}",
                    }
                )
                print(table[-1], flush=True)
    text = [
        "# Linear kernels of few columns",
        "Made by `python benchmarks/bench_linear.py`; what the columns mean is written there.",
        markdown(table),
    ]
    print(text[-1])
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        write_atomically(RESULTS / "linear.md", "\n\n".join(text) + "\n")
        save("linear", table)


if __name__ == "__main__":
    main()
