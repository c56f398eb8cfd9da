"""A few kernels that stand for many give what all of them give, to the digits of their type."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import multikernel as mk
from multikernel.grams import _families, _loops, _skeletons
from multikernel.grams._families import Family
from multikernel.grams._passes import EXP_L1, EXP_SQ, POLY
from multikernel.grams._skeletons import Part, Skeleton, choose, distances

N = 700


def make(rng, kind=EXP_SQ, p=60, dtype=np.float32, n=N):
    """Two groups: many exponentials, half of them less one, and a few kernels of other kinds."""
    Z = rng.standard_normal((n, 7)).astype(dtype)
    rates = np.geomspace(0.01, 5.0, p) / 7
    params = np.zeros((p + 5, 3))
    params[:p, 0] = rates
    params[p] = 0.5, 1.0, 2.0
    params[p + 1 :, 0] = [0.1, 0.2, 0.3, 0.4]
    kinds = np.array([kind] * p + [POLY] + [EXP_SQ] * 4)
    group = np.array([0] * (p + 1) + [1] * 4)
    shifted = np.append(np.arange(p) < p // 2, np.zeros(5, dtype=bool))
    return Family(Z, np.array([0, 5, 7]), group, kinds, params, shifted)


def plainly(family, dtype=np.float32):
    """The same, every kernel for itself."""
    Z = family.Z.astype(dtype)
    plain = Family(Z, family.offsets, family.group, family.kind, family.params, family.shifted)
    plain.__dict__["skeleton"] = None
    return plain


@pytest.mark.parametrize("kind", [EXP_SQ, EXP_L1])
@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_are_those_of_every_kernel(kind, weighted, rng):
    family = make(rng, kind)
    plain, exact = plainly(family), plainly(family, np.float64)
    assert len(family.skeleton.kernels) <= _skeletons.WORTH * family.p
    assert {60, 61, 62, 63, 64} <= set(family.skeleton.kernels.tolist())  # others: themselves
    Y = rng.standard_normal((N, 2))
    omega = rng.uniform(0.5, 2.0, N) if weighted else None
    combined = rng.uniform(0.1, 1.0, family.p)
    got, want, true = (
        _loops.statistics(f, Y, omega, True, 1, combined) for f in (family, plain, exact)
    )
    size = np.sqrt(np.diag(true.products))
    np.testing.assert_array_equal(got.diagonals, want.diagonals)
    for field in ("row_sums", "a", "products", "combined"):
        a, b, c = (getattr(s, field) for s in (got, want, true))
        if field == "products":
            unit = np.outer(size, size)
        elif field == "combined":
            unit = np.abs(c).max()
        else:
            unit = np.abs(c).max(axis=tuple(range(1, c.ndim)), keepdims=True)
            if field == "a":
                unit = size * float((Y**2).sum())
        assert np.max(np.abs(a - c) / unit) <= 5 * np.max(np.abs(b - c) / unit) + 1e-6
    squares = _loops.statistics(family, Y, omega, False, 1).products
    np.testing.assert_allclose(squares, np.diag(got.products), rtol=1e-6)
    total = N if omega is None else omega.sum()
    r, weight = true.row_sums / total, np.ones(N) if omega is None else omega
    g = r @ weight / total
    a, b = (_loops.centred_statistics(f, r, g, Y, omega, True, 1) for f in (family, exact))
    unit = np.sqrt(np.outer(np.diag(b.products), np.diag(b.products)))
    assert np.max(np.abs(a.products - b.products) / unit) <= 2e-5
    norms = _loops.centred_products(family, r, g, omega, False, 1)
    np.testing.assert_allclose(norms, np.diag(b.products), rtol=2e-5)


def test_products_with_vectors(rng):
    family = make(rng)
    V = rng.standard_normal((N, 2))
    V[::3] = 0.0
    got, want = (_loops.matvecs(f, V, 1) for f in (family, plainly(family)))
    unit = np.abs(want).max(axis=(1, 2), keepdims=True)
    assert np.max(np.abs(got - want) / unit) < 2e-6
    some = np.ascontiguousarray(family.Z[:50])
    part = family.on(some)
    assert part.skeleton is family.skeleton
    got, want = (_loops.matvecs(f, V[:50], 1) for f in (part, plainly(part)))
    assert np.max(np.abs(got - want) / np.abs(want).max(axis=(1, 2), keepdims=True)) < 2e-6


def test_the_same_bits_with_any_number_of_threads(rng):
    """Also of the linear algebra around the pass, which is not ours."""
    Z, Y = make(rng, p=300).Z, rng.standard_normal((N, 1))
    found = []
    for threads in (1, 2):
        family = make(np.random.default_rng(0), p=300)
        family = Family(Z, family.offsets, family.group, family.kind, family.params, family.shifted)
        with threadpool_limits(threads):
            found.append((family.skeleton, _loops.statistics(family, Y, None, True, threads)))
    (one, first), (two, second) = found
    for a, b in zip(one.parts, two.parts, strict=True):
        np.testing.assert_array_equal(a.coefficients, b.coefficients)
    for field in ("row_sums", "a", "products"):
        np.testing.assert_array_equal(getattr(first, field), getattr(second, field))


def test_the_algebra(rng):
    """`expand`, `expand_products` and `reduce` are products with one matrix."""
    coefficients = np.zeros((4, 2))
    coefficients[[0, 2], [0, 1]] = 1.0
    coefficients[[1, 3]] = rng.standard_normal((2, 2))
    part = Part(np.array([1, 2, 4, 5]), np.array([1, 4]), coefficients)
    skeleton = Skeleton.of(7, [part])
    np.testing.assert_array_equal(skeleton.kernels, [0, 1, 3, 4, 6])
    C = skeleton.expand(np.eye(5))
    np.testing.assert_allclose(C[skeleton.kernels], np.eye(5))
    np.testing.assert_allclose(C[[2, 5]][:, [1, 3]], coefficients[[1, 3]])
    A, B = rng.standard_normal((5, 3, 2)), rng.standard_normal((5, 5))
    np.testing.assert_allclose(skeleton.expand(A), np.tensordot(C, A, 1), atol=1e-14)
    np.testing.assert_allclose(skeleton.expand_products(B + B.T, True), C @ (B + B.T) @ C.T)
    diagonal = skeleton.expand_products(B + B.T, False)
    np.testing.assert_allclose(diagonal, np.diag(C @ (B + B.T) @ C.T))
    w = rng.standard_normal(7)
    np.testing.assert_allclose(skeleton.reduce(w), C.T @ w)


def test_choose(rng):
    low = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 12))
    columns, C = choose(low, 1e-10, 8)
    assert len(columns) == 3
    np.testing.assert_allclose(low[:, columns] @ C, low, atol=1e-10)
    assert choose(rng.standard_normal((40, 12)), 1e-10, 8) is None
    assert len(choose(np.zeros((40, 12)), 1e-10, 8)[0]) == 0


def test_the_error_holds_between_the_nodes():
    """The nodes at which functions are compared are close enough for all distances."""
    rates = np.geomspace(0.05, 20.0, 80)
    d = distances(20.0, 9.0)
    columns, C = choose(np.exp(-np.outer(d, rates)), 1e-11, 60)
    fine = np.concatenate([np.linspace(0, 9.0, 50_000), np.geomspace(1e-9, 9.0, 50_000)])
    F = np.exp(-np.outer(fine, rates))
    assert np.abs(F[:, columns] @ C - F).max() < 3e-11
    assert np.abs(C).sum(axis=0).max() < 30


def test_where_there_is_none(rng):
    assert make(rng, dtype=np.float64).skeleton is None
    assert make(rng, p=20).skeleton is None
    assert make(rng, n=_families.FEW_FROM - 1).skeleton is None
    equal = make(rng)
    equal = Family(
        np.ones_like(equal.Z), equal.offsets, equal.group, equal.kind, equal.params, equal.shifted
    )
    assert equal.skeleton is None
    apart = make(rng)
    apart.params[:60, 0] = np.geomspace(1e-30, 1e30, 60)
    assert apart.skeleton is None


@pytest.mark.parametrize("rule", ["alignf", mk.LpNorm(4 / 3, tol=1e-4), mk.L1(tol=1e-4)])
def test_a_model_from_single_precision_is_that_from_double(rule, rng):
    """A hundred Gaussians: objective, alignments and decisions, with a skeleton and without."""
    X = rng.standard_normal((800, 5))
    y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.8, 1, -1)
    bank = mk.gaussians(np.geomspace(0.005, 5.0, 100))
    single = mk.MultiKernelClassifier(bank, rule).fit(X.astype(np.float32), y)
    double = mk.MultiKernelClassifier(bank, rule).fit(X.astype(np.float32).astype(np.float64), y)
    np.testing.assert_allclose(single.kernel_alignments_, double.kernel_alignments_, atol=2e-6)
    assert single.alignment_ == pytest.approx(double.alignment_, rel=2e-4)
    assert single.objective_ == pytest.approx(double.objective_, rel=5e-4)
    assert np.mean(single.predict(X) == double.predict(X)) > 0.995
