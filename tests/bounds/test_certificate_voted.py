"""The certificate of a vote of kernel functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs

import multikernel as mk
from multikernel import bounds as b
from multikernel.estimators.voted import VotedKernelClassifier

from ..naive import sigmoid

BANK = mk.gaussians([0.1, 0.5, 2.0])


def sample(n, centre=3.0):
    X, y = make_blobs(n, centers=[[-centre, 0], [centre, 0]], random_state=0)
    return X, np.where(y == 1, 1, -1)


@pytest.mark.parametrize("intercept", [False, True])
def test_every_number_against_the_theorems(intercept):
    X, y = sample(80, 1.0)
    model = VotedKernelClassifier(BANK, fit_intercept=intercept).fit(X, y)
    found = b.certificate(model, X, y, delta=0.1)
    (machine,) = found.machines
    f = model.decision_function(X)
    alpha = np.zeros(3)
    for term in model.terms_:
        alpha[term["kernel"]] += abs(term["coef"])
    constant = abs(float(np.ravel(model.intercept_)[0]))
    total = alpha.sum() + constant  # Gaussians are at most one, and so is the constant function
    weights = np.append(alpha, constant) / total
    for row, theorem in zip(machine.bounds, (b.voted_risk, b.local_voted_risk), strict=True):
        for margin, risk, value in zip(row.margins, row.risks, row.values, strict=True):
            j = round(2 * math.log2(margin / total))
            assert risk == np.mean(y * f <= margin)
            share = 0.1 / 2 * b.grid_share(j)
            slow = theorem(risk, margin / total, weights, [1 / math.sqrt(80)] * 4, 80, share)
            assert value == pytest.approx(slow, rel=1e-9)
        assert row.value == row.values.min()
        assert row.value == pytest.approx(row.risk + row.complexity + row.confidence)
    first, second = machine.bounds
    assert first.proven
    assert not second.proven
    assert found.duality_gap == model.duality_gap_
    assert "VACUOUS" in str(found)


def test_the_error_on_new_points_stays_below():
    X, y = sample(3000)
    model = VotedKernelClassifier(mk.gaussians([0.02, 0.1]), sparsity_penalty=0.1).fit(X, y)
    found = b.certificate(model, X, y)
    test, labels = sample(6000)
    assert np.mean(model.predict(test) != labels) < found.risk()
    larger = b.certificate(model, X, y, delta=1e-6)
    assert larger.risk() > found.risk()


def test_several_classes_and_unbounded_kernels():
    X, y = load_iris(return_X_y=True)
    model = VotedKernelClassifier(mk.polynomials([1, 2])).fit(X, y)
    found = b.certificate(model, X, y)
    assert len(found.machines) == 3
    assert not any(row.proven for machine in found.machines for row in machine.bounds)
    assert "K(x, x) <= c for all x" in str(found)


def test_kernels_that_are_not_positive_semidefinite_have_no_lemma_but_a_bound():
    X, y = sample(60, 1.0)
    K = sigmoid(X, X, 0.5, -0.5)
    ids = mk.sample_ids(60)
    model = VotedKernelClassifier(mk.precomputed([K, X @ X.T])).fit(ids, y)
    found = b.certificate(model, ids, y)
    assert found.risk() == math.inf
    assert found.risk(proven=False) > 1
    assert "largest value on the sample" in str(found)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_vote_without_terms_is_certified_as_saying_nothing(intercept):
    X, y = sample(60, 1.0)
    with pytest.warns(UserWarning, match="decision is constant"):
        model = VotedKernelClassifier(BANK, sparsity_penalty=100.0, fit_intercept=intercept)
        model.fit(X, y)
    found = b.certificate(model, X, y)
    assert found.vacuous
    assert all(row.value >= 1 for row in found.machines[0].bounds)


def test_kernels_that_are_zero():
    _, y = sample(20, 1.0)
    ids = mk.sample_ids(20)
    with pytest.warns(UserWarning, match="decision is constant"):
        model = VotedKernelClassifier(mk.precomputed([np.zeros((20, 20))] * 2)).fit(ids, y)
    assert b.certificate(model, ids, y).risk(proven=False) >= 1


def test_a_diagonal_that_is_constant_on_the_sample_only_is_said_to_be_trusted():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (60, 3))
    y = np.where(X.sum(axis=1) > 0, 1, -1)
    found = b.certificate(VotedKernelClassifier([mk.Linear(), mk.Gaussian(1.0)]).fit(X, y), X, y)
    notes = [text for text in found.assumptions if "K(x, x)" in text]
    assert len(notes) == 1
    assert "Linear" in notes[0]
    assert "Gaussian" not in notes[0]
    built = mk.KernelBank([mk.Gaussian(1.0), 2.0 * mk.Laplacian(0.5), mk.Gaussian(0.1) ** 2])
    found = b.certificate(VotedKernelClassifier(built).fit(X, y), X, y)
    assert not any("K(x, x)" in text for text in found.assumptions)
    # The interval of the alignment leans on the same thing.
    model = mk.MultiKernelClassifier([mk.Linear(), mk.Gaussian(1.0)]).fit(X, y)
    found = b.certificate(model, X, y, n_draws=20)
    assert not found.alignments[0].unmet
    assert any("K(x, x)" in text and "Linear" in text for text in found.assumptions)


def test_margins_too_small_to_be_squared():
    for theorem in (b.voted_risk, b.local_voted_risk):
        assert theorem(0.1, 1e-200, [0.5, 0.5], [0.1, 0.1], 100, 0.05) > 1e100


def test_kernels_are_certified_as_they_vote():
    """A constant kernel is as large as it is, and kernels need not be symmetric."""
    X, y = sample(60, 1.0)
    small, large = (
        VotedKernelClassifier([mk.Gaussian(0.5), mk.Polynomial(1, coef0=c, gamma=1e-30)]).fit(X, y)
        for c in (1.0, 100.0)
    )
    values = [b.certificate(model, X, y).machines[0].bounds[0].value for model in (small, large)]
    assert values[1] > 2 * values[0]

    def lopsided(A, B):
        return np.tanh(A @ B.T + A[:, :1])

    model = VotedKernelClassifier([mk.Callable(lopsided), mk.Gaussian(0.5)]).fit(X, y)
    found = b.certificate(model, X, y)
    assert found.risk() == math.inf
    assert found.risk(proven=False) > 1
