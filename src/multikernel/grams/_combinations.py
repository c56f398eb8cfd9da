"""Reduce a weighted sum of kernels to fewer kernels with the same sum.

Kernels of weight zero are left out, and many exponentials of one distance become one table
(:mod:`multikernel.grams._mixtures`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._distances import DistanceFacts
from ._families import KernelFamily
from ._mixtures import MAX_TABLE_OCTAVES, MIN_TABLE_KERNELS, TableShape, octaves, tabulate
from ._passes import EXP_CHI, EXP_L1, EXP_SQ, TABLE_CHI, TABLE_L1, TABLE_SQ

Array = NDArray[Any]

_TABLE = {EXP_SQ: TABLE_SQ, EXP_L1: TABLE_L1, EXP_CHI: TABLE_CHI}


def reduced_combination(
    family: KernelFamily,
    facts: DistanceFacts,
    w: NDArray[np.float64],
    shape: TableShape | None = None,
) -> tuple[KernelFamily, NDArray[np.float64]]:
    """A smaller family and coefficients with the same sum ``sum_k w_k K_k`` at any points.

    Parameters
    ----------
    family : KernelFamily
    facts : DistanceFacts
        Facts on the distances between the family's points.
    w : array of shape (p,)
    shape : TableShape or None
        With a shape, tables are float64 and replace any number of exponentials. Without, tables
        have the type of the family, and a few exponentials are kept, which costs less.
    """
    dtype = family.dtype if shape is None else np.dtype(np.float64)
    min_kernels = MIN_TABLE_KERNELS[dtype] if shape is None else 1
    used = np.flatnonzero(w).tolist()
    rates, shifted = family.params.reshape(-1, 3)[:, 0], family.is_shifted
    tabled: dict[tuple[int, int], NDArray[np.int64]] = {}
    near: dict[tuple[int, int], float] = {}
    for key, members in family.exponentials(used).items():
        if len(members) < min_kernels:
            continue
        # Kernels evaluated as exp(-t) - 1 need a table that resolves the distances of the sample.
        mean = facts.mean(*key) if shifted[members].any() else 0.0
        near[key] = mean if mean > 0 else np.inf
        if 0 < octaves(rates[members], near[key]) <= MAX_TABLE_OCTAVES:
            tabled[key] = members
    in_tables = {k for members in tabled.values() for k in members.tolist()}
    rest = np.array([k for k in used if k not in in_tables], dtype=np.int64)
    if not tabled:
        return family.take(rest), w[rest]
    group, kind = family.group[rest].tolist(), family.kind[rest].tolist()
    params = list(family.params[rest])
    tables: list[Array] = []
    for key, members in tabled.items():
        table, rate, end = tabulate(
            rates[members], w[members], shifted[members], dtype, near[key], shape
        )
        group.append(key[0])
        kind.append(_TABLE[key[1]])
        params.append(np.array([rate, end, sum(len(t) for t in tables)]))
        tables.append(table.ravel())
    shifted = np.append(shifted[rest], np.zeros(len(tabled), dtype=np.bool_))
    coefficients = np.append(w[rest], np.ones(len(tabled)))
    # A family lists its kernels by group.
    order = np.argsort(group, kind="stable")
    reduced = KernelFamily(
        family.Z,
        family.offsets,
        np.array(group, dtype=np.int64)[order],
        np.array(kind, dtype=np.int64)[order],
        np.array(params)[order],
        shifted[order],
        np.concatenate(tables),
    )
    return reduced, coefficients[order]
