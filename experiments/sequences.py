"""Banks of string kernels: learned weights against the best single kernel.

On each set a bank of kernels on the same sequences is combined by several rules, and every kernel
is tried alone. Test errors are means over random stratified splits; C is chosen for every rule and
every kernel by three folds of the training part, and so is the kernel of ``best``. What a table
could only know afterwards, the kernel with the smallest mean *test* error, stands beside it as "in
hindsight": a rule that equals it has lost nothing by not knowing. All kernels are centred and have
unit diagonal (spherical normalisation).

=============  ==================================================================================
promoters      106 windows of 57 letters around bacterial transcription starts (UCI)
splice         3,190 windows of 60 letters around splice junctions, three classes (UCI)
tss_human      8,300 windows of 300 letters around human transcription starts
multiloc       5,959 proteins, eleven compartments of the cell
protein folds  694 proteins, 27 folds
sentiment      2,000 reviews of books, word by word and letter by letter
=============  ==================================================================================

Large sets are cut to a stratified part of at most ``--limit`` samples. On the reviews, one rank-one
kernel per word or pair of words, the 4,000 most frequent of each training part, is tried as well.
Run ``python -m experiments.sequences --help``.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split

from multikernel.estimators import MultiKernelClassifierCV
from multikernel.kernels import KernelBank, precomputed, sample_ids
from multikernel.kernels.base import Kernel
from multikernel.kernels.sequences import (
    LocalityImproved,
    Mismatch,
    Oligo,
    ShortSequenceWarning,
    Spectrum,
    Subsequence,
    WeightedDegree,
    per_ngram,
)
from multikernel.weighting import L1, LpNorm

from . import datasets
from .record import Options, Record, distinct, dots, main, markdown, panels, select, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Banks of string kernels: learned weights against the best single kernel"
SPLITS, QUICK_SPLITS = 5, 1
LIMIT, QUICK_LIMIT = 1200, 300
COSTS = (0.1, 1.0, 10.0, 100.0)
#: the rules of the table besides "best", the kernel whose folds of the training part were best
RULES: dict[str, Any] = {
    "uniform": "uniform",
    "align": "align",
    "alignf": "alignf",
    "l1": L1(),
    "lp (4/3)": LpNorm(p=4 / 3),
}


@dataclass(frozen=True)
class Problem:
    """A set, the column that is read, and the kernels that read it."""

    name: str
    column: str
    bank: tuple[Kernel, ...]
    test_size: float = 0.5
    #: small sets are split more often
    times: int = 1


_DNA = (
    Spectrum(3),
    Spectrum(5),
    Mismatch(5, 1),
    WeightedDegree(5),
    WeightedDegree(10),
    WeightedDegree(5, shift=3),
    Oligo(3, 2.0),
    LocalityImproved(3, 3),
)
_PROTEIN = (
    Spectrum(1),
    Spectrum(2),
    Spectrum(3),
    Mismatch(3, 1, alphabet="protein"),
    Subsequence(2, 0.7, span=6),
    Subsequence(3, 0.7, span=6),
    WeightedDegree(3, shift=8),
)
PROBLEMS = (
    Problem("promoters", "sequence", (*_DNA, Subsequence(3, 0.6)), test_size=0.2, times=4),
    Problem("splice", "sequence", _DNA),
    Problem("tss_human", "sequence", _DNA),
    Problem("multiloc", "sequence", _PROTEIN),
    Problem("proteinfold_seq", "sequence", _PROTEIN),
    Problem(
        "sentiment_books",
        "text",
        (
            Spectrum(1, unit="word"),
            Spectrum(1, unit="word", presence=True),
            Spectrum(2, unit="word"),
            Spectrum(2, unit="word", presence=True),
            Spectrum(4, ignore_case=True, presence=True),
            Spectrum(6, ignore_case=True, presence=True),
        ),
    ),
)
SETS = tuple(problem.name for problem in PROBLEMS)


@dataclass(frozen=True)
class Row:
    """One rule (or one kernel alone) on one split of one set."""

    data: str
    split: int
    rule: str
    kernel: str
    n_train: int
    n_test: int
    error: float
    C: float
    weights: str
    seconds: float


def load(problem: Problem, limit: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Sequences and labels, a stratified part of at most so many samples."""
    bunch = datasets.load(problem.name)
    X, y = np.asarray(bunch.data[problem.column], dtype=object), np.asarray(bunch.target)
    if len(X) > limit:
        X, _, y, _ = train_test_split(X, y, train_size=limit, stratify=y, random_state=seed)
    return X.tolist(), y


@functools.lru_cache(maxsize=1)
def bank_of(problem: Problem, limit: int, seed: int) -> tuple[KernelBank, np.ndarray]:
    """The kernels of a set, computed once for all of its splits; and the labels."""
    X, y = load(problem, limit, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShortSequenceWarning)
        matrices = [kernel(X) for kernel in problem.bank]
    return precomputed(matrices, names=[repr(kernel) for kernel in problem.bank]), y


def cut(problem: Problem, y: np.ndarray, split: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test points of a split, whatever the number of splits."""
    cutter = StratifiedShuffleSplit(split + 1, test_size=problem.test_size, random_state=seed)
    train, test = next(islice(cutter.split(np.zeros(len(y)), y), split, None))
    return train, test


def fit_and_test(
    model: MultiKernelClassifierCV, X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> dict[str, Any]:
    """What a rule learned from the training points, and its error on the others."""
    started = time.perf_counter()
    model.fit(X[train], y[train])
    error = 1.0 - model.score(X[test], y[test])
    seconds = time.perf_counter() - started
    sizes = {"n_train": len(train), "n_test": len(test)}
    return {"error": error, "C": model.C_, "seconds": seconds, **sizes}


def learn(
    name: str, split: int, bank: KernelBank, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> list[Row]:
    """Every kernel alone, and all rules."""
    ids = sample_ids(len(y))
    tried: list[tuple[str, str, Any, KernelBank]] = [
        ("single", label, "uniform", bank[k : k + 1]) for k, label in enumerate(bank.names)
    ]
    tried += [(rule, "", weighting, bank) for rule, weighting in RULES.items()]
    rows, scores = [], []
    for rule, kernel, weighting, kernels in tried:
        model = MultiKernelClassifierCV(
            kernels, weighting, Cs=COSTS, cv=3, normalize="spherical", random_state=0
        )
        found = fit_and_test(model, ids, y, train, test)
        share = model.kernel_weights_ / model.kernel_weights_.sum()
        weights = "; ".join(
            f"{share[k]:.2f} {model.kernel_names_[k]}"
            for k in np.argsort(-share)[:4]
            if share[k] > 0
        )
        rows.append(Row(data=name, split=split, rule=rule, kernel=kernel, weights=weights, **found))
        scores.append(model.best_score_)
    best = rows[int(np.argmax(scores[: len(bank)]))]
    return [*rows, replace(best, rule="best", kernel="", weights=best.kernel)]


def learn_ngrams(
    name: str, split: int, texts: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> Iterator[Row]:
    """One rank-one kernel per word or pair of words, the 4,000 most frequent of the training part.

    The texts go to the estimator as they are, and the vocabulary is chosen anew in every fit.
    """
    for n in (1, 2):
        for rule in ("uniform", "align"):
            bank = per_ngram(n, top=4000, presence=True)
            model = MultiKernelClassifierCV(bank, rule, Cs=COSTS, cv=3)
            found = fit_and_test(model, texts, y, train, test)
            largest = np.argsort(-model.kernel_weights_, kind="stable")[:8]
            weights = ", ".join(repr(model.kernel_names_[k]) for k in largest)
            label = f"per_ngram({n}), {rule}"
            yield Row(data=name, split=split, rule=label, kernel="", weights=weights, **found)


def work(name: str, split: int, ngrams: bool, limit: int, seed: int) -> list[Row]:
    """All rules on one split of a set."""
    problem = problem_of(name)
    if ngrams:
        X, y = load(problem, limit, seed)
        texts = np.array(X, dtype=object)
        return list(learn_ngrams(name, split, texts, y, *cut(problem, y, split, seed)))
    bank, y = bank_of(problem, limit, seed)
    return learn(name, split, bank, y, *cut(problem, y, split, seed))


def problem_of(name: str) -> Problem:
    if name not in SETS:
        raise ValueError(f"Sets of this experiment are {', '.join(SETS)}; got {name!r}.")
    return PROBLEMS[SETS.index(name)]


# -- tables ---------------------------------------------------------------------------------------


def errors(rows: Sequence[Row], data: str, rule: str, kernel: str = "") -> np.ndarray:
    """Test errors over the splits, in per cent."""
    by_split = sorted(rows, key=lambda row: row.split)
    return 100.0 * select(by_split, "error", data=data, rule=rule, kernel=kernel)


def hindsight(rows: Sequence[Row], data: str) -> str:
    """The kernel with the smallest mean test error."""
    kernels = dict.fromkeys(r.kernel for r in rows if r.data == data and r.rule == "single")
    return min(kernels, key=lambda kernel: errors(rows, data, "single", kernel).mean())


def table(rows: Sequence[Row]) -> str:
    """Mean test error (%) ± standard deviation over splits."""
    rules = ["best", *RULES]
    lines = []
    for data in distinct(rows, "data"):
        first = next(row for row in rows if row.data == data)
        single = errors(rows, data, "single", hindsight(rows, data))
        values = [single, *(errors(rows, data, rule) for rule in rules)]
        lines.append([data, f"{first.n_train} / {first.n_test}", *(spread(v, 1) for v in values)])
    return markdown(["set", "train / test", "best in hindsight", *rules], lines)


def weights_table(rows: Sequence[Row], rule: str = "l1") -> str:
    """The kernels that a rule trusts most (first split) and the best single one."""
    lines = []
    for data in distinct(rows, "data"):
        row = next(r for r in rows if r.data == data and r.rule == rule)
        lines.append([data, row.weights, hindsight(rows, data)])
    return markdown(["set", f"largest weights of {rule}", "best single kernel in hindsight"], lines)


def ngrams_table(rows: Sequence[Row]) -> str:
    """Errors of the banks of n-grams."""
    ngrams = [row for row in rows if row.rule.startswith("per_ngram")]
    lines = []
    for data, rule in dict.fromkeys((row.data, row.rule) for row in ngrams):
        names = next(row.weights for row in ngrams if (row.data, row.rule) == (data, rule))
        lines.append([rule, spread(errors(ngrams, data, rule), 1), names])
    return markdown(["bank and rule", "error (%)", "largest weights"], lines)


def draw_figure(rows: Sequence[Row]) -> Figure:
    """Errors of the rules and of the best single kernel in hindsight, one panel per set."""
    sets, rules = distinct(rows, "data"), ["best", *RULES]
    figure, axes = panels(len(sets), sharey=True)
    for ax, data in zip(axes[0], sets, strict=True):
        dots(ax, rules, [errors(rows, data, rule) for rule in rules])
        ax.axvline(errors(rows, data, "single", hindsight(rows, data)).mean(), linestyle=":")
        ax.set_title(f"{data}, error in %", fontsize="medium")
    return figure


def run(
    splits: int | None = None,
    limit: int | None = None,
    *,
    names: Sequence[str] = SETS,
    **common: Any,
) -> Record:
    """All rules and all single kernels on all splits, or what is missing of them.

    Parameters
    ----------
    splits : int or None, default=None
        Random stratified splits of each set, four times as many of the smallest: five, or one of a
        quick run.
    limit : int or None, default=None
        Samples of a set that are used, training and test together: 1200, or 300 of a quick run.
    names : sequence of str
        Which sets.
    **common
        See `record.Options`.
    """
    options = Options(**common)
    seed = options.seed
    splits = splits or (QUICK_SPLITS if options.quick else SPLITS)
    limit = limit or (QUICK_LIMIT if options.quick else LIMIT)
    tasks = [
        (name, split, False, limit, seed)
        for name in names
        for split in range(splits * problem_of(name).times)
    ]
    if "sentiment_books" in names:
        tasks += [("sentiment_books", split, True, limit, seed) for split in range(splits)]
    rows = options.compute(work, tasks, Row, kept="sequences", title="string kernels")
    tables = {
        "Test error in %, mean ± standard deviation over splits": table(rows),
        "What the weights say": weights_table(rows),
    }
    if "sentiment_books" in names:
        tables["One kernel per word or pair of words, reviews of books"] = ngrams_table(rows)
    return Record(
        options.stem("sequences"),
        TITLE,
        rows,
        tables,
        figure=lambda: draw_figure(rows),
    )


if __name__ == "__main__":
    main(run, "sequences", TITLE)
