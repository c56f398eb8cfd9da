"""Factors in blocks: the same as those of LAPACK, whatever the block."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from multikernel import _cholesky


@pytest.fixture(params=[None, (0, 7), (5, 64)])
def blocks(request, monkeypatch):
    if request.param is not None:
        monkeypatch.setattr(_cholesky, "MAX_ROWS", request.param[0])
        monkeypatch.setattr(_cholesky, "BLOCK", request.param[1])


def definite(rng, n, dtype=np.float64, order="C"):
    A = rng.normal(size=(n, n))
    return np.array(A @ A.T + n * np.eye(n), dtype=dtype, order=order)


@pytest.mark.parametrize("n", [1, 6, 7, 30])
@pytest.mark.parametrize("order", ["C", "F"])
def test_factor_solve_and_inverse(rng, blocks, n, order):
    A = definite(rng, n, order=order)
    L = A.copy(order="K")
    L[np.triu_indices(n, 1)] = 99.0
    _cholesky.factor(L)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), rtol=1e-12, atol=1e-12)
    assert np.all(L[np.triu_indices(n, 1)] == 99.0)  # polishing reads it if the factor fails
    for B in (rng.normal(size=n), rng.normal(size=(n, 3))):
        np.testing.assert_allclose(A @ _cholesky.solve(L, B), B, rtol=1e-11, atol=1e-11)
    M = L.copy(order="K")
    _cholesky.invert_factor(M)
    np.testing.assert_allclose(np.tril(M) @ np.tril(L), np.eye(n), rtol=1e-11, atol=1e-12)
    _cholesky.invert(L)
    np.testing.assert_allclose(np.tril(L), np.tril(np.linalg.inv(A)), rtol=1e-11, atol=1e-13)


def test_single_precision_stays_single(rng, blocks):
    A = definite(rng, 20, np.float32)
    L = A.copy()
    _cholesky.factor(L)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), rtol=1e-4)
    assert L.dtype == np.float32


@pytest.mark.parametrize("position", [0, 12, 29])
def test_an_indefinite_matrix_is_refused(rng, blocks, position):
    A = definite(rng, 30)
    A[position, position] = -1.0
    with pytest.raises(LinAlgError, match="not positive definite"):
        _cholesky.factor(A)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_symmetric_product(rng, blocks, sign):
    out, half = np.tril(rng.normal(size=(23, 23))), rng.normal(size=(5, 23))
    expected = np.tril(out + sign * half.T @ half)
    _cholesky.add_product(out, half, sign)
    np.testing.assert_allclose(np.tril(out), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_twenty_thousand_rows():
    """LAPACK of OpenBLAS 0.3.30 with two threads ended the process at this size."""
    n = 20_000
    A = np.full((n, n), 0.5)
    A[np.diag_indices(n)] = 2.0
    _cholesky.factor(A)
    x = _cholesky.solve(A, np.ones(n))
    np.testing.assert_allclose(x, 1.0 / (1.5 + 0.5 * n), rtol=1e-9)
