"""Slow, obvious twins of centring, alignment, ridge regression and the SVM's certificates."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

import multikernel as mk
from multikernel.grams import matrix
from multikernel.problem import Target


class MatrixGram(matrix.MatrixGram):
    """A combined Gram operator that is just a matrix: what learners are tested on."""

    def __init__(self, K):
        self.K = np.asarray(K, dtype=np.float64)
        self.n = len(self.K)

    def _dense(self):
        return self.K.copy()

    def _rows(self, index):
        return self.K[index]

    def _matvec(self, V):
        return self.K @ V

    def diagonal(self):
        return np.diag(self.K)


def labels(y, weights=None, costs=None):
    """A classification target from -1/+1 columns."""
    return Target(np.asarray(y, float).reshape(len(y), -1), "classification", weights, costs)


def outputs(y, weights=None):
    """A regression target."""
    return Target(np.asarray(y, float).reshape(len(y), -1), "regression", weights)


def centring(n):
    """U = I - 11'/n."""
    return np.eye(n) - np.ones((n, n)) / n


def center(K):
    """U K U by two matrix products."""
    U = centring(len(K))
    return U @ K @ U


def rho(K, L):
    """Centred alignment by explicit matrices."""
    Kc, Lc = center(K), center(L)
    return np.sum(Kc * Lc) / np.sqrt(np.sum(Kc * Kc) * np.sum(Lc * Lc))


def target_kernel(y):
    y = np.asarray(y, dtype=np.float64)
    return np.outer(y, y)


def moments(Ks, y):
    """a_k = <K_kc, yy'> and M_kl = <K_kc, K_lc> by loops."""
    Kc = [center(K) for K in Ks]
    a = np.array([np.sum(K * target_kernel(y)) for K in Kc])
    M = np.array([[np.sum(K * L) for L in Kc] for K in Kc])
    return a, M


def combine(v, Ks):
    return sum(w * K for w, K in zip(v, Ks, strict=True))


def alignf_vec(Ks, y):
    """alignf as scipy's NNLS on the n^2 x p matrix of unit-norm centred kernels."""
    A = np.stack([center(K).ravel() for K in Ks], axis=1)
    d = np.linalg.norm(A, axis=0)
    u, _ = nnls(A / d, center(target_kernel(y)).ravel())
    return u / d


def gaussian(X, gamma):
    return np.exp(-gamma * np.sum((X[:, None] - X[None]) ** 2, axis=2))


def problem(seed, n=20, p=5, classes=True):
    """A small bank of Gaussians, a linear and a noise kernel, with a target they know about."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.standard_normal(n)
    if classes:
        y = np.where(y > np.median(y), 1.0, -1.0)
    noise = rng.standard_normal((n, 4))
    Ks = [gaussian(X, g) for g in 2.0 ** np.linspace(-6, 3, p - 2)]
    return [*Ks, X @ X.T, noise @ noise.T], y


def fit_given(estimator, Ks, y, n_train=None, **fit):
    """An estimator fitted to given matrices; with n_train, the rest of the pool is new points."""
    n_train = len(Ks[0]) if n_train is None else n_train
    model = estimator.set_params(kernels=mk.precomputed(list(Ks)))
    return model.fit(mk.sample_ids(len(Ks[0]))[:n_train], y[:n_train], **fit)


def given_grams(Ks, center, normalize):
    """The corrected waist of given matrices."""
    from multikernel.grams.dense import DenseGrams
    from multikernel.grams.memory import MemoryBudget

    bank = mk.precomputed(list(Ks))
    grams = DenseGrams.evaluate(
        list(bank), mk.sample_ids(len(Ks[0])), bank.names, MemoryBudget.of(None)
    )
    return grams.corrected(center, normalize)


def ridge_with_intercept(K, Y, lam, omega=None):
    """Weighted KRR with an unpenalised intercept, from its stationarity conditions.

    ``lam c = Omega (y - Kc - b)`` and ``1'c = 0``: one bordered linear system.
    """
    n = len(K)
    omega = np.ones(n) if omega is None else omega
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = K + lam * np.diag(1.0 / omega)
    A[:n, n] = A[n, :n] = 1.0
    Y = np.asarray(Y, float).reshape(n, -1)
    S = np.linalg.solve(A, np.vstack([Y, np.zeros(Y.shape[1])]))
    return S[:n], S[n]


def svm_gap(K, coef, b, y, C):
    """Relative duality gap of one SVM, written out: P = f'f/2 + sum C xi, D = sum alpha - f'f/2."""
    norm = sum(coef[i] * coef[j] * K[i, j] for i in range(len(K)) for j in range(len(K)))
    f = [sum(coef[j] * K[i, j] for j in range(len(K))) + b for i in range(len(K))]
    hinge = sum(C[i] * max(0.0, 1.0 - y[i] * f[i]) for i in range(len(K)))
    primal = 0.5 * norm + hinge
    return (primal - (sum(coef * y) - 0.5 * norm)) / primal


def svm_violation(K, coef, b, y, C):
    """Largest violation of the SVM's optimality conditions; the dual's constraints count too."""
    alpha = coef * y
    margin = y * (K @ coef + b)
    low, up = alpha <= 1e-9 * C, alpha >= (1 - 1e-9) * C
    free = ~low & ~up
    return max(
        abs(coef.sum()) / C.max(),
        np.max(-alpha / C),
        np.max(alpha / C - 1),
        np.max(1 - margin[low], initial=0.0),
        np.max(margin[up] - 1, initial=0.0),
        np.max(np.abs(margin[free] - 1), initial=0.0),
    )
