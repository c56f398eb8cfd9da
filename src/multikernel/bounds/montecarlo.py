"""Rademacher averages by drawing signs, with an error that is proven rather than estimated.

For signs sigma the draw ``X = sup_f (1/n) sum_i sigma_i f(x_i)`` changes by at most ``2 c_i / n``
when one sign changes, ``c_i = sup_f |f(x_i)|``. By McDiarmid's inequality the mean of S draws is
off its expectation by more than ``t`` with probability at most

    exp(-S t^2 n^2 / (2 sum_i c_i^2))        (each side),

whatever the distribution of X. With few samples all ``2^n`` sign vectors are enumerated instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problem.assumptions import (
    AssumptionError,
    check_count,
    check_delta,
    check_nonnegative,
    check_number,
)

#: Up to this many samples, all sign vectors are enumerated and the expectation is exact.
ENUMERATE = 12


@dataclass(frozen=True)
class Estimate:
    """An expectation over random signs.

    Attributes
    ----------
    value : float
        Mean over the draws; the expectation itself when ``exact``.
    standard_error : float
        Standard error of the mean, 0 when ``exact``.
    n_draws : int
    scale : float
        ``sqrt(sum_i c_i^2) / n``: the mean is sub-Gaussian with deviation ``scale /
        sqrt(n_draws)``.
    exact : bool
        Whether all sign vectors were enumerated.
    """

    value: float
    standard_error: float
    n_draws: int
    scale: float
    exact: bool

    def upper(self, delta: float) -> float:
        """A number above the expectation except with probability delta (over the draws)."""
        return self.value + self._error(check_delta(delta))

    def lower(self, delta: float) -> float:
        """A number below the expectation except with probability delta (over the draws)."""
        return max(self.value - self._error(check_delta(delta)), 0.0)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """A two-sided interval, valid for any number of draws."""
        confidence = check_number("confidence", confidence, low=0.0, high=1.0)
        half = 0.5 * (1.0 - confidence)
        return self.lower(half), self.upper(half)

    def scaled(self, factor: float) -> Estimate:
        """The estimate for a class multiplied by ``factor``."""
        factor = check_nonnegative("factor", factor, "the size of a class")
        return Estimate(
            factor * self.value,
            factor * self.standard_error,
            self.n_draws,
            factor * self.scale,
            self.exact,
        )

    def _error(self, delta: float) -> float:
        if self.exact:
            return 0.0
        return self.scale * math.sqrt(2.0 * math.log(1.0 / delta) / self.n_draws)

    def __str__(self) -> str:
        if self.exact:
            return f"{self.value:.4g} (exact)"
        low, high = self.interval()
        return f"{self.value:.4g} [{low:.4g}, {high:.4g}] ({self.n_draws} draws)"


def all_signs(n: int) -> np.ndarray:
    """One of each pair ±sigma, shape (n, 2^(n-1)), because suprema here are even in sigma."""
    codes = np.arange(2 ** (n - 1))
    bits = (codes[None, :] >> np.arange(n)[:, None]) & 1
    return np.where(bits == 1, -1.0, 1.0)


def draw_signs(n: int, n_draws: int, random_state: Any = 0) -> np.ndarray:
    """Independent fair signs, shape (n, n_draws); all of them (up to sign) for small n."""
    n, n_draws = check_count("n", n), check_count("n_draws", n_draws, least=2)
    try:
        rng = np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise AssumptionError(
            "random_state must be an integer of at least 0, a Generator, or None for fresh signs; "
            f"got {random_state!r}."
        ) from error
    if n <= ENUMERATE:
        return all_signs(n)
    return rng.integers(0, 2, size=(n, n_draws)) * 2.0 - 1.0


def summarise(values: np.ndarray, n: int, scale: float) -> Estimate:
    """The estimate from the suprema, shape (S,), at the signs of :func:`draw_signs`.

    Parameters
    ----------
    scale : float
        ``sqrt(sum_i c_i^2) / n``, see the module's text.
    """
    if n <= ENUMERATE:
        return Estimate(float(values.mean()), 0.0, len(values), scale, True)
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return Estimate(float(values.mean()), error, len(values), scale, False)


def average(
    draws: Callable[[np.ndarray], np.ndarray],
    n: int,
    scale: float,
    *,
    n_draws: int = 2000,
    random_state: Any = 0,
) -> Estimate:
    """Expectation of ``draws(signs)``, from signs (n, S) to suprema (S,), even in the signs."""
    return summarise(draws(draw_signs(n, n_draws, random_state)), n, scale)
