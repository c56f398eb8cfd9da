"""Rational kernels, which compare the outputs of a weighted transducer for two sequences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._mirror import mirror
from ..._options import check_choice
from . import _rational_loops
from .base import SequenceKernel
from .encoding import Coded, Sequences, common_codes, fold
from .transducers import Transducer, compose


@dataclass(frozen=True, repr=False)
class Rational(SequenceKernel):
    """The rational kernel ``K(x, z) = sum_w T(x, w) T(z, w)`` of a weighted transducer T.

    Positive semidefinite for any T (Cortes, Haffner & Mohri 2004). A pair takes
    ``|x| |z|`` steps times the number of moves of ``T o T^-1``: this is the general case, and
    kernels that have their own class are much faster.

    Parameters
    ----------
    transducer : Transducer
    semiring : {"real", "log"}, default="real"
        How weights of paths are added up. Logarithms (``"log"``) neither overflow nor underflow;
        they need non-negative weights.
    normalized : bool, default=False
        ``K(x, z) / sqrt(K(x, x) K(z, z))``, computed in the semiring; 0 where a sequence has no
        accepting path.
    unit, ignore_case, columns
        As in :class:`Spectrum`.
    alphabet : {"dna", "rna", "protein"}, str, sequence of str or None, default=None
        The known symbols. Unknown ones are read by ``ANY``, and never written. None means all
        symbols that occur or that the transducer names; with ``OTHER`` or ``ANY`` on the output
        side the kernel depends on the size of the alphabet, which must then be given.

    Examples
    --------
    >>> from multikernel.kernels.sequences import Rational, Transducer
    >>> Rational(Transducer.ngrams(2))(["ACAC", "ACA"])
    array([[5., 3.],
           [3., 2.]])
    """

    transducer: Transducer
    semiring: str = field(default="real", kw_only=True)
    normalized: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        T = self.transducer
        if not isinstance(T, Transducer):
            raise TypeError(f"Rational: transducer must be a Transducer; got {T!r}.")
        check_choice("Rational", "semiring", self.semiring, ("real", "log"))
        weights = [arc[4] for arc in T.arcs] + [w for _, w in (*T.initial, *T.final)]
        if self.semiring == "log" and min(weights) < 0:
            raise ValueError(
                f"Rational: semiring='log' needs non-negative weights; {T!r} has {min(weights):g}. "
                "Use semiring='real'."
            )
        if self.alphabet is None and any(arc[3] in ("<other>", "<any>") for arc in T.arcs):
            raise ValueError(
                f"Rational: {T!r} writes symbols that it has not read, so the kernel depends on "
                "the size of the alphabet; pass alphabet='dna', 'protein', or the letters."
            )
        if self.alphabet is not None:
            strange = sorted(set(T.literals) - set(self.alphabet))
            if strange:
                raise ValueError(
                    f"Rational: {T!r} names {', '.join(map(repr, strange))}, which the alphabet "
                    "does not contain."
                )

    @property
    def is_psd(self) -> bool:
        return True

    @property
    def shortest(self) -> int:
        return 0

    def _coded(self, X: Sequences, Z: Sequences) -> tuple[Coded, Coded, dict[str, int]]:
        return common_codes(X, Z, self.alphabet, self.ignore_case, self.transducer.literals)

    def _machine(self, code: dict[str, int]) -> tuple[Any, ...]:
        T, size = self.transducer, len(code)
        known = (
            {symbol: code.get(fold(symbol)) for symbol in T.literals} if self.ignore_case else code
        )
        machine = compose(T, {s: c for s, c in known.items() if c is not None})
        _, x, z, both = zip(machine.moves, machine.weights, strict=True)
        closure = _closure(machine.moves[0], machine.weights[0], machine.n_states, size, T)
        return (*x, *z, *both, closure, machine.initial, machine.final, size)

    def _values(self, x: Coded, z: Coded, code: dict[str, int], which: int) -> np.ndarray:
        """Sums over paths in the semiring; 0: all pairs, 1: lower triangle, 2: the diagonal."""
        shape = (len(x), 1 if which == 2 else len(z))
        out = np.zeros(shape)
        log = self.semiring == "log"
        run: Any = _rational_loops.pairs
        run(x.codes, x.offsets, z.codes, z.offsets, *self._machine(code), log, which, out)
        if which == 1:
            mirror(out)
        return out[:, 0] if which == 2 else out

    def _pairs(self, x: Coded, z: Coded, code: dict[str, int]) -> np.ndarray:
        K = self._values(x, z, code, 1 if z is x else 0)
        left = right = None
        if self.normalized:
            left = np.diag(K).copy() if z is x else self._values(x, x, code, 2)
            right = left if z is x else self._values(z, z, code, 2)
        return self._leave_semiring(K, left, right)

    def _diag(self, x: Coded, code: dict[str, int]) -> np.ndarray:
        d = self._values(x, x, code, 2)
        if self.normalized:
            return (d > (-np.inf if self.semiring == "log" else 0.0)).astype(np.float64)
        return self._leave_semiring(d, None, None)

    def _leave_semiring(
        self, K: np.ndarray, left: np.ndarray | None, right: np.ndarray | None
    ) -> np.ndarray:
        if self.semiring == "log":
            if left is not None and right is not None:
                finite = [np.where(np.isneginf(d), 0.0, d) for d in (left, right)]
                K = K - 0.5 * finite[0][:, None] - 0.5 * finite[1][None, :]
            if K.max(initial=-np.inf) > np.log(np.finfo(np.float64).max):
                raise ValueError(
                    f"{self!r} overflows: the logarithm of a value reaches {K.max():.3g}. Use "
                    "normalized=True, or smaller weights."
                )
            return np.exp(K)
        if not np.isfinite(K).all():
            raise ValueError(f"{self!r} overflows. Use semiring='log' with normalized=True.")
        if left is not None and right is not None:
            roots = [np.sqrt(np.where(d > 0, d, 1.0)) for d in (left, right)]
            K = K / roots[0][:, None] / roots[1][None, :]
        return K


def _closure(
    moves: np.ndarray, weights: np.ndarray, n_states: int, size: int, T: Transducer
) -> np.ndarray:
    """Sums over all paths that read nothing, ``I + E + E^2 + ... = (I - E)^-1``; empty if none."""
    if not len(weights):
        return np.zeros((0, 0))
    E = np.zeros((n_states, n_states))
    for e, weight in enumerate(weights):
        ways = _rational_loops.multiplicity(moves, e, -1, -1, size)
        E[moves[e, 0], moves[e, 1]] += weight * ways
    if np.abs(np.linalg.eigvals(np.abs(E))).max() >= 1 - 1e-9:
        raise ValueError(
            f"The rational kernel of {T!r} is not defined: a cycle of arcs that read nothing has "
            "weights so large that the sum over paths diverges. Use smaller weights."
        )
    return np.linalg.inv(np.eye(n_states) - E)
