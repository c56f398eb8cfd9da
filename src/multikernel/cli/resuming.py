"""Long commands that were stopped go on: the checkpoint beside the output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .common import Out


def checkpoint_beside(say: Out, output: Path | None, resume: bool) -> Path | None:
    """Where a command keeps what it has done; one that is there is not used or lost unasked."""
    if output is None:
        if resume:
            raise ValueError(
                "--resume needs the place of the output, beside which the checkpoint lies: give "
                "--out or --report, as in the run that was stopped."
            )
        return None
    path = output.with_name(output.name + ".checkpoint")
    if resume and not path.exists():
        say.note(f"There is no checkpoint {path}: this run begins at the beginning.")
    if not resume and path.exists():
        raise FileExistsError(
            f"{path} is there, of a run that was stopped. Go on with --resume, or delete it to "
            "begin anew."
        )
    return path


@contextmanager
def telling_of(say: Out, checkpoint: Path | None) -> Iterator[None]:
    """Whoever stops the work is told how to go on."""
    try:
        yield
    except BaseException as error:
        stopped = not isinstance(error, Exception)
        if stopped and checkpoint is not None and checkpoint.exists():
            say.note(f"What was done is kept in {checkpoint}: the same with --resume goes on.")
        raise
