"""Checks of parameters that are flags, names or functions, before anything uses them.

Without them, an array passed in place of a name is compared with names entry by entry, and the
error about the truth value of the result does not name the parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np


def is_flag(value: Any) -> bool:
    """Whether a value is True or False, 1 or 0."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64):
        return int(value) in (0, 1)
    return isinstance(value, (bool, np.bool_))


def check_flag(owner: str, parameter: str, value: Any) -> bool:
    """True or False; 1 and 0 are accepted as well."""
    if not is_flag(value):
        raise TypeError(f"{owner}: {parameter} must be True or False; got {value!r:.200}.")
    return bool(value)


def is_choice(value: Any, choices: Sequence[str | None]) -> bool:
    """Whether a value is one of these names, or None if that is a choice."""
    return (value is None or isinstance(value, str)) and value in choices


def check_choice(owner: str, parameter: str, value: Any, choices: Sequence[str | None]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if not is_choice(value, choices):
        *others, last = map(repr, choices)
        expected = f"{', '.join(others)} or {last}"
        if len(choices) > 3:
            expected = f"one of {expected}"
        raise ValueError(f"{owner}: {parameter} must be {expected}; got {value!r:.200}.")


def takes_arguments(function: Any, count: int) -> bool:
    """Whether a function can be called with this many arguments, as far as is known."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # compiled functions may have no signature
        return callable(function)
    return True
