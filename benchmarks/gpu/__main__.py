"""Times and memory on one GPU: ``python -m benchmarks.gpu --help``.

Every entry is run once to compile, then timed; the table has the median of some runs, the most
memory that torch had allocated, and the goal. Limits of the card (double precision, memory) are
measured in the same run. ``--out`` writes the numbers; ``table.md`` beside this file was made so.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import multikernel as mk
from multikernel._places import write_atomically
from multikernel.grams import engines
from multikernel.grams.gpu.products import products as feature_products

from . import peers
from .data import gaussian_bank, sample

Entry = Callable[[], "float | dict[str, Any] | None"]


def timed(work: Callable[[], Any], repeats: int = 3, warm: bool = True) -> float:
    """Median seconds, the device's work included."""
    if warm:
        work()
    torch.cuda.synchronize()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


# -- limits of the card ---------------------------------------------------------------------------


def limit_of_products() -> dict[str, Any]:
    A = torch.randn(8192, 8192, device="cuda", dtype=torch.float64)
    seconds = timed(lambda: A @ A)
    return {"seconds": seconds, "note": f"{2 * 8192**3 / seconds / 1e12:.1f} TFLOP/s, float64"}


def limit_of_memory() -> dict[str, Any]:
    source = torch.randn(2**29, device="cuda", dtype=torch.float64)
    target = torch.empty_like(source)
    seconds = timed(lambda: target.copy_(source))
    return {"seconds": seconds, "note": f"{16 * 2**29 / seconds / 1e12:.2f} TB/s, read and written"}


# -- statistics -----------------------------------------------------------------------------------


def statistics_pass(n: int, d: int, labels: bool, repeats: int) -> dict[str, Any]:
    """Row sums, products with the target and between 50 Gaussians; samples are on the card."""
    X, y = sample(n, d, labels)
    plan = gaussian_bank(d).plan(X, engine="torch:cuda")
    grams = engines.build(plan, X, budget=engines.find_budget("torch:cuda", None)).corrected(
        True, "multiplicative"
    )
    Y = (y - y.mean())[:, None]
    seconds = timed(lambda: grams.passes.statistics(Y, None, True), repeats, repeats > 1)
    levels = [(level.degrees, level.high) for level in grams.passes.levels.levels]
    pairs = n * n
    adds = sum(2 * low + (high - low) for low, high in levels)
    rate = pairs * adds / seconds / 1e12
    return {
        "seconds": seconds,
        "note": f"degrees {levels}; {rate:.1f} 10^12 operations/s on the polynomials",
    }


def whole_summary(n: int, d: int) -> float:
    """From NumPy arrays to M and a of 50 Gaussians, on the host."""
    X, y = sample(n, d, True)

    def work() -> None:
        plan = gaussian_bank(d).plan(X, engine="torch:cuda")
        budget = engines.find_budget("torch:cuda", None)
        grams = engines.build(plan, X, budget=budget)
        grams.corrected(True, "multiplicative").summary(y[:, None])

    return timed(work)


# -- fits and predictions -------------------------------------------------------------------------


def fit(model: Any, n: int, d: int, labels: bool) -> dict[str, Any]:
    """One fit, after one that compiles everything: on the same samples, or on some of many."""
    X, y = sample(n, d, labels)
    first = slice(n if n <= 60_000 else 16_000)
    model.fit(X[first], y[first])
    seconds = timed(lambda: model.fit(X, y), 1, False)
    X_new, y_new = sample(10_000, d, labels, seed=1)
    score = model.score(X_new, y_new)
    return {
        "seconds": seconds,
        "note": f"gap {model.duality_gap_:.1g}, {len(model.support_)} support vectors, "
        f"{model.n_iter_} steps, score {score:.4f}",
    }


def prediction(n: int, n_support: int, d: int) -> dict[str, Any]:
    X, y = sample(n_support, d, False)
    model = mk.MultiKernelRegressor(gaussian_bank(d), "alignf", device="cuda").fit(X, y)
    X_new, _ = sample(n, d, False, seed=1)
    return {
        "seconds": timed(lambda: model.predict(X_new)),
        "note": f"{n_support} support vectors, {np.count_nonzero(model.kernel_weights_)} kernels",
    }


def product(n: int, d: int) -> float:
    """One product of the combination with a vector, from the samples."""
    X, _ = sample(n, d, True)
    plan = gaussian_bank(d).plan(X, engine="torch:cuda")
    grams = engines.build(plan, X, budget=engines.find_budget("torch:cuda", None))
    v, w = np.ones((n, 1)), np.ones(grams.p) / grams.p
    return timed(lambda: grams.raw_combined_matvec(w, v), 1, False)


def products_of_features(n: int, width: int, chunk: int = 65_536) -> dict[str, Any]:
    """``F'F`` of n rows of features, sent from host memory in chunks; the same chunk every time."""
    F = np.random.default_rng(0).standard_normal((chunk, width))
    rounds = 20
    on_card = torch.from_numpy(F).cuda()
    copying = timed(lambda: torch.from_numpy(F).cuda())
    multiplying = timed(lambda: on_card.T @ on_card)

    def work() -> None:
        for _ in range(rounds):
            feature_products(F, None, "cuda")

    seconds = timed(work, 1) * n / (rounds * chunk)
    limit = max(copying, multiplying) * n / chunk
    return {
        "seconds": seconds,
        "note": f"{seconds / limit:.2f} times the slower one of copying "
        f"({copying * n / chunk:.3g} s) and multiplying ({multiplying * n / chunk:.3g} s), "
        f"from {rounds} chunks",
    }


def _ridge(d: int, **options: Any) -> Any:
    return mk.MultiKernelRegressor(gaussian_bank(d), "alignf", device="cuda", **options)


def _svm(d: int, weighting: Any = "alignf") -> Any:
    return mk.MultiKernelClassifier(gaussian_bank(d), weighting, device="cuda")


ENTRIES: dict[str, tuple[str, str, Entry]] = {
    "limit-products": ("matrix product 8192", "", limit_of_products),
    "limit-memory": ("copy of 4 GiB", "", limit_of_memory),
    "statistics-60k": (
        "statistics, n = 60,000, d = 196, labels",
        "0.3 s",
        lambda: statistics_pass(60_000, 196, True, 3),
    ),
    "statistics-60k-numbers": (
        "statistics, n = 60,000, d = 196, a number per sample",
        "0.3 s",
        lambda: statistics_pass(60_000, 196, False, 3),
    ),
    "summary-60k": (
        "the same from NumPy arrays to M and a, labels",
        "",
        lambda: whole_summary(60_000, 196),
    ),
    "statistics-1m": (
        "statistics, n = 1,000,000, d = 28, labels",
        "15 s",
        lambda: statistics_pass(1_000_000, 28, True, 1),
    ),
    "ridge-60k": (
        "alignf + ridge, n = 60,000, d = 196",
        "4 s",
        lambda: fit(_ridge(196), 60_000, 196, False),
    ),
    "predict-1m": (
        "prediction of 1,000,000 samples",
        "1 s",
        lambda: prediction(1_000_000, 10_000, 28),
    ),
    "product-1m": (
        "product with the learned kernel, n = 1,000,000, d = 28",
        "",
        lambda: product(1_000_000, 28),
    ),
    "svm-60k": (
        "alignf + SVM, n = 60,000, d = 196",
        "5 s",
        lambda: fit(_svm(196), 60_000, 196, True),
    ),
    "lp-60k": (
        "lp-norm SVM, n = 60,000, d = 196",
        "10 s",
        lambda: fit(_svm(196, mk.LpNorm(4 / 3)), 60_000, 196, True),
    ),
    "ridge-10k": (
        "alignf + ridge, n = 10,000, d = 28",
        "",
        lambda: fit(_ridge(28), 10_000, 28, False),
    ),
    "products-10m": (
        "products of features, n = 10,000,000, 2,000 features",
        "",
        lambda: products_of_features(10_000_000, 2000),
    ),
    "himalaya-10k": ("himalaya, random search, n = 10,000", "", peers.himalaya_search),
    "gpytorch-10k": ("GPyTorch, sum of 10 RBF, n = 10,000", "", peers.gpytorch_fit),
    "ridge-250k": (
        "alignf + ridge, n = 250,000, d = 28",
        "",
        lambda: fit(_ridge(28, tol=1e-3), 250_000, 28, False),
    ),
    "ridge-1m": (
        "alignf + ridge, n = 1,000,000, d = 28",
        "5 min",
        lambda: fit(_ridge(28, tol=1e-3), 1_000_000, 28, False),
    ),
}


def run(name: str, limit: int) -> dict[str, Any]:
    title, goal, work = ENTRIES[name]
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    out: dict[str, Any] = {"name": name, "what": title, "goal": goal}

    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {limit} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    try:
        found = work()
        out |= found if isinstance(found, dict) else {"seconds": found, "note": ""}
    except Exception as error:
        out |= {"seconds": None, "note": f"{type(error).__name__}: {str(error)[:200]}"}
    finally:
        signal.alarm(0)
    out["memory"] = torch.cuda.max_memory_allocated() / 1e9
    return out


def as_table(rows: list[dict[str, Any]]) -> str:
    lines = ["| what | seconds | goal | GB | |", "|---|---|---|---|---|"]
    for row in rows:
        seconds = "-" if row["seconds"] is None else f"{row['seconds']:.3g}"
        lines.append(
            f"| {row['what']} | {seconds} | {row['goal']} | {row['memory']:.1f} | {row['note']} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ENTRIES)}")
    parser.add_argument("--limit", type=int, default=300, help="seconds for an entry")
    parser.add_argument("--out", type=Path, help="where to write the numbers, as JSON")
    options = parser.parse_args()
    rows = []
    for name in options.names or ENTRIES:
        rows.append(run(name, options.limit))
        print(json.dumps(rows[-1]), flush=True)
    card = torch.cuda.get_device_name()
    print(f"\n{card}, torch {torch.__version__}\n\n{as_table(rows)}")
    if options.out:
        write_atomically(options.out, json.dumps({"card": card, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
