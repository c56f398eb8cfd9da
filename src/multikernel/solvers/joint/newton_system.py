"""The linear systems of the interior-point method in coefficients and kernel weights."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky


class NewtonSystem:
    """The Newton equations for ds and ``x = du / u``, with multipliers b and lam of the sums.

    ::

        [ A   -G   J ] [ds    ]   [r   ]   A: one block per output, K + diag(bend)
        [-G'   E   u ] [x     ] = [v   ]   G: one column per kernel; E diagonal
        [ J'   u'  0 ] [b, lam]   [sums]   J: ones of each output, if it has an intercept

    Without its last row and column the matrix is positive definite, but nearly singular: scaling s
    and u together hardly changes the objective. Multiples of ``J J'`` and ``u u'`` are added, which
    remove this direction and do not change the solution, since the sums are given. The longer of ds
    and x is eliminated first.

    Parameters
    ----------
    K : array of shape (n, n)
    bend : array of shape (n, t)
    G : array of shape (M, n, t)
    E, u : arrays of shape (M,)
    intercept : bool
    """

    def __init__(
        self,
        K: np.ndarray,
        bend: np.ndarray,
        G: np.ndarray,
        E: np.ndarray,
        u: np.ndarray,
        *,
        intercept: bool,
    ) -> None:
        M, n, t = G.shape
        self.K, self.bend, self.E, self.u = K, bend, E, u
        self.G = G.transpose(2, 1, 0).reshape(t * n, M)
        self.J = np.kron(np.eye(t), np.ones((n, 1)))[:, : t * intercept]
        self.blocks = [slice(j * n, (j + 1) * n) for j in range(t)]
        self.pull = float(E.sum())
        A = K + intercept * np.trace(K) / n**2
        self.factors: list[Factor] = []
        if t * n >= M:
            S = np.diag(E) + self.pull * np.outer(u, u)
            for j, rows in enumerate(self.blocks):
                self.factors.append(Factor(A + np.diag(bend[:, j])))
                S -= self.G[rows].T @ self.factors[j].solve(self.G[rows])
        else:
            S = -(self.G / E) @ self.G.T
            self.ratio = self.pull / (1.0 + self.pull * float(u @ (u / E)))
            S += self.ratio * np.outer(self.G @ (u / E), self.G @ (u / E))
            for j, rows in enumerate(self.blocks):
                S[rows, rows] += A + np.diag(bend[:, j])
        self.schur = Factor(S)
        border = self._core(
            np.column_stack([np.zeros(t * n), self.J]),
            np.column_stack([u, np.zeros((M, self.J.shape[1]))]),
        )
        self.border = border
        self.small = self._sums(*border)

    def _sums(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.concatenate([np.atleast_1d(self.u @ Z)[None], self.J.T @ X])

    def _core(self, R: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The solution for right-hand sides R, V without multipliers."""
        if self.factors:
            Z = self.schur.solve(V + self.G.T @ self._by_blocks(R))
            return self._by_blocks(R + self.G @ Z), Z
        X = self.schur.solve(R + self.G @ self._by_weights(V))
        return X, self._by_weights(V + self.G.T @ X)

    def _by_blocks(self, R: np.ndarray) -> np.ndarray:
        parts = zip(self.factors, self.blocks, strict=True)
        return np.concatenate([factor.solve(R[rows]) for factor, rows in parts])

    def _by_weights(self, V: np.ndarray) -> np.ndarray:
        """``(E + pull u u')^-1 V``."""
        lean = self.u / self.E
        return V / self.E[:, None] - self.ratio * np.outer(lean, lean @ V)

    def solve(
        self, r: np.ndarray, v: np.ndarray, sums: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """ds of shape (n, t) and x of shape (M,), with one step of iterative refinement.

        Parameters
        ----------
        r, v : arrays of shape (n, t) and (M,)
        sums : array of shape (t,), or empty without an intercept
            The required sum of ds for each output.
        """
        n, t = r.shape
        goal = np.append(0.0, sums)
        x, z, m = np.zeros(t * n), np.zeros(len(v)), np.zeros(len(goal))
        for _ in range(2):
            S = x.reshape(t, n).T
            left = r - self.K @ S - self.bend * S
            R = left.T.ravel() + self.G @ z - self.J @ m[1:]
            V = v + self.G.T @ x - self.E * z - m[0] * self.u
            missing = goal - np.append(self.u @ z, self.J.T @ x)
            X, Z = self._core(R[:, None], V[:, None])
            dm = np.linalg.solve(self.small, self._sums(X, Z)[:, 0] - missing)
            x = x + X[:, 0] - self.border[0] @ dm
            z = z + Z[:, 0] - self.border[1] @ dm
            m = m + dm
        return x.reshape(t, n).T, z


class Factor:
    """A Cholesky factor of a matrix that is positive definite up to rounding errors."""

    def __init__(self, A: np.ndarray) -> None:
        diagonal = np.diag(A)
        top = float(diagonal.max())
        if not top > 0:
            raise LinAlgError("no positive entry on the diagonal")
        # Scale the diagonal to ones: otherwise small entries would be lost beside large ones.
        self.scale = 1.0 / np.sqrt(np.maximum(diagonal, 1e-30 * top))[:, None]
        A = A * self.scale * self.scale.T
        shift = 1e-15
        while True:
            A[np.diag_indices(len(A))] = 1.0 + shift
            try:
                self.lower = cholesky(A, lower=True, check_finite=False)
                return
            except LinAlgError:
                shift *= 10.0
                if shift > 1e-6:
                    raise

    def solve(self, R: np.ndarray) -> np.ndarray:
        return np.asarray(
            self.scale * cho_solve((self.lower, True), self.scale * R, check_finite=False)
        )
