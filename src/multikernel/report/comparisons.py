"""Plots that compare several models, by norm or by sample size (Kloft 2011, chapter 5).

Public as functions of ``mk.plot``. A cell is a fitted model or a list of them, one for each
repetition; means are drawn, with standard errors where there are several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..bounds.bound_factor import axes as axes_or_new
from ..bounds.bound_factor import learned_block_norms
from ..estimators.weights import Weights
from .svg import short

__all__ = ["block_norms", "compare_weights", "scores_by_norm", "scores_by_size"]

#: Maximum numbers of kernels in a grouped bar chart, and of curves in a plot of block norms.
MAX_KERNELS_COMPARED, MAX_CURVES = 20, 10


def compare_weights(
    models: Mapping[Any, Any], ax: Any = None, *, most: int = MAX_KERNELS_COMPARED
) -> Any:
    """Shares of the kernel weights of several models, as groups of bars in the bank's order.

    Parameters
    ----------
    models : mapping from label to fitted estimator, or to a list of them
        All with the same kernels. For a list, the mean and the standard error are plotted.
    ax : matplotlib axes, optional
    most : int, default=20
        Kernels to show: those with the largest share in any of the models.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = {
    ...     f"p = {p}": mk.MultiKernelClassifier(weighting=mk.LpNorm(p)).fit(X, y)
    ...     for p in (1, 1.5, 2)
    ... }
    >>> mk.plot.compare_weights(models).get_xlabel()
    'share of the weights'
    """
    found = {label: [Weights.of(m) for m in _listed(cell)] for label, cell in _cells(models)}
    names = same_names([w.names for cell in found.values() for w in cell])
    return draw_weights(
        names,
        {label: np.stack([w.shares for w in cell]) for label, cell in found.items()},
        ax,
        most=most,
    )


def block_norms(
    fits: Mapping[Any, Any], ax: Any = None, *, most: int = MAX_CURVES, x_label: str = "samples n"
) -> Any:
    """Block norms of the learned functions against the sample size, one curve per kernel.

    Curves show which kernels fade as the sample grows. The norms of a model are divided by their
    sum. See :func:`multikernel.bounds.learned_block_norms`.

    Parameters
    ----------
    fits : mapping from number to (fitted estimator, X), or to a list of such pairs
        X is the sample that the estimator was fitted to. The numbers, usually sample sizes, form
        the horizontal axis.
    ax : matplotlib axes, optional
    most : int, default=10
        Kernels to show: those with the largest share at any size.
    x_label : str, default="samples n"
        Label of the horizontal axis.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bank = mk.default_bank(X)
    >>> def fit(n):
    ...     return mk.MultiKernelClassifier(bank, mk.LpNorm(4 / 3)).fit(X[:n], y[:n]), X[:n]
    >>> ax = mk.plot.block_norms({n: fit(n) for n in (100, 200, 400)})
    >>> len(ax.get_lines()) > 1
    True
    """
    pairs = {size: [cell] if isinstance(cell, tuple) else list(cell) for size, cell in _cells(fits)}
    names = same_names([Weights.of(model).names for cell in pairs.values() for model, _ in cell])
    shares = {
        size: np.stack([norm_shares(learned_block_norms(model, X)) for model, X in cell])
        for size, cell in pairs.items()
    }
    return draw_block_norms(names, shares, ax, most=most, x_label=x_label)


def scores_by_size(
    scores: Mapping[Any, Mapping[int, Any]], ax: Any = None, *, measure: str = "score"
) -> Any:
    """Scores against the sample size, one curve per model: mean and standard error.

    Parameters
    ----------
    scores : mapping from label to a mapping from sample size to scores
        Scores are a number, or one for each repetition.
    ax : matplotlib axes, optional
    measure : str, default="score"
        Name of the score, the label of the vertical axis.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import multikernel as mk
    >>> scores = {"p = 1": {50: [0.7, 0.8], 100: [0.9, 0.8]}, "p = 2": {50: 0.8, 100: 0.8}}
    >>> [line.get_label() for line in mk.plot.scores_by_size(scores).containers]
    ['p = 1', 'p = 2']
    """
    ax = axes(ax)
    for label, by_size in _cells(scores):
        sizes = sorted(by_size)
        means, errors = _means([by_size[n] for n in sizes])
        ax.errorbar(sizes, means, errors, fmt="o-", ms=4, capsize=3, label=str(label))
    _size_axis(ax, sorted({n for by_size in scores.values() for n in by_size}))
    ax.set_xlabel("samples n")
    ax.set_ylabel(measure)
    key_beside(ax)
    return ax


def scores_by_norm(
    scores: Mapping[Any, Mapping[float, Any]], ax: Any = None, *, measure: str = "score"
) -> Any:
    """Scores against the block norm p, one curve per label, the best p of each marked.

    The horizontal axis is ``1 - 1/p``, so that infinity has a place on it.

    Parameters
    ----------
    scores : mapping from label to a mapping from p to scores
        Labels are usually sample sizes. Scores are a number, or one for each repetition.
    ax : matplotlib axes, optional
    measure : str, default="score"
        Name of the score, the label of the vertical axis; larger is better.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import multikernel as mk
    >>> scores = {"n = 50": {1.0: [0.7, 0.8], 4 / 3: [0.9, 0.8], float("inf"): [0.5, 0.6]}}
    >>> ax = mk.plot.scores_by_norm(scores)
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['1', '1.33', 'inf']
    """
    ax = axes(ax)
    for label, by_norm in _cells(scores):
        norms = sorted(by_norm)
        means, errors = _means([by_norm[p] for p in norms])
        places = place_of_norm(norms)
        bars = ax.errorbar(places, means, errors, fmt="o-", ms=3, capsize=3, label=str(label))
        best = int(np.argmax(means))
        ax.plot(places[best], means[best], "o", ms=9, color=bars.lines[0].get_color())
    norm_axis(ax, sorted({float(p) for by_norm in scores.values() for p in by_norm}))
    ax.set_ylabel(measure)
    key_beside(ax)
    return ax


# -- drawing numbers ------------------------------------------------------------------------------


def draw_weights(
    names: Sequence[str], shares: Mapping[Any, np.ndarray], ax: Any, *, most: int
) -> Any:
    """Groups of bars; ``shares`` has an array of shape (repetitions, kernels) for each label."""
    means = np.stack([values.mean(axis=0) for values in shares.values()])
    shown = np.sort(np.argsort(-means.max(axis=0), kind="stable")[:most])
    ax = axes(ax)
    tall = 0.8 / len(shares)
    places = np.arange(len(shown))
    for j, (label, values) in enumerate(shares.items()):
        offset = (j - (len(shares) - 1) / 2) * tall
        _, errors = _means(list(values.T))
        bars = errors[shown] if len(values) > 1 else None
        ax.barh(places + offset, means[j][shown], tall, xerr=bars, label=str(label), color=f"C{j}")
    ax.set_yticks(places, [short(names[k], 40) for k in shown])
    ax.invert_yaxis()
    ax.set_xlabel("share of the weights")
    if len(shown) < len(names):
        ax.set_title(f"the {len(shown)} largest of {len(names)} kernels", fontsize="medium")
    key_beside(ax)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def draw_block_norms(
    names: Sequence[str],
    shares: Mapping[Any, np.ndarray],
    ax: Any,
    *,
    most: int = MAX_CURVES,
    x_label: str = "samples n",
) -> Any:
    """Curves; ``shares`` has an array of shape (repetitions, kernels) for each size."""
    sizes = sorted(shares)
    largest = np.stack([shares[n].mean(axis=0) for n in sizes]).max(axis=0)
    shown = np.sort(np.argsort(-largest, kind="stable")[:most])
    ax = axes(ax)
    for j, k in enumerate(shown):
        means, errors = _means([shares[n][:, k] for n in sizes])
        style = "o-" if j < 10 else "s--"
        ax.errorbar(sizes, means, errors, fmt=style, ms=4, capsize=3, label=short(names[k], 32))
    _size_axis(ax, sizes)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel(x_label)
    ax.set_ylabel("share of the block norms")
    if len(shown) < len(names):
        ax.set_title(f"the {len(shown)} largest of {len(names)} kernels", fontsize="medium")
    key_beside(ax)
    return ax


def norm_shares(norms: np.ndarray) -> np.ndarray:
    """Shares of the block norms of each predictor, averaged over the predictors."""
    totals = norms.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(norms, totals, out=np.zeros_like(norms), where=totals > 0).mean(0))


def place_of_norm(norms: Any) -> np.ndarray:
    """``1 - 1/p``: 0 at p = 1, 1/2 at p = 2, 1 at infinity."""
    return 1.0 - 1.0 / np.asarray(norms, dtype=np.float64)


def norm_axis(ax: Any, norms: Sequence[float]) -> None:
    """Label the norms on an axis of `place_of_norm`, except where labels would overlap."""
    shown: list[float] = []
    for p in norms:
        if not shown or place_of_norm(p) - place_of_norm(shown[-1]) >= 0.08:
            shown.append(p)
    ax.set_xticks(place_of_norm(shown), [f"{p:.3g}" for p in shown])
    ax.set_xlabel("block norm p")


def same_names(names: Sequence[Sequence[str]]) -> list[str]:
    """The kernel names of the models; raise an error if they differ."""
    first = list(names[0])
    for other in names[1:]:
        if list(other) != first:
            strange = next((n for n in other if n not in first), None)
            told = f"{len(first)} and {len(other)}" if strange is None else repr(strange)
            raise ValueError(
                f"The models to compare must have the same kernels in the same order; got {told}. "
                "Fit them with the same bank, such as mk.default_bank(X)."
            )
    return first


# -- cells ----------------------------------------------------------------------------------------


def _cells(mapping: Any) -> list[tuple[Any, Any]]:
    if not isinstance(mapping, Mapping) or not mapping:
        came = "an empty one" if isinstance(mapping, Mapping) else type(mapping).__name__
        raise TypeError(
            "Comparison plots need a mapping from labels to models or scores, such as {'p = 1': "
            f"model}}; got {came}."
        )
    return list(mapping.items())


def _listed(cell: Any) -> list[Any]:
    if isinstance(cell, (list, tuple)):
        if not cell:
            raise ValueError("A list of models is empty: pass at least one model for each label.")
        return list(cell)
    return [cell]


def _means(cells: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of each cell; the error of a single value is 0."""
    values = [np.atleast_1d(np.asarray(cell, dtype=np.float64)) for cell in cells]
    means = np.array([v.mean() for v in values])
    errors = [v.std(ddof=1) / np.sqrt(len(v)) if len(v) > 1 else 0.0 for v in values]
    return means, np.array(errors)


def axes(ax: Any) -> Any:
    """The given axes, or those of a new figure with room for a legend beside them."""
    if ax is None:
        ax = axes_or_new(None)
        ax.figure.set_layout_engine("constrained")
    return ax


def key_beside(ax: Any) -> None:
    """Put the legend right of the axes: curves with error bars leave no room inside."""
    ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def _size_axis(ax: Any, sizes: Sequence[int]) -> None:
    """Use the sizes as ticks, on a logarithmic axis if they span a factor of four or more."""
    if min(sizes) > 0 and max(sizes) >= 4 * min(sizes):
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.set_xticks(sizes, [f"{n:g}" for n in sizes])
