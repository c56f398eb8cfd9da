"""The sections of the page about single samples, columns, the data, and what to do next."""

from __future__ import annotations

from html import escape

import numpy as np

from ..kernels.bank import view_of
from . import svg
from .held_out import HeldOut
from .sample import n_rows, take
from .sections import ReportedModel, figure, percent

#: Length of the list of worst predictions, and of the list of most important columns.
MAX_SAMPLES, MAX_COLUMNS = 10, 20
#: Maximum number of views or kernels with a bar of their own in a waterfall chart.
MAX_BARS = 6


# -- samples --------------------------------------------------------------------------------------


def samples_section(model: ReportedModel) -> str:
    found = model.held_out
    if found is None or not len(found.rows):
        return ""
    if found.decisions is not None:
        worst, table = _worst_classes(model, found)
    else:
        worst, table = _worst_numbers(model, found)
    return table + _waterfalls(model, found, worst)


def _worst_classes(model: ReportedModel, found: HeldOut) -> tuple[np.ndarray, str]:
    certainty = _certainty(found)
    wrong = np.flatnonzero(found.truth != found.answers)
    worst = wrong[np.argsort(-certainty[wrong], kind="stable")]
    if not len(worst):
        return worst, "<p>No held-out sample was predicted wrongly.</p>"
    what = "probability" if found.probabilities is not None else "decision value"
    rows = "".join(
        f'<tr><th scope="row" class="num">{model.about.row(int(found.rows[i]))}</th>'
        f"<td>{escape(str(found.truth[i]))}</td><td>{escape(str(found.answers[i]))}</td>"
        f'<td class="num">{certainty[i]:.3f}</td></tr>'
        for i in worst[:MAX_SAMPLES]
    )
    return worst, (
        f"<p>{len(worst):,} of {len(found.rows):,} held-out samples were predicted wrongly. "
        f"The model was most certain about the ones below. Check their labels, which may be wrong."
        f'</p><div class="scroll"><table class="narrow"><thead><tr><th scope="col" class="num">row'
        f'</th><th scope="col">true</th><th scope="col">predicted</th><th scope="col" class="num">'
        f"{what}</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _certainty(found: HeldOut) -> np.ndarray:
    """The probability of the predicted class, or else the lead of its decision value."""
    if found.probabilities is not None:
        return np.asarray(found.probabilities.max(axis=1))
    assert found.decisions is not None
    if found.decisions.shape[1] == 1:
        return np.abs(found.decisions[:, 0])
    ordered = np.sort(found.decisions, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])


def _worst_numbers(model: ReportedModel, found: HeldOut) -> tuple[np.ndarray, str]:
    residuals = np.asarray(found.truth, dtype=np.float64) - found.answers
    worst = np.argsort(-np.abs(residuals), kind="stable")
    rows = "".join(
        f'<tr><th scope="row" class="num">{model.about.row(int(found.rows[i]))}</th>'
        f'<td class="num">{svg.number(float(found.truth[i]), 5)}</td>'
        f'<td class="num">{svg.number(float(found.answers[i]), 5)}</td>'
        f'<td class="num">{svg.number(float(residuals[i]), 3)}</td></tr>'
        for i in worst[:MAX_SAMPLES]
    )
    return worst, (
        "<p>The held-out samples with the largest errors. Check them: they may contain recording "
        'errors, or differ from the other samples.</p><div class="scroll"><table class="narrow">'
        "<thead><tr>"
        '<th scope="col" class="num">row</th><th scope="col" class="num">actual</th>'
        '<th scope="col" class="num">predicted</th><th scope="col" class="num">error</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def _waterfalls(model: ReportedModel, found: HeldOut, worst: np.ndarray) -> str:
    """Waterfall charts of up to three predictions, such as the most certain and the worst one."""
    if not hasattr(model.estimator, "intercept_") or hasattr(model.estimator, "weights_gap_"):
        return ""
    if found.decisions is not None:
        certainty = _certainty(found)
        right = np.flatnonzero(found.truth == found.answers)
        chosen = []
        if len(right):
            surest = int(right[np.argmax(certainty[right])])
            chosen.append(("most certain correct prediction", surest))
        chosen.append(("least certain prediction", int(np.argmin(certainty))))
        chosen += [("most certain wrong prediction", int(worst[0]))] if len(worst) else []
    else:
        order = np.argsort(found.answers, kind="stable")
        chosen = [
            ("largest prediction", int(order[-1])),
            ("smallest prediction", int(order[0])),
            ("largest error", int(worst[0])),
        ]
    rows = np.array([found.rows[i] for _, i in chosen])
    figures = []
    answers, values, intercepts, shares = split_shares(model, rows)
    for j, (what, i) in enumerate(chosen):
        true = str(found.truth[i]) if found.decisions is not None else svg.number(found.truth[i], 4)
        said = answers[j] if found.decisions is not None else svg.number(float(answers[j]), 4)
        bars = _largest(shares, j)
        label = f"Shares of row {model.about.row(int(rows[j]))}"
        picture = waterfall(bars, float(intercepts[j]), label=label)
        caption = (
            f"<b>Row {model.about.row(int(rows[j]))}</b>, {what}. Final model: "
            f"{escape(str(said))}, true: {escape(true)}, total {svg.number(float(values[j]))}"
        )
        figures.append(figure(picture, caption))
    kind = "views" if model.weights.has_views else "kernels"
    total = (
        "the decision value of the predicted class"
        if found.decisions is not None
        else "the prediction"
    )
    return (
        f"<h3>How a prediction is made up</h3><p>Shares of the {kind} in the predictions of the "
        f"final model for three samples. Together with the intercept they add up to {total}.</p>"
        f'<div class="three wide">{"".join(figures)}</div>'
    )


def split_shares(
    model: ReportedModel, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Answers, their values, intercepts, and the share of every view (or kernel) in some rows."""
    fits = model.estimator
    X = model.X[rows] if fits._is_precomputed else take(fits, model.X, rows)
    answers = np.asarray(fits.predict(X))
    classifies = hasattr(fits, "classes_")
    split = fits.decision_function(X, split=True) if classifies else fits.predict(X, split=True)
    split = np.asarray(split, dtype=np.float64).reshape(len(rows), split.shape[1], -1)
    column = np.zeros(len(rows), dtype=int)
    sign = np.ones(len(rows))
    if split.shape[2] > 1:
        column = np.searchsorted(fits.classes_, answers)
    elif classifies:
        sign = np.where(answers == fits.classes_[1], 1.0, -1.0)  # positive: towards the answer
    intercepts = np.broadcast_to(np.ravel(fits.intercept_), (split.shape[2],))[column] * sign
    parts = split[np.arange(len(rows)), :, column] * sign[:, None]
    groups: dict[str, np.ndarray] = {}
    same = parts.shape[1] == len(model.labels)
    for k in range(parts.shape[1]):
        name = model.labels[k] if same else fits.plan_.names[k]
        if model.weights.has_views:
            name = view_of(name) or name
        groups[name] = groups.get(name, 0.0) + parts[:, k]
    return answers, parts.sum(axis=1) + intercepts, intercepts, groups


def _largest(shares: dict[str, np.ndarray], j: int) -> list[tuple[str, float]]:
    order = sorted(shares, key=lambda name: -abs(float(shares[name][j])))
    # Shares of a view that the sample lacks are rounding errors.
    tiny = 1e-9 * sum(abs(float(share[j])) for share in shares.values())
    order = [name for name in order if abs(shares[name][j]) > tiny] or order[:1]
    bars = [(name, float(shares[name][j])) for name in order[:MAX_BARS]]
    rest = order[MAX_BARS:]
    if rest:
        bars.append((f"{len(rest)} others", float(sum(shares[name][j] for name in rest))))
    return bars


def waterfall(bars: list[tuple[str, float]], intercept: float, *, label: str) -> str:
    """A waterfall chart: every bar begins where the one above ends, from intercept to total."""
    steps = [("intercept", intercept), *bars]
    ends = np.cumsum([value for _, value in steps])
    starts = np.concatenate([[0.0], ends[:-1]])
    tall, left, width, top = 26, 150, 430, 6
    low, high = min(0.0, float(ends.min())), max(0.0, float(ends.max()))
    scale = svg.Scale(low, high if high > low else low + 1.0, left, width - 66, False)
    out = []
    for value, text in scale.ticks(4):
        at, bottom = f"{scale(value):.1f}", top + tall * (len(steps) + 1)
        out.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{top}" y2="{bottom}"/>')
        out.append(f'<text class="tick mid" x="{at}" y="{bottom + 15}">{text}</text>')
    for i, ((name, value), start, end) in enumerate(zip(steps, starts, ends, strict=True)):
        y = top + tall * i
        a, b = sorted((scale(float(start)), scale(float(end))))
        cls = "pos" if value >= 0 else "neg"
        out.append(
            f'<text class="tick end" x="{left - 6}" y="{y + 17}">{escape(svg.short(name, 21))}'
            f"<title>{escape(name)}</title></text>"
            f'<rect class="cell {cls} m" x="{a:.1f}" y="{y + 5}" width="{max(b - a, 1.0):.1f}" '
            f'height="{tall - 10}"><title>{escape(name)}: {value:+.4g}</title></rect>'
            f'<text class="tick" x="{b + 5:.1f}" y="{y + 17}">{value:+.3g}</text>'
        )
    y = top + tall * len(steps)
    a, b = sorted((scale(0.0), scale(float(ends[-1]))))
    out.append(
        f'<text class="end" x="{left - 6}" y="{y + 17}">total</text><rect class="sum m" '
        f'x="{a:.1f}" y="{y + 5}" width="{max(b - a, 1.0):.1f}" height="{tall - 10}"><title>total: '
        f'{ends[-1]:+.4g}</title></rect><text x="{b + 5:.1f}" y="{y + 17}">{ends[-1]:+.3g}</text>'
    )
    return svg.wrap(width, top + tall * (len(steps) + 1) + 22, label, out, "waterfall")


# -- columns --------------------------------------------------------------------------------------


def columns_section(model: ReportedModel) -> str:
    """How much predictions depend on each column; empty if there are fewer than two columns."""
    try:
        importance = np.asarray(model.estimator.column_importance_)
    except (AttributeError, ValueError, NotImplementedError, MemoryError):
        return ""
    if len(importance) < 2 or not importance.any():
        return ""
    names = column_names(model, len(importance))
    order = np.argsort(-importance, kind="stable")
    rows = "".join(_bar_row(names[j], float(importance[j])) for j in order[:MAX_COLUMNS])
    rest = order[MAX_COLUMNS:]
    more = ""
    if len(rest):
        share = float(importance[rest].sum())
        said = f"together account for {percent(share)}" if share else "have no influence"
        more = f'<p class="note">{len(rest):,} other columns {said}.</p>'
    return (
        "<p>How much the predictions change with each column, whatever its units: from derivatives "
        "of the model, or from exchanging values between samples if some columns are categories. "
        "Redundant columns share their importance. This describes the "
        'model, not causes.</p><div class="scroll"><table class="bars"><thead><tr>'
        '<th scope="col">column</th>'
        f'<th scope="col" class="num">share</th><th></th></tr></thead><tbody>{rows}</tbody></table>'
        f"</div>{more}"
    )


def _bar_row(name: str, share: float) -> str:
    return (
        f'<tr{"" if share else " class=zero"}><th scope="row">{escape(svg.short(name, 48))}</th>'
        f'<td class="num">{percent(share)}</td><td class="bar"><span class="track">'
        f'<span class="fill" style="width:{100 * share:.2f}%"></span></span></td></tr>'
    )


def column_names(model: ReportedModel, n_columns: int) -> list[str]:
    if len(model.about.columns) == n_columns:
        return list(model.about.columns)
    given = getattr(model.estimator, "feature_names_in_", None)
    if given is not None and len(given) == n_columns:
        return [str(name) for name in given]
    return [f"column {j}" for j in range(n_columns)]


# -- data and what comes next ---------------------------------------------------------------------


def data_section(model: ReportedModel) -> str:
    about, n = model.about, n_rows(model.X)
    rows: list[tuple[str, str]] = [("samples", f"{n:,}")]
    shape = getattr(model.X, "shape", ())
    if len(shape) == 2 and not model.estimator._is_precomputed:
        rows.append(("columns", f"{model.X.shape[1]:,}"))
    if about.source:
        rows.insert(0, ("source", about.source))
    if about.target:
        rows.append(("target", about.target))
    if model.y is not None and np.ndim(model.y) == 1:
        y = np.asarray(model.y)
        if hasattr(model.estimator, "classes_"):
            labels, counts = np.unique(y, return_counts=True)
            listed = [f"{c} {k:,} ({percent(k / n)})" for c, k in zip(labels, counts, strict=True)]
            more = f" and {len(listed) - 12} more" if len(listed) > 12 else ""
            rows.append(("classes", ", ".join(listed[:12]) + more))
        elif y.dtype.kind in "fiu":
            spread = f"mean {svg.number(float(y.mean()), 4)}, standard deviation "
            spread += f"{svg.number(float(y.std()))}, from {svg.number(float(y.min()), 4)} to "
            rows.append(("values", f"{spread}{svg.number(float(y.max()), 4)}"))
    body = "".join(
        f'<tr><th scope="row">{what}</th><td>{escape(value)}</td></tr>' for what, value in rows
    )
    said = list(about.notes)
    if not model.is_own:
        said.insert(0, "These are not the samples that the model was fitted to, in their order.")
    notes = "".join(f"<li>{escape(note)}</li>" for note in said)
    table = f'<div class="scroll"><table class="facts"><tbody>{body}</tbody></table></div>'
    return table + (f'<ul class="notes">{notes}</ul>' if said else "")


def next_section(model: ReportedModel) -> str:
    """Suggested next steps: commands, or Python code if neither model nor data have a file."""
    about = model.about
    steps: list[tuple[str, str]] = []
    if about.model:
        line = f"multikernel predict {about.model} new.csv --out predictions.csv"
        steps = [
            ("Predict new samples", line),
            (
                "See what each kernel and view contributed",
                f"multikernel explain {about.model} new.csv",
            ),
        ]
        if model.board is None and about.source:
            line = f"multikernel compare {about.source} --target {about.target}"
            steps.append(("Compare with other weightings and models", line))
    elif about.source:
        line = f"multikernel fit {about.source} --target {about.target} --out model.skops"
        steps = [("Fit and save a model", line)]
    else:
        steps = [
            ("Predict new samples", "model.predict(X_new)"),
            ("Save the model", 'mk.save(model, "model.skops")'),
        ]
    items = "".join(
        f"<li>{escape(what)}:<br><code>{escape(line)}</code></li>" for what, line in steps
    )
    return f'<ul class="steps">{items}</ul>'
