"""Small problems run on one thread: two BLAS threads can make a p x p problem 50 times slower."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Looking the libraries up takes milliseconds; they do not change once NumPy is imported.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses a single thread."""
    return _controller().limit(limits=1, user_api="blas")
