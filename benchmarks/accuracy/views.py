"""Several views of the same samples: kernels per view against concatenation, choice, stacking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import multikernel as mk

from . import methods
from .methods import Maker, WithBank
from .problems import Split
from .rows import Row

#: Cost of the support vector machines that are stacked, one for each view.
STACKED_COST = 10.0
STACKING_FOLDS = 5


class WithViews(WithBank):
    """An estimator with a default bank of kernels for every view."""

    def __init__(self, estimator: Any, views: dict[str, slice], kind: str = "tables") -> None:
        super().__init__(estimator, kind)
        self.views = views

    def fit(self, X: np.ndarray, y: np.ndarray) -> WithViews:
        bank = mk.per_view(
            {
                name: (mk.default_bank(X[:, columns], kind=self.kind), columns)
                for name, columns in self.views.items()
            }
        )
        self.estimator.set_params(kernels=bank).fit(X, y)
        return self


def ours(weighting: str, C: Any = 1.0) -> Maker:
    def make(data: Split) -> Any:
        return WithViews(mk.MultiKernelClassifier(weighting=weighting, C=C), dict(data.views))

    return make


def one_view(columns: slice, model: Any) -> Any:
    """A model that sees one view, standardised."""
    return make_pipeline(make_column_transformer((StandardScaler(), columns)), model)


class BestView:
    """The view whose tuned machine has the best cross-validated accuracy."""

    def __init__(self, views: dict[str, slice]) -> None:
        self.views = views

    def fit(self, X: np.ndarray, y: np.ndarray) -> BestView:
        searches = {
            name: GridSearchCV(
                one_view(columns, SVC()),
                {f"svc__{key}": values for key, values in methods.RBF_GRID.items()},
                cv=methods.GRID_FOLDS,
            ).fit(X, y)
            for name, columns in self.views.items()
        }
        self.name_ = max(searches, key=lambda name: searches[name].best_score_)
        self.model_ = searches[self.name_]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model_.predict(X))


def best_view(data: Split) -> Any:
    return BestView(dict(data.views))


def stacking(data: Split) -> Any:
    """A machine for every view, and logistic regression on their held-out decisions."""
    return StackingClassifier(
        [(name, one_view(at, SVC(C=STACKED_COST))) for name, at in data.views.items()],
        final_estimator=make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        cv=STACKING_FOLDS,
        stack_method="decision_function",
    )


METHODS: dict[str, Maker] = {
    "per view, loo": ours("loo"),
    "per view, uniform": ours("uniform", "loo"),
    "per view, alignf": ours("alignf", "loo"),
    "per view, lp, p = 4/3": ours("lp"),
    "concatenation, loo": methods.ours("loo", "tables"),
    "concatenation, RBF SVM, tuned": methods.tuned_rbf,
    "concatenation, linear": methods.linear,
    "concatenation, HistGradientBoosting": methods.boosting,
    "best view, RBF SVM, tuned": best_view,
    "stacking of RBF SVMs": stacking,
}


def groups(rows: Sequence[Row]) -> dict[str, list[str]]:
    """The methods that have been run, as one group."""
    run = {row["method"] for row in rows}
    return {"several views": [method for method in METHODS if method in run]}
