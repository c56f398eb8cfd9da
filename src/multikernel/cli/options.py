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


class TaskName(StrEnum):
    auto = "auto"
    classification = "classification"
    regression = "regression"


class ImputeName(StrEnum):
    median = "median"


class CategoriesName(StrEnum):
    onehot = "onehot"
    kernel = "kernel"


DATA_HELP = "Data file: .csv .tsv .parquet .arrow .feather .npz .svm .libsvm (text also .gz)."

Data = Annotated[Path, typer.Argument(help=DATA_HELP, show_default=False)]
Model = Annotated[
    Path, typer.Argument(help="Model file that fit or mk.save has written.", show_default=False)
]
Format = Annotated[
    FormatName | None,
    typer.Option("--format", help="Format of the data, where the file's name does not say it."),
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
        "'LpNorm(p=1.5)'. Of several, cross-validation chooses. [default: alignf]",
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
