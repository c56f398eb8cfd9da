"""Fits in other processes and their threads: the same bits, and no more threads than there are."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from sklearn.model_selection import GridSearchCV

import multikernel as mk
from multikernel._threads import count_threads
from tests.processes.problems import LABELS, OUTPUT, X, numbers, threads_of_all_cores

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wanted():
    """The answers in this process, after threads were used."""
    with ThreadPoolExecutor(2) as threads:
        one, two = threads.map(numbers, [2, None])
    assert one == two
    return one


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Workers find the library and these tests where this process has found them."""
    paths = [str(ROOT), str(Path(mk.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def test_in_workers_of_joblib(wanted):
    """Three searches side by side, and what all cores mean there."""
    with parallel_config(backend="loky", inner_max_num_threads=1):
        found, threads = Parallel(n_jobs=2)([delayed(numbers)(-1), delayed(threads_of_all_cores)()])
        search = GridSearchCV(
            mk.MultiKernelRegressor(mk.gaussians([0.1, 1.0]), "align", n_jobs=-1),
            {"alpha": [0.1, 1.0]},
            cv=2,
            n_jobs=2,
        ).fit(X, OUTPUT)
    alone = GridSearchCV(search.estimator, search.param_grid, cv=2).fit(X, OUTPUT)
    assert found == wanted
    assert threads == (1, "1"), "more threads than the worker was given"
    for name in ("split0_test_score", "split1_test_score"):
        assert np.array_equal(search.cv_results_[name], alone.cv_results_[name])


def test_all_cores_are_those_that_are_free(monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    assert count_threads(-1) == effective_n_jobs(-1)
    assert count_threads(None) == 1 and count_threads(3) == 3
    assert Parallel(n_jobs=2, prefer="threads")([delayed(count_threads)(-1)] * 2) == [1, 1]
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    assert count_threads(-1) == 1 and count_threads(5) == 5
    with pytest.raises(ValueError, match="n_jobs == 0"):
        count_threads(0)


def test_more_jobs_than_cores(wanted):
    assert numbers(4 * (os.cpu_count() or 1)) == wanted


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("error:Loky-backed")
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork"
)
def test_in_forked_processes_after_threads_were_used(wanted):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(numbers, [None, -1, 2]).get(120) == [wanted] * 3


def test_forks_of_a_thread_that_had_limited_blas():
    """A child of one thread does not keep what another one had asked for."""
    from threadpoolctl import threadpool_info, threadpool_limits

    from multikernel._threads import _limit, one_blas_thread

    def blas():
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = blas()
        with one_blas_thread():
            lock, inside = _limit.lock, _limit.inside
            _limit.inside = dict.fromkeys(inside, -1)  # as in a child of another thread
            _limit.after_fork()
            assert blas() == before and not _limit.inside
            _limit.lock, _limit.inside = lock, inside
        assert blas() == before


def test_in_spawned_processes(wanted):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map_async(numbers, [None]).get(300) == [wanted]
        model = mk.MultiKernelClassifier(mk.gaussians([0.1, 1.0]), "align").fit(X, LABELS)
        assert np.array_equal(pool.apply(model.predict, (X,)), model.predict(X))


@pytest.mark.slow
def test_under_workers_of_dask(wanted):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is an extra")
    options = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": None}
    with (
        distributed.LocalCluster(processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        tasks = [client.submit(numbers, n, pure=False) for n in (None, None, 2, -1, -1, None)]
        assert client.gather(tasks) == [wanted] * 6
        assert client.submit(threads_of_all_cores).result()[0] == 1


def python(*options, **environment):
    """The answers of an interpreter with these options."""
    command = [sys.executable, *options, "-m", "tests.processes.problems"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.split()


def test_other_hashes_and_warnings_as_errors(wanted):
    """Other orders of sets, and every warning an error: the same bits."""
    assert python("-W", "error", PYTHONHASHSEED="1") == wanted


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "2", "12345"])
def test_other_hashes_and_code_without_assertions(seed, wanted):
    assert python("-O", PYTHONHASHSEED=seed) == wanted
    assert python("-OO", PYTHONHASHSEED=seed) == wanted
    assert python("-X", "dev", "-W", "error", PYTHONHASHSEED=seed) == wanted


@pytest.mark.slow
def test_processes_that_compile_into_one_cache(tmp_path):
    """Two processes begin with the same empty folder, a third one finds what they have made."""
    script = (
        "import sys, numpy as np, multikernel as mk\n"
        "rng = np.random.default_rng(0)\n"
        "X = rng.standard_normal((2300, 3)); y = X[:, 0] > 0\n"
        "model = mk.MultiKernelClassifier(mk.gaussians([0.1, 1.0]), 'align').fit(X, y)\n"
        "print(model.decision_function(X[:50]).tobytes().hex())\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "error::UserWarning", "-c", script]
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    third = subprocess.run(command, env=environment, capture_output=True)
    assert third.returncode == 0, third.stderr
    assert said[0][0] == said[1][0] == third.stdout
    assert list(tmp_path.rglob("*.nbi"))
