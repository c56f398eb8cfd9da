"""scikit-learn's own checks for the ensembles, default-constructed, and one with one stage."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from multikernel.estimators.ensemble import KernelEnsembleClassifier, KernelEnsembleRegressor
from tests.conformance.expected import expected_failures

ESTIMATORS = [
    KernelEnsembleClassifier(),
    KernelEnsembleRegressor(),
    KernelEnsembleClassifier(stages=1, norm="l2"),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator(estimator, check):
    check(estimator)
