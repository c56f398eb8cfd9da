"""Block steps: the dual problem of :mod:`multikernel.learners.smo` by working sets of many samples.

    min_s  1/2 s'Ks + sum_i phi_i(s_i),    lower <= s <= upper,   1's = delta

Sequential minimal optimisation reads two rows of K per step. Block steps choose hundreds of
variables, solve the problem in these alone, and then update ``g = K s`` once::

    W    = half of the last W, and the variables that violate the optimality conditions most
    s_W  = the optimum in these variables, the others fixed (SMO on the matrix K[W, W])
    g   += K[:, W] (change of s_W)

The small steps stay within K[W, W], which fits in the processor cache. All passes over K are
products with blocks of columns, which run at full speed on threads and GPUs, and the operator need
not hold the matrix.

W contains the pair that violates the conditions most, and SMO begins with a step that gains at
least as much as one with that pair. The objective therefore falls as in SMO with the same
selection, whose convergence is proven (Chen, Fan & Lin, "A study on SMO-type decomposition methods
for support vector machines", IEEE Transactions on Neural Networks 17, 2006). Working sets of this
kind are those of Joachims 1999, with the sizes of Wen et al., "ThunderSVM", JMLR 19, 2018.
"""

from __future__ import annotations

import numpy as np

from ..grams.protocol import CombinedGram
from . import _smo_loops as loops
from ._smo_dual import EPS, SignedDual
from ._smo_matrix import StoredMatrix
from ._smo_run import SmoRun

#: Variables in a working set at first: K[W, W] then fits in the cache of a core.
SIZE = 512
#: The same for matrices on a GPU, where larger blocks are faster.
DEVICE_SIZE = 2048
#: Largest working set.
MAX_SIZE = 4096
#: Block steps after which the working set is doubled: its variables then depend on many others.
STEPS_PER_SIZE = 24
#: The same on a GPU, where more steps take less time than larger problems on one core.
DEVICE_STEPS_PER_SIZE = 100
#: Tolerance within a working set, as a fraction of the largest violation.
PRECISION = 0.1
#: Working sets with more variables are solved with shrinking.
MIN_SHRINKING_SIZE = 1024
#: Stop after this many recomputations of g without progress: the violation is rounding error.
MAX_STALLS = 4


class BlockRun:
    """A run of block steps, with the same results as `SmoRun`."""

    def __init__(self, problem: SignedDual, gram: CombinedGram, s: np.ndarray, tol: float) -> None:
        self.problem, self.gram, self.tol = problem, gram, tol
        self.s = s
        self.size = float(np.max(np.abs(gram.diagonal()), initial=0.0))
        self.width = DEVICE_SIZE if gram.on_device else SIZE
        self.steps_per_size = DEVICE_STEPS_PER_SIZE if gram.on_device else STEPS_PER_SIZE
        self.steps = 0  # small steps, as SMO counts them
        self.n_rows = 0  # columns of K that were read
        self.chosen, self.n_kept = np.zeros(0, dtype=np.intp), 0
        self.K = np.empty((0, 0))
        self.up, self.down = np.empty(len(s)), np.empty(len(s))
        self._refresh()

    def _refresh(self) -> None:
        """Recompute g, without the rounding errors of the steps."""
        support = np.flatnonzero(self.s)
        self.g = self._columns_times(support, self.s[support])
        self.moved, self.updates = 0.0, 0
        self._offsets()

    def _columns_times(self, index: np.ndarray, v: np.ndarray) -> np.ndarray:
        self.n_rows += len(index)
        return self.gram.partial_matvec(index, v)

    def _offsets(self, at: np.ndarray | slice = slice(None)) -> None:
        """Set ``up`` and ``down`` for the variables that have changed."""
        p, up, down = self.problem, self.up[at], self.down[at]
        loops.offsets(self.s[at], p.lower[at], p.upper[at], p.above[at], p.below[at], up, down)
        self.up[at], self.down[at] = up, down

    # -- optimality conditions ------------------------------------------------------------------

    def _edges(self) -> tuple[float, float]:
        """Smallest slope upwards and largest slope downwards."""
        return float((self.g + self.up).min()), float((self.g + self.down).max())

    def violation(self) -> float:
        """The largest violation of the optimality conditions."""
        low, top = self._edges()
        return max(top - low if self.problem.intercept else max(top, -low), 0.0)

    def offset(self) -> float:
        """The intercept b; at the optimum ``-(g + up) <= b <= -(g + down)`` for all variables."""
        free = self.up == self.down
        if np.any(free):
            return -float(np.mean((self.g + self.up)[free])) + 0.0
        ends = [end for end in self._edges() if np.isfinite(end)]
        return -float(np.mean(ends)) + 0.0 if ends else 0.0

    def _noise(self) -> float:
        """A bound on the rounding errors in g since it was last recomputed."""
        largest = float(np.max(np.abs(self.g), initial=0.0))
        return EPS * (2.0 * self.size * self.moved + self.updates * largest)

    # -- steps ----------------------------------------------------------------------------------

    def until(self, limit: int) -> str:
        """Run until the tolerance, the limit or rounding error is reached; return the status."""
        best, stalls, rounds = np.inf, 0, 0
        while True:
            violation = self.violation()
            noise = self._noise()
            if violation <= self.tol and noise <= 0.1 * self.tol:
                return "optimal"
            if self.steps >= limit:
                return "max_iter"
            if violation > max(self.tol, noise) and self._step(violation, limit):
                rounds += 1
                if rounds % self.steps_per_size == 0:
                    self.width = min(2 * self.width, MAX_SIZE)
                continue
            # Optimal, stuck, or below the rounding error: recompute g to decide.
            if self.updates == 0:
                return "optimal" if violation <= self.tol else "rounding"
            self._refresh()
            violation = self.violation()
            stalls = 0 if violation < 0.5 * best else stalls + 1
            best = min(best, violation)
            if violation <= self.tol:
                return "optimal"
            if stalls >= MAX_STALLS:
                return "rounding"

    def _step(self, violation: float, limit: int) -> bool:
        """Take one block step; False if rounding leaves no change."""
        p = self.problem
        self._choose()
        W, K = self.chosen, self._matrix_of_chosen()
        old = self.s[W]
        own = np.asarray(K @ old.astype(K.dtype), dtype=np.float64)
        rest = self.g[W] - own  # contribution of the other variables to the slopes
        part = SignedDual(
            p.lower[W], p.upper[W], p.above[W] + rest, p.below[W] + rest,
            float(old.sum()), p.intercept, p.linear, p.sign,
        )  # fmt: skip
        tol = max(PRECISION * violation, 0.5 * self.tol)
        run = SmoRun(part, StoredMatrix(K), old.copy(), tol, len(W) > MIN_SHRINKING_SIZE, own)
        run.until(limit - self.steps)
        self.steps += run.steps
        change = run.s - old
        changed = np.flatnonzero(change)
        if not len(changed):
            return False
        self.s[W] = run.s
        self.g += self._columns_times(W[changed], change[changed])
        self.moved += float(np.abs(change).sum())
        self.updates += 1
        self._offsets(W)
        return True

    def _choose(self) -> None:
        """Choose the variables of the next step: those kept from the last step, then new ones."""
        low, top = self._edges()
        if not self.problem.intercept:
            low = top = 0.0
        kept = self.chosen[-(self.width // 2) :]
        # The violation of each variable together with its best partner.
        rise, fall = top - (self.g + self.up), (self.g + self.down) - low
        rise[kept] = fall[kept] = -np.inf
        room = min(self.width - len(kept), len(rise))
        if self.problem.intercept:
            up = _largest(rise, room // 2)
            fall[up] = -np.inf
            new = np.concatenate([up, _largest(fall, room - room // 2)])
        else:
            new = _largest(np.maximum(rise, fall), room)
        self.chosen, self.n_kept = np.concatenate([kept, new]), len(kept)

    def _matrix_of_chosen(self) -> np.ndarray:
        """``K[W, W]``; in host memory, entries of variables kept from the last step are copied.

        From a GPU it is read in single precision, in half the time: the step need not be exact,
        since g is updated in double precision.
        """
        W, k = self.chosen, self.n_kept
        if self.gram.on_device:
            return self.gram.submatrix(W, np.float32)
        K = np.empty((len(W), len(W)))
        K[:k, :k] = self.K[len(self.K) - k :, len(self.K) - k :]
        K[k:] = self.gram.entries(W[k:], W)
        K[:k, k:] = K[k:, :k].T
        self.K = K
        return K


def _largest(value: np.ndarray, count: int) -> np.ndarray:
    """The positions of the largest positive values, at most ``count`` of them."""
    if count < len(value):
        chosen = np.argpartition(-value, count - 1)[:count] if count > 0 else np.zeros(0, np.intp)
    else:
        chosen = np.arange(len(value))
    return np.sort(chosen[value[chosen] > 0.0])
