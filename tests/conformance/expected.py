"""Checks of scikit-learn that fail for reasons of their own."""

import sklearn
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version

INTEGERS = "the check subtracts a mean from integers in place, which scikit-learn 1.7.1 mended"


def expected_failures(estimator):
    """The checks that fail for this estimator, with the reason."""
    tags = get_tags(estimator).input_tags
    old = parse_version(sklearn.__version__) < parse_version("1.7.1")
    if old and tags.categorical and not tags.allow_nan:
        return {"check_positive_only_tag_during_fit": INTEGERS}
    return {}
