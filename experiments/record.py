"""What the experiments share: tasks that go on where they stopped, tables beside the printed ones.

An experiment is a list of *tasks*, tuples of text and numbers (data set, repetition, method, ...),
and a function that makes the rows of one task. `Options` are the keywords that every experiment
accepts. `compute` runs what is missing and keeps every finished task as one line of a file, so that
a run that was interrupted goes on where it stopped: half a line is passed over. `select`,
`distinct` and `Results` read columns of the rows. `Record` holds the rows with the tables, verdicts
and pictures drawn from them, prints itself as Markdown and saves CSV, Markdown and PNG.
"""

from __future__ import annotations

import argparse
import inspect
import json
import platform
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import joblib
import numpy as np
from scipy.stats import ttest_rel
from threadpoolctl import threadpool_limits

from multikernel._places import append_line, save_figure, whole_lines, write_atomically, write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = TypeVar("Row")
Task = tuple[Hashable, ...]

#: packages whose versions are written beside the results
PACKAGES = ("multikernel", "numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and whether it holds here."""

    text: str
    #: "yes", or what the paper leaves open
    printed: str
    #: "yes", "no" or "undecided"
    ours: str
    detail: str = ""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.text}: printed {self.printed}, ours {self.ours}{detail}"


# -- running --------------------------------------------------------------------------------------


def compute(
    work: Callable[..., Sequence[Row]],
    tasks: Iterable[Task],
    kind: type[Row],
    *,
    path: Path | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
    title: str = "",
) -> list[Row]:
    """Rows of all tasks, in their order; what `path` holds already is not computed again.

    Parameters
    ----------
    work : callable
        ``work(*task)`` gives the rows of a task. It runs with one BLAS thread, perhaps in another
        process, and must depend on nothing but its arguments: every seed is among them.
    tasks : iterable of tuples
        Arguments of `work`: text, numbers and truth values.
    kind : dataclass
        The type of a row; its fields are text, numbers and lists of them.
    path : Path or None
        A file of finished tasks, one JSON object a line.
    n_jobs : int or None
        Processes, -1 for all cores.
    progress : bool
        Show a progress bar called `title`.
    """
    wanted = list(dict.fromkeys(tasks))
    kept = {} if path is None else _finished(path, kind)
    missing = [task for task in wanted if task not in kept]
    pool = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    results = pool(joblib.delayed(_one)(work, task) for task in missing)
    for task, rows, seconds in _tracked(results, len(missing), progress, title):
        kept[task] = list(rows)
        if path is not None:
            _append(path, task, rows, seconds)
    return [row for task in wanted for row in kept[task]]


@dataclass(frozen=True)
class Options:
    """The keywords that the function `run` of every experiment accepts.

    Parameters
    ----------
    quick : bool, default=False
        Run a small version. Each `run` says what it leaves out.
    seed : int, default=0
        Where the random numbers of data, splits and folds begin.
    n_jobs : int or None, default=None
        Processes, -1 for all cores; BLAS has one thread in each.
    out : path or None, default=None
        Folder in which finished tasks are kept.
    progress : bool, default=False
        Show a progress bar.

    Examples
    --------
    >>> Options(quick=True).stem("toy")
    'toy-quick'
    """

    quick: bool = False
    seed: int = 0
    n_jobs: int | None = None
    out: str | Path | None = None
    progress: bool = False

    def stem(self, experiment: str) -> str:
        """Return the name of the files of results, without their ending."""
        return f"{experiment}-quick" if self.quick else experiment

    def seeds(self, times: int) -> range:
        """Return one seed for each of so many draws: the given one, and those that follow it."""
        return range(self.seed, self.seed + times)

    def compute(
        self,
        work: Callable[..., Sequence[Row]],
        tasks: Iterable[Task],
        kind: type[Row],
        *,
        kept: str,
        title: str,
    ) -> list[Row]:
        """Return the rows of all tasks, as `compute` does; finished ones are in ``kept.jsonl``."""
        path = None if self.out is None else Path(self.out) / f"{kept}.jsonl"
        return compute(
            work, tasks, kind, path=path, n_jobs=self.n_jobs, progress=self.progress, title=title
        )


def require_known(parameter: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise an error that names the first of the given names that is not known.

    Examples
    --------
    >>> require_known("names", ["heart", "hart"], ["heart", "sonar"])
    Traceback (most recent call last):
        ...
    ValueError: names must be among heart, sonar; got 'hart'.
    """
    known = list(known)
    for name in given:
        if name not in known:
            raise ValueError(f"{parameter} must be among {', '.join(known)}; got {name!r}.")


def _one(work: Callable[..., Sequence[Row]], task: Task) -> tuple[Task, Sequence[Row], float]:
    started = time.perf_counter()
    with threadpool_limits(limits=1):
        rows = work(*task)
    return task, rows, time.perf_counter() - started


def _tracked(
    results: Iterable[tuple[Task, Sequence[Row], float]], total: int, progress: bool, title: str
) -> Iterator[tuple[Task, Sequence[Row], float]]:
    if not progress or not total:
        yield from results
        return
    from rich.progress import track

    yield from track(results, title, total=total)


def _finished(path: Path, kind: type[Row]) -> dict[Task, list[Row]]:
    """Rows of the whole lines of the file; broken ones are computed again."""
    kept: dict[Task, list[Row]] = {}
    for line in whole_lines(path):
        try:
            found = json.loads(line)
            kept[tuple(found["task"])] = [kind(**row) for row in found["rows"]]
        except (ValueError, KeyError, TypeError):
            continue
    return kept


def _append(path: Path, task: Task, rows: Sequence[Any], seconds: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {
        "task": task,
        "seconds": round(seconds, 3),
        "versions": versions(),
        "rows": [asdict(row) for row in rows],
    }
    append_line(path, json.dumps(line, default=_plain))


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON knows them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be kept in a file of results.")


def versions() -> dict[str, str]:
    """What the results were made with."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


# -- selecting ------------------------------------------------------------------------------------


def select(rows: Iterable[Any], field: str, /, **where: Any) -> np.ndarray:
    """Return one field of the rows whose other fields have the given values, in their order.

    Examples
    --------
    >>> rows = [Claim("a", "yes", "no"), Claim("b", "yes", "yes"), Claim("c", "open", "no")]
    >>> print(select(rows, "text", ours="no"))
    ['a' 'c']
    """
    names, wanted = tuple(where), tuple(where.values())
    return np.array(
        [
            getattr(row, field)
            for row in rows
            if tuple(getattr(row, name) for name in names) == wanted
        ]
    )


def distinct(rows: Iterable[Any], field: str) -> list[Any]:
    """Return the values of a field, each once, in the order in which they first occur."""
    return list(dict.fromkeys(getattr(row, field) for row in rows))


@dataclass(frozen=True)
class Results(Generic[Row]):
    """Rows of an experiment; subclasses add its tables and verdicts."""

    rows: Sequence[Row]

    @property
    def sets(self) -> list[str]:
        """Names of the data sets, in the order of the rows."""
        return distinct(self.rows, "data")


# -- telling --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """Rows of an experiment with what is drawn from them; `print` it for Markdown.

    Parameters
    ----------
    name : str
        Of the files that `save` writes.
    title : str
        What was reproduced.
    rows : sequence of dataclasses
        Raw results.
    tables : mapping of str to str
        Caption and Markdown table (`markdown` makes one).
    claims : sequence of Claim
        Verdicts.
    notes : str
        A closing paragraph: times, what did not converge.
    figure : callable or None
        Draws the picture: takes nothing, gives a matplotlib figure.
    further_figures : mapping of str to callable
        Further pictures, each with what is added to the name of its file.
    """

    name: str
    title: str
    rows: Sequence[Any]
    tables: Mapping[str, str] = field(default_factory=dict)
    claims: Sequence[Claim] = ()
    notes: str = ""
    figure: Callable[[], Figure] | None = None
    further_figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [f"# {self.title}"]
        for caption, table in self.tables.items():
            parts += [f"## {caption}", table]
        if self.claims:
            parts += ["## Claims", verdicts(self.claims)]
        if self.notes:
            parts.append(self.notes)
        return "\n\n".join(parts)

    def save(self, out: str | Path) -> list[Path]:
        """Write ``name.csv``, ``name.md`` and a PNG of every figure; the paths written.

        Without matplotlib there is no picture, and a warning says so.
        """
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / f"{self.name}.csv", folder / f"{self.name}.md"]
        records = [asdict(row) for row in self.rows]
        write_csv(written[0], records)
        made = ", ".join(f"{name} {number}" for name, number in versions().items())
        write_atomically(written[1], f"{self}\n\nMade with {made}.\n")
        figures = {} if self.figure is None else {f"{self.name}.png": self.figure}
        figures |= {f"{self.name}-{key}.png": draw for key, draw in self.further_figures.items()}
        if figures and find_spec("matplotlib") is None:
            needs = "needs" if len(figures) == 1 else "need"
            warnings.warn(
                f"{', '.join(figures)} {needs} matplotlib, which is not installed: pip install "
                "matplotlib. The tables are written.",
                stacklevel=2,
            )
            return written
        for name, draw in figures.items():
            written.append(folder / name)
            save_figure(draw(), written[-1], dpi=150, bbox_inches="tight")
        return written


def panels(n_columns: int, n_rows: int = 1, **options: Any) -> tuple[Figure, np.ndarray]:
    """A figure with a grid of axes, ``(n_rows, n_columns)``; nothing of pyplot keeps it alive."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * n_columns, 2.8 * n_rows), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **options)


def key_above(figure: Figure, ax: Any) -> None:
    """The key of one of the axes above all of them, where it hides nothing."""
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right", ncols=2)


def dots(
    ax: Any,
    names: Sequence[str],
    ours: Sequence[np.ndarray],
    printed: Sequence[tuple[float, float] | None] = (),
) -> None:
    """Means and standard deviations, a line for each name: ours, and what is printed beside."""
    at = np.arange(len(names))
    kept = [np.asarray(v)[~np.isnan(v)] for v in ours]
    means = [v.mean() if len(v) else np.nan for v in kept]
    bars = [v.std(ddof=1) if len(v) > 1 else 0.0 for v in kept]
    ax.errorbar(means, at, xerr=bars, fmt="o", label="here")
    beneath = np.array([(*pair, i + 0.2) for i, pair in enumerate(printed) if pair is not None])
    if len(beneath):
        ax.errorbar(beneath[:, 0], beneath[:, 2], xerr=beneath[:, 1], fmt="x", label="printed")
    ax.set_yticks(at, names)
    ax.set_ylim(len(names) - 0.5, -0.5)


def markdown(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A Markdown table.

    Examples
    --------
    >>> print(markdown(["data", "error"], [["sonar", 0.2]]))
    | data | error |
    |---|---|
    | sonar | 0.2 |
    """
    rows = ["| " + " | ".join(map(str, line)) + " |" for line in (head, *lines)]
    return "\n".join([rows[0], "|" + "---|" * len(head), *rows[1:]])


def verdicts(claims: Iterable[Claim]) -> str:
    """Claims as a Markdown table."""
    return markdown(
        ["claim", "printed", "ours", "detail"],
        ([c.text, c.printed, c.ours, c.detail] for c in claims),
    )


def spread(values: Sequence[float] | np.ndarray, digits: int = 3) -> str:
    """Mean and standard deviation, as the papers print them.

    Examples
    --------
    >>> spread([0.1, 0.2, 0.3])
    '0.200 ± 0.100'
    """
    found = np.asarray(values, dtype=np.float64)
    deviation = found.std(ddof=1) if len(found) > 1 else 0.0
    return f"{found.mean():.{digits}f} ± {deviation:.{digits}f}"


def beside(
    values: Sequence[float] | np.ndarray, printed: tuple[float, float] | None, digits: int = 3
) -> list[str]:
    """Three cells: ours, printed, and the difference of means in printed standard deviations.

    Examples
    --------
    >>> beside([0.1, 0.2, 0.3], (0.15, 0.05))
    ['0.200 ± 0.100', '0.150 ± 0.050', '+1.0']
    >>> beside([0.1, 0.2, 0.3], None)
    ['0.200 ± 0.100', '', '']
    """
    if printed is None:
        return [spread(values, digits), "", ""]
    mean, deviation = printed
    difference = float(np.mean(values)) - mean
    units = f"{difference / deviation:+.1f}" if deviation > 0 else ""
    return [spread(values, digits), f"{mean:.{digits}f} ± {deviation:.{digits}f}", units]


def better(
    errors: Sequence[float] | np.ndarray, rival: Sequence[float] | np.ndarray, level: float = 0.1
) -> bool:
    """Whether errors on the same folds are significantly smaller: paired one-sided t test.

    As in Tables 4 and 5 of Cortes, Mohri and Rostamizadeh 2012, whose level is the default.

    Examples
    --------
    >>> better([0.1, 0.2, 0.3], [0.2, 0.31, 0.38]), better([0.1, 0.2, 0.3], [0.2, 0.31, 0.1])
    (True, False)
    """
    apart = np.subtract(errors, rival)
    if np.ptp(apart) == 0:  # the same difference on every fold: nothing is left to chance
        return bool(apart[0] < 0)
    return bool(ttest_rel(errors, rival, alternative="less").pvalue < level)


# -- the command line of one module ---------------------------------------------------------------

COMMON = tuple(option.name for option in fields(Options))


def main(
    run: Callable[..., Record], module: str, title: str, arguments: Sequence[str] | None = None
) -> None:
    """The command line of an experiment: ``python -m experiments.NAME``.

    What `run` takes beside the options of every experiment, whole numbers and lists of names, are
    options too.
    """
    parser = argparse.ArgumentParser(prog=f"python -m experiments.{module}", description=title)
    parser.add_argument("--quick", action="store_true", help="a small version, minutes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1, help="processes, -1 for all cores")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for results")
    own = []
    for name, parameter in inspect.signature(run).parameters.items():
        kind = str(parameter.annotation)
        if name in COMMON or not kind.startswith(("int", "Sequence[str]")):
            continue
        several: dict[str, Any] = {"type": int} if kind.startswith("int") else {"nargs": "*"}
        parser.add_argument(f"--{name}", default=parameter.default, **several)
        own.append(name)
    given = parser.parse_args(arguments)
    found = run(
        quick=given.quick,
        seed=given.seed,
        n_jobs=given.jobs,
        out=given.out,
        progress=True,
        **{name: getattr(given, name) for name in own},
    )
    print(found)
    for path in found.save(given.out):
        print(f"wrote {path}")
