"""The files of the project agree: versions, dependencies, interpreters, citations."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import multikernel as mk
from tests.floors import floors

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(*parts):
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def test_one_version_everywhere():
    assert re.search(r"^version: (.*)$", read("CITATION.cff"), re.M)[1] == mk.__version__
    assert re.search(r'set version = "(.*)"', read("conda", "meta.yaml"))[1] == mk.__version__
    assert f"## [{mk.__version__}]" in read("CHANGELOG.md")


def test_the_conda_recipe_has_the_dependencies_of_the_package():
    run = read("conda", "meta.yaml").partition("  run:\n")[2].partition("\ntest:")[0]
    listed = {line.strip("- ").replace(" ", "") for line in run.splitlines() if "- " in line}
    expected = {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    assert listed == expected


def test_workflows_try_every_python_that_is_claimed():
    claimed = set(re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"])))
    matrix = re.search(r"python: \[(.*)\]", read(".github", "workflows", "tests.yml"))[1]
    assert claimed <= set(re.findall(r"3\.\d+", matrix))
    assert min(claimed, key=lambda v: int(v[2:])) == PROJECT["requires-python"].strip(">=")


def test_every_dependency_has_a_floor():
    assert {"numpy", "scikit-learn", "highspy", "matplotlib", "pytest"} <= set(floors())


def test_the_paper_cites_what_its_bibliography_has():
    cited = set(re.findall(r"@(\w+)", read("paper", "paper.md").split("# Summary")[1]))
    listed = set(re.findall(r"^@\w+\{(\w+),", read("paper", "paper.bib"), re.M))
    assert cited == listed
    assert (ROOT / "paper" / "views.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["CODE_OF_CONDUCT", "SECURITY", "GOVERNANCE", "CONTRIBUTING"])
def test_links_of_project_files_lead_somewhere(name):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", read(f"{name}.md")):
        assert (ROOT / target).exists(), target


def test_every_dependency_has_its_licence_listed():
    optional = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    names = {re.match(r"[\w.-]+", line)[0] for line in [*PROJECT["dependencies"], *optional]}
    text = read("docs", "decisions.md").split("## Licences")[1]
    rows = " ".join(line.split("|")[1] for line in text.splitlines() if line.count("|") == 4)
    listed = set(re.findall(r"[\w.-]+", rows))
    assert names - {"multikernel"} <= listed, names - listed


def test_what_users_install_is_free_of_copyleft():
    """The licences that packages themselves declare, of all that is required, however deep."""
    waiting, seen = ["multikernel"], set()
    while waiting:
        name = waiting.pop().lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for other systems or Pythons
        told = package.metadata
        kinds = [c for c in told.get_all("Classifier") or [] if c.startswith("License ::")]
        words = f"{told.get('License-Expression') or ''} {' '.join(kinds)}"
        assert not re.search(r"\bA?L?GPL|GNU|MPL|Mozilla", words), (name, words)
        needed = [line for line in package.requires or [] if "extra ==" not in line]
        waiting += [re.match(r"[\w.-]+", line)[0] for line in needed]
    assert {"numpy", "scikit-learn", "skops", "typer"} <= seen
