"""Why kernels are centred: Figure 1 of Cortes, Mohri and Rostamizadeh 2012.

(Figure 2.4 of Rostamizadeh's thesis.) Two points on the line, -1 with probability alpha and +1
otherwise, which are their own labels, and the kernel ``K(x, z) = x z + 1``. It separates the
classes perfectly. Its centred alignment with the labels is 1 for every alpha between 0 and 1; the
uncentred alignment is ``sqrt(alpha^2 + (1 - alpha)^2)``, and as low as 0.71 for balanced classes.
(The paper includes alpha = 0 and 1, where the centred kernel is zero and its alignment undefined.)

The values come from samples with exactly the part alpha of their points at -1.

Run ``python -m experiments.two_points --help``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from multikernel.grams.normalise import alignment, centered_alignment
from multikernel.kernels.vectors import Polynomial

from .record import Claim, Options, Record, main, markdown, panels, select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Centred and uncentred alignment (Cortes, Mohri and Rostamizadeh 2012, Figure 1)"
POINTS, QUICK_POINTS = 200, 40
#: values of alpha in the table
SHOWN = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Row:
    """Alignments of the kernel with the labels on one sample."""

    alpha: float
    uncentered: float
    centered: float

    @property
    def formula(self) -> float:
        """The uncentred alignment of the distribution."""
        return float(np.hypot(self.alpha, 1.0 - self.alpha))


def work(negative: int, points: int) -> list[Row]:
    """A sample in which so many of the points lie at -1."""
    x = np.where(np.arange(points) < negative, -1.0, 1.0)
    K, target = Polynomial(degree=1, coef0=1.0)(x[:, None]), np.outer(x, x)
    return [Row(negative / points, alignment(K, target), centered_alignment(K, target))]


def table(rows: list[Row]) -> str:
    head = ["alpha", "uncentred", "sqrt(alpha^2 + (1 - alpha)^2)", "centred"]
    lines = []
    for row in rows:
        if any(np.isclose(row.alpha, alpha) for alpha in SHOWN):
            numbers = (row.uncentered, row.formula, row.centered)
            lines.append([f"{row.alpha:g}", *(f"{number:.6f}" for number in numbers)])
    return markdown(head, lines)


def claims(rows: list[Row]) -> list[Claim]:
    """What section 2.3 says of the example."""
    formula = np.array([row.formula for row in rows])
    uncentred, centred = (select(rows, field) for field in ("uncentered", "centered"))
    apart = float(np.abs(uncentred - formula).max())
    off = float(np.abs(centred - 1.0).max())
    at = rows[int(np.argmin(uncentred))]
    return [
        Claim(
            "uncentred alignment is sqrt(alpha^2 + (1 - alpha)^2)",
            "yes",
            "yes" if apart < 1e-12 else "no",
            f"largest difference {apart:.1e}",
        ),
        Claim(
            "centred alignment is 1 for every alpha between 0 and 1",
            "yes",
            "yes" if off < 1e-12 else "no",
            f"largest difference {off:.1e}",
        ),
        Claim(
            "uncentred alignment is lowest for balanced classes, below 0.71",
            "yes",
            "yes" if np.isclose(at.alpha, 0.5) and at.uncentered < 0.71 else "no",
            f"{at.uncentered:.4f} at alpha = {at.alpha:g}",
        ),
    ]


def draw_figure(rows: list[Row]) -> Figure:
    """Figure 1: both alignments against alpha."""
    figure, axes = panels(1)
    ax = axes[0, 0]
    alpha = select(rows, "alpha")
    ax.plot(alpha, select(rows, "centered"), label="centred")
    ax.plot(alpha, select(rows, "uncentered"), "--", label="uncentred")
    ax.set_xlabel("part α of the points at −1")
    ax.set_ylabel("alignment with the labels")
    ax.set_xlim(0, 1)
    ax.set_ylim(0.5, 1.05)
    ax.legend(loc="lower center")
    return figure


def run(**common: Any) -> Record:
    """Compute both alignments; quick: 40 points instead of 200.

    Parameters
    ----------
    **common
        See `record.Options`; nothing here is random.
    """
    options = Options(**common)
    points = QUICK_POINTS if options.quick else POINTS
    stem = options.stem("two_points")
    tasks = [(negative, points) for negative in range(1, points)]
    rows = options.compute(work, tasks, Row, kept=stem, title="two points")
    return Record(
        stem,
        TITLE,
        rows,
        {"Alignment of a kernel that separates the classes": table(rows)},
        claims(rows),
        f"Samples of {points} points.",
        lambda: draw_figure(rows),
    )


if __name__ == "__main__":
    main(run, "two_points", TITLE)
