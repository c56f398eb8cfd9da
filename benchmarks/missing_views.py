"""Test error with part of the views removed: ignoring, completing, mean filling, or dropping.

    python -m benchmarks.missing_views [--sets NAME ...] [--samples N] [--splits N] [--imml]

Of every (sample, view) pair the given share is removed at random, in training and test samples
alike; every sample keeps at least one view. Compared are ``missing="ignore"``,
``missing="complete"`` and ``missing="absent"`` (with the hinge loss and C = 0.1), column means in
place of missing values (``SimpleImputer``) before the same kernels, and training on complete
samples alone (test samples are then filled with the means of these). Kernels are two Gaussians per
view, with one and two median distances as their widths.

With ``--imml`` the two classifiers of imml for tables, M3Care and MUSE, are trained on the same
samples, in an environment of their own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import multikernel as mk

from .environments import python
from .runner import THREADS

SHARES = (0.1, 0.4, 0.8)
RULES = ("uniform", "loo")
METHODS = (
    *("ignored", "completed", "margins in observed views", "mean filled"),
    "incomplete samples dropped",
)
IMML = ("M3Care", "MUSE")
MAX_TEST_SAMPLES = 500


def remove(X: np.ndarray, views: dict[str, slice], share: float, seed: int) -> np.ndarray:
    """X with this share of its (sample, view) pairs removed; one view of a sample stays."""
    rng = np.random.default_rng(seed)
    gone = rng.random((len(X), len(views))) < share
    gone[np.arange(len(X)), rng.integers(len(views), size=len(X))] &= ~gone.all(axis=1)
    out = X.copy()
    for lost, columns in zip(gone.T, views.values(), strict=True):
        out[lost, columns] = np.nan
    return out


def errors(
    X: np.ndarray, y: np.ndarray, n: int, views: dict[str, slice], rule: str
) -> dict[str, float]:
    """Test errors by method, the first n samples being the training sample."""
    widths = mk.at_distances(mk.Gaussian(), [1.0, 2.0])
    bank = mk.per_view({name: (widths, columns) for name, columns in views.items()})

    def model(missing: str = "error") -> mk.MultiKernelClassifier:
        return mk.MultiKernelClassifier(bank, rule, "loo", loss="squared", missing=missing)

    def test(fitted: object) -> float:
        return float(1.0 - fitted.score(X[n:], y[n:]))  # type: ignore[attr-defined]

    found = {"ignored": test(model("ignore").fit(X[:n], y[:n]))}
    found["completed"] = test(model("complete").fit(X[:n], y[:n]))
    if rule == "uniform":
        margins = mk.MultiKernelClassifier(bank, mk.ObservedMargins(), 0.1, missing="absent")
        found["margins in observed views"] = test(margins.fit(X[:n], y[:n]))
    else:
        found["margins in observed views"] = np.nan
    filled = make_pipeline(SimpleImputer(keep_empty_features=True), model())
    found["mean filled"] = test(filled.fit(X[:n], y[:n]))
    complete = np.flatnonzero(~np.isnan(X[:n]).any(axis=1))
    found["incomplete samples dropped"] = np.nan
    if len(complete) >= 10 and len(np.unique(y[complete])) > 1:
        dropped = make_pipeline(SimpleImputer(keep_empty_features=True), model())
        found["incomplete samples dropped"] = test(dropped.fit(X[complete], y[complete]))
    return found


def errors_of_imml(
    X: np.ndarray, y: np.ndarray, n: int, views: dict[str, slice]
) -> dict[str, float]:
    """Test errors of imml's classifiers; NaN for one that refuses the problem."""
    codes = np.unique(y, return_inverse=True)[1]
    columns = {f"view{j}": X[:, part] for j, part in enumerate(views.values())}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        np.savez(path, n=n, y=codes, views=len(views), **columns)
        script = Path(__file__).parent / "peers" / "run_imml.py"
        single = {**os.environ, **dict.fromkeys(THREADS, "1")}
        done = subprocess.run(
            [str(python("imml")), str(script), str(path)],
            capture_output=True,
            text=True,
            check=True,
            env=single,
        )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
    return {**dict.fromkeys(IMML, np.nan), **{name: error for name, error, _ in lines}}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["mfeat", "proteinfold"])
    parser.add_argument("--samples", type=int, default=200, help="training samples")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=list(RULES))
    parser.add_argument("--imml", action="store_true", help="imml's classifiers, and no others")
    options = parser.parse_args()
    methods = IMML if options.imml else METHODS
    rules = RULES[:1] if options.imml else options.rules  # imml has no kernels to weigh
    print(f"| set | removed | weighting | {' | '.join(methods)} |")
    print("|---" * (3 + len(methods)) + "|", flush=True)
    for rule, share, name in itertools.product(rules, SHARES, options.sets):
        data = mk.datasets.load(name)
        y, results = np.asarray(data.target), []
        for split in range(options.splits):
            order = np.random.default_rng(split).permutation(len(y))
            rows = order[: options.samples + MAX_TEST_SAMPLES]
            X = remove(data.data[rows].astype(float), data.views, share, split)
            problem = (X, y[rows], options.samples, data.views)
            results.append(errors_of_imml(*problem) if options.imml else errors(*problem, rule))
        cells = [[one[method] for one in results] for method in methods]
        shown = " | ".join(_cell(np.array(values)) for values in cells)
        print(f"| {name} | {share:.0%} | {rule} | {shown} |", flush=True)


def _cell(values: np.ndarray) -> str:
    """Mean and standard deviation in per cent; a dash where too few samples were left."""
    if np.isnan(values).any():
        return "–"
    return f"{100 * values.mean():.1f} ± {100 * values.std():.1f}"


if __name__ == "__main__":
    main()
