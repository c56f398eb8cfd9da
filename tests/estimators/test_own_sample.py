"""Estimators recognise the sample that they were fitted to, also when they come from a file."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import multikernel as mk
from multikernel.estimators.own_sample import is_own_sample
from multikernel.rows import open_rows

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
Y = (X[:, 0] + 0.3 * RNG.standard_normal(60) > 0).astype(int)
GENES = np.array(["".join(RNG.choice(list("ACGT"), 8)) for _ in range(60)])
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    colour=pd.Categorical(np.where(Y, "red", "blue"))
)
GAPS = np.where(RNG.random((60, 4)) < 0.1, np.nan, X)
BANK = mk.gaussians([0.1, 1.0])
VIEWS = mk.per_view({"left": [0, 1], "right": [2, 3]})

CASES = {
    "array": (mk.MultiKernelClassifier(BANK), X),
    "float32": (mk.MultiKernelClassifier(BANK), X.astype(np.float32)),
    "Fortran": (mk.MultiKernelClassifier(BANK), np.asfortranarray(X)),
    "sparse": (mk.MultiKernelClassifier(mk.per_feature()), sp.csr_array(np.abs(X) * (X > 0))),
    "frame": (mk.MultiKernelClassifier(), FRAME),
    "missing": (mk.MultiKernelClassifier(VIEWS, missing="ignore"), GAPS),
    "sequences": (mk.MultiKernelClassifier([mk.Spectrum(2), mk.Spectrum(3)]), GENES),
    "kernels": (mk.MultiKernelClassifier("precomputed"), np.stack([X @ X.T, (X @ X.T) ** 2], -1)),
    "ids": (mk.MultiKernelClassifier(mk.precomputed([X @ X.T])), mk.sample_ids(60)),
    "search": (mk.MultiKernelClassifierCV(BANK, cv=3), X),
    "one class": (mk.MultiKernelOneClass(BANK), X),
    "vote": (mk.VotedKernelClassifier(BANK), X),
    "ensemble": (mk.KernelEnsembleClassifier(BANK), X),
    "averages": (mk.ParzenClassifier(BANK), X),
    "spectrum": (mk.SpectralKernelClassifier(mk.Gaussian(0.5)), X),
}


def rows_of(data, index):
    if hasattr(data, "iloc"):
        return data.iloc[index]
    return data[np.ix_(index, index)] if np.ndim(data) == 3 else data[index]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_the_own_sample_and_no_other(name, tmp_path):
    model, data = CASES[name]
    model.fit(data, Y)
    shuffled = rows_of(data, np.r_[1, 0, 2:60])
    for one in (model, mk.load(mk.save(model, tmp_path / "m.skops")), pickle.loads(
        pickle.dumps(model)
    )):  # fmt: skip
        assert is_own_sample(one, data)
        assert not is_own_sample(one, shuffled)
    if np.ndim(data) < 3:  # of kernels, a part has fewer columns than the model needs
        assert not is_own_sample(model, rows_of(data, np.arange(40)))


def test_samples_of_weight_zero_belong_to_the_sample():
    weights = np.r_[0.0, np.ones(59)]
    model = mk.MultiKernelClassifier(BANK).fit(X, Y, sample_weight=weights)
    assert is_own_sample(model, X) and not is_own_sample(model, X[1:])


def test_long_samples_are_recognised_by_some_rows():
    long = np.repeat(X, 1000, axis=1)
    model = mk.MultiKernelClassifier([mk.Linear()]).fit(long, Y)
    assert is_own_sample(model, long) and not is_own_sample(model, long[::-1])


def test_models_without_a_digest_know_the_number_of_samples():
    model = mk.MultiKernelClassifier(BANK).fit(X, Y)
    del model._sample_digest  # as in files of earlier versions
    assert is_own_sample(model, X) and not is_own_sample(model, X[:40])
    way = mk.Nystroem(rank=10)
    rows = mk.MultiKernelRegressor(BANK, "alignf", approximation=way).fit(open_rows(X, X[:, 0]))
    assert is_own_sample(rows, X) and not is_own_sample(rows, X[:40])
