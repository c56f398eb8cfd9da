"""Scaling plots of the documentation, from the saved table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from multikernel._places import save_figure

from .aims import exponent
from .table import Row

AXES = {"c": ("n", "points, 50 kernels"), "d": ("p", "kernels, 1,000 points")}
LABELS = {
    ("ours", "LpNorm(4/3)"): ("multikernel, lp-norm", "C0", "o"),
    ("numpy", "lp-norm by hand"): ("lp-norm by hand", "C1", "s"),
    ("sklearn", "SVC on the plain sum"): ("SVC on the plain sum, nothing learned", "C2", "^"),
}


def series(table: list[Row], work: str, who: str, method: str, y: str) -> np.ndarray:
    """Pairs (size, value), sorted, of rows that have a value; shape (2, rows)."""
    x = AXES[work][0]
    pairs = [
        (float(row[x]), float(row[y]))
        for row in table
        if (row["work"], row["who"], row["method"]) == (work, who, method) and row[y] != ""
    ]
    return np.array(sorted(pairs)).reshape(-1, 2).T


def draw(table: list[Row], folder: Path) -> list[Path]:
    """CPU seconds and peak memory, log-log, with a straight line and its slope through each."""
    import matplotlib

    matplotlib.use("Agg")
    # The same table gives the same file, with its words as words.
    matplotlib.rcParams.update({"svg.hashsalt": "multikernel", "svg.fonttype": "none"})
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for work, (x, words) in AXES.items():
        figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        for panel, (y, unit) in zip(
            panels, (("cpu_s", "CPU seconds"), ("peak_mb", "peak memory, MB")), strict=True
        ):
            _panel(panel, table, work, x, y)
            panel.set(xscale="log", yscale="log", xlabel=words, ylabel=unit)
            panel.grid(True, which="major", alpha=0.3)
        if panels[0].has_data():
            low, high = panels[0].get_ylim()
            panels[0].set_ylim(low, 60 * high)  # room for the legend above all curves
            panels[0].legend(fontsize=8, frameon=False, loc="upper left")
        path = folder / f"scaling-{x}.svg"
        save_figure(figure, path, metadata={"Date": None})
        plt.close(figure)
        made.append(path)
    return made


def _panel(panel: Any, table: list[Row], work: str, x: str, y: str) -> None:
    for (who, method), (label, colour, mark) in LABELS.items():
        found = series(table, work, who, method, y)
        if found.size == 0:
            continue
        sizes, values = found
        if y == "cpu_s" and len(sizes) > 1:
            slope = exponent(sizes, values)
            label = f"{label}: {x}^{slope:.2f}"
            middle = np.exp(np.log(values).mean() - slope * np.log(sizes).mean())
            panel.plot(sizes, middle * sizes**slope, color=colour, linewidth=0.8, alpha=0.6)
        panel.plot(sizes, values, mark, color=colour, label=label, markersize=5)
    if y == "cpu_s":
        limit = series(table, work, "ours", "LpNorm(4/3)", "limit_s")
        if limit.size:
            panel.plot(*limit, ":", color="C0", label="limit of the machine for ours")
