"""scikit-learn's checks for estimators without labels, and for features of a learned kernel."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import multikernel as mk
from tests.conformance.expected import expected_failures

ESTIMATORS = [
    mk.ConsensusKernel(),
    mk.ConsensusKernel(weighting="full-neighbours", n_components=None),
    mk.KernelClustering(),
    mk.KernelClustering(method="spectral"),
    mk.KernelFeatures(),
    mk.KernelFeatures(mk.MultiKernelClassifier(), n_components=5, method="landmarks"),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator(estimator, check):
    check(estimator)
