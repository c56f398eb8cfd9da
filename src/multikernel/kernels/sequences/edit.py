"""Edit distances as similarities: kernels that are not positive semidefinite, and their repair."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._options import check_choice
from ..base import Kernel, check_number
from .base import SequenceKernel
from .encoding import Coded, Sequences

DISTANCES = ("levenshtein", "damerau")
REPAIRS = ("clip", "shift", None)


@dataclass(frozen=True, repr=False)
class EditSimilarity(SequenceKernel):
    """``K(x, z) = exp(-gamma d(x, z))`` with an edit distance d; not positive semidefinite.

    d is the smallest total cost of insertions, deletions and substitutions (and exchanges of
    neighbours, for ``"damerau"``) that turn x into z. Methods that need a positive semidefinite
    kernel refuse a learned combination that is not one; ``psd`` repairs the kernel on the
    training sample. Distances are computed by rapidfuzz, which must be installed.

    Parameters
    ----------
    gamma : float, default=1.0
        Positive.
    distance : {"levenshtein", "damerau"}, default="levenshtein"
    costs : (int, int), default=(1, 1)
        Costs of an insertion or deletion, and of a substitution; whole numbers. Only for
        ``"levenshtein"``.
    relative : bool, default=True
        Divide d by the length of the longer sequence.
    psd : {"clip", "shift"} or None, default=None
        How the kernel is made positive semidefinite on the training sample (Chen, Garcia, Gupta,
        Rahimi & Cazzanti 2009). ``"clip"`` drops the negative part of its spectrum, and projects
        new samples onto the rest; ``"shift"`` adds the smallest multiple of ``[x = z]`` that makes
        all eigenvalues non-negative.
    unit, alphabet, ignore_case, columns
        As in :class:`Spectrum`. An unknown symbol differs from every symbol.

    Examples
    --------
    >>> from multikernel.kernels.sequences import EditSimilarity
    >>> EditSimilarity(gamma=1.0, relative=False)(["kitten", "sitting", "mitten"]).round(3)
    array([[1.   , 0.05 , 0.368],
           [0.05 , 1.   , 0.05 ],
           [0.368, 0.05 , 1.   ]])
    """

    gamma: float = 1.0
    distance: str = field(default="levenshtein", kw_only=True)
    costs: tuple[int, int] = field(default=(1, 1), kw_only=True)
    relative: bool = field(default=True, kw_only=True)
    psd: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("EditSimilarity", "gamma", self.gamma, positive=True)
        object.__setattr__(self, "gamma", float(self.gamma))
        check_choice("EditSimilarity", "distance", self.distance, DISTANCES)
        check_choice("EditSimilarity", "psd", self.psd, REPAIRS)
        try:
            change, substitute = self.costs
        except (TypeError, ValueError):
            raise ValueError(
                "EditSimilarity: costs must be two numbers: the cost of an insertion or deletion "
                "(one number for both, or d would not be symmetric) and the cost of a "
                f"substitution; got {self.costs!r}."
            ) from None
        check_number("EditSimilarity", "costs[0]", change, positive=True, whole=True)
        check_number("EditSimilarity", "costs[1]", substitute, positive=True, whole=True)
        object.__setattr__(self, "costs", (int(change), int(substitute)))
        if self.distance == "damerau" and self.costs != (1, 1):
            raise ValueError("EditSimilarity: costs can be set only with distance='levenshtein'.")

    @property
    def shortest(self) -> int:
        return 0  # empty sequences are allowed

    def adapt(self, X: Any, sample_weight: np.ndarray | None = None) -> Kernel:
        """The kernel repaired on this sample; itself without a repair."""
        return self if self.psd is None else Repaired.on(self, self.select(X))

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        if self.psd is None:
            return super().__call__(X, Z)
        if Z is not None and Z is not X:
            raise ValueError(
                f"{self!r} is repaired on a training sample. Use K = kernel.adapt(X_train), then "
                "K(X, Z); estimators do this in fit."
            )
        return self.adapt(X)(X)

    def diag(self, X: Any) -> np.ndarray:
        return super().diag(X) if self.psd is None else self.adapt(X).diag(X)

    def _pairs(self, x: Coded, z: Coded, code: dict[str, int]) -> np.ndarray:
        process, scorer = self._rapidfuzz()
        # An unknown symbol gets a different letter on each side, so that it matches nothing.
        unknown = any(int(sample.codes.min(initial=0)) < 0 for sample in (x, z))
        left = _strings(x, 1)
        right = left if z is x and not unknown else _strings(z, 2)
        options: dict[str, Any] = {}
        if self.distance == "levenshtein":
            change, substitute = self.costs
            options["scorer_kwargs"] = {"weights": (change, change, substitute)}
        d = process.cdist(left, right, scorer=scorer, dtype=np.int32, **options).astype(np.float64)
        if self.relative:
            d /= np.maximum(np.maximum(x.lengths[:, None], z.lengths[None, :]), 1)
        return np.asarray(np.exp(-self.gamma * d))

    def _diag(self, x: Coded, code: dict[str, int]) -> np.ndarray:
        rows = np.repeat(np.arange(len(x)), x.lengths)
        unknown = np.bincount(rows, x.codes < 0, len(x))
        if not unknown.any():
            return np.ones(len(x))
        each = [Coded(x.codes[a:b], np.array([0, b - a])) for a, b in _bounds(x)]
        return np.array([self._pairs(one, one, code)[0, 0] for one in each])

    def _rapidfuzz(self) -> tuple[Any, Any]:
        try:
            from rapidfuzz import process
            from rapidfuzz.distance import DamerauLevenshtein, Levenshtein
        except ImportError as error:
            raise ImportError(
                "EditSimilarity needs rapidfuzz: pip install 'multikernel[sequences]'."
            ) from error
        scorers = {"levenshtein": Levenshtein, "damerau": DamerauLevenshtein}
        return process, scorers[self.distance].distance


def _bounds(x: Coded) -> list[tuple[int, int]]:
    return list(zip(x.offsets[:-1].tolist(), x.offsets[1:].tolist(), strict=True))


def _strings(x: Coded, unknown: int) -> list[str]:
    """Python strings with one character per symbol, whatever the symbols are."""
    # No symbol is a zero: NumPy drops zeros at the end of strings.
    points = x.codes.astype(np.uint32) + np.uint32(3)
    points[x.codes < 0] = unknown
    points[points >= 0xD800] += np.uint32(0x800)  # no surrogates
    text = points.tobytes().decode("utf-32-le")
    return [text[a:b] for a, b in _bounds(x)]


@dataclass(frozen=True, repr=False, eq=False)
class Repaired(Kernel):
    """A kernel made positive semidefinite on a reference sample R of distinct sequences.

    ``clip``: ``K(x, z) = k(x, R) V L^-1 V' k(R, z)`` with the positive eigenvalues L of k(R, R)
    and their eigenvectors V. On R itself this is the matrix without its negative part; a new sample
    is projected onto the remaining space.
    ``shift``: ``K(x, z) = k(x, z) + s [x = z]``, where -s is the smallest eigenvalue of k(R, R), or
    s = 0 if that is positive.

    Two repaired kernels are equal if their kernels are and they hold the same reference object.
    """

    kernel: EditSimilarity
    reference: Sequences
    factor: np.ndarray  # V L^-1/2 for clip, s for shift

    @classmethod
    def on(cls, kernel: EditSimilarity, sample: Sequences) -> Repaired:
        """Repair on the distinct sequences of a sample, as duplicates change nothing."""
        plain = dataclasses.replace(kernel, psd=None)
        x, _, _ = plain._coded(sample, sample)
        _, first = np.unique(_strings(x, 1), return_index=True)
        reference = sample[np.sort(first)]
        K = plain(reference)
        values, vectors = np.linalg.eigh(K)
        if kernel.psd == "shift":
            return cls(kernel, reference, np.array([max(-float(values[0]), 0.0)]))
        kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
        return cls(kernel, reference, vectors[:, kept] / np.sqrt(values[kept]))

    def __repr__(self) -> str:
        return repr(self.kernel)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Repaired)
            and self.kernel == other.kernel
            and self.reference is other.reference
        )

    def __hash__(self) -> int:
        return hash((self.kernel, id(self.reference)))

    @property
    def is_psd(self) -> bool:
        return True

    @property
    def plain(self) -> EditSimilarity:
        """The kernel before its repair."""
        return dataclasses.replace(self.kernel, psd=None)

    def resolve(self, n_features: int, feature_names: Sequence[str] | None) -> Repaired:
        kernel: Any = self.kernel.resolve(n_features, feature_names)
        return dataclasses.replace(self, kernel=kernel)

    def _map(self, X: Any) -> np.ndarray:
        return self.plain(self.plain.select(X), self.reference) @ self.factor

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        same = Z is None or Z is X
        if self.kernel.psd == "clip":
            left = self._map(X)
            return left @ (left if same else self._map(Z)).T
        given = self.plain.select(X)
        other = given if same else self.plain.select(Z)
        x, z, _ = self.plain._coded(given, other)
        equal = np.array(_strings(x, 1))[:, None] == np.array(_strings(z, 2))[None, :]
        return np.asarray(self.plain(given, other) + self.factor[0] * equal)

    def diag(self, X: Any) -> np.ndarray:
        if self.kernel.psd == "clip":
            return np.sum(self._map(X) ** 2, axis=1)
        given = self.plain.select(X)
        x, _, _ = self.plain._coded(given, given)
        rows = np.repeat(np.arange(len(x)), x.lengths)
        known = np.bincount(rows, x.codes < 0, len(x)) == 0
        return self.plain.diag(X) + self.factor[0] * known
