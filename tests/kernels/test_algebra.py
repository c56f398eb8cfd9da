"""Sums, products, powers and multiples of kernels against the same of matrices."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import multikernel as mk

G, L, P = mk.Gaussian(0.5), mk.Linear(columns=[0, 1]), mk.Polynomial(2, gamma=0.3)
leaves = st.sampled_from([G, L, P, mk.Laplacian(0.2), mk.Sigmoid(0.1)])


def evaluate(kernel, X):
    """The same by the algebra of matrices, over the tree of the kernel."""
    kind = type(kernel).__name__
    if kind == "Sum":
        return sum(evaluate(part, X) for part in kernel.parts)
    if kind == "Product":
        return np.prod([evaluate(part, X) for part in kernel.parts], axis=0)
    if kind == "Scaled":
        return kernel.factor * evaluate(kernel.kernel, X)
    if kind == "Power":
        return evaluate(kernel.kernel, X) ** kernel.exponent
    return kernel(X)


@pytest.mark.parametrize(
    "kernel, matrix",
    [
        (G + L, lambda g, l, p: g + l),
        (G * L, lambda g, l, p: g * l),
        (L**3, lambda g, l, p: l * l * l),
        (2.5 * G, lambda g, l, p: 2.5 * g),
        (G * 2.5, lambda g, l, p: 2.5 * g),
        (np.float64(2.5) * G, lambda g, l, p: 2.5 * g),
        (2 * G + 3 * (L * P) ** 2, lambda g, l, p: 2 * g + 3 * (l * p) ** 2),
        (0.5 * (G + L) * P, lambda g, l, p: 0.5 * (g + l) * p),
        ((2 * G) * (3 * L), lambda g, l, p: 6 * g * l),
    ],
    ids=lambda v: repr(v) if isinstance(v, mk.Kernel) else "",
)
def test_values(kernel, matrix, rng):
    X, Z = rng.normal(size=(8, 3)), rng.normal(size=(5, 3))
    np.testing.assert_allclose(kernel(X, Z), matrix(G(X, Z), L(X, Z), P(X, Z)), rtol=1e-13)
    np.testing.assert_allclose(kernel(X), matrix(G(X), L(X), P(X)), rtol=1e-13)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-12)


trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda ab: ab[0] + ab[1]),
        st.tuples(inner, inner).map(lambda ab: ab[0] * ab[1]),
        st.tuples(st.sampled_from([0.5, 2, 3.0]), inner).map(lambda ck: ck[0] * ck[1]),
        st.tuples(inner, st.integers(1, 3)).map(lambda km: km[0] ** km[1]),
    ),
    max_leaves=6,
)


@given(kernel=trees)
def test_what_is_printed_is_what_is_meant(kernel):
    """Python reads the printed kernel back as a kernel with the same values."""
    X = np.random.default_rng(0).normal(size=(5, 3))
    back = eval(repr(kernel), {name: getattr(mk, name) for name in mk.__all__})
    want = evaluate(kernel, X)
    np.testing.assert_allclose(kernel(X), want, rtol=1e-11)
    np.testing.assert_allclose(back(X), want, rtol=1e-11)
    assert hash(kernel) == hash(copy.deepcopy(kernel))
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    if kernel.is_psd:
        K = kernel(X)
        assert np.linalg.eigvalsh(K).min() >= -1e-11 * np.abs(K).max()


@pytest.mark.parametrize(
    "kernel, text",
    [
        (G + L, "Gaussian(gamma=0.5) + Linear(columns=[0, 1])"),
        ((G + L) * G, "(Gaussian(gamma=0.5) + Linear(columns=[0, 1])) * Gaussian(gamma=0.5)"),
        (3 * (G + G), "3 * (Gaussian(gamma=0.5) + Gaussian(gamma=0.5))"),
        (2 * (3 * G), "6 * Gaussian(gamma=0.5)"),
        (G**2, "Gaussian(gamma=0.5)**2"),
        ((2 * G) ** 2, "(2 * Gaussian(gamma=0.5))**2"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_repr(kernel, text):
    assert repr(kernel) == kernel.name == text


def test_associative_ones_are_flat():
    assert (G + L) + P == G + (L + P)
    assert (G * L) * P == G * (L * P)
    assert G + L != L + G  # a value, not a theorem


def test_psd():
    assert (G + L).is_psd and (G * L).is_psd and (2 * G).is_psd and (G**2).is_psd
    bad = mk.Sigmoid()
    assert not any(k.is_psd for k in (G + bad, G * bad, 2 * bad, bad**2))


def test_columns_by_name_are_resolved_inside(rng):
    kernel = 2 * (mk.Linear(columns="a") + mk.Gaussian(columns="b")) ** 2 * mk.Linear(columns="a")
    X = rng.normal(size=(4, 2))
    x, z = X[:, :1], X[:, 1:]
    want = 2 * (mk.Linear()(x) + mk.Gaussian()(z)) ** 2 * mk.Linear()(x)
    np.testing.assert_allclose(kernel.resolve(2, ["a", "b"])(X), want)


@pytest.mark.parametrize(
    "make, error, match",
    [
        (lambda: 0 * G, ValueError, "multiplied by must be a positive"),
        (lambda: -1 * G, ValueError, "multiplied by must be a positive"),
        (lambda: np.inf * G, ValueError, "multiplied by"),
        (lambda: G**0, ValueError, "exponent must be a positive whole number"),
        (lambda: G**-1, ValueError, "exponent"),
        (lambda: G**0.5, TypeError, "positive whole power"),
        (lambda: G**True, TypeError, "positive whole power"),
        (lambda: G + 1, TypeError, "unsupported operand"),
        (lambda: G * "a", TypeError, ""),
    ],
)
def test_what_is_no_kernel(make, error, match):
    with pytest.raises(error, match=match):
        make()
