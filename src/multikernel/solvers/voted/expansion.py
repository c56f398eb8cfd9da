"""The fitted function of a vote: one ordinary expansion for each kernel that has terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...grams.protocol import Expansion, Grams, encode_once, require_sizes
from .terms import Terms


class VotedExpansion(Expansion):
    """The sum of one function per kernel, ``f_k(x) = sum_j coef_kj K_k(x, x_j)``.

    Only kernels with terms are evaluated, and each of them only at the training samples of its own
    terms.

    Parameters
    ----------
    grams : Grams
        The kernels as built, neither centred nor normalised.
    terms : sequence of Terms
        One for each output.
    """

    def __init__(self, grams: Grams, terms: Sequence[Terms]) -> None:
        self.n_kernels, self.n_outputs = grams.p, len(terms)
        used = np.unique(np.concatenate([one.kernels for one in terms])).tolist()
        #: Kernels with terms. If there are none, kernel 0 with zero coefficients is used.
        self.kernels: list[int] = used or [0]
        self.parts: list[Expansion] = []
        for k in self.kernels:
            coef = np.zeros((grams.n, len(terms)))
            for t, one in enumerate(terms):
                own = one.kernels == k
                coef[one.points[own], t] = one.coef[own]
            self.parts.append(grams.expand(unit_vector(grams.p, k), coef))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> VotedExpansion:
        kernels, parts = state["kernels"], state["parts"]
        require_sizes(len(kernels) == len(parts) > 0, "kernels and their functions")
        fit = all(0 <= k < state["n_kernels"] for k in kernels)
        require_sizes(fit, "number of kernels")
        return super().from_state(state)

    def encode(self, X: Any) -> EncodedParts:
        return EncodedParts(encode_once(self.parts, X))

    def _values(self, points: Any) -> list[np.ndarray]:
        """The values of every part.

        `points` are the result of :meth:`encode`, or training samples in the form of
        :meth:`Grams.points`, which all parts accept.
        """
        if not isinstance(points, EncodedParts):
            return [part.values(points) for part in self.parts]
        return [part.values(own) for part, own in zip(self.parts, points, strict=True)]

    def values(self, points: Any) -> np.ndarray:
        return np.asarray(sum(self._values(points)))

    def shares(self, points: Any) -> np.ndarray:
        each = self._values(points)
        out = np.zeros((len(each[0]), self.n_kernels, self.n_outputs))
        out[:, self.kernels] = np.stack(each, axis=1)
        return out

    def gradients(self, X: Any, steps: np.ndarray) -> np.ndarray:
        return np.sum([part.gradients(X, steps) for part in self.parts], axis=0)

    def release(self) -> None:
        for part in self.parts:
            part.release()


class EncodedParts(list[Any]):
    """New inputs as the parts of a :class:`VotedExpansion` read them, one entry for each part."""


def unit_vector(p: int, k: int) -> np.ndarray:
    """The kernel weights (p,) of kernel k alone."""
    weights = np.zeros(p)
    weights[k] = 1.0
    return weights
