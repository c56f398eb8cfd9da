"""What a person sees of a long fit: one line that says where it is."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress


class ProgressLine:
    """A context whose :meth:`report` shows iteration, gap, active kernels and support vectors."""

    def __init__(self, title: str, verbose: int) -> None:
        self.title = title
        self.progress: Progress | None = None
        if verbose:
            # Here, for those who ask for it: it takes 20 ms and 2 MB.
            from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            fields = "iteration {task.completed}  gap {task.fields[gap]}  "
            fields += "kernels {task.fields[active]}  support {task.fields[support]}"
            self.progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                TextColumn(fields),
                TimeElapsedColumn(),
            )

    def __enter__(self) -> ProgressLine:
        if self.progress is not None:
            self.progress.start()
            self.task = self.progress.add_task(self.title, gap="-", active="-", support="-")
        return self

    def report(self, entry: dict[str, Any]) -> None:
        """Show what an alternation has reached."""
        if self.progress is not None:
            self.progress.update(
                self.task,
                advance=1,
                gap=f"{entry['gap']:.1e}",
                active=entry["active"],
                support=entry["support"],
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.progress is not None:
            self.progress.stop()
