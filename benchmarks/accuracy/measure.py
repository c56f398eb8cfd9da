"""One method on one split: error, log loss, CPU seconds and memory."""

from __future__ import annotations

import contextlib
import math
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.common import forget_high_water, high_water

from .problems import Split, split

#: Samples of the made-up problem on which every method runs once before it is measured.
WARM_UP_SAMPLES = 90
Maker = Callable[[Split], Any]
_warm: set[tuple[str, bool]] = set()


def memory() -> float | None:
    """The most memory that the process has held since `forget_high_water`, in MB, or None."""
    with contextlib.suppress(OSError):
        found = high_water()
        return None if math.isnan(found) else found
    return None


def warm_up(method: str, make: Maker, like: Split) -> None:
    """Let a method import and compile what it needs, so that no measured fit pays for it."""
    if (method, like.regression) in _warm:
        return
    _warm.add((method, like.regression))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((WARM_UP_SAMPLES, like.X.shape[1]))
    y = X[:, 0] if like.regression else rng.integers(3, size=WARM_UP_SAMPLES)
    part = split(X, y, 0, WARM_UP_SAMPLES, regression=like.regression, views=like.views)
    model = make(part)
    if model is not None:
        model.fit(part.X, part.y).predict(part.X_new)


def run(method: str, make: Maker, data: Split) -> dict[str, Any] | None:
    """What came of one method on one split; None where it does not apply or is not installed.

    A method that fails has the reason under ``failed``, and no error.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(data)
        if model is None:
            return None
        facts: dict[str, Any] = {
            "train": len(data.y),
            "test": len(data.y_new),
            "samples": data.samples,
            "version": version(model),
        }
        try:
            warm_up(method, make, data)
            return facts | measured(model, data)
        except Exception as reason:
            return facts | {"error": None, "failed": f"{type(reason).__name__}: {reason}"[:300]}


def measured(model: Any, data: Split) -> dict[str, Any]:
    """Errors, CPU seconds of fitting and predicting, and memory beyond what was held before."""
    forget_high_water()
    held = memory()
    started = time.process_time()
    model.fit(data.X, data.y)
    fitted = time.process_time()
    predicted = model.predict(data.X_new)
    done = time.process_time()
    peak = memory()
    facts = {
        "error": data.error(predicted),
        "log_loss": None,
        "seconds": round(fitted - started, 4),
        "predict_seconds": round(done - fitted, 4),
        "peak_mb": None if peak is None or held is None else round(peak - held, 1),
    }
    if not data.regression and hasattr(model, "predict_proba"):
        facts["log_loss"] = data.log_loss(model.predict_proba(data.X_new))
    return facts


def version(model: Any) -> str:
    """The package that a model comes from, and its version."""
    for part in ("estimator", "model"):  # what a search or a wrapper holds
        model = getattr(model, part, model)
    package = type(model).__module__.partition(".")[0]
    return f"{package} {getattr(sys.modules[package], '__version__', '')}".strip()
