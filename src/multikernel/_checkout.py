"""The package `experiments` of the source checkout, which the installed library does not contain.

It holds the experiments of the papers and the loaders of their data sets: `multikernel reproduce`,
`multikernel datasets` and ``mk.datasets`` import them from here.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

#: The checkout, if this file lies in the ``src/multikernel`` of one.
ROOT = Path(__file__).resolve().parents[2]


def has_experiments() -> bool:
    """Whether the library runs from a source checkout."""
    return all((ROOT / file).is_file() for file in ("pyproject.toml", "experiments/__init__.py"))


def import_experiments(module: str | None = None) -> ModuleType:
    """Import the package `experiments` of the checkout, or one of its modules.

    Parameters
    ----------
    module : str or None
        Name of a module of the package; None for the package itself.

    Raises
    ------
    ImportError
        If the library does not run from a checkout, or if another package called `experiments`
        precedes that of the checkout in ``sys.path``.
    """
    if not has_experiments():
        raise ImportError(
            "The paper experiments and the loaders of their data sets are part of the multikernel "
            "source tree, not of the installed package. Get the source (clone the repository or "
            "unpack the .tar.gz), run `pip install -e .` in its folder, and try again."
        )
    # Import through `sys.path`, not from the file: worker processes inherit the path and import
    # the package by name. Append, so that other modules of the checkout hide none of the user's.
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    package = importlib.import_module("experiments")
    if ROOT / "experiments" not in (Path(place).resolve() for place in package.__path__):
        raise ImportError(
            f"The package `experiments` of {ROOT} is hidden by another package of the same name, "
            f"in {', '.join(package.__path__)}. Rename the other package, or start Python in "
            "another folder."
        )
    return importlib.import_module(f"experiments.{module}") if module else package
