"""Kernel weights of a fitted model by name, group and view, for tables and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..kernels.bank import view_of
from ..weighting.structured_norms import group_labels

#: The name that `group_weights` gives to kernels that are in no group.
OTHERS = "(others)"


def is_weighted(estimator: Any) -> bool:
    """Whether a fit has set kernel weights, or terms whose coefficients add up by kernel."""
    return hasattr(estimator, "kernel_weights_") or hasattr(estimator, "terms_")


@dataclass(frozen=True)
class Weights:
    """The weights that a fitted model gives to its kernels.

    Attributes
    ----------
    names : list of str
    values : array of shape (t, p)
        One row, or one per class or output if each has its own weights.
    machines : list of str
        Names of the classes or outputs of the rows; empty if there is one row.
    what : str
        Name of the numbers in captions.
    """

    names: list[str]
    values: np.ndarray
    machines: list[str]
    what: str

    @property
    def mean(self) -> np.ndarray:
        """Mean weights over classes or outputs, shape (p,)."""
        return self.values.mean(axis=0)

    @property
    def shares(self) -> np.ndarray:
        """Absolute mean weights divided by their sum; zeros if all weights are zero."""
        sizes = np.abs(self.mean)
        total = sizes.sum()
        return sizes / total if total > 0 else sizes

    @property
    def n_used(self) -> int:
        return int(np.count_nonzero(np.any(self.values != 0, axis=0)))

    @property
    def effective(self) -> float:
        """Effective number of kernels, ``1 / sum share^2``; k for k equal weights."""
        squares = float(np.sum(self.shares**2))
        return 1.0 / squares if squares > 0 else 0.0

    @property
    def order(self) -> np.ndarray:
        """Kernels by falling weight; equal ones stay in the bank's order."""
        # Weights that differ only by rounding error count as equal.
        return np.argsort(-np.round(self.shares, 9), kind="stable")

    @property
    def views(self) -> dict[str, float]:
        """The share of every view, largest first; empty if no kernel belongs to a view."""
        if not self.has_views:
            return {}
        parts: dict[str, float] = {}
        for name, share in zip(self.names, self.shares, strict=True):
            view = view_of(name) or "(no view)"
            parts[view] = parts.get(view, 0.0) + float(share)
        return dict(sorted(parts.items(), key=lambda item: -item[1]))

    @property
    def has_views(self) -> bool:
        return any(view_of(name) for name in self.names)

    @property
    def machine_views(self) -> dict[str, np.ndarray]:
        """The share of every view for each class or output, (t,); other kernels by name."""
        sizes = np.abs(self.values)
        total = sizes.sum(axis=1, keepdims=True)
        shares = np.divide(sizes, total, out=np.zeros_like(sizes), where=total > 0)
        parts: dict[str, np.ndarray] = {}
        for name, share in zip(self.names, shares.T, strict=True):
            view = view_of(name) or name
            parts[view] = parts.get(view, 0.0) + share
        return parts

    @classmethod
    def of(cls, estimator: Any) -> Weights:
        names = getattr(estimator, "kernel_names_", None)
        if names is None or not is_weighted(estimator):
            raise TypeError(
                "A fitted multiple-kernel estimator is needed, such as "
                f"mk.MultiKernelClassifier().fit(X, y); got {type(estimator).__name__}"
                + (" that is not fitted." if hasattr(estimator, "fit") and names is None else ".")
            )
        if hasattr(estimator, "terms_"):
            # A vote has a coefficient per (kernel, sample): add up absolute values per kernel.
            terms = estimator.terms_
            sizes = np.bincount(terms["kernel"], np.abs(terms["coef"]), minlength=len(names))
            return cls(list(names), sizes[None, :], [], "sum of absolute coefficients")
        values = np.asarray(estimator.kernel_weights_, dtype=np.float64)
        machines: list[str] = []
        if values.ndim == 2:
            classes = getattr(estimator, "classes_", range(len(values)))
            machines = [str(label) for label in classes]
        return cls(list(names), np.atleast_2d(values), machines, "weight")


class ViewWeights:
    """Mixin: ``view_weights_`` and ``group_weights`` of fitted models."""

    def group_weights(
        self, groups: Mapping[str, Any] | None = None, *, share: bool = True
    ) -> dict[str, Any]:
        """Kernel weights added up by groups of kernels.

        Parameters
        ----------
        groups : mapping of name to kernels, optional
            The kernels of a group: names, patterns of names such as ``"*Gaussian*"``, numbers, or
            a list of these. Kernels in none of the groups are listed as ``"(others)"``. Without
            it, the groups of a :class:`multikernel.HierarchicalNorm`, if the weights were learned
            with one, else the views of :func:`multikernel.per_view`.
        share : bool, default=True
            Whether to return shares, which sum to one, or sums of weights.

        Returns
        -------
        dict of str to float
            Arrays of shape (n_classes,) if every class has separate weights.

        Examples
        --------
        >>> import multikernel as mk
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = mk.MultiKernelClassifier(weighting="uniform").fit(X, y)
        >>> shares = model.group_weights({"smooth": "Gaussian*", "linear": "Linear*"})
        >>> {name: round(value, 2) for name, value in shares.items()}
        {'smooth': 0.23, 'linear': 0.08, '(others)': 0.69}
        """
        check_is_fitted(self)
        if not is_weighted(self):
            raise AttributeError(f"{type(self).__name__} does not weight kernels.")
        weights = Weights.of(self)
        sizes = np.abs(weights.values)
        if share:
            total = sizes.sum(axis=1, keepdims=True)
            sizes = np.divide(sizes, total, out=np.zeros_like(sizes), where=total > 0)
        labels = self._group_labels(groups, weights)
        sums: dict[str, np.ndarray] = {name: np.zeros(len(sizes)) for name in labels if name}
        for label, column in zip(labels, sizes.T, strict=True):
            sums[label] = sums[label] + column
        if groups is not None:  # in the order of ``groups``
            ordered = [str(name) for name in groups]
            sums = {name: sums.get(name, np.zeros(len(sizes))) for name in ordered} | sums
        return {
            name: value if weights.machines else float(value[0]) for name, value in sums.items()
        }

    def _group_labels(self, groups: Mapping[str, Any] | None, weights: Weights) -> list[str]:
        """The group of every kernel."""
        names = weights.names
        if groups is not None:
            return labels_of(groups, names)
        rule: Any = getattr(self, "weighting_", None) or getattr(self, "weighting", None)
        given = getattr(rule, "groups", None)
        if given is not None:
            numbers = group_labels(given, len(names))
            listed = all(isinstance(one, Iterable) and not isinstance(one, str) for one in given)
            return [f"group {j}" for j in numbers] if listed else [str(label) for label in given]
        if not weights.has_views:
            raise ValueError(
                "group_weights: the kernels do not belong to views. Define groups of kernels, as "
                "in model.group_weights({'smooth': '*Gaussian*', 'linear': [0, 1]}); "
                "kernel_names_ lists the names."
            )
        return [view_of(name) or name for name in names]

    @property
    def view_weights_(self) -> dict[str, Any]:
        """The share of each view in the sum of the kernel weights, in the order of the bank.

        Shares sum to one: the absolute weights of a view's kernels divided by those of all kernels.
        If every class has separate weights, there is an array of shape (n_classes,) for each view,
        with one share per class. A kernel that belongs to no view is listed under its own name.
        """
        check_is_fitted(self)
        if not is_weighted(self):
            raise AttributeError(
                f"{type(self).__name__} has no view_weights_: it does not weight kernels."
            )
        weights = Weights.of(self)
        if not weights.has_views:
            raise AttributeError(
                f"This {type(self).__name__} has no view_weights_: its kernels do not belong to "
                "views. Make the bank with mk.per_view({name: columns}), or name the kernels "
                "'view: kernel' in mk.KernelBank(kernels, names=...). kernel_weights_ has the "
                "weights of single kernels."
            )
        if weights.machines:
            return weights.machine_views
        return {view: float(share[0]) for view, share in weights.machine_views.items()}


def labels_of(groups: Mapping[str, Any], names: list[str]) -> list[str]:
    """The group of every kernel, from names, patterns of names and numbers."""
    if not isinstance(groups, Mapping):
        raise TypeError(
            "groups must map group names to kernels, such as {'smooth': '*Gaussian*'}; got "
            f"{type(groups).__name__}."
        )
    labels = [OTHERS] * len(names)
    for group, members in groups.items():
        listed = [members] if isinstance(members, (str, Integral)) else list(members)
        for member in listed:
            found = _members(member, names)
            if not found:
                raise ValueError(
                    f"groups[{group!r}]: no kernel is called {member!r}; the names are "
                    f"{', '.join(map(repr, names[:5]))}{', ...' if len(names) > 5 else ''}."
                )
            for k in found:
                if labels[k] not in (OTHERS, str(group)):
                    raise ValueError(
                        f"Kernel {names[k]!r} is in two groups, {labels[k]!r} and {group!r}."
                    )
                labels[k] = str(group)
    return labels


def _members(member: Any, names: list[str]) -> list[int]:
    if isinstance(member, Integral) and not isinstance(member, bool):
        return [int(member)] if 0 <= int(member) < len(names) else []
    if str(member) in names:
        return [names.index(str(member))]
    return [k for k, name in enumerate(names) if fnmatchcase(name, str(member))]
