"""scikit-multimodallearn: MKL, a ridge on the labels with weights of norm 2.

It takes one view of the data per kernel, so every view is the same set of columns. Matrices given
are views as well, with its kernel "precomputed".
"""

import numpy as np
from common import Facts, Problem, Stopwatch, combined_test, gaussians, main
from multimodal.kernels.lpMKL import MKL


def fit(problem: Problem, watch: Stopwatch, lmbda: float) -> Facts:
    with watch("kernels"):
        K = gaussians(problem)
    model = MKL(lmbda=lmbda, kernel="precomputed")
    with watch("fit"):
        model.fit(dict(enumerate(K)), problem.y)
    weights = np.asarray(model.weights, dtype=float)

    def predict() -> np.ndarray:
        return np.where(combined_test(problem, weights) @ model.C >= 0, 1, -1)

    return {"weights": weights.tolist(), "predict": predict}


if __name__ == "__main__":
    main({"fit": fit})
