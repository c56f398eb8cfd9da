"""Views by columns alone and by patterns: what they select, and the kernels they get."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import multikernel as mk
from multikernel.kernels.columns import resolve_columns
from multikernel.kernels.views import VIEW_WIDTHS

NAMES = ["gene_1", "gene_2", "age", "gene_3", "stage", "gene_*"]


def two_classes(rng, n=40):
    y = rng.permutation(np.repeat([0, 1], n // 2))
    X = rng.normal(size=(n, 5)) * [1.0, 100.0, 20.0, 0.01, 1.0] + 0.7 * y[:, None]
    return pd.DataFrame(X, columns=NAMES[:5]), y


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("gene_?",), (0, 1, 3, 5)),
        (("gene_[12]",), (0, 1)),
        (("gene_[!1]", "age"), (1, 3, 5, 2)),
        (("gene_*",), (5,)),  # a column of this very name comes before a pattern
        (("gene_2", "gene_?"), (1, 0, 3, 5)),  # no column twice
        (("gene_[0-9]", "stage", 2), (0, 1, 3, 4, 2)),
        (("*",), None),
    ],
)
def test_patterns_select_columns(columns, expected):
    assert resolve_columns(columns, len(NAMES), NAMES, "K") == expected


def test_patterns_in_every_place_that_takes_columns(rng):
    X, y = two_classes(rng)
    genes = X[["gene_1", "gene_2", "gene_3"]].to_numpy()
    np.testing.assert_allclose(mk.Linear(columns="gene_*")(X), genes @ genes.T)
    bank = mk.per_view({"expression": (mk.Linear(), "gene_*"), "clinic": (mk.Linear(), ["age"])})
    model = mk.MultiKernelClassifier(bank, "uniform").fit(X, y)
    by_name = mk.per_view(
        {"e": (mk.Linear(), ["gene_1", "gene_2", "gene_3"]), "c": (mk.Linear(), [2])}
    )
    other = mk.MultiKernelClassifier(by_name, "uniform").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X))
    single = mk.MultiKernelClassifier(mk.per_feature(columns="gene_*"), "uniform").fit(X, y)
    assert single.kernel_names_ == [f"Linear(columns='gene_{j}')" for j in (1, 2, 3)]


@pytest.mark.parametrize(
    "columns",
    ["gene_*", ["gene_1", "gene_2", "gene_3"], (0, 1, 3), np.array([0, 1, 3]),
     [True, True, False, True, False], pd.Index(["gene_1", "gene_2", "gene_3"])],
    ids=["pattern", "names", "indices", "array", "mask", "Index"],
)  # fmt: skip
def test_columns_alone_mean_default_kernels(rng, columns):
    X, y = two_classes(rng)
    bank = mk.per_view({"expression": columns, "clinic": slice(4, 5)})
    assert len(bank) == 2 * (len(VIEW_WIDTHS) + 1)
    assert bank.names[:5] == [
        "expression: Exponential at 1 x median",
        "expression: Gaussian at 0.5 x median",
        "expression: Gaussian at 1 x median",
        "expression: Gaussian at 2 x median",
        "expression: Linear()",
    ]
    train = X.iloc[:30]
    model = mk.MultiKernelClassifier(bank).fit(train, y[:30])
    assert model.kernel_names_ == bank.names
    # By hand: standardise the columns, take the median of the distances between samples.
    Z = train[["gene_1", "gene_2", "gene_3"]].to_numpy()
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    i, j = np.triu_indices(30, 1)
    distances = np.sort(np.sqrt(((Z[i] - Z[j]) ** 2).sum(axis=1)))
    median = distances[(len(distances) - 1) // 2]
    assert model.bank_[0].length == pytest.approx(median)
    for k, factor in enumerate((0.5, 1.0, 2.0), start=1):
        assert model.bank_[k].gamma == pytest.approx(0.5 / (factor * median) ** 2)
    np.testing.assert_allclose(model.bank_[4](train), Z @ Z.T, atol=1e-12)


def test_default_kernels_of_a_view_do_not_depend_on_units(rng):
    X, y = two_classes(rng)
    bank = mk.per_view({"expression": "gene_*", "clinic": ["age", "stage"]})
    first = mk.MultiKernelClassifier(bank, "alignf").fit(X, y)
    second = mk.MultiKernelClassifier(bank, "alignf").fit(X * [3.0, 1e-3, 7.0, 1e3, 1.0] + 5.0, y)
    np.testing.assert_allclose(first.kernel_weights_, second.kernel_weights_, atol=1e-8)


def test_certificates_know_that_widths_were_learned(rng):
    X, y = two_classes(rng)
    learned = mk.MultiKernelClassifier(mk.per_view({"e": "gene_*"}), "uniform").fit(X, y)
    assert "some of these kernels learned from the sample" in str(learned.certificate(X, y))
    fixed = mk.per_view({"e": (mk.gaussians([0.1, 1.0]), "gene_*")})
    fixed_model = mk.MultiKernelClassifier(fixed, "uniform").fit(X, y)
    assert "some of these kernels learned from the sample" not in str(fixed_model.certificate(X, y))


def test_default_kernels_beside_sequences_on_sparse_data_and_in_a_search(rng):
    X, y = two_classes(rng)
    bank = mk.per_view({"expression": "gene_*", "text": (mk.Spectrum(2), "letters")})
    mixed = X.assign(letters=["ACGT" if label else "TTTA" for label in y])
    assert mk.MultiKernelClassifier(bank).fit(mixed, y).score(mixed, y) == 1.0
    views = mk.per_view({"a": slice(0, 3), "b": slice(3, 5)})
    sparse = mk.MultiKernelClassifier(views).fit(sp.csr_matrix(X.to_numpy()), y)
    assert sparse.kernel_weights_.shape == (10,)
    search = mk.MultiKernelClassifierCV(views, ["uniform", "alignf"], Cs=[1.0]).fit(X, y)
    assert len(search.kernel_names_) == 10


@pytest.mark.parametrize("kernels", [None, mk.Linear(), mk.gaussians([1.0])])
def test_a_pattern_without_columns_names_view_and_nearest_names(rng, kernels):
    X, y = two_classes(rng)
    view = "genes_*" if kernels is None else (kernels, "genes_*")
    match = r"View 'expression': .*none of the 5 columns of X matches 'genes_\*'.*mean 'gene_"
    with pytest.raises(ValueError, match=match):
        mk.MultiKernelClassifier(mk.per_view({"expression": view})).fit(X, y)
    with pytest.raises(ValueError, match=r"View 'expression': .*'genes_\*' by name, but X has no"):
        mk.MultiKernelClassifier(mk.per_view({"expression": view})).fit(X.to_numpy(), y)


def test_other_unknown_columns_name_the_view_too(rng):
    X, y = two_classes(rng)
    for value in (["agee"], (mk.Linear(), "agee")):
        with pytest.raises(ValueError, match=r"View 'c': .*no column 'agee'.*mean 'age'"):
            mk.MultiKernelClassifier(mk.per_view({"c": value})).fit(X, y)
    with pytest.raises(ValueError, match=r"View 'c': .*index 9 is out of range"):
        mk.MultiKernelClassifier(mk.per_view({"c": [9]})).fit(X, y)
    with pytest.raises(ValueError, match=r"^Kernel Linear.*no column 'agee'"):
        mk.MultiKernelClassifier(mk.Linear(columns="agee")).fit(X, y)


@pytest.mark.parametrize("value", [None, [], True, {"a": 1}, np.zeros((2, 2))])
def test_what_is_neither_a_pair_nor_columns_is_refused(value):
    with pytest.raises((ValueError, TypeError), match=r"View 'v'"):
        mk.per_view({"v": value})
