"""Joint learning of weights and machine under a block norm of the weights: lp-norm MKL.

Kloft 2011, Problem II.3:  ``min  1/2 ||w||_{2,p}^2 + sum_i C_i l(f(x_i) + b, y_i)`` with
``||w||_{2,p} = (sum_k ||w_k||^p)^(1/p)``, every kernel's part ``w_k`` in its own feature space.
Below ``a_k = s'K_k s`` for the machine's signed coefficients s, and ``v_k = ||w_k|| = theta_k
sqrt(a_k)``.
"""

from __future__ import annotations

import numpy as np

from ..grams.protocol import Grams
from ..learners.base import Learner
from ..solvers.problem import Target
from .base import JointWeighting

#: For p > 2 a kernel that hardly matters gets a huge weight; this part of the largest a_k is the
#: least that counts, which changes the objective by about its square root.
FLOOR = 1e-12


class LpNorm(JointWeighting):
    """lp-norm multiple kernel learning: weights and machine from one convex problem.

    p is the exponent of the *block norm* on w, as in Kloft's thesis. ``p=1`` is sparse, ``p=2`` the
    plain sum of the kernels, and beyond 2 weights grow more equal than in the sum. People who
    know the exponent q of the norm on the kernel weights (papers before 2011, SHOGUN) use
    :meth:`from_theta_norm`.

    Parameters
    ----------
    p : float, default=4/3
        At least 1; ``float("inf")`` is allowed.
    tol : float, default=1e-3
        Relative duality gap at which the alternation stops.
    max_iter : int, default=500
        Limit on alternations of machine and weights.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = mk.MultiKernelClassifier(weighting=mk.LpNorm(p=4/3)).fit(X, y)
    >>> model.duality_gap_ < 1e-3
    True
    """

    def __init__(self, p: float = 4 / 3, *, tol: float = 1e-3, max_iter: int = 500) -> None:
        self.p = p
        self.tol = tol
        self.max_iter = max_iter

    @classmethod
    def from_theta_norm(cls, q: float, **options: float) -> LpNorm:
        """The same model named by the norm on the kernel weights, ``p = 2 q / (q + 1)``.

        Examples
        --------
        >>> import multikernel as mk
        >>> mk.LpNorm.from_theta_norm(3.0)
        LpNorm(p=1.5)
        """
        if not q >= 1:
            raise ValueError(f"LpNorm.from_theta_norm: q must be at least 1; got {q!r}.")
        return cls(2.0 if np.isinf(q) else 2.0 * q / (q + 1.0), **options)  # type: ignore[arg-type]

    def start(self, grams: Grams, target: Target, learner: Learner) -> np.ndarray:
        if not self.p >= 1:
            raise ValueError(f"LpNorm: p must be at least 1; got {self.p!r}.")
        usable = ~grams.degenerate
        exponent = -1.0 if np.isinf(self.p) else (2.0 - self.p) / self.p
        return np.where(usable, float(usable.sum()) ** -exponent, 0.0)

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        """``1/2 ||v||_p^2``."""
        return 0.5 * norm(theta * np.sqrt(a), self.p) ** 2

    def dual(self, a: np.ndarray) -> float:
        """``1/2 ||sqrt(a)||_{p*}^2``."""
        return 0.5 * norm(np.sqrt(a), conjugate(self.p)) ** 2

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The best weights for this machine (Kloft 2011, Proposition 3.1)."""
        p = self.p
        if p == 2:
            return theta
        if p < 2:
            # From w: the formula from a would be a best response that runs in circles.
            v = theta * np.sqrt(a)
            size = norm(v, p)
            return np.zeros_like(v) if size == 0 else (v / size) ** (2.0 - p)
        # theta_k = a_k^((2-p)/(2p-2)) / (sum a^(p/(2p-2)))^((2-p)/p), from the dual
        used = theta > 0
        top = a.max(initial=0.0)
        if top == 0:
            return theta
        scaled = np.maximum(a / top, FLOOR)
        if np.isinf(p):
            return np.where(used, np.sqrt(scaled[used]).sum() / np.sqrt(scaled), 0.0)
        total = np.sum(scaled[used] ** (p / (2 * p - 2)))
        weights = scaled ** ((2 - p) / (2 * p - 2)) / total ** ((2 - p) / p)
        return np.where(used, weights, 0.0)


class L1(LpNorm):
    """Sparse multiple kernel learning: :class:`LpNorm` with ``p=1``.

    The classical problem of Lanckriet et al. and Bach et al.; weights sum to one and most are
    exactly zero.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative duality gap at which the alternation stops.
    max_iter : int, default=500
        Limit on alternations of machine and weights.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = mk.MultiKernelClassifier(mk.gaussians([1e-4, 1e-3]), weighting="l1").fit(X, y)
    >>> print(round(model.kernel_weights_.sum(), 6))
    1.0
    """

    def __init__(self, *, tol: float = 1e-3, max_iter: int = 500) -> None:
        super().__init__(1.0, tol=tol, max_iter=max_iter)


def norm(v: np.ndarray, p: float) -> float:
    """``||v||_p`` with the largest entry taken out, so that high powers do not overflow."""
    top = float(np.abs(v).max(initial=0.0))
    if top == 0 or np.isinf(p):
        return top
    return top * float(np.sum((np.abs(v) / top) ** p) ** (1.0 / p))


def conjugate(p: float) -> float:
    """``p*`` with ``1/p + 1/p* = 1``."""
    if p == 1:
        return float("inf")
    return 1.0 if np.isinf(p) else p / (p - 1.0)
