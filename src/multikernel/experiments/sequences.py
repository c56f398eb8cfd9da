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

Large sets are cut to a stratified part of at most ``--limit`` samples.
Run ``python -m multikernel.experiments.sequences --help``.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split

from .. import datasets
from ..estimators import MultiKernelClassifierCV
from ..kernels import KernelBank, precomputed, sample_ids
from ..kernels.base import Kernel
from ..kernels.sequences import (
    LocalityImproved,
    Mismatch,
    Oligo,
    ShortSequenceWarning,
    Spectrum,
    Subsequence,
    WeightedDegree,
    per_ngram,
)
from ..weighting import L1, LpNorm

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


def run(
    problems: Sequence[Problem] = PROBLEMS,
    *,
    splits: int = 5,
    limit: int = 1500,
    seed: int = 0,
    out: Path | None = None,
) -> list[Row]:
    """All rules and all single kernels on all splits; rows are written as they come.

    Parameters
    ----------
    problems : sequence of Problem
    splits : int, default=5
        Random stratified splits of each set, four times as many of the smallest.
    limit : int, default=1500
        Samples of a set that are used, training and test together.
    seed : int, default=0
    out : folder, optional
        Where ``sequences.csv`` and ``sequences.md`` go.
    """
    rows: list[Row] = []
    for problem in problems:
        X, y = load(problem, limit, seed)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShortSequenceWarning)
            matrices = [kernel(X) for kernel in problem.bank]
        seconds = time.perf_counter() - started
        print(f"{problem.name}: {len(X)} sequences, {len(matrices)} kernels in {seconds:.1f} s")
        # The kernels are computed once; splits and folds are rows of them.
        bank = precomputed(matrices, names=[repr(kernel) for kernel in problem.bank])
        cutter = StratifiedShuffleSplit(
            splits * problem.times, test_size=problem.test_size, random_state=seed
        )
        for s, (train, test) in enumerate(cutter.split(np.zeros(len(y)), y)):
            rows += _one_split(problem.name, s, bank, y, train, test)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            _write(rows, out)
    return rows


def _one_split(
    name: str, split: int, bank: KernelBank, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> list[Row]:
    ids = sample_ids(len(y))
    tried: list[tuple[str, str, Any, KernelBank]] = [
        ("single", label, "uniform", bank[k : k + 1]) for k, label in enumerate(bank.names)
    ]
    tried += [(rule, "", weighting, bank) for rule, weighting in RULES.items()]
    rows = []
    scores = []
    for rule, kernel, weighting, kernels in tried:
        started = time.perf_counter()
        model = MultiKernelClassifierCV(
            kernels, weighting, Cs=COSTS, cv=3, normalize="spherical", random_state=0
        )
        model.fit(ids[train], y[train])
        error = 1.0 - model.score(ids[test], y[test])
        order = np.argsort(-model.kernel_weights_)
        weights = "; ".join(
            f"{model.kernel_weights_[k] / model.kernel_weights_.sum():.2f} {model.kernel_names_[k]}"
            for k in order[:4]
            if model.kernel_weights_[k] > 0
        )
        seconds = time.perf_counter() - started
        sizes = (len(train), len(test))
        rows.append(Row(name, split, rule, kernel, *sizes, error, model.C_, weights, seconds))
        scores.append(model.best_score_)
    best = rows[int(np.argmax(scores[: len(bank)]))]
    return [*rows, replace(best, rule="best", kernel="", weights=best.kernel)]


def run_ngrams(problem: Problem, *, splits: int = 5, limit: int = 1500, seed: int = 0) -> list[Row]:
    """One rank-one kernel per word or pair of words, the 4,000 most frequent of each training part.

    The texts go to the estimator as they are, and the vocabulary is chosen anew in every fit.
    """
    X, y = load(problem, limit, seed)
    texts = np.array(X, dtype=object)
    cutter = StratifiedShuffleSplit(splits, test_size=problem.test_size, random_state=seed)
    rows = []
    for s, (train, test) in enumerate(cutter.split(np.zeros(len(y)), y)):
        for n in (1, 2):
            for rule in ("uniform", "align"):
                started = time.perf_counter()
                bank = per_ngram(n, top=4000, presence=True)
                model = MultiKernelClassifierCV(bank, rule, Cs=COSTS, cv=3)
                model.fit(texts[train], y[train])
                error = 1.0 - model.score(texts[test], y[test])
                largest = np.argsort(-model.kernel_weights_)[:8]
                names = ", ".join(repr(model.kernel_names_[k]) for k in largest)
                sizes = (len(train), len(test))
                seconds = time.perf_counter() - started
                label = f"per_ngram({n}), {rule}"
                row = Row(problem.name, s, label, "", *sizes, error, model.C_, names, seconds)
                rows.append(row)
    return rows


def ngrams_table(rows: Sequence[Row]) -> str:
    """Errors of the banks of n-grams, as Markdown."""
    lines = ["| bank and rule | error (%) | largest weights |", "|---|---|---|"]
    for rule in dict.fromkeys(row.rule for row in rows):
        values = errors(rows, rows[0].data, rule)
        names = next(row.weights for row in rows if row.rule == rule)
        lines.append(f"| {rule} | {values.mean():.1f} ± {values.std():.1f} | {names} |")
    return "\n".join(lines)


def _write(rows: Sequence[Row], out: Path) -> None:
    with (out / "sequences.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    (out / "sequences.md").write_text(table(rows) + "\n\n" + weights_table(rows) + "\n")


def errors(rows: Sequence[Row], data: str, rule: str, kernel: str = "") -> np.ndarray:
    """Test errors over the splits, in per cent."""
    chosen = [r for r in rows if (r.data, r.rule, r.kernel) == (data, rule, kernel)]
    return 100.0 * np.array([r.error for r in sorted(chosen, key=lambda r: r.split)])


def hindsight(rows: Sequence[Row], data: str) -> str:
    """The kernel with the smallest mean test error."""
    kernels = dict.fromkeys(r.kernel for r in rows if r.data == data and r.rule == "single")
    return min(kernels, key=lambda kernel: errors(rows, data, "single", kernel).mean())


def table(rows: Sequence[Row]) -> str:
    """Mean test error (%) ± standard deviation over splits, as Markdown."""
    rules = ["best", *RULES]
    heads = ["set", "train / test", "best in hindsight", *rules]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for data in dict.fromkeys(row.data for row in rows):
        first = next(row for row in rows if row.data == data)
        single = errors(rows, data, "single", hindsight(rows, data))
        cells = [data, f"{first.n_train} / {first.n_test}"]
        for values in [single, *(errors(rows, data, rule) for rule in rules)]:
            cells.append(f"{values.mean():.1f} ± {values.std():.1f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def weights_table(rows: Sequence[Row], rule: str = "l1") -> str:
    """The kernels that a rule trusts most (first split) and the best single one, as Markdown."""
    lines = [
        f"| set | largest weights of {rule} | best single kernel in hindsight |",
        "|---|---|---|",
    ]
    for data in dict.fromkeys(row.data for row in rows):
        row = next(r for r in rows if r.data == data and r.rule == rule)
        lines.append(f"| {data} | {row.weights} | {hindsight(rows, data)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="String kernels: learned weights or the best one.")
    parser.add_argument("--sets", nargs="*", help="names of sets; all by default")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--limit", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="folder for the tables")
    options = parser.parse_args(arguments)
    known = {problem.name: problem for problem in PROBLEMS}
    unknown = sorted(set(options.sets or ()) - set(known))
    if unknown:
        parser.error(f"unknown sets {', '.join(unknown)}; known: {', '.join(known)}")
    problems = [known[name] for name in options.sets or known]
    rows = run(
        problems, splits=options.splits, limit=options.limit, seed=options.seed, out=options.out
    )
    print(table(rows))
    print(weights_table(rows))
    if "sentiment_books" in {problem.name for problem in problems}:
        found = run_ngrams(
            known["sentiment_books"], splits=options.splits, limit=options.limit, seed=options.seed
        )
        print(ngrams_table(found))


if __name__ == "__main__":
    main()
