"""Files of rows and columns: CSV, TSV, Excel, Parquet, Arrow and Feather, NPZ, LIBSVM."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .._places import check_place
from .excel import read_excel
from .frame import DataError, Frame, as_column, as_texts
from .text import OPENERS, read_text

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


#: Formats that are read and not written.
UNWRITTEN = ("libsvm", "excel")


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
        f"{', '.join(FORMATS)} (CSV, TSV and LIBSVM also with .gz, .bz2 or .xz); or name it with "
        "--format."
    )


def read_frame(
    path: str | PathLike[str], *, format: str | None = None, encoding: str | None = None
) -> Frame:
    """Read a data file.

    Parameters
    ----------
    path : path
    format : {"csv", "tsv", "excel", "parquet", "arrow", "npz", "libsvm"} or None
        None follows the name of the file.
    encoding : str or None
        Of text files; None for UTF-8, or what a mark at the beginning of the file says.

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
        "csv": lambda: read_text(path, None, encoding),
        "tsv": lambda: read_text(path, "\t", encoding),
        "excel": lambda: read_excel(path),
        "parquet": lambda: _read_arrow(path, "parquet"),
        "arrow": lambda: _read_arrow(path, "arrow"),
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


# -- binary ---------------------------------------------------------------------------------------


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            f"Reading or writing {path.name} needs pyarrow: pip install 'multikernel[tables]', or "
            "use CSV."
        ) from None
    return pyarrow


def _read_arrow(path: Path, kind: str) -> Frame:
    pa = _pyarrow(path)
    try:
        if kind == "parquet":
            import pyarrow.parquet  # type: ignore[import-untyped]

            table = pyarrow.parquet.read_table(path)
        else:
            import pyarrow.feather  # type: ignore[import-untyped]

            table = pyarrow.feather.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"it could not be read ({error}).") from None
    columns = {}
    for name in table.column_names:
        if name in columns:
            raise DataError(f"the column name {name!r} appears more than once.")
        values = table.column(name)
        kind_of = values.type
        if pa.types.is_date(kind_of) or pa.types.is_timestamp(kind_of):
            moments = values.to_pylist()
            columns[str(name)] = as_texts([None if m is None else m.isoformat() for m in moments])
            continue
        if pa.types.is_temporal(kind_of):
            raise DataError(f"column {name!r} holds times of day; turn them into numbers.")
        if pa.types.is_nested(kind_of):
            raise DataError(f"column {name!r} holds {kind_of}; one value per row is expected.")
        number = pa.types.is_integer(kind_of) or pa.types.is_floating(kind_of)
        if number or pa.types.is_boolean(kind_of) or pa.types.is_decimal(kind_of):
            plain = values.cast(pa.float64()) if not pa.types.is_boolean(kind_of) else values
            items = [np.nan if v is None else float(v) for v in plain.to_pylist()]
            columns[str(name)] = np.array(items, dtype=np.float64)
        else:
            columns[str(name)] = as_texts(values.to_pylist())
    return Frame(columns)


def _read_npz(path: Path) -> Frame:
    """Arrays with one row per sample: matrices are views, vectors are columns."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
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
        X, y = load_svmlight_file(str(path), zero_based=True)
    except (ValueError, OSError) as error:
        raise DataError(f"it is not a LIBSVM file ({error}).") from None
    # Features are numbered from 1 by custom; a feature 0 says that this file starts there.
    first = 0 if X.shape[1] and X[:, [0]].nnz else 1
    return Frame({"y": np.asarray(y, dtype=np.float64)}, X.tocsr()[:, first:], first)


# -- writing --------------------------------------------------------------------------------------


def check_writable(path: Path) -> str:
    """The format that :func:`write_columns` would write to a path, if it can."""
    check_place(path)
    if path.suffix.lower() == ".json":
        return "json"
    known = [ending for ending, kind in FORMATS.items() if kind not in UNWRITTEN]
    ending = path.suffixes[-2:][0] if path.suffix.lower() in OPENERS else path.suffix
    kind = FORMATS.get(ending.lower(), "")
    if kind not in ("csv", "tsv") and (kind in ("", *UNWRITTEN) or ending != path.suffix):
        raise DataError(
            f"Tables are not written to files like {path.name!r}. Known endings: "
            f"{', '.join(known)}, .json (CSV and TSV also with .gz, .bz2 or .xz)."
        )
    if kind in ("parquet", "arrow"):
        _pyarrow(path)
    return kind


def write_columns(columns: Mapping[str, Sequence[Any] | np.ndarray], path: Path) -> None:
    """Write columns in the format that the file's name says (all but LIBSVM; also JSON)."""
    kind = check_writable(path)
    plain = {name: np.asarray(values).tolist() for name, values in columns.items()}
    if kind == "json":
        path.write_text(json.dumps(plain), encoding="utf-8")
    elif kind in ("csv", "tsv"):
        opener = OPENERS.get(path.suffix.lower(), open)
        with opener(path, "wt", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="," if kind == "csv" else "\t")
            writer.writerow(plain)
            writer.writerows(zip(*plain.values(), strict=True))
    elif kind == "npz":
        arrays: dict[str, Any] = {name: np.asarray(values) for name, values in plain.items()}
        np.savez_compressed(path, **arrays)
    else:
        table = _pyarrow(path).table(plain)
        if kind == "parquet":
            import pyarrow.parquet  # type: ignore[import-untyped]

            pyarrow.parquet.write_table(table, path)
        else:
            import pyarrow.feather  # type: ignore[import-untyped]

            pyarrow.feather.write_feather(table, str(path), compression="uncompressed")
