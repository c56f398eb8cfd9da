"""The same methods with one budget of tuning: the default and nine other settings, three folds.

Settings are drawn once from the spaces below, with a fixed seed; the default setting is always one
of them, so that tuning can fall back on it. Ours has ten settings too, from a grid: the default
rule and equal weights, each with five costs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.model_selection import GridSearchCV, KFold, ParameterSampler, StratifiedKFold

import multikernel as mk

from . import methods
from .methods import Maker, WithBank
from .problems import Split

#: The budget: settings (the default among them) and folds of cross-validation.
SETTINGS, FOLDS = 10, 3
SEED = 0

SPACES: dict[str, dict[str, Any]] = {
    "random forest": {
        "n_estimators": [100, 200, 300],
        "max_features": ["sqrt", 0.2, 0.35, 0.5, 0.75, 1.0],
        "min_samples_leaf": randint(1, 10),
        "max_depth": [None, 4, 8, 16],
    },
    "HistGradientBoosting": {
        "learning_rate": loguniform(0.01, 0.3),
        "max_iter": randint(50, 400),
        "max_leaf_nodes": randint(3, 32),
        "min_samples_leaf": randint(2, 40),
        "l2_regularization": loguniform(1e-3, 10),
        "max_features": uniform(0.3, 0.7),
    },
    "LightGBM": {
        "learning_rate": loguniform(0.01, 0.3),
        "n_estimators": randint(50, 400),
        "num_leaves": randint(3, 32),
        "min_child_samples": randint(2, 40),
        "reg_lambda": loguniform(1e-3, 10),
        "colsample_bytree": uniform(0.3, 0.7),
    },
    "XGBoost": {
        "learning_rate": loguniform(0.01, 0.3),
        "n_estimators": randint(50, 400),
        "max_depth": randint(2, 9),
        "min_child_weight": loguniform(0.5, 20),
        "subsample": uniform(0.5, 0.5),
        "colsample_bytree": uniform(0.3, 0.7),
        "reg_lambda": loguniform(1e-3, 10),
    },
    "CatBoost": {
        "learning_rate": loguniform(0.01, 0.3),
        "iterations": randint(100, 400),
        "depth": randint(2, 8),
        "l2_leaf_reg": loguniform(0.5, 20),
        "random_strength": uniform(0.0, 2.0),
    },
}
#: Factors of the default cost (or of one over the default ridge) of our estimators.
OUR_COSTS = (0.1, 0.3, 1.0, 3.0, 10.0)


def searched(name: str, make: Maker) -> Maker:
    """The method ``name`` with the best of the settings by cross-validation."""

    def made(data: Split) -> Any:
        model = make(data)
        if model is None:
            return None
        prefix = "model__" if isinstance(model, methods.FromZero) else ""
        draws = ParameterSampler(SPACES[name], SETTINGS - 1, random_state=SEED)
        grid: list[dict[str, list[Any]]] = [{}]
        grid += [{prefix + key: [value] for key, value in draw.items()} for draw in draws]
        folds = KFold if data.regression else StratifiedKFold
        return GridSearchCV(
            model,
            grid,
            cv=folds(FOLDS, shuffle=True, random_state=SEED),
            scoring="neg_root_mean_squared_error" if data.regression else "accuracy",
        )

    return made


def tuned_ours(data: Split) -> Any:
    """Ours: leave-one-out weights or equal weights of the best size, and five costs."""
    rules = ["loo", mk.LeaveOneOut(shrinkage=1.0)]
    if data.regression:
        alphas = tuple(1.0 / np.array(OUR_COSTS))
        cv = KFold(FOLDS, shuffle=True, random_state=SEED)
        search = mk.MultiKernelRegressorCV(weighting=rules, alphas=alphas, cv=cv)
    else:
        cv = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
        search = mk.MultiKernelClassifierCV(weighting=rules, Cs=OUR_COSTS, cv=cv)
    return WithBank(search, "tables")


#: Methods by the names of the tables.
TUNED: dict[str, Maker] = {
    "ours, tuned": tuned_ours,
    **{f"{name}, tuned": searched(name, methods.PEERS[name]) for name in SPACES},
}
