"""scikit-learn: machines on the plain sum of the kernels, and one Gaussian whose width is tuned."""

import time

import numpy as np
from common import (
    Facts,
    Problem,
    Stopwatch,
    combined_test,
    gaussians,
    main,
    squared_distances,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR

MACHINES = {
    "SVC": lambda: SVC(C=10.0, kernel="precomputed", cache_size=1000),
    "SVR": lambda: SVR(C=10.0, kernel="precomputed", cache_size=1000),
    "KernelRidge": lambda: KernelRidge(alpha=0.1, kernel="precomputed"),
}


def plain_sum(problem: Problem, watch: Stopwatch, machine: str, held: bool = False) -> Facts:
    """Mean of the kernels: one matrix at a time, or all of them held first (`held`)."""
    p, model = len(problem.gammas), MACHINES[machine]()
    if held:
        with watch("kernels"):
            K = gaussians(problem)
        with watch("fit"):
            total = K[0] / p
            for matrix in K[1:]:
                total += matrix / p
            model.fit(total, problem.y)
    else:
        with watch("fit"):
            X = problem.X.astype(np.float64)
            D = squared_distances(X, X)
            total = np.zeros_like(D)
            for gamma in problem.gammas:
                total += np.exp(-gamma * D)
            total /= p
            model.fit(total, problem.y)

    def predict() -> np.ndarray:
        found = model.predict(combined_test(problem, np.full(p, 1.0 / p)))
        return np.where(found >= 0, 1, -1)

    return {"predict": predict}


def tuned(problem: Problem, watch: Stopwatch) -> Facts:
    """C and the width by three-fold cross-validation, the width among those of the bank."""
    gammas = problem.gammas[:: max(len(problem.gammas) // 8, 1)]
    grid = {"C": [1.0, 10.0, 100.0], "gamma": gammas}
    model = GridSearchCV(SVC(cache_size=1000), grid, cv=3)
    with watch("fit"):
        model.fit(problem.X, problem.y)
    return {
        "support": len(model.best_estimator_.support_),
        "note": f"C = {model.best_params_['C']:g}, gamma = {model.best_params_['gamma']:.2g}",
        "predict": lambda: model.predict(problem.X_test),
    }


def predict(problem: Problem, watch: Stopwatch, rows: int) -> Facts:
    """Predictions of an SVC with a single Gaussian."""
    middle = problem.gammas[len(problem.gammas) // 2]
    model = SVC(C=10.0, gamma=middle).fit(problem.X, problem.y)
    many = np.resize(problem.X_test, (rows, problem.X_test.shape[1]))
    with watch("fit"):
        model.predict(many)
    times = []
    for _ in range(50):
        start = time.perf_counter()
        model.predict(problem.X_test[:1])
        times.append(1e3 * (time.perf_counter() - start))
    return {
        "support": len(model.support_),
        "latency_ms": float(np.median(times)),
        "predict": lambda: model.predict(problem.X_test),
    }


if __name__ == "__main__":
    main({"plain sum": plain_sum, "tuned": tuned, "predict": predict})
