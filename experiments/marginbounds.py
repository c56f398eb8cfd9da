"""Margin bounds for learned kernels: Rostamizadeh 2010, Figures 2.1, 2.2 and 2.3.

Figures 2.1 and 2.3 are formulas: what Corollary 2.1 (weights of L1 norm one), Corollary 2.2 (of L2
norm one) and the earlier bound of Srebro and Ben-David allow for the difference of error and margin
loss, against the sample size m, with ``rho / R = 0.2`` and ``delta = 0.01``. Figure 2.2 sets the
error of a machine on many rank-one kernels, one per pixel of a digit, beside the bound, against the
number p of kernels.

What the text leaves open, and what is done here:

* *p in Figures 2.1 and 2.3.* Named are 10, m^(1/3), beyond m^(4/5), m; and 20, m. To these come
  m^(1/2) and m^(4/5).
* *The bound of Srebro and Ben-David* is its complexity term, as section 2.2 states it: no delta.
* *Digits.* The thesis has m = 36,000 and p from 200 to 800, though an image has 784 pixels. Here m
  is 4,000, drawn from the first 10,000 images of a set of 12,000, of which 673 pixels vary: p goes
  from 200 to 600, pixels in one random order, test error on the other 2,000 images.
* *Classes* are not named: even against odd digits.
* *The machine.* Weights are proportional to the absolute correlation of pixel and label on the
  training part, with sum one (L1) or sum of squares one (L2). With the weights given, the class is
  a ball of linear functions without intercept, and ``rho / R = 0.2`` means that the hinge loss is
  taken at margin 0.2 inside the unit ball (R = 1, pixels in [0, 1]): a support vector machine with
  ``||w|| = 5``, whose C is found by bisection (to 2 %).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import spearmanr

from multikernel.bounds import margin_bound_l1, margin_bound_lq, ramp_risk, srebro_ben_david
from multikernel.estimators import MultiKernelClassifier
from multikernel.grams.memory import MemoryBudget
from multikernel.kernels import Linear, per_feature
from multikernel.learners.svm import SVM
from multikernel.problem import Target
from multikernel.weighting import FeatureCorrelation

from . import datasets
from .norms import said
from .record import Claim, Options, Record, distinct, main, markdown, select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Margin bounds for learned kernels (Rostamizadeh 2010, Figures 2.1 to 2.3)"
MARGIN, DELTA = 0.2, 0.01
LARGEST = 15_000_000
#: number of kernels as a function of the sample size
GROWTHS = {
    "10": lambda m: 10,
    "20": lambda m: 20,
    "m^1/3": lambda m: round(m ** (1 / 3)),
    "m^1/2": lambda m: round(m**0.5),
    "m^4/5": lambda m: round(m**0.8),
    "m": lambda m: m,
}
SIZES = (36_000, 1_000_000, LARGEST)
KERNELS = (200, 300, 400, 500, 600)
QUICK_KERNELS = (200, 400, 600)
NORMS = ("L1", "L2")
N_TRAIN, QUICK_N_TRAIN = 4000, 1500
POOL = 10_000
#: random orders of the pixels, each with a sample of its own
ORDERS = 1
DATA = "mnist28_12k"


@dataclass(frozen=True)
class Row:
    """One machine on p rank-one kernels."""

    norm: str
    p: int
    order: int
    m: int
    C: float
    size: float
    train_error: float
    #: ramp loss at the margin, on the training part
    margin_loss: float
    test_error: float
    #: bound on the error: margin loss, complexity and confidence
    bound: float
    seconds: float


# -- formulas -------------------------------------------------------------------------------------


def allowance(bound: str, m: int, p: int) -> float:
    """What a bound adds to the margin loss.

    Examples
    --------
    >>> [round(allowance(bound, 36_000, 10), 2) for bound in ("L1", "L2", "SBD")]
    [0.18, 0.16, 14.35]
    """
    if bound == "L1":
        return margin_bound_l1(0.0, m, MARGIN, DELTA, p=p, R2=1.0)
    if bound == "L2":
        return margin_bound_lq(0.0, m, MARGIN, DELTA, q=2.0, p=p, R2=1.0)
    return srebro_ben_david(p, m, MARGIN)


# -- digits ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Pixels in [0, 1], and +1 for even digits."""
    bunch = datasets.load(DATA)
    return np.asarray(bunch.data, dtype=np.float64) / 255.0, np.where(bunch.target % 2, -1, 1)


def weights(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Absolute correlation of every column with the labels, scaled to sum one."""
    grams = per_feature(Linear()).plan(X).grams(X, budget=MemoryBudget.of(None))
    target = Target(y[:, None].astype(np.float64), "classification")
    return FeatureCorrelation().start(grams.corrected(False, None), target, SVM())


def ball(X: np.ndarray, y: np.ndarray, size: float) -> tuple[MultiKernelClassifier, float]:
    """The machine whose function has this norm, and its C: norms grow with C."""
    low, high = 1e-4, 1e2
    while True:
        C = float(np.sqrt(low * high))
        model = MultiKernelClassifier(
            [Linear()], "uniform", C=C, fit_intercept=False, center=False, normalize=None
        ).fit(X, y)
        values = model.decision_function(X[model.support_])
        norm = float(np.sqrt(model.dual_coef_[:, 0] @ values))
        if abs(norm - size) <= 0.02 * size or high < 1.001 * low:
            return model, C
        low, high = (C, high) if norm < size else (low, C)


def one(norm: str, p: int, order: int, seed: int, m: int) -> list[Row]:
    """One machine; the order of pixels and the sample follow from `seed` and `order`."""
    X, y = digits()
    rng = np.random.default_rng([seed, order])
    train = rng.permutation(POOL)[:m]
    varying = np.flatnonzero(X[train].std(axis=0) > 0)
    columns = rng.permutation(varying)[:p]
    return learn(norm, order, X[:, columns], y, train, np.arange(POOL, len(y)))


def learn(
    norm: str, order: int, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> list[Row]:
    """Weights from the training part, the machine of norm 5, its errors and the bound."""
    started = process_time()
    m, p = len(train), X.shape[1]
    mu = weights(X[train], y[train])
    mu = mu / (mu.sum() if norm == "L1" else np.linalg.norm(mu))
    Z = X * np.sqrt(mu)
    model, C = ball(Z[train], y[train], 1.0 / MARGIN)
    values = model.decision_function(Z)
    inside = MARGIN * values  # of a function in the unit ball
    margin_loss = ramp_risk(y[train] * inside[train], MARGIN)
    row = Row(
        norm,
        p,
        order,
        m,
        C,
        float(np.sqrt(model.dual_coef_[:, 0] @ values[train[model.support_]])),
        float(np.mean(np.sign(values[train]) != y[train])),
        margin_loss,
        float(np.mean(np.sign(values[test]) != y[test])),
        margin_loss + allowance(norm, m, p),
        round(process_time() - started, 2),
    )
    return [row]


def run(**common: Any) -> Record:
    """The formulas, and models of digits; quick: fewer kernels and digits. See `record.Options`."""
    options = Options(**common)
    name = options.stem("marginbounds")
    kernels, m = (QUICK_KERNELS, QUICK_N_TRAIN) if options.quick else (KERNELS, N_TRAIN)
    tasks = [
        (norm, p, order, options.seed, m)
        for order in range(ORDERS)
        for p in kernels
        for norm in NORMS
    ]
    rows = options.compute(one, tasks, Row, kept=name, title="margin bounds")
    return tell(name, rows)


# -- telling --------------------------------------------------------------------------------------


def tell(name: str, rows: Sequence[Row]) -> Record:
    """Tables, verdicts and picture."""
    formulas = [
        [f"{m:,}", growth, f"{count(m):,}"]
        + [f"{allowance(bound, m, count(m)):.4g}" for bound in ("L1", "L2", "SBD")]
        for m in SIZES
        for growth, count in GROWTHS.items()
    ]
    learned = []
    for p in distinct(rows, "p"):
        cells = [str(p)]
        for norm in NORMS:
            error, loss, bound = (
                select(rows, field, p=p, norm=norm).mean()
                for field in ("test_error", "margin_loss", "bound")
            )
            cells += [f"{100 * error:.1f}", f"{loss:.3f}", f"{bound:.3f}"]
        learned.append(cells)
    head = [
        "p",
        *(f"{norm}: {what}" for norm in NORMS for what in ("error in %", "margin loss", "bound")),
    ]
    tables = {
        "What the bounds add to the margin loss": markdown(
            ["m", "p =", "p", "Corollary 2.1 (L1)", "Corollary 2.2 (L2)", "Srebro and Ben-David"],
            formulas,
        ),
        f"Digits, m = {rows[0].m:,}: test error and bound": markdown(head, learned),
    }
    seconds = sum(row.seconds for row in rows)
    notes = f"Processor time: {seconds:.0f} s."
    return Record(name, TITLE, rows, tables, _claims(rows), notes, partial(draw, rows))


def _claims(rows: Sequence[Row]) -> list[Claim]:
    at = {growth: count(LARGEST) for growth, count in GROWTHS.items()}
    grid = np.unique(np.geomspace(1000, LARGEST, 60).astype(int))
    least = min(allowance("SBD", int(m), 10) for m in grid)
    ten, root = allowance("SBD", LARGEST, 10), allowance("SBD", LARGEST, at["m^1/3"])
    flat = [allowance("SBD", m, m) for m in SIZES]
    near = [allowance("SBD", m, GROWTHS["m^4/5"](m)) for m in SIZES]
    sizes = [f"{m:,}" for m in SIZES]
    l1 = [allowance("L1", LARGEST, at[growth]) for growth in ("10", "m")]
    same = [(allowance("L1", m, 20), allowance("L2", m, 20)) for m in SIZES]
    apart = allowance("L2", LARGEST, LARGEST) / allowance("L1", LARGEST, LARGEST)
    rate = np.log(allowance("L2", LARGEST, LARGEST) / allowance("L2", SIZES[1], SIZES[1]))
    slope = float(rate / np.log(LARGEST / SIZES[1]))
    off = max(abs(a / b - 1) for a, b in same)
    out = [
        Claim(
            "the bound of Srebro and Ben-David is above 1 for m up to 15 million, even at p = 10",
            "yes",
            said(least > 1),
            f"least value {least:.3f}",
        ),
        Claim(
            "its curves for p = 10 and p = m^1/3 coincide",
            "yes",
            said(abs(root / ten - 1) < 0.05),
            f"{ten:.3f} and {root:.3f} at m = 15 million",
        ),
        Claim(
            "its curves are nearly flat for p beyond m^4/5",
            "yes",
            said(max(flat) < 1.5 * min(flat)),
            f"p = m: {', '.join(f'{value:.1f}' for value in flat)} at m = {', '.join(sizes)}; at "
            f"p = m^4/5 it still falls, from {near[0]:.1f} to {near[-1]:.1f}",
        ),
        Claim(
            "the L1 bound varies mildly with p, up to p = m",
            "yes",
            said(l1[1] < 3 * l1[0]),
            f"{l1[0]:.4f} at p = 10, {l1[1]:.4f} at p = m = 15 million",
        ),
        Claim(
            "L1 and L2 bounds roughly coincide at p = 20",
            "yes",
            said(off < 0.1),
            f"L1 / L2 = {same[0][0] / same[0][1]:.3f} at m = 36,000",
        ),
        Claim(
            "they differ considerably at p = m",
            "yes",
            said(apart > 2),
            f"by a factor of {apart:.1f} at m = 15 million",
        ),
        Claim(
            "at p = m the L2 bound falls like m^-1/4",
            "yes",
            said(abs(slope + 0.25) < 0.03),
            f"exponent {slope:.3f} from 1 to 15 million",
        ),
    ]
    for norm in NORMS:
        mine = [row for row in rows if row.norm == norm]
        kernels = sorted({row.p for row in mine})
        errors = [select(mine, "test_error", p=p).mean() for p in kernels]
        bounds = [select(mine, "bound", p=p).mean() for p in kernels]
        order = spearmanr(errors, bounds).statistic
        out.append(
            Claim(
                f"on digits the test error moves with p as the {norm} bound does",
                "yes",
                said(order > 0.8),
                f"rank correlation {order:.2f}; error {100 * errors[0]:.1f} to "
                f"{100 * errors[-1]:.1f} %, bound {bounds[0]:.2f} to {bounds[-1]:.2f} from "
                f"p = {kernels[0]} to {kernels[-1]}",
            )
        )
        holds = all(row.test_error <= row.bound for row in mine)
        out.append(Claim(f"the {norm} bound holds for every classifier", "implied", said(holds)))
    return out


def draw(rows: Sequence[Row]) -> Figure:
    """Bounds against m (two panels), and error with bound against p (two panels)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    ((a, b), (c, d)) = figure.subplots(2, 2)
    sizes = np.unique(np.geomspace(10_000, LARGEST, 80).astype(int))
    for j, growth in enumerate(("10", "m^1/3", "m^4/5", "m")):
        count = GROWTHS[growth]
        for bound, style in (("SBD", "--"), ("L1", "-")):
            values = [allowance(bound, int(m), count(int(m))) for m in sizes]
            a.plot(sizes, values, style, color=f"C{j}", label=f"{bound}, p = {growth}")
    a.set_title("Figure 2.1: Srebro and Ben-David, and L1", fontsize="medium")
    for j, growth in enumerate(("20", "m^1/2", "m")):
        count = GROWTHS[growth]
        for bound, style in (("L1", "-"), ("L2", ":")):
            values = [allowance(bound, int(m), count(int(m))) for m in sizes]
            b.plot(sizes, values, style, color=f"C{j}", label=f"{bound}, p = {growth}")
    b.set_title("Figure 2.3: L1 and L2", fontsize="medium")
    for ax in (a, b):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("sample size m")
        ax.legend(fontsize="x-small", ncols=2)
    a.axhline(1.0, color="0.7", lw=0.8)
    a.set_ylabel("bound on error minus margin loss")
    for ax, norm in ((c, "L1"), (d, "L2")):
        mine = [row for row in rows if row.norm == norm]
        kernels = sorted({row.p for row in mine})
        for field, label in (
            ("bound", "bound"),
            ("margin_loss", "margin loss"),
            ("test_error", "test error"),
        ):
            means = [select(mine, field, p=p).mean() for p in kernels]
            ax.plot(kernels, means, marker=".", label=label)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("number of kernels p")
        ax.set_title(f"Figure 2.2: digits, {norm}, m = {mine[0].m:,}", fontsize="medium")
        ax.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    main(run, "marginbounds", TITLE)
