"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def check_place(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can be written there; checked before any work is done."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file to write to.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {path.parent}, so {path.name} cannot be written."
        )
    return path


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it appears with all its content or not at all."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner can read.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
