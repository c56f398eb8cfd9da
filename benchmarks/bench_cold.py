"""The first fit of a fresh installation: processor time from the start to the first answers.

Every row is a new process with an empty folder for compiled code (``NUMBA_CACHE_DIR``), on one
thread: the import of scikit-learn, what the import of multikernel and the estimator take beyond it,
`fit` and `predict`, and how many functions were compiled. The row of a joint rule shows what
compiling the steps of a support vector machine takes.

    python benchmarks/bench_cold.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

ROWS = [
    ("classifier", 569),
    ("classifier", 1000),
    ("classifier", 2000),
    ("regressor", 569),
    ("lp", 569),
]

PROGRAM = """
import json, sys
from time import process_time as now
import numpy as np, sklearn.svm
from sklearn.datasets import make_classification
libraries = now()
import multikernel as mk
what, n = sys.argv[1], int(sys.argv[2])
model = {
    "classifier": lambda: mk.MultiKernelClassifier(),
    "regressor": lambda: mk.MultiKernelRegressor(),
    "lp": lambda: mk.MultiKernelClassifier(weighting="lp"),
}[what]()
made = now()
import numba.core.event as event
compiled = []
class Count(event.Listener):
    def on_start(self, _): compiled.append(1)
    def on_end(self, _): pass
event.register("numba:compile", Count())
X, y = make_classification(n, 30, n_informative=10, flip_y=0.05, random_state=0)
y = y if what != "regressor" else X[:, 0] + np.sin(X[:, 1])
begun = now()
model.fit(X, y)
fitted = now()
model.predict(X)
print(json.dumps([libraries, made - libraries, fitted - begun, now() - fitted, len(compiled)]))
"""


def measure(what: str, n: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": folder,
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, what, str(n)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    return list(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    head = ("model", "n", "libraries", "import", "fit", "predict", "total", "compiled")
    print("{:<12}{:>6}{:>11}{:>9}{:>8}{:>9}{:>8}{:>10}".format(*head))
    for what, n in ROWS:
        *times, compiled = measure(what, n)
        seconds = "{:>11.2f}{:>9.2f}{:>8.2f}{:>9.2f}{:>8.2f}".format(*times, sum(times))
        print(f"{what:<12}{n:>6}{seconds}{compiled:>10}")


if __name__ == "__main__":
    main()
