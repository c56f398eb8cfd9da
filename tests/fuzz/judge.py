"""What may come of odd input: a clear error of ours, or an answer that is right or warned about.

An error that names the extra to install is clear, too.
"""

from __future__ import annotations

import traceback
import warnings
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

#: Errors that people are meant to see, if their text says something.
CLEAR = (ValueError, TypeError)
#: Parts of texts that come from the inside.
FROM_INSIDE = (
    "object has no attribute",
    "object is not subscriptable",
    "not supported between instances",
    "unsupported operand",
    "could not be broadcast",
    "operands could not",
    "zero-size array to reduction",
    "index out of range",
    "out of bounds for axis",
    "Singular matrix",
    "leading minor",
    "array must not contain infs",
    "ufunc ",
    "is not iterable",
    "is not callable",
    "takes no arguments",
    "positional argument",
    "unhashable type",
    "can't multiply sequence",
    "must be real number, not",
    "cannot convert float",
    "only length-1 arrays",
    "truth value of an array",
)


class Raised(Exception):
    """What a user's function raises: it must come out as it is."""


class Verdict(NamedTuple):
    """``kind`` is refused, answered, warned, own (the user's error) or WRONG, ``text`` says why."""

    kind: str
    text: str = ""


def place(error):
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename[-40:]}:{frame.lineno}"


def judge(act):
    """The verdict on the outcome of ``act()``."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = act()
        except Raised:
            return Verdict("own")
        except AssertionError as error:
            return Verdict("WRONG", f"answer: {str(error)[:300]}")
        except ImportError as error:
            if "pip install 'multikernel[" in str(error):
                return Verdict("refused", str(error))
            return Verdict("WRONG", f"ImportError: {str(error)[:120]} ({place(error)})")
        except CLEAR as error:
            text = str(error)
            if len(text) < 15 or any(part in text for part in FROM_INSIDE):
                text = f"unclear {type(error).__name__}: {text[:120]} ({place(error)})"
                return Verdict("WRONG", text)
            return Verdict("refused", text)
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:120]} ({place(error)})"
            return Verdict("WRONG", text)
    kinds = {type(one.message).__name__ for one in said}
    if "RuntimeWarning" in kinds:
        text = next(str(s.message) for s in said if type(s.message).__name__ == "RuntimeWarning")
        return Verdict("WRONG", f"RuntimeWarning: {text[:120]}")
    wrong = wrong_numbers(result)
    if wrong:
        return Verdict("WRONG", wrong)
    gap, tol = getattr(result, "duality_gap_", 0.0), getattr(result, "tol", 1e-3)
    asked = [tol, getattr(getattr(result, "weighting", None), "tol", 1e-3), 1e-3]
    tol = max(float(one) for one in asked if isinstance(one, (int, float, np.number)))
    if not gap <= tol * 1.01 and not kinds:
        return Verdict("WRONG", f"duality gap {gap:.3g} without a warning")
    return Verdict("warned" if kinds else "answered")


def wrong_numbers(result):
    """What is not finite in a fitted model, an array or a number; empty if nothing is."""
    if isinstance(result, (float, np.ndarray)) or sp.issparse(result):
        values = result.data if sp.issparse(result) else np.asarray(result)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            return "the answer is not finite"
    for name in ("dual_coef_", "intercept_", "kernel_weights_", "objective_"):
        value = getattr(result, name, None)
        if value is not None and not np.all(np.isfinite(np.asarray(value, dtype=float))):
            return f"{name} is not finite"
    return ""
