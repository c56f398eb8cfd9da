"""Predictions for several outputs that each have kernel weights of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .protocol import Expansion, encode_once, require_sizes


class SeparateExpansions(Expansion):
    """One expansion per output."""

    def __init__(self, parts: Sequence[Expansion]) -> None:
        self.parts = list(parts)
        self.n_kernels = self.parts[0].n_kernels

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SeparateExpansions:
        sizes = [part.n_kernels for part in state["parts"]]
        require_sizes(set(sizes) == {state["n_kernels"]}, "kernels of the outputs")
        return super().from_state(state)

    def encode(self, X: Any) -> Any:
        return encode_once(self.parts, X)

    def values(self, points: Any) -> np.ndarray:
        each = [part.values(p) for part, p in zip(self.parts, points, strict=True)]
        return np.concatenate(each, axis=1)

    def shares(self, points: Any) -> np.ndarray:
        each = [part.shares(p) for part, p in zip(self.parts, points, strict=True)]
        return np.concatenate(each, axis=2)

    def gradients(self, X: Any, steps: np.ndarray) -> np.ndarray:
        return np.concatenate([part.gradients(X, steps) for part in self.parts], axis=2)

    def release(self) -> None:
        for part in self.parts:
            part.release()
