"""Transduction with a learned spectrum: the largest margin at fixed trace."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from .._threads import count_threads
from ..grams.engines import build, describe
from ..grams.memory import MemoryBudget
from ..grams.protocol import Expansion, Grams
from ..grams.separate import SeparateExpansions
from ..kernels.bank import KernelBank, as_bank
from ..kernels.default_bank import default_bank
from ..kernels.sequences.table import Table
from ..problem import Target
from ..solvers.spectral.best_alignment import align
from ..solvers.spectral.cutting_planes import cutting_planes
from ..solvers.spectral.gradient import projected_gradient
from ..solvers.spectral.held_out import left_out_margins
from ..solvers.spectral.hulls import Hull, KernelMatrices, RankOneKernels
from ..solvers.spectral.linear import linear_combination
from ..solvers.spectral.lp import free_spectrum
from ..solvers.spectral.problem import (
    MARGINS,
    Labels,
    MarginSolution,
    NotSeparableError,
    not_separable,
    train,
)
from ..solvers.spectral.qcqp import qcqp
from ..solvers.spectral.sdp import sdp
from ..solvers.spectral.spectral_class import KernelSpectrum
from .classifier import ClassifierCommon, class_index
from .own_sample import sample_digest
from .probabilities import CALIBRATIONS
from .progress import ProgressLine
from .whole_fits import whole_or_nothing

FAMILIES = ("polynomial", "spectral", "convex", "linear")
SOLVERS = ("auto", "gradient", "cutting_plane", "lp", "conic")
UNLABELLED = -1


@dataclass(frozen=True)
class Sample:
    """The kernels on all samples, scaled to trace c, and which samples have a label."""

    stack: np.ndarray
    labelled: np.ndarray
    spectrum: KernelSpectrum | None
    hull: Hull
    names: list[str]


class SpectralKernelClassifier(ClassifierCommon):
    r"""Find the kernel matrix of given trace that separates the labelled samples with the largest
    margin.

    Bousquet and Herrmann choose a kernel matrix on labelled and unlabelled samples together, from
    one of four families, to make the bound :math:`\sqrt{\mathrm{tr} K}/(M n)` small: the trace is
    fixed and the margin M maximised. Numbers in brackets are those of the classes in the paper.

    ``family="polynomial"``
        :math:`\sum_{s=1}^{\text{degree}} d_s K^s,\ d \ge 0`, powers of the matrix: the order of the
        eigenvalues is kept (5).
    ``family="spectral"``
        The eigenvectors of K with any eigenvalues :math:`\ge 0` (4). It has the smallest bound of
        all but overfits on real data; it is included to show why keeping the order matters.
    ``family="convex"``
        :math:`\sum_k d_k K_k,\ d \ge 0`, of a bank of kernels (3): L1-norm multiple kernel learning
        with kernels of equal trace.
    ``family="linear"``
        :math:`\sum_k d_k K_k` with d of any sign, positive semidefinite on all samples (2).

    With more than two classes there is one kernel and one classifier for each class against the
    rest.

    Parameters
    ----------
    kernel : kernel, bank, list of kernels, or None, default=None
        One kernel for ``"polynomial"`` and ``"spectral"``, a bank for the others. None takes a
        Gaussian of median width, or :func:`multikernel.default_bank`.
    family : {"polynomial", "spectral", "convex", "linear"}, default="polynomial"
    degree : int, default=3
        The highest power of ``family="polynomial"``.
    C : float, default=1.0
        Cost of a violated margin.
    margin : {"1-norm", "2-norm", "hard"}, default="1-norm"
        Losses :math:`C \sum \xi`, :math:`\frac C2 \sum \xi^2`, or no violations allowed.
    criterion : {"margin", "alignment"}, default="margin"
        What to maximise. ``"alignment"`` takes the kernel of the family that is best aligned with
        the labels (Cristianini et al.), uncentred, on the labelled samples; not for ``"linear"``.
    trace : float or None, default=None
        c, the trace of the learned kernel on all samples; None for the number of samples, so that
        K(x, x) is one on average.
    calibration : {"auto", "sigmoid", "isotonic", "temperature"}, default="auto"
        As in :class:`MultiKernelClassifier`. Held-out values use the kernel of the whole sample, so
        a family that overfits (``"spectral"``) gives overconfident probabilities.
    solver : {"auto", "gradient", "cutting_plane", "lp", "conic"}, default="auto"
        All reach the same optimum. ``"gradient"`` is the paper's own algorithm (training, gradient
        step, projection) for non-negative weights. ``"cutting_plane"`` is that of
        :class:`multikernel.L1`; for ``"linear"`` it has cutting planes for the cone as well.
        ``"lp"`` solves the linear programs to which ``"spectral"`` reduces, unless
        ``margin="2-norm"``. ``"conic"`` solves the whole program of Lanckriet et al.
        (quadratically constrained, or semidefinite for ``"linear"``) by clarabel, for small
        problems. ``"auto"`` takes ``"cutting_plane"`` for ``"linear"``, ``"lp"`` for ``"spectral"``
        where possible, and otherwise ``"gradient"``.
    tol : float, default=1e-4
        Relative duality gap at which to stop.
    max_iter : int, default=1000
        Limit on the number of classifiers trained.
    memory_budget : int, str or None, default=None
        Bytes, or text such as ``"4GB"``; None for 60 % of the free memory.
    n_jobs : int or None, default=None
        Threads for passes over the kernels; -1 for all cores.
    engine : str, default="cpu"
        The engine that evaluates the kernels. Other packages may register their own
        (:func:`multikernel.grams.engines.register`); ``"cpu"`` and ``"torch"`` are the library's.
    device : str or None, default=None
        Where the kernels are computed: ``"cuda"`` or ``"cuda:1"`` on a GPU, ``"cpu"`` with the same
        code on the processor, both by the engine ``"torch"``. None leaves it to ``engine`` and, for
        tensors of torch or CuPy, to the device that X is on.
    verbose : int, default=0
        Show the gap during the fit.

    Attributes
    ----------
    transduction_ : array of shape (n_samples,)
        The label of every sample of the fit: given, or predicted for unlabelled samples.
    kernel_weights_ : array of shape (n_members,), or (n_classes, n_members)
        d, the weights of the members of the family, each scaled to trace c.
    kernel_names_ : list of str
        Names of the members: kernels, powers or eigenvectors.
    eigenvalues_ : array of shape (rank,)
        Eigenvalues of the given kernel, scaled to trace c; families ``"polynomial"`` and
        ``"spectral"``.
    spectrum_ : array of shape (rank,), or (n_classes, rank)
        The learned eigenvalues that replace them.
    margin_ : float, or array of shape (n_classes,)
        :math:`M = 1 / \|w\|`.
    bound_ : float, or array of shape (n_classes,)
        :math:`\sqrt{c} / (M n)` with n labelled samples, the complexity in the paper's Corollary 1.
    alignment_ : float, or array of shape (n_classes,)
        Uncentred alignment of the learned kernel with the labels, on the labelled samples.
    duality_gap_ : float
        Proven relative gap, the largest over classifiers. With ``criterion="alignment"`` it is the
        gap of the classifiers with a fixed kernel.
    optimality_ : float
        With ``criterion="alignment"``, the largest relative violation of its optimality conditions.
    objective_ : float
        Half the squared norm plus the losses, summed over classifiers.
    dual_coef_ : array of shape (n_support, n_machines)
        Signed coefficients of the learned kernel.
    support_ : array of shape (n_support,)
    intercept_ : array of shape (n_machines,)
    n_iter_ : int
    history_ : list of dict
        One list for each classifier if there are several.
    trace_ : float
    engine_ : str
        The engine that computed the kernels, and on which device.
    plan_ : Plan
        Which implementation computed which kernels; ``grams_`` is an alias.
    bank_ : KernelBank
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of str
        When X has column names.

    Notes
    -----
    ``predict`` on new samples uses the kernel function :math:`\sum_k d_k k_k` for ``"convex"`` and
    ``"linear"`` (the latter is positive semidefinite on the samples of the fit, but not necessarily
    on others). Powers and spectra of a *matrix* have no kernel function; there, ``predict`` uses
    the Nyström extension of the eigenvectors, which agrees with ``transduction_`` on the samples of
    the fit. With ``family="spectral"`` it divides by very small eigenvalues: prefer
    :meth:`transduce`.

    Examples
    --------
    >>> from multikernel import Gaussian
    >>> from multikernel.estimators.spectral import SpectralKernelClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = SpectralKernelClassifier(Gaussian(0.2))
    >>> found = model.transduce(X[:200], y[:200], X[200:])
    >>> print(round((found == y[200:]).mean(), 2), model.kernel_weights_.round(2))
    0.87 [0.92 0.08 0.  ]
    """

    _reads_categories = False

    def _importance(self) -> np.ndarray:
        raise AttributeError(
            f"{type(self).__name__} has no column_importance_: its kernel is learned for the given "
            "samples, and new samples are interpolated, without useful derivatives. Use "
            "sklearn.inspection.permutation_importance, or MultiKernelClassifier."
        )

    _parameter_constraints = {
        "kernel": "no_validation",  # as_bank checks it, with better messages
        "family": [StrOptions(set(FAMILIES))],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "margin": [StrOptions(set(MARGINS))],
        "criterion": [StrOptions({"margin", "alignment"})],
        "trace": [Interval(Real, 0, None, closed="neither"), None],
        "calibration": [CALIBRATIONS],
        "solver": [StrOptions(set(SOLVERS))],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "memory_budget": [None, Real, str],
        "engine": [str],
        "device": [str, None],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
    }

    # The margin at fixed trace is defined for kernels that are not centred or normalised.
    center = False
    normalize = None
    weighting = None
    class_weight = None
    fit_intercept = True
    random_state = None
    _learns_one_kernel = False

    def __init__(
        self,
        kernel: Any = None,
        family: str = "polynomial",
        degree: int = 3,
        C: float = 1.0,
        *,
        margin: str = "1-norm",
        criterion: str = "margin",
        trace: float | None = None,
        calibration: str = "auto",
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        engine: str = "cpu",
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.family = family
        self.degree = degree
        self.C = C
        self.margin = margin
        self.criterion = criterion
        self.trace = trace
        self.calibration = calibration
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.engine = engine
        self.device = device
        self.verbose = verbose

    @property
    def kernels(self) -> Any:  # type: ignore[override]
        """The parameter ``kernel``, under the name that it has in other estimators."""
        return self.kernel

    @property
    def _is_precomputed(self) -> bool:
        return False  # use mk.precomputed(matrices); _make_grams refuses strings

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> SpectralKernelClassifier:
        """Learn the kernel matrix on all samples and a classifier on the labelled ones.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Labelled and unlabelled samples.
        y : array of shape (n_samples,)
            Labels; -1 marks an unlabelled sample, as in :mod:`sklearn.semi_supervised`. If all
            samples are labelled, traces are over the training samples: the inductive setting.

        Returns
        -------
        self
        """
        X, y = self._check_X(X, y, reset=True)
        check_classification_targets(y)
        self._learn_labels(X, y, known_labels(y, type(self).__name__))
        return self

    @whole_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def transduce(self, X: Any, y: Any, X_unlabelled: Any) -> np.ndarray:
        """Predict the labels of samples that are known in advance.

        Here every entry of y is a label, including -1.

        Parameters
        ----------
        X : array of shape (n_labelled, n_features)
        y : array of shape (n_labelled,)
        X_unlabelled : array of shape (n_unlabelled, n_features)

        Returns
        -------
        array of shape (n_unlabelled,)
        """
        X, y = self._check_X(X, y, reset=True)
        check_classification_targets(y)
        others = self._check_X(X_unlabelled, reset=False)
        if isinstance(X, Table):
            raise ValueError(
                "transduce takes numeric columns. For sequence kernels, pass all samples to fit, "
                "with the label -1 for unlabelled ones."
            )
        sparse = sp.issparse(X) or sp.issparse(others)
        points: Any = sp.vstack([X, others]).tocsr() if sparse else np.vstack([X, others])
        labelled = np.arange(len(y))
        everyone = np.concatenate([y, np.full(others.shape[0], y[0])])  # the rest is a placeholder
        self._learn_labels(points, everyone, labelled)
        return np.asarray(self.transduction_[len(y) :])

    def certificate(self, X: Any, y: Any = None, delta: float = 0.05) -> Any:
        """Not available for this class: its kernel is chosen after seeing the sample, including
        test samples.

        ``bound_`` is the complexity that enters the paper's Corollary 1;
        :func:`multikernel.bounds.transductive_bound` adds the rest of it.
        """
        raise TypeError(
            "The bounds of certificate() assume kernels fixed before the sample is seen. "
            "SpectralKernelClassifier chooses a matrix on the sample itself: use bound_ and "
            "multikernel.bounds.transductive_bound(risk, bound_, n, delta)."
        )

    # -- through the waist ------------------------------------------------------------------------

    def _learn_labels(self, X: Any, y: np.ndarray, labelled: np.ndarray) -> None:
        target = self._encode_labels(y, labelled, None)
        grams = self._make_grams(X, np.arange(X.shape[0]), None)
        sample = self._make_sample(grams, labelled)
        with ProgressLine(type(self).__name__, self.verbose) as line:
            found = [
                self._solve(sample, Labels(signs, self.margin, self.C), line.report)
                for signs in target.Y.T
            ]
        self._store_found(grams, sample, found, target.Y)
        held_out = [
            left_out_margins(
                sample.hull.combine(one.weights), Labels(y, self.margin, self.C), one.machine
            )
            for one, y in zip(found, target.Y.T, strict=True)
        ]
        self._calibrate(target, np.column_stack(held_out))
        self.transduction_ = y.copy()
        unknown = np.ones(len(y), dtype=bool)
        unknown[labelled] = False
        values = self._values_on_sample(sample, found) + self.intercept_
        decisions = values[:, 0] if values.shape[1] == 1 else values
        self.transduction_[unknown] = self.classes_[class_index(decisions)][unknown]
        if self.duality_gap_ > self.tol:
            warnings.warn(
                f"{type(self).__name__} stopped after training {self.n_iter_} classifiers at a "
                f"relative duality gap of {self.duality_gap_:.1e}, above tol={self.tol:g}. Raise "
                "max_iter or tol, or choose solver='cutting_plane'.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _make_grams(
        self,
        X: Any,
        keep: np.ndarray,
        weights: np.ndarray | None,
        target: Target | None = None,
    ) -> Grams:
        if isinstance(self.kernel, str):
            raise TypeError(
                f"kernel must be a kernel, a bank, a list of kernels or None; got {self.kernel!r}. "
                "For matrices use mk.precomputed(matrices) with X = mk.sample_ids(n)."
            )
        self._drop_model()
        self._sample_digest = sample_digest(X)
        single = self.family in ("polynomial", "spectral")
        if self.kernel is not None:
            names = getattr(self, "feature_names_in_", None)
            bank = as_bank(self.kernel).adapt(X, None, names)
        elif single:
            bank = KernelBank([default_bank(X, kind="gaussians", n_gaussians=1)[0]])
        else:
            bank = default_bank(X, kind="gaussians")
        budget = MemoryBudget.of(self.memory_budget)
        plan = self._make_plan(bank, X, budget)
        n_jobs = count_threads(self.n_jobs)
        grams = build(plan, X, budget=budget, dtype=X.dtype, n_jobs=n_jobs)
        if single and grams.p != 1:
            raise ValueError(
                f"family={self.family!r} modifies the spectrum of a single kernel; got {grams.p}. "
                "Choose one, add them up, or use family='convex' to learn their weights."
            )
        # matrices on all samples and on the labelled ones, eigenvectors, and room to combine them
        budget.require(
            8.0 * grams.n**2 * (2 * grams.p + 3),
            f"{type(self).__name__} on {grams.n} samples, labelled or not,",
            "It keeps whole matrices in memory: leave out some of the unlabelled samples.",
        )
        self.bank_, self.grams_, self.engine_ = bank, plan, describe(plan)
        return grams.corrected(False, None)

    def _make_sample(self, grams: Grams, labelled: np.ndarray) -> Sample:
        """The kernel matrices on all samples, scaled to trace c, and the family that they span."""
        self.trace_ = float(grams.n if self.trace is None else self.trace)
        stack = np.stack(
            [grams.combine(e).dense().astype(np.float64, copy=False) for e in np.eye(grams.p)]
        )
        traces = np.trace(stack, axis1=1, axis2=2)
        for name, found in zip(grams.names, traces, strict=True):
            if not found > 0:
                raise ValueError(
                    f"Kernel {name!r} has trace {found:g} on these samples and cannot be scaled to "
                    "a positive trace. Drop it."
                )
        self._scales = self.trace_ / traces
        stack *= self._scales[:, None, None]
        if self.family in ("polynomial", "spectral"):
            spectrum = KernelSpectrum.of(stack[0], self.trace_, f"Kernel {grams.names[0]!r}")
            hull = spectrum.hull(self.family, self.degree, labelled)
            return Sample(stack, labelled, spectrum, hull, spectrum.names(self.family, self.degree))
        for K, name, known in zip(stack, grams.names, grams.known_psd, strict=True):
            if not known:
                KernelSpectrum.of(K, self.trace_, f"Kernel {name!r}")
        hull = KernelMatrices(np.ascontiguousarray(stack[:, labelled[:, None], labelled]))
        return Sample(stack, labelled, None, hull, list(grams.names))

    def _solve(self, sample: Sample, labels: Labels, report: Any) -> MarginSolution:
        hull = sample.hull
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        if self.criterion == "alignment":
            return self._align(hull, labels)
        choice = self._choose_solver()
        if self.family == "linear":
            if choice == "conic":
                return sdp(sample.stack, sample.labelled, labels)
            return linear_combination(
                sample.stack, sample.labelled, labels, report=report, **options
            )
        if choice == "conic":
            return qcqp(hull, labels)
        if isinstance(hull, RankOneKernels) and choice == "lp":
            return free_spectrum(hull, labels, **options)
        if isinstance(hull, KernelMatrices) and choice == "cutting_plane":
            return cutting_planes(hull, labels, **options)
        return projected_gradient(hull, labels, report=report, **options)

    def _choose_solver(self) -> str:
        squared = self.margin == "2-norm"
        known = {
            "linear": ["cutting_plane", "conic"],
            "spectral": ["gradient", "conic"] if squared else ["lp", "gradient", "conic"],
        }.get(self.family, ["gradient", "conic"] + ([] if squared else ["cutting_plane"]))
        if self.solver == "auto":
            return known[0]
        if self.solver not in known:
            raise ValueError(
                f"solver={self.solver!r} does not solve family={self.family!r} with "
                f"margin={self.margin!r}. Use 'auto' or one of {known}."
            )
        return self.solver

    def _align(self, hull: Hull, labels: Labels) -> MarginSolution:
        if self.family == "linear":
            raise ValueError(
                "criterion='alignment' is for families with non-negative weights; for weights of "
                "any sign use MultiKernelClassifier(weighting=AlignF(signed=True))."
            )
        d, _, self.optimality_ = align(hull, labels.y)
        machine = train(hull.combine(d), labels)
        if not np.isfinite(machine.primal):
            raise NotSeparableError(not_separable(1))
        lower = labels.dual(machine.alpha, float(d @ hull.forms(machine.s)))
        return MarginSolution(d, machine, lower, 1)

    # -- fitted attributes ------------------------------------------------------------------------

    def _values_on_sample(self, sample: Sample, found: list[MarginSolution]) -> np.ndarray:
        """Values of the functions, without intercepts, at all samples of the fit."""
        if sample.spectrum is not None:
            columns = [
                sample.spectrum.values_at(g, sample.labelled, one.machine.s)
                for g, one in zip(np.atleast_2d(self.spectrum_), found, strict=True)
            ]
        else:
            columns = [
                np.tensordot(one.weights, sample.stack[:, :, sample.labelled], axes=1)
                @ one.machine.s
                for one in found
            ]
        return np.column_stack(columns)

    def _store_found(
        self, grams: Grams, sample: Sample, found: list[MarginSolution], Y: np.ndarray
    ) -> None:
        labelled = sample.labelled
        coef = np.zeros((grams.n, len(found)))
        coef[labelled] = np.column_stack([one.machine.s for one in found])
        support = np.flatnonzero(np.any(coef != 0, axis=1))
        weights = np.stack([one.weights for one in found])
        norms = np.array([one.machine.norm for one in found])
        self.kernel_names_ = sample.names
        self.support_, self.dual_coef_ = support, coef[support]
        self._set_intercept(np.array([one.machine.intercept for one in found]))
        self.kernel_weights_ = plain(weights)
        with np.errstate(divide="ignore"):
            self.margin_ = plain(1.0 / np.sqrt(np.maximum(norms, 0.0)))
        self.bound_ = plain(np.sqrt(self.trace_ * np.maximum(norms, 0.0)) / len(labelled))
        self.alignment_ = plain(
            np.array(
                [aligned(sample.hull, one.weights, y) for one, y in zip(found, Y.T, strict=True)]
            )
        )
        self.objective_ = float(sum(one.machine.primal for one in found))
        self.duality_gap_ = float(max(one.gap for one in found))
        self.n_iter_ = max(one.n_iter for one in found)
        histories = [one.history for one in found]
        self.history_: Any = histories[0] if len(histories) == 1 else histories
        self._expansion: Expansion
        if sample.spectrum is not None:
            members = sample.spectrum.members(self.family, self.degree)
            learned = weights @ members
            self.eigenvalues_ = sample.spectrum.values
            self.spectrum_ = plain(learned)
            extended = np.column_stack(
                [
                    sample.spectrum.extension(g, labelled, one.machine.s)
                    for g, one in zip(learned, found, strict=True)
                ]
            )
            self._expansion = grams.expand(self._scales, extended)
        elif len(found) == 1:
            self._expansion = grams.expand(self._scales * weights[0], coef)
        else:
            self._expansion = SeparateExpansions(
                [grams.expand(self._scales * w, coef[:, [j]]) for j, w in enumerate(weights)]
            )
        self._expansion.release()


def plain(values: np.ndarray) -> Any:
    """A single row (of a binary problem) as a vector; several rows unchanged."""
    if len(values) > 1:
        return values
    return values[0] if values.ndim > 1 else float(values[0])


def aligned(hull: Hull, d: np.ndarray, y: np.ndarray) -> float:
    """Uncentred alignment of a member of the hull with the labels."""
    K = hull.combine(d)
    return float(y @ K @ y / (np.linalg.norm(K) * len(y)))


def known_labels(y: np.ndarray, name: str) -> np.ndarray:
    """Indices of the samples whose label is known: -1 marks the others."""
    if y.dtype.kind not in "iuf":
        return np.arange(len(y))
    known = np.flatnonzero(y != UNLABELLED)
    classes = np.unique(y[known])
    if len(known) < len(y) and np.array_equal(classes, [1]):
        raise ValueError(
            f"{name}: y contains only -1 and 1. Here -1 marks an unlabelled sample, as in "
            "sklearn.semi_supervised, which leaves only one class. If -1 and 1 are your two "
            "classes, call transduce(X, y, X_unlabelled), where -1 is a label, or encode them as "
            "0 and 1."
        )
    if len(known) == 0:
        raise ValueError(f"{name}: all of y is -1, which marks unlabelled samples.")
    return known
