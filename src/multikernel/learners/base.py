"""What a learner is: it predicts with one fixed kernel."""

from __future__ import annotations

from typing import Protocol

from ..grams.protocol import CombinedGram
from ..solvers.problem import Machine, Target


class Learner(Protocol):
    """Anything that trains machines on a combined Gram operator."""

    kind: str

    def fit(self, gram: CombinedGram, target: Target) -> Machine:
        """Train one machine per column of the target."""
        ...
