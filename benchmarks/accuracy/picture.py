"""The picture of critical differences: mean ranks on a line, indistinguishable methods joined."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from multikernel._places import save_figure

#: Inches of the picture's width, of one line of labels, and of the axis with the bar above it.
WIDTH, LINE_HEIGHT, HEAD_HEIGHT = 8.5, 0.26, 0.9


def cliques(mean_ranks: np.ndarray, difference: float) -> list[tuple[int, int]]:
    """The longest runs of sorted ranks that lie within ``difference``, as (first, last).

    Runs of one method, and runs within a longer one, are left out.
    """
    found: list[tuple[int, int]] = []
    for first in range(len(mean_ranks)):
        near = np.flatnonzero(mean_ranks - mean_ranks[first] < difference)
        last = int(near.max())
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def draw(
    methods: list[str], mean_ranks: np.ndarray, difference: float, path: Path, bold: str = ""
) -> None:
    """Save the picture as an SVG file; ``bold`` is the method that stands out."""
    import matplotlib

    matplotlib.use("Agg")
    # The same numbers give the same file, with its words as words.
    matplotlib.rcParams.update({"svg.hashsalt": "multikernel", "svg.fonttype": "none"})
    import matplotlib.pyplot as plt

    order = np.argsort(mean_ranks, kind="stable")
    names = [methods[i] for i in order]
    values = mean_ranks[order]
    k = len(names)
    bars = cliques(values, difference)
    left = (k + 1) // 2  # labels on the left; the other methods have theirs on the right
    # Rows below the axis, in lines: bars that join methods, then labels.
    first_label = 0.45 * len(bars) + 0.9
    height = HEAD_HEIGHT + LINE_HEIGHT * (first_label + left)
    figure, ax = plt.subplots(figsize=(WIDTH, height))
    low, high = np.floor(values[0]), np.ceil(values[-1])
    margin = 0.5 * (high - low)
    ax.set_xlim(low - margin, high + margin)
    ax.set_ylim(first_label + left - 0.3, -2.6)
    ax.axis("off")
    ax.plot([low, high], [0, 0], color="black", lw=1)
    for tick in np.arange(low, high + 0.1):
        ax.plot([tick, tick], [0, -0.35], color="black", lw=1)
        ax.text(tick, -0.45, f"{tick:g}", ha="center", va="bottom", fontsize=9)
    ax.plot([low, low + difference], [-1.75, -1.75], color="black", lw=1.5)
    for end in (low, low + difference):
        ax.plot([end, end], [-1.9, -1.6], color="black", lw=1.5)
    middle = low + difference / 2
    words = f"critical difference {difference:.2f}"
    ax.text(middle, -2.0, words, ha="center", va="bottom", fontsize=9)
    for row, (first, last) in enumerate(bars):
        at = 0.55 + 0.45 * row
        ends = [values[first] - 0.01 * (high - low), values[last] + 0.01 * (high - low)]
        ax.plot(ends, [at, at], color="C3", lw=4, solid_capstyle="round")
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        on_left = i < left
        at = first_label + (i if on_left else k - 1 - i)
        edge = low - 0.03 * margin if on_left else high + 0.03 * margin
        colour = "C0" if name == bold else "black"
        ax.plot([value, value, edge], [0, at, at], color=colour, lw=0.8)
        ax.text(
            edge + (-0.03 if on_left else 0.03) * margin,
            at,
            f"{name}  {value:.2f}" if on_left else f"{value:.2f}  {name}",
            ha="right" if on_left else "left",
            va="center",
            fontsize=9,
            color=colour,
            fontweight="bold" if name == bold else "normal",
        )
    figure.subplots_adjust(0, 0, 1, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
