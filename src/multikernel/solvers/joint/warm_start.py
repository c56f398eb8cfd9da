"""Warm starts: kernel weights of a similar problem, from which a joint solver starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...grams.protocol import CombinedGram

#: Warm weights below this fraction of the rule's default start would grow too slowly.
MIN_WEIGHT_RATIO = 0.005
#: Share of the default start that is then mixed in.
DEFAULT_START_SHARE = 0.01


@dataclass(frozen=True)
class WarmStart:
    """Kernel weights of a similar problem.

    Attributes
    ----------
    kernel_weights : array of shape (p,)
    gram : CombinedGram or None
        The combination with these weights, if it is already computed.
    """

    kernel_weights: np.ndarray
    gram: CombinedGram | None = None

    def near(self, start: np.ndarray) -> np.ndarray:
        """The warm weights, kept away from zero; the default start if the lengths differ."""
        if len(self.kernel_weights) != len(start):
            return start
        return mix_with_start(self.kernel_weights, start)


def mix_with_start(warm: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The warm weights, mixed with the default start if some are so small that they grow slowly."""
    if np.all(warm >= MIN_WEIGHT_RATIO * start):
        return warm
    return (1.0 - DEFAULT_START_SHARE) * warm + DEFAULT_START_SHARE * start
