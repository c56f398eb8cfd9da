"""Comparison of methods by repeated cross-validation, with tests of the differences."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from threadpoolctl import threadpool_limits

from .._journal import Answers, Journal
from ..estimators.paired_tests import paired_t
from ..weighting import NAMED
from .problem import TableProblem

#: Levels of the one-sided paired t-test.
LEVELS = (0.05, 0.1)
CLEARLY_BETTER = f"better (p < {LEVELS[0]:g}"
#: The test behind verdicts: corrected for training parts that overlap, or as in the papers.
TESTS = {"corrected": "t-test corrected for overlapping training sets", "paper": "paired t-test"}
#: The references that every method is compared with.
REFERENCE = "uniform"

COSTS = (0.1, 1.0, 10.0, 100.0)
RIDGES = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Method:
    """One way to learn: ``make(bank, X)`` gives an estimator for a training part."""

    name: str
    kind: str  # "weighting" or "scikit-learn"
    make: Callable[[Any, Any], Any]


@dataclass(frozen=True)
class LeaderboardRow:
    """One method's line of the leaderboard.

    Attributes
    ----------
    name, kind : str
    scores : array of shape (n_splits,)
        Accuracy, or root mean squared error; NaN where ``error`` says what went wrong.
    seconds : float
        Time of one fit, tuning included, and prediction; the mean over splits.
    error : str
        Empty if all went well.
    """

    name: str
    kind: str
    scores: np.ndarray
    seconds: float
    error: str = ""

    @property
    def mean(self) -> float:
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        return float(self.scores.std(ddof=1) / math.sqrt(len(self.scores)))


@dataclass(frozen=True)
class Leaderboard:
    """All rows, best first, and how they were made."""

    metric: str
    greater_is_better: bool
    folds: int
    repeats: int
    rows: tuple[LeaderboardRow, ...]
    test: str = "corrected"

    def row(self, name: str) -> LeaderboardRow | None:
        return next((row for row in self.rows if row.name == name and not row.error), None)

    def p_value(
        self, row: LeaderboardRow, other: LeaderboardRow, *, corrected: bool = False
    ) -> float:
        """One-sided paired t-test that ``row`` is better than ``other``.

        ``corrected`` enlarges the variance for the overlap of the training parts (Nadeau and
        Bengio 2003); the papers do not.
        """
        sign = 1.0 if self.greater_is_better else -1.0
        overlap = 1.0 / (self.folds - 1) if corrected else 0.0
        return paired_t(sign * (row.scores - other.scores), overlap)

    def verdict(self, row: LeaderboardRow, reference: str = REFERENCE) -> str:
        """Better or worse than the reference, and at which level; empty if neither."""
        other = self.row(reference)
        if other is None or row.error or row is other:
            return ""
        corrected = self.test == "corrected"
        for level in LEVELS:
            if self.p_value(row, other, corrected=corrected) < level:
                return f"better (p < {level:g})"
            if self.p_value(other, row, corrected=corrected) < level:
                return f"worse (p < {level:g})"
        return ""

    @property
    def recommended(self) -> LeaderboardRow | None:
        """The best weighting if it is shown to be better than the uniform one, else the latter."""
        mine = [row for row in self.rows if row.kind == "weighting" and not row.error]
        if not mine:
            return None
        plain = self.row(REFERENCE)
        if plain is None or self.verdict(mine[0]).startswith(CLEARLY_BETTER):
            return mine[0]
        return plain

    def conclusions(self) -> list[str]:
        """What the table says about weightings, and about other models, in sentences."""
        fine = [row for row in self.rows if not row.error]
        mine = [row for row in fine if row.kind == "weighting"]
        others = [row for row in fine if row.kind != "weighting"]
        chosen = self.recommended
        said: list[str] = []
        if chosen is None:
            return said
        best = mine[0]
        if best is not chosen:
            p = self.p_value(best, chosen, corrected=self.test == "corrected")
            said.append(
                f"{best.name} has the best mean score of the weightings, but it does not differ "
                f"significantly from {chosen.name} (p = {p:.2f}): {chosen.name} is as good a "
                "choice."
            )
        elif self.verdict(best).startswith(CLEARLY_BETTER):
            said.append(f"{best.name} is better than {REFERENCE}.")
        if others:
            rival = others[0]
            verdict = self.verdict(rival, chosen.name)
            clear = verdict.endswith(f"{LEVELS[0]:g})")
            word = "is" if clear else "may be"
            level = "" if clear else f" (p < {LEVELS[1]:g})"
            if verdict.startswith("better"):
                said.append(f"{rival.name} {word} better than {chosen.name} on these data{level}.")
            elif verdict.startswith("worse"):
                said.append(
                    f"{chosen.name} {word} better than {rival.name}, the best other model{level}."
                )
            else:
                said.append(
                    f"{chosen.name} does not differ significantly from {rival.name}, the best "
                    "other model."
                )
        return said

    def mark(self, row: LeaderboardRow, reference: str = REFERENCE) -> str:
        """The verdict in signs, two at the stricter level."""
        said = self.verdict(row, reference)
        sign = {"better": "+", "worse": "-"}.get(said.partition(" ")[0], "")
        return sign * (2 if said.endswith(f"{LEVELS[0]:g})") else 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and for the report."""
        rows = []
        for row in self.rows:
            entry: dict[str, Any] = {"name": row.name, "kind": row.kind, "seconds": row.seconds}
            if row.error:
                rows.append(entry | {"error": row.error})
                continue
            entry |= {
                "mean": row.mean,
                "standard_error": row.standard_error,
                "scores": row.scores.tolist(),
            }
            for name in (REFERENCE, "best"):
                other = self.row(name)
                if other is not None and other is not row:
                    entry[f"against_{name}"] = {
                        "p_better": self.p_value(row, other),
                        "p_worse": self.p_value(other, row),
                        "p_better_corrected": self.p_value(row, other, corrected=True),
                        "p_worse_corrected": self.p_value(other, row, corrected=True),
                    }
                    entry[f"against_{name}"]["verdict"] = self.verdict(row, name)
            entry["verdict"] = self.verdict(row)
            rows.append(entry)
        return {
            "metric": self.metric,
            "greater_is_better": self.greater_is_better,
            "folds": self.folds,
            "repeats": self.repeats,
            "levels": list(LEVELS),
            "test": self.test,
            "recommended": None if self.recommended is None else self.recommended.name,
            "conclusions": self.conclusions(),
            "rows": rows,
        }

    def table(self) -> Any:
        """For the terminal."""
        from rich.table import Table

        times = "" if self.repeats == 1 else f", {self.repeats} times"
        title = f"{self.metric}, {self.folds}-fold cross-validation{times}"
        strong, weak = (f"p < {level:g}" for level in LEVELS)
        caption = f"++ better, -- worse ({strong}); + better, - worse ({weak}); {TESTS[self.test]}"
        table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
        table.add_column("method", overflow="fold")
        table.add_column(self.metric, justify="right")
        table.add_column("± s.e.", justify="right")
        table.add_column(f"vs {REFERENCE}", justify="center")
        has_best = self.row("best") is not None
        if has_best:
            table.add_column("vs best single", justify="center")
        table.add_column("s per fit", justify="right")
        for row in self.rows:
            style = "bold" if row.kind == "weighting" else ""
            if row.error:
                table.add_row(f"{row.name}: {row.error}", "failed", style="dim")
                continue
            table.add_row(
                row.name,
                f"{row.mean:.4f}",
                f"{row.standard_error:.4f}",
                self.mark(row),
                *([self.mark(row, "best")] if has_best else []),
                f"{row.seconds:.2f}",
                style=style,
            )
        return table


def run(
    problem: TableProblem,
    methods: Sequence[Method],
    *,
    folds: int,
    repeats: int,
    seed: int,
    advance: Callable[[str], None],
    n_jobs: int = 1,
    test: str = "corrected",
    journal: Journal | None = None,
) -> Leaderboard:
    """Fit every method on every training part, and score it on the test part.

    Everything that is learned from data (fillings, categories, widths, weights, parameters) is
    learned from the training part. All methods are limited to ``n_jobs`` threads.
    """
    assert problem.target is not None
    if len(problem.y) < folds:
        raise ValueError(
            f"{folds} folds need at least as many rows; there are {len(problem.y)}. Choose "
            "fewer with --folds."
        )
    with threadpool_limits(None if n_jobs < 0 else n_jobs):
        board = _run(problem, methods, folds, repeats, seed, advance, journal or Journal())
    return replace(board, test=test)


def _run(
    problem: TableProblem,
    methods: Sequence[Method],
    folds: int,
    repeats: int,
    seed: int,
    advance: Callable[[str], None],
    journal: Journal,
) -> Leaderboard:
    assert problem.target is not None
    classifies = problem.target.task == "classification"
    cv: Any = RepeatedStratifiedKFold if classifies else RepeatedKFold
    splitter = cv(n_splits=folds, n_repeats=repeats, random_state=seed)
    y, n_splits = problem.y, folds * repeats
    scores = np.full((len(methods), n_splits), np.nan)
    seconds = np.zeros(len(methods))
    errors = [""] * len(methods)
    for s, (train, test) in enumerate(splitter.split(np.zeros((len(y), 1)), y)):
        # Made when the first method that is not in the journal needs it.
        parts = lru_cache(maxsize=1)(partial(encoded_parts, problem, train, test))
        for m, method in enumerate(methods):
            advance(method.name)
            if errors[m]:
                continue
            cell = partial(score_method, method, parts, y[train], y[test], classifies)
            done = journal.recall("split", (s, m), cell)
            errors[m], scores[m, s] = done["error"], done["score"]
            seconds[m] += done["seconds"]
    rows = [
        LeaderboardRow(method.name, method.kind, scores[m], float(seconds[m]) / n_splits, errors[m])
        for m, method in enumerate(methods)
    ]
    sign = -1.0 if classifies else 1.0
    rows.sort(key=lambda row: (bool(row.error), sign * row.mean if not row.error else 0.0))
    metric = "accuracy" if classifies else "RMSE"
    return Leaderboard(metric, classifies, folds, repeats, tuple(rows))


def encoded_parts(problem: TableProblem, train: np.ndarray, test: np.ndarray) -> tuple[Any, ...]:
    """X of the training part and of the rest, encoded by the former, and its bank."""
    part = problem.frame.take(train)
    encoder = problem.encoder(part)
    X = encoder(part)
    return X, encoder(problem.frame.take(test)), problem.bank(encoder, X)


def score_method(
    method: Method,
    parts: Callable[[], tuple[Any, ...]],
    y: np.ndarray,
    y_new: np.ndarray,
    classifies: bool,
) -> Answers:
    """The score of a method on one split, and the time it took; or its error."""
    X, X_new, bank = parts()
    started = time.perf_counter()
    try:
        predicted = method.make(bank, X).fit(X, y).predict(X_new)
    except (ValueError, TypeError, MemoryError) as error:
        return {"error": str(error).partition("\n")[0], "score": math.nan, "seconds": 0.0}
    seconds = time.perf_counter() - started
    if classifies:
        score = float(np.mean(predicted == y_new))
    else:
        score = math.sqrt(np.mean((predicted - y_new) ** 2))
    return {"error": "", "score": score, "seconds": seconds}


# -- methods --------------------------------------------------------------------------------------


def weightings(problem: TableProblem, rules: Sequence[Any], seed: int, n_jobs: int) -> list[Method]:
    """Our estimators, one per weighting, with C or alpha chosen on the training part."""
    from .. import estimators

    assert problem.target is not None
    classifies = problem.target.task == "classification"

    def maker(rule: Any) -> Callable[[Any, Any], Any]:
        def make(bank: Any, X: Any) -> Any:
            shared: dict[str, Any] = {"cv": 3, "random_state": seed, "n_jobs": n_jobs}
            if classifies:
                return estimators.MultiKernelClassifierCV(bank, rule, COSTS, **shared)
            return estimators.MultiKernelRegressorCV(bank, rule, RIDGES, **shared)

        return make

    return [Method(str(rule), "weighting", maker(rule)) for rule in rules]


def baselines(problem: TableProblem, seed: int, n_jobs: int) -> list[Method]:
    """Common alternatives from scikit-learn, tuned on the training part."""
    from sklearn import ensemble, linear_model, svm
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    assert problem.target is not None
    classifies = problem.target.task == "classification"
    sparse = problem.frame.sparse is not None

    def tuned(model: Any, X: Any, **grid: Any) -> Any:
        step = type(model).__name__.lower()
        pipeline = make_pipeline(StandardScaler(with_mean=not sparse), model)
        named = {f"{step}__{key}": values for key, values in grid.items()}
        return GridSearchCV(pipeline, named, cv=3, n_jobs=n_jobs)

    def support_vectors(bank: Any, X: Any) -> Any:
        gammas = [factor / X.shape[1] for factor in (0.1, 1.0, 10.0)]
        return tuned(svm.SVC() if classifies else svm.SVR(), X, C=COSTS, gamma=gammas)

    def linear(bank: Any, X: Any) -> Any:
        if classifies:
            return tuned(linear_model.LogisticRegression(max_iter=5000), X, C=(0.01, *COSTS))
        return tuned(linear_model.Ridge(), X, alpha=[0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])

    def forest(bank: Any, X: Any) -> Any:
        cls = ensemble.RandomForestClassifier if classifies else ensemble.RandomForestRegressor
        return cls(300, random_state=seed, n_jobs=n_jobs)

    def boosting(bank: Any, X: Any) -> Any:
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
