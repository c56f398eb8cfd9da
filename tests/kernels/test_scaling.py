"""Kernels that learn a scaling or a width from the training sample."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import norm, rankdata

import multikernel as mk
from multikernel.kernels.scaling import QuantileScaling
from multikernel.kernels.widths import AtDistance, median_distance


def table(n=80, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [1e4 * rng.standard_normal(n) + 3e5, np.exp(3 * rng.random(n)), rng.integers(0, 3, n)]
    )


def test_quantiles_of_a_small_column_are_normal_scores():
    X = table(60)
    scaling = QuantileScaling.of(X)
    Z = scaling(X)
    for j in range(3):
        scores = norm.ppf((rankdata(X[:, j], "average") - 0.5) / 60)
        np.testing.assert_allclose(Z[:, j], (scores - scores.mean()) / scores.std(), atol=1e-12)
    np.testing.assert_allclose(Z.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.std(0), 1, atol=1e-12)


def test_quantiles_do_not_depend_on_the_units_and_new_values_stay_in_range():
    X = table(400)
    one, two = QuantileScaling.of(X), QuantileScaling.of(np.log(X + 1e-9) * 7 - 2)
    np.testing.assert_allclose(one(X), two(np.log(X + 1e-9) * 7 - 2), atol=0.05)
    far = one(np.array([[1e12, 1e12, 99.0], [-1e12, -1e12, -99.0]]))
    np.testing.assert_allclose(far[0], one(X).max(0))
    np.testing.assert_allclose(far[1], one(X).min(0))


def test_a_weight_of_two_is_a_repetition():
    X = table(50)
    weights = np.ones(50)
    weights[:10] = 2
    rows = np.append(np.arange(50), np.arange(10))
    np.testing.assert_allclose(
        QuantileScaling.of(X, weights)(X), QuantileScaling.of(X[rows])(X), atol=1e-9
    )


@pytest.mark.parametrize("n", [50, 400])
def test_a_weight_of_zero_is_an_omission(n):
    X = table(n)
    weights = np.ones(n)
    weights[[X[:, 0].argmax(), X[:, 1].argmin(), 7]] = 0.0
    found, want = QuantileScaling.of(X, weights), QuantileScaling.of(X[weights > 0])
    np.testing.assert_allclose(found(X), want(X), rtol=0, atol=1e-12)
    for kernel in mk.default_bank(X, sample_weight=weights):
        assert np.all(np.isfinite(kernel(X)))


def test_constant_column_is_mapped_to_zero():
    X = np.column_stack([np.ones(20), np.arange(20.0)])
    assert np.all(QuantileScaling.of(X)(X)[:, 0] == 0)


def test_scalings_compare_and_hash_by_value():
    X = table()
    one, two, other = QuantileScaling.of(X), QuantileScaling.of(X.copy()), QuantileScaling.of(X + 1)
    assert one == two and hash(one) == hash(two) and one != other
    assert mk.Gaussian(1.0, scaling=one) == mk.Gaussian(1.0, scaling=two)


@pytest.mark.parametrize("scaling", ["standard", "quantile"])
@pytest.mark.parametrize("columns", [None, ["b"], [0, 2]])
def test_named_scalings_are_learned_in_fit_and_used_for_new_points(scaling, columns, tmp_path):
    X = pd.DataFrame(table(), columns=["a", "b", "c"])
    y = X["b"] > X["b"].median()
    bank = mk.gaussians([0.1, 1.0], scaling=scaling, columns=columns)
    model = mk.MultiKernelClassifier(bank, "uniform").fit(X[:60], y[:60])
    kernel = model.bank_[0]
    index = [0, 1, 2] if columns is None else [1] if columns == ["b"] else columns
    train = X.to_numpy()[:60, index]
    if scaling == "standard":
        Z = (X.to_numpy()[:, index] - train.mean(0)) / train.std(0)
    else:
        Z = QuantileScaling.of(train)(X.to_numpy()[:, index])
    D = ((Z[:, None] - Z) ** 2).sum(-1)
    resolved = kernel.resolve(3, ["a", "b", "c"])
    np.testing.assert_allclose(resolved(X.to_numpy()), np.exp(-0.1 * D), atol=1e-10)
    mk.save(model, tmp_path / "model.skops")
    again = mk.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_kernels_that_have_not_learned_say_what_to_do():
    X = table()
    with pytest.raises(ValueError, match=r"kernel.adapt\(X_train\)"):
        mk.Gaussian(1.0, scaling="standard")(X)
    with pytest.raises(ValueError, match=r"kernel.adapt\(X_train\)"):
        AtDistance(mk.Exponential())(X)
    with pytest.raises(ValueError, match="scaling must be 'standard', 'quantile' or None"):
        mk.Gaussian(1.0, scaling="minmax")
    with pytest.raises(ValueError, match="sparse"):
        mk.MultiKernelClassifier(mk.gaussians([1.0], scaling="quantile")).fit(
            sp.csr_matrix(X), X[:, 2] > 0
        )
    with pytest.raises(TypeError, match="a kernel with a width"):
        AtDistance(mk.Linear())
    with pytest.raises(TypeError, match=r"Euclidean.*got ChiSquared"):
        mk.at_distances(mk.ChiSquared(), scaling=None)
    for kernel in (mk.Gaussian(columns=[0]), mk.Laplacian(scaling="quantile")):
        with pytest.raises(ValueError, match=r"at_distances: .* Pass (columns|scaling)= to"):
            mk.at_distances(kernel)
    same = mk.at_distances(mk.Gaussian(columns=[0], scaling="standard"), [1.0], columns=0)
    assert same.adapt(X) == mk.at_distances(mk.Gaussian(), [1.0], columns=0).adapt(X)
    with pytest.raises(TypeError, match="factors must be a sequence"):
        mk.at_distances(mk.Exponential(), "1")


@pytest.mark.parametrize(
    ("kernel", "l1"),
    [
        (mk.Exponential(), False),
        (mk.Matern(2.5), False),
        (mk.Gaussian(), False),
        (mk.Laplacian(), True),
    ],
)
def test_widths_are_multiples_of_the_median_distance(kernel, l1):
    X = table()
    y = X[:, 2] > 0
    model = mk.MultiKernelClassifier(mk.at_distances(kernel, [0.5, 2.0]), "uniform").fit(X, y)
    Z = (X - X.mean(0)) / X.std(0)
    difference = Z[:, None] - Z
    D = np.abs(difference).sum(-1) if l1 else np.sqrt((difference**2).sum(-1))
    median = np.sort(D[np.triu_indices(80, 1)])[80 * 79 // 4 - 1 : 80 * 79 // 4 + 1]
    for one, factor in zip(model.bank_, (0.5, 2.0), strict=True):
        if isinstance(one, mk.Laplacian):
            length = 1 / one.gamma
        else:
            length = np.sqrt(0.5 / one.gamma) if isinstance(one, mk.Gaussian) else one.length
        assert median[0] * factor * 0.999 <= length <= median[1] * factor * 1.001


def test_median_of_copies_is_that_of_unit_differences():
    assert median_distance(np.ones((5, 4)), l1=False, sample_weight=None) == 2.0
    assert median_distance(np.ones((5, 4)), l1=True, sample_weight=None) == 4.0


def test_the_median_leaves_out_samples_of_weight_zero(rng):
    Z = rng.normal(size=(30, 2))
    far, omega = np.vstack([Z, [[1e9, 1e9]]]), np.append(np.ones(30), 0.0)
    for l1 in (False, True):
        found = median_distance(far, l1=l1, sample_weight=omega)
        assert found == pytest.approx(median_distance(Z, l1=l1, sample_weight=None))


def test_raw_columns_keep_their_widths():
    X = table()
    bank = mk.at_distances(mk.Exponential(), [1.0], scaling=None)
    kernel = mk.MultiKernelClassifier(bank, "uniform").fit(X, X[:, 2] > 0).bank_[0]
    assert kernel.scaling is None and kernel.length > 1e3
