"""Convert attributes in files of earlier versions to their present form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..grams.blocks import BlockExpansion
from ..grams.dense import DenseCross
from ..grams.ngrams import NgramExpansion
from ..grams.protocol import Expansion, require_sizes
from ..grams.rankone import RankOneExpansion


class FeatureCross:
    """The values of one feature at the anchors of a rank-one vote, as 0.1 stored them."""

    columns: Any
    k: int
    anchors: np.ndarray


def upgrade_stack(state: dict[str, Any]) -> dict[str, Any]:
    """Replace parts without a weight, which files of 0.1 also hold, by None."""
    if "used" not in state:
        return state
    used = state.pop("used")
    parts = zip(state["parts"], used, strict=True)
    return state | {"parts": [part if has_weight else None for part, has_weight in parts]}


def upgrade_votes(state: dict[str, Any]) -> dict[str, Any]:
    """In 0.1 a vote was a list of ``(kernel, part, cross, coef)``.

    ``cross`` are the values of one kernel at its own anchors, ``coef`` their coefficients. Today
    there is one ordinary expansion for each kernel.
    """
    if "votes" not in state:
        return state
    n_kernels, n_outputs = state["n_kernels"], state["n_outputs"]
    kernels, parts = [], []
    for k, _, cross, coef in state["votes"]:
        kernels.append(k)
        fit = coef.ndim == 2 and len(coef) == len(cross.anchors)
        require_sizes(fit, "coefficients of a vote")
        rank_one = isinstance(cross, FeatureCross)
        parts.append(_slope(cross, coef) if rank_one else _block(cross, coef, [k], n_kernels))
    if not parts:  # without votes, one empty part still knows the number of new samples
        kernels.append(0)
        parts.append(_block(_no_anchors(), np.zeros((0, n_outputs)), [], n_kernels))
    return {"n_kernels": n_kernels, "n_outputs": n_outputs, "kernels": kernels, "parts": parts}


def _block(cross: Any, coef: np.ndarray, kernels: list[int], n_kernels: int) -> Expansion:
    """Kernels as built, at the samples with a coefficient."""
    expansion = BlockExpansion.__new__(BlockExpansion)
    expansion.n_kernels, expansion.active = n_kernels, np.array(kernels, dtype=np.intp)
    expansion.cross, expansion.coef = cross, coef
    expansion.rows = np.arange(len(coef))
    expansion.weights = expansion.scale = np.ones(len(kernels))
    expansion.spherical = expansion.needs_means = False
    expansion.mean_weights = expansion.correction = None
    expansion.offsets = np.zeros((len(kernels), coef.shape[1]))
    expansion.total = np.zeros(coef.shape[1])
    return expansion


def _slope(cross: FeatureCross, coef: np.ndarray) -> Expansion:
    """A rank-one kernel: its feature times one slope for each output."""
    cls = NgramExpansion if callable(cross.columns) else RankOneExpansion
    expansion = cls.__new__(cls)
    expansion.n_kernels, expansion.columns = len(cross.columns), cross.columns
    expansion.active, expansion.slopes = np.array([cross.k]), (cross.anchors @ coef)[None]
    expansion.shift, expansion.signs = np.zeros(1), False
    return expansion


def _no_anchors() -> DenseCross:
    """A cross without kernels and anchors, which accepts new inputs of any kind."""
    cross = DenseCross.__new__(DenseCross)
    cross.p = cross.n_anchors = 0
    cross.anchors = cross.index = cross.inputs = np.empty(0, dtype=np.intp)
    cross.names, cross.kernels, cross.matrices = [], [], None
    return cross


#: By class name: functions from stored attributes of any version to present ones.
UPGRADES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "StackedExpansion": upgrade_stack,
    "VotedExpansion": upgrade_votes,
}
