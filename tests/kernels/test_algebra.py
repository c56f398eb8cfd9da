"""Sums, products, powers and multiples of kernels against the same of matrices."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
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


def real_power(pair):
    kernel, exponent = pair
    return kernel**exponent if kernel.is_infinitely_divisible else kernel


trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda ab: ab[0] + ab[1]),
        st.tuples(inner, inner).map(lambda ab: ab[0] * ab[1]),
        st.tuples(st.sampled_from([0.5, 2, 3.0]), inner).map(lambda ck: ck[0] * ck[1]),
        st.tuples(inner, st.integers(1, 3)).map(lambda km: km[0] ** km[1]),
        st.tuples(inner, st.sampled_from([0.25, 1.5])).map(real_power),
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
        (G**2.0, "Gaussian(gamma=0.5)**2"),
        (G**0.5, "Gaussian(gamma=0.5)**0.5"),
        ((G * mk.Laplacian(1)) ** 1.5, "(Gaussian(gamma=0.5) * Laplacian(gamma=1))**1.5"),
        (G ** (1 / 3), "Gaussian(gamma=0.5)**0.333333"),
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


@pytest.mark.parametrize("exponent", [0.01, 0.3, 1.7, 12.5])
@pytest.mark.parametrize(
    "kernel",
    [
        G,
        mk.Laplacian(0.2),
        3 * G,
        G * mk.Laplacian(0.4),
        (2 * G * G) ** 0.7,
        mk.Gaussian(columns=1),
    ],
    ids=repr,
)
def test_real_powers(kernel, exponent, rng):
    X, Z = rng.normal(size=(12, 3)), rng.normal(size=(5, 3))
    power = kernel**exponent
    np.testing.assert_allclose(power(X, Z), kernel(X, Z) ** exponent, rtol=1e-14)
    np.testing.assert_allclose(power.diag(X), np.diag(power(X)), rtol=1e-12)
    np.testing.assert_allclose(power(sp.csr_matrix(X), sp.csr_matrix(Z)), power(X, Z), rtol=1e-12)
    assert power.is_psd and power.is_infinitely_divisible
    assert np.linalg.eigvalsh(power(X))[0] >= -1e-12
    assert power.resolve(3, None)(X).shape == (12, 12)


def test_a_power_of_a_gaussian_is_a_gaussian(rng):
    X = rng.normal(size=(6, 3))
    np.testing.assert_allclose((G**0.3)(X), mk.Gaussian(0.15)(X), rtol=1e-13)
    np.testing.assert_allclose((mk.Laplacian(2) ** 0.3)(X), mk.Laplacian(0.6)(X), rtol=1e-13)


def test_whole_powers_are_the_same_however_they_are_written():
    assert G**2 == G**2.0 == G ** np.float64(2) == G ** np.int64(2)
    assert (G**2.0).exponent == 2 and isinstance((L**2.0).exponent, int)


def test_why_other_kernels_have_no_real_powers():
    """The square root of a positive semidefinite matrix, entry by entry, need not be one."""
    x = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    K = mk.Linear()(x)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    assert np.linalg.eigvalsh(K**0.5)[0] < -0.1


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
        (lambda: G**0, ValueError, "exponent must be a positive finite number; got 0"),
        (lambda: G**-1, ValueError, "exponent"),
        (lambda: G**np.nan, ValueError, "exponent"),
        (lambda: G**np.inf, ValueError, "exponent"),
        (lambda: G ** "2", TypeError, "must be positive"),
        (lambda: G**True, TypeError, "must be positive"),
        (lambda: L**0.5, ValueError, r"Linear\(columns=\[0, 1\]\) \*\* 0.5: .* Use an integer exp"),
        (lambda: P**1.5, ValueError, "only if the kernel is infinitely divisible"),
        (lambda: (G + G) ** 0.5, ValueError, "only if the kernel is infinitely divisible"),
        (lambda: (G * L) ** 0.5, ValueError, "only if the kernel is infinitely divisible"),
        (lambda: mk.Sigmoid() ** 0.5, ValueError, "only if the kernel is infinitely divisible"),
        (lambda: mk.Spectrum(2) ** 0.5, ValueError, "only if the kernel is infinitely divisible"),
        (lambda: mk.precomputed([np.eye(3)])[0] ** 0.5, ValueError, "infinitely divisible"),
        (lambda: G + 1, TypeError, "unsupported operand"),
        (lambda: G * "a", TypeError, "non-int of type .Gaussian"),
    ],
)
def test_what_is_no_kernel(make, error, match):
    with pytest.raises(error, match=match):
        make()
