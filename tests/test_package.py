"""The package as a whole: what importing it costs, what it offers, how it is called."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import time
from importlib.metadata import version

import pytest

import multikernel as mk


def modules_after(code: str) -> tuple[set[str], float]:
    """What a fresh interpreter has imported after some code, and how long that took."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.split()), time.perf_counter() - started


def test_import_is_light(record_property, capsys):
    # scikit-learn itself imports pandas where it is installed; that is not ours to mend.
    below, _ = modules_after("import sklearn.svm, sklearn.model_selection")
    ours, seconds = modules_after("import multikernel; multikernel.MultiKernelClassifier")
    record_property("import_seconds", seconds)
    with capsys.disabled():
        print(f"\n  import multikernel in a fresh interpreter: {seconds:.2f} s")
    assert "multikernel.estimators.search" in ours
    assert not {"pandas", "matplotlib", "torch", "dask", "plotly", "highspy"} & (ours - below)


@pytest.mark.parametrize("heavy", ["pandas", "torch"])
def test_optional_means_optional(heavy):
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {heavy!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import multikernel as mk
"""
    code += "mk.MultiKernelClassifier().fit([[0.0], [1.0], [2.5]], [0, 1, 1]).predict([[0.5]])"
    modules_after(code)


def test_version():
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?([.-]?(a|b|rc|dev)\d*)*", mk.__version__)
    assert version("multikernel") == mk.__version__


def test_all_is_complete():
    assert len(set(mk.__all__)) == len(mk.__all__)
    for name in mk.__all__:
        assert hasattr(mk, name), name
    offered = {
        name
        for name, value in vars(mk).items()
        if not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value))
    }
    assert offered <= set(mk.__all__)
    assert "datasets" in mk.__all__


@pytest.mark.parametrize("name", [n for n in mk.__all__ if not n.startswith("_")])
def test_public_objects_have_a_docstring_with_an_example(name):
    doc = inspect.getdoc(getattr(mk, name))
    assert doc and len(doc.split("\n")[0]) > 10
    assert ">>>" in doc, f"the docstring of mk.{name} has no example"


@pytest.mark.parametrize(
    "name", [n for n in mk.__all__ if inspect.isclass(getattr(mk, n)) and n.startswith("Multi")]
)
def test_every_parameter_of_an_estimator_is_documented(name):
    cls = getattr(mk, name)
    parameters = cls().get_params(deep=False)
    text = re.sub(r"\s+", " ", inspect.getdoc(cls).split("Attributes\n")[0])
    for parameter in parameters:
        assert re.search(rf"\b{parameter}\b", text), f"{name}: {parameter} is not documented"
        assert parameter in cls._parameter_constraints, f"{name}: {parameter} is never checked"


def test_public_methods_have_docstrings():
    for name in mk.__all__:
        value = getattr(mk, name)
        if inspect.isclass(value):
            for attribute, member in vars(value).items():
                if not attribute.startswith("_") and callable(member):
                    assert inspect.getdoc(member), f"mk.{name}.{attribute}"


def test_the_library_speaks_through_logging_not_print(capsys):
    X = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]]
    mk.MultiKernelClassifier(mk.gaussians([0.1, 1.0])).fit(X, [0, 1, 0, 1]).predict(X)
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == ""
