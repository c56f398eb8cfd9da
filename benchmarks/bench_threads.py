"""What threads gain: the whole fit of an lp-norm SVM and of alignf + SVM on 1, 2, 4, ... threads.

    python benchmarks/bench_threads.py [--n 20000] [--threads 1 2 4 8 16] [--profile]

Both learn 50 Gaussian kernels, centred and normalised, on classes that follow a random function of
six hidden coordinates of 196 columns: about a quarter of the points are support vectors, as for the
digits of `bench_joint.py`, and no file is needed. ``LpNorm(4/3)`` is learned to a duality gap of
1e-3. A fit is the whole ``fit`` of the estimator, with the samples left out that calibrate its
probabilities. Every number of threads has a process of its own, in which BLAS has as many threads;
a fit of a small part of the sample compiles the loops first. The best of the repeats is printed.

With ``--profile`` a last fit prints where the time of the largest number of threads is spent.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
from time import perf_counter
from typing import Any

import numpy as np

RULES = ("lp-norm", "alignf")


def clouds(n: int, d: int = 196, hidden: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Points near a curved surface, and classes that change along it."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, hidden))
    X = np.tanh(Z @ rng.normal(size=(hidden, d)) / np.sqrt(hidden))
    X += 0.1 * rng.normal(size=(n, d))
    # A function with few wiggles, of which the kernels can learn most.
    W = rng.normal(size=(hidden, 8)) / np.sqrt(hidden)
    f = np.sin(Z @ W + rng.uniform(0, 6, 8)) @ rng.normal(size=8)
    return X.astype(np.float32), np.where(f > np.median(f), 1, -1)


def one(n: int, threads: int, rule: str, repeats: int, profile: bool) -> dict[str, Any]:
    """The fits of one process, see `apart`."""
    import multikernel as mk

    X, y = clouds(n)
    gammas = np.geomspace(0.1, 20.0, 50) / (2.0 * float(X.var(axis=0, dtype=np.float64).sum()))

    def model() -> Any:
        weighting = mk.LpNorm(4 / 3) if rule == "lp-norm" else mk.AlignF()
        return mk.MultiKernelClassifier(mk.gaussians(gammas), weighting, C=1.0, n_jobs=threads)

    few = np.arange(0, n, max(n // 2500, 1))
    for _ in range(2):
        model().fit(X[few], y[few])
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        fitted = model().fit(X, y)
        seconds.append(perf_counter() - start)
    if profile:
        watch = cProfile.Profile()
        watch.runcall(model().fit, X, y)
        pstats.Stats(watch, stream=sys.stderr).sort_stats("tottime").print_stats(25)
        pstats.Stats(watch, stream=sys.stderr).sort_stats("cumtime").print_stats("multikernel", 45)
    return {
        "rule": rule,
        "n": n,
        "threads": threads,
        "seconds": round(min(seconds), 2),
        "machines": int(fitted.n_iter_),
        "support": len(fitted.support_),
        "gap": f"{fitted.duality_gap_:.1e}",
    }


def apart(n: int, threads: int, rule: str, repeats: int, profile: bool) -> dict[str, Any]:
    """The same in a fresh process with this number of BLAS threads."""
    command = [sys.executable, __file__, "--one", str(n), str(threads), rule, str(repeats)]
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    limits = os.environ | dict.fromkeys(names, str(threads))
    command += ["--profile"] if profile else []
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=limits)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=RULES)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--one", nargs=4, metavar=("N", "T", "RULE", "R"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        n, threads, rule, repeats = options.one
        row = one(int(n), int(threads), rule, int(repeats), options.profile)
        print(json.dumps(row))
        return
    heads = ("rule", "n", "threads", "seconds", "gain", "machines", "support", "gap")
    print("| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), sep="\n", flush=True)
    for rule in options.rules:
        first = None
        for threads in options.threads:
            last = options.profile and threads == max(options.threads)
            row = apart(options.n, threads, rule, options.repeats, last)
            first = first or row["seconds"]
            row["gain"] = round(first / row["seconds"], 1)
            print("| " + " | ".join(str(row[head]) for head in heads) + " |", flush=True)


if __name__ == "__main__":
    main()
