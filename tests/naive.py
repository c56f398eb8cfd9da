"""The obvious versions of kernels, corrections and passes: slow, short, float64.

Banks are arrays of shape (p, n, n) and sample weights ``omega`` count how often a point appears.
"""

from __future__ import annotations

import numpy as np

# -- kernels, between the rows of X and those of Z ------------------------------------------------


def linear(X, Z):
    return np.array([[float(np.sum(x * z)) for z in Z] for x in X])


def polynomial(X, Z, degree=2, coef0=1.0, gamma=1.0):
    return (gamma * (X[:, None, :] * Z[None, :, :]).sum(axis=2) + coef0) ** degree


def gaussian(X, Z, gamma=1.0):
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def laplacian(X, Z, gamma=1.0):
    return np.exp(-gamma * np.abs(X[:, None, :] - Z[None, :, :]).sum(axis=2))


def chi_squared_distance(x, z):
    return sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def chi_squared(X, Z, gamma=1.0):
    return np.array([[np.exp(-gamma * chi_squared_distance(x, z)) for z in Z] for x in X])


def additive_chi_squared(X, Z):
    return np.array(
        [
            [sum(2 * a * b / (a + b) for a, b in zip(x, z, strict=True) if a + b) for z in Z]
            for x in X
        ]
    )


def sigmoid(X, Z, gamma=1.0, coef0=0.0):
    return np.tanh(gamma * (X[:, None, :] * Z[None, :, :]).sum(axis=2) + coef0)


# -- corrections ----------------------------------------------------------------------------------


def ones_if_none(omega, n):
    return np.ones(n) if omega is None else np.asarray(omega, dtype=float)


def center(K, omega=None):
    """``U K U'`` with ``U = I - 1 omega' / W``."""
    omega = ones_if_none(omega, len(K))
    U = np.eye(len(K)) - np.outer(np.ones(len(K)), omega) / omega.sum()
    return U @ K @ U.T


def inner(K, L, omega=None):
    """``sum_ij omega_i omega_j K_ij L_ij``."""
    omega = ones_if_none(omega, len(K))
    return float(np.sum(np.outer(omega, omega) * K * L))


def size(K, centred, how, omega=None, given=None):
    """What a kernel (centred or not, as used) is divided by; None for the spherical one."""
    omega = ones_if_none(omega, len(K))
    if how == "trace-first":
        return float(omega @ np.diag(given))
    if how == "trace":
        return float(omega @ np.diag(K))
    if how == "multiplicative":
        return float(omega @ np.diag(centred)) / omega.sum()
    if how == "frobenius":
        return np.sqrt(inner(K, K, omega))
    return 1.0


def correct(K, centring, how, omega=None):
    """One kernel matrix, centred (or not) and normalised; zero if it is constant."""
    centred = center(K, omega)
    if np.abs(centred).max() <= 1e-13 * np.abs(K).max():
        return np.zeros_like(centred)
    used = centred if centring else np.array(K, dtype=float)
    if how == "spherical":
        d = np.sqrt(np.diag(used))
        return used / d[:, None] / d[None, :]
    return used / size(used, centred, how, omega, K)


def correct_new(K, new, new_diagonal, centring, how, omega=None):
    """A kernel between new and training points, corrected with what training points know."""
    omega = ones_if_none(omega, len(K))
    W = omega.sum()
    centred = center(K, omega)
    if np.abs(centred).max() <= 1e-13 * np.abs(K).max():
        return np.zeros(new.shape)
    used, out, diagonal = np.array(K, dtype=float), np.array(new, dtype=float), new_diagonal
    if centring:
        r, m, g = K @ omega / W, new @ omega / W, omega @ K @ omega / W**2
        used, out, diagonal = centred, new - m[:, None] - r[None, :] + g, new_diagonal - 2 * m + g
    if how == "spherical":
        return out / np.sqrt(diagonal)[:, None] / np.sqrt(np.diag(used))[None, :]
    return out / size(used, centred, how, omega, K)


# -- passes over a corrected bank -----------------------------------------------------------------


def summary(bank, Y, omega=None):
    """traces, norms, a, M and target norm; everything but the traces is of centred kernels."""
    omega = ones_if_none(omega, bank.shape[1])
    centred = [center(K, omega) for K in bank]
    Y = Y.reshape(len(Y), -1)
    target = center(Y @ Y.T, omega)
    return {
        "traces": np.array([omega @ np.diag(K) for K in bank]),
        "norms": np.array([np.sqrt(inner(K, K, omega)) for K in centred]),
        "a": np.array([inner(K, target, omega) for K in centred]),
        "M": np.array([[inner(K, L, omega) for L in centred] for K in centred]),
        "target_norm": np.sqrt(inner(target, target, omega)),
    }


def combine(bank, weights):
    return sum(w * K for w, K in zip(weights, bank, strict=True))


def matvecs(bank, V):
    return np.array([K @ V for K in bank])


def quadratic_forms(bank, V):
    return np.array([[v @ K @ v for v in V.T] for K in bank])


def shares(cross, weights, coef):
    """Each kernel's part of the prediction, shape (n_new, p, t)."""
    parts = [w * (K @ coef) for w, K in zip(weights, cross, strict=True)]
    return np.array(parts).transpose(1, 0, 2)
