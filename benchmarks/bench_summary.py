"""Alignment statistics of 50 Gaussians: ours, scikit-learn with NumPy, and the machine's limit.

The statistics are those of the alignment methods: for centred kernels ``Kc_k`` and centred
targets y, ``M_kl = <Kc_k, Kc_l>`` and ``a_k = <Kc_k, y y'>``.

Contenders, all measured in one run with interleaved repetitions; medians are reported.

ours float32, ours float64
    ``statistics`` (one pass), then the centring identity on p x n numbers.
ours float32, two passes
    Row means first, then ``centred_products``: what is used when the identity would cancel.
reference
    scikit-learn's ``rbf_kernel`` for every kernel, in float64.  Up to `HELD` points all 50
    matrices are held, centred in place by NumPy, and multiplied as one (p, n^2) matrix by its
    transpose.  Beyond, 50 float64 matrices do not fit in memory: blocks of rows are evaluated
    once, multiplied, and the sums centred by the identity.  This saves the reference a second
    evaluation of all kernels, so the ratio is a lower bound.
limit
    p n^2 / 2 exponentials at the rate of our best loop on data in the first-level cache, plus
    p (p + 1) n^2 / 2 floating-point operations at the rate of a large matrix product, both on all
    cores, both measured in the same run.

Sizes beyond `HELD` are measured at most three times, their reference once.  Memory is the growth
of the high-water mark of the resident set in a child process of its own.

    python benchmarks/bench_summary.py                  # n = 3000 and 10000
    python benchmarks/bench_summary.py --quick          # n = 1000, one repetition
    python benchmarks/bench_summary.py --grids          # only the grids of rates

Grids of rates from 1e-4 to 1 and to 10, at d = 30 and 200, are measured apart, as whole summaries
of a bank, with a second pass where the centring identity would cancel: the narrowest kernels of
such a grid do not fit the polynomials that serve the others.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import cores, exponentials_per_second, product_flops_per_second
from sklearn.metrics.pairwise import rbf_kernel

import multikernel as mk
from multikernel._places import write_atomically, write_csv
from multikernel.grams import _loops
from multikernel.grams.memory import MemoryBudget

P, D = 50, 20
HELD = 4000
THREADS = cores()
RESULTS = Path(__file__).parent / "results"

Pair = tuple[np.ndarray, np.ndarray]


def data(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (as float32 values), centred targets, and rates around 1 / D."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D)).astype(np.float32).astype(np.float64)
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(n))[:, None]
    return X, y - y.mean(), np.geomspace(2.0**-8, 2.0**4, P) / D


def passes(X: np.ndarray, gammas: np.ndarray, dtype: Any) -> _loops.PassCache:
    zeros = np.zeros(P)
    plain = _loops.KernelFamily(
        X.astype(dtype),
        np.array([0, D]),
        np.zeros(P, dtype=np.int64),
        np.full(P, _loops.EXP_SQ),
        np.column_stack([gammas, zeros, zeros]),
    )
    return _loops.PassCache(replace(plain, shifted=_loops.is_wide(plain)))


def centred(G: np.ndarray, row_sums: np.ndarray) -> np.ndarray:
    """``<Kc, Lc> = <K, L> - 2 r_K.r_L / n + s_K s_L / n^2``."""
    n = row_sums.shape[1]
    s = row_sums.sum(axis=1)
    return G - (2.0 / n) * (row_sums @ row_sums.T) + np.outer(s, s) / n**2


def one_pass(X: np.ndarray, y: np.ndarray, gammas: np.ndarray, dtype: Any) -> Pair:
    s = _loops.statistics(passes(X, gammas, dtype), y, None, True, THREADS)
    assert s.a is not None
    return centred(s.products, s.row_sums), s.a


def two_passes(X: np.ndarray, y: np.ndarray, gammas: np.ndarray, dtype: Any) -> Pair:
    kernels = passes(X, gammas, dtype)
    first = _loops.statistics(kernels, None, None, False, THREADS)
    means = first.row_sums / len(X)
    grand = means.mean(axis=1)
    second = _loops.centred_statistics(kernels, means, grand, y, None, True, THREADS)
    assert second.a is not None
    return second.products, second.a


def held_reference(X: np.ndarray, y: np.ndarray, gammas: np.ndarray) -> Pair:
    n = len(X)
    K = np.empty((P, n, n))
    for k, gamma in enumerate(gammas):
        K[k] = rbf_kernel(X, gamma=gamma)
        r = K[k].mean(axis=1)
        K[k] -= r[:, None]
        K[k] -= r[None, :]
        K[k] += r.mean()
    flat = K.reshape(P, -1)
    return flat @ flat.T, flat @ (y @ y.T).ravel()


def block_reference(
    X: np.ndarray, y: np.ndarray, gammas: np.ndarray, n_blocks: int | None = None
) -> Pair:
    n = len(X)
    rows = max(1, 2_000_000 // n)
    G, a, row_sums = np.zeros((P, P)), np.zeros(P), np.zeros((P, n))
    for start in range(0, n, rows)[:n_blocks]:
        stop = min(start + rows, n)
        K = np.empty((P, stop - start, n))
        for k, gamma in enumerate(gammas):
            K[k] = rbf_kernel(X[start:stop], X, gamma=gamma)
        row_sums[:, start:stop] = K.sum(axis=2)
        flat = K.reshape(P, -1)
        G += flat @ flat.T
        a += flat @ (y[start:stop] @ y.T).ravel()
    return centred(G, row_sums), a


def reference(X: np.ndarray, y: np.ndarray, gammas: np.ndarray) -> Pair:
    return (held_reference if len(X) <= HELD else block_reference)(X, y, gammas)


CONTENDERS: dict[str, Callable[..., Pair]] = {
    "ours float32": lambda *args: one_pass(*args, np.float32),
    "ours float64": lambda *args: one_pass(*args, np.float64),
    "ours float32, two passes": lambda *args: two_passes(*args, np.float32),
    "reference": reference,
}


def limit(n: int, exponentials: float, flops: float) -> float:
    """Seconds that the exponentials and products of half of the pairs cost at full speed."""
    pairs = n * n / 2
    return P * pairs / exponentials + P * (P + 1) * pairs / flops


def relative_error(found: Pair, expected: Pair, y: np.ndarray) -> tuple[float, float]:
    """Largest errors of M and a, as errors of cosines between kernels (and targets)."""
    norms = np.sqrt(np.diag(expected[0]))
    M_error = np.abs(found[0] - expected[0]) / np.outer(norms, norms)
    a_error = np.abs(found[1] - expected[1]) / (norms * float((y**2).sum()))
    return float(M_error.max()), float(a_error.max())


def _high_water() -> float:
    """High-water mark of this process in MiB (of this program: getrusage counts the parent's)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def child(name: str, n: int) -> None:
    """Run one contender and print the growth of the high-water mark."""
    CONTENDERS[name](*data(40))  # load compiled code before the mark is set
    X, y, gammas = data(n)
    # Where the mark cannot be reset it includes start-up, and the growth is a lower bound.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    before = _high_water()
    if name == "reference" and n > HELD:
        block_reference(X, y, gammas, n_blocks=2)  # all blocks need the same memory
    else:
        CONTENDERS[name](X, y, gammas)
    print(json.dumps({"extra_mib": _high_water() - before}))


def compile_child() -> None:
    """Print how long the first calls take."""
    seconds = {}
    args = data(40)
    for name in ("ours float32", "ours float64"):
        start = time.perf_counter()
        CONTENDERS[name](*args)
        seconds[name] = time.perf_counter() - start
    print(json.dumps(seconds))


def in_child(*arguments: str, **environment: str) -> dict[str, float]:
    answer = subprocess.run(
        [sys.executable, __file__, *arguments],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    result: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return result


def measure(n: int, repeats: int) -> list[dict[str, Any]]:
    """All contenders at one size."""
    X, y, gammas = data(n)
    for name in CONTENDERS:
        if name != "reference":
            CONTENDERS[name](X[:200], y[:200], gammas)
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    rates: dict[Any, list[tuple[float, float]]] = {np.float32: [], np.float64: []}
    results: dict[str, Pair] = {}
    for repeat in range(repeats if n <= HELD else min(repeats, 3)):
        for dtype, seen in rates.items():
            seen.append(
                (exponentials_per_second(dtype, THREADS), product_flops_per_second(dtype, THREADS))
            )
        for name, contender in CONTENDERS.items():
            if name == "reference" and repeat >= (3 if n <= HELD else 1):
                continue
            start = time.perf_counter()
            results[name] = contender(X, y, gammas)
            times[name].append(time.perf_counter() - start)
    seconds = {name: float(np.median(t)) for name, t in times.items()}
    limits = {}
    for dtype, seen in rates.items():
        exponentials, flops = np.median(seen, axis=0)
        limits[np.dtype(dtype).name] = limit(n, exponentials, flops)
        print(
            f"n = {n}, {np.dtype(dtype).name}: {exponentials:.3g} exponentials/s, "
            f"{flops:.3g} flop/s, limit {limits[np.dtype(dtype).name]:.3f} s"
        )
    table = []
    for name in CONTENDERS:
        bound = limits["float64" if "float64" in name or name == "reference" else "float32"]
        M_error, a_error = relative_error(results[name], results["reference"], y)
        memory = in_child("--child", name, "--n", str(n))["extra_mib"]
        table.append(
            {
                "n": n,
                "contender": name,
                "runs": len(times[name]),
                "seconds": round(seconds[name], 4),
                "speed-up": round(seconds["reference"] / seconds[name], 1),
                "times the limit": round(seconds[name] / bound, 2),
                "extra MiB": round(memory),
                "matrices of n x n float32": round(memory * 2**20 / (4 * n * n), 2),
                "error of M": f"{M_error:.1e}",
                "error of a": f"{a_error:.1e}",
            }
        )
        print("  ".join(f"{key}: {value}" for key, value in table[-1].items()), flush=True)
    return table


def grids(repeats: int) -> list[dict[str, Any]]:
    """Summaries of `P` Gaussians on ordinary grids of rates, at n = 3,000."""
    table = []
    for d in (30, 200):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((3000, d))
        y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(3000))[:, None]
        for highest in (1, 10):
            bank = mk.gaussians(np.geomspace(1e-4, highest, P))
            plan = bank.plan(X)
            row: dict[str, Any] = {"d": d, "rates": f"1e-4 to {highest}"}
            for dtype in (np.float32, np.float64):
                seconds = []
                for _ in range(repeats + 1):  # the first call loads compiled code
                    start = time.perf_counter()
                    grams = plan.grams(X, budget=MemoryBudget.of(None), dtype=dtype, n_jobs=THREADS)
                    grams.corrected(True, "multiplicative").summary(y)
                    seconds.append(time.perf_counter() - start)
                row[f"{np.dtype(dtype).name} seconds"] = round(float(np.median(seconds[1:])), 4)
            table.append(row)
            print("  ".join(f"{key}: {value}" for key, value in row.items()), flush=True)
    return table


def write_rows(table: list[dict[str, Any]], name: str, title: str, notes: list[str]) -> None:
    """A table as ``results/NAME.csv`` and ``.md``."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    columns = list(table[0])
    write_csv(RESULTS / f"{name}.csv", table)
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(str(row[c]) for c in columns)} |" for row in table]
    write_atomically(RESULTS / f"{name}.md", "\n".join([title, "", *lines, "", *notes]) + "\n")


def write(table: list[dict[str, Any]], notes: list[str]) -> None:
    write_rows(table, "summary", f"# Alignment statistics of {P} Gaussians, d = {D}", notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[3000, 10000])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="n = 1000, one repetition")
    parser.add_argument("--grids", action="store_true", help="only the grids of rates")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--compile-child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compile_child:
        compile_child()
        return
    if options.child:
        child(options.child, options.n[0])
        return
    title = f"# Summaries of {P} Gaussians on grids of rates, n = 3,000, {THREADS} threads"
    write_rows(grids(1 if options.quick else options.repeats), "summary_grids", title, [])
    if options.grids:
        return
    table = []
    for n in [1000] if options.quick else options.n:
        table += measure(n, 1 if options.quick else options.repeats)
    with tempfile.TemporaryDirectory() as cache:
        first = in_child("--compile-child", NUMBA_CACHE_DIR=cache)
        again = in_child("--compile-child", NUMBA_CACHE_DIR=cache)
    notes = [
        f"{THREADS} threads. Errors are the largest over kernels, relative to the norms of the "
        f"kernels, against the reference. Up to {HELD} points the reference holds its matrices; "
        "beyond, it evaluates blocks of rows once and centres the sums, which costs it digits: the "
        "errors in float64 are then its own.",
        "",
        *(
            f"First call of {name}: {first[name]:.1f} s to compile, {again[name]:.2f} s from cache."
            for name in first
        ),
    ]
    print("\n".join(notes))
    write(table, notes)


if __name__ == "__main__":
    main()
