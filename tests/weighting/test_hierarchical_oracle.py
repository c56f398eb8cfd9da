"""Two-level norms against a conic program: clarabel solves the whole dual at once, any p and q.

    min  sum_i C_i l*(-s_i / C_i, y_i) + Z^2 / 2     over s, with 1's = 0 if the intercept is free

    zeta_k >= ||B_k s||  (B_k'B_k = K_k),   z_j >= ||zeta of group j||_{q*},   Z >= ||z||_{p*}

Norms other than 1, 2, 4 and infinity are power cones, the entropy of the logistic loss exponential
cones. Nothing of it is shared with the library: not the loss, not the norm, not the solver.
"""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp

import multikernel as mk
from multikernel.problem.regularisers import conjugate

clarabel = pytest.importorskip("clarabel")
INF = float("inf")
LOSSES = ["hinge", "logistic", "squared", "epsilon_insensitive"]


class Program:
    """``min c'x + x'Px/2`` with ``b - Ax`` in cones, grown a few variables and rows at a time."""

    def __init__(self) -> None:
        self.next = count()
        self.cost: dict[int, float] = {}
        self.square: dict[int, float] = {}
        self.entries: list[tuple[int, int, float]] = []
        self.right: list[float] = []
        self.cones: list[object] = []

    def variables(self, n: int, cost: float = 0.0, square: float = 0.0) -> list[int]:
        names = [next(self.next) for _ in range(n)]
        self.cost.update(dict.fromkeys(names, cost))
        self.square.update(dict.fromkeys(names, square))
        return names

    def demand(self, cone: object, *rows: tuple[dict[int, float], float]) -> None:
        """Every row ``(coefficients, constant)`` is one entry of a vector that lies in the cone."""
        for coefficients, constant in rows:
            at = len(self.right)
            self.entries += [(at, i, -value) for i, value in coefficients.items()]
            self.right.append(constant)
        self.cones.append(cone)

    def at_least(self, *rows: tuple[dict[int, float], float]) -> None:
        self.demand(clarabel.NonnegativeConeT(len(rows)), *rows)

    def norm(self, bound: int, parts: list[int], r: float) -> None:
        """``bound >= ||parts||_r`` for parts that are not negative."""
        if r == 1:
            self.at_least(({bound: 1.0, **dict.fromkeys(parts, -1.0)}, 0.0))
        elif np.isinf(r):
            self.at_least(*[({bound: 1.0, i: -1.0}, 0.0) for i in parts])
        elif r == 2:
            rows = [({i: 1.0}, 0.0) for i in (bound, *parts)]
            self.demand(clarabel.SecondOrderConeT(len(rows)), *rows)
        elif np.isclose(r, 4):
            # part_i^2 <= bound tau_i with bound >= ||tau||_2: cones that also serve at zero
            tau = self.variables(len(parts))
            for i, part in zip(tau, parts, strict=True):
                rows = [
                    ({bound: 1.0, i: 1.0}, 0.0),
                    ({bound: 1.0, i: -1.0}, 0.0),
                    ({part: 2.0}, 0.0),
                ]
                self.demand(clarabel.SecondOrderConeT(3), *rows)
            self.norm(bound, tau, 2)
        else:
            # rho_i^(1/r) bound^(1 - 1/r) >= part_i with sum rho = bound
            rho = self.variables(len(parts))
            total = {bound: -1.0, **dict.fromkeys(rho, 1.0)}
            self.demand(clarabel.ZeroConeT(1), (total, 0.0))
            for i, part in zip(rho, parts, strict=True):
                rows = [({i: 1.0}, 0.0), ({bound: 1.0}, 0.0), ({part: 1.0}, 0.0)]
                self.demand(clarabel.PowerConeT(1.0 / r), *rows)

    def solve(self) -> float:
        size = next(self.next)
        rows, columns, values = zip(*self.entries, strict=True)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
        found = clarabel.DefaultSolver(
            sp.diags([self.square[i] for i in range(size)], format="csc"),
            np.array([self.cost[i] for i in range(size)]),
            sp.csc_matrix((values, (rows, columns)), shape=(len(self.right), size)),
            np.array(self.right),
            self.cones,
            settings,
        ).solve()
        assert "Solved" in str(found.status)
        return -found.obj_val


def optimum(matrices, y, labels, p, q, *, loss, C, intercept, epsilon=0.1) -> float:
    program = Program()
    s = program.variables(len(y), square=1.0 / C if loss == "squared" else 0.0)
    for i, t in zip(s, y, strict=True):
        program.cost[i] = 0.0 if loss == "logistic" else -t
        if loss == "hinge":
            program.at_least(({i: t}, 0.0), ({i: -t}, C))
        if loss == "epsilon_insensitive":
            (size,) = program.variables(1, cost=epsilon)
            program.at_least(({size: 1.0, i: 1.0}, 0.0), ({size: 1.0, i: -1.0}, 0.0))
            program.at_least(({size: -1.0}, C))
        if loss == "logistic":
            # h >= r log r  as  r exp(-h / r) <= 1, for r = alpha / C and for 1 - r
            for sign, constant in ((1.0, 0.0), (-1.0, 1.0)):
                (h,) = program.variables(1, cost=C)
                rows = [({h: -1.0}, 0.0), ({i: sign * t / C}, constant), ({}, 1.0)]
                program.demand(clarabel.ExponentialConeT(), *rows)
    if intercept:
        program.demand(clarabel.ZeroConeT(1), (dict.fromkeys(s, 1.0), 0.0))
    zeta = program.variables(len(matrices))
    for k, K in zip(zeta, matrices, strict=True):
        values, vectors = np.linalg.eigh(K)
        keep = values > 1e-13 * values[-1]
        B = (vectors[:, keep] * np.sqrt(values[keep])).T
        rows = [({k: 1.0}, 0.0), *[(dict(zip(s, row, strict=True)), 0.0) for row in B]]
        program.demand(clarabel.SecondOrderConeT(len(rows)), *rows)
    z = program.variables(max(labels) + 1)
    for j, bound in enumerate(z):
        parts = [zeta[k] for k in range(len(zeta)) if labels[k] == j]
        program.norm(bound, parts, conjugate(q))
    (Z,) = program.variables(1, square=1.0)
    program.norm(Z, z, conjugate(p))
    return program.solve()


def problem(seed: int, rank_one: bool):
    """Points, labels, a numeric target, kernels of different kinds and their groups."""
    rng = np.random.default_rng(seed)
    n, labels = 24, [0, 0, 0, 1, 1, 2]
    X = rng.standard_normal((n, 6))
    f = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    if rank_one:
        matrices = [np.outer(x, x) for x in X.T]
    else:
        squares = [(x[:, None] - x) ** 2 for x in X.T]
        matrices = [np.exp(-g * d) for g, d in zip([0.3, 2.0] * 3, squares, strict=True)]
        matrices[2] = X @ X.T
    matrices = [mk.normalize(K, "multiplicative") for K in matrices]
    return matrices, np.where(f > 0, 1.0, -1.0), f, labels


def fit(matrices, y, rule, *, loss, C, intercept):
    bank, ids = mk.precomputed(matrices), mk.sample_ids(len(y))
    options = {"loss": loss, "fit_intercept": intercept, "center": False, "normalize": None}
    if loss in ("hinge", "logistic"):
        model = mk.MultiKernelClassifier(bank, rule, C=C, **options).fit(ids, y)
        return model, model.objective_
    model = mk.MultiKernelRegressor(bank, rule, alpha=1 / C, **options).fit(ids, y)
    # Objectives of regression are per cost, and without the half where the loss is squared.
    return model, model.objective_ * (C / 2 if loss == "squared" else C)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("p", "q"), [(4, 1.2), (1.2, 4), (INF, 4 / 3), (1.3, INF), (3, 1), (1, 3), (1.5, 1.2), (3, 6)]
)
def test_random_problems(p, q, loss, intercept):
    seed = LOSSES.index(loss) + 10 * intercept
    matrices, y, f, labels = problem(seed, rank_one=False)
    target = y if loss in ("hinge", "logistic") else f
    options = {"loss": loss, "C": 2.0, "intercept": intercept}
    value = optimum(matrices, target, labels, p, q, **options)
    rule = mk.HierarchicalNorm(labels, p, q, tol=1e-7, max_iter=3000)
    model, ours = fit(matrices, target, rule, **options)
    assert model.duality_gap_ <= 1e-7
    np.testing.assert_allclose(ours, value, rtol=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("p", "q"), [(4, 1.2), (1.2, 4), (INF, 1.5), (1.5, INF)])
def test_rank_one_kernels(p, q, seed):
    """At infinity an a_k may vanish while its weight grows without limit; the gap still closes."""
    matrices, y, _, labels = problem(seed, rank_one=True)
    options = {"loss": "hinge", "C": 1.0, "intercept": True}
    value = optimum(matrices, y, labels, p, q, **options)
    rule = mk.HierarchicalNorm(labels, p, q, tol=1e-6, max_iter=3000)
    model, ours = fit(matrices, y, rule, **options)
    assert model.duality_gap_ <= 1e-6
    np.testing.assert_allclose(ours, value, rtol=2e-6)


def test_the_golden_values_are_those_of_the_program():
    from tests.weighting.test_blocknorm import golden

    matrices, _, target = golden()
    for p, q, expected in [(4, 1.2, 2.227245976), (1.2, 4, 1.760014812), (4, 2, 1.712648593)]:
        options = {"loss": "squared", "C": 1.0, "intercept": False}
        value = optimum(matrices, target, [0, 0, 1, 1], p, q, **options)
        np.testing.assert_allclose(value, expected, rtol=1e-7)
