"""How good are probabilities and intervals? Log loss, Brier score, reliability; coverage and width.

    python -m benchmarks.probabilities            # about ten minutes
    python -m benchmarks.probabilities --splits 1

Classification: ten sets, at most 500 training samples, default estimators against
``CalibratedClassifierCV(SVC())`` of scikit-learn on standardised columns. Regression: ten tasks, at
most 300 training samples, coverage 0.9. Results go to ``benchmarks/results/probabilities.md`` and
the reliability picture to ``docs/images/reliability.svg``.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import multikernel as mk
from experiments.datasets import load
from multikernel._places import save_figure, write_atomically

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "probabilities.md"
PICTURE = HERE.parent / "docs" / "images" / "reliability.svg"

CLASSIFICATION = (
    *("climate", "diabetes", "german", "heart", "ionosphere", "retinopathy", "sonar"),
    *("spambase", "waveform", "digits"),
)
MAX_CLASSIFICATION_SAMPLES, MAX_REGRESSION_SAMPLES, MAX_TEST_SAMPLES = 500, 300, 2000
COVERAGE = 0.9
N_BINS = 10

CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "hinge": lambda: mk.MultiKernelClassifier(),
    "hinge, alignf weights": lambda: mk.MultiKernelClassifier(weighting="alignf"),
    "squared": lambda: mk.MultiKernelClassifier(loss="squared"),
    "logistic": lambda: mk.MultiKernelClassifier(loss="logistic"),
    "logistic, sigmoid": lambda: mk.MultiKernelClassifier(loss="logistic", calibration="sigmoid"),
    "voted": lambda: make_pipeline(StandardScaler(), mk.VotedKernelClassifier()),
    "CalibratedClassifierCV(SVC)": lambda: CalibratedClassifierCV(
        make_pipeline(StandardScaler(), SVC())
    ),
    "the same, ensemble=False": lambda: CalibratedClassifierCV(
        make_pipeline(StandardScaler(), SVC()), ensemble=False
    ),
}
REGRESSORS: dict[str, tuple[Callable[[], Any], str]] = {
    "jackknife+": (lambda: mk.MultiKernelRegressor(), "jackknife+"),
    "jackknife+, alignf weights": (
        lambda: mk.MultiKernelRegressor(weighting="alignf"),
        "jackknife+",
    ),
    "cv+": (lambda: mk.MultiKernelRegressor(), "cv+"),
    "cv+, SVR": (lambda: mk.MultiKernelRegressor(loss="epsilon_insensitive", alpha=0.1), "cv+"),
    "split": (lambda: mk.MultiKernelRegressor(), "split"),
}


def classification(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = load(name)
    return np.asarray(data.data, dtype=float), np.asarray(data.target)


def regression() -> dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]]:
    """Ten tasks, as functions of the seed."""

    def stored(name: str) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
        return lambda seed: classification(name)

    def uneven(seed: int) -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng(seed)
        X = random.normal(size=(1500, 4))
        noise = (0.2 + 0.5 * np.abs(X[:, 0])) * random.standard_t(4, size=1500)
        return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise

    names = ("boston", "kin8nm", "kin8fh", "casp_rmsd", "winewhite", "diabetes_progression")
    tasks = {name: stored(name) for name in names}
    tasks["friedman1"] = lambda seed: make_friedman1(1500, noise=1.0, random_state=seed)
    tasks["friedman2"] = lambda seed: make_friedman2(1500, noise=120.0, random_state=seed)
    tasks["friedman3"] = lambda seed: make_friedman3(1500, noise=0.1, random_state=seed)
    tasks["uneven noise"] = uneven
    return tasks


def halves(X: np.ndarray, y: np.ndarray, seed: int, limit: int, stratify: Any) -> Any:
    size = min(limit, 2 * len(y) // 3)
    parts = train_test_split(X, y, train_size=size, random_state=seed, stratify=stratify)
    return parts[0], parts[2], parts[1][:MAX_TEST_SAMPLES], parts[3][:MAX_TEST_SAMPLES]


def measure_probabilities(splits: int) -> tuple[dict[str, Any], dict[str, list[np.ndarray]]]:
    """``{set: {method: (log loss, Brier score)}}``, and (probability, hit) pairs of each method."""
    table: dict[str, Any] = {}
    pairs: dict[str, list[np.ndarray]] = {name: [] for name in CLASSIFIERS}
    for name in CLASSIFICATION:
        X, y = classification(name)
        found: dict[str, list[tuple[float, float]]] = {method: [] for method in CLASSIFIERS}
        for seed in range(splits):
            train, labels, new, truth = halves(X, y, seed, MAX_CLASSIFICATION_SAMPLES, y)
            for method, make in CLASSIFIERS.items():
                model = make().fit(train, labels)
                p = model.predict_proba(new)
                hits = truth[:, None] == model.classes_
                brier = float(np.mean(np.sum((p - hits) ** 2, axis=1)))
                found[method].append((log_loss(truth, p, labels=model.classes_), brier))
                pairs[method].append(np.column_stack([p.ravel(), hits.ravel()]))
        table[name] = {method: np.mean(values, axis=0) for method, values in found.items()}
        print(name, {m: v.round(4).tolist() for m, v in table[name].items()}, flush=True)
    return table, pairs


def measure_intervals(splits: int) -> dict[str, Any]:
    """``{task: {method: (coverage, width in standard deviations of y)}}``."""
    table: dict[str, Any] = {}
    for name, make_data in regression().items():
        found: dict[str, list[tuple[float, float]]] = {method: [] for method in REGRESSORS}
        for seed in range(splits):
            X, y = make_data(seed)
            train, outputs, new, truth = halves(X, y, seed, MAX_REGRESSION_SAMPLES, None)
            for method, (make, kind) in REGRESSORS.items():
                spread = outputs.std()
                model = make().fit(train, outputs / spread)
                lower, upper = model.predict_interval(new, COVERAGE, method=kind)
                held = (lower <= truth / spread) & (truth / spread <= upper)
                found[method].append((float(held.mean()), float(np.mean(upper - lower))))
        table[name] = {method: np.mean(values, axis=0) for method, values in found.items()}
        print(name, {m: v.round(4).tolist() for m, v in table[name].items()}, flush=True)
    return table


def reliability(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean probability and frequency in each bin, and the expected calibration error."""
    p, hit = pairs.T
    bins = np.clip((N_BINS * p).astype(int), 0, N_BINS - 1)
    counts = np.bincount(bins, minlength=N_BINS)
    used = counts > 0
    means = np.bincount(bins, p, N_BINS)[used] / counts[used]
    shares = np.bincount(bins, hit, N_BINS)[used] / counts[used]
    error = float(np.sum(counts[used] * np.abs(means - shares)) / len(p))
    return means, shares, error


def as_table(table: dict[str, Any], methods: list[str], column: int, digits: int = 3) -> list[str]:
    lines = ["| | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for name, row in table.items():
        values = [f"{row[m][column]:.{digits}f}" for m in methods]
        lines.append(f"| {name} | " + " | ".join(values) + " |")
    means = [np.mean([row[m][column] for row in table.values()]) for m in methods]
    lines.append("| **mean** | " + " | ".join(f"**{v:.{digits}f}**" for v in means) + " |")
    return lines


def draw(pairs: dict[str, list[np.ndarray]]) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "multikernel"
    shown = {
        "hinge": "MultiKernelClassifier()",
        "hinge, alignf weights": 'MultiKernelClassifier(weighting="alignf")',
        "CalibratedClassifierCV(SVC)": "CalibratedClassifierCV(SVC())",
    }
    figure, axes = plt.subplots(figsize=(5.2, 4.6), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for (method, label), mark in zip(shown.items(), "os^", strict=True):
        means, shares, error = reliability(np.vstack(pairs[method]))
        axes.plot(means, shares, marker=mark, markersize=5, label=f"{label}: {error:.3f}")
    axes.set(xlabel="predicted probability", ylabel="frequency of the class", aspect="equal")
    axes.legend(title="expected calibration error", frameon=False, loc="upper left", fontsize=8)
    axes.set_title("Reliability on ten sets, test samples", fontsize=10)
    PICTURE.parent.mkdir(exist_ok=True)
    save_figure(figure, PICTURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    splits = parser.parse_args().splits
    warnings.filterwarnings("ignore")
    probabilities, pairs = measure_probabilities(splits)
    intervals = measure_intervals(splits)
    methods = list(CLASSIFIERS)
    lines = [
        "# Probabilities and intervals",
        "",
        f"`python -m benchmarks.probabilities --splits {splits}`: means over {splits} random "
        f"splits, at most {MAX_CLASSIFICATION_SAMPLES} training samples for classification and "
        f"{MAX_REGRESSION_SAMPLES} for regression.",
        "",
        "## Log loss",
        "",
        *as_table(probabilities, methods, 0),
        "",
        "## Brier score (sum over classes)",
        "",
        *as_table(probabilities, methods, 1),
        "",
        "## Expected calibration error",
        "",
        "Over all classes and test samples of all sets, ten bins.",
        "",
        "| | error |",
        "|---|---|",
        *(f"| {m} | {reliability(np.vstack(pairs[m]))[2]:.4f} |" for m in methods),
        "",
        f"## Coverage of intervals with coverage={COVERAGE}",
        "",
        *as_table(intervals, list(REGRESSORS), 0),
        "",
        "## Width of the intervals, in standard deviations of y",
        "",
        *as_table(intervals, list(REGRESSORS), 1, 2),
        "",
    ]
    write_atomically(RESULTS, "\n".join(lines))
    draw(pairs)
    print(json.dumps({"results": str(RESULTS), "picture": str(PICTURE)}))


if __name__ == "__main__":
    main()
