"""The passes of `_loops` for small samples, in NumPy and BLAS: nothing has to be compiled.

Compiling the loops takes some twenty seconds of processor time, once for each installation. A
fit on a few hundred points takes far less than that: its kernel matrices are computed once, and
every pass is a product with them. If there are more than `MAX_KEPT_VALUES` values, passes compute
them again from the distances, a few rows at a time.

The choice depends on sizes, the kind of fit and the memory budget (`is_small`), never on whether
compiled code is available: with the same budget, the same data give the same bits on every machine
with the same libraries. Both versions agree up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from .._mirror import mirror
from .._small import SMALL_SAMPLES
from .._threads import one_blas_thread
from ..kernels.histograms import chi_squared_distances
from ._families import KernelFamily
from ._passes import (
    EXP_CHI,
    EXP_L1,
    EXP_POWER,
    EXP_ROOT,
    EXP_SQ,
    MATERN_3,
    MATERN_5,
    POLY,
    TANH,
)

if TYPE_CHECKING:
    from .pass_cache import PassCache

Array = NDArray[Any]
Floats = NDArray[np.float64]

#: Maximum number of kernel values of a small sample: for fits with few passes, and for fits with
#: many, for which compiling pays off sooner.
MAX_VALUES, MAX_VALUES_OF_MANY_PASSES = 1 << 27, 1 << 23
#: Maximum number of kernel values that are kept from one pass to the next, and, if there are more,
#: of distances and dot products from which they are computed again.
MAX_KEPT_VALUES, MAX_KEPT_PAIRS = 1 << 26, 1 << 25
#: Maximum number of given kernel values for which NumPy performs the passes.
MAX_GIVEN_VALUES = 1 << 24
#: Maximum number of kernel values between new samples and a model's that NumPy evaluates.
MAX_NEW_VALUES = 1 << 25
#: Maximum number of coordinate differences computed directly; beyond it, BLAS products are used.
MAX_DIFFERENCES = 1 << 28
#: Squared distances below this fraction of the squared norms are computed from differences.
CANCELLATION = 1e-2
#: Rows per panel, and kernel values per panel: these should stay in the processor cache.
PANEL_ROWS, PANEL_VALUES = 128, 1 << 19


def is_small(family: KernelFamily, room: float, few_passes: bool) -> bool:
    """Whether NumPy performs the passes; ``room`` is the memory budget in bytes."""
    values = family.p * family.n**2
    limit = MAX_VALUES if few_passes else MAX_VALUES_OF_MANY_PASSES
    if family.n > SMALL_SAMPLES or values > limit:
        return False
    if values <= MAX_KEPT_VALUES:
        return 32.0 * values <= room
    pairs = len(_statistics_of(family)) * family.n**2
    return pairs <= MAX_KEPT_PAIRS and 32.0 * pairs <= room


def is_small_given(n_samples: int, n_kernels: int) -> bool:
    """Whether NumPy performs the passes over given matrices."""
    return n_samples <= SMALL_SAMPLES and n_kernels * n_samples**2 <= MAX_GIVEN_VALUES


def is_small_prediction(n_new: int, n_anchors: int, n_kernels: int) -> bool:
    """Whether NumPy evaluates the kernels between new samples and those of a model."""
    return n_anchors <= SMALL_SAMPLES and n_new * n_anchors * max(n_kernels, 1) <= MAX_NEW_VALUES


# -- values of kernels ----------------------------------------------------------------------------


def evaluate(family: KernelFamily, kernels: Any, left: Array, right: Array) -> Iterator[Floats]:
    """The given kernels, one after the other, between two sets of points, (m, n) each.

    Each matrix is a new array, which the caller may change.
    """
    known: dict[tuple[int, str], Floats] = {}
    for k in kernels:
        key = _statistic_of(family, k)
        if key not in known:
            known[key] = _pairs_of(family, key, left, right)
        x = known[key]
        into = np.empty_like(x)
        _apply_function(family, k, x, into)
        yield into


def _statistic_of(family: KernelFamily, k: int) -> tuple[int, str]:
    """The group of columns and the statistic of their pairs that kernel k is a function of."""
    return int(family.group[k]), _STATISTICS[int(family.kind[k])]


def _pairs_of(family: KernelFamily, key: tuple[int, str], left: Array, right: Array) -> Floats:
    group, statistic = key
    columns = slice(int(family.offsets[group]), int(family.offsets[group + 1]))
    U = np.asarray(left[:, columns], dtype=np.float64)
    V = U if right is left else np.asarray(right[:, columns], dtype=np.float64)
    return _pairs(statistic, U, V)


def _apply_function(family: KernelFamily, k: int, x: Floats, out: Floats) -> None:
    gamma, coef0, degree = family.params[k]
    kind, shifted = int(family.kind[k]), bool(family.is_shifted[k])
    _scalar_function(kind, x, float(gamma), float(coef0), int(degree), shifted, out)


_STATISTICS = {
    EXP_SQ: "square",
    EXP_ROOT: "square",
    EXP_POWER: "square",
    MATERN_3: "square",
    MATERN_5: "square",
    EXP_L1: "absolute",
    EXP_CHI: "ratio",
    POLY: "dot",
    TANH: "dot",
}


def _scalar_function(
    kind: int, x: Floats, gamma: float, coef0: float, degree: int, shifted: bool, out: Floats
) -> None:
    """One kernel on a statistic of pairs, written to ``out``."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if kind in (POLY, TANH):
            np.multiply(x, gamma, out=out)
            out += coef0
            if kind == TANH:
                np.tanh(out, out=out)
            elif degree != 1:
                np.power(out, degree, out=out)
            return
        if kind == EXP_POWER:
            np.power(x, coef0, out=out)
        elif kind in (EXP_ROOT, MATERN_3, MATERN_5):
            np.sqrt(x, out=out)
        else:
            out[:] = x
        out *= -gamma
        if kind in (MATERN_3, MATERN_5):
            factor = 1.0 - out if kind == MATERN_3 else 1.0 - out * (1.0 - out / 3.0)
            np.exp(out, out=out)
            np.multiply(out, factor, out=out, where=out > 0)
        elif shifted and kind in (EXP_SQ, EXP_L1, EXP_CHI):
            np.expm1(out, out=out)
        else:
            np.exp(out, out=out)


def _pairs(statistic: str, U: Floats, V: Floats) -> Floats:
    """Dot products or distances of all pairs of rows."""
    if U.shape[1] == 0 or not len(U) or not len(V):
        return np.zeros((len(U), len(V)))
    with np.errstate(over="ignore", invalid="ignore"), one_blas_thread():
        if statistic == "dot":
            return np.asarray(U @ V.T)
        if statistic == "absolute":
            return np.asarray(cdist(U, V, "cityblock"))
        if statistic == "ratio":
            return chi_squared_distances(U, V)
        if len(U) * len(V) * U.shape[1] <= MAX_DIFFERENCES:
            return np.asarray(cdist(U, V, "sqeuclidean"))
        return _squares_by_products(U, V)


def _squares_by_products(U: Floats, V: Floats) -> Floats:
    """Squared distances from dot products; those of near points from differences.

    A squared distance far below the squared norms would lose its digits to cancellation.
    """
    middle = V.mean(axis=0)
    V = V - middle
    U = V if U is V else U - middle
    u, v = np.einsum("ij,ij->i", U, U), np.einsum("ij,ij->i", V, V)
    out = np.asarray(U @ V.T)
    out *= -2.0
    out += u[:, None]
    out += v
    for start in range(0, len(U), PANEL_ROWS):
        rows = slice(start, start + PANEL_ROWS)
        near = out[rows] < CANCELLATION * (u[rows, None] + v)
        i, j = np.nonzero(near)
        step = max(1, (1 << 22) // U.shape[1])
        for at in range(0, len(i), step):
            a, b = i[at : at + step], j[at : at + step]
            apart = U[start + a] - V[b]
            out[start + a, b] = np.einsum("ij,ij->i", apart, apart)
    return out


def pairs_of(family: KernelFamily) -> dict[tuple[int, str], Floats]:
    """The statistics of all pairs of points that the kernels of a family are functions of."""
    return {key: _pairs_of(family, key, family.Z, family.Z) for key in _statistics_of(family)}


def _statistics_of(family: KernelFamily) -> dict[tuple[int, str], None]:
    """The groups of columns and the statistics of their pairs, in the order of the kernels."""
    return dict.fromkeys(_statistic_of(family, k) for k in range(family.p))


def values_of(family: KernelFamily) -> Array | None:
    """All kernel matrices of a family, (p, n, n), in its type; None if that is too much to keep."""
    if family.p * family.n**2 > MAX_KEPT_VALUES:
        return None
    pairs = pairs_of(family)
    out = np.empty((family.p, family.n, family.n), dtype=family.dtype)
    for rows in _panels(family.n, family.n):
        _evaluate_rows(family, range(family.p), pairs, rows, out[:, rows])
    return out


def _evaluate_rows(
    family: KernelFamily,
    kernels: Any,
    pairs: dict[tuple[int, str], Floats],
    rows: slice,
    out: Array,
) -> None:
    """Write rows of the given kernels to ``out``, (len(kernels), n_rows, n)."""
    for place, k in enumerate(kernels):
        x = pairs[_statistic_of(family, k)][rows]
        if out.dtype == np.float64:
            _apply_function(family, k, x, out[place])
        else:
            values = np.empty_like(x)
            _apply_function(family, k, x, values)
            out[place] = values


def _each_panel(cache: PassCache, kernels: NDArray[np.intp]) -> Iterator[tuple[slice, Floats]]:
    """Some rows after the other of these kernels: (rows, values of shape (len(kernels), r, n)).

    The values have the precision of the family and the type float64. They are overwritten by those
    of the next rows; the caller may change them, too.
    """
    family, K = cache.family, cache.values
    panels = _panels(family.n, max(len(kernels), 1) * family.n)
    if K is not None:
        for rows in panels:
            some = K[:, rows] if len(kernels) == family.p else K[kernels, rows]
            yield rows, some.astype(np.float64)
        return
    out = np.empty((len(kernels), panels[0].stop, family.n))
    for rows in panels:
        panel = out[:, : rows.stop - rows.start]
        _evaluate_rows(family, kernels.tolist(), cache.pairs, rows, panel)
        yield rows, _rounded(panel, family)


def _rounded(values: Floats, family: KernelFamily) -> Floats:
    """The same values, rounded in place to the precision of the family."""
    if family.dtype != np.float64:
        values[:] = values.astype(family.dtype)
    return values


def _panels(n: int, width: int) -> list[slice]:
    """Slices of ``range(n)`` for panels of this width."""
    height = max(1, min(PANEL_ROWS, PANEL_VALUES // max(width, 1)))
    return [slice(i, min(i + height, n)) for i in range(0, n, height)]


# -- passes ---------------------------------------------------------------------------------------


def statistics(
    cache: PassCache,
    targets: Floats | None,
    weights: Floats | None,
    products: bool,
    row_means: Floats | None = None,
    grand_means: Floats | None = None,
) -> tuple[Floats, Floats, Floats | None, Floats]:
    """Row sums, diagonals, products with the targets and with each other.

    With means, entries are centred first; see `_loops.statistics` and
    `_loops.centred_statistics`.
    """
    family = cache.family
    p, n = family.p, family.n
    omega = np.ones(n) if weights is None else weights
    row_sums = np.zeros((p, n))
    found = np.zeros((p, p)) if products else np.zeros(p)
    Y = None if targets is None else omega[:, None] * targets.reshape(n, -1)
    a = None if Y is None else np.zeros(p)
    root = np.sqrt(omega)
    with one_blas_thread():
        for rows, panel in _each_panel(cache, np.arange(p)):
            if row_means is not None and grand_means is not None:
                panel -= row_means[:, rows, None]
                panel -= row_means[:, None, :]
                panel += grand_means[:, None, None]
            row_sums[:, rows] = panel @ omega
            if a is not None and Y is not None:
                a += np.einsum("krt,rt->k", panel @ Y, Y[rows])
            if weights is not None:
                panel *= root[rows, None] * root
            flat = panel.reshape(p, -1)
            if products:
                found += flat @ flat.T
            else:
                found += np.einsum("ki,ki->k", flat, flat)
    return row_sums, diagonals(cache), a, found


def block(cache: PassCache, rows: slice) -> Array:
    """Rows of all matrices, shape (p, n_rows, n), in the type of the family; a copy."""
    family = cache.family
    if cache.values is not None:
        return cache.values[:, rows].copy()
    out = np.empty((family.p, rows.stop - rows.start, family.n), dtype=family.dtype)
    _evaluate_rows(family, range(family.p), cache.pairs, rows, out)
    return out


def diagonals(cache: PassCache) -> Floats:
    family = cache.family
    if cache.values is not None:
        return np.einsum("kii->ki", cache.values).astype(np.float64)
    out = np.empty((family.p, family.n))
    for k in range(family.p):
        x = np.diagonal(cache.pairs[_statistic_of(family, k)])
        _apply_function(family, k, x, out[k])
    return _rounded(out, family)


def combine(
    cache: PassCache, w: Floats, dtype: Any, means: tuple[Floats, float] | None = None
) -> Array:
    """``sum_k w_k K_k``, exactly symmetric; see `_loops.combine`."""
    used, n = np.flatnonzero(w), cache.family.n
    out = np.empty((n, n))
    with one_blas_thread():
        for rows, panel in _each_panel(cache, used):
            out[rows] = (w[used] @ panel.reshape(len(used), panel.shape[1] * n)).reshape(-1, n)
    mirror(out)
    if means is not None:
        r, g = means
        out -= np.add.outer(r, r) - g
    return out.astype(dtype, copy=False)


def matvecs(cache: PassCache, V: Floats) -> Floats:
    """``K_k V``, shape (p, n, t)."""
    p, n = cache.family.p, cache.family.n
    out = np.empty((p, n, V.shape[1]))
    with one_blas_thread():
        for rows, panel in _each_panel(cache, np.arange(p)):
            out[:, rows] = panel @ V
    return out


def combined_sums(cache: PassCache, w: Floats, weights: Floats | None) -> tuple[Floats, float]:
    K = combine(cache, w, np.float64)
    omega = np.ones(len(K)) if weights is None else weights
    return K @ omega, float(omega @ np.einsum("ij,ij,j->i", K, K, omega))


def combined_matvec(cache: PassCache, w: Floats, V: Floats) -> Floats:
    with one_blas_thread():
        return np.asarray(combine(cache, w, np.float64) @ V)


# -- new points -----------------------------------------------------------------------------------


def cross_block(cache: PassCache, Z_new: Array) -> Array:
    """All kernels between new points and the family's, shape (p, m, n)."""
    family = cache.family
    out = np.empty((family.p, len(Z_new), family.n), dtype=family.dtype)
    for k, K in enumerate(evaluate(family, range(family.p), Z_new, family.Z)):
        out[k] = K
    return out


def cross_apply(cache: PassCache, Z_new: Array, V: Floats) -> Floats:
    """``K_k(new, points) V``, shape (p, m, t)."""
    family = cache.family
    out = np.empty((family.p, len(Z_new), V.shape[1]))
    with one_blas_thread():
        for rows in _panels_of_new(len(Z_new), family.n):
            for k, K in enumerate(evaluate(family, range(family.p), Z_new[rows], family.Z)):
                out[k, rows] = K @ V
    return out


def cross_combine(cache: PassCache, Z_new: Array, w: Floats, dtype: Any) -> Array:
    """``sum_k w_k K_k(new, points)``, shape (m, n)."""
    family = cache.family
    used = np.flatnonzero(w)
    out = np.zeros((len(Z_new), family.n), dtype=dtype)
    for rows in _panels_of_new(len(Z_new), family.n):
        for k, K in zip(used, evaluate(family, used, Z_new[rows], family.Z), strict=True):
            K *= w[k]
            out[rows] += K
    return out


def _panels_of_new(m: int, n: int) -> list[slice]:
    height = max(1, (1 << 18) // max(n, 1))
    return [slice(i, min(i + height, m)) for i in range(0, m, height)]
