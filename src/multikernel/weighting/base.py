"""What a weighting is: the rule that turns grams and targets into kernel weights."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ..grams.protocol import Grams
from ..learners.base import Learner
from ..solvers.problem import Target


class Weighting(BaseEstimator):  # type: ignore[misc]
    """A rule with parameters; ``clone``, ``repr`` and ``weighting__q`` in a grid search work.

    Two-stage rules return weights that sum to one: only their direction means anything, and with
    kernels of equal size the learner's C or alpha then keeps its meaning from rule to rule.
    """

    #: whether weights may be negative, so that the combination may fail to be a kernel
    signed_weights: bool = False
    #: whether the p x p products of the kernels are needed
    needs_products: bool = False
    #: whether the weights depend on the learner and its C or alpha
    needs_learner: bool = False

    def start(self, grams: Grams, target: Target, learner: Learner) -> np.ndarray:
        """Weights of shape (p,); zero for kernels that are constant on the sample."""
        raise NotImplementedError


class JointWeighting(Weighting):
    """A rule whose weights and machine solve one convex problem, reached by alternating them.

    The problem is ``min_{theta, w} Omega + loss``; ``primal`` and ``dual`` are the two values of
    its regulariser that, with those of the loss, bound the optimum from both sides.
    """

    #: relative duality gap to reach, and the most alternations to spend on it
    tol: float
    max_iter: int

    def update(self, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
        """New weights for a machine with quadratic forms ``a_k = s'K_k s`` found at theta."""
        raise NotImplementedError

    def primal(self, theta: np.ndarray, a: np.ndarray) -> float:
        """The regulariser of ``w_k = theta_k sum_i s_i phi_k(x_i)``."""
        raise NotImplementedError

    def dual(self, a: np.ndarray) -> float:
        """Its conjugate at ``sum_i s_i phi(x_i)``."""
        raise NotImplementedError


def normalised(weights: np.ndarray) -> np.ndarray:
    """Scaled to sum to one in absolute value."""
    return weights / np.abs(weights).sum()
