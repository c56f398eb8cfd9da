"""Runtimes told: medians, exponents of growth, verdicts on the thesis's text, and the figure.

A method that was stopped at a size has no time there, only a lower bound, and none at larger sizes.
:mod:`experiments.runtime` describes the experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .norms import said
from .record import Claim, Record, distinct, markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXPERIMENTS = {"points": "n", "kernels": "M"}
#: Relative duality gap that all methods are asked for.
TOLERANCE = 1e-3
#: Ratios of times below this say nothing: few samples, and a machine with other work.
NOISE_FACTOR = 1.25
#: What the text calls constant, as an exponent of growth.
CONSTANT_EXPONENT = 0.25


@dataclass(frozen=True)
class Row:
    """One fit; one that was stopped has the limit as its time and no gap."""

    experiment: str
    n: int
    M: int
    method: str
    seconds: float
    machines: int
    gap: float
    kernels_used: int
    support: int
    seed: int

    @property
    def stopped(self) -> bool:
        return bool(np.isnan(self.gap))

    @property
    def size(self) -> int:
        return self.n if self.experiment == "points" else self.M


@dataclass(frozen=True)
class Curve:
    """Medians over samples of one method.

    Attributes
    ----------
    sizes, seconds : arrays
        Of all sizes that were tried.
    stopped : array of bool
        Where a fit was stopped: its time is a lower bound.
    short : array of bool
        Where a fit ended above the tolerance.
    """

    method: str
    sizes: np.ndarray
    seconds: np.ndarray
    stopped: np.ndarray
    short: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[Row], experiment: str, method: str) -> Curve:
        mine = [row for row in rows if row.experiment == experiment and row.method == method]
        sizes = sorted({row.size for row in mine})
        cells = [[row for row in mine if row.size == size] for size in sizes]
        return cls(
            method,
            np.array(sizes),
            np.array([np.median([row.seconds for row in cell]) for cell in cells]),
            np.array([any(row.stopped for row in cell) for cell in cells], dtype=bool),
            np.array([any(row.gap > TOLERANCE for row in cell) for cell in cells], dtype=bool),
        )

    @property
    def exponent(self) -> float:
        """Of the growth: least squares in logarithms; NaN with less than two times.

        Examples
        --------
        >>> none = np.zeros(3, dtype=bool)
        >>> curve = Curve("m", np.array([1, 2, 4]), np.array([3.0, 12.0, 48.0]), none, none)
        >>> round(curve.exponent, 6)
        2.0
        """
        known = ~self.stopped
        if known.sum() < 2:
            return float("nan")
        return float(np.polyfit(np.log(self.sizes[known]), np.log(self.seconds[known]), 1)[0])

    def at(self, size: int) -> tuple[float, bool] | None:
        """Seconds at a size and whether they are a lower bound; None if it was not tried."""
        (found,) = np.nonzero(self.sizes == size)
        return (float(self.seconds[found[0]]), bool(self.stopped[found[0]])) if len(found) else None

    def cell(self, size: int) -> str:
        found = self.at(size)
        if found is None:
            return ""
        seconds, stopped = found
        marked = bool(self.short[self.sizes == size][0])
        return f"> {seconds:.0f}" if stopped else f"{seconds:.3g}" + "*" * marked


class Curves:
    """All curves of one experiment."""

    def __init__(self, rows: Sequence[Row], experiment: str, methods: Sequence[str]) -> None:
        self.letter = EXPERIMENTS[experiment]
        there = set(distinct([row for row in rows if row.experiment == experiment], "method"))
        self.all = {m: Curve.of(rows, experiment, m) for m in methods if m in there}

    @property
    def sizes(self) -> list[int]:
        return sorted({int(size) for curve in self.all.values() for size in curve.sizes})

    def table(self) -> str:
        lines = [
            [
                name,
                *(curve.cell(size) for size in self.sizes),
                "" if np.isnan(curve.exponent) else f"{curve.exponent:.2f}",
            ]
            for name, curve in self.all.items()
        ]
        head = [f"{self.letter} = {size}" for size in self.sizes]
        return markdown(["processor seconds", *head, "exponent"], lines)

    def ratio(self, slow: str, fast: str) -> tuple[float, int, str] | None:
        """How many times longer one takes, at the largest size with a time for one of them.

        The third entry is "" for a ratio, ">" for a lower and "<" for an upper bound of it.
        """
        if slow not in self.all or fast not in self.all:
            return None
        for size in reversed(self.sizes):
            left, right = self.all[slow].at(size), self.all[fast].at(size)
            if left is None or right is None or (left[1] and right[1]):
                continue
            return left[0] / right[0], size, ">" if left[1] else "<" if right[1] else ""
        return None

    def slower(self, text: str, slow: str, fast: str, least: float = NOISE_FACTOR) -> list[Claim]:
        """Verdict on "slow takes longer than fast", by a factor; none if one was not run."""
        found = self.ratio(slow, fast)
        if found is None:
            return []
        ratio, size, bound = found
        told = f"{slow} takes {bound + ' ' if bound else ''}{ratio:.2g} times as long as {fast}"
        told += f" at {self.letter} = {size:,}"
        # A lower bound can show that a ratio is large, not that it is small.
        if ratio >= least and bound != "<":
            ours = "yes"
        elif ratio <= max(1.0, least / 2) / NOISE_FACTOR and bound != ">":
            ours = "no"
        else:
            ours = "undecided"
        return [Claim(f"{text} (growing {self.letter})", "yes", ours, told)]

    def alike(self, text: str, one: str, other: str) -> list[Claim]:
        """Verdict on "about as fast", within a factor of two."""
        found = self.ratio(one, other)
        if found is None:
            return []
        ratio, size, bound = found
        told = f"{one} takes {bound + ' ' if bound else ''}{ratio:.2g} times as long as {other}"
        told += f" at {self.letter} = {size:,}"
        ours = said(0.5 <= ratio <= 2)
        if bound and not (ratio > 2 if bound == ">" else ratio < 0.5):
            ours = "undecided"
        return [Claim(f"{text} (growing {self.letter})", "yes", ours, told)]


# -- telling --------------------------------------------------------------------------------------


def tell(
    name: str,
    title: str,
    rows: Sequence[Row],
    methods: Sequence[str],
    limit: float,
    refused: Sequence[str],
) -> Record:
    """Tables, verdicts and picture."""
    curves = {key: Curves(rows, key, methods) for key in EXPERIMENTS}
    tables = {f"Growing {c.letter}": c.table() for c in curves.values()}
    gaps = [row.gap for row in rows if row.gap <= TOLERANCE]
    stopped = [
        f"{c.method} at {letter} = {size:,}"
        for key, letter in EXPERIMENTS.items()
        for c in curves[key].all.values()
        for size in c.sizes[c.stopped]
    ]
    notes = [
        f"Samples per size: {len(distinct(rows, 'seed'))}, one for long fits. Largest relative "
        f"duality gap of a fit that reached the tolerance: {max(gaps):.1e}. Times with * ended "
        "above it.",
        f"Stopped after {limit:.0f} processor seconds: {', '.join(stopped) or 'none'}.",
    ]
    if refused:
        notes.append(f"Solvers that do not apply: {'; '.join(refused)}")
    claims = [*_common(curves["points"]), *_common(curves["kernels"])]
    claims += [*_of_points(curves["points"]), *_of_kernels(curves["kernels"])]
    return Record(name, title, rows, tables, claims, " ".join(notes), partial(draw, curves))


def _common(c: Curves) -> list[Claim]:
    """What the text says of both experiments."""
    out = []
    learners = [m for m in c.all if not m.startswith(("SVM", "on the fly")) and "loss" not in m]

    def last(method: str) -> float:
        """Seconds to the tolerance at the largest size."""
        curve = c.all[method]
        done = not curve.stopped[-1] and not curve.short[-1]
        return float(curve.seconds[-1]) if done else np.inf

    best = {
        p: min(mine, key=last)
        for p in ("1", "4/3")
        if (mine := _longest(c, [m for m in learners if m.endswith(f"p = {p}")]))
    }
    if best:
        fastest = min(best.values(), key=last)
        out += c.slower("an SVM is faster than learning weights", fastest, "SVM, sum given")
    if len(best) == 2:
        text = "the best solver for p = 1 is about as fast as that for p = 4/3"
        out += c.alike(text, best["1"], best["4/3"])
    # The memory of methods on the fly is a matter of M, so that their times over M do not compare.
    for p, name in best.items() if c.letter == "n" else ():
        text = f"computing kernels on the fly is slower than storing matrices, p = {p}"
        out += c.slower(text, f"on the fly, p = {p}", name)
    text = "p = 4 takes about as long as p = 4/3"
    out += c.alike(text, "alternation, p = 4", "alternation, p = 4/3")
    text = "interleaved chunking is faster than the analytic wrapper"
    out += c.slower(text, "alternation, p = 4/3", "chunking, p = 4/3")
    text = "interleaved cutting planes are faster than their wrapper"
    for p in ("1", "4/3"):
        wrapper, inside = f"cutting-planes-wrapper, p = {p}", f"cutting-planes-chunking, p = {p}"
        out += c.slower(f"{text}, p = {p}", wrapper, inside)
    text = "interleaved cutting planes are slower for p = 4/3 than for p = 1"
    pair = "cutting-planes-chunking, p = 4/3", "cutting-planes-chunking, p = 1"
    return out + c.slower(text, *pair)


def _longest(c: Curves, names: Sequence[str]) -> list[str]:
    """Those that were tried at the largest size that any of them was."""
    largest = max((int(c.all[m].sizes[-1]) for m in names), default=0)
    return [m for m in names if c.all[m].sizes[-1] == largest]


def _of_points(c: Curves) -> list[Claim]:
    out = []
    text = "wrappers are slower even than methods on the fly"
    for p in ("1", "4/3"):
        out += c.slower(
            f"{text}, p = {p}", f"cutting-planes-wrapper, p = {p}", f"on the fly, p = {p}"
        )
    return out


def _of_kernels(c: Curves) -> list[Claim]:
    out = []
    given = c.all.get("SVM, sum given")
    if given is not None:
        growth = given.exponent
        text = "the time of the SVM hardly depends on M"
        ours = said(abs(growth) <= CONSTANT_EXPONENT)
        out.append(Claim(text, "yes", ours, f"sum given: exponent {growth:.2f}"))
    text = "analytic chunking is much slower for p = 1 than for p = 4/3"
    out += c.slower(text, "chunking, p = 1", "chunking, p = 4/3", 2.0)
    text = "for p = 4/3 analytic chunking is faster than cutting planes in chunking"
    out += c.slower(text, "cutting-planes-chunking, p = 4/3", "chunking, p = 4/3")
    text = "of interleaved methods, cutting planes for p = 1 are the fastest"
    inside = [m for m in c.all if "chunking" in m and m != "cutting-planes-chunking, p = 1"]
    if "cutting-planes-chunking, p = 1" in c.all and inside:
        rival = min(_longest(c, inside), key=lambda m: c.all[m].seconds[-1])
        out += c.slower(text, rival, "cutting-planes-chunking, p = 1")
    chunking = c.all.get("chunking, p = 4/3")
    if chunking is not None:
        text = "1,000 kernels on 1,000 samples in less than three minutes, by chunking"
        found = chunking.at(1000)
        if found is None:
            known = ~chunking.stopped
            size, seconds = chunking.sizes[known][-1], chunking.seconds[known][-1]
            reach = seconds * (1000 / size) ** chunking.exponent
            ours, told = "undecided", f"{seconds:.3g} s with {size}; growing on, {reach:.0f} s"
        else:
            ours = "undecided" if found[1] and found[0] < 180 else said(found[0] < 180)
            told = f"{chunking.cell(1000)} s"
        out.append(Claim(text, "yes", ours, told))
    return out


def draw(curves: dict[str, Curves]) -> Figure:
    """Seconds against points and against kernels: a colour per solver, a line style per norm."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(m for c in curves.values() for m in c.all))
    solvers = list(dict.fromkeys(_solver(m) for m in names))
    figure = Figure(figsize=(13, 6), layout="constrained")
    for ax, (key, c) in zip(figure.subplots(1, 2), curves.items(), strict=True):
        for name, curve in c.all.items():
            colour = "black" if name.startswith("SVM") else f"C{solvers.index(_solver(name)) % 10}"
            style = ":" if "p = 4" in name and "4/3" not in name else "-"
            style = "--" if "p = 1" in name or name == "SVM" else style
            style = "-." if "loss" in name else style
            ax.plot(curve.sizes, curve.seconds, style, color=colour, label=name, lw=1.3)
            marks = {"o": ~curve.stopped & ~curve.short, "^": curve.stopped, "x": curve.short}
            for marker, where in marks.items():
                ax.plot(curve.sizes[where], curve.seconds[where], marker, color=colour, ms=5)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(c.sizes, [f"{size:,}" for size in c.sizes])
        ax.minorticks_off()
        ax.set_xlabel("points n, 50 kernels" if key == "points" else "kernels M")
        ax.set_ylabel("processor seconds")
        ax.grid(alpha=0.3)
    ax = figure.axes[0]
    ax.plot([], [], "^", color="0.3", label="stopped: a lower bound")
    ax.plot([], [], "x", color="0.3", label="ended above the tolerance")
    handles, labels = ax.get_legend_handles_labels()
    growth = {m: [c.all[m].exponent for c in curves.values() if m in c.all] for m in names}
    labels = [f"{m} ({_shown(growth[m])})" if m in growth else m for m in labels]
    figure.legend(
        handles,
        labels,
        title="in brackets: exponents of n and of M",
        loc="outside lower center",
        ncols=3,
        fontsize="small",
        title_fontsize="small",
    )
    return figure


def _shown(exponents: Sequence[float]) -> str:
    return ", ".join("none" if np.isnan(e) else f"{e:.1f}" for e in exponents)


def _solver(method: str) -> str:
    return method.partition(", p = ")[0]
