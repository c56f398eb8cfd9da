"""Local complexities: golden numbers, Monte Carlo on a test bed that meets every assumption."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from multikernel import bounds as b
from multikernel.bounds.rademacher import conjugate

LAM = np.arange(1.0, 101.0) ** -2
SPECTRA = [LAM] * 16
B = float(LAM.sum())
JOINT = np.concatenate(SPECTRA)


@pytest.mark.parametrize(
    ("r", "sparse_1", "sparse_2", "dense_2", "dense_4"),
    [
        (0.001, 0.175848, 0.176865, 0.041102, 0.052517),
        (0.01, 0.380853, 0.390849, 0.076986, 0.106626),
        (0.1, 0.698256, 0.719148, 0.135514, 0.193856),
    ],
)
def test_golden_numbers(r, sparse_1, sparse_2, dense_2, dense_4):
    found = b.local_rademacher_sparse(SPECTRA, 1000, r, 1, B)
    assert found.value == pytest.approx(sparse_1, abs=1e-6)
    assert found.t == pytest.approx(1.564, abs=1e-3)
    assert b.local_rademacher_sparse(SPECTRA, 1000, r, 2, B).value == pytest.approx(
        sparse_2, abs=1e-6
    )
    assert b.local_rademacher_dense(JOINT, 1000, r, 2, 16) == pytest.approx(dense_2, abs=1e-6)
    assert b.local_rademacher_dense(JOINT, 1000, r, 4, 16) == pytest.approx(dense_4, abs=1e-6)
    assert b.local_rademacher_l1(SPECTRA, 1000, r, B) == pytest.approx(sparse_1, abs=1e-6)


def slow_sparse(spectra, n, r, s, B, D, constant):
    M = len(spectra)
    inner = [
        sum(min(r * M ** (1 - 2 / s), math.e * D**2 * s**2 * lam) for lam in spectrum)
        for spectrum in spectra
    ]
    size = sum(x ** (s / 2) for x in inner) ** (2 / s)
    return math.sqrt(constant / n * size) + math.sqrt(B * math.e) * D * M ** (1 / s) * s / n


def test_theorem_4_5_against_loops(rng):
    spectra = [np.sort(rng.random(5))[::-1] * rng.random() for _ in range(3)]
    slow = min(slow_sparse(spectra, 50, 0.1, s, 2.0, 1.5, 16) for s in np.linspace(2, 3, 401))
    found = b.local_rademacher_sparse(spectra, 50, 0.1, 1.5, 2.0, radius=1.5)
    assert found.value == pytest.approx(slow, rel=1e-6)
    sharp = b.local_rademacher_sparse(spectra, 50, 0.1, 1.5, 2.0, radius=1.5, sharp=True)
    assert sharp.value < found.value


def test_the_infinite_range_of_p_1_is_cut_without_loss():
    for M in (2, 16, 100):
        spectra = [LAM[:10]] * M
        slow = min(slow_sparse(spectra, 100, 0.01, s, 2.0, 1.0, 16) for s in np.linspace(2, 60, 59))
        assert b.local_rademacher_sparse(spectra, 100, 0.01, 1, 2.0).value <= slow * (1 + 1e-9)


def test_the_best_of_both_theorems_says_which_it_is():
    found = b.local_rademacher(SPECTRA, 1000, 0.01, 4 / 3, B=B, uncorrelated=True)
    assert found == (pytest.approx(0.076986, abs=1e-6), 2.0, "Theorem 4.6 at t = 2")
    for p, theorem in ((1.95, "Theorem 4.6 at t = 2"), (2, "Theorem 4.6")):
        assert b.local_rademacher(SPECTRA, 1000, 0.01, p, joint=JOINT) == (found[0], 2.0, theorem)
    dense = b.local_rademacher(SPECTRA, 1000, 0.01, 4, joint=JOINT)
    assert dense.theorem == "Theorem 4.6"
    assert dense.t == 4
    # With very many kernels the sparse bound overtakes for p = 1: 16 e^3 log^2 M against 2 M.
    many = [np.array([1.0])] * 40_000
    found = b.local_rademacher(many, 10**9, 1e9, 1, B=1.0, uncorrelated=True)
    assert found.theorem == "Theorem 4.5"
    with pytest.raises(b.AssumptionError, match="joint"):
        b.local_rademacher(SPECTRA, 1000, 0.01, 1.5)


def test_truncated_form(rng):
    spectra = [np.sort(rng.random(5))[::-1] for _ in range(3)]
    p, s, n, r, D = 1.5, 3.0, 60, 0.2, 1.3
    h = [1, 0, 2]
    tails = [sum(e[k:]) for e, k in zip(spectra, h, strict=True)]
    slow = (
        math.sqrt(4 * r * 3 / n)
        + math.sqrt(4 * math.e * s**2 * D**2 / n * sum(t ** (s / 2) for t in tails) ** (2 / s))
        + math.sqrt(2.0 * math.e) * D * 3 ** (1 / s) * s / n
    )
    found = b.local_rademacher_truncated(spectra, n, r, p, 2.0, h, radius=D)
    assert found == pytest.approx(slow)


def inner_supremum(v, lam, r, p, D=1.0):
    """``sup <w, v>`` over ``||w||_{2,p} <= D`` and ``sum lam_j w_mj^2 <= r``, by its dual

    ``min_u D ||v - u||_{2,p*} + sqrt(r sum u^2 / lam)``, ``u = sqrt(lam) z``, for 1 < p < inf.
    """
    s = conjugate(p)

    ellipsoid = np.sqrt(r * np.sum(v**2 / lam))
    w = v / lam * np.sqrt(r / np.sum(v**2 / lam))
    if np.sum(np.linalg.norm(w, axis=1) ** p) ** (1 / p) <= D:
        return ellipsoid

    def value(z):
        x = v - np.sqrt(lam) * z.reshape(v.shape)
        sizes = np.linalg.norm(x, axis=1) + 1e-300
        top = sizes.max()
        size = top * np.sum((sizes / top) ** s) ** (1 / s)
        other = math.sqrt(float(z @ z) + 1e-20)
        slope = D * ((sizes / size) ** (s - 1) / sizes)[:, None] * x
        gradient = -(np.sqrt(lam) * slope).ravel() + math.sqrt(r) * z / other
        return D * size + math.sqrt(r) * other, gradient

    # Any z gives a value above the supremum; the search only makes it smaller.
    start = (0.5 * v / np.sqrt(lam)).ravel()
    return float(minimize(value, start, jac=True, method="L-BFGS-B").fun)


@pytest.mark.parametrize(("p", "r"), [(1.05, 0.1), (4 / 3, 0.01), (2, 0.1), (2, 1.0), (4, 0.1)])
def test_monte_carlo_lies_between_lower_and_upper_bounds(p, r):
    """Independent coordinates ``sqrt(lam_j) * ±1``: centred, bounded, uncorrelated, alike."""
    rng = np.random.default_rng(11)
    n, M, J = 100, 6, 6
    lam = np.arange(1.0, J + 1) ** -2
    B = float(lam.sum())

    def complexity(M, p, r, D, draws):
        values = []
        for _ in range(draws):
            signs = rng.integers(0, 2, (n, M, J)) * 2.0 - 1.0  # sigma_i eps_imj, again signs
            v = np.sqrt(lam) * signs.mean(axis=0)
            values.append(inner_supremum(v, lam, r, p, D))
        return np.mean(values), np.std(values) / math.sqrt(draws)

    value, error = complexity(M, p, r, 1.0, 40)
    spectra = [lam] * M
    upper = b.local_rademacher(spectra, n, r, p, B=B, uncorrelated=True)
    assert value - 3 * error <= upper.value
    if p <= 2:
        assert value - 3 * error <= b.local_rademacher_sparse(spectra, n, r, p, B).value
    radius, size = b.reduced_problem(r, p, M)
    below, below_error = complexity(1, 2.0, radius, size, 40)
    assert below - 3 * below_error <= value + 3 * error
    # Same order as the shape of the lower bound, constants aside.
    shape = b.local_lower_shape(lam, n, r, p, M)
    assert 0.3 < shape / value < 3


def test_monotone():
    by_r = [b.local_rademacher_dense(JOINT, 1000, r, 2, 16) for r in (1e-4, 1e-2, 1, math.inf)]
    assert by_r == sorted(by_r)
    by_p = [b.local_rademacher_dense(JOINT, 1000, 0.01, p, 16) for p in (2, 3, 8, math.inf)]
    assert by_p == sorted(by_p)
    assert b.local_rademacher_dense(JOINT, 2000, 0.01, 2, 16) < by_p[0]
    assert by_r[-1] == pytest.approx(math.sqrt(2 / 1000 * JOINT.sum()))


def test_spectra_of_matrices(rng):
    A = rng.standard_normal((10, 4))
    (found,) = b.spectra_of([A @ A.T])
    assert found.sum() == pytest.approx(np.sum(A**2) / 10)
    assert np.all(np.diff(found) <= 0)
    assert found[4:].max() < 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: b.local_rademacher_dense([1.0], 5, 1.0, 1.5, 1), "Theorem 4.5"),
        (lambda: b.local_rademacher_sparse([[1.0]], 5, 1.0, 3, 1.0), "Theorem 4.6"),
        (lambda: b.local_rademacher_sparse([[1.0]], 5, 1.0, 1, math.inf), "bounded kernel"),
        (lambda: b.local_rademacher_sparse([[1.0, -0.5]], 5, 1.0, 1, 1.0), "positive semidefinite"),
        (lambda: b.local_rademacher_l1([[1.0]] * 7, 5, 1.0, 1.0), "8 kernels"),
        (lambda: b.local_rademacher_dense([1.0], 5, -1.0, 2, 1), "not negative"),
        (lambda: b.local_lower_shape([1.0], 5, 0.01, 2, 1), "r >= 1/n"),
        (lambda: b.local_lower_shape([0.01], 5, 1.0, 2, 1), "lambda_1"),
        (lambda: b.local_rademacher_truncated([[1.0]], 5, 1, 1.5, 1, [1, 2]), "one number per"),
    ],
)
def test_meaningless_input_names_the_assumption(call, message):
    with pytest.raises(b.AssumptionError, match=message):
        call()
