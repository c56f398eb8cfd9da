"""Features of a learned sum: weights, order of rows, offsets, and what cannot be changed later."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from multikernel.estimators import from_sums
from multikernel.grams.lowrank.learned_sum import ColumnsOfSum, make_learned_sum
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.planning import make_plan
from multikernel.kernels.bank import as_bank
from multikernel.weighting.given import GivenWeights

BANK = mk.gaussians([0.03, 0.3, 1.0])


def make(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    f = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2]
    return X, f, f + 0.3 * rng.standard_normal(n)


def regressor(bank=BANK, rule="loo", rank=100, **options):
    return mk.MultiKernelRegressor(bank, rule, approximation=mk.Nystroem(rank=rank), **options)


@pytest.fixture
def few_rows(monkeypatch):
    """Rules, constants, probabilities and means read a part of the rows, as in large samples."""
    for name in ("MAX_RULE_ROWS", "MAX_RIDGE_ROWS", "MAX_CALIBRATION_ROWS", "MAX_MEAN_ROWS"):
        monkeypatch.setattr(from_sums, name, 400)


# -- sample weights ---------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["loo", "best", "alignf"])
@pytest.mark.parametrize("size", [0.001, 0.01, 1.0])
def test_small_weights_do_not_spoil_the_constant(size, rule, few_rows):
    X, _, y = make(1500)
    new, g, _ = make(1000, seed=1)
    alpha = 1.0 if rule == "loo" else "loo"
    plain = regressor(rule=rule, alpha=alpha).fit(X, y)
    weighted = regressor(rule=rule, alpha=alpha)
    weighted.fit(X, y, sample_weight=size * np.random.default_rng(2).uniform(0.5, 1.0, 1500))
    assert weighted.score(new, g) > plain.score(new, g) - 0.01 > 0.9


def test_rules_read_sample_weights_as_exact_fits_do():
    X, _, y = make(120)
    weights = np.random.default_rng(1).integers(1, 4, 120).astype(float)
    for rule in ("loo", "best"):
        exact = mk.MultiKernelRegressor(BANK, rule).fit(X, y, sample_weight=weights)
        found = regressor(rule=rule, rank=120).fit(X, y, sample_weight=weights)
        assert np.allclose(found.kernel_weights_, exact.kernel_weights_, rtol=1e-6)
        assert np.allclose(found.predict(X), exact.predict(X), atol=1e-6)


def test_class_weights_are_sample_weights():
    X, f, _ = make(150)
    labels = (f > 0.5).astype(int)
    way = {"approximation": mk.Nystroem(rank=60), "loss": "squared"}
    balance = {0: 0.2, 1: 0.7}
    one = mk.MultiKernelClassifier(BANK, class_weight=balance, **way).fit(X, labels)
    other = mk.MultiKernelClassifier(BANK, **way)
    other.fit(X, labels, sample_weight=np.where(labels, 0.7, 0.2))
    assert np.allclose(one.kernel_weights_, other.kernel_weights_)
    assert np.allclose(one.decision_function(X), other.decision_function(X))


def test_weights_of_some_rows_stand_for_all_rows():
    """Sums over the chosen rows estimate those over all rows, whatever the weights."""
    from multikernel.solvers.passes.survey import SurveyOfChunk

    rng = np.random.default_rng(0)
    n = 4000
    omega = rng.exponential(size=n) ** 2 * 0.1
    values = omega + rng.standard_normal(n)  # correlated with the weights
    ratios = []
    for seed in range(40):
        X = np.random.default_rng(seed).standard_normal((n, 1))
        survey = SurveyOfChunk(n, False)((X, values, omega))
        rows = survey.some(400)
        weights = survey.weights_of(rows)
        ratios.append(weights @ survey.y[rows] / 400 / (omega @ values / n))
        assert len(rows) == 400
    assert np.mean(ratios) == pytest.approx(1.0, abs=3 * np.std(ratios) / np.sqrt(40) + 1e-3)
    everyone = survey.weights_of(np.arange(n))
    assert np.array_equal(everyone, survey.omega)
    assert SurveyOfChunk(n, False)((X, values, None)).weights_of(rows) is None


@pytest.mark.parametrize("how", ["multiplicative", "trace", "trace-first", "frobenius", None])
@pytest.mark.parametrize("rule", ["best", "loo"])
def test_kernel_weights_are_those_of_the_predictor(rule, how, few_rows):
    """Scales of traces and norms fall with the number of rows."""
    X, _, y = make(2000)
    found = regressor(rule=rule, normalize=how).fit(X, y)
    twin = regressor(rule=GivenWeights(found.kernel_weights_), rank=300, normalize=how).fit(X, y)
    assert np.std(found.predict(X) - twin.predict(X)) < 0.1 * np.std(y)
    if how is not None and rule == "best":
        assert found.kernel_weights_.max() == pytest.approx(1.0)


# -- rows in any order ------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["loo", "best"])
def test_sorted_rows(rule, few_rows):
    X, f, _ = make(2000)
    new, g, _ = make(1000, seed=1)
    labels, truth = (f > 0).astype(int), (g > 0).astype(int)
    order = np.argsort(labels, kind="stable")
    way = {"approximation": mk.Nystroem(rank=200), "loss": "squared"}
    model = mk.MultiKernelClassifier(BANK, rule, **way).fit(X[order], labels[order])
    assert model.score(new, truth) > 0.95
    assert np.abs(model.predict_proba(new)[:, 1] - truth).mean() < 0.15


# -- kernels with a large constant part -------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5, 1e6])
def test_columns_far_from_zero(offset):
    X, _, y = make(400)
    bank = [mk.Linear(), mk.Gaussian(0.3)]
    exact = mk.MultiKernelRegressor(bank).fit(X + offset, y)
    found = regressor(bank, rank=200).fit(X + offset, y)
    assert abs(found.score(X + offset, y) - exact.score(X + offset, y)) < 0.005
    assert found.approximation_.n_features > 150
    assert 1e-9 < found.approximation_.relative_errors[0] < 0.05
    shares = found.predict(X + offset, split=True)
    assert np.allclose(shares.sum(axis=1) + found.intercept_, found.predict(X + offset), atol=1e-6)


def test_a_very_wide_kernel_beside_others():
    X, _, y = make(400)
    bank = [mk.Gaussian(1e-9), mk.Gaussian(0.3)]
    exact = mk.MultiKernelRegressor(bank).fit(X, y)
    found = regressor(bank, rank=200).fit(X, y)
    assert abs(found.score(X, y) - exact.score(X, y)) < 0.005


# -- what cannot be done ----------------------------------------------------------------------


def test_constant_kernels_say_so():
    _, _, y = make(50)
    for rule in ("loo", "best"):
        with pytest.raises(ValueError, match="Every kernel is constant on the training data"):
            regressor(rule=rule, rank=10).fit(np.ones((50, 3)), y)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("rule", ["best", "loo"])
def test_candidates_without_a_difference(rule, center):
    """The one row that differs is not among the candidates for landmarks of the sum."""
    X, y = np.zeros((400, 2)), np.random.default_rng(0).normal(size=400)
    X[7] = 1.0
    found = regressor([mk.Gaussian(1.0)], rule, rank=50, center=center).fit(X, y)
    exact = mk.MultiKernelRegressor([mk.Gaussian(1.0)], rule, center=center).fit(X, y)
    np.testing.assert_allclose(found.predict(X[6:9]), exact.predict(X[6:9]), atol=1e-3)


def test_refits_cannot_change_the_sum():
    X, f, y = make(200)
    model = regressor(rule="best", rank=50).fit(X, y)
    for change in ({"normalize": "trace"}, {"center": False}, {"weighting": "loo"}):
        before = {name: getattr(model, name) for name in change}
        (name,) = change
        model.set_params(**change)
        with pytest.raises(ValueError, match=f"cannot change to {name}=.*Call fit"):
            model.refit()
        model.set_params(**before)
    model.set_params(alpha=3.0).refit()
    labels = np.digitize(f, [-0.5, 0.5])
    classes = mk.MultiKernelClassifier(BANK, loss="squared", approximation=mk.Nystroem(rank=50))
    classes.fit(X, labels).set_params(multiclass="per_class")
    with pytest.raises(ValueError, match="weights for every class or output"):
        classes.refit()


def test_a_refused_batch_is_not_counted():
    X, _, y = make(300)
    model = regressor(rank=50)
    model.partial_fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="cannot change to weighting"):
        model.set_params(weighting="best").partial_fit(X[100:], y[100:])
    model.set_params(weighting="loo").partial_fit(X[100:], y[100:])
    assert model._stream.sums.n == 300


def test_separable_classes_with_the_hinge_loss():
    rng = np.random.default_rng(0)
    for n in (10, 20, 40, 1000):
        X = rng.standard_normal((n, 4))
        score = X[:, 0] + 0.5 * X[:, 1]
        keep = np.abs(score) > 0.3
        labels = (score[keep] > 0).astype(int)
        if len(np.unique(labels)) < 2:
            continue
        model = mk.MultiKernelClassifier(approximation=mk.Nystroem(rank=min(60, keep.sum())))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[keep], labels)
        assert model.score(X[keep], labels) == 1.0


@pytest.mark.parametrize("center", [True, False])
def test_functions_are_evaluated_for_few_pairs(center):
    X = np.random.default_rng(0).standard_normal((6000, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    pairs = []

    def gaussian(gamma):
        def function(A, B):
            pairs.append(len(A) * len(B))
            return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))

        return mk.Callable(function, psd=True)

    way = mk.Nystroem(rank=200)
    options = {"weighting": "loo", "approximation": way, "center": center}
    one = mk.MultiKernelRegressor([gaussian(0.3), gaussian(1.0)], **options).fit(X, y)
    bank = [mk.Gaussian(gamma=0.3), mk.Gaussian(gamma=1.0)]
    two = mk.MultiKernelRegressor(bank, **options).fit(X, y)
    assert one.approximation_.n_features == two.approximation_.n_features
    Z = np.random.default_rng(1).standard_normal((500, 3))
    f = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2]
    left = [np.sqrt(np.mean((model.predict(Z) - f) ** 2)) for model in (one, two)]
    assert left[0] < 1.2 * left[1] + 0.01 and left[0] < 0.1 * f.std()
    # Landmarks: 400 columns of 2,000 candidates, and not all pairs of these.
    pairs.clear()
    bank = as_bank([gaussian(0.3)]).adapt(X)
    plan = make_plan(
        bank,
        n_samples=2000,
        n_features=3,
        feature_names=None,
        sparse=False,
        budget=MemoryBudget.of(None),
    )
    make_learned_sum(
        plan, X[:2000], np.ones(1), mk.Nystroem(400), MemoryBudget.of(None), center=center,
        n_samples=2000,
    )  # fmt: skip
    assert sum(pairs) < 0.5 * 2000**2


@pytest.mark.parametrize("offset", [0.0, 5.0])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(
    "kernel",
    [mk.Linear(), mk.Polynomial(degree=2), mk.Callable(lambda A, B: A @ B.T, psd=True)],
    ids=["linear", "polynomial", "function"],
)
def test_kernels_of_few_features_are_exact(kernel, center, offset):
    """Landmarks that are centred around their own mean span one dimension less than there are."""
    X = np.random.default_rng(0).standard_normal((400, 3)) + offset
    y = X @ [1.0, -2.0, 0.5] + 0.1 * np.random.default_rng(1).standard_normal(400)
    exact = mk.MultiKernelRegressor([kernel], "best", center=center).fit(X, y)
    found = regressor([kernel], "best", rank=50, center=center).fit(X, y)
    np.testing.assert_allclose(found.predict(X), exact.predict(X), atol=1e-6 * y.std())


@pytest.mark.parametrize("center", [True, False])
def test_columns_of_a_sum_are_those_of_its_matrix(center):
    X = np.random.default_rng(0).standard_normal((250, 3)) + 5.0
    kernels = [mk.Gaussian(gamma=0.3), mk.Linear(), mk.Gaussian(gamma=1.0)]
    weights = np.array([0.5, 2.0, 0.0])
    found = ColumnsOfSum(kernels, weights, X, center, np.random.default_rng(1))
    K = 0.5 * kernels[0](X, X) + 2.0 * kernels[1](X, X)
    if center:  # there are fewer samples than the origin takes
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    np.testing.assert_allclose(found.columns(np.arange(250)), K, atol=1e-11)
    np.testing.assert_allclose(found.diagonal, np.diag(K), atol=1e-11)
    some = ColumnsOfSum(kernels, weights, np.tile(X, (4, 1)), True, np.random.default_rng(1))
    whole = some.columns(np.arange(1000))
    assert np.linalg.eigvalsh(whole).min() > -1e-9 * np.trace(whole)
