"""The progress line of a long fit."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress


class ProgressLine:
    """Context manager with a line that shows iterations (:meth:`report`) and passes over rows."""

    def __init__(self, title: str, verbose: int) -> None:
        self.title = title
        self.progress: Progress | None = None
        self.iterations = 0
        self.state = ""
        if verbose:
            # Imported only if progress is shown: it takes 20 ms and 2 MB.
            from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            self.progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                TextColumn("{task.fields[state]}"),
                TimeElapsedColumn(),
            )

    def __enter__(self) -> ProgressLine:
        if self.progress is not None:
            self.progress.start()
            self.task = self.progress.add_task(self.title, state="")
        return self

    def _show(self, state: str) -> None:
        if self.progress is not None:
            self.progress.update(self.task, state=state)

    def report(self, entry: dict[str, Any]) -> None:
        """Show an iteration: its gap, active kernels and support vectors."""
        self.iterations += 1
        self.state = f"iteration {self.iterations}  gap {entry['gap']:.1e}  "
        self.state += f"kernels {entry['active']}  support {entry['support']}  "
        self._show(self.state)

    def start_pass(self, what: str, n_rows: int | None) -> Callable[[int], None]:
        """Show a pass over rows; the returned function takes the number of rows just read."""
        done = 0

        def advance(rows: int) -> None:
            nonlocal done
            done += rows
            total = "" if n_rows is None else f" of {n_rows:,}"
            self._show(f"{self.state}{what}: {done:,}{total} rows")

        advance(0)
        return advance

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.progress is not None:
            self.progress.stop()
