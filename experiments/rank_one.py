"""Error against the number of rank-one kernels: Figure 3.1 of Rostamizadeh's thesis.

Stories of Reuters, are they about acquisitions or not (labels -1 and +1), and reviews with their
ratings. One kernel ``v_k v_k'`` for each of the N most frequent pairs of words; ridge regression on

====  =============================================================================================
unif  the sum of the kernels
L1    weights learned with the machine, ``||mu||_1 <= Lambda``
L2    weights learned with the machine, ``||mu - mu_0||_2 <= Lambda`` for equal weights ``mu_0``
====  =============================================================================================

Ridge and Lambda by cross-validation on the training texts; root mean squared error on the test
texts, and its ratio to that of the sum. The figure has no readable numbers; what is claimed is its
shape.

What the text leaves open, and what is done here:

* *N* stands on the axis only and is lost: 250, 500, 1,000, 2,000, 4,000.
* *Repetitions, thinned.* The thesis draws 2,000 of the 9,603 training stories 20 times, and splits
  reviews in halves 10 times; here four times each. It has ten folds, here there are five. (Ten
  folds and all draws take about eight times as long.)
* *Reviews.* Caption and text disagree about the domains; those of the caption are taken: kitchen,
  dvd, electronics.
* *Vocabulary.* From the training texts of each draw; titles belong to stories, not to reviews.
* *Kernels* have trace one and are not centred, as in the thesis's other experiment with rank-one
  kernels; the intercept is free.
* *One parameter.* With ``mu_0 = Lambda / sqrt(p)``, as in the thesis, and with L1, only the ratio
  of the ridge to Lambda counts: Lambda is one. The ridge over half decades, from 10^0.5 to 10^-3.5.
* *L1* with the squared loss is, on rank-one kernels, the lasso with its level l in place of the
  ridge (:func:`.bigrams.sparse_ridge_path`): l from 0.63 of its largest value down to 0.016, five
  values a decade.
* *Folds* are random, the same for all methods.

Run ``python -m experiments.rank_one --help``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold

from multikernel.estimators.search import MultiKernelRegressorCV
from multikernel.kernels.make_banks import per_feature
from multikernel.kernels.vectors import Linear
from multikernel.weighting import L2Ball

from . import bigrams
from .record import (
    Claim,
    Options,
    Record,
    Results,
    main,
    markdown,
    panels,
    require_known,
    select,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Error against the number of rank-one kernels (Rostamizadeh 2010, Figure 3.1)"
SETS = ("acq", "kitchen", "dvd", "electronics")
METHODS = ("unif", "L1", "L2")
SIZES, QUICK_SIZES = (250, 500, 1000, 2000, 4000), (250, 1000)
DRAWS, QUICK_DRAWS = 4, 2
FOLDS = 5
#: the ridge, and levels of the lasso in parts of the largest; from smooth to rough
RIDGES = tuple(float(10.0 ** (j / 2)) for j in range(1, -8, -1))
LEVELS = tuple(float(10.0 ** (-j / 5)) for j in range(1, 10))
#: training texts: stories, and reviews (the other half is for the test)
STORIES, REVIEWS, QUICK_TEXTS = 2000, 1000, 400
#: from this many kernels on there are "many"
MANY = 2000


@dataclass(frozen=True)
class Row:
    """One method with so many kernels on one draw."""

    data: str
    draw: int
    kernels: int
    method: str
    error: float
    #: part of the texts on the wrong side (of zero, or of three stars)
    misclassified: float
    #: the chosen ridge or level, and whether it lies at an end of its grid
    value: float
    at_end: bool
    active: int
    gap: float
    #: CPU time, choice included
    seconds: float


# -- one draw -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """Counts and targets; rows to train and to test on."""

    V: sp.csr_matrix
    y: np.ndarray
    train: np.ndarray
    test: np.ndarray


def split(data: str, draw: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Texts to train and to test on: the rest of the reviews, or the test stories of ModApte."""
    found = bigrams.load(data)
    rng = np.random.default_rng([draw, SETS.index(data)])
    if found.train is None:
        order = rng.permutation(len(found.labels))
        return order[:size], order[size : 2 * size]
    train = rng.permutation(found.train)[:size]
    return train, np.setdiff1d(np.arange(len(found.labels)), found.train)


@lru_cache(maxsize=1)
def make_draw(data: str, draw: int, size: int, top: int) -> Draw:
    """Counts of the most frequent pairs of words, most frequent first."""
    found = bigrams.load(data)
    train, test = split(data, draw, size)
    rows = np.concatenate([train, test])
    V = bigrams.count_bigrams(found.texts, train, top, rows)
    at = np.arange(len(rows))
    return Draw(V, found.ratings[rows], at[: len(train)], at[len(train) :])


@dataclass(frozen=True)
class Chosen:
    """The model of the chosen value: predictions for all texts."""

    predictions: np.ndarray
    value: float
    at_end: bool
    active: int
    gap: float


def learn(method: str, V: sp.csr_matrix, y: np.ndarray, train: np.ndarray, folds: Any) -> Chosen:
    """Choose by cross-validation on the training texts, train on all of them."""
    known = y[train]
    if method == "L1":
        return learn_sparse(V, known, train, folds)
    weighting: Any = "uniform" if method == "unif" else L2Ball(1.0, center=V.shape[1] ** -0.5)
    model = MultiKernelRegressorCV(
        per_feature(Linear()),
        weighting,
        alphas=RIDGES,
        cv=folds,
        scoring="neg_mean_squared_error",
        center=False,
        normalize="trace",
    ).fit(V[train], known)
    return Chosen(
        model.predict(V),
        model.alpha_,
        model.alpha_ in (RIDGES[0], RIDGES[-1]),
        int(np.count_nonzero(model.kernel_weights_)),
        float(model.duality_gap_),
    )


def learn_sparse(V: sp.csr_matrix, known: np.ndarray, train: np.ndarray, folds: Any) -> Chosen:
    """The same for the lasso; kernels have trace one on the texts that are trained on."""
    own = V[train]
    errors = np.zeros(len(LEVELS))
    for inner, held in folds.split(np.zeros(len(known))):
        U = bigrams.trace_one(own, inner).tocsr()
        path = bigrams.sparse_ridge_path(U[inner].tocsc(), known[inner], LEVELS)
        errors += [float(np.mean((model(U[held]) - known[held]) ** 2)) for model in path]
    best = int(np.argmin(errors))
    U = bigrams.trace_one(V, train).tocsr()
    *_, model = bigrams.sparse_ridge_path(U[train].tocsc(), known, LEVELS[: best + 1])
    at_end = best in (0, len(LEVELS) - 1)
    active = int(np.count_nonzero(model.weights))
    return Chosen(model(U), LEVELS[best], at_end, active, model.gap)


def work(data: str, draw: int, size: int, top: int, kernels: int) -> list[Row]:
    """All methods on one draw with so many kernels."""
    found = make_draw(data, draw, size, top)
    V, y, test = found.V[:, :kernels], found.y, found.test
    folds = KFold(FOLDS, shuffle=True, random_state=draw)
    middle = 0.0 if data == "acq" else 3.0
    rows = []
    for method in METHODS:
        started = time.process_time()
        chosen = learn(method, V, y, found.train, folds)
        predicted = chosen.predictions[test]
        rows.append(
            Row(
                data,
                draw,
                kernels,
                method,
                float(np.sqrt(np.mean((predicted - y[test]) ** 2))),
                float(np.mean((predicted > middle) != (y[test] > middle))),
                chosen.value,
                chosen.at_end,
                chosen.active,
                chosen.gap,
                round(time.process_time() - started, 3),
            )
        )
    return rows


# -- tables ---------------------------------------------------------------------------------------


class Found(Results[Row]):
    """Rows by set, number of kernels and method."""

    @property
    def sizes(self) -> list[int]:
        return sorted({row.kernels for row in self.rows})

    def values(self, data: str, kernels: int, method: str, field: str = "error") -> np.ndarray:
        """One number a draw."""
        return select(self.rows, field, data=data, kernels=kernels, method=method)

    def ratios(self, data: str, kernels: int, method: str) -> np.ndarray:
        """Error over that of the sum, draw by draw."""
        return self.values(data, kernels, method) / self.values(data, kernels, "unif")

    def table(self) -> str:
        head = ["data", "kernels", *METHODS, "L1 / unif", "L2 / unif", "kernels of L1"]
        head += [f"misclassified {method}" for method in METHODS]
        lines = []
        for data in self.sets:
            for kernels in self.sizes:
                wrong = [self.values(data, kernels, m, "misclassified") for m in METHODS]
                lines.append(
                    [
                        data,
                        kernels,
                        *(spread(self.values(data, kernels, method)) for method in METHODS),
                        *(spread(self.ratios(data, kernels, method)) for method in METHODS[1:]),
                        f"{self.values(data, kernels, 'L1', 'active').mean():.0f}",
                        *(spread(values) for values in wrong),
                    ]
                )
        return markdown(head, lines)


def claims(found: Found) -> list[Claim]:
    """The shape of the figure, as its text has it."""

    def count(text: str, holds: dict[tuple[str, int], bool], ratios: str) -> Claim:
        missed = [f"{data} at {kernels}" for (data, kernels), yes in holds.items() if not yes]
        said = f"{len(holds) - len(missed)} of {len(holds)} (set, N)"
        said += f", not {', '.join(missed)}" if missed else ""
        return Claim(text, "yes", "no" if missed else "yes", f"{said}; {ratios}")

    largest = found.sizes[-1]
    many = [kernels for kernels in found.sizes if kernels >= MANY] or [largest]
    where = f"from {many[0]} kernels on"

    def at_largest(method: str) -> str:
        cells = [f"{data} {found.ratios(data, largest, method).mean():.3f}" for data in found.sets]
        return f"ratio to unif at {largest}: {', '.join(cells)}"

    def each(sizes: Sequence[int], rule: Any) -> dict[tuple[str, int], bool]:
        return {
            (data, kernels): bool(rule(data, kernels)) for data in found.sets for kernels in sizes
        }

    def mean(data: str, kernels: int, method: str) -> float:
        return float(found.values(data, kernels, method).mean())

    return [
        count(
            f"L2 is better than the sum {where}",
            each(many, lambda data, n: mean(data, n, "L2") < mean(data, n, "unif")),
            at_largest("L2"),
        ),
        count(
            f"L1 is worse than the sum {where}",
            each(many, lambda data, n: mean(data, n, "L1") > mean(data, n, "unif")),
            at_largest("L1"),
        ),
        count(
            "L2 is never worse than L1",
            each(found.sizes, lambda data, n: mean(data, n, "L2") <= mean(data, n, "L1")),
            f"{at_largest('L2')}; L1 there: {at_largest('L1').partition(': ')[2]}",
        ),
    ]


def notes(found: Found) -> str:
    ends = {m: np.mean([r.at_end for r in found.rows if r.method == m]) for m in METHODS}
    gaps = {m: max(r.gap for r in found.rows if r.method == m) for m in METHODS}
    seconds = sum(row.seconds for row in found.rows)
    draws = len({row.draw for row in found.rows})
    return (
        f"Root mean squared error, mean ± standard deviation over {draws} draws. Chosen at an end "
        "of the grid: "
        + ", ".join(f"{method} {part:.0%}" for method, part in ends.items())
        + ". Largest relative duality gap: "
        + ", ".join(f"{method} {gap:.1e}" for method, gap in gaps.items())
        + f". {seconds:.0f} s of CPU time."
    )


def draw_figure(found: Found) -> Figure:
    """Error and its ratio to that of the sum, against the number of kernels."""
    figure, axes = panels(len(found.sets), 2, sharex=True)
    marks = dict(zip(METHODS, "osD", strict=True))
    for column, data in enumerate(found.sets):
        for line, values in enumerate((found.values, found.ratios)):
            ax = axes[line, column]
            for method in METHODS:
                each = [values(data, kernels, method) for kernels in found.sizes]
                means = [v.mean() for v in each]
                bars = [v.std(ddof=1) if len(v) > 1 else 0.0 for v in each]
                ax.errorbar(
                    found.sizes, means, yerr=bars, marker=marks[method], capsize=2, label=method
                )
            ax.set_xscale("log")
            ax.set_xticks(found.sizes, [str(kernels) for kernels in found.sizes])
            ax.minorticks_off()
        axes[0, column].set_title(data, fontsize="medium")
        axes[1, column].set_xlabel("rank-one kernels")
    axes[0, 0].set_ylabel("RMSE")
    axes[1, 0].set_ylabel("RMSE / RMSE of unif")
    axes[0, 0].legend()
    return figure


def run(repetitions: int | None = None, *, names: Sequence[str] = SETS, **common: Any) -> Record:
    """Run the experiment, or what is missing of it.

    Quick: 400 training texts, 250 and 1,000 kernels.

    Parameters
    ----------
    repetitions : int or None, default=None
        Draws of the training texts, each with the next seed; four, or two of a quick run.
    names : sequence of str
        Which sets.
    **common
        See `record.Options`.
    """
    options = Options(**common)
    require_known("names", names, SETS)
    quick = options.quick
    times, sizes = (QUICK_DRAWS, QUICK_SIZES) if quick else (DRAWS, SIZES)
    tasks = [
        (name, draw, texts, sizes[-1], kernels)
        for name in names
        for texts in [QUICK_TEXTS if quick else STORIES if name == "acq" else REVIEWS]
        for draw in options.seeds(repetitions or times)
        for kernels in sizes
    ]
    stem = options.stem("rank_one")
    rows = options.compute(work, tasks, Row, kept=stem, title="rank-one kernels")
    found = Found(rows)
    return Record(
        stem,
        TITLE,
        rows,
        tables={"Root mean squared error": found.table()},
        claims=claims(found),
        notes=notes(found),
        figure=lambda: draw_figure(found),
    )


if __name__ == "__main__":
    main(run, "rank_one", TITLE)
