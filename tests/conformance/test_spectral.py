"""scikit-learn's own checks for the spectral classifier, every family."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from multikernel import Gaussian, Linear
from multikernel.estimators.spectral import SpectralKernelClassifier

MARK = "-1 marks an unlabelled sample, as in sklearn.semi_supervised; the check has it as a class"


@parametrize_with_checks(
    [
        SpectralKernelClassifier(),
        SpectralKernelClassifier(family="spectral"),
        SpectralKernelClassifier(family="convex"),
        SpectralKernelClassifier([Gaussian(0.2), Linear()], family="linear"),
    ],
    expected_failed_checks=lambda estimator: {"check_classifiers_classes": MARK},
)
def test_estimator(estimator, check):
    check(estimator)
