"""Small problems run on one thread.

On a busy machine, factorising a 300 x 300 matrix with two BLAS threads took 250 ms, with one 1 ms:
the threads wait for each other in turns. A whole fit of 1,000 points made of such calls took 2.7 s
instead of 0.18.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Looking the libraries up takes milliseconds; they do not change once NumPy is imported.
    return ThreadpoolController()


def one_blas_thread(size: int = 0, limit: int = 1000) -> AbstractContextManager[Any]:
    """A context in which BLAS uses a single thread, for matrices of up to ``limit`` rows."""
    if size > limit:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")
