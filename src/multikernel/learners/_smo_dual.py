"""The dual problem of sequential minimal optimisation in signed coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Rounding error of float64, relative to one.
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class SignedDual:
    """``min_s 1/2 s'Ks + sum_i phi_i(s_i)`` over ``lower <= s <= upper``, ``1's = delta``.

    ``phi_i`` has slope ``above`` for s > 0 and ``below`` for s < 0.

    Attributes
    ----------
    lower, upper, above, below : arrays of shape (n,)
    delta : float
    intercept : bool
        Without an intercept there is no constraint on the sum.
    linear, sign : arrays of shape (m,)
        The problem in alpha, as it was given.
    """

    lower: np.ndarray
    upper: np.ndarray
    above: np.ndarray
    below: np.ndarray
    delta: float
    intercept: bool
    linear: np.ndarray
    sign: np.ndarray

    @classmethod
    def of(
        cls,
        n: int,
        linear: np.ndarray,
        sign: np.ndarray,
        C: float | np.ndarray,
        delta: float,
        intercept: bool,
    ) -> SignedDual:
        """The problem for n samples from its form in alpha, after a check of the arguments."""
        linear = np.asarray(linear, dtype=np.float64)
        sign = np.asarray(sign, dtype=np.float64)
        m = len(linear)
        C = np.broadcast_to(np.asarray(C, dtype=np.float64), (m,))
        if linear.ndim != 1 or sign.shape != (m,) or m not in (n, 2 * n) or n == 0:
            raise ValueError(
                f"linear and sign have shapes {linear.shape} and {sign.shape}; expected n or 2n "
                f"variables for n={n} samples, n > 0."
            )
        if not np.all(np.abs(sign) == 1.0):
            raise ValueError("sign must hold -1 and +1 only.")
        if not (np.all(np.isfinite(C)) and np.all(C >= 0.0) and np.all(np.isfinite(linear))):
            raise ValueError("C must be finite and non-negative, and linear must be finite.")
        if m == n:
            lower, upper = np.where(sign > 0, 0.0, -C), np.where(sign > 0, C, 0.0)
            above = below = sign * linear
        else:
            if not (np.all(sign[:n] == 1.0) and np.all(sign[n:] == -1.0)):
                raise ValueError("With 2n variables the first n signs must be +1, the others -1.")
            lower, upper = -C[n:], C[:n].copy()
            above, below = linear[:n].copy(), -linear[n:]
            if np.any(above < below):
                raise ValueError("linear[i] + linear[n + i] must not be negative (epsilon >= 0).")
        return cls(lower, upper, above, below, float(delta), intercept, linear, sign)

    def start(self, alpha0: np.ndarray | None) -> np.ndarray:
        """Feasible coefficients s, near the given alpha or near zero."""
        s = np.zeros(len(self.lower))
        if alpha0 is not None:
            alpha0 = np.asarray(alpha0, dtype=np.float64)
            if alpha0.shape != self.sign.shape:
                raise ValueError(f"alpha0 has shape {alpha0.shape}, expected {self.sign.shape}.")
            if not np.all(np.isfinite(alpha0)):
                raise ValueError("alpha0 holds values that are not finite.")
            s = np.asarray((self.sign * alpha0).reshape(-1, len(s)).sum(axis=0))
        return self._feasible(s)

    def _feasible(self, s: np.ndarray) -> np.ndarray:
        """Coefficients within their bounds and with the sum delta.

        Coefficients whose sign increases the error of the sum are first shrunk by a common factor,
        so that zeros stay zero. If that is not enough, coefficients are moved to their bounds, one
        after the other.
        """
        s = np.clip(s, self.lower, self.upper) + 0.0
        if not self.intercept:
            return s
        missing = self.delta - float(s.sum())
        if abs(missing) <= 4 * EPS * (abs(self.delta) + float(np.abs(s).sum())):
            return s
        against = s < 0 if missing > 0 else s > 0
        held = float(np.abs(s[against]).sum())
        if held > 0.0:
            s[against] *= 1.0 - min(abs(missing) / held, 1.0)
        missing = self.delta - float(s.sum())
        room = self.upper - s if missing > 0 else s - self.lower
        part = np.diff(np.minimum(np.cumsum(room), abs(missing)), prepend=0.0)
        s = np.clip(s + np.copysign(part, missing), self.lower, self.upper)
        missing = self.delta - float(s.sum())
        if abs(missing) > 1e-10 * (abs(self.delta) + float(np.abs(s).sum())):
            raise ValueError(
                "The constraints cannot be satisfied: the bounds do not allow a sum of "
                f"{self.delta:g}. Raise C (or lower nu)."
            )
        return s

    def unfold(self, s: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """alpha and its gradient ``Q alpha + linear`` from s and ``g = K s``."""
        if len(self.sign) == 2 * len(s):
            alpha = np.concatenate([np.maximum(s, 0.0), np.maximum(-s, 0.0)])
            g = np.concatenate([g, g])
        else:
            alpha = s * self.sign
        # Adding 0.0 turns -0.0 into 0.0.
        return alpha + 0.0, self.sign * g + self.linear

    def objective(self, alpha: np.ndarray, values: np.ndarray) -> float:
        """``1/2 alpha'Q alpha + linear'alpha`` from alpha and ``values = K s``."""
        s = (self.sign * alpha).reshape(-1, len(values)).sum(axis=0)
        return float(0.5 * (s @ values) + self.linear @ alpha)
