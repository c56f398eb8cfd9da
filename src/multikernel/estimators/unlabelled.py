"""Base class of the estimators for samples without labels: centred kernels, consensus weights."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..grams.protocol import CombinedGram, Grams
from ..learners.oneclass import OneClassSVM
from ..problem import Target
from ..solvers.joint.find import combine_checked
from ..solvers.joint.learn import refuse_constant_kernels
from ..weighting import Weighting
from ..weighting.statis import kernel_alignments
from .base import MultiKernelEstimator


class UnlabelledEstimator(MultiKernelEstimator):
    """Kernel weights from the kernels alone; see the estimators for the parameters."""

    _parameter_constraints = {
        name: constraint
        for name, constraint in MultiKernelEstimator._parameter_constraints.items()
        if name not in ("center", "tol", "max_iter", "random_state")
    }

    # Alignments and principal components are those of centred kernels.
    center = True
    random_state = None
    _predicts_targets = False

    def certificate(self, X: Any, y: Any = None, delta: float = 0.05) -> Any:
        """Not available for this class: without labels there is no error to bound."""
        raise TypeError(
            f"The bounds of certificate() apply to predictions, and {type(self).__name__} makes "
            "none. Fit a classifier or regressor with the same kernels."
        )

    def _check_sample(self, X: Any) -> Any:
        X = self._check_X(X, reset=True)
        if X.shape[0] < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 samples; got n_samples = {X.shape[0]}."
            )
        return X

    def _consensus_rule(self) -> Weighting:
        rule = self._as_weighting(self.weighting)
        if rule.needs_target:
            raise ValueError(
                f"weighting={self.weighting!r} needs targets, and {type(self).__name__} has none. "
                "Use 'uniform', 'statis', 'full-neighbours' or 'sparse-neighbours'."
            )
        return rule

    def _learn_weights(self, X: Any) -> tuple[Grams, CombinedGram]:
        """Learn and store the weights; return the corrected kernels and their combination."""
        rule = self._consensus_rule()
        started = time.perf_counter()
        everyone = np.arange(X.shape[0])
        grams = self._make_grams(X, everyone, None).corrected(True, self.normalize)
        # A placeholder, which rules without targets do not read.
        nothing = Target(np.ones((grams.n, 1)), "one-class")
        summary = grams.summary(nothing.Y, products=True)
        refuse_constant_kernels(grams)
        kernel_weights, history = rule.weigh(grams, nothing, OneClassSVM(0.5), summary)
        gram = combine_checked(grams, kernel_weights, rule)
        self.kernel_weights_ = kernel_weights
        self.kernel_names_ = list(grams.names)
        self.alignments_ = kernel_alignments(summary)
        self.optimality_ = float(history[-1]["optimality"]) if history else 0.0
        self.history_ = history
        self._say(
            f"{type(self).__name__}: {self.plan_}\n  learned {np.count_nonzero(kernel_weights)} "
            f"non-zero kernel weights in {time.perf_counter() - started:.2f} s"
        )
        return grams, gram
