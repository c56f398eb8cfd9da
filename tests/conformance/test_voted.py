"""scikit-learn's own checks for the voted classifiers, default-constructed."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from multikernel.estimators.voted import VotedKernelClassifier
from multikernel.estimators.voted_search import VotedKernelClassifierCV


@parametrize_with_checks([VotedKernelClassifier(), VotedKernelClassifierCV()])
def test_estimator(estimator, check):
    check(estimator)
