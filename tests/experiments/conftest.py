"""Experiments draw figures, and their tests ask for them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    if importlib.util.find_spec("matplotlib") is None:
        skip = pytest.mark.skip(reason="matplotlib is not installed")
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(skip)
