"""The archive of a model file or checkpoint: written atomically, verified when read."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from ._places import check_place, write_atomically
from ._version import __version__

#: Version of the format. A reader knows its own and all earlier ones.
FORMAT = 1

#: Kinds of files, named in the header: the result of `mk.save`, or the progress of a fit.
MODEL, CHECKPOINT = "multikernel model", "multikernel checkpoint"
#: Limit on the inflated size of a file: a share of the free memory, or this many bytes if larger.
MAX_MEMORY_SHARE, MIN_SIZE_LIMIT = 0.5, 64e6
HEADER = "multikernel.json"

#: The only objects that skops may create: (loader, module, class).
NODES = {
    ("DictNode", "builtins", "dict"),
    ("ListNode", "builtins", "list"),
    ("JsonNode", "builtins", "str"),
    ("TypeNode", "builtins", "str"),
    ("NdArrayNode", "numpy", "ndarray"),
}


class ModelFileError(ValueError):
    """Raised for a file that is not a model file, or not a readable one."""


def write_archive(
    description: Any, arrays: list[np.ndarray], path: Path, name: str = MODEL
) -> Path:
    """Write the archive to a temporary file and rename it when it is complete."""
    import skops.io  # type: ignore[import-untyped]

    check_place(path)
    # ASCII, so that no encoding can change the text.
    content = {"description": json.dumps(description, allow_nan=False), "arrays": arrays}
    # Checkpoints are written often and soon removed: compressing them is not worth the time.
    how = zipfile.ZIP_DEFLATED if name == MODEL else zipfile.ZIP_STORED
    buffer = io.BytesIO(skops.io.dumps(content, compression=how))
    with zipfile.ZipFile(buffer, "a", how) as archive:
        header = {
            "name": name,
            "format": FORMAT,
            "multikernel": __version__,
            "sha256": {name: _digest(archive.read(name)) for name in archive.namelist()},
        }
        archive.writestr(HEADER, json.dumps(header, indent=1))
    write_atomically(path, buffer.getvalue())
    return path


def read_archive(path: Path, name: str = MODEL) -> tuple[Any, list[np.ndarray]]:
    """The description and the arrays of a file, after verifying its size, digests and types."""
    if not path.exists():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file.")
    if not path.is_file():
        raise ModelFileError(f"{path} is a device or a pipe; copy the model into a file first.")
    _check_room(path, path.stat().st_size)
    data = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = _members(path, archive)
            header = _header(path, archive, names, name)
            parts = {name: _inflate(archive, name) for name in names if name != HEADER}
    except ModelFileError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        NotImplementedError,
        OSError,
        RuntimeError,
        ValueError,
    ) as error:
        raise ModelFileError(_what_is_wrong(path, data, error)) from None
    _compare(path, header, parts)
    return _unpack(path, parts)


def _members(path: Path, archive: zipfile.ZipFile) -> list[str]:
    """The names of the parts, after checking names and sizes; nothing is inflated."""
    parts = archive.infolist()
    names = [part.filename for part in parts]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise ModelFileError(f"{path} holds {twice[0]!r} twice: it was not written by mk.save.")
    for part in parts:
        name = part.filename
        if name != os.path.basename(name) or name in ("", ".", "..") or "\\" in name:
            raise ModelFileError(
                f"{path} holds a part called {name!r}, which points to another folder: it was not "
                "written by mk.save, and nothing was loaded from it."
            )
        # Decompression with the other methods cannot be limited to a size.
        if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ModelFileError(
                f"{path} holds {name!r} in a compression that mk.save does not use: it is damaged, "
                "or was not written by mk.save."
            )
    _check_room(path, sum(part.file_size for part in parts))
    return names


def _check_room(path: Path, size: int) -> None:
    room = MAX_MEMORY_SHARE * psutil.virtual_memory().available
    if size > max(room, MIN_SIZE_LIMIT):
        raise ModelFileError(
            f"{path} would take {size / 1e9:.3g} GB of memory, more than half of the free "
            f"{room / MAX_MEMORY_SHARE / 1e9:.3g} GB. If you trust the file, load it on a computer "
            "with more memory."
        )


def _inflate(archive: zipfile.ZipFile, name: str) -> bytes:
    """A part, inflated up to its declared size."""
    with archive.open(name) as file:
        return file.read(archive.getinfo(name).file_size + 1)


def _header(path: Path, archive: zipfile.ZipFile, names: list[str], name: str) -> dict[str, Any]:
    if HEADER not in names:
        kind = "a skops file, but not one" if "schema.json" in names else "a zip archive, not one"
        raise ModelFileError(
            f"{path} is {kind} written by multikernel. mk.load reads only files written by mk.save."
        )
    try:
        header = json.loads(_inflate(archive, HEADER))
        good = type(header["format"]) is int and header["format"] > 0
        good = good and header["name"] in (MODEL, CHECKPOINT)
        good = good and isinstance(header["sha256"], dict)
    except (KeyError, RecursionError, TypeError, ValueError):
        good = False
    if not good:
        raise ModelFileError(
            f"{path}: the header {HEADER} is damaged; restore the file from a copy."
        )
    if header["name"] != name:
        raise ModelFileError(f"{path} is a {header['name']} file, not a {name} file.")
    if header["format"] > FORMAT:
        raise ModelFileError(
            f"{path} has format {header['format']}, written by multikernel "
            f"{header.get('multikernel', 'of a later version')}; this is multikernel "
            f"{__version__}, which reads formats up to {FORMAT}. Upgrade multikernel."
        )
    return dict(header)


def _compare(path: Path, header: dict[str, Any], parts: dict[str, bytes]) -> None:
    written = header["sha256"]
    changed = sorted(name for name in parts if written.get(name) != _digest(parts[name]))
    changed += sorted(set(written) - set(parts))
    if changed:
        raise ModelFileError(
            f"{path} was changed after it was written: {', '.join(changed[:3])} "
            f"{'is' if len(changed) == 1 else 'are'} not what the header says. Restore the file "
            "from a copy, or save the model again."
        )


def _unpack(path: Path, parts: dict[str, bytes]) -> tuple[Any, list[np.ndarray]]:
    import skops.io  # type: ignore[import-untyped]

    try:
        for name, part in parts.items():
            if name.endswith(".npy"):
                _check_array(part)
        for node in _nodes(json.loads(parts["schema.json"])):
            found = (node["__loader__"], node.get("__module__"), node.get("__class__"))
            if found not in NODES:
                raise ModelFileError(
                    f"{path} refers to {found[1]}.{found[2]} (as {found[0]}), which no model file "
                    "contains: it was not written by mk.save, and nothing was loaded from it."
                )
        content = skops.io.loads(_stored(parts), trusted=[])
        arrays = content["arrays"]
        description = json.loads(content["description"])
        if not all(isinstance(array, np.ndarray) for array in arrays):
            raise ValueError("arrays expected")
    except ModelFileError:
        raise
    except Exception as error:
        # A damaged archive may raise any error in skops.
        raise ModelFileError(
            f"{path} is not a readable model file ({type(error).__name__}: {error})."
        ) from error
    return description, list(arrays)


def _check_array(data: bytes) -> None:
    """Refuse an array whose header does not match its size."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = read[version](file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of shape {shape} and type {dtype} is not what follows")


def _stored(parts: dict[str, bytes]) -> bytes:
    """An uncompressed archive of the verified parts, so that skops inflates nothing itself."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every node of a skops schema, at any depth."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "__loader__" in value:
                yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _what_is_wrong(path: Path, data: bytes, error: Exception) -> str:
    if not data:
        return f"{path} is empty: the model was never written, or the disk was full."
    if data[:2] == b"PK":
        return f"{path} is damaged or cut short ({error}). Copy it again, or save the model again."
    if data[:1] == b"\x80":
        return (
            f"{path} looks like a pickle. mk.load does not read pickles, because they can run "
            "code; save models with mk.save."
        )
    return f"{path} is not a model file. mk.load reads only files written by mk.save."


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
