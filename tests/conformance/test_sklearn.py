"""scikit-learn's own checks for every public estimator, default-constructed, and in other forms."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import multikernel as mk

ESTIMATORS = [
    mk.MultiKernelClassifier(),
    mk.MultiKernelRegressor(),
    mk.MultiKernelClassifierCV(),
    mk.MultiKernelRegressorCV(),
    mk.MultiKernelOneClass(),
    mk.MultiKernelOneClass(C=1e-3),
    mk.ParzenClassifier(),
    mk.ParzenRegressor(),
]


@parametrize_with_checks(ESTIMATORS)
def test_estimator(estimator, check):
    check(estimator)
