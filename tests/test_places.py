"""Files appear whole or not at all, and the dead leave no litter for ever."""

import os
import stat
import subprocess
import sys
import threading

import pytest

from multikernel._places import (
    append_line,
    check_place,
    replacing,
    save_figure,
    whole_lines,
    write_atomically,
    write_csv,
)
from multikernel.tables.writing import TableWriter, write_columns

posix = pytest.mark.skipif(os.name != "posix", reason="locks and modes of POSIX")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_when_the_block_ends(tmp_path):
    path = write_atomically(tmp_path / "a.txt", "old\n")
    with replacing(path) as part:
        part.write_text("new\n")
        assert path.read_text() == "old\n" and part.parent == tmp_path
    assert path.read_bytes() == b"new\n" and names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = write_atomically(tmp_path / "a.txt", "old")
    with pytest.raises(error), replacing(path) as part:
        part.write_text("half")
        raise error
    assert path.read_text() == "old" and names(tmp_path) == ["a.txt"]


def test_places_without_a_folder_and_folders_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="name a file"):
        check_place(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"), replacing(tmp_path / "no" / "a"):
        pass


KILLED = """
import os, signal, sys
from multikernel._places import replacing
with replacing(sys.argv[1]) as part:
    part.write_text("half")
    print(part.name, flush=True)
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.readline()
"""


def start(path, what):
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@posix
def test_parts_of_the_dead_are_removed_by_the_next_writer_and_those_of_the_living_stay(tmp_path):
    path, other = tmp_path / "a.txt", write_atomically(tmp_path / ".a.txt.mine", "x")
    dead = start(path, "die")
    dead.wait()
    assert names(tmp_path) == sorted([other.name, dead.stdout.read().strip()])
    living = start(path, "wait")
    part = living.stdout.readline().strip()
    assert names(tmp_path) == sorted([other.name, part])  # it has cleaned up
    write_atomically(path, "from here")
    assert names(tmp_path) == sorted([other.name, part, "a.txt"])
    living.communicate("go on\n")
    assert path.read_text() == "half" and names(tmp_path) == sorted([other.name, "a.txt"])


def test_a_part_that_was_taken_for_dead_is_made_again(tmp_path, monkeypatch):
    """Between making a part and locking it, another writer may have removed it."""
    from multikernel import _places

    locked, taken = _places._locked, []

    def slow(file):
        if not taken:
            taken.append(file.name)
            os.unlink(file.name)
        return locked(file)

    if _places.fcntl is None:
        pytest.skip("no locks here")
    monkeypatch.setattr(_places, "_locked", slow)
    write_atomically(tmp_path / "a.txt", "whole")
    assert taken and names(tmp_path) == ["a.txt"]


@posix
def test_a_part_that_a_cleaner_has_locked_is_left_to_it(tmp_path, monkeypatch):
    """The cleaner removes it a moment later, although its writer is alive."""
    from multikernel import _places

    locked, cleaners = _places._locked, []

    def slow(file):
        if not cleaners:
            cleaners.append(open(file.name, "rb"))  # noqa: SIM115
            assert locked(cleaners[0])
        return locked(file)

    monkeypatch.setattr(_places, "_locked", slow)
    with replacing(tmp_path / "a.txt") as part:
        part.write_text("whole")
        os.unlink(cleaners[0].name)
        cleaners[0].close()
    assert names(tmp_path) == ["a.txt"]


@posix
def test_permissions_and_links_are_kept(tmp_path):
    path = write_atomically(tmp_path / "a.txt", "one")
    before = os.umask(0o027)
    try:
        fresh = write_atomically(tmp_path / "b.txt", "two")
    finally:
        os.umask(before)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640
    path.chmod(0o600)
    (tmp_path / "link").symlink_to(path)
    with replacing(tmp_path / "link") as part:
        part.write_text("three")
        assert stat.S_IMODE(part.stat().st_mode) == 0o600
    assert path.read_text() == "three" and (tmp_path / "link").is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["a" * 250, "ü" * 120, "a[*].txt", "-", "a b\nc"])
def test_long_and_odd_names(tmp_path, name):
    write_atomically(tmp_path / name, b"x")
    write_atomically(tmp_path / name, b"y")
    assert names(tmp_path) == [name] and (tmp_path / name).read_bytes() == b"y"


@posix
def test_pipes_keep_their_name(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    seen = []
    reader = threading.Thread(target=lambda: seen.append(path.read_bytes()))
    reader.start()
    write_atomically(path, b"through")
    reader.join()
    assert seen == [b"through"] and stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet", ".arrow"])
def test_a_table_that_grows_appears_when_it_is_done(tmp_path, suffix):
    if suffix in (".parquet", ".arrow"):
        pytest.importorskip("pyarrow")
    path = write_atomically(tmp_path / f"table{suffix}", "old")
    with pytest.raises(RuntimeError), TableWriter(path) as writer:
        writer.write({"a": [1, 2]})
        raise RuntimeError
    assert path.read_text() == "old" and len(names(tmp_path)) == 1
    with TableWriter(path):
        pass  # nothing was written, nothing changes
    assert path.read_text() == "old"
    with TableWriter(path) as one, TableWriter(path) as another:
        one.write({"a": [1]})
        another.write({"a": [2]})
        one.write({"a": [1]})
    assert path.read_bytes() != b"old" and len(names(tmp_path)) == 1


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_table_that_cannot_be_written_leaves_the_old_one(tmp_path, suffix, monkeypatch):
    from multikernel import _places

    path = tmp_path / f"table{suffix}"
    write_columns({"a": [1, 2]}, path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_places.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_columns({"a": [3]}, path)
    assert path.read_bytes() == before and len(names(tmp_path)) == 1


def test_rows_and_pictures(tmp_path):
    path = write_csv(tmp_path / "rows.csv", [{"a": 1, "b": "x,y"}, {"a": 2, "b": "ü"}])
    assert path.read_text(encoding="utf-8") == 'a,b\n1,"x,y"\n2,ü\n'
    assert write_csv(tmp_path / "none.csv", []).read_text() == "\n"
    figure = pytest.importorskip("matplotlib.figure").Figure()
    assert save_figure(figure, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in save_figure(figure, tmp_path / "a.svg").read_bytes()
    assert names(tmp_path) == ["a.png", "a.svg", "none.csv", "rows.csv"]


def test_journals_forget_lines_that_were_not_finished(tmp_path):
    path = tmp_path / "journal.jsonl"
    assert whole_lines(path) == []
    append_line(path, "one")
    append_line(path, "zwölf")
    with path.open("ab") as file:
        file.write('{"half": "ü'.encode()[:-1])
    assert whole_lines(path) == ["one", "zwölf"]
    append_line(path, "three")
    assert whole_lines(path) == ["one", "zwölf", "three"]
    assert path.read_bytes().endswith(b"three\n")


def test_nothing_else_writes_results():
    """Benchmarks, experiments and the library write their files through these functions."""
    from pathlib import Path

    root = Path(__file__).parents[1]
    others = {
        "src/multikernel/_places.py",
        "benchmarks/environments.py",  # the stamp of an environment
        "benchmarks/peers/common.py",  # problems for peers, in a temporary folder
        "benchmarks/bench_summary.py",  # asks Linux to forget a peak of memory
        "benchmarks/clustering.py",  # views for a peer, in a temporary folder
        "benchmarks/missing_views.py",  # the same
    }
    found = set()
    for folder in ("src", "experiments", "benchmarks"):
        for path in (root / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            direct = (".write_text(", ".write_bytes(", ".savefig(", 'open("w"', "np.savez(")
            if any(part in text for part in direct):
                found.add(path.relative_to(root).as_posix())
    assert found <= others, found - others
