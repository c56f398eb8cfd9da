"""Learning from sums of features over rows, and the data that such a fit keeps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._threads import count_threads
from ..grams.engines import assign, build, find_products
from ..grams.lowrank.approximations import Approximation
from ..grams.lowrank.features import FeatureMap
from ..grams.lowrank.learned_sum import NAME, LearnedSum
from ..grams.lowrank.sums import FeatureSums, combined_weights
from ..grams.memory import MemoryBudget
from ..grams.planning import Plan
from ..grams.separate import SeparateExpansions
from ..learners.calibration import Calibration, calibrate
from ..learners.ridge import Ridge
from ..problem import Solution, Target
from ..rows import Rows, open_rows, reduce_rows
from ..solvers.passes.errors import ApproximationReport
from ..solvers.passes.learn import (
    FeatureProblem,
    HeldRows,
    Learned,
    SampleWeights,
    learn_by_passes,
    learned_from_sums,
    values_of_rows_without_them,
)
from ..solvers.passes.survey import RowSurvey
from ..solvers.passes.targets import LabelColumns, OneColumn, OutputColumns
from ..weighting import Weighting
from ..weighting.given import GivenWeights
from .progress import ProgressLine

#: Number of n x n matrices that an exact fit is assumed to hold in memory.
EXACT_MATRICES = 2
#: Maximum number of rows for weighting rules that read samples.
MAX_RULE_ROWS = 3000
#: Maximum number of rows whose leave-one-out values choose the ridge constant.
MAX_RIDGE_ROWS = 6000
#: Maximum number of rows over which the kernels' shares of a prediction are centred.
MAX_MEAN_ROWS = 5000
#: Maximum number of rows to which probabilities are fitted.
MAX_CALIBRATION_ROWS = 2000
#: Maximum number of entries of the features held in memory for the first steps on losses other than
#: the squared one.
MAX_HELD_FEATURES = 2**25
#: Lower limit on ``tol``, the relative duality gap, for losses other than the squared one.
MIN_PASS_TOLERANCE = 1e-4
NEEDS_SQUARED = (
    "partial_fit needs loss='squared', whose sums do not depend on the predictor; got loss={!r}. "
    "Set loss='squared', or call fit with rows that can be read again (multikernel.rows.open_rows)."
)

Columns = LabelColumns | OutputColumns


@dataclass
class Stream:
    """State of a fit from features, kept for `partial_fit`, `refit` and certificates.

    Attributes
    ----------
    approximation : Approximation
    survey : RowSurvey
    columns : LabelColumns or OutputColumns
        Converts targets to columns of numbers.
    features : FeatureMap
    exact_plan : Plan
        The plan for evaluating the exact kernels.
    sums : FeatureSums
    learned : list of Learned
        One solution, or one per output.
    learned_sum : LearnedSum or None
        The sum of kernels that the features approximate, if a rule that reads samples learned it.
    sample_weights : SampleWeights or None
        The weights of that sum.
    choices : tuple of str
        The rule that learned the weights, and ``center`` and ``normalize``, as text.
    learners : list of learners
        The learner of each solution; with ``"loo"``, outputs have constants of their own.
    """

    approximation: Approximation
    survey: RowSurvey
    columns: Columns
    features: FeatureMap
    exact_plan: Plan
    sums: FeatureSums
    learned: list[Learned]
    learned_sum: LearnedSum | None = None
    sample_weights: SampleWeights | None = None
    choices: tuple[str, ...] = ()
    learners: list[Any] = field(default_factory=list)

    def problem(
        self, sums: FeatureSums, budget: MemoryBudget, *, center: bool, normalize: str | None,
        n_jobs: int = 1,
    ) -> FeatureProblem:  # fmt: skip
        """The learning problem of these sums; weights of a learned sum include normalisation."""
        alone = self.learned_sum is not None
        return FeatureProblem.of(
            self.features,
            sums,
            [NAME] if alone else list(self.exact_plan.names),
            budget,
            center=center,
            normalize=None if alone else normalize,
            n_jobs=n_jobs,
        )


class SumLearner:
    """Learns kernel weights and predictor from sums, and sets the attributes of an estimator."""

    approximation_: ApproximationReport
    _stream: Stream | None = None

    def _learner_for_rows(self) -> Any:
        raise NotImplementedError

    def _rule_for_rows(self) -> Weighting:
        this: Any = self
        rule: Weighting = this._as_weighting(this.weighting)
        return rule

    def _weights_per_output(self, n_outputs: int) -> bool:
        """Whether every output has its own kernel weights."""
        return False

    # -- passes and learning --

    def _reduce(
        self,
        rows: Rows,
        map_chunk: Callable[[Any], Any],
        what: str = "pass",
        line: ProgressLine | None = None,
    ) -> Any:
        """One pass over the rows, shown on ``line`` (with ``verbose``, on a new one if None)."""
        this: Any = self
        if line is None:
            with ProgressLine(type(self).__name__, this.verbose) as line:
                return self._reduce(rows, map_chunk, what, line)
        report = line.start_pass(what, rows.n_rows)
        jobs = count_threads(this.n_jobs)
        return reduce_rows(rows, map_chunk, _plus, report=report, n_jobs=jobs, numbered=False)

    def _learn_rows(self, stream: Stream, rows: Rows | None) -> None:
        """Learn weights and predictor from the sums (and further passes); set the attributes."""
        self._refuse_other_sum(stream)
        problem = self._problem(stream, stream.sums)
        t = problem.target.Y.shape[1]
        if self._weights_per_output(t):
            each = [
                self._learn_one(stream, problem.column(j), OneColumn(stream.columns, j), rows)
                for j in range(t)
            ]
        else:
            each = [self._learn_one(stream, problem, stream.columns, rows)]
        stream.learned = [learned for learned, _ in each]
        stream.learners = [learner for _, learner in each]
        self._store_rows(stream, problem)

    def _choices(self) -> tuple[str, ...]:
        """The parameters that a learned sum depends on, as text."""
        this: Any = self
        how = f"center={this.center!r}", f"normalize={this.normalize!r}"
        return (f"weighting={self._rule_for_rows()!r}", *how)

    def _refuse_other_sum(self, stream: Stream) -> None:
        """Refuse changed parameters if the features approximate one learned sum only."""
        if stream.sample_weights is None:
            return
        wanted = self._choices()
        changed = [new for new, old in zip(wanted, stream.choices, strict=True) if new != old]
        t = stream.columns(stream.survey.y[:1])[0].shape[1]
        if self._weights_per_output(t):
            changed.append("weights for every class or output")
        if changed:
            raise ValueError(
                f"This model holds the features of one sum of kernels, learned with "
                f"{', '.join(stream.choices)}, and cannot change to {', '.join(changed)} without "
                "reading the rows again. Call fit."
            )

    def _problem(self, stream: Stream, sums: FeatureSums) -> FeatureProblem:
        this: Any = self
        return stream.problem(
            sums,
            MemoryBudget.of(this.memory_budget),
            center=this.center,
            normalize=this.normalize,
            n_jobs=count_threads(this.n_jobs),
        )

    def _learn_one(
        self,
        stream: Stream,
        problem: FeatureProblem,
        columns: Any,
        rows: Rows | None,
    ) -> tuple[Learned, Any]:
        this: Any = self
        learner = self._learner_for_rows()
        rule = self._rule_for_rows()
        known = stream.sample_weights
        if known is not None:
            size = known.growth(problem.sums.weight)
            if rule.includes_ridge and problem.sums.n > len(self._rows_for_rule(stream.survey)):
                # More samples justify larger weights: choose their size by leave-one-out again.
                size = 1.0 / self._best_ridge(stream, problem, columns, np.ones(1), learner)
            rule = GivenWeights(np.array([size]), tuple(known.history))
        elif rule.reads_samples:
            found = self._weights_from_sample(
                stream.exact_plan, stream.survey, columns, rule, learner
            )
            rule = found.on(problem)
        learner = self._with_constant(stream, problem, columns, rule, learner)
        if isinstance(learner, Ridge):
            solution = this._learn(problem.grams, problem.target, rule, learner)
            return learned_from_sums(problem, solution, rule, learner), learner
        if rows is None:
            raise ValueError(NEEDS_SQUARED.format(this.loss))
        tol = max(this.tol, MIN_PASS_TOLERANCE)
        with ProgressLine(type(self).__name__, this.verbose) as line:
            held = self._held_rows(stream, problem, columns, line)
            learned = learn_by_passes(
                problem,
                rule,
                learner,
                partial(self._reduce, rows, line=line),
                columns,
                find_products(this._engine_name),
                held,
                tol=tol,
                report=line.report,
            )
        machine = learned.solution.machine
        if machine.gap > tol:
            what = "steps on rows held in memory" if held.all else "passes over the rows"
            warnings.warn(
                f"{machine.n_iter} {what} ended with a relative duality gap of "
                f"{machine.gap:.2g}, above tol={tol:g}. Lower C (or raise alpha), raise tol, or "
                "use loss='squared', which needs one pass.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return learned, learner

    def _held_rows(
        self, stream: Stream, problem: FeatureProblem, columns: Any, line: ProgressLine
    ) -> HeldRows:
        """Features of the survey's rows, up to MAX_HELD_FEATURES entries and half of the budget."""
        this: Any = self
        survey = stream.survey
        most = min(MAX_HELD_FEATURES, MemoryBudget.of(this.memory_budget).bytes // (2 * 8))
        some = survey.some(max(most // problem.features.n_features, 1))
        y, omega = survey.y[some], survey.weights_of(some)
        weights = combined_weights(omega, columns(y)[1])
        total = float(len(y)) if weights is None else float(weights.sum())
        rows = open_rows(problem.features(survey.X[some]), y, sample_weight=omega)
        reduce = partial(self._reduce, rows, what="step", line=line)
        return HeldRows(len(y), reduce, problem.sums.weight / total, len(y) == problem.sums.n)

    def _rows_for_rule(self, survey: RowSurvey) -> np.ndarray:
        """Rows for a rule that reads samples: a random part for which memory has room."""
        this: Any = self
        budget = MemoryBudget.of(this.memory_budget)
        room = int(np.sqrt(budget.bytes / (8 * EXACT_MATRICES)))
        return survey.some(max(min(MAX_RULE_ROWS, room), 1))

    def _weights_from_sample(
        self, plan: Plan, survey: RowSurvey, columns: Any, rule: Weighting, learner: Any
    ) -> SampleWeights:
        """Kernel weights that a rule learns from the exact kernels on some of the rows."""
        this: Any = self
        few = self._rows_for_rule(survey)
        kind = "classification" if this._is_classification else "regression"
        Y, omega = self._targets_of(survey, columns, few)
        exact = build(
            assign(replace(plan, n_samples=len(few)), "cpu"),
            survey.X[few],
            budget=MemoryBudget.of(this.memory_budget),
            sample_weight=omega,
            n_jobs=count_threads(this.n_jobs),
        )
        corrected = exact.corrected(this.center, this.normalize)
        return SampleWeights.learn(rule, corrected, Target(Y, kind, omega), learner)

    def _targets_of(
        self, survey: RowSurvey, columns: Any, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets of some rows of the survey, and their weights; None if all are one."""
        Y, factors = columns(survey.y[rows])
        omega = survey.weights_of(rows)
        if factors is not None:
            omega = factors if omega is None else omega * factors
        return Y, omega

    def _best_ridge(
        self, stream: Stream, problem: FeatureProblem, columns: Any, theta: np.ndarray, learner: Any
    ) -> float:
        rows = stream.survey.some(MAX_RIDGE_ROWS)
        Y, omega = self._targets_of(stream.survey, columns, rows)
        return problem.best_ridge(theta, stream.survey.X[rows], Y, learner.fit_intercept, omega)

    def _with_constant(
        self, stream: Stream, problem: FeatureProblem, columns: Any, rule: Weighting, learner: Any
    ) -> Any:
        """The learner; ``C="loo"`` or ``alpha="loo"`` is replaced by the chosen number."""
        name = "C" if hasattr(learner, "C") else "alpha"
        if not isinstance(getattr(learner, name), str):
            return learner
        theta, _ = rule.weigh(problem.grams, problem.target, learner)
        alpha = self._best_ridge(stream, problem, columns, theta, learner)
        return learner.set_params(**{name: 1.0 / alpha if name == "C" else alpha})

    def _store_rows(self, stream: Stream, problem: FeatureProblem) -> None:
        this: Any = self
        solutions = [learned.solution for learned in stream.learned]
        separate = self._weights_per_output(problem.target.Y.shape[1])
        solution = Solution.stack(solutions) if separate else solutions[0]
        this._store(problem.grams, solution, np.arange(problem.grams.n))
        expansions = [learned.expansion for learned in stream.learned]
        this._expansion = SeparateExpansions(expansions) if separate else expansions[0]
        if stream.learned_sum is not None and stream.sample_weights is not None:
            known = stream.sample_weights
            growth = known.growth(problem.sums.weight)
            this.kernel_weights_ = float(solution.kernel_weights[0]) / growth * known.kernel_weights
            this.kernel_alignments_ = known.alignments.copy()
            this.kernel_names_ = list(stream.exact_plan.names)
            whole: Any = expansions[0]
            this._expansion = stream.learned_sum.expand(
                whole.shift, whole.slopes, stream.survey.X[stream.survey.some(MAX_MEAN_ROWS)]
            )
            this._expansion.release()
        # No sample is stored, so there are no support vectors.
        t = solution.machine.coef.shape[1]
        this.support_, this.dual_coef_ = np.zeros(0, dtype=np.intp), np.zeros((0, t))
        this._set_left_out(None, problem.target, np.zeros(0))
        sums = stream.sums
        positive = all(np.all(one.kernel_weights >= 0) for one in solutions)
        bound = None
        if stream.features.error_is_trace and positive:
            each = zip(stream.learned, stream.learners, strict=True)
            bound = sum(one.distance(learner, problem.errors) for one, learner in each)
        size = np.where(sums.traces > 0, sums.traces, 1.0)
        this.approximation_ = ApproximationReport(
            repr(stream.approximation),
            stream.features.n_features,
            stream.features.widths.copy(),
            np.maximum(sums.errors, 0.0) / size,
            this.objective_,
            bound,
            0 if stream.learned_sum is None else stream.learned_sum.grams.p,
        )
        self._calibrate_rows(stream, problem)
        stream.learned = [replace(one, curvatures=None) for one in stream.learned]

    def _calibrate_rows(self, stream: Stream, problem: FeatureProblem) -> None:
        """Fit probabilities to held-out decision values of the survey's rows."""
        this: Any = self
        if not this._is_classification:
            return
        if this._has_own_probabilities(problem.target):
            this._calibration = Calibration.identity()
            return
        survey = stream.survey
        few = survey.some(MAX_CALIBRATION_ROWS)
        Y, costs = stream.columns(survey.y[few])
        # A row of weight omega represents omega copies, one of which is left out.
        factors = np.minimum(survey.omega[few], 1.0) * (1.0 if costs is None else costs)
        combined = combined_weights(survey.weights_of(few), costs)
        own = len(stream.learned) > 1
        each = zip(stream.learned, stream.learners, strict=True)
        held = np.concatenate(
            [
                values_of_rows_without_them(
                    problem, one, learner, survey.X[few], Y[:, [j]] if own else Y, factors, combined
                )
                for j, (one, learner) in enumerate(each)
            ],
            axis=1,
        )
        method = "sigmoid" if this.calibration == "auto" else this.calibration
        labels = Target(Y, "classification").labels
        weights = survey.weights_of(few)
        this._calibration = calibrate(
            method, held, labels, weights, agrees=this.class_weight is None
        )


def _plus(first: Any, second: Any) -> Any:
    return first + second
