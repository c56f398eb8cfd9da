"""Ignore warnings in one thread and still show them in the others.

`warnings.catch_warnings` restores the filters that it found. If two threads use it at the same
time, a temporary filter may remain for good.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0
_own = threading.local()


class _OfThisThread(type):
    """A warning category whose subclasses are those that the current thread ignores."""

    def __subclasscheck__(cls, category: type) -> bool:
        return any(issubclass(category, one) for one in getattr(_own, "ignored", ()))


class _Ignored(Warning, metaclass=_OfThisThread):
    pass


@contextmanager
def ignoring(category: type[Warning]) -> Iterator[None]:
    """A context in which this thread sees no warnings of a category."""
    global _inside
    before = getattr(_own, "ignored", ())
    with _lock:
        _inside += 1
        warnings.simplefilter("ignore", _Ignored)  # in front of all others
    _own.ignored = (*before, category)
    try:
        yield
    finally:
        _own.ignored = before
        with _lock:
            _inside -= 1
            if not _inside:
                # It is gone already if other code has restored the filters in the meantime.
                for one in [one for one in warnings.filters if one[2] is _Ignored]:
                    warnings.filters.remove(one)  # type: ignore[attr-defined]
