"""The solution of a learning problem: statistics of the sample, start, and solver."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import numpy as np

from ..._journal import Answers, recall
from ..._threads import one_blas_thread
from ...grams.protocol import Grams, Summary
from ...learners.base import Learner
from ...problem import Solution, Target
from ...weighting.base import Weighting
from ...weighting.joint import JointWeighting
from ..certificate import Found, Report, Stopped
from .recertify import find_and_recertify
from .subsampled_start import SubsampledStart, subsampled_start
from .warm_start import WarmStart

#: A learned kernel is nearly the identity if its squared trace is above this fraction of the upper
#: limit for its norm. With fewer samples than the second number this may happen by chance.
NEARLY_IDENTITY, MIN_IDENTITY_SAMPLES = 0.98, 30
#: Rounding errors of centred kernel entries, relative to their size, that two-stage rules accept.
MAX_ROUNDING_PART = 1e-4
#: Up to this many samples matrices are too small for a second BLAS thread to pay off.
MAX_ONE_THREAD_SAMPLES = 4000


class Interrupted(KeyboardInterrupt):
    """A KeyboardInterrupt that carries the best certified solution so far."""

    def __init__(self, solution: Solution, more: str = "") -> None:
        machine = solution.machine
        said = (
            f"Interrupted after {len(solution.history)} iterations, at a relative duality gap of "
        )
        super().__init__(f"{said}{machine.gap:.2g}. {more}".strip())
        self.solution = solution

    def saying(self, more: str) -> Interrupted:
        """The same interrupt, with one more sentence in its message."""
        return Interrupted(self.solution, more)


def learn(
    grams: Grams,
    target: Target,
    weighting: Weighting,
    learner: Learner,
    *,
    warm: np.ndarray | None = None,
    report: Report | None = None,
    hold_out: np.ndarray | None = None,
) -> Solution:
    """Kernel weights, and the predictor trained on the combination of the kernels.

    Parameters
    ----------
    grams : Grams
        Centred and normalised.
    warm : array of shape (p,) or None
        Kernel weights of a similar problem, from which a joint rule starts.
    report : callable or None
        Receives every entry of the history of a joint rule.
    hold_out : array of int or None
        Samples for which ``machine.held_out`` is computed: decision values of predictors trained
        without them, with the kernel weights of the whole sample.
    """
    with one_blas_thread(grams.n, MAX_ONE_THREAD_SAMPLES):
        start = subsampled_start(grams, target, weighting, learner) if warm is None else None
    # Cutting planes need only the direction of the start, so the first combination can be computed
    # in the same pass as the statistics.
    direction = start.raw_weights if start is not None and by_cuts(grams, weighting) else None
    summary = grams.summary(target.Y, products=weighting.needs_products, also_combine=direction)
    if not isinstance(weighting, JointWeighting) and rounding_hides_kernels(grams, summary):
        accurate = grams.accurate()
        if accurate is not grams:
            grams = accurate
            summary = grams.summary(target.Y, products=weighting.needs_products)
    refuse_constant_kernels(grams)
    given = None if warm is None else WarmStart(warm)
    if start is not None:
        given = start_on_all_samples(grams, summary, start, direction)

    def measure(found: Found, hold_out: np.ndarray | None) -> Answers:
        norm, held_out = found.gram.centred_norm(target.sample_weight), None
        if hold_out is not None:
            held_out = learner.left_out(  # type: ignore[attr-defined]
                found.gram, target, found.machine, hold_out
            )
        return {"norm": norm, "held_out": held_out}

    def finish(
        found: Found, own: Grams, report: Report | None, hold_out: np.ndarray | None
    ) -> Solution:
        asked = (found.kernel_weights, found.machine.coef)
        measured = recall(report, "measure", asked, partial(measure, found, hold_out))
        norm = measured["norm"]
        warn_of_identity(grams, found, summary, norm)
        aligned = combined_alignment(found, summary, target, norm)
        machine = found.machine
        if hold_out is not None:
            machine = replace(machine, held_out=measured["held_out"])
        return Solution(
            found.kernel_weights, machine, aligned, summary.alignments, found.history, own
        )

    try:
        with one_blas_thread(grams.n, MAX_ONE_THREAD_SAMPLES):
            found, own = find_and_recertify(
                grams, target, weighting, learner, summary=summary, warm=given, report=report
            )
            return finish(found, own, report, hold_out)
    except Stopped as stopped:
        # After an interrupt, skip values that only probability estimates need.
        own = grams if stopped.grams is None else stopped.grams
        raise Interrupted(finish(stopped.found, own, None, None)) from None


def rounding_hides_kernels(grams: Grams, summary: Summary) -> bool:
    """Whether a kernel varies so little that rounding may change the weights of a two-stage rule.

    An example is a linear kernel in single precision on columns far from zero: its entries are
    nearly equal, and alignments depend on the small differences that centring leaves.
    """
    if grams.precision <= np.finfo(np.float64).eps:
        return False
    # For centred kernels, the mean of the diagonal; for others, the root mean square of the centred
    # entries, which is smaller.
    typical = (summary.traces if grams.center else summary.norms) / grams.total_weight
    varies = ~grams.degenerate & (typical > 0)
    return bool(np.any((grams.entry_errors > MAX_ROUNDING_PART * typical)[varies]))


def by_cuts(grams: Grams, weighting: Weighting) -> bool:
    """Whether the rule is solved by cutting planes."""
    methods = ("cutting-planes", "cutting-planes-wrapper")
    return isinstance(weighting, JointWeighting) and weighting.method(grams.p) in methods


def start_on_all_samples(
    grams: Grams, summary: Summary, start: SubsampledStart, direction: np.ndarray | None
) -> WarmStart:
    """The start with weights for kernels that are normalised on the whole sample."""
    if direction is None:
        return WarmStart(start.kernel_weights)
    if summary.combined is not None:
        return WarmStart(summary.combined.kernel_weights, summary.combined)
    scales = grams.scales
    return WarmStart(np.divide(direction, scales, out=np.zeros(grams.p), where=scales > 0))


def refuse_constant_kernels(
    grams: Grams, *, warn: bool = True, where: str = "the training data"
) -> None:
    """Warn about kernels that are constant on the sample; raise if all of them are."""
    constant = np.flatnonzero(grams.degenerate).tolist()
    if len(constant) == grams.p:
        raise ValueError(
            f"Every kernel is constant on {where} after centring, so nothing can be "
            "learned. Check whether all rows of X are equal, or choose narrower kernels."
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


def combined_alignment(
    found: Found, summary: Summary, target: Target, norm: float | None = None
) -> float:
    """The centred alignment of the learned combination (of norm ``norm``) with the target."""
    if norm is None:
        norm = found.gram.centred_norm(target.sample_weight)
    size = norm * summary.target_norm
    return float(found.kernel_weights @ summary.a) / size if size > 0 else 0.0


def warn_of_identity(grams: Grams, found: Found, summary: Summary, norm: float) -> None:
    """Warn if the learned kernel matrix is nearly a multiple of the identity.

    The eigenvalues of a centred matrix with trace t and Frobenius norm f are all equal if and only
    if ``t^2 = (n - 1) f^2``.
    """
    if not grams.center or grams.sample_weight is not None or grams.n < MIN_IDENTITY_SAMPLES:
        return
    trace = float(found.kernel_weights @ summary.traces)
    if norm > 0 and trace**2 > NEARLY_IDENTITY * (grams.n - 1) * norm**2:
        order = np.argsort(-np.abs(found.kernel_weights), kind="stable")[:3]
        named = ", ".join(repr(grams.names[k]) for k in order if found.kernel_weights[k] != 0)
        warnings.warn(
            "The learned kernel matrix is nearly the identity: every training sample resembles "
            "only itself, so predictions for new samples are close to a constant. The kernels "
            f"with the largest weights are {named}. If their widths are too small for the units "
            "of the columns, use scaling='standard', mk.at_distances(...), which takes widths "
            "from the data, or smaller gammas.",
            UserWarning,
            stacklevel=6,
        )
