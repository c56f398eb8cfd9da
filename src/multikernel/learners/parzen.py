"""The predictors of the alignment theorems: kernel-weighted averages of all targets.

    g(x) = E[y' K_c(x, x')]        h(x) = g(x) / sqrt(E[K_c^2])        h_S(x) = h(x) / sd(y)^2

with averages over the training sample (Cortes, Mohri & Rostamizadeh 2012, section 4.2; Rostamizadeh
2010, eqs. 2.44 and 2.45). They are not trained, so a support vector machine predicts better. The
theorems bound their error by the alignment rho: ``E[y h] = rho Var y`` holds exactly on the sample.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ..grams.protocol import CombinedGram, center_targets
from ..problem import Machine, Target
from .base import require_offers

FORMS = ("g", "h", "h_S")


class Parzen(BaseEstimator):  # type: ignore[misc]
    """Closed-form predictors of every column of the target.

    ``g`` maximises ``E[y f]`` over functions of the same norm; the solution is exact, so its gap is
    zero. The kernel is always centred here, even if it already was.

    Parameters
    ----------
    form : {"g", "h", "h_S"}, default="h"
        ``"g"`` and ``"h"`` are ``g*`` and ``h*`` of the theorems, with the sample in place of the
        distribution. ``"h_S"`` also divides by the variance of the target, so that ``E[y h_S]`` is
        the alignment. (The thesis has ``E[y^2]`` in place of the variance, which is right only for
        E y = 0.) The three differ by positive factors, so they classify alike.
    fit_intercept : bool, default=False
        Whether to add the mean of the target, which regression needs unless that mean is zero. The
        theorems apply to predictors without it.
    """

    needs = ("matvec", "rows")
    #: Up to this many samples, every sample is left out.
    max_left_out = 100_000

    def __init__(self, form: str = "h", *, fit_intercept: bool = False) -> None:
        self.form = form
        self.fit_intercept = fit_intercept

    def fit(
        self, gram: CombinedGram, target: Target, *, start: np.ndarray | None = None
    ) -> Machine:
        """The predictors of all columns; sample weights are used, class weights are not."""
        require_offers(self, gram)  # type: ignore[arg-type]
        if self.form not in FORMS:
            raise ValueError(
                f"Parzen: form must be one of {', '.join(map(repr, FORMS))}; got {self.form!r}."
            )
        omega = np.ones(gram.n) if target.sample_weight is None else target.sample_weight
        total = omega.sum()
        Yc = center_targets(target.Y, target.sample_weight)
        size = np.ones(Yc.shape[1])
        if self.form != "g":
            norm = gram.centred_norm(target.sample_weight) / total
            if not norm > 0:
                raise ValueError(
                    "Parzen: the kernel is constant on the sample, so its alignment is undefined. "
                    "Drop the kernel, or use form='g'."
                )
            size *= norm
        if self.form == "h_S":
            variance = omega @ Yc**2 / total
            if not np.all(variance > 0):
                raise ValueError(
                    "Parzen: the target is constant, so its alignment is undefined. Use form='g' "
                    "or 'h', or a target with at least two values."
                )
            size *= variance
        coef = omega[:, None] * Yc / (total * size)
        values = gram.matvec(coef)
        # Coefficients sum to zero, so centring the kernel changes the values by a constant.
        intercept = -np.asarray(omega @ values) / total
        fit = omega @ (Yc * values) / total
        if self.fit_intercept:
            intercept = intercept + omega @ target.Y / total
        return Machine(coef, intercept, -float(fit.sum()), 0.0, 0, values)

    def left_out(
        self, gram: CombinedGram, target: Target, machine: Machine, rows: np.ndarray
    ) -> np.ndarray:
        """Values at some samples, each from averages without it, shape (len(rows), t).

        The divisors of ``"h"`` and ``"h_S"`` are still those of the whole sample.
        """
        omega = np.ones(gram.n) if target.sample_weight is None else target.sample_weight
        total = omega.sum()
        Y = target.Y
        products = gram.matvec(np.column_stack([omega[:, None] * Y, omega]))
        KY, K1 = products[:, :-1], products[:, -1:]
        k, y = gram.diagonal()[rows, None], Y[rows]
        KY_i, K1_i = KY[rows], K1[rows]
        # Remove one copy, of weight r, from every sum.
        r = np.minimum(1.0, omega[rows])[:, None]
        rest = total - r
        mean = (omega @ Y - r * y) / rest
        average = (KY_i - r * y * k - mean * (K1_i - r * k)) / rest
        inner = omega @ KY - r * (KY_i + y * K1_i) + r**2 * y * k
        outer = omega @ K1 - 2.0 * r * K1_i + r**2 * k
        centred = average - (inner - mean * outer) / rest**2
        if self.form != "g":
            centred = centred / (gram.centred_norm(target.sample_weight) / total)
        if self.form == "h_S":
            Yc = center_targets(Y, target.sample_weight)
            centred = centred / (omega @ Yc**2 / total)
        return np.asarray(centred + mean if self.fit_intercept else centred)
