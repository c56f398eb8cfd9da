"""The file around a description and its arrays: written at once, read with suspicion."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from ._places import check_place, write_atomically
from ._version import __version__

#: Version of the format. A reader knows its own and all earlier ones.
FORMAT = 1

#: What a file says it is: the result of `mk.save`, or what a fit has done so far.
MODEL, CHECKPOINT = "multikernel model", "multikernel checkpoint"
#: What the parts of a file may take when they are inflated: a share of the free memory, or this.
MAX_MEMORY_SHARE, MIN_SIZE_LIMIT = 0.5, 64e6
HEADER = "multikernel.json"

#: All that skops may be asked to make: (loader, module, class).
NODES = {
    ("DictNode", "builtins", "dict"),
    ("ListNode", "builtins", "list"),
    ("JsonNode", "builtins", "str"),
    ("TypeNode", "builtins", "str"),
    ("NdArrayNode", "numpy", "ndarray"),
}


class ModelFileError(ValueError):
    """A file that is no model file, or not one that can be read."""


def write_archive(
    description: Any, arrays: list[np.ndarray], path: Path, name: str = MODEL
) -> Path:
    """Write the archive beside its place and move it there when it is complete."""
    import skops.io  # type: ignore[import-untyped]

    check_place(path)
    # Through ASCII the text cannot be hurt by any encoding on the way.
    content = {"description": json.dumps(description, allow_nan=False), "arrays": arrays}
    # Checkpoints are written often and soon removed: they are not worth the time of compressing.
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
    """The description and the arrays of a file whose every part is what was written."""
    if not path.exists():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file.")
    data = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = _members(path, archive)
            header = _header(path, archive, names, name)
            parts = {name: archive.read(name) for name in names if name != HEADER}
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise ModelFileError(_what_is_wrong(path, data, error)) from None
    _compare(path, header, parts)
    return _unpack(path, data, parts)


def _members(path: Path, archive: zipfile.ZipFile) -> list[str]:
    """The names of the parts, none of which is inflated before its size and name were looked at."""
    parts = archive.infolist()
    names = [part.filename for part in parts]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ModelFileError(f"{path} holds {twice[0]!r} twice: it was not written by mk.save.")
    for name in names:
        if name != os.path.basename(name) or name in ("", ".", "..") or "\\" in name:
            raise ModelFileError(
                f"{path} holds a part called {name!r}, which leads to another folder: it was not "
                "written by mk.save, and nothing of it was loaded."
            )
    size = sum(part.file_size for part in parts)
    room = MAX_MEMORY_SHARE * psutil.virtual_memory().available
    if size > max(room, MIN_SIZE_LIMIT):
        raise ModelFileError(
            f"{path} would take {size / 1e9:.3g} GB of memory, more than half of the free "
            f"{room / MAX_MEMORY_SHARE / 1e9:.3g} GB. If it is a model of yours, load it on a "
            "larger machine."
        )
    return names


def _header(path: Path, archive: zipfile.ZipFile, names: list[str], name: str) -> dict[str, Any]:
    if HEADER not in names:
        kind = "a skops file, but not one" if "schema.json" in names else "a zip archive, not one"
        raise ModelFileError(
            f"{path} is {kind} that multikernel has written. Use mk.load for files of mk.save."
        )
    try:
        header = json.loads(archive.read(HEADER))
        good = header["name"] in (MODEL, CHECKPOINT) and isinstance(header["format"], int)
        good = good and isinstance(header["sha256"], dict)
    except (KeyError, TypeError, ValueError):
        good = False
    if not good:
        raise ModelFileError(f"{path}: its header {HEADER} is damaged; restore it from a copy.")
    if header["name"] != name:
        raise ModelFileError(f"{path} is a {header['name']}, not a {name}.")
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
            f"{path} has been changed since it was written: {', '.join(changed[:3])} "
            f"{'is' if len(changed) == 1 else 'are'} not what the header says. "
            "Restore it from a copy, or save the model again."
        )


def _unpack(path: Path, data: bytes, parts: dict[str, bytes]) -> tuple[Any, list[np.ndarray]]:
    import skops.io  # type: ignore[import-untyped]

    try:
        for node in _nodes(json.loads(parts["schema.json"])):
            found = (node["__loader__"], node.get("__module__"), node.get("__class__"))
            if found not in NODES:
                raise ModelFileError(
                    f"{path} asks for {found[1]}.{found[2]} (as {found[0]}), which no model file "
                    "holds: it was not written by mk.save, and nothing of it was loaded."
                )
        content = skops.io.loads(data, trusted=[])
        arrays = content["arrays"]
        description = json.loads(content["description"])
        if not all(isinstance(array, np.ndarray) for array in arrays):
            raise ValueError("arrays expected")
    except ModelFileError:
        raise
    except Exception as error:
        # Whatever a damaged archive makes skops say, it is the file's fault.
        raise ModelFileError(
            f"{path} is not a readable model file ({type(error).__name__}: {error})."
        ) from error
    return description, list(arrays)


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every node of a skops schema, wherever it hides."""
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
        return f"{path} is empty; the model was never written, or the disk was full."
    if data[:2] == b"PK":
        return f"{path} is damaged or cut short ({error}). Copy it again, or save the model again."
    if data[:1] == b"\x80":
        return (
            f"{path} looks like a pickle. mk.load does not read pickles, because they can run "
            "code; write models with mk.save."
        )
    return f"{path} is not a model file. Use mk.load for files that mk.save has written."


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
