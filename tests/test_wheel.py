"""What is built is what can be installed and used: sdist, wheel, a clean environment.

Dependencies are not fetched: the environment sees those of the tests through a ``.pth`` file, the
package itself comes from the wheel and from nowhere else.
"""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import multikernel

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "multikernel"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("hatchling") is None,
        reason="hatchling, which builds the wheel, is not installed (pip install hatchling)",
    ),
    pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="no source tree to build"),
]


def run(*command, cwd, code=0, **environment):
    """The standard output of a command that ends with this code, or its errors if that is not 0."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stderr if code else done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The sdist, and the wheel that is built from it, as ``python -m build`` does."""
    folder = tmp_path_factory.mktemp("dist")
    if importlib.util.find_spec("build") is not None:
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    else:
        run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            archive.extractall(folder / "unpacked", filter="data")
        (source,) = (folder / "unpacked").iterdir()
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """A new environment with the wheel in it: its folder of programs."""
    folder = tmp_path_factory.mktemp("clean") / "env"
    venv.create(folder, with_pip=False)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    python = programs / ("python.exe" if os.name == "nt" else "python")
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-c", where, cwd=folder).strip())
    own = Path(sysconfig.get_path("purelib"))
    # Only packages, no .pth files of that place: an editable install must not shine through.
    (site / "dependencies.pth").write_text(f"{own}\n")
    options = ("--no-deps", "--no-index", "--quiet", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, dist[1], cwd=folder)
    return programs, site


def test_the_wheel_holds_the_package_and_nothing_else(dist):
    with zipfile.ZipFile(dist[1]) as archive:
        names = set(archive.namelist())
    expected = {
        f"multikernel/{path.relative_to(SOURCE).as_posix()}"
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if name.startswith("multikernel/")} == expected
    for needed in ("py.typed", "report/templates/page.css", "report/templates/page.js"):
        assert f"multikernel/{needed}" in names
    info = f"multikernel-{multikernel.__version__}.dist-info"
    rest = {name.partition("/")[0] for name in names if not name.startswith("multikernel/")}
    assert rest == {info}
    # What belongs to the checkout alone. The command `multikernel datasets` stays.
    assert not any("experiments" in name for name in names)
    assert {name for name in names if "datasets" in name} == {"multikernel/cli/datasets.py"}


def test_the_source_distribution_holds_what_tests_need(dist):
    with tarfile.open(dist[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("pyproject.toml", "README.md", "LICENSE", "tests/test_wheel.py"):
        assert needed in names
    assert {"experiments/__init__.py", "experiments/toy.py", "experiments/datasets.py"} <= names
    fixtures = {f"tests/modelfiles/{p.name}" for p in (ROOT / "tests/modelfiles").iterdir()
                if p.is_file()}  # fmt: skip
    assert fixtures <= names and any(name.endswith(".skops") for name in fixtures)
    assert not any(part in name for name in names for part in ("_build/", "__pycache__", ".venv"))


def test_extras_and_the_command_are_in_the_metadata(dist):
    with zipfile.ZipFile(dist[1]) as archive:
        info = f"multikernel-{multikernel.__version__}.dist-info"
        text = archive.read(f"{info}/METADATA").decode()
        commands = archive.read(f"{info}/entry_points.txt").decode()
    extras = {line.split()[1] for line in text.splitlines() if line.startswith("Provides-Extra:")}
    assert {"plot", "report", "tables", "sequences", "sdp", "docs", "test"} <= extras
    assert "multikernel = multikernel.cli:main" in commands


def test_every_module_of_the_installed_package_can_be_imported(installed, tmp_path):
    programs, site = installed
    code = """
import importlib, json, pkgutil, multikernel
names = [m.name for m in pkgutil.walk_packages(multikernel.__path__, "multikernel.")
         if not m.name.endswith(("__main__", "gpu._programs"))]  # the latter needs triton
for name in names:
    importlib.import_module(name)
for name in multikernel.__all__:
    getattr(multikernel, name)
print(json.dumps([multikernel.__file__, names]))
"""
    said = run(programs / "python", "-c", code, cwd=tmp_path)
    place, names = json.loads(said.splitlines()[-1])
    assert Path(place).is_relative_to(site)  # the wheel, not the checkout
    assert {"multikernel.cli.fit", "multikernel.report.page", "multikernel.files.types"} <= {*names}


def test_the_installed_command_helps_and_shows_its_demo(installed, tmp_path):
    programs, _ = installed
    command = programs / "multikernel"
    assert "demo" in run(command, "--help", cwd=tmp_path)
    assert (
        run(command, "--version", cwd=tmp_path).strip() == f"multikernel {multikernel.__version__}"
    )
    said = json.loads(run(command, "demo", "--json", cwd=tmp_path))
    page = tmp_path / "multikernel-demo.html"
    assert Path(said["report"]).name == page.name and len(said["leaderboard"]["rows"]) == 7
    text = page.read_text(encoding="utf-8")
    assert "<style>" in text and "--paper" in text and "Not shown" not in text


@pytest.mark.parametrize("command", ["reproduce", "datasets"])
def test_the_installed_command_says_that_experiments_are_in_the_checkout(
    installed, tmp_path, command
):
    programs, _ = installed
    said = run(programs / "multikernel", command, cwd=tmp_path, code=1)
    assert said.startswith("Error: ") and "Traceback" not in said
    assert "source tree" in said and "pip install -e ." in said


def test_the_installed_package_imports_without_its_data_sets(installed, tmp_path):
    programs, _ = installed
    code = """
import multikernel as mk
from multikernel import *
assert "datasets" not in dir(mk) and "datasets" not in mk.__all__
mk.datasets
"""
    said = run(programs / "python", "-c", code, cwd=tmp_path, code=1)
    assert said.splitlines()[-1].startswith("ImportError: The paper experiments and")


def test_a_stored_model_is_read_by_the_installed_package(installed, tmp_path):
    programs, _ = installed
    path = ROOT / "tests" / "modelfiles" / "format-1-classifier.skops"
    code = f"import multikernel as mk; print(type(mk.load({str(path)!r})).__name__)"
    assert run(programs / "python", "-c", code, cwd=tmp_path).strip() == "MultiKernelClassifier"
