"""Classification by a sparse vote of kernel functions: one coefficient per kernel and sample."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from .._journal import Answers, Journal, Watched
from ..grams.memory import MemoryBudget
from ..problem import Target
from ..solvers.voted.columns import KernelColumns, planned_kernels
from ..solvers.voted.complexity import NAMES, Complexity, complexities
from ..solvers.voted.held_out import MAX_CROSS_FITTED_SAMPLES, held_out_votes
from ..solvers.voted.problem import SOLVERS, VotedProblem, VotedSolution, largest_penalty, solve
from .base import CHECKPOINTS
from .classifier import ClassifierCommon
from .probabilities import CALIBRATIONS
from .progress import ProgressLine

TERM = np.dtype([("machine", np.intp), ("kernel", np.intp), ("point", np.intp), ("coef", float)])


class VotedCommon(ClassifierCommon):
    """The parts that the classifier and its cross-validated variant have in common."""

    _learns_one_kernel = False

    _parameter_constraints: dict[str, Any] = {
        "kernels": "no_validation",  # as_bank checks it and gives better messages
        "complexity": [StrOptions(set(NAMES)), "array-like"],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "calibration": [CALIBRATIONS],
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "memory_budget": [None, Real, str],
        "engine": [str],
        "device": [str, None],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
        "checkpoint": CHECKPOINTS,
        "verbose": ["verbose"],
    }

    # Kernels vote as built: r_k depends on their scale, and a constant kernel is an intercept.
    center = False
    normalize = None
    weighting = None
    dtype = np.float64
    _needs_symmetric_kernels = False

    complexity: Any
    n_draws: int

    def _make_columns(
        self, X: Any, keep: np.ndarray, sample_weight: np.ndarray | None
    ) -> KernelColumns:
        """All (kernel, sample) columns on the samples with a positive weight."""
        grams = self._make_grams(X, keep, sample_weight)
        return KernelColumns(
            grams, planned_kernels(self.grams_), MemoryBudget.of(self.memory_budget)
        )

    def _complexities(
        self, columns: KernelColumns, sample_weight: np.ndarray | None, radius: float
    ) -> Complexity:
        return complexities(
            self.complexity,
            columns,
            getattr(self, "n_features_in_", 0),  # no term of an (n, n, p) array depends on it
            sample_weight,
            radius=radius,
            n_draws=self.n_draws,
            random_state=self.random_state,
        )

    def _problems(self, columns: KernelColumns, target: Target) -> list[VotedProblem]:
        """One binary problem for two classes, else one for each class."""
        costs = target.loss_weights
        count = float(len(costs) if target.sample_weight is None else target.sample_weight.sum())
        return [VotedProblem(columns, y, costs / count, self.fit_intercept) for y in target.Y.T]

    def _store_vote(
        self,
        columns: KernelColumns,
        solutions: Sequence[VotedSolution],
        complexity: Complexity,
        penalties: np.ndarray,
        keep: np.ndarray,
    ) -> None:
        """Set the fitted attributes; of the training sample, keep only what prediction needs."""
        self.complexity_ = complexity.values
        self.__dict__.pop("complexity_interval_", None)  # from an earlier fit
        if complexity.intervals is not None:
            self.complexity_interval_ = complexity.intervals
        self.penalties_ = penalties
        self.kernel_names_ = list(columns.names)
        terms = np.zeros(sum(len(found.terms) for found in solutions), dtype=TERM)
        start = 0
        for machine, found in enumerate(solutions):
            part = terms[start : start + len(found.terms)]
            part["machine"], part["kernel"] = machine, found.terms.kernels
            part["point"], part["coef"] = keep[found.terms.points], found.terms.coef
            start += len(part)
        self.terms_ = terms
        self.n_terms_ = len(terms)
        self.support_ = np.unique(terms["point"])
        self.support_kernels_ = [
            np.unique(terms["kernel"][terms["point"] == point]) for point in self.support_
        ]
        self.kernel_counts_ = np.bincount(terms["kernel"], minlength=columns.p)
        self.objective_ = sum(found.objective for found in solutions)
        self.duality_gap_ = max(found.gap for found in solutions)
        self.n_iter_ = max(found.n_iter for found in solutions)
        histories = [found.history for found in solutions]
        self.history_ = histories[0] if len(histories) == 1 else histories
        self._set_intercept(np.array([found.intercept for found in solutions]))
        self._expansion = columns.expand([found.terms for found in solutions])
        self._expansion.release()

    def _calibrate_vote(
        self, columns: KernelColumns, target: Target, journal: Journal | None
    ) -> None:
        """Fit probabilities to the decision values of cross-fitted votes."""

        def votes() -> Answers:
            options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
            found = held_out_votes(columns, target, self.penalties_, self._problems, **options)
            return {"values": found}

        done = votes() if journal is None else journal.recall("held out", (), votes)
        held_out = done["values"]
        self._calibrate(target, held_out, MAX_CROSS_FITTED_SAMPLES)

    def _warn(self, problems: Sequence[VotedProblem], solutions: Sequence[VotedSolution]) -> None:
        if self.duality_gap_ > self.tol:
            warnings.warn(
                f"{type(self).__name__} stopped after {self.n_iter_} rounds at a relative duality "
                f"gap of {self.duality_gap_:.1e}, above tol={self.tol:g}. Raise max_iter; or, if "
                "the penalties are smaller than the rounding errors of the kernels, raise "
                "sparsity_penalty or complexity_penalty, or scale the kernels down.",
                ConvergenceWarning,
                stacklevel=3,
            )
        # The warning above covers classifiers that stopped before their first term.
        empty = [not len(found.terms) and found.gap <= self.tol for found in solutions]
        if any(empty):
            least = largest_penalty(problems[int(np.argmax(empty))]) / self.penalties_
            warnings.warn(
                f"{type(self).__name__}: the vote {'' if all(empty) else 'of at least one class '}"
                "has no terms, so its decision is constant. The penalties are "
                f"{1 / max(float(least.max()), 1e-300):.3g} times the largest that keep a term. "
                "Lower complexity_penalty and sparsity_penalty.",
                UserWarning,
                stacklevel=3,
            )


class VotedKernelClassifier(VotedCommon):
    r"""Voted kernel regularisation: a sparse vote of kernel functions.

    .. math::

        f(x) = \sum_k \sum_j \alpha_{kj} y_j K_k(x, x_j), \qquad \min_\alpha
        \frac1m \sum_i \max(0, 1 - y_i f(x_i))
        + \sum_k \sum_j (\lambda r_k + \beta) |\alpha_{kj}|

    Unlike in a combination of kernels, each sample can have a coefficient for each kernel, and the
    penalty of a coefficient grows with the complexity :math:`r_k` of its kernel (Cortes, Goyal,
    Kuznetsov and Mohri, eq. 1). The problem is a linear program for any kernels: they need not be
    positive semidefinite, nor symmetric. Kernels are neither centred nor normalised. With more than
    two classes there is one vote for each class against the rest.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        The kernels; None for :func:`multikernel.default_bank`. With ``"precomputed"``, X is an
        array of shape (n_samples, n_samples, n_kernels), ``X[i, j, k] = K_k(x_i, x_j)``.
    complexity : str or array of shape (n_kernels,), default="auto"
        The terms r_k: ``"trace"``, ``"degree"`` (polynomials), ``"gamma"`` (Gaussians),
        ``"sigmoid"``, ``"local"``, ``"monte-carlo"`` (any kernels), or numbers. ``"auto"`` is
        ``"monte-carlo"``.
    complexity_penalty : float, default=0.01
        The parameter lambda. Zero is the norm-1 support vector machine.
    sparsity_penalty : float, default=0.001
        The parameter beta; lambda and beta must not both be zero.
    solver : {"auto", "columns", "lp", "descent"}, default="auto"
        Column generation, the whole linear program in HiGHS, or coordinate descent followed by
        column generation; all find the same optimum. ``"auto"`` is ``"columns"``, with all columns
        from the start if there are at most 400.
    fit_intercept : bool, default=False
        Whether to fit an intercept, which has no penalty; the paper has none.
    class_weight : dict, "balanced" or None, default=None
        Factors of the loss for each class.
    calibration : {"auto", "sigmoid", "isotonic", "temperature"}, default="auto"
        How `predict_proba` maps decision values to probabilities; it never changes decisions. The
        map is fitted to decision values of samples that are held out: five folds, or about 1,000
        samples if there are more. ``"auto"`` is Platt's ``"sigmoid"``.
    local_radius : float, default=0.1
        The radius s of ``complexity="local"``.
    n_draws : int, default=100
        Number of random sign vectors of ``complexity="monte-carlo"``.
    tol : float, default=1e-6
        Relative duality gap at which to stop.
    max_iter : int, default=1000
        Limit on rounds of column generation, and on steps of descent before it.
    memory_budget : int, str or None, default=None
        Bytes, or text such as ``"4GB"``; None for 60 % of the free memory.
    n_jobs : int or None, default=None
        Threads for passes over the kernels; -1 for all cores.
    random_state : int, RandomState or None, default=0
        For the signs of ``complexity="monte-carlo"``.
    engine : str, default="cpu"
        The engine that evaluates the kernels. Other packages may register their own
        (:func:`multikernel.grams.engines.register`); ``"cpu"`` and ``"torch"`` are the library's.
    device : str or None, default=None
        Where the kernels are computed: ``"cuda"`` or ``"cuda:1"`` on a GPU, ``"cpu"`` with the same
        code on the processor, both by the engine ``"torch"``. None leaves it to ``engine`` and, for
        tensors of torch or CuPy, to the device that X is on.
    checkpoint : path or None, default=None
        File in which a long fit saves its progress, about every 30 seconds. If the file exists when
        `fit` starts, the fit continues from it and gives the same result as an uninterrupted one;
        a checkpoint of other data or parameters is refused. The file is deleted when the fit is
        complete.
    verbose : int, default=0
        Show rounds, gap, kernels and support vectors.

    Attributes
    ----------
    terms_ : structured array of shape (n_terms,)
        The non-zero coefficients, with fields ``machine`` (index of the classifier), ``kernel``,
        ``point`` (index of a training sample) and ``coef`` (:math:`\alpha_{kj} y_j`).
    n_terms_ : int
        Number of terms.
    support_ : array of shape (n_support,)
        Indices of the training samples with a term.
    support_kernels_ : list of arrays
        For each support vector, the kernels of its terms.
    kernel_counts_ : array of shape (n_kernels,)
        Number of terms of each kernel.
    kernel_names_ : list of str
    complexity_ : array of shape (n_kernels,)
        The terms r_k.
    complexity_interval_ : array of shape (n_kernels, 2)
        95 % confidence intervals of Monte-Carlo terms.
    penalties_ : array of shape (n_kernels,)
        ``lambda r_k + beta``.
    intercept_ : array of shape (n_machines,)
    objective_ : float
        The objective, summed over the classifiers.
    duality_gap_ : float
        Proven relative gap, the largest over the classifiers.
    n_iter_ : int
        Number of rounds, the largest over the classifiers.
    history_ : list of dict
        Objective, bound and gap after each round; with several classifiers, one list for each.
    engine_ : str
        The engine that computed the kernels, and on which device.
    plan_ : Plan
        Which implementation computed which kernels; print it. ``grams_`` is an alias.
    bank_ : KernelBank or None
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of str
        When X has column names.

    Examples
    --------
    >>> from multikernel import polynomials
    >>> from multikernel.estimators.voted import VotedKernelClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X) / X.shape[1] ** 0.5
    >>> model = VotedKernelClassifier(polynomials(range(1, 11))).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2), model.n_terms_, len(model.support_)
    (0.95, 11, 10)
    >>> model.kernel_counts_  # terms of degree 1, 2, ..., 10
    array([8, 3, 0, 0, 0, 0, 0, 0, 0, 0])
    """

    _parameter_constraints = {
        **VotedCommon._parameter_constraints,
        "complexity_penalty": [Interval(Real, 0, None, closed="left")],
        "sparsity_penalty": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions(set(SOLVERS))],
        "local_radius": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        kernels: Any = None,
        complexity: Any = "auto",
        complexity_penalty: float = 0.01,
        sparsity_penalty: float = 0.001,
        solver: str = "auto",
        *,
        fit_intercept: bool = False,
        class_weight: Any = None,
        calibration: str = "auto",
        local_radius: float = 0.1,
        n_draws: int = 100,
        tol: float = 1e-6,
        max_iter: int = 1000,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        engine: str = "cpu",
        device: str | None = None,
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.complexity = complexity
        self.complexity_penalty = complexity_penalty
        self.sparsity_penalty = sparsity_penalty
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.calibration = calibration
        self.local_radius = local_radius
        self.n_draws = n_draws
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.engine = engine
        self.device = device
        self.checkpoint = checkpoint
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> VotedKernelClassifier:
        """Fit the vote to training data.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts, in the loss and in the terms r_k.

        Returns
        -------
        self
        """
        X, y = self._check_X(X, y, reset=True)
        check_classification_targets(y)
        if self.complexity_penalty == 0 and self.sparsity_penalty == 0:
            raise ValueError(
                "complexity_penalty and sparsity_penalty are both 0, which leaves the coefficients "
                "undetermined. Use a small sparsity_penalty such as 1e-8."
            )
        weights, keep = self._sample_weights(sample_weight, X)
        target = self._encode_labels(y, keep, weights)
        started = time.perf_counter()
        with self._journal(X, y, sample_weight) as journal:
            columns = self._make_columns(X, keep, weights)
            complexity = self._complexities(columns, weights, self.local_radius)
            penalties = float(self.complexity_penalty) * complexity.values
            penalties += float(self.sparsity_penalty)
            problems = self._problems(columns, target)
            with ProgressLine(type(self).__name__, self.verbose) as line:
                solutions = [
                    solve(
                        problem,
                        penalties,
                        self.solver,
                        tol=self.tol,
                        max_iter=self.max_iter,
                        report=Watched(line.report, journal),
                    )
                    for problem in problems
                ]
            self._store_vote(columns, solutions, complexity, penalties, keep)
            self._calibrate_vote(columns, target, journal)
        self._say(
            f"{type(self).__name__}: {self.grams_}\n  {self.n_terms_} terms at "
            f"{len(self.support_)} samples in {time.perf_counter() - started:.2f} s, relative "
            f"duality gap {self.duality_gap_:.2g}"
        )
        self._warn(problems, solutions)
        return self
