"""Voted kernels: column generation against one general LP call, size, and memory.

    python benchmarks/bench_voted.py [--quick | --masters]

1. ``m = 500``, five Gaussians: the fit by column generation against ``scipy.optimize.linprog`` on
   the whole linear program (its matrix made beforehand), both with one thread, at penalties that
   leave few and many terms. CPU seconds of this process; the objectives must agree.
2. ``m = 4000``, ten Gaussians (and ten polynomials up to degree 10), all cores: wall seconds.
3. 200 kernels on 5,000 points: a million columns of 5,000 entries, 40 GB if they were stored. A
   process of its own fits them with ``memory_budget="1GB"`` and reports its peak resident memory.

``--masters`` compares the two solvers of the master program, the dense simplex method and HiGHS,
in the same column generation with one thread; nothing is written.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy.optimize import linprog
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

import multikernel as mk
from multikernel._places import write_atomically
from multikernel.estimators.voted import VotedKernelClassifier

RESULTS = Path(__file__).parent / "results"


def sample(m: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Five features, a curved boundary, one label in ten wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 5))
    y = np.sign(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=m))
    y[rng.random(m) < 0.1] *= -1
    return X, y


def vote(kernels: mk.KernelBank, penalty: float, **options: object) -> VotedKernelClassifier:
    """Equal penalties for all kernels, so that the reference needs no terms r_k."""
    ones = np.ones(len(kernels))
    return VotedKernelClassifier(
        kernels, ones, complexity_penalty=0.0, sparsity_penalty=penalty, **options
    )


def against_linprog(m: int, p: int, repeats: int) -> list[dict[str, str]]:
    X, y = sample(m)
    gammas = np.geomspace(0.01, 3.0, p)
    A = np.concatenate([rbf_kernel(X, gamma=g) * np.outer(y, y) for g in gammas], axis=1)
    matrix = -np.concatenate([A, -A, np.eye(m)], axis=1)
    rows = []
    with threadpool_limits(limits=1):
        vote(mk.gaussians(gammas), 0.1).fit(X[:100], y[:100])  # compiles
        for penalty in (1e-2, 3e-3, 1e-3):
            times = []
            for _ in range(repeats):
                start = process_time()
                model = vote(mk.gaussians(gammas), penalty).fit(X, y)
                times.append(process_time() - start)
            cost = np.append(np.full(2 * m * p, penalty), np.full(m, 1.0 / m))
            start = process_time()
            whole = linprog(cost, A_ub=matrix, b_ub=-np.ones(m), bounds=(0, None), method="highs")
            slow = process_time() - start
            assert abs(whole.fun - model.objective_) < 1e-7, (whole.fun, model.objective_)
            fast = float(np.median(times))
            rows.append(
                {
                    "problem": f"m = {m}, p = {p}, penalty {penalty:g}",
                    "terms": str(model.n_terms_),
                    "gap": f"{model.duality_gap_:.0e}",
                    "columns [CPU s]": f"{fast:.3f}",
                    "linprog [CPU s]": f"{slow:.2f}",
                    "ratio": f"{slow / fast:.0f}",
                }
            )
            print(rows[-1], flush=True)
    return rows


def large(m: int, p: int) -> list[dict[str, str]]:
    X, y = sample(m)
    families = {
        "Gaussians": (mk.gaussians(np.geomspace(0.01, 3.0, p)), X),
        "polynomials": (mk.polynomials(range(1, p + 1)), X / 5**0.5),
    }
    rows = []
    for name, (bank, Z) in families.items():
        # Without complexity terms high degrees cost next to nothing: only Gaussians are tried.
        hard = [(0.0, 0.0003)] if name == "Gaussians" else []
        for lam, beta in [(0.01, 0.001), (0.1, 0.0003), *hard]:
            model = VotedKernelClassifier(
                bank, complexity_penalty=lam, sparsity_penalty=beta, n_jobs=-1
            )
            start, cpu = perf_counter(), process_time()
            model.fit(Z, y)
            rows.append(
                {
                    "problem": f"m = {m}, {p} {name}, lambda {lam:g}, beta {beta:g}",
                    "terms": str(model.n_terms_),
                    "gap": f"{model.duality_gap_:.0e}",
                    "rounds": str(model.n_iter_),
                    "wall [s]": f"{perf_counter() - start:.1f}",
                    "CPU [s]": f"{process_time() - cpu:.1f}",
                }
            )
            print(rows[-1], flush=True)
    return rows


def memory(m: int, p: int) -> dict[str, str]:
    """In a process of its own: peak resident memory before the fit and after it."""
    code = f"from benchmarks.bench_voted import measure_memory; measure_memory({m}, {p})"
    root = Path(__file__).parent.parent
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    seconds, before, after, terms, gap = out.stdout.split()
    row = {
        "problem": f"m = {m}, p = {p}, memory_budget 1 GB",
        "terms": terms,
        "gap": gap,
        "wall [s]": seconds,
        "peak before [MB]": before,
        "peak after [MB]": after,
        "all columns [GB]": f"{8e-9 * p * m * m:.0f}",
    }
    print(row, flush=True)
    return row


def measure_memory(m: int, p: int) -> None:
    X, y = sample(m)
    bank = mk.gaussians(np.geomspace(0.001, 10.0, p))
    model = VotedKernelClassifier(bank, memory_budget="1GB", n_jobs=-1, n_draws=20)
    VotedKernelClassifier(bank).fit(X[:100], y[:100])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    gap = f"{model.duality_gap_:.0e}"
    print(f"{seconds:.1f} {before:.0f} {after:.0f} {model.n_terms_} {gap}")


def masters(m: int, p: int) -> None:
    """CPU seconds of column generation with either master, the best of three runs."""
    from multikernel.grams.memory import MemoryBudget
    from multikernel.solvers.voted.columns import KernelColumns, planned_kernels
    from multikernel.solvers.voted.complexity import trace
    from multikernel.solvers.voted.generation import ColumnPool
    from multikernel.solvers.voted.master import DenseMaster, HighsMaster
    from multikernel.solvers.voted.problem import VotedProblem

    X, y = sample(m)
    budget = MemoryBudget.of(None)
    families = {
        "Gaussians": (mk.gaussians(np.geomspace(0.01, 3.0, p)), X),
        "polynomials": (mk.polynomials(range(1, p + 1)), X / 5**0.5),
    }
    for name, (bank, Z) in families.items():
        plan = bank.plan(Z)
        columns = KernelColumns(plan.grams(Z, budget=budget), planned_kernels(plan), budget)
        problem = VotedProblem(columns, y, np.full(m, 1.0 / m))
        sizes = np.ones(p) if name == "Gaussians" else m**0.5 * trace(columns)
        for penalty in (1e-2, 3e-3, 1e-3, 3e-4):
            times = []
            for kind in (DenseMaster, HighsMaster):
                each = []
                for _ in range(3):
                    pool = ColumnPool(problem, whole=False)
                    pool.master = kind(problem)
                    start = process_time()
                    found = pool.solve(penalty * sizes, tol=1e-6)
                    each.append(process_time() - start)
                times.append(min(each))
            print(
                f"m = {m}, {p} {name}, penalty {penalty:g}, {len(found.terms)} terms: dense "
                f"{times[0]:.3f} s, HiGHS {times[1]:.3f} s, ratio {times[1] / times[0]:.1f}",
                flush=True,
            )


def write(name: str, rows: list[dict[str, str]]) -> str:
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    lines += ["| " + " | ".join(row.values()) + " |" for row in rows]
    return f"## {name}\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, nothing is written")
    parser.add_argument("--masters", action="store_true", help="compare the two masters only")
    options = parser.parse_args()
    if options.masters:
        with threadpool_limits(limits=1):
            vote(mk.gaussians([0.1, 1.0]), 0.1).fit(*sample(100))  # compiles
            for m, p in ((500, 5), (500, 10), (1000, 10)):
                masters(m, p)
        return
    small, big, wide = (200, 1000, (1000, 50)) if options.quick else (500, 4000, (5000, 200))
    parts = [
        write("Against linprog, one thread", against_linprog(small, 5, 1 if options.quick else 3)),
        write("Size", large(big, 10)),
        write("Memory", [memory(*wide)]),
    ]
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        write_atomically(RESULTS / "voted.md", "\n".join(parts))


if __name__ == "__main__":
    main()
