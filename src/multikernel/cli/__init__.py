"""The command line: ``multikernel --help``.

One file per command; shared code is in :mod:`.common` (output, errors), :mod:`.options` (arguments
and options) and :mod:`.problem` (from files to X and y). Nothing heavy is imported before a command
needs it, so help appears at once.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from .._version import __version__
from . import (
    bank,
    certificate,
    compare,
    datasets,
    demo,
    explain,
    fit,
    predict,
    report,
    reproduce,
    warm_up,
)
from .common import COMMAND_LINE, usage_errors_for_machines


class Commands(TyperGroup):
    """Prints usage errors as JSON if --json is given, and shows flags without a type in help."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is not None:
            help_option = found.get_help_option(ctx)
            for option in [*found.params, *([help_option] if help_option is not None else [])]:
                if getattr(option, "is_flag", False):
                    option.metavar = ""
        return found

    def make_context(self, info_name: Any, args: list[str], *rest: Any, **extra: Any) -> Any:
        COMMAND_LINE.set(tuple(args))
        with usage_errors_for_machines("--json" in args):
            return super().make_context(info_name, args, *rest, **extra)

    def invoke(self, ctx: Any) -> Any:
        with usage_errors_for_machines("--json" in ctx.args):
            return super().invoke(ctx)


app = typer.Typer(
    name="multikernel",
    cls=Commands,
    help="Learn how to combine kernels. Start with: multikernel demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"multikernel {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Learn how to combine kernels. Start with: [bold]multikernel demo[/]

    Results go to standard output, notes and progress to standard error. Exit codes: 0 success, 1
    failure (the message says why), 2 invalid command or option, 130 interrupted, 143 terminated.
    """


for module in (
    *(demo, fit, compare, predict, explain, report),
    *(certificate, bank, reproduce, datasets, warm_up),
):
    module.register(app)


def main() -> None:
    """Entry point of the command ``multikernel``."""
    app()
