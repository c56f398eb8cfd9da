"""Conic programs, solved by clarabel, an optional dependency."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .problem import NotSeparableError, not_separable

#: Gap and infeasibility at which clarabel stops.
CONIC_TOLERANCE = 1e-9


def require_clarabel(what: str) -> Any:
    """Import clarabel; the ImportError without it explains how to install it."""
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(
            f"{what} is solved by clarabel, which is not installed. Run `pip install "
            "multikernel[sdp]` (or `pip install clarabel`), or choose solver='auto'."
        ) from error
    return clarabel


class ConicProgram:
    """``min q'x + x'Px/2`` such that ``b - Ax`` lies in a product of cones, added one by one."""

    def __init__(self, clarabel: Any, size: int) -> None:
        self.clarabel = clarabel
        self.size = size
        self.q = np.zeros(size)
        self.P = sp.csc_matrix((size, size))
        self.blocks: list[Any] = []
        self.rights: list[np.ndarray] = []
        self.cones: list[Any] = []

    @property
    def rows(self) -> int:
        return sum(len(b) for b in self.rights)

    def demand(self, A: Any, b: np.ndarray, cone: Any) -> slice:
        """Require that ``b - A x`` lies in the cone; return the slice of the multipliers."""
        start = self.rows
        self.blocks.append(sp.csc_matrix(A))
        self.rights.append(np.asarray(b, dtype=np.float64))
        self.cones.append(cone)
        return slice(start, start + len(b))

    def solve(self, p: int) -> tuple[np.ndarray, np.ndarray]:
        """The optimal x and the multipliers of all rows; p is the number of kernels."""
        settings = self.clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = CONIC_TOLERANCE
        found = self.clarabel.DefaultSolver(
            self.P,
            self.q,
            sp.vstack(self.blocks, format="csc"),
            np.concatenate(self.rights),
            self.cones,
            settings,
        ).solve()
        status = str(found.status)
        if "Infeasible" in status:
            raise NotSeparableError(not_separable(p))
        if "Solved" not in status and "InsufficientProgress" not in status:
            raise RuntimeError(
                f"clarabel ended with status {status}. Scale the kernels to a moderate trace, or "
                "choose another solver."
            )
        return np.asarray(found.x), np.asarray(found.z)
