"""Plots of predictions: the kernels' shares in them, and the calibration of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bounds.bound_factor import axes
from ..estimators.weights import labels_of
from ..kernels.bank import view_of
from .svg import short

#: Maximum numbers of samples and of parts in a plot of shares.
MAX_SAMPLES_SHOWN, MAX_PARTS_SHOWN = 60, 12
REST = "(rest)"


def sample_shares(
    estimator: Any,
    X: Any,
    ax: Any = None,
    *,
    groups: Any = None,
    output: Any = None,
    order: str = "value",
    most: int = MAX_SAMPLES_SHOWN,
) -> Any:
    """What each view (or kernel, or group of kernels) adds to single predictions, as bars.

    Every bar is a sample. Its parts add up to the decision value, or to the predicted output, less
    the intercept; a black mark shows that sum.

    Parameters
    ----------
    estimator : fitted multiple-kernel estimator
    X : array of shape (n_samples, n_features)
    ax : matplotlib axes, optional
    groups : mapping of name to kernels, optional
        As in ``estimator.group_weights``. By default views, or single kernels where there are none.
    output : class or int, optional
        The class (or the number of the output) whose function is drawn; by default the last one.
    order : {"value", "given"}, default="value"
        Sort samples by their sums, or keep the given order.
    most : int, default=60
        Maximum number of samples to show; if there are more, evenly spaced ones are chosen.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = mk.per_view({"sepal": [0, 1], "petal": [2, 3]})
    >>> model = mk.MultiKernelClassifier(bank).fit(X, y)
    >>> mk.plot.sample_shares(model, X, output=2).get_ylabel()
    'part of the decision value of class 2'
    """
    if order not in ("value", "given"):
        raise ValueError(f"order must be 'value' or 'given'; got {order!r}.")
    shares, what = _shares(estimator, X, output)
    parts = _parts(shares, list(estimator.kernel_names_), groups)
    values = shares.sum(axis=1)
    rows = np.argsort(values, kind="stable") if order == "value" else np.arange(len(values))
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(int)]
    ax = axes(ax)
    places = np.arange(len(rows))
    above, below = np.zeros(len(rows)), np.zeros(len(rows))
    for j, (name, part) in enumerate(parts.items()):
        height = part[rows]
        bottom = np.where(height >= 0, above, below)
        ax.bar(places, height, 1.0, bottom=bottom, color=f"C{j % 10}", label=short(name, 32))
        above, below = above + np.maximum(height, 0.0), below + np.minimum(height, 0.0)
    ax.plot(places, values[rows], "k_", ms=5, label="sum")
    ax.axhline(0.0, color="black", lw=0.8)
    ax.set_xlabel("samples" + (", by their sums" if order == "value" else ""))
    ax.set_ylabel(f"part of the {what}")
    ax.set_xticks([])
    if len(rows) < len(values):
        ax.set_title(f"{len(rows)} of {len(values)} samples", fontsize="medium")
    ax.legend(fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _shares(estimator: Any, X: Any, output: Any) -> tuple[np.ndarray, str]:
    """Each kernel's share of one function, shape (n, p), and what the function is."""
    if not hasattr(estimator, "kernel_names_"):
        raise TypeError(
            "mk.plot.sample_shares needs a fitted multiple-kernel estimator; got "
            f"{type(estimator).__name__}."
        )
    classes = getattr(estimator, "classes_", None)
    if hasattr(estimator, "decision_function"):
        shares = np.asarray(estimator.decision_function(X, split=True))
    else:
        shares = np.asarray(estimator.predict(X, split=True))
    if shares.ndim == 2:
        if output is not None and classes is not None and output != classes[-1]:
            raise ValueError(
                f"With two classes there is only one function, of class {classes[-1]}: leave out "
                f"output={output!r}."
            )
        name = "prediction" if classes is None else f"decision value of class {classes[-1]}"
        return shares, name
    labels = list(range(shares.shape[2])) if classes is None else list(classes)
    if output is None:
        output = labels[-1]
    if output not in labels:
        raise ValueError(f"output must be one of {labels}; got {output!r}.")
    kind = "output" if classes is None else "decision value of class"
    return shares[:, :, labels.index(output)], f"{kind} {output}"


def _parts(shares: np.ndarray, names: list[str], groups: Any) -> dict[str, np.ndarray]:
    """Shares of groups, views or kernels, each of shape (n,); small ones are summed as the rest."""
    labels = [view_of(name) or name for name in names]
    if groups is not None:
        labels = labels_of(groups, names)
    sums: dict[str, np.ndarray] = {}
    for label, column in zip(labels, shares.T, strict=True):
        sums[label] = sums.get(label, 0.0) + column
    by_size = sorted(sums, key=lambda name: -float(np.abs(sums[name]).sum()))
    shown = by_size if len(by_size) <= MAX_PARTS_SHOWN else by_size[: MAX_PARTS_SHOWN - 1]
    parts = {name: sums[name] for name in shown}
    rest = [sums[name] for name in by_size[len(shown) :]]
    return parts | ({REST: np.sum(rest, axis=0)} if rest else {})


def reliability(
    estimator: Any, X: Any, y: Any, ax: Any = None, *, n_bins: int = 10, label: str | None = None
) -> Any:
    """Reliability diagram: predicted probabilities against observed frequencies.

    The probabilities of all classes are divided into bins of equal counts. A dot shows the mean
    probability of a bin and how often the class was the true one; the bar contains 95 % of such
    frequencies if the probabilities are right. (With two classes, only the second one is used.)

    Parameters
    ----------
    estimator : fitted classifier with ``predict_proba``
    X, y
        Samples that it was not trained on, and their classes.
    ax : matplotlib axes, optional
        Several models can be drawn into the same axes.
    n_bins : int, default=10
    label : str, optional
        Legend entry; the mean distance from the diagonal, weighted by bin counts, is appended.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = mk.MultiKernelClassifier().fit(X[::2], y[::2])
    >>> mk.plot.reliability(model, X[1::2], y[1::2]).get_xlabel()
    'predicted probability'
    """
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"mk.plot.reliability needs a classifier with predict_proba; got "
            f"{type(estimator).__name__}."
        )
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1; got {n_bins!r}.")
    P, y = np.asarray(estimator.predict_proba(X)), np.asarray(y)
    if y.shape != (len(P),):
        raise ValueError(f"y must hold a class for each of the {len(P)} samples; got {y.shape}.")
    strange = np.setdiff1d(y, estimator.classes_)
    if len(strange):
        raise ValueError(f"y holds classes that the model does not know: {strange.tolist()[:5]}.")
    happened = y[:, None] == np.asarray(estimator.classes_)
    if P.shape[1] == 2:
        P, happened = P[:, 1:], happened[:, 1:]
    from scipy.stats import binom

    order = np.argsort(P.ravel(), kind="stable")
    bins = [part for part in np.array_split(order, n_bins) if len(part)]
    counts = np.array([len(part) for part in bins])
    predicted = np.array([P.ravel()[part].mean() for part in bins])
    observed = np.array([happened.ravel()[part].mean() for part in bins])
    spread = np.array(binom.interval(0.95, counts, np.clip(predicted, 0.0, 1.0))) / counts
    error = float(counts @ np.abs(predicted - observed) / counts.sum())
    ax = axes(ax)
    if not any(line.get_label() == "perfect" for line in ax.lines):
        ax.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--", label="perfect")
    text = f"{label or type(estimator).__name__} (calibration error {error:.3f})"
    (line,) = ax.plot(predicted, observed, "o-", ms=4, label=text)
    ax.vlines(predicted, *spread, color=line.get_color(), alpha=0.35, lw=3)
    ax.set_xlabel("predicted probability")
    ax.set_ylabel("observed frequency")
    ax.set_aspect("equal")
    ax.legend(fontsize="small", loc="upper left")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
