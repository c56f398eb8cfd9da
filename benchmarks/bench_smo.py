"""Training one support vector machine on a matrix: our SMO against libsvm.

    python benchmarks/bench_smo.py [--quick]

libsvm runs through scikit-learn's ``SVC(kernel="precomputed")`` with a cache larger than the
matrix, at the same tolerance on the same optimality conditions (1e-3), both on one thread. Both
get the same float64 matrix of a Gaussian kernel. scikit-learn's checks of its input are part of
its ``fit``; a fit that stops after one iteration shows what they cost. A further column gives
ours on the same matrix in float32. Repetitions are interleaved and medians reported.

``iterations`` are pair steps of either; ``objective`` is the dual objective of ours minus that of
libsvm, relative to its size, both computed anew in float64: negative is better.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import euclidean_distances
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import multikernel as mk
from multikernel._places import write_atomically, write_csv
from multikernel.learners.smo import svc

RESULTS = Path(__file__).parent / "results"
TOL = 1e-3


def digits(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Odd against even digits: nearly separable."""
    bunch = mk.datasets.load("mnist14")
    if len(bunch.target) < n:
        raise ValueError(f"mnist14 has {len(bunch.target)} points, fewer than {n}.")
    chosen = np.random.default_rng(0).permutation(len(bunch.target))[:n]
    X = np.asarray(bunch.data, dtype=np.float64)[chosen]
    return X, np.where(bunch.target[chosen].astype(int) % 2 == 1, 1.0, -1.0)


def noisy(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of two classes, a twentieth of the labels wrong: many steps at a large C."""
    X, classes = make_classification(
        n, 20, n_informative=10, n_clusters_per_class=4, flip_y=0.1, random_state=0
    )
    return X, np.where(classes == 1, 1.0, -1.0)


def gaussian(X: np.ndarray) -> np.ndarray:
    """A Gaussian kernel of the width that scikit-learn calls "scale"."""
    D = euclidean_distances(X, squared=True)
    return np.asarray(np.exp(D * (-2.0 / D.mean())))


def libsvm(K: np.ndarray, y: np.ndarray, C: float, max_iter: int = -1) -> tuple[np.ndarray, int]:
    machine = SVC(
        C=C, kernel="precomputed", tol=TOL, cache_size=8 * K.nbytes / 2**20, max_iter=max_iter
    )
    machine.fit(K, y)
    coef = np.zeros(len(y))
    coef[machine.support_] = machine.dual_coef_[0]
    return coef, int(machine.n_iter_[0])


def ours(K: np.ndarray, y: np.ndarray, C: float) -> tuple[np.ndarray, int]:
    result = svc(K, y, C, tol=TOL)
    return result.coef, result.n_iter


def objective(K: np.ndarray, coef: np.ndarray) -> float:
    return float(0.5 * coef @ (K @ coef) - np.abs(coef).sum())


def measure(
    name: str, X: np.ndarray, y: np.ndarray, costs: list[float], repeats: int
) -> list[dict[str, Any]]:
    n = len(y)
    K = gaussian(X)
    single = K.astype(np.float32)
    table = []
    for C in costs:
        runs = {
            "libsvm": lambda C=C: libsvm(K, y, C),
            "ours": lambda C=C: ours(K, y, C),
            "float32": lambda C=C: ours(single, y, C),
            "checks": lambda C=C: libsvm(K, y, C, max_iter=1),
        }
        times: dict[str, list[float]] = {key: [] for key in runs}
        found: dict[str, tuple[np.ndarray, int]] = {}
        for _ in range(repeats):
            for key, run in runs.items():
                start = perf_counter()
                found[key] = run()
                times[key].append(perf_counter() - start)
        seconds = {key: float(np.median(t)) for key, t in times.items()}
        theirs = objective(K, found["libsvm"][0])
        mine = objective(K, found["ours"][0])
        table.append(
            {
                "data": name,
                "n": n,
                "C": f"{C:g}",
                "libsvm ms": round(1e3 * seconds["libsvm"], 2),
                "of which checks": round(1e3 * seconds["checks"], 2),
                "ours ms": round(1e3 * seconds["ours"], 2),
                "libsvm / ours": round(seconds["libsvm"] / seconds["ours"], 1),
                "ours float32 ms": round(1e3 * seconds["float32"], 2),
                "libsvm iterations": found["libsvm"][1],
                "our iterations": found["ours"][1],
                "support": int(np.count_nonzero(found["ours"][0])),
                "objective": f"{(mine - theirs) / abs(theirs):+.1e}",
            }
        )
        print("  ".join(f"{key}: {value}" for key, value in table[-1].items()), flush=True)
    return table


def write(table: list[dict[str, Any]], repeats: int) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    columns = list(table[0])
    write_csv(RESULTS / "smo.csv", table)
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(str(row[c]) for c in columns)} |" for row in table]
    notes = [
        "Gaussian kernel; digits: odd against even (mnist14); noisy: make_classification with a "
        f"twentieth of the labels wrong. Tolerance {TOL:g}, one thread, "
        f'medians of {repeats} interleaved repetitions (fewer at n > 4000). "of which checks" '
        'is the time of a fit that stops after one iteration; "objective" is the relative '
        "difference of the dual objectives, negative where ours is lower."
    ]
    text = "\n".join(["# One support vector machine: SMO against libsvm", "", *lines, "", *notes])
    write_atomically(RESULTS / "smo.md", text + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[500, 1000, 2000, 4000, 8000])
    parser.add_argument("--C", type=float, nargs="+", default=[0.1, 1.0, 10.0, 100.0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="n up to 2000, three repetitions")
    options = parser.parse_args()
    sizes = [500, 1000, 2000] if options.quick else options.n
    repeats = 3 if options.quick else options.repeats
    warnings.simplefilter("ignore", ConvergenceWarning)
    table: list[dict[str, Any]] = []
    with threadpool_limits(1):
        X, y = noisy(1500)
        for K in (gaussian(X), gaussian(X).astype(np.float32)):
            svc(K, y, 100.0)  # compiles
        for name, source in (("digits", digits), ("noisy", noisy)):
            for n in sizes:
                try:
                    X, y = source(n)
                except (ValueError, FileNotFoundError) as problem:
                    print(f"{name}, n = {n} left out: {problem}")
                    continue
                table += measure(name, X, y, options.C, repeats if n <= 4000 else min(repeats, 3))
    write(table, repeats)


if __name__ == "__main__":
    main()
