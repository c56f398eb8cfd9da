"""The first sentences of the page: what was learned, and whether refits agree."""

from __future__ import annotations

from html import escape

import numpy as np

from .sections import ReportedModel, percent
from .validation import in_common

#: Single weights count as stable if refits have at least this share of the weight in common.
STABLE = 0.8
#: How many kernels of a group are named.
NAMED = 3


def lead(model: ReportedModel) -> str:
    weights = model.weights
    p, used = len(weights.names), weights.n_used
    rule = getattr(model.estimator, "weighting_", getattr(model.estimator, "weighting", None))
    by = f", weighted by <em>{escape(str(rule))}</em>" if rule is not None else ""
    n = model.estimator.plan_.n_samples
    text = f"{p:,} kernel{'s' if p > 1 else ''} on {n:,} samples{by}. "
    if not used:
        return text + "No kernel got any weight."
    if p == 1:
        return text + "The model uses it."
    shares = weights.shares
    in_use = shares[shares > 0]
    if used > 1 and np.ptp(in_use) < 1e-6:
        text += f"{'All' if used == p else f'{used:,}'} kernels have the same weight"
    else:
        text += f"{used:,} of them {'are' if used > 1 else 'is'} in use; {_largest(model)}"
    views = weights.views
    if len(views) > 1 and np.ptp(list(views.values())) > 1e-6:
        view, part = next(iter(views.items()))
        text += f"; the view with the largest weight is <strong>{escape(view)}</strong>, with "
        text += percent(part)
    return text + "."


def _largest(model: ReportedModel) -> str:
    """The largest weight if it is stable, else that of the largest group of similar kernels."""
    weights = model.weights
    first = int(weights.order[0])
    single = (
        f"the largest weight, {percent(float(weights.shares[first]))} of the total, went to "
        f"<strong>{escape(model.labels[first])}</strong>"
    )
    try:
        refits, found = model.refits.shares, model.alignments
    except (ValueError, TypeError, NotImplementedError, np.linalg.LinAlgError):
        return single
    if refits is None or refits.shape[1] != len(weights.names):
        return single
    overlap = in_common(refits)
    if overlap >= STABLE:
        return single
    groups: dict[int, list[int]] = {}
    for k, group in zip(found.kernels.tolist(), found.groups.tolist(), strict=True):
        groups.setdefault(group, []).append(k)
    members = max(groups.values(), key=lambda own: float(weights.shares[own].sum()))
    whole = float(weights.shares[members].sum())
    each = refits[:, members].sum(axis=1)
    unstable = f"single weights are not stable (refits agree on {percent(overlap)} of the weight)"
    if len(members) == 1:
        low, high = refits[:, first].min(), refits[:, first].max()
        return f"{single}, but {unstable}: refits gave it {100 * low:.0f} to {100 * high:.0f} %"
    if len(members) == len(weights.names):
        return (
            f"{unstable}, because the kernels are so similar that it hardly matters how the weight "
            "is divided among them"
        )
    members.sort(key=lambda k: -float(weights.shares[k]))
    named = ", ".join(escape(model.labels[k]) for k in members[:NAMED])
    more = f" and {len(members) - NAMED} more" if len(members) > NAMED else ""
    return (
        f"{unstable}. A group of {len(members)} similar kernels (<strong>{named}{more}</strong>) "
        f"has {percent(whole)} together, and {100 * each.min():.0f} to {100 * each.max():.0f} % in "
        "refits"
    )
