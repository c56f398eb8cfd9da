"""Weights by leave-one-out: optimality, invariances, known answers, and bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.learners.leave_one_out import LeaveOneOutProblem, leave_one_out
from multikernel.problem import Target
from multikernel.weighting.loo_minimum import SizedKernels, minimise, some_rows
from multikernel.weighting.loo_shrinkage import folds_of_distinct_samples


def data(n=120, seed=0, columns=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, columns))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(n)
    return X, y


def bank():
    return mk.gaussians([0.01, 0.1, 1.0]) + mk.Linear()


def exact_error(model, X, y):
    """The criterion at the weights of a model, from n explicit refits."""
    grams = (
        model.bank_.plan(X).grams(X, budget=MemoryBudget.of(None)).corrected(True, "multiplicative")
    )
    K = grams.combine(model.kernel_weights_).dense()
    total, n = 0.0, len(y)
    for i in range(n):
        keep = np.arange(n) != i
        A = np.ones((n, n))
        A[:-1, :-1] = K[np.ix_(keep, keep)] + np.eye(n - 1)
        A[-1, -1] = 0.0
        solution = np.linalg.solve(A, np.append(y[keep], 0.0))
        total += (y[i] - K[i, keep] @ solution[:-1] - solution[-1]) ** 2
    return total


def test_weights_are_a_local_minimum_and_better_than_every_start():
    X, y = data()
    model = mk.MultiKernelRegressor(bank(), mk.LeaveOneOut(shrinkage=0, tol=1e-8, max_iter=200))
    model.fit(X, y)
    entry = model.history_[0]
    assert entry["projected_gradient"] < 1e-3
    best = exact_error(model, X, y)
    assert best == pytest.approx(np.sum((y - model.loo_predictions_) ** 2), rel=1e-8)
    assert entry["loo_error"] == pytest.approx(best / np.sum((y - y.mean()) ** 2), rel=1e-3)
    grams = (
        model.bank_.plan(X).grams(X, budget=MemoryBudget.of(None)).corrected(True, "multiplicative")
    )
    setting = LeaveOneOutProblem.of(Target(y[:, None], "regression"), True)

    def error(kernel_weights):
        return leave_one_out(grams.combine(kernel_weights).dense(), setting).error

    for k in range(4):
        for factor in (0.8, 1.25):
            moved = model.kernel_weights_.copy()
            moved[k] *= factor
            assert error(moved) >= best * (1 - 1e-5)
    for c in np.geomspace(0.1, 1e5, 20):
        assert error(np.full(4, c)) >= best * (1 - 1e-8)
        for k in range(4):
            assert error(c * np.eye(4)[k]) >= best * (1 - 1e-8)


def test_the_right_kernel_is_found():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 6))
    y = X[:, 4] * X[:, 5] + 0.05 * rng.standard_normal(200)
    views = {f"view {j}": (mk.Gaussian(0.5), [j, j + 1]) for j in (0, 2, 4)}
    model = mk.MultiKernelRegressor(mk.per_view(views), "loo").fit(X, y)
    share = model.kernel_weights_ / model.kernel_weights_.sum()
    assert share[2] > 0.95
    assert np.all(model.kernel_weights_ >= 0)


def test_unneeded_kernels_get_exactly_zero():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 3))
    y = X[:, 0] + 0.3 * rng.standard_normal(300)
    model = mk.MultiKernelRegressor(mk.per_feature(), mk.LeaveOneOut(shrinkage=0)).fit(X, y)
    assert model.kernel_weights_[0] > 0
    assert np.all(model.kernel_weights_[1:] == 0)


@pytest.mark.parametrize("shrinkage", [0.0, 0.5])
def test_order_of_samples_and_kernels_does_not_matter(shrinkage):
    X, y = data(90)
    rule = mk.LeaveOneOut(shrinkage, tol=1e-9, max_iter=300)
    one = mk.MultiKernelRegressor(bank(), rule).fit(X, y)
    order = np.random.default_rng(0).permutation(90)
    two = mk.MultiKernelRegressor(bank(), rule).fit(X[order], y[order])
    reverse = mk.KernelBank(list(bank())[::-1])
    three = mk.MultiKernelRegressor(reverse, rule).fit(X, y)
    for other in (two, three):
        np.testing.assert_allclose(other.predict(X), one.predict(X), atol=2e-2 * y.std())
        assert other.history_[0]["loo_error"] == pytest.approx(
            one.history_[0]["loo_error"], rel=1e-4
        )


def test_scale_of_a_kernel_does_not_matter():
    X, y = data(90)
    rule = mk.LeaveOneOut(0.0, tol=1e-9, max_iter=300)
    options = {"normalize": None, "center": True}
    one = mk.MultiKernelRegressor(bank(), rule, **options).fit(X, y)
    scaled = mk.KernelBank([c * k for c, k in zip((1e-3, 1.0, 50.0, 1e4), bank(), strict=True)])
    two = mk.MultiKernelRegressor(scaled, rule, **options).fit(X, y)
    np.testing.assert_allclose(two.predict(X), one.predict(X), atol=1e-2 * y.std())


def test_a_weight_of_two_is_a_repetition():
    X, y = data(60)
    weights = np.ones(60)
    weights[:20] = 2.0
    rule = mk.LeaveOneOut(0.0, tol=1e-9, max_iter=300)
    one = mk.MultiKernelRegressor(bank(), rule).fit(X, y, sample_weight=weights)
    rows = np.append(np.arange(60), np.arange(20))
    two = mk.MultiKernelRegressor(bank(), rule).fit(X[rows], y[rows])
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-2 * y.std())


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers(loss, classes):
    X, y = data(150)
    labels = np.digitize(y, np.quantile(y, np.linspace(0, 1, classes + 1)[1:-1]))
    model = mk.MultiKernelClassifier(bank(), "loo", loss=loss).fit(X[:100], labels[:100])
    assert model.score(X[100:], labels[100:]) > 0.55
    if loss == "squared":
        shape = (100,) if classes == 2 else (100, 3)
        assert model.loo_predictions_.shape == shape
        assert 0.5 < model.loo_score_ < 1.0


def test_precomputed_rank_one_and_mixed_banks():
    X, y = data(80)
    whole = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0]), "loo").fit(X, y)
    D = ((X[:, None] - X) ** 2).sum(-1)
    K = np.stack([np.exp(-0.1 * D), np.exp(-D)], axis=-1)
    given = mk.MultiKernelRegressor("precomputed", "loo").fit(K, y)
    np.testing.assert_allclose(given.kernel_weights_, whole.kernel_weights_, rtol=1e-4)
    model = mk.MultiKernelRegressor(mk.per_feature(), "loo").fit(X, y)
    explicit = mk.KernelBank([mk.Polynomial(1, 0.0, columns=[j]) for j in range(4)])
    same = mk.MultiKernelRegressor(explicit, "loo").fit(X, y)
    np.testing.assert_allclose(model.predict(X), same.predict(X), atol=1e-3)
    mixed = mk.MultiKernelRegressor(mk.gaussians([1.0]) + mk.per_feature(), "loo").fit(X, y)
    assert mixed.score(X, y) > 0.8


def test_several_starts_are_no_worse_than_one():
    X, y = data(150, seed=4)
    grams = bank().plan(X).grams(X, budget=MemoryBudget.of(None)).corrected(True, "multiplicative")
    target = Target(y[:, None], "regression")
    options = {"tol": 1e-6, "max_iter": 60, "seed": 0}
    many = minimise(SizedKernels(grams, target, True), **options)
    one = minimise(SizedKernels(grams, target, True), rough=True, **options)
    assert many.error <= one.error * (1 + 1e-3)


@pytest.mark.slow
def test_few_factorisations_are_enough_for_many_gaussians():
    X, y = data(3000, seed=5)
    model = mk.MultiKernelRegressor(mk.gaussians(np.geomspace(1e-3, 10, 50)), "loo").fit(X, y)
    assert model.history_[0]["factorisations"] <= 30
    uniform = mk.MultiKernelRegressor(
        mk.gaussians(np.geomspace(1e-3, 10, 50)), "uniform", alpha="loo"
    ).fit(X, y)
    assert model.loo_score_ >= uniform.loo_score_


def test_shrinkage_helps_where_kernels_are_many_and_samples_few():
    errors = np.zeros(3)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((360, 20))
        y = X.sum(1) / 4 + 0.5 * rng.standard_normal(360)
        train, test = slice(0, 60), slice(60, None)
        for i, shrinkage in enumerate((0.0, "auto", 1.0)):
            rule = mk.LeaveOneOut(shrinkage)
            model = mk.MultiKernelRegressor(mk.per_feature(), rule).fit(X[train], y[train])
            errors[i] += np.mean((model.predict(X[test]) - y[test]) ** 2)
    assert errors[1] < errors[0]  # all columns matter alike: uniform weights are right
    assert errors[1] < 1.05 * errors[2]


def test_bad_parameters_are_refused_by_name():
    X, y = data(30)
    for bad in ({"shrinkage": 2}, {"shrinkage": "none"}, {"tol": 0}, {"max_iter": 0}):
        with pytest.raises(ValueError, match=f"LeaveOneOut: {next(iter(bad))}"):
            mk.MultiKernelRegressor(bank(), mk.LeaveOneOut(**bad)).fit(X, y)


def test_tiny_and_awkward_samples():
    X, y = data(6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mk.MultiKernelRegressor(bank(), "loo").fit(X, y)  # fewer samples than kernels + 3
        assert np.isfinite(model.predict(X)).all()
        # Copies, and a class of one sample: left out, it has no class.
        X2 = np.vstack([X, X])
        labels = np.array([0] * 11 + [1])
        vote = mk.MultiKernelClassifier(bank(), "loo").fit(X2, labels)
        assert np.isfinite(vote.decision_function(X2)).all()
    with pytest.raises(ValueError, match="constant"):
        mk.MultiKernelRegressor(bank(), "loo").fit(X, np.ones(6))


@pytest.mark.parametrize("regression", [True, False])
def test_weights_are_those_of_repeated_and_of_reordered_samples(regression):
    """Also where shrinkage is chosen by folds, which keep equal samples together."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] ** 2 + X[:, 1] + 0.2 * rng.normal(size=60)
    y = y if regression else (y > 0.7).astype(int)
    times = rng.choice([0, 1, 1, 1, 1, 2], 60)
    make = mk.MultiKernelRegressor if regression else mk.MultiKernelClassifier
    weighted = make().fit(X, y, sample_weight=times.astype(float))
    assert "shrinkage" in weighted.history_[0]
    rows = rng.permutation(np.repeat(np.arange(60), times))
    repeated = make().fit(X[rows], y[rows])
    order = rng.permutation(60)
    reordered = make().fit(X[order], y[order], sample_weight=times[order].astype(float))
    for other in (repeated, reordered):
        assert other.history_[0]["shrinkage"] == weighted.history_[0]["shrinkage"]
        # A flat minimum magnifies rounding, in the weights more than in what is learned.
        values, expected = (
            m.predict(X) if regression else m.decision_function(X) for m in (other, weighted)
        )
        np.testing.assert_allclose(values, expected, atol=1e-3 * np.std(expected))


def test_equal_samples_are_on_the_same_side_of_every_fold():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    rows = np.repeat(np.arange(30), [1, 2, 3] * 10)
    X, y = X[rows], np.arange(30)[rows] % 2
    plan = mk.gaussians([0.1, 1.0]).plan(X)
    grams = plan.grams(X, budget=MemoryBudget.of(None)).corrected(True, "multiplicative")
    sample = SizedKernels(grams, Target(2.0 * y[:, None] - 1.0, "classification"), True)
    splits = folds_of_distinct_samples(sample, 0)
    assert len(splits) == 5
    np.testing.assert_array_equal(
        np.sort(np.concatenate([test for _, test in splits])), np.arange(len(y))
    )
    for train, test in splits:
        assert not set(rows[train]) & set(rows[test])


def test_the_seed_of_the_estimator_is_that_of_the_rule():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + rng.normal(size=60)
    by_name = mk.MultiKernelRegressor(random_state=7).fit(X, y)
    by_rule = mk.MultiKernelRegressor(weighting=mk.LeaveOneOut(random_state=7)).fit(X, y)
    np.testing.assert_array_equal(by_name.kernel_weights_, by_rule.kernel_weights_)
    mk.MultiKernelRegressor(random_state=np.random.RandomState(7)).fit(X, y)


@pytest.mark.parametrize("options", [{}, {"weighting": "uniform", "alpha": "loo"}])
def test_centring_does_not_give_left_out_targets_away(options):
    """Without an intercept, centred functions sum to zero: one target follows from the rest."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.sin(X[:, 0]) + rng.normal(size=200)
    y -= y[:100].mean()
    model = mk.MultiKernelRegressor(fit_intercept=False, **options).fit(X[:100], y[:100])
    free = mk.MultiKernelRegressor(**options).fit(X[:100], y[:100])
    assert model.score(X[100:], y[100:]) > free.score(X[100:], y[100:]) - 0.05


def test_centred_kernels_are_shrunk_alike_with_and_without_an_intercept():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(24, 4))
    y = np.sin(2 * X[:, 0]) + 3 * X[:, 1] + 0.5 * rng.normal(size=24)
    kernels = mk.gaussians([0.01, 0.1, 1.0]) + mk.per_feature(mk.Gaussian(0.5))
    models = [mk.MultiKernelRegressor(kernels, fit_intercept=free) for free in (True, False)]
    one, other = (model.fit(X, y).kernel_weights_ for model in models)
    np.testing.assert_array_equal(one, other)


def test_drawn_rows_contain_every_class(rng):
    for sizes in ([3000, 3000, 3], [5000, 40], [50] * 100):
        labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        Y = np.where(labels[:, None] == np.arange(len(sizes)), 1.0, -1.0)
        target = Target(Y if len(sizes) > 2 else Y[:, 1:], "classification")
        rows = some_rows(target, 400, seed=0)
        counts = np.bincount(labels[rows], minlength=len(sizes))
        assert len(rows) == 400
        assert np.all(counts >= np.minimum(sizes, min(10, 400 // len(sizes))))


def test_sizes_at_their_bounds_count_as_optimal():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(50, 2)), rng.normal(size=50)
    rule = mk.LeaveOneOut(shrinkage=0)
    model = mk.MultiKernelRegressor(mk.KernelBank([mk.Linear()]), rule).fit(X, noise)
    assert model.history_[0]["projected_gradient"] == 0.0


def test_two_distinct_samples_leave_folds_that_say_nothing():
    """All training samples of a fold are copies of one: every kernel is constant there."""
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 15, axis=0)
    y = np.repeat([0.0, 1.0], 15)
    model = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0]), weighting="loo").fit(X, y)
    assert np.allclose(model.predict(X), y, atol=0.1)


@pytest.mark.parametrize("tol", [1e308, np.int8(2)])
def test_any_positive_tolerance_is_used_without_overflow(tol):
    X, y = data(40)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = mk.MultiKernelRegressor(bank(), mk.LeaveOneOut(tol=tol)).fit(X, y)
    assert np.isfinite(model.kernel_weights_).all()


@pytest.mark.parametrize("size", [0.1, 1e-3, 1e-6])
def test_weights_far_below_one_are_no_fewer_samples(size):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(300)
    omega = rng.uniform(0.5, 1.0, 300)
    fits = [
        mk.MultiKernelRegressor(mk.gaussians([0.03, 0.3, 1.0]), "loo").fit(
            X[:200], y[:200], sample_weight=factor * omega[:200]
        )
        for factor in (1.0, size)
    ]
    scores = [model.score(X[200:], y[200:]) for model in fits]
    assert scores[1] > scores[0] - 0.01 > 0.7
