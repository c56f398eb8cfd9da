"""Rational kernels against outputs that are written down, and against direct kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikernel.kernels.sequences import (
    ANY,
    EPSILON,
    OTHER,
    SAME,
    Mismatch,
    Rational,
    Spectrum,
    Subsequence,
    Transducer,
)
from tests.kernels.naive_sequences import assert_equal, quiet, random_strings

SEMIRINGS = ["real", "log"]
both = pytest.mark.parametrize("semiring", SEMIRINGS)


def by_outputs(T, X, Z=None, alphabet=""):
    """The definition: ``sum_w T(x, w) T(z, w)`` over outputs that are written down."""
    Z = X if Z is None else Z
    left, right = ([T.outputs(x, alphabet) for x in sample] for sample in (X, Z))
    return np.array([[sum(v * b.get(w, 0.0) for w, v in a.items()) for b in right] for a in left])


# -- direct kernels -------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("n", [1, 2, 3])
def test_ngrams_are_the_spectrum_kernel(n, semiring):
    X, Z = random_strings(8, 0, 12), random_strings(4, 3, 12, seed=2)
    kernel = Rational(Transducer.ngrams(n), semiring=semiring)
    assert_equal(kernel(X), quiet(Spectrum(n), X))
    assert_equal(kernel(X, Z), quiet(Spectrum(n), X, Z))
    assert_equal(kernel.diag(X), Spectrum(n).diag(X))


@both
@pytest.mark.parametrize("n", [1, 2, 4])
def test_gappy_ngrams_are_the_subsequence_kernel(n, semiring):
    X = random_strings(8, 0, 12)
    kernel = Rational(Transducer.gappy_ngrams(n, 0.6), semiring=semiring)
    assert_equal(0.6 ** (2 * n) * kernel(X), quiet(Subsequence(n, 0.6), X))


@pytest.mark.parametrize("k, m", [(2, 0), (2, 1), (3, 1), (3, 2), (4, 1)])
def test_mismatches_are_the_mismatch_kernel(k, m):
    X = random_strings(8, 0, 12, letters="ACGTN")
    kernel = Rational(Transducer.mismatches(k, m), alphabet="dna")
    assert_equal(kernel(X), quiet(Mismatch(k, m), X))


def test_words():
    texts = ["the cat sat on the mat", "the cat ran", "on the mat"]
    kernel = Rational(Transducer.ngrams(2), unit="word")
    assert_equal(kernel(texts), Spectrum(2, unit="word")(texts))


# -- any transducer -------------------------------------------------------------------------------


@st.composite
def transducers(draw):
    """Arcs of every kind between a few states; arcs that read nothing go forward only."""
    n = draw(st.integers(1, 3))
    states = st.integers(0, n - 1)
    weight = st.sampled_from([0.25, 0.5, 1.0, 2.0])
    writes = st.sampled_from([EPSILON, SAME, OTHER, ANY, "a", "b"])
    arcs = draw(
        st.lists(
            st.tuples(states, states, st.sampled_from([ANY, "a", "b"]), writes, weight),
            min_size=1,
            max_size=6,
        )
    )
    if n > 1:
        silent = st.tuples(
            st.integers(0, n - 2),
            st.integers(1, n - 1),
            st.just(EPSILON),
            st.sampled_from([EPSILON, ANY, "a"]),
            weight,
        )
        arcs += [arc for arc in draw(st.lists(silent, max_size=2)) if arc[0] < arc[1]]
    arcs.append((n - 1, n - 1, "c", "c", 1.0))  # every state exists
    return Transducer(tuple(arcs), draw(states), draw(st.lists(states, min_size=1)))


@given(T=transducers(), X=st.lists(st.text("abc", max_size=4), min_size=1, max_size=3))
def test_any_transducer_equals_its_outputs(T, X):
    """Counting each pair of paths once is what the order of silent moves is for."""
    expected = by_outputs(T, X, alphabet="abc")
    for semiring in SEMIRINGS:
        kernel = Rational(T, alphabet="abc", semiring=semiring)
        assert_equal(kernel(X), expected)
        assert_equal(kernel.diag(X), np.diag(expected))
    assert np.linalg.eigvalsh(expected)[0] >= -1e-9 * max(np.trace(expected), 1.0)


def test_signed_weights_stay_positive_semidefinite():
    T = Transducer(
        ((0, 0, ANY, EPSILON, 1.0), (0, 1, "a", "x", -2.0), (0, 1, "b", "x", 1.0)), 0, {1: 1.0}
    )
    X = ["a", "b", "ba", "ab", "c"]
    K = Rational(T)(X)
    assert_equal(K, by_outputs(T, X))
    assert K[0, 1] == -2.0
    with pytest.raises(ValueError, match="semiring='log' needs non-negative weights"):
        Rational(T, semiring="log")


def test_cycles_that_read_nothing_are_summed():
    """A geometric series: 'x' is written any number of times, each at half the weight."""
    T = Transducer(((0, 1, "a", EPSILON, 1.0), (1, 1, EPSILON, "x", 0.5)), 0, 1)
    for semiring in SEMIRINGS:
        assert Rational(T, semiring=semiring)(["a"])[0, 0] == pytest.approx(1 / (1 - 0.25))
    with pytest.raises(ValueError, match="infinitely many"):
        T.outputs("a")
    loud = Transducer(((0, 1, "a", EPSILON, 1.0), (1, 1, EPSILON, "x", 1.0)), 0, 1)
    with pytest.raises(ValueError, match="sum over paths diverges"):
        Rational(loud)(["a"])


def test_a_machine_of_ones_own():
    """Occurrences of a motif with a free letter, counted on both sides."""
    T = Transducer(
        ((0, 0, ANY, EPSILON, 1.0), (0, 1, "T", EPSILON, 1.0), (1, 2, ANY, EPSILON, 1.0),
         (2, 3, "A", "hit", 1.0), (3, 3, ANY, EPSILON, 1.0)), 0, 3)  # fmt: skip
    X = ["TATAA", "TTTAA", "GGG"]
    count = np.array([1.0, 2.0, 0.0])
    assert T.outputs(list(X[1])) == {("hit",): 2.0}
    assert_equal(Rational(T)(X), np.outer(count, count))
    assert_equal(Rational(T, ignore_case=True)([x.lower() for x in X]), np.outer(count, count))


def test_normalised_in_logarithms():
    X = random_strings(4, 150, 151)
    T = Transducer.gappy_ngrams(3, 0.9)
    K = Rational(T)(X)
    d = np.sqrt(np.diag(K))
    for semiring in SEMIRINGS:
        kernel = Rational(T, semiring=semiring, normalized=True)
        assert_equal(kernel(X), K / np.outer(d, d))
        assert_equal(kernel(X[:2], X), (K / np.outer(d, d))[:2])
        assert_equal(kernel.diag(X), np.ones(4))
    # paths so heavy that their sum is no float64, and sequences that no path accepts
    heavy = Transducer(((0, 0, ANY, SAME, 1e30),), 0, 0)
    X = ["ACGT" * 20, "ACGT" * 20, "ACG"]
    expected = np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert_equal(Rational(heavy, semiring="log", normalized=True)(X), expected)
    with pytest.raises(ValueError, match="overflows"):
        Rational(heavy, semiring="log")(X)
    with pytest.raises(ValueError, match="overflows"):
        Rational(heavy)(X)
    only = Transducer(((0, 0, "A", SAME, 1.0),), 0, 0)
    for semiring in SEMIRINGS:
        kernel = Rational(only, semiring=semiring, normalized=True)
        assert_equal(kernel(["A", "C"]), [[1.0, 0.0], [0.0, 0.0]])
        assert_equal(kernel.diag(["A", "C"]), [1.0, 0.0])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Transducer(()), "at least one arc"),
        (lambda: Transducer(((0, 1, "a"),)), "an arc is"),
        (lambda: Transducer(((0, -1, "a", "a", 1.0),)), "states are whole numbers from 0"),
        (lambda: Transducer(((0, 0, "", "a", 1.0),)), "labels are symbols"),
        (lambda: Transducer(((0, 0, SAME, "a", 1.0),)), "is an output label"),
        (lambda: Transducer(((0, 0, EPSILON, SAME, 1.0),)), "needs a symbol that was read"),
        (lambda: Transducer(((0, 0, "a", "a", 1.0),), 0, 3), "final states must be among 0 to 0"),
        (lambda: Rational(Transducer.mismatches(2, 1)), "depends on the size of the alphabet"),
        (
            lambda: Rational(Transducer(((0, 0, "x", "x", 1.0),)), alphabet="dna"),
            "names 'x', which the alphabet does not contain",
        ),
        (lambda: Rational(Transducer.ngrams(2), semiring="max"), "semiring must be"),
    ],
)
def test_wrong_machines(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_machines_are_values():
    assert Transducer.ngrams(2) == Transducer.ngrams(2) != Transducer.ngrams(3)
    assert hash(Rational(Transducer.ngrams(2))) == hash(Rational(Transducer.ngrams(2)))
    assert repr(Rational(Transducer.ngrams(2))) == "Rational(transducer=Transducer.ngrams(2))"
    with pytest.raises(TypeError, match="must be a Transducer"):
        Rational("abc")
