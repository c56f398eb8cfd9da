"""Kernel weights that minimise the exact leave-one-out error of kernel ridge regression.

The weights are free in size, so that the ridge constant, set to one, is learned with them. The
criterion and its gradient (:mod:`multikernel.learners.leave_one_out`) cost one factorisation and
one pass over the kernels, whatever their number. It is not convex in the weights: several starts
are tried on a part of the sample, and the best of them is improved on the whole sample.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize, minimize_scalar

from ..grams.protocol import Grams, Summary
from ..learners.base import Learner
from ..learners.leave_one_out import LeaveOneOutFit, LeaveOneOutProblem, leave_one_out
from ..problem import Target
from .alignment import alignf
from .base import Weighting, normalised
from .uniform import folds

#: Starts are compared on at most this many samples.
MAX_START_SAMPLES = 400
#: Factorisations of one run of the minimisation, on a part of the sample and on all of it.
MAX_START_STEPS = 25
MAX_FINAL_STEPS = 20
#: The single kernels that are tried as starts.
MAX_SINGLE_STARTS = 8
#: Logarithms of the sizes (the mean diagonal of a kernel times its weight) that are searched.
SMALLEST_SIZE, LARGEST_SIZE = np.log(1e-8), np.log(1e8)
#: Of the size of a start, this part is given to kernels that the start leaves out.
OTHER_SHARE = 1e-2
#: A kernel is left out if the error grows by less than this part of its standard error, or by less
#: than this part of the error itself.
NEGLIGIBLE_STANDARD_ERRORS, NEGLIGIBLE_GROWTH = 0.25, 1e-4
#: Shrinkage is chosen by folds if there are fewer samples than this for each kernel.
MIN_SAMPLES_PER_KERNEL = 64
#: Shrinkage is chosen on at most this many samples.
MAX_SHRINKAGE_SAMPLES = 600
#: Matrices of the size of the kernel matrix that the minimisation holds at once.
MATRICES_IN_MEMORY = 4
#: Weights are learned from at least this many samples, if there are so many.
MIN_SAMPLES = 20
#: Shrinkages that are compared: the share of the uniform weights.
SHRINKAGES = (1.0, 0.75, 0.5, 0.25, 0.0)


class LeaveOneOut(Weighting):
    """Weights that minimise the leave-one-out error of kernel ridge regression.

    The squared error at every sample is that of the function trained without it, computed exactly
    and for all samples from one factorisation. Classifiers use the labels -1 and +1 as targets;
    several outputs or classes share the weights, and their squared errors are added.

    The weights are not normalised: they include the ridge constant, so that ``alpha=1`` (or
    ``C=1``) is the value that leave-one-out chooses.

    Parameters
    ----------
    shrinkage : float or "auto", default="auto"
        How far the weights are moved towards equal weights: from 0, the minimum of the criterion,
        to 1, equal weights of the best size. ``"auto"`` compares five values by cross-validation
        if there are few samples for each kernel, and takes the largest whose error is within one
        standard error of the smallest; otherwise it is 0.
    tol : float, default=1e-4
        The minimisation stops when a step reduces the criterion by less than this part.
    max_iter : int, default=20
        Limit on the factorisations of the whole kernel matrix.
    max_samples : int, default=3000
        Weights are learned from at most this many samples (fewer if memory is short), chosen at
        random with the classes in proportion. The predictor is trained on all of them.
    random_state : int or None, default=0
        Seed for the samples on which starts are compared, and for folds.

    Notes
    -----
    The criterion is not convex, so there is no duality gap for the weights. The first entry of
    ``history_`` states the criterion relative to that of a constant (``loo_error``), the largest
    entry of its projected gradient with respect to logarithms of the weights
    (``projected_gradient``), the number of factorisations of the whole matrix, and the shrinkage.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bank = mk.gaussians([1.0, 10.0, 100.0])
    >>> model = mk.MultiKernelRegressor(bank, weighting="loo").fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.43
    """

    def __init__(
        self,
        shrinkage: float | str = "auto",
        *,
        tol: float = 1e-4,
        max_iter: int = MAX_FINAL_STEPS,
        max_samples: int = 3000,
        random_state: Any = 0,
    ) -> None:
        self.max_samples = max_samples
        self.shrinkage = shrinkage
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        return self.weigh(grams, target, learner, summary)[0]

    def weigh(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> tuple[np.ndarray, list[dict[str, Any]]]:
        self._check()
        whole = SizedKernels(grams, target, learner.fit_intercept)
        sample = whole.part(some_rows(target, self._most_samples(grams), self.random_state))
        try:
            found = minimise(sample, tol=self.tol, max_iter=self.max_iter, seed=self.random_state)
        except LinAlgError:
            # No start has a definite matrix: equal weights, which the caller checks and refuses.
            return normalised(np.where(grams.degenerate, 0.0, 1.0)), []
        shrinkage = self.shrinkage
        if shrinkage == "auto":
            shrinkage = self._shrinkage_by_folds(sample)
        kernel_weights = whole.weights(found.shrunken_sizes(float(shrinkage)))
        entry = {
            "loo_error": found.error,
            "projected_gradient": found.projected_gradient,
            "factorisations": found.factorisations,
            "shrinkage": float(shrinkage),
        }
        return kernel_weights, [entry]

    def _check(self) -> None:
        value = self.shrinkage
        good = isinstance(value, Real) and not isinstance(value, bool) and 0 <= value <= 1
        if not good and not (isinstance(value, str) and value == "auto"):
            raise ValueError(
                f"LeaveOneOut: shrinkage must be 'auto' or a number from 0 to 1; got {value!r}."
            )
        if not isinstance(self.tol, Real) or not self.tol > 0:
            raise ValueError(f"LeaveOneOut: tol must be a positive number; got {self.tol!r}.")
        for name, least in (("max_iter", 1), ("max_samples", MIN_SAMPLES)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < least:
                raise ValueError(
                    f"LeaveOneOut: {name} must be a whole number of at least {least}; "
                    f"got {value!r}."
                )

    def _most_samples(self, grams: Grams) -> int:
        """The number of samples to learn from: as many as asked for and as memory allows."""
        room = grams.combine(np.zeros(grams.p)).room
        fits = np.sqrt(room / (8.0 * MATRICES_IN_MEMORY))
        return int(max(min(self.max_samples, fits), MIN_SAMPLES))

    def _shrinkage_by_folds(self, sample: SizedKernels) -> float:
        usable = int(np.count_nonzero(sample.usable))
        if usable == 1 or sample.grams.n >= MIN_SAMPLES_PER_KERNEL * usable:
            return 0.0
        rows = some_rows(sample.target, MAX_SHRINKAGE_SAMPLES, self.random_state)
        return choose_shrinkage(sample.part(rows), self.tol, self.random_state)


@dataclass
class SizedKernels:
    """The criterion on one sample, as a function of the sizes of the kernels.

    The size of a kernel is its weight times its mean centred diagonal. Sizes, unlike weights, keep
    their meaning from one sample to another.
    """

    grams: Grams
    target: Target
    fit_intercept: bool
    factorisations: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.problem = LeaveOneOutProblem.of(self.target, self.fit_intercept)
        self.usable = ~self.grams.degenerate
        omega = np.ones(self.grams.n)
        if self.target.sample_weight is not None:
            omega = self.target.sample_weight
        total = omega.sum()
        diagonals = self.grams.diagonals() @ omega / total
        means = self.grams.quadratic_forms(omega) / total**2
        size = np.where(self.usable, diagonals - means, 1.0)
        # An indefinite kernel may have a negative trace.
        self.unit = np.where(size > 0, size, np.maximum(np.abs(diagonals), 1e-300))

    @property
    def p(self) -> int:
        return self.grams.p

    def part(self, rows: np.ndarray) -> SizedKernels:
        """The same kernels on some of the samples, centred and normalised there."""
        if len(rows) == self.grams.n:
            return self
        target = self.target.take(rows)
        grams = self.grams.take(rows, target.sample_weight)
        return SizedKernels(
            grams.corrected(self.grams.center, self.grams.how), target, self.fit_intercept
        )

    def weights(self, sizes: np.ndarray) -> np.ndarray:
        return np.where(self.usable, sizes / self.unit, 0.0)

    def matrix(self, sizes: np.ndarray) -> np.ndarray:
        return self.grams.combine(self.weights(sizes)).dense()

    def fit(self, sizes: np.ndarray) -> LeaveOneOutFit:
        self.factorisations += 1
        return leave_one_out(self.matrix(sizes), self.problem)

    def relative(self, error: float) -> float:
        return error / max(self.problem.constant_error(), 1e-300)


@dataclass(frozen=True)
class LooMinimum:
    """The result of `minimise`; sizes refer to kernels of unit mean diagonal.

    Attributes
    ----------
    sample : SizedKernels
    sizes : array of shape (p,)
    uniform : array of shape (p,)
        Equal sizes, of the best total.
    error : float
        The criterion, relative to that of a constant.
    projected_gradient : float
    factorisations : int
        Of the whole matrix.
    """

    sample: SizedKernels
    sizes: np.ndarray
    uniform: np.ndarray
    error: float
    projected_gradient: float
    factorisations: int

    def shrunken_sizes(self, share: float) -> np.ndarray:
        """The sizes, with this share of the uniform ones."""
        return (1.0 - share) * self.sizes + share * self.uniform


def minimise(
    sample: SizedKernels, *, tol: float, max_iter: int, seed: Any, several: bool = True
) -> LooMinimum:
    """Minimise the criterion: starts on a part of the sample, then the whole sample.

    Without ``several``, the uniform start is the only one.
    """
    part = sample.part(some_rows(sample.target, MAX_START_SAMPLES, seed))
    uniform, starts = find_starts(part, several)
    runs = []
    for start in starts:
        with suppress(LinAlgError):
            runs.append(descend(part, start, MAX_START_STEPS, 10 * tol))
    if not runs:
        raise LinAlgError("No start has a positive definite matrix.")
    best = without_unneeded(part, min(runs, key=lambda run: run[1])[0], sample.grams.n)
    if part is not sample:
        uniform = with_best_total(sample, uniform, 0.5)[0]
    before = sample.factorisations if part is not sample else 0
    sizes, error, gradient = descend(sample, best, max_iter, tol)
    return LooMinimum(
        sample,
        sizes,
        uniform,
        sample.relative(error),
        gradient,
        sample.factorisations - before,
    )


def some_rows(target: Target, limit: int, seed: Any) -> np.ndarray:
    """At most ``limit`` rows in their order, with the classes in proportion."""
    n = len(target.Y)
    if n <= limit:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    if target.kind == "classification":
        # Every class takes its turns evenly, so that a small class is not left out.
        labels = target.labels[order]
        place = np.empty(n)
        for label in np.unique(labels):
            mine = np.flatnonzero(labels == label)
            place[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
        order = order[np.argsort(place, kind="stable")]
    return np.sort(order[:limit])


def find_starts(sample: SizedKernels, several: bool) -> tuple[np.ndarray, list[np.ndarray]]:
    """Uniform sizes, and the starts: uniform, alignf, and the best single kernel."""
    usable = sample.usable
    uniform, _ = with_best_total(sample, np.where(usable, 1.0 / usable.sum(), 0.0), 0.2)
    starts = [uniform]
    if not several or usable.sum() == 1:
        return uniform, starts
    summary = sample.grams.summary(sample.target.Y, products=True)
    assert summary.M is not None
    aligned = alignf(summary.M, summary.a) * sample.unit
    if np.any(aligned > 0):
        starts.append(with_best_total(sample, aligned / aligned.sum(), 0.5)[0])
    order = np.argsort(-np.where(usable, summary.alignments, -np.inf), kind="stable")
    count = min(MAX_SINGLE_STARTS, int(usable.sum()))
    # The best aligned half, and others evenly from the rest.
    head = order[: (count + 1) // 2]
    rest = order[(count + 1) // 2 : int(usable.sum())]
    tail = (
        rest[np.unique(np.linspace(0, len(rest) - 1, count // 2).astype(int))]
        if len(rest)
        else rest
    )
    singles = [
        with_best_total(sample, (np.arange(sample.p) == k).astype(np.float64), 1.0)
        for k in np.concatenate([head, tail])
    ]
    starts.append(min(singles, key=lambda found: found[1])[0])
    # Kernels that a start leaves out take part with a small size.
    rest = np.where(usable, OTHER_SHARE / usable.sum(), 0.0)
    return uniform, [np.maximum(start, rest * start.sum()) for start in starts]


def without_unneeded(sample: SizedKernels, sizes: np.ndarray, n_samples: int) -> np.ndarray:
    """The same sizes, with zeros for kernels that are not needed, tried from the smallest on.

    ``n_samples`` is the size of the whole sample, by which the standard error is reckoned. The
    error is always compared with that of all kernels, so that small losses do not add up.
    """
    fit = sample.fit(sizes)
    costs = sample.problem.costs
    before = costs * np.sum(fit.residuals**2, axis=1)
    for k in np.argsort(sizes, kind="stable").tolist():
        trial = np.where(np.arange(sample.p) == k, 0.0, sizes)
        if sizes[k] == 0 or not np.any(trial > 0):
            continue
        try:
            growth = costs * np.sum(sample.fit(trial).residuals ** 2, axis=1) - before
        except LinAlgError:
            continue
        allowed = NEGLIGIBLE_STANDARD_ERRORS * growth.std() / np.sqrt(n_samples)
        if growth.mean() <= max(allowed, NEGLIGIBLE_GROWTH * before.mean()):
            sizes = trial
    return sizes


def with_best_total(
    sample: SizedKernels, direction: np.ndarray, precision: float
) -> tuple[np.ndarray, float]:
    """The multiple of a direction with the smallest criterion, and that criterion."""
    K = sample.matrix(direction)

    def error(log_total: float) -> float:
        sample.factorisations += 1
        try:
            return log_error(leave_one_out(np.exp(log_total) * K, sample.problem))
        except LinAlgError:
            return np.inf

    found = minimize_scalar(
        error, bounds=(np.log(1e-3), np.log(1e6)), method="bounded", options={"xatol": precision}
    )
    return np.exp(found.x) * direction, float(np.exp(found.fun))


def descend(
    sample: SizedKernels, start: np.ndarray, max_steps: int, tol: float
) -> tuple[np.ndarray, float, float]:
    """Sizes after at most ``max_steps`` factorisations, their criterion and projected gradient.

    The logarithms of the sizes are the variables: sizes differ by orders of magnitude.
    """
    usable = np.flatnonzero(start > 0)
    begin = np.clip(np.log(start[usable]), SMALLEST_SIZE, LARGEST_SIZE)
    trace = Trace(sample, usable)
    minimize(
        trace,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=[(SMALLEST_SIZE, LARGEST_SIZE)] * len(usable),
        options={"maxfun": max_steps, "ftol": tol, "gtol": 1e-5, "maxls": 8},
        callback=trace.stop_after(max_steps),
    )
    return trace.answer()


def log_error(fit: LeaveOneOutFit) -> float:
    """The logarithm of the criterion; a perfect fit counts as a tiny error."""
    return float(np.log(max(fit.error, 1e-300)))


class Trace:
    """The logarithm of the criterion with its gradient, and the best point seen."""

    def __init__(self, sample: SizedKernels, usable: np.ndarray) -> None:
        self.sample, self.usable = sample, usable
        self.best = (np.zeros(0), np.inf, np.zeros(0))
        self.count = 0

    def sizes(self, x: np.ndarray) -> np.ndarray:
        sizes = np.zeros(self.sample.p)
        sizes[self.usable] = np.exp(x)
        return sizes

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        self.count += 1
        sizes = self.sizes(x)
        try:
            fit = self.sample.fit(sizes)
        except LinAlgError:
            return 1e10, np.zeros(len(x))
        products = self.sample.grams.inner_products(fit.gradient())
        slope = (self.sample.weights(sizes) * products)[self.usable] / max(fit.error, 1e-300)
        if fit.error < self.best[1]:
            self.best = (x.copy(), fit.error, slope)
        return log_error(fit), slope

    def stop_after(self, steps: int) -> Callable[[np.ndarray], None]:
        def check(_: np.ndarray) -> None:
            if self.count >= steps:
                raise StopIteration

        return check

    def answer(self) -> tuple[np.ndarray, float, float]:
        """The best sizes seen, their criterion, and the largest entry of its gradient."""
        x, error, slope = self.best
        if not np.isfinite(error):
            raise LinAlgError("No kernel matrix on the way is positive definite.")
        return self.sizes(x), error, float(np.max(np.abs(slope), initial=0.0))


def choose_shrinkage(sample: SizedKernels, tol: float, seed: Any) -> float:
    """The largest shrinkage whose cross-validated error is within one standard error of the best.

    Weights are learned on each training fold; errors are those of ridge regression on it.
    """
    errors = np.zeros((len(SHRINKAGES), len(sample.target.Y)))
    for train, test in folds(sample.target, 5, seed):
        part = sample.part(train)
        try:
            found = minimise(part, tol=10 * tol, max_iter=MAX_START_STEPS, seed=seed, several=False)
        except LinAlgError:
            continue  # a fold that says nothing
        target = sample.target.take(test)
        rescale = part.grams.scales[sample.usable] / sample.grams.scales[sample.usable]
        for row, share in enumerate(SHRINKAGES):
            kernel_weights = part.weights(found.shrunken_sizes(share))
            kernel_weights[sample.usable] *= rescale
            K = sample.grams.combine(kernel_weights).dense()
            fit = leave_one_out(K[np.ix_(train, train)], part.problem)
            c = part.problem.costs
            residual = part.problem.Y - K[np.ix_(train, train)] @ fit.coef
            shift = np.average(residual, axis=0, weights=c) if sample.fit_intercept else 0.0
            values = K[np.ix_(test, train)] @ fit.coef + shift + part.problem.mean
            errors[row, test] = np.sum((target.Y - values) ** 2, axis=1)
    weights = sample.problem.costs
    means = errors @ weights / weights.sum()
    best = int(np.argmin(means))
    differences = errors - errors[best]
    spread = np.sqrt(((differences - differences.mean(axis=1, keepdims=True)) ** 2).mean(axis=1))
    allowed = spread / np.sqrt(errors.shape[1])
    within = means - means[best] <= allowed
    return SHRINKAGES[int(np.argmax(within))]
