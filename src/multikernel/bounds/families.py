"""Losses with a margin, classes of functions, and the bounds that follow for a learned function.

A learned function ``f = sum_k <w_k, Phi_k> + b`` lies in every ball of a block norm,

    { sum_k <w_k, Phi_k> + b :  (sum_k ||w_k||^p + (|b|/kappa)^p)^(1/p) <= D },

where the intercept is the weight of one more kernel, the constant kappa^2. The Rademacher
complexity of the unit ball is known exactly (:mod:`.rademacher`), and the margin bound for f/D
follows. The three classes shown have p = 1, 4/3 and 2: weights of L1 norm one, of L2 norm one, and
the sum of the kernels. Margins, the size kappa and, where outputs have units, the radius D come
from grids whose points share delta, so each may be chosen after the data are seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..grams.protocol import Grams
from .blocknorm import block_norm, rademacher_block
from .margin import confidence_term, grid_share
from .montecarlo import Estimate, summarise
from .rademacher import conjugate, norm, not_negative, rademacher_lq
from .results import Bound

#: Exponents of the block norms of the three classes, and their names. They are fixed before any
#: data are seen, because the best of the three is used.
CLASSES = ((1.0, "L1 weights"), (4.0 / 3.0, "L2 weights"), (2.0, "sum of kernels"))
#: The share of delta reserved for the error of the Monte-Carlo complexities.
FOR_DRAWS = 0.1

# -- losses with a margin -------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One predictor on its sample: a loss with values in [0, 1] for every margin.

    Attributes
    ----------
    statement : str
        The probability that is bounded.
    error : float
        Its value on the sample.
    values : array of shape (n,)
        Margins, decisions or residuals, in units of the decision function.
    loss : callable
        Maps a margin to the losses, shape (n,); their slope in the decision is at most 1/margin.
    limit : float
        The largest margin at which the bound implies the statement; infinite if it does at every
        margin.
    scale_free : bool
        Whether only the ratio of margin and radius matters (there are no outputs with units).
    axis : str
        The meaning of the margin m, for plots.
    levels, tail : arrays
        For the table: margins or tolerances, and the part of the sample beyond them.
    tail_name : str
    """

    statement: str
    error: float
    values: np.ndarray
    loss: Callable[[float], np.ndarray]
    limit: float
    scale_free: bool
    axis: str
    levels: np.ndarray
    tail: np.ndarray
    tail_name: str


def classify(margins: np.ndarray) -> Task:
    """``Pr[y f(x) <= 0]`` by the ramp loss."""
    levels = np.array([0.0, 0.25, 0.5, 1.0, 2.0])
    return Task(
        statement="Pr(error on a new sample)",
        error=float(np.mean(margins <= 0)),
        values=margins,
        loss=lambda m: np.clip(1.0 - margins / m, 0.0, 1.0),
        limit=math.inf,
        scale_free=True,
        axis="margin m, for Pr(error on a new sample)",
        levels=levels,
        # Free support vectors have margin 1 up to rounding errors, and must count as such.
        tail=np.array([np.mean(margins <= m * (1 + 1e-6)) for m in levels]),
        tail_name="a margin of at most",
    )


def detect(decision: np.ndarray, offset: float) -> Task:
    """``Pr[f(x) < offset - m]``, for m up to half of the offset; the decision is f - offset."""
    half = 0.5 * abs(offset)
    levels = half * np.array([0.0, 0.25, 0.5, 1.0])
    return Task(
        statement="Pr(a new sample scores below half of the offset)",
        error=float(np.mean(decision < -half)),
        values=decision,
        loss=lambda m: np.clip(-decision / m, 0.0, 1.0),
        limit=half,
        scale_free=True,
        axis="m, for Pr(a new score is below the offset by more than m)",
        levels=levels,
        tail=np.array([np.mean(decision < -m) for m in levels]),
        tail_name="a score below the offset by more than",
    )


def regress(residuals: np.ndarray, spread: float) -> Task:
    """``Pr[|y - f(x)| > 2m]`` by a ramp from m to 2m, for 2m up to the spread of y."""
    size = np.abs(residuals)
    levels = spread * np.array([0.25, 0.5, 1.0, 2.0])
    return Task(
        statement="Pr(a new error exceeds the standard deviation of y)",
        error=float(np.mean(size > spread)),
        values=residuals,
        loss=lambda m: np.clip(size / m - 1.0, 0.0, 1.0),
        limit=0.5 * spread,
        scale_free=False,
        axis="m, for Pr(a new error exceeds 2m)",
        levels=levels,
        tail=np.array([np.mean(size > t) for t in levels]),
        tail_name="an error above",
    )


# -- classes of functions -------------------------------------------------------------------------

#: Bytes of the (p, n, columns) array that quadratic forms may use at a time.
FORM_BYTES = 2**26


def signed_forms(grams: Grams, signs: np.ndarray) -> np.ndarray:
    """``sigma' K_k sigma`` for every kernel and every column of signs, shape (p, S)."""
    columns = max(1, int(FORM_BYTES // (8 * grams.p * grams.n)))
    starts = range(0, signs.shape[1], columns)
    parts = [grams.quadratic_forms(signs[:, i : i + columns]) for i in starts]
    return not_negative(np.concatenate(parts, axis=1))


@dataclass(frozen=True)
class FunctionClasses:
    """The three classes over one set of kernels, and where the learned functions lie in them.

    Attributes
    ----------
    kernels : str
        The name of these kernels in the table.
    block_norms : array of shape (p, t)
        ``||w_k||`` of each predictor.
    intercepts : array of shape (t,)
    kappa : float
        The constant kernel is kappa^2; 0 when no predictor can have an intercept.
    complexities : list of (float, Estimate)
        Complexity of the unit ball of each class: bound from the traces, and Monte-Carlo estimate.
    share : float
        The share of delta for the choice of kappa.
    unmet : tuple of str
    """

    n: int
    kernels: str
    block_norms: np.ndarray
    intercepts: np.ndarray
    kappa: float
    complexities: list[tuple[float, Estimate]]
    share: float
    unmet: tuple[str, ...]

    @classmethod
    def of(
        cls,
        grams: Grams,
        signs: np.ndarray,
        kernels: str,
        block_norms: np.ndarray,
        intercepts: np.ndarray,
        unmet: tuple[str, ...],
        *,
        shifted: bool,
    ) -> FunctionClasses:
        """The classes, with a constant kernel if functions may be ``shifted`` by an intercept.

        The estimator's parameters decide this, not the fitted intercept: zero is also a value that
        was chosen from the sample.
        """
        n = grams.n
        diagonals = not_negative(grams.diagonals())
        forms = signed_forms(grams, signs)
        kappa, share = 0.0, 1.0
        if shifted:
            # A power of two near the size of the kernels, chosen with its own share of delta.
            i = round(math.log2(math.sqrt(max(diagonals.mean(axis=1).max(), 1e-300))))
            kappa, share = 2.0**i, grid_share(i)
            diagonals = np.vstack([diagonals, np.full(n, kappa**2)])
            forms = np.vstack([forms, kappa**2 * signs.sum(axis=0) ** 2])
        traces = diagonals.sum(axis=1)
        complexities = []
        for p, _ in CLASSES:
            r = conjugate(p) / 2.0
            q = math.inf if p == 2 else p / (2.0 - p)
            bound = min(
                rademacher_lq(traces, n, q, sharp=True), rademacher_block(traces, n, p, sharp=True)
            )
            scale = math.sqrt(float(norm(diagonals, r).sum())) / n
            drawn = summarise(np.sqrt(norm(forms, r)) / n, n, scale)
            complexities.append((bound, drawn))
        return cls(n, kernels, block_norms, intercepts, kappa, complexities, share, unmet)

    def radius(self, j: int, p: float) -> float:
        """D of predictor j."""
        parts = self.block_norms[:, j]
        if self.kappa > 0:
            parts = np.append(parts, self.intercepts[j] / self.kappa)
        return block_norm(parts, p)

    def bounds(self, task: Task, j: int, delta: float, unmet: tuple[str, ...]) -> list[Bound]:
        """The bounds of predictor j in each of the classes, over a grid of margins."""
        found = []
        each = delta / len(CLASSES)
        for (p, name), (from_traces, drawn) in zip(CLASSES, self.complexities, strict=True):
            complexity = min(from_traces, drawn.upper(FOR_DRAWS * each))
            D = self.radius(j, p)
            rest = (1.0 - FOR_DRAWS) * each * self.share
            found.append(self._bound(task, name, D, complexity, rest, unmet))
        return found

    def _bound(
        self,
        task: Task,
        name: str,
        D: float,
        complexity: float,
        delta: float,
        unmet: tuple[str, ...],
    ) -> Bound:
        if task.scale_free:
            # f/D lies in the unit ball; margins of f are D times those of the grid 2^(j/2).
            unit = D if D > 0 else 1.0
        else:
            # Outputs have units, so D is rounded up to a grid, the powers of two.
            i = math.ceil(math.log2(D)) if D > 0 else 0
            D, delta, unit = 2.0**i, delta * grid_share(i), 1.0
        largest = max(float(np.abs(task.values).max()), float(task.levels.max()), 1e-300) / unit
        top = math.ceil(2.0 * math.log2(largest)) + 1
        first = top - 20
        if 0.0 < task.limit < math.inf:
            first = min(first, math.floor(2.0 * math.log2(task.limit / unit)))
        steps = np.arange(first, top + 1)
        margins = unit * 2.0 ** (0.5 * steps)
        risks = np.array([float(task.loss(m).mean()) for m in margins])
        shares = np.array([delta * grid_share(int(k)) for k in steps])
        with np.errstate(over="ignore"):
            complex_terms = 2.0 * D * complexity / margins
        confidences = np.array([confidence_term(self.n, share) for share in shares])
        values = risks + complex_terms + confidences
        if math.isinf(task.limit):
            i = int(np.argmin(values))
        else:
            i = int(np.searchsorted(margins, task.limit * (1 + 1e-12), side="right")) - 1
        if i < 0:  # with a limit of zero no margin is small enough
            margin, risk, complex_term, share = 0.0, task.error, math.inf, shares[0]
        else:
            margin, risk, complex_term, share = margins[i], risks[i], complex_terms[i], shares[i]
        confidence = confidence_term(self.n, share)
        return Bound(
            name=name,
            kernels=self.kernels,
            margins=margins,
            risks=risks,
            values=values,
            chosen=i,
            margin=float(margin),
            risk=float(risk),
            complexity=float(complex_term),
            confidence=confidence,
            value=float(risk + complex_term + confidence),
            delta=float(share),
            unmet=unmet + self.unmet,
        )
