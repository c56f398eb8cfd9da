"""Pictures in Python."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import multikernel as mk
from multikernel.bounds import AssumptionError
from multikernel.estimators.notebook import weights_table
from multikernel.report import findings, plots
from multikernel.report.sample import target_columns
from tests.report.pages import VIEW, searched, two_views

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def fitted():
    return searched()


@pytest.fixture(scope="module")
def pictures(fitted):
    model, X, y = fitted
    return {
        "weights": lambda ax=None: plots.weights(model, ax=ax),
        "alignments": lambda ax=None: plots.alignments(model, X, y, ax=ax),
        "target alignments": lambda ax=None: plots.alignments(model, ax=ax),
        "path": lambda ax=None: plots.path(model, ax=ax),
        "convergence": lambda ax=None: plots.convergence(model, ax=ax),
        "spectrum": lambda ax=None: plots.spectrum(model, X, ax=ax),
        "certificate": lambda ax=None: plots.certificate(model, X, y, ax=ax),
    }


NAMES = ("weights", "alignments", "target alignments", "path", "convergence", "spectrum")


@pytest.mark.parametrize("name", [*NAMES, "certificate"])
def test_axes_are_taken_and_returned(pictures, name):
    _, ax = plt.subplots()
    assert pictures[name](ax=ax) is ax
    assert ax.has_data()
    ax.figure.canvas.draw()
    other = pictures[name]()
    assert other is not ax and other.figure is not ax.figure
    assert ax.get_xlabel() or name == "alignments"


def test_bars_are_the_weights(fitted):
    model, _, _ = fitted
    ax = plots.weights(model)
    widths = [bar.get_width() for bar in ax.patches]
    assert_allclose(widths, np.sort(model.kernel_weights_)[::-1])
    labels = [text.get_text() for text in ax.get_yticklabels()]
    order = np.argsort(-model.kernel_weights_, kind="stable")
    assert labels == [model.kernel_names_[k] for k in order]
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {VIEW, "noise"}
    assert len(plots.weights(model, most=2).patches) == 2


def test_dots_are_the_weights_of_the_classes():
    bank, X, _ = two_views()
    y = np.digitize(X[:, 0], [-1, 1])
    model = mk.MultiKernelClassifier(bank, multiclass="per_class").fit(X, y)
    ax = plots.weights(model)
    drawn = np.sort(np.concatenate([line.get_xdata() for line in ax.lines]))
    assert_allclose(drawn, np.sort(model.kernel_weights_.ravel()))
    assert "mean over classes" in ax.get_xlabel()
    plots.alignments(model)
    plots.convergence(model)


def test_the_heat_map_is_the_alignments(fitted):
    model, X, y = fitted
    ax = plots.alignments(model, X, y)
    found = findings.find_alignments(model, X, target_columns(model, y))
    assert_allclose(ax.images[0].get_array(), np.column_stack([found.A, found.target]))
    bank = plots.alignments(model.bank_, X)
    assert_allclose(bank.images[0].get_array(), found.A)


def test_gaps_and_scores(fitted):
    model, _, _ = fitted
    gaps = plots.convergence(model).lines[0].get_ydata()
    assert_allclose(gaps, [step["gap"] for step in model.history_])
    lines = plots.path(model).get_lines()
    drawn = np.sort(
        np.concatenate([line.get_ydata() for line in lines if len(line.get_ydata()) == 3])
    )
    assert set(np.round(model.cv_results_["mean_test_score"], 9)) <= set(np.round(drawn, 9))


def test_rules_without_a_path_show_the_gap_of_the_machine():
    bank, X, y = two_views()
    model = mk.MultiKernelClassifier(bank, weighting="alignf").fit(X, y)
    line = plots.convergence(model).lines[0]
    assert_allclose(line.get_ydata(), [max(model.duality_gap_, 1e-16)])


def test_refusals(fitted):
    model, X, _ = fitted
    with pytest.raises(TypeError, match="not fitted"):
        plots.weights(mk.MultiKernelClassifier())
    with pytest.raises(TypeError, match="got dict"):
        plots.weights({})
    with pytest.raises(ValueError, match=r"mk.plot.alignments\(bank, X\)"):
        plots.alignments(model.bank_)
    plain = mk.MultiKernelClassifier(model.bank_).fit(X, X[:, 0] > 0)
    with pytest.raises(TypeError, match="MultiKernelClassifierCV"):
        plots.path(plain)
    with pytest.raises(AssumptionError, match="class that the estimator does not know"):
        plots.certificate(model, X, np.arange(len(X)).astype(str))


def test_matplotlib_is_not_imported_before_a_picture():
    code = (
        "import sys, multikernel.report, multikernel.report.plots;"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- notebooks ------------------------------------------------------------------------------------


def test_notebooks_show_weights():
    bank, X, y = two_views()
    model = mk.MultiKernelClassifier(bank)
    before = model._repr_html_()
    assert "mk-weights" not in before and "sk-" in before
    model.fit(X, y)
    after = model._repr_html_()
    assert after.count("<table class=mk-weights>") >= 1 and "sk-" in after
    # Boxes are numbered, the rest is the same.
    shown, direct = model._repr_mimebundle_()["text/html"], model._html_repr()
    assert re.sub(r"id-\d+", "", shown) == re.sub(r"id-\d+", "", direct)
    table = weights_table(model)
    assert VIEW not in table and "&lt;b&gt;" in table
    for weight in model.kernel_weights_:
        assert f">{weight:.3g}<" in table
