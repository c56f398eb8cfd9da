"""Products of features on a device, for passes over rows that add them up."""

from __future__ import annotations

import numpy as np

from .device import find_device, host

#: Rows sent to the device at a time.
CHUNK_ROWS = 65_536


def products(F: np.ndarray, omega: np.ndarray | None, device: str) -> np.ndarray:
    """``F'diag(omega) F`` for F of shape (n, D), shape (D, D), exactly symmetric."""
    where = find_device(device)
    total = where.zeros(F.shape[1], F.shape[1])
    for start in range(0, len(F), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        some = where.put(F[rows])
        if omega is not None:
            some = some * where.put(omega[rows]).sqrt()[:, None]
        total.addmm_(some.T, some)
    return host((total + total.T).mul_(0.5))
