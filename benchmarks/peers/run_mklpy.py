"""MKLpy: its rules for two classes, with scikit-learn's SVC as the machine.

EasyMKL's own machine (KOMD) solves a dense quadratic program with cvxopt and is slower. GRAM and
MEMO walk by small steps; they get five of them, since one costs seconds to tens of seconds.
"""

from common import Facts, Problem, Stopwatch, combined_test, gaussians, main
from MKLpy.algorithms import CKA, GRAM, MEMO, PWMK, AverageMKL, EasyMKL, FHeuristic
from sklearn.svm import SVC
from torch import from_numpy, set_num_threads

RULES = {
    "EasyMKL": lambda svc: EasyMKL(learner=svc, lam=0.1),
    "GRAM": lambda svc: GRAM(learner=svc, max_iter=5),
    "MEMO": lambda svc: MEMO(learner=svc, max_iter=5, theta=0.1),
    "CKA": lambda svc: CKA(learner=svc),
    "PWMK": lambda svc: PWMK(learner=svc),
    "FHeuristic": lambda svc: FHeuristic(learner=svc),
    "AverageMKL": lambda svc: AverageMKL(learner=svc),
}


def fit(problem: Problem, watch: Stopwatch, rule: str, C: float) -> Facts:
    with watch("kernels"):
        matrices = [from_numpy(K) for K in gaussians(problem)]
    model = RULES[rule](SVC(C=C, cache_size=1000))
    with watch("fit"):
        model.fit(matrices, from_numpy(problem.y))
    weights = [float(w) for w in model.solution.weights]
    return {
        "weights": weights,
        "support": len(model.learner.support_),
        "predict": lambda: model.learner.predict(combined_test(problem, weights)),
    }


if __name__ == "__main__":
    set_num_threads(1)
    main({"fit": fit})
