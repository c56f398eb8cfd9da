"""Kernel weights that minimise the exact leave-one-out error of kernel ridge regression.

The size of the weights is free, so that the ridge constant, set to one, is learned with them. The
criterion and its gradient (:mod:`multikernel.learners.leave_one_out`) cost one factorisation and
one pass over the kernels, for any number of kernels. The criterion is not convex in the weights:
several starts are tried on a part of the sample, and the best is improved on the whole sample.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from sklearn.utils import check_random_state

from ..grams.protocol import Grams, Summary
from ..learners.base import Learner
from ..problem import Target
from .base import Weighting, normalised
from .loo_minimum import SizedKernels, minimise, some_rows
from .loo_shrinkage import choose_shrinkage

#: Default limit on factorisations of the whole kernel matrix.
MAX_FINAL_STEPS = 20
#: Shrinkage is chosen by cross-validation if there are fewer samples per kernel than this.
MIN_SAMPLES_PER_KERNEL = 40
#: Shrinkage is chosen on at most this many samples.
MAX_SHRINKAGE_SAMPLES = 600
#: Matrices of the size of the kernel matrix that the minimisation holds at once.
MATRICES_IN_MEMORY = 4
#: Weights are learned from at least this many samples (from all, if there are fewer).
MIN_SAMPLES = 20


class LeaveOneOut(Weighting):
    """Weights that minimise the leave-one-out error of kernel ridge regression.

    The error of each sample is that of the function trained without it. All errors are computed
    exactly from a single factorisation. Classifiers use the labels -1 and +1 as targets; several
    outputs or classes share the weights, and their squared errors are added.

    The weights are not normalised: they include the ridge constant, so ``alpha=1`` (or ``C=1``) is
    the value that leave-one-out chooses.

    Parameters
    ----------
    shrinkage : float or "auto", default="auto"
        How far the weights are moved towards equal weights: from 0, the minimum of the criterion,
        to 1, equal weights of the best size. ``"auto"`` compares five values by cross-validation
        if there are fewer than 40 samples for each kernel, and takes the largest whose error is
        within a quarter of a standard error of the smallest; otherwise it is 0.
    tol : float, default=1e-4
        The minimisation stops when a step reduces the criterion by less than this fraction.
    max_iter : int, default=20
        Limit on the factorisations of the whole kernel matrix.
    max_samples : int, default=3000
        Weights are learned from at most this many samples (fewer if memory is short), chosen at
        random with the classes in proportion. The predictor is trained on all of them.
    random_state : int or None, default=0
        Seed for the samples on which starts are compared, and for folds.

    Notes
    -----
    The criterion is not convex, so there is no duality gap for the weights. The first entry of
    ``history_`` states the criterion relative to that of a constant (``loo_error``), the largest
    entry of its projected gradient with respect to logarithms of the weights
    (``projected_gradient``), the number of factorisations of the whole matrix, and the shrinkage.

    A sample of weight two counts as two equal samples; when one is left out, the other stays. If
    many samples have a copy, the error is that of predicting copies, and the weights become large.
    Remove copies if new samples will not be copies of training samples, and divide sample weights
    that are not counts by their maximum.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bank = mk.gaussians([1.0, 10.0, 100.0])
    >>> model = mk.MultiKernelRegressor(bank, weighting="loo").fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.43
    """

    reads_samples = True
    includes_ridge = True

    def __init__(
        self,
        shrinkage: float | str = "auto",
        *,
        tol: float = 1e-4,
        max_iter: int = MAX_FINAL_STEPS,
        max_samples: int = 3000,
        random_state: Any = 0,
    ) -> None:
        self.max_samples = max_samples
        self.shrinkage = shrinkage
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def start(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> np.ndarray:
        return self.weigh(grams, target, learner, summary)[0]

    def weigh(
        self, grams: Grams, target: Target, learner: Learner, summary: Summary | None = None
    ) -> tuple[np.ndarray, list[dict[str, Any]]]:
        self.check()
        seed = self._seed()
        whole = SizedKernels(grams, target, learner.fit_intercept)
        sample = whole.part(some_rows(target, self._most_samples(grams), seed))
        try:
            found = minimise(sample, tol=float(self.tol), max_iter=self.max_iter, seed=seed)
        except LinAlgError:
            # No start has a positive definite matrix. The caller rejects these equal weights.
            return normalised(np.where(grams.degenerate, 0.0, 1.0)), []
        shrinkage = self.shrinkage
        if shrinkage == "auto":
            shrinkage = self._shrinkage_by_folds(sample, seed)
        kernel_weights = whole.weights(found.shrunken_sizes(float(shrinkage)))
        entry = {
            "loo_error": found.error,
            "projected_gradient": found.projected_gradient,
            "factorisations": found.factorisations,
            "shrinkage": float(shrinkage),
        }
        return kernel_weights, [entry]

    def check(self) -> None:
        value = self.shrinkage
        good = isinstance(value, Real) and not isinstance(value, bool) and 0 <= value <= 1
        if not good and not (isinstance(value, str) and value == "auto"):
            raise ValueError(
                f"LeaveOneOut: shrinkage must be 'auto' or a number from 0 to 1; got {value!r}."
            )
        if not isinstance(self.tol, Real) or not self.tol > 0:
            raise ValueError(f"LeaveOneOut: tol must be a positive number; got {self.tol!r}.")
        for name, least in (("max_iter", 1), ("max_samples", MIN_SAMPLES)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < least:
                raise ValueError(
                    f"LeaveOneOut: {name} must be a whole number of at least {least}; "
                    f"got {value!r}."
                )

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _most_samples(self, grams: Grams) -> int:
        """The number of samples to learn from: ``max_samples``, or fewer if memory is short."""
        room = grams.combine(np.zeros(grams.p)).room
        fits = np.sqrt(room / (8.0 * MATRICES_IN_MEMORY))
        return int(max(min(self.max_samples, fits), MIN_SAMPLES))

    def _shrinkage_by_folds(self, sample: SizedKernels, seed: int) -> float:
        usable = int(np.count_nonzero(sample.usable))
        if usable == 1 or sample.n_counted >= MIN_SAMPLES_PER_KERNEL * usable:
            return 0.0
        rows = some_rows(sample.target, MAX_SHRINKAGE_SAMPLES, seed)
        return choose_shrinkage(sample.part(rows), float(self.tol), seed)
