"""The largest margin at fixed trace over convex sets of kernel matrices (Bousquet & Herrmann).

All matrices are scaled to the same trace c, so that ``K = sum_k d_k K_k`` has trace c if d lies on
the simplex. With ``s = y alpha`` and ``a_k = s'K_k s``, on the labelled samples,

    min_d max_alpha  1'alpha - 1/2 sum_k d_k a_k,    y'alpha = 0,  0 <= alpha <= C

is half the squared norm of the separating vector (plus losses); for a hard margin M it is
``1 / (2 M^2)``. Any alpha gives the lower bound ``1'alpha - max_k a_k / 2`` of the optimum, and any
d an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...grams.matrix import GivenMatrix
from ...learners.source import Source
from ...problem.losses import Hinge
from ..certificate import relative_to

MARGINS = ("1-norm", "2-norm", "hard")
#: Margins without an upper bound on alpha are solved with these bounds, in units of the kernel, one
#: after the other, until no alpha is at its bound.
UPPER_BOUNDS = tuple(float(10.0**e) for e in range(3, 10, 2))
#: Limit on SMO steps for samples that may not be separable; separable ones need far fewer.
MAX_SMO_STEPS = 300_000
#: Margins below this fraction of a sample's norm are rounding errors: entries of K are accurate to
#: 1e-16, so the features are accurate to 1e-8.
MIN_RELATIVE_MARGIN = 1e-7


class NotSeparableError(ValueError):
    """No kernel of the class separates the labelled samples, as a hard margin requires."""


@dataclass(frozen=True)
class Labels:
    """Labels -1 and +1 of the labelled samples, and the loss of violated margins.

    ``margin`` is ``"1-norm"`` (``C sum xi``), ``"2-norm"`` (``C/2 sum xi^2``, which adds ``I/C`` to
    the kernel) or ``"hard"`` (without C).
    """

    y: np.ndarray
    margin: str = "1-norm"
    C: float = 1.0

    @property
    def ridge(self) -> float:
        """The number added to the diagonal of the kernel matrix."""
        return 1.0 / self.C if self.margin == "2-norm" else 0.0

    @property
    def box(self) -> float:
        """The upper bound of alpha."""
        return self.C if self.margin == "1-norm" else np.inf

    def dual(self, alpha: np.ndarray, form: float) -> float:
        """The dual value of a feasible alpha with ``s'Ks = form``.

        Without an upper bound, the value of the best multiple of alpha is returned.
        """
        total, form = float(alpha.sum()), form + self.ridge * float(alpha @ alpha)
        if np.isinf(self.box):
            return total**2 / (2.0 * form) if form > 0 else np.inf
        return total - 0.5 * form

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        """The multipliers clipped to their bounds and scaled so that ``y'alpha = 0``."""
        alpha = np.clip(alpha, 0.0, self.box)
        sides = [float(alpha[self.y > 0].sum()), float(alpha[self.y < 0].sum())]
        least = min(sides)
        scale = [least / side if side > 0 else 0.0 for side in sides]
        return alpha * np.where(self.y > 0, scale[0], scale[1])


@dataclass(frozen=True)
class Trained:
    """A classifier with one kernel.

    Attributes
    ----------
    alpha, s : arrays of shape (n,)
        Multipliers and signed coefficients ``y alpha``.
    intercept : float
    primal : float
        The primal value, an upper bound of the optimum.
    norm : float
        ``||w||^2``.
    """

    alpha: np.ndarray
    s: np.ndarray
    intercept: float
    primal: float
    norm: float


def train(K: np.ndarray, labels: Labels, start: np.ndarray | None = None) -> Trained:
    """Train a support vector machine on the kernel matrix of the labelled samples.

    With a hard margin, ``primal`` is infinite if the samples are not separated.
    """
    y = labels.y
    if labels.ridge:
        K = K + labels.ridge * np.eye(len(y))
    source = Source.of(GivenMatrix(K))
    unbounded = np.isinf(labels.box)
    unit = max(float(np.trace(K)) / len(y), 1e-300)
    boxes = [b / unit for b in UPPER_BOUNDS] if unbounded else [labels.box]
    for box in boxes:
        alpha = source.solve(
            np.full(len(y), -1.0),
            y,
            np.full(len(y), box),
            tol=1e-5,
            start=None if start is None else labels.feasible(np.minimum(start, box)),
            max_iter=MAX_SMO_STEPS if unbounded else -1,
        ).alpha
        start = alpha
        if alpha.max() < box:
            break
    found = evaluate(K, alpha, labels)
    norm = found.norm - labels.ridge * float(found.alpha @ found.alpha)
    return replace(found, norm=norm)


def evaluate(K: np.ndarray, alpha: np.ndarray, labels: Labels) -> Trained:
    """The classifier with these multipliers: its best intercept, norm and primal value.

    K includes the ridge of a 2-norm margin. Without an upper bound on alpha the classifier is
    scaled so that its smallest decision value is one.
    """
    y = labels.y
    s = y * alpha
    f = K @ s
    norm = float(s @ f)
    if np.isfinite(labels.box):
        costs, Y, F = np.full(len(y), labels.C), y[:, None], f[:, None]
        hinge = Hinge()
        b = hinge.intercept(F, Y, costs)
        primal = 0.5 * norm + float(hinge.value(F, Y, costs, b)[0])
        return Trained(alpha, s, float(b[0]), primal, norm)
    inner, outer = float(f[y > 0].min()), float(f[y < 0].max())
    reach = 0.5 * (inner - outer)
    size = float(np.trace(K)) / len(y)
    if not reach > MIN_RELATIVE_MARGIN * np.sqrt(size * max(norm, 0.0)):
        return Trained(alpha, s, 0.0, np.inf, norm)
    norm = norm / reach**2
    return Trained(alpha / reach, s / reach, -0.5 * (inner + outer) / reach, 0.5 * norm, norm)


@dataclass(frozen=True)
class MarginSolution:
    """Kernel weights and classifier, with bounds of the optimum from both sides.

    Attributes
    ----------
    weights : array of shape (p,)
        The weights d of the matrices scaled to trace c.
    machine : Trained
        The classifier trained with exactly these weights; its primal value is the upper bound.
    lower : float
        A proven lower bound of the optimal objective.
    """

    weights: np.ndarray
    machine: Trained
    lower: float
    n_iter: int
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return relative_to(self.machine.primal, max(self.machine.primal - self.lower, 0.0))


def not_separable(p: int) -> str:
    """The error message for p kernels that do not separate the labelled samples."""
    kernels = "The kernel does" if p == 1 else "The kernels of the class together do"
    return (
        f"{kernels} not separate the labelled samples (or only by a margin below rounding errors), "
        "but margin='hard' requires it. Use margin='1-norm' or '2-norm', a narrower kernel, or "
        "remove samples that are equal but labelled differently."
    )
