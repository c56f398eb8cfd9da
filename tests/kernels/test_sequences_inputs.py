"""How strings come in: frames, arrays, lists, tokens; what is refused, and what is said then."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import multikernel as mk
from multikernel.kernels.sequences import (
    LocalityImproved,
    Oligo,
    Spectrum,
    Subsequence,
    WeightedDegree,
    encoding,
)
from multikernel.kernels.sequences.table import Table
from tests.kernels.naive_sequences import assert_equal, random_strings

N = 40
DNA = random_strings(N, 20, 30, seed=5)
y = np.array([x.count("GA") > 1 for x in DNA]).astype(int)
NUMBERS = np.random.default_rng(0).normal(size=(N, 2))
FRAME = pd.DataFrame({"age": NUMBERS[:, 0], "dna": DNA, "dose": NUMBERS[:, 1]})
BANK = mk.KernelBank([Spectrum(2), WeightedDegree(3, 1)])
MIXED = mk.KernelBank(
    [
        Spectrum(2, columns="dna"),
        mk.Gaussian(0.5, columns=["age", "dose"]),
        Spectrum(1, columns="dna") * mk.Gaussian(0.1, columns="age"),
        mk.Linear(columns="dose"),
    ]
)
Estimators = pytest.mark.parametrize(
    "Estimator",
    [
        mk.MultiKernelClassifier,
        mk.MultiKernelRegressor,
        mk.MultiKernelClassifierCV,
        mk.MultiKernelRegressorCV,
    ],
)


def decide(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


# -- the same strings in every form ----------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        list,
        tuple,
        np.array,
        lambda X: np.array(X, dtype=object),
        lambda X: np.array(X)[:, None],
        pd.Series,
        lambda X: pd.DataFrame({"dna": X}),
        lambda X: pd.DataFrame({"dna": pd.Series(X, dtype=object)}),
        lambda X: [list(x) for x in X],  # lists of tokens, one letter each
        lambda X: pd.DataFrame({"tokens": [tuple(x) for x in X]}),
    ],
)
def test_forms(form):
    reference = mk.MultiKernelClassifier(BANK).fit(DNA[:30], y[:30])
    model = mk.MultiKernelClassifier(BANK).fit(form(DNA[:30]), y[:30])
    assert np.array_equal(model.kernel_weights_, reference.kernel_weights_)
    new = form(DNA[30:])
    assert_equal(decide(model, new), decide(reference, DNA[30:]))
    assert model.n_features_in_ == 1


@Estimators
def test_end_to_end(Estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = Estimator(MIXED).fit(FRAME, y)
        again = pickle.loads(pickle.dumps(model))
        assert np.array_equal(decide(again, FRAME), decide(model, FRAME))
        assert_equal(decide(model, FRAME[:7]), decide(model, FRAME)[:7])
    assert list(model.feature_names_in_) == ["age", "dna", "dose"]
    assert model.n_features_in_ == 3
    twin = clone(model).fit(FRAME, y)
    assert np.array_equal(decide(twin, FRAME), decide(model, FRAME))
    assert clone(model).kernels is MIXED


def test_model_is_what_the_matrices_say():
    """The same fit from matrices that were computed outside."""
    train, new = slice(0, 30), slice(30, N)
    kernels = [Spectrum(2), WeightedDegree(3, 1), Subsequence(2, 0.5), Oligo(2), LocalityImproved()]
    matrices = [kernel(DNA) for kernel in kernels]
    ids = mk.sample_ids(N)
    reference = mk.MultiKernelClassifier(mk.precomputed(matrices)).fit(ids[train], y[train])
    model = mk.MultiKernelClassifier(kernels).fit(DNA[train], y[train])
    np.testing.assert_allclose(model.kernel_weights_, reference.kernel_weights_, atol=1e-10)
    np.testing.assert_allclose(decide(model, DNA[new]), decide(reference, ids[new]), atol=1e-9)


@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", "frobenius", "trace", None])
@pytest.mark.parametrize("center", [True, False])
def test_corrections(normalize, center):
    options = {"normalize": normalize, "center": center, "weighting": "uniform"}
    model = mk.MultiKernelClassifier(MIXED, **options).fit(FRAME[:30], y[:30])
    matrices = mk.precomputed([kernel(FRAME) for kernel in MIXED])
    ids = mk.sample_ids(N)
    reference = mk.MultiKernelClassifier(matrices, **options).fit(ids[:30], y[:30])
    np.testing.assert_allclose(decide(model, FRAME[30:]), decide(reference, ids[30:]), atol=1e-7)


def test_streamed_blocks_give_the_same_model():
    """Too little memory for the matrices: kernels are evaluated again, row block by row block."""
    free = mk.MultiKernelClassifier(MIXED, tol=1e-6).fit(FRAME, y)
    tight = mk.MultiKernelClassifier(MIXED, tol=1e-6, memory_budget=8 * 3 * N * N).fit(FRAME, y)
    assert "evaluated again" in str(tight.grams_)
    np.testing.assert_allclose(tight.kernel_weights_, free.kernel_weights_, atol=1e-9)
    np.testing.assert_allclose(decide(tight, FRAME), decide(free, FRAME), atol=1e-6)


def test_cross_validation_and_search():
    for X in (DNA, np.array(DNA, dtype=object), FRAME):
        bank = MIXED if X is FRAME else BANK
        scores = cross_val_score(mk.MultiKernelClassifier(bank), X, y, cv=4, error_score="raise")
        assert scores.shape == (4,)
    search = GridSearchCV(mk.MultiKernelClassifier(BANK), {"C": [0.1, 1.0]}, cv=2)
    assert search.fit(DNA, y).predict(DNA).shape == (N,)


def test_one_class_and_outputs():
    model = mk.MultiKernelOneClass(BANK, weighting="uniform").fit(DNA)
    assert set(model.predict(DNA)) <= {-1, 1}
    outputs = mk.MultiKernelRegressor(BANK).fit(DNA, NUMBERS)
    assert outputs.predict(DNA[:3]).shape == (3, 2)


def test_views():
    bank = mk.per_view({
        "sequence": ([Spectrum(2), Spectrum(3)], "dna"), "clinic": (mk.Linear(), ["age", "dose"])
    })  # fmt: skip
    assert bank.names == ["sequence: Spectrum(k=2)", "sequence: Spectrum(k=3)", "clinic: Linear()"]
    model = mk.MultiKernelClassifier(bank).fit(FRAME, y)
    assert model.kernel_names_ == bank.names
    mixed = FRAME.to_numpy()
    by_index = mk.per_view({
        "sequence": ([Spectrum(2), Spectrum(3)], 1), "clinic": (mk.Linear(), [0, 2])
    })  # fmt: skip
    other = mk.MultiKernelClassifier(by_index).fit(mixed, y)
    assert_equal(decide(other, mixed), decide(model, FRAME))


def test_sample_weights():
    weights = np.random.default_rng(1).integers(0, 3, size=N)
    weights[:4] = [1, 2, 1, 2]
    model = mk.MultiKernelClassifier(MIXED).fit(FRAME, y, sample_weight=weights)
    rows = np.repeat(np.arange(N), weights)
    copied = mk.MultiKernelClassifier(MIXED).fit(FRAME.iloc[rows], y[rows])
    np.testing.assert_allclose(model.kernel_weights_, copied.kernel_weights_, atol=1e-9)
    np.testing.assert_allclose(decide(model, FRAME), decide(copied, FRAME), atol=1e-7)


def test_new_letters_at_prediction():
    model = mk.MultiKernelClassifier(BANK).fit(DNA, y)
    assert np.isfinite(decide(model, ["xyz ACGT", "日本", "GAGAGAGAGAGA"])).all()


# -- a column is encoded once ----------------------------------------------------------------------


def test_each_column_is_encoded_once(monkeypatch):
    calls = []
    encode = encoding.encode

    def counted(*arguments):
        calls.append(arguments[2])
        return encode(*arguments)

    monkeypatch.setattr("multikernel.kernels.sequences.table.encode", counted)
    bank = mk.KernelBank([Spectrum(k, columns="dna") for k in (1, 2, 3)]) + MIXED
    model = mk.MultiKernelClassifier(bank, memory_budget=8 * 8 * N * N).fit(FRAME, y)
    assert calls == ["Column 'dna'"]
    model.predict(FRAME)
    assert len(calls) == 2
    mk.MultiKernelClassifierCV(bank, Cs=[1.0], cv=2).fit(FRAME, y)
    assert len(calls) == 3


def test_rows_of_a_table():
    table = Table.of(FRAME)
    whole = table.sequences(("dna",), "letter", "it")
    part = table[np.array([5, 3, 3])]
    some = part.sequences(("dna",), "letter", "it")
    assert_equal(Spectrum(2)(some), Spectrum(2)([DNA[5], DNA[3], DNA[3]]))
    assert table.sequences(("dna",), "letter", "it") is whole
    assert table[:0].shape == (0, 3)
    np.testing.assert_array_equal(part.numbers(("age",))[:, 0], NUMBERS[[5, 3, 3], 0])
    assert Table.of(table) is table


# -- what is refused ------------------------------------------------------------------------------


def refuses(match, kernels, X, target=y, error=ValueError):
    with pytest.raises(error, match=match):
        mk.MultiKernelClassifier(kernels).fit(X, target)


def test_refused_cells():
    refuses(r"Column 0: row 3 is missing \(None\).*empty string", BANK, [*DNA[:3], None, *DNA[4:]])
    spoiled = FRAME.copy()
    spoiled.loc[2, "dna"] = np.nan
    refuses(r"Column 'dna': row 2 is missing \(nan\)", MIXED, spoiled)
    refuses("row 0 holds 1.* of type float", BANK, np.ones((N, 1)))
    refuses(r"row 1 holds b'AC' of type bytes. Decode it", BANK, [DNA[0], b"AC", *DNA[2:]])
    refuses(r"mixes strings and lists of tokens \(rows 0 and 2", BANK, [*DNA[:2], ["A"], *DNA[3:]])
    refuses("got one string, 'ACGT'", BANK, "ACGT")


def test_refused_tables():
    refuses("reads one column of sequences, but X has 3 columns", BANK, FRAME)
    refuses("X has no column 'rna'", mk.KernelBank([Spectrum(2, columns="rna")]), FRAME)
    refuses("by name, but X has no column names", [Spectrum(2, columns="dna")], FRAME.to_numpy())
    refuses(
        r"A kernel on vectors reads column 'dna', which holds '[ACGT]+'",
        [Spectrum(2, columns="dna"), mk.Linear()],
        FRAME,
    )
    refuses("Input X contains NaN", MIXED, FRAME.assign(age=np.nan))
    refuses("column 'dna' holds 40 distinct strings .* too many for a category", mk.Linear(), FRAME)
    refuses(r"inconsistent numbers of samples: \[40, 10\]", BANK, DNA, y[:10])
    refuses("needs at least 2 samples; got n_samples = 1", BANK, DNA[:1], y[:1])
    refuses("X has 0 samples", BANK, [], [])
    refuses("requires y to be passed", BANK, DNA, None)
    with pytest.raises(ValueError, match=r"got shape \(2, 2, 2\)"):
        Table.of(np.zeros((2, 2, 2)))


def test_refused_at_prediction():
    with pytest.raises(NotFittedError):
        mk.MultiKernelClassifier(BANK).predict(DNA)
    model = mk.MultiKernelClassifier(MIXED).fit(FRAME, y)
    with (
        pytest.raises(ValueError, match="X has 2 features, but"),
        pytest.warns(UserWarning, match="feature names"),
    ):
        model.predict(FRAME.to_numpy()[:, :2])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME.rename(columns={"dna": "rna"}))
