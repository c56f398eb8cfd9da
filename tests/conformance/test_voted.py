"""scikit-learn's own checks for the voted classifiers, default-constructed."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from multikernel.estimators.voted import VotedKernelClassifier
from multikernel.estimators.voted_search import VotedKernelClassifierCV
from tests.conformance.expected import expected_failures


@parametrize_with_checks([VotedKernelClassifier()], expected_failed_checks=expected_failures)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([VotedKernelClassifierCV()], expected_failed_checks=expected_failures)
def test_search(estimator, check):
    check(estimator)
