"""Yardsticks by hand: what a careful user writes in plain NumPy around scikit-learn's SVC.

alignf
    Centred kernels' products M and a, then non-negative least squares. Where all p matrices would
    take more than `HELD` bytes, blocks of rows are evaluated once and the sums are centred; with
    ``share`` below 1 only that part of the blocks is done, and the time is scaled.
lp-norm
    Kloft et al. 2011: alternate an SVC on the weighted sum with ``theta_k ~ (theta_k^2
    q_k)^(1/(p+1))`` until the duality gap is below 1e-3, on kernels of unit variance. They need not
    be centred, since an SVC with an intercept does not see it.
align of rank-one kernels
    The n x n matrix of each feature, centred, scaled to trace one, its alignment, its share of the
    combination; on some of the features, and the time scaled.
"""

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
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

HELD = 6e9


def nonnegative(M: np.ndarray, a: np.ndarray) -> np.ndarray:
    """``argmin_{v >= 0} v'Mv - 2 v'a`` through a factor of M, scaled to sum one."""
    d = np.sqrt(np.diag(M))
    values, vectors = np.linalg.eigh(M / np.outer(d, d))
    roots = np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    v = nnls((vectors * roots).T, (vectors.T @ (a / d)) / roots)[0] / d
    return np.asarray(v / v.sum())


def held_products(K: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    for matrix in K:
        r = matrix.mean(axis=1)
        matrix -= r[:, None]
        matrix -= r
        matrix += r.mean()
    flat = K.reshape(len(K), -1)
    return flat @ flat.T, (K @ y) @ y


def block_products(problem: Problem, y: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    n, p = len(y), len(problem.gammas)
    X = problem.X.astype(np.float64)
    rows, last = max(1, 2_000_000 // n), int(np.ceil(share * n))
    G, a, sums = np.zeros((p, p)), np.zeros(p), np.zeros((p, n))
    for start in range(0, last, rows):
        stop = min(start + rows, last)
        D = squared_distances(X[start:stop], X)
        K = np.empty((p, stop - start, n))
        for matrix, gamma in zip(K, problem.gammas, strict=True):
            np.multiply(D, -gamma, out=matrix)
            np.exp(matrix, out=matrix)
        sums[:, start:stop] = K.sum(axis=2)
        a += (K @ y) @ y[start:stop]
        flat = K.reshape(p, -1)
        G += flat @ flat.T
    s = sums.sum(axis=1)
    return G - (2.0 / n) * (sums @ sums.T) + np.outer(s, s) / n**2, a


def alignf(
    problem: Problem,
    watch: Stopwatch,
    machine: bool = True,
    C: float = 10.0,
    share: float = 1.0,
) -> Facts:
    y = problem.y - problem.y.mean()
    if 8.0 * len(problem.gammas) * len(y) ** 2 > HELD:
        with watch("fit"):
            M, a = block_products(problem, y, share)
            mu = nonnegative(M, a) if share == 1 else None
        cpu, wall = watch.seconds["fit"]
        watch.seconds["fit"] = (cpu / share, wall / share)
        note = None if share == 1 else f"scaled from {share:.0%} of the rows"
        return {"weights": None if mu is None else mu.tolist(), "note": note}
    with watch("kernels"):
        K = gaussians(problem)
    svc = SVC(C=C, kernel="precomputed", cache_size=1000)
    with watch("fit"):
        mu = nonnegative(*held_products(K, y))
        if machine:
            svc.fit(np.tensordot(mu, K, 1), problem.y)
    if not machine:
        return {"weights": mu.tolist()}
    # Trained on centred kernels: coefficients sum to zero, so that only the intercept moves.
    shift = svc.dual_coef_[0] @ centring(problem, mu)[svc.support_]

    def predict() -> np.ndarray:
        cross = combined_test(problem, mu)[:, svc.support_]
        return np.where(cross @ svc.dual_coef_[0] - shift + svc.intercept_[0] >= 0, 1, -1)

    return {"weights": mu.tolist(), "support": len(svc.support_), "predict": predict}


def centring(problem: Problem, mu: np.ndarray) -> np.ndarray:
    X = problem.X.astype(np.float64)
    D = squared_distances(X, X)
    return sum(w * np.exp(-g * D).mean(axis=1) for w, g in zip(mu, problem.gammas, strict=True))


def variances(K: np.ndarray) -> np.ndarray:
    return np.array([np.trace(matrix) / len(matrix) - matrix.mean() for matrix in K])


def alternate(
    K: np.ndarray, y: np.ndarray, norm: float, C: float, gap: float = 1e-3
) -> tuple[np.ndarray, SVC, float, int]:
    """Weights, machine, relative duality gap and number of machines for ``||theta||_norm <= 1``."""
    p = len(K)
    theta = np.full(p, p ** (-1.0 / norm))
    dual_norm = norm / (norm - 1.0)
    machines = 0
    while True:
        svc = SVC(C=C, kernel="precomputed", cache_size=1000)
        svc.fit(np.tensordot(theta, K, 1), y)
        coef, support = svc.dual_coef_[0], svc.support_
        q = np.array([coef @ matrix[np.ix_(support, support)] @ coef for matrix in K])
        linear = np.abs(coef).sum()
        upper = linear - 0.5 * theta @ q
        lower = linear - 0.5 * np.sum(q**dual_norm) ** (1.0 / dual_norm)
        relative = (upper - lower) / abs(upper)
        machines += 1
        if relative <= gap or machines == 1000:
            return theta, svc, float(relative), machines
        theta = (theta**2 * q) ** (1.0 / (norm + 1.0))
        theta /= np.sum(theta**norm) ** (1.0 / norm)


def lp_norm(problem: Problem, watch: Stopwatch, norm: float, C: float) -> Facts:
    with watch("kernels"):
        K = gaussians(problem)
    with watch("fit"):
        v = variances(K)
        K /= v[:, None, None]
        theta, svc, gap, machines = alternate(K, problem.y, norm, C)
    return {
        "weights": theta.tolist() if len(theta) <= 100 else None,
        "gap": gap,
        "machines": machines,
        "support": len(svc.support_),
        "predict": lambda: svc.predict(combined_test(problem, theta / v)),
    }


def rank_one(problem: Problem, watch: Stopwatch, kernels: int) -> Facts:
    X, y = problem.X.tocsc(), problem.y - problem.y.mean()
    n, p = X.shape
    some = np.unique(np.linspace(0, p - 1, min(kernels, p)).astype(int))
    combined = np.zeros((n, n))
    with watch("fit"):
        for k in some:
            v = X[:, [k]].toarray().ravel()
            K = np.outer(v, v)
            K -= K.mean(axis=0)
            K -= K.mean(axis=1)[:, None]
            trace = np.trace(K)
            if trace > 1e-12 * (v @ v):
                K /= trace
                combined += (y @ K @ y / (np.linalg.norm(K) * (y @ y))) * K
    cpu, wall = watch.seconds["fit"]
    watch.seconds["fit"] = (cpu * p / len(some), wall * p / len(some))
    return {"note": f"scaled from {len(some)} of {p} kernels" if len(some) < p else None}


def predict(problem: Problem, watch: Stopwatch, norm: float, rows: int) -> Facts:
    """The weighted sum of all kernels with the support, times the coefficients."""
    K = gaussians(problem)
    v = variances(K)
    K /= v[:, None, None]
    theta, svc, _, _ = alternate(K, problem.y, norm, 1.0)
    X = problem.X[svc.support_].astype(np.float64)

    def decide(points: np.ndarray) -> np.ndarray:
        total = np.zeros(len(points))
        for i in range(0, len(points), 500):
            D = squared_distances(points[i : i + 500].astype(np.float64), X)
            for weight, gamma in zip(theta / v, problem.gammas, strict=True):
                total[i : i + 500] += weight * (np.exp(-gamma * D) @ svc.dual_coef_[0])
        return np.where(total + svc.intercept_[0] >= 0, 1, -1)

    many = np.resize(problem.X_test, (rows, problem.X_test.shape[1]))
    with watch("fit"):
        decide(many)
    times = []
    for _ in range(50):
        start = time.perf_counter()
        decide(problem.X_test[:1])
        times.append(1e3 * (time.perf_counter() - start))
    return {
        "support": len(svc.support_),
        "latency_ms": float(np.median(times)),
        "predict": lambda: decide(problem.X_test),
    }


class ByHand(ClassifierMixin, BaseEstimator):
    """The lp-norm machine as an estimator, for GridSearchCV."""

    def __init__(self, gammas: np.ndarray, norm: float = 2.0, C: float = 1.0) -> None:
        self.gammas, self.norm, self.C = gammas, norm, C

    def fit(self, X: np.ndarray, y: np.ndarray) -> "ByHand":
        self.classes_ = np.unique(y)
        self.sample_ = Problem(X, y, X[:0], y[:0], self.gammas)
        K = gaussians(self.sample_)
        v = variances(K)
        K /= v[:, None, None]
        theta, self.machine_, _, _ = alternate(K, y, self.norm, self.C)
        self.weights_ = theta / v
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        cross = combined_test(
            Problem(self.sample_.X, self.sample_.y, X, X[:, 0], self.gammas), self.weights_
        )
        return np.asarray(self.machine_.predict(cross))


def search(
    problem: Problem, watch: Stopwatch, norms: list[float], Cs: list[float], folds: int
) -> Facts:
    grid = GridSearchCV(ByHand(problem.gammas), {"norm": norms, "C": Cs}, cv=folds)
    with watch("fit"):
        grid.fit(problem.X, problem.y)
    chosen = f"p = {grid.best_params_['norm']:g}, C = {grid.best_params_['C']:g}"
    return {"note": chosen, "predict": lambda: grid.predict(problem.X_test)}


if __name__ == "__main__":
    main(
        {
            "alignf": alignf,
            "lp-norm": lp_norm,
            "rank-one": rank_one,
            "predict": predict,
            "search": search,
        }
    )
