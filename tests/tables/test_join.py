"""Tables of several views become one table: by index, by order, and from what holds views."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import multikernel as mk

RNA = pd.DataFrame(
    {"g1": [1.0, 2.0, 3.0, 4.0], "g2": [5.0, 6.0, 7.0, 8.0]}, index=["a", "b", "c", "d"]
)
CLINIC = pd.DataFrame({"age": [40, 30, 20, 10]}, index=["d", "c", "b", "a"])


def annotated(frame, sparse=False):
    X = frame.to_numpy(float)
    return SimpleNamespace(
        X=sp.csr_matrix(X) if sparse else X, obs_names=frame.index, var_names=frame.columns
    )


def check(X, views):
    assert list(X.columns) == ["rna:g1", "rna:g2", "clinic:age"]
    assert list(X.index) == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(X.to_numpy(), [[1, 5, 10], [2, 6, 20], [3, 7, 30], [4, 8, 40]])
    assert views == {"rna": "rna:*", "clinic": "clinic:*"}


def test_rows_are_matched_by_index():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(*mk.join_views({"rna": RNA, "clinic": CLINIC}))


def test_two_levels_of_columns():
    both = pd.concat({"rna": RNA, "clinic": CLINIC.loc[RNA.index]}, axis=1)
    check(*mk.join_views(both))
    deeper = pd.concat({"rna": pd.concat({"x": RNA}, axis=1)}, axis=1)
    assert list(mk.join_views(deeper)[0].columns) == ["rna:x:g1", "rna:x:g2"]


def test_objects_like_mudata_and_anndata():
    modalities = {"rna": annotated(RNA), "clinic": annotated(CLINIC)}
    check(*mk.join_views(SimpleNamespace(mod=modalities)))
    check(*mk.join_views({"rna": annotated(RNA), "clinic": CLINIC}))
    X, views = mk.join_views(annotated(RNA))
    assert list(X.columns) == ["X:g1", "X:g2"]
    assert views == {"X": "X:*"}


def test_samples_that_a_modality_lacks_are_kept():
    X, _ = mk.join_views({"rna": annotated(RNA), "clinic": annotated(CLINIC[:2])}, missing="keep")
    assert list(X.index) == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(X["clinic:age"], [np.nan, np.nan, 30, 40])


@pytest.mark.filterwarnings("ignore::FutureWarning:mudata")
def test_mudata_and_anndata():
    """The packages themselves, where they are installed."""
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    rng = np.random.default_rng(0)
    cells = pd.Index([f"cell {i}" for i in range(40)])
    y = pd.Series(np.tile([0, 1], 20), index=cells)
    counts = rng.poisson(1.0, (40, 6))
    levels = rng.normal(size=(40, 3)) + 2.0 * y.to_numpy()[:, None]

    def table(values, cells, prefix):
        names = pd.DataFrame(index=[f"{prefix}{j}" for j in range(values.shape[1])])
        return anndata.AnnData(values, obs=pd.DataFrame(index=cells), var=names)

    rna = table(counts.astype(float), cells, "gene")
    protein = table(levels[10:], cells[10:], "protein")
    X, columns = mk.join_views(mudata.MuData({"rna": rna, "protein": protein}), missing="keep")
    np.testing.assert_array_equal(X.loc[cells[10:], "protein:protein0"], levels[10:, 0])
    model = mk.MultiKernelClassifier(mk.per_view(columns), missing="ignore").fit(X, y.loc[X.index])
    assert model.view_presence_ == {"rna": 1.0, "protein": 0.75}
    assert model.score(X[10:], y.loc[X.index][10:]) > 0.8
    sparse = table(sp.csr_matrix(counts[10:], dtype=float), cells[10:], "gene")
    joined, columns = mk.join_views(mudata.MuData({"rna": sparse, "protein": protein}))
    assert sp.issparse(joined) and columns == {"rna": slice(0, 6), "protein": slice(6, 9)}
    np.testing.assert_array_equal(joined.toarray(), np.hstack([counts, levels])[10:])
    with pytest.raises(TypeError, match=r"got MuData with the views .*join_views"):
        mk.MultiKernelClassifier().fit(mudata.MuData({"rna": rna, "protein": protein}), y)
    with pytest.raises(TypeError, match=r"got AnnData\. Use its matrix, X\.X"):
        mk.MultiKernelClassifier().fit(rna, y)


def test_sparse_tables_make_a_sparse_matrix():
    X, views = mk.join_views({"rna": annotated(RNA, sparse=True), "clinic": CLINIC})
    assert sp.issparse(X)
    np.testing.assert_array_equal(X.toarray()[:, 2], [10, 20, 30, 40])
    assert views == {"rna": slice(0, 2), "clinic": slice(2, 3)}
    with pytest.raises(
        ValueError, match=r"3 in common; not in all views: \{'rna': 1, 'clinic': 0\}"
    ):
        mk.join_views({"rna": annotated(RNA, sparse=True), "clinic": CLINIC.iloc[1:]})
    with pytest.raises(ValueError, match="View 'text' contains text"):
        text = pd.DataFrame({"t": list("wxyz")}, index=RNA.index)
        mk.join_views({"rna": annotated(RNA, sparse=True), "text": text})


def test_samples_that_a_view_lacks_are_counted():
    other = CLINIC.iloc[1:].rename(index={"c": "e"})
    with pytest.warns(UserWarning, match=r"keeps the 2 samples .* out 2 of 'rna', 1 of 'clinic'"):
        X, _ = mk.join_views({"rna": RNA, "clinic": other})
    assert list(X.index) == ["a", "b"]
    np.testing.assert_array_equal(X["clinic:age"], [10, 20])
    with pytest.raises(ValueError, match=r"no sample in common.*'a' of 'rna', 0 of 'clinic'"):
        mk.join_views({"rna": RNA, "clinic": CLINIC.reset_index(drop=True)})


def test_tables_without_index_are_joined_by_order():
    X, _ = mk.join_views({"rna": RNA, "scan": np.arange(8).reshape(4, 2)})
    assert list(X.columns[2:]) == ["scan:0", "scan:1"]
    assert list(X.index) == list("abcd")
    np.testing.assert_array_equal(X["scan:1"], [1, 3, 5, 7])
    plain, _ = mk.join_views({"a": RNA.reset_index(drop=True), "b": np.ones((4, 1))})
    assert plain.index.equals(pd.RangeIndex(4))
    with pytest.raises(ValueError, match=r"'scan' has no index.*\{'rna': 4, 'scan': 3\}"):
        mk.join_views({"rna": RNA, "scan": np.ones((3, 2))})
    with pytest.raises(ValueError, match="'rna' and 'clinic' have their samples in different"):
        mk.join_views({"rna": RNA, "clinic": CLINIC, "scan": np.ones((4, 2))})


def test_a_table_without_index_beside_one_with_an_index_is_named():
    named = pd.DataFrame({"a": [1.0, 2.0]}, index=["ann", "bob"])
    with pytest.warns(UserWarning, match="View 'plain' has no index .* order of those of view 'n"):
        X, _ = mk.join_views({"named": named, "plain": np.ones((2, 1))})
    assert list(X.index) == ["ann", "bob"]


def test_numbers_as_sample_names_are_matched_when_some_table_is_shuffled():
    counted = RNA.reset_index(drop=True)
    X, _ = mk.join_views({"rna": counted, "again": counted.iloc[[2, 0, 3, 1]]})
    np.testing.assert_array_equal(X["rna:g1"], X["again:g1"])


@pytest.mark.parametrize(
    ("views", "match"),
    [
        ({"rna": pd.concat([RNA, RNA])}, "View 'rna' has the sample 'a' more than once"),
        ({"a:b": RNA}, "contains a colon"),
        (RNA, "one level of columns"),
        ({}, "at least one entry"),
        ([RNA], "got list"),
        ({"v": np.ones(3)}, r"View 'v' must be a table .*shape \(3,\)"),
        ({"v": "text"}, r"View 'v' must be a table"),
        ({"v": RNA[[]]}, "View 'v' has no columns"),
        ({"v": pd.DataFrame([[1, 2]], columns=["x", "x"])}, "View 'v' has two columns named 'x'"),
        ({"v": pd.DataFrame([[1, 2]], columns=["x", "*"])}, r"View 'v' has a column named '\*'"),
    ],
)
def test_bad_tables_are_refused(views, match):
    with pytest.raises((ValueError, TypeError), match=match):
        mk.join_views(views)


def test_a_joined_table_goes_through_a_model(rng):
    y = np.repeat([0, 1], 20)
    frames = {
        "odd [name]*": pd.DataFrame(rng.normal(size=(40, 3)) + y[:, None]),
        "other": pd.DataFrame(rng.normal(size=(40, 2)), columns=["u", "v"]),
    }
    X, views = mk.join_views(frames)
    model = mk.MultiKernelClassifier(mk.per_view(views), "alignf").fit(X, y)
    assert list(model.view_weights_) == ["odd [name]*", "other"]
    assert model.bank_[4].scaling.width == 3
    assert model.view_weights_["odd [name]*"] > 0.5
