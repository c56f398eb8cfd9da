"""Comparison of methods by repeated cross-validation, with tests of the differences."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer
from threadpoolctl import threadpool_limits

from .._journal import Answers, Journal
from ..estimators.assessment import UNEQUAL, scoring_name
from ..estimators.paired_tests import paired_t
from .folds import Splits, inner_folds, repeated_splits
from .methods import CONSTANT, Method
from .problem import TableProblem

#: Levels of the one-sided paired t-test.
LEVELS = (0.05, 0.1)
CLEARLY_BETTER = f"better (p < {LEVELS[0]:g}"
#: Tests for the verdicts: corrected for the overlap of training sets, or as in the papers.
TESTS = {"corrected": "t-test corrected for overlapping training sets", "paper": "paired t-test"}
#: The weighting that every method is compared with.
REFERENCE = "uniform"
Score = Callable[[Any, Any, np.ndarray], float]


@dataclass(frozen=True)
class LeaderboardRow:
    """One method's line of the leaderboard.

    Attributes
    ----------
    name, kind : str
    scores : array of shape (n_splits,)
        Accuracy, root mean squared error or the chosen scoring; NaN after an ``error``.
    seconds : float
        Time of one fit (with tuning) and its predictions, averaged over splits.
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
        """p-value of the one-sided paired t-test that ``row`` is better than ``other``.

        ``corrected`` enlarges the variance for the overlap of the training sets (Nadeau and
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
        """The best weighting if significantly better than the uniform one, else the uniform one."""
        mine = [row for row in self.rows if row.kind == "weighting" and not row.error]
        if not mine:
            return None
        plain = self.row(REFERENCE)
        if plain is None or self.verdict(mine[0]).startswith(CLEARLY_BETTER):
            return mine[0]
        return plain

    def conclusions(self) -> list[str]:
        """Sentences that sum up the table: the weightings, and the best other model."""
        fine = [row for row in self.rows if not row.error]
        mine = [row for row in fine if row.kind == "weighting"]
        others = [row for row in fine if row.kind == "scikit-learn"]
        chosen = self.recommended
        said: list[str] = []
        if chosen is None:
            return said
        best = mine[0]
        rivals = [row for row in fine if row.kind != "constant"]
        if self.row(CONSTANT) and not any(
            self.verdict(row, CONSTANT).startswith(CLEARLY_BETTER) for row in rivals
        ):
            return [f"By {self.metric}, no method is clearly better than a {CONSTANT}."]
        if best is not chosen:
            p = self.p_value(best, chosen, corrected=self.test == "corrected")
            said.append(
                f"{best.name} has the best mean score of the weightings, but it does not differ "
                f"significantly from {chosen.name} (p = {p:.2f}): {chosen.name} is as good a "
                "choice."
            )
        elif self.verdict(best).startswith(CLEARLY_BETTER):
            said.append(f"{best.name} is better than {REFERENCE}.")
        if self.row(CONSTANT) and not self.verdict(chosen, CONSTANT).startswith(CLEARLY_BETTER):
            said.append(f"{chosen.name} is not clearly better than a {CONSTANT}.")
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
        """The verdict as plus or minus signs: two at the stricter level, else one."""
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
        """The leaderboard as a table for the terminal."""
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
    scoring: str | None = None,
    journal: Journal | None = None,
) -> Leaderboard:
    """Fit every method on every training set, and score it on the test set.

    Everything learned from data (imputed values, categories, widths, weights, parameters) is
    learned from the training set. All methods are limited to ``n_jobs`` threads.
    """
    assert problem.target is not None
    if len(problem.y) < folds:
        raise ValueError(
            f"{folds} folds need at least as many rows; there are {len(problem.y)}. Choose "
            "fewer with --folds."
        )
    classifies = problem.target.task == "classification"
    splits = repeated_splits(problem.y, classifies, folds, repeats, seed, problem.groups)
    score, metric, greater = find_score(scoring, classifies)
    with threadpool_limits(None if n_jobs < 0 else n_jobs):
        rows = _run(problem, methods, splits, score, seed, advance, journal or Journal())
    sign = -1.0 if greater else 1.0
    rows.sort(key=lambda row: (bool(row.error), 0.0 if row.error else sign * row.mean))
    return Leaderboard(metric, greater, folds, repeats, tuple(rows), test)


def remark_on_classes(y: np.ndarray, scoring: str | None) -> str:
    """A sentence on what accuracy hides if one class is much larger than the others; else empty."""
    classes, sizes = np.unique(y, return_counts=True)
    if scoring is not None or sizes.max() <= UNEQUAL * sizes.mean():
        return ""
    largest = str(classes[sizes.argmax()])
    return (
        f"{sizes.max() / sizes.sum():.0%} of the rows are of class {largest!r}; "
        "--scoring balanced_accuracy counts all classes equally."
    )


def find_score(scoring: str | None, classifies: bool) -> tuple[Score, str, bool]:
    """The scoring function, its name, and whether larger values are better."""
    if scoring is not None:
        return get_scorer(scoring), scoring_name(scoring, classifies), True
    if classifies:
        return _accuracy, "accuracy", True
    return _root_mean_squared_error, "RMSE", False


def _accuracy(model: Any, X: Any, y: np.ndarray) -> float:
    return float(np.mean(model.predict(X) == y))


def _root_mean_squared_error(model: Any, X: Any, y: np.ndarray) -> float:
    return math.sqrt(np.mean((model.predict(X) - y) ** 2))


def _run(
    problem: TableProblem,
    methods: Sequence[Method],
    splits: Splits,
    score: Score,
    seed: int,
    advance: Callable[[str], None],
    journal: Journal,
) -> list[LeaderboardRow]:
    scores = np.full((len(methods), len(splits)), np.nan)
    seconds = np.zeros(len(methods))
    errors = [""] * len(methods)
    for s, (train, test) in enumerate(splits):
        # Encoded only if a method is not in the journal, and then once for all methods.
        parts = lru_cache(maxsize=1)(partial(encoded_parts, problem, train, test, seed))
        for m, method in enumerate(methods):
            advance(method.name)
            if errors[m]:
                continue
            cell = partial(score_method, method, parts, score)
            done = journal.recall("split", (s, m), cell)
            errors[m], scores[m, s] = done["error"], done["score"]
            seconds[m] += done["seconds"]
    return [
        LeaderboardRow(
            method.name, method.kind, scores[m], float(seconds[m]) / len(splits), errors[m]
        )
        for m, method in enumerate(methods)
    ]


@dataclass(frozen=True)
class Parts:
    """A training set, its bank and its folds, and the test set encoded in the same way."""

    X: Any
    y: np.ndarray
    bank: Any
    cv: Any
    X_new: Any
    y_new: np.ndarray


def encoded_parts(problem: TableProblem, train: np.ndarray, test: np.ndarray, seed: int) -> Parts:
    """The parts of a split; encoding and bank are learned from the training set."""
    assert problem.target is not None
    part = problem.frame.take(train)
    encoder = problem.encoder(part)
    X, y = encoder(part), problem.y[train]
    groups = None if problem.groups is None else problem.groups[train]
    cv = inner_folds(y, problem.target.task == "classification", seed, groups)
    X_new = encoder(problem.frame.take(test))
    return Parts(X, y, problem.bank(encoder, X), cv, X_new, problem.y[test])


def score_method(method: Method, parts: Callable[[], Parts], score: Score) -> Answers:
    """The score of a method on one split, and the time it took; or its error."""
    part = parts()
    started = time.perf_counter()
    try:
        model = method.make(part.bank, part.X, part.cv).fit(part.X, part.y)
        found = float(score(model, part.X_new, part.y_new))
    except (ValueError, TypeError, AttributeError, MemoryError, NotImplementedError) as error:
        return {"error": str(error).partition("\n")[0], "score": math.nan, "seconds": 0.0}
    if math.isnan(found):
        return {"error": "the score is not defined on a test set", "score": found, "seconds": 0.0}
    return {"error": "", "score": found, "seconds": time.perf_counter() - started}
