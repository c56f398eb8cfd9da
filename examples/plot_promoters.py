"""
What the weights say: where a promoter is recognised, and by which letters
==========================================================================

One weighted degree kernel per window of six letters along the promoter sequences of UCI (57
letters, from 50 before the start of transcription to 7 after it): 52 kernels, each of which sees
only one window. The learned weights show which positions distinguish promoters from other
sequences, and the letters below them show the words there. Two are known in biology: TTGACA around
-35 and TATAAT around -10.

Needs the set ``promoters`` in the data folder (see ``experiments/datasets.py``), and is therefore
not part of the gallery. ``python examples/plot_promoters.py FILE.png`` writes the picture to a
file.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

import multikernel as mk
from multikernel.kernels.sequences import WeightedDegree

WIDTH = 6
LETTERS = "ACGT"
COLOURS = {"A": "#2a9d4a", "C": "#2f6db3", "G": "#e0a000", "T": "#c8372d"}
SIGNALS = {"-35 box: TTGACA": (-36, -31), "-10 box: TATAAT": (-12, -7)}


def windows(sequences: list[str]) -> pd.DataFrame:
    """One column per window: table of strings that kernels select by name."""
    length = len(sequences[0])
    starts = range(length - WIDTH + 1)
    return pd.DataFrame({f"at {s}": [x[s : s + WIDTH] for x in sequences] for s in starts})


def draw_letter(ax: plt.Axes, letter: str, x: float, y: float, height: float) -> None:
    """A letter stretched to width one and the given height."""
    path = TextPath(
        (0, 0), letter, size=1, prop=FontProperties(family="DejaVu Sans", weight="bold")
    )
    box = path.get_extents()
    stretch = Affine2D().translate(-box.x0, -box.y0).scale(0.9 / box.width, height / box.height)
    move = Affine2D().translate(x - 0.45, y)
    ax.add_patch(PathPatch(path.transformed(stretch + move), color=COLOURS[letter], lw=0))


def main() -> None:
    promoters = mk.datasets.load("promoters")
    sequences, y = list(promoters.data["sequence"]), promoters.target
    X = windows(sequences)
    bank = mk.KernelBank(
        [WeightedDegree(3, columns=name) for name in X.columns], names=list(X.columns)
    )
    model = mk.MultiKernelClassifier(bank, weighting=mk.LpNorm(p=4 / 3), C=1.0).fit(X, y)
    weights = model.kernel_weights_ / model.kernel_weights_.sum()

    # A position is worth the weights of the windows that hold it; its letters share that worth as
    # they are more frequent in promoters than in the other sequences.
    length = len(sequences[0])
    worth = np.convolve(weights, np.ones(WIDTH) / WIDTH)
    letters = np.array([list(x) for x in sequences])
    promoted, other = letters[y == 1], letters[y == -1]
    excess = np.array([(promoted == c).mean(axis=0) - (other == c).mean(axis=0) for c in LETTERS])
    position = np.arange(length) - 50  # relative to the start of transcription

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(11, 5.4), sharex=True)
    middle = position[: length - WIDTH + 1] + (WIDTH - 1) / 2
    top.bar(middle, weights, width=0.8, color="#444444")
    top.hlines(1 / len(weights), position[0], position[-1], color="#888888", lw=0.8, ls=":")
    top.set_ylim(0, 1.25 * weights.max())
    top.text(position[-1] + 0.6, 1 / len(weights), "uniform", fontsize=8, va="center", ha="left")
    top.set_ylabel("weight of the window")
    top.set_title("Kernel weights along the promoter: lp-norm MKL (p = 4/3), 52 kernels")
    for p in range(length):
        height = 0.0
        for c in np.argsort(excess[:, p]):
            share = worth[p] * excess[c, p]
            if share > 0:
                draw_letter(bottom, LETTERS[c], position[p], height, share)
                height += share
    bottom.set_ylim(0, 1.08 * (worth * np.maximum(excess, 0).sum(axis=0)).max())
    bottom.set_xlim(position[0] - 1, position[-1] + 4)
    bottom.set_yticks([])
    bottom.set_ylabel("worth x excess of the letter")
    bottom.set_xlabel("position relative to the start of transcription")
    for ax in (top, bottom):
        for first, last in SIGNALS.values():
            ax.axvspan(first - 0.5, last + 0.5, color="#f3e6c4", zorder=-1)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    for label, (first, last) in SIGNALS.items():
        top.text((first + last) / 2, 0.97, label, transform=top.get_xaxis_transform(),
                 ha="center", va="top", fontsize=9)  # fmt: skip
    figure.tight_layout()

    strongest = np.argsort(-weights)[:5]
    print("Largest weights:")
    for k in strongest:
        print(f"  {weights[k]:.3f}  positions {position[k]:+d} to {position[k] + WIDTH - 1:+d}")
    if len(sys.argv) > 1:
        figure.savefig(sys.argv[1], dpi=150)
    else:
        plt.show()


if __name__ == "__main__":
    main()
