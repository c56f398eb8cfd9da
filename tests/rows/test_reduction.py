"""Passes over rows: the same chunks, the same tree, the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from multikernel.rows import open_rows, reduce_rows
from multikernel.rows.reduction import Tree
from multikernel.tables import DataError


def naive_tree(values):
    """The slow twin: neighbours, then pairs of neighbours, and so on; the odd one goes up alone."""
    while len(values) > 1:
        pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
        values = [f"({pair[0]}{pair[1]})" if len(pair) == 2 else pair[0] for pair in pairs]
    return values[0]


@given(st.integers(1, 200))
def test_the_tree_depends_on_the_number_of_leaves_alone(n):
    leaves = [f"{i}." for i in range(n)]
    tree = Tree(lambda a, b: f"({a}{b})")
    for leaf in leaves:
        tree.add(leaf)
    assert tree.result() == naive_tree(leaves)


@given(st.integers(1, 100), st.integers(0, 4))
def test_a_tree_of_full_subtrees_is_the_same_tree(n, level):
    """What is submitted to a cluster in parts is the tree of all pieces."""
    leaves, size = [f"{i}." for i in range(n)], 2**level
    parts = [naive_tree(leaves[i : i + size]) for i in range(0, n, size)]
    tree = Tree(lambda a, b: f"({a}{b})")
    for part in parts[:-1]:
        tree.add(part)
    tree.levels.append((-1, parts[-1]))
    assert tree.result() == naive_tree(leaves)


def moments(chunk):
    Z = np.column_stack([chunk.X, chunk.y])
    return Z.T @ Z


def data(rng, n=1000, d=5):
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-8, 8, size=(n, 1))
    return X, rng.normal(size=n)


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_threads_do_not_change_a_bit(rng, n_jobs):
    rows = open_rows(*data(rng), chunk_rows=17)
    one = reduce_rows(rows, moments, np.add)
    assert np.array_equal(one, reduce_rows(rows, moments, np.add, n_jobs=n_jobs))


def test_the_sum_is_that_of_all_rows(rng):
    X, y = data(rng)
    Z = np.column_stack([X, y])
    total = reduce_rows(open_rows(X, y, chunk_rows=64), moments, np.add)
    np.testing.assert_allclose(total, Z.T @ Z, rtol=1e-12)


def test_chunks_come_in_order_with_their_places(rng):
    X, y = data(rng, 50)
    w = rng.random(50)
    rows = open_rows(X, y, sample_weight=w, chunk_rows=16)
    for _ in range(2):
        parts = list(rows)
        assert [chunk.first_row for chunk in parts] == [0, 16, 32, 48]
        assert np.array_equal(np.vstack([X for X, _, _ in parts]), X)
        assert np.array_equal(np.hstack([y for _, y, _ in parts]), y)
        assert np.array_equal(np.hstack([w for _, _, w in parts]), w)


def test_a_memory_map_and_a_sparse_matrix_give_the_same_rows(rng, tmp_path):
    X, y = data(rng, 200)
    X[np.abs(X) < 1] = 0
    np.save(tmp_path / "X.npy", X)
    expected = reduce_rows(open_rows(X, y, chunk_rows=64), moments, np.add)
    for source in (str(tmp_path / "X.npy"), np.load(tmp_path / "X.npy", mmap_mode="r")):
        rows = open_rows(source, y, chunk_rows=64)
        assert np.array_equal(reduce_rows(rows, moments, np.add), expected)
    sparse = open_rows(sp.csr_matrix(X), y, chunk_rows=64)
    found = reduce_rows(sparse, lambda c: (c.X.T @ c.X).toarray(), np.add)
    np.testing.assert_allclose(found, expected[:-1, :-1], rtol=1e-12)


def test_a_missing_value_is_named_with_its_place(rng):
    X, y = data(rng, 8 * 800)
    X[8 * 731 + 3, 2] = np.nan
    message = r"Column 'x2' is missing \(NaN\) in row 5851 of X \(counted from 0; chunk 731\)"
    with pytest.raises(DataError, match=message):
        reduce_rows(open_rows(X, y, chunk_rows=8), moments, np.add, n_jobs=2)
    assert len(list(open_rows(X, y, chunk_rows=8, allow_missing=True))) == 800
    X[8 * 731 + 3, 2] = np.inf
    with pytest.raises(DataError, match="'x2' is infinite in row 5851"):
        list(open_rows(X, y, chunk_rows=8, allow_missing=True))
    with pytest.raises(DataError, match="'x2' is infinite in row 5851"):
        list(open_rows(sp.csr_matrix(X), y, chunk_rows=8))
    y[77] = np.nan
    with pytest.raises(DataError, match="target is missing or infinite in row 77 of X"):
        list(open_rows(X, y, chunk_rows=8))


def test_large_numbers_are_no_missing_values():
    X = np.full((10, 3), 1e308)  # their sum is infinite, they are not
    assert len(list(open_rows(X))) == 1


def test_rows_that_change_between_passes_are_noticed(rng):
    X, y = data(rng)
    rows = open_rows(X, y, chunk_rows=100)
    first = reduce_rows(rows, moments, np.add)
    assert np.array_equal(reduce_rows(rows, moments, np.add), first)
    X[512, 3] += 1
    with pytest.raises(DataError, match=r"chunk 500:600 has changed between two passes.*values"):
        reduce_rows(rows, moments, np.add)
    with pytest.raises(DataError, match="changed between two passes"):
        list(rows)


def test_rows_without_rows(rng):
    with pytest.raises(DataError, match="There are no rows"):
        reduce_rows(open_rows(np.empty((0, 3))), lambda chunk: 1, int.__add__)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: open_rows(np.zeros(3)), "must be a matrix of shape .*reshape"),
        (lambda: open_rows(np.zeros((3, 2)), np.zeros(4)), "X has 3 rows, but target has 4"),
        (lambda: open_rows(np.zeros((3, 2)), chunk_rows=0), "chunk_rows must be a positive"),
        (lambda: list(open_rows(np.array([["a", "b"]]))), "must hold numbers; it has dtype <U1"),
        (
            lambda: list(open_rows(np.zeros((3, 2)), sample_weight=np.array([1, -2.0, 1]))),
            r"sample weight is negative \(-2\) in row 1 of X",
        ),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(DataError, match=message):
        make()
