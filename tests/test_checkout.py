"""The experiments are found from every folder in a checkout, and nowhere else."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import multikernel as mk
from multikernel import _checkout
from tests.cli.helpers import fail

SOURCE = Path(mk.__file__).parent


def python(*arguments, cwd):
    """Run Python in a folder, with the library's own folder on the path and nothing else of it."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """As if the library were installed outside a checkout."""
    monkeypatch.setattr(_checkout, "ROOT", tmp_path)


def test_nothing_in_the_library_imports_the_experiments():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not any(name.split(".")[0] == "experiments" for name in names), path


def test_experiments_are_found_from_any_folder(tmp_path):
    done = python("-m", "multikernel", "reproduce", cwd=tmp_path)
    assert done.returncode == 0 and "Kloft's toy experiment" in done.stdout
    code = "import multikernel as mk; print(mk.datasets.load('wdbc').data.shape)"
    assert python("-c", code, cwd=tmp_path).stdout == "(569, 30)\n"


def test_worker_processes_find_the_experiments(tmp_path):
    code = """
import joblib
from multikernel._checkout import import_experiments
toy = import_experiments("toy")
print(joblib.Parallel(n_jobs=2)(joblib.delayed(toy.direction)(k) for k in (1, 4))[1].max())
"""
    done = python("-c", code, cwd=tmp_path)
    assert done.stdout == "0.5\n", done.stderr


def test_data_sets_are_one_module():
    assert mk.datasets is _checkout.import_experiments("datasets")
    assert mk.datasets.__name__ == "experiments.datasets"


def test_another_package_of_that_name_is_not_taken_for_ours(tmp_path):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").touch()
    done = python("-m", "multikernel", "datasets", cwd=tmp_path)
    assert done.returncode == 1
    assert (
        f"hidden by another package of the same name, in {tmp_path / 'experiments'}" in done.stderr
    )


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("command", ["reproduce", "datasets"])
def test_commands_outside_a_checkout_say_where_the_experiments_are(command):
    said = fail(command)
    assert "part of the multikernel source tree" in said and "pip install -e ." in said


@pytest.mark.usefixtures("elsewhere")
def test_data_sets_are_not_offered_outside_a_checkout():
    assert "datasets" not in mk.__all__ and "datasets" not in dir(mk)
    with pytest.raises(ImportError, match="part of the multikernel source tree"):
        mk.datasets
    with pytest.raises(ImportError, match="part of the multikernel source tree"):
        from multikernel import datasets  # noqa: F401
