"""What is compared: our rules, and other methods at their defaults or with a small grid."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
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

#: Makes an estimator for regression (True) or classification.
Maker = Callable[[bool], Any]


def ours(weighting: Any = None, kind: str | None = None, **options: Any) -> Maker:
    """Our estimators with a rule and a default bank; all that is not given stays as it is."""

    def make(regression: bool) -> Any:
        estimator = mk.MultiKernelRegressor() if regression else mk.MultiKernelClassifier()
        if weighting is not None:
            estimator.set_params(weighting=weighting)
        constant = options.get("constant")
        if constant is not None:
            estimator.set_params(**{"alpha" if regression else "C": constant})
        if "loss" in options and not regression:
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

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.estimator.predict(X))


def scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def tuned_rbf(regression: bool) -> Any:
    """A support vector machine, its cost and width by five folds."""
    grid = {"C": [0.1, 1, 10, 100, 1000], "gamma": ["scale", 0.001, 0.01, 0.1, 1.0]}
    return scaled(GridSearchCV(SVR() if regression else SVC(), grid, cv=5))


def tuned_kernel_ridge(regression: bool) -> Any:
    """Kernel ridge regression by five folds; for regression only."""
    if not regression:
        return None
    grid = {"alpha": [1e-3, 1e-2, 0.1, 1.0], "gamma": [0.001, 0.01, 0.1, 1.0]}
    return scaled(GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5))


def linear(regression: bool) -> Any:
    if regression:
        return scaled(RidgeCV(np.logspace(-3, 3, 13)))
    return scaled(LogisticRegressionCV(Cs=7, max_iter=2000))


def forest(regression: bool) -> Any:
    kind = RandomForestRegressor if regression else RandomForestClassifier
    return kind(random_state=0, n_jobs=-1)


def boosting(regression: bool) -> Any:
    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return kind(random_state=0)


def other(module: str, name: str, **options: Any) -> Maker:
    """A booster of another package, None where it is not installed."""

    def make(regression: bool) -> Any:
        try:
            found = importlib.import_module(module)
        except ImportError:
            return None
        return getattr(found, name + ("Regressor" if regression else "Classifier"))(**options)

    return make


METHODS: dict[str, Maker] = {
    "default": ours(),
    "loo": ours("loo", "tables"),
    "loo, learned scales": lambda r: ours("loo")(r).set_params(kernels=mk.learned_scales()),
    "loo, squared loss": ours("loo", "tables", loss="squared"),
    "loo, logistic loss": ours("loo", "tables", loss="logistic"),
    "uniform": ours("uniform", "tables", constant="loo"),
    "align": ours("align", "tables", constant="loo"),
    "alignf": ours("alignf", "tables", constant="loo"),
    "lp, p = 4/3": ours("lp", "tables"),
    "RBF machine, tuned": tuned_rbf,
    "kernel ridge, tuned": tuned_kernel_ridge,
    "linear": linear,
    "random forest": forest,
    "HistGradientBoosting": boosting,
    "LightGBM": other("lightgbm", "LGBM", verbose=-1, random_state=0),
    "XGBoost": other("xgboost", "XGB", random_state=0),
    "CatBoost": other("catboost", "CatBoost", verbose=0, random_state=0),
}
#: Methods of a quick run.
QUICK = ("default", "loo", "RBF machine, tuned", "HistGradientBoosting")
