"""Weights learned on few points first: a better start, never another answer."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams.blocks import BlockCombined, BlockGrams
from multikernel.grams.dense import DenseGrams
from multikernel.grams.memory import MemoryBudget
from multikernel.learners.oneclass import OneClassSVM
from multikernel.learners.ridge import Ridge
from multikernel.learners.svm import SVM
from multikernel.problem import Target
from multikernel.solvers.joint import subsampled_start
from multikernel.solvers.joint.cutting_plane import newton_start
from multikernel.solvers.joint.definiteness import NotPSDError
from multikernel.solvers.joint.find import find
from multikernel.solvers.joint.learn import Interrupted, learn
from multikernel.solvers.joint.warm_start import WarmStart

N = 900


def sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    f = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.3 * rng.normal(size=N)
    return X, f


def grams_of(X, weights=None, center=True):
    bank = mk.per_feature(mk.Gaussian(1.0)) + mk.gaussians([0.03, 0.3])
    grams = bank.plan(X).grams(X, budget=MemoryBudget.of(None), sample_weight=weights)
    return grams.corrected(center, "multiplicative")


@pytest.mark.parametrize(
    ("problem", "rule"),
    [
        ("hinge", mk.LpNorm(1.3)),
        ("hinge", mk.L1()),
        ("squared", mk.L1()),
        ("one class", mk.LpNorm(1.3)),
        ("weighted", mk.LpNorm(3.0)),
        ("three classes", mk.ElasticNetNorm(p=1.2, mu=0.3)),
    ],
)
def test_the_same_optimum(problem, rule, monkeypatch):
    X, f = sample()
    rule = rule.__class__(**{**rule.get_params(), "tol": 1e-6})
    learner, weights = SVM(1.0), None
    target = Target(np.where(f > 0.4, 1.0, -1.0)[:, None], "classification")
    if problem == "squared":
        target, learner = Target(f[:, None], "regression"), Ridge(1.0)
    elif problem == "one class":
        target, learner = Target(np.ones((N, 1)), "classification"), OneClassSVM(nu=0.2)
    elif problem == "weighted":
        weights = np.random.default_rng(1).uniform(0.2, 3.0, N)
        target = Target(target.Y, "classification", weights, np.where(f > 0.4, 1.0, 2.0))
    elif problem == "three classes":
        kind = np.digitize(f, [-0.3, 0.7])
        target = Target(np.where(kind[:, None] == np.arange(3), 1.0, -1.0), "classification")
    grams = grams_of(X, weights, center=problem != "one class")
    assert subsampled_start.subsampled_start(grams, target, rule, learner) is not None
    begun = learn(grams, target, rule, learner)
    monkeypatch.setattr(subsampled_start, "MIN_SAMPLES", 10**9)
    cold = learn(grams, target, rule, learner)
    assert begun.machine.gap <= 1e-6 and cold.machine.gap <= 1e-6
    np.testing.assert_allclose(begun.machine.objective, cold.machine.objective, rtol=2e-6)


def test_the_start_is_near_the_answer():
    X, f = sample()
    grams, target = grams_of(X), Target(np.where(f > 0.4, 1.0, -1.0)[:, None], "classification")
    rule = mk.LpNorm(4 / 3, tol=1e-6)
    few = subsampled_start.subsampled_start(grams, target, rule, SVM(1.0)).kernel_weights
    all_points = find(grams, target, rule, SVM(1.0)).kernel_weights
    start = rule.regulariser(grams, target).start()
    assert np.linalg.norm(few - all_points) < 0.7 * np.linalg.norm(start - all_points)


@pytest.mark.parametrize("p", [1.1, 4 / 3, 1.7])
def test_one_machine_leads_most_of_the_way(p):
    """A Newton step from a rough machine, with and without weights to begin at."""
    X, f = sample()
    grams, target = grams_of(X), Target(np.where(f > 0.4, 1.0, -1.0)[:, None], "classification")
    rule = mk.LpNorm(p, tol=1e-7)
    best = find(grams, target, rule, SVM(1.0)).machine.objective

    def above(weights):
        return SVM(1.0).fit(grams.combine(weights), target).objective - best

    once = newton_start(grams, target, rule, SVM(1.0))
    twice = newton_start(grams, target, rule, SVM(1.0), warm=WarmStart(once))
    assert above(once) < 0.25 * above(rule.regulariser(grams, target).start())
    assert above(twice) < 0.15 * above(once)


@pytest.mark.parametrize("tol", [1e-3, 0.3])
def test_an_answer_is_never_a_rough_machine(tol):
    """However soon the gap is small enough, what is returned is trained to the last digit."""
    X, f = sample()
    grams, target = grams_of(X), Target(np.where(f > 0.4, 1.0, -1.0)[:, None], "classification")
    found = learn(grams, target, mk.LpNorm(1.3, tol=tol), SVM(1.0))
    exact = SVM(1.0).fit(grams.combine(found.kernel_weights), target)
    np.testing.assert_allclose(found.machine.coef, exact.coef, atol=1e-8)


def test_where_one_machine_leads_nowhere():
    X, f = sample()
    grams, target = grams_of(X), Target(np.where(f > 0.4, 1.0, -1.0)[:, None], "classification")
    assert newton_start(grams, target, mk.L1(), SVM(1.0)) is None
    A = np.random.default_rng(0).normal(size=(N, N))
    bank, ids = mk.precomputed([A @ A.T, -A @ A.T]), mk.sample_ids(N)
    grams = bank.plan(ids).grams(ids, budget=MemoryBudget.of(None)).corrected(False, None)
    with pytest.raises(NotPSDError):
        newton_start(grams, target, mk.LpNorm(1.3), SVM(1.0), warm=WarmStart(np.array([0.1, 1.0])))


@pytest.mark.parametrize("given", [True, False])
def test_the_first_combination_comes_with_the_statistics(given, monkeypatch):
    """The bank is read once for both, and the answer is the same."""
    X, f = sample()
    bank, y = mk.gaussians([0.03, 0.1, 0.3, 1.0, 3.0]), np.where(f > 0.4, 1, -1)
    monkeypatch.setattr(DenseGrams, "_is_small", False)  # NumPy reads matrices more than once
    if given:
        bank, X = mk.precomputed([k(X) for k in bank]), mk.sample_ids(N)

    def fit(center, normalize):
        taken.clear()
        return mk.MultiKernelClassifier(
            bank, mk.LpNorm(1.3, tol=1e-6), center=center, normalize=normalize
        ).fit(X, y)

    taken = []
    combine = BlockCombined._dense

    def watched(self):
        had = self._raw
        out = combine(self)
        taken.append(had is not None and out is had)
        return out

    monkeypatch.setattr(BlockCombined, "_dense", watched)
    summary = BlockGrams.summary
    for center, normalize in ((False, None), (True, "multiplicative"), (True, "trace")):
        begun = fit(center, normalize)
        assert [k for k, was in enumerate(taken) if was] == [len(taken) - begun.n_iter_]
        with monkeypatch.context() as patch:
            patch.setattr(
                BlockGrams,
                "summary",
                lambda self, Y, products, also_combine: summary(self, Y, products),
            )
            plain = fit(center, normalize)
            assert not any(taken)
        assert max(begun.duality_gap_, plain.duality_gap_) <= 1e-6
        assert begun.objective_ == pytest.approx(plain.objective_, rel=2e-6)
        np.testing.assert_allclose(begun.kernel_alignments_, plain.kernel_alignments_, rtol=1e-12)


def test_rules_that_few_points_tell_nothing_about():
    assert not mk.AlignmentRegularized().supports_subsampled_start
    assert not mk.LpNorm(2.0).supports_subsampled_start
    assert (
        mk.LpNorm(1.5).supports_subsampled_start
        and mk.HierarchicalNorm([[0], [1]]).supports_subsampled_start
    )


@pytest.mark.parametrize(("rule", "machines"), [(mk.LpNorm(1.2), 1), (mk.L1(), 2)])
def test_an_interrupt_among_few_points_leaves_no_iterate(rule, machines):
    X, f = sample()
    target = Target(np.where(f > 0.4, 1.0, -1.0)[:, None], "classification")

    class Impatient(SVM):
        def fit(self, gram, target, *, start=None):
            seen.append(gram.n)
            if len(seen) == machines:
                raise KeyboardInterrupt
            return super().fit(gram, target, start=start)

    seen = []
    with pytest.raises(KeyboardInterrupt) as caught:
        learn(grams_of(X), target, rule, Impatient(1.0))
    assert len(seen) == machines and max(seen) < N
    assert not isinstance(caught.value, Interrupted), "no machine saw all points"


def test_few_points_that_fail_are_done_without(monkeypatch):
    """One class is missing among them, and a kernel is constant on all of them."""
    monkeypatch.setattr(subsampled_start, "MIN_SAMPLES", 100)
    n = 200
    X = sample()[0][:n]
    X[:, 3] = 0.0
    rows = np.sort(np.random.default_rng(0).permutation(n)[: n // 4])
    outside = np.setdiff1d(np.arange(n), rows)
    X[outside[:5], 3] = 1.0
    y = -np.ones(n)
    y[outside[:20]] = 1.0
    model = mk.MultiKernelClassifier(mk.per_feature(mk.Gaussian(1.0)), mk.LpNorm(1.2)).fit(X, y)
    assert model.duality_gap_ <= 1e-3
    assert np.all(np.isfinite(model.kernel_weights_)) and model.kernel_weights_[3] > 0
