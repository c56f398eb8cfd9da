"""Interleaved chunking: the same optimum as training machines to the end, whatever the chunks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.learners.oneclass import OneClassSVM
from multikernel.learners.ridge import Ridge
from multikernel.learners.svm import SVM
from multikernel.learners.svr import SVR
from multikernel.problem import Target
from multikernel.solvers.certificate import Stopped, certify
from multikernel.solvers.joint.alternation import find_by_alternation
from multikernel.solvers.joint.chunking import RowCache, find_by_chunking
from multikernel.solvers.joint.warm_start import WarmStart
from tests.weighting.test_blocknorm import golden

INF = float("inf")
OPTIMA = {
    1: 5.25195778,
    8 / 7: 4.71923805,
    4 / 3: 4.12526279,
    1.6: 3.44781417,
    2: 2.71608278,
    3: 1.87107297,
    4: 1.54389919,
    INF: 0.85480000,
}


def precomputed_grams(matrices):
    ids = mk.sample_ids(len(matrices[0]))
    plan = mk.precomputed(matrices).plan(ids)
    return plan.grams(ids, budget=MemoryBudget.of(None)).corrected(False, None)


def golden_problem():
    matrices, y, z = golden()
    return precomputed_grams(matrices), y[:, None], z[:, None]


def gaussian_grams(X, gammas=(0.1, 0.5, 2.0)):
    grams = mk.gaussians(list(gammas)).plan(X).grams(X, budget=MemoryBudget.of(None))
    return grams.corrected(True, "multiplicative")


@pytest.mark.parametrize("size", [2, 4, 8, 16])
@pytest.mark.parametrize("p", list(OPTIMA))
def test_golden_optimum_for_every_norm_and_chunk(p, size):
    grams, y, _ = golden_problem()
    rule = mk.LpNorm(p, tol=1e-7, max_iter=5000)
    found = find_by_chunking(grams, Target(y, "classification"), rule, SVM(1.0), size=size)
    np.testing.assert_allclose(found.machine.objective, OPTIMA[p], rtol=1e-6)
    assert found.machine.gap <= 1e-7
    assert len(found.history) > 1, "nothing is known after one step"
    # The certificate holds for products that are computed afresh from the returned coefficients.
    coef, target = found.machine.coef, Target(y, "classification")
    fresh = certify(
        target,
        rule.regulariser(grams, target),
        SVM(1.0),
        found.kernel_weights,
        found.gram,
        coef,
        found.gram.matvec(coef),
        grams.quadratic_forms(coef).sum(axis=1),
    )
    assert fresh.relative_gap == pytest.approx(found.machine.gap, abs=1e-12)


# The one-class machine has its offset by definition.
KINDS = [("hinge", True), ("hinge", False), ("tube", True), ("tube", False), ("one class", True)]


@pytest.mark.parametrize("p", [1.2, 2, 3])
@pytest.mark.parametrize(("kind", "intercept"), KINDS)
def test_equals_the_alternation_for_every_loss(kind, p, intercept):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    grams = gaussian_grams(X)
    Y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(40, 1))
    weights = rng.uniform(0.5, 2.0, 40)
    if kind == "hinge":
        target, learner = Target(np.sign(Y), "classification", weights), SVM(2.0)
    elif kind == "tube":
        target, learner = Target(Y + 5.0 * intercept, "regression", weights), SVR(0.3, epsilon=0.05)
    else:
        # Centred, the origin is the mean of the points, and there is nothing to keep away from.
        grams = grams.corrected(False, None)
        target, learner = Target(np.ones((40, 1)), "classification", weights), OneClassSVM(nu=0.3)
    if kind != "one class":
        learner.fit_intercept = intercept
    rule = mk.LpNorm(p, tol=1e-8, max_iter=5000)
    chunks = find_by_chunking(grams, target, rule, learner, size=6)
    whole = find_by_alternation(grams, target, rule, learner)
    assert chunks.machine.gap <= 1e-8
    np.testing.assert_allclose(chunks.machine.objective, whole.machine.objective, rtol=3e-8)
    np.testing.assert_allclose(chunks.kernel_weights, whole.kernel_weights, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize(
    "rule",
    [
        mk.HierarchicalNorm([[0, 1], [2, 3]], p=1.3, q=1.8, tol=1e-7, max_iter=5000),
        mk.ElasticNetNorm(p=1.2, mu=0.5, tol=1e-7, max_iter=5000),
        mk.NonIsotropicNorm(np.eye(4) + 0.2, tol=1e-7, max_iter=5000),
    ],
)
def test_other_norms_and_several_outputs(rule):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(36, 4))
    classes = rng.integers(3, size=36)
    target = Target(np.where(classes[:, None] == np.arange(3), 1.0, -1.0), "classification")
    grams = gaussian_grams(X, (0.05, 0.2, 1.0, 3.0))
    chunks = find_by_chunking(grams, target, rule, SVM(1.0), size=8)
    whole = find_by_alternation(grams, target, rule, SVM(1.0))
    np.testing.assert_allclose(chunks.machine.objective, whole.machine.objective, rtol=3e-7)


def test_real_data_with_little_memory_and_a_warm_start():
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    grams = gaussian_grams(X, np.geomspace(0.003, 0.3, 6))
    target = Target(np.where(y == 1, 1.0, -1.0)[:, None], "classification")
    rule = mk.LpNorm(4 / 3)
    row = 8 * grams.p * grams.n
    cold = find_by_chunking(grams, target, rule, SVM(1.0), cache_bytes=50 * row)
    none = find_by_chunking(grams, target, rule, SVM(1.0), cache_bytes=0)
    np.testing.assert_array_equal(cold.machine.coef, none.machine.coef)
    assert cold.machine.gap <= 1e-3
    assert cold.history[-1]["support"] < 0.5 * grams.n
    warm = find_by_chunking(grams, target, rule, SVM(1.0), warm=WarmStart(cold.kernel_weights))
    assert warm.machine.gap <= 1e-3
    best = find_by_alternation(
        grams, target, mk.LpNorm(4 / 3, tol=1e-7), SVM(1.0)
    ).machine.objective
    for found in (cold, warm):
        assert best * (1 - 1e-7) <= found.machine.objective <= best * (1 + 1e-3)


def test_the_cache_holds_no_more_than_it_may():
    asked = []

    def rows(index):
        asked.extend(index.tolist())
        return np.stack([np.full((len(index), 5), k) + index[:, None] for k in range(2)]) * 1.0

    cache = RowCache(rows, 3 * 2 * 5 * 8)
    for index in ([0, 1], [1, 2], [1, 3], [0, 1], [4, 0, 2, 1]):
        index = np.array(index)
        np.testing.assert_array_equal(cache.take(index), rows(index))
        del asked[-len(index) :]
        assert len(cache.held) <= 3
    assert asked == [0, 1, 2, 3, 0, 4, 2]


def test_interrupted_with_what_was_reached():
    grams, y, _ = golden_problem()
    seen = []

    def report(entry):
        seen.append(entry)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as caught:
        find_by_chunking(
            grams, Target(y, "classification"), mk.LpNorm(1.2), SVM(1.0), size=2, report=report
        )
    assert caught.value.found.machine.gap < 1.0


def test_says_when_it_did_not_get_there():
    grams, y, _ = golden_problem()
    rule = mk.LpNorm(INF, tol=1e-12, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="by chunking stopped after 20 steps"):
        find_by_chunking(grams, Target(y, "classification"), rule, SVM(1.0), size=2)


def test_refusals():
    grams, y, z = golden_problem()
    with pytest.raises(ValueError, match="hinge, epsilon-insensitive or one-class"):
        find_by_chunking(grams, Target(z, "regression"), mk.LpNorm(), Ridge(1.0))
    with pytest.raises(ValueError, match="hinge, epsilon-insensitive or one-class"):
        find_by_chunking(grams, Target(y, "classification"), mk.L2Ball(), SVM(1.0))
    with pytest.raises(ValueError, match="at least 2 samples"):
        find_by_chunking(grams, Target(y, "classification"), mk.LpNorm(), SVM(1.0), size=1)
