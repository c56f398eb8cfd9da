"""The largest margin over non-negative combinations as a quadratically constrained program.

Lanckriet, Cristianini, Bartlett, El Ghaoui & Jordan 2004, as Bousquet & Herrmann and Kloft restate
it. For kernels of equal trace and ``s = y alpha``,

    max 1'alpha - xi / 2 [- alpha'alpha / (2C)]     over  s'K_k s <= xi for all k,
                                                          y'alpha = 0,  0 <= alpha [<= C]

the first bracket for the 2-norm, the second for the 1-norm soft margin, neither for the hard one.
The multipliers of the quadratic constraints are the kernel weights d. An interior-point method
solves the whole program: exact but slow, for small problems and as a reference in tests.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .conic import ConicProgram, require_clarabel
from .hulls import Hull
from .problem import Labels, MarginSolution, train

#: Largest number of non-zeros in the constraint matrix: about 300 samples with ten kernels of full
#: rank.
MAX_QCQP_ENTRIES = 2_000_000


def qcqp(hull: Hull, labels: Labels) -> MarginSolution:
    """Kernel weights and classifier from the quadratically constrained program.

    Raises
    ------
    NotSeparableError
        With a hard margin, if no kernel of the hull separates the samples.
    ValueError
        If the program would be too large.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.solvers.spectral.qcqp import qcqp
    >>> from multikernel.solvers.spectral.hulls import RankOneKernels
    >>> from multikernel.solvers.spectral.problem import Labels
    >>> V = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> found = qcqp(RankOneKernels(V), Labels(np.array([1.0, -1.0]), "hard"))
    >>> print(abs(found.weights.round(6)), round(found.machine.norm, 6))
    [0. 1.] 1.0
    """
    clarabel = require_clarabel("The quadratically constrained program")
    y, n, p = labels.y, len(labels.y), hull.p
    roots = hull.roots()
    entries = n * sum(len(B) for B in roots)
    if entries > MAX_QCQP_ENTRIES:
        raise ValueError(
            f"The quadratically constrained program of {n} labelled samples and {p} kernels has "
            f"{entries:,} non-zeros, more than {MAX_QCQP_ENTRIES:,}, and would take too long. Use "
            "solver='gradient' or 'cutting_plane', which reach the same optimum."
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
    # Stationarity in xi: the first two multipliers of all cones add up to its cost, one half.
    d = np.array([z[place][0] + z[place][1] for place in places])
    return certify(hull, labels, np.maximum(2.0 * d, 0.0), x[:n])


def certify(hull: Hull, labels: Labels, d: np.ndarray, alpha: np.ndarray) -> MarginSolution:
    """The classifier with these kernel weights, and the bound that the multipliers prove."""
    d = d / d.sum()
    machine = train(hull.combine(d), labels)
    lower = -np.inf
    for candidate in (labels.feasible(alpha), machine.alpha):
        lower = max(lower, labels.dual(candidate, float(hull.forms(labels.y * candidate).max())))
    return MarginSolution(d, machine, lower, 1)
