"""What this machine can do: exponentials, matrix products and memory traffic per second.

    python benchmarks/machine.py [THREADS]

Exponentials are those of the library's best loop (`grams._passes.evaluate`) on data in the
first-level cache; products are a large matrix product of the BLAS; traffic is that of a large copy,
reading and writing counted. Limits of the benchmarks are made of these three rates, measured in the
same run as what they are compared with. The clock counts CPU time, so that other programs on the
machine slow neither side.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from multikernel.grams import _loops
from multikernel.grams._passes import evaluate


def cpu_name() -> str:
    """Model and microarchitecture numbers, which tell virtual processors of one name apart."""
    fields = {}
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().split("\n\n")[0].splitlines():
            key, _, value = line.partition(":")
            fields[key.strip()] = value.strip()
    name = fields.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields['model']})"
    return name


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@njit(nogil=True)
def _exponentials(plan: Any, x: np.ndarray, out: np.ndarray, repeats: int) -> None:
    for _ in range(repeats):
        evaluate(plan, 0, x, out)


def exponentials_per_second(dtype: Any, threads: int = 1, repeats: int = 100_000) -> float:
    """Rate of `evaluate` for a Gaussian on data in the first-level cache; best of three."""
    size = 1024
    zeros = np.zeros(1)
    kernel = _loops.KernelFamily(
        np.zeros((1, 1), dtype=dtype),
        np.array([0, 1]),
        np.zeros(1, dtype=np.int64),
        np.full(1, _loops.EXP_SQ),
        np.column_stack([np.full(1, 0.5), zeros, zeros]),
    )
    plan = _loops.PassCache(kernel).plan
    # Input and output a little more than a page apart, so that stores do not delay loads.
    buffers = [np.ones(2 * size + 256, dtype=dtype) for _ in range(threads)]
    _exponentials(plan, buffers[0][:size], buffers[0][size + 256 :], 1)
    rates = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(3):
            start = time.process_time()
            jobs = [
                pool.submit(_exponentials, plan, b[:size], b[size + 256 :], repeats)
                for b in buffers
            ]
            for job in jobs:
                job.result()
            rates.append(threads**2 * size * repeats / (time.process_time() - start))
    return max(rates)


def product_flops_per_second(dtype: Any, threads: int = 1, size: int = 2000) -> float:
    """Rate of a large matrix product on as many threads as the BLAS was given; best of three."""
    A = np.random.default_rng(0).standard_normal((size, size)).astype(dtype)
    return 2.0 * size**3 * threads / _fastest(lambda: A @ A)


def bytes_per_second(size: int = 25_000_000) -> float:
    """Traffic of copying 200 MB, which no cache holds; best of three."""
    source, target = np.ones(size), np.zeros(size)
    return 16.0 * size / _fastest(lambda: np.copyto(target, source))


def _fastest(call: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def rates(threads: int = 1) -> dict[str, float]:
    return {
        "exp32": exponentials_per_second(np.float32, threads, 30_000),
        "exp64": exponentials_per_second(np.float64, threads, 10_000),
        "flops32": product_flops_per_second(np.float32, threads),
        "flops64": product_flops_per_second(np.float64, threads),
        "bytes": bytes_per_second(),
    }


if __name__ == "__main__":
    print(json.dumps(rates(int(sys.argv[1]) if len(sys.argv) > 1 else 1)))
