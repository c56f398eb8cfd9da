"""Problems with the square of a 1-norm, solved by linear programs at levels of its multiplier.

Since ``t^2/2 = max_l l t - l^2/2``, the minimum of ``1/2 ||beta||_1^2 + losses`` is

    max_l g(l) - l^2/2,
    g(l) = min_beta  l ||beta||_1 + losses of (U beta + b)
           = max_s  dual losses of s  over  |U's| <= l,  1's = 0,  s in its box

With piecewise linear losses g is concave and piecewise linear: each beta gives a plane above g, and
each s a lower bound of it. The next level l maximises the smallest plane minus ``l^2/2``; the
search ends when that maximum is attained. Between levels only the bounds of the linear program
change, so each one starts from the last basis, and a few levels are enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .highs import change_rows_bounds, warm_simplex

#: Largest violation of constraints in a linear program of order one.
FEASIBILITY_TOLERANCE = 1e-9
#: Relative change of l at which the search for the best level ends.
LEVEL_PRECISION = 1e-8
#: Smallest unit of the coefficients, as a fraction of the largest upper bound.
MIN_UNIT_RATIO = 1e-9


@dataclass(frozen=True)
class Plane:
    """A beta with ``size = ||beta||_1`` and its loss: ``g(l) <= l size + loss`` for all l."""

    beta: np.ndarray
    size: float
    loss: float

    def at(self, level: float) -> float:
        return level * self.size + self.loss


class LevelPrograms:
    """``max gain'x`` over ``|U's| <= l``, ``0 <= x <= box``, for a sequence of l and rows of U'.

    ``s = S x`` are signed coefficients, one per sample; if ``balanced``, ``1's = 0``. The programs
    are scaled, so that HiGHS works with numbers of order one.

    Parameters
    ----------
    gain, box : arrays of shape (m,)
        The upper bounds in ``box`` may be infinite.
    S : sparse matrix of shape (n, m)
    balanced : bool
    """

    def __init__(self, gain: np.ndarray, box: np.ndarray, S: Any, *, balanced: bool) -> None:
        import highspy

        self.status = highspy.HighsModelStatus
        self.infinity = highspy.kHighsInf
        self.S, self.box = sp.csr_array(S), box
        self.gain = float(np.abs(gain).max(initial=0.0)) or 1.0
        self.sizes = np.zeros(0)
        self.lp = warm_simplex(FEASIBILITY_TOLERANCE)
        # The last column is the sum of s: features are shifted by multiples of it, which keeps
        # sparse features sparse.
        m = len(gain)
        total = 0.0 if balanced else self.infinity
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = m + 1, 1
        model.col_cost_ = np.append(-gain / self.gain, 0.0)
        model.col_lower_ = np.append(np.zeros(m), -total)
        model.col_upper_ = np.append(np.ones(m), total)
        model.row_lower_ = model.row_upper_ = np.zeros(1)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array([0, m + 1], dtype=np.int32)
        model.a_matrix_.index_ = np.arange(m + 1, dtype=np.int32)
        model.a_matrix_.value_ = np.append(self.S.sum(axis=0), -1.0)
        self.lp.passModel(model)

    def add(self, rows: Any, shift: np.ndarray | None = None) -> None:
        """Add rows ``u_k = rows_k - shift_k`` of U', shape (r, n), dense or sparse, none zero.

        `solve` sets their bounds.
        """
        r = rows.shape[0]
        rows = sp.csr_array(rows)
        sizes = abs(rows).max(axis=1).toarray().ravel()
        scaled = rows.multiply(1.0 / sizes[:, None])
        last = np.zeros(r) if shift is None else -shift / sizes
        A = sp.hstack([scaled @ self.S, sp.csr_array(last[:, None])], format="csr")
        free = np.full(r, self.infinity)
        starts, index = A.indptr[:-1].astype(np.int32), A.indices.astype(np.int32)
        self.lp.addRows(r, -free, free, A.nnz, starts, index, A.data)
        self.sizes = np.append(self.sizes, sizes)

    def solve(self, level: float) -> tuple[np.ndarray, np.ndarray] | None:
        """The optimal s and beta at a level; None if it is unbounded or HiGHS fails."""
        m, r = len(self.box), len(self.sizes)
        most, held = float(self.box.max()), level / (float(self.sizes.max(initial=0.0)) or 1.0)
        unit = held if np.isinf(most) else min(most, max(held, MIN_UNIT_RATIO * most))
        box = np.where(np.isinf(self.box), self.infinity, self.box / unit)
        self.lp.changeColsBounds(m, np.arange(m, dtype=np.int32), np.zeros(m), box)
        bounds = level / (unit * self.sizes)
        change_rows_bounds(self.lp, np.arange(1, r + 1, dtype=np.int32), -bounds, bounds)
        self.lp.run()
        if self.lp.getModelStatus() in (self.status.kUnknown, self.status.kSolveError):
            self.lp.clearSolver()  # the basis was ill-conditioned
            self.lp.run()
        if self.lp.getModelStatus() != self.status.kOptimal:
            return None
        solution = self.lp.getSolution()
        s = self.S @ np.clip(np.array(solution.col_value[:m]) * unit, 0.0, self.box)
        return s, -np.array(solution.row_dual[1:]) * self.gain / self.sizes


def highest(planes: Sequence[Plane]) -> tuple[float, float]:
    """The l >= 0 that maximises ``min_j plane_j(l) - l^2/2``, and the maximum."""
    t = np.array([plane.size for plane in planes])
    L = np.array([plane.loss for plane in planes])
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = ((L[:, None] - L) / (t - t[:, None])).ravel()
    levels = np.append(t, crossings[np.isfinite(crossings) & (crossings >= 0)])
    values = (levels[:, None] * t + L).min(axis=1) - 0.5 * levels**2
    i = int(np.argmax(values))
    return float(levels[i]), float(values[i])


def mixture(planes: Sequence[Plane], level: float) -> np.ndarray:
    """The convex combination with 1-norm ``level`` of the two planes that meet at this level."""
    below = [plane for plane in planes if plane.size <= level] or planes
    above = [plane for plane in planes if plane.size >= level] or planes
    small = min(below, key=lambda plane: plane.at(level))
    large = min(above, key=lambda plane: plane.at(level))
    if large.size == small.size:
        return small.beta
    share = float(np.clip((level - small.size) / (large.size - small.size), 0.0, 1.0))
    return (1.0 - share) * small.beta + share * large.beta
