"""What shrinkage of leave-one-out weights gains where kernels are many: one kernel per column.

    python -m benchmarks.shrinkage [--splits 6]

Mean errors of `mk.MultiKernelClassifier(mk.per_feature(), rule)` on small sets of the accuracy
benchmark: shrinkage chosen by nested folds, none, and equal weights of the best total.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import multikernel as mk
from benchmarks.accuracy import problems

SETS = ("parkinsons", "musk1", "sonar", "wdbc")
RULES = {
    "chosen by folds": mk.LeaveOneOut(),
    "none": mk.LeaveOneOut(shrinkage=0.0),
    "equal weights": mk.LeaveOneOut(shrinkage=1.0),
}


def error(data: problems.Split, rule: mk.LeaveOneOut) -> float:
    model = mk.MultiKernelClassifier(mk.per_feature(), rule).fit(data.X, data.y)
    return 1.0 - float(model.score(data.X_new, data.y_new))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shrinkage", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--splits", type=int, default=6)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| set | samples | kernels | {' | '.join(RULES)} |")
    print("|---|---|---|" + "---|" * len(RULES))
    for name in SETS:
        splits = [problems.load(name, i, problems.MAX_TRAIN) for i in range(options.splits)]
        cells = [
            f"{np.mean([error(data, rule) for data in splits]):.4f}" for rule in RULES.values()
        ]
        n, d = splits[0].X.shape
        print(f"| {name} | {n} | {d} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
