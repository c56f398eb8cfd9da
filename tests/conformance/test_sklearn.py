"""scikit-learn's own checks for every public estimator, default-constructed, and in other forms."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import multikernel as mk
from tests.conformance.expected import expected_failures

ESTIMATORS = [
    mk.MultiKernelClassifier(),
    mk.MultiKernelRegressor(),
    mk.MultiKernelClassifierCV(weighting="alignf", Cs=(1.0,), cv=3),
    mk.MultiKernelRegressorCV(weighting="alignf", alphas=(1.0,), cv=3),
    mk.MultiKernelOneClass(),
    mk.MultiKernelOneClass(C=1e-3),
    mk.ParzenClassifier(),
    mk.ParzenRegressor(),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [mk.MultiKernelClassifierCV(), mk.MultiKernelRegressorCV()],
    expected_failed_checks=expected_failures,
)
def test_searches_with_their_defaults(estimator, check):
    check(estimator)
