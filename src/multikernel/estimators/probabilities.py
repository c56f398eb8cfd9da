"""Class probabilities of every classifier, from decision values of held-out samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..learners.calibration import METHODS, Calibration, calibrate
from ..learners.left_out import chosen_samples
from ..problem import Target

#: Allowed values of the parameter ``calibration``.
CALIBRATIONS = StrOptions({"auto", *METHODS})


class ProbabilityMixin:
    """``predict_proba`` and ``predict_log_proba`` on top of ``decision_function``."""

    calibration: str
    classes_: np.ndarray

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes.

        They are fitted to decision values of held-out training samples (see the parameter
        ``calibration``) and never change decisions. The most probable class is the one that
        `predict` returns: where the fitted probabilities disagree, close to the boundary, the
        classes in question get equal probabilities. Class weights deliberately move decisions away
        from the most probable class; with class weights, probabilities stay as fitted.

        Parameters
        ----------
        X : array of shape (n_new, n_features)

        Returns
        -------
        array of shape (n_new, n_classes)
            In the order of ``classes_``; every row sums to one.
        """
        return self._fitted_calibration().probabilities(self._decision_columns(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of the classes, finite where these round to zero.

        Parameters
        ----------
        X : array of shape (n_new, n_features)

        Returns
        -------
        array of shape (n_new, n_classes)
        """
        return self._fitted_calibration().log_probabilities(self._decision_columns(X))

    def _decision_columns(self, X: Any) -> np.ndarray:
        decisions = self.decision_function(X)  # type: ignore[attr-defined]
        return decisions[:, None] if decisions.ndim == 1 else decisions

    def _fitted_calibration(self) -> Calibration:
        check_is_fitted(self)
        calibration: Calibration | None = getattr(self, "_calibration", None)
        if calibration is None:
            raise NotFittedError(
                f"This {type(self).__name__} has no probabilities: it was loaded from a model file "
                "of a version without them, its fit was interrupted, or its learner has no method "
                "left_out. Fit it again to get them; decision_function and predict work as before."
            )
        return calibration

    def _samples_to_leave_out(self, target: Target, learner: Any) -> np.ndarray | None:
        """Samples whose held-out decision values are used for calibration; None if not needed."""
        if self._has_own_probabilities(target) or not hasattr(learner, "left_out"):
            return None  # learners of other packages may lack the method
        return chosen_samples(target, learner.max_left_out)[0]

    def _has_own_probabilities(self, target: Target) -> bool:
        """Whether the sigmoid of the decision value already is the fitted probability."""
        own = getattr(self, "loss", None) == "logistic" and target.Y.shape[1] == 1
        return own and self.calibration == "auto"

    def _calibrate(
        self, target: Target, held_out: np.ndarray | None, max_left_out: int | None = None
    ) -> None:
        """Fit probabilities to decision values (m, t) of the samples that were left out.

        Parameters
        ----------
        max_left_out : int, optional
            As in the learner; by default all samples were left out.
        """
        self._calibration = self._make_calibration(target, held_out, max_left_out)

    def _make_calibration(
        self, target: Target, held_out: np.ndarray | None, max_left_out: int | None = None
    ) -> Calibration | None:
        if self._has_own_probabilities(target):
            return Calibration.identity()
        if held_out is None:
            return None
        limit = len(target.Y) if max_left_out is None else max_left_out
        rows, sample_weight = chosen_samples(target, limit)
        method = "sigmoid" if self.calibration == "auto" else self.calibration
        # Class weights move decisions away from the most probable class on purpose.
        agrees = getattr(self, "class_weight", None) is None
        return calibrate(method, held_out, target.labels[rows], sample_weight, agrees=agrees)
