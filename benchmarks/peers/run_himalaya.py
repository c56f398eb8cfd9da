"""himalaya: ridge regression on the labels; signs of the predictions are the classes.

MultipleKernelRidgeCV learns one weight per kernel by cross-validation, by random search (100
candidates as it comes, here 10) or by gradient descent. WeightedKernelRidge learns no weights: it
is the ridge on the plain sum.
"""

import numpy as np
from common import Facts, Problem, Stopwatch, gaussians, main, squared_distances
from himalaya.kernel_ridge import MultipleKernelRidgeCV, WeightedKernelRidge

ALPHAS = np.logspace(-4, 2, 7)
RULES = {
    "MultipleKernelRidgeCV, random search": lambda: MultipleKernelRidgeCV(
        kernels="precomputed",
        solver="random_search",
        solver_params={"n_iter": 10, "alphas": ALPHAS, "progress_bar": False},
        cv=3,
        random_state=0,
    ),
    "MultipleKernelRidgeCV, gradient": lambda: MultipleKernelRidgeCV(
        kernels="precomputed",
        solver="hyper_gradient",
        solver_params={"max_iter": 20, "progress_bar": False},
        cv=3,
        random_state=0,
    ),
    "WeightedKernelRidge": lambda: WeightedKernelRidge(alpha=0.1, kernels="precomputed"),
}


def fit(problem: Problem, watch: Stopwatch, rule: str) -> Facts:
    with watch("kernels"):
        K = gaussians(problem)
    model = RULES[rule]()
    with watch("fit"):
        model.fit(K, problem.y.astype(np.float64))

    def predict() -> np.ndarray:
        D = squared_distances(problem.X_test.astype(np.float64), problem.X.astype(np.float64))
        # A hundred points at a time: all p matrices together would need gigabytes more.
        parts = [
            model.predict(np.exp(-problem.gammas[:, None, None] * D[i : i + 100]))
            for i in range(0, len(D), 100)
        ]
        return np.where(np.concatenate(parts).ravel() >= 0, 1, -1)

    return {"weights": np.exp(np.ravel(model.deltas_)).tolist(), "predict": predict}


if __name__ == "__main__":
    main({"fit": fit})
