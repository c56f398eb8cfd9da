"""Thousands of rank-one kernels: Tables 3 and 5 of Cortes, Mohri and Rostamizadeh 2012.

(Table 3.2 of Rostamizadeh's thesis.) Reviews of four kinds of products; a kernel ``v_k v_k'`` for
each of the 4,000 most frequent pairs of words, of trace one. Targets are the ratings (kernel ridge
regression) or whether a review is positive (support vector machine). Combinations:

==============  ===================================================================================
unif            equal weights
align           weights proportional to the alignment of each kernel with the labels
l2-krr          weights learned with ridge regression, ``||mu||_2 <= Lambda``; the paper's table
l2-krr around   the same, ``||mu - mu_0||_2 <= Lambda`` for equal weights ``mu_0``; the thesis's
l1-svm          weights learned with the support vector machine, of sum at most Lambda
==============  ===================================================================================

Five folds: three for training, one for choosing the scale Lambda of the weights, one for the
score. The ridge (or C) is fixed in the paper, because only its ratio to Lambda (product with it)
counts; here Lambda is fixed and the ridge (or C) chosen, which is the same. Table 5 compares the
five test errors of each two methods by a paired one-sided t test at level 0.1.

What the text leaves open, and what is done here:

* *Texts.* The review without its title. Words are runs of letters and digits in lower case.
* *Vocabulary.* The 4,000 pairs that are most frequent in the three training folds, so that no other
  text has a say in it. (The papers do not say where they were counted.)
* *Folds* are random and stratified by rating; the same for all methods.
* *Centring.* Labels are centred, kernels are not, as the paper has it: ridge regression without
  intercept on ratings less their training mean. The support vector machine has an intercept.
* *Grids.* Half decades: the ridge from ten to 1e-5, C from 1e2 to 1e5. A tie goes to the smoother
  machine.
* *The centre* ``mu_0`` of the thesis is ``Lambda / sqrt(p)`` in every coordinate.
* *Alignment* of the learned kernel with the labels is given on the two folds that were not trained
  on and on the training folds. The papers do not say which they print; the first was put beside
  their figures after both had been seen for two sets, where it agrees and the other does not.
* *l1-svm* on rank-one kernels is a machine with the 1-norm of its slopes; its path over C is that
  of linear programs over a level l (:func:`.bigrams.sparse_machine_path`), which is the grid here:
  five values a decade, from 0.63 of the largest level down to 0.01.

Run ``python -m experiments.sentiment --help``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold

from multikernel.estimators.classifier import MultiKernelClassifier
from multikernel.estimators.regressor import MultiKernelRegressor
from multikernel.grams.normalise import centered_alignment
from multikernel.kernels.make_banks import per_feature
from multikernel.kernels.vectors import Linear
from multikernel.weighting import L2Ball

from . import bigrams, protocol
from .protocol import assign, error_of
from .record import (
    Claim,
    Options,
    Record,
    Results,
    beside,
    better,
    dots,
    key_above,
    main,
    markdown,
    panels,
    require_known,
    select,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Rank-one kernels on reviews (Cortes, Mohri and Rostamizadeh 2012, Tables 3 and 5)"
SETS = ("books", "dvd", "electronics", "kitchen")
AROUND = "l2-krr around"
METHODS = {
    "regression": ("unif", "l2-krr", AROUND, "align"),
    "classification": ("unif", "l1-svm", "align"),
}
#: the ridge and C, from the smoothest machine to the roughest
GRIDS = {
    "regression": tuple(float(10.0 ** (j / 2)) for j in range(2, -11, -1)),
    "classification": tuple(float(10.0 ** (j / 2)) for j in range(4, 11)),
}
#: levels of l1-svm
LEVELS = tuple(float(10.0 ** (-j / 5)) for j in range(1, 11))
#: error and alignment with their standard deviations, in the order of SETS
PRINTED_ERRORS = {
    ("regression", "unif"): ((1.442, 0.015), (1.438, 0.033), (1.342, 0.030), (1.356, 0.016)),
    ("regression", "l2-krr"): ((1.410, 0.024), (1.423, 0.034), (1.318, 0.033), (1.333, 0.015)),
    ("regression", AROUND): ((1.414, 0.020), (1.420, 0.034), (1.318, 0.031), (1.332, 0.016)),
    ("regression", "align"): ((1.401, 0.035), (1.414, 0.017), (1.308, 0.033), (1.312, 0.012)),
    ("classification", "unif"): ((0.258, 0.017), (0.243, 0.015), (0.188, 0.014), (0.201, 0.020)),
    ("classification", "l1-svm"): ((0.286, 0.016), (0.292, 0.025), (0.238, 0.019), (0.236, 0.024)),
    ("classification", "align"): ((0.243, 0.020), (0.214, 0.020), (0.166, 0.016), (0.172, 0.022)),
}
PRINTED_ALIGNMENTS = {
    ("regression", "unif"): ((0.029, 0.005), (0.029, 0.005), (0.038, 0.002), (0.039, 0.006)),
    ("regression", "l2-krr"): ((0.036, 0.008), (0.036, 0.009), (0.050, 0.004), (0.056, 0.005)),
    ("regression", AROUND): ((0.031, 0.004), (0.031, 0.005), (0.042, 0.003), (0.044, 0.007)),
    ("regression", "align"): ((0.046, 0.006), (0.047, 0.005), (0.065, 0.004), (0.076, 0.008)),
    ("classification", "unif"): ((0.030, 0.004), (0.030, 0.005), (0.040, 0.002), (0.039, 0.007)),
    ("classification", "l1-svm"): ((0.030, 0.011), (0.033, 0.014), (0.051, 0.004), (0.058, 0.007)),
    ("classification", "align"): ((0.043, 0.003), (0.045, 0.005), (0.063, 0.004), (0.070, 0.010)),
}
_REGRESSION = frozenset([("unif", "l2-krr"), ("unif", "align"), ("l2-krr", "align")])
_CLASSES = frozenset([("unif", "align"), ("l1-svm", "unif"), ("l1-svm", "align")])
#: Table 5: (row, column) where the column is significantly better
PRINTED_BETTER = {
    **{("regression", data): _REGRESSION for data in SETS},
    ("regression", "dvd"): _REGRESSION - {("l2-krr", "align")},
    **{("classification", data): _CLASSES for data in SETS},
}


@dataclass(frozen=True)
class Row:
    """One method on one fold."""

    data: str
    task: str
    fold: int
    method: str
    error: float
    #: on the training folds, and on the other two
    alignment: float
    held_alignment: float
    #: the chosen C, ridge or level, and its error on the fold that chooses
    value: float
    validation_error: float
    #: kernels, and how many of them have a weight
    kernels: int
    active: int
    gap: float
    #: CPU time for the whole grid
    seconds: float


# -- one fold -------------------------------------------------------------------------------------


def parts(ratings: np.ndarray, seed: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Training, choosing and test texts of the five assignments."""
    splitter = StratifiedKFold(5, shuffle=True, random_state=seed)
    folds = [test for _, test in splitter.split(np.zeros(len(ratings)), ratings.astype(int))]
    return [assign(folds, i) for i in range(5)]


def grid_of(method: str, task: str) -> tuple[float, ...]:
    """Ridges, costs or levels."""
    return LEVELS if method == "l1-svm" else GRIDS[task]


@dataclass(frozen=True)
class Model:
    """What a method found at one value of the grid: predictions for all texts, and weights."""

    value: float
    predictions: np.ndarray
    weights: np.ndarray
    gap: float


def models(
    method: str, V: sp.csr_matrix, y: np.ndarray, train: np.ndarray, grid: Sequence[float]
) -> Iterator[Model]:
    """A model for every value; of y, only the training part is looked at."""
    known, p = y[train], V.shape[1]
    bank = per_feature(Linear())
    if method == "l1-svm":
        U = bigrams.trace_one(V, train)
        path = bigrams.sparse_machine_path(U.tocsr()[train].tocsc(), known, grid)
        for value, machine in zip(grid, path, strict=True):
            yield Model(value, np.sign(machine(U)), machine.weights, machine.gap)
        return
    weighting = {
        "unif": "uniform",
        "l2-krr": L2Ball(1.0, tol=1e-4),
        AROUND: L2Ball(1.0, center=p**-0.5, tol=1e-4),
    }.get(method, method)
    options: dict[str, Any] = {"center": False, "normalize": "trace"}
    classify = set(np.unique(known)) <= {-1.0, 1.0}
    mean = 0.0 if classify else known.mean()
    # Weights learned with the machine begin at those of the last value.
    model: Any
    if classify:
        model = MultiKernelClassifier(bank, weighting, **options)
    else:
        model = MultiKernelRegressor(
            bank, weighting, fit_intercept=False, warm_start=True, **options
        )
    for value in grid:
        model.set_params(**{"C" if classify else "alpha": value})
        model.fit(V[train], known - mean)
        found = model.predict(V) + mean
        yield Model(value, found, model.kernel_weights_, float(model.duality_gap_))


def choose(
    method: str,
    task: str,
    V: sp.csr_matrix,
    y: np.ndarray,
    roles: Sequence[np.ndarray],
    grid: Sequence[float],
) -> tuple[Model, float]:
    """Train on the first part, choose on the second; the third is not looked at."""
    train, choosing = roles[:2]
    return protocol.choose(
        models(method, V, y, train, grid),
        lambda model: error_of(model.predictions[choosing], y[choosing], task),
    )


def alignment_on(U: sp.csc_matrix, weights: np.ndarray, rows: np.ndarray, y: np.ndarray) -> float:
    """Alignment of ``sum_k w_k u_k u_k'`` with the labels of these texts, centred on them."""
    part = U.tocsr()[rows].multiply(np.sqrt(weights)[None, :]).tocsr()
    return float(centered_alignment((part @ part.T).toarray(), np.outer(y[rows], y[rows])))


def work(data: str, task: str, fold: int, seed: int, limit: int, top: int, step: int) -> list[Row]:
    """All methods of a task on one fold."""
    found = bigrams.load(data)
    chosen = np.random.default_rng(seed).permutation(len(found.labels))[:limit]
    texts = [found.texts[i] for i in chosen]
    y = (found.labels if task == "classification" else found.ratings)[chosen]
    roles = parts(found.ratings[chosen], seed)[fold]
    train, choosing, test = roles
    held = np.concatenate([choosing, test])
    V = bigrams.count_bigrams(texts, train, top)
    U = bigrams.trace_one(V, train)
    rows = []
    for method in METHODS[task]:
        started = time.process_time()
        best, lowest = choose(method, task, V, y, roles, grid_of(method, task)[::step])
        rows.append(
            Row(
                data,
                task,
                fold,
                method,
                error_of(best.predictions[test], y[test], task),
                alignment_on(U, best.weights, train, y),
                alignment_on(U, best.weights, held, y),
                best.value,
                lowest,
                V.shape[1],
                int(np.count_nonzero(best.weights)),
                best.gap,
                round(time.process_time() - started, 3),
            )
        )
    return rows


# -- tables ---------------------------------------------------------------------------------------


class Found(Results[Row]):
    """Rows by task, set and method."""

    def values(self, task: str, data: str, method: str, field: str = "error") -> np.ndarray:
        """One number a fold."""
        return select(self.rows, field, task=task, data=data, method=method)

    def table(self, task: str) -> str:
        """Half of Table 3: error and alignment, ours and printed."""
        head = ["data", "method", "RMSE" if task == "regression" else "error"]
        head += ["printed", "apart (sd)", "alignment, not trained on", "printed", "apart (sd)"]
        head += ["alignment, trained on", "kernels with a weight"]
        lines = []
        for data in self.sets:
            for method in METHODS[task]:
                at = SETS.index(data)
                errors, held, aligned, active = (
                    self.values(task, data, method, field)
                    for field in ("error", "held_alignment", "alignment", "active")
                )
                lines.append(
                    [
                        data,
                        method,
                        *beside(errors, PRINTED_ERRORS[task, method][at]),
                        *beside(held, PRINTED_ALIGNMENTS[task, method][at]),
                        spread(aligned),
                        f"{active.mean():.0f}",
                    ]
                )
        return markdown(head, lines)

    def wins(self, task: str, data: str, row: str, column: str) -> bool:
        """Whether the column is significantly better than the row."""
        return better(self.values(task, data, column), self.values(task, data, row))

    def significance(self) -> str:
        """Table 5: ours, and what is printed."""
        lines = []
        for task, data, row, column in self.pairs():
            ours = int(self.wins(task, data, row, column))
            printed = int((row, column) in PRINTED_BETTER[task, data])
            if ours or printed:
                errors = self.values(task, data, column) - self.values(task, data, row)
                lines.append(
                    [task, data, f"{column} better than {row}", ours, printed, spread(errors)]
                )
        head = ["task", "data", "test", "here", "printed", "difference of errors"]
        return markdown(head, lines)

    def pairs(self) -> Iterator[tuple[str, str, str, str]]:
        """All entries of Table 5."""
        for task in METHODS:
            names = [method for method in METHODS[task] if method != AROUND]
            for data in self.sets:
                yield from ((task, data, a, b) for a in names for b in names if a != b)

    def lower(self, task: str, left: str, right: str, field: str = "error") -> dict[str, bool]:
        """Per set, whether the mean of the first is below that of the second."""
        return {
            data: bool(
                self.values(task, data, left, field).mean()
                < self.values(task, data, right, field).mean()
            )
            for data in self.sets
        }


def claims(found: Found) -> list[Claim]:
    """What section 5.2, Table 3 and Table 5 say."""
    sets = found.sets

    def count(text: str, holds: dict[str, bool], detail: str = "", printed: str = "yes") -> Claim:
        missed = [data for data in sets if not holds[data]]
        said = f"{len(sets) - len(missed)} of {len(sets)}"
        said += f", not on {', '.join(missed)}" if missed else ""
        ours = "no" if missed else "yes"
        return Claim(text, printed, ours, f"{said}; {detail}" if detail else said)

    def apart(task: str, left: str, right: str) -> str:
        cells = [
            f"{data} "
            f"{(found.values(task, data, left) - found.values(task, data, right)).mean():+.3f}"
            for data in sets
        ]
        return ", ".join(cells)

    out = []
    for task, left, right in (
        ("regression", "align", "unif"),
        ("regression", "align", "l2-krr"),
        ("regression", "l2-krr", "unif"),
        ("regression", AROUND, "unif"),
        ("classification", "align", "unif"),
        ("classification", "align", "l1-svm"),
        ("classification", "unif", "l1-svm"),
    ):
        text = f"{task}: error of {left} below {right} on all sets"
        out.append(count(text, found.lower(task, left, right), apart(task, left, right)))
    for field, place in (("held_alignment", ""), ("alignment", ", on the training folds")):
        for task, small, large in (
            ("regression", "unif", "l2-krr"),
            ("regression", "l2-krr", "align"),
            ("classification", "unif", "l1-svm"),
            ("classification", "l1-svm", "align"),
        ):
            text = f"{task}: alignment of {large} above {small}{place}"
            tied = (task, small, large) == ("classification", "unif", "l1-svm")
            printed = "not printed" if place else "yes, books tied" if tied else "yes"
            out.append(count(text, found.lower(task, small, large, field), printed=printed))
    paradox = {
        data: found.lower("classification", "unif", "l1-svm", "held_alignment")[data]
        and found.lower("classification", "unif", "l1-svm")[data]
        for data in sets
    }
    text = "classification: l1-svm has a larger alignment and a larger error than unif"
    out.append(count(text, paradox, printed="yes, books tied in alignment"))
    agree = [
        found.wins(task, data, a, b) == ((a, b) in PRINTED_BETTER[task, data])
        for task, data, a, b in found.pairs()
    ]
    out.append(
        Claim(
            "all entries of Table 5",
            "yes",
            "yes" if all(agree) else "no",
            f"{sum(agree)} of {len(agree)} entries as printed",
        )
    )
    return out


def notes(found: Found) -> str:
    at = []
    for task, names in METHODS.items():
        for method in names:
            values = [r.value for r in found.rows if (r.task, r.method) == (task, method)]
            grid = grid_of(method, task)
            ends = np.mean([value in (grid[0], grid[-1]) for value in values])
            if ends > 0:
                at.append(f"{task} {method} {ends:.0%}")
    gaps = {
        method: max(row.gap for row in found.rows if row.method == method)
        for method in ("l2-krr", AROUND, "l1-svm")
    }
    seconds = sum(row.seconds for row in found.rows)
    return (
        "Mean ± standard deviation over five folds. l2-krr stands beside the paper's figures, "
        f"{AROUND} beside the thesis's. Largest relative duality gap: "
        + ", ".join(f"{method} {gap:.1e}" for method, gap in gaps.items())
        + f". Chosen at an end of the grid: {', '.join(at) or 'never'}. "
        f"{seconds:.0f} s of CPU time."
    )


def draw_figure(found: Found) -> Figure:
    """Ours and printed, a panel for each set and measure."""
    kinds = [
        (task, field, printed)
        for task in METHODS
        for field, printed in (("error", PRINTED_ERRORS), ("held_alignment", PRINTED_ALIGNMENTS))
    ]
    figure, axes = panels(len(found.sets), len(kinds), sharey="row")
    for line, (task, field, printed) in zip(axes, kinds, strict=True):
        for ax, data in zip(line, found.sets, strict=True):
            names = METHODS[task]
            at = SETS.index(data)
            ours = [found.values(task, data, method, field) for method in names]
            dots(ax, names, ours, [printed[task, method][at] for method in names])
            label = {"error": "RMSE" if task == "regression" else "error"}.get(field, "alignment")
            ax.set_title(f"{data}: {label} ({task})", fontsize="small")
    key_above(figure, axes[0, -1])
    return figure


def run(*, names: Sequence[str] = SETS, **common: Any) -> Record:
    """Run the experiment, or what is missing of it.

    Quick: 500 reviews of each kind, 1,000 pairs of words and every second value of the grids.

    Parameters
    ----------
    names : sequence of str
        Which sets.
    **common
        See `record.Options`.
    """
    options = Options(**common)
    require_known("names", names, SETS)
    size = (500, 1000, 2) if options.quick else (2000, 4000, 1)
    tasks = [
        (name, task, fold, options.seed, *size)
        for name in names
        for task in METHODS
        for fold in range(5)
    ]
    stem = options.stem("sentiment")
    rows = options.compute(work, tasks, Row, kept=stem, title="sentiment")
    found = Found(rows)
    return Record(
        stem,
        TITLE,
        rows,
        tables={
            "Regression": found.table("regression"),
            "Classification": found.table("classification"),
            "Table 5: significant differences, here or in print": found.significance(),
        },
        claims=claims(found),
        notes=notes(found),
        figure=lambda: draw_figure(found),
    )


if __name__ == "__main__":
    main(run, "sentiment", TITLE)
