"""Sequences of similar linear programs in HiGHS, each started from the basis of the one before."""

from __future__ import annotations

from typing import Any

import numpy as np


def warm_simplex(tolerance: float) -> Any:
    """An empty HiGHS model whose simplex method keeps its basis when the program changes.

    Parameters
    ----------
    tolerance : float
        Largest violation of constraints and of optimality conditions.
    """
    import highspy

    lp = highspy.Highs()
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "solver": "simplex",
        "presolve": "off",  # it would discard the basis
        "primal_feasibility_tolerance": tolerance,
        "dual_feasibility_tolerance": tolerance,
    }
    for name, value in options.items():
        lp.setOptionValue(name, value)
    return lp


def change_rows_bounds(lp: Any, rows: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
    """Set the bounds of rows; highspy up to 1.11 does it for one row at a time only."""
    if hasattr(lp, "changeRowsBounds"):
        lp.changeRowsBounds(len(rows), rows, lower, upper)
        return
    for row, low, high in zip(rows.tolist(), lower.tolist(), upper.tolist(), strict=True):
        lp.changeRowBounds(row, low, high)
