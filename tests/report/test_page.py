"""The report: one page, nothing outside it, everything on it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import multikernel as mk
from multikernel.estimators.voted import VotedKernelClassifier
from multikernel.estimators.weights import Weights
from multikernel.report import findings, held_out, write_report
from multikernel.report.labels import short_labels
from multikernel.report.page import SECTIONS
from multikernel.report.svg import Scale, power
from tests.report.pages import LABEL, VIEW, Page, leaderboard, searched, section, two_views


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    model, X, y = searched()
    path = tmp_path_factory.mktemp("page") / "page.html"
    written = write_report(model, X, y, path, cv_results=leaderboard().to_dict(), title="A <title>")
    assert written == path
    return model, X, y, path.read_text(encoding="utf-8")


def render(model, X, y, tmp_path, **options):
    return write_report(model, X, y, tmp_path / "p.html", **options).read_text(encoding="utf-8")


# -- the page -------------------------------------------------------------------------------------


def test_tags_are_balanced_and_all_sections_are_there(report):
    *_, raw = report
    page = Page(raw)
    ids = [a.get("id") for t, a in page.tags if t == "section"]
    assert ids == [name for name, *_ in SECTIONS] + ["parameters"]
    assert [a["href"][1:] for t, a in page.tags if t == "a"][1:] == ids[:-1]
    assert "Not shown" not in page.text
    # Every link of the page leads somewhere on it.
    known = {a["id"] for _, a in page.tags if a.get("id")}
    assert {a["href"][1:] for t, a in page.tags if t == "a"} <= known


def test_nothing_is_fetched_from_anywhere(report):
    *_, raw = report
    page = Page(raw)
    for tag, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "action", "poster", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:,")), (tag, value)
    assert tag_names(page).isdisjoint({"iframe", "object", "embed", "img", "base", "form"})
    assert not re.search(r"https?:|@import|url\(|fetch\(|XMLHttpRequest|WebSocket|import\(", raw)
    assert "default-src 'none'" in raw


def tag_names(page: Page) -> set[str]:
    return {tag for tag, _ in page.tags}


def test_names_are_escaped(report):
    *_, raw = report
    for harmful in (VIEW, LABEL, "A <title>", "forest <i>", "no such <thing>"):
        assert harmful not in raw
        assert harmful in Page(raw).text
    assert Page(raw).count("script") == 1


def test_the_page_says_everything_without_its_script(report):
    model, _, _, raw = report
    page = Page(re.sub(r"<script>.*?</script>", "", raw, flags=re.S))
    for name, weight in zip(short_labels(model.kernel_names_), model.kernel_weights_, strict=True):
        assert name in page.text
        assert f"{weight:.3g}" in page.text
    assert f"{model.best_score_:.4f}" in page.text
    assert all(row.name in page.text for row in leaderboard().rows)
    assert not any("hidden" in attributes and attributes.get("id") != "tip"
                   for _, attributes in page.tags)  # fmt: skip


def test_every_picture_has_its_marks(report):
    model, X, y, raw = report
    p, n, folds = len(model.kernel_names_), len(X), 5

    assert section(raw, "alignments").count('class="cell') == p * p + p  # and the target
    assert section(raw, "spectrum").count("<polyline") == p + 1  # and the learned one
    assert section(raw, "points").count("<circle") == 3 * n
    assert section(raw, "path").count('class="err') == 9
    assert section(raw, "path").count('class="cell') == 9  # the map over C and p
    ever = np.any(held_out.find_refits(model, X, y).shares > 0, axis=0)
    assert section(raw, "stability").count("<circle") == folds * ever.sum() > 0
    assert section(raw, "leaderboard").count("<svg") == 4
    assert section(raw, "convergence").count("<polyline") == 1
    assert "<svg" not in section(raw, "certificate")  # vacuous: one sentence, and details
    assert "<details" in section(raw, "certificate")
    assert raw.count("<title>") > p * p + 3 * n  # every mark has a text of its own


def test_the_leaderboard_agrees_with_its_source(report):
    *_, raw = report
    board = leaderboard()
    for row in board.rows[:4]:
        assert f"{row.mean:.4f}" in raw and f"{row.standard_error:.4f}" in raw
    best = board.row("best")
    assert board.verdict(board.row("alignf")) == "better (p < 0.05)"
    body = section(raw, "leaderboard").partition("<tbody>")[2]
    assert body.index("alignf") < body.index("uniform") < body.index("forest")
    p = board.p_value(board.row("alignf"), best, corrected=True)
    assert f"[{p:.2f}]" in body


def test_pages_are_the_same_bits_each_time(report, tmp_path):
    model, X, y, raw = report
    board = leaderboard()
    assert render(model, X, y, tmp_path, cv_results=board, title="A <title>") == raw


# -- other models ---------------------------------------------------------------------------------


def test_regression_with_several_outputs(tmp_path, rng):
    X = rng.standard_normal((60, 3))
    Y = np.column_stack([X[:, 0], np.sin(X[:, 1])])
    model = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0])).fit(X, Y)
    raw = render(model, X, Y, tmp_path)
    assert "R²" in raw and "Not shown" not in Page(raw).text
    assert 'class="pt g' in raw


def test_one_class(tmp_path, rng):
    X = rng.standard_normal((60, 3))
    model = mk.MultiKernelOneClass(mk.gaussians([0.1, 1.0])).fit(X)
    page = Page(render(model, X, None, tmp_path))
    assert "outside" in page.text and "Not shown" not in page.text


def test_points_are_numbered_as_rows_and_counted(tmp_path, rng):
    X = rng.standard_normal((1010, 2))
    model = mk.MultiKernelOneClass([mk.Gaussian(0.5)], nu=0.2).fit(X)
    raw = section(render(model, X, None, tmp_path), "points")
    assert "Computed on 1,000 of the 1,010 samples" in raw
    assert "row 0:" not in raw and raw.count("<title>row ") == 1000 * raw.count("<figure>")


def test_weights_per_class(tmp_path):
    bank, X, _ = two_views()
    y = np.digitize(X[:, 0], [-1, 1])
    model = mk.MultiKernelClassifier(bank, multiclass="per_class").fit(X, y)
    raw = render(model, X, y, tmp_path)
    weights = section(raw, "weights")
    assert "By class" in weights and weights.count('class="cell') == 3 * 5
    assert "Not shown" not in raw


def test_a_vote(tmp_path):
    bank, X, y = two_views()
    model = VotedKernelClassifier(bank).fit(X, y)
    page = Page(render(model, X, y, tmp_path))
    assert "no combined kernel" in page.text and "Not shown" not in page.text
    assert Weights.of(model).values.sum() == pytest.approx(np.abs(model.terms_["coef"]).sum())


def test_precomputed_arrays(tmp_path, rng):
    X = rng.standard_normal((50, 3))
    y = X[:, 0] > 0
    K = np.stack([X @ X.T, (X @ X.T + 1) ** 2], axis=-1)
    model = mk.MultiKernelClassifier("precomputed").fit(K, y)
    assert "Not shown" not in render(model, K, y, tmp_path)


def test_data_frames_and_sparse_matrices(tmp_path, rng):
    pd = pytest.importorskip("pandas")
    sp = pytest.importorskip("scipy.sparse")
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + X[:, 1] ** 2
    frame = pd.DataFrame(X, columns=["a", "b", "c<"])
    model = mk.MultiKernelRegressor(mk.per_feature()).fit(frame, y)
    raw = render(model, frame, y, tmp_path)
    assert "c<" in Page(raw).text and "c<" not in raw and "Not shown" not in raw
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    model = mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0])).fit(sparse, y)
    assert "Not shown" not in render(model, sparse, y, tmp_path)


def test_large_samples_are_drawn_from_and_the_page_says_so(tmp_path, monkeypatch):
    for name in ("ALIGNMENT_POINTS", "SPECTRUM_POINTS", "SCATTER_POINTS"):
        monkeypatch.setattr(findings, name, 40)
    monkeypatch.setattr(held_out, "REFIT_POINTS", 40)
    bank, X, y = two_views()
    model = mk.MultiKernelClassifier(bank).fit(X, y)
    raw = render(model, X, y, tmp_path)
    for name in ("alignments", "spectrum", "points", "stability"):
        assert "40 of the 90 samples" in section(raw, name), name
    assert section(raw, "points").count("<circle") == 3 * 40


def test_many_kernels_are_folded_away(tmp_path, rng):
    X = rng.standard_normal((50, 90))
    y = X[:, 0] + X[:, 1] > 0
    model = mk.MultiKernelClassifier(mk.per_feature(), weighting="align").fit(X, y)
    raw = render(model, X, y, tmp_path)
    page = Page(raw)
    assert "50 other kernels" in page.text
    assert "Of 90 kernels the 60 with the largest weights" in page.text
    assert all(name in page.text for name in model.kernel_names_)


def test_a_model_without_its_sample_keeps_the_other_sections(tmp_path, rng):
    """Certificates are about the training sample; on other points the page does without."""
    bank, X, y = two_views()
    model = mk.MultiKernelClassifier(bank).fit(X, y)
    page = Page(render(model, X + 0.1, y, tmp_path))
    assert "Not shown: X is not the sample" in page.text
    assert "Not shown: these are not the samples" in page.text
    assert page.text.count("Not shown") == 2


# -- refusals -------------------------------------------------------------------------------------


def test_refusals(tmp_path):
    bank, X, y = two_views()
    target = tmp_path / "p.html"
    with pytest.raises(TypeError, match="not fitted"):
        write_report(mk.MultiKernelClassifier(), X, y, target)
    model = mk.MultiKernelClassifier(bank).fit(X, y)
    with pytest.raises(ValueError, match="targets y"):
        write_report(model, X, None, target)
    with pytest.raises(ValueError, match="90 and 89"):
        write_report(model, X, y[:-1], target)
    with pytest.raises(ValueError, match="features"):
        write_report(model, X[:, :3], y, target)
    with pytest.raises(ValueError, match="compare --json"):
        write_report(model, X, y, target, cv_results={"mean_test_score": [1.0]})
    assert not target.exists()


# -- the numbers ----------------------------------------------------------------------------------


def test_alignments_are_those_of_the_matrices(rng):
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    kernels = [mk.Gaussian(0.1), mk.Gaussian(1.0), mk.Linear(), mk.Polynomial(2)]
    model = mk.MultiKernelRegressor(kernels).fit(X, y)
    found = findings.find_alignments(model, X, y[:, None])
    matrices = [kernels[k](X, X) for k in found.kernels]
    for i, K in enumerate(matrices):
        assert found.target[i] == pytest.approx(mk.centered_alignment(K, np.outer(y, y)), rel=1e-9)
        for j, L in enumerate(matrices):
            assert found.A[i, j] == pytest.approx(mk.centered_alignment(K, L), rel=1e-9)
    assert sorted(found.kernels) == [0, 1, 2, 3]
    bank = findings.find_alignments(kernels, X)
    assert_allclose(bank.A, found.A, rtol=1e-9)


def test_alignments_of_chosen_kernels_are_the_same(rng, monkeypatch):
    X, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    model = mk.MultiKernelRegressor(mk.per_feature(mk.Gaussian(0.5)), weighting="align").fit(X, y)
    order = Weights.of(model).order
    every = findings.find_alignments(model, X, y[:, None], order)
    monkeypatch.setattr(findings, "MOST_KERNELS", 3)
    some = findings.find_alignments(model, X, y[:, None], order)
    assert set(some.kernels) == set(order[:3].tolist())
    place = [every.kernels.tolist().index(k) for k in some.kernels]
    assert_allclose(some.A, every.A[np.ix_(place, place)], rtol=1e-9)
    assert_allclose(some.target, every.target[place], rtol=1e-9)


def test_like_kernels_become_neighbours():
    A = np.eye(5)
    A[0, 3] = A[3, 0] = A[1, 4] = A[4, 1] = 0.95
    order, groups = findings.cluster(A)
    place = np.argsort(order)
    assert abs(place[0] - place[3]) == 1 and abs(place[1] - place[4]) == 1
    assert groups[0] == groups[3] != groups[1] == groups[4] and len(set(groups.tolist())) == 3


def test_spectra_and_embeddings_are_those_of_the_centred_matrices(rng):
    from sklearn.decomposition import KernelPCA

    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    kernels = [mk.Gaussian(0.1), mk.Gaussian(1.0)]
    model = mk.MultiKernelRegressor(kernels).fit(X, y)
    spectra = findings.find_spectra(model, X)
    for k, values in zip(spectra.kernels, spectra.values, strict=True):
        expected = np.linalg.eigvalsh(mk.center(kernels[k](X, X)))[::-1]
        assert_allclose(values, np.clip(expected / expected.sum(), 0, None), atol=1e-12)
    centred = [mk.normalize(mk.center(K(X, X)), "multiplicative") for K in kernels]
    learned = sum(w * K for w, K in zip(model.kernel_weights_, centred, strict=True))
    expected = np.linalg.eigvalsh(learned)[::-1]
    assert_allclose(spectra.learned, np.clip(expected / expected.sum(), 0, None), atol=1e-12)

    rows, found = findings.find_embeddings(model, X)
    assert_allclose(rows, np.arange(40))
    points = KernelPCA(2, kernel="precomputed").fit_transform(learned)
    points /= np.abs(points).max()
    assert_allclose(np.abs(found[0].points), np.abs(points), atol=1e-6)
    assert_allclose(found[0].explained, (expected / expected.sum())[:2], rtol=1e-9)


def test_stability_is_that_of_fits_by_hand():
    from sklearn.model_selection import StratifiedKFold

    bank, X, y = two_views()
    model = mk.MultiKernelClassifierCV(bank, ["uniform", "alignf"], cv=3).fit(X, y)
    found = held_out.find_refits(model, X, y)
    plain = mk.MultiKernelClassifier(bank, model.weighting_, C=model.C_)
    splits = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    for share, (train, _) in zip(found.shares, splits, strict=True):
        weights = plain.fit(X[train], y[train]).kernel_weights_
        assert_allclose(share, weights / weights.sum(), rtol=1e-9)


def test_a_rare_class_costs_the_stability_only(tmp_path):
    bank, X, _ = two_views()
    y = np.zeros(len(X), dtype=int)
    y[:3] = 1
    page = Page(render(mk.MultiKernelClassifier(bank).fit(X, y), X, y, tmp_path))
    assert "fewer than 5 samples" in page.text and page.text.count("Not shown") == 1


def test_the_path_is_the_grid_of_the_search(report):
    model, *_ = report
    path = findings.find_path(model)
    results = model.cv_results_
    for i in range(9):
        line = path.labels.index(str(results["weighting"][i]))
        place = path.grid.tolist().index(results["C"][i])
        assert path.means[line, place] == results["mean_test_score"][i]
        assert path.deviations[line, place] == results["std_test_score"][i]
    assert path.means[path.best] == model.best_score_
    assert path.norms == [1.0, 1.5, 1.9]


RANGES = [(0, 1, False), (-3e-5, 2e-4, False), (5, 5, False), (1e-8, 1, True), (3, 4, True),
          (0.2, 90, True), (1.01, 1.02, True)]  # fmt: skip


@pytest.mark.parametrize("low, high, log", RANGES)
def test_ticks_are_round_numbers_within_the_axis(low, high, log):
    scale = Scale(low, high, 0.0, 100.0, log)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 11
    for value, text in ticks:
        assert -1e-6 <= scale(value) <= 100 + 1e-6
        if not set(text) & set("⁰¹²³⁴⁵⁶⁷⁸⁹"):
            assert float(text) == pytest.approx(value, rel=1e-4, abs=1e-12)


def test_powers():
    assert [power(v) for v in (1e-8, 1e-3, 0.01, 1000.0, 1e6)] == [
        "10⁻⁸", "10⁻³", "0.01", "1000", "10⁶"]  # fmt: skip
