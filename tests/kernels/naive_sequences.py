"""Slow, obvious kernels on sequences: one pair at a time, as the definitions say."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import combinations, product
from math import exp, pi, sqrt

import numpy as np

from multikernel.kernels.sequences import ShortSequenceWarning


def random_strings(n, low, high, seed=0, letters="ACGT"):
    """So many strings of a length in [low, high)."""
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), size=rng.integers(low, high))) for _ in range(n)]


def quiet(kernel, *samples):
    """Values of a kernel without its warning about short sequences."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortSequenceWarning)
        return kernel(*samples)


def assert_equal(K, expected):
    """Equal up to the rounding of sums."""
    np.testing.assert_allclose(K, expected, rtol=1e-11, atol=1e-12 * (1 + np.abs(expected).max()))


def gram(kernel, X, Z=None):
    """All pairs of a function of two sequences."""
    return np.array([[kernel(x, z) for z in (X if Z is None else Z)] for x in X], dtype=float)


def kmers(x, k, known=None):
    found = [tuple(x[i : i + k]) for i in range(len(x) - k + 1)]
    return [u for u in found if known is None or all(c in known for c in u)]


def dot(a, b):
    return sum(value * b.get(u, 0) for u, value in a.items())


def spectrum(x, z, k, *, presence=False, known=None):
    a, b = Counter(kmers(x, k, known)), Counter(kmers(z, k, known))
    if presence:
        a, b = dict.fromkeys(a, 1), dict.fromkeys(b, 1)
    return dot(a, b)


def mismatch(x, z, k, m, alphabet):
    """Features written out: one count per k-mer over the alphabet."""

    def features(x):
        near = Counter()
        for u in kmers(x, k, set(alphabet)):
            for v in product(alphabet, repeat=k):
                if sum(a != b for a, b in zip(u, v, strict=True)) <= m:
                    near[v] += 1
        return near

    return dot(features(x), features(z))


def subsequence(x, z, length, decay, span=None):
    def features(x):
        found = Counter()
        for at in combinations(range(len(x)), length):
            reach = at[-1] - at[0] + 1
            if span is None or reach <= span:
                found[tuple(x[i] for i in at)] += decay**reach
        return found

    return dot(features(x), features(z))


def weighted_degree(x, z, degree, shift=0, known=None):
    def matches(a, b, d):
        n = min(len(a), len(b)) - d + 1
        return sum(
            a[i : i + d] == b[i : i + d] and all(known is None or c in known for c in a[i : i + d])
            for i in range(max(n, 0))
        )

    total = 0.0
    for d in range(1, degree + 1):
        beta = 2 * (degree - d + 1) / (degree * (degree + 1))
        total += beta * matches(x, z, d)
        for s in range(1, shift + 1):
            total += beta * (matches(x[s:], z, d) + matches(x, z[s:], d)) / (2 * (s + 1))
    return total


def locality_improved(x, z, half, inner, outer):
    w = [half + 1 - abs(j) for j in range(-half, half + 1)]
    n = min(len(x), len(z))
    total = 0.0
    for p in range(n):
        window = sum(
            weight
            for weight, j in zip(w, range(p - half, p + half + 1), strict=True)
            if 0 <= j < n and x[j] == z[j]
        )
        total += (window / sum(w)) ** inner
    return total**outer


def oligo(x, z, k, sigma):
    total = 0.0
    for p in range(len(x) - k + 1):
        for q in range(len(z) - k + 1):
            if x[p : p + k] == z[q : q + k]:
                total += exp(-((p - q) ** 2) / (4 * sigma**2))
    return sqrt(pi) * sigma * total


def edit_distance(x, z, indel=1, substitution=1, *, transpositions=False):
    """Wagner & Fischer; with transpositions the unrestricted distance of Damerau & Levenshtein."""
    if not transpositions:
        d = np.zeros((len(x) + 1, len(z) + 1))
        d[:, 0] = indel * np.arange(len(x) + 1)
        d[0, :] = indel * np.arange(len(z) + 1)
        for i in range(1, len(x) + 1):
            for j in range(1, len(z) + 1):
                swap = 0 if x[i - 1] == z[j - 1] else substitution
                d[i, j] = min(d[i - 1, j] + indel, d[i, j - 1] + indel, d[i - 1, j - 1] + swap)
        return d[-1, -1]
    top = len(x) + len(z)
    d = np.full((len(x) + 2, len(z) + 2), float(top))
    d[1:, 1] = np.arange(len(x) + 1)
    d[1, 1:] = np.arange(len(z) + 1)
    last: dict[str, int] = {}
    for i in range(1, len(x) + 1):
        here = 0
        for j in range(1, len(z) + 1):
            k, l = last.get(z[j - 1], 0), here
            cost = 1
            if x[i - 1] == z[j - 1]:
                cost, here = 0, j
            d[i + 1, j + 1] = min(
                d[i, j] + cost,
                d[i + 1, j] + 1,
                d[i, j + 1] + 1,
                d[k, l] + (i - k - 1) + 1 + (j - l - 1),
            )
        last[x[i - 1]] = i
    return d[-1, -1]


def subsequence_windows(x, z, length, decay, span):
    """:func:`subsequence` with a limit on the span, window by window: fewer combinations."""

    def features(x):
        found = Counter()
        for start in range(len(x) - length + 1):
            window = range(start + 1, min(start + span, len(x)))
            for rest in combinations(window, length - 1):
                at = (start, *rest)
                found[tuple(x[i] for i in at)] += decay ** (at[-1] - at[0] + 1)
        return found

    return dot(features(x), features(z))
