"""A page about every kind of model."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import multikernel as mk
from multikernel.report import findings, write_report
from multikernel.report.labels import short_labels
from multikernel.report.sample import prepared_grams, target_columns, unlabelled
from multikernel.report.svg import short
from tests.report.pages import Page, section

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 4))
Y2 = np.where(X[:, 0] + 0.3 * RNG.standard_normal(60) > 0, "yes", "no")
Y3 = np.digitize(X[:, 0], [-0.5, 0.5])
T = X[:, 0] + 0.1 * RNG.standard_normal(60)
GENES = np.array(["".join(RNG.choice(list("ACGT"), 8)) for _ in range(60)])
G = mk.gaussians([0.05, 0.5])

MODELS = {
    "one-class": lambda: (mk.MultiKernelOneClass(G), X, None),
    "regressor": lambda: (mk.MultiKernelRegressor(G), X, T),
    "support vector regressor": lambda: (
        mk.MultiKernelRegressor(G, mk.LpNorm(1.5), loss="epsilon_insensitive"), X, T),
    "two outputs": lambda: (mk.MultiKernelRegressor(G), X, np.column_stack([T, X[:, 1]])),
    "regressor search": lambda: (mk.MultiKernelRegressorCV(G, cv=3), X, T),
    "signed": lambda: (mk.MultiKernelRegressor(G, mk.AlignF(signed=True)), X, T),
    "vote": lambda: (mk.VotedKernelClassifier(G), X, Y2),
    "vote search": lambda: (mk.VotedKernelClassifierCV(G, cv=2), X, Y2),
    "ensemble": lambda: (mk.KernelEnsembleClassifier(G), X, Y3),
    "ensemble in one stage": lambda: (mk.KernelEnsembleClassifier(G, stages=1), X, Y2),
    "ensemble for regression": lambda: (mk.KernelEnsembleRegressor(G, signed=True), X, T),
    "powers": lambda: (mk.SpectralKernelClassifier(mk.Gaussian(0.5)), X, Y2),
    "powers, default kernel": lambda: (mk.SpectralKernelClassifier(), X, Y3),
    "eigenvectors": lambda: (
        mk.SpectralKernelClassifier(mk.Gaussian(0.5), family="spectral"), X, Y3),
    "hull": lambda: (mk.SpectralKernelClassifier(G, family="convex"), X, Y2),
    "signed hull": lambda: (mk.SpectralKernelClassifier(G, family="linear"), X, Y2),
    "class by class": lambda: (mk.MultiKernelClassifier(G, "l1", multiclass="per_class"), X, Y3),
    "averages": lambda: (mk.ParzenClassifier(G), X, Y3),
    "averages for regression": lambda: (mk.ParzenRegressor(G), X, T),
    "sequences": lambda: (mk.MultiKernelClassifier([mk.Spectrum(2), mk.Spectrum(3)]), GENES, Y2),
    "n-grams": lambda: (mk.MultiKernelClassifier(mk.per_ngram(2, unit="letter")), GENES, Y2),
    "one kernel": lambda: (mk.MultiKernelClassifier([mk.Linear()]), X, Y2),
    "kernel array": lambda: (
        mk.MultiKernelClassifier("precomputed"), np.stack([X @ X.T, (X @ X.T) ** 2], -1), Y2),
}  # fmt: skip

#: Sections that have nothing to show for a kind of model, with a word of the reason.
ABSENT = {
    "ensemble": {"certificate": "no certificate"},
    "ensemble in one stage": {"certificate": "no certificate"},
    "ensemble for regression": {"certificate": "no certificate"},
    "eigenvectors": {"stability": "other eigenvectors"},
}


#: Models for which no held-out predictions are shown.
WITHOUT_PREDICTIONS = (
    *("kernel array", "two outputs", "powers", "powers, default kernel", "eigenvectors"),
    *("hull", "signed hull"),
)


def fitted(name):
    estimator, points, target = MODELS[name]()
    estimator.fit(points) if target is None else estimator.fit(points, target)
    return estimator, points, target


@pytest.mark.filterwarnings(
    "ignore:The signed combination", "ignore::sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_has_its_page(name, tmp_path):
    model, points, target = fitted(name)
    raw = write_report(model, points, target, tmp_path / "p.html").read_text(encoding="utf-8")
    page = Page(raw)  # its tags are balanced
    expected = ABSENT.get(name, {})
    for part in ("weights", "alignments", "spectrum", "points", "stability", "certificate", "data",
                 "next"):  # fmt: skip
        text = section(raw, part)
        assert ("Not shown" in text) == (part in expected), (part, text[:400])
        assert expected.get(part, "") in text
    visible = re.sub(r"<(script|style)>.*?</\1>", "", raw, flags=re.S)
    assert not re.search(r"[>\s\"](nan|inf|None)[<\s\"]", visible.split('id="parameters"')[0])
    for kernel in short_labels(model.kernel_names_)[:5]:
        assert kernel in page.text
    assert 'id="leaderboard"' not in raw  # there is nothing to show
    if target is not None and name not in WITHOUT_PREDICTIONS:
        assert "<svg" in section(raw, "predictions") and "<table" in section(raw, "samples")
    assert section(raw, "alignments").count('class="cell') >= len(model.kernel_names_[:60]) ** 2
    assert "<polyline" in section(raw, "spectrum") and "<circle" in section(raw, "points")


@pytest.mark.parametrize("n", [40, 60, 80])
@pytest.mark.parametrize("name", ["search", "regressor search", "regressor", "one-class"])
def test_other_samples_are_new_ones(name, n, tmp_path):
    """However many there are: stored predictions belong to the training sample alone."""
    makers = MODELS | {"search": lambda: (mk.MultiKernelClassifierCV(G, cv=3), X, Y2)}
    model, points, target = makers[name]()
    model.fit(points) if target is None else model.fit(points, target)
    rng = np.random.default_rng(n)
    new = rng.standard_normal((n, 4))
    y = None if target is None else np.where(new[:, 0] > 0, "yes", "no")
    y = new[:, 0] if "regressor" in name else y
    raw = write_report(model, new, y, tmp_path / "p.html").read_text(encoding="utf-8")
    assert "not the samples that the model was fitted to" in section(raw, "data")
    assert "Not shown: these are not the samples" in section(raw, "stability")
    if target is not None:
        text = section(raw, "predictions")
        assert f"{n} samples, which are not the training sample" in text
        assert "folds" not in raw.split("<dl")[1].split("</dl>")[0]
        assert f"{model.score(new, y):.4f}" in raw.split("<dl")[1].split("</dl>")[0]
    assert " on 60 samples" in raw


# -- spectral classes -----------------------------------------------------------------------------


def test_members_of_a_spectral_class_make_up_the_learned_matrix():
    """Combined with the learned weights they have the spectrum that the fit has learned."""
    for family in ("polynomial", "spectral"):
        model = mk.SpectralKernelClassifier(mk.Gaussian(0.5), family=family).fit(X, Y2)
        grams = prepared_grams(model, X, np.arange(60))
        assert grams.p == len(model.kernel_names_)
        K = mk.Gaussian(0.5)(X, X)
        _, vectors = np.linalg.eigh(K)
        vectors = vectors[:, ::-1][:, : len(model.spectrum_)]
        learned = (vectors * model.spectrum_) @ vectors.T
        assert_allclose(grams.combine(model.kernel_weights_).dense(), mk.center(learned), atol=1e-8)
        spectra = findings.find_spectra(model, X)
        found = np.linalg.eigvalsh(mk.center(learned))[::-1]
        assert_allclose(spectra.learned, np.clip(found / found.sum(), 0, None), atol=1e-10)
    centred = np.linalg.eigvalsh(mk.center(K))[::-1]
    assert spectra.names == ["the original kernel"]
    assert_allclose(spectra.values[0], np.clip(centred / centred.sum(), 0, None), atol=1e-8)


def test_members_on_some_rows_are_those_of_the_whole_matrix():
    model = mk.SpectralKernelClassifier(mk.Gaussian(0.5)).fit(X, Y2)
    rows = np.arange(0, 60, 3)
    K = mk.Gaussian(0.5)(X, X)
    square = 60 * (K @ K) / np.trace(K @ K)
    part = prepared_grams(model, X, rows)
    one = np.array([0.0, 1.0, 0.0])
    assert_allclose(part.combine(one).dense(), mk.center(square[np.ix_(rows, rows)]), atol=1e-9)
    with pytest.raises(ValueError, match="not the sample that the estimator was fitted to"):
        prepared_grams(model, X[:20], np.arange(20))


def test_points_without_a_label_are_coloured_by_what_was_found(tmp_path):
    y = np.where(X[:, 0] > 0, 1, 0)
    y[::2] = -1
    model = mk.SpectralKernelClassifier(mk.Gaussian(0.5)).fit(X, y)
    assert unlabelled(model, y).sum() == 30
    assert_allclose(target_columns(model, y)[:, 0], 2.0 * model.transduction_ - 1)
    raw = write_report(model, X, y, tmp_path / "p.html").read_text(encoding="utf-8")
    points = section(raw, "points")
    assert "label that was found" in points and ": -1<" not in points
    known = y != -1
    score = np.mean(model.predict(X)[known] == y[known])
    assert f"<dd>{score:.4f}" in raw
    # Where -1 is a class, it is one.
    signs = np.where(X[:, 0] > 0, 1, -1)
    other = mk.SpectralKernelClassifier(mk.Gaussian(0.5))
    other.transduce(X, signs, X[:5])
    assert not unlabelled(other, signs).any()


# -- others ---------------------------------------------------------------------------------------


def test_without_normalisation_the_learned_combination_is_the_learned_one():
    kernels = [mk.Linear(), mk.Polynomial(2)]  # of different sizes
    model = mk.MultiKernelRegressor(kernels, "uniform", normalize=None).fit(X, T)
    learned = sum(w * K(X, X) for w, K in zip(model.kernel_weights_, kernels, strict=True))
    expected = np.linalg.eigvalsh(mk.center(learned))[::-1]
    found = findings.find_spectra(model, X).learned
    assert_allclose(found, np.clip(expected / expected.sum(), 0, None), atol=1e-12)


def test_ensembles_show_how_good_each_hypothesis_is_alone(tmp_path):
    model, points, target = fitted("ensemble")
    raw = write_report(model, points, target, tmp_path / "p.html").read_text(encoding="utf-8")
    assert all(f"{score:.3f}" in section(raw, "weights") for score in model.kernel_scores_)
    assert "Learned combination" not in section(raw, "points")
    assert "gap of the weights" in raw


@pytest.mark.filterwarnings("ignore:The signed combination")
def test_negative_weights_are_marked(tmp_path):
    model, points, target = fitted("signed")
    assert (model.kernel_weights_ < 0).any()
    raw = write_report(model, points, target, tmp_path / "p.html").read_text(encoding="utf-8")
    assert section(raw, "weights").count(" minus") == (model.kernel_weights_ < 0).sum()
    assert "Negative weights are hatched" in raw


@pytest.mark.parametrize(
    "name, text",
    [
        ("Linear()", "Linear()"),
        ("acids: Polynomial(degree=2, coef0=1)", "acids: Polynomial(degree=2, c…"),
        ("a very long view indeed: Linear()", "a very long view in…: Linear()"),
        ("x" * 40, "x" * 29 + "…"),
    ],
)
def test_names_are_cut_so_that_they_can_be_told_apart(name, text):
    assert short(name, 30) == text and len(text) <= 30


def test_a_page_is_not_computed_for_a_place_that_is_not_there(tmp_path):
    model, points, target = fitted("one kernel")
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere"):
        write_report(model, points, target, tmp_path / "nowhere" / "p.html")
