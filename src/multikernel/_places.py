"""Files that are written completely or not at all.

Data are written to a temporary file in the same folder, whose name ends in ``.part``, which is
renamed when complete: at any moment either the old or the new file exists. A process that is killed
leaves its temporary file behind. The writer holds a lock on it, which the system releases when the
process ends. The next process that writes to the same place recognises abandoned temporary files by
their missing lock and removes them.
"""

from __future__ import annotations

import csv
import io
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows, which does not remove open files
    fcntl = None  # type: ignore[assignment]

#: Bytes of a file's name to repeat in the name of its temporary file; file systems allow 255.
MAX_PREFIX = 120


def check_place(path: str | os.PathLike[str]) -> Path:
    """The path, after checking that it is not a folder and that its own folder exists."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file to write to.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {path.parent}, so {path.name} cannot be written."
        )
    return path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file to write to, which replaces ``path`` when the block ends.

    After an error it is removed, and ``path`` is unchanged. Pipes and devices are written to
    directly, and links are followed. The new file gets the permissions of the old one.
    """
    path = check_place(path)
    if path.exists() and not path.is_file():
        yield path
        return
    place = Path(os.path.realpath(path))
    _remove_parts_of_the_dead(place)
    part, lock = _new_part(place)
    try:
        mode = os.fstat(lock.fileno()).st_mode  # as the umask allows
        with suppress(FileNotFoundError):
            mode = place.stat().st_mode
        os.chmod(part, 0o600)  # other users cannot read it before it is complete
        yield part
        os.fsync(lock.fileno())
        os.chmod(part, stat.S_IMODE(mode))
        if fcntl is None:
            lock.close()  # Windows does not rename files that are open
        os.replace(part, place)
    except BaseException:
        if fcntl is None:
            lock.close()
        with suppress(OSError):
            os.unlink(part)
        raise
    finally:
        lock.close()


def write_atomically(path: str | os.PathLike[str], data: bytes | str) -> Path:
    """Write a file completely or not at all, strings as UTF-8."""
    with replacing(path) as part:
        if isinstance(data, str):
            part.write_text(data, encoding="utf-8", newline="\n")
        else:
            part.write_bytes(data)
    return Path(path)


def write_csv(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows with the same keys as CSV; the keys are the first line."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return write_atomically(path, text.getvalue())


def save_figure(figure: Any, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write a matplotlib figure in the format given by the file's suffix."""
    with replacing(path) as part:
        figure.savefig(part, format=Path(path).suffix[1:], **options)
    return Path(path)


def whole_lines(path: str | os.PathLike[str]) -> list[str]:
    """The complete lines of a journal, without a last line that a killed writer left unfinished."""
    if not os.path.exists(path):
        return []
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    return text[: text.rfind("\n") + 1].splitlines()


def append_line(path: str | os.PathLike[str], line: str) -> None:
    """Append a line to a journal; an unfinished last line is replaced."""
    with open(path, "ab+") as file:
        file.seek(0)
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _prefix(place: Path) -> str:
    name = f".{place.name}"
    while len(os.fsencode(name)) > MAX_PREFIX:
        name = name[:-1]
    return f"{name}."


def _new_part(place: Path) -> tuple[Path, IO[bytes]]:
    """A new, empty file beside a place, and the open file that holds its lock."""
    while True:
        # Not tempfile, whose files are readable by the owner only, whatever the umask.
        part = place.with_name(f"{_prefix(place)}{secrets.token_hex(8)}.part")
        lock = open(part, "xb")  # noqa: SIM115
        with suppress(BlockingIOError):
            if not _locked(lock) or os.fstat(lock.fileno()).st_nlink:
                return part, lock
        lock.close()  # another process took the file for abandoned before it was locked


def _locked(file: IO[bytes]) -> bool:
    """Lock a file without waiting; False if locks are not supported.

    Raises BlockingIOError if another process holds the lock.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # the file system has no locks
        return False
    return True


def _remove_parts_of_the_dead(place: Path) -> None:
    prefix = _prefix(place)
    with suppress(OSError), os.scandir(place.parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(".part"):
                _remove_if_dead(entry)


def _remove_if_dead(entry: os.DirEntry[str]) -> None:
    with suppress(OSError):
        if not entry.is_file(follow_symlinks=False):
            return
        if fcntl is None:
            os.unlink(entry.path)  # Windows refuses while its writer has it open
            return
        with open(entry.path, "rb") as file:
            if _locked(file):
                os.unlink(entry.path)
