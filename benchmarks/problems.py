"""The data of the benchmarks, with a held-out part each.

Digits are the 14 x 14 images of MNIST, odd against even (Kloft 2011, section 3.4); without them at
hand, clouds of points of as many features take their place, and the table says so. Documents are
made up, word frequencies following a power law, unless book reviews are at hand.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_classification

import multikernel as mk

from .peers.common import Problem

HELD_OUT = 2000


def widths(X: np.ndarray, p: int) -> np.ndarray:
    """A geometric grid around one over the mean squared distance."""
    return np.geomspace(0.1, 20.0, p) / (2.0 * float(X.var(axis=0, dtype=np.float64).sum()))


def split(X: np.ndarray, y: np.ndarray, n: int, p: int) -> Problem:
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:n], order[n : n + HELD_OUT]
    return Problem(X[train], y[train], X[test], y[test], widths(X[train], p))


def digits(n: int, p: int) -> tuple[Problem, str]:
    """n digits, p Gaussians."""
    try:
        bunch = mk.datasets.load("mnist14")
    except (FileNotFoundError, ValueError):
        X, classes = make_classification(
            n + HELD_OUT, 196, n_informative=20, n_clusters_per_class=8, flip_y=0.02, random_state=0
        )
        return split(X.astype(np.float32), np.where(classes == 1, 1, -1), n, p), "clouds"
    if len(bunch.target) < n + HELD_OUT:
        raise ValueError(f"mnist14 has {len(bunch.target)} points, fewer than {n + HELD_OUT}.")
    X = np.asarray(bunch.data, dtype=np.float32)
    return split(X, np.where(bunch.target.astype(int) % 2 == 1, 1, -1), n, p), "digits"


def documents(n: int, words: int) -> tuple[Problem, str]:
    """Counts of `words` words in n documents, one rank-one kernel per word.

    The chance of the k-th word is proportional to 1 / (k + 10), documents have 150 words on
    average, and every tenth word is up to half as frequent again in documents of one class.
    """
    rng = np.random.default_rng(0)
    total = n + HELD_OUT
    y = np.where(rng.random(total) < 0.5, -1, 1)
    frequency = 1.0 / (10.0 + np.arange(words))
    tilt = np.where(np.arange(words) % 10 == 0, rng.uniform(-0.5, 0.5, words), 0.0)
    lengths = rng.poisson(150, total)
    chance = {s: np.cumsum(frequency * (1.0 + s * tilt)) for s in (-1, 1)}
    rows = np.repeat(np.arange(total), lengths)
    draws = rng.random(len(rows))
    found = np.empty(len(rows), dtype=np.int64)
    for s, sums in chance.items():
        chosen = y[rows] == s
        found[chosen] = np.searchsorted(sums, draws[chosen] * sums[-1])
    X = sp.csr_matrix((np.ones(len(rows)), (rows, found)), shape=(total, words))
    return Problem(X[:n], y[:n], X[n:], y[n:], np.empty(0)), "made-up documents"


def reviews(n: int, words: int) -> tuple[Problem, str]:
    """The most frequent bigrams of 2,000 book reviews, or `documents` in their place."""
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        books = mk.datasets.load("sentiment_books")
    except (FileNotFoundError, ValueError, ImportError):
        return documents(n, words)
    counts = CountVectorizer(ngram_range=(2, 2), max_features=words)
    X = sp.csr_matrix(counts.fit_transform(books.data["text"]), dtype=np.float64)
    y = np.where(np.asarray(books.target) > 0, 1, -1)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: min(n, len(y) - len(y) // 5)], order[len(y) - len(y) // 5 :]
    return Problem(X[train], y[train], X[test], y[test], np.empty(0)), "book reviews"


MAKERS = {"digits": digits, "documents": documents, "reviews": reviews}
