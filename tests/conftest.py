"""What all tests share: a seed, the data folder, one thread per worker, profiles of hypothesis."""

from __future__ import annotations

import os

# Several workers with a full set of BLAS threads each would fight over the cores. The variables
# are read when a library is loaded, so they are set before numpy is imported.
IN_WORKER = "PYTEST_XDIST_WORKER" in os.environ
if IN_WORKER:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"

# Triton's interpreter, too, is chosen when triton is first imported; programs run on a GPU if there
# is one.
if not os.path.exists("/dev/nvidia0"):
    os.environ.setdefault("TRITON_INTERPRET", "1")

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from experiments import datasets
from multikernel.grams import memory

SEED = 20260

# Neither profile judges a test by the clock: on a busy machine that would fail at random. Tests
# carry no settings of their own, so that a profile holds for all of them.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# The default: the same examples in every run, so that a failure is there again in the next one.
settings.register_profile("ci", derandomize=True, max_examples=40, **UNTIMED)
# `make fuzz`: other examples in every run, and many; failures are kept and tried first next time.
settings.register_profile("fuzz", derandomize=False, max_examples=1000, print_blob=True, **UNTIMED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session", autouse=True)
def one_thread_per_worker() -> Iterator[None]:
    """Hold BLAS, OpenMP and numba to one thread in a worker; do nothing in a serial run.

    numba's pool keeps its size (a test may still ask for more threads), only its default is one.
    """
    if not IN_WORKER:
        yield
        return
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    with threadpool_limits(limits=1):
        yield
    numba.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def same_free_memory_everywhere() -> Iterator[None]:
    """Let the default memory budget be that of a machine with 8 GB free.

    It decides which path a fit takes; what else runs on the machine must not.
    """
    machine = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=8 * 10**9))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "psutil", machine)
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with the same seed in every test."""
    return np.random.default_rng(SEED)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The local folder of data sets; the test is skipped, with the reason, where there is none."""
    folder = datasets.folder()
    if folder is None:
        pytest.skip("no local folder of data sets: set MULTIKERNEL_DATA to run this test")
    return folder


@pytest.fixture
def requires_data(data_dir: Path):
    """Skip unless the named sets lie in the local folder: ``requires_data("ionosphere")``."""
    known = set(datasets._index(data_dir))

    def check(*names: str) -> Path:
        absent = sorted(set(names) - known)
        if absent:
            pytest.skip(f"not in the local folder of data sets: {', '.join(absent)}")
        return data_dir

    return check
