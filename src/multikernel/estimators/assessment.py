"""Scores of a model on samples it has not seen, next to those of a constant prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import balanced_accuracy_score, check_scoring, roc_auc_score

from .classifier import class_index
from .paired_tests import paired_t

#: Level of the corrected test at which something counts as learned.
LEVEL = 0.05
#: Classes are unequal if the largest has more than this multiple of an equal share.
UNEQUAL = 1.5
#: Number of parts into which held-out rows are divided for scoring.
PARTS = 10
#: With fewer samples than this, a test that is not significant is inconclusive.
FEW_SAMPLES = 50
#: Names of scikit-learn's scorings in sentences.
NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "roc_auc": "AUC",
    "roc_auc_ovr": "AUC",
    "r2": "R²",
    "f1": "F1",
    "f1_macro": "F1 (macro)",
    "neg_log_loss": "negative log loss",
    "neg_brier_score": "negative Brier score",
    "neg_mean_squared_error": "negative mean squared error",
    "neg_root_mean_squared_error": "negative RMSE",
    "neg_mean_absolute_error": "negative mean absolute error",
}

Splits = Sequence[tuple[np.ndarray, np.ndarray]]


def scoring_name(scoring: Any, classifies: bool) -> str:
    """Name of a scoring in sentences."""
    if scoring is None:
        return "accuracy" if classifies else "R²"
    if isinstance(scoring, str):
        return NAMES.get(scoring, scoring.replace("_", " "))
    return str(getattr(scoring, "__name__", "score"))


@dataclass(frozen=True)
class Measured:
    """One score of a model over the splits, and the same score of the baseline.

    Attributes
    ----------
    name : str
    score, standard_error : float
        Mean over the splits, and its standard error. The variance over the splits is raised, if
        necessary, to the variance that follows from the size of the test parts.
    baseline : float
        The same score of a constant prediction, on the same splits.
    gain_error : float
        Standard error of ``score - baseline``.
    p_value : float
        p-value of the corrected one-sided test that the model is better than the baseline.
    """

    name: str
    score: float
    standard_error: float
    baseline: float
    gain_error: float
    p_value: float

    def __str__(self) -> str:
        return f"{self.name} {_short(self.score)} ± {_short(self.standard_error)}"


@dataclass(frozen=True)
class Assessment:
    """Scores of a model on samples that it has not seen, and a verdict on them.

    Attributes
    ----------
    measured : tuple of Measured
        The score that the search maximised comes first.
    baseline : str
        What the baseline does, such as "always answering 'no'".
    verdict : {"learned", "unclear", "nothing"}
    never : tuple of str
        Classes that were never predicted for a held-out sample.
    n_splits : int
    n_samples : int
    class_weights_may_help : bool
        Whether one of the classes never predicted is rare, and no class weights were used.
    constant_target : bool
        Whether all held-out targets are the same number, which says nothing about the model.
    """

    measured: tuple[Measured, ...]
    baseline: str
    verdict: str
    never: tuple[str, ...]
    n_splits: int
    n_samples: int
    class_weights_may_help: bool = False
    constant_target: bool = False

    @property
    def headline(self) -> str:
        """One sentence with the score, the baseline and the verdict."""
        first = self.measured[0]
        text = f"{first} ({self.baseline}: {_short(first.baseline)})"
        return f"{text[0].upper()}{text[1:]}: {self.meaning}"

    @property
    def meaning(self) -> str:
        if self.constant_target:
            return (
                "the target is constant in these rows, so R² cannot be computed and the model "
                "cannot be judged."
            )
        if self.verdict == "nothing" and self.n_samples < FEW_SAMPLES:
            return f"no sign of learning, but {self.n_samples} samples may be too few to show it."
        if self.verdict == "nothing":
            return "nothing was learned."
        if self.verdict == "unclear":
            # With only two folds, a class is probably too small for more.
            more = "More data, or --folds 10," if 2 < self.n_splits < 10 else "More data"
            return f"not clearly better than the baseline. {more} may settle it."
        first = self.measured[0]
        if first.p_value >= LEVEL and len(self.measured) > 1:
            other = min(self.measured[1:], key=lambda one: one.p_value)
            return (
                f"no better than the baseline, but {other.name} shows that something was learned."
            )
        return "better than the baseline."

    @property
    def remarks(self) -> list[str]:
        """The other scores, and classes that are never predicted."""
        said = []
        if len(self.measured) > 1:
            others = [f"{one} (baseline {_short(one.baseline)})" for one in self.measured[1:]]
            said.append(f"Classes are of unequal size: {', '.join(others)}.")
        if self.never:
            listed = ", ".join(map(repr, self.never[:5]))
            more = f" and {len(self.never) - 5} more" if len(self.never) > 5 else ""
            advice = ", which the model does not separate from the others."
            if self.class_weights_may_help:
                advice = "; --class-weight balanced gives rare classes more weight."
            said.append(
                f"{listed}{more} {'is' if len(self.never) == 1 else 'are'} never predicted for a "
                f"held-out sample{advice}"
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "baseline": self.baseline,
            "scores": {
                one.name: {
                    "score": one.score,
                    "standard_error": one.standard_error,
                    "baseline": one.baseline,
                    "p_value": one.p_value,
                }
                for one in self.measured
            },
            "never_predicted": list(self.never),
            "n_splits": self.n_splits,
        }


def assess(estimator: Any, y: Any) -> Assessment | None:
    """Assess a fitted search; None for estimators without cross-validated predictions."""
    if not hasattr(estimator, "cv_predictions_"):
        return None
    y = np.asarray(y)
    classes = getattr(estimator, "classes_", None)
    splits = estimator.cv_indices_
    if len(splits) < 2 or (classes is None and y.ndim > 1):
        return None
    scoring = estimator.scoring
    results, best = estimator.cv_results_, estimator.best_index_
    scores = np.array([results[f"split{f}_test_score"][best] for f in range(len(splits))])
    dummy = DummyRegressor() if classes is None else DummyClassifier(strategy="prior")
    scorer = check_scoring(dummy, scoring)

    def constant(train: np.ndarray, test: np.ndarray) -> float:
        nothing = np.zeros((len(y), 1))
        return float(scorer(dummy.fit(nothing[train], y[train]), nothing[test], y[test]))

    outputs = estimator.cv_predictions_
    least = (0.0, 0.0)
    if scoring in (None, "accuracy", "r2"):
        least = _least_variances(y, outputs, classes, splits)
    overlap = float(np.mean([len(test) / len(train) for train, test in splits]))
    first = _measure(
        scoring_name(scoring, classes is not None),
        scores,
        np.array([constant(train, test) for train, test in splits]),
        overlap,
        *least,
    )
    if classes is None:
        return _assess_numbers(first, y, splits)
    weighted = getattr(estimator, "class_weight", None) is not None
    return _assess_classes(first, y, outputs, np.asarray(classes), splits, overlap, weighted)


def assess_held_out(estimator: Any, X: Any, y: Any) -> Assessment | None:
    """Assess a fitted classifier or regressor on rows that it has not seen; None for few rows.

    The rows are divided into parts, each of which is scored separately. The baseline of a part
    predicts the mean or the most frequent class of the other parts. R² of every part is relative
    to the variance of all rows, because that of a few rows varies too much. If the target is
    constant, there is no R², and the mean squared error takes its place.
    """
    y = np.asarray(y)
    if len(y) < FEW_SAMPLES:
        return None
    classes = getattr(estimator, "classes_", None)
    splits = _parts(y, classes is not None)
    name = scoring_name(None, classes is not None)
    if classes is None:
        outputs = np.asarray(estimator.predict(X))
        perfect, spread = 1.0, _spread(y)
        if is_constant(y):
            name, perfect = scoring_name("neg_mean_squared_error", False), 0.0
        scores = np.array([perfect - np.mean((y[i] - outputs[i]) ** 2) / spread for _, i in splits])
        constant = [
            perfect - np.mean((y[i] - y[train].mean()) ** 2) / spread for train, i in splits
        ]
    else:
        outputs = np.asarray(estimator.decision_function(X))
        right = classes[class_index(outputs)] == y
        scores = np.array([right[test].mean() for _, test in splits])
        constant = [np.mean(y[test] == most_frequent(y[train])) for train, test in splits]
    least = _least_variances(y, outputs, classes, splits)
    first = _measure(name, scores, np.array(constant), 0.0, *least)
    if classes is None:
        found = _assess_numbers(first, y, splits)
        return replace(found, verdict="unclear", constant_target=True) if is_constant(y) else found
    weighted = getattr(estimator, "class_weight", None) is not None
    return _assess_classes(first, y, outputs, np.asarray(classes), splits, 0.0, weighted)


def is_constant(y: np.ndarray) -> bool:
    """Whether all targets are the same number."""
    return bool(y.min() == y.max())


def _spread(y: np.ndarray) -> float:
    """The variance that errors are relative to; 1 if the target is constant."""
    return 1.0 if is_constant(y) else max(float(np.var(y)), 1e-300)


def _parts(y: np.ndarray, classification: bool) -> Splits:
    """Random parts of equal size and all other rows; every class is spread over the parts."""
    order = np.random.default_rng(0).permutation(len(y))
    if classification:
        order = order[np.argsort(np.unique(y[order], return_inverse=True)[1], kind="stable")]
    part = np.empty(len(y), dtype=np.intp)
    part[order] = np.arange(len(y)) % PARTS
    return [(np.flatnonzero(part != f), np.flatnonzero(part == f)) for f in range(PARTS)]


def most_frequent(y: np.ndarray) -> Any:
    """The label that occurs most often."""
    labels, counts = np.unique(y, return_counts=True)
    return labels[int(np.argmax(counts))]


def _assess_numbers(first: Measured, y: np.ndarray, splits: Splits) -> Assessment:
    baseline = "always answering the mean"
    return Assessment((first,), baseline, _verdict([first]), (), len(splits), len(y))


def _assess_classes(
    first: Measured,
    y: np.ndarray,
    decisions: np.ndarray,
    classes: np.ndarray,
    splits: Splits,
    overlap: float,
    weighted: bool,
) -> Assessment:
    labels, counts = np.unique(y, return_counts=True)
    most = labels[int(np.argmax(counts))]
    held = ~np.isnan(decisions.reshape(len(y), -1)).any(axis=1)
    answers = classes[class_index(decisions[held])]
    absent = [c for c in classes if not np.any(answers == c)]
    never = tuple(map(str, absent))
    fair = counts.sum() / len(counts) / UNEQUAL
    rare = any(np.count_nonzero(y == c) < fair for c in absent)
    measured = [first]
    if counts.max() > UNEQUAL * counts.sum() / len(counts):
        more: list[tuple[str, Callable[..., list[float]], Callable[..., float], float]] = [
            ("balanced accuracy", balanced_accuracies, _variance_of_recalls, 1.0 / len(labels)),
            ("AUC", areas_under_curves, _variance_of_areas, 0.5),
        ]
        for name, function, variance, baseline in more:
            if name == first.name:
                continue
            found = function(y, decisions, classes, splits)
            kept = np.isfinite(found)
            least = variance(y, decisions, classes, splits)
            if kept.sum() < 2:
                continue
            values = np.array(found)[kept]
            constant = np.full(len(values), baseline)
            measured.append(_measure(name, values, constant, overlap, least, least))
    tests = measured[1:] or measured
    shown = most.item() if hasattr(most, "item") else most
    return Assessment(
        tuple(measured),
        f"always answering {str(shown)!r}",
        _verdict(tests),
        never,
        len(splits),
        len(y),
        rare and not weighted,
    )


def balanced_accuracies(
    y: np.ndarray, decisions: np.ndarray, classes: np.ndarray, splits: Splits
) -> list[float]:
    """Balanced accuracy of every test part.

    A part without samples of some class has no recall for it. If there is such a part, correct
    predictions are weighted by the inverse frequencies of the classes in all samples instead: the
    mean over parts of equal size is then the balanced accuracy of all samples.
    """
    labels, which, counts = np.unique(y, return_inverse=True, return_counts=True)
    answers = classes[class_index(decisions)]
    if all(len(np.unique(which[test])) == len(labels) for _, test in splits):
        return [float(balanced_accuracy_score(y[test], answers[test])) for _, test in splits]
    recalled = (answers == y) * (len(y) / (len(labels) * counts[which]))
    return [float(recalled[test].mean()) for _, test in splits]


def areas_under_curves(
    y: np.ndarray, decisions: np.ndarray, classes: np.ndarray, splits: Splits
) -> list[float]:
    """Area under the ROC curve of every test part; NaN for parts with one class."""
    return [area_under_curve(y[test], decisions[test], classes) for _, test in splits]


def area_under_curve(y: np.ndarray, decisions: np.ndarray, classes: np.ndarray) -> float:
    """Area under the ROC curve; with more than two classes, the mean of one-vs-rest areas."""
    columns = decisions.reshape(len(y), -1)
    columns = np.where(np.isfinite(columns), columns, -1e30)
    labels = classes[1:] if len(classes) == 2 else classes
    areas = [
        roc_auc_score(y == label, column)
        for label, column in zip(labels, columns.T, strict=True)
        if 0 < np.count_nonzero(y == label) < len(y)
    ]
    return float(np.mean(areas)) if areas else float("nan")


def _least_variances(
    y: np.ndarray, outputs: np.ndarray, classes: Any, splits: Splits
) -> tuple[float, float]:
    """Variances of the default score and of its gain on one test part, due to its size alone.

    Accuracy is the mean over the samples of "predicted correctly", and R² the mean of one minus
    the squared error divided by the variance of y. The gain is the difference from the baseline.
    """
    values, gains = [], []
    spread = _spread(y) if classes is None else 1.0
    for train, test in splits:
        if classes is not None:
            same = y[test] == most_frequent(y[train])
            right = np.asarray(classes)[class_index(outputs[test])] == y[test]
            values.append(right.astype(float))
            gains.append(right.astype(float) - same)
        else:
            constant = (y[test] - y[train].mean()) ** 2
            squared = (y[test] - outputs[test]) ** 2
            values.append(-squared / spread)
            gains.append((constant - squared) / spread)
    size = float(np.mean([len(test) for _, test in splits]))
    of_score, of_gain = (float(np.var(np.concatenate(each))) / size for each in (values, gains))
    return of_score, of_gain


def _variance_of_recalls(
    y: np.ndarray, decisions: np.ndarray, classes: np.ndarray, splits: Splits
) -> float:
    """Variance of the balanced accuracy on one test part, due to its size alone."""
    answers = classes[class_index(decisions)]
    labels, counts = np.unique(y, return_counts=True)
    total = 0.0
    for label, size in zip(labels, counts, strict=True):
        recall = (int(np.count_nonzero(answers[y == label] == label)) + 1) / (size + 2)
        total += float(recall * (1 - recall)) * len(splits) / size
    return total / len(labels) ** 2


def _variance_of_areas(
    y: np.ndarray, decisions: np.ndarray, classes: np.ndarray, splits: Splits
) -> float:
    """Variance of the area under the ROC curve on one test part if ranks are random."""
    each = []
    for label in classes[1:] if len(classes) == 2 else classes:
        own = max(float(np.count_nonzero(y == label)) / len(splits), 1.0)
        other = max(float(np.count_nonzero(y != label)) / len(splits), 1.0)
        each.append((own + other + 1) / (12 * own * other))
    return float(np.mean(each))


def _measure(
    name: str,
    scores: np.ndarray,
    baseline: np.ndarray,
    overlap: float,
    least: float,
    least_of_gain: float,
) -> Measured:
    """Summary of the scores; ``least`` and ``least_of_gain`` are lower bounds on variances."""
    return Measured(
        name,
        float(scores.mean()),
        float(np.sqrt(max(scores.var(ddof=1), least) / len(scores))),
        float(baseline.mean()),
        float(np.sqrt(max((scores - baseline).var(ddof=1), least_of_gain) / len(scores))),
        paired_t(scores - baseline, overlap, least_of_gain),
    )


def _verdict(tests: Sequence[Measured]) -> str:
    """Whether any of the tests is significant, at a level divided by their number (Bonferroni)."""
    if any(one.p_value < LEVEL / len(tests) for one in tests):
        return "learned"
    hopeful = any(one.score - one.baseline > 2 * one.gain_error for one in tests)
    return "unclear" if hopeful else "nothing"


def _short(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.4g}"
