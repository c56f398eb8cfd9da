"""Leave-one-out weights with and without learned column scales.

    python benchmarks/bench_scales.py [--max-train N] [--splits N] [--sets ...]

Errors on the test parts of the splits of benchmarks/accuracy: the share of wrong labels, or the
root mean squared error in standard deviations of y. *loo* is the bank for tables with leave-one-out
weights; *rescaled* adds the kernels on learned scales without asking whether they help;
*validated* is ``mk.learned_scales()`` as it is, and *kept* the number of splits in which it kept
them. The last columns are the CPU seconds of a fit without learned scales, of learning them, and of
a fit with all kernels, on one thread.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import multikernel as mk

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.accuracy import problems

SETS = (
    *("casp_rmsd", "higgs_sample", "kin8nm", "climate", "vertebral", "parkinsons"),
    *("musk1", "sonar", "wdbc"),
)


def run(name: str, number: int, max_train: int) -> dict[str, Any]:
    """Errors and seconds of one split."""
    data = problems.load(name, number, max_train)
    kind = mk.MultiKernelRegressor if data.regression else mk.MultiKernelClassifier

    def fit(kernels: Any) -> tuple[Any, float, float]:
        started = process_time()
        model = kind(kernels, weighting="loo").fit(data.X, data.y)
        return model, data.error(model.predict(data.X_new)), process_time() - started

    plain, error, seconds = fit(mk.default_bank(data.X, kind="tables"))
    _, scaled_error, scaled_seconds = fit(mk.learned_scales(validate=False))
    started = process_time()
    bank = mk.learned_scales(
        data.X, data.y, task="regression" if data.regression else "classification"
    )
    learning = process_time() - started
    kept = len(bank) > len(plain.bank_)
    return {
        "shape": data.X.shape,
        "plain": error,
        "rescaled": scaled_error,
        # The same kernels as one of the two fits before.
        "validated": scaled_error if kept else error,
        "kept": kept,
        "seconds": seconds,
        "learning": learning,
        "with": scaled_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--max-train", type=int, default=500)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    print(
        "| set | samples x columns | loo | rescaled | validated | kept | fit, s | learning, s "
        "| fit with both, s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.sets:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            rows = [run(name, split, options.max_train) for split in range(options.splits)]
        mean = {
            key: float(np.mean([row[key] for row in rows]))
            for key in ("plain", "rescaled", "validated", "seconds", "learning", "with")
        }
        n, d = rows[0]["shape"]
        kept = sum(row["kept"] for row in rows)
        print(
            f"| {name} | {n} x {d} | {mean['plain']:.3f} | {mean['rescaled']:.3f} | "
            f"{mean['validated']:.3f} | {kept} of {len(rows)} | {mean['seconds']:.1f} | "
            f"{mean['learning']:.1f} | {mean['with']:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
