"""Models from rows in chunks: files, folders, dask and clusters give the model of the array."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk
from multikernel.rows import open_rows

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

BANK = mk.KernelBank([mk.Gaussian(0.1), mk.Linear()])


def data(seed=0, n=700):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


def files(X, y, folder):
    """Three files with row groups of 100 rows."""
    for i, part in enumerate(np.split(np.arange(len(X)), [300, 500])):
        columns = {"a": X[part, 0], "b": X[part, 1], "c": X[part, 2], "y": y[part]}
        pq.write_table(pa.table(columns), folder / f"part-{i}.parquet", row_group_size=100)
    return folder


def regressor(**options):
    way = mk.Nystroem(rank=40)
    return mk.MultiKernelRegressor(BANK, "alignf", approximation=way, **options)


def same_bits(one, other, X):
    assert np.array_equal(one.kernel_weights_, other.kernel_weights_)
    assert one.intercept_ == other.intercept_ and one.objective_ == other.objective_
    return np.array_equal(one._expansion.values(one._expansion.encode(X)),
                          other._expansion.values(other._expansion.encode(X)))  # fmt: skip


def test_files_give_the_model_of_the_array(tmp_path):
    """The same bits with the same cut; to rounding with another one."""
    X, y = data()
    source = files(X, y, tmp_path)
    expected = regressor().fit(open_rows(X, y, chunk_rows=100))
    for n_jobs in (1, 2):
        found = regressor(n_jobs=n_jobs).fit(open_rows(source, "y"))
        assert list(found.feature_names_in_) == ["a", "b", "c"]
        assert same_bits(found, expected, X)
    array = regressor().fit(X, y)
    np.testing.assert_allclose(array.kernel_weights_, expected.kernel_weights_, rtol=1e-9)
    np.testing.assert_allclose(array.predict(X), expected.predict(X), rtol=1e-7, atol=1e-9)


def test_other_losses_pass_over_the_rows_several_times(tmp_path):
    X, y = data(1)
    columns = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
    labels = np.where(y > 0, "up", "down")
    pq.write_table(pa.table({**columns, "y": labels}), tmp_path / "a.parquet", row_group_size=100)

    def model():
        way = mk.Nystroem(rank=40)
        return mk.MultiKernelClassifier(BANK, "uniform", loss="logistic", approximation=way)

    expected = model().fit(open_rows(X, labels, chunk_rows=100))
    found = model().fit(open_rows(tmp_path / "a.parquet", "y", task="classification"))
    assert found.classes_.tolist() == ["down", "up"]
    assert same_bits(found, expected, X)


def test_counts_of_ngrams_in_chunks(tmp_path):
    """Columns of texts stay texts in chunks, and counts of n-grams are their own features."""
    rng = np.random.default_rng(2)
    words = ["".join(rng.choice(list("ACGT"), 12)) for _ in range(300)]
    y = np.array([word.count("AC") + 0.1 * rng.normal() for word in words])
    pq.write_table(pa.table({"dna": words, "y": y}), tmp_path / "a.parquet", row_group_size=64)
    bank = mk.KernelBank([mk.Spectrum(2), mk.Spectrum(3)])

    def model():
        return mk.MultiKernelRegressor(bank, "uniform", approximation=mk.Nystroem(), alpha=1e-3)

    found = model().fit(open_rows(tmp_path / "a.parquet", "y", texts=["dna"]))
    exact = model().set_params(approximation=None).fit(np.array(words, dtype=object)[:, None], y)
    table = next(iter(open_rows({"dna": words}, texts=["dna"]))).X
    expected = exact._expansion.values(exact._expansion.encode(table))
    values = found._expansion.values(found._expansion.encode(table))
    assert np.corrcoef(values[:, 0], expected[:, 0])[0, 1] > 0.999


def test_progress_counts_rows(capsys, tmp_path):
    X, y = data()
    regressor(verbose=1).fit(open_rows(files(X, y, tmp_path), "y"))
    said = capsys.readouterr().out
    assert "reading the rows: 700 of 700 rows" in said
    assert "adding up: 700 of 700 rows" in said


@pytest.mark.slow
def test_a_cluster_gives_the_model_of_the_files(tmp_path):
    """Workers that are processes of their own, and dask collections."""
    distributed = pytest.importorskip("distributed")
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    X, y = data()
    source = files(X, y, tmp_path)
    expected = regressor().fit(open_rows(source, "y"))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as local,
        distributed.Client(local) as client,
    ):
        assert same_bits(regressor().fit(open_rows(source, "y", client=client)), expected, X)
        rows = open_rows(da.from_array(X, chunks=(100, 3)), y)
        assert rows.client is client  # dask collections run where dask would run them
        assert same_bits(regressor().fit(rows), expected, X)
        frame = dd.read_parquet(source, blocksize=None)
        np.testing.assert_allclose(
            regressor().fit(open_rows(frame, "y")).kernel_weights_,
            expected.kernel_weights_,
            rtol=1e-9,
        )
