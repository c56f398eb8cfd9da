"""What may come of odd input: a clear error of ours, or an answer that is right or warned about."""

from __future__ import annotations

import traceback
import warnings

import numpy as np

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
)


def place(frame):
    return f"{frame.filename[-40:]}:{frame.lineno}"


def judge(act):
    """None if all is well, else what is wrong with the outcome of ``act()``."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model = act()
        except CLEAR as error:
            text = str(error)
            if len(text) < 15 or any(part in text for part in FROM_INSIDE):
                where = traceback.extract_tb(error.__traceback__)[-1]
                return f"unclear {type(error).__name__}: {text[:120]} ({place(where)})"
            return None
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__}: {str(error)[:120]} ({place(where)})"
    if model is None:
        return None
    kinds = {type(one.message).__name__ for one in said}
    if "RuntimeWarning" in kinds:
        text = next(str(s.message) for s in said if type(s.message).__name__ == "RuntimeWarning")
        return f"RuntimeWarning: {text[:120]}"
    for name in ("dual_coef_", "intercept_", "kernel_weights_", "objective_"):
        value = getattr(model, name, None)
        if value is not None and not np.all(np.isfinite(np.asarray(value, dtype=float))):
            return f"{name} is not finite"
    gap = getattr(model, "duality_gap_", 0.0)
    tol = max(getattr(model, "tol", 1e-3), 1e-3)
    if isinstance(tol, float) and not gap <= tol * 1.01 and not kinds:
        return f"duality gap {gap:.3g} without a warning"
    return None
