"""Banks: sequences of named kernels, and the usual ways to make one."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import multikernel as mk
from multikernel.kernels.bank import as_bank, distinct
from tests import naive


def test_a_bank_is_a_sequence():
    bank = mk.gaussians([0.1, 1.0, 10.0])
    assert len(bank) == 3 and list(bank) == [mk.Gaussian(g) for g in (0.1, 1.0, 10.0)]
    assert bank[1] == mk.Gaussian(1.0) == bank[-2]
    assert bank[1:] == mk.gaussians([1.0, 10.0])
    assert mk.Gaussian(0.1) in bank and bank.index(mk.Gaussian(10)) == 2
    assert as_bank(list(bank)) == bank and as_bank(bank) is bank
    assert as_bank(mk.Linear()) == mk.KernelBank([mk.Linear()])


def test_banks_add_up():
    one, two = mk.gaussians([0.1]), mk.polynomials([2, 3])
    bank = one + two
    assert list(bank) == [*one, *two]
    assert bank.names == [*one.names, *two.names]
    assert list(one + mk.Linear()) == [*one, mk.Linear()]
    assert list(mk.Linear() + one) == [mk.Linear(), *one]
    named = mk.KernelBank([mk.Linear()], ["mine"])
    assert (named + one).names == ["mine", "Gaussian(gamma=0.1)"]
    assert (one + named).names == ["Gaussian(gamma=0.1)", "mine"]
    with pytest.raises(TypeError):
        one + 3


def test_names():
    bank = mk.KernelBank([mk.Linear(), mk.Linear(), mk.Gaussian()], ["a", "b", "c"])
    assert bank.names == ["a", "b", "c"] and bank[1:].names == ["b", "c"]
    assert mk.KernelBank(bank).names == bank.names
    assert mk.KernelBank(bank, list("xyz")).names == ["x", "y", "z"]
    twice = mk.KernelBank([mk.Linear(), mk.Gaussian(), mk.Linear()])
    assert twice.names == ["Linear() #1", "Gaussian(gamma=1)", "Linear() #2"]
    with pytest.raises(ValueError, match="Got 1 names for 2 kernels"):
        mk.KernelBank([mk.Linear(), mk.Linear()], ["a"])


@given(st.lists(st.sampled_from(["a", "b", "a #1", "a #2", "b #1", "a #1 #1"]), max_size=8))
def test_names_are_distinct_whatever_they_were(names):
    made = distinct(names)
    assert len(set(made)) == len(names)
    assert all(new.startswith(old) for new, old in zip(made, names, strict=True))
    if len(set(names)) == len(names):
        assert made == names


@pytest.mark.parametrize(
    "entries, error, match",
    [
        ([], ValueError, "at least one kernel"),
        ([np.eye(3)], TypeError, "mk.precomputed"),
        ([naive.gaussian], TypeError, "Wrap a function in mk.Callable"),
        (["rbf"], TypeError, "got 'rbf' of type str"),
    ],
)
def test_what_is_no_bank(entries, error, match):
    with pytest.raises(error, match=match):
        mk.KernelBank(entries)


def test_values():
    bank = mk.gaussians([0.1, 1.0]) + mk.per_feature(mk.Linear())
    assert bank == mk.gaussians([0.1, 1.0]) + mk.per_feature(mk.Linear())
    assert hash(bank) == hash(mk.gaussians([0.1, 1.0]) + mk.per_feature(mk.Linear()))
    assert bank != mk.gaussians([0.1, 1.0]) and bank != "bank"
    assert mk.KernelBank([mk.Linear()]) != mk.KernelBank([mk.Linear()], ["x"])
    assert copy.deepcopy(bank) is bank and copy.copy(bank) is bank
    assert pickle.loads(pickle.dumps(bank)) == bank
    model = mk.MultiKernelClassifier(bank)
    assert clone(model).kernels is bank


def test_repr_is_short():
    assert repr(mk.gaussians([0.1])) == "KernelBank([Gaussian(gamma=0.1)])"
    long = repr(mk.gaussians(np.arange(1.0, 101.0)))
    assert "... 94 more ..." in long and long.endswith("Gaussian(gamma=100)])")
    # as many as it says
    assert long.count("Gaussian") + 94 == 100


# -- per feature, per view ------------------------------------------------------------------------


def test_per_feature_opens_when_it_meets_data():
    bank = mk.per_feature(mk.Gaussian(0.5)) + mk.Linear()
    assert bank.is_open
    for use in (len, list, lambda b: b[0], lambda b: b.names):
        with pytest.raises(TypeError, match=r"bank.plan\(X\)"):
            use(bank)
    names = bank.plan(np.zeros((3, 2))).names
    assert names == ["Gaussian(gamma=0.5, columns=0)", "Gaussian(gamma=0.5, columns=1)", "Linear()"]
    frame = pd.DataFrame(np.zeros((3, 2)), columns=["age", "height"])
    assert mk.per_feature().plan(frame).names == [
        "Linear(columns='age')",
        "Linear(columns='height')",
    ]


@pytest.mark.parametrize(
    "columns, index",
    [([0, 2], [0, 2]), (slice(1, None), [1, 2]), ([False, True, False], [1]), (-1, [2])],
    ids=str,
)
def test_per_feature_on_some_columns(columns, index):
    plan = mk.per_feature(mk.Linear(), columns=columns).plan(np.zeros((4, 3)))
    assert plan.names == [f"Linear(columns={i})" for i in index]
    frame = pd.DataFrame(np.zeros((4, 3)), columns=list("abc"))
    plan = mk.per_feature(mk.Linear(), columns=["c", "a"]).plan(frame)
    assert plan.names == ["Linear(columns='c')", "Linear(columns='a')"]


def test_per_feature_errors():
    with pytest.raises(TypeError, match="kernel on vectors"):
        mk.per_feature(mk.Linear() + mk.Linear())
    with pytest.raises(ValueError, match="selects its own"):
        mk.per_feature(mk.Linear(columns=0))


def test_per_view(rng):
    bank = mk.per_view(
        {
            "left": (mk.gaussians([0.1, 1.0]), slice(0, 2)),
            "right": (mk.Linear(), ["c", "d"]),
            "both": ([mk.Linear(), mk.Linear()], None),
        }
    )
    assert bank.names[:3] == [
        "left: Gaussian(gamma=0.1)",
        "left: Gaussian(gamma=1)",
        "right: Linear()",
    ]
    assert len(set(bank.names)) == 5
    X = rng.normal(size=(6, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    np.testing.assert_allclose(bank[1](frame), naive.gaussian(X[:, :2], X[:, :2], 1.0))
    np.testing.assert_allclose(bank[2](frame), naive.linear(X[:, 2:], X[:, 2:]))
    with pytest.raises(ValueError, match=r"View 'x' must be a pair \(kernel or kernels, columns\)"):
        mk.per_view({"x": mk.Linear()})
    with pytest.raises(ValueError, match=r"View 'x'.*do not select their own"):
        mk.per_view({"x": (mk.Linear(columns=1), [0])})


# -- the default bank -----------------------------------------------------------------------------


def test_default_bank(rng):
    X = rng.normal(size=(80, 4)) * [1.0, 10.0, 1e-3, 1e3] + [0.0, 5.0, 1.0, -1e3]
    bank = mk.default_bank(X, kind="gaussians")
    kinds = [type(kernel).__name__ for kernel in bank]
    assert kinds == ["Gaussian"] * 7 + ["Linear"] + ["Polynomial"] * 2
    assert len(set(bank.names)) == 10 and "scaling" not in "".join(bank.names)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    d = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)[np.triu_indices(80, 1)]
    assert 1 / bank[3].gamma == pytest.approx(np.median(d), rel=0.01)
    np.testing.assert_allclose([k.gamma / bank[3].gamma for k in bank[:7]], 4.0 ** np.arange(-3, 4))
    np.testing.assert_allclose(bank[7](X), Z @ Z.T, atol=1e-9)
    np.testing.assert_allclose(bank[9](X), (Z @ Z.T / 4 + 1) ** 3, atol=1e-8)
    # Units do not matter.
    moved = mk.default_bank(X * 1024.0, kind="gaussians")
    assert moved[3].gamma == pytest.approx(bank[3].gamma, rel=1e-9)
    assert len(mk.default_bank(X, kind="gaussians", n_gaussians=3)) == 6


def test_default_bank_of_frames_and_float32(rng):
    X = rng.normal(size=(30, 3))
    frame = pd.DataFrame(X, columns=list("abc"))
    names = [mk.default_bank(given).names for given in (frame, X)]
    assert names[0] == names[1] and len(names[0]) == 13
    kind = {"kind": "gaussians"}
    for one, two in zip(mk.default_bank(frame, **kind), mk.default_bank(X, **kind), strict=True):
        np.testing.assert_allclose(one.scaling.scale, two.scaling.scale, rtol=1e-13)
        assert getattr(one, "gamma", 0) == pytest.approx(getattr(two, "gamma", 0), rel=1e-12)
    single = mk.default_bank(X.astype(np.float32), **kind)
    assert single[3].gamma == pytest.approx(mk.default_bank(X, **kind)[3].gamma, rel=1e-5)


def test_default_bank_of_sparse_data(rng):
    X = sp.random(60, 20, density=0.2, random_state=0, format="csr")
    bank = mk.default_bank(X, kind="gaussians")
    scale = X.toarray().std(axis=0)
    np.testing.assert_allclose(bank[0].scaling.scale, np.where(scale > 0, scale, 1), rtol=1e-12)
    Z = X.toarray() / np.array(bank[0].scaling.scale)
    np.testing.assert_allclose(bank[7](X), Z @ Z.T, atol=1e-12)
    np.testing.assert_allclose(bank[2](X), naive.gaussian(Z, Z, bank[2].gamma), atol=1e-12)
    # Dense data may meet a bank that was made on sparse data; not the other way round.
    np.testing.assert_allclose(bank[7](X.toarray()), Z @ Z.T, atol=1e-12)
    with pytest.raises(ValueError, match="would make a sparse X dense"):
        mk.default_bank(X.toarray())[0](X)


@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, 7.7, 1e8 / 3])
@pytest.mark.parametrize("n", [30, 20_000])
@pytest.mark.parametrize("made", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_constant_columns_are_not_blown_up(value, n, made, rng):
    """Rounding noise of a constant column is no scale to divide by."""
    X = np.column_stack([rng.normal(size=n), np.full(n, value)])
    bank = mk.default_bank(made(X))
    assert bank[0].scaling.scale[1] == 1.0
    assert bank[0].scaling.scale[0] == pytest.approx(X[:, 0].std(), rel=1e-10)


def test_default_bank_of_little_data(rng):
    one = mk.default_bank(rng.normal(size=(20, 1)), kind="gaussians")
    assert len(one) == 10 and all(np.isfinite(k.gamma) for k in one[:7])
    same = mk.default_bank(np.ones((5, 4)), kind="gaussians")
    assert same[3].gamma == pytest.approx(1 / 4)
    two = np.array([[0.0], [1.0]])
    assert np.isfinite(mk.default_bank(two, kind="gaussians")[3].gamma)
    for X in (two, np.ones((5, 4)), rng.normal(size=(20, 1))):
        bank = mk.default_bank(X)
        assert len(bank) == 13 and all(np.isfinite(kernel(X)).all() for kernel in bank)


@pytest.mark.parametrize("made", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_default_bank_counts_weights_as_repetitions(made, rng):
    X = np.round(rng.normal(size=(40, 3)), 2)
    counts = rng.integers(1, 5, size=40)
    kind = {"kind": "gaussians"}
    weighted = mk.default_bank(made(X), sample_weight=counts, **kind)
    repeated = mk.default_bank(made(np.repeat(X, counts, axis=0)), **kind)
    for one, two in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(one.scaling.scale, two.scaling.scale, rtol=1e-12)
        assert getattr(one, "gamma", 0) == pytest.approx(getattr(two, "gamma", 0), rel=1e-12)
    more, none = made(np.vstack([X, 100 + X[:5]])), np.r_[counts, [0] * 5]
    zero = mk.default_bank(more, sample_weight=none, **kind)
    assert zero[3].gamma == pytest.approx(weighted[3].gamma, rel=1e-12)


@pytest.mark.parametrize("bad", [np.array([[1.0, np.nan]]), np.array([["a", "b"]])])
def test_default_bank_wants_numbers(bad):
    with pytest.raises(ValueError):
        mk.default_bank(bad)
