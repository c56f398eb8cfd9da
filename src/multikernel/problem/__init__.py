"""The vocabulary of a learning problem: targets, losses, regularisers, complexities, solutions.

Nothing here computes a kernel or runs an algorithm, so every other folder may import it.
"""

from .solution import Machine, Solution, relative_gap
from .target import Target

__all__ = ["Machine", "Solution", "Target", "relative_gap"]
