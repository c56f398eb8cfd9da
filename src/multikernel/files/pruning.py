"""What a model file leaves out, and what a loaded estimator must satisfy."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.base import MultiKernelEstimator
from ..grams.blocks import BlockExpansion, RawCross
from ..grams.dense import DenseCross
from ..grams.protocol import Expansion
from ..grams.separate import SeparateExpansions
from ..grams.shared import SharedCross
from ..grams.stacked import StackedExpansion
from ..grams.stored import StoredCross
from ..kernels.precomputed import Precomputed
from ..kernels.sequences.edit import Repaired
from ..kernels.sequences.table import Table
from ..solvers.ensemble.hypotheses import EnsembleExpansion
from ..solvers.voted.expansion import VotedExpansion
from ..tables.model import TableModel
from .archive import ModelFileError


@dataclass(frozen=True, repr=False, eq=False)
class Absent(Precomputed):
    """Stands in a loaded bank for a matrix that was not stored; it has a name and a size."""

    samples: int = 0

    @classmethod
    def of(cls, kernel: Precomputed) -> Absent:
        size = kernel.samples if isinstance(kernel, Absent) else kernel.matrix.shape[0]
        return cls(np.zeros((0, 0)), kernel.label, size)

    def __repr__(self) -> str:
        return f"Precomputed({self.label!r}, {self.samples} samples, not stored)"

    def ids(self, X: Any) -> np.ndarray:
        raise ValueError(
            f"The matrix of the kernel {self.label!r} is not part of the model file, which holds "
            "what prediction needs. To fit again, or for a certificate, make the bank again with "
            "mk.precomputed."
        )


def checked(estimator: Any) -> Any:
    """The estimator, if it is one that a file can hold and has been fitted."""
    if isinstance(estimator, TableModel):
        checked(estimator.estimator)
        return estimator
    if not isinstance(estimator, MultiKernelEstimator):
        raise TypeError(
            f"mk.save stores fitted estimators of multikernel; got {type(estimator).__name__}. "
            "Of a pipeline or a search, save the fitted estimator inside it."
        )
    check_is_fitted(estimator)
    return estimator


def prune(estimator: Any) -> Any:
    """A copy that shares everything with the estimator but holds no more data than it needs."""
    slim = copy.copy(estimator)
    if isinstance(slim, TableModel):
        return replace(slim, estimator=prune(slim.estimator))
    slim._expansion = prune_expansion(slim._expansion)
    return slim


def prune_expansion(expansion: Expansion) -> Expansion:
    """The same function, with only those columns of given matrices that it reads.

    Expansions of shared and rank-one kernels hold no more than they need already.
    """
    slim: Any = copy.copy(expansion)
    if isinstance(slim, (SeparateExpansions, EnsembleExpansion, VotedExpansion)):
        slim.parts = [prune_expansion(part) for part in slim.parts]
    elif isinstance(slim, StackedExpansion):
        slim.parts = [None if part is None else prune_expansion(part) for part in slim.parts]
    elif isinstance(slim, BlockExpansion):
        slim.cross = _prune_cross(slim.cross, whole=slim.spherical)
    return slim


def _prune_cross(cross: RawCross, whole: bool) -> RawCross:
    """Of each given matrix only the columns of the anchors, numbered anew.

    The spherical normalisation reads diagonals at new points as well, so it keeps them ``whole``.
    """
    if isinstance(cross, StoredCross):
        return _prune_cross(cross.evaluated, whole)  # what is looked up are training points
    if not isinstance(cross, DenseCross):
        return cross
    slim = copy.copy(cross)
    slim.release()
    given = slim.kernels or []
    if whole or not given or not all(isinstance(kernel, Precomputed) for kernel in given):
        return slim
    columns: Any = [replace(k, matrix=k.matrix[:, slim.anchors]) for k in given]  # type: ignore[attr-defined,type-var]
    slim.kernels, slim.anchors = columns, np.arange(slim.n_anchors)
    return slim


# -- after loading --------------------------------------------------------------------------------


def verify(estimator: Any) -> Any:
    """Refuse what compiled loops would read beyond its end, and what is no estimator."""
    if isinstance(estimator, TableModel):
        verify(estimator.estimator)
        return estimator
    if not isinstance(estimator, MultiKernelEstimator):
        raise ModelFileError("it holds no estimator.")
    check_is_fitted(estimator)
    _verify_expansion(estimator._expansion)
    return estimator


def _verify_expansion(expansion: Any) -> None:
    if isinstance(expansion, StackedExpansion):
        used = [part for part in expansion.parts if part is not None]
        _require(len(expansion.parts) == len(expansion.positions) and len(used) > 0)
        for part in used:
            _verify_expansion(part)
    elif isinstance(expansion, (SeparateExpansions, EnsembleExpansion)):
        for part in expansion.parts:
            _verify_expansion(part)
    elif isinstance(expansion, VotedExpansion):
        _require(len(expansion.kernels) == len(expansion.parts) > 0)
        _require(all(0 <= k < expansion.n_kernels for k in expansion.kernels))
        for part in expansion.parts:
            _verify_expansion(part)
    elif isinstance(expansion, BlockExpansion):
        _verify_cross(expansion.cross, expansion.coef)
        _require(len(expansion.weights) == len(expansion.scale) == expansion.cross.p)
        if expansion.mean_weights is not None:
            _require(expansion.mean_weights.shape == (len(expansion.coef),))
    else:
        _require(isinstance(expansion, Expansion))


def _verify_cross(cross: Any, coef: np.ndarray) -> None:
    _require(coef.ndim == 2 and len(coef) == cross.n_anchors == len(cross.anchors))
    if isinstance(cross, SharedCross):
        widths = cross.encoder.widths
        _require(cross.p == len(cross.kernels) == len(cross.shifted))
        _require(len(widths) == len(cross.encoder.groups) and min(widths, default=0) >= 0)
        _require(cross.anchors.ndim == 2 and cross.anchors.shape[1] == sum(widths))
        _require(cross.anchors.dtype in (np.float32, np.float64))
    if isinstance(cross, DenseCross):
        if isinstance(cross.inputs, Table):
            for sequences in cross.inputs._encoded.values():
                _verify_sequences(sequences)
        for kernel in cross.kernels or []:
            if isinstance(kernel, Repaired):
                _verify_sequences(kernel.reference)


def _verify_sequences(sequences: Any) -> None:
    offsets, codes = sequences.offsets, sequences.codes
    _require(offsets.ndim == codes.ndim == 1 and len(offsets) > 0)
    _require(offsets[0] >= 0 and offsets[-1] <= len(codes) and bool(np.all(np.diff(offsets) >= 0)))
    _require(bool(np.all(codes < len(sequences.symbols))))


def _require(holds: bool) -> None:
    if not holds:
        raise ModelFileError(
            "the sizes of its parts do not fit each other. It was not written by mk.save, or "
            "changed since."
        )
