"""Which implementation serves which kernels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import multikernel as mk
from multikernel.grams.dense import DenseGrams
from multikernel.grams.memory import MemoryBudget
from multikernel.grams.rankone import RankOneGrams
from multikernel.grams.shared import SharedGrams
from multikernel.grams.stacked import StackedGrams

AMPLE = MemoryBudget.of("1GB")


def product(X, Z):
    return X @ Z.T


def kinds(bank, X, **options):
    """The kind of each kernel of the bank, in its order."""
    plan = bank.plan(X, **options)
    found = [""] * plan.n_kernels
    for part in plan.parts:
        for k in part.positions:
            assert found[k] == ""
            found[k] = part.kind
    assert len(plan.names) == len(set(plan.names)) == plan.n_kernels
    return found


def test_every_kernel_has_its_place():
    X = np.zeros((20, 3))
    bank = mk.KernelBank(
        [
            mk.Linear(columns=1),
            mk.Gaussian(),
            mk.Linear(),
            mk.Gaussian() + mk.Linear(),
            mk.Laplacian(columns=[0, 1]),
            mk.Callable(product),
            2.0 * mk.Linear(columns=0),
            mk.Polynomial(columns=1),
            mk.Sigmoid(),
            mk.Linear(columns=slice(2, 3)),
        ]
    )
    want = "rank-one shared shared dense shared dense dense shared shared rank-one"
    assert kinds(bank, X) == want.split()
    assert kinds(mk.per_feature(mk.Linear()), X) == ["rank-one"] * 3
    assert kinds(mk.per_feature(mk.Gaussian()), X) == ["shared"] * 3
    assert kinds(mk.per_feature(mk.Callable(product)), X) == ["dense"] * 3
    assert kinds(mk.KernelBank([mk.Linear()]), X[:, :1]) == ["rank-one"]
    assert kinds(mk.precomputed([np.eye(20)]), mk.sample_ids(20)) == ["dense"]
    assert set(kinds(mk.default_bank(np.random.default_rng(0).normal(size=(20, 3))), X)) == {
        "shared"
    }


def test_a_kernel_of_ones_own_is_evaluated_as_it_is():
    """A subclass may mean anything: only the library's own types are taken apart."""

    class Half(mk.Gaussian):
        def _pairs(self, X, Z):
            return 0.5 * super()._pairs(X, Z)

        def _diag(self, X):
            return 0.5 * super()._diag(X)

    X = np.random.default_rng(0).normal(size=(10, 2))
    bank = mk.KernelBank([Half(1.0), mk.Gaussian(1.0)])
    assert kinds(bank, X) == ["dense", "shared"]
    block = bank.plan(X).grams(X, budget=AMPLE).block(slice(0, 10))
    np.testing.assert_allclose(block[0], block[1] / 2, rtol=1e-12)


def test_types_of_grams():
    X = np.random.default_rng(0).normal(size=(10, 3))
    for bank, kind in (
        (mk.gaussians([0.1, 1.0]), SharedGrams),
        (mk.per_feature(), RankOneGrams),
        (mk.KernelBank([mk.Callable(product)]), DenseGrams),
        (mk.gaussians([0.1]) + mk.per_feature(), StackedGrams),
    ):
        grams = bank.plan(X).grams(X, budget=AMPLE)
        assert type(grams) is kind
        assert list(grams.names) == bank.plan(X).names


def test_str():
    X = np.zeros((100, 3))
    bank = (
        mk.KernelBank([mk.Gaussian(), mk.Linear(columns=0), mk.Gaussian(columns=[0, 1])])
        + mk.polynomials([2])
        + mk.KernelBank([mk.Callable(product)])
    )
    plan = bank.plan(X)
    assert str(plan) == repr(plan)
    lines = str(plan).splitlines()
    assert lines[0] == "5 kernels on 100 samples"
    assert lines[1] == (
        "  shared    kernels 3 of 0..3  "
        "squared distances on 3 columns; squared distances on 2 columns; dot products on 3 columns"
    )
    assert lines[2].split() == ["rank-one", "kernels", "1", "1", "feature", "columns"]
    assert lines[3].split() == ["dense", "kernels", "4", "evaluated", "matrices"]
    many = mk.per_feature(mk.Gaussian()).plan(np.zeros((10, 30)))
    assert "27 more groups" in str(many) and len(str(many).splitlines()[1]) < 150


def test_sparse():
    X = sp.random(50, 400, density=0.01, format="csr", random_state=0)
    bank = mk.gaussians([0.1]) + mk.per_feature() + mk.KernelBank([mk.Linear()])
    small = kinds(bank, X, memory_budget="10MB")
    assert small == ["shared"] + ["rank-one"] * 400 + ["shared"]
    # Written out, X would take more than an eighth of this: 8 * 50 * 800 bytes for two groups.
    tight = kinds(bank, X, memory_budget=8 * 8 * 50 * 800 - 1)
    assert tight == ["dense"] + ["rank-one"] * 400 + ["dense"]
    grams = bank.plan(X, memory_budget="10MB").grams(X, budget=AMPLE)
    other = bank.plan(X, memory_budget=8 * 8 * 50 * 800 - 1).grams(X, budget=AMPLE)
    rows = slice(0, 5)
    a, b = grams.corrected(True, None), other.corrected(True, None)
    np.testing.assert_allclose(a.block(rows), b.block(rows), atol=1e-12)
    np.testing.assert_allclose(a.diagonals(), b.diagonals(), atol=1e-12)


def test_frames_and_names():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(6, 3)), columns=["a", "b", 3])
    bank = mk.KernelBank([mk.Linear(columns="b"), mk.Gaussian(columns=["a", "3"])])
    assert kinds(bank, frame) == ["rank-one", "shared"]
    block = bank.plan(frame).grams(frame, budget=AMPLE).block(slice(0, 6))
    v = frame["b"].to_numpy()
    np.testing.assert_allclose(block[0], np.outer(v, v), rtol=1e-12)
    np.testing.assert_allclose(block[1], mk.Gaussian()(frame[["a", 3]].to_numpy()), rtol=1e-12)


@pytest.mark.parametrize(
    "bank, match",
    [
        (mk.gaussians([1.0], columns="c"), "X has no column 'c'"),
        (mk.per_feature(columns=["a", "zz"]), "no column 'zz'"),
        (mk.KernelBank([mk.Linear(columns=7)]), "column index 7 is out of range"),
        (mk.KernelBank([mk.Linear() + mk.Linear(columns="q")]), "no column 'q'"),
    ],
)
def test_unknown_columns(bank, match):
    frame = pd.DataFrame(np.zeros((4, 2)), columns=["a", "b"])
    with pytest.raises(ValueError, match=match):
        bank.plan(frame)
    if "column '" in match:
        with pytest.raises(ValueError, match="X has no column names"):
            bank.plan(np.zeros((4, 2)))


def test_a_bank_for_other_columns():
    bank = mk.default_bank(np.random.default_rng(0).normal(size=(10, 3)))
    with pytest.raises(ValueError, match="scales 3 columns, but selects 4 of X"):
        bank.plan(np.zeros((10, 4)))


def test_names_of_an_open_bank_are_kept():
    """Names that were given are not thrown away when the columns open up."""
    named = mk.KernelBank([mk.Gaussian()], ["wide"]) + mk.per_feature()
    assert named.plan(np.zeros((3, 2))).names == [
        "wide",
        "Linear(columns=0)",
        "Linear(columns=1)",
    ]


def test_what_is_kept_and_what_is_evaluated_again():
    X = np.zeros((50, 2))
    bank = mk.KernelBank([mk.Callable(product)] * 3)
    needed = 2 * 3 * 50**2 * 8
    assert "evaluated matrices" in str(bank.plan(X, memory_budget=needed))
    assert "evaluated again in every pass" in str(bank.plan(X, memory_budget=needed - 1))


def test_many_features_are_planned_quickly():
    plan = mk.per_feature().plan(sp.csr_matrix((5, 5000)))
    assert plan.n_kernels == 5000 and [part.kind for part in plan.parts] == ["rank-one"]
