"""scikit-learn's own checks for the ensembles, default-constructed, and one with one stage."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from multikernel.estimators.ensemble import KernelEnsembleClassifier, KernelEnsembleRegressor

ESTIMATORS = [
    KernelEnsembleClassifier(),
    KernelEnsembleRegressor(),
    KernelEnsembleClassifier(stages=1, norm="l2"),
]


@parametrize_with_checks(ESTIMATORS)
def test_estimator(estimator, check):
    check(estimator)
