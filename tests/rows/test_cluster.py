"""Passes on real worker processes: the same bits, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

from multikernel.rows import cluster, hold_out, open_rows, reduce_rows, sample_rows
from multikernel.tables import DataError

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")


@contextmanager
def workers(n):
    """A client with ``n`` workers on this machine, each with one thread, and no web page."""
    with (
        distributed.LocalCluster(
            n_workers=n,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


def moments(chunk):
    Z = np.column_stack([chunk.X, chunk.y])
    return Z.T @ Z


def add(left, right):
    left += right  # the first argument may be changed
    return left


def slow_moments(chunk):
    time.sleep(0.05)
    return moments(chunk)


def data(rng, n=5000):
    X = rng.normal(size=(n, 4)) * 10.0 ** rng.integers(-8, 8, size=(n, 1))
    return X, rng.normal(size=n)


def sources(X, y, folder):
    """The same rows in every place where rows can be, in chunks of 50 rows."""
    np.save(folder / "X.npy", X)
    columns = {**{f"x{j}": X[:, j] for j in range(4)}, "y": y}
    pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=50)
    return {
        "array": open_rows(X, y, chunk_rows=50),
        "memory map": open_rows(folder / "X.npy", y, chunk_rows=50),
        "Parquet": open_rows(folder / "rows.parquet", "y"),
        "dask array": open_rows(da.from_array(X, chunks=(50, 2)), y),
        "dask frame": open_rows(
            dd.from_pandas(pd.DataFrame(columns), npartitions=len(X) // 50, sort=False), "y"
        ),
    }


def test_a_cluster_gives_the_same_bits(rng, tmp_path):
    """Two worker processes, of which one is killed in the middle of a pass."""
    X, y = data(rng, 2000)
    here = reduce_rows(open_rows(X, y, chunk_rows=50), moments, add)
    with workers(2) as client:
        rows = sources(X, y, tmp_path)["Parquet"]
        victims = list(client.run(os.getpid).values())[:1]
        reported = []

        def kill(n_rows):
            reported.append(n_rows)
            while victims:
                os.kill(victims.pop(), signal.SIGKILL)

        there = reduce_rows(rows, slow_moments, add, client=client, report=kill)
        assert np.array_equal(there, here)
        assert not victims and sum(reported) == 2000
        X[1210, 2] = np.nan
        gap = open_rows(X, y, chunk_rows=50, client=client)
        with pytest.raises(DataError, match=r"'x2' is missing \(NaN\) in row 1210 of X .*chunk 24"):
            reduce_rows(gap, moments, add)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 8])
def test_any_number_of_workers_gives_the_same_bits(n, rng, tmp_path):
    X, y = data(rng, 5000)
    here = reduce_rows(open_rows(X, y, chunk_rows=50), moments, add)
    with workers(n) as client:
        for name, rows in sources(X, y, tmp_path).items():
            reported = []
            there = reduce_rows(rows, moments, add, client=client, report=reported.append)
            assert np.array_equal(there, here), name
            assert sum(reported) == len(X)
        rows = open_rows(X, y, chunk_rows=50)
        expected = sample_rows(rows, 30)[1]
        assert np.array_equal(sample_rows(rows, 30, client=client)[1], expected)
        rest, held = hold_out(rows, 30, client=client)
        assert np.array_equal(held.row_numbers(), expected)
        here, there = (reduce_rows(rest, moments, add, client=c) for c in (None, client))
        assert np.array_equal(here, there)


@pytest.mark.slow
def test_workers_may_die_one_after_the_other(rng, tmp_path):
    """Every worker is killed once, some while they hold sums that are already made."""
    X, y = data(rng, 5000)
    here = reduce_rows(open_rows(X, y, chunk_rows=50), moments, add)
    with workers(3) as client:
        rows = sources(X, y, tmp_path)["Parquet"]
        victims = list(client.run(os.getpid).values())
        done = 0

        def kill(n_rows):
            nonlocal done
            done += n_rows
            if victims and done > 1000 * (4 - len(victims)):
                os.kill(victims.pop(), signal.SIGKILL)

        assert np.array_equal(
            reduce_rows(rows, slow_moments, add, client=client, report=kill), here
        )
        assert not victims


@pytest.mark.slow
def test_files_lost_on_the_workers_and_chunks_that_change(rng, tmp_path):
    X, y = data(rng)
    with workers(2) as client:
        rows = sources(X, y, tmp_path)["Parquet"]
        reduce_rows(rows, moments, add, client=client)
        pq.write_table(
            pa.table({**{f"x{j}": X[:, j] + 1 for j in range(4)}, "y": y}),
            tmp_path / "rows.parquet",
            row_group_size=50,
        )
        with pytest.raises(DataError, match="has changed between two passes"):
            reduce_rows(rows, moments, add, client=client)
        (tmp_path / "rows.parquet").unlink()
        with pytest.raises(DataError, match=r"is now missing.*every worker must see the same path"):
            reduce_rows(rows, moments, add, client=client)


class Kills:
    """A map that ends its process."""

    def __call__(self, chunk):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_chunks_that_kill_workers_are_told(rng):
    X, y = data(rng, 100)
    with workers(2) as client, pytest.raises(RuntimeError, match=r"Workers died 4 times.*memory"):
        reduce_rows(open_rows(X, y, chunk_rows=50), Kills(), add, client=client)


@pytest.mark.slow
def test_a_dead_scheduler_is_told(rng):
    X, y = data(rng)
    code = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    options = {"host": "127.0.0.1", "dashboard_address": None}
    local = LocalCluster(n_workers=1, threads_per_worker=1, **options)
    print(local.scheduler_address, flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        address = process.stdout.readline().strip()
        rows = open_rows(X, y, chunk_rows=50, client=address)
        with pytest.raises(ConnectionError, match=f"The scheduler at {address} no longer answers"):
            reduce_rows(rows, slow_moments, add, report=lambda n: process.kill())
        with pytest.raises(ConnectionError, match="no longer answers"):
            reduce_rows(rows, moments, add)
        rows.client.close(timeout=1)


def test_addresses_and_clients_are_checked(monkeypatch):
    with pytest.raises(TypeError, match=r"must be a dask\.distributed.Client or the address"):
        open_rows(np.ones((3, 2)), client=7)
    monkeypatch.setattr(cluster, "CONNECT_WAIT", "0.5s")
    with pytest.raises(ConnectionError, match=r"No scheduler answers at 'tcp://127.0.0.1:9'.*dask"):
        open_rows(np.ones((3, 2)), client="tcp://127.0.0.1:9")


def test_a_cluster_without_workers_is_told(monkeypatch):
    monkeypatch.setattr(cluster, "WORKER_WAIT", 0.3)
    with workers(0) as client:
        rows = open_rows(np.ones((3, 2)), client=client)
        with pytest.raises(ConnectionError, match=r"has no workers\. Start some with 'dask worker"):
            reduce_rows(rows, len, int.__add__)


def test_a_pass_that_fails_is_no_longer_followed(monkeypatch):
    with workers(0) as client:
        left = []
        monkeypatch.setattr(client, "unsubscribe_topic", left.append)
        with pytest.raises(ZeroDivisionError), cluster.told(client, print) as watch:
            raise ZeroDivisionError
        assert left == [watch.topic]
