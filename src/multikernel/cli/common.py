"""Shared by all commands: output, error messages, progress."""

from __future__ import annotations

import functools
import json
import os
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

F = TypeVar("F", bound=Callable[..., None])

#: The arguments of the running command, without the leading ``multikernel``.
COMMAND_LINE: ContextVar[tuple[str, ...]] = ContextVar("COMMAND_LINE", default=())

#: Exceptions for problems that users can solve; any other exception is a bug.
EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, NotImplementedError)


class Out:
    """Prints results to standard output, notes and progress to standard error.

    Parameters
    ----------
    quiet : bool
        Print no notes and no progress.
    as_json : bool
        Print one JSON object to standard output and nothing else.
    """

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.console = Console(highlight=False)
        self.remarks = Console(stderr=True, highlight=False)

    @property
    def chatty(self) -> bool:
        return not self.quiet and not self.as_json

    @property
    def shows_progress(self) -> bool:
        """Whether to show progress: only on a terminal, and not with --quiet or --json."""
        return self.chatty and self.remarks.is_terminal

    def note(self, text: str) -> None:
        """Print a note to standard error."""
        if self.chatty:
            self.remarks.print(text, markup=False, soft_wrap=True)

    def show(self, value: Any) -> None:
        """Print a result for people: text, or anything that rich can draw."""
        if not self.as_json:
            self.console.print(value, soft_wrap=isinstance(value, str), markup=False)

    def text(self, value: str) -> None:
        """Print a result unchanged, for people and for pipes."""
        if not self.as_json:
            typer.echo(value)

    def result(self, value: dict[str, Any]) -> None:
        """Print the result as JSON, with ``as_json`` only."""
        if self.as_json:
            typer.echo(json.dumps(plain(value), indent=1, allow_nan=False))

    @contextmanager
    def progress(self, title: str, total: int | None = None) -> Iterator[Callable[..., None]]:
        """A bar (or, without a total, a clock); call the function it yields after each step."""
        if not self.shows_progress:  # rich before 14 prints an empty line after a hidden bar
            yield lambda step="", steps=1: None
            return
        columns = [SpinnerColumn(), TextColumn("{task.description}")]
        more = [] if total is None else [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
        with Progress(
            *columns,
            *more,
            TimeElapsedColumn(),
            TextColumn("{task.fields[step]}"),
            console=self.remarks,
            transient=True,
        ) as bar:
            task = bar.add_task(title, total=total, step="")

            def advance(step: str = "", steps: int = 1) -> None:
                bar.update(task, advance=steps, step=step)

            yield advance

    @contextmanager
    def clock(self, title: str, seconds: float) -> Iterator[None]:
        """A bar that follows the clock, up to an estimated number of seconds."""
        if not self.shows_progress:
            yield
            return
        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=self.remarks,
            transient=True,
        ) as bar:
            task = bar.add_task(title, total=seconds, state="")
            done = threading.Event()

            def follow() -> None:
                started = time.monotonic()
                while not done.wait(0.5):
                    passed = time.monotonic() - started
                    part = min(passed / seconds, 0.99)
                    left = timedelta(seconds=round(seconds - passed))  # moves every second
                    state = f"about {part:.0%}, {left} left"
                    if passed >= seconds:
                        state = "taking longer than estimated"
                    bar.update(task, completed=part * seconds, state=state)

            follower = threading.Thread(target=follow, daemon=True)
            follower.start()
            try:
                yield
            finally:
                done.set()
                follower.join()


@contextmanager
def usage_errors_for_machines(wanted: bool) -> Iterator[None]:
    """Print the parser's message about a wrong command as JSON, if wanted, and raise it again."""
    try:
        yield
    except Exception as error:
        # Since 0.20 Typer has its own copy of click's exceptions, with the same attributes.
        if wanted and getattr(error, "exit_code", 0) == 2 and hasattr(error, "format_message"):
            typer.echo(json.dumps({"error": error.format_message()}, indent=1))
        raise


def plain(value: Any) -> Any:
    """Convert a value to types that JSON knows; numbers that are not finite become null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)


class Terminated(BaseException):
    """The process was asked to end by SIGTERM."""


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM end the work as an interrupt does, so no half-written file remains."""

    def end(number: int, frame: Any) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def command(function: F) -> F:
    """Turn expected errors into a message and an exit code, and warnings into notes.

    ``MULTIKERNEL_TRACEBACK=1`` in the environment shows the traceback of an error.
    """

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> None:
        out = Out(options.get("quiet", False), options.get("as_json", False))
        try:
            with ending_in_order(), warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.showwarning = functools.partial(_show_warning, out, set())
                function(*args, **options)
        except KeyboardInterrupt:
            out.note("Interrupted.")
            raise typer.Exit(130) from None
        except Terminated:
            out.note("Terminated.")
            raise typer.Exit(143) from None
        except BrokenPipeError:  # the reader of the pipe has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except EXPECTED as error:
            if os.environ.get("MULTIKERNEL_TRACEBACK"):
                raise
            message = str(error) or type(error).__name__
            message += what_would_work(getattr(error, "options", ()))
            out.result({"error": message})
            typer.echo(f"Error: {message}", err=True)
            raise typer.Exit(1) from None

    return run  # type: ignore[return-value]


def command_of(*words: Any) -> str:
    """A ``multikernel`` command as typed in a shell."""
    return " ".join(["multikernel", *(shlex.quote(str(word)) for word in words)])


def what_would_work(options: Sequence[str]) -> str:
    """The given command with further options, as two more lines of an error message."""
    line = COMMAND_LINE.get()
    if not options or not line:
        return ""
    return f"\nThis would work:\n  {command_of(*line, *options)}"


def _show_warning(
    out: Out, said: set[str], message: Any, category: type[Warning], *rest: Any
) -> None:
    # Python's own "once" repeats a warning whenever the filters have changed.
    text = str(message)
    if text.startswith("The least populated class"):  # of scikit-learn, about its parameters
        text = "A class has fewer rows than there are folds, so some training parts lack it."
    if issubclass(category, UserWarning) and text not in said:
        said.add(text)  # other categories are for programmers
        out.note(f"Note: {text}")


class WouldReplaceError(FileExistsError):
    """Raised if a file that a command would write exists already."""

    options = ("--force",)


def check_places(*files: Path | None, force: bool, tables: Path | None = None) -> None:
    """Check, before anything is computed, that output files can be written.

    Existing files need ``force``; pipes and devices do not. ``tables`` must also have a known
    format.
    """
    from .._places import check_place
    from ..tables.writing import check_writable

    for path in files:
        if path is not None:
            check_place(path)
    if tables is not None:
        check_writable(tables)
    there = [str(path) for path in (*files, tables) if path is not None and path.is_file()]
    if there and not force:
        raise WouldReplaceError(
            f"{' and '.join(there)} exist{'s' if len(there) == 1 else ''} already and would be "
            "replaced. Choose another file, or add --force."
        )


def write_report(
    out: Out,
    estimator: Any,
    X: Any,
    y: Any,
    path: Path,
    *,
    required: bool = True,
    about: Any = None,
    **options: Any,
) -> Path | None:
    """Write the report page, if the packages for it are installed.

    If they are not, raise an error or, without ``required``, print a note and return None.
    ``about`` is a function that makes the summary of the data.
    """
    try:
        from ..report import write_report as write
    except ImportError as error:
        message = f"The report needs more than is installed ({error}): pip install "
        message += "'multikernel[report]'."
        if required:
            raise ImportError(message) from None
        out.note(message)
        return None
    with out.progress("Writing the report"):
        if about is not None:
            options["about"] = about()
        return Path(write(estimator, X, y, path, **options))


def counted(count: int, what: str) -> str:
    """A count and its noun, in the plural unless the count is 1."""
    return f"{count} {what}{'' if count == 1 else 's'}"
