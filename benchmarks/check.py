"""Did we get slower? Ratios of a new run against the committed table.

Times of two machines, or of one machine on two days, cannot be compared; ratios to a yardstick
that ran in the same minutes can, within their noise. The band of a row is `FACTORS` standard
deviations of the logarithm of its ratio, old and new together, and at least `LEAST`. Memory and
accuracy hardly vary: a tenth more memory (and 20 MB), or a hundredth of accuracy lost, is worth a
word.
"""

from __future__ import annotations

from math import exp, hypot, log
from typing import Any

from .table import Row

FACTORS = 3.0
LEAST = 1.3
MEMORY = 1.1
ACCURACY = 0.01

Key = tuple[str, str, str]


def key(row: Row) -> Key:
    return row["entry"], row["who"], row["method"]


def band(*noises: Any) -> float:
    """The factor by which a ratio may have grown."""
    sizes = [float(noise) for noise in noises if noise != ""]
    return max(LEAST, exp(FACTORS * hypot(*sizes))) if sizes else LEAST


def compare(old: list[Row], new: list[Row]) -> tuple[list[str], list[str]]:
    """Regressions of ours, and remarks on what could not be compared, one line each."""
    before = {key(row): row for row in old if row["who"] == "ours"}
    regressions, remarks = [], []
    for row in new:
        if row["who"] != "ours":
            continue
        name = f"{row['entry']}, {row['method']}"
        was = before.pop(key(row), None)
        if was is None:
            remarks.append(f"{name}: not in the committed table.")
        elif not row["cpu_s"]:
            regressions.append(f"{name}: {row['note'] or 'no result'}.")
        elif not was["cpu_s"]:
            remarks.append(f"{name}: failed when the table was made ({was['note']}), works now.")
        else:
            regressions += _worse(name, was, row)
    remarks += [f"{', '.join(k)}: in the committed table, not run now." for k in before]
    return regressions, remarks


def _worse(name: str, was: Row, row: Row) -> list[str]:
    found = []
    if was["ratio"] and row["ratio"]:
        allowed = band(was["noise"], row["noise"])
        factor = float(row["ratio"]) / float(was["ratio"])
        if log(factor) > log(allowed):
            found.append(
                f"{name}: time to yardstick {was['ratio']} -> {row['ratio']}, "
                f"{factor:.2f} times as slow (noise allows {allowed:.2f})."
            )
    old_peak, new_peak = float(was["peak_mb"]), float(row["peak_mb"])
    if new_peak > MEMORY * old_peak + 20:
        found.append(f"{name}: peak memory {old_peak:.0f} -> {new_peak:.0f} MB.")
    if was["accuracy"] and row["accuracy"]:
        lost = float(was["accuracy"]) - float(row["accuracy"])
        if lost > ACCURACY:
            found.append(f"{name}: accuracy {was['accuracy']} -> {row['accuracy']}.")
    return found
