"""Rows of files: Parquet row groups, Arrow record batches, CSV and TSV files, folders of them."""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..tables.arrow import arrow_parts, read_part
from ..tables.frame import DataError, Frame
from ..tables.reading import FORMATS, file_format, read_frame
from ..tables.text import OPENERS, read_header, text_frames
from .arrays import lost_file
from .base import Piece
from .frames import FramePiece


@dataclass
class ArrowPiece(Piece):
    """A row group of a Parquet file, or a record batch of an Arrow file."""

    path: Path
    kind: str
    part: int
    first: int
    size: int
    names: Sequence[str]

    def __post_init__(self) -> None:
        self.first_in_file, self.n_rows = self.first, self.size
        what = "row group" if self.kind == "parquet" else "record batch"
        self.file = self.path.name
        self.label = f"{self.path.name}, {what} {self.part}"

    def read(self, chunk_rows: int) -> Iterator[Frame]:
        with named(self.path):
            yield from read_part(self.path, self.kind, self.part, chunk_rows, self.names)


@dataclass
class TextPiece(Piece):
    """A CSV or TSV file; ``texts`` and ``codes`` are those of :func:`text_frames`."""

    path: Path
    kind: str
    texts: Collection[str] = ()
    codes: Collection[str] = ()

    def __post_init__(self) -> None:
        self.file = self.label = self.path.name

    def read(self, chunk_rows: int) -> Iterator[Frame]:
        with named(self.path):
            yield from text_frames(self.path, self.kind, chunk_rows, self.texts, codes=self.codes)


class named:
    """A context in which errors name the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, FileNotFoundError):
            raise lost_file(self.path, error) from None
        if isinstance(error, (DataError, IndexError, KeyError)):
            raise DataError(f"{self.path.name}: {error}") from None


@dataclass
class FileTable:
    """Pieces of files with the same columns, and what their schemas say.

    Attributes
    ----------
    pieces : list of Piece
    names : list of str
    kinds : dict of str to {"number", "text"}, or None
        None if only reading the rows can tell (CSV).
    """

    pieces: list[Piece]
    names: list[str]
    kinds: dict[str, str] | None


def find_files(source: Any, format: str | None = None) -> list[Path]:
    """The files of a path, a folder, a pattern with ``*`` or ``?``, or a list of these, in order.

    A folder is read with its sub-folders; names that begin with ``.`` or ``_`` are left out.
    """
    if isinstance(source, (list, tuple)):
        return [path for one in source for path in find_files(one, format)]
    path = Path(source)
    if path.is_dir():
        found = sorted(
            file
            for file in path.rglob("*")
            if file.is_file()
            and not any(part[0] in "._" for part in file.relative_to(path).parts)
            and (format is not None or known_format(file))
        )
        if not found:
            raise DataError(
                f"The folder {str(path)!r} holds no data files. Known endings: "
                f"{', '.join(FORMATS)}; or specify the format with --format."
            )
        return found
    if path.exists():
        return [path]
    if glob.has_magic(str(path)):
        matches = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
        if matches:
            return [file for match in matches for file in find_files(match, format)]
        raise FileNotFoundError(f"No data file matches {str(path)!r}.")
    raise FileNotFoundError(f"There is no data file or folder {str(path)!r}.")


def first_frame(
    path: Path, format: str | None = None, n_rows: int = 1000, codes: Collection[str] = ()
) -> Frame:
    """The first rows of a file, with all columns; ``codes`` are those of :func:`text_frames`."""
    table = open_files([path], (), format)
    with named(path):
        for piece in table.pieces:
            if isinstance(piece, TextPiece):
                piece.codes = codes
            for frame in piece.read(n_rows):
                return Frame.of(frame)
    raise DataError(f"{path.name} holds no rows.")


def known_format(path: Path) -> bool:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in OPENERS:
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] in FORMATS


def open_files(paths: Sequence[Path], chosen: Collection[str], format: str | None) -> FileTable:
    """Pieces of all files, whose columns must agree; reads only headers, footers and NPZ.

    Parameters
    ----------
    paths : list of path
    chosen : names
        Columns to read; empty for all, which must then be the same in every file.
    format : str or None
    """
    pieces: list[Piece] = []
    first: tuple[Path, list[str], dict[str, str] | None] | None = None
    for path in paths:
        kind = file_format(path, format)
        resolved = path.resolve()
        kinds: dict[str, str] | None
        with named(path):
            if kind in ("parquet", "arrow"):
                sizes, kinds = arrow_parts(resolved, kind)
                names = list(kinds)
                at = 0
                for i, size in enumerate(sizes):
                    if size:
                        pieces.append(ArrowPiece(resolved, kind, i, at, size, ()))
                    at += size
            elif kind in ("csv", "tsv"):
                names, kinds = read_header(resolved, kind), None
                pieces.append(TextPiece(resolved, kind))
            elif kind == "npz":
                frame = read_frame(resolved, format=format)
                names = frame.names
                kinds = {
                    n: "text" if v.dtype == object else "number" for n, v in frame.columns.items()
                }
                pieces.append(FramePiece(frame, 0))
            else:
                raise DataError(
                    f"{kind} files cannot be read in chunks. Save the table as CSV or Parquet; in "
                    "Python, a sparse matrix from sklearn.datasets.load_svmlight_file can be used."
                )
        first = first or (path, names, kinds)
        check_same(path, names, kinds, first, chosen)
    assert first is not None
    used = [name for name in first[1] if name in chosen] if chosen else first[1]
    for piece in pieces:
        if isinstance(piece, ArrowPiece):
            piece.names = used
    return FileTable(pieces, used, first[2])


def check_same(
    path: Path,
    names: list[str],
    kinds: dict[str, str] | None,
    first: tuple[Path, list[str], dict[str, str] | None],
    chosen: Collection[str],
) -> None:
    """Refuse a file whose columns are not those of the first one."""
    chosen, there = set(chosen), set(names)
    wanted = [name for name in first[1] if not chosen or name in chosen]
    absent = [name for name in wanted if name not in there]
    extra = [] if chosen else sorted(there - set(wanted), key=names.index)
    if absent or extra:
        parts = [f"it lacks {_some(absent)}"] if absent else []
        parts += [f"it also has {_some(extra)}"] if extra else []
        raise DataError(
            f"{path.name} does not have the same columns as {first[0].name}: "
            f"{', and '.join(parts)}. All files need the same columns; if there are extra ones, "
            "select those to use with columns=."
        )
    if (kinds is None) != (first[2] is None):
        raise DataError(f"{path.name} and {first[0].name} have different formats.")
    if kinds is not None and first[2] is not None:
        for name in wanted:
            if kinds[name] != first[2][name]:
                raise DataError(
                    f"Column {name!r} holds {kinds[name]}s in {path.name} and {first[2][name]}s "
                    f"in {first[0].name}. All files need the same types."
                )


def _some(names: Sequence[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more
