"""Which kernels to trust: rules from grams and targets to kernel weights."""

from __future__ import annotations

import difflib
from typing import Any

from .alignment import Align, AlignF
from .base import Weighting
from .joint import (
    L1,
    AlignmentRegularized,
    ElasticNetNorm,
    HierarchicalNorm,
    JointWeighting,
    L2Ball,
    LpNorm,
    NonIsotropicNorm,
)
from .uniform import BestSingle, Uniform

#: what the strings of ``weighting=`` stand for
NAMED: dict[str, type[Weighting]] = {
    "uniform": Uniform,
    "best": BestSingle,
    "align": Align,
    "alignf": AlignF,
    "lp": LpNorm,
    "l1": L1,
    "l2-ball": L2Ball,
}


def as_weighting(weighting: Any) -> Weighting:
    """A rule from a name or an object with parameters."""
    if isinstance(weighting, Weighting):
        return weighting
    if isinstance(weighting, str):
        if weighting in NAMED:
            return NAMED[weighting]()
        close = difflib.get_close_matches(weighting, NAMED, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"weighting={weighting!r} is not known; the names are {', '.join(map(repr, NAMED))}."
            + hint
        )
    raise TypeError(
        f"weighting must be a name or an object such as mk.AlignF(); got {weighting!r}."
    )


__all__ = [
    "L1",
    "NAMED",
    "Align",
    "AlignF",
    "AlignmentRegularized",
    "BestSingle",
    "ElasticNetNorm",
    "HierarchicalNorm",
    "JointWeighting",
    "L2Ball",
    "LpNorm",
    "NonIsotropicNorm",
    "Uniform",
    "Weighting",
    "as_weighting",
]
