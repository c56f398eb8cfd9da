"""Missing values in X: errors that say where they are, or kernels that accept them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import StrOptions

from ..kernels.bank import KernelBank, as_bank, view_of
from ..kernels.base import Kernel
from ..kernels.completed import complete
from ..kernels.default_bank import default_bank
from ..kernels.observed import Observed, column_means, columns_read, name_columns, observe
from ..weighting import LeaveOneOut, LpNorm, ObservedMargins, Uniform, Weighting
from .codes import is_frame
from .frames import FrameMixin

#: Allowed values of the parameter ``missing``; only classifiers have margins, for ``"absent"``.
MISSING = StrOptions({"error", "ignore", "complete"})
MISSING_OR_ABSENT = StrOptions({"error", "ignore", "complete", "absent"})
#: Maximum number of rows or views that a message lists.
MAX_NAMED = 5


class MissingMixin(FrameMixin):
    """Mixin: the parameter ``missing``, and which kernels and views training samples had."""

    kernels: Any
    bank_: Any
    #: estimators without the parameter refuse NaN
    missing: str = "error"
    _bank_kind: str
    presence_: np.ndarray

    @property
    def _is_precomputed(self) -> bool:
        raise NotImplementedError

    @property
    def _ignores_missing(self) -> bool:
        return self.missing != "error"

    @property
    def view_presence_(self) -> dict[str, float]:
        """Share of the training samples that have each view, by name.

        A kernel that belongs to no view of :func:`multikernel.per_view`, or whose view has kernels
        on other columns, is listed under its own name.
        """
        if "presence_" not in self.__dict__:
            raise AttributeError(
                f"This {type(self).__name__} has no view_presence_: fit with missing='ignore' sets "
                "it."
            )
        return self._by_view(self.presence_)

    @property
    def view_completion_(self) -> dict[str, float]:
        """How well the other views predict each view that samples lack, with
        ``missing="complete"``.

        The share of the variance of the view's kernel that the other views predict in training
        samples that have it, by leave-one-out: 1 is all of it, 0 none; a negative number means that
        the mean of the other samples would have been better.
        """
        if self.missing != "complete" or "presence_" not in self.__dict__:
            raise AttributeError(
                f"This {type(self).__name__} has no view_completion_: fit with missing='complete' "
                "sets it."
            )
        known = [getattr(kernel, "completion", None) for kernel in self.bank_]
        scores = np.array([np.nan if one is None else one.explained for one in known])
        return {view: score for view, score in self._by_view(scores).items() if score == score}

    def _by_view(self, values: np.ndarray) -> dict[str, float]:
        return dict(zip(self._presence_names(), map(float, values), strict=True))

    def _presence_names(self) -> list[str]:
        """The view of every kernel; its own name if it has none, or one with several columns."""
        names = self.bank_.names
        views = [
            getattr(kernel, "view", None) or view_of(name) or name
            for kernel, name in zip(self.bank_, names, strict=True)
        ]
        read: dict[str, set[Any]] = {view: set() for view in views}
        for kernel, view in zip(self.bank_, views, strict=True):
            read[view].add(kernel.columns if isinstance(kernel, Observed) else None)
        return [
            view if len(read[view]) == 1 else name for view, name in zip(views, names, strict=True)
        ]

    def _rule_for_samples(self, rule: Weighting, has: np.ndarray | None) -> Weighting:
        """The rule for samples that have the kernels in ``has``, shape (p, n).

        ``has`` is None unless ``missing="absent"``.
        """
        if has is None:
            return rule
        given = {name: vars(self)[name] for name in ("loss", "C") if name in vars(self)}
        if given["loss"] != "hinge" or isinstance(given.get("C"), str):
            said = ", ".join(f"{name}={value!r}" for name, value in given.items())
            raise ValueError(
                "missing='absent' measures margins: it needs loss='hinge' and a number for C; got "
                f"{said}. Use missing='ignore' with other losses."
            )
        if isinstance(rule, ObservedMargins):
            return rule.for_samples(has)
        if isinstance(rule, LpNorm) and 1 < rule.p <= 2 and rule.squared:
            return ObservedMargins(p=rule.p, tol=rule.tol, max_iter=rule.max_iter).for_samples(has)
        if isinstance(rule, (LeaveOneOut, Uniform)):
            return ObservedMargins().for_samples(has)
        raise ValueError(
            "missing='absent' learns weights and predictor together: weighting must be "
            "mk.ObservedMargins(margin, p=...), mk.LpNorm with p above 1 and at most 2, or "
            f"'uniform' for p = 2; got {rule!r}. Use missing='ignore' with other rules."
        )

    def _pop_has_kernels(self) -> np.ndarray | None:
        """Remove and return the mask (p, n) of present samples; None without ``"absent"``."""
        has: np.ndarray | None = self.__dict__.pop("_has_kernels", None)
        return has

    def _refuse_lost_columns(self, X: Any) -> None:
        """Refuse a new frame without columns of the training sample, and say how to add them."""
        names = getattr(self, "feature_names_in_", None)
        if not self._ignores_missing or names is None or not is_frame(X):
            return
        lost = [j for j, name in enumerate(names) if name not in X.columns]
        if lost:
            raise ValueError(
                f"X lacks {_count(len(lost), 'column')} of the sample that "
                f"{type(self).__name__} was fitted to ({name_columns(lost, names)}). If no new "
                "sample has these values, add them as NaN: "
                "X.reindex(columns=model.feature_names_in_)."
            )

    def _check_missing(self, X: Any) -> None:
        """Refuse NaN in X, or an X in which it cannot be ignored."""
        if not self._ignores_missing:
            refuse_missing(self, X)
        elif sp.issparse(X):
            raise ValueError(
                f"missing={self.missing!r} needs a dense X, in which NaN marks missing values; got "
                "a sparse one. Use X.toarray(), or missing='error'."
            )

    def _observe(
        self, X: np.ndarray, keep: np.ndarray, sample_weight: np.ndarray | None
    ) -> tuple[KernelBank, np.ndarray]:
        """The bank for a sample with missing values, and the sample with all of them filled in.

        ``keep`` holds the row numbers in the X that was given to fit, for error messages.
        """
        omega = np.ones(len(X)) if sample_weight is None else sample_weight
        fill = self._fill_codes(column_means(X, omega))
        filled = np.where(np.isnan(X), fill.astype(X.dtype), X)
        if self.kernels is None and self._is_coded:
            bank = self.codes_.bank()
        elif self.kernels is None:
            bank = default_bank(filled, kind=self._bank_kind, sample_weight=sample_weight)
        else:
            bank = as_bank(self.kernels)
        names = getattr(self, "feature_names_in_", None)
        bank, absent = observe(bank, X, sample_weight, names, fill)
        without = np.flatnonzero(absent.all(axis=0))
        if len(without):
            raise ValueError(
                f"{type(self).__name__}: {_count(len(without), 'sample')} of X without any view: "
                f"all columns that the kernels read are NaN in row{'s' * (len(without) > 1)} "
                f"{_some(keep[without])}. Drop these samples."
            )
        if self.missing == "complete":
            bank = complete(bank, X, absent, sample_weight)
        if self.missing == "absent":
            self._has_kernels = ~absent  # for the rule, which takes it by _pop_has_kernels
        self.presence_ = (~absent) @ omega / omega.sum()
        return bank, filled


def refuse_missing(estimator: Any, X: Any) -> None:
    """Raise an error that names columns, views and rows with NaN; do nothing if there is none."""
    if sp.issparse(X):
        if not np.isnan(X.data).any():
            return
        entries = X.tocoo()
        bad = np.isnan(entries.data)
        rows, columns = entries.row[bad], entries.col[bad]
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isnan(X.sum()):
                return
        rows, columns = np.nonzero(np.isnan(X))
        if not len(rows):
            return
    which = np.unique(columns)
    names = getattr(estimator, "feature_names_in_", None)
    owner = type(estimator).__name__
    message = (
        f"Input X contains NaN: {_count(len(rows), 'missing value')} in "
        f"{_count(len(which), 'column')} ({name_columns(which.tolist(), names)}), first in row"
        f"{'s' * (len(np.unique(rows)) > 1)} {_some(np.unique(rows))}."
    )
    if not sp.issparse(X):
        message += _views_with_gaps(estimator, X, names)
    params = estimator.get_params(deep=False)
    advice = "Fill them in, for example with make_pipeline(SimpleImputer(), ...)."
    if "missing" in params or "estimator" in params:
        way = "missing='ignore'"
        if "missing" not in params:
            way = f"{owner}(estimator) with an estimator that has {way}"
        advice = (
            f"Use {way}, so that each sample contributes through the kernels whose columns it has; "
            f"or fill the values in with make_pipeline(SimpleImputer(), {owner}(...))."
        )
    raise ValueError(f"{message} {advice}")


def _views_with_gaps(estimator: Any, X: np.ndarray, names: Sequence[str] | None) -> str:
    """A sentence that lists the views with missing values, with numbers of samples."""
    kernels = getattr(estimator, "kernels", None)
    if not isinstance(kernels, KernelBank) or kernels._names is None:
        return ""
    views: dict[str, Any] = {}
    for entry, name in zip(kernels.entries, kernels._names, strict=True):
        view = view_of(name)
        if view and view not in views and isinstance(entry, Kernel):
            views[view] = entry
    found = []
    for view, kernel in views.items():
        placed = kernel.resolve(X.shape[1], None if names is None else list(names))
        gaps = np.isnan(X[:, sorted(columns_read(placed, X.shape[1]))])
        if gaps.any():
            lost, some = gaps.all(axis=1).sum(), gaps.any(axis=1).sum()
            found.append(f"{view!r} ({_count(some, 'sample')}, {lost} of them without any value)")
    if not found:
        return ""
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return f" Incomplete views: {', '.join(found[:MAX_NAMED])}{more}."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _some(rows: np.ndarray) -> str:
    return ", ".join(map(str, rows[:MAX_NAMED].tolist())) + (
        ", ..." if len(rows) > MAX_NAMED else ""
    )
