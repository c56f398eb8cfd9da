"""multikernel: fits on kernels or on given matrices, alignment weights, predictions, searches."""

import time
from typing import Any

import numpy as np
from common import Facts, Problem, Stopwatch, gaussians, main

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.weighting.alignment import alignf


def rule(name: str) -> Any:
    """A weighting from its name in the table: "alignf", "L1", "LpNorm(4/3)"."""
    if name.startswith("LpNorm("):
        above, _, below = name[7:-1].partition("/")
        return mk.LpNorm(float(above) / float(below or 1))
    return mk.L1() if name == "L1" else name


def bank(problem: Problem) -> Any:
    if len(problem.gammas) == 0:
        return mk.per_feature(mk.Linear())
    return mk.gaussians(problem.gammas)


def facts(model: Any) -> Facts:
    weights = model.kernel_weights_
    return {
        "gap": float(model.duality_gap_) if model.duality_gap_ is not None else None,
        "support": len(model.support_),
        "active": int(np.count_nonzero(weights)),
        "machines": int(model.n_iter_),
        # Thousands of weights would make the journal long and nobody wiser.
        "weights": weights.tolist() if len(weights) <= 100 else None,
    }


def fit(
    problem: Problem, watch: Stopwatch, rule_name: str, given: bool = False, **options: Any
) -> Facts:
    if given:
        with watch("kernels"):
            K = gaussians(problem)
        with watch("fit"):  # the checks of the matrices belong to it
            model = mk.MultiKernelClassifier(mk.precomputed(list(K)), rule(rule_name), **options)
            model.fit(mk.sample_ids(len(problem.y)), problem.y)
        return facts(model)
    model = mk.MultiKernelClassifier(bank(problem), rule(rule_name), **options)
    with watch("fit"):
        model.fit(problem.X, problem.y)
    return {**facts(model), "predict": lambda: model.predict(problem.X_test)}


def weights(problem: Problem, watch: Stopwatch, rule_name: str, dtype: str = "float32") -> Facts:
    """The weights of align or alignf alone, without a machine."""
    y = problem.y.astype(np.float64)
    kernels, X = bank(problem), problem.X.astype(dtype)
    with watch("fit"):
        plan = kernels.plan(X)
        grams = plan.grams(X, budget=MemoryBudget.of(None), dtype=X.dtype)
        grams = grams.corrected(True, "multiplicative")
        summary = grams.summary(y - y.mean(), products=rule_name == "alignf")
        mu = alignf(summary.M, summary.a) if rule_name == "alignf" else summary.alignments
        mu = mu / mu.sum()
    return {"weights": mu.tolist() if len(mu) <= 100 else None, "active": int((mu != 0).sum())}


def predict(problem: Problem, watch: Stopwatch, rule_name: str, rows: int) -> Facts:
    """The time of predictions for `rows` points; the latency of a single one beside it."""
    model = mk.MultiKernelClassifier(bank(problem), rule(rule_name)).fit(problem.X, problem.y)
    many = np.resize(problem.X_test, (rows, problem.X_test.shape[1]))
    with watch("fit"):
        model.predict(many)
    return {
        **facts(model),
        "latency_ms": latency(lambda: model.predict(problem.X_test[:1])),
        "predict": lambda: model.predict(problem.X_test),
    }


def latency(call: Any, repeats: int = 50) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times))


def search(
    problem: Problem, watch: Stopwatch, rules: list[str], Cs: list[float], folds: int
) -> Facts:
    model = mk.MultiKernelClassifierCV(
        bank(problem), [rule(name) for name in rules], Cs=Cs, cv=folds
    )
    with watch("fit"):
        model.fit(problem.X, problem.y)
    chosen = f"{model.weighting_}, C = {model.C_:g}"
    return {**facts(model), "note": chosen, "predict": lambda: model.predict(problem.X_test)}


if __name__ == "__main__":
    # From 600 points on polynomials stand for many kernels, from 800 on a part of the points is
    # looked at first: loops of their own.
    methods = {"fit": fit, "weights": weights, "predict": predict, "search": search}
    main(methods, n=840, p=50)
