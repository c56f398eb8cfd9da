"""Where rows come from: files, folders, tables and dask collections give what an array gives."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import multikernel as mk
from multikernel.rows import hold_out, open_rows, reduce_rows, sample_rows
from multikernel.tables import DataError, Frame, TableEncoder, find_target, write_columns

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

NAMES = ["a", "b", "c"]


@pytest.fixture
def numbers(rng):
    X = rng.normal(size=(1000, 3)) * 10.0 ** rng.integers(-6, 6, size=(1000, 1))
    return X, rng.normal(size=1000), rng.random(1000)


def table(X, y, w):
    return {**dict(zip(NAMES, X.T, strict=True)), "y": y, "w": w}


def moments(chunk):
    Z = np.column_stack([chunk.X, chunk.y, chunk.sample_weight])
    return Z.T @ Z


def check_same(rows, numbers, chunk_rows):
    """The same chunks as those of the arrays, and so the same bits."""
    X, y, w = numbers
    expected = open_rows(X, y, sample_weight=w, chunk_rows=chunk_rows)
    for _ in range(2):
        for chunk, other in zip(rows, expected, strict=True):
            assert chunk.first_row == other.first_row
            for part, twin in zip(chunk, other, strict=True):
                np.testing.assert_array_equal(part, twin)
    assert rows.n_rows == len(X)
    total = reduce_rows(expected, moments, np.add)
    for n_jobs in (1, 2):
        assert np.array_equal(reduce_rows(rows, moments, np.add, n_jobs=n_jobs), total)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv", ".tsv.gz", ".npz"])
def test_a_file_gives_the_rows_of_the_array(suffix, numbers, tmp_path):
    path = tmp_path / f"rows{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.table(table(*numbers)), path, row_group_size=64)
    elif suffix == ".feather":
        feather.write_feather(pa.table(table(*numbers)), str(path), chunksize=64)
    else:
        write_columns(table(*numbers), path)
    rows = open_rows(path, "y", sample_weight="w", chunk_rows=64)
    assert rows.columns == NAMES and rows.n_columns == 3
    if suffix in (".parquet", ".feather"):
        check_same(rows, numbers, 64)
        return
    X = numbers[0]  # one piece with several chunks: another tree, the same chunks
    assert np.array_equal(np.vstack([chunk.X for chunk in rows]), X)
    Z = np.column_stack(numbers)
    np.testing.assert_allclose(reduce_rows(rows, moments, np.add), Z.T @ Z, rtol=1e-12)


def test_long_row_groups_are_cut(numbers, tmp_path):
    pq.write_table(pa.table(table(*numbers)), tmp_path / "a.parquet", row_group_size=300)
    rows = open_rows(tmp_path / "a.parquet", "y", sample_weight="w", chunk_rows=128)
    assert [len(chunk) for chunk in rows] == [128, 128, 44] * 3 + [100]


def test_a_folder_is_read_in_the_order_of_its_names(numbers, tmp_path):
    X, y, w = numbers
    (tmp_path / "sub").mkdir()
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden.parquet").write_text("")
    for i, name in enumerate(["part-00.parquet", "part-01.parquet", "sub/part-02.parquet"]):
        rows = slice(i * 320, (i + 1) * 320 if i < 2 else None)
        pq.write_table(
            pa.table(table(X[rows], y[rows], w[rows])), tmp_path / name, row_group_size=64
        )
    empty = pa.table(table(X[:0], y[:0], w[:0]))
    pq.write_table(empty, tmp_path / "part-005.parquet")  # empty ones are skipped
    rows = open_rows(tmp_path, "y", sample_weight="w", chunk_rows=64)
    check_same(rows, numbers, 64)
    first = open_rows(str(tmp_path / "part-0[01].parquet"), "y")
    assert first.n_rows == 640
    listed = open_rows(
        [tmp_path / "part-01.parquet", tmp_path / "part-00.parquet"], "y", drop=["w"]
    )
    assert np.array_equal(next(iter(listed)).X, X[320:384])


def test_columns_are_chosen_by_name(numbers, tmp_path):
    X, y, w = numbers
    columns = table(X, y, w)
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=64)
    turned = dict(reversed(columns.items())) | {"extra": y}
    pq.write_table(pa.table(turned), tmp_path / "b.parquet", row_group_size=64)
    rows = open_rows(tmp_path, "y", columns=["c", "a"], chunk_rows=64)
    assert rows.columns == ["c", "a"]
    parts = np.vstack([chunk.X for chunk in rows])
    assert np.array_equal(parts, np.vstack([X[:, [2, 0]]] * 2))
    message = "b.parquet does not have the same columns as a.parquet: it also has 'extra'"
    with pytest.raises(DataError, match=message):
        open_rows(tmp_path, "y")
    with pytest.raises(DataError, match=r"no column 'bb'\. .*Did you mean 'b'"):
        open_rows(tmp_path / "a.parquet", "y", drop=["bb"])
    with pytest.raises(DataError, match="no target column 'z'"):
        open_rows(tmp_path / "a.parquet", "z")


def test_files_with_other_types_are_refused(tmp_path):
    pq.write_table(pa.table({"a": [1.0], "y": [1.0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["1"], "y": [1.0]}), tmp_path / "2.parquet")
    message = r"Column 'a' holds texts in 2\.parquet and numbers in 1\.parquet"
    with pytest.raises(DataError, match=message):
        open_rows(tmp_path, "y")
    pq.write_table(pa.table({"y": [1.0]}), tmp_path / "2.parquet")
    with pytest.raises(
        DataError, match=r"2\.parquet does not have the same columns .* it lacks 'a'"
    ):
        open_rows(tmp_path, "y")
    (tmp_path / "2.parquet").unlink()
    write_columns({"a": [1.0], "y": [1.0]}, tmp_path / "2.csv")
    with pytest.raises(DataError, match="different formats"):
        open_rows(tmp_path, "y")


def test_a_gap_in_chunk_731_is_named(rng, tmp_path):
    X = rng.normal(size=(8 * 800, 2))
    X[8 * 731 + 3, 1] = np.nan
    frame = {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0]}
    pq.write_table(pa.table(frame), tmp_path / "big.parquet", row_group_size=8)
    rows = open_rows(tmp_path / "big.parquet", "y")
    message = r"Column 'b' is missing in row 5851 of big.parquet \(counted from 0; chunk 731\)"
    with pytest.raises(DataError, match=message):
        reduce_rows(rows, lambda chunk: 1, int.__add__)
    kept = open_rows(tmp_path / "big.parquet", "y", allow_missing=True)
    assert np.isnan(np.vstack([chunk.X for chunk in kept])).sum() == 1
    filled = open_rows(tmp_path / "big.parquet", "y", impute="median")
    found = np.vstack([chunk.X for chunk in filled])
    np.testing.assert_array_equal(found[8 * 731 + 3, 1], np.nanmedian(X[:, 1]))
    frame["b"][8 * 731 + 3] = np.inf
    pq.write_table(pa.table(frame), tmp_path / "big.parquet", row_group_size=8)
    with pytest.raises(DataError, match=r"Column 'b' is infinite in row 5851 of big"):
        list(open_rows(tmp_path / "big.parquet", "y"))


def test_lost_and_changed_files(numbers, tmp_path):
    X, y, w = numbers
    for i in range(3):
        pq.write_table(pa.table(table(X + i, y, w)), tmp_path / f"{i}.parquet", row_group_size=100)
    rows = open_rows(tmp_path, "y", sample_weight="w")
    first = reduce_rows(rows, moments, np.add)
    content = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(DataError, match=r"1\.parquet' existed .* but is now missing"):
        reduce_rows(rows, moments, np.add)
    (tmp_path / "1.parquet").write_bytes(content)
    assert np.array_equal(reduce_rows(rows, moments, np.add), first)
    pq.write_table(pa.table(table(X + 9, y, w)), tmp_path / "1.parquet", row_group_size=100)
    message = r"1\.parquet, row group 0 has changed between two passes .* its values are different"
    with pytest.raises(DataError, match=message):
        reduce_rows(rows, moments, np.add)
    pq.write_table(pa.table(table(X[:50], y[:50], w[:50])), tmp_path / "1.parquet")
    with pytest.raises(DataError, match="it had 100 rows and now has 50"):
        reduce_rows(rows, moments, np.add)
    (tmp_path / "1.parquet").write_bytes(b"not a table")
    with pytest.raises(DataError, match=r"1\.parquet: it could not be read"):
        reduce_rows(rows, moments, np.add)


def test_paths_without_rows(tmp_path):
    with pytest.raises(FileNotFoundError, match="no data file or folder"):
        open_rows(tmp_path / "nothing.parquet")
    with pytest.raises(FileNotFoundError, match="No data file matches"):
        open_rows(str(tmp_path / "*.parquet"))
    with pytest.raises(DataError, match="holds no data files"):
        open_rows(tmp_path)
    (tmp_path / "a.csv").write_text("a,y\n")
    with pytest.raises(DataError, match="There are no rows: every chunk is empty"):
        open_rows(tmp_path, "y")
    (tmp_path / "a.csv").write_text("")
    with pytest.raises(DataError, match=r"a\.csv: it is empty"):
        open_rows(tmp_path, "y")
    (tmp_path / "a.svm").write_text("1 1:2\n")
    with pytest.raises(DataError, match="cannot be read in chunks"):
        open_rows(tmp_path / "a.svm")


# -- columns that are not numbers ----------------------------------------------------------------


def mixed(rng, n=300):
    return {
        "size": rng.normal(size=n),
        "colour": rng.choice(["red", "blue", "green"], n).tolist(),
        "code": rng.integers(0, 4, n).astype(float),
        "late": ["7"] * (n - 1) + ["x"],  # numbers everywhere but in the last chunk
        "kind": rng.choice(["ape", "bee"], n).tolist(),
    }


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_categories_are_those_of_the_whole_table(suffix, rng, tmp_path):
    columns = mixed(rng)
    path = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        write_columns(columns, path)
    else:
        pq.write_table(pa.table(columns), path, row_group_size=50)
    rows = open_rows(path, "kind", categorical=["code"], task="auto", chunk_rows=50)
    whole = Frame.of(columns)
    encoder = TableEncoder.fit(whole.without(["kind"]), categorical=["code"])
    assert rows.reader.encoder == encoder
    assert rows.task == "classification" and "2 distinct text values" in rows.reason
    assert np.array_equal(np.vstack([c.X for c in rows]), encoder(whole.without(["kind"])))
    labels = np.concatenate([c.y for c in rows])
    assert np.array_equal(labels, find_target(whole, "kind").values)
    # A fitted model reads new rows the same way, without a look in advance and without targets.
    write_columns({k: v[:60] for k, v in columns.items() if k != "kind"}, tmp_path / "new.csv")
    new = open_rows(tmp_path / "new.csv", "kind", encoder=encoder, chunk_rows=50)
    parts = list(new)
    assert np.array_equal(np.vstack([c.X for c in parts]), encoder(whole)[:60])
    assert parts[0].y is None


def test_whole_numbers_are_classes_and_others_targets(rng, tmp_path):
    n = 400
    columns = {"a": rng.normal(size=n), "k": rng.integers(0, 3, n), "v": rng.normal(size=n)}
    write_columns(columns, tmp_path / "a.csv")
    rows = open_rows(tmp_path / "a.csv", "k", task="auto", chunk_rows=64)
    assert rows.task == "classification"
    assert all(chunk.y.dtype == np.int64 for chunk in rows)
    rows = open_rows(tmp_path / "a.csv", "v", task="auto", chunk_rows=64)
    assert rows.task == "regression" and "400 distinct" in rows.reason
    assert np.array_equal(np.concatenate([c.y for c in rows]), columns["v"])
    write_columns(columns | {"k": np.ones(n)}, tmp_path / "a.csv")
    with pytest.raises(DataError, match="'k' is 1 in every row"):
        open_rows(tmp_path / "a.csv", "k", task="classification")


def test_a_stray_text_is_found(rng, tmp_path):
    lines = [f"{a:.17g},{a > 0:d}" for a in rng.normal(size=2000)]
    lines[1500] = "twelve,1"
    (tmp_path / "a.csv").write_text("\n".join(["a,y", *lines]) + "\n")
    message = r"numbers in some chunks and text.*'twelve' in row 1500 of a.csv \(counted from 0"
    with pytest.raises(DataError, match=message):
        open_rows(tmp_path / "a.csv", "y", chunk_rows=100)


def test_a_column_without_entries_in_a_chunk(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,y\n" + "1,2,1\n" * 10 + "NA,3,1\n" * 10)
    rows = open_rows(tmp_path / "a.csv", "y", impute="median", chunk_rows=10)
    assert np.array_equal(np.vstack([c.X for c in rows])[:, 0], np.ones(20))
    with pytest.raises(DataError, match=r"'a' is missing in row 10 of a\.csv.* 10 of the 10 rows"):
        list(open_rows(tmp_path / "a.csv", "y", chunk_rows=10))


def test_text_columns_stay_texts(tmp_path):
    columns = {"word": ["ab", "ba", "7", "cab"], "a": [1.0, 2.0, 3.0, 4.0], "y": [0.0, 1, 0, 1]}
    write_columns(columns, tmp_path / "a.csv")
    rows = open_rows(tmp_path / "a.csv", "y", texts=["word"], chunk_rows=2)
    assert [chunk.X.columns[1].tolist() for chunk in rows] == [["ab", "ba"], ["7", "cab"]]


def test_missing_numbers_beside_categories(rng):
    columns = {**mixed(rng), "gap": rng.normal(size=300)}
    columns["gap"][7] = np.nan
    rows = open_rows(columns, "kind", task="auto", drop=["late"], allow_missing=True, chunk_rows=50)
    X = np.vstack([chunk.X for chunk in rows])
    assert X.dtype == np.float64 and X.shape == (300, len(rows.columns)) == (300, 6)
    whole = open_rows(columns, "kind", task="auto", drop=["late"], impute="median")
    filled = np.vstack([chunk.X for chunk in whole])
    assert np.argwhere(np.isnan(X)).tolist() == [[7, rows.columns.index("gap")]]
    assert np.array_equal(np.where(np.isnan(X), filled, X), filled)
    columns["gap"][8] = np.inf
    with pytest.raises(DataError, match="'gap' is infinite in row 8 of the table"):
        list(open_rows(columns, "kind", task="auto", drop=["late"], allow_missing=True))


@pytest.mark.parametrize("suffix", [None, ".csv", ".parquet"])
def test_a_target_of_texts_needs_no_task(suffix, rng, tmp_path):
    source = {"a": rng.normal(size=60), "kind": np.resize(["ape", "bee"], 60).tolist()}
    if suffix is not None:
        write_columns(source, tmp_path / f"a{suffix}")
    rows = open_rows(source if suffix is None else tmp_path / f"a{suffix}", "kind", chunk_rows=16)
    assert np.concatenate([chunk.y for chunk in rows]).tolist() == source["kind"]


def test_infinite_numbers_are_no_category():
    columns = {"x": np.arange(90.0), "k": np.resize([1.0, np.inf, np.nan], 90), "y": np.arange(90)}
    with pytest.raises(DataError, match="'k' is infinite in row 1 of the table"):
        open_rows(columns, "y", categorical=["k"], impute="median")
    rows = open_rows(columns, "y", texts=["k"], impute="median")
    with pytest.raises(DataError, match="'k' is infinite in row 1 of the table"):
        list(rows)


def test_bad_files_name_the_file(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("a,y\n" + "1,2\n" * 30 + "1\n")
    with pytest.raises(DataError, match=r"a\.csv\.gz: line 32 has 1 entries"):
        open_rows(tmp_path, "y", chunk_rows=8)
    with pytest.raises(DataError, match="target must be a column name"):
        open_rows({"a": [1.0]}, np.ones(1))


# -- dask ----------------------------------------------------------------------------------------


def test_a_dask_array_gives_the_rows_of_the_array(numbers):
    X, y, w = numbers
    source = da.from_array(X, chunks=(64, 2))  # columns in several blocks are brought together
    for target in (y, da.from_array(y, chunks=100)):
        rows = open_rows(source, target, sample_weight=w, chunk_rows=64)
        check_same(rows, numbers, 64)


def test_dask_arrays_of_unknown_lengths(numbers):
    X, y, _ = numbers
    source, target = da.from_array(X, chunks=(64, 3)), da.from_array(y, chunks=64)
    keep = target > 0
    rows = open_rows(source[keep], target[keep])
    assert rows.n_rows is None and rows.count() == np.sum(y > 0)
    assert np.array_equal(np.vstack([c.X for c in rows]), X[y > 0])
    with pytest.raises(DataError, match="unknown lengths, so target must be a dask array"):
        open_rows(source[keep], y[y > 0])


def test_a_dask_frame_gives_the_rows_of_the_table(numbers):
    frame = dd.from_pandas(pd.DataFrame(table(*numbers)), npartitions=7)
    rows = open_rows(frame, "y", sample_weight="w")
    assert rows.n_rows is None
    assert np.array_equal(np.vstack([chunk.X for chunk in rows]), numbers[0])
    assert rows.n_rows == 1000
    total = reduce_rows(rows, moments, np.add)
    np.testing.assert_allclose(total, np.column_stack(numbers).T @ np.column_stack(numbers), 1e-12)


@pytest.mark.parametrize("name", ["code", "kind"])
def test_dask_partitions_of_numbers_and_of_texts_are_refused(name):
    columns = {"code": [1, 2] * 10, "kind": [0, 1] * 10, "a": list(range(20))}
    columns[name] = columns[name][:10] + ["p", "q"] * 5
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_pandas(pd.DataFrame(columns), npartitions=2)
    message = f"Column '{name}' holds numbers in some chunks and text in others; the first text is "
    with pytest.raises(DataError, match=message + "'p' in row 0 of block 1"):
        open_rows(frame, "kind", task="auto")


@pytest.mark.parametrize("first", [True, False])
def test_a_block_without_entries_may_belong_to_a_column_of_texts(first):
    numbers = np.arange(10.0)
    full = pd.DataFrame({"x": numbers, "c": ["a", "b"] * 5, "y": numbers})
    gaps = full.assign(c=np.full(10, np.nan))
    parts = [dask.delayed(part) for part in ([gaps, full] if first else [full, gaps])]
    frame = dd.from_delayed(parts, meta=full.iloc[:0], verify_meta=False)
    rows = open_rows(frame, "y", impute="median")
    assert rows.columns == ["x", "c=a", "c=b"]
    X = np.vstack([chunk.X for chunk in rows])
    filled = X[:10] if first else X[10:]
    assert np.array_equal(filled, np.column_stack([numbers, np.ones(10), np.zeros(10)]))
    with pytest.raises(DataError, match=r"'c' is missing in row 0 of block"):
        list(open_rows(frame, "y"))


def test_dask_blocks_that_change_are_noticed():
    state = np.random.default_rng(0)
    source = da.from_array(np.zeros((100, 2)), chunks=(25, 2)).map_blocks(
        lambda block: block + state.random()
    )
    rows = open_rows(source)
    with pytest.raises(DataError, match=r"block 0 of the dask array has changed .*need a seed"):
        for _ in range(2):
            list(rows)


def test_bad_dask_collections(numbers):
    X, y, _ = numbers
    source = da.from_array(X, chunks=(64, 3))
    with pytest.raises(DataError, match="X has 1000 rows, but target has 10"):
        open_rows(source, da.from_array(y[:10], chunks=5))
    with pytest.raises(DataError, match="must hold numbers; the dask array has dtype <U1"):
        open_rows(da.from_array(np.array([["a"]])))
    dated = dd.from_pandas(pd.DataFrame({"t": pd.to_datetime(["2020-01-01"]), "y": [1]}), 1)
    with pytest.raises(DataError, match="'t' holds dates"):
        open_rows(dated, "y")


# -- samples -------------------------------------------------------------------------------------


def test_a_sample_does_not_depend_on_the_cut(numbers, tmp_path):
    X, y, w = numbers
    sample, places = sample_rows(open_rows(X, y, chunk_rows=1000), 40, seed=5)
    assert np.array_equal(sample.X, X[places]) and np.array_equal(sample.y, y[places])
    assert len(set(places)) == 40
    for chunk_rows in (7, 64, 333):
        again, same = sample_rows(open_rows(X, y, chunk_rows=chunk_rows), 40, seed=5, n_jobs=2)
        assert np.array_equal(places, same) and np.array_equal(again.X, sample.X)
    write_columns(table(X, y, w), tmp_path / "a.csv")
    rows = open_rows([tmp_path / "a.csv"] * 2, "y", chunk_rows=64)
    assert np.array_equal(sample_rows(rows, 4000)[1], np.arange(2000))
    assert not np.array_equal(sample_rows(open_rows(X), 40, seed=6)[1], places)


def test_held_out_rows_are_not_read_by_later_passes(numbers):
    X, y, w = numbers
    n, made = len(X), []
    for chunk_rows, jobs in ((1000, 1), (7, 2), (64, 1)):
        rows = open_rows(X, y, sample_weight=w, chunk_rows=chunk_rows)
        rest, test = hold_out(rows, 40, seed=5, n_jobs=jobs)
        assert np.array_equal(test.row_numbers(), sample_rows(rows, 40, seed=5)[1])
        left = np.setdiff1d(np.arange(n), test.row_numbers())
        for _ in range(2):  # pieces are compared with the first pass
            parts = list(rest)
            assert np.array_equal(np.concatenate([part.X for part in parts]), X[left])
            assert np.array_equal(np.concatenate([part.sample_weight for part in parts]), w[left])
            assert np.array_equal(np.concatenate([p.row_numbers() for p in parts]), left)
        assert reduce_rows(rest, len, int.__add__, n_jobs=jobs, numbered=False) == n - 40
        # Samples of the rest are samples: the same, whatever the cut.
        other, again = hold_out(rest, 30, seed=5)
        assert not set(again.row_numbers()) & set(test.row_numbers())
        assert sum(map(len, other)) == n - 70
        made.append(again.row_numbers())
        assert rows.n_rows == n and sum(map(len, rows)) == n
    assert all(np.array_equal(made[0], one) for one in made)


def test_pieces_without_rows_that_count(numbers):
    X, y, _ = numbers
    rows = open_rows(X[:60], y[:60], chunk_rows=1)
    rest, test = hold_out(rows, 58, seed=1)
    assert reduce_rows(rest, lambda chunk: chunk.X.sum(), float.__add__) == pytest.approx(
        X[:60].sum() - test.X.sum()
    )
    with pytest.raises(DataError, match="There are no rows"):
        reduce_rows(hold_out(rows, 60)[0], len, int.__add__)


def test_a_fit_to_the_rest_is_that_of_these_rows(numbers):
    X, y, _ = numbers
    options = {"weighting": "alignf", "approximation": mk.RandomFeatures(30)}
    rest, test = hold_out(open_rows(X, y, chunk_rows=100), 50, seed=2)
    left = np.setdiff1d(np.arange(len(X)), test.row_numbers())
    bank = mk.gaussians([0.1, 1.0])
    one = mk.MultiKernelRegressor(bank, **options).fit(rest)
    two = mk.MultiKernelRegressor(bank, **options).fit(X[left], y[left])
    np.testing.assert_allclose(one.predict(test.X), two.predict(test.X), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_missing_values_are_filled_from_the_rows_to_fit(suffix, rng, tmp_path):
    n, size, path = 500, 300, tmp_path / f"a{suffix}"
    held = np.zeros(n, dtype=bool)
    held[sample_rows(open_rows(np.arange(float(n))[:, None]), size)[1]] = True
    a, c = rng.random(n) + 100 * held, np.where(held, "red", "blue").astype(object)
    k = np.where(held, 1.0, 2.0)
    for values, gap in ((a, np.nan), (c, None), (k, np.nan)):
        values[rng.random(n) < 0.2] = gap
    write_columns({"a": a, "c": c, "k": k, "y": rng.random(n)}, path)
    rows = open_rows(path, "y", categorical=["k"], impute="median", chunk_rows=64)
    assert [column.fill for column in rows.reader.encoder.columns][1:] == ["red", "1"]
    rest, test = hold_out(rows, size)
    expected = [np.nanmedian(a[~held]), "blue", "2"]
    assert [column.fill for column in rest.reader.encoder.columns] == expected
    X = rest.reader.encoder(Frame.of({"a": a, "c": c, "k": k}))
    assert np.array_equal(test.X, X[held])
    for _ in range(2):
        assert np.array_equal(np.vstack([chunk.X for chunk in rest]), X[~held])
    # A fitted model has learned its fills already.
    new, some = hold_out(open_rows(path, "y", encoder=rest.reader.encoder), 100)
    assert new.reader.encoder == rest.reader.encoder and len(some) == 100


@pytest.mark.parametrize("size", [99, 100, 101])
@pytest.mark.parametrize("impute", [None, "median"])
def test_all_rows_can_be_held_out(size, impute, rng):
    columns = {"a": rng.random(100), "c": np.resize(["p", "q"], 100), "y": rng.random(100)}
    rows = open_rows(columns, "y", impute=impute, chunk_rows=30)
    rest, test = hold_out(rows, size)
    assert len(test) == min(size, 100) and sum(map(len, rest)) == max(100 - size, 0)
    assert test.X.shape == (len(test), 3)
    if size >= 100 and impute:
        fills = [column.fill for column in rest.reader.encoder.columns]
        assert fills == [np.median(columns["a"]), "p"]


def test_sizes_of_samples_are_positive_whole_numbers(numbers):
    rows = open_rows(numbers[0])
    for draw in (sample_rows, hold_out):
        for size in (0, -1, 2.5, True, "9"):
            with pytest.raises(DataError, match=f"size must be a positive whole .*{size!r}"):
                draw(rows, size)
        assert len(draw(rows, np.int32(3))[draw is hold_out]) == 3


def test_every_row_is_drawn_equally_often(rng):
    rows = open_rows(np.arange(50.0)[:, None], chunk_rows=7)
    counts = np.zeros(50)
    for seed in range(400):
        counts[sample_rows(rows, 10, seed)[1]] += 1
    # 400 draws with probability 1/5: mean 80, standard deviation 8
    assert abs(counts - 80).max() < 5 * 8
    assert np.sum((counts - 80) ** 2) / 64 < 90  # chi-squared with 49 degrees of freedom
