"""Checks of flags, names and functions that parameters share."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from multikernel._options import check_choice, check_flag, takes_arguments


@pytest.mark.parametrize("value", [True, 1, np.True_, np.int8(1)])
def test_what_is_a_flag(value):
    assert check_flag("Owner", "flag", value) is True
    assert check_flag("Owner", "flag", not value) is False


@pytest.mark.parametrize(
    "value", [None, 2, 0.0, "yes", np.ones(1), np.eye(2), sp.eye(2), np.timedelta64(1, "s")]
)
def test_what_is_no_flag(value):
    with pytest.raises(TypeError, match="Owner: flag must be True or False; got"):
        check_flag("Owner", "flag", value)


def test_what_is_a_choice():
    check_choice("Owner", "how", "b", ("a", "b"))
    check_choice("Owner", "how", None, ("a", None))


@pytest.mark.parametrize("value", [None, "c", 1, b"a", [], np.array(["a"]), sp.eye(2)])
def test_what_is_no_choice(value):
    with pytest.raises(ValueError, match="Owner: how must be 'a' or 'b'; got"):
        check_choice("Owner", "how", value, ("a", "b"))


def test_many_choices_are_listed():
    with pytest.raises(ValueError, match="how must be one of 'a', 'b', 'c' or None; got 1"):
        check_choice("Owner", "how", 1, ("a", "b", "c", None))


@pytest.mark.parametrize(
    ("function", "count", "fits"),
    [
        (lambda: 1, 0, True),
        (lambda: 1, 1, False),
        (lambda x, y: 1, 1, False),
        (lambda *every: 1, 3, True),
        (object, 1, False),
        (int, 1, True),
        (3, 1, False),
    ],
)
def test_how_many_arguments_a_function_takes(function, count, fits):
    assert takes_arguments(function, count) is fits
