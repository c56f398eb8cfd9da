"""Joint learning with margins measured in the views that each sample has."""

from __future__ import annotations

import numpy as np

from ..grams.protocol import Grams, Summary
from ..problem import Target
from ..problem.regularisers import BlockNorm, Regulariser
from .joint import JointWeighting


class ObservedMargins(JointWeighting):
    """Absent multiple kernel learning: the margin of a sample is measured in the views that it has.

    ``min 1/2 (sum_k ||w_k||^p)^(2/p) + sum_i C_i max(0, 1 + rho N_i - y_i f(x_i))`` with
    ``N_i = sum ||w_k||`` over the kernels whose columns sample i has. For a sample with few views
    only part of the predictor applies, so a smaller decision value is enough for the same distance
    ``rho`` from the boundary (Liu et al. 2015; the convex form with slack, its dual and the duality
    gap are in :mod:`multikernel.solvers.joint.observed_margins`). With ``margin=0`` it is
    :class:`LpNorm`.

    ``missing="absent"`` of :class:`MultiKernelClassifier` uses this rule, with separate weights for
    every class.

    Parameters
    ----------
    margin : float, default=0.1
        rho, relative to half the distance of the class means in the best view. At least 0; usually
        no predictor can keep a margin of 1 or more.
    p : float, default=2
        Exponent of the block norm, above 1 and at most 2; small values favour few views.
    tol : float, default=1e-3
        Relative duality gap at which the solver stops.
    max_iter : int, default=100
        Limit on Newton steps.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 40)
    >>> X = rng.normal(size=(80, 6)) + y[:, None]
    >>> X[::3, :3] = np.nan
    >>> bank = mk.per_view({"scan": slice(0, 3), "clinic": slice(3, 6)})
    >>> model = mk.MultiKernelClassifier(bank, mk.ObservedMargins(0.2), missing="absent").fit(X, y)
    >>> model.duality_gap_ < 1e-3
    True
    """

    def __init__(
        self, margin: float = 0.1, *, p: float = 2.0, tol: float = 1e-3, max_iter: int = 100
    ) -> None:
        self.margin = margin
        self.p = p
        self.tol = tol
        self.max_iter = max_iter

    #: The objective is not loss plus regulariser, so only the solver can certify iterates.
    certifies_itself = True

    @property
    def supports_subsampled_start(self) -> bool:
        return False

    def method(self, n_kernels: int) -> str:
        if not 0 <= self.margin < np.inf:
            raise ValueError(
                "ObservedMargins: margin must be at least 0, and should be below 1; got "
                f"{self.margin!r}."
            )
        if not 1 < self.p <= 2:
            raise ValueError(
                f"ObservedMargins: p must be above 1 and at most 2; got {self.p!r}. To select few "
                "views, use p close to 1."
            )
        return "observed-margins"

    def regulariser(
        self, grams: Grams, target: Target, summary: Summary | None = None
    ) -> Regulariser:
        """The regulariser without the margins."""
        return BlockNorm(float(self.p), ~grams.degenerate)

    def for_samples(self, has: np.ndarray) -> ObservedMargins:
        """A copy of the rule with a mask (p, n) of the kernels that each sample has."""
        new = ObservedMargins(self.margin, p=self.p, tol=self.tol, max_iter=self.max_iter)
        new._has = np.asarray(has, dtype=bool)
        return new

    def samples_with(self, grams: Grams) -> np.ndarray:
        """Mask (p, n) of the kernels that each sample has; all by default."""
        has: np.ndarray | None = self.__dict__.get("_has")
        return np.ones((grams.p, grams.n), dtype=bool) if has is None else has
