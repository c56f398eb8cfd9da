"""One problem, and functions of it that other processes can import."""

from __future__ import annotations

import hashlib
import os

import numpy as np

import multikernel as mk

RNG = np.random.default_rng(7)
X = RNG.standard_normal((80, 4))
LABELS = (X[:, 0] * X[:, 1] > 0).astype(int)
OUTPUT = X[:, 0] + X[:, 1] ** 2


def numbers(n_jobs=None):
    """Digests of what models that use threads, BLAS and compiled loops answer."""
    bank = mk.gaussians([0.1, 1.0])
    models = [
        mk.MultiKernelClassifier(n_jobs=n_jobs).fit(X, LABELS),
        mk.MultiKernelClassifier(bank, mk.LpNorm(p=1.5), n_jobs=n_jobs).fit(X, LABELS),
        mk.VotedKernelClassifier(bank, n_jobs=n_jobs).fit(X, LABELS),
        mk.MultiKernelRegressor(bank, "alignf", n_jobs=n_jobs).fit(X, OUTPUT),
    ]
    answers = [getattr(one, "decision_function", one.predict)(X) for one in models]
    return [hashlib.sha256(answer.tobytes()).hexdigest() for answer in answers]


def threads_of_all_cores(_=None):
    """What ``n_jobs=-1`` means here, and the share that joblib gives its workers."""
    from multikernel._threads import count_threads

    return count_threads(-1), os.environ.get("NUMBA_NUM_THREADS")


if __name__ == "__main__":
    print("\n".join(numbers()))
