"""The largest margin over non-negative combinations as a quadratically constrained program.

Lanckriet, Cristianini, Bartlett, El Ghaoui & Jordan 2004, as Bousquet & Herrmann and Kloft restate
it. For kernels of equal trace and ``s = y alpha``,

    max 1'alpha - xi / 2 [- alpha'alpha / (2C)]     over  s'K_k s <= xi for all k,
                                                          y'alpha = 0,  0 <= alpha [<= C]

the first bracket for the 2-norm, the second for the 1-norm soft margin, neither for the hard one.
The multipliers of the quadratic constraints are the weights d. Interior points solve the whole
program at once: exact and slow, an oracle and a choice for small problems.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .problem import Hull, Labels, MarginSolution, NotSeparableError, not_separable, train

#: The most non-zeros of the constraint matrix: about 300 points with ten kernels of full rank.
QCQP_LIMIT = 2_000_000
TOL = 1e-9


def require_clarabel(what: str) -> Any:
    """The conic solver, or what to install."""
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(
            f"{what} is solved by clarabel, which is not installed. Run `pip install "
            "multikernel[sdp]` (or `pip install clarabel`), or choose solver='auto'."
        ) from error
    return clarabel


class ConicProgram:
    """``min q'x + x'Px/2`` over ``b - Ax`` in a product of cones, row by row."""

    def __init__(self, clarabel: Any, size: int) -> None:
        self.clarabel = clarabel
        self.size = size
        self.q = np.zeros(size)
        self.P = sp.csc_matrix((size, size))
        self.blocks: list[Any] = []
        self.rights: list[np.ndarray] = []
        self.cones: list[Any] = []

    @property
    def rows(self) -> int:
        return sum(len(b) for b in self.rights)

    def demand(self, A: Any, b: np.ndarray, cone: Any) -> slice:
        """``b - A x`` lies in the cone; returns where its multipliers will stand."""
        start = self.rows
        self.blocks.append(sp.csc_matrix(A))
        self.rights.append(np.asarray(b, dtype=np.float64))
        self.cones.append(cone)
        return slice(start, start + len(b))

    def solve(self, p: int) -> tuple[np.ndarray, np.ndarray]:
        """The optimal x and the multipliers of all rows."""
        settings = self.clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOL
        found = self.clarabel.DefaultSolver(
            self.P,
            self.q,
            sp.vstack(self.blocks, format="csc"),
            np.concatenate(self.rights),
            self.cones,
            settings,
        ).solve()
        status = str(found.status)
        if "Infeasible" in status:
            raise NotSeparableError(not_separable(p))
        if "Solved" not in status and "InsufficientProgress" not in status:
            raise RuntimeError(
                f"clarabel ended with status {status}. Scale the kernels to a moderate trace, or "
                "choose another solver."
            )
        return np.asarray(found.x), np.asarray(found.z)


def qcqp(hull: Hull, labels: Labels) -> MarginSolution:
    """Weights and machine from the quadratically constrained program.

    Raises
    ------
    NotSeparableError
        Where a hard margin is asked for and no kernel of the hull separates.
    ValueError
        When the program would be too large.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.solvers.spectral.qcqp import qcqp
    >>> from multikernel.solvers.spectral.problem import RankOneKernels, Labels
    >>> V = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> found = qcqp(RankOneKernels(V), Labels(np.array([1.0, -1.0]), "hard"))
    >>> print(abs(found.weights.round(6)), round(found.machine.norm, 6))
    [0. 1.] 1.0
    """
    clarabel = require_clarabel("The quadratically constrained program")
    y, n, p = labels.y, len(labels.y), hull.p
    roots = hull.roots()
    entries = n * sum(len(B) for B in roots)
    if entries > QCQP_LIMIT:
        raise ValueError(
            f"The quadratically constrained program of {n} labelled points and {p} kernels has "
            f"{entries:,} non-zeros, more than {QCQP_LIMIT:,}, for which interior points are too "
            "slow. Use solver='gradient' or 'cutting_plane', which reach the same optimum."
        )
    program = ConicProgram(clarabel, n + 1)
    program.q[:n], program.q[n] = -1.0, 0.5
    if labels.ridge:
        program.P = sp.diags(np.append(np.full(n, labels.ridge), 0.0), format="csc")
    program.demand(np.append(y, 0.0)[None], np.zeros(1), clarabel.ZeroConeT(1))
    signs = sp.hstack([sp.eye(n), sp.csc_matrix((n, 1))])
    program.demand(-signs, np.zeros(n), clarabel.NonnegativeConeT(n))
    if np.isfinite(labels.box):
        program.demand(signs, np.full(n, labels.box), clarabel.NonnegativeConeT(n))
    places = []
    for B in roots:
        # ||B s||^2 <= xi  as  ||(2 B s, xi - 1)|| <= xi + 1
        A = np.zeros((len(B) + 2, n + 1))
        A[:2, n] = -1.0
        A[2:, :n] = -2.0 * B * y
        b = np.zeros(len(A))
        b[:2] = 1.0, -1.0
        places.append(program.demand(A, b, clarabel.SecondOrderConeT(len(A))))
    x, z = program.solve(p)
    # Stationarity in xi: its cost of a half is shared out among the cones' first two entries.
    d = np.array([z[place][0] + z[place][1] for place in places])
    return certify(hull, labels, np.maximum(2.0 * d, 0.0), x[:n])


def certify(hull: Hull, labels: Labels, d: np.ndarray, alpha: np.ndarray) -> MarginSolution:
    """The machine with these weights, and the bound that these multipliers prove."""
    d = d / d.sum()
    machine = train(hull.combine(d), labels)
    lower = -np.inf
    for candidate in (labels.feasible(alpha), machine.alpha):
        lower = max(lower, labels.dual(candidate, float(hull.forms(labels.y * candidate).max())))
    return MarginSolution(d, machine, lower, 1)
