"""What a first fit compiles, and what happens where compiled code cannot be kept."""

import subprocess
import sys

import numpy as np
import pytest

from multikernel._compiling import CompileCacheWarning, NoCache, TolerantCache, njit, say_once

FIRST_FIT = """
import numba.core.event as event
compiled = []
class Count(event.Listener):
    def on_start(self, what): compiled.append(what.data["dispatcher"].py_func.__name__)
    def on_end(self, what): pass
event.register("numba:compile", Count())
import multikernel as mk
from sklearn.datasets import load_breast_cancer, make_classification
X, y = {data}
model = {model}
model.fit(X[::2], y[::2]).predict(X[1::2])
print(compiled)
"""


def run(code, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


CANCER, MANY = (
    "load_breast_cancer(return_X_y=True)",
    "make_classification(4000, 30, random_state=0)",
)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        ("mk.MultiKernelClassifier()", CANCER),
        ("mk.MultiKernelRegressor()", CANCER),
        ("mk.ParzenClassifier()", CANCER),
        ("mk.MultiKernelClassifier(memory_budget='2GB')", MANY),  # 2,000 samples and 25 kernels
    ],
)
def test_a_first_fit_of_defaults_compiles_nothing(model, data, tmp_path):
    done = run(FIRST_FIT.format(model=model, data=data), NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout.splitlines()[-1] == "[]"


def test_without_a_place_for_compiled_code_work_goes_on_and_it_is_said_once():
    code = """
import numba.core.caching as caching
for kind in ("_CacheImpl", "CacheImpl"):
    if hasattr(caching, kind):
        getattr(caching, kind)._locator_classes = []
from multikernel._mirror import compiled_mirror
from multikernel._matrix_loops import compiled_gather
import numpy as np
K = np.arange(9.0).reshape(3, 3)
compiled_mirror(K)
compiled_gather(K, np.arange(2), np.arange(2), np.empty((2, 2)))
assert K[0, 2] == K[2, 0] == 6.0
"""
    done = run(code)
    assert done.stderr.count("CompileCacheWarning") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


class Broken:
    cache_path = "here"

    def load_overload(self, *_):
        raise EOFError("ran out of input")

    def save_overload(self, *_):
        raise OSError("no space left on device")


def test_broken_files_and_full_disks_are_survived(monkeypatch):
    monkeypatch.setattr("multikernel._compiling._SAID", [])
    cache = TolerantCache(Broken())
    with pytest.warns(CompileCacheWarning, match="ran out of input"):
        assert cache.load_overload(None, None) is None
    cache.save_overload(None, None)  # said already
    assert cache.cache_path == "here"


def test_the_reason_is_told_when_something_is_compiled(monkeypatch):
    monkeypatch.setattr("multikernel._compiling._SAID", [])
    with pytest.warns(CompileCacheWarning, match="no locator"):
        NoCache(RuntimeError("no locator")).load_overload()
    say_once(RuntimeError("again"))

    @njit(cache=True)
    def add(a, b):
        return a + b

    assert add(np.float64(1), np.float64(2)) == 3.0
