"""Tests and doctests of optional packages are skipped where these are not installed."""

from __future__ import annotations

import importlib.util
import re

import pytest

#: Packages of optional extras, by the names that are imported.
OPTIONAL = (
    *("matplotlib", "rapidfuzz", "clarabel", "pyarrow", "openpyxl", "dask", "distributed"),
    *("torch", "triton", "pandas"),
)
ABSENT = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test that needs an optional package is skipped where that package is not installed.

    It needs it if it fails with an import error that names the package; any other failure counts.
    """
    report = yield
    if ABSENT and report.failed:
        errors = re.findall(r"(?:ModuleNotFoundError|ImportError)[:(].*", str(report.longrepr))
        for name in ABSENT:
            if any(re.search(rf"\b{name}\b", line) for line in errors):
                path, line, _ = item.location
                report.outcome = "skipped"
                report.longrepr = (path, line or 0, f"Skipped: {name} is not installed")
                break
    return report
