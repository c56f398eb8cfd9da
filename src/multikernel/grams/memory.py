"""The memory budget of a fit, and the error when it is not enough."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from numbers import Real

import psutil

#: Fraction of the free memory that a fit may use by default.
FRACTION = 0.6

_UNITS = {"b": 1} | {f"{x}b": 1000**k for k, x in enumerate("kmgt", 1)}
_UNITS |= {f"{x}ib": 1024**k for k, x in enumerate("kmgt", 1)}


class MemoryBudgetError(MemoryError, ValueError):
    """The computation does not fit the memory budget; the message says how to change that."""


@dataclass(frozen=True)
class MemoryBudget:
    """A limit in bytes, checked before allocations."""

    bytes: int

    @classmethod
    def of(cls, budget: int | float | str | MemoryBudget | None) -> MemoryBudget:
        """A budget from bytes, from text such as ``"4GB"``, or from the free memory."""
        if isinstance(budget, MemoryBudget):
            return budget
        if budget is None:
            return cls(int(FRACTION * psutil.virtual_memory().available))
        if isinstance(budget, str):
            match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(b|[kmgt]i?b)\s*", budget.lower())
            if match:
                budget = float(match[1]) * _UNITS[match[2]]
        number = isinstance(budget, Real) and not isinstance(budget, bool)
        if not number or not float(budget) > 0:  # type: ignore[arg-type]
            raise ValueError(
                f"memory_budget must be a positive number of bytes, text such as '4GB', or None "
                f"for {FRACTION:.0%} of the free memory; got {budget!r}."
            )
        return cls(int(min(float(budget), sys.maxsize)))  # type: ignore[arg-type]

    def allows(self, needed: float) -> bool:
        return needed <= self.bytes

    def require(self, needed: float, what: str, advice: str) -> None:
        """Raise :class:`MemoryBudgetError` if ``needed`` bytes do not fit."""
        if not self.allows(needed):
            raise MemoryBudgetError(
                f"{what} needs {readable(needed)}, more than the memory budget of "
                f"{readable(self.bytes)}. {advice}"
            )


def readable(size: float) -> str:
    """A number of bytes in a readable unit."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.3g} {unit}"
        size /= 1000
    raise AssertionError
