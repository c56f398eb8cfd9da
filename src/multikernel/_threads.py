"""The number of threads, and the limit of one BLAS thread for small problems.

On a busy machine, factorising a 300 x 300 matrix took 250 ms with two BLAS threads and 1 ms with
one: the threads wait for each other. A whole fit of 1,000 samples, made of such calls, took 2.7 s
instead of 0.18 s.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController


def count_threads(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` asks for, as joblib counts.

    A negative number counts from the cores available to this process (-1: all). A joblib worker is
    limited to its share (``NUMBA_NUM_THREADS``). A joblib thread, or a worker of multiprocessing or
    dask, gets one thread, because it is one of many already.
    """
    if n_jobs is None or n_jobs >= 0:
        # joblib allows workers of multiprocessing no further workers, but they may start threads.
        in_worker = n_jobs is not None and n_jobs > 0 and multiprocessing.current_process().daemon
        return int(n_jobs or 1) if in_worker else int(effective_n_jobs(n_jobs))
    if multiprocessing.current_process().daemon:
        return 1
    share = os.environ.get("NUMBA_NUM_THREADS", "")
    if not share.isdecimal():
        share = "1" if get_active_backend()[0].nesting_level else ""
    most = int(effective_n_jobs(n_jobs))
    return max(min(most, int(share)), 1) if share else most


@lru_cache(maxsize=1)
def _libraries() -> tuple[list[Any], list[Any]]:
    """BLAS libraries with one thread count for the process, and with one for each thread."""
    # Looking them up takes milliseconds; they do not change once NumPy is imported.
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    found = [one for one in found if one.num_threads is not None]
    own = [one for one in found if getattr(one, "threading_layer", "") == "openmp"]
    return [one for one in found if one not in own], own


def _set(library: Any, count: int) -> None:
    # threadpoolctl lets one thread control the count and ignores the others, even if they restore
    # the previous count; here the threads are coordinated by `_BlasLimit`.
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    library.set_num_threads(count)
    if release is not None:
        release(force=True)


class _BlasLimit:
    """Limits BLAS to one thread while any thread of the process needs that limit.

    The thread count is shared by the process. If every thread restored the count that it found, a
    thread that entered while another held the limit would make the limit permanent.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside: dict[object, int] = {}  # one for every context, with its thread
        self.before: list[int] | None = None
        self.own = threading.local()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        shared, own = _libraries()
        outermost = getattr(self.own, "before", None) is None
        mark = object()
        try:  # an interrupt may come at any time, even within this block
            with self.lock:
                self.inside[mark] = threading.get_ident()
                if self.before is None:
                    self.before = [one.num_threads for one in shared]
                    self._set_all(shared, [1] * len(shared))
                if outermost:
                    self.own.before = [one.num_threads for one in own]
                    self._set_all(own, [1] * len(own))
            yield
        finally:
            try:
                self._leave(mark, outermost)
            except KeyboardInterrupt:
                self._leave(mark, outermost)  # finish first: nothing else would restore the count
                raise

    def _leave(self, mark: object, outermost: bool) -> None:
        """Restore what this context has changed; a second call completes an interrupted one."""
        shared, own = _libraries()
        with self.lock:
            self.inside.pop(mark, None)
            if not self.inside and self.before is not None:
                self._set_all(shared, self.before)
                self.before = None
            if outermost and getattr(self.own, "before", None) is not None:
                self._set_all(own, self.own.before)
                self.own.before = None

    @staticmethod
    def _set_all(libraries: list[Any], counts: list[int]) -> None:
        for one, count in zip(libraries, counts, strict=True):
            _set(one, count)

    def after_fork(self) -> None:
        """Forget the contexts of other threads, which do not exist in the child process."""
        self.lock = threading.Lock()
        this = threading.get_ident()
        self.inside = {mark: thread for mark, thread in self.inside.items() if thread == this}
        if not self.inside and self.before is not None:
            self._set_all(_libraries()[0], self.before)
            self.before = None


_limit = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.after_fork)


def one_blas_thread(size: int = 0, limit: int = 1000) -> AbstractContextManager[Any]:
    """A context in which BLAS uses a single thread, for matrices of up to ``limit`` rows."""
    return nullcontext() if size > limit else _limit()
