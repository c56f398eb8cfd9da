"""What is compared: our rules, and other methods at their defaults or with a grid search."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import multikernel as mk

from .problems import Split

#: Makes an estimator for a problem, None where the method does not apply or is not installed.
Maker = Callable[[Split], Any]

#: Grids of the kernel machines, by five folds each. Columns (and targets of a regression) are
#: standardised, so that these numbers have a meaning; "scale" is one over the number of columns.
RBF_GRID = {"C": [0.1, 1, 10, 100, 1000], "gamma": ["scale", 0.001, 0.01, 0.1, 1.0]}
RBF_EPSILONS = [0.01, 0.1]
RIDGE_GRID = {"alpha": [1e-3, 1e-2, 0.1, 1.0, 10.0], "gamma": [0.001, 0.01, 0.1, 1.0, None]}
GRID_FOLDS = 5


# -- ours -----------------------------------------------------------------------------------------


def ours(weighting: Any = None, kind: str | None = None, **options: Any) -> Maker:
    """Our estimators with a rule and a default bank; all that is not given stays as it is."""

    def make(data: Split) -> Any:
        if data.regression and "loss" in options:
            return None  # losses of classification
        estimator = mk.MultiKernelRegressor() if data.regression else mk.MultiKernelClassifier()
        if weighting is not None:
            estimator.set_params(weighting=weighting)
        constant = options.get("constant")
        if constant is not None:
            estimator.set_params(**{"alpha" if data.regression else "C": constant})
        if "loss" in options:
            estimator.set_params(loss=options["loss"])
        return estimator if kind is None else WithBank(estimator, kind)

    return make


class WithBank:
    """An estimator with a default bank of another kind, made from its training sample."""

    def __init__(self, estimator: Any, kind: str) -> None:
        self.estimator, self.kind = estimator, kind

    def fit(self, X: np.ndarray, y: np.ndarray) -> WithBank:
        self.estimator.set_params(kernels=mk.default_bank(X, kind=self.kind)).fit(X, y)
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("predict"):
            return getattr(self.estimator, name)
        raise AttributeError(name)


# -- kernel machines and linear models of scikit-learn --------------------------------------------


def scaled(model: Any, regression: bool = False) -> Any:
    """A model on standardised columns, and for regression on standardised targets."""
    model = make_pipeline(StandardScaler(), model)
    return TransformedTargetRegressor(model, transformer=StandardScaler()) if regression else model


def tuned_rbf(data: Split) -> Any:
    """A support vector machine; cost and width (and epsilon) by five folds."""
    if data.regression:
        search = GridSearchCV(SVR(), {**RBF_GRID, "epsilon": RBF_EPSILONS}, cv=GRID_FOLDS)
        return scaled(search, regression=True)
    return scaled(GridSearchCV(SVC(), RBF_GRID, cv=GRID_FOLDS))


class RidgeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel ridge regression on indicators of the classes; the largest one is predicted."""

    def __init__(self, alpha: float = 1.0, gamma: float | None = None) -> None:
        self.alpha, self.gamma = alpha, gamma

    def fit(self, X: np.ndarray, y: np.ndarray) -> RidgeClassifier:
        self.classes_ = np.unique(y)
        signs = np.where(y[:, None] == self.classes_, 1.0, -1.0)
        self.model_ = KernelRidge(alpha=self.alpha, gamma=self.gamma, kernel="rbf").fit(X, signs)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.classes_[self.model_.predict(X).argmax(axis=1)])


def tuned_kernel_ridge(data: Split) -> Any:
    """Kernel ridge regression; ridge and width by five folds."""
    model = KernelRidge(kernel="rbf") if data.regression else RidgeClassifier()
    return scaled(GridSearchCV(model, RIDGE_GRID, cv=GRID_FOLDS), data.regression)


def linear(data: Split) -> Any:
    """Ridge or logistic regression, their constants by leave-one-out or five folds."""
    if data.regression:
        return scaled(RidgeCV(np.logspace(-3, 3, 13)))
    options: dict[str, Any] = {"Cs": 7, "max_iter": 2000, "scoring": "accuracy"}
    if "use_legacy_attributes" in signature(LogisticRegressionCV).parameters:
        options |= {"l1_ratios": (0,), "use_legacy_attributes": False}
    return scaled(LogisticRegressionCV(**options))


# -- trees ----------------------------------------------------------------------------------------


def forest(data: Split) -> Any:
    kind = RandomForestRegressor if data.regression else RandomForestClassifier
    return kind(random_state=0, n_jobs=1)


def boosting(data: Split) -> Any:
    kind = HistGradientBoostingRegressor if data.regression else HistGradientBoostingClassifier
    return kind(random_state=0)


class FromZero(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that wants its classes numbered from zero without gaps, as XGBoost does."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: np.ndarray, y: np.ndarray) -> FromZero:
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.model.fit(X, codes)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.classes_[self.model.predict(X)])

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict_proba(X))


def other(module: str, name: str, **options: Any) -> Maker:
    """A booster of another package, None where it is not installed."""

    def make(data: Split) -> Any:
        try:
            found = importlib.import_module(module)
        except ImportError:
            return None
        end = "Regressor" if data.regression else "Classifier"
        model = getattr(found, name + end)(**options)
        return FromZero(model) if module == "xgboost" and not data.regression else model

    return make


lightgbm = other("lightgbm", "LGBM", verbose=-1, random_state=0, n_jobs=1)
xgboost = other("xgboost", "XGB", random_state=0, n_jobs=1)
catboost = other(
    *("catboost", "CatBoost"), verbose=0, random_state=0, thread_count=1, allow_writing_files=False
)

#: "default" is what the estimators do without parameters.
OURS: dict[str, Maker] = {
    "default": ours(),
    "loo": ours("loo", "tables"),
    "loo, no shrinkage": ours(mk.LeaveOneOut(0.0), "tables"),
    "loo, learned scales": lambda r: ours("loo")(r).set_params(kernels=mk.learned_scales()),
    "loo, squared loss": ours("loo", "tables", loss="squared"),
    "loo, logistic loss": ours("loo", "tables", loss="logistic"),
    "uniform": ours("uniform", "tables", constant="loo"),
    "align": ours("align", "tables", constant="loo"),
    "alignf": ours("alignf", "tables", constant="loo"),
    "best single kernel": ours("best", "tables", constant="loo"),
    "lp, p = 4/3": ours("lp", "tables"),
    "l1": ours("l1", "tables"),
}
PEERS: dict[str, Maker] = {
    "RBF SVM, tuned": tuned_rbf,
    "kernel ridge, tuned": tuned_kernel_ridge,
    "linear": linear,
    "random forest": forest,
    "HistGradientBoosting": boosting,
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "CatBoost": catboost,
}
#: Methods of a quick run.
QUICK = ("default", "loo", "RBF SVM, tuned", "HistGradientBoosting")
