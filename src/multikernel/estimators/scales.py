"""Banks of kernels on columns that are rescaled by scales learned from the targets."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array, check_consistent_length

from .._sample_weight import check_sample_weight
from ..grams.memory import MemoryBudget
from ..kernels.bank import KernelBank, as_bank
from ..kernels.learned_scales import LearnedScales
from ..problem import Target
from ..solvers.column_scales import learn_bank

logger = logging.getLogger("multikernel")
#: Whole numbers are treated as classes if there are at most this many distinct ones.
MAX_CLASSES = 20
TASKS = ("auto", "classification", "regression")
#: By default, column scales are learned only from at least this many samples.
MIN_DEFAULT_SAMPLES = 400
#: By default, column scales are learned for at most this many columns: more take longer and gain
#: less.
MAX_DEFAULT_COLUMNS = 100


def learned_scales(
    X: Any = None,
    y: Any = None,
    kernels: Any = None,
    *,
    rounds: int = 2,
    keep: str = "last",
    validate: bool = True,
    task: str = "auto",
    sample_weight: Any = None,
    max_samples: int = 600,
    random_state: Any = 0,
    verbose: int = 0,
) -> KernelBank:
    """Kernels on columns scaled by how much the targets depend on them.

    Distances between samples weight all columns equally, including irrelevant ones. Each round fits
    ridge regression, measures how much the fitted function changes with each column (the root of
    its mean squared derivative over the training samples), and multiplies the columns by that
    number. The kernels of the last round are in the bank beside those of round 0, on the columns as
    given; ``weighting="loo"`` chooses among them.

    Scales learned from the targets may overfit them. Unless ``validate`` is False, the rescaled
    kernels are kept only if they reduce the squared error on samples that took no part in choosing
    the scales, by more than half a standard error. Otherwise the bank holds only the kernels of
    round 0. You can see this in ``bank.names``: names of rescaled kernels end with "learned
    scales".

    ``MultiKernelClassifier()`` and ``MultiKernelRegressor()`` do this by default, for dense tables
    of at least 400 samples and at most 100 columns.

    Without X and y the scales are learned in ``fit`` of :class:`MultiKernelClassifier` or
    :class:`MultiKernelRegressor`, from the training sample of that fit. This is the form for
    cross-validation and grid search: scores on test samples are too optimistic if their targets
    were used to make the bank.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features), optional
    y : array of shape (n_samples,) or (n_samples, n_outputs), optional
        Classes or outputs. Several outputs or classes share the scales.
    kernels : KernelBank, list of kernels or None, default=None
        The kernels of round 0; None takes ``default_bank(X, kind="tables")``. Gaussians,
        Laplacians, exponentials and Matern kernels are repeated in later rounds, with the same
        widths in medians of the distances; others are in the bank once.
    rounds : int, default=2
        How often scales are learned.
    keep : {"last", "all"}, default="last"
        The rounds whose kernels are kept beside those of round 0.
    validate : bool, default=True
        Whether to return to round 0 if rescaled kernels do not predict better.
    task : {"auto", "classification", "regression"}, default="auto"
        The kind of target. ``"auto"`` treats strings, booleans and up to 20 distinct whole numbers
        as classes. Not needed inside an estimator, which knows its task.
    sample_weight : array of shape (n_samples,), optional
        How often each sample counts.
    max_samples : int, default=600
        Scales are learned from at most this many samples, chosen at random, and validated on at
        most 500.
    random_state : int or None, default=0
        Seed for these samples and for folds.
    verbose : int, default=0
        With 1, print the result of the validation; it is always logged.

    Returns
    -------
    KernelBank

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 10))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2  # eight columns say nothing
    >>> bank = mk.learned_scales(X, y, mk.at_distances(mk.Gaussian(), [0.5, 1.0]))
    >>> len(bank), bank.names[-1].split(", ")[-1]
    (4, 'learned scales')
    >>> model = mk.MultiKernelRegressor(mk.learned_scales(), weighting="loo")  # learns in fit
    """
    if task not in TASKS:
        raise ValueError(f"learned_scales: task must be one of {TASKS}; got {task!r}.")
    base = None if kernels is None else as_bank(kernels)
    how = LearnedScales(base, rounds, validate, max_samples, random_state, keep)
    if X is None and y is None:
        if sample_weight is not None:
            raise ValueError(
                "learned_scales: sample_weight needs X and y. Without them, pass sample_weight to "
                "fit."
            )
        return KernelBank([how])
    if X is None or y is None:
        raise ValueError(
            "learned_scales needs both X and y, or neither: without them the scales are learned "
            "in fit."
        )
    names = [str(name) for name in X.columns] if hasattr(X, "iloc") else None
    X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
    check_consistent_length(X, y)
    weights = None
    if sample_weight is not None:
        weights = check_sample_weight(sample_weight, X)
        counted = np.flatnonzero(weights > 0)
        X, y, weights = X[counted], np.asarray(y)[counted], weights[counted]
    learned = learn_bank(how, X, make_target(y, task, weights), feature_names=names)
    say(str(learned), verbose)
    return learned.bank


def make_target(y: Any, task: str, sample_weight: np.ndarray | None) -> Target:
    """Targets as labels -1 and +1, one column per class if there are more than two, or outputs."""
    y = np.asarray(y)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim not in (1, 2):
        raise ValueError(
            f"learned_scales: y must have shape (n_samples,) or (n_samples, n_outputs); got "
            f"{y.shape}."
        )
    if y.dtype.kind not in "fiub" and (task == "regression" or y.ndim == 2):
        raise ValueError(f"learned_scales: outputs must be numbers; got y of type {y.dtype}.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("learned_scales: y holds NaN or infinite values. Leave these samples out.")
    if task == "auto":
        task = "classification" if y.ndim == 1 and _are_classes(y) else "regression"
    if np.all(y == y[0]):
        raise ValueError(f"learned_scales: y is constant ({y[0]}): there is nothing to learn.")
    if task == "classification":
        if y.ndim == 2:
            raise ValueError(f"learned_scales: labels must be a vector; got y of shape {y.shape}.")
        classes, codes = np.unique(y, return_inverse=True)
        codes = codes[:, None] == (np.arange(len(classes)) if len(classes) > 2 else [1])
        return Target(np.where(codes, 1.0, -1.0), "classification", sample_weight)
    return Target(y.astype(np.float64).reshape(len(y), -1), "regression", sample_weight)


def _are_classes(y: np.ndarray) -> bool:
    if y.dtype.kind not in "fiu":
        return True
    values = np.unique(y)
    return len(values) <= MAX_CLASSES and bool(np.all(values == np.round(values)))


def learn_in_fit(
    bank: KernelBank,
    X: Any,
    target: Target,
    *,
    feature_names: Sequence[str] | None,
    budget: MemoryBudget,
    n_jobs: int,
) -> tuple[KernelBank, list[str]]:
    """The bank with its `LearnedScales` replaced by kernels, and messages on the validation."""
    parts, said = [], []
    for entry, name in zip(bank.entries, bank._entry_names(), strict=True):
        if not isinstance(entry, LearnedScales):
            parts.append(KernelBank([entry], None if bank._names is None else [name]))
            continue
        learned = learn_bank(
            entry, X, target, feature_names=feature_names, budget=budget, n_jobs=n_jobs
        )
        parts.append(learned.bank)
        said.append(str(learned))
    return reduce(add, parts), said


def scales_by_default(X: Any) -> bool:
    """Whether column scales are learned for this table when no kernels are given."""
    n, d = X.shape
    return (
        not sp.issparse(X)
        and n >= MIN_DEFAULT_SAMPLES
        and 1 < d <= MAX_DEFAULT_COLUMNS
        and bool(np.any(X.max(axis=0) > X.min(axis=0)))
    )


def say(message: str, verbose: int) -> None:
    logger.info(message)
    if verbose:
        print(message)
