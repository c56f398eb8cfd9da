"""Kernels on sequences against their slow twins, on random and on awkward strings."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multikernel as mk
from multikernel.kernels.sequences import (
    LocalityImproved,
    Mismatch,
    Oligo,
    ShortSequenceWarning,
    Spectrum,
    Subsequence,
    WeightedDegree,
)
from tests.kernels import naive_sequences as naive
from tests.kernels.naive_sequences import assert_equal, quiet, random_strings

#: a kernel and the slow function that it must equal
CASES = {
    "spectrum-1": (Spectrum(1), lambda x, z: naive.spectrum(x, z, 1)),
    "spectrum-3": (Spectrum(3), lambda x, z: naive.spectrum(x, z, 3)),
    "spectrum-presence": (
        Spectrum(2, presence=True),
        lambda x, z: naive.spectrum(x, z, 2, presence=True),
    ),
    "blended": (
        Spectrum(3, blended=True),
        lambda x, z: sum(naive.spectrum(x, z, k) for k in (1, 2, 3)),
    ),
    "mismatch-0": (Mismatch(3, 0), lambda x, z: naive.spectrum(x, z, 3)),
    "mismatch-1": (Mismatch(3, 1), lambda x, z: naive.mismatch(x, z, 3, 1, "ACGT")),
    "mismatch-2": (Mismatch(3, 2), lambda x, z: naive.mismatch(x, z, 3, 2, "ACGT")),
    "mismatch-4": (Mismatch(4, 1), lambda x, z: naive.mismatch(x, z, 4, 1, "ACGT")),
    "subsequence": (Subsequence(3, 0.6), lambda x, z: naive.subsequence(x, z, 3, 0.6)),
    "subsequence-1": (Subsequence(1, 0.5), lambda x, z: naive.subsequence(x, z, 1, 0.5)),
    "subsequence-span": (
        Subsequence(3, 0.6, span=5),
        lambda x, z: naive.subsequence(x, z, 3, 0.6, span=5),
    ),
    "degree": (WeightedDegree(4), lambda x, z: naive.weighted_degree(x, z, 4)),
    "degree-1": (WeightedDegree(1), lambda x, z: naive.weighted_degree(x, z, 1)),
    "degree-shift": (
        WeightedDegree(3, shift=2),
        lambda x, z: naive.weighted_degree(x, z, 3, 2),
    ),
    "degree-far": (
        WeightedDegree(20, shift=30),
        lambda x, z: naive.weighted_degree(x, z, 20, 30),
    ),
    "locality": (LocalityImproved(2, 3, 2), lambda x, z: naive.locality_improved(x, z, 2, 3, 2)),
    "locality-0": (LocalityImproved(0, 2, 1), lambda x, z: naive.locality_improved(x, z, 0, 2, 1)),
    "locality-wide": (
        LocalityImproved(7, 1, 1),
        lambda x, z: naive.locality_improved(x, z, 7, 1, 1),
    ),
    "oligo": (Oligo(2, 1.5), lambda x, z: naive.oligo(x, z, 2, 1.5)),
}
cases = pytest.mark.parametrize("kernel, slow", CASES.values(), ids=CASES)

strings = st.lists(st.text("ACGT", max_size=12), min_size=1, max_size=6)


# -- twins ----------------------------------------------------------------------------------------


@cases
def test_equals_its_slow_twin(kernel, slow):
    X, Z = random_strings(9, 0, 14), random_strings(5, 0, 14, seed=1)
    assert_equal(quiet(kernel, X), naive.gram(slow, X))
    assert_equal(quiet(kernel, X, Z), naive.gram(slow, X, Z))
    assert_equal(kernel.diag(X), [slow(x, x) for x in X])


@cases
@given(X=strings)
def test_positive_semidefinite_and_symmetric(kernel, slow, X):
    K = quiet(kernel, X)
    assert np.array_equal(K, K.T)
    assert kernel.is_psd
    assert np.linalg.eigvalsh(K)[0] >= -1e-10 * max(np.trace(K), 1.0)
    assert_equal(np.diag(K), kernel.diag(X))
    assert_equal(K, naive.gram(slow, X))


@pytest.mark.parametrize("length", [1, 63, 64, 65, 130, 200, 256])
def test_weighted_degree_across_words(length):
    """Runs of matches do not stop where a word of 64 positions ends."""
    rng = np.random.default_rng(length)
    x = rng.choice(list("ACGT"), size=length)
    other = np.where(rng.random(length) < 0.03, "A", x)
    X = ["".join(x), "".join(other), "A" * length]
    for degree, shift in ((1, 0), (7, 0), (length + 3, 0), (5, 3), (2, length)):
        K = WeightedDegree(degree, shift)(X)
        slow = partial(naive.weighted_degree, degree=degree, shift=shift)
        assert_equal(K, naive.gram(slow, X))


@pytest.mark.parametrize("n", [1, 127, 128, 129, 300])
def test_weighted_degree_across_lanes(n):
    """Every pair gets its own value, wherever it stands among those treated together."""
    X = random_strings(n, 10, 11)
    codes = np.array([list(x) for x in X])
    hits = (codes[:, None, :] == codes[None, :, :]).astype(float)
    pairs = hits[:, :, 1:] * hits[:, :, :-1]
    expected = 2 / 3 * hits.sum(axis=2) + 1 / 3 * pairs.sum(axis=2)
    assert_equal(WeightedDegree(2)(X), expected)
    assert_equal(WeightedDegree(2)(X[:3], X), expected[:3])


def test_weighted_degree_closed_form_by_runs():
    """With shift 0 a run of l matches adds sum_{d <= min(l, D)} beta_d (l - d + 1)."""
    degree = 6
    beta = [2 * (degree - d + 1) / (degree * (degree + 1)) for d in range(1, degree + 1)]
    X = random_strings(40, 90, 91, letters="AC")
    K = WeightedDegree(degree)(X)
    for i in range(0, 40, 7):
        for j in range(0, 40, 5):
            runs = "".join("1" if a == b else " " for a, b in zip(X[i], X[j], strict=True)).split()
            total = sum(
                beta[d - 1] * (len(run) - d + 1)
                for run in runs
                for d in range(1, min(len(run), degree) + 1)
            )
            assert K[i, j] == pytest.approx(total, rel=1e-12)


def test_collapses():
    X = random_strings(12, 8, 30, seed=4)
    assert_equal(Spectrum(2, blended=True)(X), (Spectrum(1) + Spectrum(2))(X))
    assert_equal(Subsequence(3, 0.7, span=30)(X), Subsequence(3, 0.7)(X))
    assert_equal(Subsequence(3, 0.5, span=3)(X), 0.5**6 * Spectrum(3)(X))
    # far enough apart, positions do not matter; close enough, they must be equal
    assert_equal(Oligo(2, 1e7)(X) / (np.sqrt(np.pi) * 1e7), Spectrum(2)(X))
    assert_equal(Oligo(1, 1e-3)(X) / (np.sqrt(np.pi) * 1e-3), WeightedDegree(1)(X))
    assert_equal(LocalityImproved(0, 1, 1)(X), WeightedDegree(1)(X))


# -- many features, long patterns, large alphabets ------------------------------------------------


def test_common_and_rare_features_add_up():
    """Dense products and lists of holders serve the same kernel: force each, and the mixture."""
    from multikernel.kernels.sequences import features

    X, Z = random_strings(80, 30, 60), random_strings(50, 30, 60, seed=3)
    K, C = Spectrum(3)(X), Spectrum(3)(X, Z)
    for share in (0.0, 0.2, 2.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(features, "DENSE_SHARE", share)
            patch.setattr(features, "DENSE_ROWS", 7)
            patch.setattr(features, "MANY_NUMBERS", 5)
            assert np.array_equal(Spectrum(3)(X), K)
            assert np.array_equal(Spectrum(3)(X, Z), C)


@pytest.mark.parametrize("k", [13, 31, 40])
def test_long_patterns_over_large_alphabets(k):
    """More k-mers than a machine word can number."""
    letters = [chr(0x4E00 + i) for i in range(200)]
    base = random_strings(1, 90, 91, letters=letters)[0]
    X = [base, base[20:] + base[:20], base[::-1], base[:50]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        K = Spectrum(k)(X)
    assert_equal(K, naive.gram(lambda x, z: naive.spectrum(x, z, k), X))
    long = Subsequence(9, 0.9, span=11)(X)
    assert_equal(long[:, :1], Subsequence(9, 0.9, span=11)(X, [base]))
    assert_equal(long[0, 1], naive.subsequence_windows(X[0], X[1], 9, 0.9, 11))


# -- empty, short, unknown, upper and lower case, unicode ------------------------------------------


@cases
def test_empty_and_one_letter(kernel, slow):
    X = ["", "A", "C", "ACGTACGT"]
    assert_equal(quiet(kernel, X), naive.gram(slow, X))
    assert quiet(kernel, [""]) == pytest.approx(0.0)
    assert quiet(kernel, [], X).shape == (0, 4)
    assert quiet(kernel, X, []).shape == (4, 0)


def test_short_sequences_are_zero_with_a_warning():
    with pytest.warns(ShortSequenceWarning, match=r"Spectrum\(k=3\): 2 of 3 sequences are shorter"):
        K = Spectrum(3)(["AC", "ACGT", ""])
    assert np.array_equal(K, np.diag([0.0, 2.0, 0.0]))
    with pytest.warns(ShortSequenceWarning, match="1 of 1 sequences is shorter than 5 letters"):
        Mismatch(5, 1)(["ACGTACGT"], ["ACGT"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Spectrum(3, blended=True)(["A", "ACGT"])


def test_unknown_letters_match_nothing():
    X = ["ACNT", "ACNTN", "NNNN", "ACGT"]
    known = set("ACGT")
    assert_equal(
        Spectrum(2, alphabet="dna")(X),
        naive.gram(lambda x, z: naive.spectrum(x, z, 2, known=known), X),
    )
    assert_equal(
        WeightedDegree(3, 1, alphabet="dna")(X),
        naive.gram(lambda x, z: naive.weighted_degree(x, z, 3, 1, known), X),
    )
    assert_equal(Mismatch(2, 1)(X), naive.gram(lambda x, z: naive.mismatch(x, z, 2, 1, "ACGT"), X))
    for kernel in (Oligo(1, 1.0, alphabet="dna"), LocalityImproved(1, 1, alphabet="dna")):
        assert kernel(["NN"], ["NN"]) == 0.0
        assert kernel.diag(["NN"]) == 0.0
    # gaps may run over unknown letters, subsequences may not hold any
    assert Subsequence(2, 0.5, alphabet="dna")(["ANC"])[0, 0] == 0.5**6
    # without an alphabet every letter is known
    assert Spectrum(2)(["ACNT"], ["ACNT"]) == 3.0


def test_case():
    assert Spectrum(2)(["acgt"], ["ACGT"]) == 0.0
    assert Spectrum(2, ignore_case=True)(["acgt"], ["ACGT"]) == 3.0
    assert Spectrum(2, ignore_case=True, alphabet="dna")(["acNt"], ["ACGT"]) == 1.0
    assert WeightedDegree(1, ignore_case=True)(["aCgT"], ["AcGt"]) == 4.0


def test_unicode_is_read_by_code_points():
    X = ["naïve café", "naïve cafe\u0301", "日本語", "🧬🧬", "\ud800"]
    assert_equal(quiet(Spectrum(2), X), naive.gram(lambda x, z: naive.spectrum(x, z, 2), X))
    # composed and decomposed accents are different letters: normalise first if that is not meant
    assert Spectrum(1)(["é"], ["e\u0301"]) == 0.0
    assert Spectrum(1)(["🧬"], ["🧬"]) == 1.0


def test_words_and_tokens():
    texts = ["The cat sat.", "the CAT ran", "A dog"]
    K = Spectrum(1, unit="word")(texts)
    assert np.array_equal(K, [[3, 2, 0], [2, 3, 0], [0, 0, 2]])
    tokens = [["the", "cat", "sat"], ["the", "cat", "ran"], ["a", "dog"]]
    assert np.array_equal(Spectrum(1)(tokens), K)
    assert np.array_equal(
        WeightedDegree(2)(tokens), naive.gram(lambda x, z: naive.weighted_degree(x, z, 2), tokens)
    )
    # one symbol is one word, however long
    assert Spectrum(2, unit="word", alphabet=["the", "cat"])(texts)[0, 0] == 1.0


# -- values ----------------------------------------------------------------------------------------


def test_kernels_are_values():
    assert Spectrum(3) == Spectrum(k=3) and hash(Spectrum(3)) == hash(Spectrum(3))
    assert Spectrum(3) != Spectrum(3, presence=True) != WeightedDegree(3)
    assert repr(Spectrum(3)) == "Spectrum(k=3)"
    shown = "Spectrum(k=3, alphabet='dna', columns='dna', presence=True)"
    assert repr(Spectrum(3, presence=True, alphabet="ACGT", columns="dna")) == shown
    assert repr(WeightedDegree(5, 2)) == "WeightedDegree(degree=5, shift=2)"
    X = random_strings(5, 5, 9)
    both = 2.0 * Spectrum(1) + WeightedDegree(2) ** 2
    assert_equal(both(X), 2 * Spectrum(1)(X) + WeightedDegree(2)(X) ** 2)
    assert both.is_psd


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Spectrum(0), "Spectrum: k must be a positive whole number; got 0"),
        (lambda: Spectrum(2.5), "Spectrum: k must be a positive whole number; got 2.5"),
        (lambda: Spectrum(3, unit="byte"), "unit must be 'letter' or 'word'; got 'byte'"),
        (lambda: Spectrum(3, alphabet=""), "alphabet must be one of 'dna'"),
        (lambda: Spectrum(3, alphabet="AA"), "names a symbol twice"),
        (lambda: Spectrum(3, columns=[0, 1]), "columns must name one column"),
        (lambda: Mismatch(3, 3), "m must be less than k = 3; got 3"),
        (lambda: Mismatch(3, 1, alphabet=None), "depends on the size of the alphabet"),
        (lambda: Subsequence(3, 1.5), "decay must be at most 1; got 1.5"),
        (lambda: Subsequence(3, 0.5, span=2), "span must be at least length = 3; got 2"),
        (lambda: WeightedDegree(3, -1), "shift must be a whole number, zero or larger; got -1"),
        (lambda: LocalityImproved(8), "half must be at most 7"),
        (
            lambda: Spectrum(1e300),
            "k must be a positive whole number of at most 2147483647; got 1e",
        ),
        (lambda: Spectrum(10**400), "k must be a positive whole number; got 1000"),
        (lambda: LocalityImproved(outer=1e100), "outer must be a positive whole number of at most"),
        (lambda: Oligo(3, np.float16(0)), "sigma must be a positive finite number"),
        (lambda: Oligo(3, 0.0), "sigma must be a positive finite number; got 0.0"),
    ],
)
def test_wrong_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "kernel",
    [
        Spectrum(10**9),
        Mismatch(10**9),
        Subsequence(10**9),
        Oligo(10**9),
        Spectrum(10**9, blended=True),
    ],
    ids=repr,
)
def test_lengths_beyond_all_sequences(kernel):
    X = random_strings(4, 5, 9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortSequenceWarning)
        K = kernel(X)
        assert_equal(np.diag(K), kernel.diag(X))
    if isinstance(kernel, Spectrum) and kernel.blended:
        assert_equal(K, Spectrum(9, blended=True)(X))
    else:
        assert_equal(K, np.zeros((4, 4)))


def test_shifts_and_spans_beyond_all_sequences():
    X = random_strings(4, 5, 9)
    assert_equal(WeightedDegree(3, 10**9)(X), WeightedDegree(3, 9)(X))
    assert_equal(WeightedDegree(3, 10**9).diag(X), WeightedDegree(3, 9).diag(X))
    assert_equal(Subsequence(3, span=10**9)(X), Subsequence(3, span=9)(X))
    with pytest.raises(ValueError, match=r"ways to place 9 symbols.*smaller span, or span=None"):
        Subsequence(9, span=50)(["A" * 60])


@pytest.mark.parametrize("kernel", [LocalityImproved(outer=10**6), Oligo(2, 1e308)], ids=repr)
def test_values_that_overflow_are_refused(kernel):
    with pytest.raises(ValueError, match=r"overflows.*Use smaller parameters"):
        kernel(["ACGTACGT", "ACGTACGA"])
    with pytest.raises(ValueError, match=r"overflows.*Use smaller parameters"):
        kernel.diag(["ACGTACGT"])


def test_a_tiny_sigma_compares_equal_positions_alone():
    K = Oligo(1, 1e-200)(["AC", "CA", "AA"])
    np.testing.assert_allclose(K / K[0, 0], [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.5, 0.5, 1.0]])


def test_the_bank_keeps_its_order():
    bank = mk.KernelBank([Spectrum(2), WeightedDegree(3)]) + mk.KernelBank(Oligo(2))
    assert bank.names == [
        "Spectrum(k=2)",
        "WeightedDegree(degree=3, shift=0)",
        "Oligo(k=2, sigma=1)",
    ]


def test_a_shift_reads_the_longer_sequence_beyond_the_end_of_the_shorter_one():
    """``[x[i+s] = z[i]]`` asks that both letters exist, not that both positions do."""
    kernel = mk.WeightedDegree(1, shift=2)
    factors = {0: 1.0, 1: 1 / 4, 2: 1 / 6}
    for at, factor in factors.items():
        np.testing.assert_allclose(kernel(["A"], ["C" * at + "A"]), [[factor]])
        np.testing.assert_allclose(kernel(["C" * at + "A"], ["A"]), [[factor]])
    assert kernel(["A"], ["CCCA"])[0, 0] == 0.0
    # Two letters at position 1 reach as far as the shorter sequence: its second letter is missing.
    assert mk.WeightedDegree(2, shift=0)(["A"], ["AC"])[0, 0] == pytest.approx(2 / 3)
    words = ["A", "CA", "CCA", "ACCA", "CACAC", "AAAAA"]
    K = mk.WeightedDegree(3, shift=3)(words)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
