"""mklaren: Align and Alignf (convex weights), then scikit-learn's SVC on the combination.

The package was written for Python 2, and its folders import their modules in the way of that time.
The modules that are needed here work all the same when they are imported past their folders.
"""

import importlib.util
import sys
from types import ModuleType

from common import Facts, Problem, Stopwatch, combined_test, gaussians, main
from sklearn.svm import SVC

spec = importlib.util.find_spec("mklaren")
assert spec is not None and spec.submodule_search_locations is not None
for name in ("mkl", "kernel", "util"):
    folder = ModuleType(f"mklaren.{name}")
    folder.__path__ = [f"{spec.submodule_search_locations[0]}/{name}"]
    sys.modules[folder.__name__] = folder

from mklaren.mkl.align import Align  # noqa: E402
from mklaren.mkl.alignf import Alignf  # noqa: E402

RULES = {"Align": Align, "Alignf": lambda: Alignf(typ="convex")}


def fit(problem: Problem, watch: Stopwatch, rule: str, C: float) -> Facts:
    with watch("kernels"):
        K = gaussians(problem)
    model, machine = RULES[rule](), SVC(C=C, kernel="precomputed", cache_size=1000)
    with watch("fit"):
        model.fit(list(K), problem.y.astype(float))
        # Its own combination is centred on the training points only; the plain one predicts.
        total = sum(weight * matrix for weight, matrix in zip(model.mu, K, strict=True))
        machine.fit(total, problem.y)
    return {
        "weights": model.mu.tolist(),
        "support": len(machine.support_),
        "predict": lambda: machine.predict(combined_test(problem, model.mu)),
    }


if __name__ == "__main__":
    main({"fit": fit})
