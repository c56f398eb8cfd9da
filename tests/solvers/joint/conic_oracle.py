"""The primal of block-norm learning as one conic program, solved by clarabel: an oracle.

    min  1/2 t^2 (or 1/2 t, the unsquared norm) + C sum_i l(f_i, y_i),      t >= ||v||_p,
         v_k >= ||beta_k||,     f = sum_k F_k beta_k + b

for kernels ``K_k = F_k F_k'``. It shares nothing with the solvers but the statement of the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp


def factor(K: np.ndarray) -> np.ndarray:
    """F with ``F F' = K``."""
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-12 * values[-1]
    return vectors[:, keep] * np.sqrt(values[keep])


@dataclass
class Program:
    """``min 1/2 x'Px + c'x`` with ``b - A x`` in cones; variables are added in blocks."""

    size: int = 0
    rows: list = field(default_factory=list)
    rights: list = field(default_factory=list)
    cones: list = field(default_factory=list)

    def variables(self, count: int) -> np.ndarray:
        self.size += count
        return np.arange(self.size - count, self.size)

    def demand(self, cone: object, right: np.ndarray, *terms: tuple[np.ndarray, np.ndarray]):
        """``right + sum of matrix @ x[variables]`` lies in the cone."""
        self.rows.append(terms)
        self.rights.append(np.asarray(right, dtype=float))
        self.cones.append(cone)

    def solve(self, c: dict, P: dict) -> tuple[float, np.ndarray]:
        import clarabel

        blocks = []
        for right, terms in zip(self.rights, self.rows, strict=True):
            A = np.zeros((len(right), self.size))
            for where, matrix in terms:
                A[:, where] -= matrix
            blocks.append(A)
        cost, curvature = np.zeros(self.size), np.zeros(self.size)
        for at, value in c.values():
            cost[at] += value
        for at, value in P.values():
            curvature[at] += value
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        found = clarabel.DefaultSolver(
            sp.csc_matrix(np.diag(curvature)),
            cost,
            sp.csc_matrix(np.vstack(blocks)),
            np.concatenate(self.rights),
            self.cones,
            settings,
        ).solve()
        assert "Solved" in str(found.status), found.status
        return found.obj_val, np.array(found.x)


def conic_optimum(
    features: list[np.ndarray],
    y: np.ndarray,
    C: float,
    p: float,
    loss: str,
    *,
    intercept: bool = True,
    squared: bool = True,
    epsilon: float = 0.1,
) -> tuple[float, np.ndarray, np.ndarray]:
    """The optimal value, the norms ``||beta_k||`` and the decision values f."""
    import clarabel

    n, M = len(y), len(features)
    program = Program()
    t = program.variables(1)
    v = program.variables(M)
    b = program.variables(1)
    f = program.variables(n)
    blocks = [program.variables(F.shape[1]) for F in features]
    eye, one = np.eye(n), np.ones((1, 1))
    fit = [(where, F) for where, F in zip(blocks, features, strict=True)]
    program.demand(
        clarabel.ZeroConeT(n), np.zeros(n), (f, -eye), (b, np.ones((n, 1)) * intercept), *fit
    )
    if not intercept:
        program.demand(clarabel.ZeroConeT(1), np.zeros(1), (b, one))
    for k, where in enumerate(blocks):
        d = len(where)
        first, rest = np.zeros((d + 1, 1)), np.vstack([np.zeros((1, d)), np.eye(d)])
        first[0] = 1.0
        program.demand(
            clarabel.SecondOrderConeT(d + 1), np.zeros(d + 1), (v[[k]], first), (where, rest)
        )
    if p == 1:
        program.demand(clarabel.ZeroConeT(1), np.zeros(1), (t, one), (v, -np.ones((1, M))))
    elif np.isinf(p):
        program.demand(
            clarabel.NonnegativeConeT(M), np.zeros(M), (t, np.ones((M, 1))), (v, -np.eye(M))
        )
    elif p == 2:
        first, rest = np.zeros((M + 1, 1)), np.vstack([np.zeros((1, M)), np.eye(M)])
        first[0] = 1.0
        program.demand(clarabel.SecondOrderConeT(M + 1), np.zeros(M + 1), (t, first), (v, rest))
    else:
        # v_k <= r_k^(1/p) t^(1 - 1/p), sum r = t
        r = program.variables(M)
        program.demand(clarabel.ZeroConeT(1), np.zeros(1), (t, one), (r, -np.ones((1, M))))
        for k in range(M):
            unit = np.eye(3)
            program.demand(
                clarabel.PowerConeT(1.0 / p),
                np.zeros(3),
                (r[[k]], unit[:, [0]]),
                (t, unit[:, [1]]),
                (v[[k]], unit[:, [2]]),
            )
    c: dict = {}
    P: dict = {"norm": (t, 1.0)} if squared else {}
    if not squared:
        c["norm"] = (t, 0.5)
    if loss == "squared":
        e = program.variables(n)
        program.demand(clarabel.ZeroConeT(n), y, (f, -eye), (e, -eye))
        P["loss"] = (e, C)
    elif loss == "hinge":
        xi = program.variables(n)
        program.demand(clarabel.NonnegativeConeT(n), np.zeros(n), (xi, eye))
        program.demand(clarabel.NonnegativeConeT(n), -np.ones(n), (xi, eye), (f, np.diag(y)))
        c["loss"] = (xi, C)
    elif loss == "epsilon":
        xi = program.variables(n)
        program.demand(clarabel.NonnegativeConeT(n), np.zeros(n), (xi, eye))
        for sign in (1.0, -1.0):
            right = epsilon + sign * y
            program.demand(clarabel.NonnegativeConeT(n), right, (xi, eye), (f, -sign * eye))
        c["loss"] = (xi, C)
    elif loss == "logistic":
        # exp(-tau) + exp(-y f - tau) <= 1
        tau, parts = program.variables(n), program.variables(2 * n)
        program.demand(clarabel.NonnegativeConeT(n), np.ones(n), (parts, -np.hstack([eye, eye])))
        for i in range(n):
            unit = np.eye(3)
            for half, slope in ((0, 0.0), (1, -y[i])):
                program.demand(
                    clarabel.ExponentialConeT(),
                    np.array([0.0, 1.0, 0.0]),
                    (tau[[i]], -unit[:, [0]]),
                    (f[[i]], slope * unit[:, [0]]),
                    (parts[[half * n + i]], unit[:, [2]]),
                )
        c["loss"] = (tau, C)
    else:
        raise ValueError(loss)
    value, x = program.solve(c, P)
    return value, np.array([np.linalg.norm(x[where]) for where in blocks]), x[f]
