"""The cutting planes of the thesis: golden values, a conic oracle, and the other solvers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import multikernel as mk
from multikernel.learners.logistic import LogisticRegression
from multikernel.learners.oneclass import OneClassSVM
from multikernel.learners.ridge import Ridge
from multikernel.learners.svm import SVM
from multikernel.learners.svr import SVR
from multikernel.problem import Target
from multikernel.solvers.certificate import Stopped, certify
from multikernel.solvers.joint.alternation import find_by_alternation
from multikernel.solvers.joint.cuts import CutModel
from multikernel.solvers.joint.taylor_cuts import (
    find_by_cutting_plane_chunking,
    find_by_cutting_plane_wrapper,
)
from multikernel.solvers.joint.warm_start import WarmStart
from tests.solvers.joint.conic_oracle import conic_optimum, factor
from tests.solvers.joint.test_chunking import OPTIMA, gaussian_grams, golden_problem

pytest.importorskip("highspy")  # linear programs at p = 1

BOTH = [find_by_cutting_plane_wrapper, find_by_cutting_plane_chunking]
BELOW_TWO = [p for p in OPTIMA if p <= 2]


@pytest.mark.parametrize("p", BELOW_TWO)
@pytest.mark.parametrize("solve", BOTH)
def test_golden_optimum(solve, p):
    grams, y, _ = golden_problem()
    target, rule = Target(y, "classification"), mk.LpNorm(p, tol=1e-7, max_iter=5000)
    found = solve(grams, target, rule, SVM(1.0))
    np.testing.assert_allclose(found.machine.objective, OPTIMA[p], rtol=1e-7)
    assert found.machine.gap <= 1e-7
    theta = found.kernel_weights
    if p < 2:
        np.testing.assert_allclose(np.sum(theta ** (p / (2 - p))), 1.0, rtol=1e-9)
    # A certificate from the returned weights and coefficients alone is below the optimum. For p > 1
    # it is the reported gap. At p = 1 the linear program is solved to 1e-10, the weights therefore
    # to a few times the root of it, and with them the bound of one predictor; that of all cuts is
    # better.
    coef = found.machine.coef
    again = certify(
        target,
        rule.regulariser(grams, target),
        SVM(1.0),
        theta,
        found.gram,
        coef,
        found.gram.matvec(coef),
        grams.quadratic_forms(coef).sum(axis=1),
    )
    assert again.dual <= OPTIMA[p] * (1 + 1e-8)
    if p > 1:
        assert again.relative_gap == pytest.approx(found.machine.gap, abs=1e-12)
    else:
        assert again.relative_gap <= 4.0 * np.sqrt(1e-10)


@pytest.mark.parametrize("size", [2, 4, 16])
@pytest.mark.parametrize("p", [8 / 7, 1.6])
def test_chunks_of_any_size(p, size):
    grams, y, _ = golden_problem()
    rule = mk.LpNorm(p, tol=1e-6, max_iter=5000)
    found = find_by_cutting_plane_chunking(
        grams, Target(y, "classification"), rule, SVM(1.0), size=size
    )
    np.testing.assert_allclose(found.machine.objective, OPTIMA[p], rtol=1e-6)


@pytest.mark.parametrize("kind", ["hinge", "tube", "one class", "squared", "logistic"])
@pytest.mark.parametrize("p", [1, 1.2, 1.7])
@pytest.mark.parametrize("solve", BOTH)
def test_every_loss(solve, p, kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    grams = gaussian_grams(X)
    Y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(40, 1))
    weights = rng.uniform(0.5, 2.0, 40)
    tol = 1e-7
    if kind == "hinge":
        target, learner = Target(np.sign(Y), "classification", weights), SVM(2.0)
    elif kind == "logistic":
        target, learner = Target(np.sign(Y), "classification", weights), LogisticRegression(2.0)
    elif kind == "tube":
        target, learner = Target(Y + 5.0, "regression", weights), SVR(0.3, epsilon=0.05)
    elif kind == "squared":
        target, learner = Target(Y + 5.0, "regression", weights), Ridge(0.3)
    else:
        grams = grams.corrected(False, None)
        target, learner = Target(np.ones((40, 1)), "classification", weights), OneClassSVM(nu=0.3)
    rule = mk.LpNorm(p, tol=tol, max_iter=5000)
    if solve is find_by_cutting_plane_chunking and kind in ("squared", "logistic"):
        with pytest.raises(ValueError, match="hinge, epsilon-insensitive or one-class"):
            solve(grams, target, rule, learner)
        return
    ours = solve(grams, target, rule, learner)
    theirs = find_by_alternation(grams, target, mk.LpNorm(p, tol=1e-6, max_iter=20000), learner)
    assert ours.machine.gap <= tol
    rtol = ours.machine.gap + theirs.machine.gap
    np.testing.assert_allclose(ours.machine.objective, theirs.machine.objective, rtol=rtol)


@pytest.mark.parametrize("p", [1.1, 1.5])
@pytest.mark.parametrize("solve", BOTH)
def test_against_a_conic_program(solve, p):
    pytest.importorskip("clarabel")
    rng = np.random.default_rng(8)
    X = rng.standard_normal((40, 6))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(40) > 0, 1.0, -1.0)
    grams = gaussian_grams(X, np.geomspace(0.02, 3.0, 8))
    features = [factor(K) for K in grams.block(slice(0, 40))]
    optimum, norms, _ = conic_optimum(features, y, 5.0, p, "hinge")
    target, rule = Target(y[:, None], "classification"), mk.LpNorm(p, tol=1e-6, max_iter=5000)
    found = solve(grams, target, rule, SVM(5.0))
    np.testing.assert_allclose(found.machine.objective, optimum, rtol=2e-6)
    ours = found.kernel_weights * np.sqrt(grams.quadratic_forms(found.machine.coef)[:, 0])
    np.testing.assert_allclose(ours, norms, atol=0.01 * norms.max())


def test_several_outputs_and_a_warm_start():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(36, 4))
    classes = rng.integers(3, size=36)
    target = Target(np.where(classes[:, None] == np.arange(3), 1.0, -1.0), "classification")
    grams = gaussian_grams(X, (0.05, 0.2, 1.0, 3.0))
    rule = mk.LpNorm(1.3, tol=1e-6, max_iter=5000)
    whole = find_by_alternation(grams, target, rule, SVM(1.0))
    for solve in BOTH:
        cold = solve(grams, target, rule, SVM(1.0))
        warm = solve(grams, target, rule, SVM(1.0), warm=WarmStart(cold.kernel_weights))
        for found in (cold, warm):
            np.testing.assert_allclose(found.machine.objective, whole.machine.objective, rtol=2e-6)


def test_which_cuts_move_the_minimum():
    model = CutModel(4 / 3)
    theta = np.array([0.6, 0.8])
    assert model.is_moved_by(1.0, np.ones(2), theta), "without cuts nothing is known"
    model.add(2.0, np.array([1.0, 2.0]), theta)  # 2 - (0.6 + 1.6) / 2 = 0.9 at theta
    assert model.is_moved_by(1.7, np.array([2.0, 0.4]), theta)  # 0.94
    assert not model.is_moved_by(1.6, np.array([2.0, 0.4]), theta)  # 0.84


@pytest.mark.parametrize("solver", ["cutting-planes-wrapper", "cutting-planes-chunking"])
def test_by_name_in_an_estimator(solver):
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    models = [
        mk.MultiKernelClassifier(weighting=mk.LpNorm(solver=chosen)).fit(X, y)
        for chosen in (solver, "alternation")
    ]
    assert models[0].duality_gap_ <= 1e-3
    assert models[0].n_iter_ == len(models[0].history_) > 1
    gaps = [model.duality_gap_ for model in models]
    np.testing.assert_allclose(models[0].objective_, models[1].objective_, rtol=sum(gaps))


@pytest.mark.parametrize("solve", BOTH)
def test_interrupted_with_what_was_reached(solve):
    grams, y, _ = golden_problem()
    seen = []

    def report(entry):
        seen.append(entry)
        if len(seen) == 4:
            raise KeyboardInterrupt

    if solve is find_by_cutting_plane_wrapper:
        # The wrapper keeps its answer while a predictor is trained.
        class Interrupting(SVM):
            def fit(self, *args, **options):
                if len(seen) == 3:
                    raise KeyboardInterrupt
                return super().fit(*args, **options)

        learner = Interrupting(1.0)
    else:
        learner = SVM(1.0)
    with pytest.raises(Stopped) as caught:
        solve(grams, Target(y, "classification"), mk.LpNorm(1.2, tol=1e-9), learner, report=report)
    assert caught.value.found.machine.gap < 1.0


@pytest.mark.parametrize("solve", BOTH)
def test_says_when_it_did_not_get_there(solve):
    grams, y, _ = golden_problem()
    rule = mk.LpNorm(1.2, tol=1e-12, max_iter=1)
    options = {} if solve is find_by_cutting_plane_wrapper else {"size": 2}
    with pytest.warns(ConvergenceWarning, match="by cutting planes") as caught:
        found = solve(grams, Target(y, "classification"), rule, SVM(1.0), **options)
    assert f"gap of {found.machine.gap:.2g}, above tol=1e-12" in str(caught[0].message)


@pytest.mark.parametrize("solver", ["cutting-planes-wrapper", "cutting-planes-chunking"])
def test_large_norms_are_refused(solver):
    with pytest.raises(ValueError, match=r"from 1 to 2; got p=2\.5"):
        mk.LpNorm(2.5, solver=solver).method(4)
    grams, y, _ = golden_problem()
    for solve in BOTH:
        with pytest.raises(ValueError, match="p from 1 to 2"):
            solve(grams, Target(y, "classification"), mk.LpNorm(2.5), SVM(1.0))
