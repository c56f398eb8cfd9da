"""Scatter plot of samples by their coordinates in a learned kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bounds.bound_factor import axes

#: Up to this many distinct values get a colour and a legend entry each; more numbers get a scale.
MAX_CLASSES_SHOWN = 20


def embedding(
    model: Any, X: Any, y: Any = None, ax: Any = None, *, components: tuple[int, int] = (0, 1)
) -> Any:
    """Scatter plot of samples by two of their coordinates, coloured by class or by a number.

    Parameters
    ----------
    model : fitted ConsensusKernel or KernelFeatures
    X : array of shape (n_samples, n_features)
        Training samples or new ones.
    y : array of shape (n_samples,), optional
        A class of each sample, or a number.
    ax : matplotlib axes, optional
    components : pair of int, default=(0, 1)
        Which coordinates to draw, counted from 0.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = mk.plot.embedding(mk.ConsensusKernel([mk.Linear()]).fit(X), X, y)
    >>> ax.get_xlabel()
    'component 1 (92 %)'
    """
    if not hasattr(model, "transform"):
        raise TypeError(
            "mk.plot.embedding plots the output of transform: it needs a fitted "
            f"mk.ConsensusKernel or mk.KernelFeatures; got {type(model).__name__}."
        )
    Z = np.asarray(model.transform(X))
    first, second = (_checked(component, Z.shape[1]) for component in components)
    ax = axes(ax)
    if y is None:
        ax.scatter(Z[:, first], Z[:, second], s=14)
    else:
        _coloured(ax, Z[:, [first, second]], _checked_labels(y, len(Z)))
    ax.set_xlabel(_label(model, first))
    ax.set_ylabel(_label(model, second))
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _checked(component: int, count: int) -> int:
    if not 0 <= component < count:
        raise ValueError(
            f"components must be two numbers from 0 to {count - 1}; got {component}."
            + (" Fit the model with n_components=2 or more." if count < 2 else "")
        )
    return component


def _checked_labels(y: Any, n: int) -> np.ndarray:
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must hold one value for each of the {n} samples; got shape {y.shape}.")
    return y


def _coloured(ax: Any, Z: np.ndarray, y: np.ndarray) -> None:
    values = np.unique(y)
    if len(values) > MAX_CLASSES_SHOWN and y.dtype.kind in "iuf":
        points = ax.scatter(*Z.T, c=y, s=14, cmap="viridis")
        ax.figure.colorbar(points, ax=ax, label="y")
        return
    from matplotlib import colormaps

    # Ten colours that are easy to tell apart, or twenty that are less so.
    colours = colormaps["tab10" if len(values) <= 10 else "tab20"]
    for j, value in enumerate(values):
        mine = y == value
        ax.scatter(*Z[mine].T, s=14, color=colours(j % colours.N), label=str(value))
    columns = 1 if len(values) <= 10 else 2
    beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    ax.legend(fontsize="small", frameon=False, markerscale=1.5, ncols=columns, **beside)


def _label(model: Any, component: int) -> str:
    text = f"component {component + 1}"
    shares = getattr(model, "explained_variance_ratio_", None)
    return text if shares is None else f"{text} ({100 * shares[component]:.0f} %)"
