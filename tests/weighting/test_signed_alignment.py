"""AlignF(signed=True) against least squares on the vectorised kernels, near singular M."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import multikernel as mk
from multikernel.grams.protocol import Grams
from multikernel.weighting import signed_alignment
from multikernel.weighting.signed_alignment import best_signed, least_squares
from tests.naive_alignment import center, gaussian, given_grams, outputs, rho, target_kernel


def precision(condition):
    """How far least squares in double precision may be from the best alignment, either way.

    The solution is exact for columns moved by rounding, which its length, up to the condition
    number, magnifies.
    """
    return 1e-8 + np.finfo(float).eps * condition


def least_squares_alignment(Ks, y):
    """The best alignment by lstsq on vectorised kernels of unit norm, and their condition."""
    A = np.stack([center(K).ravel() for K in Ks], axis=1)
    A /= np.linalg.norm(A, axis=0)
    wanted = center(target_kernel(y)).ravel()
    fit = A @ np.linalg.lstsq(A, wanted, rcond=None)[0]
    return fit @ wanted / np.linalg.norm(fit) / np.linalg.norm(wanted), np.linalg.cond(A)


def combined(v, Ks):
    return np.tensordot(v, Ks, axes=1)


def signed(Ks, y, sample_weight=None):
    """The weights for the given matrices, neither centred nor normalised."""
    grams = given_grams(Ks, False, None)
    grams.sample_weight = sample_weight
    target = outputs(y, sample_weight)
    return best_signed(grams, target, grams.summary(target.Y))


def near_dependent(seed, low=0.1, high=1.0):
    """Seven Gaussians of similar width on seven points."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((7, 2)), rng.standard_normal(7)
    return [gaussian(X, gamma) for gamma in np.geomspace(low, high, 7)], y, X


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("low", "high"), [(0.1, 1.0), (0.4, 0.6), (0.01, 10.0)])
def test_seven_kernels_on_seven_points(seed, low, high):
    """Condition numbers from 5e2 to 2e11; the normal equations lost up to 0.26 of alignment."""
    Ks, y, _ = near_dependent(seed, low, high)
    best, condition = least_squares_alignment(Ks, y)
    v = signed(Ks, y)
    found = rho(combined(v, Ks), target_kernel(y))
    assert_allclose(found, best, rtol=0, atol=precision(condition))


def test_the_cases_are_near_singular_and_the_normal_equations_lose():
    conditions, lost = [], []
    for seed in range(12):
        Ks, y, _ = near_dependent(seed, 0.4, 0.6)
        best, condition = least_squares_alignment(Ks, y)
        summary = given_grams(Ks, False, None).summary(y[:, None])
        v = signed_alignment.alignf_signed(summary.M, summary.a)
        conditions.append(condition)
        lost.append(best - rho(combined(v, Ks), target_kernel(y)))
    assert min(conditions) > 1e8 and max(conditions) < 1e12
    assert max(lost) > 0.1


def banks(X):
    yield mk.gaussians(np.geomspace(0.4, 0.6, 7)), X
    yield mk.precomputed([gaussian(X, g) for g in np.geomspace(0.4, 0.6, 7)]), mk.sample_ids(len(X))
    mixed = [mk.Gaussian(g) for g in np.geomspace(0.4, 0.6, 5)] + [mk.Polynomial(2), mk.Linear()]
    yield mk.KernelBank(mixed), X


@pytest.mark.parametrize("which", range(3), ids=["shared", "given", "stacked"])
@pytest.mark.parametrize("normalize", ["multiplicative", None])
@pytest.mark.parametrize("centred", [True, False])
def test_estimators_with_every_engine(which, normalize, centred):
    _, y, X = near_dependent(3)
    bank, inputs = list(banks(X))[which]
    Ks = [kernel(inputs) for kernel in bank]
    best, condition = least_squares_alignment(Ks, y)
    assert condition > 1e5
    model = mk.MultiKernelRegressor(
        bank, mk.AlignF(signed=True), normalize=normalize, center=centred
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The signed combination")
        model.fit(inputs, y)
    assert_allclose(model.alignment_, best, atol=1e-6)


class OnlyRequired(Grams):
    """An engine with the required passes alone: everything else is the protocol's default."""

    def __init__(self, Ks):
        super().__init__(len(Ks[0]), [str(k) for k in range(len(Ks))])
        self.Ks = np.asarray(Ks)

    def diagonals(self):
        return np.einsum("kii->ki", self.Ks)

    def matvecs(self, V, at=None):
        return self.Ks @ V if at is None else self.Ks[:, at] @ V

    def corrected(self, center, normalize):
        raise NotImplementedError

    take = points = expand = corrected


def test_the_required_passes_are_enough():
    for seed in range(4):
        Ks, y, _ = near_dependent(seed, 0.4, 0.6)
        grams, target = OnlyRequired(Ks), outputs(y)
        v = best_signed(grams, target, grams.summary(target.Y))
        best, condition = least_squares_alignment(Ks, y)
        found = rho(combined(v, Ks), target_kernel(y))
        assert_allclose(found, best, rtol=0, atol=precision(condition))


def test_a_sample_weight_is_a_repetition():
    Ks, y, _ = near_dependent(4, 0.4, 0.6)
    times = np.array([1, 2, 1, 3, 1, 1, 2])
    rows = np.repeat(np.arange(7), times)
    repeated = [K[np.ix_(rows, rows)] for K in Ks]
    v, w = signed(Ks, y, times.astype(float)), signed(repeated, y[rows])
    values = [rho(combined(u, repeated), target_kernel(y[rows])) for u in (v, w)]
    assert_allclose(values[0], values[1], atol=1e-8)
    assert_allclose(values[0], least_squares_alignment(repeated, y[rows])[0], atol=1e-6)


def test_well_conditioned_kernels_are_solved_from_m_alone(monkeypatch):
    rng = np.random.default_rng(0)
    Ks = [B @ B.T for B in rng.standard_normal((3, 20, 2))]
    y = rng.standard_normal(20)
    monkeypatch.setattr(signed_alignment, "products_of_combinations", None)
    v = signed(Ks, y)
    assert_allclose(rho(combined(v, Ks), target_kernel(y)), least_squares_alignment(Ks, y)[0])


def test_repeated_and_constant_kernels():
    Ks, y, _ = near_dependent(5)
    repeated = [*Ks[::2], *Ks[::2], np.ones((7, 7)), np.zeros((7, 7))]
    v = signed(repeated, y)
    assert_allclose(v[:4], v[4:8], rtol=1e-6)
    assert np.all(v[8:] == 0)
    best, _ = least_squares_alignment(Ks[::2], y)
    assert_allclose(rho(combined(v, repeated), target_kernel(y)), best, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("widest", [0.5001, 0.51, 1.0])
def test_rounding_errors_of_the_entries_are_not_fitted(dtype, widest):
    """On exact kernels the weights reach the alignment that they promise on rounded ones."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    bank = mk.gaussians(np.geomspace(0.5, widest, 6))
    model = mk.MultiKernelRegressor(bank, mk.AlignF(signed=True), dtype=dtype, alpha=1e-3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The signed combination")
        model.fit(X.astype(dtype), y)
    Ks = [mk.normalize(mk.center(kernel(X)), "multiplicative") for kernel in bank]
    reached = rho(combined(model.kernel_weights_, Ks), target_kernel(y))
    assert_allclose(model.alignment_, reached, atol=1e-4 if dtype == "float32" else 1e-6)
    single = max(rho(K, target_kernel(y)) for K in Ks)
    assert reached >= single - (1e-4 if dtype == "float32" else 1e-9)
    if dtype == "float64":
        assert_allclose(reached, least_squares_alignment(Ks, y)[0], atol=1e-5)


class TestLeastSquares:
    def test_it_is_the_solution_of_a_definite_system(self):
        rng = np.random.default_rng(0)
        B = rng.standard_normal((6, 4)) * [1.0, 1e-3, 1e-6, 1e-9]
        z = rng.standard_normal(4)
        found = least_squares(B.T @ B, B.T @ (B @ z), 1e-14)
        assert_allclose(B @ found, B @ z, rtol=1e-12)
        assert_allclose(found, z, rtol=1e-5)  # B'B z is rounded before it is solved

    def test_directions_below_the_cut_are_dropped(self):
        G = np.diag([1.0, 1e-10, 1e-20])
        assert_allclose(least_squares(G, np.diag(G), 1e-6), [1.0, 1.0, 0.0])
        z = least_squares(np.ones((2, 2)), np.ones(2), 1e-6)
        assert_allclose(np.sort(z), [0.0, 1.0])
