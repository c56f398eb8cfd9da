"""Bounds for a fitted estimator, from its training sample and a few passes over the kernels.

**Which kernels.** The theorems need kernels fixed before the sample is seen. Centring with the
sample's means only moves part of f into the intercept: ``f = sum_k <w_k, Phi_k - mean> + b`` lies
in the class of the *uncentred* kernels, with another b. Scaling a kernel only changes its weight.
So the bounds for the kernels "as given" also hold if the fit centred the kernels and scaled them by
trace, variance or norm. The bounds for the kernels as prepared (centred, scaled) are usually
smaller, but not proven. The exception is spherical normalisation after centring: f then lies in no
class of the kernels as given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..grams.protocol import Grams, center_targets, target_norm
from ..problem.assumptions import PSD_TOLERANCE, AssumptionError, check_count, check_delta
from .alignment import alignment_interval
from .certify_voted import certify_vote
from .families import CLASSES, FOR_DRAWS, FunctionClasses, Task, classify, detect, regress
from .montecarlo import draw_signs
from .rademacher import not_negative
from .results import Alignment, Bound, Certificate, MachineCertificate
from .sample import (
    FIXED_KERNELS,
    constant_by_chance,
    encode_targets,
    machine_names,
    taken_on_trust,
    training_grams,
    training_sample,
    unmet_by_choice,
)
from .stability import residual_bound, two_stage_bound, two_stage_stability

#: Multiplications allowed for all sign vectors together (at least 50 are drawn) if ``n_draws`` is
#: not given, and for the check of definiteness.
DRAW_BUDGET = 2e11
#: Rounding error of a quadratic form in single precision, relative to its largest possible value.
ROUNDING = 1e-6


def certificate(
    estimator: Any,
    X: Any,
    y: Any = None,
    delta: float = 0.05,
    *,
    n_draws: int | None = None,
    random_state: Any = 0,
) -> Certificate:
    """Bounds on the error of a fitted estimator, computed on its training sample.

    Parameters
    ----------
    estimator : fitted multiple-kernel estimator
    X, y
        The training sample, which is checked by predicting a few samples.
    delta : float, default=0.05
        All proven bounds on risks hold at once, except with this probability; so do the intervals
        for the alignment, with a delta of their own.
    n_draws : int or None, default=None
        Number of sign vectors for the Monte-Carlo complexities; None for 50 to 2000, fewer for
        larger problems. The bounds include the Monte-Carlo error.
    random_state : int or Generator, default=0
        Seed of the signs.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import multikernel as mk
    >>> from multikernel.bounds import certificate
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(1000, centers=[[-3, 0], [3, 0]], random_state=0)
    >>> bank = mk.gaussians([0.05, 0.2])
    >>> model = mk.MultiKernelClassifier(bank, weighting="alignf", C=0.01).fit(X, y)
    >>> found = certificate(model, X, y)
    >>> found.vacuous, round(found.risk(), 1), found.machines[0].tightest().name
    (False, 0.4, 'L1 weights')
    """
    if "approximation_" in getattr(estimator, "__dict__", {}):
        raise ValueError(
            "This model was fitted with approximation=..., but the bounds of certificate apply to "
            "exact kernels. Fit with approximation=None to get them; certify_approximation bounds "
            "the distance from the exact objective."
        )
    delta = check_delta(delta)
    if hasattr(estimator, "terms_"):
        return certify_vote(estimator, X, y, delta)
    fitted = Fitted.of(estimator, X, y)
    if n_draws is None:
        n_draws = int(np.clip(DRAW_BUDGET / (fitted.n**2 * fitted.p), 50, 2000))
    n_draws = check_count("n_draws", n_draws, least=2)
    signs = draw_signs(fitted.n, n_draws, random_state)
    families = [family(signs) for family in fitted.families()]
    machines = []
    for j, name in enumerate(fitted.names):
        task = fitted.task(j)
        bounds = [
            bound
            for family in families
            for bound in family.bounds(task, j, delta / len(fitted.names), fitted.unmet)
        ]
        bounds += fitted.stability(j, delta / len(fitted.names))
        machines.append(
            MachineCertificate(
                name,
                task.statement,
                task.error,
                task.axis,
                task.levels,
                task.tail,
                task.tail_name,
                fitted.prepared_norms[:, j],
                tuple(bounds),
            )
        )
    return Certificate(
        estimator=type(estimator).__name__,
        n_samples=fitted.n,
        n_kernels=fitted.p,
        delta=delta,
        duality_gap=float(estimator.duality_gap_),
        alignments=fitted.alignments(delta),
        machines=tuple(machines),
        paid=fitted.paid(),
        assumptions=fitted.assumptions(),
        n_draws=signs.shape[1],
    )


# -- the fitted estimator -------------------------------------------------------------------------


class Fitted:
    """The quantities that the bounds need, read from an estimator and its training sample."""

    def __init__(self, estimator: Any, grams: Grams, Y: np.ndarray | None, sample: Any) -> None:
        self.estimator = estimator
        self.prepared = grams.corrected(estimator.center, estimator.normalize)
        self.prepared.diagonals()  # one pass over the sample, shared by the statistics below
        self.raw = self.prepared.corrected(False, None)
        self.n, self.p = grams.n, grams.p
        self.Y = Y
        t = estimator.dual_coef_.shape[1]
        self.coef = np.zeros((self.n, t))
        self.coef[estimator.support_] = estimator.dual_coef_
        weights = np.asarray(estimator.kernel_weights_)
        self.weights = weights if weights.ndim == 2 else np.tile(weights, (t, 1))
        self.shared = weights.ndim == 1
        self.intercept = self._intercepts(t)
        self._check_definite()
        self._read(sample)

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any) -> Fitted:
        checked = training_sample(estimator, X, "dual_coef_", "kernel_weights_")
        Y = encode_targets(estimator, y, checked.shape[0])
        return cls(estimator, training_grams(estimator, checked), Y, checked)

    def _intercepts(self, t: int) -> np.ndarray:
        if hasattr(self.estimator, "offset_"):
            return np.array([-self.estimator.offset_])
        return np.broadcast_to(np.asarray(self.estimator.intercept_, dtype=float), (t,)).copy()

    def _read(self, sample: Any) -> None:
        """Compute ``||w_k||``, decision values, and the intercepts for the kernels as given."""
        roots = np.sqrt(not_negative(self.prepared.diagonals()))
        sizes = roots @ np.abs(self.coef)  # upper bounds on sqrt(s' K_k s), (p, t)
        largest = np.square(sizes).max(axis=1)
        forms = not_negative(self.prepared.quadratic_forms(self.coef), ROUNDING * largest)
        self.prepared_norms = np.abs(self.weights.T) * np.sqrt(forms)
        center, how = self.estimator.center, self.estimator.normalize
        self.given: Grams | None
        if how == "spherical":
            # Without centring, the normalised kernel is a fixed kernel; with it, the normalised
            # kernel depends on the sample.
            self.given = None if center else self.prepared
            scale = np.ones(self.p)
        else:
            self.given = self.raw
            wanted = self.prepared.diagonals().sum(axis=1)
            plain = self.prepared.corrected(center, None).diagonals().sum(axis=1)
            scale = np.divide(wanted, plain, out=np.zeros(self.p), where=plain > 0)
        self.scale = scale
        span = self.prepared if self.given is None else self.given
        moved = center and self.given is not None
        coef = self.coef - self.coef.mean(axis=0) if moved else self.coef
        self.values = np.empty_like(self.coef)
        self.given_intercept = self.intercept.copy()
        groups = [slice(None)] if self.shared else [slice(j, j + 1) for j in range(len(coef.T))]
        for group in groups:
            theta = self.weights[group][0] * scale
            self.values[:, group] = span.combine(theta).matvec(coef[:, group])
        if moved:
            means = self.values.mean(axis=0)
            self.values -= means
            self.given_intercept -= means
        self.values += self.intercept
        self._check_sample(
            sample, float((roots.max(axis=1) @ (np.abs(self.weights.T) * sizes)).max())
        )

    def _check_sample(self, sample: Any, largest: float) -> None:
        """Raise an error unless the coefficients reproduce the predictions on the sample.

        ``largest`` is an upper bound on the sum of the absolute terms of a prediction, from which
        the rounding error is estimated.
        """
        some = np.unique(np.linspace(0, self.n - 1, min(self.n, 50)).astype(int))
        expansion = self.estimator._expansion
        predicted = expansion.values(expansion.encode(sample[some])) + self.intercept
        size = np.abs(self.values).max() + np.abs(self.values - self.intercept).max() + 1e-300
        # Where large terms cancel, the difference may be a rounding error.
        dtype = np.dtype(getattr(self.estimator, "dtype", None) or sample.dtype)
        noise = 64 * float(np.finfo(dtype).eps) * largest
        if np.abs(predicted - self.values[some]).max() > 1e-3 * size + noise:
            raise ValueError(
                "X is not the sample that the estimator was fitted to (or it was fitted with "
                "sample_weight: weighted samples are not independent draws, and none of these "
                "bounds applies): its coefficients do not reproduce its predictions. Pass the X "
                "that was given to fit, in the same order."
            )

    # -- predictors -------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        return machine_names(self.estimator, self.coef.shape[1])

    def task(self, j: int) -> Task:
        if self.Y is None:
            return detect(self.values[:, j], float(self.estimator.offset_))
        if hasattr(self.estimator, "classes_"):
            return classify(self.Y[:, j] * self.values[:, j])
        return regress(self.Y[:, j] - self.values[:, j], float(self.Y[:, j].std()))

    def families(self) -> list[Callable[[np.ndarray], FunctionClasses]]:
        """Functions that make the classes of functions from sign vectors."""
        out: list[Callable[[np.ndarray], FunctionClasses]] = []
        fits = self.estimator
        prepared_is_given = self.given is not None and (
            (not fits.center and fits.normalize is None) or self.given is self.prepared
        )
        given = self.given
        if given is not None:
            norms = np.sqrt(self.scale)[:, None] * self.prepared_norms
            out.append(
                lambda signs: FunctionClasses.of(
                    given,
                    signs,
                    "as given",
                    norms,
                    self.given_intercept,
                    (),
                    shifted=self.shifted,
                )
            )
        if not prepared_is_given:
            done = [
                text
                for text, yes in (
                    ("centred", fits.center),
                    (f"scaled ({fits.normalize})", fits.normalize is not None),
                )
                if yes
            ]
            name = ", ".join(done)
            note = f"{FIXED_KERNELS}; kernels {name} depend on the sample's own means and sizes"
            out.append(
                lambda signs: FunctionClasses.of(
                    self.prepared,
                    signs,
                    name,
                    self.prepared_norms,
                    self.intercept,
                    (note,),
                    shifted=self.has_intercept,
                )
            )
        return out

    @property
    def has_intercept(self) -> bool:
        """Whether the estimator's parameters allow an intercept or an offset."""
        return hasattr(self.estimator, "offset_") or bool(self.estimator.fit_intercept)

    @property
    def shifted(self) -> bool:
        """Whether f has a constant term in the kernels as given; centring adds one."""
        return self.has_intercept or (bool(self.estimator.center) and self.given is not None)

    @property
    def unmet(self) -> tuple[str, ...]:
        return unmet_by_choice(self.estimator)

    def assumptions(self) -> tuple[str, ...]:
        trusted: list[str] = []
        if self.Y is not None and self.estimator.normalize != "spherical":
            trusted = constant_by_chance(self.estimator.plan_, self.raw.diagonals())
        return taken_on_trust(self.estimator, self.raw, trusted)

    def _check_definite(self) -> None:
        """Raise an error unless all kernels are positive semidefinite.

        Kernels without weight are checked too, because they also span the classes of functions.
        """
        doubtful = np.flatnonzero(~self.raw.known_psd).tolist()
        if len(doubtful) * float(self.n) ** 3 > DRAW_BUDGET:
            # The check would cost more than all bounds; random signs still reveal gross violations.
            return
        for k in doubtful:
            alone = self.raw.combine(np.eye(self.p)[k])
            lowest, largest, _ = alone.lowest_eigenvalue()
            if lowest < -max(PSD_TOLERANCE * largest, alone.rounding):
                raise AssumptionError(
                    f"The theorems assume positive semidefinite kernels; {self.raw.names[k]!r} has "
                    f"an eigenvalue of {lowest:.3g} on the sample (the largest is {largest:.3g}). "
                    "Repair its matrix (clip or shift its negative eigenvalues), or drop it."
                )

    def paid(self) -> tuple[str, ...]:
        notes = [
            f"delta is shared among {len(CLASSES)} classes of functions, and the best one is used",
            "each margin of the grid 2^(j/2), j any integer, has its own share "
            "2/(3(|j|+1)(|j|+2)) of delta, so the best margin can be chosen afterwards",
            f"{FOR_DRAWS:.0%} of delta covers the error of the Monte-Carlo complexities",
        ]
        if self.Y is not None:
            notes.append("the interval for the alignment has a delta of its own")
        if self.shifted:
            notes.append("the size of the intercept's constant kernel is also chosen from a grid")
        if len(self.names) > 1:
            notes.append(f"delta is shared among {len(self.names)} classifiers or outputs")
        if self.Y is not None and not hasattr(self.estimator, "classes_"):
            notes.append(
                "the radius of the class is rounded up to a power of two, at the cost of a share "
                "of delta"
            )
        return tuple(notes)

    # -- alignment and stability ------------------------------------------------------------------

    def alignments(self, delta: float) -> tuple[Alignment, ...]:
        """Alignments with intervals: Proposition 11 for all products of base kernels and target."""
        if self.Y is None:
            return ()
        span = self.prepared if self.given is None else self.given
        diagonals = span.diagonals()
        R2 = float(diagonals.max())
        constant = bool(np.all(np.ptp(diagonals, axis=1) <= 1e-9 * R2))
        unmet = list(self.unmet)
        if not constant:
            unmet.append("K(x, x) <= R^2 for all x; R^2 is the largest value on the sample")
        if self.given is None:
            unmet.append(f"{FIXED_KERNELS}; the unit sphere is the sample's")
        classifies = hasattr(self.estimator, "classes_")
        if not classifies:
            unmet.append("|y| <= M for all y; M is the largest value on the sample")
        pairs = self.p * (self.p + 1) // 2 + self.p + 1
        groups = [slice(None)] if self.shared else [slice(j, j + 1) for j in range(len(self.Y.T))]
        share = delta / len(groups)
        found = []
        for group in groups:
            Y, mu = self.Y[:, group], self.weights[group][0]
            theta = mu * self.scale
            total = float(np.abs(theta).sum())
            if total == 0 or np.any(theta < 0):
                continue  # the interval covers non-negative combinations only
            Yc = center_targets(Y, None)
            gram = self.prepared.combine(mu)
            product = float(np.vdot(Yc, gram.matvec(Yc))) / total
            size = gram.centred_norm(None) / total
            own = target_norm(Yc, None)
            M2 = float(np.sum(Y**2, axis=1).max())
            n2 = float(self.n) ** 2
            low, high = alignment_interval(
                product / n2, size**2 / n2, own**2 / n2, self.n, share, R2, M2, pairs=pairs
            )
            value = product / (size * own) if size * own > 0 else 0.0
            found.append(Alignment(value, low, high, tuple(unmet)))
        return tuple(found)

    def stability(self, j: int, delta: float) -> list[Bound]:
        """The bound of Theorem 17, for two-stage ridge regression; empty for other models."""
        from ..weighting import JointWeighting, Uniform

        fits = self.estimator
        ridge = getattr(fits, "alpha_", getattr(fits, "alpha", None))
        if self.Y is None or ridge is None or getattr(fits, "loss", None) != "squared":
            return []
        rule = fits._as_weighting(getattr(fits, "weighting_", fits.weighting))
        if isinstance(rule, JointWeighting):
            return []
        y = self.Y[:, j]
        shift = float(y.mean()) if fits.fit_intercept else 0.0
        total = float(np.abs(self.weights[j]).sum())
        diagonals = self.prepared.diagonals()
        R2, M = float(diagonals.max()), float(np.abs(y - shift).max())
        moves = 0.0 if isinstance(rule, Uniform) else 2.0 * total
        lambda_0 = ridge / self.n
        change = two_stage_stability(
            self.n, total, R2, M, lambda_0, [moves], [float(diagonals.sum(axis=1).max())]
        )
        risk = float(np.mean((y - self.values[:, j]) ** 2))
        value = two_stage_bound(risk, change, self.n, total, R2, M, lambda_0, delta)
        stable = 4.0 * residual_bound(M, total * R2, lambda_0) * change  # 2 M_1 M_2 / m
        unmet = [*self.unmet, "K(x, x) <= R^2 and |y| <= M for all x, y; both are the sample's"]
        if fits.fit_intercept:
            unmet.append("ridge regression without intercept; this one has a free intercept")
        if fits.center or fits.normalize is not None:
            unmet.append(f"{FIXED_KERNELS}, for stability (Theorem 17)")
        none = np.array([])
        return [
            Bound(
                name="stability, mean squared error",
                kernels="as prepared",
                margins=none,
                risks=none,
                values=none,
                chosen=0,
                margin=math.nan,
                risk=risk,
                complexity=stable,
                confidence=value - risk - stable,
                value=value,
                delta=delta,
                trivial=float(y.var()),
                unmet=tuple(unmet),
            )
        ]
