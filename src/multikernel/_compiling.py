"""Compiled functions that are cached on disk where possible.

numba raises an error if it cannot use its cache: with a read-only installation and no home folder,
on a full disk, or if another process left a broken file. Functions can be compiled without a cache,
so a single warning is given and work continues.

``NUMBA_CACHE_DIR`` sets another folder for the cache; ``multikernel warm-up`` fills it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import NullCache

#: The reason that was reported, if any: there is one warning per process.
_SAID: list[str] = []


class CompileCacheWarning(UserWarning):
    """Compiled code cannot be cached: every process compiles it again."""


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`, with compiled code cached on disk if possible."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache:
            try:
                dispatcher.enable_caching()
            except (RuntimeError, OSError) as error:
                dispatcher._cache = NoCache(error)
            else:
                dispatcher._cache = TolerantCache(dispatcher._cache)
        return dispatcher

    return decorate


class NoCache(NullCache):  # type: ignore[misc]
    """No cache; the reason is reported when a function is compiled, not when it is defined."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason

    def load_overload(self, *_: Any) -> None:
        say_once(self.reason)


class TolerantCache:
    """A cache that is ignored if it cannot be read or written."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, target: Any) -> Any:
        try:
            return self._cache.load_overload(signature, target)
        except Exception as error:  # a broken file may fail in any way
            say_once(error)
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        try:
            self._cache.save_overload(signature, data)
        except (OSError, EOFError, ValueError) as error:
            say_once(error)


def say_once(reason: Exception) -> None:
    """Warn that compiled code is not cached, once per process."""
    if _SAID:
        return
    _SAID.append(str(reason))
    warnings.warn(
        f"Compiled code cannot be kept on disk ({reason}), so every process compiles it again, "
        "which takes several seconds. Set NUMBA_CACHE_DIR to a writable folder.",
        CompileCacheWarning,
        stacklevel=2,
    )


def kept_in() -> str | None:
    """The cache folder for compiled code of this process; None if it is not cached."""
    from .grams import _passes

    cache = _passes.half_panels._cache
    if _SAID or isinstance(cache, NoCache):
        return None
    return str(os.environ.get("NUMBA_CACHE_DIR") or cache.cache_path)
