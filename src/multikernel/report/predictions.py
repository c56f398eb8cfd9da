"""The section of the page about predictions for samples that were held out."""

from __future__ import annotations

from html import escape

import numpy as np
from sklearn.metrics import auc, precision_recall_curve, roc_curve

from ..estimators.assessment import assess
from . import svg
from .held_out import HeldOut
from .sections import ReportedModel, figure, percent

#: Maximum number of classes with curves and rows of their own: the largest ones.
MAX_CLASSES = 10
#: Maximum number of dots in a scatter plot of predictions.
MAX_DOTS = 1500


def predictions_section(model: ReportedModel) -> str:
    found = model.held_out
    if found is None or not len(found.rows):
        return ""
    verdict = assess(model.estimator, model.y) if found.how.startswith("each") else None
    parts = []
    if verdict is not None:
        parts.append(f'<p class="verdict">{escape(verdict.headline)}</p>')
        remarks = [r for r in verdict.remarks if not r.startswith("Classes are")]
        parts += [f"<p>{escape(remark)}</p>" for remark in remarks]
    m = len(found.rows)
    parts.append(f"<p>Predictions for {m:,} samples, {found.how}.</p>")
    if hasattr(model.estimator, "classes_"):
        parts.append(_classification(model, found))
    else:
        parts.append(_regression(model, found))
    return "".join(parts)


# -- classes --------------------------------------------------------------------------------------


def _classification(model: ReportedModel, found: HeldOut) -> str:
    classes = np.asarray(model.estimator.classes_)
    counts = np.array([np.count_nonzero(found.truth == c) for c in classes])
    shown = np.sort(np.argsort(-counts, kind="stable")[:MAX_CLASSES])
    parts = [f'<div class="pair">{_confusion(found, classes[shown], len(classes))}']
    parts.append(f"<div>{_class_table(found, classes[shown])}</div></div>")
    curves = [_roc(found, classes, shown), _precision_recall(found, classes, shown)]
    if found.probabilities is not None:
        curves.append(_calibration(found, classes))
    return "".join([*parts, f'<div class="three wide">{"".join(curves)}</div>'])


def _confusion(found: HeldOut, classes: np.ndarray, n_classes: int) -> str:
    table = np.array(
        [[np.count_nonzero((found.truth == a) & (found.answers == b)) for b in classes]
         for a in classes], dtype=float)  # fmt: skip
    totals = np.array([max(np.count_nonzero(found.truth == a), 1) for a in classes])
    names = [str(c) for c in classes]
    right = np.eye(len(classes), dtype=bool)
    strengths = table / totals[:, None]
    strengths = np.where(right, strengths, -strengths)
    picture = svg.heatmap(
        names,
        names,
        table,
        label="Confusion matrix: rows are true classes, columns are predictions",
        strengths=strengths,
        digits=0,
        width=440,
        wide_cells=True,
    )
    more = "" if len(classes) == n_classes else f" The {len(classes)} largest classes are shown."
    caption = (
        "<b>Confusion matrix</b>: true classes in rows, predicted classes in columns. Blue is "
        f"right, red is wrong; darker cells hold a larger share of their row.{more}"
    )
    return figure(picture, caption)


def _class_table(found: HeldOut, classes: np.ndarray) -> str:
    rows = []
    for label in classes:
        true, said = found.truth == label, found.answers == label
        hits = np.count_nonzero(true & said)
        precision = f"{hits / said.sum():.3f}" if said.any() else "–"
        recall = f"{hits / true.sum():.3f}" if true.any() else "–"
        rows.append(
            f'<tr><th scope="row">{escape(str(label))}</th><td class="num">{true.sum():,}</td>'
            f'<td class="num">{said.sum():,}</td><td class="num">{precision}</td>'
            f'<td class="num">{recall}</td></tr>'
        )
    wrong = int(np.count_nonzero(found.truth != found.answers))
    return (
        f"<p>{wrong:,} of {len(found.rows):,} samples are predicted wrongly "
        f"({percent(wrong / len(found.rows))}).</p>"
        '<div class="scroll"><table><thead><tr><th scope="col">class</th><th scope="col" '
        'class="num">samples</th><th scope="col" class="num">predicted</th><th scope="col" '
        'class="num">precision</th><th scope="col" class="num">recall</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _each(
    found: HeldOut, classes: np.ndarray, shown: np.ndarray
) -> list[tuple[int, str, np.ndarray, np.ndarray]]:
    """(class index, name, mask of the class, score) of every curve; one curve for two classes."""
    assert found.decisions is not None
    values = np.where(np.isfinite(found.decisions), found.decisions, -1e30)
    if len(classes) == 2:
        return [(0, str(classes[1]), found.truth == classes[1], values[:, 0])]
    each = [(int(c), str(classes[c]), found.truth == classes[c], values[:, c]) for c in shown]
    return [one for one in each if 0 < one[2].sum() < len(one[2])]


def _curve_chart(label: str, x_label: str, y_label: str) -> svg.Chart:
    return svg.Chart(
        (0.0, 1.0), (0.0, 1.02), label=label, x_label=x_label, y_label=y_label, size=(360, 320)
    )


def _roc(found: HeldOut, classes: np.ndarray, shown: np.ndarray) -> str:
    chart = _curve_chart("ROC curve", "false positive rate", "true positive rate")
    chart.line([0, 1], [0, 1], "level")
    entries = []
    for c, name, own, score in _each(found, classes, shown):
        fpr, tpr, _ = roc_curve(own, score)
        area = auc(fpr, tpr)
        keep = _thin(len(fpr))
        title = f"{name}: area {area:.3f}"
        chart.line(fpr[keep], tpr[keep], svg.colour(c), key=f"y{c}", title=title)
        entries.append((f"y{c}", svg.colour(c), "", f"{name}, AUC {area:.3f}"))
    together = " of all folds together; scores above are means over folds"
    caption = f"<b>ROC curve</b>{together if 'cross-validation' in found.how else ''}"
    return figure(chart.close(), caption, svg.legend(entries, "Classes"))


def _precision_recall(found: HeldOut, classes: np.ndarray, shown: np.ndarray) -> str:
    chart = _curve_chart("Precision and recall", "recall", "precision")
    entries = []
    for c, name, own, score in _each(found, classes, shown):
        precision, recall, _ = precision_recall_curve(own, score)
        keep = _thin(len(recall))
        base = float(own.mean())
        title = f"{name}: {percent(base)} of the samples"
        chart.line(recall[keep], precision[keep], svg.colour(c), key=f"y{c}", title=title)
        entries.append((f"y{c}", svg.colour(c), "", f"{name}, by chance {base:.3f}"))
    return figure(chart.close(), "<b>Precision and recall</b>", svg.legend(entries, "Classes"))


def _thin(n: int, most: int = 250) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def _calibration(found: HeldOut, classes: np.ndarray) -> str:
    """Calibration curve: observed frequency against predicted probability."""
    assert found.probabilities is not None
    if len(classes) == 2:
        given, right = found.probabilities[:, 1], found.truth == classes[1]
        x_label, y_label = f"probability of {str(classes[1])[:14]}", "observed frequency"
    else:
        given, right = found.probabilities.max(axis=1), found.truth == found.answers
        x_label, y_label = "probability of the predicted class", "share of correct predictions"
    chart = _curve_chart("Calibration", x_label, y_label)
    chart.line([0, 1], [0, 1], "level")
    order = np.argsort(given, kind="stable")
    bins = [part for part in np.array_split(order, min(10, max(2, len(order) // 15))) if len(part)]
    xs = [float(given[part].mean()) for part in bins]
    ys = [float(right[part].mean()) for part in bins]
    chart.line(xs, ys, "c0")
    for part, x, y in zip(bins, xs, ys, strict=True):
        error = float(np.sqrt(max(y * (1 - y), 1e-4) / len(part)))
        chart.bar(x, max(y - error, 0.0), min(y + error, 1.0), "c0")
        chart.dot(x, y, "c0", f"{len(part)} samples with probability {x:.2f} on average: {y:.2f}")
    caption = (
        "<b>Calibration</b>: groups of equal size; perfect probabilities lie on the dashed line"
    )
    return figure(chart.close(), caption)


# -- numbers --------------------------------------------------------------------------------------


def _regression(model: ReportedModel, found: HeldOut) -> str:
    truth = np.asarray(found.truth, dtype=np.float64)
    answers = np.asarray(found.answers, dtype=np.float64)
    residuals = truth - answers
    rmse, mae = float(np.sqrt(np.mean(residuals**2))), float(np.mean(np.abs(residuals)))
    spread = float(truth.std())
    dots = np.unique(np.linspace(0, len(truth) - 1, min(len(truth), MAX_DOTS)).astype(int))
    low, high = float(min(truth.min(), answers.min())), float(max(truth.max(), answers.max()))
    chart = svg.Chart(
        (low, high), (low, high), label="Actual against predicted", x_label="predicted",
        y_label="actual", size=(440, 400),
    )  # fmt: skip
    chart.line([low, high], [low, high], "level")
    other = svg.Chart(
        (float(answers.min()), float(answers.max())),
        (float(residuals.min()), float(residuals.max())),
        label="Residuals",
        x_label="predicted",
        y_label="actual - predicted",
        size=(440, 400),
    )
    other.level(0.0, "")
    for i in dots:
        said = f"row {model.about.row(int(found.rows[i]))}: {svg.number(truth[i], 4)}, predicted "
        said += svg.number(answers[i], 4)
        chart.dot(answers[i], truth[i], "c0 faintly", said, r=3)
        other.dot(answers[i], residuals[i], "c0 faintly", said, r=3)
    order = np.argsort(answers, kind="stable")
    for part in np.array_split(order, min(8, max(1, len(order) // 20))):
        if len(part) > 4:
            chart_mean = float(residuals[part].mean())
            other.dot(float(answers[part].mean()), chart_mean, "c1",
                      f"mean of {len(part)} samples: {svg.number(chart_mean)}", r=5)  # fmt: skip
    caption = "<b>Actual against predicted</b>: perfect predictions lie on the dashed line"
    drawn = "" if len(dots) == len(truth) else f" {len(dots):,} of {len(truth):,} are shown."
    rest = (
        "<b>Residuals</b>; orange: means over samples with similar predictions, zero where the "
        "model "
    )
    return (
        f"<p>Root mean squared error {svg.number(rmse)}, mean absolute error {svg.number(mae)}; "
        f"the target has a standard deviation of {svg.number(spread)}.{drawn}</p>"
        f'<div class="pair">{figure(chart.close(), caption)}'
        f"{figure(other.close(), rest + 'is right on average')}</div>"
    )
