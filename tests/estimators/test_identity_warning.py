"""A fit whose kernels are too narrow for the columns says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import multikernel as mk


@pytest.mark.parametrize("weighting", ["uniform", "alignf", "loo", "lp"])
def test_narrow_kernels_on_raw_columns_are_named(weighting):
    X, y = load_breast_cancer(return_X_y=True)
    bank = mk.gaussians([0.1, 1.0])
    model = mk.MultiKernelClassifier(bank, weighting)
    with pytest.warns(UserWarning, match=r"nearly the identity.*Gaussian\(gamma=0.1\).*scaling"):
        model.fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) < 0.7  # the majority class
    scaled = mk.MultiKernelClassifier(mk.gaussians([0.001, 0.01], scaling="standard"), weighting)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled.fit(X[::2], y[::2])
    assert scaled.score(X[1::2], y[1::2]) > 0.95


def test_wide_and_linear_kernels_give_no_warning():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 200))
    y = X[:, :20].sum(1) > 0
    for bank in (mk.gaussians([1e-4]), mk.KernelBank([mk.Linear()]), mk.at_distances()):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mk.MultiKernelClassifier(bank, "uniform").fit(X, y)
