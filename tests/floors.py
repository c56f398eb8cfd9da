"""Print the oldest versions that pyproject.toml admits, one ``name==version`` on each line.

``make test-floors`` installs these and runs the suite on them. The checkers and the tools that
build the package are left out: they are not what users run.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

EXTRAS = ("plot", "sequences", "sdp", "tables", "excel", "cluster", "test")
TOOLS = {"mypy", "ruff", "build", "hatchling", "multikernel"}


def floors(path: Path = Path(__file__).parents[1] / "pyproject.toml") -> dict[str, str]:
    """The floor of every dependency, those of the optional parts included."""
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in EXTRAS for line in optional[extra])]
    found = {}
    for line in lines:
        match = re.match(r"([\w.-]+)(?:\[[\w,]+\])?(?:>=([\w.]+))?", line)
        assert match is not None, line
        name, floor = match.groups()
        if name not in TOOLS:
            assert floor, f"{line!r} in pyproject.toml has no floor"
            found[name] = floor
    return found


if __name__ == "__main__":
    print("\n".join(f"{name}=={floor}" for name, floor in floors().items()))
