"""One HTML page about a fitted model, with nothing outside it."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from .._places import check_place
from .._version import __version__
from ..estimators.weights import Weights
from . import proofs, sections, svg, validation
from .about import DataSummary
from .sample import n_rows, unlabelled
from .sections import ReportedModel

#: The browser itself refuses to fetch anything for the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


#: Anchor, name in the list of sections, heading, and what writes it.
SECTIONS: tuple[tuple[str, str, str, Callable[[ReportedModel], str]], ...] = (
    ("weights", "Weights", "What was learned", sections.weights_section),
    ("alignments", "Alignments", "Which kernels say the same", sections.alignments_section),
    ("spectrum", "Spectrum", "How complex the kernels are", sections.spectrum_section),
    ("points", "Points", "The points as the kernels see them", sections.embedding_section),
    ("path", "Path", "The search for parameters", validation.path_section),
    ("stability", "Stability", "Would other points change it?", validation.stability_section),
    ("leaderboard", "Leaderboard", "Against other methods", validation.leaderboard_section),
    ("convergence", "Convergence", "Was the optimum reached?", validation.convergence_section),
    ("certificate", "Certificate", "What is proven", proofs.certificate_section),
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
        The training sample; y is None for a one-class machine. Pictures that need an n x n matrix
        are made from at most 2,000 points, and say so.
    path : str or path
        The file to write. An existing one is replaced.
    cv_results : mapping, optional
        A comparison with other methods as ``multikernel compare --json`` prints it.
    title : str, optional
        What the page is called.
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
            "A report is about a model whose predict can be compared with targets; got "
            f"{type(estimator).__name__}. Draw it with mk.plot.weights, mk.plot.alignments or "
            "mk.plot.embedding."
        )
    estimator._check_X(X, reset=False)
    if y is None and not hasattr(estimator, "offset_"):
        raise ValueError("A report needs the targets y that the estimator was fitted to; got None.")
    if y is not None and len(y) != n_rows(X):
        raise ValueError(
            f"X and y must have the same number of points; got {n_rows(X)} and {len(y)}."
        )
    model = ReportedModel(estimator, X, y, weights, board, about or DataSummary())
    path.write_text(render(model, title), encoding="utf-8")
    return path


def render(model: ReportedModel, title: str | None) -> str:
    """The page as text."""
    body = "".join(_section(model, name, heading, make) for name, _, heading, make in SECTIONS)
    links = "".join(f'<li><a href="#{name}">{short}</a></li>' for name, short, _, _ in SECTIONS)
    name = type(model.estimator).__name__
    title = title or f"{name}: which kernels to trust"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title>\n<style>\n{_template('page.css')}</style></head>\n<body>"
        '<a class="skip" href="#weights">To the weights</a>'
        f'<header><p class="kicker">multikernel {__version__} · {escape(name)}</p>'
        f'<h1>{escape(title)}</h1><p class="lead">{_lead(model)}</p>{_tiles(model)}</header>\n'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>{body}'
        f"{_parameters(model)}</main>\n"
        "<footer><p>Point at anything for its numbers. With the keyboard: Tab goes to a picture, "
        "arrow keys go from mark to mark in it, Enter switches a kernel on and off.</p></footer>"
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
        # One section that does not apply to this model must not cost the others.
        body = f'<p class="absent">Not shown: {escape(str(error))}</p>'
    head = f'<h2 id="{name}-h">{heading}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-h">{head}{body}</section>\n'


def _lead(model: ReportedModel) -> str:
    weights = model.weights
    p, used = len(weights.names), weights.n_used
    rule = getattr(model.estimator, "weighting_", getattr(model.estimator, "weighting", None))
    by = f", weighed by <em>{escape(str(rule))}</em>" if rule is not None else ""
    text = f"{p:,} kernel{'s' if p > 1 else ''} on {n_rows(model.X):,} points{by}. "
    if not used:
        return text + "No kernel got any weight."
    first = int(weights.order[0])
    share = sections.percent(float(weights.shares[first]))
    text += f"{used:,} of them {'are' if used > 1 else 'is'} in use" if p > 1 else "It is in use"
    if p > 1:
        name = escape(weights.names[first])
        text += f"; the largest weight, {share} of the total, went to <strong>{name}</strong>"
    views = weights.views
    if len(views) > 1:
        view, part = next(iter(views.items()))
        text += f"; the most trusted view is <strong>{escape(view)}</strong>, with "
        text += sections.percent(part)
    return text + "."


def _tiles(model: ReportedModel) -> str:
    fits, weights = model.estimator, model.weights
    tiles = [
        (
            "kernels in use",
            f"{weights.n_used:,} of {len(weights.names):,}",
            f"as even as {weights.effective:.1f} equal weights",
        )
    ]
    alignment = getattr(fits, "alignment_", None)
    singles = sections.target_alignments(fits)
    if alignment is not None and singles is not None:
        value = float(np.mean(alignment))
        tiles.append(
            ("alignment with target", f"{value:.3f}", f"best single kernel {singles.max():.3f}")
        )
    if hasattr(fits, "best_score_"):
        folds = f"{fits.n_splits_} folds, the best of a search"
        tiles.append(("cross-validated score", f"{fits.best_score_:.4f}", folds))
    elif hasattr(fits, "score") and model.y is not None:
        what = "accuracy" if hasattr(fits, "classes_") else "R²"
        score = f"{_score(model):.4f}"
        tiles.append((f"{what} on these points", score, "the training sample, not new points"))
    if hasattr(fits, "support_"):
        n, support = n_rows(model.X), len(fits.support_)
        part = f"{100 * support / n:.0f} % of {n:,}"
        tiles.append(("points with a coefficient", f"{support:,}", part))
    tiles.append(("duality gap", f"{float(fits.duality_gap_):.1g}", "relative, proven by the fit"))
    cells = "".join(
        f"<div><dt>{what}</dt><dd>{value}<small>{more}</small></dd></div>"
        for what, value, more in tiles
    )
    return f'<dl class="tiles">{cells}</dl>'


def _score(model: ReportedModel) -> float:
    """On the points that came with a target."""
    known = np.flatnonzero(~unlabelled(model.estimator, model.y))
    if len(known) == n_rows(model.X):
        return float(model.estimator.score(model.X, model.y))
    return float(np.mean(model.estimator.predict(model.X)[known] == np.asarray(model.y)[known]))


def _parameters(model: ReportedModel) -> str:
    """How to make the model again."""
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
