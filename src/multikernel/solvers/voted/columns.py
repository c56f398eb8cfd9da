"""The functions that vote: a column ``x -> K_k(x, x_j)`` for each kernel and training sample.

Kernels vote as built: neither centred nor normalised, constant ones included. They need not be
positive semidefinite, nor symmetric: the product of column (k, j) with v is
``sum_i v_i K_k(x_i, x_j)``, that is ``K_k' v``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...grams.memory import MemoryBudget
from ...grams.planning import Plan
from ...grams.protocol import Grams
from ...kernels.base import Kernel
from ...kernels.vectors import Linear
from .expansion import VotedExpansion, unit_vector
from .terms import Terms


class KernelColumns:
    """All columns of a bank on one sample.

    Parameters
    ----------
    grams : Grams
        The kernels as built; matrices need not be symmetric.
    kernels : sequence of Kernel or None
        The kernels as values; None for matrices without a formula and for n-grams.
    budget : MemoryBudget
        Memory for the columns of a solver.
    """

    def __init__(
        self, grams: Grams, kernels: Sequence[Kernel | None], budget: MemoryBudget
    ) -> None:
        self.grams, self.kernels, self.budget = grams, list(kernels), budget

    @property
    def n(self) -> int:
        """Number of training samples."""
        return self.grams.n

    @property
    def p(self) -> int:
        """Number of kernels."""
        return self.grams.p

    @property
    def names(self) -> Sequence[str]:
        """The names of the kernels."""
        return self.grams.names

    def price(self, V: np.ndarray) -> np.ndarray:
        """``K_k' V`` for every kernel: (p, n) for V of shape (n,), (p, n, t) for (n, t)."""
        V2 = np.asarray(V, dtype=np.float64).reshape(self.n, -1)
        # An overflow is found below and reported with the kernel's name.
        with np.errstate(over="ignore", invalid="ignore"):
            out = self.grams.column_products(V2)
        finite = np.isfinite(out).all(axis=(1, 2))
        if not finite.all():
            self._refuse_overflow(int(np.argmin(finite)))
        return out[:, :, 0] if np.ndim(V) == 1 else out

    def take(self, k: int, points: np.ndarray) -> np.ndarray:
        """Columns of kernel k at some samples, ``K_k(x_i, x_j)`` of shape (n, len(points))."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.grams.combine(unit_vector(self.p, k)).columns(points)
        if not np.isfinite(found).all():
            self._refuse_overflow(k)
        return found

    def _refuse_overflow(self, k: int) -> None:
        raise ValueError(
            f"Kernel {self.names[k]!r} overflows on the training data. Standardise the columns of "
            "X, or use a smaller gamma or degree."
        )

    def diagonals(self) -> np.ndarray:
        """``K_k(x_i, x_i)``, shape (p, n)."""
        return self.grams.diagonals()

    def rounding(self, k: int) -> float:
        """How far rounding may have moved the eigenvalues of kernel k."""
        return float(self.grams.rounding[k])

    def subset(self, rows: np.ndarray) -> KernelColumns:
        """The columns of the bank on some of the samples; evaluated entries are reused."""
        return KernelColumns(self.grams.take(rows), self.kernels, self.budget)

    def expand(self, terms: Sequence[Terms]) -> VotedExpansion:
        """The functions with these terms, one output for each element of the list."""
        return VotedExpansion(self.grams, terms)


def planned_kernels(plan: Plan) -> list[Kernel | None]:
    """The kernels of a plan as values, in the order of the bank; None where there is none."""
    kernels: list[Kernel | None] = [None] * plan.n_kernels
    for part in plan.parts:
        own: Sequence[Kernel] = part.kernels
        if part.features is None and part.kind == "rank-one":
            own = [Linear(columns=(int(column),)) for column in part.columns]
        for k, kernel in zip(part.positions, own, strict=False):
            kernels[k] = kernel
    return kernels
