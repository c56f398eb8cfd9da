"""The free spectrum as linear programs.

With kernels of rank one, ``K = sum_j d_j v_j v_j'`` of free weights on the simplex, the smallest
norm of a function ``f = V beta`` is ``||beta||_1``: largest margins are support vector machines
with the 1-norm of the coefficients of the eigenvectors,

    min 1/2 ||beta||_1^2 + C sum_i max(0, 1 - y_i (f_i + b)),          d_j = |beta_j| / ||beta||_1

and ``||beta||_1 -> min`` for a hard margin. Since ``t^2/2 = max_l l t - l^2/2``, the optimum is

    max_l g(l) - l^2/2,
    g(l) = min_beta  l ||beta||_1 + C sum xi
           = max_alpha 1'alpha  over  |V'(y alpha)| <= l,  y'alpha = 0,  0 <= alpha <= C

g is concave and piecewise linear: each beta is a plane above it, each alpha a value of it. The
largest value of all planes so far names the next l, until plane and value meet. A linear program
whose bounds move goes on from its last basis, and a few are enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .losses import Hinge
from .spectral import Features, Found, Labels, NotSeparableError, evaluate, not_separable, train

FEASIBILITY = 1e-9
#: Relative change of l at which nothing is left to find.
EXACT = 1e-8


@dataclass(frozen=True)
class Plane:
    """A beta: ``g(l) <= l size + loss``."""

    beta: np.ndarray
    size: float
    loss: float

    @classmethod
    def of(cls, beta: np.ndarray, V: np.ndarray, labels: Labels) -> Plane:
        F, Y, C = (V @ beta)[:, None], labels.y[:, None], np.full(len(labels.y), labels.C)
        hinge = Hinge()
        loss = float(hinge.value(F, Y, C, hinge.intercept(F, Y, C))[0])
        return cls(beta, float(np.abs(beta).sum()), loss)

    def at(self, level: float) -> float:
        return level * self.size + self.loss


class Duals:
    """``max 1'alpha``, ``-l <= V'(y alpha) <= l``, for a sequence of l."""

    def __init__(self, V: np.ndarray, labels: Labels) -> None:
        import highspy

        n, self.r = V.shape
        self.optimal = highspy.HighsModelStatus.kOptimal
        self.lp: Any = highspy.Highs()
        options: dict[str, bool | int | float | str] = {
            "output_flag": False,
            "threads": 1,
            "solver": "simplex",
            "presolve": "off",  # it would throw the basis away
            "primal_feasibility_tolerance": FEASIBILITY,
            "dual_feasibility_tolerance": FEASIBILITY,
        }
        for name, value in options.items():
            self.lp.setOptionValue(name, value)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = n, self.r + 1
        model.col_cost_ = np.full(n, -1.0)
        model.col_lower_ = np.zeros(n)
        box = labels.box if np.isfinite(labels.box) else highspy.kHighsInf
        model.col_upper_ = np.full(n, box)
        model.row_lower_ = model.row_upper_ = np.zeros(self.r + 1)
        A = np.vstack([V.T, np.ones(n)]) * labels.y
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.arange(n + 1, dtype=np.int32) * (self.r + 1)
        model.a_matrix_.index_ = np.tile(np.arange(self.r + 1, dtype=np.int32), n)
        model.a_matrix_.value_ = A.T.ravel()
        self.lp.passModel(model)

    def solve(self, level: float) -> tuple[np.ndarray, np.ndarray] | None:
        """alpha and beta, or None where ``1'alpha`` has no bound."""
        bounds = np.full(self.r, level)
        self.lp.changeRowsBounds(self.r, np.arange(self.r, dtype=np.int32), -bounds, bounds)
        self.lp.run()
        if self.lp.getModelStatus() != self.optimal:
            return None
        solution = self.lp.getSolution()
        return np.array(solution.col_value), -np.array(solution.row_dual[: self.r])


def free_spectrum(
    hull: Features, labels: Labels, *, tol: float = 1e-4, max_iter: int = 500
) -> Found:
    """Weights and machine over all combinations of kernels of rank one, by linear programs.

    Margins ``"1-norm"`` and ``"hard"``.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.solvers.spectral import Features, Labels
    >>> from multikernel.solvers.spectral_lp import free_spectrum
    >>> V = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> found = free_spectrum(Features(V), Labels(np.array([1.0, -1.0]), "hard"))
    >>> print(found.weights, found.machine.norm)
    [0. 1.] 1.0
    """
    if labels.margin == "2-norm":
        raise ValueError(
            "solver='lp' knows the margins '1-norm' and 'hard'; got margin='2-norm', whose loss is "
            "not linear. Use solver='gradient' or 'conic'."
        )
    V = hull.V
    duals = Duals(V, labels)
    if labels.margin == "hard":
        answer = duals.solve(1.0)
        if answer is None:
            raise NotSeparableError(not_separable(hull.p))
        return _certified(hull, labels, *answer, [])
    planes = [Plane.of(np.zeros(hull.p), V, labels)]
    level = 0.5 * np.sqrt(2.0 * planes[0].loss)
    best = -np.inf
    history: list[dict[str, Any]] = []
    for _ in range(max_iter):
        answer = duals.solve(level)
        if answer is None:
            raise RuntimeError("HiGHS could not solve the linear program of the free spectrum.")
        alpha, beta = answer
        planes.append(Plane.of(beta, V, labels))
        best = max(best, float(alpha.sum()) - 0.5 * level**2)
        last, (level, top) = level, highest(planes)
        gap = max(top - best, 0.0) / max(abs(top), 1e-300)
        history.append({"objective": top, "gap": gap, "active": int(np.count_nonzero(beta))})
        # alpha and beta fit together at the same l only: steps are few, and go on to the end
        if abs(level - last) <= EXACT * level or gap <= EXACT**2:
            break
    found = _certified(hull, labels, alpha, mixture(planes, level), history)
    if found.gap > tol:
        machine = train(hull.combine(found.weights), labels, alpha)
        found = replace(found, machine=machine)
    return found


def highest(planes: list[Plane]) -> tuple[float, float]:
    """Where ``min_j plane_j(l) - l^2/2`` is largest over ``l >= 0``, and its value there."""
    t = np.array([plane.size for plane in planes])
    L = np.array([plane.loss for plane in planes])
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = ((L[:, None] - L) / (t - t[:, None])).ravel()
    levels = np.append(t, crossings[np.isfinite(crossings) & (crossings >= 0)])
    values = (levels[:, None] * t + L).min(axis=1) - 0.5 * levels**2
    i = int(np.argmax(values))
    return float(levels[i]), float(values[i])


def mixture(planes: list[Plane], level: float) -> np.ndarray:
    """The beta of size ``level`` between the two planes that meet there."""
    values = [plane.at(level) for plane in planes]
    low = min(values)
    near = [
        plane
        for plane, value in zip(planes, values, strict=True)
        if value <= low + 1e-7 * max(abs(low), 1e-300)
    ]
    below = [plane for plane in near if plane.size <= level] or near
    above = [plane for plane in near if plane.size >= level] or near
    small = max(below, key=lambda plane: plane.size)
    large = min(above, key=lambda plane: plane.size)
    if large.size == small.size:
        return small.beta
    share = float(np.clip((level - small.size) / (large.size - small.size), 0.0, 1.0))
    return (1.0 - share) * small.beta + share * large.beta


def _certified(
    hull: Features,
    labels: Labels,
    alpha: np.ndarray,
    beta: np.ndarray,
    history: list[dict[str, Any]],
) -> Found:
    """Both bounds from the weights ``|beta|`` and the multipliers alone."""
    alpha = labels.feasible(alpha)
    size = float(np.abs(beta).sum())
    d = np.abs(beta) / size if size > 0 else np.full(hull.p, 1.0 / hull.p)
    forms = hull.forms(labels.y * alpha)
    lower = labels.dual(alpha, float(forms.max()))
    machine = evaluate(hull.combine(d), alpha, labels)
    if not np.isfinite(machine.primal):
        raise NotSeparableError(not_separable(hull.p))
    return Found(d, machine, lower, max(len(history), 1), history)
