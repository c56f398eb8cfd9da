"""Plots of fitted models with matplotlib, public as ``mk.plot``.

Every function draws into ``ax``, or into a new figure, and returns the axes. matplotlib is imported
by the first plot.

>>> from sklearn.datasets import load_iris
>>> import multikernel as mk
>>> X, y = load_iris(return_X_y=True)
>>> axes = mk.plot.weights(mk.MultiKernelClassifier().fit(X, y))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bounds.bound_factor import axes
from ..estimators.weights import Weights
from .answers import reliability, sample_shares
from .comparisons import block_norms, compare_weights, scores_by_norm, scores_by_size
from .embeddings import embedding
from .findings import (
    effective_rank,
    find_alignments,
    find_certificate,
    find_histories,
    find_path,
    find_spectra,
)
from .sample import target_columns
from .svg import short

__all__ = [
    "weights",
    "alignments",
    "path",
    "convergence",
    "spectrum",
    "certificate",
    "embedding",
    "sample_shares",
    "reliability",
    "compare_weights",
    "block_norms",
    "scores_by_size",
    "scores_by_norm",
]

#: Maximum number of kernels in a bar chart.
MAX_KERNELS_SHOWN = 30


def weights(estimator: Any, ax: Any = None, *, most: int = MAX_KERNELS_SHOWN) -> Any:
    """Kernel weights as bars, largest first, coloured by view where there are views.

    Parameters
    ----------
    estimator : fitted multiple-kernel estimator
    ax : matplotlib axes, optional
    most : int, default=30
        Kernels to show.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import multikernel as mk
    >>> from multikernel.report import plots
    >>> from sklearn.datasets import load_iris
    >>> model = mk.MultiKernelClassifier().fit(*load_iris(return_X_y=True))
    >>> plots.weights(model).get_xlabel()
    'weight'
    """
    from ..kernels.bank import view_of

    found = Weights.of(estimator)
    shown = [int(k) for k in found.order[:most]]
    ax = axes(ax)
    views = list(dict.fromkeys(view_of(name) for name in found.names))
    colours = {view: f"C{j % 10}" for j, view in enumerate(views)}
    places = np.arange(len(shown))
    names = [found.names[k] for k in shown]
    ax.barh(places, found.mean[shown], color=[colours[view_of(name)] for name in names])
    if found.machines:
        # Dots show the weights of each class.
        for place, k in zip(places, shown, strict=True):
            values = found.values[:, k]
            ax.plot(values, np.full(len(values), place), "k.", ms=4, alpha=0.6)
    ax.set_yticks(places, [short(name, 40) for name in names])
    ax.invert_yaxis()
    ax.set_xlabel(found.what + (", mean over classes" if found.machines else ""))
    ax.set_title(_of(found.n_used, len(found.names), len(shown)), fontsize="medium")
    if len(views) > 1:
        from matplotlib.patches import Patch

        handles = [Patch(color=colours[view], label=view or "(no view)") for view in views]
        ax.legend(handles=handles, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _of(used: int, p: int, shown: int) -> str:
    text = f"{used} of {p} kernels in use"
    return text if shown == p else f"{text}, the {shown} largest"


def alignments(source: Any, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """Centred alignments of kernels with each other, in the order of a clustering.

    Parameters
    ----------
    source : fitted estimator, bank or list of kernels
    X : array of shape (n_samples, n_features), optional
        The sample. Without it, only the alignments of an estimator's kernels with its target are
        plotted, which a fitted model stores.
    y : array of shape (n_samples,), optional
        With it, and an estimator, one more column shows the alignment with the target.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    if X is None:
        return _target_alignments(source, ax)
    fitted = hasattr(source, "kernel_names_")
    order = Weights.of(source).order if fitted else None
    Y = target_columns(source, y) if fitted else None
    found = find_alignments(source, X, Y, order)
    ax = axes(ax)
    A = found.A if found.target is None else np.column_stack([found.A, found.target])
    p = len(found.names)
    bottom = min(0.0, float(A.min()))
    image = ax.imshow(A, vmin=bottom, vmax=1.0, cmap="viridis", aspect="equal")
    ax.set_yticks(range(p), [f"{short(name, 40)}  {i + 1}" for i, name in enumerate(found.names)])
    ticks = [str(i + 1) for i in range(p)] + ([] if found.target is None else ["target"])
    ax.set_xticks(range(len(ticks)), ticks)
    if found.target is not None:
        ax.axvline(p - 0.5, color="white", lw=3)
        ax.get_xticklabels()[-1].set_rotation(90)
    if p > 20:
        ax.tick_params(labelsize=max(4, 8 - p // 15))
    if p <= 14:
        for i, row in enumerate(A):
            for j, value in enumerate(row):
                ink = "black" if value > 0.55 else "white"
                ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=ink, fontsize=7)
    ax.figure.colorbar(image, ax=ax, label="alignment", shrink=0.8)
    text = "Alignments"
    if p < found.n_kernels:
        text += f" of the {p} largest of {found.n_kernels} kernels"
    if found.n_points < found.n_all:
        text += f", on {found.n_points} of {found.n_all} samples"
    ax.set_title(text, fontsize="medium")
    return ax


def _target_alignments(source: Any, ax: Any) -> Any:
    values = getattr(source, "kernel_alignments_", None)
    if values is None:
        raise ValueError(
            "Kernel alignments are computed on a sample: pass X, as in mk.plot.alignments(bank, "
            "X). (Without X, a fitted estimator shows its alignments with the target; "
            f"{type(source).__name__} stores none.)"
        )
    values = np.asarray(values, dtype=np.float64)
    values = values.mean(axis=0) if values.ndim == 2 else values
    order = np.argsort(-values, kind="stable")[:MAX_KERNELS_SHOWN]
    ax = axes(ax)
    ax.barh(np.arange(len(order)), values[order], color="C0")
    ax.set_yticks(np.arange(len(order)), [short(source.kernel_names_[k], 40) for k in order])
    ax.invert_yaxis()
    learned = getattr(source, "alignment_", None)
    if learned is not None:
        mean = float(np.mean(learned))
        ax.axvline(mean, color="C1", label=f"learned combination {mean:.3f}")
        ax.legend(fontsize="small", loc="lower right")
    ax.set_xlabel("alignment with the target")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def path(search: Any, ax: Any = None) -> Any:
    """Cross-validated scores over C (alpha, the penalty), one line per weighting.

    Parameters
    ----------
    search : fitted search, such as MultiKernelClassifierCV
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    found = find_path(search)
    if found is None:
        raise TypeError(
            "mk.plot.path needs a fitted search, such as MultiKernelClassifierCV().fit(X, y); got "
            f"{type(search).__name__}."
        )
    ax = axes(ax)
    for j, label in enumerate(found.labels):
        ax.errorbar(
            found.grid,
            found.means[j],
            found.deviations[j],
            fmt="o-",
            ms=4,
            capsize=3,
            color=f"C{j % 10}",
            label=label,
        )
    line, place = found.best
    best = found.grid[place], found.means[line, place]
    ax.plot(*best, "o", ms=13, mfc="none", mec="black", label="chosen")
    if np.all(found.grid > 0):
        ax.set_xscale("log")
    ax.set_xlabel(found.name)
    ax.set_ylabel("score, mean and standard deviation over folds")
    ax.legend(fontsize="small")
    return ax


def convergence(estimator: Any, ax: Any = None) -> Any:
    """Relative duality gap against iteration, with the tolerance.

    Rules that find the weights in one step have no iterations: the gap of the predictor is plotted.

    Parameters
    ----------
    estimator : fitted multiple-kernel estimator
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    Weights.of(estimator)  # raises an error if there are no weights
    if not estimator._predicts_targets:
        raise TypeError(
            f"{type(estimator).__name__} finds its weights without iterating; its optimality_ "
            "shows how well they satisfy the optimality conditions."
        )
    histories = find_histories(estimator)
    if not histories:
        histories = [("fitted model", np.array([float(estimator.duality_gap_)]))]
    ax = axes(ax)
    for name, gaps in histories:
        # A logarithmic axis cannot show a gap of zero: draw it at the rounding level.
        shown = np.maximum(gaps, 1e-16)
        ax.semilogy(np.arange(1, len(gaps) + 1), shown, "o-", ms=4, label=name)
    tol = getattr(estimator, "tol", None)
    if tol:
        ax.axhline(tol, color="0.5", ls="--", lw=1, label=f"tolerance {tol:g}")
    ax.set_xlabel("iteration")
    ax.set_ylabel("relative duality gap")
    longest = max(len(gaps) for _, gaps in histories)
    ax.set_xlim(0.5, longest + 0.5)
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    ax.legend(fontsize="small")
    return ax


def spectrum(estimator: Any, X: Any, ax: Any = None) -> Any:
    """Eigenvalues of the base kernels and of the learned one, as parts of their traces.

    Parameters
    ----------
    estimator : fitted multiple-kernel estimator
    X : array of shape (n_samples, n_features)
        The sample; if it is larger than 1,000, a random subset of that size is used.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    found = find_spectra(estimator, X)
    ax = axes(ax)
    ranks = np.arange(1, found.n_points + 1)
    for j, (name, values) in enumerate(zip(found.names, found.values, strict=True)):
        label = f"{short(name, 32)} ({effective_rank(values):.3g})"
        style = "-" if j < 10 else "--"
        ax.loglog(ranks, np.where(values > 1e-10, values, np.nan), style, lw=1.2, label=label)
    if found.learned is not None:
        label = f"learned ({effective_rank(found.learned):.3g})"
        values = np.where(found.learned > 1e-10, found.learned, np.nan)
        ax.loglog(ranks, values, "k-", lw=2.8, label=label)
    ax.set_xlabel("rank of the eigenvalue")
    ax.set_ylabel("share of the trace")
    part = "" if found.n_points == found.n_all else f", {found.n_points} of {found.n_all} samples"
    ax.set_title(f"Spectra (effective rank){part}", fontsize="medium")
    ax.legend(fontsize="x-small", loc="lower left")
    return ax


def certificate(estimator: Any, X: Any, y: Any = None, ax: Any = None, *, machine: int = 0) -> Any:
    """Bounds on the error against the margin; see :func:`multikernel.bounds.certificate`.

    Parameters
    ----------
    estimator : fitted multiple-kernel estimator
    X, y
        Its training sample.
    ax : matplotlib axes, optional
    machine : int, default=0
        Index of the classifier, if there is one for every class.

    Returns
    -------
    matplotlib axes
    """
    return find_certificate(estimator, X, y).plot(ax, machine=machine)
