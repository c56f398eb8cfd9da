"""Recognition of the sample that an estimator was fitted to."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

#: A digest reads at least this many samples, and more up to this total size in bytes.
MIN_DIGEST_ROWS, MAX_DIGEST_BYTES = 50, 4e6


def sample_digest(X: Any) -> str:
    """A digest of validated inputs: their shape, and evenly spaced samples."""
    n, wide = X.shape[0], X.shape[1]
    count = min(n, max(MIN_DIGEST_ROWS, int(MAX_DIGEST_BYTES / (8 * max(wide, 1)))))
    rows = np.unique(np.linspace(0, n - 1, count).astype(int))
    if sp.issparse(X):
        part = sp.csr_array(X[rows])
        part.sort_indices()
        found: Any = (part.indptr, part.indices, part.data)
    elif isinstance(X, np.ndarray):
        # For kernel values (n, n, p), the block of these samples.
        part = X[rows][:, rows[rows < wide]] if X.ndim == 3 else X[rows]
        found = np.ascontiguousarray(part)
    else:
        found = X[rows].columns
    return str(joblib.hash((tuple(X.shape), found)))


def is_own_sample(estimator: Any, X: Any) -> bool:
    """Whether X is the sample that the estimator was fitted to, in the same order.

    Models from files of earlier versions, and those fitted with ``approximation``, are compared by
    the number of samples only.
    """
    known = getattr(estimator, "_sample_digest", None)
    if known is not None:
        return bool(sample_digest(estimator._check_X(X, reset=False)) == known)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    stored = getattr(estimator, "cv_predictions_", None)
    return bool(n == estimator.plan_.n_samples or (stored is not None and n == len(stored)))
