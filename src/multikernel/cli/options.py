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
    Path, typer.Argument(help="Model file written by fit or mk.save.", show_default=False)
]
Format = Annotated[
    FormatName | None,
    typer.Option("--format", help="Format of the data, if the file ending does not show it."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", help="Encoding of a text file, such as latin1 or utf-16. \\[default: utf-8]"
    ),
]
Dates = Annotated[
    bool, typer.Option("--dates", help="Read columns of dates as days since 1970-01-01.")
]
Sample = Annotated[
    int | None,
    typer.Option("--sample", min=10, help="Use only this many rows, drawn at random."),
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        help="Column that names groups, such as patients: rows of a group stay in the same fold. "
        "The column is not used as a feature.",
    ),
]
TargetColumn = Annotated[
    str | None,
    typer.Option("--target", "-y", help="Column to predict. Not needed for LIBSVM files."),
]
Task = Annotated[
    TaskName,
    typer.Option(
        "--task", help="Kind of problem; auto decides from the target and reports its choice."
    ),
]
Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernels",
        "-k",
        help="Kernels to combine (repeatable): default, 'gaussians([0.1, 1])', "
        "'Polynomial(degree=2)', 'Linear() + Gaussian(gamma=0.5)'.",
    ),
]
Weighting = Annotated[
    list[str] | None,
    typer.Option(
        "--weighting",
        "-w",
        help="loo, uniform, best, align, alignf, correlation, lp, l1, l2-ball, or an expression "
        "such as 'LpNorm(p=1.5)'. If several are given, cross-validation chooses. \\[default: "
        "loo]",
        show_default=False,
    ),
]
Views = Annotated[
    Path | None,
    typer.Option("--views", help="TOML file that lists the views: their columns and kernels."),
]
Impute = Annotated[
    ImputeName | None,
    typer.Option(
        "--impute",
        help="median: fill missing numbers with the median and missing categories with the most "
        "frequent one. By default missing values are an error.",
    ),
]
Categories = Annotated[
    CategoriesName,
    typer.Option(
        "--categories",
        help="onehot: encode categories as columns of zeros and ones. kernel: give each category "
        "column its own kernel.",
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option("--categorical", help="Column of numbers to treat as a category (repeatable)."),
]
Drop = Annotated[list[str] | None, typer.Option("--drop", help="Column to leave out (repeatable).")]
Folds = Annotated[int, typer.Option("--folds", min=2, help="Number of cross-validation folds.")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue an interrupted run of the same command from its checkpoint, which lies next "
        "to the output.",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed for everything random.")
]
Jobs = Annotated[int, typer.Option("--jobs", help="Number of threads; -1 for all cores.")]
Device = Annotated[
    str | None,
    typer.Option(
        "--device", help="Where to compute: cuda, cuda:1, or cpu (the GPU code on the processor)."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no notes and no progress.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object to standard output and nothing else.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist already.")]
Report = Annotated[
    Path | None, typer.Option("--report", help="Also write an HTML report to this file.")
]
Chunks = Annotated[
    bool,
    typer.Option(
        "--chunks",
        help="Read the rows in chunks and approximate the kernels by features: any number of "
        "rows in bounded memory. DATA may be a folder of files.",
    ),
]
Holdout = Annotated[
    int | None,
    typer.Option(
        "--holdout",
        min=0,
        help="With --chunks: number of rows, drawn at random, that are kept out of the fit to "
        "score the model. \\[default: a tenth of the rows, at most 5000]",
        show_default=False,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="Process the chunks on a dask cluster: the address of its scheduler, such as "
        "tcp://host:8786. Every worker must see the data under the same path.",
    ),
]
Approximation = Annotated[
    str | None,
    typer.Option(
        "--approximation",
        help="With --chunks: the kind of features, such as 'Nystroem(rank=500)' or "
        "'RandomFeatures(n_features=200)'. \\[default: Nystroem()]",
        show_default=False,
    ),
]
Loss = Annotated[
    LossName | None,
    typer.Option(
        "--loss",
        help="With --chunks: squared needs one pass over the rows; hinge and logistic "
        "(classification only) need several. \\[default: squared]",
        show_default=False,
    ),
]
