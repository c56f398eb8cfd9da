"""Every public class, function and parameter against the odd values; a few cases of each kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multikernel as mk
from tests.fuzz.cases import LABELS, MAKERS, SCALARS, TABLES, X
from tests.fuzz.judge import judge
from tests.fuzz.odd_values import Odd, sample_weights, targets


def test_the_table_is_long_enough():
    values = [*SCALARS, *TABLES, *targets(LABELS), *sample_weights(24)]
    assert len(values) >= 300


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
@given(data=st.data())
def test_odd_input_is_refused_clearly_or_answered_rightly(maker, data):
    name, act = maker(lambda values: data.draw(st.sampled_from(values)))
    verdict = judge(act)
    assert verdict.kind != "WRONG", f"{name}: {verdict.text}"


def test_functions_that_write_into_their_arguments_change_nothing():
    before = X.copy()
    model = mk.MultiKernelClassifier([mk.Callable(_spoil), mk.Gaussian(1.0)], "uniform").fit(
        X, LABELS
    )
    model.predict(X)
    np.testing.assert_array_equal(X, before)


def _spoil(A, B):
    K = np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))
    A[:] = 99.0
    B[:] = -99.0
    return K


def test_odd_values_have_names():
    assert repr(Odd("a name", 1)) == "a name"


def _lacks(text):
    def act():
        raise ImportError(text)

    return act


def test_an_error_that_names_the_extra_is_clear():
    assert judge(_lacks("needs rapidfuzz: pip install 'multikernel[sequences]'.")).kind == "refused"
    assert judge(_lacks("No module named 'rapidfuzz'")).kind == "WRONG"
