"""Base class of the estimators: validation, fitting on Gram matrices, and prediction."""

from __future__ import annotations

import logging
import os
import time
from contextlib import AbstractContextManager
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils.validation import (
    check_array,
    check_is_fitted,
    validate_data,
)

from .._checkpoint import journal_in
from .._journal import Journal, Watched
from .._sample_weight import check_sample_weight
from .._threads import count_threads
from ..grams.engines import assign, build, describe, find_budget
from ..grams.memory import MemoryBudget
from ..grams.normalise import HOW
from ..grams.planning import Plan, make_plan, plan_matrices
from ..grams.protocol import Expansion, Grams
from ..grams.separate import SeparateExpansions
from ..kernels.bank import KernelBank, as_bank
from ..kernels.default_bank import default_bank
from ..kernels.learned_scales import LearnedScales, learns_from_targets
from ..kernels.sequences.base import reads_sequences
from ..learners.base import Learner
from ..learners.ridge import Ridge
from ..problem import Solution, Target
from ..solvers.joint.learn import Interrupted, learn
from ..weighting import BestSingle, JointWeighting, LeaveOneOut, Weighting, as_weighting
from .checks import (
    as_numbers,
    check_dtype,
    check_table,
    is_chunk_of_rows,
    refuse_extreme,
    refuse_huge,
    refuse_matrices,
    refuse_text,
)
from .devices import DeviceMixin
from .importance import ColumnImportance
from .missing import MissingMixin
from .notebook import WeightsInNotebook
from .own_sample import sample_digest
from .progress import ProgressLine
from .scales import learn_in_fit, scales_by_default
from .weights import ViewWeights
from .whole_fits import WholeFits

logger = logging.getLogger("multikernel")

#: Allowed values of the parameter ``checkpoint``.
CHECKPOINTS = [str, os.PathLike, None]
#: Parameters that are not compared with those of a checkpoint: they do not change results, or the
#: splits themselves are compared (``cv``).
NOT_COMPARED = ("checkpoint", "cv", "memory_budget", "n_jobs", "verbose")


#: Parameters (of subclasses, too) whose squares must neither overflow nor underflow.
SCALES = frozenset({"C", "radius", "trace", "complexity_penalty", "sparsity_penalty"})


class MultiKernelEstimator(  # type: ignore[misc]
    WholeFits,
    DeviceMixin,
    MissingMixin,
    ColumnImportance,
    ViewWeights,
    WeightsInNotebook,
    BaseEstimator,
):
    """Base class of the multiple-kernel estimators, which document the parameters."""

    def _validate_params(self) -> None:
        try:
            super()._validate_params()
        except InvalidParameterError:
            raise
        except TypeError:  # scikit-learn's check for NaN fails for a Fraction
            raise TypeError(
                f"{type(self).__name__}: a parameter has a number type that NumPy does not "
                f"support; got {self.get_params(deep=False)}. Use int or float."
            ) from None
        for name in SCALES.intersection(self.get_params(deep=False)):
            refuse_extreme(type(self).__name__, name, getattr(self, name))

    _parameter_constraints: dict[str, Any] = {
        "kernels": "no_validation",  # as_bank checks it, with better messages
        "weighting": [str, Weighting],
        "center": ["boolean"],
        "normalize": [StrOptions(set(HOW)), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "dtype": "no_validation",  # check_dtype checks it
        "memory_budget": [None, Real, str],
        "engine": [str],
        "device": [str, None],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    kernels: Any
    weighting: Any
    center: bool
    normalize: str | None
    dtype: Any
    memory_budget: Any
    n_jobs: int | None
    random_state: Any
    engine: str
    verbose: int
    grams_: Plan
    _kernel_array_shape: tuple[int, int]
    #: the ``kind`` of :func:`default_bank` if no kernels are given
    _bank_kind = "gaussians"
    #: whether a kernel matrix that is not symmetric is an error
    _needs_symmetric_kernels = True
    #: whether predictions come from one combination of kernels, with `kernel_weights_`
    _learns_one_kernel = True
    #: whether predictions can be compared with targets, as in reports and on the command line
    _predicts_targets = True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.three_d_array = self._is_precomputed
        tags.input_tags.sparse = not self._is_precomputed and not self._ignores_missing
        tags.input_tags.allow_nan = self._ignores_missing
        tags.input_tags.categorical = self._reads_categories and not self._is_precomputed
        return tags

    # -- input ------------------------------------------------------------------------------------

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def _check_X(self, X: Any, y: Any = "no_validation", *, reset: bool, **y_options: Any) -> Any:
        """Validated X (and y): float arrays, CSR matrices, tables, or (n, n, p) kernel arrays."""
        if reset:
            self.__dict__.pop("_fitted_to_rows", None)
        if self._ignores_missing and (self._is_precomputed or reads_sequences(self.kernels)):
            raise ValueError(
                f"missing={self.missing!r} needs kernels on numeric columns, in which NaN marks "
                f"missing values; got kernels={self.kernels!r}. Use missing='error'."
            )
        if reads_sequences(self.kernels):
            return check_table(self, X, y, reset, **y_options)
        if not reset:
            self._refuse_lost_columns(X)
        coded = self._code_frame(X, reset, gaps_as_nan=self._ignores_missing)
        if coded is not None:
            X = coded
        refuse_text(X)
        refuse_matrices(X, self._is_precomputed, reset)
        if reset:
            self.__dict__.pop("_kernel_array_shape", None)
        if y_options.get("y_numeric") and y is not None and np.asarray(y).dtype.kind == "O":
            y = as_numbers(y)
        if y_options.get("y_numeric") and np.asarray(y).dtype.kind in "US":
            raise ValueError("y must be numeric for regression; got text. Encode it first.")
        options: dict[str, Any] = {"dtype": (np.float64, np.float32), "reset": reset}
        if self._is_precomputed:
            options |= {"allow_nd": True, "ensure_2d": False}
        else:
            options |= {"accept_sparse": "csr", "ensure_all_finite": "allow-nan"}
        if isinstance(y, str) and y == "no_validation":
            if coded is not None and not reset:  # its columns have been matched by name
                checked = check_array(X, ensure_all_finite="allow-nan", input_name="X")
            elif not reset and is_chunk_of_rows(self, X):
                del options["reset"]
                checked = check_array(X, input_name="X", **options)
            else:
                checked = validate_data(self, X, **options)
            if coded is not None:
                self.feature_names_in_ = self.codes_.feature_names_in_
            if self._is_precomputed:
                return self._check_kernel_array(checked, reset)
            self._check_missing(checked)
            refuse_huge("X", checked)
            return checked
        checked, y = validate_data(self, X, y, **options, **y_options)
        if coded is not None:
            self.feature_names_in_ = self.codes_.feature_names_in_
        if self._is_precomputed:
            checked = self._check_kernel_array(checked, reset)
        else:
            self._check_missing(checked)
            refuse_huge("X", checked)
        refuse_huge("y", y)
        if checked.shape[0] < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 samples; got n_samples = "
                f"{checked.shape[0]}."
            )
        return checked, y

    def _check_kernel_array(self, X: np.ndarray, reset: bool) -> np.ndarray:
        """Validated kernel values of ``kernels="precomputed"``, kernel axis last."""
        if self.normalize == "spherical":
            raise ValueError(
                "normalize='spherical' needs K(x, x) of new samples, which kernels='precomputed' "
                "cannot supply. Use mk.precomputed(matrices) with X = mk.sample_ids(N), or "
                "another normalisation."
            )
        X = X[:, :, None] if X.ndim == 2 else X
        if X.ndim != 3 or (reset and X.shape[0] != X.shape[1]):
            raise ValueError(
                "With kernels='precomputed', fit takes X of shape (n_samples, n_samples, "
                f"n_kernels), kernel axis last; got {X.shape}. Use np.stack(matrices, axis=-1), "
                "or mk.precomputed(matrices) with X = mk.sample_ids(n)."
            )
        if not reset and X.shape[1:] != self._kernel_array_shape:
            raise ValueError(
                f"With kernels='precomputed', predict takes X of shape (n_new, n_train, n_kernels) "
                f"= (n_new, {self._kernel_array_shape[0]}, {self._kernel_array_shape[1]}); "
                f"got {X.shape}."
            )
        if reset:
            self._kernel_array_shape = X.shape[1:]
        return X

    def _sample_weights(self, sample_weight: Any, X: Any) -> tuple[np.ndarray | None, np.ndarray]:
        """The positive sample weights (None if all are one), and the indices of their samples."""
        everyone = np.arange(X.shape[0])
        self._n_given = X.shape[0]
        if sample_weight is None:
            return None, everyone
        weights = check_sample_weight(sample_weight, X)
        keep = np.flatnonzero(weights > 0)
        if len(keep) < 2:
            raise ValueError("sample_weight leaves fewer than 2 samples with a positive weight.")
        weights = weights[keep]
        return (None if np.all(weights == 1.0) else weights), keep

    def _journal(
        self, X: Any, y: Any, sample_weight: Any, **more: Any
    ) -> AbstractContextManager[Journal | None]:
        """The journal of this fit, in the file ``checkpoint``; None without one."""
        path = getattr(self, "checkpoint", None)
        parts: dict[str, Any] = {}
        if path is not None:
            params = self.get_params(deep=False)
            parts = {k: v for k, v in params.items() if k not in NOT_COMPARED}
            parts |= {"estimator": type(self).__name__, "X": X, "y": y, **more}
            parts |= {"sample_weight": sample_weight}
            parts |= {"columns": getattr(self, "feature_names_in_", None)}
        return journal_in(path, parts)

    def _stored_attributes(self) -> dict[str, Any]:
        """The attributes for a model file, without the path of the checkpoint."""
        state = super()._stored_attributes()
        return state | {"checkpoint": None} if "checkpoint" in state else state

    # -- through the waist ------------------------------------------------------------------------

    def _make_grams(
        self,
        X: Any,
        keep: np.ndarray,
        weights: np.ndarray | None,
        target: Target | None = None,
    ) -> Grams:
        """The kernels on the samples with positive weight, neither centred nor normalised.

        Only kernels that are learned from the targets need ``target``.
        """
        engine = self._engine_name
        budget = find_budget(engine, self.memory_budget)
        rows: np.ndarray | None = None
        complete = X
        self._sample_digest: str | None = sample_digest(X)
        self.__dict__.pop("presence_", None)  # of an earlier fit
        if self._is_precomputed:
            self.bank_ = None
            self.grams_ = assign(plan_matrices(len(keep), X.shape[2]), engine)
            rows = keep  # the array is read in place
        else:
            X = complete = X if len(keep) == X.shape[0] else X[keep]
            if self._ignores_missing:
                self.bank_, complete = self._observe(X, keep, weights)
            elif self.kernels is None and not self._is_coded:
                self.bank_ = self._default_bank(X, weights, target, budget)
            else:
                names = getattr(self, "feature_names_in_", None)
                bank = self.codes_.bank() if self.kernels is None else as_bank(self.kernels)
                if target is not None and learns_from_targets(bank):
                    bank = self._learn_scales(bank, X, target, budget)
                self.bank_ = bank.adapt(X, weights, names)
            self.grams_ = self._make_plan(self.bank_, X, budget)
        self._keep_for_importance(complete, weights)
        self.engine_ = describe(self.grams_)
        grams = build(
            self.grams_,
            X,
            budget=budget,
            dtype=check_dtype(self.dtype) or X.dtype,
            sample_weight=weights,
            n_jobs=count_threads(self.n_jobs),
            rows=rows,
            symmetric=self._needs_symmetric_kernels,
            few_passes=self._makes_few_passes,
        )
        self._drop_model()
        return grams

    def _default_bank(
        self, X: Any, weights: np.ndarray | None, target: Target | None, budget: MemoryBudget
    ) -> KernelBank:
        """The kernels when none are given."""
        if target is not None and self._learns_scales and scales_by_default(X):
            return self._learn_scales(KernelBank([LearnedScales()]), X, target, budget)
        return default_bank(X, kind=self._bank_kind, sample_weight=weights)

    @property
    def _learns_scales(self) -> bool:
        """Whether `fit` may learn the scales of the columns when no kernels are given.

        Leave-one-out weights can drop rescaled kernels that do not help; other rules cannot.
        """
        rule = getattr(self, "weighting", None)
        return self._bank_kind == "tables" and isinstance(as_weighting(rule), LeaveOneOut)

    def _learn_scales(
        self, bank: KernelBank, X: Any, target: Target, budget: MemoryBudget
    ) -> KernelBank:
        names = getattr(self, "feature_names_in_", None)
        learned, said = learn_in_fit(
            bank,
            X,
            target,
            feature_names=None if names is None else list(names),
            budget=budget,
            n_jobs=count_threads(self.n_jobs),
        )
        for message in said:
            self._say(message)
        return learned

    def _make_plan(self, bank: KernelBank, X: Any, budget: MemoryBudget) -> Plan:
        names_in = getattr(self, "feature_names_in_", None)
        plan = make_plan(
            bank,
            n_samples=X.shape[0],
            n_features=X.shape[1],
            feature_names=None if names_in is None else list(names_in),
            sparse=sp.issparse(X),
            budget=budget,
        )
        return assign(plan, self._engine_name)

    @property
    def _makes_few_passes(self) -> bool:
        """Whether a fit reads the kernels a few times only, as two-stage rules do."""
        return False

    @property
    def plan_(self) -> Plan:
        """Which implementation computed which kernels; `grams_` is the same object."""
        return self.grams_

    def _as_weighting(self, weighting: Any) -> Weighting:
        rule = as_weighting(weighting)
        seeded = self.random_state is not None  # else the rule's own seed, as in mk.BestSingle()
        if isinstance(weighting, str) and isinstance(rule, (BestSingle, LeaveOneOut)) and seeded:
            rule.random_state = self.random_state
        if isinstance(rule, LeaveOneOut) and rule.shrinkage == "auto" and self._has_gaps:
            # The functions of a centred view sum to zero over the samples that have the view, so
            # their values at the other samples reveal the target of a left-out sample. Learned
            # weights would exploit this; equal weights, of which only the sum is learned, do not.
            rule = clone(rule).set_params(shrinkage=1.0)
        return rule

    @property
    def _has_gaps(self) -> bool:
        """Whether samples that lack the columns of a kernel are placed at its centre."""
        if self.missing == "complete":
            return False
        presence = self.__dict__.get("presence_")
        return presence is not None and bool(np.any(presence < 1))

    def _fit(
        self,
        grams: Grams,
        target: Target,
        weighting: Weighting,
        learner: Learner,
        keep: np.ndarray,
        *,
        separate: bool = False,
        journal: Journal | None = None,
    ) -> None:
        """Centre, normalise, learn, and keep what prediction needs.

        With ``separate`` every output has its own kernel weights. If the fit is interrupted and
        ``warm_start=True``, the estimator keeps the best certified iterate.
        """
        corrected = grams.corrected(self.center, self.normalize)
        if isinstance(learner, Ridge):
            learner.leave_one_out = isinstance(weighting, LeaveOneOut)
        hold_out = self._samples_to_leave_out(target, learner)
        self._calibrate(target, None)  # an interrupted fit has no held-out values
        try:
            if separate:
                each = [
                    self._learn(corrected, target.column(j), weighting, learner, hold_out, journal)
                    for j in range(target.Y.shape[1])
                ]
                solution = Solution.stack(each)
            else:
                solution = self._learn(corrected, target, weighting, learner, hold_out, journal)
        except Interrupted as stopped:
            if not self._warm_start or separate:
                advice = "; with warm_start=True it would keep the best result so far"
                advice = "" if separate else advice
                raise stopped.saying(f"The estimator is not fitted{advice}.") from None
            self._store(corrected, stopped.solution, keep)
            told = stopped.saying("The estimator keeps the best result so far (warm_start=True).")
            told.keeps_model = True  # type: ignore[attr-defined]
            raise told from None
        self._store(corrected, solution, keep)
        self._set_left_out(solution.machine.left_out, target, keep)
        if hold_out is not None:
            limit = learner.max_left_out  # type: ignore[attr-defined]
            self._calibrate(target, solution.machine.held_out, limit)

    def _samples_to_leave_out(self, target: Target, learner: Any) -> np.ndarray | None:
        """Samples for which held-out values are computed, or None; classifiers override this."""
        return None

    def _calibrate(
        self, target: Target, held_out: np.ndarray | None, max_left_out: int | None = None
    ) -> None:
        """Fit probabilities, if the estimator has any."""

    def certificate(self, X: Any, y: Any = None, delta: float = 0.05) -> Any:
        """Generalisation bounds for this model: every applicable one, and whether it is vacuous.

        Parameters
        ----------
        X, y
            The training sample.
        delta : float, default=0.05
            Everything called proven holds with probability at least ``1 - delta``.

        Returns
        -------
        multikernel.bounds.Certificate
            Prints itself as a table; see :func:`multikernel.bounds.certificate`.
        """
        from ..bounds import certificate

        return certificate(self, X, y, delta)

    def _learn(
        self,
        corrected: Grams,
        target: Target,
        weighting: Weighting,
        learner: Learner,
        hold_out: np.ndarray | None = None,
        journal: Journal | None = None,
    ) -> Solution:
        started = time.perf_counter()
        warm = getattr(self, "kernel_weights_", None) if self._warm_start else None
        joint = isinstance(weighting, JointWeighting)
        with ProgressLine(type(self).__name__, self.verbose if joint else 0) as line:
            solution = learn(
                corrected,
                target,
                weighting,
                learner,
                warm=warm,
                report=Watched(line.report, journal),
                hold_out=hold_out,
            )
        used = np.count_nonzero(solution.kernel_weights)
        self._say(
            f"{type(self).__name__}: {self.plan_}\n  learned {used} non-zero kernel weights and "
            f"the predictor in {time.perf_counter() - started:.2f} s, relative duality gap "
            f"{solution.machine.gap:.2g}"
        )
        return solution

    @property
    def _one_output(self) -> bool:
        """Whether predictions have shape (n,), without an axis for outputs."""
        return True

    @property
    def _warm_start(self) -> bool:
        return bool(getattr(self, "warm_start", False))

    def _say(self, message: str) -> None:
        logger.info(message)
        if self.verbose:
            print(message)

    def _set_left_out(self, values: np.ndarray | None, target: Target, keep: np.ndarray) -> None:
        """Set the leave-one-out predictions and their score, if the learner has computed them."""
        for name in ("loo_predictions_", "loo_score_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if values is None:
            return
        # Samples of weight zero were not used in the fit: their predictions stay NaN.
        everyone = np.full((self._n_given, values.shape[1]), np.nan)
        everyone[keep] = values
        self.loo_predictions_ = everyone[:, 0] if self._one_output else everyone
        self.loo_score_ = left_out_score(values, target)

    def _set_intercept(self, intercept: np.ndarray) -> None:
        self.intercept_: Any = intercept

    def _store(self, grams: Grams, solution: Solution, keep: np.ndarray) -> None:
        """Set the fitted attributes; of the training sample, keep only what prediction needs."""
        machine = solution.machine
        self.kernel_weights_ = solution.kernel_weights
        self.kernel_names_ = list(grams.names)
        support = np.flatnonzero(np.any(machine.coef != 0, axis=1))
        self.support_ = keep[support]
        self.dual_coef_ = machine.coef[support]
        self.alignment_ = solution.alignment
        self.kernel_alignments_ = solution.kernel_alignments
        self.objective_ = machine.objective
        self.duality_gap_ = machine.gap
        self.n_iter_ = machine.n_iter
        self.history_ = solution.history
        self._set_intercept(machine.intercept)
        self._expansion: Expansion
        if solution.kernel_weights.ndim == 2:
            each = zip(solution.grams, solution.kernel_weights, machine.coef.T, strict=True)
            parts = [own.expand(weights, coef[:, None]) for own, weights, coef in each]
            self._expansion = SeparateExpansions(parts)
        else:
            self._expansion = solution.grams.expand(solution.kernel_weights, machine.coef)
        self._expansion.release()

    # -- prediction -------------------------------------------------------------------------------

    def _evaluate(self, X: Any, split: bool) -> np.ndarray:
        """Values of the functions at new samples: (m, t), or each kernel's share (m, p, t)."""
        check_is_fitted(self)
        points = self._expansion.encode(self._check_X(X, reset=False))
        return self._expansion.shares(points) if split else self._expansion.values(points)


def left_out_score(values: np.ndarray, target: Target) -> float:
    """Accuracy of decision values, or the coefficient of determination of predictions."""
    if target.kind == "classification":
        return target.score(values)
    return float(r2_score(target.Y, values, sample_weight=target.sample_weight))
