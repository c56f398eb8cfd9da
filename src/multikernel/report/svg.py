"""Small SVG drawings as text: axes, lines, dots, heat maps, scatter plots.

Colours are CSS classes and variables of the page, so drawings adapt to light, dark and print.
Every element with a tooltip is a *mark*: its text is in a ``<title>``, which browsers show without
a script and screen readers read. Marks and lines that belong to a series carry its key in
``data-s``, by which they are shown and hidden.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

#: Number of colours chosen by hand, and of all colours; further series are grey.
N_COLOURS, ALL_COLOURS = 10, 200
DASHES = ("", "6 3", "2 3", "9 3 2 3")


def short(name: str, most: int = 30) -> str:
    """Shorten a name to fit beside a drawing; of a view and its kernel, keep a part of both."""
    if len(name) <= most:
        return name
    view, colon, kernel = name.partition(": ")
    if colon and len(view) > most // 3:
        room = max(most // 3, most - len(kernel) - 2)
        name = f"{view[: room - 1].rstrip()}…: {kernel}"
    return name if len(name) <= most else f"{name[: most - 1].rstrip()}…"


def number(value: float, digits: int = 3) -> str:
    """Format a number with few digits."""
    return f"{value:.{digits}g}"


def power(value: float) -> str:
    """Format a number for a logarithmic axis."""
    exponent = round(math.log10(value))
    if -3 < exponent < 5 or not math.isclose(value, 10.0**exponent, rel_tol=1e-9):
        return number(value, 5)
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def colour(index: int) -> str:
    """The CSS class of a series' colour; the first 200 series have different colours."""
    return f"c{index}" if index < ALL_COLOURS else "rest"


def more_colours(n: int) -> str:
    """Style rules for the colours beyond those of the style sheet: hues by the golden angle."""
    rules = []
    for index in range(N_COLOURS, min(n, ALL_COLOURS)):
        hue, light = (137.508 * index) % 360, 0.05 * (index % 3 - 1)
        rules.append(f".c{index}{{--c:oklch(calc(var(--light) + {light:.2f}) .13 {hue:.0f})}}")
    return "".join(rules)


def dash(index: int) -> str:
    style = DASHES[(index // N_COLOURS) % len(DASHES)]
    return f' stroke-dasharray="{style}"' if style else ""


def series(key: str | None) -> str:
    return "" if key is None else f' data-s="{escape(key)}"'


class Scale:
    """Maps numbers to positions, linearly or logarithmically, with ticks at round numbers."""

    def __init__(self, low: float, high: float, start: float, end: float, log: bool) -> None:
        self.log = log
        if log:
            low, high = math.log10(low), math.log10(high)
        if not high > low:
            low, high = low - 0.5, high + 0.5
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value: float) -> float:
        at = math.log10(value) if self.log else value
        return self.start + (at - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[tuple[float, str]]:
        if self.log:
            low, high = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
            every_nth = max(1, math.ceil((high - low) / about))
            found = [10.0**e for e in range(low, high + 1, every_nth)]
            if len(found) < 3:
                found = round_numbers(10.0**self.low, 10.0**self.high, about)
            return [(v, power(v)) for v in found]
        return [(v, number(v, 6)) for v in round_numbers(self.low, self.high, about)]


def round_numbers(low: float, high: float, about: int) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten from low to high, ``about`` of them."""
    least = (high - low) / about
    size = float(10.0 ** math.floor(math.log10(least)))
    step = next(m * size for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * size >= least * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


class Chart:
    """A frame with two axes, filled by its methods and closed by :meth:`close`."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        label: str,
        x_label: str = "",
        y_label: str = "",
        log_x: bool = False,
        log_y: bool = False,
        whole_x: bool = False,
        size: tuple[int, int] = (560, 330),
        frame: tuple[int, int, int, int] = (12, 14, 46, 58),
    ) -> None:
        self.width, self.height = size
        top, right, bottom, left = frame
        self.box = (left, top, self.width - right, self.height - bottom)
        self.x = Scale(*x, left, self.width - right, log_x)
        self.y = Scale(*y, self.height - bottom, top, log_y)
        self.label = label
        self.parts: list[str] = []
        self._axes(x_label, y_label, whole_x)

    def _axes(self, x_label: str, y_label: str, whole_x: bool) -> None:
        left, top, right, bottom = self.box
        for value, text in self.x.ticks():
            if whole_x and value != round(value):
                continue
            at = f"{self.x(value):.1f}"
            self.add(f'<line class="grid" x1="{at}" x2="{at}" y1="{top}" y2="{bottom}"/>')
            self.text(float(at), bottom + 17, text, "tick mid")
        for value, text in self.y.ticks():
            at = f"{self.y(value):.1f}"
            self.add(f'<line class="grid" x1="{left}" x2="{right}" y1="{at}" y2="{at}"/>')
            self.text(left - 7, float(at) + 4, text, "tick end")
        self.add(f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>')
        self.text((left + right) / 2, self.height - 8, x_label, "name mid")
        if y_label:
            middle = (top + bottom) / 2
            self.add(
                f'<text class="name mid" transform="translate(13 {middle:.0f}) rotate(-90)">'
                f"{escape(y_label)}</text>"
            )

    def add(self, part: str) -> None:
        self.parts.append(part)

    def text(self, x: float, y: float, text: str, cls: str) -> None:
        if text:
            self.add(f'<text class="{cls}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>')

    def line(
        self,
        xs: Sequence[float] | np.ndarray,
        ys: Sequence[float] | np.ndarray,
        cls: str,
        *,
        key: str | None = None,
        title: str = "",
        extra: str = "",
    ) -> None:
        points = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in zip(xs, ys, strict=True))
        said = f"<title>{escape(title)}</title>" if title else ""
        mark = " m" if title else ""
        self.add(
            f'<polyline class="line {cls}{mark}"{series(key)}{extra} points="{points}">'
            f"{said}</polyline>"
        )

    def dot(
        self, x: float, y: float, cls: str, title: str, *, key: str | None = None, r: float = 3.5
    ) -> None:
        said = f"<title>{escape(title)}</title>" if title else ""
        self.add(
            f'<circle class="dot {cls} m"{series(key)} cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" '
            f'r="{r:g}">{said}</circle>'
        )

    def bar(self, x: float, low: float, high: float, cls: str, *, key: str | None = None) -> None:
        """A vertical error bar."""
        at, a, b = self.x(x), self.y(low), self.y(high)
        path = f"M{at:.1f} {a:.1f}V{b:.1f}M{at - 3:.1f} {a:.1f}h6M{at - 3:.1f} {b:.1f}h6"
        self.add(f'<path class="err {cls}"{series(key)} d="{path}"/>')

    def level(self, y: float, text: str) -> None:
        """A horizontal reference line."""
        left, _, right, _ = self.box
        at = self.y(y)
        self.add(f'<line class="level" x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        self.text(left + 6, at - 5, text, "tick")

    def close(self) -> str:
        return wrap(self.width, self.height, self.label, self.parts)


def wrap(width: float, height: float, label: str, parts: Sequence[str], cls: str = "") -> str:
    return (
        f'<svg class="chart {cls}" style="--w:{width:.0f}px" viewBox="0 0 {width:g} {height:g}" '
        f'role="group" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def heatmap(
    rows: Sequence[str],
    columns: Sequence[str],
    values: np.ndarray,
    *,
    label: str,
    keys: Sequence[str] | None = None,
    strengths: np.ndarray | None = None,
    digits: int = 2,
    gaps: Sequence[int] = (),
    numbered: bool = False,
    width: float = 720,
    beside: tuple[str, np.ndarray] | None = None,
    wide_cells: bool = False,
) -> str:
    """A heat map: the opacity of a cell shows its value.

    Parameters
    ----------
    rows, columns : names
    values : array of shape (n_rows, n_columns)
    label : str
        For screen readers.
    keys : series of the rows, optional
    strengths : array like ``values``, optional
        Opacities from -1 to 1, by default the values; negative ones get another colour.
    gaps : places before which a thin space is left, in rows and columns
    numbered : bool
        Columns repeat the rows and are labelled by their numbers.
    beside : tuple of (name, array of shape (n_rows,)), optional
        One more column, set apart.
    wide_cells : bool
        Allow wider cells, as for a confusion matrix.
    """
    strengths = values if strengths is None else strengths
    n, m = values.shape
    names = [short(name, 34) for name in rows]
    left = 14 + 6.9 * max(map(len, names), default=0) + (24 if numbered else 0)
    left = min(left, 0.42 * width)
    cell = min(90.0 if wide_cells else 40.0, (width - left - (60 if beside else 10)) / max(m, 1))
    tall = cell if numbered else min(44.0 if wide_cells else 30.0, max(cell, 18.0))
    space = min(4.0, cell / 3)
    top = 22.0 if numbered else 26.0
    before = [sum(1 for gap in gaps if gap <= i) * space for i in range(max(n, m))]
    parts: list[str] = []
    font = max(5.0, min(12.0, 0.82 * tall))
    end = left + m * cell + (before[m - 1] if numbered and m else 0)
    if beside:
        place = f'x="{end + 30:.1f}" y="{top - 7:.1f}"'
        parts.append(f'<text class="tick mid" {place}>{escape(beside[0])}</text>')
    for j in range(m):
        x = left + j * cell + (before[j] if numbered else 0) + cell / 2
        if not numbered or cell >= (12 if m < 10 else 19) or j % 5 == 0:
            head = str(j + 1) if numbered else short(columns[j], max(2, int(cell / 6)))
            parts.append(
                f'<text class="tick mid" x="{x:.1f}" y="{top - 7:.1f}">{escape(head)}</text>'
            )
    for i in range(n):
        y = top + i * tall + before[i]
        key = None if keys is None else keys[i]
        text = f"{names[i]}  {i + 1}" if numbered else names[i]
        parts.append(f'<g class="row"{series(key)}>')
        parts.append(
            f'<text class="tick end" x="{left - 6:.1f}" y="{y + tall / 2 + 0.35 * font:.1f}" '
            f'style="font-size:{font:.1f}px">{escape(text)}<title>{escape(rows[i])}</title></text>'
        )
        for j in range(m):
            x = left + j * cell + (before[j] if numbered else 0)
            box = (x, y, cell, tall)
            shown = float(values[i, j]), float(strengths[i, j])
            parts.append(_cell(box, *shown, rows[i], columns[j], digits))
        if beside:
            box = (end + 10, y, 40.0, tall)
            value = float(beside[1][i])
            parts.append(_cell(box, value, value, rows[i], beside[0], digits))
        parts.append("</g>")
    wide = end + (58 if beside else 8)
    height = top + n * tall + (before[n - 1] if n else 0) + 6
    parts.insert(0, f'<g class="heat" data-columns="{m + bool(beside)}">')
    parts.append("</g>")
    return wrap(wide, height, label, parts, "heatmap")


def _cell(
    box: tuple[float, float, float, float],
    value: float,
    strength: float,
    row: str,
    column: str,
    digits: int,
) -> str:
    x, y, wide, tall = box
    if not math.isfinite(value):
        return ""
    opacity = min(abs(strength), 1.0)
    cls = "neg" if strength < 0 else "pos"
    said = f"{row} and {column}: {value:.{digits + 1 if digits else 0}f}"
    said = row if row == column and digits else said
    out = (
        f'<rect class="cell {cls} m" x="{x:.1f}" y="{y:.1f}" width="{wide - 0.6:.1f}" '
        f'height="{tall - 0.6:.1f}" fill-opacity="{opacity:.3f}">'
        f"<title>{escape(said)}</title></rect>"
    )
    if wide >= 26 and tall >= 13:
        ink = "strong" if opacity > 0.55 else "weak"
        text = f"{value:.{digits}f}"
        text = text.replace("0.", ".", 1) if wide < 36 and abs(value) < 1 else text
        out += (
            f'<text class="value mid {ink}" x="{x + wide / 2:.1f}" y="{y + tall / 2 + 3.6:.1f}">'
            f"{text}</text>"
        )
    return out


def scatter(
    points: np.ndarray,
    classes: Sequence[str],
    keys: Sequence[str | None],
    titles: Sequence[str],
    *,
    label: str,
    size: int = 330,
) -> str:
    """Points in a square frame without ticks; coordinates from -1 to 1."""
    half, room = size / 2, size / 2 - 12
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    reach = max(float((high - low).max()) / 2, 1e-12)
    parts = [f'<rect class="frame" x="1" y="1" width="{size - 2}" height="{size - 2}" rx="6"/>']
    for point, cls, key, title in zip(points, classes, keys, titles, strict=True):
        x, y = (point - middle) / reach
        parts.append(
            f'<circle class="pt {cls} m"{series(key)} cx="{half + room * x:.1f}" '
            f'cy="{half - room * y:.1f}" r="3"><title>{escape(title)}</title></circle>'
        )
    return wrap(size, size, label, parts, "square")


def strips(
    rows: Sequence[tuple[str, str, str, float, Sequence[float]]], *, label: str, x_label: str
) -> str:
    """One row per kernel: a bar for its share on all samples, dots for its shares on folds.

    Each row is ``(name, key, colour, whole, parts)``; the numbers are shares.
    """
    tall, left, right, top = 24, 236, 690, 8
    scale = Scale(0.0, 1.0, left, right, False)  # shares: 0 to 100 %
    bottom = top + tall * len(rows)
    out = []
    for value, _ in scale.ticks():
        at = f"{scale(value):.1f}"
        out.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{top}" y2="{bottom}"/>')
        percent = f"{100 * value:.0f} %"
        out.append(f'<text class="tick mid" x="{at}" y="{bottom + 17}">{percent}</text>')
    out.append(f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>')
    middle = (left + right) / 2
    out.append(f'<text class="name mid" x="{middle}" y="{bottom + 37}">{escape(x_label)}</text>')
    for i, (name, key, cls, whole, parts) in enumerate(rows):
        y = top + tall * (i + 0.5)
        said = escape(name)
        out.append(
            f'<g class="row"{series(key)}><text class="tick end" x="{left - 8}" y="{y + 4:.1f}">'
            f"{escape(short(name, 33))}<title>{said}</title></text>"
            f'<rect class="whole m" x="{left}" y="{y - 7:.1f}" height="14" '
            f'width="{max(scale(whole) - left, 0.5):.1f}">'
            f"<title>{said}: {100 * whole:.1f} % on all samples</title></rect>"
        )
        for f, value in enumerate(parts, 1):
            out.append(
                f'<circle class="pt {cls} m" cx="{scale(value):.1f}" cy="{y:.1f}" r="4.2">'
                f"<title>{said}: {100 * value:.1f} % without fold {f}</title></circle>"
            )
        out.append("</g>")
    return wrap(720, bottom + 46, label, out)


def interval(
    mean: float,
    error: float,
    points: Sequence[float],
    low: float,
    high: float,
    title: str,
    cls: str,
) -> str:
    """One row of a leaderboard: scores, their mean and its error."""
    scale = Scale(low, high, 6, 234, False)
    parts = ['<line class="grid" x1="6" x2="234" y1="11" y2="11"/>']
    parts += [f'<circle class="faint {cls}" cx="{scale(v):.1f}" cy="11" r="2.2"/>' for v in points]
    a, b = scale(mean - error), scale(mean + error)
    parts.append(f'<path class="err {cls}" d="M{a:.1f} 11H{b:.1f}M{a:.1f} 7v8M{b:.1f} 7v8"/>')
    parts.append(
        f'<circle class="dot {cls} m" cx="{scale(mean):.1f}" cy="11" r="4">'
        f"<title>{escape(title)}</title></circle>"
    )
    return wrap(240, 22, title, parts, "interval")


def legend(entries: Sequence[tuple[str, str, str, str]], hint: str = "") -> str:
    """Legend from ``(key, class, dash, text)`` of every series; a script makes it clickable."""
    items = []
    for key, cls, dashes, text in entries:
        swatch = (
            f'<svg class="swatch" viewBox="0 0 26 10" aria-hidden="true"><line class="line {cls}" '
            f'{dashes} x1="1" x2="25" y1="5" y2="5"/></svg>'
        )
        items.append(
            f'<li><span class="key" data-key="{escape(key)}" title="{escape(text)}">{swatch}'
            f"{escape(short(text, 44))}</span></li>"
        )
    return f'<ul class="legend" aria-label="{escape(hint or "Series")}">{"".join(items)}</ul>'


def finite(values: Any) -> np.ndarray:
    """The finite numbers among those given."""
    values = np.asarray(values, dtype=np.float64).ravel()
    return values[np.isfinite(values)]
