"""The vocabulary of a learning problem: targets, losses, regularisers, complexities, solutions.

No kernel is computed and no algorithm runs here, so every other folder may import this one.
"""

from .solution import ROUNDING_UNITS, Machine, Solution, relative_gap
from .target import Target

__all__ = ["ROUNDING_UNITS", "Machine", "Solution", "Target", "relative_gap"]
