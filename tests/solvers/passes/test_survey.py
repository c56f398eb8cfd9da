"""The random sample of rows that the first pass draws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from multikernel.kernels.sequences.table import Table
from multikernel.solvers.passes.survey import SurveyOfChunk, check_labels


def words(rows):
    return Table([np.array([f"word {i}" for i in rows], dtype=object)])


def one_hot(rows):
    """The same values in every chunk; only their columns differ."""
    return sp.csr_matrix((np.ones(len(rows)), (np.arange(len(rows)), rows)), (len(rows), 4000))


@pytest.mark.parametrize(
    "make", [words, one_hot, lambda rows: np.array(rows, dtype=float)[:, None]]
)
def test_chunks_of_equal_length_are_sampled_independently(make):
    survey = SurveyOfChunk(200, classification=False)
    found = None
    for start in range(0, 4000, 1000):
        rows = range(start, start + 1000)
        part = survey((make(rows), np.array(rows, dtype=float), None))
        found = part if found is None else found + part
    assert len(found.y) == 200
    # Of 200 rows, places within chunks of 1,000 coincide for some 15 (at most 40 by chance).
    assert len(np.unique(found.y % 1000)) > 160
    # Every chunk gets its part: 50 of 200, with a standard deviation of six.
    assert np.all(np.abs(np.bincount((found.y // 1000).astype(int)) - 50) < 25)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([0.0, 1.5, 2.0]), r"continuous \(1.5\)"),
        (np.array([0.0, 1.5, 2.0], dtype=object), r"continuous \(1.5\)"),
        (np.array([[0], [1], [1]]), r"have shape \(3, 1\).* y.ravel\(\)"),
        (np.array([["a"], ["b"], ["b"]]), r"have shape \(3, 1\).* y.ravel\(\)"),
        (np.array([[0, 1], [1, 0], [1, 1]]), "these rows have 2 target columns"),
        (np.array([0, "a", 1], dtype=object), r"texts \('a'\) and others \(0\)"),
        (np.array([0, {}, 1], dtype=object), "numbers or texts; got {}, a dict"),
    ],
)
def test_targets_that_are_no_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        check_labels(y)


@pytest.mark.parametrize("kind", [float, int, bool, str])
def test_labels_of_any_type_are_labels(kind):
    check_labels(np.array([0, 1, 1]).astype(kind))
    check_labels(np.array([0, 1, 1]).astype(kind).astype(object))
