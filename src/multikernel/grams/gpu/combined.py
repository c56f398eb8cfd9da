"""The Gram operator of one combination, with its matrix on the device where that pays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from ..._cholesky import MIN_PIVOT_RATIO
from ..blocks import BlockCombined
from ..low_rank_inverse import LowRankInverse
from ..memory import MemoryBudget
from ..operators import PSD_TOLERANCE, EigenvalueBounds, extreme_eigenvalues, rayleigh_quotient
from ..pivoted_cholesky import pivoted_cholesky
from ..protocol import CANCELLATION_LIMIT, CombinedGram, centred_square
from .cholesky import factor_in_place, solve_with_factor
from .device import host
from .tall_factor import DeviceFactor, DeviceLowRankInverse

#: Products computed from the samples before the matrix is kept on the device, if it fits.
PRODUCTS_BEFORE_KEEPING = 2
#: From this many samples on, learners leave the matrix on the GPU.
MIN_DEVICE_SAMPLES = 4096
#: Share of the memory budget that a kept matrix may use; the rest is for Cholesky factors.
KEPT_SHARE = 0.5


class DeviceCombined(BlockCombined):
    """`BlockCombined` of grams on a device, by their passes `combine` and `combined_products`.

    Solves factor a matrix on the device. The first products are computed from the samples, later
    ones from the matrix. The matrix is copied to the host only by `dense`.
    """

    grams: Any
    _tensor: Any = None
    _n_products = 0

    def __init__(self, grams: Any, kernel_weights: np.ndarray) -> None:
        super().__init__(grams, kernel_weights)
        # Systems of up to a few thousand samples are solved faster on the host.
        self.on_device = grams.device.on_gpu and self.n >= MIN_DEVICE_SAMPLES

    def fits(self, copies: int = 1) -> bool:
        needed = copies - (self._matrix is not None)
        bytes_needed = 8.0 * needed * self.n**2
        return needed <= 0 or (
            bytes_needed <= self.room and MemoryBudget.of(None).allows(bytes_needed)
        )

    def _has_room(self, copies: int = 1) -> bool:
        """Whether the device has room for this many matrices besides a kept one."""
        have = self._tensor is not None
        return 8.0 * (copies + have) * self.n**2 <= self.room

    @property
    def offers(self) -> frozenset[str]:
        found = CombinedGram.offers.fget(self)  # type: ignore[attr-defined]
        return found | ({"factor"} if self._has_room() and not self.spherical else set())

    def forget(self) -> None:
        super().forget()
        self._tensor = None

    def scaled(self, factor: float) -> DeviceCombined:
        new = type(self)(self.grams, factor * self.kernel_weights)
        if self._tensor is not None:
            new._tensor, self._tensor = self._tensor.mul_(factor), None
        return new

    # -- on the device ----------------------------------------------------------------------------

    def _shifts(self) -> tuple[Any, Any] | None:
        if not self.grams.center:
            return None
        device = self.grams.device
        return device.put(self.row_mean), device.put(self.row_mean - self.grand_mean)

    def _fill(self) -> Any:
        """The matrix as a new tensor."""
        passes = self.grams.passes
        return passes.combine(self.raw_weights, passes.points, shifts=self._shifts())

    def _keep(self) -> bool:
        """Whether the matrix is on the device; counts products, and keeps it when that pays."""
        self._n_products += 1
        if self._tensor is None and self._n_products > PRODUCTS_BEFORE_KEEPING:
            small = 8.0 * self.n**2 <= KEPT_SHARE * self.room
            if small and not self.spherical:
                self._tensor = self._fill()
        return self._tensor is not None

    def _matvec(self, V: np.ndarray) -> np.ndarray:
        if self.spherical or not self._keep():
            return super()._matvec(V)
        V2 = np.asarray(V, dtype=np.float64).reshape(self.n, -1)
        W = self.grams.device.put(V2)
        found = self._tensor @ (W[:, 0] if W.shape[1] == 1 else W)
        return host(found).reshape(np.shape(V))

    @property
    def rough_products(self) -> bool:  # type: ignore[override]
        """Whether products with vectors are faster in single precision, from the samples."""
        known = self.spherical or self._tensor is not None or self._matrix is not None
        return not known and self.grams.passes.rough_series(self.raw_weights) is not None

    def rough_matvec(self, V: np.ndarray) -> np.ndarray:
        V2 = np.asarray(V, dtype=np.float64).reshape(self.n, -1)
        passes = self.grams.passes
        found = passes.rough_products(self.raw_weights, self.grams.device.put(V2))
        return self._centred(host(found), V2).reshape(np.shape(V))

    def low_rank_inverse(self, ridge: np.ndarray, rank: int, **options: Any) -> LowRankInverse:
        if self.spherical:
            return super().low_rank_inverse(ridge, rank, **options)
        device, rank = self.grams.device, min(rank, self.n)
        found = pivoted_cholesky(
            self._columns,
            self.diagonal(),
            rank,
            submatrix=self.submatrix,
            factor=DeviceFactor(device, self.n, rank),
            **options,
        )
        return DeviceLowRankInverse(device, found, ridge)

    def _columns(self, index: np.ndarray) -> Any:
        """Columns of the matrix, a new tensor (n, len(index))."""
        passes, shifts, j = self.grams.passes, self._shifts(), self.grams.device.index(index)
        if self._tensor is not None:
            return self._tensor[:, j]
        own = None if shifts is None else (shifts[0], shifts[1][j])
        columns = passes.to(index, self.raw_weights)
        return columns.combine(self.raw_weights, passes.points, shifts=own)

    def _rows(self, index: np.ndarray) -> np.ndarray:
        if self._tensor is None:
            return super()._rows(index)
        return host(self._tensor[self.grams.device.index(index)])

    def submatrix(self, index: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        if self.spherical or self._matrix is not None or not len(index):
            return super().submatrix(index, dtype)
        found = self._entries(index, index)
        # Rounding on the device halves the bytes to copy.
        return host(found.float() if dtype == np.float32 else found).astype(dtype, copy=False)

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        if self.spherical or self._matrix is not None:
            return super().entries(rows, columns)
        return host(self._entries(rows, columns))

    def _entries(self, rows: np.ndarray, columns: np.ndarray) -> Any:
        """``K[rows][:, columns]`` as a new tensor."""
        device, passes, shifts = self.grams.device, self.grams.passes, self._shifts()
        i, j = device.index(rows), device.index(columns)
        if self._tensor is not None:
            return self._tensor[i[:, None], j]
        own = None if shifts is None else (shifts[0][i], shifts[1][j])
        among = passes.to(columns, self.raw_weights)
        return among.combine(self.raw_weights, passes.points.take(i), shifts=own)

    def partial_matvec(self, index: np.ndarray, V: np.ndarray) -> np.ndarray:
        if self.spherical or not len(index):
            return super().partial_matvec(index, V)
        device, passes = self.grams.device, self.grams.passes
        W = device.put(np.asarray(V, dtype=np.float64).reshape(len(index), -1))
        if self._keep():
            rows = self._tensor[device.index(index)]
            # A product with one vector is several times as fast as with a matrix of one column.
            out = (rows.T @ W[:, 0])[:, None] if W.shape[1] == 1 else rows.T @ W
        else:
            columns = passes.to(index, self.raw_weights)
            out = columns.combined_products(self.raw_weights, passes.points, W)
            shifts = self._shifts()
            if shifts is not None:
                out -= shifts[0][:, None] * W.sum(dim=0)
                out -= shifts[1][device.index(index)] @ W
        return host(out).reshape(self.n, *np.shape(V)[1:])

    def solve_among(
        self, index: np.ndarray, ridge: float | np.ndarray, B: np.ndarray
    ) -> np.ndarray:
        if self.spherical or not self.on_device:
            return super().solve_among(index, ridge, B)
        device = self.grams.device
        A = self._entries(index, index)
        A.diagonal().add_(device.put(np.broadcast_to(ridge, len(index))))
        if not factor_in_place(A):
            raise LinAlgError("The matrix is not positive definite.")
        size = A.diagonal().abs()
        if len(index) and not float(size.min()) ** 2 > MIN_PIVOT_RATIO * float(size.max()) ** 2:
            raise LinAlgError("The matrix is singular up to rounding.")
        right = device.put(np.asarray(B, dtype=np.float64).reshape(len(index), -1))
        return host(solve_with_factor(A, right)).reshape(np.shape(B))

    def _dense(self) -> np.ndarray:
        if self.spherical:
            return super()._dense()
        self.grams.budget.require(
            8.0 * self.n**2,
            f"The combined Gram matrix of {self.n} samples",
            "Raise memory_budget, or use fewer samples.",
        )
        return host(self._fill() if self._tensor is None else self._tensor)

    def solve(self, ridge: np.ndarray, B: np.ndarray) -> np.ndarray:
        if self.spherical or not self._has_room():
            return super().solve(ridge, B)
        device = self.grams.device
        right = device.put(np.asarray(B, dtype=np.float64).reshape(self.n, -1))
        A = self._with(ridge)
        if factor_in_place(A):
            return host(solve_with_factor(A, right)).reshape(np.shape(B))
        del A  # an indefinite kernel, about which the user has been warned
        if not self._has_room(2):
            return super().solve(ridge, B)
        return host(device.torch.linalg.solve(self._with(ridge), right)).reshape(np.shape(B))

    def _with(self, ridge: np.ndarray | float) -> Any:
        """A new tensor ``K + diag(ridge)``."""
        A = self._fill() if self._tensor is None else self._tensor.clone()
        device = self.grams.device
        A.diagonal().add_(device.put(np.broadcast_to(ridge, self.n)))
        return A

    def lowest_eigenvalue(self, *, rough: bool = False) -> EigenvalueBounds:
        if self.spherical or not self._has_room():
            return super().lowest_eigenvalue(rough=rough)
        A = self._with(0.0)
        bound = float(self.grams.device.torch.linalg.vector_norm(A))
        largest = 0.9 * rayleigh_quotient(self.matvec, self.n, 5)
        allowed = max(PSD_TOLERANCE * max(0.01 * bound, largest), self.rounding)
        A.diagonal().add_(allowed)
        if factor_in_place(A):
            return EigenvalueBounds(0.0, bound, True)
        return extreme_eigenvalues(self.matvec, self.n, self.rounding)

    def centred_norm(self, sample_weight: np.ndarray | None) -> float:
        if self.spherical:
            return super().centred_norm(sample_weight)
        sums = self.grams.raw_combined_sums(self.raw_weights, sample_weight)
        total = self.n if sample_weight is None else sample_weight.sum()
        if sums is not None:
            centred = centred_square(sums[0] / total, sums[1], sample_weight)
            if sums[1] <= self.grams.one_pass_limit * centred:
                return float(np.sqrt(centred))
        device, omega = self.grams.device, np.ones(self.n)
        omega = device.put(omega if sample_weight is None else sample_weight)
        row_sums, square = self._norm_sums(omega, None)
        means = row_sums / total
        centred = centred_square(host(means), square, sample_weight)
        if centred > CANCELLATION_LIMIT * square:
            return float(np.sqrt(centred))
        return float(np.sqrt(self._norm_sums(omega, means)[1]))

    def _norm_sums(self, omega: Any, means: Any) -> tuple[Any, float]:
        """Weighted row sums; sum of squares of the matrix, centred if row means are given."""
        grams, device = self.grams, self.grams.device
        passes, shifts = grams.passes, self._shifts()
        row_sums, square = device.empty(self.n), 0.0
        height = device.panel_rows(4 * self.n, grams.budget)
        for start in range(0, self.n, height):
            rows = slice(start, min(start + height, self.n))
            own = None if shifts is None else (shifts[0][rows], shifts[1])
            K = passes.combine(self.raw_weights, passes.points.take(rows), shifts=own)
            row_sums[rows] = K @ omega
            if means is not None:
                K -= means[rows, None]
                K -= means - (omega @ means) / omega.sum()
            square += float(omega[rows] @ (K.square_() @ omega))
        return row_sums, square
