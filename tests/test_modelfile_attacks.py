"""Model files that were made to do harm, disks that are full, processes that are killed."""

import gzip
import io
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile
import zlib

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


def test_bombs_with_sizes_that_lie_are_inflated_to_the_promised_size_only(model_file):
    """The archive promises 100 bytes, whose checksum is right; a megabyte of zeros follows."""
    promised, size = bytes(100), 64_000_000
    with zipfile.ZipFile(model_file, "a", zipfile.ZIP_DEFLATED) as target:
        target.writestr("bomb.npy", bytes(size))
    data = bytearray(model_file.read_bytes())
    crc = zlib.crc32(promised).to_bytes(4, "little")
    for mark, at in ((b"PK\x03\x04", 14), (b"PK\x01\x02", 16)):
        begin = data.rfind(mark)
        data[begin + at : begin + at + 4] = crc
        data[begin + at + 8 : begin + at + 12] = len(promised).to_bytes(4, "little")
    model_file.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"changed after it was written: bomb\.npy"):
            mk.load(model_file)
        assert tracemalloc.get_traced_memory()[1] < size / 10
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_that_cannot_be_bounded_are_refused(model_file, method):
    with zipfile.ZipFile(model_file, "a", method) as target:
        target.writestr("bomb.npy", bytes(1000))
    with pytest.raises(ModelFileError, match="compression"):
        mk.load(model_file)


def signed(path, change):
    """The file with other parts, and digests that agree with them."""

    def sign(members):
        parts = change({name: data for name, data in members if name != archive.HEADER})
        header = json.loads(dict(members)[archive.HEADER])
        header["sha256"] = {name: archive._digest(data) for name, data in parts.items()}
        return [*parts.items(), (archive.HEADER, json.dumps(header))]

    changed(path, sign)


@pytest.mark.parametrize("shape", [(10**12,), (10**6, 10**6), (1,), (-1,), ()])
def test_arrays_that_promise_another_size_are_refused(model_file, shape):
    def lie(parts):
        name = max((n for n in parts if n.endswith(".npy")), key=lambda n: len(parts[n]))
        file = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": shape}
        )
        return parts | {name: file.getvalue() + bytes(80)}

    signed(model_file, lie)
    with pytest.raises(ModelFileError, match=r"is not (what follows|a readable)"):
        mk.load(model_file)


def test_arrays_of_objects_are_not_unpickled(model_file):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(model_file.with_name("harm")),)

    def spoil(parts):
        name = next(n for n in parts if n.endswith(".npy"))
        file = io.BytesIO()
        np.save(file, np.array([Harm()], dtype=object), allow_pickle=True)
        return parts | {name: file.getvalue()}

    signed(model_file, spoil)
    with pytest.raises(ModelFileError):
        mk.load(model_file)
    assert not model_file.with_name("harm").exists()


@pytest.mark.parametrize(
    "pickled",
    [
        *(pickle.dumps(X, protocol=protocol) for protocol in range(6)),
        gzip.compress(pickle.dumps(X), mtime=0),
        b"",
        b"\x00" * 1000,
        b"PK\x03\x04",
        b"PK\x05\x06" + bytes(18),
        b"\x89HDF\r\n\x1a\n",
        "{}".encode("utf-16"),
    ],
    ids=lambda value: repr(value[:6]),
)
def test_pickles_and_foreign_files_are_refused_unread(tmp_path, pickled):
    path = tmp_path / "model.skops"
    path.write_bytes(pickled)
    with pytest.raises(ModelFileError, match=re.escape(str(path))):
        mk.load(path)


@pytest.mark.parametrize("number", [2, 10**9, 0, -1, True, 1.5, "1", None, [1]])
def test_formats_that_are_not_known(model_file, number):
    def age(members):
        header = json.loads(dict(members)[archive.HEADER]) | {"format": number}
        rest = [one for one in members if one[0] != archive.HEADER]
        return [*rest, (archive.HEADER, json.dumps(header))]

    changed(model_file, age)
    later = type(number) is int and number > archive.FORMAT
    with pytest.raises(ModelFileError, match="Upgrade" if later else "header"):
        mk.load(model_file)


def test_a_header_of_brackets_and_many_parts_are_refused_quickly(model_file):
    deep = ("[" * 100_000).encode()
    changed(model_file, lambda members: [*members[:-1], (archive.HEADER, deep)])
    with pytest.raises(ModelFileError, match="header"):
        mk.load(model_file)
    with zipfile.ZipFile(model_file, "w") as target:
        for i in range(20_000):  # comparing each with each would take minutes
            target.writestr(f"{i}.npy", b"")
    with pytest.raises(ModelFileError, match="zip archive"):
        mk.load(model_file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_pipes_and_devices_do_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ModelFileError, match="device or a pipe"):
            mk.load(path)


# -- every byte, many bits -------------------------------------------------------------------------


def refuse_cut(path, lengths):
    data = path.read_bytes()
    for length in lengths:
        path.write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            mk.load(path)


def test_cut_at_some_bytes(model_file):
    size = model_file.stat().st_size
    refuse_cut(model_file, [*range(0, size - 100, 61), *range(size - 100, size)])


@pytest.mark.slow
def test_cut_at_every_byte(model_file):
    refuse_cut(model_file, range(model_file.stat().st_size))


def flip(path, model, times):
    """Flip bits, one at a time; a flip that is not noticed must not change anything."""
    rng, expected = np.random.default_rng(0), model.decision_function(X)
    data = bytearray(path.read_bytes())
    refused = 0
    for at in rng.integers(8 * len(data), size=times).tolist():
        data[at // 8] ^= 1 << at % 8
        path.write_bytes(data)
        data[at // 8] ^= 1 << at % 8
        try:
            again = mk.load(path)
        except ModelFileError:
            refused += 1
        else:  # a time stamp, or a length that is written a second time
            np.testing.assert_array_equal(again.decision_function(X), expected)
    return refused


def test_some_flipped_bits(model_file, model):
    assert flip(model_file, model, 300) > 200


@pytest.mark.slow
def test_ten_thousand_flipped_bits(model_file, model):
    assert flip(model_file, model, 10_000) > 7_500


# -- killed, full, at once -------------------------------------------------------------------------

WRITER = """
import os, signal, sys, multikernel as mk
model = mk.load(sys.argv[1])
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.write(1, b".")
        while True:
            mk.save(model, sys.argv[2])
            os.write(1, b".")
    sys.stdin.readline()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.write(1, b"!")
"""


def kill_while_saving(source, target, times):
    """Kill processes that save for ever; returns how many left a part of a file behind."""
    expected = mk.load(source).decision_function(X)
    rng, littered = np.random.default_rng(0), 0
    command = [sys.executable, "-c", WRITER, str(source), str(target)]
    # Children of one process: importing the library takes longer than a thousand files.
    parent = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    for _ in range(times):
        parent.stdin.write("start\n")
        parent.stdout.read(int(rng.integers(1, 4)))  # so many files were written
        np.testing.assert_array_equal(mk.load(target).decision_function(X), expected)
        time.sleep(rng.uniform(0.0, 0.01))
        parent.stdin.write("kill\n")
        while parent.stdout.read(1) != "!":
            pass
        np.testing.assert_array_equal(mk.load(target).decision_function(X), expected)
        litter = [path for path in target.parent.iterdir() if path.suffix == ".part"]
        assert len(litter) <= 1, "parts of earlier writers stayed"
        littered += len(litter)
    parent.communicate()
    mk.save(mk.load(source), target)
    assert {path.name for path in target.parent.iterdir()} == {source.name, target.name}
    return littered


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill -9")


@forks
def test_killed_while_saving(model, tmp_path):
    source, target = tmp_path / "source.skops", tmp_path / "target.skops"
    mk.save(model, source)
    mk.save(model, target)
    kill_while_saving(source, target, 20)


@forks
@pytest.mark.slow
def test_killed_while_saving_two_hundred_times(model, tmp_path):
    source, target = tmp_path / "source.skops", tmp_path / "target.skops"
    mk.save(model, source)
    mk.save(model, target)
    assert kill_while_saving(source, target, 200) > 0  # the test meets the moments it is about


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
