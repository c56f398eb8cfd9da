"""``multikernel explain``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options as o
from .common import Out, check_places, command

if TYPE_CHECKING:
    import numpy as np


@command
def explain(
    model: o.Model,
    data: o.Data,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the shares of all rows to this file.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Number of rows to show.")] = 10,
    target: o.TargetColumn = None,
    format: o.Format = None,
    encoding: o.Encoding = None,
    force: o.Force = False,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Show each kernel's and each view's share of every prediction.

    Shares and the intercept add up to the prediction, or to the decision value of the predicted
    class (with two classes, always of the second).

    [bold]Example[/]

    multikernel explain wine.skops new-wines.csv --rows 5 --out shares.csv
    """
    from ..tables import read_frame, write_columns
    from .problem import as_table_model, load_model, texts_of

    say = Out(quiet, as_json)
    check_places(tables=out, force=force)
    with say.progress(f"Reading {model.name} and {data.name}"):
        loaded = load_model(model)
        frame = read_frame(data, format=format, encoding=encoding, texts=texts_of(loaded))
        table = as_table_model(loaded, frame, target)
    with say.progress(f"Explaining {len(frame)} rows"):
        shares = Shares.of(table.estimator, table.features(frame))
    if out is not None:
        write_columns(shares.columns(), out)
        say.note(f"Shares of {len(frame)} rows: {out}")
    say.show(shares.table(rows))
    say.result({"rows": len(frame), "out": out, **shares.to_dict(len(frame) if out is None else 0)})


class Shares:
    """Every kernel's share of every prediction.

    Attributes
    ----------
    answers : array of shape (n,)
    values : array of shape (n,)
        The prediction, or the decision value of the predicted class; with two classes, that of the
        second.
    intercepts : array of shape (n,)
    kernels : dict of name to array of shape (n,)
        Shares of the kernels in use; ``values = sum of them + intercepts``.
    views : dict of name to array of shape (n,)
        Sums of the shares by view; empty if no kernel belongs to a view.
    """

    def __init__(
        self,
        answers: np.ndarray,
        values: np.ndarray,
        intercepts: np.ndarray,
        kernels: dict[str, np.ndarray],
    ) -> None:
        from ..kernels.bank import view_of

        self.answers, self.values, self.intercepts = answers, values, intercepts
        self.kernels = kernels
        self.views: dict[str, np.ndarray] = {}
        for name, share in kernels.items():
            view = view_of(name)
            if view:
                self.views[view] = self.views.get(view, 0.0) + share

    @classmethod
    def of(cls, estimator: Any, X: Any) -> Shares:
        """The shares in the predictions of an estimator for the rows X."""
        import numpy as np

        answers = np.asarray(estimator.predict(X))
        n = len(answers)
        if hasattr(estimator, "decision_function"):
            split = estimator.decision_function(X, split=True)
        else:
            split = estimator.predict(X, split=True)
        split = split.reshape(n, split.shape[1], -1)
        # In some spectral families all members are functions of one kernel, which predicts.
        names = estimator.kernel_names_
        names = names if len(names) == split.shape[1] else estimator.plan_.names
        column = np.zeros(n, dtype=int)
        if split.shape[2] > 1:
            if not hasattr(estimator, "classes_"):
                raise ValueError(
                    "Models with several outputs cannot be explained; fit one model per output."
                )
            column = np.searchsorted(estimator.classes_, answers)
        parts = split[np.arange(n), :, column]
        if hasattr(estimator, "offset_"):
            intercepts = np.full(n, -float(estimator.offset_))
        else:
            intercepts = np.broadcast_to(np.ravel(estimator.intercept_), (split.shape[2],))[column]
        used = np.flatnonzero(np.any(split != 0, axis=(0, 2)))
        kernels = {names[k]: parts[:, k] for k in used}
        return cls(answers, parts.sum(axis=1) + intercepts, intercepts, kernels)

    def columns(self) -> dict[str, Any]:
        """Predictions, values, intercepts and shares as named columns."""
        columns = {
            "prediction": self.answers,
            "value": self.values,
            "intercept": self.intercepts,
            **self.kernels,
        }
        return columns | {f"view {name}": share for name, share in self.views.items()}

    def table(self, rows: int) -> Any:
        """A table of the first rows, with the largest shares by view, or else by kernel."""
        import numpy as np
        from rich.box import SIMPLE
        from rich.table import Table

        rows = min(rows, len(self.answers))
        groups, kind = (self.views, "view") if self.views else (self.kernels, "kernel")
        sizes = {name: float(np.abs(share).mean()) for name, share in groups.items()}
        first = sorted(sizes, key=lambda name: -sizes[name])[:4]
        title = f"Shares by {kind}, rows 1 to {rows} of {len(self.answers)}"
        heads = first
        if max(map(len, first), default=0) > 10:  # long names go beside the table
            heads = [f"#{j + 1}" for j in range(len(first))]
            listed = [f"{head}  {name}" for head, name in zip(heads, first, strict=True)]
            title = "\n".join([title, *listed])
        table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 0, 0, 1))
        table.add_column("row", justify="right")
        table.add_column("prediction")
        with_value = self.answers.dtype.kind != "f"  # for regression both are the same
        if with_value:
            table.add_column("value", justify="right")
        table.add_column("intercept", justify="right")
        for head in heads:
            table.add_column(head, justify="right")
        rest = [name for name in groups if name not in first]
        if rest:
            table.add_column(f"{len(rest)} others", justify="right")
        for i in range(rows):
            cells = [f"{self.values[i]:+.3f}"] if with_value else []
            cells.append(f"{self.intercepts[i]:+.3f}")
            cells += [f"{groups[name][i]:+.3f}" for name in first]
            if rest:
                cells.append(f"{sum(groups[name][i] for name in rest):+.3f}")
            table.add_row(
                str(i + 1),
                _short(self.answers[i]),
                *cells,
            )
        return table

    def to_dict(self, rows: int) -> dict[str, Any]:
        """Mean sizes of the shares, and the shares of the first rows."""
        import numpy as np

        return {
            "mean_absolute_share": {n: float(np.abs(s).mean()) for n, s in self.kernels.items()},
            "mean_absolute_view_share": {n: float(np.abs(s).mean()) for n, s in self.views.items()},
            "shares": {name: values[:rows] for name, values in self.columns().items()},
        }


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def register(app: typer.Typer) -> None:
    app.command("explain")(explain)
