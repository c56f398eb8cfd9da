"""The waist: what every algorithm may ask of a bank evaluated on one training sample.

Everything above it says what the kernels are; everything below it asks for the passes of
:class:`Grams` and nothing else. Memory layout, threads and devices live in the implementations.

Sample weights ``omega`` are part of the sample: every statistic is the one of the sample in which
point i appears ``omega_i`` times. With ``W = sum omega`` the centred kernel is

    Kc[i, j] = K[i, j] - r[i] - r[j] + g,   r = K omega / W,   g = omega' K omega / W^2

and inner products are ``<K, L> = sum_ij omega_i omega_j K[i, j] L[i, j]``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ._dense_loops import gather, panel_statistics

T = TypeVar("T")

# A panel of rows is the unit in which passes read the bank. Its height depends on the problem
# alone, never on threads or memory, so that sums are the same bits however the work is divided.
PANEL_BYTES = 64 * 2**20
MAX_PANEL_ROWS = 128


@dataclass(frozen=True)
class Summary:
    """What alignment-based weightings need to know about the (normalised) kernels.

    Attributes
    ----------
    traces : array of shape (p,)
        ``sum_i omega_i K_k[i, i]`` of the kernels as they are handed to a learner.
    norms : array of shape (p,)
        ``||K_kc||_F``, always of the centred kernels.
    a : array of shape (p,)
        ``a_k = <K_kc, Y Y'>``.
    M : array of shape (p, p), or None when it was not asked for
        ``M_kl = <K_kc, K_lc>``.
    target_norm : float
        ``||(Y Y')_c||_F``; ``||y_c||^2`` for a single target.
    """

    traces: np.ndarray
    norms: np.ndarray
    a: np.ndarray
    M: np.ndarray | None
    target_norm: float

    @property
    def alignments(self) -> np.ndarray:
        """The centred alignment of each kernel with the target; 0 where it is undefined."""
        size = self.norms * self.target_norm
        return np.divide(self.a, size, out=np.zeros_like(self.a), where=size > 0)

    def alignment(self, weights: np.ndarray) -> float:
        """The centred alignment of ``sum_k weights_k K_k`` with the target; needs M."""
        if self.M is None:
            raise ValueError("The alignment of a combination needs summary(..., products=True).")
        size = np.sqrt(max(float(weights @ self.M @ weights), 0.0)) * self.target_norm
        return float(weights @ self.a) / size if size > 0 else 0.0


def centred_square(row_means: np.ndarray, square: float, weights: np.ndarray | None) -> float:
    """The squared norm of a centred matrix from the means of its rows and its squared norm."""
    omega = np.ones(len(row_means)) if weights is None else weights
    total = float(omega.sum())
    grand_mean = float(omega @ row_means) / total
    return square - 2.0 * total * float(omega @ row_means**2) + (total * grand_mean) ** 2


class CombinedGram(ABC):
    """The Gram operator of one combination ``sum_k w_k K_k`` on the training sample."""

    n: int
    _matrix: np.ndarray | None = None

    def dense(self) -> np.ndarray:
        """The whole matrix, float64, shape (n, n); kept, and not to be written to."""
        if self._matrix is None:
            self._matrix = self._dense()
        return self._matrix

    def forget(self) -> None:
        """Give the whole matrix up; it is computed again when it is asked for."""
        self._matrix = None

    def rows(self, index: slice) -> np.ndarray:
        """Rows of the matrix, shape (len, n)."""
        return self._rows(index) if self._matrix is None else self._matrix[index]

    def take(self, index: np.ndarray) -> np.ndarray:
        """Some rows of the matrix, in any order, shape (len, n)."""
        if self._matrix is not None:
            return self._matrix[index]
        return np.concatenate([self._rows(slice(i, i + 1)) for i in index.tolist()])

    def among(self, index: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """The matrix among some points, in any order, shape (len, len); a copy."""
        if self._matrix is None:
            return self.take(index)[:, index].astype(dtype, copy=False)
        out = np.empty((len(index), len(index)), dtype=dtype)
        gather(self._matrix, index, index, out)
        return out

    #: what may be allocated for it, in bytes
    room: float = float("inf")

    def fits(self) -> bool:
        """Whether there is room for the whole matrix."""
        return self._matrix is not None or 8.0 * self.n**2 <= self.room

    def matvec(self, V: np.ndarray) -> np.ndarray:
        """The product with V of shape (n,) or (n, t), in float64."""
        return self._matvec(V) if self._matrix is None else self._matrix @ V

    @abstractmethod
    def _dense(self) -> np.ndarray: ...

    @abstractmethod
    def _rows(self, index: slice) -> np.ndarray: ...

    @abstractmethod
    def _matvec(self, V: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def diagonal(self) -> np.ndarray:
        """Shape (n,)."""

    def centred_norm(self, weights: np.ndarray | None) -> float:
        """Frobenius norm of the matrix centred under sample weights, streamed over its rows."""
        omega = np.ones(self.n) if weights is None else weights
        total = omega.sum()
        row_means, no_target = np.zeros(self.n), np.zeros((1, self.n))
        panels = [slice(i, min(i + 256, self.n)) for i in range(0, self.n, 256)]
        square = 0.0
        for rows in panels:
            K = np.ascontiguousarray(self.rows(rows))
            square += panel_statistics(K, rows.start, omega, no_target, row_means)[0]
        row_means /= total
        centred = centred_square(row_means, square, weights)
        if centred > 1e-4 * square:
            return float(np.sqrt(centred))
        # Nearly all of it was mean, and digits went with it: centred entry by entry, then.
        grand_mean = float(omega @ row_means) / total
        square = 0.0
        for rows in panels:
            K = self.rows(rows) - row_means[rows, None] - (row_means - grand_mean)
            square += float(omega[rows] @ (K**2 @ omega))
        return float(np.sqrt(square))


class Expansion(ABC):
    """A fitted function ``f(x) = sum_k w_k sum_j c_j K_k(x, x_j)``, without the training Grams.

    It holds no more than prediction needs: the points with a coefficient and the kernels with a
    weight.
    """

    n_kernels: int

    @abstractmethod
    def shares(self, points: Any) -> np.ndarray:
        """Each kernel's part of f at new points, shape (n_new, p, t)."""

    @abstractmethod
    def values(self, points: Any) -> np.ndarray:
        """f at new points, shape (n_new, t): the sum of the shares, computed together."""

    @abstractmethod
    def encode(self, X: Any) -> Any:
        """New inputs in the form this expansion reads."""

    def release(self) -> None:  # noqa: B027
        """Forget what only predictions for training points need (matrices of their kernels)."""


class SeparateExpansions(Expansion):
    """Several outputs, each with kernel weights of its own."""

    def __init__(self, parts: Sequence[Expansion]) -> None:
        self.parts = list(parts)
        self.n_kernels = self.parts[0].n_kernels

    def encode(self, X: Any) -> Any:
        return [part.encode(X) for part in self.parts]

    def values(self, points: Any) -> np.ndarray:
        each = [part.values(p) for part, p in zip(self.parts, points, strict=True)]
        return np.concatenate(each, axis=1)

    def shares(self, points: Any) -> np.ndarray:
        each = [part.shares(p) for part, p in zip(self.parts, points, strict=True)]
        return np.concatenate(each, axis=2)

    def release(self) -> None:
        for part in self.parts:
            part.release()


class Grams(ABC):
    """A bank evaluated on one training sample, seen only through passes over it."""

    #: how an implementation is called in a plan
    kind: str = "grams"
    #: what :meth:`corrected` was asked for
    center: bool = False
    how: str | None = None

    def __init__(
        self,
        n: int,
        names: Sequence[str],
        *,
        weights: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.n = n
        self.names = names
        self.weights = weights
        self.n_jobs = n_jobs

    @property
    def p(self) -> int:
        return len(self.names)

    @property
    def total_weight(self) -> float:
        return float(self.n if self.weights is None else self.weights.sum())

    # -- the two primitives ---------------------------------------------------------------------

    @abstractmethod
    def block(self, rows: slice) -> np.ndarray:
        """The p x |rows| x n slice of the bank, centred and normalised, in float64 or float32."""

    def panels(self) -> list[slice]:
        """The row panels that passes read, a fixed cut of ``range(n)``."""
        height = PANEL_BYTES // max(8 * self.n * self.p, 1)
        height = max(1, min(MAX_PANEL_ROWS, height))
        return [slice(i, min(i + height, self.n)) for i in range(0, self.n, height)]

    def map(self, fn: Callable[[slice], T]) -> list[T]:
        """``fn`` of every panel, possibly in threads; results come in panel order."""
        return run_in_order(fn, self.panels(), self.n_jobs)

    # -- the passes -----------------------------------------------------------------------------

    @abstractmethod
    def corrected(self, center: bool, normalize: str | None) -> Grams:
        """The same kernels centred (or not) and normalised; nothing is computed before it must."""

    @abstractmethod
    def diagonals(self) -> np.ndarray:
        """``K_k[i, i]``, shape (p, n)."""

    @abstractmethod
    def summary(self, Y: np.ndarray, products: bool = True) -> Summary:
        """Traces, norms and products with the target and with each other, in one streamed pass.

        Parameters
        ----------
        Y : array of shape (n, t)
            Targets; they are centred here.
        products : bool, default=True
            Whether the p x p matrix M is wanted.
        """

    @abstractmethod
    def combine(self, weights: np.ndarray) -> CombinedGram:
        """The Gram operator of ``sum_k weights_k K_k``."""

    @abstractmethod
    def matvecs(self, V: np.ndarray) -> np.ndarray:
        """``K_k V`` for every kernel, shape (p, n, t) for V of shape (n, t)."""

    def kernel_rows(self, index: np.ndarray) -> np.ndarray:
        """Rows of every kernel at some points, in any order, shape (p, len(index), n)."""
        return np.concatenate([self.block(slice(i, i + 1)) for i in index.tolist()], axis=1)

    def support_matvecs(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The points where V of shape (n, t) is not zero, and ``K_k V`` there, (p, points, t)."""
        support = np.flatnonzero(np.any(V != 0, axis=1))
        return support, self.matvecs(V)[:, support]

    @property
    def quick_forms(self) -> bool:
        """Whether `quadratic_forms` take less than `support_matvecs`."""
        return False

    def quadratic_forms(self, V: np.ndarray) -> np.ndarray:
        """``v' K_k v`` for every kernel and every column v of V, shape (p, t); or (p,) for 1-d."""
        V2 = V.reshape(self.n, -1)
        support, products = self.support_matvecs(V2)
        forms = np.einsum("knt,nt->kt", products, V2[support])
        return forms[:, 0] if V.ndim == 1 else forms

    @abstractmethod
    def expand(self, weights: np.ndarray, coef: np.ndarray) -> Expansion:
        """The function with these kernel weights (p,) and coefficients (n, t)."""

    def cross(self, X: Any) -> np.ndarray:
        """The bank between new points and the training points, shape (p, n_new, n)."""
        # One kernel at a time would do as well; this is for looking at, not for prediction.
        shares = self.expand(np.ones(self.p), np.eye(self.n))
        return np.ascontiguousarray(shares.shares(shares.encode(X)).transpose(1, 0, 2))

    # -- samples of the sample --------------------------------------------------------------------

    @abstractmethod
    def take(self, rows: np.ndarray, weights: np.ndarray | None = None) -> Grams:
        """The *uncorrected* bank on some of the points, with what is already computed reused."""

    @property
    def units(self) -> np.ndarray:
        """What normalising multiplies each kernel by, shape (p,); zero for constant ones.

        Ones where that is not known: then it cannot be used, but does no harm.
        """
        return np.ones(self.p)

    def expect(self, weights: np.ndarray | None) -> None:  # noqa: B027
        """A hint: ``combine`` will be asked for a multiple of these weights, after the statistics.

        They are weights of the kernels as they came; None for weights that are not known yet.
        Whoever reads all of the bank for the statistics may add it up on the way, or keep what
        combinations will need again.
        """

    def keep(self) -> None:  # noqa: B027
        """Bring what passes will read many times to where it is read quickly, if that is cheap."""

    @abstractmethod
    def points(self, rows: np.ndarray) -> Any:
        """Training points in the form an :class:`Expansion` of this bank reads."""

    @property
    @abstractmethod
    def degenerate(self) -> np.ndarray:
        """Mask (p,) of kernels that are constant on the sample: centred, they are zero."""

    @property
    @abstractmethod
    def known_psd(self) -> np.ndarray:
        """Mask (p,) of kernels known to be positive semidefinite without a look at the matrix."""


def run_in_order(fn: Callable[[Any], T], items: Sequence[Any], n_jobs: int) -> list[T]:
    """Map in at most ``n_jobs`` threads, results in the order of the items."""
    if n_jobs <= 1 or len(items) <= 1:
        return [fn(item) for item in items]
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(fn, items))


def center_targets(Y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Targets minus their (weighted) mean, shape (n, t), float64."""
    Y = np.asarray(Y, dtype=np.float64)
    Y = Y.reshape(Y.shape[0], -1)
    return Y - np.average(Y, axis=0, weights=weights)


def target_norm(Yc: np.ndarray, weights: np.ndarray | None) -> float:
    """``||Y Y'||_F`` of centred targets, through the small t x t matrix."""
    weighted = Yc if weights is None else weights[:, None] * Yc
    return float(np.linalg.norm(Yc.T @ weighted))
