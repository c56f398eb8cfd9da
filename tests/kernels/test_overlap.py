"""The overlap kernel of categories: mismatches, frequencies, and what is learned from a sample."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import OneHotEncoder

import multikernel as mk
from multikernel.kernels.derivatives import weighted_gradient

RNG = np.random.default_rng(0)
CODES = np.column_stack([RNG.integers(0, k, 60) for k in (2, 3, 5, 9)]).astype(np.float64)
OTHER = np.column_stack([RNG.integers(0, k, 25) for k in (2, 3, 5, 9)]).astype(np.float64)


def one_hot(X):
    encoder = OneHotEncoder(sparse_output=False).fit(np.vstack([CODES, OTHER]))
    return encoder.transform(X)


def costs_by_hand(train, x, z):
    total = 0.0
    for j in range(train.shape[1]):
        counts = {level: np.mean(train[:, j] == level) for level in np.unique(train[:, j])}
        rarest = min(counts.values())
        if x[j] != z[j]:
            pair = (counts.get(x[j], rarest), counts.get(z[j], rarest))
            total -= 0.5 * (np.log(pair[0]) + np.log(pair[1]))
    return total


def test_is_the_gaussian_of_one_hot_columns():
    K = mk.Overlap(gamma=0.8)
    expected = mk.Gaussian(0.4)(one_hot(CODES), one_hot(OTHER))
    np.testing.assert_allclose(K(CODES, OTHER), expected, rtol=1e-13)
    np.testing.assert_allclose(K(CODES), mk.Gaussian(0.4)(one_hot(CODES)), rtol=1e-13)
    np.testing.assert_array_equal(K.diag(CODES), np.diag(K(CODES)))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, pd.DataFrame, np.float32])
def test_counts_mismatches_whatever_holds_the_codes(make):
    counted = np.array([[np.sum(x != z) for z in OTHER] for x in CODES])
    found = mk.Overlap(gamma=0.3)(make(CODES), make(OTHER))
    np.testing.assert_allclose(found, np.exp(-0.3 * counted), rtol=1e-6)
    assert found.dtype == (np.float32 if make is np.float32 else np.float64)


def test_only_equality_of_codes_matters():
    renamed = np.array([7.5, -1.0, 1e9, 3.0, 0.0, 11.0, -4.25, 6.0, 2.0])
    X, Z = renamed[CODES.astype(int)], renamed[OTHER.astype(int)]
    for kernel in (mk.Overlap(), mk.Overlap(weights="frequency")):
        np.testing.assert_allclose(
            kernel.adapt(X)(X, Z), kernel.adapt(CODES)(CODES, OTHER), rtol=1e-12
        )


def test_mismatches_of_rare_levels_cost_more():
    K = mk.Overlap(0.4, "frequency").adapt(CODES)
    new = OTHER.copy()
    new[3, 2] = 77.0  # a level that the sample does not have
    expected = np.exp([[-0.4 * costs_by_hand(CODES, x, z) for z in new] for x in CODES])
    np.testing.assert_allclose(K(CODES, new), expected, rtol=1e-12)
    np.testing.assert_array_equal(np.diag(K(new)), 1.0)  # unseen levels equal themselves


def test_is_positive_semidefinite():
    sample = np.vstack([CODES, OTHER, CODES[:4]])
    for kernel in (mk.Overlap(0.05), mk.Overlap(), mk.Overlap(weights="frequency")):
        assert kernel.is_psd
        # Adapted to a part of the sample, so that some levels are unseen.
        K = kernel.adapt(CODES[:10])(sample)
        values = np.linalg.eigvalsh(K)
        assert values[0] >= -1e-13 * values[-1]
        np.testing.assert_array_equal(K, K.T)
        halved = np.linalg.eigvalsh(K**0.37)
        assert halved[0] >= -1e-13 * halved[-1]


def test_equal_frequencies_are_a_plain_overlap():
    X = np.array([[a, b] for a in range(3) for b in range(3)], dtype=np.float64)
    plain = mk.Overlap(0.7 * np.log(3.0))
    np.testing.assert_allclose(mk.Overlap(0.7, "frequency").adapt(X)(X), plain(X), rtol=1e-12)
    learned = [mk.Overlap(weights=w).adapt(X)(X) for w in (None, "frequency")]
    np.testing.assert_allclose(*learned, rtol=1e-12)  # the unit of costs cancels


def test_learns_gamma_from_pairs_of_samples():
    counted = np.array([[np.sum(x != z) for z in CODES] for x in CODES])
    assert mk.Overlap().adapt(CODES).gamma == pytest.approx(1 / counted.mean(), rel=1e-12)
    costs = np.array([[costs_by_hand(CODES, x, z) for z in CODES] for x in CODES])
    found = mk.Overlap(weights="frequency").adapt(CODES).gamma
    assert found == pytest.approx(1 / costs.mean(), rel=1e-12)


@pytest.mark.parametrize("kernel", [mk.Overlap(), mk.Overlap(weights="frequency")])
def test_a_sample_weight_is_a_repetition(kernel):
    times = RNG.integers(0, 4, len(CODES))
    weighted = kernel.adapt(CODES, times.astype(np.float64))
    repeated = kernel.adapt(np.repeat(CODES, times, axis=0))
    np.testing.assert_allclose(weighted(CODES, OTHER), repeated(CODES, OTHER), rtol=1e-13)


@pytest.mark.parametrize("kernel", [mk.Overlap(), mk.Overlap(weights="frequency")])
def test_columns_of_one_level_say_nothing(kernel):
    K = kernel.adapt(np.hstack([CODES, np.full((60, 1), 3.0)]))
    assert K.gamma == pytest.approx(kernel.adapt(CODES).gamma, rel=1e-12)
    constant = kernel.adapt(np.ones((5, 2)))
    assert constant.gamma == 0.5
    np.testing.assert_array_equal(constant(np.ones((5, 2))), 1.0)


def test_in_a_model_with_names_and_in_a_file(tmp_path):
    frame = pd.DataFrame(CODES, columns=list("abcd")).assign(age=RNG.normal(size=60))
    y = (frame["b"] == 1) ^ (frame["a"] == 0)
    bank = [
        mk.Overlap(columns=["a", "b"]),
        mk.Overlap(weights="frequency", columns=["b", "c", "d"]),
        mk.Gaussian(0.5, columns="age") * mk.Overlap(columns="a"),
    ]
    model = mk.MultiKernelClassifier(bank, weighting="align").fit(frame, y)
    assert model.score(frame, y) == 1.0
    assert model.bank_[0].columns == (0, 1)
    importance = model.column_importance_  # codes are exchanged between samples
    assert np.all(importance >= 0) and np.isclose(importance.sum(), 1.0)
    assert min(importance[:2]) > max(importance[2:4])
    path = tmp_path / "model.mk"
    mk.save(model, path)
    again = mk.load(path)
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))


def test_bad_input_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="gamma must be a positive finite number; got 0"):
        mk.Overlap(gamma=0)
    with pytest.raises(ValueError, match="weights must be 'frequency' or None; got 'rare'"):
        mk.Overlap(weights="rare")
    with pytest.raises(ValueError, match="scaling must be None"):
        mk.Overlap(scaling="standard")
    with pytest.raises(ValueError, match=r"learns from a training sample. Use K = kernel.adapt"):
        mk.Overlap()(CODES)
    with pytest.raises(ValueError, match=r"must not be NaN. Give missing entries"):
        mk.Overlap(1.0)([[np.nan, 1.0]])
    with pytest.raises(ValueError, match="of 4 and of 3 columns cannot be compared"):
        mk.Overlap(1.0)(CODES, CODES[:, :3])
    learned = mk.Overlap(weights="frequency").adapt(CODES)
    with pytest.raises(ValueError, match="levels of 4 columns, but selects 3"):
        learned(CODES[:, :3])
    with pytest.raises(ValueError, match="levels of 4 columns, but selects 3"):
        learned.resolve(3, None)
    monkeypatch.setattr("multikernel.kernels.overlap.MAX_DENSE_ENTRIES", 100)
    with pytest.raises(ValueError, match=r"needs a dense array.*Select the category columns"):
        mk.Overlap(1.0)(sp.csr_matrix(CODES))


def test_values_compare_hash_and_print():
    assert mk.Overlap(0.5) == mk.Overlap(0.5)
    K = mk.Overlap(weights="frequency", columns=[0, 1]).adapt(CODES)
    assert hash(K) == hash(mk.Overlap(weights="frequency", columns=[0, 1]).adapt(CODES))
    assert repr(K).endswith("weights=<costs of the levels of 2 columns>, columns=[0, 1])")
    assert repr(mk.Overlap(0.5, columns=3)) == "Overlap(gamma=0.5, columns=3)"


def test_has_no_derivatives():
    with pytest.raises(TypeError, match="has no derivatives"):
        weighted_gradient(mk.Overlap(1.0), CODES, OTHER, np.ones((60, 25)), np.ones(4))
