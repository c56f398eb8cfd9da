"""Banks of products and powers: values, families that merge, and every weighting on them."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement
from math import prod

import numpy as np
import pytest

import multikernel as mk
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.products import powers, products
from tests.estimators.cases import WEIGHTINGS, cosine, iris, waves

X = np.random.default_rng(0).normal(size=(12, 3))
BASE = [
    mk.Gaussian(0.3),
    mk.Linear(columns=[0, 1]),
    mk.Polynomial(2, 0.5, 0.7),
    mk.Sigmoid(0.2, 0.1),
    mk.Laplacian(0.4),
    mk.Callable(cosine),
    2.0 * mk.Gaussian(0.2),
    mk.Linear() + mk.Gaussian(1.0),
]


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("repeated", [True, False])
def test_values_are_products_of_values(degree, repeated):
    bank = products(BASE, degree, repeated=repeated)
    choose = combinations_with_replacement if repeated else combinations
    expected = [prod(kernel(X) for kernel in part) for part in choose(BASE, degree)]
    assert len(bank) == len(expected)
    for kernel, K in zip(bank, expected, strict=True):
        np.testing.assert_allclose(kernel(X), K, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-11, atol=1e-12)
        assert kernel.is_psd <= (np.linalg.eigvalsh(K)[0] > -1e-9 * np.abs(K).max())


def test_lower_degrees_come_first():
    bank = products(BASE[:3], 3, lower=True)
    each = [*products(BASE[:3], 1), *products(BASE[:3], 2), *products(BASE[:3], 3)]
    assert list(bank) == each
    assert list(products(BASE, 1)) == BASE


def test_families_stay_families():
    bank = products(mk.gaussians([0.1, 0.2]), 2)
    assert list(bank) == list(mk.gaussians([0.2, 0.3, 0.4]))
    assert "shared" in str(bank.plan(X)) and "dense" not in str(bank.plan(X))
    assert list(products([mk.Laplacian(1.0)], 2)) == [mk.Laplacian(2.0)]
    assert list(products([mk.Linear()], 3)) == [mk.Polynomial(3, coef0=0.0)]
    assert list(products(mk.polynomials([1, 2]), 2)) == list(mk.polynomials([2, 3, 4]))
    assert list(powers([mk.Gaussian(1.0)], [1, 2])) == [mk.Gaussian(1.0), mk.Gaussian(2.0)]


def test_what_only_looks_alike_is_not_merged():
    """Other columns, another distance, another constant: products, not members of the family."""
    for one, two in (
        (mk.Gaussian(1.0, columns=[0]), mk.Gaussian(1.0, columns=[1])),
        (mk.Gaussian(1.0), mk.Laplacian(1.0)),
        (mk.Polynomial(2, 1.0), mk.Polynomial(2, 2.0)),
        (mk.Polynomial(2, 1.0), mk.Linear()),
    ):
        (kernel,) = products([one, two], 2, repeated=False)
        np.testing.assert_allclose(kernel(X), one(X) * two(X), rtol=1e-12)
        assert "*" in repr(kernel)


def test_coinciding_products_are_there_once():
    assert list(products(mk.gaussians([1.0, 2.0, 3.0]), 2)) == list(
        mk.gaussians([2.0, 3.0, 4.0, 5.0, 6.0])
    )
    assert len(products(mk.gaussians([0.1, 0.2, 0.3]), 2)) == 5  # 0.1 + 0.3 and 0.2 + 0.2


def test_a_scaled_product_of_gaussians_is_a_scaled_gaussian():
    (kernel,) = products([3.0 * mk.Gaussian(1.0), 2.0 * mk.Gaussian(0.5)], 2, repeated=False)
    assert kernel == 6.0 * mk.Gaussian(1.5)


def test_real_powers():
    """Powers of a family stay in the family; a grid of rates is a grid of powers."""
    assert list(powers([mk.Gaussian(2.0)], [0.25, 0.5, 1])) == list(mk.gaussians([0.5, 1.0, 2.0]))
    assert list(powers([4.0 * mk.Laplacian(1.0)], [0.5])) == [2.0 * mk.Laplacian(0.5)]
    base = [mk.Gaussian(0.3), mk.Gaussian(0.3, columns=[0]) * mk.Laplacian(0.4)]
    bank = powers(base, [0.5, 1.5])
    expected = [kernel(X) ** degree for kernel in base for degree in (0.5, 1.5)]
    for kernel, K in zip(bank, expected, strict=True):
        np.testing.assert_allclose(kernel(X), K, rtol=1e-12)
    assert bank.names[2] == "(Gaussian(gamma=0.3, columns=0) * Laplacian(gamma=0.4))**0.5"


def test_huge_powers_cost_nothing():
    base = [mk.Gaussian(2.0), mk.Linear(), mk.Gaussian(2.0) * mk.Linear(), 2.0 * mk.Gaussian(1.0)]
    n = 10**9
    assert list(powers(base[:3], [n])) == [
        mk.Gaussian(2.0 * n),
        mk.Polynomial(n, coef0=0.0),
        base[2] ** n,
    ]
    assert list(powers(base, [1])) == base
    with pytest.raises(ValueError, match="finite"):
        powers(base[3:], [n])


def test_products_of_given_matrices():
    matrices = [kernel(X) for kernel in BASE[:2]]
    bank = products(mk.precomputed(matrices), 2)
    ids = mk.sample_ids(12)
    expected = [matrices[0] ** 2, matrices[0] * matrices[1], matrices[1] ** 2]
    for kernel, K in zip(bank, expected, strict=True):
        np.testing.assert_allclose(kernel(ids), K)


@pytest.mark.filterwarnings("ignore:The signed combination")
@pytest.mark.parametrize("name", WEIGHTINGS)
def test_every_weighting_weighs_products(name):
    data, y = iris(3, 2)
    bank = products([mk.Gaussian(0.2), mk.Linear(columns=[2]), mk.Linear(columns=[3])], 2)
    model = mk.MultiKernelClassifier(bank, WEIGHTINGS[name]).fit(data, y)
    assert model.kernel_weights_.shape == (6,)
    assert model.score(data, y) > 0.9


def test_joint_learning_of_products_is_still_proven():
    data, y = waves(60)
    bank = products(mk.gaussians([0.05, 0.3]) + KernelBank([mk.Linear()]), 2, lower=True)
    model = mk.MultiKernelRegressor(bank, mk.L1(), alpha=0.1).fit(data, y)
    assert model.duality_gap_ <= 1e-3
    assert np.all(model.kernel_weights_ >= 0)


def test_an_interaction_is_found():
    """The sign of a product is no sum of functions of its factors."""
    rng = np.random.default_rng(1)
    data = rng.normal(size=(240, 2))
    y = np.sign(data[:, 0] * data[:, 1])
    base = [mk.Linear(columns=[0]), mk.Linear(columns=[1])]
    train, test = slice(0, 120), slice(120, None)
    sums = mk.MultiKernelClassifier(base, "alignf").fit(data[train], y[train])
    both = mk.MultiKernelClassifier(products(base, lower=True), "alignf", C=100.0)
    both.fit(data[train], y[train])
    assert sums.score(data[test], y[test]) < 0.65
    assert both.score(data[test], y[test]) > 0.95
    best = int(np.argmax(both.kernel_weights_))
    assert both.kernel_names_[best] == "Linear(columns=0) * Linear(columns=1)"


def test_bad_input():
    with pytest.raises(ValueError, match="products: this bank has one kernel per column"):
        products(mk.per_feature(mk.Linear()))
    with pytest.raises(ValueError, match="powers: this bank has one kernel per column"):
        powers(mk.per_feature(mk.Linear()), [2])
    for degree in (0, -1, 1.5, "2", None):
        with pytest.raises(ValueError, match="products: degree must be a positive whole number"):
            products(BASE, degree)
    with pytest.raises(ValueError, match="2 kernels cannot form a product of 3 different ones"):
        products(BASE[:2], 3, repeated=False)
    with pytest.raises(ValueError, match=r"at most 100,000 are made"):
        products(mk.gaussians(np.arange(1, 100)), 4)
    for lower in (False, True):
        with pytest.raises(ValueError, match=r"more than 2,000,000 factors.*Use powers"):
            products([mk.Linear()], 10**9, lower=lower)
        with pytest.raises(ValueError, match=r"at most 100,000 are made"):
            products(mk.gaussians(np.arange(1, 1000)), 10**9, lower=lower)
    with pytest.raises(TypeError, match="powers: degrees must be a sequence"):
        powers(BASE, 2)
    with pytest.raises(ValueError, match="degrees is empty"):
        powers(BASE, [])
    with pytest.raises(ValueError, match="every degree must be a positive finite number"):
        powers(BASE, [0])
    with pytest.raises(ValueError, match=r"Linear\(columns=.*\*\* 0.5: a fractional power"):
        powers(BASE, [0.5])
    with pytest.raises(TypeError, match="A bank holds kernels"):
        products([1.0])
