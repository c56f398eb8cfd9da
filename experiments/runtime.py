"""Kloft's runtimes: every solver against points and kernels (section 3.4, Figure 3.1).

Digits, odd against even, C = 1. Experiment one: M = 50 Gaussians with ``2 sigma^2 = 1.2^0, ...,
1.2^49`` and growing n. Experiment two: n = 1000 and growing M. The curves of the thesis are
pictures, its machine is not described and its competitors are old programs: what is reproduced is
the shape (how time grows) and the facts that the text quotes.

Methods:

* *SVM* on the sum of the kernels, which is p = 2; also on a sum that was computed beforehand, as
  in the thesis.
* *Every solver of the library* (the names come from it) for every p in {1, 4/3, 4} that it is for;
  p = 4 only for solvers that are not for p = 4/3, and for the alternation beside them. A solver
  that refuses the hinge loss is timed with the logistic loss, beside the default solver with that
  loss. What applies to neither is named in the notes.
* *On the fly*: the default solver without kernel matrices. Rows of the combined kernel are computed
  from the images during the fit, on demand, with memory for a quarter of one matrix and for the row
  sums of all kernels. With growing M the row sums are most of that memory, and with 400 kernels of
  1000 points the combined matrix fits into it: the curve over M says nothing about growth, and
  nothing is claimed from it.

What the text leaves open, and what is done here:

* *Times* are processor seconds of one thread; the machine may be busy with other work, so that only
  ratios within one run mean something. Medians of three samples (thesis: five), or the time of the
  first sample where that is above ten seconds, after a warm-up.
* *A limit*: a fit that needs more processor time than that is stopped, and its method is not tried
  with larger sizes. A fit that ends above the tolerance (most steps are limited) is marked.
* *Kernels* are computed beforehand and not counted, as in the thesis's main curves; on the fly they
  are part of the fit.
* *Precision.* A relative duality gap of 1e-3 (thesis: 1e-5; SVM 1e-3), the default.
* *Start.* From 800 points on the library begins joint problems with weights learned on a part of
  the points, whatever the solver.
* *Bandwidths of experiment two* are printed as ``2^0, ..., 2^(M-1)``, which overflows; here M of
  them are spaced evenly, in logarithms, over those of experiment one.
* *Images* are pooled to 14 x 14 pixels (thesis: 28 x 28), which only the kernels notice; pixels
  from 0 to 1.
* *Sizes* stop at n = 4,000, on the fly at 8,000, and at M = 400 (thesis: 20,000 and 10,000).
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from time import process_time
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances

from multikernel.estimators import MultiKernelClassifier
from multikernel.kernels import gaussians, precomputed, sample_ids
from multikernel.weighting import LpNorm
from multikernel.weighting.lp_norm import SOLVERS

from . import datasets
from .record import Options, Record, main
from .runtime_curves import Row, tell

TITLE = "Kloft's runtimes against points and kernels (section 3.4, Figure 3.1)"
DATA = "mnist14"
NORMS = (1.0, 4 / 3, 4.0)
POINTS, KERNELS = (500, 1000, 2000, 4000), (50, 100, 200, 400)
#: Sizes for methods that store no kernel matrices, beyond those of the others.
FURTHER_POINTS = (8000,)
QUICK_POINTS, QUICK_KERNELS = (250, 500), (25, 50)
N_KERNELS, N_POINTS, QUICK_N_POINTS = 50, 1000, 500
REPETITIONS, QUICK_REPETITIONS = 3, 1
#: Processor seconds for one fit.
LIMIT_SECONDS, QUICK_LIMIT_SECONDS = 60.0, 10.0
#: A method that needs more than this on the first sample of a size is not timed on the others.
LONG_SECONDS = 10.0
#: Points of the trial whether a solver applies.
TRIAL_POINTS = 100
#: Points and steps of the fit before the clock starts: enough points for the code that larger
#: problems use, the start on a part of the points among it.
WARM_UP_POINTS, WARM_UP_STEPS = 900, 3
#: The time of a fit below so many seconds is the median of several.
SHORT_SECONDS, SHORT_FITS = 0.5, 5


# -- methods --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """One curve."""

    solver: str
    p: float
    #: "matrices", "sum" (one matrix) or "images" (no matrix)
    given: str = "matrices"
    loss: str = "hinge"

    @property
    def label(self) -> str:
        """As tables and curves call it.

        Examples
        --------
        >>> Method("chunking", 4 / 3).label, Method("auto", 1.0, "images").label
        ('chunking, p = 4/3', 'on the fly, p = 1')
        """
        if self.p == 2:
            return "SVM" + (", sum given" if self.given == "sum" else "")
        name = {"images": "on the fly"}.get(self.given, self.solver)
        loss = "" if self.loss == "hinge" else f", {self.loss} loss"
        return f"{name}, p = {'4/3' if self.p == 4 / 3 else f'{self.p:g}'}{loss}"

    def model(self, n: int, M: int, source: Any, max_iter: int = 500) -> MultiKernelClassifier:
        """The classifier; `source` are the matrices where there are any."""
        rule = LpNorm(self.p, solver=self.solver, max_iter=max_iter)
        options: dict[str, Any] = {"C": 1.0, "loss": self.loss}
        if self.given == "images":
            # Bytes: a quarter of one matrix, and row sums of the kernels, which always are stored.
            budget = 2 * n * n + 24 * M * n
            return MultiKernelClassifier(
                gaussians((1 / widths(M)).tolist()), rule, memory_budget=budget, **options
            )
        return MultiKernelClassifier(precomputed(source), rule, **options)


def methods() -> tuple[list[Method], list[str]]:
    """All curves, and what is not among them, with the reason."""
    K, y = matrices(TRIAL_POINTS, 3, 0)
    out = [Method("auto", 2.0, "sum"), Method("auto", 2.0)]
    refused = []
    for solver in SOLVERS:
        if solver == "auto":
            continue
        found: list[Method] = []
        reason = ""
        for loss in ("hinge", "logistic"):
            for p in NORMS:
                method = Method(solver, p, loss=loss)
                needed = p != 4.0 or not found or solver == "alternation"
                reason = _refusal(method, K, y) if needed else "not needed"
                if not reason:
                    found.append(method)
            if found:
                break
        out += found
        if not found:
            refused.append(f"{solver} ({reason})")
    logistic = {method.p for method in out if method.loss == "logistic"}
    out += [Method("auto", p, loss="logistic") for p in sorted(logistic)]
    out += [Method("auto", p, "images") for p in NORMS[:2]]
    return out, refused


def _refusal(method: Method, K: np.ndarray, y: np.ndarray) -> str:
    """Why a solver does not apply to the problem; empty if it does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            method.model(len(y), len(K), K).fit(sample_ids(len(y)), y)
        except ValueError as error:
            return str(error)
    return ""


# -- data -----------------------------------------------------------------------------------------


def widths(M: int) -> np.ndarray:
    """``2 sigma^2`` of M Gaussians."""
    return np.asarray(1.2 ** np.linspace(0.0, N_KERNELS - 1.0, M))


def images(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """n random digits, and +1 for odd ones."""
    bunch = datasets.load(DATA)
    chosen = np.random.default_rng(seed).permutation(len(bunch.target))[:n]
    X = np.asarray(bunch.data[chosen], dtype=np.float64) / 15.0
    return X, np.where(bunch.target[chosen] % 2, 1, -1)


@lru_cache(maxsize=1)  # all methods of a size follow one another
def matrices(n: int, M: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussians on n random digits, and +1 for odd ones."""
    X, y = images(n, seed)
    distances = pairwise_distances(X, metric="sqeuclidean")
    distances = 0.5 * (distances + distances.T)
    K = np.empty((M, n, n))
    for k, width in enumerate(widths(M)):
        np.exp(-distances / width, out=K[k])
    return K, y


# -- timing ---------------------------------------------------------------------------------------


class OutOfTime(BaseException):
    """A fit has used up its processor time; nothing but `time_limit` shall catch this."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime after so much processor time; compiled loops are left to finish first."""

    def stop(number: int, frame: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def one(
    experiment: str,
    n: int,
    M: int,
    solver: str,
    p: float,
    given: str,
    loss: str,
    limit: float,
    seed: int,
) -> list[Row]:
    """Time one fit."""
    method = Method(solver, p, given, loss)
    source: Any = None
    if given == "images":
        matrices.cache_clear()
        X, y = images(n, seed)
    else:
        source, y = matrices(n, M, seed)
        X = sample_ids(n)
        if given == "sum":
            source = source.sum(axis=0)[None]
    model = method.model(n, M, source)
    n_few = min(n, WARM_UP_POINTS)
    # Few enough kernels that rows on demand are what the budget leaves.
    M_few = N_KERNELS if given == "images" else M
    times: list[float] = []
    with warnings.catch_warnings():
        # Whether the tolerance was reached is told by the column `gap`.
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = method.model(n_few, M_few, source, WARM_UP_STEPS)
        first.fit(X[:n_few], y[:n_few])  # loads compiled code
        while not times or (len(times) < SHORT_FITS and max(times) < SHORT_SECONDS):
            started = process_time()
            try:
                with time_limit(limit):
                    model.fit(X, y)
            except OutOfTime:
                nothing = float("nan")
                return [Row(experiment, n, M, method.label, limit, 0, nothing, 0, 0, seed)]
            times.append(process_time() - started)
    return [
        Row(
            experiment,
            n,
            M,
            method.label,
            float(np.median(times)),
            int(model.n_iter_),
            float(model.duality_gap_),
            int(np.sum(model.kernel_weights_ > 0)),
            len(model.support_),
            seed,
        )
    ]


def run(**common: Any) -> Record:
    """Both experiments; quick: smaller sizes, one sample, a lower limit. See `record.Options`.

    Fits run one after the other whatever `n_jobs` says: processes that share caches and memory
    would time each other.
    """
    options = replace(Options(**common), n_jobs=1)
    quick, name = options.quick, options.stem("runtime")
    points, kernels = (QUICK_POINTS, QUICK_KERNELS) if quick else (POINTS, KERNELS)
    n_points = QUICK_N_POINTS if quick else N_POINTS
    further = () if quick else FURTHER_POINTS
    limit = QUICK_LIMIT_SECONDS if quick else LIMIT_SECONDS
    wanted, refused = methods()
    rows: list[Row] = []
    for experiment in ("points", "kernels"):
        sizes: Sequence[int] = (*points, *further) if experiment == "points" else kernels
        left = list(wanted)
        for size in sizes:
            n, M = (size, N_KERNELS) if experiment == "points" else (n_points, size)
            if experiment == "points" and size in further:
                left = [method for method in left if method.given == "images"]
            seeds = options.seeds(QUICK_REPETITIONS if quick else REPETITIONS)
            found: list[Row] = []
            for seed in seeds:
                slow = {row.method for row in found if row.seconds > LONG_SECONDS}
                tasks = [
                    (experiment, n, M, m.solver, m.p, m.given, m.loss, limit, seed)
                    for m in left
                    if m.label not in slow
                ]
                title = f"{experiment} {size}"
                found += options.compute(one, tasks, Row, kept=name, title=title)
            stopped = {row.method for row in found if row.stopped}
            left = [method for method in left if method.label not in stopped]
            rows += found
    matrices.cache_clear()
    return tell(name, TITLE, rows, [method.label for method in wanted], limit, refused)


if __name__ == "__main__":
    main(run, "runtime", TITLE)
