"""Joint learning of weights and machine: against one machine on the plain sum, and on demand.

    python benchmarks/bench_joint.py [--quick]

*Given matrices*: p normalised Gaussian kernel matrices of digits (odd against even) are in memory.
The unit of time is what the simplest use of them costs: adding them up in NumPy, one pass over the
bank, and one fit of scikit-learn's ``SVC(kernel="precomputed")`` on the sum. Ours is the whole
``fit`` of the estimator with ``center=False, normalize=None``: checks, weights, machine, duality
gap 1e-3 and alignments. One thread each; with ``n_jobs=2`` in a further column. Repetitions are
interleaved, medians reported.

*On demand*: the setting of Kloft (2011), section 3.4: 50 Gaussian kernels on the raw pixels,
centred and normalised, C = 1, `LpNorm(4/3)` to a gap of 1e-3 with ``memory_budget="2GB"``, so that
no n x n matrix is stored beyond about 15,000 points. Each fit runs in a process of its own, on one
thread, whose largest resident set is reported. The last table has p from 10 to 1,000 at n = 1,000.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import multikernel as mk
from multikernel._places import write_atomically, write_csv

RESULTS = Path(__file__).parent / "results"
Row = dict[str, Any]


def digits(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Odd against even digits, raw pixels."""
    bunch = mk.datasets.load("mnist14")
    if len(bunch.target) < n:
        raise ValueError(f"mnist14 has {len(bunch.target)} points, fewer than {n}.")
    chosen = np.random.default_rng(0).permutation(len(bunch.target))[:n]
    X = np.asarray(bunch.data, dtype=np.float32)[chosen]
    return X, np.where(bunch.target[chosen].astype(int) % 2 == 1, 1, -1)


def widths(X: np.ndarray, p: int) -> np.ndarray:
    """A geometric grid around one over the mean squared distance."""
    return np.geomspace(0.1, 20.0, p) / (2.0 * float(X.var(axis=0, dtype=np.float64).sum()))


def given(n: int, p: int, repeats: int) -> list[Row]:
    X, y = digits(n)
    bank = mk.gaussians(widths(X, p))
    how = "multiplicative"
    matrices = [mk.normalize(mk.center(k(X.astype(np.float64))), how) for k in bank]
    stored, ids = mk.precomputed(matrices), mk.sample_ids(n)

    def sum_and_svc() -> None:
        total = matrices[0].copy()
        for K in matrices[1:]:
            total += K
        total /= p
        SVC(kernel="precomputed", C=1.0).fit(total, y)

    rules = {"LpNorm(4/3)": mk.LpNorm(4 / 3), "L1": mk.L1(), "LpNorm(4)": mk.LpNorm(4.0)}
    models = {
        (name, jobs): mk.MultiKernelClassifier(
            stored, rule, center=False, normalize=None, n_jobs=jobs
        )
        for name, rule in rules.items()
        for jobs in (1, 2)
    }
    runs = {"unit": sum_and_svc} | {
        key: (lambda model=model: model.fit(ids, y)) for key, model in models.items()
    }
    times: dict[Any, list[float]] = {key: [] for key in runs}
    for repeat in range(repeats + 1):
        for key, run in runs.items():
            threads = 2 if isinstance(key, tuple) and key[1] == 2 else 1
            with threadpool_limits(threads):
                start = perf_counter()
                run()
            if repeat:  # the first one compiles
                times[key].append(perf_counter() - start)
    seconds = {key: float(np.median(t)) for key, t in times.items()}
    return [
        {
            "n": n,
            "p": p,
            "rule": name,
            "sum + SVC s": round(seconds["unit"], 3),
            "ours s": round(seconds[name, 1], 3),
            "ratio": round(seconds[name, 1] / seconds["unit"], 2),
            "two threads s": round(seconds[name, 2], 3),
            "ratio, two threads": round(seconds[name, 2] / seconds["unit"], 2),
            "machines": models[name, 1].n_iter_,
            "active": int(np.count_nonzero(models[name, 1].kernel_weights_)),
            "gap": f"{models[name, 1].duality_gap_:.1e}",
        }
        for name in rules
    ]


def on_demand(n: int, p: int, rule: str) -> Row:
    """One fit in this process; see `apart`."""
    X, y = digits(n)
    weighting = mk.L1() if rule == "L1" else mk.LpNorm(4 / 3)
    model = mk.MultiKernelClassifier(
        mk.gaussians(widths(X, p)), weighting, C=1.0, memory_budget="2GB"
    )
    few = np.arange(0, n, max(n // 200, 1))
    mk.MultiKernelClassifier(mk.gaussians(widths(X, p)), weighting).fit(X[few], y[few])  # compile
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    # Not getrusage: its maximum includes the process this one was forked from.
    status = Path("/proc/self/status").read_text()
    peak = 1024 * int(next(x for x in status.splitlines() if x.startswith("VmHWM")).split()[1])
    return {
        "n": n,
        "p": p,
        "rule": rule,
        "seconds": round(seconds, 2),
        "peak GB": round(peak / 1e9, 2),
        "bank GB": round(8e-9 * p * n * n, 1),
        "machines": model.n_iter_,
        "support": len(model.support_),
        "gap": f"{model.duality_gap_:.1e}",
    }


def apart(n: int, p: int, rule: str) -> Row:
    """The same in a fresh process, so that its memory is its own."""
    command = [sys.executable, __file__, "--one", str(n), str(p), rule]
    single = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=single)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def growth(table: list[Row], by: str) -> str:
    """The exponent of time in n or p, from a straight line through the logarithms."""
    x, t = (np.log([float(row[key]) for row in table]) for key in (by, "seconds"))
    return f"time grows like {by}^{np.polyfit(x, t, 1)[0]:.2f}"


def markdown(table: list[Row]) -> str:
    head = list(table[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(row[key]) for key in head) + " |" for row in table]
    return "\n".join(lines)


def save(name: str, table: list[Row]) -> None:
    write_csv(RESULTS / f"{name}.csv", table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--one", nargs=3, metavar=("N", "P", "RULE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        n, p, rule = options.one
        print(json.dumps(on_demand(int(n), int(p), rule)))
        return
    sizes = [(1000, 20)] if options.quick else [(1000, 20), (3000, 50)]
    first = [
        row for n, p in sizes for row in given(n, p, 3 if options.quick else 7 if n > 1000 else 25)
    ]
    print(markdown(first), flush=True)
    ns = [1000, 2000] if options.quick else [1000, 2000, 4000, 8000, 20000]
    second = [apart(n, 50, "LpNorm(4/3)") for n in ns]
    print(markdown(second), growth(second, "n"), sep="\n\n", flush=True)
    ps = [10, 100] if options.quick else [10, 30, 100, 300, 1000]
    third = [apart(1000, p, "LpNorm(4/3)") for p in ps]
    print(markdown(third), growth(third, "p"), sep="\n\n", flush=True)
    if options.quick:
        return
    text = [
        "# Joint learning",
        "Made by `python benchmarks/bench_joint.py`; what the columns mean is written there.",
        "## Given matrices",
        markdown(first),
        "## On demand: growth with the number of points",
        markdown(second),
        growth(second, "n"),
        "## On demand: growth with the number of kernels",
        markdown(third),
        growth(third, "p"),
    ]
    RESULTS.mkdir(exist_ok=True)
    write_atomically(RESULTS / "joint.md", "\n\n".join(text) + "\n")
    save("joint_given", first)
    save("joint_on_demand", second + third)


if __name__ == "__main__":
    main()
