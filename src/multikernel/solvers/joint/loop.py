"""The loop: kernel weights and machine from grams, target, weighting and learner."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh
from scipy.linalg.lapack import spotrf
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from ..._threads import one_blas_thread
from ...grams.protocol import CombinedGram, Grams, Summary
from ...learners.base import Learner
from ...problem import Machine, Solution, Target
from ...weighting.base import Weighting
from ...weighting.joint import JointWeighting, LpNorm

if TYPE_CHECKING:
    from ...grams.rankone import RankOneGrams

#: An eigenvalue above minus this part of the largest counts as rounding, not as negative.
PSD_TOLERANCE = 1e-8
#: Up to this many samples a Cholesky factor is the quickest proof of definiteness.
DENSE_LIMIT = 12_000
#: Up to this many samples all eigenvalues are computed where that proof fails.
EIGEN_LIMIT = 1000
#: From this many samples on, weights are first learned on few of them: on one in ten,
#: but on no more than so many as long as that is not fewer than one in 24.
COARSE_FROM, FEW, ONE_IN = 800, 200, (10, 24)
#: Up to this many samples nothing here is large enough to be worth a second thread of BLAS.
ONE_THREAD = 4000


class NotPSDError(ValueError):
    """A combination of kernels that must be positive semidefinite is not."""


Report = Callable[[dict[str, Any]], None]


class Interrupted(KeyboardInterrupt):
    """Raised in place of KeyboardInterrupt when there is a certified iterate to hand over."""

    def __init__(self, solution: Solution) -> None:
        super().__init__("interrupted; the best iterate so far is kept")
        self.solution = solution


def learn(
    grams: Grams,
    target: Target,
    weighting: Weighting,
    learner: Learner,
    *,
    warm: np.ndarray | None = None,
    report: Report | None = None,
) -> Solution:
    """Weights, then the machine on the kernel they combine to; once, or in turns.

    Parameters
    ----------
    warm : array of shape (p,) or None
        Weights of a similar problem for a joint rule to begin near.
    report : callable or None
        Told about every alternation of a joint rule.
    """
    with one_blas_thread(grams.n, ONE_THREAD):
        ahead = coarse_weights(grams, target, weighting, learner) if warm is None else None
    grams.expect(ahead.raw if ahead is not None and by_cuts(grams, weighting) else None)
    # The one pass that brings everything the rest will ask about the sample.
    summary = grams.summary(target.Y, products=weighting.needs_products)
    refuse_constant_kernels(grams)
    if ahead is not None:
        warm = ahead.weights
        if by_cuts(grams, weighting):
            # What was expected, to the last digit; the solver brings it to the right length.
            warm = np.divide(ahead.raw, grams.units, out=np.zeros(grams.p), where=grams.units > 0)

    def finish(found: Found) -> Solution:
        aligned = combined_alignment(found, summary, target)
        return Solution(found.weights, found.machine, aligned, summary.alignments, found.history)

    try:
        with one_blas_thread(grams.n, ONE_THREAD):
            return finish(find(grams, target, weighting, learner, warm=warm, report=report))
    except Stopped as stopped:
        raise Interrupted(finish(stopped.found)) from None


@dataclass(frozen=True)
class Found:
    """Weights with the machine that was trained at them."""

    weights: np.ndarray
    machine: Machine
    gram: CombinedGram
    history: list[dict[str, Any]]


class Stopped(KeyboardInterrupt):
    """An interrupt on its way up, with what has been reached."""

    def __init__(self, found: Found) -> None:
        super().__init__()
        self.found = found


def find(
    grams: Grams,
    target: Target,
    weighting: Weighting,
    learner: Learner,
    *,
    warm: np.ndarray | None = None,
    report: Report | None = None,
) -> Found:
    """The bare problem: weights and machine, without warnings or alignments."""
    if by_features(grams, target, weighting, learner):
        from .features import find_by_features

        return find_by_features(grams, target, weighting, learner, warm=warm, report=report)
    if isinstance(weighting, LpNorm):
        solve = lp_solver(weighting.method(grams.p))
        warm = None if weighting.p == 2 else warm
        return solve(grams, target, weighting, learner, warm=warm, report=report)
    if isinstance(weighting, JointWeighting):
        return alternate(grams, target, weighting, learner, warm=warm, report=report)
    weights = weighting.start(grams, target, learner)
    gram = grams.combine(weights)
    require_psd(grams, weights, gram, warn=weighting.signed_weights)
    return Found(weights, learner.fit(gram, target), gram, [])


def by_features(
    grams: Grams, target: Target, weighting: Weighting, learner: Learner
) -> TypeGuard[RankOneGrams]:
    """Whether the weights are those of features, for which there is a way of its own."""
    if not isinstance(weighting, LpNorm) or weighting.solver != "auto":
        return False
    from .features import is_for

    return is_for(grams, target, weighting, learner)


def by_cuts(grams: Grams, weighting: Weighting) -> bool:
    """Whether cutting planes will be used, to which only the proportion of warm weights counts."""
    return isinstance(weighting, LpNorm) and weighting.method(grams.p) == "cutting-planes"


def lp_solver(method: str) -> Callable[..., Found]:
    """The function that goes by that name; they are written on top of this module."""
    if method == "cutting-planes":
        from .cutting_plane import find_by_cutting_planes

        return find_by_cutting_planes
    if method == "interior-point":
        from .interior_point import find_by_interior_point

        return find_by_interior_point
    if method == "chunking":
        from .chunking import find_by_chunking

        return find_by_chunking
    return alternate


@dataclass(frozen=True)
class Ahead:
    """Weights to begin at, (p,), and the same for kernels that were not normalised."""

    weights: np.ndarray
    raw: np.ndarray


def coarse_weights(
    grams: Grams, target: Target, weighting: Weighting, learner: Learner
) -> Ahead | None:
    """Weights of the same problem on few of the points, to begin at; None if there are none.

    Weights are few and points are many: a small part of the work brings most of the way, and what
    is proven in the end is proven about all points. Losses count for as many points as they
    stand for.
    """
    if (
        not isinstance(weighting, JointWeighting)
        or not weighting.few_points_will_do
        or grams.n < COARSE_FROM
        or by_features(grams, target, weighting, learner)
    ):
        return None
    some = max(min(grams.n // ONE_IN[0], FEW), grams.n // ONE_IN[1])
    rows = np.sort(np.random.default_rng(0).permutation(grams.n)[:some])
    part = grams.take(rows, None if target.weights is None else target.weights[rows])
    few = target.take(rows)
    factor = grams.n / len(rows) * np.ones(len(rows))
    few = replace(few, costs=factor if few.costs is None else factor * few.costs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            part.keep()
            part = part.corrected(grams.center, grams.how)
            ahead = coarse_weights(part, few, weighting, learner)
            warm = None if ahead is None else ahead.weights
            weights = None
            if isinstance(weighting, LpNorm) and by_cuts(part, weighting):
                from .cutting_plane import lead

                weights = lead(part, few, weighting, learner, warm=warm)
            if weights is None:
                weights = find(part, few, weighting, learner, warm=warm).weights
            weights = near(weights, weighting.start(part, few, learner))
            return Ahead(weights, weights * part.units)
    except Stopped:
        # What was reached is not an answer to the question.
        raise KeyboardInterrupt from None
    except ValueError:
        # Whatever is wrong with these points, all points will show it, or do without them.
        return None


def near(warm: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Weights of a similar problem, with none so near zero that it could not leave."""
    return warm if np.all(warm >= 0.005 * start) else 0.99 * warm + 0.01 * start


def refuse_constant_kernels(grams: Grams, *, warn: bool = True) -> None:
    """Kernels that are constant on the sample cannot take part: say which; refuse if all are."""
    constant = np.flatnonzero(grams.degenerate).tolist()
    if len(constant) == grams.p:
        raise ValueError(
            "Every kernel is constant on the training data after centring: there is nothing to "
            "learn from. Are all rows of X equal, or the kernels far too wide?"
        )
    if constant and warn:
        named = ", ".join(repr(grams.names[k]) for k in constant[:5])
        more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
        warnings.warn(
            f"{len(constant)} of {grams.p} kernels are constant on the training data after "
            f"centring and get weight 0: {named}{more}. Drop them, or change their parameters.",
            UserWarning,
            stacklevel=5,
        )


def alternate(
    grams: Grams,
    target: Target,
    weighting: JointWeighting,
    learner: Learner,
    *,
    warm: np.ndarray | None = None,
    report: Report | None = None,
) -> Found:
    """Alternate machine and weights until the duality gap of the joint problem is small.

    Every machine gives, with the weights it was trained at, a primal value, and by its
    coefficients alone a dual value; the true optimum lies between them. The gap is held against
    the whole objective and, for the sake of problems that are nearly all loss, against the
    regulariser as well. The weights that are returned are those the machine was trained at.
    """
    rule = weighting.regulariser(grams, target)
    theta = rule.start()
    if warm is not None and len(warm) == len(theta):
        theta = near(warm, theta)
    gram = grams.combine(theta)
    require_psd(grams, theta, gram, warn=False)
    C, loss = learner.costs(target), learner.loss
    # A free intercept takes up the mean of the outputs; left in, it would cost the dual its digits.
    centred = target.kind == "regression" and learner.fit_intercept
    mean = np.average(target.Y, axis=0, weights=C) if centred else np.zeros(target.Y.shape[1])
    Y = target.Y - mean
    history: list[dict[str, Any]] = []
    mixed: np.ndarray | None = None
    coef: np.ndarray | None = None
    best: Found | None = None
    smallest = np.inf
    try:
        for step in range(1, weighting.max_iter + 1):
            fitted = learner.fit(gram, target, start=coef)
            coef = fitted.coef
            values = gram.matvec(coef) if fitted.values is None else fitted.values
            intercept = loss.intercept(values, Y, C) if learner.fit_intercept else 0.0 * mean
            a = np.maximum(grams.quadratic_forms(coef).sum(axis=1), 0.0)
            regulariser = rule.primal(theta, a)
            primal = regulariser + float(loss.value(values, Y, C, intercept).sum())
            dual = float(loss.dual(coef, Y, C).sum()) - rule.dual(theta, a)
            gap = max(primal - dual, 0.0)
            relative = gap / max(abs(primal), 1e-300)
            entry = {
                "objective": primal * learner.unit,
                "gap": relative,
                "active": int(np.count_nonzero(theta)),
                "support": int(np.count_nonzero(np.any(coef != 0, axis=1))),
            }
            history.append(entry)
            if report is not None:
                report(entry)
            if gap < smallest:
                smallest = gap
                machine = Machine(coef, intercept + mean, primal * learner.unit, relative, step)
                best = Found(theta, machine, gram, history)
            if relative <= weighting.tol and gap <= 10 * weighting.tol * abs(regulariser):
                break
            if rule.mixing > 0:
                mixed = coef if mixed is None else rule.mixing * mixed + (1 - rule.mixing) * coef
                a = np.maximum(grams.quadratic_forms(mixed).sum(axis=1), 0.0)
            theta = rule.update(theta, a)
            gram.forget()  # before the next one takes as much
            gram = grams.combine(theta)
        else:
            warnings.warn(
                f"{weighting!r} stopped after max_iter={weighting.max_iter} alternations with a "
                f"relative duality gap of {history[-1]['gap']:.2g}, above tol={weighting.tol:g}.",
                ConvergenceWarning,
                stacklevel=5,
            )
    except KeyboardInterrupt:
        if best is None:
            raise
        raise Stopped(best) from None
    assert best is not None
    return best


def combined_alignment(found: Found, summary: Summary, target: Target) -> float:
    """Centred alignment of the learned kernel with the target."""
    size = found.gram.centred_norm(target.weights) * summary.target_norm
    return float(found.weights @ summary.a) / size if size > 0 else 0.0


def require_psd(
    grams: Grams, weights: np.ndarray, gram: CombinedGram, *, warn: bool, quick: bool = False
) -> float:
    """Check the learned combination, unless it is a non-negative sum of known kernels.

    What the learner needs is that the *combination* is positive semidefinite on the sample; a
    kernel that is not, but goes with others that make up for it, does no harm.

    Returns how far below zero an eigenvalue may still be. Zero, but for a `quick` check, which is
    content with a Cholesky factor in single precision where there is one: whoever asks for it
    holds what is returned against what an eigenvalue of that size can do (`harmless`).
    """
    used = weights != 0
    if np.all(grams.known_psd[used]) and np.all(weights >= 0):
        return 0.0
    if quick and gram.n <= DENSE_LIMIT:
        # Rounding in the factor of a matrix with this diagonal: were all of it in one direction,
        # and as it is mostly.
        unit = float(np.finfo(np.float32).eps) * float(gram.dense().diagonal().max())
        most, likely = 0.5 * gram.n * unit, 4.0 * np.sqrt(gram.n) * unit
        for shift in (min(likely, most), most):
            K = gram.dense().astype(np.float32)
            K[np.diag_indices(len(K))] += np.float32(shift)
            if unit > 0 and spotrf(K.T, lower=1, overwrite_a=1, clean=0)[1] == 0:
                return most + shift
    lowest, largest = extreme_eigenvalues(gram)
    if lowest >= -PSD_TOLERANCE * largest:
        return 0.0
    if warn:
        warnings.warn(
            f"The signed combination of kernels is not positive semidefinite: its eigenvalues "
            f"reach from {lowest:.3g} to {largest:.3g}. Use AlignF(signed=False).",
            UserWarning,
            stacklevel=3,
        )
        return 0.0
    culprit, worst = "", 0.0
    for k in np.flatnonzero(used & ~grams.known_psd).tolist():
        alone = np.zeros(grams.p)
        alone[k] = 1.0
        low, high = extreme_eigenvalues(grams.combine(alone))
        # Relative to the kernel's own size; the largest eigenvalue may be zero or negative.
        part = low / max(abs(low), abs(high), np.finfo(np.float64).tiny)
        if part < worst:
            culprit, worst = f" (kernel {grams.names[k]!r} alone: {low:.3g})", part
    raise NotPSDError(
        f"The learned combination of kernels is not positive semidefinite on the training data: "
        f"its most negative eigenvalue is {lowest:.3g}, its largest {largest:.3g}{culprit}. "
        "Drop the kernel, or repair its matrix (clip or shift its negative eigenvalues) and pass "
        "it with mk.precomputed."
    )


def harmless(slack: float, found: Found, tol: float, unit: float) -> bool:
    """Whether the gap stays below tol if ``s'Ks`` is wrong by what such eigenvalues can do."""
    error = 0.5 * slack * float(np.sum(found.machine.coef**2))
    return slack == 0 or error <= (tol - found.machine.gap) * abs(found.machine.objective / unit)


def extreme_eigenvalues(gram: CombinedGram) -> tuple[float, float]:
    """Smallest and largest eigenvalue; a definite matrix is recognised by its Cholesky factor."""
    n = gram.n
    if n <= DENSE_LIMIT:
        shifted = gram.dense().copy()
        bound = float(np.linalg.norm(shifted))  # at most root n times the largest eigenvalue
        # Matrices of low rank that were rounded to single precision need all that is allowed.
        large = 0.9 * _rayleigh(gram.matvec, n, 5)
        shifted[np.diag_indices(n)] += PSD_TOLERANCE * max(0.01 * bound, large)
        try:
            cholesky(shifted.T, lower=True, overwrite_a=True, check_finite=False)
            return 0.0, bound
        except LinAlgError:
            pass
    if n <= EIGEN_LIMIT:
        values = eigvalsh(gram.dense(), check_finite=False)
        return float(values[0]), float(values[-1])
    operator = LinearOperator((n, n), matvec=gram.matvec, dtype=np.float64)
    return _lanczos(operator, "SA"), _lanczos(operator, "LA")


def _lanczos(operator: LinearOperator, which: str) -> float:
    n = operator.shape[0]
    start = np.random.default_rng(0).standard_normal(n)
    try:
        found = eigsh(operator, k=1, which=which, tol=1e-3, v0=start, return_eigenvectors=False)
    except ArpackNoConvergence:
        # On the right side, if not at the end.
        return _rayleigh(operator.matvec, n, 50)
    return float(found[0])


def _rayleigh(matvec: Callable[[np.ndarray], np.ndarray], n: int, steps: int) -> float:
    """A Rayleigh quotient after some power steps: at most the largest eigenvalue."""
    v = np.random.default_rng(0).standard_normal(n)
    for _ in range(steps):
        v = matvec(v)
        v /= max(float(np.linalg.norm(v)), np.finfo(np.float64).tiny)
    return float(v @ matvec(v))
