"""The features of a whole bank, and the choice of a method for each kernel."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ...kernels.base import Kernel
from ...kernels.derivatives import BASES
from ...kernels.precomputed import Precomputed
from ...kernels.sequences.base import readers
from ...kernels.sequences.table import Table
from ...kernels.vectors import Linear, Polynomial, VectorKernel
from ..pivoted_cholesky import pivoted_cholesky
from ..planning import Part, Plan
from ..protocol import Stateful, require_sizes
from .approximations import Approximation, Nystroem, RandomFeatures, default_count
from .frequencies import draw, has_frequencies, orthogonal_normal
from .parts import ColumnsPart, FeaturePart, FourierPart, LandmarkPart, SinglePart, SketchPart

#: Maximum number of candidate samples per landmark.
CANDIDATES_PER_LANDMARK = 20
#: Maximum number of landmarks that are proposed at a time.
MAX_BLOCK = 64
#: Largest number of exact features: columns of linear kernels, or counts of n-grams.
MAX_EXACT_FEATURES = 8192
#: Lower limit on variances in feature space, relative to the mean diagonal of the kernel.
SMALLEST_VARIANCE = 1e-10


class FeatureMap(Stateful):
    """Makes the features of all kernels of a bank side by side, in the order of the bank.

    Parameters
    ----------
    parts : sequence of FeaturePart
    positions : sequence of int arrays
        Positions of the kernels of each part in the bank.
    """

    def __init__(self, parts: Sequence[FeaturePart], positions: Sequence[np.ndarray]) -> None:
        self.parts, self.positions = list(parts), [np.asarray(where) for where in positions]
        self.widths = np.zeros(sum(map(len, self.positions)), dtype=np.intp)
        for part, where in zip(self.parts, self.positions, strict=True):
            self.widths[where] = part.widths

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FeatureMap:
        where = np.concatenate(state["positions"])
        fit = np.array_equal(np.sort(where), np.arange(len(state["widths"])))
        require_sizes(fit, "positions of the kernels")
        widths = [width for part in state["parts"] for width in part.widths]
        require_sizes(np.array_equal(state["widths"][where], widths), "features of the kernels")
        return super().from_state(state)

    @property
    def n_kernels(self) -> int:
        return len(self.widths)

    @property
    def n_features(self) -> int:
        return int(self.widths.sum())

    @property
    def starts(self) -> np.ndarray:
        """Position of the first feature of each kernel, then the number of features, (p + 1,)."""
        return np.concatenate([[0], np.cumsum(self.widths)])

    def _columns(self, where: np.ndarray) -> np.ndarray:
        starts = self.starts
        return np.concatenate([np.arange(starts[k], starts[k + 1]) for k in where])

    def __call__(self, X: Any) -> np.ndarray:
        """The features of inputs, shape (n, D)."""
        return self.with_errors(X, errors=False)[0]

    def with_errors(self, X: Any, errors: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The features, and ``K_k(x, x)`` of the kernels themselves, shape (p, n)."""
        X = self._as_input(X)
        if len(self.parts) == 1 and np.array_equal(self.positions[0], np.arange(self.n_kernels)):
            part = self.parts[0]
            Phi = part.features(X)
            return Phi, part.diagonals(X, Phi) if errors else np.zeros((self.n_kernels, 0))
        out = np.empty((X.shape[0], self.n_features))
        diagonals = np.zeros((self.n_kernels, X.shape[0] if errors else 0))
        for part, where in zip(self.parts, self.positions, strict=True):
            Phi = part.features(X)
            out[:, self._columns(where)] = Phi
            if errors:
                diagonals[where] = part.diagonals(X, Phi)
        return out, diagonals

    def _as_input(self, X: Any) -> Any:
        text = [
            k
            for part in self.parts
            for k in readers([getattr(part, "kernels", ()), getattr(part, "counts", None)])
        ]
        return Table.of(X) if text else X

    @property
    def error_is_trace(self) -> bool:
        """Whether ``0 <= K_hat <= K`` for every kernel, so that the trace bounds the error."""
        return all(part.kind not in (FourierPart.kind, SketchPart.kind) for part in self.parts)

    def describe(self) -> str:
        """One line about the features, for a plan."""
        kinds = dict.fromkeys(part.kind for part in self.parts)
        return f"{self.n_features} features: {', '.join(kinds)}"


def make_features(
    plan: Plan,
    X: Any,
    approximation: Approximation,
    *,
    n_samples: int | None = None,
) -> FeatureMap:
    """The features of the kernels of a plan.

    Parameters
    ----------
    plan : Plan
        The plan of a bank that is adapted to its sample.
    X : array, sparse matrix or table of shape (m, d)
        Samples among which landmarks are chosen.
    approximation : Nystroem or RandomFeatures
    n_samples : int, optional
        The number of training samples, of which X may hold a part.
    """
    approximation.check()
    n_samples = X.shape[0] if n_samples is None else n_samples
    parts: list[FeaturePart] = []
    positions: list[np.ndarray] = []
    kernels: list[tuple[int, Kernel]] = []
    for part in plan.parts:
        if part.kind in ("rank-one", "features"):
            parts.append(_single(part))
            positions.append(part.positions)
        elif part.kind == "given":
            raise ValueError(
                "kernels='precomputed' holds kernel values but no inputs to compute features "
                "from. Use approximation=None, or kernels that are functions of X."
            )
        else:
            kernels += zip(part.positions.tolist(), part.kernels, strict=True)
    if isinstance(approximation, Nystroem):
        found = _by_landmarks(plan, kernels, X, approximation, n_samples)
    else:
        assert isinstance(approximation, RandomFeatures)
        found = _at_random(plan, kernels, X, approximation)
    parts += [part for part, _ in found]
    positions += [where for _, where in found]
    _refuse_too_many(parts)
    return FeatureMap(parts, positions)


def _single(part: Part) -> SinglePart:
    if part.kind == "rank-one":
        return SinglePart(part.columns)
    return SinglePart(None, part.features)


def _refuse_too_many(parts: Sequence[FeaturePart]) -> None:
    exact = sum(sum(part.widths) for part in parts if part.kind == SinglePart.kind)
    if exact > MAX_EXACT_FEATURES:
        raise ValueError(
            f"{exact} kernels with one feature each exceed the limit of {MAX_EXACT_FEATURES} with "
            "approximation=...: use approximation=None, which takes time proportional to the "
            "non-zero entries, or fewer kernels (top= of mk.per_ngram, columns= of "
            "mk.per_feature)."
        )


Found = list[tuple[FeaturePart, np.ndarray]]


def _by_landmarks(
    plan: Plan,
    kernels: Sequence[tuple[int, Kernel]],
    X: Any,
    approximation: Nystroem,
    n_samples: int,
) -> Found:
    found: Found = []
    groups: dict[Hashable, list[tuple[int, Kernel]]] = {}
    _refuse_without_landmarks(plan, kernels)
    rank = approximation.find_rank(n_samples, default_count(len(kernels), _n_columns(X)))
    for at, kernel in kernels:
        width = _exact_width(kernel, X)
        if width is not None and width <= rank:
            found.append((ColumnsPart([kernel], [width]), np.array([at])))
        else:
            groups.setdefault(_landmark_key(kernel), []).append((at, kernel))
    for number, members in enumerate(groups.values()):
        own = [kernel for _, kernel in members]
        where = np.array([at for at, _ in members])
        shared = all(type(kernel) in BASES for kernel in own)
        random = np.random.default_rng([approximation.random_state, number])
        rows = _landmarks(own, X, rank, random, shared)
        found.append((LandmarkPart(own, X[rows], shared), where))
    return found


def kernels_for_landmarks(plan: Plan) -> list[tuple[int, Kernel]]:
    """The kernels of a plan with their positions; a ValueError if one has no features."""
    kernels = [
        pair
        for part in plan.parts
        for pair in zip(part.positions.tolist(), part.kernels, strict=True)
    ]
    _refuse_without_landmarks(plan, kernels)
    return kernels


def _refuse_without_landmarks(plan: Plan, kernels: Sequence[tuple[int, Kernel]]) -> None:
    for at, kernel in kernels:
        if isinstance(kernel, Precomputed):
            raise ValueError(
                f"Kernel {plan.names[at]!r} is a precomputed matrix and has no features for "
                "samples outside it. Use approximation=None."
            )
        if not kernel.is_psd:
            raise ValueError(
                f"Kernel {plan.names[at]!r} is not known to be positive semidefinite, so it has no "
                "features. Leave it out, declare psd=True (mk.Callable), or use "
                "approximation=None."
            )


def _landmark_key(kernel: Kernel) -> Hashable:
    """Kernels with the same key share landmarks: those on the same columns."""
    if isinstance(kernel, VectorKernel):
        return ("vectors", kernel.columns, kernel.scaling, type(kernel) in BASES)
    return ("others", getattr(kernel, "columns", None))


def _landmarks(
    kernels: Sequence[Any], X: Any, rank: int, random: np.random.Generator, shared: bool
) -> np.ndarray:
    """Row numbers of landmarks, chosen for the sum of the kernels divided by their variances."""
    n = X.shape[0]
    candidates = np.arange(n)
    if n > CANDIDATES_PER_LANDMARK * rank:
        candidates = np.sort(random.choice(n, CANDIDATES_PER_LANDMARK * rank, replace=False))
    pool = X[candidates]
    factors = 1.0 / _variances(kernels, pool, random)

    def columns(index: np.ndarray) -> np.ndarray:
        each = _evaluate(kernels, pool, pool[index], shared)
        total: Any = 0.0
        for factor, block in zip(factors, each, strict=True):
            total = total + factor * block
        return np.asarray(total)

    diagonals = np.array([np.asarray(kernel.diag(pool), dtype=np.float64) for kernel in kernels])
    found = pivoted_cholesky(
        columns, factors @ diagonals, rank, block=min(MAX_BLOCK, max(rank // 4, 1)), seed=random
    )
    return candidates[found.pivots] if found.rank else candidates[:1]  # one if all are zero


def _evaluate(kernels: Sequence[Any], X: Any, rows: Any, shared: bool) -> Any:
    if shared:
        from .parts import _cross

        cross = _cross(kernels, rows)
        return cross.block(cross.encode(X))
    return (np.asarray(kernel(X, rows), dtype=np.float64) for kernel in kernels)


def _variances(kernels: Sequence[Any], X: Any, random: np.random.Generator) -> np.ndarray:
    """The mean of the centred diagonal of each kernel on some samples, positive."""
    some = X[np.sort(random.permutation(X.shape[0])[:200])]
    out = []
    for kernel in kernels:
        K = np.asarray(kernel(some, some), dtype=np.float64)
        size = max(float(np.mean(np.diag(K))), 1e-300)
        out.append(max(size - float(K.mean()), SMALLEST_VARIANCE * size))
    return np.array(out)


def _n_columns(X: Any) -> int:
    return int(X.shape[1]) if len(X.shape) > 1 else 1


def _exact_width(kernel: Any, X: Any) -> int | None:
    """The number of columns of a linear kernel, which are its features; None for others."""
    return int(kernel.select(X[:1]).shape[1]) if type(kernel) is Linear else None


def _at_random(
    plan: Plan, kernels: Sequence[tuple[int, Kernel]], X: Any, approximation: RandomFeatures
) -> Found:
    count = approximation.n_features
    if count is None:
        count = default_count(len(kernels), _n_columns(X))
    found: Found = []
    groups: dict[Hashable, list[tuple[int, Any]]] = {}
    for at, kernel in kernels:
        width, seed = _exact_width(kernel, X), [approximation.random_state, 1, at]
        if width is not None and width <= max(count, MAX_EXACT_FEATURES):
            found.append((ColumnsPart([kernel], [width]), np.array([at])))
        elif type(kernel) is Polynomial and kernel.is_psd:
            n_columns = int(kernel.select(X[:1]).shape[1])
            found.append((SketchPart(kernel, n_columns, count, seed), np.array([at])))
        elif has_frequencies(kernel):
            assert isinstance(kernel, VectorKernel)
            groups.setdefault((kernel.columns, kernel.scaling), []).append((at, kernel))
        else:
            raise ValueError(
                f"Kernel {plan.names[at]!r} has no random features; they exist for Gaussian, "
                "Laplacian, Exponential, Matern, RationalQuadratic, Polynomial (coef0 >= 0) and "
                "Linear kernels. Use approximation=mk.Nystroem(rank=...), which works with every "
                "positive semidefinite kernel, or leave this one out."
            )
    for number, members in enumerate(groups.values()):
        own = [kernel for _, kernel in members]
        random = np.random.default_rng([approximation.random_state, 2, number])
        Z = own[0].select(X)
        origin = np.asarray(Z.mean(axis=0), dtype=np.float64).ravel()
        normal = orthogonal_normal(len(origin), max(count // 2, 1), random)
        frequencies = [draw(kernel, normal, random) for kernel in own]
        where = np.array([at for at, _ in members])
        found.append((FourierPart(own, origin, frequencies), where))
    return found
