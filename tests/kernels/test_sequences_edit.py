"""Edit similarities: distances against a table, spectra repaired, learners that refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multikernel as mk
from multikernel.kernels.sequences import EditSimilarity, Spectrum
from tests.kernels import naive_sequences as naive
from tests.kernels.naive_sequences import assert_equal, random_strings

pytest.importorskip("rapidfuzz")


@pytest.mark.parametrize("costs", [(1, 1), (1, 2), (3, 2)])
@given(X=st.lists(st.text("abéβ", max_size=8), min_size=1, max_size=5))
def test_levenshtein(costs, X):
    def slow(x, z):
        return np.exp(-0.5 * naive.edit_distance(x, z, *costs))

    kernel = EditSimilarity(0.5, costs=costs, relative=False)
    assert_equal(kernel(X), naive.gram(slow, X))
    assert_equal(kernel(X[:1], X), naive.gram(slow, X[:1], X))
    assert_equal(kernel.diag(X), np.ones(len(X)))


@given(X=st.lists(st.text("abc", max_size=8), min_size=1, max_size=5))
def test_damerau(X):
    def slow(x, z):
        d = naive.edit_distance(x, z, transpositions=True)
        return np.exp(-2.0 * d / max(len(x), len(z), 1))

    assert_equal(EditSimilarity(2.0, distance="damerau")(X), naive.gram(slow, X))


def test_words_tokens_and_empty():
    texts = ["the cat sat", "the cat", ""]
    K = EditSimilarity(1.0, unit="word", relative=False)(texts)
    assert_equal(K, np.exp(-np.array([[0, 1, 3], [1, 0, 2], [3, 2, 0]])))
    assert_equal(EditSimilarity(1.0, relative=False)([t.split() for t in texts]), K)
    assert_equal(EditSimilarity(1.0)(["", ""]), np.ones((2, 2)))


def test_unknown_letters_differ_from_themselves():
    kernel = EditSimilarity(1.0, alphabet="dna", relative=False)
    assert_equal(kernel(["AN", "AC"]), np.exp(-np.array([[1, 1], [1, 0]])))
    assert_equal(kernel.diag(["AN", "AC"]), np.exp([-1.0, 0.0]))


def indefinite_sample(n=40):
    return random_strings(n, 1, 6, seed=8, letters="AB")


def test_it_is_indefinite():
    K = EditSimilarity(0.3, relative=False)(sorted(set(indefinite_sample())))
    assert np.linalg.eigvalsh(K)[0] < -1e-3
    assert not EditSimilarity(0.3).is_psd


def test_learners_refuse_what_is_not_positive_semidefinite():
    X = sorted(set(indefinite_sample(60)))
    y = np.arange(len(X)) % 2
    bare = mk.MultiKernelClassifier(EditSimilarity(0.3, relative=False), center=False)
    with pytest.raises(ValueError, match=r"not positive semidefinite.*EditSimilarity"):
        bare.fit(X, y)
    for psd in ("clip", "shift"):
        kernel = EditSimilarity(0.3, relative=False, psd=psd)
        model = mk.MultiKernelClassifier(kernel, "uniform", center=False, C=100.0).fit(X, y)
        assert model.score(X, y) > 0.9
        assert model.kernel_names_ == [repr(kernel)]
        assert f"psd={psd!r}" in repr(kernel)


def test_clip_drops_the_negative_part():
    X = sorted(set(indefinite_sample()))
    plain = EditSimilarity(0.3, relative=False)
    values, V = np.linalg.eigh(plain(X))
    K = EditSimilarity(0.3, relative=False, psd="clip").adapt(X)
    expected = (V * np.maximum(values, 0)) @ V.T
    np.testing.assert_allclose(K(X), expected, atol=1e-9)
    np.testing.assert_allclose(K.diag(X), np.diag(expected), atol=1e-9)
    # new points are projected onto what is left
    new = ["ABAB", "BBBBBBB"]
    P = V[:, values > 0] @ V[:, values > 0].T
    np.testing.assert_allclose(K(new, X), plain(new, X) @ P, atol=1e-9)
    # the function is positive semidefinite on any sample
    assert np.linalg.eigvalsh(K(new + X))[0] > -1e-9


def test_shift_lifts_the_spectrum():
    X = indefinite_sample()  # with repetitions: copies of a point are the same point
    assert len(set(X)) < len(X)
    plain = EditSimilarity(0.3, relative=False)
    K = EditSimilarity(0.3, relative=False, psd="shift").adapt(X)
    lowest = np.linalg.eigvalsh(plain(sorted(set(X))))[0]
    equal = np.array([[x == z for z in X] for x in X])
    np.testing.assert_allclose(K(X), plain(X) - lowest * equal, atol=1e-12)
    np.testing.assert_allclose(K.diag(X), np.diag(K(X)), atol=1e-12)
    assert np.linalg.eigvalsh(K(X))[0] > -1e-10
    new = ["ABABABAB", X[0]]
    np.testing.assert_allclose(
        K(new, X), plain(new, X) - lowest * np.array([[a == b for b in X] for a in new])
    )


@pytest.mark.parametrize("psd", ["clip", "shift"])
def test_repair_leaves_a_definite_kernel_alone(psd):
    X = ["A", "CCC", "GGGGG"]
    plain, repaired = EditSimilarity(2.0), EditSimilarity(2.0, psd=psd)
    np.testing.assert_allclose(repaired(X), plain(X), atol=1e-12)


def test_shift_does_not_take_unknown_letters_at_the_end_for_nothing():
    X = indefinite_sample()
    kernel = EditSimilarity(0.3, relative=False, psd="shift", alphabet="AB").adapt(X)
    assert kernel.factor[0] > 0
    new = [X[0] + "N", "N", X[0] + "NN"]
    np.testing.assert_array_equal(kernel(X, new), kernel.plain(X, new))
    np.testing.assert_array_equal(kernel(new, X), kernel.plain(new, X))


def test_repair_inside_a_composite_and_across_folds():
    from sklearn.model_selection import cross_val_score

    X = indefinite_sample(60)
    y = np.array([len(x) > 3 for x in X])
    kernel = 0.5 * EditSimilarity(0.3, relative=False, psd="clip") + Spectrum(1)
    scores = cross_val_score(mk.MultiKernelClassifier(kernel, C=10.0), X, y, error_score="raise")
    assert scores.mean() > 0.9


def test_a_repair_needs_a_sample():
    kernel = EditSimilarity(1.0, psd="clip")
    with pytest.raises(ValueError, match=r"repaired on a training sample.*adapt\(X_train\)"):
        kernel(["A"], ["C"])
    one = kernel.adapt(["A", "C"])
    assert one == one and hash(one) == hash(one) and one != kernel.adapt(["A", "C"])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"gamma": 0.0}, "gamma must be a positive"),
        ({"distance": "hamming"}, "distance must be 'levenshtein' or 'damerau'"),
        ({"psd": "flip"}, "psd must be 'clip', 'shift' or None; got 'flip'"),
        ({"costs": (1, 2, 3)}, "costs must be two numbers"),
        ({"costs": (1, 0.5)}, r"costs\[1\] must be a positive whole number"),
        (
            {"costs": (1, 2), "distance": "damerau"},
            "costs can be set only with distance='levenshtein'",
        ),
    ],
)
def test_wrong_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        EditSimilarity(**options)


def test_without_rapidfuzz(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(ImportError, match=r"pip install 'multikernel\[sequences\]'"):
        EditSimilarity(1.0)(["A"])
