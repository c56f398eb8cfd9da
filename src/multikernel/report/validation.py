"""The sections about reliability: search, stability, leaderboard, convergence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from ..estimators.assessment import scoring_name
from . import svg
from .findings import SearchPath, find_histories, find_path
from .sections import ReportedModel, figure, percent, sampled

# -- the grid -------------------------------------------------------------------------------------


def path_section(model: ReportedModel) -> str:
    path = find_path(model.estimator)
    if path is None or path.means.size < 2:
        return ""  # the parameters were given
    line, place = path.best
    score = scoring_name(model.estimator.scoring, hasattr(model.estimator, "classes_"))
    text = (
        f"Cross-validated {score} over {_symbol(path.name)}; error bars are one standard deviation "
        f"over {model.estimator.n_splits_} folds. Chosen: {escape(path.labels[line])}, "
        f"{_symbol(path.name)} = {svg.number(float(path.grid[place]))}, with "
        f"{path.means[line, place]:.4f}."
    )
    pictures = [_path_chart(path, score)]
    if path.norms is not None:
        pictures.append(_norm_map(path, score))
    return f'<p>{text}</p><div class="pair">{"".join(pictures)}</div>'


def _symbol(name: str) -> str:
    return {"alpha": "α", "sparsity_penalty": "β"}.get(name, name)


def _path_chart(path: SearchPath, score: str) -> str:
    low = float(np.nanmin(path.means - path.deviations))
    high = float(np.nanmax(path.means + path.deviations))
    room = 0.05 * (high - low) + 1e-12
    positive = bool(np.all(path.grid > 0))
    chart = svg.Chart(
        (float(path.grid[0]), float(path.grid[-1])),
        (low - room, high + room),
        label=f"Cross-validated {score}",
        x_label=_symbol(path.name),
        y_label=score,
        log_x=positive and len(path.grid) > 1,
    )
    entries = []
    labels = path.labels
    if path.norms is not None:
        labels = [f"p = {p:.4g}" for p in path.norms]
    for j, label in enumerate(labels):
        key, colour, dashes = f"w{j}", svg.colour(j), svg.dash(j)
        seen = np.isfinite(path.means[j])
        chart.line(path.grid[seen], path.means[j, seen], colour, key=key, extra=dashes)
        for g in np.flatnonzero(seen):
            mean, spread = float(path.means[j, g]), float(path.deviations[j, g])
            chart.bar(float(path.grid[g]), mean - spread, mean + spread, colour, key=key)
            title = (
                f"{label}, {_symbol(path.name)} = {svg.number(float(path.grid[g]))}: "
                f"{mean:.4f} ± {spread:.4f}"
            )
            chart.dot(float(path.grid[g]), mean, colour, title, key=key)
        entries.append((key, colour, dashes, label))
    line, place = path.best
    x, y = chart.x(float(path.grid[place])), chart.y(float(path.means[line, place]))
    chart.add(f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="7.5"/>')
    caption = "The ring marks the choice."
    return figure(chart.close(), caption, svg.legend(entries, "Weightings"))


def _norm_map(path: SearchPath, score: str) -> str:
    """Scores over the norm p and the grid."""
    assert path.norms is not None
    order = np.argsort(path.norms)
    values = path.means[order]
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    strengths = (values - low) / (high - low) if high > low else np.ones_like(values)
    picture = svg.heatmap(
        [f"p = {path.norms[j]:.4g}" for j in order],
        [svg.number(float(g)) for g in path.grid],
        values,
        label="Cross-validated scores over norms and grid",
        strengths=0.08 + 0.92 * strengths,
        digits=3,
        width=520,
    )
    caption = (
        f"{score[:1].upper()}{score[1:]} by norm p (rows) and {_symbol(path.name)} (columns), "
        f'from {low:.3f} <span class="ramp"></span> to {high:.3f}.'
    )
    return figure(picture, caption)


# -- folds ----------------------------------------------------------------------------------------


def stability_section(model: ReportedModel) -> str:
    found = model.refits
    assert found.shares is not None
    values = found.shares
    n_folds = len(values)
    overlap = in_common(values)
    order = np.argsort(-np.maximum(model.weights.shares, values.max(axis=0)), kind="stable")
    ever_used = np.any(values > 0, axis=0) | (model.weights.shares > 0)
    shown = [int(k) for k in order[:24] if ever_used[k]]
    rows = [
        (
            model.labels[k],
            model.key(k),
            svg.colour(int(model.ranks[k])),
            float(model.weights.shares[k]),
            values[:, k].tolist(),
        )
        for k in shown
    ]
    picture = svg.strips(rows, label="Shares of kernels on folds", x_label="share of the weight")
    caption = "Grey bars: learned on all samples. Dots: learned without one fold."
    if len(shown) < np.count_nonzero(ever_used):
        caption += f" The {len(shown)} largest kernels are shown."
    elif len(shown) < len(ever_used):
        caption += " The other kernels never got any weight."
    caption += sampled(len(found.rows), found.n_all)
    always = int(np.count_nonzero(np.all(values > 0, axis=0)))
    ever = int(np.count_nonzero(np.any(values > 0, axis=0)))
    kernels = f"{always} kernel{'s' if always != 1 else ''}"
    if always == values.shape[1] > 1:
        steady = f"All {kernels} got weight every time"
    else:
        steady = f"{kernels} got weight every time, {ever} at least once"
    return (
        f"<p>The model was fitted {n_folds} more times, each time without a fifth of the samples. "
        "The weights of two such fits have, on average, "
        f"<strong>{percent(float(overlap))}</strong> in common. {steady}.</p>"
        f"{figure(picture, caption)}"
    )


def in_common(shares: np.ndarray) -> float:
    """The part of the weight that two refits have in common, on average over pairs."""
    pairs = [(a, b) for a in range(len(shares)) for b in range(a)]
    return float(np.mean([np.minimum(shares[a], shares[b]).sum() for a, b in pairs]))


# -- leaderboard ----------------------------------------------------------------------------------


def check_leaderboard(cv_results: Any) -> dict[str, Any] | None:
    """Check a leaderboard and return it as plain values."""
    if cv_results is None:
        return None
    board = cv_results.to_dict() if hasattr(cv_results, "to_dict") else cv_results
    if not isinstance(board, Mapping) or not {"metric", "greater_is_better", "rows"} <= set(board):
        raise ValueError(
            "cv_results must be a comparison as `multikernel compare --json` prints it: a mapping "
            f"with metric, greater_is_better and rows; got {type(cv_results).__name__}. The grid "
            "of a search is read from the estimator itself."
        )
    return dict(board)


def leaderboard_section(model: ReportedModel) -> str:
    board = model.board
    if board is None:
        return ""
    fine = [row for row in board["rows"] if not row.get("error")]
    sign = -1.0 if board["greater_is_better"] else 1.0
    fine.sort(key=lambda row: sign * row["mean"])
    scores = svg.finite([row.get("scores", [row["mean"]]) for row in fine]) if fine else np.zeros(1)
    errors = [_error(row) for row in fine]
    low = min([float(scores.min()), *(r["mean"] - e for r, e in zip(fine, errors, strict=True))])
    high = max([float(scores.max()), *(r["mean"] + e for r, e in zip(fine, errors, strict=True))])
    named = board.get("recommended")
    test = str(board.get("test", "paper"))
    body = [
        _board_row(row, row["name"] == named if named else i == 0, low, high, test)
        for i, row in enumerate(fine)
    ]
    body += [
        f'<tr class="zero"><th scope="row">{escape(str(row["name"]))}</th><td colspan="6">'
        f"could not be fitted: {escape(str(row['error']))}</td></tr>"
        for row in board["rows"]
        if row.get("error")
    ]
    metric = escape(str(board["metric"]))
    what = metric[:1].upper() + metric[1:]
    better = "larger is better" if board["greater_is_better"] else "smaller is better"
    how = ""
    if board.get("folds"):
        repeats = board.get("repeats", 1)
        how = f", {board['folds']}-fold cross-validation" + (
            f", {repeats} times" if repeats > 1 else ""
        )
    return (
        f'<p class="verdict">{escape(" ".join(board.get("conclusions", ())))}</p>'
        f"<p>{what} ({better}){how}. Parameters were chosen on training sets only. Kernel "
        "weightings are blue, other models orange.</p>"
        '<div class="scroll"><table class="leaderboard"><thead><tr><th scope="col">method</th>'
        f'<th scope="col" class="num">{metric}</th><th scope="col" class="num">± s.e.</th>'
        '<th scope="col">every split, mean, standard error</th><th scope="col">against uniform</th>'
        '<th scope="col">against best single</th><th scope="col" class="num">s per fit</th></tr>'
        "</thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
        f'<p class="note">{_how_tested(board)}</p>'
    )


def _how_tested(board: Mapping[str, Any]) -> str:
    if board.get("test", "paper") == "corrected":
        return (
            "Verdicts are one-sided t-tests over the splits, corrected for overlapping training "
            "sets (Nadeau and Bengio 2003), with p-values in brackets."
        )
    return (
        "Verdicts are one-sided paired t-tests over the splits, as in the papers. Because "
        "training sets overlap, small p-values occur too often."
    )


def _error(row: Mapping[str, Any]) -> float:
    error = row.get("standard_error")
    return 0.0 if error is None or not math.isfinite(error) else float(error)


def _board_row(row: Mapping[str, Any], strong: bool, low: float, high: float, test: str) -> str:
    mean, error = float(row["mean"]), _error(row)
    name = str(row["name"])
    cls = "c0" if row.get("kind", "weighting") == "weighting" else "c1"
    picture = svg.interval(
        mean, error, svg.finite(row.get("scores", [])).tolist(), low, high,
        f"{name}: {mean:.4f} ± {error:.4f}", cls,
    )  # fmt: skip
    seconds = row.get("seconds")
    return (
        f'<tr{" class=strong" if strong else ""}><th scope="row">{escape(name)}</th>'
        f'<td class="num">{mean:.4f}</td><td class="num">{error:.4f}</td><td>{picture}</td>'
        f"<td>{_verdict(row, 'against_uniform', test)}</td>"
        f"<td>{_verdict(row, 'against_best', test)}</td>"
        f'<td class="num">{"" if seconds is None else f"{seconds:.2f}"}</td></tr>'
    )


def _verdict(row: Mapping[str, Any], against: str, test: str) -> str:
    """Better or worse, with the p-value of the test that the table was made with."""
    found = row.get(against)
    if not found:
        return '<span class="soft">–</span>'
    ending = "_corrected" if test == "corrected" else ""
    sides = {side: float(found.get(f"p_{side}{ending}", 1.0)) for side in ("better", "worse")}
    side = min(sides, key=lambda name: sides[name])
    p = f' <span class="soft">[{sides[side]:.2f}]</span>'
    level = next((level for level in (0.05, 0.1) if sides[side] < level), None)
    if level is None:
        return f'<span class="soft">no significant difference</span>{p}'
    return f'<span class="{side}">{side} (p &lt; {level:g})</span>{p}'


# -- gap ------------------------------------------------------------------------------------------


def convergence_section(model: ReportedModel) -> str:
    histories = find_histories(model.estimator)
    gap = float(model.estimator.duality_gap_)
    reached = f"The relative duality gap at the end is {gap:.2g}."
    if not histories:
        return ""  # weights were found in one step; the top of the page shows the gap
    if len(histories) == 1 and gap < histories[0][1][-1]:  # the last step closed it further
        name, gaps = histories[0]
        histories = [(name, np.append(gaps, gap))]
    values = svg.finite(np.concatenate([gaps for _, gaps in histories]))
    positive, longest = values[values > 0], max(len(gaps) for _, gaps in histories)
    tol = getattr(model.estimator, "tol", None)
    # A logarithmic axis cannot show a gap of zero: draw it below all others.
    floor = max(float(positive.min()) / 2, 1e-16) if len(positive) else float(tol or 1e-15) / 10
    low = min([floor, *([float(tol) / 2] if tol else [])])
    chart = svg.Chart(
        (1, max(longest, 2)),
        (low, max(float(values.max()) * 1.5, low * 10, 3.0 * float(tol or 0.0))),
        label="Relative duality gap by iteration",
        x_label="iteration",
        y_label="relative duality gap",
        log_y=True,
        whole_x=True,
    )
    entries = []
    for j, (name, gaps) in enumerate(histories):
        key, colour, dashes = f"h{j}", svg.colour(j), svg.dash(j)
        seen = np.flatnonzero(np.isfinite(gaps))
        shown = np.maximum(gaps, floor)
        chart.line(seen + 1, shown[seen], colour, key=key, extra=dashes)
        for i in seen[:: max(1, len(seen) // 200)]:
            title = f"{name}, iteration {i + 1}: {gaps[i]:.2g}"
            chart.dot(float(i + 1), float(shown[i]), colour, title, key=key, r=3)
        entries.append((key, colour, dashes, name))
    if tol:
        chart.level(float(tol), f"tolerance {tol:g}")
    key_list = svg.legend(entries, "Machines") if len(entries) > 1 else ""
    caption = "Distance of the objective from its proven lower bound at each step."
    return f"<p>{reached}</p>" + figure(chart.close(), caption, key_list)
