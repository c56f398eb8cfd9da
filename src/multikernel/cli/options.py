"""The arguments and options that several commands have, with their help."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class FormatName(StrEnum):
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    arrow = "arrow"
    npz = "npz"
    libsvm = "libsvm"
    excel = "excel"


class TaskName(StrEnum):
    auto = "auto"
    classification = "classification"
    regression = "regression"


class TestName(StrEnum):
    corrected = "corrected"
    paper = "paper"


class ImputeName(StrEnum):
    median = "median"


class CategoriesName(StrEnum):
    onehot = "onehot"
    kernel = "kernel"


class LossName(StrEnum):
    squared = "squared"
    hinge = "hinge"
    logistic = "logistic"
    epsilon = "epsilon_insensitive"


DATA_HELP = "Data file: .csv .tsv .xlsx .parquet .arrow .feather .npz .libsvm (text also .gz)."

Data = Annotated[Path, typer.Argument(help=DATA_HELP, show_default=False)]
Model = Annotated[
    Path, typer.Argument(help="Model file that fit or mk.save has written.", show_default=False)
]
Format = Annotated[
    FormatName | None,
    typer.Option("--format", help="Format of the data, where the file's name does not say it."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", help="Encoding of a text file, such as latin1 or utf-16. [default: utf-8]"
    ),
]
Dates = Annotated[
    bool, typer.Option("--dates", help="Read columns of dates as days since 1970-01-01.")
]
Sample = Annotated[
    int | None,
    typer.Option("--sample", min=10, help="Use this many rows only, drawn at random."),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        help="Column that names groups, such as patients: rows of a group stay in one fold. It is "
        "not learned from.",
    ),
]
TargetColumn = Annotated[
    str | None,
    typer.Option("--target", "-y", help="Column to predict. LIBSVM files name it themselves."),
]
Task = Annotated[
    TaskName,
    typer.Option("--task", help="What kind of problem it is; auto decides and says which."),
]
Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernels",
        "-k",
        help="What to combine, several times if you like: default, 'gaussians([0.1, 1])', "
        "'Polynomial(degree=2)', 'Linear() + Gaussian(gamma=0.5)'.",
    ),
]
Weighting = Annotated[
    list[str] | None,
    typer.Option(
        "--weighting",
        "-w",
        help="uniform, best, align, alignf, correlation, lp, l1, l2-ball, or such as "
        "'LpNorm(p=1.5)'. Of several, cross-validation chooses. [default: loo]",
        show_default=False,
    ),
]
Views = Annotated[
    Path | None,
    typer.Option(
        "--views", help="TOML file: which columns make up which view, with which kernels."
    ),
]
Impute = Annotated[
    ImputeName | None,
    typer.Option(
        "--impute",
        help="median: fill missing numbers with the median, missing categories with the most "
        "frequent. Without it missing values are refused.",
    ),
]
Categories = Annotated[
    CategoriesName,
    typer.Option(
        "--categories",
        help="onehot: categories are columns of zeros and ones like others. kernel: each gets a "
        "kernel of its own.",
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option("--categorical", help="Column of numbers that is a category (repeatable)."),
]
Drop = Annotated[list[str] | None, typer.Option("--drop", help="Column to leave out (repeatable).")]
Folds = Annotated[int, typer.Option("--folds", min=2, help="Folds of the cross-validation.")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on where an earlier run of the same command was stopped; its checkpoint lies "
        "beside the output.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything that is random.")]
Jobs = Annotated[int, typer.Option("--jobs", help="Threads; -1 for all cores.")]
Device = Annotated[
    str | None,
    typer.Option("--device", help="Where to compute: cuda, cuda:1, or cpu with the code of GPUs."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No remarks, no progress.")]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on the standard output, nothing else.")
]
Report = Annotated[
    Path | None, typer.Option("--report", help="Also write a report, one HTML page, to this file.")
]
Chunks = Annotated[
    bool,
    typer.Option(
        "--chunks",
        help="Read the rows in chunks and learn from features of the kernels: any number of rows, "
        "in bounded memory. DATA may be a folder of files.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="Make the passes over the chunks on a dask cluster; the address of its scheduler, "
        "such as tcp://host:8786. Every worker must see the data under the same path.",
    ),
]
Approximation = Annotated[
    str | None,
    typer.Option(
        "--approximation",
        help="With --chunks: the features, such as 'Nystroem(rank=500)' or "
        "'RandomFeatures(n_features=200)'. [default: Nystroem()]",
        show_default=False,
    ),
]
Loss = Annotated[
    LossName | None,
    typer.Option(
        "--loss",
        help="With --chunks: squared takes one pass over the rows; hinge and logistic (for "
        "classes) take several. [default: squared]",
        show_default=False,
    ),
]
