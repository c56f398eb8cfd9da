"""Kernel weights of a fitted model, as people read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.bank import view_of


def is_weighted(estimator: Any) -> bool:
    """Whether a fit has left kernel weights, or coefficients that add up by kernel."""
    return hasattr(estimator, "kernel_weights_") or hasattr(estimator, "terms_")


@dataclass(frozen=True)
class Weights:
    """What was learned about the kernels.

    Attributes
    ----------
    names : list of str
    values : array of shape (t, p)
        One row, or one per machine where each has weights of its own.
    machines : list of str
        What the rows belong to; empty for one row.
    what : str
        What the numbers are.
    """

    names: list[str]
    values: np.ndarray
    machines: list[str]
    what: str

    @property
    def mean(self) -> np.ndarray:
        """Over machines, shape (p,)."""
        return self.values.mean(axis=0)

    @property
    def shares(self) -> np.ndarray:
        """The mean weights as parts of one; zeros if all weights are."""
        sizes = np.abs(self.mean)
        total = sizes.sum()
        return sizes / total if total > 0 else sizes

    @property
    def n_used(self) -> int:
        return int(np.count_nonzero(np.any(self.values != 0, axis=0)))

    @property
    def effective(self) -> float:
        """How many equal weights would be spread as evenly: ``1 / sum share^2``."""
        squares = float(np.sum(self.shares**2))
        return 1.0 / squares if squares > 0 else 0.0

    @property
    def order(self) -> np.ndarray:
        """Kernels by falling weight; equal ones stay in the bank's order."""
        return np.argsort(-np.abs(self.mean), kind="stable")

    @property
    def views(self) -> dict[str, float]:
        """The share of every view, largest first; empty where kernels belong to none."""
        parts: dict[str, float] = {}
        for name, share in zip(self.names, self.shares, strict=True):
            parts[view_of(name)] = parts.get(view_of(name), 0.0) + float(share)
        if set(parts) == {""}:
            return {}
        named = {view or "(no view)": share for view, share in parts.items()}
        return dict(sorted(named.items(), key=lambda item: -item[1]))

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
            # A vote has a coefficient for each (kernel, point); their sizes add up by kernel.
            terms = estimator.terms_
            sizes = np.bincount(terms["kernel"], np.abs(terms["coef"]), minlength=len(names))
            return cls(list(names), sizes[None, :], [], "sum of absolute coefficients")
        values = np.asarray(estimator.kernel_weights_, dtype=np.float64)
        machines: list[str] = []
        if values.ndim == 2:
            classes = getattr(estimator, "classes_", range(len(values)))
            machines = [str(label) for label in classes]
        return cls(list(names), np.atleast_2d(values), machines, "weight")
