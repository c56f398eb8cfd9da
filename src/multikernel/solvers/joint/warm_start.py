"""Where a joint solver begins: weights of a similar problem, perhaps with their combination."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...grams.protocol import CombinedGram

#: A warm weight below this part of the rule's own start cannot grow quickly enough.
SMALLEST_PART = 0.005
#: Part of the rule's own start that is mixed in then.
MIXED_PART = 0.01


@dataclass(frozen=True)
class WarmStart:
    """Kernel weights of a similar problem.

    Attributes
    ----------
    weights : array of shape (p,)
    gram : CombinedGram or None
        The combination with these weights, if a pass has computed it already.
    """

    weights: np.ndarray
    gram: CombinedGram | None = None

    def near(self, start: np.ndarray) -> np.ndarray:
        """The warm weights, away from zero; the rule's own start if the lengths differ."""
        if len(self.weights) != len(start):
            return start
        return mix_with_start(self.weights, start)


def mix_with_start(warm: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Warm weights, none of them so near zero that it could not grow again."""
    if np.all(warm >= SMALLEST_PART * start):
        return warm
    return (1.0 - MIXED_PART) * warm + MIXED_PART * start
