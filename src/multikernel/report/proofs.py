"""The section of the page about what theory proves."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from . import svg
from .findings import find_certificate
from .sample import n_rows
from .sections import ReportedModel, figure

#: With more samples the report leaves the certificate out, because it takes long.
CERTIFICATE_POINTS = 10_000


def certificate_section(model: ReportedModel) -> str:
    if hasattr(model.estimator, "bound_"):
        return _margins(model.estimator)
    n = n_rows(model.X)
    if n > CERTIFICATE_POINTS:
        return (
            f"<p>Not computed for {n:,} samples, because it takes long. In Python: <code>"
            "multikernel.bounds.certificate(estimator, X, y)</code>.</p>"
        )
    found = find_certificate(model.estimator, model.X, model.y, unmet=model.about.assumptions)
    parts = [f'<p class="verdict">{escape(found.verdict)}</p>']
    whole = (
        "<details><summary>The full certificate: every bound, its assumptions and its "
        f"costs</summary><pre>{escape(str(found))}</pre></details>"
    )
    if found.vacuous:  # bounds above one say nothing: no chart
        return "".join([*parts, whole])
    parts += [
        f"<p>The alignment with the target is {a.value:.3f} on the sample, and in [{a.low:.3f}, "
        f"{a.high:.3f}] for the distribution{': the interval is vacuous' if a.vacuous else ''}.</p>"
        for a in found.alignments[:1]
    ]
    machine = found.machines[0]
    picture = _bounds_chart(machine)
    table = _bounds_table(machine)
    parts.append(picture + table)
    if len(found.machines) > 1:
        parts.append(
            f'<p class="note">Shown for the first of {len(found.machines)} classifiers, '
            f"{escape(machine.name)}; the others are below.</p>"
        )
    return "".join([*parts, whole])


def _margins(estimator: Any) -> str:
    """Margins of a spectral class at a fixed trace, in place of a certificate."""
    margins, bounds = np.atleast_1d(estimator.margin_), np.atleast_1d(estimator.bound_)
    names = [str(c) for c in estimator.classes_]
    names = [f"{c} against the rest" for c in names] if len(bounds) > 1 else [" and ".join(names)]
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="num">{margin:.3g}</td>'
        f'<td class="num">{bound:.3g}</td></tr>'
        for name, margin, bound in zip(names, margins, bounds, strict=True)
    )
    return (
        "<p>The kernel was chosen after the samples were seen, so bounds for kernels fixed in "
        "advance do not apply. What is known is the margin M at the trace c, which gives the "
        "complexity √c / (M n) of the transductive bound of Bousquet and Herrmann; <code>"
        "multikernel.bounds.transductive_bound</code> adds the remaining terms.</p>"
        '<div class="scroll"><table><thead><tr><th scope="col">classes</th><th scope="col" '
        'class="num">margin M</th><th scope="col" class="num">complexity √c / (M n)</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def _bounds_chart(machine: Any) -> str:
    curves = [bound for bound in machine.bounds if len(bound.margins)]
    if not curves:
        return ""
    top = max(2.0, 1.5 * min(float(bound.values.min()) for bound in curves))
    seen = np.concatenate([bound.margins[bound.values < top] for bound in curves])
    chart = svg.Chart(
        (0.8 * float(seen.min()), 1.25 * float(seen.max())),
        (0.0, top),
        label="Bounds against the margin",
        x_label=machine.axis,
        y_label="bound",
        log_x=True,
    )
    colours: dict[str, int] = {}
    entries = []
    low, high = float(seen.min()), float(seen.max())
    for j, bound in enumerate(curves):
        c = svg.colour(colours.setdefault(bound.name, len(colours)))
        # Keep one margin beyond the visible ones, so that the curve reaches the edge.
        inside = np.convolve(bound.values < top, np.ones(3), "same") > 0
        kept = inside & (bound.margins >= low) & (bound.margins <= high)
        heights = np.minimum(bound.values, top)[kept]
        dashes = "" if bound.proven else ' stroke-dasharray="2 3"'
        name = f"{bound.name}, {bound.kernels}"
        said = f"{name}: {bound.value:.3g} at margin {bound.margin:.3g}"
        chart.line(bound.margins[kept], heights, c, key=f"b{j}", title=said, extra=dashes)
        if bound.value < top:
            chart.dot(bound.margin, bound.value, c, said, key=f"b{j}")
        entries.append((f"b{j}", c, dashes, name))
    first = curves[0]
    kept = (first.margins >= low) & (first.margins <= high)
    chart.line(first.margins[kept], first.risks[kept], "ink bold", title="loss on the sample")
    chart.level(1.0, "no information above this line")
    caption = (
        f"{escape(machine.name)}. Thick line: loss on the sample. Dotted line: an assumption is "
        "not met. Dots: best margin of each bound."
    )
    return figure(chart.close(), caption, svg.legend(entries, "Bounds"))


def _bounds_table(machine: Any) -> str:
    best = machine.tightest()
    rows = []
    for bound in sorted(machine.bounds, key=lambda b: (not b.proven, b.value)):
        remark = ["tightest"] if bound is best else []
        remark += [] if bound.proven else ["assumption not met"]
        remark += ["vacuous"] if bound.vacuous else []
        cells = "".join(
            f'<td class="num">{value:.3g}</td>'
            for value in (bound.risk, bound.complexity, bound.confidence, bound.value)
        )
        strong = " class=strong" if bound is best else "" if bound.proven else " class=zero"
        rows.append(
            f'<tr{strong}><th scope="row">{escape(bound.name)}<br><span class="soft">'
            f"{escape(bound.kernels)}</span></th>{cells}<td>{', '.join(remark)}</td></tr>"
        )
    return (
        '<div class="scroll"><table class="bounds"><thead><tr><th scope="col">bound</th>'
        '<th scope="col" class="num">loss</th><th scope="col" class="num">+ complexity</th>'
        '<th scope="col" class="num">+ confidence</th><th scope="col" class="num">= total</th>'
        f"<th></th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
