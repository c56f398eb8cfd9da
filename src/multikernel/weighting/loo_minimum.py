"""Minimise the leave-one-out error of ridge regression over the sizes of kernels.

The criterion is not convex: several starts are tried on a part of the sample, and the best of them
is improved on the whole sample.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from .._threads import one_blas_thread
from ..grams.protocol import Grams
from ..learners.leave_one_out import (
    LeaveOneOutErrors,
    LeaveOneOutFit,
    LeaveOneOutProblem,
    leave_one_out,
    leave_one_out_errors,
)
from ..problem import Target
from .alignment import alignf

#: All kernel matrices of a sample are held in memory if they take no more bytes than this.
MAX_STACK_BYTES = 100e6
#: Starts are compared on at most this many samples, with at least this many of each class.
MAX_START_SAMPLES, MIN_START_CLASS_SAMPLES = 400, 10
#: Limit on factorisations in one minimisation on a part of the sample.
MAX_START_STEPS = 25
#: Number of single kernels that are tried as starts.
MAX_SINGLE_STARTS = 8
#: Upper limit on tol: larger values stop at the same step, and SciPy's tol / eps stays finite.
LARGEST_TOL = 1e200
#: Search range of the logarithms of sizes (mean diagonal of a kernel times its weight).
SMALLEST_SIZE, LARGEST_SIZE = np.log(1e-8), np.log(1e6)
#: Size of the kernels that a start leaves out, as a fraction of the start's mean size.
OTHER_SHARE = 1e-2
#: Limit on halvings of the sizes.
MAX_HALVINGS = 20
#: Sizes count as equally good if the error grows by less than this fraction of its standard error,
#: or by less than this fraction of the error itself.
NEGLIGIBLE_STANDARD_ERRORS, NEGLIGIBLE_GROWTH = 0.25, 1e-4
#: Errors below this fraction of a constant's error count as zero: otherwise, with copies of all
#: samples or without noise, sizes would grow until rounding errors dominate.
NEGLIGIBLE_ERROR = 1e-8


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
    _some: tuple[np.ndarray, np.ndarray] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        # Centred functions sum to zero over the sample, so that without an intercept the other
        # targets would reveal the one that is left out.
        free = self.fit_intercept or self.grams.center
        self.problem = LeaveOneOutProblem.of(self.target, free)
        self.usable = ~self.grams.degenerate
        omega = np.ones(self.grams.n)
        if self.target.sample_weight is not None:
            omega = self.target.sample_weight
        total = omega.sum()
        diagonals = self.grams.diagonals() @ omega / total
        means = self.grams.quadratic_forms(omega) / total**2
        size = np.where(self.usable, diagonals - means, 1.0)
        # An indefinite kernel may have a negative trace.
        size = np.where(size > 0, size, np.maximum(np.abs(diagonals), 1e-300))
        # Small sample weights need larger kernels: sizes refer to sample weights of mean one.
        self.unit = size * min(1.0, float(total) / self.grams.n)

    @property
    def p(self) -> int:
        return self.grams.p

    @property
    def n_counted(self) -> float:
        """The number of samples left out in turn; a sample of weight w > 1 counts w times."""
        weights = self.target.sample_weight
        return float(self.grams.n if weights is None else np.maximum(weights, 1.0).sum())

    def mean_and_spread(self, errors: np.ndarray) -> tuple[float, float]:
        """Mean and standard deviation of one number per sample, weighted by cost."""
        costs = self.problem.costs
        mean = float(np.average(errors, weights=costs))
        return mean, float(np.sqrt(np.average((errors - mean) ** 2, weights=costs)))

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
        return self.combine(self.weights(sizes))

    @cached_property
    def stack(self) -> np.ndarray | None:
        """All kernel matrices as rows, for faster passes; None if they take too much memory."""
        n = self.grams.n
        if 8 * self.p * n**2 > MAX_STACK_BYTES:
            return None
        return self.grams.block(slice(0, n)).reshape(self.p, n**2).astype(np.float64, copy=False)

    def _rows_of_stack(self, stack: np.ndarray, used: np.ndarray) -> np.ndarray:
        """Some kernel matrices as rows; the last copy is kept, since a descent asks repeatedly."""
        if self._some is None or not np.array_equal(self._some[0], used):
            self._some = used, stack[used]
        return self._some[1]

    def combine(self, kernel_weights: np.ndarray) -> np.ndarray:
        """The weighted sum of the kernel matrices."""
        stack, used = self.stack, np.flatnonzero(kernel_weights)
        if stack is None:
            return self.grams.combine(kernel_weights).dense()
        if 2 * len(used) <= self.p:
            kernel_weights, stack = kernel_weights[used], self._rows_of_stack(stack, used)
        with one_blas_thread():
            return np.asarray(kernel_weights @ stack).reshape(self.grams.n, self.grams.n)

    def without(self, K: np.ndarray, sizes: np.ndarray, k: int) -> np.ndarray:
        """The matrix for these sizes without kernel k, given the matrix K with it."""
        if self.stack is None:
            return self.matrix(np.where(np.arange(self.p) == k, 0.0, sizes))
        return np.asarray(K - self.weights(sizes)[k] * self.stack[k].reshape(K.shape))

    def inner_products(self, G: np.ndarray, used: np.ndarray) -> np.ndarray:
        """``<G, K_k>`` for some kernels."""
        stack = self.stack
        if stack is None:
            return self.grams.inner_products(G)[used]
        few = 2 * len(used) <= self.p
        with one_blas_thread():
            found = (self._rows_of_stack(stack, used) if few else stack) @ G.ravel()
        return np.asarray(found if few else found[used])

    def fit(self, sizes: np.ndarray) -> LeaveOneOutFit:
        self.factorisations += 1
        return leave_one_out(self.matrix(sizes), self.problem)

    def left_out_errors(self, K: np.ndarray) -> np.ndarray:
        """The squared error of each sample by the function trained without it, shape (n,)."""
        self.factorisations += 1
        residuals = leave_one_out_errors(K, self.problem).residuals
        return np.asarray(np.sum(residuals**2, axis=1))

    @property
    def floor(self) -> float:
        """The error below which errors count as zero."""
        return max(NEGLIGIBLE_ERROR * self.problem.constant_error(), 1e-300)

    def log_error(self, fit: LeaveOneOutFit | LeaveOneOutErrors) -> float:
        """The objective that is minimised: the logarithm of the criterion."""
        return float(np.log(fit.error + self.floor))

    def relative(self, error: float) -> float:
        return error / max(self.problem.constant_error(), 1e-300)


@dataclass(frozen=True)
class LooMinimum:
    """The result of `minimise`; sizes refer to kernels of unit mean diagonal.

    Attributes
    ----------
    sample : SizedKernels
    part : SizedKernels
        The part of the sample on which starts were compared.
    sizes : array of shape (p,)
    uniform_start : array of shape (p,)
        Equal sizes with the best total for that part.
    error : float
        The criterion, relative to that of a constant.
    projected_gradient : float
    factorisations : int
        Of the whole matrix.
    rough : bool
        See `minimise`.
    """

    sample: SizedKernels
    part: SizedKernels
    sizes: np.ndarray
    uniform_start: np.ndarray
    error: float
    projected_gradient: float
    factorisations: int
    rough: bool

    @cached_property
    def uniform(self) -> np.ndarray:
        """Equal sizes with the best total."""
        sizes = self.uniform_start
        if self.part is not self.sample:
            sizes = with_best_total(self.sample, sizes, 0.5)[0]
        if self.rough:
            return sizes
        return no_larger_than_needed(self.part, sizes, self.sample.n_counted)

    def shrunken_sizes(self, share: float) -> np.ndarray:
        """The sizes mixed with this share of the uniform ones."""
        if share == 0:
            return self.sizes
        return (1.0 - share) * self.sizes + share * self.uniform


def minimise(
    sample: SizedKernels, *, tol: float, max_iter: int, seed: Any, rough: bool = False
) -> LooMinimum:
    """Minimise the criterion: starts on a part of the sample, then the whole sample.

    With ``rough``, equal sizes are the only start, and the total may be larger than needed.
    """
    if not np.any(sample.usable):
        raise LinAlgError("Every kernel is constant on the sample.")
    part = sample.part(some_rows(sample.target, MAX_START_SAMPLES, seed))
    uniform, starts = find_starts(part, several=not rough)
    runs = []
    for start in starts:
        with suppress(LinAlgError):
            runs.append(descend(part, start, MAX_START_STEPS, 10 * tol))
    if not runs:
        raise LinAlgError("No start has a positive definite matrix.")
    best = without_unneeded(part, min(runs, key=lambda run: run[1])[0], sample.n_counted)
    if not rough:
        best = no_larger_than_needed(part, best, sample.n_counted)
    before = sample.factorisations if part is not sample else 0
    sizes, error, gradient = descend(sample, best, max_iter, tol)
    return LooMinimum(
        sample,
        part,
        sizes,
        uniform,
        sample.relative(error),
        gradient,
        sample.factorisations - before,
        rough,
    )


def some_rows(target: Target, limit: int, seed: Any) -> np.ndarray:
    """At most ``limit`` rows in ascending order, with the classes in proportion.

    Of rare classes there are `MIN_START_CLASS_SAMPLES` rows, or all, or an equal share of ``limit``
    if that is less: a part without a class says nothing about kernels for it.
    """
    n = len(target.Y)
    if n <= limit:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    if target.kind == "classification":
        # Spread every class evenly over the order, so that any prefix is stratified.
        labels = target.labels[order]
        classes = np.unique(labels)
        least = min(MIN_START_CLASS_SAMPLES, limit // len(classes))
        place = np.empty(n)
        for label in classes:
            mine = np.flatnonzero(labels == label)
            place[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
            place[mine[:least]] = 0.0
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
    # Half of the candidates are the best aligned kernels; the others are spread over the rest.
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
    # Kernels that a start leaves out get a small size.
    rest = np.where(usable, OTHER_SHARE / usable.sum(), 0.0)
    return uniform, [np.maximum(start, rest * start.sum()) for start in starts]


def without_unneeded(sample: SizedKernels, sizes: np.ndarray, n_samples: float) -> np.ndarray:
    """The same sizes, with zeros for kernels that are not needed, tried in order of size.

    ``n_samples`` is the size of the whole sample, which determines the standard error. The error is
    always compared with that of all kernels, so that small losses do not add up.
    """
    K = sample.matrix(sizes)
    comparison = Comparison(sample, K, n_samples)
    for k in np.argsort(sizes, kind="stable").tolist():
        rest = np.where(np.arange(sample.p) == k, 0.0, sizes)
        if sizes[k] == 0 or not np.any(rest > 0):
            continue
        trial = sample.without(K, sizes, k)
        if comparison.is_as_good(trial):
            K, sizes = trial, rest
    return sizes


def no_larger_than_needed(sample: SizedKernels, sizes: np.ndarray, n_samples: float) -> np.ndarray:
    """The sizes, halved while they remain as good, at most `MAX_HALVINGS` times.

    If rough kernels predict equally well without a ridge, the criterion is flat in the total, which
    is then arbitrary. Predictors are easier to train with a smaller kernel.
    """
    K, factor = sample.matrix(sizes), 1.0
    comparison = Comparison(sample, K, n_samples)
    for _ in range(MAX_HALVINGS):
        if not comparison.is_as_good(0.5 * factor * K):
            break
        factor *= 0.5
    return factor * sizes


class Comparison:
    """Tests whether other kernel matrices are as good as a given one, up to chance."""

    def __init__(self, sample: SizedKernels, K: np.ndarray, n_samples: float) -> None:
        self.sample, self.n_samples = sample, n_samples
        self.errors = sample.left_out_errors(K)
        self.negligible = NEGLIGIBLE_GROWTH * sample.mean_and_spread(self.errors)[0]
        self.negligible += sample.floor / sample.problem.costs.sum()

    def is_as_good(self, K: np.ndarray) -> bool:
        try:
            errors = self.sample.left_out_errors(K)
        except LinAlgError:
            return False
        mean, spread = self.sample.mean_and_spread(errors - self.errors)
        chance = NEGLIGIBLE_STANDARD_ERRORS * spread / np.sqrt(self.n_samples)
        return mean <= max(chance, self.negligible)


def with_best_total(
    sample: SizedKernels, direction: np.ndarray, precision: float
) -> tuple[np.ndarray, float]:
    """The multiple of a direction with the smallest criterion, and that criterion."""
    K = sample.matrix(direction)

    def error(log_total: float) -> float:
        sample.factorisations += 1
        try:
            return sample.log_error(leave_one_out_errors(np.exp(log_total) * K, sample.problem))
        except LinAlgError:
            return np.inf

    log_total, least = golden_section(error, np.log(1e-3), np.log(1e6), precision)
    return np.exp(log_total) * direction, float(np.exp(least))


def golden_section(
    function: Callable[[float], float], low: float, high: float, precision: float
) -> tuple[float, float]:
    """The minimiser of a unimodal function, and its value there.

    The places of evaluation depend on comparisons only, so that rounding does not move the result,
    unlike with methods that interpolate.
    """
    step = (np.sqrt(5.0) - 1.0) / 2.0
    left, right = high - step * (high - low), low + step * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 2.0 * precision:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - step * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + step * (high - low)
            at_right = function(right)
    return (left, at_left) if at_left <= at_right else (right, at_right)


def descend(
    sample: SizedKernels, start: np.ndarray, max_steps: int, tol: float
) -> tuple[np.ndarray, float, float]:
    """Sizes after at most ``max_steps`` factorisations, with criterion and largest gradient entry.

    The variables are the logarithms of the sizes, because sizes differ by orders of magnitude.
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
        options={
            "maxfun": max_steps,
            "ftol": min(tol, LARGEST_TOL),
            "gtol": 1e-5,
            "maxls": 8,
        },
        callback=trace.stop_after(max_steps),
    )
    return trace.answer()


class Trace:
    """The logarithm of the criterion with its gradient; keeps the best sizes seen."""

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
        products = self.sample.inner_products(fit.gradient(), self.usable)
        slope = self.sample.weights(sizes)[self.usable] * products
        slope /= fit.error + self.sample.floor
        if fit.error < self.best[1]:
            self.best = (x.copy(), fit.error, slope)
        return self.sample.log_error(fit), slope

    def stop_after(self, steps: int) -> Callable[[np.ndarray], None]:
        def check(_: np.ndarray) -> None:
            if self.count >= steps:
                raise StopIteration

        return check

    def answer(self) -> tuple[np.ndarray, float, float]:
        """The best sizes seen, their criterion, and the largest entry of the projected gradient."""
        x, error, slope = self.best
        if not np.isfinite(error):
            raise LinAlgError("No kernel matrix on the way is positive definite.")
        # At a bound, a descent direction that leaves the box does not count.
        slope = np.where(x <= SMALLEST_SIZE, np.minimum(slope, 0.0), slope)
        slope = np.where(x >= LARGEST_SIZE, np.maximum(slope, 0.0), slope)
        return self.sizes(x), error, float(np.max(np.abs(slope), initial=0.0))
