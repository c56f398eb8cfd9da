"""Grams of kernels given as matrices or as functions: explicit n x n matrices."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy as shallow_copy
from dataclasses import replace
from typing import Any

import numpy as np

from .._matrix_loops import add_rows, gather
from .._mirror import mirror
from ..kernels.base import Kernel
from ..kernels.base import known_psd as ask_psd
from ..kernels.derivatives import weighted_gradient
from ..kernels.precomputed import Precomputed, check_kernel_matrix, value_precision
from . import _dense_loops as loops
from ._uncompiled import is_small_given
from .asymmetric import AsymmetricCombined, asymmetry_error
from .blocks import BlockGrams, RawCross, RawStatistics
from .memory import MemoryBudget
from .protocol import CombinedGram, add, require_sizes, run_in_order

#: Bytes of the rows of a combination that stay in the cache while the matrices are added up.
HALF_PANEL_BYTES = 1 << 20


class DenseGrams(BlockGrams):
    """One matrix per kernel, given (and never copied) or evaluated once and kept.

    Parameters
    ----------
    matrices : sequence of p arrays of shape (N, N), or None
        None for kernels that are evaluated anew, block by block, in every pass.
    rows : array of shape (n,)
        Which rows of the matrices (or of ``X``) make up the sample.
    kernels : sequence of p kernels
        The kernels that are evaluated at new samples.
    X : array, sparse matrix or None
        The inputs the kernels are evaluated on; None for matrices without inputs.
    symmetric : bool, default=True
        Whether ``K_k[i, j] = K_k[j, i]``, on which compiled passes rely: they read one half of
        every matrix. With False only entries, products and expansions are available, and passes
        that need symmetric matrices raise an error.
    """

    kind = "dense"

    def __init__(
        self,
        matrices: Sequence[np.ndarray] | None,
        rows: np.ndarray,
        kernels: Sequence[Kernel] | None,
        X: Any,
        names: Sequence[str],
        budget: MemoryBudget,
        *,
        known_psd: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        n_jobs: int = 1,
        symmetric: bool = True,
    ) -> None:
        single = matrices is not None and all(K.dtype == np.float32 for K in matrices)
        dtype = np.float32 if single else np.float64
        super().__init__(
            len(rows), names, dtype, budget, sample_weight=sample_weight, n_jobs=n_jobs
        )
        self.matrices = matrices
        self.sample = rows
        self.kernels = kernels
        self.X = X
        if known_psd is None:
            known_psd = np.zeros(self.p, dtype=bool) if kernels is None else ask_psd(kernels)
        self._known_psd = known_psd
        self._precisions: np.ndarray | None = None
        self.symmetric = symmetric
        # The compiled passes read these matrices at these positions. A sample that is the whole
        # pool in order is read by plain slices, without a copy.
        self._read, self._where = matrices, rows
        self._whole = matrices is not None and np.array_equal(rows, np.arange(len(matrices[0])))
        if matrices is None:
            budget.require(
                8.0 * self.p * self.n * (self.panels()[0].stop + 1),
                f"One block of {self.p} kernels on {self.n} samples",
                "Raise memory_budget, use fewer kernels, or fewer samples.",
            )

    @classmethod
    def evaluate(
        cls,
        kernels: Sequence[Kernel],
        X: Any,
        names: Sequence[str],
        budget: MemoryBudget,
        *,
        known_psd: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        n_jobs: int = 1,
        symmetric: bool = True,
    ) -> DenseGrams:
        """Evaluate the kernels on X now if the matrices fit the budget, else in every pass."""
        n = X.shape[0]
        options: dict[str, Any] = {
            "known_psd": known_psd,
            "sample_weight": sample_weight,
            "n_jobs": n_jobs,
            "symmetric": symmetric,
        }
        rows = np.arange(n)
        if all(isinstance(kernel, Precomputed) for kernel in kernels):
            matrices = [kernel.matrix for kernel in kernels]  # type: ignore[attr-defined]
            smallest = min(kernels, key=lambda kernel: len(kernel.matrix))  # type: ignore[attr-defined]
            ids = smallest.ids(X)  # type: ignore[attr-defined]
            return cls(matrices, ids, kernels, None, names, budget, **options)
        if not budget.allows(2.0 * len(kernels) * n * n * 8):
            return cls(None, rows, kernels, X, names, budget, **options)
        matrices = []
        for kernel, name in zip(kernels, names, strict=True):
            K = kernel(X) if symmetric else kernel(X, X)
            if symmetric:
                check_kernel_matrix(K, name)
            matrices.append(K)
        return cls(matrices, rows, kernels, X, names, budget, **options)

    @classmethod
    def given(
        cls,
        X: np.ndarray,
        rows: np.ndarray,
        names: Sequence[str],
        budget: MemoryBudget,
        *,
        sample_weight: np.ndarray | None = None,
        n_jobs: int = 1,
        symmetric: bool = True,
    ) -> DenseGrams:
        """Matrices in an array (N, N, p), kernel axis last, read in place."""
        matrices = [X[:, :, k] for k in range(X.shape[2])]
        if symmetric:
            for K, name in zip(matrices, names, strict=True):
                check_kernel_matrix(K, name)
        options: dict[str, Any] = {
            "sample_weight": sample_weight,
            "n_jobs": n_jobs,
            "symmetric": symmetric,
        }
        return cls(matrices, rows, None, None, names, budget, **options)

    @property
    def known_psd(self) -> np.ndarray:
        return self._known_psd

    @property
    def value_precisions(self) -> np.ndarray:
        if self._precisions is None:
            matrices = self.matrices
            if matrices is None:  # judged from a few entries
                few = np.arange(min(self.n, 32))
                matrices = [self._evaluate(k, few, few) for k in range(self.p)]
            self._precisions = np.array([value_precision(K) for K in matrices])
        return self._precisions

    def stored(self, center: bool) -> DenseGrams:
        return self  # matrices that fit are in memory already

    def raw_block(self, rows: slice) -> np.ndarray:
        out = np.empty((self.p, len(range(*rows.indices(self.n))), self.n), dtype=self.dtype)
        for k in range(self.p):
            if self.matrices is None:
                assert self.kernels is not None
                out[k] = self.kernels[k](self.X[self.sample[rows]], self.X[self.sample])
            elif self._whole:
                assert self._read is not None
                out[k] = self._read[k][rows]
            else:
                out[k] = self.matrices[k][np.ix_(self.sample[rows], self.sample)]
        return out

    def entries(self, k: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """``K_k[rows][:, columns]`` of the kernel as built; no other kernel is evaluated."""
        if self.matrices is not None:
            chosen = np.ix_(self.sample[rows], self.sample[columns])
            return np.asarray(self.matrices[k][chosen], dtype=np.float64)
        return np.asarray(self._evaluate(k, rows, columns), dtype=np.float64)

    def _evaluate(self, k: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Entries of a kernel without a matrix, in the precision of the kernel."""
        assert self.kernels is not None
        return np.asarray(self.kernels[k](self.X[self.sample[rows]], self.X[self.sample[columns]]))

    def raw_diagonals(self) -> np.ndarray:
        if self.matrices is not None:
            return np.stack([K[self.sample, self.sample] for K in self.matrices]).astype(np.float64)
        assert self.kernels is not None
        X = self.X[self.sample]
        return np.stack([kernel.diag(X) for kernel in self.kernels]).astype(np.float64)

    # -- matrices that need not be symmetric ------------------------------------------------------

    def corrected(self, center: bool, normalize: str | None) -> BlockGrams:
        if not self.symmetric:
            raise asymmetry_error("Centring or normalising")
        return super().corrected(center, normalize)

    def combine(self, kernel_weights: np.ndarray) -> CombinedGram:
        if not self.symmetric:
            return AsymmetricCombined(self, np.asarray(kernel_weights, dtype=np.float64))
        return super().combine(kernel_weights)

    def column_products(self, V: np.ndarray) -> np.ndarray:
        if self.symmetric:
            return super().column_products(V)
        V = np.asarray(V, dtype=np.float64)
        self._copy_sample()  # the same entries are read in every round of a solver
        if self._whole:
            assert self._read is not None
            each = run_in_order(lambda K: np.asarray(K.T @ V), self._read, self.n_jobs)
            return np.stack(each).astype(np.float64, copy=False)
        out = np.zeros((self.p, self.n, V.shape[1]))
        for rows in self.panels():
            K = np.asarray(self.raw_block(rows), dtype=np.float64)
            out += K.transpose(0, 2, 1) @ V[rows]
        return out

    @property
    def _is_small(self) -> bool:
        return is_small_given(self.n, self.p)

    # -- passes that read one half of symmetric matrices ------------------------------------------

    def raw_combine(self, kernel_weights: np.ndarray) -> np.ndarray:
        if self._is_small and self.matrices is not None and self.symmetric:
            out = super().raw_combine(kernel_weights)
            mirror(out)  # given matrices may differ from symmetric ones by rounding
            return out
        if self.matrices is None or not self.symmetric:
            return super().raw_combine(kernel_weights)
        out = np.empty((self.n, self.n))
        used = np.flatnonzero(kernel_weights).tolist()

        def one(rows: slice) -> None:
            out[rows, : rows.stop] = 0.0  # while these rows are in the cache
            fours = len(used) - len(used) % 4
            for at in range(0, fours, 4):
                four = used[at : at + 4]
                a, b, c, d = (self._panel(k, rows) for k in four)
                loops.add_four_panels(a, b, c, d, rows.start, kernel_weights[four], out[rows])
            for k in used[fours:]:
                loops.add_panel(self._panel(k, rows), rows.start, kernel_weights[k], out[rows])

        run_in_order(one, self._half_panels(), self.n_jobs)
        mirror(out)
        return out

    def raw_statistics(
        self, Yc: np.ndarray | None, products: bool, also_combine: np.ndarray | None = None
    ) -> RawStatistics:
        if not self.symmetric:
            raise asymmetry_error("Summing up kernels for their norms and alignments")
        if self.matrices is None or self._is_small:
            return super().raw_statistics(Yc, products)
        omega = self._omega()
        OY = np.zeros((1, self.n)) if Yc is None else np.ascontiguousarray((omega[:, None] * Yc).T)
        row_sums = np.zeros((self.p, self.n))
        combined = None
        if also_combine is not None and self._whole and self.n_jobs == 1:
            diagonals, parts, combined = self._statistics_and_sum(omega, OY, row_sums, also_combine)
        else:
            parts = self._statistics_alone(omega, OY, row_sums)
            diagonals = self.raw_diagonals()
        everything = None
        if products:
            everything = self._half_products(np.zeros_like(row_sums), np.zeros(self.p), True)
        return RawStatistics(
            row_sums=row_sums,
            diagonals=diagonals,
            squares=parts[:, 0],
            products=everything,
            a=None if Yc is None else parts[:, 1],
            combined=combined,
        )

    def _statistics_alone(
        self, omega: np.ndarray, OY: np.ndarray, row_sums: np.ndarray
    ) -> np.ndarray:
        """Squares and products with the target, (p, 2); row sums are added in place."""
        panels = [slice(0, self.n)] if self._whole else self._half_panels()

        def one(k: int) -> tuple[float, float]:
            square = product = 0.0
            for rows in panels:
                part = loops.panel_statistics(
                    self._panel(k, rows), rows.start, omega, OY, row_sums[k]
                )
                square, product = square + part[0], product + part[1]
            return square, product

        return np.array(run_in_order(one, range(self.p), self.n_jobs)).reshape(self.p, 2)

    def raw_centred_products(
        self, row_means: np.ndarray, grand_means: np.ndarray, products: bool
    ) -> np.ndarray:
        if self.matrices is None or self._is_small:
            return super().raw_centred_products(row_means, grand_means, products)
        return self._half_products(row_means, grand_means, products)

    def _half_products(
        self, row_means: np.ndarray, grand_means: np.ndarray, full: bool
    ) -> np.ndarray:
        """``<K_k, K_l>`` after centring, (p, p) or its diagonal (p,); reads half of each matrix."""
        root = np.sqrt(self._omega())

        def one(rows: slice) -> np.ndarray:
            K = np.empty((self.p, rows.stop - rows.start, rows.stop))
            for k in range(self.p):
                panel = self._panel(k, rows)
                loops.centred_half(panel, rows.start, row_means[k], grand_means[k], root, K[k])
            flat = K.reshape(self.p, -1)
            return np.asarray(flat @ flat.T if full else np.einsum("ke,ke->k", flat, flat))

        return add(self.map(one))

    def _statistics_and_sum(
        self, omega: np.ndarray, OY: np.ndarray, row_sums: np.ndarray, kernel_weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Diagonals, squares and target products, and the combination, in one pass."""
        parts, diagonals = np.zeros((self.p, 2)), np.empty((self.p, self.n))
        out = np.empty((self.n, self.n))
        fours = self.p - self.p % 4
        for rows in self._half_panels():
            out[rows, : rows.stop] = 0.0
            panels = [self._panel(k, rows) for k in range(self.p)]
            for k in range(0, fours, 4):
                four = slice(k, k + 4)
                a, b, c, d = panels[four]
                loops.statistics_and_four_panels(
                    a,
                    b,
                    c,
                    d,
                    rows.start,
                    kernel_weights[four],
                    None if self.sample_weight is None else omega,
                    OY,
                    row_sums[four],
                    diagonals[four],
                    parts[four],
                    out[rows],
                )
            for k in range(fours, self.p):
                diagonals[k, rows] = panels[k].diagonal(rows.start)
                parts[k] += loops.panel_statistics(panels[k], rows.start, omega, OY, row_sums[k])
                loops.add_panel(panels[k], rows.start, kernel_weights[k], out[rows])
        mirror(out)
        return diagonals, parts, out

    def raw_matvecs(self, V: np.ndarray) -> np.ndarray:
        if self._read is None or not self.symmetric:
            return super().raw_matvecs(V)
        out = np.zeros((self.p, V.shape[1], len(self._read[0])))

        def one(k: int) -> None:
            for t in range(V.shape[1]):
                support = np.flatnonzero(V[:, t])
                add_rows(self._floats(k), self._where[support], V[support, t], out[k, t])

        run_in_order(one, range(self.p), self.n_jobs)
        out = out if self._whole else out[:, :, self._where]
        return np.ascontiguousarray(out.transpose(0, 2, 1))

    def raw_support_matvecs(self, V: np.ndarray, support: np.ndarray) -> np.ndarray:
        if self._read is None or not self.symmetric or self._is_small:
            return super().raw_support_matvecs(V, support)
        rows, pool, place = support, np.ascontiguousarray(V.T), np.arange(len(support))
        if not self._whole:
            # Samples may appear in any order, and more than once.
            rows, place = np.unique(self._where[support], return_inverse=True)
            pool = np.zeros((V.shape[1], len(self._read[0])))
            for t in range(V.shape[1]):
                np.add.at(pool[t], self._where[support], V[support, t])
        out = np.empty((self.p, V.shape[1], len(rows)))

        def one(k: int) -> None:
            for t in range(V.shape[1]):
                loops.support_dots(self._floats(k), rows, pool[t], out[k, t])

        run_in_order(one, range(self.p), self.n_jobs)
        return out.transpose(0, 2, 1)[:, place]

    # -- compiled passes over given matrices ------------------------------------------------------

    def _floats(self, k: int) -> np.ndarray:
        assert self._read is not None
        K = self._read[k]
        return K if K.dtype.kind == "f" else K.astype(np.float64)

    def _half_panels(self) -> list[slice]:
        height = max(2, HALF_PANEL_BYTES // (16 * self.n) * 2)  # even: loops take two rows at once
        return [slice(i, min(i + height, self.n)) for i in range(0, self.n, height)]

    def _panel(self, k: int, rows: slice) -> np.ndarray:
        """Some rows of one matrix, at least up to the diagonal."""
        assert self._read is not None
        K = self._read[k]
        if self._whole:
            panel = K[rows]
        else:
            panel = np.empty((rows.stop - rows.start, rows.stop), dtype=K.dtype)
            gather(K, self._where[rows], self._where[: rows.stop], panel)
        return panel if panel.dtype.kind == "f" else panel.astype(np.float64)

    def raw_cross(self, rows: np.ndarray, kernels: np.ndarray) -> DenseCross:
        return DenseCross(self, rows, kernels)

    def take(
        self, rows: np.ndarray, sample_weight: np.ndarray | None = None, *, copy: bool = False
    ) -> DenseGrams:
        taken = DenseGrams(
            self.matrices,
            self.sample[rows],
            self.kernels,
            self.X,
            self.names,
            self.budget,
            known_psd=self._known_psd,
            sample_weight=sample_weight,
            n_jobs=self.n_jobs,
            symmetric=self.symmetric,
        )
        taken._precisions = self._precisions
        if copy:
            taken._copy_sample()
        return taken

    def _copy_sample(self) -> None:
        """Copy the sample's entries to contiguous memory if they fit."""
        if self.matrices is None or self._whole:
            return
        if self.budget.allows(2.0 * self.p * self.n**2 * self.dtype.itemsize):
            own = np.empty((self.p, self.n, self.n), dtype=self.dtype)
            for k, K in enumerate(self.matrices):
                if self.symmetric and not self._is_small:
                    loops.gather_half(K, self.sample, own[k])
                    mirror(own[k])
                else:
                    gather(K, self.sample, self.sample, own[k])
            self._read, self._where, self._whole = list(own), np.arange(self.n), True

    def points(self, rows: np.ndarray) -> Any:
        return (
            PoolRows(self.sample[rows]) if self.matrices is not None else self.X[self.sample[rows]]
        )


class PoolRows(np.ndarray):
    """Row numbers of samples in a pool whose kernel values are known."""

    def __new__(cls, rows: np.ndarray) -> PoolRows:
        return np.asarray(rows, dtype=np.intp).view(cls)


class DenseCross(RawCross):
    """Kernels between new samples and anchors: looked up in matrices, or evaluated.

    New samples come in one of three forms: :class:`PoolRows`, an array (m, n, p) of kernel values
    against the whole training sample, or inputs for the kernels.
    """

    def __init__(self, grams: DenseGrams, rows: np.ndarray, kernels: np.ndarray) -> None:
        self.p = len(kernels)
        self.n_anchors = len(rows)
        self.anchors = grams.sample[rows]
        self.index = kernels
        self.names = [grams.names[k] for k in kernels]
        given = grams.kernels
        self.kernels = None if given is None else [given[k] for k in kernels]
        lookup = given is None or all(isinstance(kernel, Precomputed) for kernel in given)
        lookup = lookup or not len(kernels)  # no inputs where no kernel is evaluated
        self.inputs = None if lookup or grams.X is None else grams.X[self.anchors]
        self.matrices: list[np.ndarray] | None = None
        if grams.matrices is not None:
            self.matrices = [grams.matrices[k] for k in kernels]

    def release(self) -> None:
        # Cross-validation looks entries up; a fitted model evaluates its kernels.
        self.matrices = None

    def slim(self, diagonals: bool) -> RawCross:
        """The same kernels, with only the anchors' columns of each given matrix, renumbered.

        With ``diagonals`` the matrices stay whole: only they have the diagonals of new samples.
        """
        slim = shallow_copy(self)
        slim.release()
        given = slim.kernels or []
        if diagonals or not given or not all(isinstance(kernel, Precomputed) for kernel in given):
            return slim
        columns: Any = [replace(k, matrix=k.matrix[:, slim.anchors]) for k in given]  # type: ignore[attr-defined,type-var]
        slim.kernels, slim.anchors = columns, np.arange(slim.n_anchors)
        return slim

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> DenseCross:
        kernels, p = state["kernels"], state["p"]
        require_sizes(p == len(state["index"]) == len(state["names"]), "kernels and their names")
        require_sizes(kernels is None or len(kernels) == p, "number of kernels")
        return super().from_state(state)

    def encode(self, X: Any) -> Any:
        if self.kernels is None:
            return np.asarray(X)
        if self.inputs is None and self.kernels:
            return PoolRows(self.kernels[0].ids(X))  # type: ignore[attr-defined]
        return X

    def _one(self, k: int, points: Any) -> np.ndarray:
        if isinstance(points, PoolRows):
            matrix = self.kernels[k].matrix if self.matrices is None else self.matrices[k]  # type: ignore[index, attr-defined]
            return np.asarray(matrix[np.ix_(points, self.anchors)], dtype=np.float64)
        if self.kernels is None:
            return np.asarray(points[:, self.anchors, self.index[k]], dtype=np.float64)
        return np.asarray(self.kernels[k](points, self.inputs), dtype=np.float64)

    def block(self, points: Any) -> np.ndarray:
        out = np.empty((self.p, points.shape[0], self.n_anchors))
        for k in range(self.p):
            out[k] = self._one(k, points)
        return out

    def apply(self, points: Any, V: np.ndarray) -> np.ndarray:
        out = np.empty((self.p, points.shape[0], V.shape[1]))
        for k in range(self.p):
            out[k] = self._one(k, points) @ V
        return out

    def combined(self, points: Any, kernel_weights: np.ndarray, V: np.ndarray) -> np.ndarray:
        out = np.zeros((points.shape[0], V.shape[1]))
        for k in range(self.p):
            out += kernel_weights[k] * (self._one(k, points) @ V)
        return out

    def gradients(
        self, X: Any, kernel_weights: np.ndarray, V: np.ndarray, steps: np.ndarray
    ) -> np.ndarray | None:
        if self.kernels is None:
            raise TypeError(
                "Kernels given as an array of matrices are not functions of numeric columns, so "
                "they have no derivatives. Pass kernels and the columns that they read."
            )
        out = np.zeros((X.shape[0], X.shape[1], V.shape[1]))
        for t, coef in enumerate(V.T):
            for kernel, factor in zip(self.kernels, kernel_weights, strict=True):
                A = np.broadcast_to(factor * coef, (X.shape[0], len(coef)))
                out[:, :, t] += weighted_gradient(kernel, X, self.inputs, A, steps)
        return out

    def diagonals(self, points: Any) -> np.ndarray:
        if isinstance(points, PoolRows):
            source = self.matrices or [kernel.matrix for kernel in self.kernels]  # type: ignore[union-attr, attr-defined]
            return np.stack([K[points, points] for K in source]).astype(np.float64)
        if self.kernels is None:
            raise ValueError(
                "Spherical normalisation needs K(x, x) of new samples, which an array of shape "
                "(n_new, n_train, p) does not contain. Use mk.precomputed with mk.sample_ids, or "
                "another normalisation."
            )
        return np.stack([kernel.diag(points) for kernel in self.kernels]).astype(np.float64)
