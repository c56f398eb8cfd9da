"""``import multikernel`` and ``multikernel --help`` bring in next to nothing.

What takes time to import are other packages: that they stay away is tested first. The time itself
is taken as the processor time of the import alone, some sixty times below what is allowed, so that
no busy machine can make the test fail.
"""

import json
import subprocess
import sys

import pytest

import multikernel as mk


def modules_after(code):
    """Names of the packages and modules that are loaded after some code, in a new process."""
    code += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def packages(modules):
    return {name.partition(".")[0] for name in modules}


def test_the_package_imports_nothing_heavy():
    modules = modules_after("import multikernel")
    heavy = {"numpy", "scipy", "sklearn", "numba", "pandas", "joblib", "rich", "typer", "skops"}
    assert not heavy & packages(modules)
    assert {name for name in modules if name.startswith("multikernel")} == {
        "multikernel",
        "multikernel._version",
    }


def test_engines_can_be_written_without_numba():
    """The waist is what an engine for another device imports."""
    modules = modules_after("import multikernel.grams.protocol")
    assert "multikernel.grams.protocol" in modules
    assert not {"numba", "llvmlite", "sklearn"} & packages(modules)


def test_the_package_imports_in_less_than_a_second():
    code = "from time import process_time as t; t0 = t(); import multikernel; print(t() - t0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1.0


def test_data_sets_are_listed_without_scikit_learn():
    modules = modules_after("import multikernel as mk; mk.datasets.names()")
    assert not {"sklearn", "scipy", "numba", "pandas"} & packages(modules)


def test_estimators_need_no_optional_package():
    modules = modules_after("import multikernel as mk; mk.MultiKernelClassifier()")
    assert "sklearn" in packages(modules)
    # scikit-learn itself brings pandas and with it pyarrow; these are ours to keep away.
    absent = {"matplotlib", "plotly", "typer", "skops", "torch", "dask", "clarabel"}
    assert not absent & packages(modules)
    heavy = {"sklearn.datasets", "sklearn.ensemble", "sklearn.svm", "multikernel.cli"}
    assert not heavy & modules


def test_help_imports_nothing_heavy():
    code = """
from typer.testing import CliRunner
from multikernel.cli import app
assert CliRunner().invoke(app, ["fit", "--help"]).exit_code == 0
"""
    assert not {"numpy", "scipy", "sklearn", "numba", "pandas"} & packages(modules_after(code))


def test_public_names_are_there_when_they_are_asked_for():
    code = """
import multikernel as mk
assert "MultiKernelClassifier" in dir(mk) and "datasets" in dir(mk)
from multikernel import *
assert Gaussian is mk.Gaussian and datasets is mk.datasets
"""
    modules_after(code)
    assert set(mk.__all__) <= set(dir(mk))


def test_names_that_are_not_there_are_refused_at_once():
    with pytest.raises(AttributeError, match="module 'multikernel' has no attribute 'Gausian'"):
        mk.Gausian
    code = "import multikernel as mk; assert not hasattr(mk, '__wrapped__')"
    assert "sklearn" not in packages(modules_after(code))
