"""Every command explains itself."""

import re

import pytest

from multikernel import __version__
from tests.cli.helpers import answer, call, fail, succeed

COMMANDS = [
    *("demo", "fit", "compare", "predict", "explain", "report"),
    *("certificate", "bank", "reproduce", "datasets"),
]


def test_the_list_of_commands_is_what_help_shows():
    text = succeed("--help").stdout
    assert [name for name in COMMANDS if re.search(rf"\b{name}\b", text)] == COMMANDS
    assert succeed("--version").stdout.strip() == f"multikernel {__version__}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_and_the_common_options(name):
    text = succeed(name, "--help").stdout
    assert f"multikernel {name}" in text.split("Example")[1]
    assert "--json" in text and "--quiet" in text


@pytest.mark.parametrize("name", ["fit", "compare"])
def test_the_number_of_folds_is_told(name):
    text = " ".join(re.sub("[│|]", " ", succeed(name, "--help").stdout).split())
    assert re.search(r"--folds .*?Number of cross-validation folds\. \[default: 5\]", text)


def test_wrong_usage_has_its_own_exit_code():
    assert call("fit").exit_code == 2
    assert call("no-such-command").exit_code == 2
    assert "'sideways' is not one of" in fail("fit", "a.csv", "--task", "sideways", code=2)


def test_errors_are_one_message_and_json_has_it_too(tmp_path):
    assert fail("fit", tmp_path / "no.csv", "-y", "a").startswith("Error: There is no data file")
    done = call("fit", tmp_path / "no.csv", "-y", "a", "--json")
    assert done.exit_code == 1 and '"error": "There is no data file' in done.stdout


def test_a_traceback_is_there_for_those_who_ask(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTIKERNEL_TRACEBACK", "1")
    done = call("fit", tmp_path / "no.csv", "-y", "a")
    assert isinstance(done.exception, FileNotFoundError)


def test_interrupts_have_their_own_exit_code(animals, monkeypatch):
    def interrupt(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("multikernel.files.load", interrupt)
    assert call("predict", animals, animals).exit_code == 130


def test_datasets_are_listed_described_and_written(tmp_path):
    assert "wdbc" in succeed("datasets").stdout.split()
    assert "wdbc" in answer("datasets")["datasets"]
    said = answer("datasets", "digits")
    assert (said["samples"], said["features"], said["task"]) == (1797, 64, "multiclass")
    path = tmp_path / "wdbc.csv"
    assert "569 samples" in succeed("datasets", "wdbc", "--out", path).stdout
    lines = path.read_text().splitlines()
    assert len(lines) == 570 and lines[0].endswith(",y")
    assert "Did you mean 'wdbc'" in fail("datasets", "wdbcc")
    assert "Name the data set" in fail("datasets", "--out", path)


def test_nowhere_to_store_compiled_code_is_an_error(monkeypatch):
    monkeypatch.setattr("multikernel._compiling.kept_in", lambda: None)
    monkeypatch.setattr("multikernel.cli.warm_up._tasks", dict)
    assert "set NUMBA_CACHE_DIR to a writable folder" in fail("warm-up")
    done = call("warm-up", "--json")
    assert done.exit_code == 1 and '"error": "Compiled code cannot be stored' in done.stdout
