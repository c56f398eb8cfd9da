"""Machines that read rows on demand find what machines with the whole matrix find."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams.matrix import GivenMatrix
from multikernel.grams.memory import MemoryBudget
from multikernel.learners import source
from multikernel.learners._plain_steps import MAX_STEPS_OF_FEW
from multikernel.learners.oneclass import OneClassSVM
from multikernel.learners.smo import solve
from multikernel.learners.source import Source
from multikernel.learners.svm import SVM
from multikernel.learners.svr import SVR
from multikernel.problem import Target

N = 300


def combined(budget):
    X = np.random.default_rng(0).normal(size=(N, 3))
    grams = mk.gaussians([0.1, 1.0]).plan(X).grams(X, budget=MemoryBudget.of(budget))
    return X, grams.corrected(False, None).combine(np.array([0.7, 0.3]))


@pytest.mark.parametrize("name", ["svm", "svm without intercept", "svr", "one class"])
def test_the_same_machine_from_rows(name):
    X, whole = combined("1GB")
    _, tight = combined("300kB")
    assert Source.of(whole).matrix is not None
    source = Source.of(tight)
    assert source.matrix is None and source.cache_rows < N
    y = np.sin(2 * X[:, :1]) + 0.1
    if name.startswith("svm"):
        target = Target(np.sign(y), "classification")
        learner = SVM(3.0, fit_intercept=name == "svm")
    elif name == "svr":
        target, learner = Target(y, "regression"), SVR(0.5, epsilon=0.05)
    else:
        target, learner = Target(np.ones_like(y), "classification"), OneClassSVM(nu=0.2)
    exact, found = learner.fit(whole, target), learner.fit(tight, target)
    assert tight._matrix is None, "no matrix was made on the way"
    assert found.gap <= 2e-5
    np.testing.assert_allclose(found.objective, exact.objective, rtol=2e-5)
    np.testing.assert_allclose(
        whole.matvec(found.coef) + found.intercept,
        whole.matvec(exact.coef) + exact.intercept,
        atol=2e-3 * np.abs(exact.values).max(),
    )
    again = learner.fit(tight, target, start=found.coef)
    np.testing.assert_allclose(again.objective, exact.objective, rtol=2e-5)


def test_a_rough_machine_keeps_the_values_it_ended_with():
    """They are those of its coefficients to the digits of the rows, and its gap is honest."""
    X, whole = combined("1GB")
    _, tight = combined("300kB")
    target = Target(np.sign(np.sin(2 * X[:, :1]) + 0.1), "classification")
    for gram in (whole, tight):
        rough = SVM(3.0, exact=False, tol=1e-2).fit(gram, target)
        want = whole.matvec(rough.coef)
        np.testing.assert_allclose(rough.values, want, atol=1e-5 * np.abs(want).max())
        assert 0 < rough.gap < 1e-2
    exact = SVM(3.0).fit(whole, target)
    np.testing.assert_allclose(exact.values, whole.matvec(exact.coef), rtol=1e-12)


def test_steps_in_numpy_count_towards_the_limit(monkeypatch):
    """The compiled loops continue with the steps that are left, and all are reported."""
    rng = np.random.default_rng(1)
    X = 1e3 * rng.normal(size=(40, 2))
    minus, y, C = np.full(40, -1.0), np.sign(rng.normal(size=40)), np.full(40, 10.0)
    read, limits = Source.of(GivenMatrix(X @ X.T)), []

    def limited(*args, **options):
        limits.append(options["max_iter"])
        return solve(*args, **options)

    monkeypatch.setattr(source, "solve", limited)
    assert read.solve(minus, y, C, max_iter=MAX_STEPS_OF_FEW + 100).steps == MAX_STEPS_OF_FEW + 100
    assert limits == [100]
    assert (
        read.solve(minus, y, C).steps > MAX_STEPS_OF_FEW
    )  # and those of the interior-point method
