"""Conic programs as independent oracles of joint learning: clarabel solves the whole dual at once.

p = 1 (Kloft 2011, section 2.3.2; Lanckriet et al. 2004), with s = y alpha:

    max 1'alpha - xi    over  s'K_k s / 2 <= xi for all k,  y'alpha = 0,  0 <= alpha <= C

and for 1 < p < 2 the same with ``xi >= ||(a_1, ..., a_p)||_{p*/2} / 2``, ``a_k >= s'K_k s``: a norm
of epigraph variables, written with power cones, or at p = 4/3 with one second-order cone.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from multikernel.learners.svm import SVM
from multikernel.problem import Target
from tests.solvers.joint.helpers import solve_cutting_planes

clarabel = pytest.importorskip("clarabel")
pytest.importorskip("highspy")


def factor(K: np.ndarray) -> np.ndarray:
    """A B with ``B'B = K``."""
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-12 * values[-1]
    return (vectors[:, keep] * np.sqrt(values[keep])).T


def conic_optimum(
    matrices: list[np.ndarray], y: np.ndarray, C: float, p: float, *, intercept: bool = True
) -> tuple:
    """Optimal value and, for p = 1, the weights: the multipliers of the quadratic constraints.

    Variables: alpha (n), a (one per kernel), xi, and for power cones one r per kernel with sum xi.
    """
    n, m = len(y), len(matrices)
    size = n + m + 1 + (m if p > 1 and not np.isclose(p, 4 / 3) else 0)
    cost = np.zeros(size)
    cost[:n], cost[n + m] = -1.0, 0.5
    blocks, rights, cones = [], [], []

    def demand(A: np.ndarray, b: np.ndarray, cone: object) -> None:
        """``b - A x`` lies in the cone."""
        blocks.append(A)
        rights.append(b)
        cones.append(cone)

    def row(*entries: tuple[int, float]) -> np.ndarray:
        out = np.zeros(size)
        for i, value in entries:
            out[i] = value
        return out

    balance = np.zeros(size)
    balance[:n] = y
    if intercept:
        demand(balance[None], np.zeros(1), clarabel.ZeroConeT(1))
    box = np.zeros((2 * n, size))
    box[:n, :n], box[n:, :n] = -np.eye(n), np.eye(n)
    demand(box, np.append(np.zeros(n), np.full(n, C)), clarabel.NonnegativeConeT(2 * n))
    places = []
    for k, K in enumerate(matrices):
        # ||B s||^2 <= a_k  as  ||(2 B s, a_k - 1)|| <= a_k + 1
        B = factor(K) * y
        A = np.zeros((len(B) + 2, size))
        A[0, n + k] = A[1, n + k] = -1.0
        A[2:, :n] = -2.0 * B
        b = np.zeros(len(B) + 2)
        b[0], b[1] = 1.0, -1.0
        demand(A, b, clarabel.SecondOrderConeT(len(B) + 2))
    if p == 1:
        start = sum(len(b) for b in rights)
        A = np.array([row((n + k, 1.0), (n + m, -1.0)) for k in range(m)])
        demand(A, np.zeros(m), clarabel.NonnegativeConeT(m))
        places = list(range(start, start + m))
    elif np.isclose(p, 4 / 3):
        # t = p*/2 = 2: a second-order cone, far better behaved than the power cones
        A = np.zeros((m + 1, size))
        A[0, n + m] = -1.0
        A[1:, n : n + m] = -np.eye(m)
        demand(A, np.zeros(m + 1), clarabel.SecondOrderConeT(m + 1))
    else:
        # ||a||_t <= xi  as  r_k^(1/t) xi^(1 - 1/t) >= a_k,  sum r = xi
        t = p / (p - 1.0) / 2.0
        total = row((n + m, -1.0))
        total[n + m + 1 :] = 1.0
        demand(total[None], np.zeros(1), clarabel.ZeroConeT(1))
        for k in range(m):
            A = np.array([row((n + m + 1 + k, -1.0)), row((n + m, -1.0)), row((n + k, -1.0))])
            demand(A, np.zeros(3), clarabel.PowerConeT(1.0 / t))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    # The kernels are normalised, so all rows have like sizes; with equilibration some of these
    # problems end in a numerical error, which ones depends on the processor.
    settings.equilibrate_enable = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solver = clarabel.DefaultSolver(
        sp.csc_matrix((size, size)),
        cost,
        sp.csc_matrix(np.vstack(blocks)),
        np.concatenate(rights),
        cones,
        settings,
    )
    found = solver.solve()
    assert "Solved" in str(found.status)
    # xi carries a half in the cost, so that the multipliers do as well.
    weights = 2.0 * np.array(found.z)[places] if places else None
    return -found.obj_val, weights


def golden() -> tuple[list[np.ndarray], np.ndarray]:
    i, j = np.arange(1, 17)[:, None], np.arange(1, 5)[None]
    y = np.where(i[:, 0] % 2 == 1, 1.0, -1.0)
    X = np.sin(i * j + 0.5 * j) + y[:, None] * np.array([0.8, 0.4, 0.1, 0.0])
    kernels = [np.exp(-2 * (x[:, None] - x[None]) ** 2) + 0.05 * np.eye(16) for x in X.T]
    return [mk.normalize(K, "multiplicative") for K in kernels], y


def cut(matrices: list[np.ndarray], y: np.ndarray, C: float, p: float) -> tuple:
    ids = mk.sample_ids(len(y))
    grams = mk.precomputed(matrices).plan(ids).grams(ids, budget=MemoryBudget.of(None))
    found = solve_cutting_planes(
        grams.corrected(False, None),
        Target(y[:, None], "classification"),
        mk.LpNorm(p, tol=1e-8),
        SVM(C=C),
    )
    return found.machine.objective, found.kernel_weights


def test_the_sparse_golden_problem():
    matrices, y = golden()
    value, theta = conic_optimum(matrices, y, 1.0, 1)
    np.testing.assert_allclose(value, 5.25195778, rtol=1e-8)
    np.testing.assert_allclose(theta, [0.656236, 0.343764, 0, 0], atol=1e-5)
    ours, weights = cut(matrices, y, 1.0, 1)
    np.testing.assert_allclose(ours, value, rtol=1e-7)
    np.testing.assert_allclose(weights, theta, atol=1e-5)


@pytest.mark.parametrize(
    ("p", "optimum"), [(8 / 7, 4.71923805), (4 / 3, 4.12526279), (1.6, 3.44781417)]
)
def test_the_golden_problem_with_other_norms(p, optimum):
    matrices, y = golden()
    value, _ = conic_optimum(matrices, y, 1.0, p)
    np.testing.assert_allclose(value, optimum, rtol=1e-7)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("p", [1, 4 / 3])
def test_random_problems(seed, p):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(40) > 0, 1.0, -1.0)
    C = float(10.0 ** rng.uniform(-1, 2))
    matrices = []
    for x in X.T:
        d = (x[:, None] - x[None]) ** 2
        matrices += [np.exp(-0.3 * d), np.exp(-3.0 * d)]
    matrices = [mk.normalize(K + 1e-3 * np.eye(40), "multiplicative") for K in matrices]
    value, theta = conic_optimum(matrices, y, C, p)
    ours, weights = cut(matrices, y, C, p)
    np.testing.assert_allclose(ours, value, rtol=1e-6)
    if p == 1:
        np.testing.assert_allclose(weights, theta, atol=1e-3)
        np.testing.assert_array_equal(weights[theta < 1e-6], 0.0)
