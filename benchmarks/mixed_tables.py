"""Test error on tables of numbers and categories: the frame as it is against encodings and peers.

    python -m benchmarks.mixed_tables [--sets NAME ...] [--samples N] [--splits N]

Three data frames are made from the stored sets: german credit, heart disease, and the census of
a9a, whose 123 zeros and ones are put back into the 14 columns that they come from: ten categories,
and four numbers of which five ordered classes are known. ``MultiKernelClassifier()`` gets the frame
and nothing else, with the default loss and with least squares. Beside it: the same estimator after
one-hot encoding, the same with codes taken for numbers, a support vector machine on one-hot columns
with C and gamma chosen by cross-validation, and gradient boosting of scikit-learn with its own
treatment of categories.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import multikernel as mk
from experiments.datasets import load

MAX_TEST_SAMPLES = 2000
HEART = {
    "categories": ["sex", "chest_pain", "fasting_sugar", "rest_ecg", "angina", "thal"],
    "ordered": ["slope"],
}
GERMAN = {
    "categories": ["a1", "a3", "a5", "a7", "a9", "a11", *(f"a{j}" for j in range(14, 25))],
    "ordered": ["a6", "a8", "a12"],
}
#: The columns of the census and how many of the 123 zeros and ones each of them has.
CENSUS = {
    **{"age": 5, "workclass": 8, "weight": 5, "education": 16, "education_years": 5},
    **{"marital_status": 7, "occupation": 14, "relationship": 6, "race": 5, "sex": 2},
    **{"capital_gain": 2, "capital_loss": 2, "hours": 5, "country": 41},
}
CENSUS_ORDERED = ("age", "weight", "education_years", "hours")


def german() -> tuple[pd.DataFrame, np.ndarray]:
    return _typed("german", **GERMAN)


def heart() -> tuple[pd.DataFrame, np.ndarray]:
    return _typed("heart", **HEART)


def census() -> tuple[pd.DataFrame, np.ndarray]:
    """The table that a9a was made from, up to the classes of its numbers."""
    data = load("a9a")
    X = np.asarray(data.data.toarray(), dtype=bool)
    columns, start = {}, 0
    for name, width in CENSUS.items():
        block = X[:, start : start + width]
        start += width
        codes = np.where(block.any(axis=1), block.argmax(axis=1), -1)
        levels = [f"{name} {j}" for j in range(width)]
        columns[name] = pd.Categorical.from_codes(codes, levels, ordered=name in CENSUS_ORDERED)
    frame = pd.DataFrame(columns)
    for name in CENSUS_ORDERED:  # a place in the order cannot be missing
        frame[name] = frame[name].fillna(frame[name].cat.categories[0])
    return frame, np.asarray(data.target)


def _typed(name: str, categories: list[str], ordered: list[str]) -> tuple[pd.DataFrame, np.ndarray]:
    data = load(name)
    frame = pd.DataFrame(np.asarray(data.data), columns=list(data.feature_names))
    frame[categories] = frame[categories].astype("category")
    for column in ordered:
        levels = np.unique(frame[column])
        frame[column] = pd.Categorical(frame[column], categories=levels, ordered=True)
    return frame, np.asarray(data.target)


SETS: dict[str, Callable[[], tuple[pd.DataFrame, np.ndarray]]] = {
    "german": german,
    "heart": heart,
    "census (a9a)": census,
}


def one_hot(frame: pd.DataFrame) -> Any:
    """One-hot categories beside standardised numbers; places for ordered categories."""
    kinds = {c: frame[c].dtype for c in frame}
    categories = [c for c, kind in kinds.items() if str(kind) == "category" and not kind.ordered]
    others = [c for c in kinds if c not in categories]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((encoder, categories), (StandardScaler(), others))


def as_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Codes and places in the columns of categories."""
    return frame.apply(lambda c: c.cat.codes.astype(float) if str(c.dtype) == "category" else c)


def with_places(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with numbers in place of ordered categories, for encoders that know none."""
    out = frame.copy()
    for column in frame:
        kind = frame[column].dtype
        if str(kind) == "category" and kind.ordered:
            out[column] = frame[column].cat.codes.astype(float)
    return out


def methods(frame: pd.DataFrame) -> dict[str, tuple[Any, Callable[[pd.DataFrame], Any]]]:
    grid = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": [0.001, 0.01, 0.1, 1.0]}
    svc = make_pipeline(one_hot(frame), SVC())
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype")
    return {
        "frame": (mk.MultiKernelClassifier(), lambda table: table),
        "frame, squared loss": (mk.MultiKernelClassifier(loss="squared"), lambda table: table),
        "one-hot": (make_pipeline(one_hot(frame), mk.MultiKernelClassifier()), with_places),
        "codes as numbers": (mk.MultiKernelClassifier(), as_numbers),
        "SVC, one-hot, tuned": (GridSearchCV(svc, grid), with_places),
        "gradient boosting": (boosting, with_places),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--samples", type=int, default=800, help="training samples, at most")
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # a level that a training part lacks
    for n, name in enumerate(options.sets):
        frame, y = SETS[name]()
        size = min(options.samples, int(0.8 * len(y)))
        found: dict[str, list[tuple[float, float]]] = {}
        for split in range(options.splits):
            rows, rest = train_test_split(
                np.arange(len(y)), train_size=size, random_state=split, stratify=y
            )
            rest = rest[:MAX_TEST_SAMPLES]
            for method, (model, prepare) in methods(with_places(frame)).items():
                table, begun = prepare(frame), time.perf_counter()
                model.fit(table.iloc[rows], y[rows])
                error = 1.0 - model.score(table.iloc[rest], y[rest])
                found.setdefault(method, []).append((error, time.perf_counter() - begun))
        if n == 0:
            print("| set | training samples | " + " | ".join(found) + " |")
            print("|---" * (2 + len(found)) + "|", flush=True)
        cells = []
        for values in found.values():
            errors, seconds = np.array(values).T
            spread = f"{100 * errors.mean():.1f} ± {100 * errors.std():.1f}"
            cells.append(f"{spread} ({seconds.mean():.1f} s)")
        print(f"| {name} | {size} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
