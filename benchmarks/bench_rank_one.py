"""One kernel per bigram: 4,000 rank-one kernels on 2,000 documents, ours against dense matrices.

    python benchmarks/bench_rank_one.py [--quick]

Both routes compute the centred alignment of every kernel ``v_k v_k'`` (v_k the counts of one
bigram) with the labels, and the matrix of the combination that `align` makes of them. The dense
route forms each n x n matrix, centres it, scales it to trace one, takes the products and adds it
up, one after the other (all of them together would take 128 GB). Both run in this process, one
after the other, with the same BLAS threads. ``--quick`` runs the dense route on 100 of the kernels
and scales its time.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse as sp

import multikernel as mk
from multikernel.grams.memory import MemoryBudget

RESULTS = Path(__file__).parent / "results"


def documents(n: int, p: int) -> tuple[sp.csr_matrix, np.ndarray, str]:
    """Bigram counts of book reviews, or of made-up documents where those are not at hand."""
    try:
        from sklearn.feature_extraction.text import CountVectorizer

        books = mk.datasets.load("sentiment_books")
        counts = CountVectorizer(ngram_range=(2, 2), max_features=p)
        X = counts.fit_transform(books.data["text"])
        return sp.csr_matrix(X, dtype=np.float64), np.asarray(books.target, float), "book reviews"
    except Exception as reason:
        print(f"Using made-up documents: {reason}")
        rng = np.random.default_rng(0)
        frequency = 60.0 / (10.0 + np.arange(p))
        X = sp.csr_matrix(rng.poisson(frequency / frequency.sum() * 80, size=(n, p)).astype(float))
        return X, np.where(rng.random(n) < 0.5, -1.0, 1.0), "made-up documents"


def ours(X: sp.csr_matrix, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    plan = mk.per_feature(mk.Linear()).plan(X)
    grams = plan.grams(X, budget=MemoryBudget.of(None)).corrected(True, "trace")
    alignments = grams.summary(y, products=False).alignments
    return alignments, grams.combine(alignments / alignments.sum()).dense()


def dense(X: sp.csr_matrix, y: np.ndarray, kernels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = X.shape[0]
    yc = y - y.mean()
    V = X.tocsc()
    alignments = np.zeros(len(kernels))
    combined = np.zeros((n, n))
    for i, k in enumerate(kernels):
        v = V[:, [k]].toarray().ravel()
        K = np.outer(v, v)
        K -= K.mean(axis=0)
        K -= K.mean(axis=1)[:, None]
        trace = np.trace(K)
        if trace <= 1e-12 * (v @ v):
            continue
        K /= trace
        alignments[i] = yc @ K @ yc / (np.linalg.norm(K) * (yc @ yc))
        combined += alignments[i] * K
    return alignments, combined


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="dense route on 100 kernels, scaled")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    X, y, what = documents(2000, 4000)
    n, p = X.shape
    some = np.arange(0, p, p // 100) if options.quick else np.arange(p)

    ours(X, y)  # imports and first-touch costs are nobody's business
    times = []
    for _ in range(options.repeats):
        start = perf_counter()
        fast, K_fast = ours(X, y)
        times.append(perf_counter() - start)
    start = perf_counter()
    slow, K_slow = dense(X, y, some)
    seconds = (perf_counter() - start) * p / len(some)

    error = np.abs(fast[some] - slow).max()
    if len(some) == p:
        difference = np.abs(K_fast * fast.sum() - K_slow).max() / np.abs(K_slow).max()
        print(f"largest relative difference of the combined matrices: {difference:.1e}")
    ratio = seconds / np.median(times)
    row = {
        "data": f"{what}, {n} x {p}, {X.nnz} counts",
        "ours [s]": f"{np.median(times):.3f}",
        "dense [s]": f"{seconds:.1f}" + (" (scaled)" if options.quick else ""),
        "ratio": f"{ratio:.0f}",
        "largest error of an alignment": f"{error:.1e}",
    }
    for name, value in row.items():
        print(f"{name:>32}: {value}")
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        with (RESULTS / "rank_one.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, row)
            writer.writeheader()
            writer.writerow(row)
        lines = ["| " + " | ".join(row) + " |", "|" + "---|" * len(row)]
        lines.append("| " + " | ".join(row.values()) + " |")
        (RESULTS / "rank_one.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
