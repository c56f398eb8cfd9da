"""Files of rows and columns: CSV, TSV, Excel, Parquet, Arrow and Feather, NPZ, LIBSVM."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Collection
from os import PathLike
from pathlib import Path

import numpy as np

from .arrow import read_arrow
from .excel import read_excel
from .frame import DataError, Frame, as_column
from .text import OPENERS, text_frames

#: suffix of a file -> its format
FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xls": "excel",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".libsvm": "libsvm",
}


def file_format(path: Path, given: str | None = None) -> str:
    """The format of a file, by its suffix unless it is given."""
    if given is not None:
        if given not in set(FORMATS.values()):
            known = ", ".join(dict.fromkeys(FORMATS.values()))
            raise DataError(f"Unknown format {given!r}; the formats are {known}.")
        return given
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in OPENERS:
        suffixes.pop()
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    raise DataError(
        f"The format of {path.name!r} is not clear from its name. Known endings: "
        f"{', '.join(FORMATS)} (CSV, TSV and LIBSVM also with .gz, .bz2 or .xz); or specify it "
        "with --format."
    )


def read_frame(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    encoding: str | None = None,
    texts: Collection[str] = (),
    codes: Collection[str] = (),
) -> Frame:
    """Read a data file.

    Parameters
    ----------
    path : path
    format : {"csv", "tsv", "excel", "parquet", "arrow", "npz", "libsvm"} or None
        None uses the suffix of the file name.
    encoding : str or None
        Of text files; None for UTF-8, or the encoding of the byte order mark if there is one.
    texts : names
        Columns of text files and workbooks to read as texts even if all entries are numbers.
    codes : names
        Columns of text files and workbooks to read as texts if some entry is a code that is not
        the same number: 01234, 1.10.

    Returns
    -------
    Frame
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no data file {str(path)!r}.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a data file.")
    kind = file_format(path, format)
    readers = {
        "csv": lambda: next(text_frames(path, "csv", None, texts, encoding, codes)),
        "tsv": lambda: next(text_frames(path, "tsv", None, texts, encoding, codes)),
        "excel": lambda: read_excel(path, texts, codes),
        "parquet": lambda: read_arrow(path, "parquet"),
        "arrow": lambda: read_arrow(path, "arrow"),
        "npz": lambda: _read_npz(path),
        "libsvm": lambda: _read_libsvm(path),
    }
    try:
        frame = readers[kind]()
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None
    if not len(frame):
        raise DataError(f"{path.name} holds no rows.")
    return frame


def _read_npz(path: Path) -> Frame:
    """Arrays with one row per sample: matrices are views, vectors are columns."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"it could not be read ({error}). Arrays of Python objects are not read, because they "
            "can run code."
        ) from None
    if not arrays:
        raise DataError("it holds no arrays.")
    shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
    lengths = {array.shape[0] if array.ndim else None for array in arrays.values()}
    if len(lengths) > 1 or any(array.ndim not in (1, 2) for array in arrays.values()):
        raise DataError(
            f"its arrays must have one row per sample, shape (n,) or (n, d); it holds {shapes}."
        )
    columns: dict[str, np.ndarray] = {}
    views: dict[str, tuple[str, ...]] = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = as_column(array)
            continue
        if array.dtype.kind not in "fiub":
            raise DataError(f"array {name!r} must hold numbers; got dtype {array.dtype}.")
        views[name] = tuple(f"{name}{j}" for j in range(array.shape[1]))
        columns |= dict(zip(views[name], np.asarray(array, dtype=np.float64).T, strict=True))
    return Frame(columns, views=views if len(views) > 1 else {})


def _read_libsvm(path: Path) -> Frame:
    from sklearn.datasets import load_svmlight_file

    try:
        # scikit-learn itself opens fewer kinds of compressed files.
        with OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            X, y = load_svmlight_file(file, zero_based=True)
    except (ValueError, OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"it is not a LIBSVM file ({error}).") from None
    # By convention features are numbered from 1; a feature 0 means that this file starts at 0.
    first = 0 if X.shape[1] and X[:, [0]].nnz else 1
    return Frame({"y": np.asarray(y, dtype=np.float64)}, X.tocsr()[:, first:], first)
