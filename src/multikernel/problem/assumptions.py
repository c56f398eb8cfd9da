"""Assumptions of the theorems, checked where a number enters: the error says which one fails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class AssumptionError(ValueError):
    """An input for which a theorem says nothing."""


def check_delta(delta: float) -> float:
    """Confidence: the statement fails with probability at most delta, strictly between 0 and 1."""
    if not 0.0 < delta < 1.0:
        raise AssumptionError(
            f"delta is the probability with which a bound may fail: expected a number in (0, 1), "
            f"got {delta!r}. Use for example delta=0.05."
        )
    return float(delta)


def check_count(name: str, value: float, least: int = 1) -> int:
    """A number of things: points, kernels, draws."""
    if not math.isfinite(value) or value != int(value) or value < least:
        raise AssumptionError(f"{name} must be an integer of at least {least}; got {value!r}.")
    return int(value)


def check_positive(name: str, value: float, why: str) -> float:
    """A finite number above zero; ``why`` is the assumption that needs it."""
    if not (math.isfinite(value) and value > 0):
        raise AssumptionError(f"{name} must be positive and finite ({why}); got {value!r}.")
    return float(value)


def check_nonnegative(name: str, value: float, why: str) -> float:
    """A finite number of at least zero; ``why`` is the assumption that needs it."""
    if not (math.isfinite(value) and value >= 0):
        raise AssumptionError(f"{name} must be finite and not negative ({why}); got {value!r}.")
    return float(value)


def check_margin(margin: float) -> float:
    """A margin bound divides by the margin."""
    return check_positive("margin", margin, "the bound divides by it: there is no bound at 0")


def check_bounded(name: str, value: float) -> float:
    """The assumption ``K(x, x) <= R^2`` for every x, which an unbounded kernel does not meet."""
    if not math.isfinite(value):
        raise AssumptionError(
            f"The theorem assumes a bounded kernel, K(x, x) <= {name} for all x; got {name} = "
            f"{value!r}. Normalise the kernel, or bound the inputs, or use a bound from traces."
        )
    return check_positive(name, value, "it bounds K(x, x)")


def check_norm(name: str, p: float) -> float:
    """An exponent of a norm."""
    if not p >= 1:  # NaN as well
        raise AssumptionError(f"{name} is the exponent of a norm and at least 1; got {p!r}.")
    return float(p)


def check_probability(name: str, value: float) -> float:
    """A risk or an error rate."""
    if not 0.0 <= value <= 1.0:
        raise AssumptionError(f"{name} is an average of numbers in [0, 1]; got {value!r}.")
    return float(value)


def check_traces(traces: Any) -> np.ndarray:
    """Traces of positive semidefinite kernels, shape (p,)."""
    values = np.atleast_1d(np.asarray(traces, dtype=np.float64))
    if values.ndim != 1 or values.size == 0:
        raise AssumptionError(f"traces must be a vector, one per kernel; got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise AssumptionError("The theorem assumes kernels of finite trace; got NaN or infinity.")
    if values.min() < 0:
        raise AssumptionError(
            f"The theorem assumes positive semidefinite kernels, whose traces are not negative; "
            f"trace {int(values.argmin())} is {values.min():.3g}."
        )
    return values


#: An eigenvalue above minus this part of the largest counts as rounding, not as negative.
PSD_TOLERANCE = 1e-8


def check_eigenvalues(eigenvalues: Any) -> np.ndarray:
    """Spectrum of a positive semidefinite operator, in decreasing order; rounding is clipped."""
    values = np.atleast_1d(np.asarray(eigenvalues, dtype=np.float64))
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise AssumptionError(
            f"eigenvalues must be a vector of finite numbers; got shape {values.shape}."
        )
    if values.min() < -PSD_TOLERANCE * max(values.max(), 0.0):
        raise AssumptionError(
            f"The theorem assumes a positive semidefinite kernel; its spectrum holds "
            f"{values.min():.3g}."
        )
    return np.sort(np.maximum(values, 0.0))[::-1]


def check_matrix(name: str, K: Any, *, symmetric: bool = True) -> np.ndarray:
    """One kernel matrix."""
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.shape[0] == 0:
        raise AssumptionError(f"{name} must be a square matrix; got shape {K.shape}.")
    if not np.isfinite(K).all():
        raise AssumptionError(f"{name} holds NaN or infinite values.")
    if symmetric and not np.allclose(K, K.T, rtol=0, atol=1e-8 * np.abs(K).max()):
        raise AssumptionError(f"{name} is not symmetric, as a kernel matrix is.")
    return K


def check_psd(name: str, K: Any) -> tuple[np.ndarray, np.ndarray]:
    """A positive semidefinite matrix and its eigenvalues, in decreasing order."""
    K = check_matrix(name, K)
    return K, check_eigenvalues(np.linalg.eigvalsh(K))
