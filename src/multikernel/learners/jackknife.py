"""Prediction intervals and standard deviations of ridge regression from leave-one-out residuals.

With the notation of :mod:`.leave_one_out`, and the bordered inverse

    [K + diag(1/c)  1]^-1     [P   q ]
    [1'             0]     =  [q'  q0]        (q = 0, q0 = 0 without an intercept)

the function trained without sample i (one of its copies: the share rho_i of its cost) is

    f_{-i}(x) = f(x) - (k(x)'P e_i + q_i) rho_i s_i / d_i

**Jackknife+** (Barber, Candes, Ramdas & Tibshirani 2021): with the residuals R_i = |y_i -
f_{-i}(x_i)|, the interval from the ``floor(a (n + 1))``-th smallest ``f_{-i}(x) - R_i`` to the
``ceil((1 - a)(n + 1))``-th smallest ``f_{-i}(x) + R_i`` holds the output of a new sample with
probability at least ``1 - 2a``, usually close to ``1 - a``. CV+ is the same with functions trained
without a whole fold.

**Standard deviation**: ridge regression is the mean of a Gaussian process with covariance ``tau^2
K``, noise variance ``tau^2 alpha``, and a flat prior on the intercept. Given the other samples, y_i
has the variance ``tau^2 / P_ii``, so ``tau^2 = mean_i s_i^2 / P_ii`` makes leave-one-out residuals
as large as predicted (Sundararajan & Keerthi 2001), and

    std(x)^2 = tau^2 (alpha + k(x, x) - k'P k - 2 q'k - q0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .leave_one_out import LeaveOneOutFit

#: Bisection steps: enough to shrink an interval of values to rounding error.
BISECTIONS = 64


@dataclass(frozen=True)
class Jackknife:
    """A ridge regression, and the functions trained without each sample.

    Attributes
    ----------
    P : array of shape (n, n)
    q : array of shape (n,)
    q0 : float
    steps : array of shape (n, t)
        ``rho s / d``.
    residuals : array of shape (n, t)
        Of each sample, for the function trained without it.
    noise : float
        alpha, the noise variance of one observation in units of ``tau^2``.
    variances : array of shape (t,)
        ``tau^2``.
    """

    P: np.ndarray
    q: np.ndarray
    q0: float
    steps: np.ndarray
    residuals: np.ndarray
    noise: float
    variances: np.ndarray

    @classmethod
    def of(cls, K: np.ndarray, fit: LeaveOneOutFit, noise: float, total_weight: float) -> Jackknife:
        """Build from the kernel matrix and the leave-one-out fit with it.

        Parameters
        ----------
        noise : float
            The ridge constant alpha.
        total_weight : float
            The sum of the sample weights.
        """
        problem = fit.problem
        n = len(K)
        q, q0 = np.zeros(n), 0.0
        if problem.fit_intercept:
            # q follows from the first block of rows, (K + diag(1/c)) P + 1 q' = I; q0 likewise.
            means = (K.sum(axis=0) + 1.0 / problem.costs) / n
            q = 1.0 / n - means @ fit.P
            q0 = -float(np.mean(K @ q + q / problem.costs))
        steps = fit.coef * (problem.share / fit.left)[:, None]
        variances = np.sum(fit.coef**2 / fit.left[:, None], axis=0) / total_weight
        return cls(fit.P, q, q0, steps, fit.residuals, noise, variances)

    def changes(self, cross: np.ndarray) -> np.ndarray:
        """``(f_{-i} - f)(x) / steps_i``, shape (m, n), for kernel values (m, n) at new samples."""
        return -(cross @ self.P + self.q)

    def deviations(self, cross: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        """The standard deviations of new outputs, shape (m, t).

        Parameters
        ----------
        cross : array of shape (m, n)
            ``K(x, x_i)``.
        diagonal : array of shape (m,)
            ``K(x, x)``.
        """
        forms = np.einsum("mn,mn->m", cross @ self.P + 2.0 * self.q, cross) + self.q0
        spread = np.maximum(diagonal - forms, 0.0) + self.noise
        return np.sqrt(spread[:, None] * self.variances)


def plus_interval(
    functions: np.ndarray,
    residuals: np.ndarray,
    coverage: float,
    sample_weight: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the jackknife+ or CV+ interval, shapes (m,).

    They are infinite if the sample is too small for the coverage.

    Parameters
    ----------
    functions : array of shape (m, n)
        Values at new samples of the function that was trained without sample i.
    residuals : array of shape (n,)
        ``|y_i - f_{-i}(x_i)|``.
    coverage : float
        ``1 - a``.
    sample_weight : array of shape (n,), optional
    """
    omega = np.ones(len(residuals)) if sample_weight is None else sample_weight
    lower = _smallest(-(functions - residuals), omega, coverage)
    return -lower, _smallest(functions + residuals, omega, coverage)


def folds_interval(
    functions: np.ndarray,
    fold: np.ndarray,
    residuals: np.ndarray,
    coverage: float,
    sample_weight: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the CV+ interval, shapes (m,): those of :func:`plus_interval` up to rounding.

    Samples of a fold share a function, so the values at a new sample are a few sorted lists, each
    shifted by a constant: bisection finds the position without sorting.

    Parameters
    ----------
    functions : array of shape (k, m)
        Values at new samples of the function that was trained without fold k.
    fold : array of shape (n,)
        The fold of each sample.
    residuals : array of shape (n,)
    coverage : float
    sample_weight : array of shape (n,), optional
    """
    omega = np.ones(len(residuals)) if sample_weight is None else sample_weight
    lists = []
    for k in range(len(functions)):
        own = np.flatnonzero(fold == k)
        own = own[np.argsort(residuals[own], kind="stable")]
        lists.append((residuals[own], np.concatenate([[0.0], np.cumsum(omega[own])])))
    position, least = _position(omega, coverage)
    if position is None:
        return np.full(functions.shape[1], -np.inf), np.full(functions.shape[1], np.inf)
    lower = _smallest_of_lists(-functions, lists, position - least)
    return -lower, _smallest_of_lists(functions, lists, position - least)


def _smallest_of_lists(
    shifts: np.ndarray, lists: list[tuple[np.ndarray, np.ndarray]], wanted: float
) -> np.ndarray:
    """The smallest ``shifts[k] + value`` whose cumulative weight reaches ``wanted``, shape (m,)."""
    used = [(shift, *pair) for shift, pair in zip(shifts, lists, strict=True) if len(pair[0])]
    low = np.min([shift + values[0] for shift, values, _ in used], axis=0)
    high = np.max([shift + values[-1] for shift, values, _ in used], axis=0)
    low = low - (high - low) - np.abs(low)
    for _ in range(BISECTIONS):
        middle = low + 0.5 * (high - low)
        reached = np.zeros_like(middle)
        for shift, values, counts in used:
            reached += counts[np.searchsorted(values, middle - shift, side="right")]
        enough = reached >= wanted
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    # `high` is the value up to rounding, on either side of it: take the nearest list entry.
    near = []
    for shift, values, _ in used:
        place = np.searchsorted(values, high - shift)
        near += [shift + values[np.clip(place + step, 0, len(values) - 1)] for step in (-1, 0)]
    candidates = np.array(near)
    best = np.argmin(np.abs(candidates - high), axis=0)
    return np.asarray(candidates[best, np.arange(len(high))])


def split_radius(
    residuals: np.ndarray, coverage: float, sample_weight: np.ndarray | None = None
) -> float:
    """The radius of split-conformal intervals: the ``ceil((1 - a)(n + 1))``-th smallest residual.

    Parameters
    ----------
    residuals : array of shape (n,)
        Absolute residuals of samples not used to train the function.
    """
    omega = np.ones(len(residuals)) if sample_weight is None else sample_weight
    return float(_smallest(residuals[None], omega, coverage)[0])


def _smallest(values: np.ndarray, omega: np.ndarray, coverage: float) -> np.ndarray:
    """The ``ceil(coverage (W + 1))``-th smallest of each row; its value i counts omega_i times."""
    position, rounding = _position(omega, coverage)
    if position is None:
        return np.full(len(values), np.inf)
    order = np.argsort(values, axis=1, kind="stable")
    counts = np.cumsum(omega[order], axis=1)
    place = np.argmax(counts >= position - rounding, axis=1)
    return np.take_along_axis(values, order, axis=1)[np.arange(len(values)), place]


def _position(omega: np.ndarray, coverage: float) -> tuple[float | None, float]:
    """``ceil(coverage (W + 1))`` and its rounding error; None if it exceeds the total weight W."""
    total = float(omega.sum())
    # Rounding must not turn 9.000000000000002 into 10.
    position = float(np.ceil(coverage * (total + 1.0) - 1e-9 * (total + 1.0)))
    return (None if position > total * (1.0 + 1e-12) else position), 1e-9 * total
