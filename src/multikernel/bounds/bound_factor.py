"""The factor of the bounds that depends on the block norm p, and the p that minimises it.

With the smallest radius that admits the true function, ``D = ||w||_{2,p}``, only one factor of the
bounds in Kloft's chapter 4 depends on p. Sections 4.4 and 5.1.1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..problem.assumptions import (
    AssumptionError,
    check_exponent,
    check_norm,
    check_number,
    check_vector,
)
from .blocknorm import block_norm, smallest
from .rademacher import conjugate
from .sample import training_sample

KINDS = ("global", "local")


def bound_factor(
    block_norms: Any, p: float, *, kind: str = "global", alpha: float | None = None
) -> float:
    """``nu_p``: the factor of the bound that depends on p, for a function with these block norms.

    global (section 5.1.1, used throughout chapter 5)
        ``min_{t >= p} sqrt(t*) ||w||_{2,p} M^(1/t*)``
    local (section 4.4), p in [1, 2], spectra that fall like ``j^(-alpha)``
        ``min_{t in [p, 2]} (||w||_{2,p} t*)^a M^(1 + a (1/t* - 1))`` with ``a = 2/(1 + alpha)``

    Parameters
    ----------
    block_norms : array of shape (M,)
        ``||w_m||`` of the true function or of a learned one, ``theta_m sqrt(s' K_m s)``.
    p : float
        Exponent of the block norm.
    kind : {"global", "local"}, default="global"
    alpha : float or None
        Decay of the spectra, for the local factor. The best p does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.bounds import bound_factor
    >>> w = np.r_[np.ones(4), np.zeros(46)]
    >>> [round(bound_factor(w, p), 2) for p in (1, 4 / 3, 2)]
    [18.45, 15.04, 20.0]
    """
    v = _block_norms(block_norms)
    M, s = len(v), conjugate(p, "p")
    size = block_norm(v, p)
    _check_kind(kind)
    if alpha is not None:
        alpha = check_number("alpha", alpha, low=1.0, why="the decay of the spectra")
    if kind == "global":
        s = min(s, max(1.0, 2.0 * math.log(M)))  # where sqrt(s) M^(1/s) is smallest
        return math.sqrt(s) * size * M ** (1.0 / s)
    check_exponent("p", p, "the local bound factor")
    if alpha is None:
        raise AssumptionError(
            "The local bound factor needs the decay alpha > 1 of the spectra; got None."
        )
    s = min(s, max(2.0, math.log(M)))  # where s M^(1/s) is smallest
    power = 2.0 / (1.0 + alpha)
    return float((size * s * M ** (1.0 / s)) ** power * M ** (1.0 - power))


def suggest_p(block_norms: Any, *, kind: str = "global", largest: float = 2.0) -> float:
    """The block norm p with the smallest bound for a function with these block norms.

    On real data the true norms are not known; use those of a model learned at the best p so far.
    On small samples these are too similar, and the suggested p is then too large (Kloft 2011,
    chapter 5).

    Parameters
    ----------
    block_norms : array of shape (M,)
        As in :func:`bound_factor`.
    kind : {"global", "local"}, default="global"
        Which bound to minimise. For k equal blocks out of M the global one is smallest at ``p* = 2
        log(M/k)``, the local one at ``p* = log(M/k)``.
    largest : float, default=2.0
        The largest p to consider; infinity is allowed for the global bound.

    Returns
    -------
    float
        The best p; the largest one where several are equal (one block carries everything).

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.bounds import suggest_p
    >>> round(suggest_p(np.r_[np.ones(4), np.zeros(46)]), 4)
    1.2468
    """
    v = _block_norms(block_norms)
    _check_kind(kind)
    if kind == "local":
        largest = check_exponent("largest", largest, "the local bound")
    largest = check_norm("largest", largest)

    # The search runs over the conjugate, whose useful range is finite: for p so small that the
    # inner minimum no longer depends on it, only ||w||_{2,p} changes, and it falls as p grows.
    def factor(s: float) -> float:
        p = conjugate(s)
        alpha = 2.0 if kind == "local" else None  # the best p does not depend on it
        return math.log(bound_factor(v, p, kind=kind, alpha=alpha))

    low = conjugate(largest)
    high = max(low, (2.0 if kind == "global" else 1.0) * math.log(max(len(v), 3)))
    return conjugate(smallest(factor, low, high, points=257)[1])


def learned_block_norms(estimator: Any, X: Any) -> np.ndarray:
    """Block norms ``||w_k|| = theta_k sqrt(s' K_k s)`` of a fitted model.

    They measure each kernel's part in the learned function, whatever the scale of the kernel.
    :func:`bound_factor` and :func:`suggest_p` take one row of them.

    Parameters
    ----------
    estimator : fitted multiple-kernel estimator
    X
        The sample that it was fitted to.

    Returns
    -------
    array of shape (n_machines, n_kernels)
        One row for each class or output that has its own predictor.

    Examples
    --------
    >>> import multikernel as mk
    >>> from multikernel.bounds import learned_block_norms, suggest_p
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bank = mk.gaussians([0.001, 0.01, 0.1])
    >>> model = mk.MultiKernelClassifier(bank, mk.LpNorm(4 / 3)).fit(X / X.std(axis=0), y)
    >>> norms = learned_block_norms(model, X / X.std(axis=0))
    >>> norms.shape, bool(norms.argmax() == model.kernel_weights_.argmax())
    ((1, 3), True)
    """
    checked = training_sample(
        estimator, X, "dual_coef_", "kernel_weights_", caller="learned_block_norms"
    )
    expansion = estimator._expansion
    # theta_k K_k s at the support vectors, which are all that the norms need.
    shares = expansion.shares(expansion.encode(checked[estimator.support_]))
    theta = np.atleast_2d(np.asarray(estimator.kernel_weights_, dtype=np.float64))
    squares = theta * np.einsum("it,ikt->tk", estimator.dual_coef_, shares)
    return np.sqrt(np.maximum(squares, 0.0))


def plot_bound_factor(
    block_norms: Any,
    *,
    kind: str = "global",
    alpha: float = 2.0,
    norms: Any = None,
    ax: Any = None,
    label: str | None = None,
) -> Any:
    """The bound factor against p, its minimum marked (Kloft 2011, Figures 4.2, 5.2d, 5.4d).

    Parameters
    ----------
    block_norms, kind, alpha
        As in :func:`bound_factor`.
    norms : array or None
        Values of p to show; None for [1, 2].
    ax : matplotlib axes or None
        None makes a figure.
    label : str or None

    Returns
    -------
    matplotlib axes
    """
    if norms is None:
        p = np.linspace(1.0, 2.0, 201)
    else:
        p = check_vector("norms", norms, "the exponents p to show")
        check_norm("the smallest of norms", float(p.min()))
    values = [bound_factor(block_norms, float(q), kind=kind, alpha=alpha) for q in p]
    ax = axes(ax)
    (line,) = ax.plot(p, values, label=label)
    best = suggest_p(block_norms, kind=kind, largest=max(float(p.max()), 1.0))
    value = bound_factor(block_norms, best, kind=kind, alpha=alpha)
    ax.plot([best], [value], "o", color=line.get_color())
    ax.annotate(f"p = {best:.2f}", (best, value), textcoords="offset points", xytext=(4, 6))
    ax.set_xlabel("block norm p")
    ax.set_ylabel(f"bound factor ({kind})")
    return ax


def axes(ax: Any) -> Any:
    """The given axes, or those of a new figure; matplotlib is imported only here."""
    if ax is not None:
        if not hasattr(ax, "plot"):
            raise TypeError(f"ax must be matplotlib axes, or None for new ones; got {ax!r}.")
        return ax
    try:
        from matplotlib import pyplot  # type: ignore[import-not-found]
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib, which is not installed: pip install matplotlib."
        ) from error
    return pyplot.subplots()[1]


def _check_kind(kind: str) -> None:
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")


def _block_norms(block_norms: Any) -> np.ndarray:
    v = np.abs(check_vector("block_norms", block_norms, "one entry per kernel"))
    if v.max() == 0:
        raise AssumptionError("All block_norms are zero, so no p is better than another.")
    return v
