"""Fitting estimators from features in passes over rows: ``approximation=`` and ``partial_fit``.

survey      one pass: number of rows, classes, a sample of the rows
features    kernels adapted to that sample, landmarks or frequencies
sums        one pass: products of features and targets
learn       from the sums; losses other than the squared one make further passes
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._threads import count_threads
from ..grams.engines import assign, build, describe, engine_of_products, find_products
from ..grams.lowrank.approximations import Approximation, Nystroem, as_approximation
from ..grams.lowrank.features import FeatureMap, kernels_for_landmarks, make_features
from ..grams.lowrank.learned_sum import (
    DEFAULT_RANK,
    SumOfGrams,
    can_be_summed,
    make_learned_sum,
)
from ..grams.lowrank.sums import FeatureSums, SumsOfChunk
from ..grams.memory import MemoryBudget, readable
from ..grams.planning import NO_COLUMNS, Part, Plan, make_plan
from ..kernels.bank import as_bank
from ..kernels.default_bank import default_bank
from ..kernels.learned_scales import learns_from_targets
from ..problem import Target
from ..rows import Rows, open_rows
from ..rows.arrays import column_names
from ..solvers.passes.errors import ApproximationCertificate
from ..solvers.passes.exact import certify_with_kernels
from ..solvers.passes.survey import RowSurvey, SurveyOfChunk
from .from_sums import EXACT_MATRICES, NEEDS_SQUARED, Stream, SumLearner

#: Size of the survey's sample: minimum of rows, rows per landmark, maximum of rows and of bytes.
MIN_HELD_ROWS, ROWS_PER_LANDMARK, MAX_HELD_ROWS, MAX_HELD_BYTES = 3000, 20, 20_000, 2**28
#: Constraint of the parameter ``approximation``.
APPROXIMATIONS = "no_validation"  # as_approximation checks it, with better messages


class LargeSampleMixin(SumLearner):
    """``approximation``, ``partial_fit`` and ``certify_approximation`` of estimators."""

    approximation: Any
    _streaming: bool = False

    # -- fit --------------------------------------------------------------------------------------

    def _approximation_for(self, X: Any) -> Approximation | None:
        """The approximation of this fit; None if it is exact."""
        this: Any = self
        this.__dict__.pop("approximation_", None)  # of an earlier fit
        if not (isinstance(self.approximation, str) and self.approximation == "auto"):
            found = as_approximation(self.approximation)
            if found is None and isinstance(X, Rows):
                raise ValueError(
                    "Rows that are read in chunks need approximation='auto', mk.Nystroem(...) or "
                    "mk.RandomFeatures(...): the exact fit (approximation=None) needs all samples "
                    "in memory."
                )
            return found
        if isinstance(X, Rows):
            return Nystroem()
        n = np.shape(X)[0] if hasattr(X, "shape") else len(X)
        budget, needed = MemoryBudget.of(this.memory_budget), 8.0 * EXACT_MATRICES * n**2
        if this._is_precomputed or budget.allows(needed):
            return None
        chosen = Nystroem()
        warnings.warn(
            f"approximation='auto': an exact fit to {n} samples needs {readable(needed)}, more "
            f"than the memory budget of {readable(budget.bytes)}; {chosen!r} is used instead, and "
            f"approximation_ reports its error. Pass approximation={chosen!r} to silence this "
            "warning.",
            UserWarning,
            stacklevel=4,
        )
        return chosen

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, approximation: Approximation) -> Any:
        """Fit from features, in passes over the rows of X."""
        self._check_for_rows()
        rows = self._open(X, y, sample_weight)
        self._stream, self._streaming = None, False
        stream = self._begin(rows, approximation)
        stream.sums = self._add_up(rows, stream)
        self._stream = stream
        self._learn_rows(stream, rows)
        return self

    def _drop_model(self) -> None:
        super()._drop_model()  # type: ignore[misc]
        self._stream, self._streaming = None, False

    def _check_for_rows(self) -> None:
        this: Any = self
        if getattr(this, "checkpoint", None) is not None:
            raise ValueError(
                f"checkpoint={this.checkpoint!r} works only for exact fits; approximation=... "
                "learns from sums over rows. Use checkpoint=None or approximation=None."
            )
        if this._is_precomputed:
            raise ValueError(
                "kernels='precomputed' holds kernel values but no inputs to compute features "
                "from. Use approximation=None, or kernels that are functions of X."
            )
        if this.normalize == "spherical":
            raise ValueError(
                "normalize='spherical' divides by the length of every sample in the centred "
                "feature space, which cannot be computed from sums over samples. Use another "
                "normalisation with approximation=..., or approximation=None."
            )
        if getattr(this, "missing", "error") != "error":
            raise ValueError(
                f"missing={this.missing!r} keeps all kernel matrices in memory and cannot be "
                "approximated by features. Fill the missing values first, or use "
                "approximation=None."
            )

    def _open(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """X in chunks, after the checks that need no pass over the rows."""
        this: Any = self
        if isinstance(X, Rows):
            if y is not None or sample_weight is not None:
                raise ValueError(
                    "Rows carry their own targets and weights: pass target= and sample_weight= to "
                    "open_rows, and no y to fit."
                )
            this.n_features_in_ = X.n_columns
            this.__dict__.pop("codes_", None)  # of an earlier fit
            this.__dict__.pop("feature_names_in_", None)
            if X.columns != column_names(X.n_columns):
                this.feature_names_in_ = np.asarray(X.columns, dtype=object)
            this._fitted_to_rows = True
            return X
        X, y = this._check_for_fit(X, y)
        weights, keep = this._sample_weights(sample_weight, X)
        this._keep_rows(X, y, weights, keep)
        if len(keep) < X.shape[0]:
            X, y = X[keep], y[keep]
        return open_rows(X, y, sample_weight=weights)

    def _begin(self, rows: Rows, approximation: Approximation, learned_sum: bool = True) -> Stream:
        """Survey the rows; make the bank and the features from the survey's sample.

        With `Nystroem`, a rule that reads samples learns its weights from the survey's rows, and
        the features are those of the learned sum, unless ``learned_sum=False`` or outputs have
        their own weights.
        """
        this: Any = self
        rule = self._rule_for_rows() if learned_sum else None
        learned_sum = (
            rule is not None and rule.reads_samples and isinstance(approximation, Nystroem)
        )
        default = DEFAULT_RANK if learned_sum else 0
        count = getattr(approximation, "rank", None) or default
        size = min(max(MIN_HELD_ROWS, ROWS_PER_LANDMARK * count), MAX_HELD_ROWS)
        size = max(min(size, MAX_HELD_BYTES // (8 * max(rows.n_columns, 1))), count, 100)
        survey: RowSurvey = self._reduce(
            rows, SurveyOfChunk(size, this._is_classification), "reading the rows"
        )
        if survey.n < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 samples with a positive weight; got "
                f"{survey.n}."
            )
        columns = this._columns_of(survey)
        X = survey.X
        budget = MemoryBudget.of(this.memory_budget)
        names = getattr(this, "feature_names_in_", None)
        if this.kernels is None and not this._is_coded:
            this.bank_ = default_bank(X, kind=this._bank_kind)
        else:
            bank = this.codes_.bank() if this.kernels is None else as_bank(this.kernels)
            if learns_from_targets(bank):
                Y = columns(survey.y)[0]
                kind = "classification" if this._is_classification else "regression"
                bank = this._learn_scales(bank, X, Target(Y, kind), budget)
            this.bank_ = bank.adapt(X, None, names)
        plan = make_plan(
            this.bank_,
            n_samples=survey.n,
            n_features=rows.n_columns,
            feature_names=None if names is None else list(names),
            sparse=sp.issparse(X),
            budget=budget,
        )
        Y = columns(survey.y)[0]
        made, known = None, None
        if (
            rule is not None
            and learned_sum
            and can_be_summed(plan)
            and not self._weights_per_output(Y.shape[1])
        ):
            kernels_for_landmarks(plan)  # refuses kernels without features before work begins
            known = self._weights_from_sample(plan, survey, columns, rule, self._learner_for_rows())
            if not np.any(known.of_kernels > 0):  # all weights are zero: there is no sum
                known = None
        if known is not None:
            assert isinstance(approximation, Nystroem)
            made = make_learned_sum(
                plan,
                X,
                known.of_kernels,
                approximation,
                budget,
                center=this.center,
                n_samples=survey.n,
                n_jobs=count_threads(this.n_jobs),
            )
        if made is not None:
            features = made.features
        else:
            known = None
            features = make_features(plan, X, approximation, n_samples=survey.n)
        this.grams_ = low_rank_plan(plan, features, engine_of_products(this._engine_name)[0])
        this.engine_ = describe(this.grams_)
        this._n_given, this._sample_digest = survey.n, None
        this._keep_for_importance(X, None)
        origin = np.zeros(features.n_features)
        empty = FeatureSums(0, 0.0, origin, np.zeros((0, 0)), np.zeros(0), np.zeros(0))
        choices = () if known is None else self._choices()
        return Stream(
            approximation, survey, columns, features, plan, empty, [], made, known, choices
        )

    def _add_up(self, rows: Rows, stream: Stream) -> FeatureSums:
        this: Any = self
        some = stream.survey.X[: min(500, stream.survey.X.shape[0])]
        origin = stream.features(some).mean(axis=0)
        products = find_products(this._engine_name)
        sums: FeatureSums = self._reduce(
            rows, SumsOfChunk(stream.features, origin, stream.columns, products), "adding up"
        )
        return sums

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        if state.get("_stream") is not None and not state.get("_streaming"):
            # Sums are larger than the model: copies keep them only to continue `partial_fit`.
            state = {**state, "_stream": None}
        return state

    def _stored_attributes(self) -> dict[str, Any]:
        """The attributes for a model file; a loaded model cannot be fitted further."""
        state = dict(super()._stored_attributes())  # type: ignore[misc]
        for name in ("_stream", "_streaming"):
            state.pop(name, None)
        return state

    # -- streams and certificates -----------------------------------------------------------------

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, prepare: Callable[[], None]) -> Any:
        this: Any = self
        if this.loss != "squared":
            raise ValueError(NEEDS_SQUARED.format(this.loss))
        if self.approximation is None:
            raise ValueError(
                "partial_fit sums products of features: set approximation='auto', "
                "mk.Nystroem(rank=...) or mk.RandomFeatures(n_features=...)."
            )
        self._check_for_rows()
        stream = self._stream
        if stream is None:
            this._drop_model()  # of an earlier fit, whose attributes are replaced one by one
            prepare()
            auto = isinstance(self.approximation, str) and self.approximation == "auto"
            way = Nystroem() if auto else as_approximation(self.approximation)
            assert way is not None
            rows = self._open(X, y, sample_weight)
            stream = self._begin(rows, way)
            stream.sums = self._add_up(rows, stream)
        else:
            rows = self._open_more(X, y, sample_weight)
            self._refuse_other_sum(stream)
            stream = replace(stream, sums=stream.sums + self._add_up(rows, stream))
        self._learn_rows(stream, None)
        self._stream, self._streaming = stream, True  # rows are added only if learning succeeded
        return self

    def _open_more(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Further rows, which must have the columns of the first ones."""
        this: Any = self
        if isinstance(X, Rows):
            if X.n_columns != this.n_features_in_:
                raise ValueError(
                    f"These rows have {X.n_columns} columns, but the first ones had "
                    f"{this.n_features_in_}. All chunks need the same columns."
                )
            known = list(getattr(this, "feature_names_in_", X.columns))
            if X.columns not in (known, column_names(X.n_columns)):
                j = next(j for j in range(X.n_columns) if X.columns[j] != known[j])
                raise ValueError(
                    f"Column {j} of these rows is {X.columns[j]!r}, but it was {known[j]!r} in the "
                    "first ones. Further rows need the same columns in the same order: pass "
                    "columns=[...] to open_rows (and encoder=rows.reader.encoder of the first rows "
                    "if there are categories)."
                )
            return X
        X = this._check_X(X, reset=False)
        y = np.asarray(y)
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, but y has {len(y)}.")
        weights, keep = this._sample_weights(sample_weight, X)
        return open_rows(X[keep], y[keep], sample_weight=weights)

    def refit(self) -> Any:
        """Learn again from the sums of the last fit, with the current parameters.

        Tries other rules and constants (``weighting``, ``alpha`` or ``C``, ``multiclass``) without
        another pass over the rows; it needs ``loss="squared"`` and a fit with ``approximation`` in
        this session. The kernels and features of that fit are kept.

        Returns
        -------
        self
        """
        this: Any = self
        if self._stream is None:
            raise ValueError(
                "refit reuses the sums of a fit with approximation=..., and there are none: this "
                "estimator is exact, not fitted, or loaded from a file. Call fit."
            )
        if this.loss != "squared":
            raise ValueError(NEEDS_SQUARED.replace("partial_fit", "refit").format(this.loss))
        self._learn_rows(self._stream, None)
        return self

    def certify_approximation(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> ApproximationCertificate:
        """Bounds on the exact optimum, from one pass over the exact kernels.

        The exact problem is the same problem with the kernels themselves, multiplied by the
        factors that normalised their features. The pass takes time proportional to the square of
        the number of samples; to save time, fit and certify a model on part of the samples.

        Parameters
        ----------
        X, y, sample_weight
            The whole training sample.

        Returns
        -------
        ApproximationCertificate
            ``lower`` and ``upper`` bounds on the exact optimum, and the largest possible
            ``distance`` of ``objective_`` from it.
        """
        this: Any = self
        stream = self._stream
        if stream is None:
            raise ValueError(
                "certify_approximation needs an estimator that was fitted with approximation=... "
                "in this session; this one is exact, not fitted, or loaded from a file."
            )
        X = this._check_X(X, reset=False)
        if X.shape[0] != stream.sums.n and sample_weight is None:
            raise ValueError(
                f"certify_approximation needs the training sample: {stream.sums.n} samples, got "
                f"{X.shape[0]}."
            )
        weights, keep = this._sample_weights(sample_weight, X)
        X, y = X[keep], np.asarray(y)[keep]
        Y, factors = stream.columns(y)
        if factors is not None:
            weights = factors if weights is None else weights * factors
        exact: Any = build(
            assign(replace(stream.exact_plan, n_samples=X.shape[0]), "cpu"),
            X,
            budget=MemoryBudget.of(this.memory_budget),
            sample_weight=weights,
            n_jobs=count_threads(this.n_jobs),
        ).corrected(this.center, None)
        problem = self._problem(stream, stream.sums)
        if stream.learned_sum is not None:
            exact = SumOfGrams(exact, stream.learned_sum.weights)
        own = len(stream.learned) > 1
        found = [
            certify_with_kernels(
                exact,
                Target(Y[:, [j]] if own else Y, learner.kind, weights),
                learned,
                learner,
                problem,
                X,
            )
            for j, (learned, learner) in enumerate(
                zip(stream.learned, stream.learners, strict=True)
            )
        ]
        lower, upper = sum(low for low, _ in found), sum(high for _, high in found)
        if stream.features.error_is_trace:
            upper = min(upper, this.objective_)  # the exact problem allows more functions
        return ApproximationCertificate(this.objective_, lower, upper)


def has_approximation(estimator: Any) -> bool:
    """Whether ``approximation`` is set, without which there is no `partial_fit`."""
    return estimator.approximation is not None


def low_rank_plan(plan: Plan, features: FeatureMap, engine: str) -> Plan:
    """The plan that a fitted estimator shows: which features serve which kernels.

    ``engine`` is the name of the engine that computes the products of features.
    """
    kernels: dict[int, Any] = {}
    for part in plan.parts:
        kernels.update(zip(part.positions.tolist(), part.kernels, strict=False))
    parts = []
    for made, where in zip(features.parts, features.positions, strict=True):
        if features.n_kernels == 1 < plan.n_kernels:  # all kernels, as one sum
            where = np.arange(plan.n_kernels)
        own = tuple(kernels[k] for k in where.tolist() if k in kernels)
        what = f"{sum(made.widths)} features: {made.kind}"
        parts.append(Part("low-rank", where, own, NO_COLUMNS, what, engine=engine))
    return replace(plan, parts=tuple(parts))
