"""Weighting rules: they compute kernel weights from Gram matrices and targets."""

from __future__ import annotations

import difflib
from typing import Any

from .alignment import Align, AlignF, FeatureCorrelation
from .base import Weighting, check_parameters
from .joint import JointWeighting
from .leave_one_out import LeaveOneOut
from .lp_norm import L1, LpNorm
from .neighbours import FullNeighbours, SparseNeighbours
from .observed_margins import ObservedMargins
from .statis import Statis
from .structured_norms import ElasticNetNorm, HierarchicalNorm, NonIsotropicNorm
from .uniform import BestSingle, Uniform
from .weight_penalties import AlignmentRegularized, L2Ball

#: The rules that ``weighting=`` accepts by name.
NAMED: dict[str, type[Weighting]] = {
    "uniform": Uniform,
    "best": BestSingle,
    "align": Align,
    "alignf": AlignF,
    "loo": LeaveOneOut,
    "correlation": FeatureCorrelation,
    "statis": Statis,
    "full-neighbours": FullNeighbours,
    "sparse-neighbours": SparseNeighbours,
    "lp": LpNorm,
    "l1": L1,
    "l2-ball": L2Ball,
}


def as_weighting(weighting: Any) -> Weighting:
    """The rule with this name (and default parameters), or the rule itself."""
    if isinstance(weighting, Weighting):
        check_parameters(weighting)
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
    "FeatureCorrelation",
    "FullNeighbours",
    "HierarchicalNorm",
    "JointWeighting",
    "L2Ball",
    "LeaveOneOut",
    "LpNorm",
    "NonIsotropicNorm",
    "ObservedMargins",
    "SparseNeighbours",
    "Statis",
    "Uniform",
    "Weighting",
    "as_weighting",
]
