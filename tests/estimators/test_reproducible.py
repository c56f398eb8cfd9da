"""The same input gives the same bits with any number of threads; budgets move little, as stated."""

from __future__ import annotations

import numpy as np
import pytest

import multikernel as mk


@pytest.fixture(autouse=True)
def without_small_samples(monkeypatch):
    """Whether matrices of small samples are written out depends on the room for them."""
    monkeypatch.setattr("multikernel.grams.shared.is_small", lambda *sizes: False)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("weighting", ["align", "alignf"])
def test_threads_and_memory_do_not_change_a_bit(rng, weighting, dtype):
    X = rng.standard_normal((400, 6))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(400)
    bank = mk.gaussians(np.geomspace(1e-3, 10, 9)) + mk.per_feature(mk.Linear())
    found = []
    for n_jobs, budget in [(1, "2GB"), (2, "2GB"), (1, "40MB"), (2, "40MB")]:
        model = mk.MultiKernelRegressor(
            bank, weighting, dtype=dtype, n_jobs=n_jobs, memory_budget=budget, solver="cholesky"
        ).fit(X, y)
        found.append(
            (
                model.kernel_weights_.tobytes(),
                model.kernel_alignments_.tobytes(),
                model.dual_coef_.tobytes(),
                model.predict(X[:50]).tobytes(),
            )
        )
    assert all(other == found[0] for other in found[1:])


def problem(rng, n):
    X = rng.standard_normal((n, 5))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("weighting", ["uniform", "alignf", "l1", mk.LpNorm(4 / 3), mk.LpNorm(3)])
def test_ridge_regression_agrees_between_memory_budgets(rng, weighting, alpha):
    """docs/guide.md, Memory and speed: what another memory budget may change, and how much."""
    X, y = problem(rng, 301)
    new = rng.standard_normal((200, 5))
    bank = [*mk.gaussians(np.geomspace(1e-2, 10, 5)), mk.Linear(), mk.Polynomial(2)]
    roomy = mk.MultiKernelRegressor(bank, weighting, alpha, memory_budget="1GB").fit(X, y)
    tight = mk.MultiKernelRegressor(bank, weighting, alpha, memory_budget="1MB").fit(X, y)
    assert roomy.dual_coef_.tobytes() != tight.dual_coef_.tobytes()  # another way was taken
    fitted = roomy.predict(X) - tight.predict(X)
    assert np.sqrt(np.mean(fitted**2)) <= 1e-6 * y.std()
    assert np.abs(roomy.predict(new) - tight.predict(new)).max() <= 1e-5 * y.std()
    largest = np.abs(roomy.kernel_weights_).max()
    assert np.abs(roomy.kernel_weights_ - tight.kernel_weights_).max() <= 5e-6 * largest


def test_a_subsampled_start_agrees_between_memory_budgets(rng):
    """From 800 samples on joint weights begin on a part of the sample, with any budget."""
    X, y = problem(rng, 900)
    bank = mk.gaussians([0.02, 0.2, 2.0])
    roomy = mk.MultiKernelRegressor(bank, "lp", memory_budget="1GB").fit(X, y)
    tight = mk.MultiKernelRegressor(bank, "lp", memory_budget="8MB").fit(X, y)
    assert roomy.dual_coef_.tobytes() != tight.dual_coef_.tobytes()
    assert np.sqrt(np.mean((roomy.predict(X) - tight.predict(X)) ** 2)) <= 1e-6 * y.std()
    np.testing.assert_allclose(tight.kernel_weights_, roomy.kernel_weights_, rtol=5e-6)


@pytest.mark.parametrize("weighting", ["alignf", "lp", "l1"])
def test_support_vector_machines_do_not_change_a_bit_with_the_memory_budget(rng, weighting):
    """Rows computed on demand are the rows of the matrix, for kernels that share distances."""
    X, t = problem(rng, 301)
    y = np.where(t > 0, 1, -1)
    bank = mk.gaussians(np.geomspace(1e-2, 10, 5))
    for make, target in (
        (lambda b: mk.MultiKernelClassifier(bank, weighting, memory_budget=b), y),
        (
            lambda b: mk.MultiKernelRegressor(
                bank, weighting, loss="epsilon_insensitive", memory_budget=b
            ),
            t,
        ),
    ):
        roomy, tight = (make(budget).fit(X, target) for budget in ("1GB", "1MB"))
        assert roomy.kernel_weights_.tobytes() == tight.kernel_weights_.tobytes()
        assert roomy.predict(X).tobytes() == tight.predict(X).tobytes()


def test_logistic_and_evaluated_kernels_agree_to_rounding_between_memory_budgets(rng):
    X, t = problem(rng, 301)
    y = np.where(t > 0, 1, -1)

    def distances(A, B):
        return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))

    evaluated = [mk.Callable(distances), mk.Gaussian(0.3) * mk.Linear()]
    for bank, loss, budget in (
        (mk.gaussians([0.1, 1.0]), "logistic", "1MB"),
        (evaluated, "hinge", "2.5MB"),
    ):
        roomy, tight = (
            mk.MultiKernelClassifier(bank, "lp", loss=loss, memory_budget=b).fit(X, y)
            for b in ("1GB", budget)
        )
        if bank is evaluated:
            assert "again in every pass" in str(tight.plan_)
            assert "again in every pass" not in str(roomy.plan_)
        difference = roomy.decision_function(X) - tight.decision_function(X)
        assert np.abs(difference).max() <= 1e-7


@pytest.mark.parametrize("budget", ["1GB", "1MB"])
def test_small_samples_agree_to_rounding_between_memory_budgets(rng, monkeypatch, budget):
    X, t = problem(rng, 301)
    bank = mk.gaussians(np.geomspace(1e-2, 10, 5))
    compiled = mk.MultiKernelRegressor(bank, "alignf", memory_budget="1GB").fit(X, t)
    monkeypatch.undo()
    found = mk.MultiKernelRegressor(bank, "alignf", memory_budget=budget).fit(X, t)
    np.testing.assert_allclose(found.kernel_weights_, compiled.kernel_weights_, atol=1e-9)
    assert np.abs(found.predict(X) - compiled.predict(X)).max() <= 1e-5 * t.std()
