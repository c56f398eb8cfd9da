"""Write the stored model files of the current format, for the tests of all later versions.

Run once per format, ``python tests/modelfiles/make.py``, and never again: files that later
versions have written prove nothing about earlier ones.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification, make_regression

import multikernel as mk
from multikernel.files import FORMAT

HERE = Path(__file__).parent


def models():
    """Estimators with the data to fit them to, by name."""
    X, y = make_classification(120, 4, n_informative=3, n_redundant=0, n_classes=3, random_state=0)
    R, t = make_regression(100, 5, noise=3.0, random_state=0)
    bank = mk.gaussians([0.1, 1.0]) + mk.per_feature(mk.Linear()) + [mk.Linear() * mk.Gaussian(0.5)]
    search = mk.MultiKernelClassifierCV(bank, ["uniform", mk.LpNorm(1.5)], [1.0], cv=3)
    return {
        "classifier": (mk.MultiKernelClassifier(weighting="alignf"), X, y),
        "search": (search, X, y),
        "regressor": (mk.MultiKernelRegressor(weighting="l1"), R, np.round(t)),
    }


def main():
    for name, (estimator, X, y) in models().items():
        path = HERE / f"format-{FORMAT}-{name}.skops"
        if path.exists():
            raise SystemExit(f"{path.name} is there already; it must not be written again.")
        mk.save(estimator.fit(X, y), path)
        rows = X[::10]
        expected = {
            "type": type(estimator).__name__,
            "X": rows.tolist(),
            "kernel_weights": estimator.kernel_weights_.tolist(),
            "predict": estimator.predict(rows).tolist(),
        }
        if hasattr(estimator, "decision_function"):
            expected["decision_function"] = estimator.decision_function(rows).tolist()
        path.with_suffix(".json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
