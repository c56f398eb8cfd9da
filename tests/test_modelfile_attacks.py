"""Model files that were made to do harm, disks that are full, processes that are killed."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import pytest

import multikernel as mk
from multikernel import _archive as archive
from multikernel.files import ModelFileError

X = np.random.default_rng(0).normal(size=(20, 2))
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture(scope="module")
def model():
    return mk.MultiKernelClassifier([mk.Gaussian(1.0)], "uniform").fit(X, Y)


@pytest.fixture
def model_file(model, tmp_path):
    return mk.save(model, tmp_path / "model.skops")


def changed(path, change):
    """The file with other members: ``change`` gets the list of (name, content)."""
    with zipfile.ZipFile(path) as source:
        members = [(name, source.read(name)) for name in source.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in change(members):
            target.writestr(name, content)


@pytest.mark.parametrize("name", ["../evil.npy", "/etc/evil", "a/b.npy", "a\\b.npy"])
def test_names_that_lead_elsewhere(model_file, name):
    changed(model_file, lambda members: [*members, (name, b"x")])
    with pytest.raises(ModelFileError, match="another folder"):
        mk.load(model_file)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_parts_that_occur_twice(model_file):
    changed(model_file, lambda members: [*members, members[0]])
    with pytest.raises(ModelFileError, match="twice"):
        mk.load(model_file)


def test_bombs_are_not_inflated(model_file, monkeypatch):
    monkeypatch.setattr(archive, "MAX_MEMORY_SHARE", 1e-9)
    monkeypatch.setattr(archive, "MIN_SIZE_LIMIT", 1e6)
    changed(model_file, lambda members: [*members, ("bomb.npy", bytes(2_000_000))])
    assert model_file.stat().st_size < 100_000
    with pytest.raises(ModelFileError, match="memory"):
        mk.load(model_file)


def test_sizes_that_lie_are_noticed(model_file):
    data = bytearray(model_file.read_bytes())
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as source:
        part = source.infolist()[0]
    at = data.find(b"PK\x01\x02")
    data[at + 24 : at + 28] = (part.file_size - 1).to_bytes(4, "little")
    model_file.write_bytes(bytes(data))
    with pytest.raises(ModelFileError):
        mk.load(model_file)


WRITER = """
import sys, multikernel as mk
model = mk.load(sys.argv[1])
print("ready", flush=True)
while True:
    mk.save(model, sys.argv[2])
"""


def kill_while_saving(source, target, times):
    expected = mk.load(source).decision_function(X)
    rng = np.random.default_rng(0)
    for _ in range(times):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(source), str(target)], stdout=subprocess.PIPE
        )
        child.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.05))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        np.testing.assert_array_equal(mk.load(target).decision_function(X), expected)


def test_killed_while_saving(model, tmp_path):
    source, target = tmp_path / "source.skops", tmp_path / "target.skops"
    mk.save(model, source)
    mk.save(model, target)
    kill_while_saving(source, target, 2)


@pytest.mark.slow
def test_killed_while_saving_two_hundred_times(model, tmp_path):
    source, target = tmp_path / "source.skops", tmp_path / "target.skops"
    mk.save(model, source)
    mk.save(model, target)
    kill_while_saving(source, target, 200)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs limits of a process")
def test_a_full_disk_leaves_the_old_file(model_file):
    before = model_file.read_bytes()
    code = """
import resource, signal, sys, multikernel as mk
model = mk.load(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    mk.save(model, sys.argv[1])
except OSError as error:
    print("refused", error.errno)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(model_file)], capture_output=True, text=True, check=True
    )
    assert "refused" in done.stdout
    assert model_file.read_bytes() == before
    assert sorted(p.name for p in model_file.parent.iterdir()) == [model_file.name]


def test_readers_and_writers_at_once(model, tmp_path):
    place = mk.save(model, tmp_path / "model.skops")
    expected, wrong = model.decision_function(X), []

    def write():
        for _ in range(10):
            mk.save(model, place)

    def read():
        for _ in range(10):
            if not np.array_equal(mk.load(place).decision_function(X), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for work in (write, write, read, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]
