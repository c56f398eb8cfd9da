"""Standard deviations and prediction intervals of regressors.

They are computed on first use from the training sample, which a fitted regressor keeps for this
purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.utils.validation import check_is_fitted

from .._threads import count_threads
from ..grams.engines import build
from ..grams.memory import MemoryBudget
from ..grams.protocol import Expansion, Grams, require_sizes
from ..kernels.observed import Observed
from ..learners.jackknife import Jackknife, folds_interval, plus_interval, split_radius
from ..learners.leave_one_out import LeaveOneOutProblem, best_ridge, leave_one_out
from ..problem import Target
from .checks import check_dtype

METHODS = ("auto", "jackknife+", "cv+", "split")
#: Up to this many samples the n x n matrix of the jackknife is kept in memory.
MAX_JACKKNIFE_SAMPLES = 4000
N_FOLDS = 10
#: Up to this many samples ten folds are used; with more, a single split loses little accuracy.
MAX_FOLDS_SAMPLES = 20_000
#: Maximum number of samples that a split keeps out of the fit; half of them in small samples.
MAX_SPLIT_SAMPLES = 5000
#: Number of training samples whose values replace missing views in standard deviations.
N_DONORS = 30
#: Kernel values at new samples per block.
BLOCK_ENTRIES = 4_000_000


@dataclass(eq=False)
class TrainingSample:
    """The training sample, as far as intervals need it.

    Attributes
    ----------
    X : array, sparse matrix, table or None
        The inputs as validated; None in a loaded model that was given kernel values.
    Y : array of shape (n, t)
        The outputs of the samples with a positive weight.
    sample_weight : array of shape (n,) or None
    keep : array of shape (n,)
        Indices of the samples with a positive weight.
    """

    X: Any
    Y: np.ndarray
    sample_weight: np.ndarray | None
    keep: np.ndarray
    #: results by name, computed on first use
    found: dict[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.state(), "found": {}}

    def state(self) -> dict[str, Any]:
        """The attributes to store, without kernel values, which would make files far larger."""
        X = None if self.has_kernel_values else self.X
        return {"X": X, "Y": self.Y, "sample_weight": self.sample_weight, "keep": self.keep}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TrainingSample:
        """The object with these attributes."""
        require_sizes(len(state["keep"]) == len(state["Y"]), "outputs of the training sample")
        return cls(**state)

    @property
    def n(self) -> int:
        """Number of samples with a positive weight."""
        return len(self.Y)

    @property
    def has_kernel_values(self) -> bool:
        """Whether X holds kernel values, shape (N, N, p), instead of inputs."""
        return isinstance(self.X, np.ndarray) and self.X.ndim == 3

    def part(self, rows: np.ndarray) -> Any:
        """The inputs of some samples, as `fit` takes them."""
        rows = self.keep[rows]
        return self.X[np.ix_(rows, rows)] if self.has_kernel_values else self.X[rows]

    def seen_from(self, new: Any, rows: np.ndarray) -> Any:
        """New inputs for a model that was trained on some of the samples."""
        return new[:, self.keep[rows]] if self.has_kernel_values else new


class IntervalMixin:
    """``predict_interval`` and standard deviations."""

    _training: TrainingSample | None
    #: whether this is ridge regression with one learned kernel
    _one_kernel_ridge = False

    def _keep_sample(self, X: Any, target: Target, keep: np.ndarray) -> None:
        """Keep the training sample for intervals, without copying it."""
        self._training = TrainingSample(X, target.Y, target.sample_weight, keep)

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, method: str = "auto"
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Intervals that contain the outputs of new samples with a given probability.

        Parameters
        ----------
        X : array of shape (n_new, n_features)
        coverage : float, default=0.9
            The probability, above 0 and below 1.
        method : {"auto", "jackknife+", "cv+", "split"}, default="auto"
            How intervals are computed, and what is proven if samples are exchangeable:

            ``"jackknife+"``
                Functions without each sample, in closed form (ridge regression with one learned
                kernel, up to 4,000 samples). Coverage is at least ``1 - 2 (1 - coverage)`` and
                close to ``coverage`` in practice, for kernel weights that do not depend on the
                sample. The weights are learned from the whole sample, and the proof does not cover
                their influence.
            ``"cv+"``
                Ten functions, each trained without a tenth of the sample, including the kernel
                weights. Coverage is at least ``1 - 2 (1 - coverage) - sqrt(2 / n_samples)``, and
                close to ``coverage`` in practice. The first call fits ten models.
            ``"split"``
                A function trained without some of the sample (half of it, but at most 5,000), and
                its errors there. Coverage is at least ``coverage``; intervals of small samples are
                wider. The first call fits one model.

            ``"auto"`` is ``"jackknife+"`` where available, otherwise ``"cv+"`` for up to 20,000
            samples and ``"split"`` for more.

        Returns
        -------
        lower, upper : arrays of shape (n_new,) or (n_new, n_outputs)
            With several outputs, the coverage holds for each output separately. The ends are
            infinite if the sample is too small for the coverage.
        """
        sample = self._training_sample()
        coverage = check_coverage(coverage)
        if method not in METHODS:
            raise ValueError(
                f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}."
            )
        if method == "auto":
            method = "cv+" if sample.n <= MAX_FOLDS_SAMPLES else "split"
            method = "jackknife+" if self._has_jackknife(sample) else method
        if method == "jackknife+":
            lower, upper = self._jackknife_interval(X, coverage, sample)
        elif method == "cv+":
            lower, upper = self._cv_interval(X, coverage, sample)
        else:
            lower, upper = self._split_interval(X, coverage, sample)
        return self._as_outputs(lower), self._as_outputs(upper)

    def _predict_std(self, X: Any) -> np.ndarray:
        """Standard deviations of new outputs, shape (n_new, n_outputs)."""
        sample = self._training_sample()
        X = self._check_X(X, reset=False)  # type: ignore[attr-defined]
        if self._has_jackknife(sample):
            if sample.has_kernel_values:
                raise ValueError(
                    "return_std=True needs K(x, x) of new samples, which kernels='precomputed' "
                    "cannot supply. Use mk.precomputed(matrices) with X = mk.sample_ids(N), or "
                    "predict_interval."
                )
            known = self._jackknife(sample)
            found = self._deviations(known, X, sample)
            lacking = absent_columns(getattr(self, "bank_", None), X)
            if lacking is not None:
                rows = np.flatnonzero(lacking.any(axis=1))
                found[rows] = self._deviations_of_unknown(known, X[rows], lacking[rows], sample)
            return found
        if sample.n <= MAX_FOLDS_SAMPLES:
            residuals, weights = self._folds(sample)[1], sample.sample_weight
        else:
            _, _, residuals, weights = self._split(sample)
        spread = np.sqrt(np.average(residuals**2, axis=0, weights=weights))
        return np.tile(spread, (X.shape[0], 1))

    def _deviations(self, known: ClosedForm, X: Any, sample: TrainingSample) -> np.ndarray:
        deviations = []
        for rows in blocks_of(X.shape[0], sample.n):
            diagonal = known.diagonal.values(self._build(X[rows], None), X[rows])
            cross = known.cross_values(X[rows])
            deviations.append(known.jackknife.deviations(cross, diagonal))
        return np.concatenate(deviations)

    def _deviations_of_unknown(
        self, known: ClosedForm, X: np.ndarray, lacking: np.ndarray, sample: TrainingSample
    ) -> np.ndarray:
        """Standard deviations of samples that lack views, shape (n_new, n_outputs).

        Missing values are replaced by those of randomly drawn training samples, N_DONORS times. By
        the law of total variance, the variance is the mean of the variances plus the variance of
        the predictions over these draws.
        """
        donors = sample.part(np.arange(sample.n))
        rng = np.random.default_rng(0)
        means, variances = [], []
        for _ in range(N_DONORS):
            filled = X.copy()
            for columns in np.unique(lacking, axis=0):
                rows = np.flatnonzero((lacking == columns).all(axis=1))
                for group in absent_groups(self.bank_, columns):  # type: ignore[attr-defined]
                    whole = np.flatnonzero(~np.isnan(donors[:, group]).all(axis=1))
                    given = donors[rng.choice(whole, len(rows))][:, group]
                    filled[np.ix_(rows, group)] = given
            means.append(self._outputs(self, self._named(filled)))
            variances.append(self._deviations(known, filled, sample) ** 2)
        return np.asarray(np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0, ddof=1)))

    # -- the sample -------------------------------------------------------------------------------

    def _training_sample(self) -> TrainingSample:
        check_is_fitted(self)
        sample: TrainingSample | None = getattr(self, "_training", None)
        if sample is None or sample.X is None:
            raise NotFittedError(
                f"This {type(self).__name__} does not hold its training sample, from which "
                "intervals and standard deviations are computed: it was loaded from a file of an "
                "earlier version, it was fitted to rows in chunks or to a stream, or it was "
                "fitted to kernel values, which are not stored or copied with a model. Fit it "
                "again to get them; predict works as before."
            )
        return sample

    def _as_outputs(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._one_output else values  # type: ignore[attr-defined]

    def _outputs(self, model: Any, X: Any) -> np.ndarray:
        """Predictions with an axis for outputs, shape (n_new, n_outputs)."""
        return np.asarray(model.predict(X)).reshape(X.shape[0], -1)

    def _named(self, X: Any) -> Any:
        """Validated inputs with the column names of the fit, which kernels may refer to."""
        codes = self.__dict__.get("codes_")
        if codes is not None:
            return codes.inverse_transform(X)
        names = getattr(self, "feature_names_in_", None)
        if names is None or not isinstance(X, np.ndarray) or X.ndim != 2:
            return X
        import pandas as pd

        return pd.DataFrame(X, columns=names)

    # -- functions without each sample, in closed form --------------------------------------------

    def _has_jackknife(self, sample: TrainingSample) -> bool:
        """Whether functions without each sample have a closed form that fits in memory."""
        this: Any = self
        # Centred functions sum to zero over the sample: without an intercept, their values at the
        # other samples would reveal the target of the left-out one.
        honest = this.fit_intercept or not this.center
        return bool(self._one_kernel_ridge and honest and sample.n <= MAX_JACKKNIFE_SAMPLES)

    def _jackknife(self, sample: TrainingSample) -> ClosedForm:
        if "jackknife" not in sample.found:
            sample.found["jackknife"] = self._make_jackknife(sample)
        known: ClosedForm = sample.found["jackknife"]
        return known

    def _make_jackknife(self, sample: TrainingSample) -> ClosedForm:
        this: Any = self
        grams = self._build(sample.part(np.arange(sample.n)), sample.sample_weight)
        corrected = grams.corrected(this.center, this.normalize)
        gram = corrected.combine(this.kernel_weights_)
        target = Target(sample.Y, "regression", sample.sample_weight)
        alpha = getattr(self, "alpha_", None) or this.alpha
        if isinstance(alpha, str):
            alpha = best_ridge(gram, target, this.fit_intercept)[0]
        K = gram.dense()
        fit = leave_one_out(K, LeaveOneOutProblem.of(target, this.fit_intercept, alpha))
        jackknife = Jackknife.of(K, fit, alpha, grams.total_weight)
        identity = np.eye(sample.n)
        return ClosedForm(
            jackknife,
            corrected.expand(this.kernel_weights_, identity),
            KernelDiagonal.of(grams, corrected, this.kernel_weights_),
        )

    def _build(self, X: Any, sample_weight: np.ndarray | None) -> Grams:
        """The kernels of the fit, on training samples or on new ones."""
        this: Any = self
        return build(
            this.grams_,
            X,
            budget=MemoryBudget.of(this.memory_budget),
            dtype=check_dtype(this.dtype) or X.dtype,
            sample_weight=sample_weight,
            n_jobs=count_threads(this.n_jobs),
        )

    def _jackknife_interval(
        self, X: Any, coverage: float, sample: TrainingSample
    ) -> tuple[np.ndarray, np.ndarray]:
        if not self._has_jackknife(sample):
            raise ValueError(
                "method='jackknife+' has a closed form for ridge regression with one learned "
                f"kernel, an intercept (or center=False) and up to {MAX_JACKKNIFE_SAMPLES} "
                f"samples; this is {type(self).__name__} with "
                f"loss={getattr(self, 'loss', None)!r}, "
                f"fit_intercept={getattr(self, 'fit_intercept', None)!r} and {sample.n} samples. "
                "Use method='cv+' or 'split'."
            )
        known = self._jackknife(sample)
        X = self._check_X(X, reset=False)  # type: ignore[attr-defined]
        centre = self._outputs(self, self._named(X))
        X = sample.seen_from(X, np.arange(sample.n))
        ends = []
        for rows in blocks_of(X.shape[0], sample.n):
            changes = known.jackknife.changes(known.cross_values(X[rows]))
            for t, residuals in enumerate(np.abs(known.jackknife.residuals.T)):
                functions = centre[rows, t][:, None] + changes * known.jackknife.steps[:, t]
                ends.append(plus_interval(functions, residuals, coverage, sample.sample_weight))
        return in_blocks(ends, sample.Y.shape[1])

    # -- models of parts of the sample ------------------------------------------------------------

    def _trained_on(self, rows: np.ndarray, sample: TrainingSample) -> Any:
        """The same regressor fitted to some of the samples, including its kernel weights."""
        model: Any = clone(self)  # type: ignore[arg-type]
        given = getattr(self, "cv", None)
        if given is not None and not isinstance(given, Integral) and not hasattr(given, "split"):
            model.set_params(cv=None)  # explicit splits hold row numbers of the whole sample
        weights = None if sample.sample_weight is None else sample.sample_weight[rows]
        Y = sample.Y[rows]
        y = Y[:, 0] if self._one_output else Y  # type: ignore[attr-defined]
        return model.fit(self._named(sample.part(rows)), y, sample_weight=weights)

    def _held_out_inputs(self, test: np.ndarray, train: np.ndarray, sample: TrainingSample) -> Any:
        """Some samples as new inputs for a model that was trained on others."""
        if sample.has_kernel_values:
            return sample.X[np.ix_(sample.keep[test], sample.keep[train])]
        return self._named(sample.part(test))

    def _folds(self, sample: TrainingSample) -> tuple[list[Any], np.ndarray]:
        """``(train, test, model)`` of every fold, and the held-out residuals (n, t)."""
        if "folds" not in sample.found:
            residuals = np.empty_like(sample.Y)
            models = []
            split = KFold(min(N_FOLDS, sample.n), shuffle=True, random_state=0)
            for train, test in split.split(sample.Y):
                model = self._trained_on(train, sample)
                inputs = self._held_out_inputs(test, train, sample)
                residuals[test] = sample.Y[test] - self._outputs(model, inputs)
                models.append((train, test, model))
            sample.found["folds"] = models, residuals
        known: tuple[list[Any], np.ndarray] = sample.found["folds"]
        return known

    def _cv_interval(
        self, X: Any, coverage: float, sample: TrainingSample
    ) -> tuple[np.ndarray, np.ndarray]:
        models, residuals = self._folds(sample)
        X = self._check_X(X, reset=False)  # type: ignore[attr-defined]
        values = np.empty((len(models), X.shape[0], sample.Y.shape[1]))
        fold = np.empty(sample.n, dtype=int)
        for f, (train, test, model) in enumerate(models):
            values[f] = self._outputs(model, self._named(sample.seen_from(X, train)))
            fold[test] = f
        ends = [
            folds_interval(values[:, :, t], fold, own, coverage, sample.sample_weight)
            for t, own in enumerate(np.abs(residuals.T))
        ]
        return in_blocks(ends, sample.Y.shape[1])

    def _split(self, sample: TrainingSample) -> tuple[np.ndarray, Any, np.ndarray, Any]:
        """The training part, its model, the errors on the other part and the weights there."""
        if "split" not in sample.found:
            order = np.random.default_rng(0).permutation(sample.n)
            size = max(sample.n // 2, sample.n - MAX_SPLIT_SAMPLES)
            train, test = np.sort(order[:size]), np.sort(order[size:])
            model = self._trained_on(train, sample)
            inputs = self._held_out_inputs(test, train, sample)
            errors = np.abs(sample.Y[test] - self._outputs(model, inputs))
            weights = None if sample.sample_weight is None else sample.sample_weight[test]
            sample.found["split"] = train, model, errors, weights
        known: tuple[np.ndarray, Any, np.ndarray, Any] = sample.found["split"]
        return known

    def _split_interval(
        self, X: Any, coverage: float, sample: TrainingSample
    ) -> tuple[np.ndarray, np.ndarray]:
        train, model, errors, weights = self._split(sample)
        X = self._check_X(X, reset=False)  # type: ignore[attr-defined]
        centre = self._outputs(model, self._named(sample.seen_from(X, train)))
        radius = np.array([split_radius(column, coverage, weights) for column in errors.T])
        return centre - radius, centre + radius


@dataclass(frozen=True)
class KernelDiagonal:
    """``K(x, x)`` of the learned kernel at new samples, from the kernels as built.

    Attributes
    ----------
    weights : array of shape (p,)
        Kernel weights times the factors of normalisation.
    means : Expansion or None
        The mean of ``K(x, x_i)`` over the training sample, if kernels are centred.
    grand_mean : float
    constant : float or None
        The value of a spherical kernel, which is the same for all samples.
    """

    weights: np.ndarray
    means: Expansion | None
    grand_mean: float
    constant: float | None

    @classmethod
    def of(cls, grams: Grams, corrected: Grams, kernel_weights: np.ndarray) -> KernelDiagonal:
        """From the kernels as built, and as centred and normalised."""
        if corrected.how == "spherical":
            used = np.where(corrected.degenerate, 0.0, kernel_weights)
            return cls(kernel_weights, None, 0.0, float(used.sum()))
        weights = kernel_weights * corrected.scales
        if not corrected.center:
            return cls(weights, None, 0.0, None)
        omega = np.ones(grams.n) if grams.sample_weight is None else grams.sample_weight
        share = omega / omega.sum()
        plain = grams.corrected(False, None)
        grand_mean = float(share @ plain.combine(weights).matvec(share))
        return cls(weights, plain.expand(weights, share[:, None]), grand_mean, None)

    def values(self, new: Grams, X: Any) -> np.ndarray:
        """The values at new samples X; ``new`` holds the kernels as built on them."""
        if self.constant is not None:
            return np.full(new.n, self.constant)
        own = self.weights @ new.diagonals()
        if self.means is None:
            return np.asarray(own)
        return np.asarray(
            own - 2.0 * self.means.values(self.means.encode(X))[:, 0] + self.grand_mean
        )


@dataclass(frozen=True)
class ClosedForm:
    """The functions without each sample, and the kernel at new samples."""

    jackknife: Jackknife
    cross: Expansion
    diagonal: KernelDiagonal

    def cross_values(self, X: Any) -> np.ndarray:
        """``K(x, x_i)`` at new samples, shape (m, n)."""
        return self.cross.values(self.cross.encode(X))


def absent_columns(bank: Any, X: Any) -> np.ndarray | None:
    """Mask (n, d) of column sets of kernels that a new sample lacks entirely; None if empty."""
    groups = column_groups(bank)
    if not groups or not isinstance(X, np.ndarray):
        return None
    gaps = np.isnan(X)
    out = np.zeros(X.shape, dtype=bool)
    for group in groups:
        out[np.ix_(gaps[:, group].all(axis=1), group)] = True
    return out if out.any() else None


def absent_groups(bank: Any, columns: np.ndarray) -> list[np.ndarray]:
    """The column sets of kernels that are marked completely in ``columns``, smallest first."""
    return [group for group in column_groups(bank) if columns[group].all()]


def column_groups(bank: Any) -> list[np.ndarray]:
    """The distinct column sets of kernels that accept missing values, smallest first."""
    if bank is None:
        return []
    read = {kernel.columns for kernel in bank.entries if isinstance(kernel, Observed)}
    return [np.array(columns) for columns in sorted(read, key=len)]


def blocks_of(n_new: int, n: int) -> list[slice]:
    """Blocks of new samples with at most BLOCK_ENTRIES kernel values each."""
    size = max(1, BLOCK_ENTRIES // max(n, 1))
    return [slice(i, min(i + size, n_new)) for i in range(0, n_new, size)]


def in_blocks(
    ends: list[tuple[np.ndarray, np.ndarray]], n_outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends, shape (m, t), from a list over blocks and, inside these, outputs."""
    if not ends:
        return np.empty((0, n_outputs)), np.empty((0, n_outputs))
    sides = []
    for side in (0, 1):
        columns = [
            np.concatenate([end[side] for end in ends[t::n_outputs]]) for t in range(n_outputs)
        ]
        sides.append(np.column_stack(columns))
    return sides[0], sides[1]


def check_coverage(coverage: Any) -> float:
    """The coverage as a float, which must be above 0 and below 1."""
    is_number = isinstance(coverage, Real) and not isinstance(coverage, (bool, np.bool_))
    if not is_number or not 0.0 < float(coverage) < 1.0:
        raise ValueError(
            "coverage is the probability that an interval contains the output: a number above 0 "
            f"and below 1, such as 0.9. Got {coverage!r}."
        )
    return float(coverage)
