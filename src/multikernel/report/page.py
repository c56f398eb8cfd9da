"""A self-contained HTML page about a fitted model."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from .._places import check_place, write_atomically
from .._version import __version__
from ..estimators.assessment import assess, scoring_name
from ..estimators.weights import Weights
from . import proofs, samples, sections, svg, validation
from .about import DataSummary
from .headline import lead
from .predictions import predictions_section
from .sample import n_rows, unlabelled
from .sections import ReportedModel

#: Content security policy: the browser fetches nothing for the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


#: Anchor, name in the navigation, heading and function of each section; empty ones are left out.
SECTIONS: tuple[tuple[str, str, str, Callable[[ReportedModel], str]], ...] = (
    ("predictions", "Predictions", "How good are the predictions?", predictions_section),
    ("weights", "Weights", "Which kernels were used", sections.weights_section),
    ("columns", "Columns", "Which columns matter", samples.columns_section),
    ("samples", "Samples", "Which samples are wrong, and why", samples.samples_section),
    ("leaderboard", "Leaderboard", "Comparison with other methods", validation.leaderboard_section),
    ("stability", "Stability", "Are the weights stable?", validation.stability_section),
    ("alignments", "Alignments", "Which kernels are alike", sections.alignments_section),
    ("spectrum", "Spectrum", "How complex the kernels are", sections.spectrum_section),
    ("points", "Map", "The samples as the kernels see them", sections.embedding_section),
    ("path", "Search", "The parameter search", validation.path_section),
    ("convergence", "Convergence", "Was the optimum reached?", validation.convergence_section),
    ("certificate", "Certificate", "What is proven", proofs.certificate_section),
    ("data", "Data", "The data", samples.data_section),
    ("next", "Next", "What to do next", samples.next_section),
)


def write_report(
    estimator: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    cv_results: Any = None,
    title: str | None = None,
    about: DataSummary | None = None,
) -> pathlib.Path:
    """Write a self-contained HTML page about a fitted estimator.

    Parameters
    ----------
    estimator : fitted multiple-kernel estimator
    X, y
        The training sample; y is None for a one-class model. With other samples the page shows
        how well the model predicts them, and leaves out what needs the training sample. Charts
        that need an n x n matrix use at most 2,000 samples, and say so.
    path : str or path
        The file to write. An existing file is replaced.
    cv_results : mapping, optional
        A comparison with other methods as ``multikernel compare --json`` prints it.
    title : str, optional
        Title of the page.
    about : DataSummary, optional
        Where the sample came from: names of columns, what was dropped or filled in, commands.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import multikernel as mk
    >>> from multikernel.report import write_report
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mk.MultiKernelClassifier().fit(X, y)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_report(model, X, y, folder / "iris.html", title="Iris").name
    'iris.html'
    """
    path = check_place(path)
    board = validation.check_leaderboard(cv_results)
    weights = Weights.of(estimator)
    if not estimator._predicts_targets:
        raise TypeError(
            "A report needs a model whose predictions can be compared with targets; got "
            f"{type(estimator).__name__}. Plot it with mk.plot.weights, mk.plot.alignments or "
            "mk.plot.embedding."
        )
    estimator._check_X(X, reset=False)
    if y is None and not hasattr(estimator, "offset_"):
        raise ValueError("A report needs the targets y that the estimator was fitted to; got None.")
    if y is not None and len(y) != n_rows(X):
        raise ValueError(
            f"X and y must have the same number of samples; got {n_rows(X)} and {len(y)}."
        )
    model = ReportedModel(estimator, X, y, weights, board, about or DataSummary())
    return write_atomically(path, render(model, title))


def render(model: ReportedModel, title: str | None) -> str:
    """The page as text."""
    written = [
        (name, short, _section(model, name, heading, make))
        for name, short, heading, make in SECTIONS
    ]
    written = [one for one in written if one[2]]
    body = "".join(text for _, _, text in written)
    links = "".join(f'<li><a href="#{name}">{short}</a></li>' for name, short, _ in written)
    name = type(model.estimator).__name__
    title = title or f"{name}: learned kernel weights"
    n_colours = max(len(model.weights.names), len(getattr(model.estimator, "classes_", ())))
    style = _template("page.css") + svg.more_colours(n_colours)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style></head>\n<body>"
        '<a class="skip" href="#weights">To the weights</a>'
        f'<header><p class="kicker">multikernel {__version__} · {escape(name)}</p>'
        f'<h1>{escape(title)}</h1><p class="lead">{lead(model)}</p>{_tiles(model)}</header>\n'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>{body}'
        f"{_parameters(model)}</main>\n"
        "<footer><p>Point at any mark to see its numbers. On the keyboard, Tab moves to a chart, "
        "arrow keys move from mark to mark, and Enter switches a kernel on or off.</p></footer>"
        '<div id="tip" role="status" hidden></div>'
        f"\n<script>\n{_template('page.js')}</script>\n</body></html>\n"
    )


def _template(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _section(
    model: ReportedModel, name: str, heading: str, make: Callable[[ReportedModel], str]
) -> str:
    try:
        body = make(model)
    except (ValueError, TypeError, NotImplementedError, np.linalg.LinAlgError) as error:
        # If a section does not apply to this model, the others are still written.
        body = f'<p class="absent">Not shown: {escape(str(error))}</p>'
    if not body:
        return ""
    head = f'<h2 id="{name}-h">{heading}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-h">{head}{body}</section>\n'


def _tiles(model: ReportedModel) -> str:
    fits, weights = model.estimator, model.weights
    tiles = _score_tiles(model)
    tiles += [
        (
            "kernels in use",
            f"{weights.n_used:,} of {len(weights.names):,}",
            f"effective number: {weights.effective:.1f}",
        )
    ]
    alignment = getattr(fits, "alignment_", None)
    singles = sections.target_alignments(fits)
    if alignment is not None and singles is not None:
        value = float(np.mean(alignment))
        tiles.append(
            ("alignment with target", f"{value:.3f}", f"best single kernel {singles.max():.3f}")
        )
    if getattr(fits, "approximation_", None) is not None:
        made = fits.approximation_.n_features
        tiles.append(("features", f"{made:,}", "approximate the kernels"))
    elif hasattr(fits, "support_"):
        n, support = fits.plan_.n_samples, len(fits.support_)
        part = f"{100 * support / n:.0f} % of {n:,}"
        what = "support vectors" if hasattr(fits, "classes_") else "samples used for predictions"
        tiles.append((what, f"{support:,}", part))
    gap = float(fits.duality_gap_)
    solved = "solved to optimality" if gap < 1e-3 else "not solved to optimality"
    tiles.append(("duality gap", f"{gap:.1g}", f"relative; {solved}"))
    if hasattr(fits, "weights_gap_"):
        found = "relative; from held-out predictions"
        tiles.append(("gap of the weights", f"{fits.weights_gap_:.1g}", found))
    cells = "".join(
        f"<div><dt>{what}</dt><dd>{value}<small>{more}</small></dd></div>"
        for what, value, more in tiles
    )
    return f'<dl class="tiles">{cells}</dl>'


def _score_tiles(model: ReportedModel) -> list[tuple[str, str, str]]:
    """The score on held-out samples beside the baseline, else that on the training samples."""
    fits = model.estimator
    classifies = hasattr(fits, "classes_")
    verdict = assess(fits, model.y) if model.y is not None and model.is_own else None
    if verdict is not None:
        first = verdict.measured[0]
        beside = f"± {first.standard_error:.3f}; {verdict.baseline}: {first.baseline:.3f}"
        return [(f"{first.name}, {verdict.n_splits} folds", f"{first.score:.4f}", escape(beside))]
    if hasattr(fits, "best_score_") and model.is_own:
        name = scoring_name(fits.scoring, classifies)
        return [
            (f"{name}, {fits.n_splits_} folds", f"{fits.best_score_:.4f}", "the best of a search")
        ]
    if not hasattr(fits, "score") or model.y is None:
        return []
    what = "accuracy" if classifies else "R²"
    which = "the training sample, not new ones" if model.is_own else "not the training sample"
    which = "kept out of the fit" if model.about.kept_out else which
    return [(f"{what} on these samples", f"{_score(model):.4f}", which)]


def _score(model: ReportedModel) -> float:
    """The score on the samples with a target."""
    known = np.flatnonzero(~unlabelled(model.estimator, model.y))
    if len(known) == n_rows(model.X):
        return float(model.estimator.score(model.X, model.y))
    return float(np.mean(model.estimator.predict(model.X)[known] == np.asarray(model.y)[known]))


def _parameters(model: ReportedModel) -> str:
    """The plan of the bank and all parameters of the estimator."""
    options = model.estimator.get_params(deep=False)
    rows = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td>{escape(svg.short(repr(value), 300))}</td></tr>'
        for key, value in options.items()
    )
    plan = escape(str(model.estimator.plan_))
    return (
        f'<section id="parameters"><h2>Parameters</h2><pre>{plan}</pre><details><summary>All '
        'parameters of the estimator</summary><div class="scroll"><table><tbody>'
        f"{rows}</tbody></table></div></details></section>"
    )
