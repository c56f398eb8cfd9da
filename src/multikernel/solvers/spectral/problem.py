"""The largest margin at fixed trace over convex sets of kernel matrices (Bousquet & Herrmann).

All matrices are scaled to the same trace c, so that ``K = sum_k d_k K_k`` has it too when d lies on
the simplex. With ``s = y alpha`` and ``a_k = s'K_k s``, on the labelled points,

    min_d max_alpha  1'alpha - 1/2 sum_k d_k a_k,    y'alpha = 0,  0 <= alpha <= C

is half the squared norm of the separating vector (plus losses), ``1 / (2 M^2)`` for a hard margin
M. The algorithm of the paper's section 4 trains a machine, takes a step along the gradient (6),
``-a_k / 2``, and projects back. Here steps are those of Barzilai and Borwein with a line search
(the spectral projected gradient of Birgin, Martinez & Raydan, SIAM J. Optim. 10, 2000), and it
stops at a proven duality gap, of which the paper says nothing: any alpha bounds the optimum from
below by ``1'alpha - max_k a_k / 2``, any d bounds it from above.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...grams.dense import DenseGrams
from ...grams.memory import MemoryBudget
from ...learners.source import Source
from ...learners.svm import SVM
from ...problem import Target
from ...problem.losses import Hinge
from ...weighting.alignment import alignf
from ...weighting.lp_norm import LpNorm
from ..joint.cutting_plane import find_by_cutting_planes
from ..joint.warm_start import WarmStart

MARGINS = ("1-norm", "2-norm", "hard")
#: Machines without an upper bound on alpha are trained with one that is raised until none touches.
BOXES = tuple(float(10.0**e) for e in range(3, 10, 2))
#: Steps of a machine whose points may not be separable; one that is needs far fewer.
STEPS = 300_000
#: Margins below this part of a point's length are rounding: entries of K are right to 1e-16, and
#: the features behind them to 1e-8.
SEPARATION = 1e-7
#: Norm on the labelled points, as a part of the largest, from which alignment means something.
FAINT = 1e-8
#: Share of the predicted decrease that a step must bring, against the worst of recent objectives.
ARMIJO, MEMORY = 1e-4, 5

Report = Callable[[dict[str, Any]], None]


class NotSeparableError(ValueError):
    """No kernel of the class separates the labelled points, which a hard margin asks for."""


class Hull(Protocol):
    """Kernels of equal trace on the labelled points, and what the algorithm asks of them."""

    @property
    def p(self) -> int: ...

    def combine(self, d: np.ndarray) -> np.ndarray:
        """``sum_k d_k K_k``, shape (n, n)."""
        ...

    def forms(self, s: np.ndarray) -> np.ndarray:
        """``s'K_k s``, shape (p,)."""
        ...

    def roots(self) -> list[np.ndarray]:
        """Matrices B_k with ``B_k'B_k = K_k``."""
        ...

    def products(self) -> np.ndarray:
        """``<K_k, K_l>``, shape (p, p)."""
        ...


@dataclass(frozen=True)
class KernelMatrices:
    """Kernels as matrices, shape (p, n, n)."""

    stack: np.ndarray

    @property
    def p(self) -> int:
        return len(self.stack)

    def combine(self, d: np.ndarray) -> np.ndarray:
        return np.tensordot(d, self.stack, axes=1)

    def forms(self, s: np.ndarray) -> np.ndarray:
        support = np.flatnonzero(s)
        part = self.stack[:, support[:, None], support]
        return (part @ s[support]) @ s[support]

    def roots(self) -> list[np.ndarray]:
        return [root(K) for K in self.stack]

    def products(self) -> np.ndarray:
        flat = self.stack.reshape(self.p, -1)
        return flat @ flat.T


@dataclass(frozen=True)
class RankOneKernels:
    """Kernels ``v_k v_k'`` of rank one: the columns of an array of shape (n, p)."""

    V: np.ndarray

    @property
    def p(self) -> int:
        return int(self.V.shape[1])

    def combine(self, d: np.ndarray) -> np.ndarray:
        used = np.flatnonzero(d)
        scaled = self.V[:, used] * np.sqrt(d[used])
        return scaled @ scaled.T

    def forms(self, s: np.ndarray) -> np.ndarray:
        return (s @ self.V) ** 2

    def roots(self) -> list[np.ndarray]:
        return [v[None] for v in self.V.T]

    def products(self) -> np.ndarray:
        return (self.V.T @ self.V) ** 2


def root(K: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-13 * max(values[-1], 0.0)
    return (vectors[:, keep] * np.sqrt(values[keep])).T


@dataclass(frozen=True)
class Labels:
    """Signs of the labelled points and what a violated margin costs.

    ``margin`` is ``"1-norm"`` (``C sum xi``), ``"2-norm"`` (``C/2 sum xi^2``, which adds ``I/C`` to
    the kernel) or ``"hard"`` (C plays no part).
    """

    y: np.ndarray
    margin: str = "1-norm"
    C: float = 1.0

    @property
    def ridge(self) -> float:
        return 1.0 / self.C if self.margin == "2-norm" else 0.0

    @property
    def box(self) -> float:
        return self.C if self.margin == "1-norm" else np.inf

    def dual(self, alpha: np.ndarray, form: float) -> float:
        """The dual value of a feasible alpha whose ``s'Ks`` is ``form``.

        Without an upper bound alpha may be scaled, and the best multiple is taken.
        """
        total, form = float(alpha.sum()), form + self.ridge * float(alpha @ alpha)
        if np.isinf(self.box):
            return total**2 / (2.0 * form) if form > 0 else np.inf
        return total - 0.5 * form

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        """Nearly feasible multipliers made feasible: within bounds, and both sides equal."""
        alpha = np.clip(alpha, 0.0, self.box)
        sides = [float(alpha[self.y > 0].sum()), float(alpha[self.y < 0].sum())]
        least = min(sides)
        scale = [least / side if side > 0 else 0.0 for side in sides]
        return alpha * np.where(self.y > 0, scale[0], scale[1])


@dataclass(frozen=True)
class Trained:
    """The machine with one kernel: signed coefficients, intercept, value from above."""

    alpha: np.ndarray
    s: np.ndarray
    intercept: float
    primal: float
    norm: float


def train(K: np.ndarray, labels: Labels, start: np.ndarray | None = None) -> Trained:
    """A support vector machine on the kernel matrix of the labelled points.

    ``primal`` is infinite where a hard margin is asked for and the points are not separated.
    """
    y = labels.y
    if labels.ridge:
        K = K + labels.ridge * np.eye(len(y))
    source = Source(K, np.ascontiguousarray(K), None)
    unbounded = np.isinf(labels.box)
    unit = max(float(np.trace(K)) / len(y), 1e-300)
    boxes = [b / unit for b in BOXES] if unbounded else [labels.box]
    for box in boxes:
        alpha = source.solve(
            np.full(len(y), -1.0),
            y,
            np.full(len(y), box),
            tol=1e-5,
            start=None if start is None else labels.feasible(np.minimum(start, box)),
            max_iter=STEPS if unbounded else -1,
        ).alpha
        start = alpha
        if alpha.max() < box:
            break
    found = evaluate(K, alpha, labels)
    norm = found.norm - labels.ridge * float(found.alpha @ found.alpha)
    return replace(found, norm=norm)


def evaluate(K: np.ndarray, alpha: np.ndarray, labels: Labels) -> Trained:
    """The machine with these multipliers: its best intercept, norm and primal value.

    K is the matrix that the machine sees, with the ridge of a 2-norm. Machines without an upper
    bound on alpha are scaled so that the smallest decision is one.
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
    if not reach > SEPARATION * np.sqrt(size * max(norm, 0.0)):
        return Trained(alpha, s, 0.0, np.inf, norm)
    norm = norm / reach**2
    return Trained(alpha / reach, s / reach, -0.5 * (inner + outer) / reach, 0.5 * norm, norm)


@dataclass(frozen=True)
class MarginSolution:
    """Weights, machine, and bounds of the optimum from both sides.

    Attributes
    ----------
    weights : array of shape (p,)
        d, the weights of the matrices scaled to trace c.
    machine : Trained
        Trained with exactly these weights; its norm is ``||w||^2``.
    lower : float
        Proven lower bound of the optimal objective.
    """

    weights: np.ndarray
    machine: Trained
    lower: float
    n_iter: int
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return max(self.machine.primal - self.lower, 0.0) / max(abs(self.machine.primal), 1e-300)


def onto_simplex(v: np.ndarray) -> np.ndarray:
    """``argmin ||d - v||`` over ``d >= 0``, ``sum d = 1``."""
    v = v - v.max()  # sums of large numbers would swallow the one
    ordered = np.sort(v)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(v) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    d = np.maximum(v - excess[last], 0.0)
    return np.asarray(d / d.sum())


def projected_gradient(
    hull: Hull,
    labels: Labels,
    *,
    tol: float = 1e-4,
    max_iter: int = 500,
    report: Report | None = None,
) -> MarginSolution:
    """Train, step along the gradient (6), project; until the duality gap is below ``tol``.

    ::

        d     <- 1/p
        alpha <- machine on sum_k d_k K_k,   a_k <- s'K_k s
        until   primal - (1'alpha - max_k a_k / 2) <= tol primal
            direction <- project(d + step a / 2) - d
            d         <- d + t direction, t halved until the objective has gone down enough
            step      <- |move|^2 / <move, change of gradient>

    Raises
    ------
    NotSeparableError
        Where a hard margin is asked for and the mean of the kernels does not separate.

    Examples
    --------
    Two points and two orthogonal kernels of rank one: with ``y = (1, -1)`` only the second
    one separates.

    >>> import numpy as np
    >>> from multikernel.solvers.spectral.problem import RankOneKernels, Labels, projected_gradient
    >>> V = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> found = projected_gradient(RankOneKernels(V), Labels(np.array([1.0, -1.0]), "hard"))
    >>> print(found.weights.round(6), round(found.machine.norm, 6))
    [0. 1.] 1.0
    """

    def visit(d: np.ndarray, start: np.ndarray | None) -> tuple[Trained, np.ndarray]:
        machine = train(hull.combine(d), labels, start)
        return machine, hull.forms(machine.s)

    d = np.full(hull.p, 1.0 / hull.p)
    machine, a = visit(d, None)
    if not np.isfinite(machine.primal):
        raise NotSeparableError(not_separable(hull.p))
    best, best_d, lower = machine, d, -np.inf
    recent, history = [machine.primal], []
    step = 1.0 / max(float(np.abs(a).max()), 1e-300)
    for _ in range(max_iter):
        lower = max(lower, labels.dual(machine.alpha, float(a.max())))
        entry = {
            "objective": machine.primal,
            "gap": max(best.primal - lower, 0.0) / max(abs(best.primal), 1e-300),
            "active": int(np.count_nonzero(d)),
            "support": int(np.count_nonzero(machine.s)),
        }
        history.append(entry)
        if report is not None:
            report(entry)
        if entry["gap"] <= tol:
            break
        direction = onto_simplex(d + step * 0.5 * a) - d
        slope = -0.5 * float(a @ direction)
        if slope >= 0:
            break  # d is stationary to rounding
        t = 1.0
        while True:
            there = onto_simplex(d + t * direction)
            moved, a_there = visit(there, machine.alpha)
            if moved.primal <= max(recent) + ARMIJO * t * slope or t < 1e-8:
                break
            lower = max(lower, labels.dual(moved.alpha, float(a_there.max())))
            t *= 0.5
        if not np.isfinite(moved.primal):
            break
        move, change = there - d, -0.5 * (a_there - a)
        curvature = float(move @ change)
        size = float(move @ move)
        step = size / curvature if curvature > 1e-12 * size else 10.0 * step
        d, machine, a = there, moved, a_there
        recent = [*recent, machine.primal][-MEMORY:]
        if machine.primal < best.primal:
            best, best_d = machine, d
    return MarginSolution(best_d, best, lower, len(history), history)


def cutting_planes(
    hull: KernelMatrices, labels: Labels, *, tol: float, max_iter: int = 500
) -> MarginSolution:
    """The same optimum as L1-norm multiple kernel learning, by the library's cutting planes.

    Without an upper bound on alpha one is raised until no coefficient touches it; losses in the
    square have no place here.
    """
    if labels.margin == "2-norm":
        raise ValueError(
            "solver='cutting_plane' knows the margins '1-norm' and 'hard'; got margin='2-norm'. "
            "Use solver='gradient' or 'conic'."
        )
    names = [str(k) for k in range(hull.p)]
    stack = np.moveaxis(hull.stack, 0, -1)
    given = DenseGrams.given(stack, np.arange(len(labels.y)), names, MemoryBudget.of(None))
    grams = given.corrected(False, None)
    unit = max(float(np.mean(grams.diagonals())), 1e-300)
    boxes = [b / unit for b in BOXES] if np.isinf(labels.box) else [labels.box]
    target = Target(labels.y[:, None], "classification")
    warm: WarmStart | None = None
    count = 0
    for box in boxes:
        with warnings.catch_warnings():
            # The gap is in the answer, and whoever asked for a tolerance speaks of it.
            warnings.simplefilter("ignore", ConvergenceWarning)
            learner = SVM(C=box, tol=1e-5, max_iter=STEPS if np.isinf(labels.box) else -1)
            found = find_by_cutting_planes(
                grams,
                target,
                LpNorm(1.0, tol=0.1 * tol, max_iter=max_iter),
                learner,
                warm=warm,
            )
        warm = WarmStart(found.weights)
        count += len(found.history)
        if np.abs(found.machine.coef).max() < box * (1 - 1e-9):
            break
    weights = found.weights / found.weights.sum()
    machine = train(hull.combine(weights), labels, np.abs(found.machine.coef[:, 0]))
    if not np.isfinite(machine.primal):
        raise NotSeparableError(not_separable(hull.p))
    # The cuts together may prove more than the last machine alone.
    lower = found.machine.objective * (1.0 - found.machine.gap) if np.isfinite(labels.box) else 0.0
    for alpha in (machine.alpha, np.abs(found.machine.coef[:, 0])):
        alpha = labels.feasible(alpha)
        lower = max(lower, labels.dual(alpha, float(hull.forms(labels.y * alpha).max())))
    return MarginSolution(weights, machine, lower, count, list(found.history))


def align(hull: Hull, y: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The kernel of the hull that is best aligned with ``yy'`` (Cristianini et al. 2002).

    Returns the weights (their sum is one), the alignment reached, and the largest violation of
    the optimality conditions ``a_k - (Mv)_k <= 0``, zero where ``v_k > 0``, relative to a. Members
    that are zero to rounding on the labelled points take no part: the criterion sees those points
    only and would multiply them up.
    """
    M, a = hull.products(), hull.forms(y)
    faint = np.sqrt(np.diag(M)) <= FAINT * np.sqrt(np.diag(M).max())
    M, a = np.where(faint | faint[:, None], 0.0, M), np.where(faint, 0.0, a)
    v = alignf(M, a)
    slack = a - M @ v
    scale = max(float(np.abs(a).max()), 1e-300)
    violation = float(np.max(np.where(v > 0, np.abs(slack), np.maximum(slack, 0.0)))) / scale
    size = float(np.sqrt(v @ M @ v))
    if size == 0:
        return np.full(hull.p, 1.0 / hull.p), 0.0, violation
    return v / v.sum(), float(v @ a) / (size * len(y)), violation


def not_separable(p: int) -> str:
    kernels = "The kernel does" if p == 1 else "The kernels of the class together do"
    return (
        f"{kernels} not separate the labelled points (or by a margin too small to be found), and "
        "margin='hard' asks for that. Use margin='1-norm' or '2-norm', a narrower kernel, or "
        "remove points that are equal but labelled differently."
    )
