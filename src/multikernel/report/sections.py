"""The sections of the page about what was learned: weights, kernels, samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from ..estimators.own_sample import is_own_sample
from ..estimators.weights import Weights
from ..kernels.bank import view_of
from . import svg
from .about import DataSummary
from .findings import (
    Alignments,
    effective_rank,
    find_alignments,
    find_embeddings,
    find_spectra,
    has_combination,
)
from .held_out import HeldOut, Refits, find_held_out, find_refits
from .labels import short_labels
from .presence import presence_table
from .sample import n_rows, target_columns, unlabelled

#: The first table shows the kernels in use, but at least 12 kernels and at most 40. The others are
#: in a folded list of at most 1,000.
FIRST_KERNELS, FEW_KERNELS, LISTED_KERNELS = 40, 12, 1000


@dataclass(frozen=True)
class ReportedModel:
    """What the sections describe: a fitted estimator, its sample, its weights, a comparison."""

    estimator: Any
    X: Any
    y: Any
    weights: Weights
    board: dict[str, Any] | None = None
    about: DataSummary = field(default_factory=DataSummary)

    @property
    def ranks(self) -> np.ndarray:
        """Rank of every kernel by weight, which decides its colour in all charts."""
        ranks = np.empty(len(self.weights.names), dtype=int)
        ranks[self.weights.order] = np.arange(len(ranks))
        return ranks

    def key(self, k: int) -> str:
        return f"k{k}"

    @cached_property
    def labels(self) -> list[str]:
        """Short names of all kernels."""
        return short_labels(self.weights.names)

    @cached_property
    def alignments(self) -> Alignments:
        Y = target_columns(self.estimator, self.y)
        return find_alignments(self.estimator, self.X, Y, self.weights.order)

    @cached_property
    def is_own(self) -> bool:
        """Whether the samples are those that the model was fitted to."""
        return is_own_sample(self.estimator, self.X)

    @cached_property
    def refits(self) -> Refits:
        """The model fitted again on parts of the sample."""
        if not self.is_own:
            raise ValueError("these are not the samples that the model was fitted to")
        return find_refits(self.estimator, self.X, self.y)

    @cached_property
    def held_out(self) -> HeldOut | None:
        """Predictions for held-out samples; None where there are none."""
        try:
            kept_out = self.about.kept_out
            return find_held_out(self.estimator, self.X, self.y, lambda: self.refits, kept_out)
        except (ValueError, TypeError, NotImplementedError):
            return None


def sampled(n_points: int, n_all: int) -> str:
    """A sentence on how many samples were used; empty if all were."""
    if n_points == n_all:
        return ""
    return f" Computed on {n_points:,} of the {n_all:,} samples, chosen at random."


def figure(drawing: str, caption: str, after: str = "") -> str:
    caption = f"<figcaption>{caption}</figcaption>"
    return f'<figure><div class="scroll">{drawing}</div>{caption}{after}</figure>'


def percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share else "0"


# -- weights --------------------------------------------------------------------------------------


def weights_section(model: ReportedModel) -> str:
    weights = model.weights
    beside = _beside(model.estimator)
    order = weights.order
    rows = [_weight_row(model, int(k), beside) for k in order[: _n_first(weights)]]
    table = _weight_table(rows, weights.what, beside)
    used = [int(k) for k in order if weights.shares[k] > 0]
    switches = (
        '<p class="buttons"><button type="button" data-show="all">Show all kernels</button>'
        '<button type="button" data-show="used" '
        f'data-used="{" ".join(model.key(k) for k in used)}">Only kernels in use</button></p>'
    )
    signed = " Negative weights are hatched; shares are of absolute values."
    parts = [
        "<p>Each bar is a kernel's share of the total weight, on a scale from 0 to 100 %. A "
        "kernel has the same colour in all "
        f"charts.{signed if np.any(weights.mean < 0) else ''}</p>",
        switches,
    ]
    views = weights.views
    if views:
        parts = ["<h3>By view</h3>", _view_table(weights), "<h3>By kernel</h3>", *parts]
    parts += [table, _other_kernels(model, beside)]
    if weights.machines:
        parts.append(_machines(model))
    if hasattr(model.estimator, "presence_"):
        parts.append(presence_table(model.estimator, model.X, model.y, model.held_out))
    return "".join(parts)


def _n_first(weights: Weights) -> int:
    return min(FIRST_KERNELS, max(FEW_KERNELS, weights.n_used))


def target_alignments(estimator: Any) -> np.ndarray | None:
    """Each kernel's alignment with the target, as stored by the fit, shape (p,)."""
    found = getattr(estimator, "kernel_alignments_", None)
    if found is None or hasattr(estimator, "offset_"):
        return None
    found = np.asarray(found, dtype=np.float64)
    return found.mean(axis=0) if found.ndim == 2 else found


def _beside(estimator: Any) -> tuple[str, np.ndarray] | None:
    """Title and values of a column on single kernels: alignments or scores; None without them."""
    aligned = target_alignments(estimator)
    if aligned is not None:
        return "alignment with target", aligned
    scores = getattr(estimator, "kernel_scores_", None)
    return None if scores is None else ("score alone, held out", np.asarray(scores))


def _weight_table(rows: list[str], what: str, beside: tuple[str, np.ndarray] | None) -> str:
    more = "" if beside is None else f'<th scope="col" class="num opt">{beside[0]}</th>'
    return (
        '<div class="scroll"><table class="weights"><thead><tr><th scope="col">kernel</th>'
        f'<th scope="col" class="num opt">{what}</th><th scope="col" class="num">share</th>'
        f"<th></th>{more}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _weight_row(model: ReportedModel, k: int, beside: tuple[str, np.ndarray] | None) -> str:
    weights = model.weights
    share = float(weights.shares[k])
    name = escape(model.labels[k])
    colour = svg.colour(int(model.ranks[k]))
    width = 100 * share
    zero = ' class="zero"' if share == 0 else ""
    more = "" if beside is None else f'<td class="num opt">{beside[1][k]:.3f}</td>'
    minus = " minus" if weights.mean[k] < 0 else ""
    return (
        f'<tr{zero} data-s="{model.key(k)}"><th scope="row"><span class="key {colour}" '
        f'data-key="{model.key(k)}"><span class="spot"></span>{name}</span></th>'
        f'<td class="num opt">{svg.number(float(weights.mean[k]))}</td>'
        f'<td class="num">{percent(share)}</td><td class="bar"><span class="track">'
        f'<span class="fill {colour}{minus}" style="width:{width:.2f}%"></span></span></td>{more}'
        "</tr>"
    )


def _other_kernels(model: ReportedModel, beside: tuple[str, np.ndarray] | None) -> str:
    weights = model.weights
    rest = weights.order[_n_first(weights) :]
    if not len(rest):
        return ""
    used = int(np.count_nonzero(weights.shares[rest]))
    said = f"{used:,} in use, {percent(float(weights.shares[rest].sum()))} of the weight"
    listed = rest[:LISTED_KERNELS]
    rows = [_weight_row(model, int(k), beside) for k in listed]
    left = len(rest) - len(listed)
    more = f'<p class="note">{left:,} more are not listed.</p>' if left else ""
    return (
        f"<details><summary>{len(rest):,} other kernels: {said if used else 'no weight'}</summary>"
        f"{_weight_table(rows, weights.what, beside)}{more}</details>"
    )


def _view_table(weights: Weights) -> str:
    views = weights.views
    rows = []
    for view, share in views.items():
        members = [
            k for k, name in enumerate(weights.names) if (view_of(name) or "(no view)") == view
        ]
        used = sum(weights.shares[k] > 0 for k in members)
        width = 100 * share
        rows.append(
            f'<tr{"" if share else " class=zero"}><th scope="row">{escape(view)}</th>'
            f'<td class="num">{used} of {len(members)}</td><td class="num">{percent(share)}</td>'
            f'<td class="bar"><span class="track"><span class="fill" style="width:{width:.2f}%">'
            "</span></span></td></tr>"
        )
    return (
        '<div class="scroll"><table class="views"><thead><tr><th scope="col">view</th>'
        '<th scope="col" class="num">kernels in use</th><th scope="col" class="num">share</th>'
        f"<th></th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _machines(model: ReportedModel) -> str:
    """Weights of every class or output, if they differ."""
    weights = model.weights
    shown = weights.order[:20]
    names = [model.labels[int(k)] for k in shown]
    values = weights.values[:, shown].T
    top = np.abs(values).max(initial=0.0)
    picture = svg.heatmap(
        names,
        weights.machines,
        values,
        label="Weights of every kernel in every classifier",
        keys=[model.key(int(k)) for k in shown],
        strengths=values / top if top > 0 else values,
    )
    note = "" if len(shown) == len(weights.names) else f" The {len(shown)} largest are shown."
    return "<h3>By class</h3>" + figure(
        picture, f"Every class has its own kernel weights; the table above shows their mean.{note}"
    )


# -- kernels --------------------------------------------------------------------------------------


def alignments_section(model: ReportedModel) -> str:
    found = model.alignments
    names = [model.labels[int(k)] for k in found.kernels]
    groups = [i for i in range(1, len(found.groups)) if found.groups[i] != found.groups[i - 1]]
    picture = svg.heatmap(
        names,
        names,
        found.A,
        label="Alignments of the kernels with each other",
        keys=[model.key(int(k)) for k in found.kernels],
        gaps=groups,
        numbered=True,
        width=820,
        beside=None if found.target is None else ("target", found.target),
    )
    n_groups = len(set(found.groups.tolist()))
    said = (
        "How similar two kernels are on these data: their centred alignment, which is 1 if they "
        "are the same up to scale. Kernels are ordered by clustering, so similar ones are "
        "neighbours; thin gaps separate groups whose members have alignments of about 0.8 or more."
    )
    if len(found.names) < found.n_kernels:
        said += f" Of {found.n_kernels:,} kernels the {len(found.names)} with the largest weights "
        said += "are shown."
    said += sampled(found.n_points, found.n_all)
    scale = 'Alignment 0 <span class="ramp"></span> 1'
    if np.any(found.A < -1e-9):
        scale += ', below 0 <span class="ramp" style="--c:var(--other)"></span>'
    count = f"{len(found.names)} kernels fall into {n_groups} group{'s' if n_groups > 1 else ''}."
    parts = [f"<p>{said}</p>", figure(picture, f"{scale}. <b>{count}</b>")]
    if found.target is not None and len(found.names) > 1:
        best = int(np.argmax(found.target))
        parts.append(
            f"<p>The kernel closest to the target is {escape(names[best])}, with an alignment of "
            f"{found.target[best]:.3f}.</p>"
        )
    return "".join(parts)


def spectrum_section(model: ReportedModel) -> str:
    found = find_spectra(model.estimator, model.X)
    least = 1e-8
    chart = svg.Chart(
        (1, found.n_points),
        (least, 1.0),
        label="Eigenvalues of the kernels",
        x_label="rank of the eigenvalue",
        y_label="share of the trace",
        log_x=True,
        log_y=True,
        size=(620, 380),
    )
    places = np.unique(np.geomspace(1, found.n_points, 70).astype(int)) - 1
    entries = []
    names = [
        model.labels[k] if k >= 0 else own
        for k, own in zip(found.kernels, found.names, strict=True)
    ]
    for k, name, values in zip(found.kernels, names, found.values, strict=True):
        rank, key = (0, "base") if k < 0 else (int(model.ranks[k]), model.key(k))
        colour, dashes = svg.colour(rank), svg.dash(rank)
        _spectrum_line(chart, values, places, least, colour, name, key, dashes)
        entries.append((key, colour, dashes, name))
    if found.learned is not None:
        title = "learned combination"
        _spectrum_line(chart, found.learned, places, least, "ink bold", title, "learned", "")
        entries.insert(0, ("learned", "ink bold", "", title))
    caption = (
        "Eigenvalues of the centred kernel matrices, divided by the trace. The table shows the "
        "effective rank (how many equal eigenvalues would be spread as evenly) and how many "
        "eigenvalues make up 90 % of the trace."
    )
    if min(found.kernels) >= 0 and len(found.names) < len(model.weights.names):
        caption += f" The {len(found.names)} kernels with the largest weights are shown."
    caption += sampled(found.n_points, found.n_all)
    rows = list(zip(names, found.values, strict=True))
    if found.learned is not None:
        rows.insert(0, ("learned combination", found.learned))
    body = "".join(_rank_row(name, values) for name, values in rows)
    table = (
        '<div class="scroll"><table><thead><tr><th scope="col">kernel</th><th scope="col" '
        'class="num">effective rank</th><th scope="col" class="num">90 % of trace</th>'
        f"</tr></thead><tbody>{body}</tbody></table></div>"
    )
    return (
        "<p>A steep line belongs to a kernel that sees the data in few directions (smooth, "
        "simple); a flat line to a kernel that distinguishes every sample from every other.</p>"
        f'<div class="pair">{figure(chart.close(), caption, svg.legend(entries, "Kernels"))}'
        f"<div>{table}</div></div>"
    )


def _spectrum_line(
    chart: svg.Chart, values: np.ndarray, places: np.ndarray, least: float, colour: str, name: str,
    key: str, extra: str,
) -> None:  # fmt: skip
    kept = places[values[places] >= least]
    if len(kept):
        title = f"{name}: effective rank {effective_rank(values):.3g}"
        chart.line(kept + 1, values[kept], colour, key=key, title=title, extra=extra)


def _rank_row(name: str, values: np.ndarray) -> str:
    directions = int(np.searchsorted(np.cumsum(values), 0.9 * values.sum() * (1 - 1e-12)) + 1)
    return (
        f'<tr><th scope="row">{escape(name)}</th><td class="num">{effective_rank(values):.3g}</td>'
        f'<td class="num">{directions}</td></tr>'
    )


# -- points ---------------------------------------------------------------------------------------


def embedding_section(model: ReportedModel) -> str:
    rows, found = find_embeddings(model.estimator, model.X)
    classes, keys, said, key = _colours(model, rows)
    figures = []
    for embedding in found:
        titles = [
            f"row {model.about.row(i)}: {text}" for i, text in zip(rows.tolist(), said, strict=True)
        ]
        picture = svg.scatter(
            embedding.points, classes, keys, titles, label=f"Kernel PCA, {embedding.title}"
        )
        first, second = embedding.explained
        title = embedding.title
        for name, label in zip(model.weights.names, model.labels, strict=True):
            title = label if title == name else title.replace(f": {name}", f": {label}")
        caption = f"<b>{escape(title)}</b><br>{percent(first)} and {percent(second)} of "
        caption += "the variance"
        figures.append(figure(picture, caption))
    text = "The first two kernel principal components; colours are "
    if model.y is None or hasattr(model.estimator, "offset_"):
        text += "the predictions of the model."
    elif unlabelled(model.estimator, model.y).any():
        text += "the target or, for unlabelled samples, the label that was found."
    else:
        text += "the target."
    if not has_combination(model.estimator):
        what = "A vote" if hasattr(model.estimator, "terms_") else "An ensemble"
        text += f" {what} has no combined kernel, so none is shown."
    elif model.weights.machines:
        text += " The combination uses the mean weights over classes."
    text += sampled(len(rows), n_rows(model.X))
    return f'<p>{text}</p><div class="three">{"".join(figures)}</div>{key}'


def _colours(
    model: ReportedModel, rows: np.ndarray
) -> tuple[list[str], list[str | None], list[str], str]:
    """CSS classes, series keys and titles of the points, and a legend of the colours."""
    if model.y is None or hasattr(model.estimator, "offset_"):
        inside = np.asarray(model.estimator.predict(model.X))[rows] > 0
        labels = np.where(inside, "inside", "outside")
        levels = np.array(["inside", "outside"])
    elif hasattr(model.estimator, "classes_"):
        y = np.asarray(model.y)
        if unlabelled(model.estimator, y).any():
            y = model.estimator.transduction_
        labels, levels = y[rows], np.asarray(model.estimator.classes_)
    else:
        y = np.asarray(model.y, dtype=np.float64).reshape(len(model.y), -1)[rows, 0]
        low, high = np.quantile(y, [0.02, 0.98])
        part = np.clip((y - low) / (high - low if high > low else 1.0), 0.0, 1.0)
        classes = [f"g{round(10 * float(p))}" for p in part]
        key = (
            f'<p class="note">Target from {svg.number(low)} <span class="ramp two"></span> to '
            f"{svg.number(high)}{' (first output)' if np.ndim(model.y) > 1 else ''}.</p>"
        )
        return classes, [None] * len(y), [f"target {svg.number(v, 4)}" for v in y], key
    codes = np.argmax(labels[:, None] == levels, axis=1)
    entries = [(f"y{j}", svg.colour(j), "", str(level)) for j, level in enumerate(levels)]
    classes = [svg.colour(int(c)) for c in codes]
    keys: list[str | None] = [f"y{c}" for c in codes]
    return classes, keys, [str(label) for label in labels], svg.legend(entries, "Classes")
