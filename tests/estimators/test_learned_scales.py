"""mk.learned_scales: finds the columns that matter, and stays at round 0 where it does not help."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import multikernel as mk
from multikernel.estimators.scales import scales_by_default
from multikernel.grams.memory import MemoryBudget
from multikernel.kernels.learned_scales import LearnedScales
from multikernel.kernels.rescaled import rescaled
from multikernel.problem import Target
from multikernel.solvers.column_scales import InputsAndTargets, learn_bank, learn_factors

rng = np.random.default_rng(0)
X = rng.normal(size=(160, 20))
y = np.sin(2 * X[:, 3]) + X[:, 7] ** 2 + 0.05 * rng.normal(size=160)
X_NEW = rng.normal(size=(400, 20))
Y_NEW = np.sin(2 * X_NEW[:, 3]) + X_NEW[:, 7] ** 2
SMALL = mk.at_distances(mk.Gaussian(), [0.5, 1.0]) + mk.at_distances(mk.Exponential(), [1.0])
NOISE = rng.normal(size=160)


def factors_of(kernel, data=None):
    """What columns of unit variance are multiplied by, relative to the largest."""
    spread = 1.0 if data is None else data.std(axis=0)
    found = spread / np.asarray(kernel.scaling.scale)
    return found / found.max()


def test_two_of_twenty_columns_are_found():
    bank = mk.learned_scales(X, y, SMALL)
    assert [name.endswith(", learned scales") for name in bank.names] == [False] * 3 + [True] * 3
    assert bank[:3] == mk.KernelBank(SMALL.adapt(X), bank.names[:3])
    found = factors_of(bank[-1])
    assert set(np.argsort(-found)[:2]) == {3, 7}
    assert np.sort(found)[-3] < 0.2
    plain = mk.MultiKernelRegressor(SMALL, weighting="loo").fit(X, y)
    scaled = mk.MultiKernelRegressor(bank, weighting="loo").fit(X, y)
    errors = [np.mean((model.predict(X_NEW) - Y_NEW) ** 2) for model in (plain, scaled)]
    assert errors[1] < 0.5 * errors[0]
    assert set(np.argsort(-scaled.column_importance_)[:2]) == {3, 7}
    assert scaled.column_importance_[[3, 7]].sum() > 0.9


def test_each_round_is_a_ridge_fit_and_its_mean_squared_derivatives():
    # Two rounds again: the estimator with its best ridge, and central differences of predictions.
    base = mk.KernelBank(SMALL.adapt(X))
    sample = InputsAndTargets(
        X, Target((y - y.mean())[:, None], "regression"), MemoryBudget.of(None), 1
    )
    found = learn_factors(base, sample, 2)
    scale = np.ones(20)
    for one in found:
        kernels = rescaled(base, scale, X)
        model = mk.MultiKernelRegressor(kernels, weighting="uniform", alpha="loo").fit(X, y)
        slopes = np.empty(20)
        for j in range(20):
            step = np.zeros(20)
            step[j] = 1e-5
            change = (model.predict(X + step) - model.predict(X - step)) / 2e-5
            slopes[j] = np.sqrt(np.mean(change**2)) * X[:, j].std()
        np.testing.assert_allclose(one, slopes / slopes.max(), rtol=1e-4)
        scale = one


def test_noise_returns_to_round_0():
    bank = mk.learned_scales(X, NOISE, SMALL)
    assert len(bank) == 3
    assert bank == mk.KernelBank(SMALL.adapt(X), bank._names)
    assert len(mk.learned_scales(X, NOISE, SMALL, validate=False)) == 6


def test_few_samples_of_many_columns_return_to_round_0():
    wide = rng.normal(size=(60, 80))
    labels = np.where(wide.mean(axis=1) > 0, 1, -1)  # every column says a little
    assert len(mk.learned_scales(wide, labels, SMALL)) == 3
    assert len(mk.learned_scales(wide[:10], labels[:10], SMALL)) == 3  # too few to tell


def test_validation_has_not_seen_the_targets_it_judges_by():
    # Scales that memorise targets would look perfect on the samples that chose them.
    target = Target(NOISE[:, None], "regression")
    learned = learn_bank(LearnedScales(SMALL), X, target)
    assert not learned.kept
    assert learned.gain <= learned.standard_error
    assert "only round 0 kept" in str(learned)
    assert "not validated" in str(learn_bank(LearnedScales(SMALL, 1, False), X, target))


def test_what_happened_is_said(capsys, caplog):
    with caplog.at_level(logging.INFO, logger="multikernel"):
        mk.learned_scales(X, y, SMALL, rounds=1, verbose=1)
    assert "kernels on learned scales kept" in capsys.readouterr().out
    assert "kernels on learned scales kept" in caplog.text
    mk.MultiKernelRegressor(mk.learned_scales(kernels=SMALL), verbose=1).fit(X, NOISE)
    assert "only round 0 kept" in capsys.readouterr().out


@pytest.mark.parametrize("labels", ["two", "several", "text"])
def test_classes(labels):
    classes = {
        "two": np.where(y > 0.5, 1, -1),
        "several": 2 * (X[:, 3] > 0) + (X[:, 7] > 0),
        "text": np.where(y > 0.5, "high", "low"),
    }[labels]
    few = X[:, :10]
    bank = mk.learned_scales(few, classes, SMALL, rounds=2, validate=False)
    assert set(np.argsort(-factors_of(bank[-1]))[:2]) == {3, 7}
    lazy = mk.learned_scales(kernels=SMALL, rounds=2, validate=False)
    model = mk.MultiKernelClassifier(lazy, weighting="loo")
    assert model.fit(few, classes).bank_ == bank


def test_several_outputs_share_the_scales():
    both = np.column_stack([np.sin(2 * X[:, 3]), 100 * X[:, 7] ** 2])
    bank = mk.learned_scales(X, both, SMALL, rounds=2, validate=False)
    found = factors_of(bank[-1])
    assert set(np.argsort(-found)[:2]) == {3, 7}  # units of the outputs do not matter
    assert found[[3, 7]].min() > 0.3


def test_in_fit_is_the_same_and_sees_the_training_part_only():
    lazy = mk.learned_scales(kernels=SMALL, rounds=2, validate=False)
    assert lazy == clone(mk.MultiKernelRegressor(lazy)).kernels
    model = mk.MultiKernelRegressor(lazy, weighting="loo").fit(X[:100], y[:100])
    assert model.bank_ == mk.learned_scales(X[:100], y[:100], SMALL, rounds=2, validate=False)
    scores = cross_val_score(mk.MultiKernelRegressor(lazy, weighting="loo"), X[:, :10], y, cv=3)
    assert np.all(scores > 0.5)


def test_noise_does_not_look_predictable_in_cross_validation():
    # With scales from all of the sample, test samples would have chosen them.
    lazy = mk.MultiKernelRegressor(mk.learned_scales(kernels=SMALL, validate=False), "loo")
    assert cross_val_score(lazy, X, NOISE, cv=3).mean() < 0.05


def test_beside_other_kernels():
    bank = mk.learned_scales(kernels=SMALL, rounds=1) + mk.Linear(scaling="standard")
    model = mk.MultiKernelRegressor(bank).fit(X, y)
    assert len(model.bank_) == 7
    assert isinstance(model.bank_[6], mk.Linear)


def test_kernels_that_have_no_width_are_there_once():
    bank = mk.learned_scales(X, y, mk.default_bank(X, kind="tables"), rounds=1, validate=False)
    assert len(bank) == 13 + 12
    views = [mk.Gaussian(0.1, columns=[3, 5]), mk.Gaussian(0.1, columns=slice(6, 9))]
    bank = mk.learned_scales(X, y, views, rounds=1, validate=False)
    assert [kernel.columns for kernel in bank] == [(3, 5), (6, 7, 8)] * 2
    assert factors_of(bank[2])[0] > 2 * factors_of(bank[2])[1]


def test_widths_stay_multiples_of_the_median_distance():
    base = mk.KernelBank(mk.at_distances(mk.Exponential(), [1.0]).adapt(X))
    factors = np.linspace(0.1, 1.0, 20)
    (moved,) = rescaled(base, factors, X)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0) * factors
    i, j = np.triu_indices(160, k=1)
    assert moved.length == pytest.approx(
        np.median(np.linalg.norm(scaled[i] - scaled[j], axis=1)), rel=1e-3
    )
    np.testing.assert_allclose(
        moved(X),
        np.exp(-np.linalg.norm(scaled[:, None] - scaled[None], axis=2) / moved.length),
        atol=1e-7,
    )
    assert rescaled([mk.Gaussian(0.1, columns=[0])], np.r_[0.0, np.ones(19)], X) == []
    (ranks,) = rescaled([mk.Laplacian(0.1, scaling="quantile").adapt(X)], factors, X)
    assert np.ptp(ranks.select(X)[:, 0]) < 0.2 * np.ptp(ranks.select(X)[:, 19])


def test_units_and_order_of_the_columns_do_not_matter():
    units = 10.0 ** rng.integers(-3, 4, size=20)
    order = rng.permutation(20)
    found = factors_of(mk.learned_scales(X, y, SMALL, rounds=2, validate=False)[-1], X)
    moved = mk.learned_scales(X * units, y, SMALL, rounds=2, validate=False)[-1]
    np.testing.assert_allclose(factors_of(moved, X * units), found, rtol=1e-5)
    turned = mk.learned_scales(X[:, order], y, SMALL, rounds=2, validate=False)[-1]
    np.testing.assert_allclose(factors_of(turned, X[:, order]), found[order], rtol=1e-5)


def test_sample_weights_and_large_samples():
    weights = np.r_[np.ones(100), np.zeros(60)]
    found = mk.learned_scales(X, y, SMALL, rounds=1, sample_weight=weights)
    alone = mk.learned_scales(X[:100], y[:100], SMALL, rounds=1)
    assert found.names == alone.names
    few = mk.learned_scales(X, y, SMALL, rounds=2, validate=False, max_samples=80)
    assert len(few) == 6


def test_kernels_of_all_rounds_or_of_the_last():
    last = mk.learned_scales(X, y, SMALL, rounds=3)
    every = mk.learned_scales(X, y, SMALL, rounds=3, keep="all")
    assert list(every)[:3] + list(every)[-3:] == list(last)
    rounds = [name.rsplit(" ", 1)[1] for name in every.names[3:]]
    assert rounds == ["1"] * 3 + ["2"] * 3 + ["3"] * 3
    assert list(mk.learned_scales(X, y, SMALL, rounds=2, keep="all"))[-3:] == list(every)[6:9]


@pytest.mark.parametrize("kind", [mk.MultiKernelRegressor, mk.MultiKernelClassifier])
def test_defaults_learn_scales_of_tables_that_are_large_enough(kind):
    wide = rng.normal(size=(420, 10))
    signal = np.sin(2 * wide[:, 3]) + wide[:, 7] ** 2
    target = signal if kind is mk.MultiKernelRegressor else signal > np.median(signal)
    model = kind().fit(wide, target)
    assert len(model.bank_) == 25
    assert model.bank_.names[-1].endswith(", learned scales")
    assert set(np.argsort(-model.column_importance_)[:2]) == {3, 7}
    new = rng.normal(size=(300, 10))
    truth = np.sin(2 * new[:, 3]) + new[:, 7] ** 2
    truth = truth if kind is mk.MultiKernelRegressor else truth > np.median(signal)
    plain = kind(mk.default_bank(wide)).fit(wide, target)
    assert model.score(new, truth) > plain.score(new, truth)
    assert len(plain.bank_) == 13
    assert len(kind(weighting="uniform").fit(wide, target).bank_) == 13


def test_tables_whose_scales_are_not_learned_by_default():
    table = rng.normal(size=(400, 100))
    assert scales_by_default(table)
    assert not scales_by_default(table[:399])  # few samples
    assert not scales_by_default(np.column_stack([table, table[:, 0]]))  # many columns
    assert not scales_by_default(table[:, :1])  # nothing to compare
    assert not scales_by_default(np.ones((400, 5)))
    assert not scales_by_default(sp.csr_matrix(table))


def test_constant_and_sparse_columns():
    constant = np.column_stack([X[:, [3, 7, 0]], np.full(160, 2.0)])
    bank = mk.learned_scales(constant, y, SMALL, rounds=2, validate=False)
    assert np.isfinite(bank[-1](constant)).all()
    model = mk.MultiKernelRegressor(bank, weighting="loo").fit(constant, y)
    assert model.column_importance_[3] == 0
    S = sp.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0))
    target = S.toarray()[:, 3] - S.toarray()[:, 7]
    bank = mk.learned_scales(S, target, rounds=1, validate=False)
    assert set(np.argsort(-factors_of(bank[-1]))[:2]) == {3, 7}
    mk.MultiKernelRegressor(bank, weighting="loo").fit(S, target)


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(20)])
    kernels = [mk.Gaussian(0.1, columns=["c3", "c5"], scaling="standard")]
    bank = mk.learned_scales(frame, y, kernels, rounds=1, validate=False)
    assert bank[1].columns == (3, 5)
    model = mk.MultiKernelRegressor(mk.learned_scales(kernels=kernels, rounds=1, validate=False))
    assert model.fit(frame, y).bank_ == bank


def test_files(tmp_path):
    model = mk.MultiKernelRegressor(mk.learned_scales(kernels=SMALL, rounds=1), weighting="loo")
    model.fit(X, y)
    mk.save(model, tmp_path / "model.mk")
    loaded = mk.load(tmp_path / "model.mk")
    np.testing.assert_array_equal(loaded.predict(X_NEW), model.predict(X_NEW))
    assert loaded.kernels == model.kernels
    assert loaded.bank_ == model.bank_


def test_the_certificate_knows_that_kernels_were_learned():
    model = mk.MultiKernelRegressor(mk.learned_scales(kernels=SMALL, rounds=1)).fit(X, y)
    assert "some of these kernels learned from the sample" in str(model.certificate(X, y))


@pytest.mark.parametrize(
    "estimator",
    [
        mk.MultiKernelClassifierCV(mk.learned_scales()),
        mk.MultiKernelOneClass(mk.learned_scales()),
        mk.KernelEnsembleClassifier(mk.learned_scales()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_estimators_that_would_leak_or_have_no_targets(estimator):
    with pytest.raises(ValueError, match="learns column scales from the targets"):
        estimator.fit(X, y > 0.5)


def test_an_open_bank_says_so():
    with pytest.raises(TypeError, match="kernels learned in fit"):
        len(mk.learned_scales())
    with pytest.raises(ValueError, match="learns column scales from the targets"):
        mk.learned_scales().plan(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keep": "first"}, "keep must be 'last' or 'all'; got 'first'"),
        ({"rounds": 0}, "rounds must be a whole number of at least 1; got 0"),
        ({"rounds": 1.5}, "rounds must be a whole number"),
        ({"max_samples": 5}, "max_samples must be a whole number of at least 20"),
        ({"validate": "yes"}, "validate must be True or False"),
        ({"task": "both"}, "task must be one of"),
        ({"kernels": [mk.Linear()]}, "needs at least one Gaussian"),
        ({"kernels": mk.per_feature(mk.Gaussian(1.0))}, "must not depend on data not seen yet"),
        ({"kernels": [mk.Spectrum(2)]}, "sequence kernels have no columns"),
        ({"y": np.full(160, 3.0)}, "y is constant"),
        ({"y": np.full(160, "a")}, "y is constant"),
        ({"y": X[:, :2] > 0, "task": "classification"}, "labels must be a vector"),
        ({"y": np.r_[np.nan, y[1:]]}, "y holds NaN"),
        ({"y": y[:50]}, "inconsistent numbers of samples"),
        ({"y": None}, "needs both X and y"),
        ({"y": np.where(y > 0, "a", "b"), "task": "regression"}, "outputs must be numbers"),
        ({"y": np.zeros((160, 2, 2))}, "y must have shape"),
        ({"X": np.where(X > 3, np.nan, X)}, "NaN"),
        ({"X": np.ones((160, 3))}, "every column of X is constant"),
        ({"X": None, "y": None, "sample_weight": np.ones(160)}, "pass sample_weight to fit"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mk.learned_scales(**{"X": X, "y": y, **arguments})
