"""Notes printed before a fit: number of pairs, estimated time, duplicate rows."""

from __future__ import annotations

import math
import os
import time
import warnings
from typing import Any

import numpy as np

from .common import Out

#: From this many rows on, the time is estimated before the fit.
MIN_ROWS_TO_ESTIMATE = 5_000
#: Rows of the two pilot fits from which the time is estimated: enough that weighting rules use the
#: same algorithms as on large samples.
PILOT_ROWS = (1_000, 2_000)
PILOT_FOLDS = 2
#: Rows of a fit before the pilot fits that is not timed: it imports modules and compiles loops.
WARM_UP_ROWS = 300
#: Limits of the exponent with which time is assumed to grow with the number of rows. For
#: classifiers the measured exponent is smaller up to 12,000 rows, and approaches 2 beyond.
GROWTH = (1.7, 3.0)
#: Fits estimated to take longer than this, in seconds, come with advice on how to shorten them.
LONG_FIT = 120.0
SAMPLE = 10_000


def announce(say: Out, estimator: Any, X: Any, y: Any) -> float | None:
    """Print and return the estimated seconds of a large fit, with advice; None for a small one."""
    n = X.shape[0]
    if n < MIN_ROWS_TO_ESTIMATE or not say.chatty:
        return None
    say.note(f"{n:,} rows: {pairs(n)} pairs for each kernel.")
    with say.progress(f"Timing a fit to {PILOT_ROWS[-1]:,} rows"):
        seconds = estimate_seconds(estimator, X, y)
    if seconds is None:
        return None
    jobs = estimator.n_jobs if estimator.n_jobs and estimator.n_jobs > 0 else os.cpu_count()
    said = f"The fit will take about {duration(seconds)} on {jobs} core{'s' if jobs != 1 else ''}."
    if seconds > LONG_FIT and n > SAMPLE:
        ways = [
            f"--sample {SAMPLE} (use {SAMPLE:,} of the rows)",
            "--chunks (use all rows, with an approximation of the kernels by features)",
        ]
        if jobs == 1 and (os.cpu_count() or 1) > 1:
            ways.append("--jobs -1 (use all cores)")
        said += f" To shorten it, add {', '.join(ways[:-1])} or {ways[-1]}."
    say.note(said)
    return seconds


def estimate_seconds(estimator: Any, X: Any, y: Any) -> float | None:
    """Estimated time of a fit, from two small fits; None if these fail."""
    from sklearn.base import clone

    rng = np.random.default_rng(0)
    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in (WARM_UP_ROWS, *PILOT_ROWS):
            rows = np.sort(rng.choice(X.shape[0], size, replace=False))
            pilot = clone(estimator).set_params(cv=PILOT_FOLDS)
            started = time.perf_counter()
            try:
                pilot.fit(X[rows], y[rows])
            except ValueError:  # a rare class may be absent from so few rows
                return None
            times.append(time.perf_counter() - started)
    growth = math.log(times[2] / times[1]) / math.log(PILOT_ROWS[1] / PILOT_ROWS[0])
    growth = min(max(growth, GROWTH[0]), GROWTH[1])
    splits = estimator.cv
    folds = splits.get_n_splits() if hasattr(splits, "get_n_splits") else len(splits)
    return times[2] * (folds / PILOT_FOLDS) * (X.shape[0] / PILOT_ROWS[1]) ** growth


def pairs(n: int) -> str:
    """``n^2`` in readable form, such as ``2.5 × 10⁹``."""
    exponent = math.floor(math.log10(n**2))
    leading = n**2 / 10**exponent
    power = str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{power}" if leading < 1.05 else f"{leading:.1f} × 10{power}"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} hours"
    return f"{seconds / 86400:,.0f} days"


def note_duplicates(say: Out, X: Any, y: Any, groups: Any = None) -> int:
    """Print and return how many rows are copies of others, because folds may share them."""
    if not isinstance(X, np.ndarray) or X.dtype == object or groups is not None:
        return 0
    rows = np.column_stack([X, np.unique(y, return_inverse=True)[1]])
    copies = int(len(rows) - len(np.unique(rows, axis=0)))
    if copies:
        say.note(
            f"Note: {copies:,} of {len(rows):,} rows are copies of others, target included. A row "
            "and its copy may end up in different folds, which makes the score too optimistic: "
            "remove the copies, or keep them together with --groups."
        )
    return copies
