"""Reading files, finding the kind of problem, encoding columns."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from multikernel.rows import open_rows
from multikernel.tables import (
    DataError,
    Frame,
    TableEncoder,
    find_target,
    read_frame,
    write_columns,
)
from multikernel.tables.complaints import tells_target
from multikernel.tables.frame import is_text
from multikernel.tables.numbers import leading_zeros
from multikernel.tables.text import OPENERS
from tests.cli.helpers import write_csv


def same(frame, columns):
    assert frame.names == list(columns)
    for name, values in columns.items():
        if isinstance(values[0], str):
            assert frame.columns[name].tolist() == values
        else:
            np.testing.assert_array_equal(frame.columns[name], values)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.bz2", ".parquet", ".feather",
                                    ".arrow", ".npz"])  # fmt: skip
def test_what_is_written_is_what_is_read(suffix, tmp_path, columns):
    if suffix in (".parquet", ".feather", ".arrow"):
        pytest.importorskip("pyarrow")
    path = tmp_path / f"animals{suffix}"
    write_columns(columns, path)
    same(read_frame(path), columns)


def test_semicolons_quotes_and_byte_order_marks(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfa;"b;c"\n1;"x;y"\n2;z\n\n')
    same(read_frame(path), {"a": [1.0, 2.0], "b;c": ["x;y", "z"]})


def test_missing_entries_are_recognised_in_every_spelling(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,x\nNA,\n?,y\nnan,N/A\n2.5,null\n")
    frame = read_frame(path)
    np.testing.assert_array_equal(frame.columns["a"], [1, np.nan, np.nan, np.nan, 2.5])
    assert frame.columns["b"].tolist() == ["x", None, "y", None, None]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ("a,b\n", "holds no rows"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 entries, but the header names 2"),
        ("a,a\n1,2\n", "'a' appears more than once"),
        ("1,2\n3,4\n", "first line must name the columns"),
    ],
)
def test_bad_text_files_are_told_what_is_wrong(content, message, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_frame(path)


def test_bytes_that_are_no_text_no_archive_no_table(tmp_path):
    noise = bytes(range(128, 256)) * 10
    for name in ("a.csv", "a.csv.gz", "a.npz"):
        (tmp_path / name).write_bytes(noise)
        with pytest.raises(DataError, match=r"could not be read|not UTF-8"):
            read_frame(tmp_path / name)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n" * 1000)[:-20])
    with pytest.raises(DataError, match="could not be read"):
        read_frame(tmp_path / "cut.csv.gz")
    (tmp_path / "a.xlsx").write_bytes(noise)
    pytest.importorskip("openpyxl")
    with pytest.raises(DataError, match="could not be read as an Excel workbook"):
        read_frame(tmp_path / "a.xlsx")
    (tmp_path / "a.ods").write_bytes(noise)
    with pytest.raises(DataError, match=r"not clear from its name.*\.parquet"):
        read_frame(tmp_path / "a.ods")
    with pytest.raises(FileNotFoundError):
        read_frame(tmp_path / "absent.csv")


def test_rows_of_a_workbook_have_their_numbers_in_the_sheet(tmp_path):
    book = pytest.importorskip("openpyxl").Workbook()
    for row in ([], ["a", "b"], [], [1, 2], [None, None], [3, 4], [], [5, 6, 7]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(DataError, match="row 8 has entries beyond the 2 columns that row 2 names"):
        read_frame(tmp_path / "a.xlsx")
    book.active["C8"] = None
    book.save(tmp_path / "a.xlsx")
    assert read_frame(tmp_path / "a.xlsx").columns["b"].tolist() == [2, 4, 6]


def test_arrow_files_damaged_dated_or_without_pyarrow(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import datetime

    import pyarrow.parquet

    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(DataError, match="could not be read"):
        read_frame(path)
    pyarrow.parquet.write_table(pa.table({"day": [datetime.date(2020, 1, 1)]}), path)
    assert read_frame(path).columns["day"].tolist() == ["2020-01-01"]
    table = {"a": [1, None, 3], "b": [True, False, None], "c": ["x", None, "y"]}
    pyarrow.parquet.write_table(pa.table(table), path)
    frame = read_frame(path)
    np.testing.assert_array_equal(frame.columns["a"], [1, np.nan, 3])
    np.testing.assert_array_equal(frame.columns["b"], [1, 0, np.nan])
    assert frame.columns["c"].tolist() == ["x", None, "y"]
    large = [2**53 + 1, -(2**60) - 1, None]  # rounded, as in a CSV file
    pyarrow.parquet.write_table(pa.table({"a": large}), path)
    np.testing.assert_array_equal(read_frame(path).columns["a"], [2.0**53, -(2.0**60), np.nan])
    chunks = [chunk.X for chunk in open_rows(path, allow_missing=True)]
    np.testing.assert_array_equal(chunks[0][:, 0], read_frame(path).columns["a"])
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"multikernel\[tables\]"):
        read_frame(path)


def test_matrices_in_an_archive_are_views(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, text=np.ones((4, 2)), image=np.zeros((4, 3)), y=[0, 1, 0, 1])
    frame = read_frame(path)
    assert frame.views == {"text": ("text0", "text1"), "image": ("image0", "image1", "image2")}
    assert "y" in frame.columns and len(frame) == 4
    np.savez(path, X=np.ones((4, 2)), y=np.ones(5))
    with pytest.raises(DataError, match=r"one row per sample.*X \(4, 2\), y \(5,\)"):
        read_frame(path)
    np.savez(path, X=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="Python objects are not read"):
        read_frame(path)


def test_libsvm_files_keep_their_numbering(tmp_path):
    X = sp.csr_matrix(np.array([[0, 1.5, 0, 2], [3, 0, 0, 0], [0, 0, 4, 0]]))
    y = [1, -1, 1]
    for first in (0, 1):
        path = tmp_path / f"a{first}.svm"
        dump_svmlight_file(X, y, str(path), zero_based=first == 0)
        frame = read_frame(path)
        assert frame.first_index == first
        np.testing.assert_array_equal(frame.sparse.toarray(), X.toarray())
        encoder = TableEncoder.fit(frame)
        # Rows without the last features, and without the first.
        narrow = tmp_path / "narrow.svm"
        dump_svmlight_file(X[1:2, :2], [1], str(narrow), zero_based=first == 0)
        np.testing.assert_array_equal(encoder(read_frame(narrow)).toarray(), [[3, 0, 0, 0]])
        late = tmp_path / "late.svm"
        dump_svmlight_file(X[2:, :], [1], str(late), zero_based=first == 0)
        np.testing.assert_array_equal(encoder(read_frame(late)).toarray(), [[0, 0, 4, 0]])
    for suffix, opener in OPENERS.items():
        packed = tmp_path / f"a.svm{suffix}"
        with opener(packed, "wb") as file:
            file.write((tmp_path / "a1.svm").read_bytes())
        assert (read_frame(packed).sparse != X).nnz == 0
        packed.write_bytes(packed.read_bytes()[:-6])
        with pytest.raises(DataError, match=f"a.svm{suffix}: it is not a LIBSVM file"):
            read_frame(packed)
    wide = tmp_path / "wide.svm"
    wide.write_text("1 9:1\n")
    with pytest.raises(DataError, match="beyond number 4"):
        encoder(read_frame(wide))
    bad = tmp_path / "bad.svm"
    bad.write_text("this is no such file\n")
    with pytest.raises(DataError, match="not a LIBSVM file"):
        read_frame(bad)


# -- targets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"] * 10, "classification"),
        ([0.0, 1.0] * 10, "classification"),
        ([0.5, 1.5] * 10, "regression"),
        (list(range(10)) * 20, "classification"),
        (list(range(30)) * 20, "regression"),
        (list(range(10)) * 3, "regression"),
        (np.linspace(0, 1, 50).tolist(), "regression"),
    ],
)
def test_the_kind_of_problem_is_found(values, task):
    found = find_target(Frame.of({"y": values}), "y")
    assert found.task == task and "'y' has" in found.reason


def test_labels_keep_their_type():
    assert find_target(Frame.of({"y": [1.0, 2.0] * 5}), "y").values.dtype.kind == "i"
    assert find_target(Frame.of({"y": ["1", "b"] * 5}), "y").values.dtype.kind == "U"
    halves = find_target(Frame.of({"y": [0.5, 1.5] * 5}), "y", "classification")
    assert set(halves.values) == {"0.5", "1.5"}
    forced = find_target(Frame.of({"y": [0.0, 1.0] * 5}), "y", "regression")
    assert forced.values.dtype == float and forced.reason == "as requested"


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        ([1.0, np.nan, 2.0, np.nan], "auto", "missing in 2 of 4 rows"),
        (["a"] * 4, "auto", "'a' in every row"),
        (["a", "b", "c", "d"], "auto", "4 classes in 4 rows"),
        (["a", "b"] * 3, "regression", "regression needs numbers"),
        ([1.0, np.inf, 2.0], "regression", "infinite"),
    ],
)
def test_useless_targets_are_refused(values, task, message):
    with pytest.raises(DataError, match=message):
        find_target(Frame.of({"y": values}), "y", task)


def test_a_target_must_be_named_and_there():
    frame = Frame.of({"height": [1.0], "y": [1.0]})
    with pytest.raises(DataError, match=r"--target.*'height', 'y'"):
        find_target(frame, None)
    with pytest.raises(DataError, match=r"no target column 'heigth'.*Did you mean 'height'"):
        find_target(frame, "heigth")


# -- encoding -------------------------------------------------------------------------------------


def test_missing_values_are_counted_or_filled():
    frame = Frame.of({"a": [1.0, np.nan, 3.0, 7.0], "b": ["x", "y", None, "x"], "c": [1, 2, 3, 4]})
    with pytest.raises(
        DataError, match=r"2 of 3 columns \(4 rows\): 'a' 1, 'b' 1.*--impute median"
    ):
        TableEncoder.fit(frame)
    encoder = TableEncoder.fit(frame, impute="median")
    expected = [[1, 1, 1, 0], [3, 2, 0, 1], [3, 3, 1, 0], [7, 4, 1, 0]]
    np.testing.assert_array_equal(encoder(frame), expected)
    assert encoder.names == ["a", "c", "b=x", "b=y"]
    # New rows are filled with the training rows' median, not with their own.
    new = Frame.of({"a": [np.nan], "b": ["y"], "c": [0.0]})
    np.testing.assert_array_equal(encoder(new), [[3, 0, 0, 1]])


def test_a_model_without_fillings_refuses_new_gaps():
    encoder = TableEncoder.fit(Frame.of({"a": [1.0, 2.0]}))
    with pytest.raises(DataError, match="'a' 1"):
        encoder(Frame.of({"a": [np.nan]}))
    with pytest.raises(DataError, match="must hold numbers; it holds 'x'"):
        encoder(Frame.of({"a": ["x"]}))
    with pytest.raises(DataError, match="The model needs the column 'a'"):
        encoder(Frame.of({"b": [1.0]}))
    with pytest.raises(DataError, match="infinite"):
        encoder(Frame.of({"a": [np.inf]}))


def test_unknown_categories_count_as_none_and_are_told():
    encoder = TableEncoder.fit(Frame.of({"b": ["x", "y", "x", "y"]}))
    with pytest.warns(UserWarning, match=r"'b': 1 rows .*'z'"):
        np.testing.assert_array_equal(encoder(Frame.of({"b": ["z", "x"]})), [[0, 0], [1, 0]])


def test_numbers_can_be_categories_and_names_cannot():
    frame = Frame.of({"code": [3.0, 1.0, 3.0], "said": ["no way", "ok then", "why not"]})
    encoder = TableEncoder.fit(frame.without(["said"]), categorical=["code"])
    assert encoder.names == ["code=1", "code=3"]
    with pytest.raises(
        DataError, match=r"'said' holds 3 distinct text values in 3 rows.*--drop said"
    ):
        TableEncoder.fit(frame)
    with pytest.raises(DataError, match="no column 'size'"):
        TableEncoder.fit(frame, categorical=["size"])
    with pytest.raises(DataError, match="No columns are left"):
        TableEncoder.fit(Frame.of({"y": [1.0]}).without(["y"]))


def test_places_follow_the_columns_of_the_data():
    encoder = TableEncoder.fit(
        Frame.of({"b": ["x", "y", "x", "y"], "a": [1.0] * 4, "c": [2.0] * 4})
    )
    assert encoder.names == ["a", "c", "b=x", "b=y"]
    assert encoder.places(["b", "a"]) == (2, 3, 0)


def test_frames_are_made_from_pandas(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": [1, 2, None], "b": ["x", None, "z"], "c": [True, False, True]})
    frame = Frame.of(table)
    np.testing.assert_array_equal(frame.columns["a"], [1, 2, np.nan])
    assert frame.columns["b"].tolist() == ["x", None, "z"]
    np.testing.assert_array_equal(frame.columns["c"], [1, 0, 1])
    path = write_csv(tmp_path / "a.csv", {"a": [1.0, 2.0]})
    assert Frame.of(path).names == Frame.of(str(path)).names == ["a"]
    with pytest.raises(TypeError, match="Data must be"):
        Frame.of([1, 2])


def test_a_column_that_is_the_target_in_other_words():
    rng = np.random.default_rng(0)
    y, z = np.arange(40) % 3, rng.standard_normal(40)
    words = np.array(["p", "q", "r", None], dtype=object)

    def classes(values):
        return tells_target(np.asarray(values), np.asarray(["c", "a", "b"])[y], True)

    assert classes(2.0 - y) and classes(words[y]) and classes(np.where(z > 1, np.nan, 1.0 * y))
    assert not classes(z) and not classes(y % 2 * 1.0) and not classes(np.where(z > 1, 0.0, y))
    assert not classes(np.where(np.arange(40) < 25, np.nan, y))  # fifteen rows say little

    def line(values):
        return tells_target(np.asarray(values), z, False)

    assert line(5.0 - 3.0 * z) and line(1e300 * z) and line(1e-300 * z)
    assert not line(z + 1e-5 * rng.standard_normal(40)) and not line(np.full(40, 2.0))
    assert not line(z**3) and not line(words[y])


def test_leading_zeros_are_noticed():
    assert leading_zeros(["1", "0", "0.5", "-0.1", "", "10"]) == ""
    assert leading_zeros(["12", "007"]).startswith("leading zeros: '007' is read as 7;")


def test_categories_are_codes_or_numbers(tmp_path):
    columns = {"a": ["1", "01"], "b": ["1.1", "1.10"], "c": ["3.0", "NA"], "d": ["1e3", "5"],
               "e": ["12345678901234567", "12345678901234568"], "f": ["2", "2.5"],
               "g": ["inf", "1"], "h": ["1,5", "2,5"]}  # fmt: skip
    path = write_csv(tmp_path / "a.csv", columns)
    found = read_frame(path, codes=columns).columns
    assert [name for name in columns if is_text(found[name])] == ["a", "b", "d", "e", "h"]
    assert all(found[name].tolist() == columns[name] for name in "abdeh")
    assert not any(is_text(values) for values in read_frame(path).columns.values())
    texts = read_frame(path, texts=["c"]).columns["c"]
    assert texts.tolist() == ["3.0", None]


def test_codes_of_a_category_may_all_differ(tmp_path):
    for n, fits in ((60, True), (201, False)):
        codes = [f"{i:05d}" for i in range(n)]
        path = write_csv(tmp_path / "a.csv", {"zip": codes, "y": range(n)})
        frame = read_frame(path, codes=["zip"]).without(["y"])
        if fits:
            encoder = TableEncoder.fit(frame, categorical=["zip"])
            assert encoder.columns[0].levels == tuple(codes)
            assert open_rows(path, "y", categorical=["zip"]).reader.encoder == encoder
            continue
        with pytest.raises(DataError, match="'zip' looks like an identifier: 201 distinct"):
            TableEncoder.fit(frame, categorical=["zip"])
        with pytest.raises(DataError, match="'zip' holds more than 200 distinct text values"):
            open_rows(path, "y", categorical=["zip"])
    with pytest.raises(DataError, match="'zip' looks like an identifier: 60 distinct"):
        TableEncoder.fit(Frame.of({"zip": [f"{i:05d}" for i in range(60)]}))


def test_notes_are_about_the_columns_that_are_left(tmp_path):
    path = write_csv(tmp_path / "a.csv", {"a": ["01", "1"], "b": ["1,5", "2"], "c": ["02", "2"]})
    frame = read_frame(path)
    assert len(frame.notes) == 2 and frame.notes[0].startswith("'a', 'c' have leading zeros ('01'")
    (note,) = frame.without(["a", "b"]).take(np.array([0])).notes
    assert note.startswith("'c' has leading zeros ('02' is read as 2;")


@pytest.mark.parametrize(
    ("written", "later", "day"),
    [("25/12/2019", "02/03/2019", 17957), ("12/25/2019", "02/03/2019", 17930),
     ("25.12.2019", "02.03.2019", 17957)],
)  # fmt: skip
def test_dates_are_read_as_in_training(written, later, day):
    train = Frame.of({"day": [written, "01/02/2020".replace("/", written[2])]})
    encoder = TableEncoder.fit(train, dates=True)
    assert encoder(Frame.of({"day": [later]})).tolist() == [[day]]
    assert encoder(Frame.of({"day": ["2019-03-02"]})).tolist() == [[17957]]
    wrong = "25/12/2019" if written[0] == "1" else "12/25/2019"
    order = "month" if written[0] == "1" else "day"
    with pytest.raises(DataError, match=f"'day' must hold dates: '{wrong}' .* the {order} first"):
        encoder(Frame.of({"day": [wrong]}))


def test_new_dates_in_another_notation_than_in_training():
    encoder = TableEncoder.fit(Frame.of({"day": ["2019-02-28"] * 3}), dates=True)
    new = Frame.of({"day": ["2019-03-02", "2/28/2019", None, "1/2/2019"]})
    expected = [[17957], [17955], [np.nan], [17898]]
    np.testing.assert_array_equal(encoder(new, allow_missing=True), expected)
    with pytest.raises(DataError, match=r"not clear whether the day or .* first in '1/2/2019'"):
        encoder(Frame.of({"day": ["2019-03-02", "1/2/2019"]}))
    with pytest.raises(DataError, match="'28/2/2019' is not a date with the month first"):
        encoder(Frame.of({"day": ["2019-03-02", "28/2/2019", "2/28/2019"]}))
