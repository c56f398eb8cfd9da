"""What every runner does around a fit; needs NumPy only, since peers bring their own environments.

    python run_<peer>.py PROBLEM.npz METHOD OPTIONS

A runner is one process for one fit. A method receives the problem and a stopwatch, measures its
kernels and its fit separately, and returns facts about the model; ``predict`` among them labels the
held-out points. It runs once on a small part of the problem first, where nothing counts (imports,
compiled code), and then on all of it. One line of JSON on the standard output is the answer.

The part is 120 points and 3 kernels. A library whose compiled loops are loaded when they are first
called, and differ between small and large problems, may name a larger one.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

#: A peer that asks for more is stopped by the system, not the machine by the peer.
SHARE_OF_MEMORY = 0.8
PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "numba", "multikernel", "MKLpy", "torch", "cvxopt"),
    *("himalaya", "scikit-multimodallearn", "mklaren"),
)

Facts = dict[str, Any]
Method = Callable[..., Facts]


@dataclass(frozen=True)
class Problem:
    """Training and held-out points with labels -1 and +1, and the rates of the Gaussians."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    gammas: np.ndarray

    def part(self, n: int = 120, p: int = 3) -> Problem:
        """A few points with a few kernels, or with a few columns where columns are the kernels."""
        columns = slice(None) if len(self.gammas) else slice(100)
        return replace(
            self,
            X=self.X[:n, columns],
            y=self.y[:n],
            X_test=self.X_test[:10, columns],
            y_test=self.y_test[:10],
            gammas=self.gammas[:: max(len(self.gammas) // p, 1)][:p],
        )


def save(path: Path, problem: Problem) -> None:
    """A problem in one file; sparse points as the three arrays of their rows."""
    arrays: dict[str, Any] = {}
    for name, value in vars(problem).items():
        if hasattr(value, "indptr"):
            for part in ("data", "indices", "indptr", "shape"):
                arrays[f"{name}.{part}"] = getattr(value, part)
        else:
            arrays[name] = value
    np.savez(path, **arrays)


def load(path: Path) -> Problem:
    with np.load(path) as file:
        arrays = dict(file)
    for name in ("X", "X_test"):
        if f"{name}.data" in arrays:
            from scipy.sparse import csr_matrix

            data, indices, indptr, shape = (
                arrays.pop(f"{name}.{part}") for part in ("data", "indices", "indptr", "shape")
            )
            arrays[name] = csr_matrix((data, indices, indptr), shape=tuple(shape))
    return Problem(**arrays)


@dataclass
class Stopwatch:
    """CPU and wall seconds of named parts."""

    seconds: dict[str, tuple[float, float]] = field(default_factory=dict)

    @contextlib.contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        self.seconds[part] = (time.process_time() - cpu, time.perf_counter() - wall)


def high_water() -> float:
    """High-water mark of this program's resident set in MB (getrusage counts the parent's)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e6
    return float("nan")


def forget_high_water() -> None:
    """Let the mark start again from now, where the system allows it; free memory goes back."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def squared_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    D = A @ B.T
    D *= -2.0
    D += (A * A).sum(axis=1)[:, None]
    D += (B * B).sum(axis=1)
    return np.maximum(D, 0.0, out=D)


def gaussians(problem: Problem) -> np.ndarray:
    """All kernel matrices of the training points, (p, n, n): distances once, one exp per entry."""
    X = problem.X.astype(np.float64)
    D = squared_distances(X, X)
    K = np.empty((len(problem.gammas), *D.shape))
    for matrix, gamma in zip(K, problem.gammas, strict=True):
        np.multiply(D, -gamma, out=matrix)
        np.exp(matrix, out=matrix)
    return K


def combined_test(problem: Problem, weights: np.ndarray) -> np.ndarray:
    """``sum_k w_k K_k`` between held-out and training points, one kernel at a time."""
    D = squared_distances(problem.X_test.astype(np.float64), problem.X.astype(np.float64))
    total = np.zeros_like(D)
    for weight, gamma in zip(weights, problem.gammas, strict=True):
        if weight != 0:
            total += float(weight) * np.exp(-gamma * D)
    return total


def versions() -> dict[str, str]:
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def limit_memory() -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most = int(SHARE_OF_MEMORY * total)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def answer(method: Method, problem: Problem, options: Facts, part: Facts) -> Facts:
    """Run a method on all of the problem, after a run on a small part that does not count."""
    method(problem.part(**part), Stopwatch(), **options)
    forget_high_water()
    start = high_water()
    watch = Stopwatch()
    facts = method(problem, watch, **options)
    peak = high_water()  # before predictions, which everybody makes in the same way
    predict = facts.pop("predict", None)
    if predict is not None:
        facts["accuracy"] = float(np.mean(np.asarray(predict()) == problem.y_test))
    kernels = watch.seconds.get("kernels", (0.0, 0.0))
    fit = watch.seconds["fit"]
    return {
        "cpu": kernels[0] + fit[0],
        "wall": kernels[1] + fit[1],
        "given_cpu": fit[0] if "kernels" in watch.seconds else None,
        "used": time.process_time(),
        "start_mb": start,
        "peak_mb": peak,
        **facts,
        "versions": versions(),
    }


def main(methods: dict[str, Method], **part: int) -> None:
    path, name, options = sys.argv[1:4]
    limit_memory()
    sys.stdout, out = sys.stderr, sys.stdout  # some peers print while they fit
    facts = answer(methods[name], load(Path(path)), json.loads(options), part)
    print(json.dumps(facts), file=out)
