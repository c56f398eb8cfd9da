"""Checks that the learned combination of kernels is positive semidefinite on the sample."""

from __future__ import annotations

import warnings

import numpy as np

from ...grams.operators import PSD_TOLERANCE
from ...grams.protocol import CombinedGram, Grams
from ..certificate import Found

#: Negative eigenvalues of up to this fraction of the largest are common in single precision.
MAX_SINGLE_PRECISION_PART = 1e-6


class NotPSDError(ValueError):
    """A combination of kernels that must be positive semidefinite is not."""


def require_psd(
    grams: Grams,
    kernel_weights: np.ndarray,
    gram: CombinedGram,
    *,
    warn: bool,
    rough: bool = False,
) -> float:
    """Raise NotPSDError (or warn) unless the combination is positive semidefinite.

    Only the *combination* must be positive semidefinite on the sample, not each kernel. The check
    is skipped for non-negative sums of kernels that are known to be positive semidefinite.

    Returns
    -------
    slack : float
        No eigenvalue is below ``-slack``. It is zero except for a ``rough`` check, which accepts a
        factorisation in single precision. The caller then has to check with `gap_allows` that
        eigenvalues of this size do not invalidate the certificate.
    """
    used = kernel_weights != 0
    if np.all(grams.known_psd[used]) and np.all(kernel_weights >= 0):
        return 0.0
    lowest, largest, proven = gram.lowest_eigenvalue(rough=rough)
    if proven:
        return -lowest
    if lowest >= -max(PSD_TOLERANCE * largest, gram.rounding):
        return 0.0
    if warn:
        warnings.warn(
            f"The signed combination of kernels is not positive semidefinite: its eigenvalues "
            f"reach from {lowest:.3g} to {largest:.3g}. Use AlignF(signed=False).",
            UserWarning,
            stacklevel=3,
        )
        return 0.0
    raise NotPSDError(
        f"The learned combination of kernels is not positive semidefinite on the training data: "
        f"its most negative eigenvalue is {lowest:.3g}, its largest {largest:.3g}"
        f"{most_negative_kernel(grams, used)}. {advice(lowest, largest)}"
    )


def advice(lowest: float, largest: float) -> str:
    """Advice for a user whose combination has a negative eigenvalue."""
    if -lowest <= MAX_SINGLE_PRECISION_PART * largest:
        return (
            "Eigenvalues of this size are common in matrices that were computed in single "
            "precision. If this is the case, pass the matrix as float32, the way it was computed; "
            "rounding is then recognised."
        )
    return (
        "Drop the kernel, or repair its matrix (clip or shift its negative eigenvalues) and pass "
        "it with mk.precomputed."
    )


def most_negative_kernel(grams: Grams, used: np.ndarray) -> str:
    """A phrase that names the kernel with the most negative eigenvalue relative to its size."""
    culprit, worst = "", 0.0
    for k in np.flatnonzero(used & ~grams.known_psd).tolist():
        alone = np.zeros(grams.p)
        alone[k] = 1.0
        low, high, _ = grams.combine(alone).lowest_eigenvalue()
        # The largest eigenvalue may be zero or negative.
        part = low / max(abs(low), abs(high), np.finfo(np.float64).tiny)
        if part < worst:
            culprit, worst = f" (kernel {grams.names[k]!r} alone: {low:.3g})", part
    return culprit


def gap_allows(slack: float, found: Found, tol: float, unit: float) -> bool:
    """Whether the gap is below tol even if eigenvalues as low as ``-slack`` change ``s'Ks``."""
    error = 0.5 * slack * float(np.sum(found.machine.coef**2))
    return slack == 0 or error <= (tol - found.machine.gap) * abs(found.machine.objective / unit)
