"""The measurements; each runs in a process of its own, so that its peak memory is its own."""

from __future__ import annotations

import resource
import sys
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk
from threadpoolctl import threadpool_limits

import multikernel as mk
from benchmarks.scale.generated import COLUMNS, block, generated_rows, values
from benchmarks.scale.problems import load, split

#: 50 Gaussians with 40 features each.
KERNELS, RANK = 50, 40


def peak_gigabytes() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1e6 if sys.platform != "darwin" else 1e9)


def seconds_of_products(n: int, width: int, height: int = 2000, repeats: int = 12) -> float:
    """CPU seconds of ``F'F`` for n rows, in blocks like those of a pass; one triangle each."""
    F = np.random.default_rng(0).standard_normal((height, width))
    dsyrk(1.0, F.T)
    times = []
    for _ in range(repeats):
        start = process_time()
        dsyrk(1.0, F.T)
        times.append(process_time() - start)
    return float(np.median(times)) * n / height


def bank() -> Any:
    return mk.gaussians(np.geomspace(1e-3, 0.3, KERNELS))


def rows(n: int) -> dict[str, Any]:
    """One pass over n generated rows, then further rules from its sums."""
    with threadpool_limits(1):
        way = mk.Nystroem(rank=RANK)
        warm = mk.MultiKernelRegressor(bank(), weighting="uniform", approximation=way)
        warm.fit(generated_rows(2000))  # compiled loops are loaded
        model = mk.MultiKernelRegressor(bank(), weighting="alignf", approximation=way)
        start, wall = process_time(), perf_counter()
        model.fit(generated_rows(n))
        cpu, wall = process_time() - start, perf_counter() - wall
        features = model.approximation_.n_features
        products = seconds_of_products(n, features + 1)
        again = []
        for change in ({"alpha": 10.0}, {"weighting": "uniform"}, {"weighting": "lp"}):
            start = process_time()
            model.set_params(**change).refit()
            again.append(process_time() - start)
        X, _ = block(10**6, 5000)
        f = values(X)
        error = float(np.mean((model.predict(X) - f) ** 2) / np.var(f))
    return {
        "n": n,
        "columns": COLUMNS,
        "kernels": KERNELS,
        "features": features,
        "cpu_s": cpu,
        "wall_s": wall,
        "products_s": products,
        "ratio": cpu / products,
        "refits_s": again,
        "peak_gb": peak_gigabytes(),
        "relative_error": error,
    }


def exact(n: int = 20_000, problem: str = "generated") -> dict[str, Any]:
    """Held-out error at rank 1,000 against the exact fit, both with the same rule."""
    if problem == "generated":
        X = np.random.default_rng(1).standard_normal((n + 5000, 8))
        f = np.sin(X[:, 0] + X[:, 1]) * X[:, 2] + 0.5 * X[:, 3]
        y = f + 0.3 * np.random.default_rng(2).standard_normal(len(f))
    else:
        X, y, _ = load(problem)
        order = np.random.default_rng(1).permutation(len(X))[: n + 5000]
        X, y = X[order], y[order]
        X, y = (X - X[:n].mean(axis=0)) / X[:n].std(axis=0), (y - y[:n].mean()) / y[:n].std()
    kernels = mk.gaussians([0.01, 0.03, 0.1])
    out: dict[str, Any] = {"n": n, "data": problem, "rank": 1000}
    with threadpool_limits(1):
        for name, way in (("features", mk.Nystroem(rank=1000)), ("exact", None)):
            model = mk.MultiKernelRegressor(kernels, weighting="uniform", approximation=way)
            start = process_time()
            model.fit(X[:n], y[:n])
            out[f"{name}_cpu_s"] = process_time() - start
            left = model.predict(X[n:]) - y[n:]
            out[f"{name}_rmse"] = float(np.sqrt(np.mean(left**2)))
            out[f"{name}_peak_gb"] = peak_gigabytes()
    return out


def ours(problem: str, count: int, loss: str = "squared") -> dict[str, Any]:
    """The default bank with features, on a public set."""
    train, test, kind = split(*load(problem))
    options: dict[str, Any] = {"approximation": mk.Nystroem(rank=count or None)}
    with threadpool_limits(1):
        if kind == "regression":
            model: Any = mk.MultiKernelRegressor(**options)
        else:
            model = mk.MultiKernelClassifier(loss=loss, **options)
        small = slice(0, 300)  # compiled loops are loaded
        options["approximation"].set_params(rank=20)
        model.fit(train[0][small], train[1][small])
        options["approximation"].set_params(rank=count or None)
        start = process_time()
        model.fit(*train)
        cpu = process_time() - start
        return {
            "features": model.approximation_.n_features,
            "cpu_s": cpu,
            "error": error_of(model.predict(test[0]), test[1], kind),
            "peak_gb": peak_gigabytes(),
        }


def streamed(who: str, count: int, n: int) -> dict[str, Any]:
    """n generated rows, which do not fit into memory as features: ours, or scikit-learn's SGD.

    scikit-learn chooses width and penalty on 50,000 rows, then reads all rows once with
    ``partial_fit``.
    """
    X, _ = block(10**6, 5000)
    f = values(X)
    with threadpool_limits(1):
        if who == "ours":
            way = mk.Nystroem(rank=20)
            model = mk.MultiKernelRegressor(approximation=way)
            model.fit(generated_rows(2000))  # compiled loops are loaded
            way.set_params(rank=count or None)
            start = process_time()
            model.fit(generated_rows(n))
            cpu = process_time() - start
            count = model.approximation_.n_features
        else:
            start = process_time()
            pieces = generated_rows(n).pieces
            some = [next(iter(piece.read(0)))[:2] for piece in pieces[:4]]
            train = (np.concatenate(part)[:50_000] for part in zip(*some, strict=True))
            found = grid_of(who, count, COLUMNS, regression=True)
            model = found.fit(*train).best_estimator_
            last = model[-1]
            for piece in pieces:
                for rows_of_piece, y, _ in piece.read(0):
                    last.partial_fit(model[:-1].transform(rows_of_piece), y)
            cpu = process_time() - start
        error = float(np.sqrt(np.mean((model.predict(X) - f) ** 2)) / np.std(f))
    return {"features": count, "cpu_s": cpu, "error": error, "peak_gb": peak_gigabytes()}


def peer(problem: str, who: str, count: int) -> dict[str, Any]:
    """scikit-learn: features of one Gaussian, then a linear model; width and penalty by folds."""
    train, test, kind = split(*load(problem))
    found = grid_of(who, count, train[0].shape[1], regression=kind == "regression")
    with threadpool_limits(1):
        start = process_time()
        found.fit(*train)
        cpu = process_time() - start
        start = process_time()
        found.best_estimator_.fit(*train)
        once = process_time() - start
    return {
        "features": count,
        "cpu_s": cpu,
        "one_fit_cpu_s": once,
        "error": error_of(found.predict(test[0]), test[1], kind),
        "peak_gb": peak_gigabytes(),
    }


def grid_of(who: str, count: int, n_columns: int, regression: bool) -> Any:
    """scikit-learn's search over four widths and three penalties by three folds."""
    from sklearn.kernel_approximation import Nystroem, RBFSampler
    from sklearn.linear_model import Ridge, RidgeClassifier, SGDClassifier, SGDRegressor
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features, linear = who.split("+")
    gammas = (np.array([0.1, 0.3, 1.0, 3.0]) / n_columns).tolist()
    make = Nystroem if features == "Nystroem" else RBFSampler
    if linear == "Ridge":
        last: Any = Ridge() if regression else RidgeClassifier()
        penalties = [1e-2, 1e-1, 1.0]
    else:
        last = SGDRegressor(random_state=0) if regression else SGDClassifier(random_state=0)
        penalties = [1e-6, 1e-5, 1e-4]
    steps = make_pipeline(StandardScaler(), make(n_components=count, random_state=0), last)
    names = [name for name, _ in steps.steps]
    grid = {f"{names[1]}__gamma": gammas, f"{names[2]}__alpha": penalties}
    return GridSearchCV(steps, grid, cv=3)


def error_of(predicted: np.ndarray, y: np.ndarray, kind: str) -> float:
    """Root mean squared error relative to that of the mean, or the share of wrong labels."""
    if kind == "regression":
        return float(np.sqrt(np.mean((predicted - y) ** 2)) / np.std(y))
    return float(np.mean(predicted != y))
