"""Does alignment show which kernels predict well? A study for any bank of kernels.

Cortes, Mohri & Rostamizadeh 2012, Table 1 and Figure 2 (Rostamizadeh 2010, Table 2.1): the
alignment of each base kernel with the target against the accuracy of a model trained on it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from .estimators.classifier import MultiKernelClassifier
from .estimators.folds import kept_splits
from .estimators.grid_search import check_grid
from .estimators.regressor import MultiKernelRegressor
from .grams.protocol import Grams
from .learners.base import Learner
from .problem import Target
from .solvers.ensemble.hypotheses import train_each, values_of_each
from .solvers.joint.learn import refuse_constant_kernels
from .weighting.uniform import folds


@dataclass(frozen=True, repr=False)
class AlignmentStudy:
    """Alignment and accuracy of every kernel of a bank; printing it shows a table.

    Attributes
    ----------
    names : tuple of str
    centered : array of shape (p,)
        Centred alignment with the target, the mean over the training parts.
    uncentered : array of shape (p,)
        The same without centring (Cristianini et al.).
    scores : array of shape (p,)
        Accuracy, or ``1 - RMSE``, on held-out samples: the mean over the folds.
    deviations : array of shape (p,)
        Standard deviation of the scores over the folds.
    task : {"classification", "regression"}
    """

    names: tuple[str, ...]
    centered: np.ndarray
    uncentered: np.ndarray
    scores: np.ndarray
    deviations: np.ndarray
    task: str

    @property
    def correlation(self) -> float:
        """Pearson correlation of centred alignment and score; NaN where either is constant."""
        return _correlation(self.centered, self.scores)

    @property
    def correlation_uncentered(self) -> float:
        """Pearson correlation of uncentred alignment and score."""
        return _correlation(self.uncentered, self.scores)

    @property
    def rank_correlation(self) -> float:
        """Spearman correlation of centred alignment and score."""
        return _correlation(rankdata(self.centered), rankdata(self.scores))

    @property
    def rank_correlation_uncentered(self) -> float:
        """Spearman correlation of uncentred alignment and score."""
        return _correlation(rankdata(self.uncentered), rankdata(self.scores))

    @property
    def measure(self) -> str:
        return "accuracy" if self.task == "classification" else "1 - RMSE"

    def table(self) -> list[dict[str, Any]]:
        """One row per kernel, ready for a DataFrame."""
        columns = zip(
            self.names, self.centered, self.uncentered, self.scores, self.deviations, strict=True
        )
        keys = ("kernel", "centered", "uncentered", "score", "deviation")
        return [dict(zip(keys, (n, *map(float, rest)), strict=True)) for n, *rest in columns]

    def __str__(self) -> str:
        width = max(len("correlation"), *map(len, self.names))
        lines = [f"{'kernel':<{width}}  centred  uncentred  {self.measure}"]
        for row in self.table():
            lines.append(
                f"{row['kernel']:<{width}}  {row['centered']:7.4f}  {row['uncentered']:9.4f}  "
                f"{row['score']:.4f} ± {row['deviation']:.4f}"
            )
        for label, one, two in (
            ("correlation", self.correlation, self.correlation_uncentered),
            ("of ranks", self.rank_correlation, self.rank_correlation_uncentered),
        ):
            lines.append(f"{label:<{width}}  {_shown(one):>7}  {_shown(two):>9}")
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Score against alignment, centred and uncentred.

        Parameters
        ----------
        ax : matplotlib axes or None
            None creates a figure.

        Returns
        -------
        matplotlib axes
        """
        from .bounds.bound_factor import axes

        ax = axes(ax)
        for kind, values, correlation, marker in (
            ("centred", self.centered, self.correlation, "o"),
            ("uncentred", self.uncentered, self.correlation_uncentered, "^"),
        ):
            label = f"{kind}, correlation {_shown(correlation)}"
            ax.errorbar(values, self.scores, self.deviations, fmt=marker, capsize=2, label=label)
        ax.set_xlabel("alignment with the target")
        ax.set_ylabel(self.measure)
        ax.legend()
        return ax


def alignment_study(
    bank: Any,
    X: Any,
    y: Any,
    *,
    task: str | None = None,
    grid: Any = 1.0,
    learner: Callable[[float], Learner] | None = None,
    cv: Any = None,
    normalize: str | None = "multiplicative",
    n_jobs: int | None = None,
    random_state: int | None = 0,
) -> AlignmentStudy:
    """Compare the alignment of each kernel with the target to the accuracy it reaches alone.

    Parameters
    ----------
    bank : KernelBank, list of kernels, "precomputed" or None
        As ``kernels`` of :class:`MultiKernelClassifier`; at least two kernels.
    X, y
        The sample. With more than two classes there is one classifier per class against the rest.
    task : {"classification", "regression"} or None, default=None
        None treats whole numbers and text as classes. ``"regression"`` also accepts two classes
        coded as numbers.
    grid : float or sequence of float, default=1.0
        C of the support vector machine, or the ridge penalty of the regression. With several values
        the best is chosen for each kernel and fold on the samples that the *next* fold holds out,
        which are then not used for training: of five folds, three for training, one for choosing
        and one for scoring, as in the paper.
    learner : callable or None, default=None
        A function that makes a learner from a value of the grid; None for
        :class:`multikernel.learners.SVM` or :class:`multikernel.learners.Ridge`.
    cv : int, splitter or iterable of splits, default=None
        None for 5 folds, stratified for classes, shuffled by ``random_state``.
    normalize : {"multiplicative", "trace", "trace-first", "spherical", "frobenius"} or None
        For the predictors, whose kernels are centred. Alignments do not depend on it, except that
        ``"spherical"`` changes centred (not uncentred) alignments.
    n_jobs : int or None, default=None
        Threads for passes over the kernels.
    random_state : int or None, default=0

    Returns
    -------
    AlignmentStudy

    Examples
    --------
    >>> import multikernel as mk
    >>> from multikernel.study import alignment_study
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> study = alignment_study(mk.gaussians([0.01, 0.1, 1.0, 10.0, 100.0]), X, y)
    >>> print(study)
    kernel                centred  uncentred  accuracy
    Gaussian(gamma=0.01)   0.6823     0.2270  0.9600 ± 0.0249
    Gaussian(gamma=0.1)    0.7655     0.5110  0.9600 ± 0.0249
    Gaussian(gamma=1)      0.7401     0.6783  0.9667 ± 0.0298
    Gaussian(gamma=10)     0.3352     0.3547  0.9533 ± 0.0340
    Gaussian(gamma=100)    0.1392     0.1535  0.6200 ± 0.0748
    correlation            0.8008     0.6239
    of ranks               0.8208     0.8208
    """
    classify = is_classification(task, y)
    maker = MultiKernelClassifier if classify else MultiKernelRegressor
    model: Any = maker(bank, normalize=normalize, n_jobs=n_jobs)
    if classify:
        X, y = model._check_X(X, y, reset=True)
        check_classification_targets(y)
    else:
        X, y = model._check_X(X, y, reset=True, multi_output=True, y_numeric=True)
    everyone = np.arange(X.shape[0])
    encode = model._encode_labels if classify else model._encode_outputs
    target = encode(y, everyone, None)
    raw = model._make_grams(X, everyone, None)
    if raw.p < 2:
        raise ValueError(f"A correlation needs at least 2 kernels; the bank has {raw.p}.")
    values = check_grid("grid", [grid] if np.isscalar(grid) else grid)
    if learner is None:

        def learner(value: float) -> Learner:
            return model._make_learner(value, raw) if classify else model._make_learner(value)

    grams = raw.stored(True)
    refuse_constant_kernels(grams.corrected(True, normalize), warn=False)
    if cv is None:
        splits = folds(target, 5, random_state)
    else:
        splits = kept_splits(cv, y, everyone, classifier=classify)
    learners = [learner(value) for value in values]
    results = []
    for fold, (train, test) in enumerate(splits):
        choosing = test
        if len(learners) > 1:
            choosing = np.intersect1d(train, splits[(fold + 1) % len(splits)][1])
            train = np.setdiff1d(train, choosing)
            if not len(choosing) or not len(train):
                raise ValueError(
                    f"Fold {fold}: the next fold leaves no samples to choose among the "
                    f"{len(values)} values of grid. Use at least 3 disjoint test folds, or a "
                    "single value."
                )
        part = grams.take(train).corrected(True, normalize)
        plain = raw.take(train).corrected(False, "frobenius")
        results.append(
            (
                part.summary(target.Y[train], products=False).alignments,
                _uncentred_alignments(plain, target.Y[train]),
                _scores(part, target, learners, grams, train, choosing, test),
            )
        )
    centred, uncentred, scores = (np.array(each) for each in zip(*results, strict=True))
    return AlignmentStudy(
        tuple(raw.names),
        centred.mean(axis=0),
        uncentred.mean(axis=0),
        scores.mean(axis=0),
        scores.std(axis=0),
        target.kind,
    )


def is_classification(task: str | None, y: Any) -> bool:
    """Whether the task is classification, by ``task`` or else by the type of the targets."""
    if task not in (None, "classification", "regression"):
        raise ValueError(f"task must be 'classification', 'regression' or None; got {task!r}.")
    return task == "classification" or (
        task is None and not type_of_target(y).startswith("continuous")
    )


def _uncentred_alignments(unit: Grams, Y: np.ndarray) -> np.ndarray:
    """``<K, Y Y'> / (||K|| ||Y Y'||)`` of kernels of unit Frobenius norm."""
    return unit.quadratic_forms(Y).sum(axis=1) / float(np.linalg.norm(Y.T @ Y))


def _scores(
    part: Grams,
    target: Target,
    learners: Sequence[Learner],
    grams: Grams,
    train: np.ndarray,
    choosing: np.ndarray,
    test: np.ndarray,
) -> np.ndarray:
    """Test score of every kernel, with the learner that is best on the ``choosing`` samples."""
    known, seen, held = target.take(train), target.take(choosing), target.take(test)
    best, scores = np.full(part.p, -np.inf), np.zeros(part.p)
    for learner in learners:
        machines = train_each(part, known, learner)
        V = values_of_each(part, machines, grams.points(choosing))
        H = V if choosing is test else values_of_each(part, machines, grams.points(test))
        for k in range(part.p):
            chosen = _score(seen, V[:, k])
            if chosen > best[k]:
                best[k], scores[k] = chosen, _score(held, H[:, k])
    return scores


def _score(target: Target, values: np.ndarray) -> float:
    score = target.score(values)
    return score if target.kind == "classification" else 1.0 - float(np.sqrt(-score))


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson correlation; NaN, without a warning, if either is constant."""
    a, b = a - a.mean(), b - b.mean()
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 1e-15 else float("nan")


def _shown(correlation: float) -> str:
    return "none" if np.isnan(correlation) else f"{correlation:.4f}"
