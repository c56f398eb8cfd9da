"""The readers are held against files written here; no test touches the network."""

from __future__ import annotations

import gzip
import json
import logging
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.datasets
from sklearn.utils import Bunch

from experiments import datasets


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a set of one file into a folder of its own, and let the library look there."""
    monkeypatch.setenv("MULTIKERNEL_DATA", str(tmp_path))
    index: dict = {}

    def write(name, content, **entry):
        if isinstance(content, str):
            entry["file"] = f"{name}.csv.gz"
            (tmp_path / entry["file"]).write_bytes(gzip.compress(content.encode()))
        else:
            entry["file"] = f"{name}.npz"
            np.savez_compressed(tmp_path / entry["file"], **content)
        index[name] = {"task": "binary", **entry}
        (tmp_path / "index.json").write_text(json.dumps(index))

    return write


@pytest.fixture
def no_folder(monkeypatch):
    monkeypatch.setattr(datasets, "folder", lambda: None)


@pytest.fixture
def openml(monkeypatch):
    """Stand in for OpenML: answer with `openml.answer`, or raise it."""

    class OpenML:
        answer: Bunch | Exception = OSError("no network in the tests")
        asked: tuple = ()

        def __call__(self, name, *, version, **options):
            self.asked = (name, version)
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    stand_in = OpenML()
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", stand_in)
    return stand_in


def test_csv_keeps_numbers_order_and_missing_entries(write):
    write("toy", "a,b,y\n0.1,2,1\n,3,-1\n1e-3,4,1\n", source="a book")
    toy = datasets.load("toy")
    np.testing.assert_array_equal(toy.data, [[0.1, 2], [np.nan, 3], [1e-3, 4]])
    np.testing.assert_array_equal(toy.target, [1, -1, 1])
    assert toy.target.dtype == int
    assert (toy.task, toy.feature_names, toy.views, toy.extra) == ("binary", ["a", "b"], None, {})
    assert "Missing entries: 1, left as NaN" in toy.DESCR
    assert toy.source.endswith("from a book")


@pytest.mark.parametrize(
    ("task", "cells", "dtype"),
    [("regression", "12", "f"), ("multiclass", "12", "i"), ("multiclass", ("cp", "im"), "U")],
)
def test_csv_target_has_the_type_of_its_task(write, task, cells, dtype):
    write("toy", f"a,y\n1,{cells[0]}\n2,{cells[1]}\n", task=task)
    toy = datasets.load("toy")
    assert toy.target.dtype.kind == dtype
    assert ("Classes" in toy.DESCR) == (task != "regression")


def test_csv_is_read_without_pandas(write, monkeypatch):
    write("toy", "a,y\n1,1\n2,-1\n")
    write("words", "text,y\nhello,1\n", text=True)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert datasets.load("toy").data.shape == (2, 1)
    with pytest.raises(ImportError, match="install pandas"):
        datasets.load("words")


def test_text_is_a_frame_and_columns_beside_go_to_extra(write):
    pytest.importorskip("pandas")
    write(
        "words",
        'title,text,rating,split,y\nNA,"a, ""b""\nc",5,train,1\n,d,,test,-1\n',
        text=True,
        beside=["rating", "split"],
    )
    words = datasets.load("words")
    assert list(words.data["title"]) == ["NA", ""]  # strings stay strings: no NaN here
    assert list(words.data["text"]) == ['a, "b"\nc', "d"]
    np.testing.assert_array_equal(words.extra["rating"], [5, np.nan])
    np.testing.assert_array_equal(words.extra["split"], ["train", "test"])


def test_npz_plain(write, rng):
    X = rng.integers(0, 255, size=(4, 3), dtype=np.uint8)
    write("toy", {"X": X, "y": np.int8([0, 1, 2, 0]), "n_train": np.int64(3)}, task="multiclass")
    toy = datasets.load("toy")
    np.testing.assert_array_equal(toy.data, X)
    assert (toy.data.dtype, toy.target.dtype) == (np.float32, int)
    assert toy.extra == {"n_train": 3}


def test_npz_views_are_slices_of_the_columns(write, rng):
    views = {"b": rng.normal(size=(5, 2)), "a": rng.normal(size=(5, 3))}
    write("toy", {**views, "y": np.ones(5, int), "train": np.ones(5, bool)}, views=["b", "a"])
    toy = datasets.load("toy")
    assert toy.views == {"b": slice(0, 2), "a": slice(2, 5)}
    for name, X in views.items():
        np.testing.assert_array_equal(toy.data[:, toy.views[name]], X)
    assert toy.feature_names == ["b_0", "b_1", "a_0", "a_1", "a_2"]
    assert list(toy.extra) == ["train"]


def test_npz_sparse_stays_sparse(write, rng):
    dense = rng.random((6, 5)) < 0.4
    X = sp.csr_array(dense)
    arrays = {"indices": X.indices.astype(np.uint8), "indptr": X.indptr, "shape": np.array(X.shape)}
    write("toy", {**arrays, "y": np.ones(6, int)})
    toy = datasets.load("toy")
    assert sp.issparse(toy.data)
    assert toy.data.format == "csr"
    np.testing.assert_array_equal(toy.data.toarray(), dense)


def test_npz_nibbles_are_unpacked(write, rng):
    X = rng.integers(0, 16, size=(3, 6), dtype=np.uint8)
    write("toy", {"packed": X[:, 0::2] << 4 | X[:, 1::2], "y": np.ones(3, int)})
    np.testing.assert_array_equal(datasets.load("toy").data, X)


def test_unknown_name_suggests_close_ones(write):
    write("waveform", "a,y\n1,1\n")
    with pytest.raises(ValueError, match=r"'waveforn'\. Did you mean 'waveform'\?"):
        datasets.load("waveforn")


def test_unknown_name_without_a_folder_says_how_to_get_one(no_folder):
    with pytest.raises(ValueError, match="set MULTIKERNEL_DATA"):
        datasets.load("zzz")


def test_a_wrong_folder_is_an_error_and_no_silent_download(tmp_path, monkeypatch):
    monkeypatch.setenv("MULTIKERNEL_DATA", str(tmp_path / "typo"))
    with pytest.raises(FileNotFoundError, match=r"MULTIKERNEL_DATA names .*typo"):
        datasets.load("wdbc")


def test_an_absent_file_is_named(write, tmp_path):
    write("toy", "a,y\n1,1\n")
    (tmp_path / "toy.csv.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"toy\.csv\.gz"):
        datasets.load("toy")


@pytest.mark.usefixtures("no_folder", "openml")
@pytest.mark.parametrize("name", ["wdbc", "digits", "diabetes_progression"])
def test_bundled_sets_need_no_network(name, caplog):
    with caplog.at_level(logging.INFO, logger="experiments.datasets"):
        bunch = datasets.load(name)
    assert bunch.data.shape == datasets._ORIGINS[name].shape
    assert bunch.source.startswith("sklearn.datasets.load_")
    assert bunch.source in caplog.text


@pytest.mark.usefixtures("no_folder")
def test_openml_set_is_converted(openml, rng):
    labels = np.array(["g"] * 225 + ["b"] * 126, dtype=object)
    openml.answer = Bunch(
        data=rng.normal(size=(351, 34)), target=labels, feature_names=[f"a{j}" for j in range(34)]
    )
    bunch = datasets.load("ionosphere")
    assert openml.asked == ("ionosphere", 1)
    np.testing.assert_array_equal(bunch.target, [1] * 225 + [-1] * 126)
    assert bunch.source == "OpenML 'ionosphere', version 1"


@pytest.mark.usefixtures("no_folder")
def test_openml_set_that_is_another_one_is_refused(openml, rng):
    openml.answer = Bunch(
        data=rng.normal(size=(351, 33)), target=np.array(["g"] * 351), feature_names=[]
    )
    with pytest.raises(FileNotFoundError, match="so it is a different data set"):
        datasets.load("ionosphere")


@pytest.mark.usefixtures("no_folder")
@pytest.mark.parametrize("error", [OSError("timed out"), ValueError("no dataset")])
def test_failure_says_what_where_and_what_to_do(openml, error):
    openml.answer = error
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("kin8nm")
    for part in ("'kin8nm'", "OpenML 'kin8nm', version 1", str(error), "MULTIKERNEL_DATA"):
        assert part in str(caught.value)


def test_local_sets_are_what_their_index_says(data_dir):
    for name, entry in datasets._index(data_dir).items():
        if entry.get("text"):
            pytest.importorskip("pandas")
        bunch = datasets.load(name)
        n, d = bunch.data.shape
        assert (n, len(bunch.target), len(bunch.feature_names)) == (entry["n"], entry["n"], d)
        if not (entry.get("text") or bunch.views):  # there the index counts in its own way
            assert d == entry["d"]
        if entry["task"] != "regression":
            labels, sizes = np.unique(bunch.target, return_counts=True)
            assert dict(zip(map(str, labels), sizes.tolist(), strict=True)) == entry["classes"]
        assert ("Missing" in bunch.DESCR) == (entry["missing"] > 0)


def test_wdbc_is_the_same_set_in_both_places(requires_data, monkeypatch):
    requires_data("wdbc")
    local = datasets.load("wdbc")
    monkeypatch.setattr(datasets, "folder", lambda: None)
    bundled = datasets.load("wdbc")
    # Copies of this set circulate that keep six decimals and so round a few tiny entries.
    np.testing.assert_allclose(local.data, bundled.data, rtol=0, atol=5e-7)
    np.testing.assert_array_equal(local.target, bundled.target)


def test_origins_agree_with_the_local_index(data_dir):
    index = datasets._index(data_dir)
    for name in datasets._ORIGINS.keys() & index.keys():
        origin, entry = datasets._ORIGINS[name], index[name]
        assert (origin.task, origin.shape) == (entry["task"], (entry["n"], entry["d"]))
        if origin.positive is not None:
            assert origin.positive[1] == entry["classes"]["1"]
