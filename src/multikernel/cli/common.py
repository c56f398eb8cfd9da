"""What all commands share: where output goes, how errors are told, progress."""

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

#: The words of the command that runs, without ``multikernel`` itself.
COMMAND_LINE: ContextVar[tuple[str, ...]] = ContextVar("COMMAND_LINE", default=())

#: What the library raises for things that users can put right; anything else is a bug.
EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, NotImplementedError)


class Out:
    """Results on the standard output, remarks on the standard error.

    Parameters
    ----------
    quiet : bool
        No remarks, no progress.
    as_json : bool
        One JSON object on the standard output and nothing else there.
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
        """A remark about what is going on."""
        if self.chatty:
            self.remarks.print(text, markup=False, soft_wrap=True)

    def show(self, value: Any) -> None:
        """A result for people: text or anything that rich can draw."""
        if not self.as_json:
            self.console.print(value, soft_wrap=isinstance(value, str), markup=False)

    def text(self, value: str) -> None:
        """A result as it is, for people and for pipes."""
        if not self.as_json:
            typer.echo(value)

    def result(self, value: dict[str, Any]) -> None:
        """Print the result as JSON, if that was asked for."""
        if self.as_json:
            typer.echo(json.dumps(plain(value), indent=1, allow_nan=False))

    @contextmanager
    def progress(self, title: str, total: int | None = None) -> Iterator[Callable[..., None]]:
        """A bar (or, without a total, a clock); call the returned function after each step."""
        if not self.shows_progress:  # rich before 14 ends a bar that it does not show with a line
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
        """A bar that follows the clock towards an estimated end."""
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
    """Numbers, texts and lists that JSON knows; what is not finite becomes null."""
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
    """Let SIGTERM end the work as an interrupt does: nothing half-written is left behind."""

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
    """Turn expected errors into a message and an exit code, warnings into remarks.

    ``MULTIKERNEL_TRACEBACK=1`` in the environment shows where an error came from.
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
        except BrokenPipeError:  # the reader of a pipe has seen enough
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
    """A command as one would type it."""
    return " ".join(["multikernel", *(shlex.quote(str(word)) for word in words)])


def what_would_work(options: Sequence[str]) -> str:
    """The command that was given with further options, as two more lines of an error message."""
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
    """A file is where a command would write."""

    options = ("--force",)


def check_places(*files: Path | None, force: bool, tables: Path | None = None) -> None:
    """Refuse places that cannot be written before anything is computed; ``tables`` by format.

    Files that exist are refused without ``force``; pipes and devices are written to.
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
    """Write the report page; where that part is not installed, say so.

    ``about`` makes the summary of the data when the page is written.
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
    """A number of things in words."""
    return f"{count} {what}{'' if count == 1 else 's'}"
