"""Journals in files: the progress of a fit survives the end of its process.

A checkpoint is an archive in the format of model files (:mod:`multikernel._archive`): it holds
numbers and strings, is written to a temporary file and renamed, and is verified by checksums when
read. Besides the journal it holds a digest of every part of the problem that it belongs to.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from pickle import PicklingError
from typing import Any

import joblib
import numpy as np

from ._archive import CHECKPOINT, ModelFileError, read_archive, write_archive
from ._journal import Entry, Journal
from ._places import check_place
from ._version import __version__

#: Fits that ran for fewer seconds are not saved when they are interrupted.
MIN_SECONDS_TO_KEEP = 5.0


class CheckpointError(ValueError):
    """A checkpoint that cannot be read, or belongs to another problem."""


def fingerprint(parts: dict[str, Any]) -> dict[str, str]:
    """A digest of every part of a problem, equal in all processes."""
    found = {"multikernel": __version__}
    for name, value in parts.items():
        try:
            found[name] = str(joblib.hash(value))
        except (PicklingError, AttributeError, TypeError) as error:
            raise TypeError(
                f"A checkpoint must recognise its problem in another process, but {name} contains "
                f"something that cannot be compared ({error}). Use functions defined in a module "
                "instead of lambdas, or checkpoint=None."
            ) from None
    return found


@contextmanager
def journal_in(path: str | os.PathLike[str] | None, parts: dict[str, Any]) -> Iterator[Any]:
    """The journal in a file, or None if ``path`` is None; the file is removed after success.

    On an exception or an interrupt the journal is saved, unless little work was done.
    """
    if path is None:
        yield None
        return
    place = check_checkpoint_place(path)
    known = fingerprint(parts)
    journal = Journal(read_entries(place, known))
    journal.save = _CheckpointWriter(place, known)
    started = time.monotonic()
    try:
        yield journal
    except BaseException as error:
        if journal.unsaved and time.monotonic() - started >= MIN_SECONDS_TO_KEEP:
            journal.flush()
        if isinstance(error, KeyboardInterrupt) and place.exists():
            error.add_note(f"Progress is saved in {place}; the next fit continues from it.")
        raise
    with suppress(FileNotFoundError):
        place.unlink()


def check_checkpoint_place(path: str | os.PathLike[str]) -> Path:
    """The path, if a checkpoint can be written there; a read-only folder is refused at once."""
    place = check_place(path)
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise PermissionError(
            f"checkpoint={str(place)!r}: the folder {place.parent} is not writable. Choose a "
            "file in another folder."
        )
    return place


def read_entries(path: Path, known: dict[str, str]) -> list[Entry]:
    """The entries of a checkpoint, empty without a file; CheckpointError for another problem."""
    if not path.exists():
        return []
    advice = "Delete the file to start again, or choose another file."
    try:
        description, arrays = read_archive(path, CHECKPOINT)
        written, entries = description["problem"], description["entries"]
        decoder = _JoinedArrays(arrays)
        found = [Entry(n, kind, asked, decoder.decode(told)) for n, kind, asked, told in entries]
    except (ModelFileError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"checkpoint={str(path)!r} is damaged or not a checkpoint of multikernel. {advice}"
        ) from error
    if written.get("multikernel") != __version__:
        raise CheckpointError(
            f"checkpoint={str(path)!r} was written by multikernel {written.get('multikernel')}; "
            f"this is {__version__}, whose steps may differ. {advice}"
        )
    others = [name for name in {**known, **written} if known.get(name) != written.get(name)]
    if others:
        named = "estimator" if "estimator" in others else ", ".join(others)
        raise CheckpointError(
            f"checkpoint={str(path)!r} belongs to another problem: it was written with other "
            f"values of {named}. {advice}"
        )
    return found


@dataclass
class _CheckpointWriter:
    """Writes entries to the file; a failure is reported once and does not stop the fit."""

    path: Path
    known: dict[str, str]
    has_failed: bool = False

    def __call__(self, entries: list[Entry]) -> None:
        arrays = _JoinedArrays()
        described = [[e.name, e.kind, e.asked, arrays.encode(e.answers)] for e in entries]
        description = {"problem": self.known, "entries": described}
        try:
            write_archive(description, arrays.joined(), self.path, CHECKPOINT)
        except OSError as error:
            if not self.has_failed:
                warnings.warn(
                    f"checkpoint={str(self.path)!r} could not be written ({error}). The fit "
                    "continues without it.",
                    UserWarning,
                    stacklevel=2,
                )
            self.has_failed = True


@dataclass
class _JoinedArrays:
    """Arrays joined by type, because every array of an archive is stored as a file of its own."""

    given: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts: dict[str, list[np.ndarray]] = {}
        self.sizes: dict[str, int] = {}
        self.by_type = {array.dtype.str: array for array in self.given}

    def joined(self) -> list[np.ndarray]:
        return [np.concatenate(parts) for parts in self.parts.values()]

    def encode(self, value: Any) -> Any:
        """The value as JSON, with positions in the joined arrays in place of arrays."""
        if isinstance(value, np.ndarray):
            dtype = value.dtype.str
            start = self.sizes.get(dtype, 0)
            # Keep the memory order: sums in another order differ in their last bits.
            axes = sorted(range(value.ndim), key=lambda axis: -value.strides[axis])
            value = value.transpose(axes)
            self.parts.setdefault(dtype, []).append(value.ravel())
            self.sizes[dtype] = start + value.size
            return {"array": [dtype, start, list(value.shape), axes]}
        if isinstance(value, np.generic):
            return self.encode(value.item())
        if isinstance(value, dict):
            return {"dict": {key: self.encode(item) for key, item in value.items()}}
        if isinstance(value, (list, tuple)):
            return [self.encode(item) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        return value

    def decode(self, value: Any) -> Any:
        """The value that was passed to `encode`; tuples become lists."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        if kind == "dict":
            return {key: self.decode(item) for key, item in content.items()}
        if kind == "float":
            return float(content)
        dtype, start, shape, axes = content
        size = math.prod(shape)
        found = np.empty(0, dtype=dtype) if size == 0 else self.by_type[dtype]
        found = found[start : start + size].reshape(shape).copy()
        return found.transpose(np.argsort(axes))
