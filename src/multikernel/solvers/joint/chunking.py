"""Joint learning by interleaved chunking: kernel weights change after every small step.

The alternation trains a predictor to the optimum before each update of the weights. Chunking (Kloft
2011, Algorithm 3.2, corrected) keeps signed coefficients s and, for every kernel, the products
``g_k = K_k s``, and changes the coefficients of a few samples per step::

    W        = at most `size` samples with the largest violations of the optimality conditions
    s_W      = optimum of the dual in these coefficients, the others fixed
    g_k     += K_k[:, W] (change of s_W)                  for every kernel: |W| rows of each
    theta    = the regulariser's update for a_k = s'g_k

Memory is p n numbers and a bounded cache of rows; no n x n matrix is formed. Since g is known, the
duality gap of the joint problem costs O(p n). The loop ends when the gap is small; a small change
of the objective would not prove convergence.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._journal import Answers, journal_of
from ...grams.protocol import Grams, Summary
from ...learners import smo
from ...learners.base import Learner
from ...problem import Target
from ...problem.losses import EpsilonInsensitive, Hinge, Loss, OneClass
from ...weighting.joint import JointWeighting, regulariser_of
from ..certificate import (
    CertifiedIterate,
    Found,
    Report,
    Stopped,
    centred_outputs,
    certify,
    record,
)
from .definiteness import require_psd
from .training import iterate_from, numbers_of
from .warm_start import WarmStart

#: Samples in a working set (Joachims 1999; about 40 in Kloft's experiments).
WORKING_SET_SIZE = 40
#: Memory for rows of all kernels, in bytes.
CACHE_BYTES = 256 * 2**20
#: Violations of the optimality conditions below this, relative to decision values, are rounding
#: errors.
MIN_VIOLATION = 1e-14


class WeightStep(Protocol):
    """The kernel weights after each step of the coefficients."""

    #: A lower bound of the optimum that the steps so far prove; minus infinity if none.
    lower: float

    def __call__(self, theta: np.ndarray, a: np.ndarray, s: np.ndarray) -> np.ndarray:
        """New weights from the old ones, ``a_k = s'K_k s`` and the coefficients s."""
        ...

    def state(self) -> Any:
        """The state that `restore` needs."""
        ...

    def restore(self, state: Any) -> None:
        """Continue from the result of `state`."""
        ...


def find_by_chunking(
    grams: Grams,
    target: Target,
    weighting: JointWeighting,
    learner: Learner,
    *,
    size: int = WORKING_SET_SIZE,
    cache_bytes: float = CACHE_BYTES,
    weight_step: WeightStep | None = None,
    method: str = "chunking",
    summary: Summary | None = None,
    warm: WarmStart | None = None,
    report: Report | None = None,
) -> Found:
    """Kernel weights and predictor of a joint problem with a piecewise linear loss.

    Parameters
    ----------
    size : int
        Number of samples in a working set, at least 2.
    cache_bytes : float
        Memory for rows of all kernels; rows that are not cached are computed again.
    weight_step : WeightStep, optional
        Computes the kernel weights after each step; by default the regulariser's update.
    method : str
        The name of the method in warnings.
    summary : Summary, optional
        The statistics of the sample, if they are known.
    warm : WarmStart, optional
        Kernel weights of a similar problem.
    report : callable, optional
        Receives the history entry of every step.
    """
    rule = regulariser_of(weighting, grams, target, summary)
    if rule.mixing > 0 or not isinstance(learner.loss, Hinge | EpsilonInsensitive | OneClass):
        raise ValueError(
            f"Chunking solves norms with the hinge, epsilon-insensitive or one-class loss; got "
            f"{weighting!r} with {type(learner.loss).__name__.lower()}. Use solver='alternation'."
        )
    if size < 2:
        raise ValueError(f"Chunking: a working set has at least 2 samples; got size={size!r}.")
    theta = rule.start()
    if warm is not None:
        theta = warm.near(theta)
    require_psd(grams, theta, grams.combine(theta), warn=False)
    C, loss = learner.costs(target), learner.loss
    intercept = learner.fit_intercept
    Y, _ = centred_outputs(target, learner)
    duals = [BoxDual.of(loss, y, C) for y in Y.T]
    cache = RowCache(grams.block, cache_bytes)
    s = np.column_stack([dual.start() for dual in duals])
    g = grams.matvecs(s)
    history: list[dict[str, Any]] = []
    best: CertifiedIterate | None = None
    top: CertifiedIterate | None = None
    fresh, halted = True, False
    limit = weighting.max_iter * max(10, grams.n // size)
    journal, first = journal_of(report), 0
    kept = None if journal is None else journal.state(method)
    if kept is not None:
        first, history, fresh = kept["step"], kept["history"], kept["fresh"]
        s, g, theta = kept["s"], kept["g"], kept["theta"]
        best, top = iterate_from(grams, kept["best"]), iterate_from(grams, kept["top"])
        cache.restore(kept["rows"])
        if weight_step is not None:
            weight_step.restore(kept["weight_step"])

    def state(following: int) -> Answers:
        assert best is not None and top is not None
        return {
            "step": following,
            "history": history,
            "fresh": fresh,
            **{"s": s, "g": g, "theta": theta},
            **{"best": numbers_of(best), "top": numbers_of(top)},
            "rows": cache.state(),
            "weight_step": None if weight_step is None else weight_step.state(),
        }

    try:
        for step in range(first, limit):
            F = np.einsum("k,knt->nt", theta, g)
            a = np.einsum("knt,nt->k", g, s)
            gram = grams.combine(theta)
            iterate = certify(target, rule, learner, theta, gram, s.copy(), F, a)
            enough = iterate.meets(weighting.tol)
            if enough and not fresh:
                # Rounding errors of many steps accumulate in g: certify a recomputed product.
                g, fresh = grams.matvecs(s), True
                continue
            record(history, iterate.entry(learner), report)
            if best is None or iterate.gap < best.gap:
                best = iterate
            if top is None or iterate.primal < top.primal:
                top = iterate
            if enough:
                break
            moved = False
            for j, dual in enumerate(duals):
                W, violation = dual.working_set(F[:, j], s[:, j], size, intercept)
                if violation <= MIN_VIOLATION * max(1.0, float(np.abs(F[:, j]).max())):
                    continue
                rows = cache.take(W)
                K = np.einsum("k,kwn->wn", theta, rows[:, :, W])
                change = dual.improve(K, F[W, j], s[W, j], W, intercept, 0.01 * violation)
                g[:, :, j] += np.einsum("w,kwn->kn", change, rows, optimize=True)
                s[W, j] += change
                moved = moved or bool(np.any(change != 0))
            fresh = False
            a = np.maximum(np.einsum("knt,nt->k", g, s), 0.0)
            before = theta
            theta = rule.update(theta, a) if weight_step is None else weight_step(theta, a, s)
            if not moved and np.array_equal(before, theta):
                halted = True
                break
            if journal is not None:
                journal.keep(method, partial(state, step + 1))
        else:
            gap = best.relative_gap if best is not None else np.inf
            warn_early(weighting, method, f"stopped after {limit} steps", gap)
    except KeyboardInterrupt:
        if best is None:
            raise
        raise Stopped(best.found(learner, history)) from None
    assert best is not None and top is not None
    if not halted:
        return best.found(learner, history)
    answer, gap = best, best.gap
    if weight_step is not None and top.primal - weight_step.lower < gap:
        # Weight steps may prove a better bound than any single predictor.
        answer, gap = top, max(top.primal - weight_step.lower, 0.0)
    found = answer.found(learner, history, gap)
    if not answer.meets(weighting.tol, gap):
        warn_early(weighting, method, "made no further progress", found.machine.gap)
    return found


def warn_early(weighting: JointWeighting, method: str, how: str, gap: float) -> None:
    """Warn that the method ended before the tolerance was reached."""
    warnings.warn(
        f"{weighting!r} by {method} {how} with a relative duality gap of {gap:.2g}, above "
        f"tol={weighting.tol:g}. Use solver='auto', or raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=5,
    )


@dataclass(frozen=True)
class BoxDual:
    """A dual problem in signed coefficients: ``min 1/2 s'Ks + sum_i phi_i(s_i)`` over a box.

    ``phi_i`` has slope ``above`` for s > 0 and ``below`` for s < 0; with an intercept the
    coefficients sum to ``total``.
    """

    lower: np.ndarray
    upper: np.ndarray
    above: np.ndarray
    below: np.ndarray
    total: float = 0.0

    @classmethod
    def of(cls, loss: Loss, y: np.ndarray, C: np.ndarray) -> BoxDual:
        """The dual of the hinge, epsilon-insensitive or one-class loss."""
        if isinstance(loss, Hinge):
            return cls(np.minimum(y * C, 0.0), np.maximum(y * C, 0.0), -y, -y)
        if isinstance(loss, EpsilonInsensitive):
            return cls(-C, C, loss.epsilon - y, -loss.epsilon - y)
        zero = np.zeros(len(C))
        return cls(zero, C, zero, zero, 1.0)

    def start(self) -> np.ndarray:
        """Feasible coefficients with the required sum: the first ones at their upper bounds."""
        filled: np.ndarray = np.diff(np.minimum(np.cumsum(self.upper), self.total), prepend=0.0)
        return filled if self.total else np.zeros(len(self.upper))

    def working_set(
        self, f: np.ndarray, s: np.ndarray, size: int, intercept: bool
    ) -> tuple[np.ndarray, float]:
        """The samples whose coefficients have the steepest slopes, and the largest violation.

        With an intercept the sum is fixed: half of the samples have coefficients that should rise,
        the other half coefficients that should fall.
        """
        rise = np.where(s < self.upper, -(f + np.where(s >= 0, self.above, self.below)), -np.inf)
        fall = np.where(s > self.lower, f + np.where(s > 0, self.above, self.below), -np.inf)
        if not intercept:
            gain = np.maximum(rise, fall)
            chosen = np.argsort(-gain, kind="stable")[:size]
            return np.sort(chosen[gain[chosen] > 0]), max(float(gain.max()), 0.0)
        violation = float(rise.max() + fall.max())
        if violation <= 0:
            return np.zeros(0, dtype=np.intp), 0.0
        up = np.argsort(-rise, kind="stable")[: size // 2]
        down = np.argsort(-fall, kind="stable")[: size // 2]
        up, down = up[np.isfinite(rise[up])], down[np.isfinite(fall[down])]
        return np.unique(np.concatenate([up, down])), violation

    def improve(
        self,
        K: np.ndarray,
        f: np.ndarray,
        old: np.ndarray,
        W: np.ndarray,
        intercept: bool,
        tol: float,
    ) -> np.ndarray:
        """The change of the coefficients at W, the others fixed; K, f and old are those of W."""
        rest = f - K @ old
        found = smo.solve(
            K,
            np.concatenate([self.above[W] + rest, -(self.below[W] + rest)]),
            np.repeat([1.0, -1.0], len(W)),
            np.concatenate([self.upper[W], -self.lower[W]]),
            delta=float(old.sum()),
            intercept=intercept,
            tol=tol,
            alpha0=np.concatenate([np.maximum(old, 0.0), np.maximum(-old, 0.0)]),
        )
        return found.coef - old


class RowCache:
    """A cache of rows of all kernels; the least recently used rows are replaced."""

    def __init__(self, rows: Callable[[np.ndarray], np.ndarray], limit: float) -> None:
        self.rows, self.limit = rows, limit
        self.held: OrderedDict[int, np.ndarray] = OrderedDict()
        self.asked: dict[int, np.ndarray] = {}  # for each row, the rows computed in the same call

    def state(self) -> list[Any]:
        """The cached rows, and the rows computed in the same calls, for `restore`.

        The last bits of a row may depend on the rows computed in the same call.
        """
        return [[i, self.asked[i]] for i in self.held]

    def restore(self, state: list[Any]) -> None:
        """Fill the cache with the rows it held when `state` was called."""
        together: dict[bytes, np.ndarray] = {}
        rows: dict[int, np.ndarray] = {}
        for _, asked in state:
            if asked.tobytes() not in together:
                together[asked.tobytes()] = asked
        for key, asked in together.items():
            block = self.rows(asked)
            for i, others in state:
                if others.tobytes() == key:
                    rows[i] = block[:, int(np.flatnonzero(others == i)[0])].copy()
        self.held = OrderedDict((i, rows[i]) for i, _ in state)
        self.asked = {i: asked for i, asked in state}

    def take(self, index: np.ndarray) -> np.ndarray:
        """The rows of these samples, shape (p, len(index), n)."""
        absent = [i for i in index.tolist() if i not in self.held]
        new: dict[int, np.ndarray] = {}
        if absent:
            wanted = np.array(absent)
            block = self.rows(wanted)
            if len(absent) == len(index):
                out = block
            new = {i: block[:, at] for at, i in enumerate(absent)}
        if len(absent) < len(index):
            out = np.stack([new[i] if i in new else self.held[i] for i in index.tolist()], axis=1)
        for i in index.tolist():
            if i in self.held:
                self.held.move_to_end(i)
        room = int(self.limit // max(out[:, 0].nbytes, 1))
        for i, row in list(new.items())[:room]:
            while len(self.held) >= room:
                del self.asked[self.held.popitem(last=False)[0]]
            self.held[i], self.asked[i] = row.copy(), wanted
        return out
