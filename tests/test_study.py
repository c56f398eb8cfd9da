"""The study of alignment against accuracy: values by hand, protocol, table and picture."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.model_selection import KFold, ShuffleSplit

import multikernel as mk
from multikernel.grams.normalise import alignment, centered_alignment
from multikernel.learners.parzen import Parzen
from multikernel.study import AlignmentStudy, alignment_study
from tests.estimators.cases import iris, waves

BANK = mk.gaussians([0.001, 0.1, 1.0, 30.0])


def by_hand(X, y, values, splits, classify):
    """Alignments, and scores of machines fitted one by one, the value chosen on the next fold."""
    rows = []
    for fold, (train, test) in enumerate(splits):
        choosing = np.setdiff1d(splits[(fold + 1) % len(splits)][1], test)
        if len(values) > 1:
            train = np.setdiff1d(train, choosing)
        target = np.outer(y[train], y[train])
        row = []
        for kernel in BANK:
            K = kernel(X[train])
            tried = []
            for value in values:
                if classify:
                    machine = mk.MultiKernelClassifier([kernel], "uniform", C=value)
                else:
                    machine = mk.MultiKernelRegressor([kernel], "uniform", alpha=value)
                machine.fit(X[train], y[train])
                chosen, scored = (
                    np.mean(machine.predict(X[part]) == y[part])
                    if classify
                    else 1 - np.sqrt(np.mean((machine.predict(X[part]) - y[part]) ** 2))
                    for part in (choosing, test)
                )
                tried.append((chosen, scored))
            best = tried[int(np.argmax([chosen for chosen, _ in tried]))][1]
            row.append((centered_alignment(K, target), alignment(K, target), best))
        rows.append(row)
    return np.array(rows)  # (folds, kernels, 3)


@pytest.mark.parametrize("classify", [True, False])
@pytest.mark.parametrize("values", [[1.0], [0.1, 10.0]])
def test_equals_the_study_done_by_hand(classify, values):
    X, y = iris(2, 2) if classify else waves(50)
    y = np.where(y == y.max(), 1, -1) if classify else y
    X = X + 0.9 * np.random.default_rng(0).normal(size=X.shape)
    splits = list(KFold(4, shuffle=True, random_state=1).split(X))
    study = alignment_study(BANK, X, y, grid=values, cv=splits)
    slow = by_hand(X, y, values, splits, classify)
    np.testing.assert_allclose(study.centered, slow[:, :, 0].mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(study.uncentered, slow[:, :, 1].mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(study.scores, slow[:, :, 2].mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(study.deviations, slow[:, :, 2].std(axis=0), atol=1e-6)
    assert study.correlation == pytest.approx(pearsonr(study.centered, study.scores)[0])
    assert study.correlation_uncentered == pytest.approx(
        pearsonr(study.uncentered, study.scores)[0]
    )
    assert study.rank_correlation == pytest.approx(spearmanr(study.centered, study.scores)[0])
    assert study.task == ("classification" if classify else "regression")


def test_centring_matters_where_classes_are_not_balanced():
    """A wide kernel is nearly constant: without centring it aligns with unbalanced labels."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(200) < 160, 1, -1)
    X = rng.normal(size=(200, 2)) + 1.3 * (y[:, None] < 0)
    study = alignment_study(mk.gaussians(4.0 ** np.arange(-6, 5)), X, y, grid=[0.1, 1.0, 10.0])
    assert study.correlation > 0.7
    assert study.uncentered[0] > 0.3 > study.centered[-1]


def test_labels_may_be_regressed_on():
    X, y = iris(2, 2)
    numbers = np.where(y == 1, 1.0, -1.0)
    study = alignment_study(BANK, X, numbers, task="regression", grid=0.1)
    assert study.task == "regression" and study.measure == "1 - RMSE"
    assert alignment_study(BANK, X, numbers).task == "classification"
    np.testing.assert_allclose(study.centered, alignment_study(BANK, X, y).centered, rtol=0.05)


def test_more_classes_and_other_input():
    X, y = iris(2)
    study = alignment_study(BANK, X, np.array(["a", "b", "c"])[y])
    assert np.all((study.centered > 0) & (study.centered <= 1))
    K = np.stack([kernel(X) for kernel in BANK], axis=-1)
    given = alignment_study("precomputed", K, y)
    np.testing.assert_allclose(given.centered, study.centered, rtol=1e-6)
    np.testing.assert_allclose(given.scores, study.scores, atol=1e-9)


def test_any_learner_will_do():
    X, y = iris(2, 2)
    X = X + 0.9 * np.random.default_rng(0).normal(size=X.shape)
    study = alignment_study(BANK, X, y, learner=lambda value: Parzen("h"))
    assert np.all(study.scores[:3] > 0.7)


def test_table_and_text():
    X, y = iris(2, 2)
    study = alignment_study(BANK, X, y)
    rows = study.table()
    assert [row["kernel"] for row in rows] == BANK.names
    text = str(study).splitlines()
    assert len(text) == 1 + 4 + 2
    assert "accuracy" in text[0] and BANK.names[2] in text[3]
    assert f"{study.correlation:.4f}" in text[5] and repr(study) == str(study)


def test_no_correlation_where_nothing_differs():
    X, y = iris(2, 2)
    study = alignment_study(BANK, X, y)
    flat = dataclasses.replace(study, scores=np.full(4, 0.5))
    assert np.isnan(flat.correlation) and "none" in str(flat)


def test_picture():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    study = AlignmentStudy(
        ("a", "b"),
        np.array([0.1, 0.2]),
        np.array([0.3, 0.1]),
        np.array([0.6, 0.8]),
        np.array([0.1, 0.1]),
        "classification",
    )
    figure, ax = pyplot.subplots()
    assert study.plot(ax) is ax
    assert ax.get_ylabel() == "accuracy"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["centred, correlation 1.0000", "uncentred, correlation -1.0000"]
    pyplot.close(figure)


def test_bad_input():
    X, y = waves(30)
    with pytest.raises(ValueError, match="at least 2 kernels; the bank has 1"):
        alignment_study([mk.Gaussian(1.0)], X, y)
    with pytest.raises(ValueError, match="task must be 'classification'"):
        alignment_study(BANK, X, y, task="ranking")
    with pytest.raises(ValueError, match="grid must be one or more positive finite numbers"):
        alignment_study(BANK, X, y, grid=[0.0])
    with pytest.raises(ValueError, match="next fold leaves no samples"):
        alignment_study(BANK, X, y, grid=[1.0, 2.0], cv=KFold(2))
    with pytest.raises(ValueError, match="next fold leaves no samples"):
        alignment_study(BANK, X, y, grid=[1.0, 2.0], cv=ShuffleSplit(1, random_state=0))
    with pytest.raises(ValueError, match="Every kernel is constant"):
        alignment_study(BANK, np.ones_like(X), y)
    with pytest.raises(ValueError, match="NaN"):
        alignment_study(BANK, np.full_like(X, np.nan), y)
