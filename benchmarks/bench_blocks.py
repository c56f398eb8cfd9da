"""Machines on large kernels: block steps against SMO, and ridge with and without preconditioner.

    python benchmarks/bench_blocks.py [--n 10000 20000] [--C 0.1 1 10] [--threads 1 2]

*Block steps*: one support vector machine on a Gaussian kernel matrix in memory (the data of
`bench_smo.py`), to a violation of 1e-3 of the optimality conditions, by SMO (one thread) and by
block steps with several. ``columns`` are those that block steps read, ``steps`` pairs of variables.
The best of two repetitions. Elapsed and CPU seconds: on a busy machine only the latter are steady.

*Ridge*: conjugate gradients on kernels that are evaluated in every product (digits, three
Gaussians), to fitted values within 1e-6 standard deviations of the exact ones.
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time
from typing import Any

import numpy as np
from bench_joint import digits as rows_of_digits
from bench_joint import widths
from bench_smo import digits, noisy
from threadpoolctl import threadpool_limits

import multikernel as mk
from multikernel.grams.matrix import GivenMatrix
from multikernel.grams.memory import MemoryBudget
from multikernel.learners.preconditioner import find_preconditioner
from multikernel.learners.ridge import conjugate_gradients
from multikernel.learners.smo import svc


def gaussian(X: np.ndarray) -> np.ndarray:
    """The kernel matrix, in panels: it may fill a large part of the memory."""
    X = X.astype(np.float32)
    n, squares = len(X), np.einsum("ij,ij->i", X, X)
    gamma = np.float32(1.0 / X.var(axis=0, dtype=np.float64).sum())
    K = np.empty((n, n))
    for start in range(0, n, 500):
        part = slice(start, start + 500)
        D = squares[part, None] + squares - 2.0 * X[part] @ X.T
        K[part] = np.exp(-gamma * np.maximum(D, 0.0))
    return 0.5 * (K + K.T) if n <= 10_000 else K


def machines(n: int, costs: list[float], threads: list[int]) -> None:
    for name, source in (("digits", digits), ("noisy", noisy)):
        X, y = source(n)
        K = gaussian(X)
        for C in costs:
            runs: dict[str, Any] = {"SMO": K}
            runs |= {f"blocks, {jobs} threads": GivenMatrix(K, jobs) for jobs in threads}
            for label, kernel in runs.items():
                best, cpu = np.inf, np.inf
                for _ in range(2):
                    start, used = perf_counter(), process_time()
                    found = svc(kernel, y, C)
                    best = min(best, perf_counter() - start)
                    cpu = min(cpu, process_time() - used)
                print(
                    f"{name:7s} n {n:6d}  C {C:5g}  {label:18s}  {best:6.3f} s  cpu {cpu:6.3f} s  "
                    f"steps {found.n_iter:7d}  columns {found.n_rows:6d}  "
                    f"support {np.count_nonzero(found.coef):5d}  objective {found.objective:.6f}",
                    flush=True,
                )


def ridge(n: int) -> None:
    X, y = rows_of_digits(n)
    Y = y[:, None].astype(np.float64)
    grams = mk.gaussians(widths(X, 3)).plan(X).grams(X, budget=MemoryBudget.of("400MB"))
    gram = grams.corrected(True, "multiplicative").combine(np.full(3, 1 / 3))
    for alpha in (1.0, 0.1):
        diagonal = np.full(n, alpha)
        for preconditioned in (True, False):
            used = process_time()
            P = find_preconditioner(gram, diagonal) if preconditioned else None
            setup, used = process_time() - used, process_time()
            steps = conjugate_gradients(gram, Y, diagonal, alpha, 1e-6, 1000, preconditioner=P)[3]
            print(
                f"ridge n {n}  alpha {alpha:g}  rank {P.rank if P else 0:4d}  "
                f"cpu {setup:.2f} + {process_time() - used:.2f} s  steps {steps}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="*", default=[10_000, 20_000])
    parser.add_argument("--C", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--ridge", type=int, nargs="*", default=[6000])
    options = parser.parse_args()
    with threadpool_limits(1):
        X, y = noisy(1500)
        for kernel in (gaussian(X), GivenMatrix(gaussian(X))):
            svc(kernel, y, 100.0)  # compiles
        for n in options.n:
            machines(n, options.C, options.threads)
        for n in options.ridge:
            ridge(n)


if __name__ == "__main__":
    main()
