"""From grams to a solution: statistics are computed once, whatever the bank and the rule."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.protocol import Grams
from multikernel.grams.shared import SharedGrams
from multikernel.learners.svm import SVM
from multikernel.problem import Target
from multikernel.solvers.certificate import Stopped
from multikernel.solvers.joint import recertify
from multikernel.solvers.joint.definiteness import NotPSDError
from multikernel.solvers.joint.find import find
from multikernel.solvers.joint.learn import Interrupted, learn
from multikernel.weighting.base import Weighting

BANKS = {
    "shared": mk.gaussians([0.1, 1.0]),
    "stacked": mk.gaussians([0.1, 1.0]) + mk.per_feature(mk.Linear()),
}
RULES = [mk.Align(), mk.AlignF(), mk.NonIsotropicNorm(), mk.AlignmentRegularized()]


def problem(bank, how, n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    grams = bank.plan(X).grams(X, budget=MemoryBudget.of("1GB")).corrected(True, how)
    return grams, Target(np.where(X[:, :1] > 0.1, 1.0, -1.0), "classification")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("how", ["multiplicative", "spherical"])
@pytest.mark.parametrize("bank", BANKS)
def test_the_statistics_are_computed_once(bank, how, rule, monkeypatch):
    grams, target = problem(BANKS[bank], how)
    asked = []
    cls = type(grams)
    summary = cls.summary
    monkeypatch.setattr(cls, "summary", lambda *a, **k: asked.append(1) or summary(*a, **k))
    learn(grams, target, rule, SVM())
    assert len(asked) == 1


def test_rules_whose_start_takes_no_summary_still_work():
    class First(Weighting):
        def start(self, grams: Grams, target: Target, learner: object) -> np.ndarray:
            return np.eye(grams.p)[0]

    grams, target = problem(BANKS["shared"], "multiplicative")
    assert learn(grams, target, First(), SVM()).kernel_weights.tolist() == [1.0, 0.0]


def test_a_search_refuses_the_combinations_that_a_fit_refuses():
    """The folds of a search are checked for definiteness, as the last fit is."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    indefinite = X @ X.T - 2.0 * np.outer(X[:, 0], X[:, 0])
    bank = mk.precomputed([indefinite])
    options = {"weighting": "uniform", "center": False, "normalize": None}
    with pytest.raises(NotPSDError):
        mk.MultiKernelClassifier(bank, **options).fit(mk.sample_ids(60), y)
    search = mk.MultiKernelClassifierCV(bank, cv=3, **options)
    with pytest.raises(NotPSDError) as refused:
        search.fit(mk.sample_ids(60), y)
    assert not hasattr(search, "cv_results_"), "no score of a combination that is no kernel"
    assert "most negative eigenvalue" in str(refused.value)


@pytest.mark.parametrize("certified", [True, False])
def test_an_interrupt_of_the_second_solution_keeps_grams_and_predictor_together(
    certified, rng, monkeypatch
):
    """The second solution, from accurate values, is returned if it has a certified iterate."""
    X = rng.normal(size=(60, 3))
    target = Target(np.sign(X[:, :1] + rng.normal(size=(60, 1))), "classification")
    built = mk.gaussians([1e-3, 0.1]).plan(X)
    built = built.grams(X, budget=MemoryBudget.of("1GB"), dtype=np.dtype("float32"))
    grams, rule, learner = built.corrected(True, None), mk.LpNorm(4, tol=1e-8), SVM(1e4)
    made = []

    def stop(*args, **options):
        made.append(find(*args, **options))
        if len(made) < 2:
            return made[0]
        raise Stopped(made[1]) if certified else KeyboardInterrupt

    monkeypatch.setattr(recertify, "find", stop)
    with pytest.raises(Interrupted) as caught:
        learn(grams, target, rule, learner)
    found = caught.value.solution
    assert (found.grams is not grams) == certified
    above = found.machine.objective - made[1].machine.objective
    assert abs(above) <= found.machine.gap * found.machine.objective


@pytest.mark.parametrize("rule", ["uniform", "alignf", "loo"])
def test_ordinary_fits_in_single_precision_stay_there(rule, monkeypatch):
    """Accurate kernel values are computed only where rounding may change the objective."""

    def refuse(self):
        raise AssertionError("accurate values were asked for")

    monkeypatch.setattr(SharedGrams, "accurate", refuse)
    X, y = make_classification(300, 10, random_state=0)
    noisy = X[:, 0] + np.random.default_rng(0).normal(size=300)
    bank = mk.gaussians([0.01, 0.1, 1.0])
    mk.MultiKernelClassifier(bank, weighting=rule, dtype="float32", C=10.0).fit(X, y)
    mk.MultiKernelRegressor(bank, weighting=rule, dtype="float32", alpha=0.1).fit(X, noisy)
    with pytest.raises(AssertionError, match="asked for"):
        wide = mk.gaussians([1e-4])
        mk.MultiKernelRegressor(wide, weighting="uniform", dtype="float32", alpha=1e-9).fit(X, y)
