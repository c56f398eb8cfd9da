"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path


def check_place(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can be written there; checked before any work is done."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file to write to.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} to.")
    return path


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it appears with all its content or not at all."""
    handle, name = _new_file(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            # Files of mkstemp can be read by their owner only.
            umask = os.umask(0)
            os.umask(umask)
            os.fchmod(file.fileno(), 0o666 & ~umask)
            if not os.path.exists(name):
                os.link(f"/proc/self/fd/{file.fileno()}", name)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _new_file(path: Path) -> tuple[int, str]:
    """An open file beside a path, and its name.

    Where the system has files without a name, it is one until it is complete: a process that is
    killed while it writes leaves nothing behind.
    """
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):  # not on every file system
            handle = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o600)
            return handle, str(path.parent / f".{path.name}.{secrets.token_hex(8)}.part")
    return tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
