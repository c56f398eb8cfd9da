"""Interrupted commands continue from a checkpoint next to their output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .common import Out


def checkpoint_beside(say: Out, output: Path | None, resume: bool, force: bool) -> Path | None:
    """Path of a command's checkpoint; an existing one is used or deleted only on request."""
    if output is None:
        if resume:
            raise ValueError(
                "--resume looks for the checkpoint next to the output: give --out or --report as "
                "in the interrupted run."
            )
        return None
    path = output.with_name(output.name + ".checkpoint")
    if resume and not path.exists():
        say.note(f"There is no checkpoint {path}, so this run starts from the beginning.")
    if not resume and path.exists():
        if not force:
            raise FileExistsError(
                f"{path} exists: an earlier run was interrupted. Continue it with --resume, or "
                "start again with --force."
            )
        path.unlink()
    return path


@contextmanager
def telling_of(say: Out, checkpoint: Path | None) -> Iterator[None]:
    """If the work is interrupted, say how to continue it."""
    try:
        yield
    except BaseException as error:
        interrupted = not isinstance(error, Exception)
        if interrupted and checkpoint is not None and checkpoint.exists():
            say.note(f"Progress is saved in {checkpoint}; add --resume to continue.")
        raise
