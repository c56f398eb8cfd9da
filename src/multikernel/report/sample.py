"""The kernels of a model, or of a bank, on some rows of a sample.

Computations with n x n matrices use a limited number of samples, drawn with a fixed seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..grams.protocol import Grams


def draw_rows(n: int, most: int) -> np.ndarray:
    """Up to ``most`` of n row numbers, in order, drawn with a fixed seed."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def prepared_grams(source: Any, X: Any, rows: np.ndarray) -> Grams:
    """Centred grams of an estimator's bank, or of a bank, on some rows.

    An estimator's own normalisation is kept, because its weights refer to kernels normalised that
    way; the kernels of a bank get unit variance.
    """
    if hasattr(source, "_check_X"):
        from ..bounds.sample import training_grams

        checked = source._check_X(X, reset=False)
        if hasattr(source, "transduction_"):
            return _spectral_members(source, checked, rows)
        if source._is_precomputed:
            if checked.shape[0] != checked.shape[1]:
                raise ValueError(
                    "With kernels='precomputed', plots of kernels need the training array of "
                    f"shape (n, n, p); got {checked.shape}."
                )
            part = checked[np.ix_(rows, rows)]
        else:
            part = checked[rows]
        how = getattr(source, "normalize", "multiplicative")
        return training_grams(source, part).corrected(True, how)

    from ..grams.memory import MemoryBudget
    from ..kernels.bank import as_bank

    part = X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows] if is_list(X) else X[rows]
    bank = as_bank(source).adapt(part)
    plan = bank.plan(part)
    return plan.grams(part, budget=MemoryBudget.of(None)).corrected(True, "multiplicative")


def _spectral_members(estimator: Any, checked: Any, rows: np.ndarray) -> Grams:
    """The members of a spectral class, scaled to trace c on *all* samples, on some rows.

    Powers and eigenvectors belong to the whole matrix: they cannot be computed from some rows.
    """
    from ..bounds.sample import training_grams
    from ..grams.engines import build
    from ..grams.memory import MemoryBudget
    from ..grams.planning import plan_matrices
    from ..kernels.bank import as_bank
    from ..kernels.make_banks import per_feature
    from ..kernels.vectors import Linear
    from ..solvers.spectral.spectral_class import KernelSpectrum

    raw = training_grams(estimator, checked)
    budget, names = MemoryBudget.of(estimator.memory_budget), estimator.kernel_names_
    matrices = (one_kernel(raw, k) for k in range(raw.p))
    scaled = [estimator.trace_ / np.trace(K) * K for K in matrices]
    if not hasattr(estimator, "eigenvalues_"):
        stack = [K[np.ix_(rows, rows)] for K in scaled]
    else:
        spectrum = KernelSpectrum.of(scaled[0], estimator.trace_)
        if len(spectrum.values) != len(estimator.eigenvalues_):
            raise ValueError("X is not the sample that the estimator was fitted to.")
        V = spectrum.vectors[rows]
        if estimator.family == "spectral":
            features = np.sqrt(estimator.trace_) * V
            plan = as_bank(per_feature(Linear())).plan(features)
            return plan.grams(features, budget=budget).corrected(True, None)
        stack = [(V * g) @ V.T for g in spectrum.members(estimator.family, estimator.degree)]
    array = np.stack(stack, axis=-1)
    given = plan_matrices(len(rows), array.shape[2], names)
    return build(given, array, budget=budget).corrected(True, None)


def is_list(X: Any) -> bool:
    return isinstance(X, (list, tuple))


def take(estimator: Any, X: Any, rows: np.ndarray) -> Any:
    """Some rows of X, in the form that the estimator takes."""
    if estimator._is_precomputed:
        return np.asarray(X)[np.ix_(rows, rows)]
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return [X[int(i)] for i in rows] if is_list(X) else X[rows]


def one_kernel(grams: Grams, k: int) -> np.ndarray:
    """The matrix of a single kernel, shape (n, n)."""
    weights = np.zeros(grams.p)
    weights[k] = 1.0
    return grams.combine(weights).dense()


def unlabelled(estimator: Any, y: Any) -> np.ndarray:
    """Mask of the unlabelled samples: those with label -1, unless -1 is a class."""
    y = np.asarray(y)
    if not hasattr(estimator, "transduction_") or y.dtype.kind not in "iuf":
        return np.zeros(len(y), dtype=bool)
    return (y == -1) & ~np.any(np.asarray(estimator.classes_) == -1)


def target_columns(estimator: Any, y: Any) -> np.ndarray | None:
    """Targets as columns: -1 and +1 for classes, else the numbers; None without targets."""
    if y is None or hasattr(estimator, "offset_"):
        return None
    y = np.asarray(y)
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    if unlabelled(estimator, y).any():
        y = estimator.transduction_
    if len(classes) == 2:
        return np.where(y == classes[1], 1.0, -1.0)[:, None]
    return np.where(y[:, None] == np.asarray(classes), 1.0, -1.0)
