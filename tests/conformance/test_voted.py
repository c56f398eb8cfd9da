"""scikit-learn's own checks for the voted classifiers, default-constructed."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from multikernel.estimators.voted import VotedKernelClassifier
from multikernel.estimators.voted_search import VotedKernelClassifierCV


@parametrize_with_checks([VotedKernelClassifier()])
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([VotedKernelClassifierCV()])
def test_search(estimator, check):
    check(estimator)
