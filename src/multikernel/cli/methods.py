"""The methods to compare: our weightings, and common alternatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..weighting import NAMED
from .problem import TableProblem

COSTS = (0.1, 1.0, 10.0, 100.0)
RIDGES = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)
CONSTANT = "constant prediction"


@dataclass(frozen=True)
class Method:
    """A learning method: ``make(bank, X, cv)`` returns an estimator for a training set.

    ``cv`` are the folds on which parameters are chosen.
    """

    name: str
    kind: str  # "weighting", "scikit-learn" or "constant"
    make: Callable[[Any, Any, Any], Any]


def weightings(
    problem: TableProblem,
    rules: Sequence[Any],
    seed: int,
    n_jobs: int,
    scoring: str | None = None,
) -> list[Method]:
    """Our estimators, one per weighting, with C or alpha chosen on the training set."""
    from .. import estimators

    assert problem.target is not None
    classifies = problem.target.task == "classification"

    def maker(rule: Any) -> Callable[[Any, Any, Any], Any]:
        def make(bank: Any, X: Any, cv: Any) -> Any:
            shared: dict[str, Any] = {
                "cv": cv,
                "scoring": scoring,
                "random_state": seed,
                "n_jobs": n_jobs,
            }
            if classifies:
                return estimators.MultiKernelClassifierCV(bank, rule, COSTS, **shared)
            return estimators.MultiKernelRegressorCV(bank, rule, RIDGES, **shared)

        return make

    return [Method(str(rule), "weighting", maker(rule)) for rule in rules]


def constant(problem: TableProblem) -> Method:
    """A constant prediction, the baseline that every other method should beat."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    assert problem.target is not None
    if problem.target.task == "classification":
        return Method(CONSTANT, "constant", lambda bank, X, cv: DummyClassifier(strategy="prior"))
    return Method(CONSTANT, "constant", lambda bank, X, cv: DummyRegressor())


def baselines(
    problem: TableProblem, seed: int, n_jobs: int, scoring: str | None = None
) -> list[Method]:
    """Common alternatives from scikit-learn, tuned on the training set."""
    from sklearn import ensemble, linear_model, svm
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    assert problem.target is not None
    classifies = problem.target.task == "classification"
    sparse = problem.frame.sparse is not None

    def tuned(model: Any, cv: Any, **grid: Any) -> Any:
        step = type(model).__name__.lower()
        pipeline = make_pipeline(StandardScaler(with_mean=not sparse), model)
        named = {f"{step}__{key}": values for key, values in grid.items()}
        return GridSearchCV(pipeline, named, cv=cv, scoring=scoring, n_jobs=n_jobs)

    def support_vectors(bank: Any, X: Any, cv: Any) -> Any:
        gammas = [factor / X.shape[1] for factor in (0.1, 1.0, 10.0)]
        return tuned(svm.SVC() if classifies else svm.SVR(), cv, C=COSTS, gamma=gammas)

    def linear(bank: Any, X: Any, cv: Any) -> Any:
        if classifies:
            return tuned(linear_model.LogisticRegression(max_iter=5000), cv, C=(0.01, *COSTS))
        return tuned(linear_model.Ridge(), cv, alpha=[0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])

    def forest(bank: Any, X: Any, cv: Any) -> Any:
        cls = ensemble.RandomForestClassifier if classifies else ensemble.RandomForestRegressor
        return cls(300, random_state=seed, n_jobs=n_jobs)

    def boosting(bank: Any, X: Any, cv: Any) -> Any:
        if classifies:
            return ensemble.HistGradientBoostingClassifier(random_state=seed)
        return ensemble.HistGradientBoostingRegressor(random_state=seed)

    methods = {
        "SVC, tuned RBF" if classifies else "SVR, tuned RBF": support_vectors,
        "logistic regression" if classifies else "ridge regression": linear,
        "random forest": forest,
    }
    if not sparse:
        methods["gradient boosting"] = boosting
    return [Method(name, "scikit-learn", make) for name, make in methods.items()]


#: The weightings compared by default: those that work with any kernels and use the target, and the
#: uniform one.
RULES = tuple(
    name
    for name, rule in NAMED.items()
    if not rule.needs_features and (rule.needs_target or name == "uniform")
)
