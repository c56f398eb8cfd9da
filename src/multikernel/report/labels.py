"""Short names of kernels: ``Gaussian(gamma=0.00607231)`` is ``Gaussian γ = 0.0061``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..kernels.bank import distinct

_CALL = re.compile(r"\b([A-Z]\w*)\(([^()]*)\)")
_SYMBOLS = {"gamma": "γ", "length": "ℓ", "offset": "c", "coef0": "c"}


def short_labels(names: Sequence[str]) -> list[str]:
    """Labels of kernels, all different if the names are."""
    labels = [_CALL.sub(_shorten, name) for name in names]
    if len(set(labels)) < len(set(names)):
        # Rounding made some labels equal: use the full names instead.
        twice = {label for label in labels if labels.count(label) > 1}
        labels = [
            name if label in twice else label for name, label in zip(names, labels, strict=True)
        ]
    return distinct(labels)


def _shorten(call: re.Match[str]) -> str:
    name, arguments = call[1], [part.strip() for part in call[2].split(",") if part.strip()]
    said = []
    for part in arguments:
        key, equals, value = part.partition("=")
        if not equals or key in ("columns", "scaling"):
            return call[0] if not equals else name
        if key == "power" and value == "1":
            continue
        said.append(f"{_SYMBOLS.get(key, key)}\u00a0=\u00a0{_digits(value)}")  # no line break
    return f"{name} {', '.join(said)}" if said else name


def _digits(value: str) -> str:
    try:
        return f"{float(value):.2g}" if "." in value or "e" in value else value
    except ValueError:
        return value
