"""Triton programs under its interpreter, against their twins in torch, on small tiles."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

import multikernel as mk
from tests.grams.contract import AMPLE, sample
from tests.grams.gpu.cases import has_gpu, needs_torch

pytestmark = [
    needs_torch,
    pytest.mark.skipif(has_gpu(), reason="the programs themselves run on the GPU, in test_shared"),
    pytest.mark.skipif(
        importlib.util.find_spec("triton") is None, reason="triton is not installed"
    ),
]
PROGRAMS = "multikernel.grams.gpu._programs"


@pytest.fixture
def interpreted(monkeypatch):
    """Programs are interpreted, on tiles so small that a pass has several of every kind."""
    from multikernel.grams.gpu import tiles

    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.delitem(sys.modules, PROGRAMS, raising=False)
    for name, size in {
        "BLOCK_ROWS": 16,
        "SUM_COLUMNS": 16,
        "MIXTURE_COLUMNS": 16,
        "DOT_ROWS": 16,
        "DOT_COLUMNS": 16,
        "DOT_WIDTH": 16,
        "PANEL_ROWS": 32,
        "SPLITS": 2,
    }.items():
        monkeypatch.setattr(tiles, name, size)
    yield
    sys.modules.pop(PROGRAMS, None)


KERNELS = {
    "gaussians": list(mk.gaussians([0.01, 0.1])),
    "gaussians on two levels": list(mk.gaussians([0.1, 50.0])),
    "laplacians": [mk.Laplacian(0.2), mk.Laplacian(2.0)],
}


def results(kernels, X, Y, weight):
    rng = np.random.default_rng(1)
    plan = mk.KernelBank(kernels).plan(X, engine="torch")
    grams = plan.grams(X, budget=AMPLE, sample_weight=weight).corrected(True, "trace")
    V, w = rng.normal(size=(len(X), 2)), np.linspace(0.1, 1.0, grams.p)
    summary = grams.summary(Y)
    return {
        "norms": summary.norms,
        "a": summary.a,
        "M": summary.M,
        "dense": grams.combine(w).dense(),
        "matvec": grams.combine(w).matvec(V),
        "rows": grams.combine(w).rows(np.array([3, 1])),
        "matvecs": grams.matvecs(V),
        "values": grams.expand(w, V).values(grams.points(np.arange(0, len(X), 7))),
    }


def assert_same(kernels, X, Y, weight, request):
    want = results(kernels, X, Y, weight)
    request.getfixturevalue("interpreted")
    found = results(kernels, X, Y, weight)
    for name, value in want.items():
        size = np.max(np.abs(value))
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-12 * size, err_msg=name)


@pytest.mark.parametrize("targets", ["classes", "numbers"])
@pytest.mark.parametrize("bank", list(KERNELS))
def test_programs_agree_with_their_twins(bank, targets, request):
    X = sample(40, d=6)
    X[5] = X[7] + 1e-5  # close to each other
    Y = np.random.default_rng(0).normal(size=(40, 1))
    Y = np.sign(Y) if targets == "classes" else Y
    assert_same(KERNELS[bank], X, Y, None, request)


@pytest.mark.parametrize("weight", [np.arange(40) % 3 > 0.0, np.linspace(0.5, 2.0, 40)])
def test_programs_with_sample_weights(weight, request):
    """Weights of zero and one leave high degrees to products of polynomials, others do not."""
    Y = np.sign(np.random.default_rng(0).normal(size=(40, 1)))
    kernels = KERNELS["gaussians on two levels"]
    assert_same(kernels, sample(40, d=6), Y, weight.astype(float), request)


@pytest.mark.parametrize("columns", [1, 2])
def test_rough_products(columns, request):
    request.getfixturevalue("interpreted")
    X = sample(50, d=20) + 300.0  # far from the origin
    grams = mk.gaussians([0.01, 0.02]).plan(X, engine="torch").grams(X, budget=AMPLE)
    gram = grams.corrected(True, "trace").combine(np.array([1.0, 2.0]))
    assert gram.rough_products
    V = np.random.default_rng(1).normal(size=(50, columns)) * 1e-60
    want = gram.matvec(V)
    found = gram.rough_matvec(V)
    error = np.abs(found - want).max() / np.abs(want).max()
    assert 0.0 < error < 1e-5  # in single precision, not in double


def test_there_are_no_rough_products_of_other_kernels(request):
    request.getfixturevalue("interpreted")
    X = sample(30, d=6)
    for kernels in ([mk.Laplacian(0.2), mk.Laplacian(2.0)], [mk.Gaussian(0.1), mk.Polynomial(2)]):
        grams = mk.KernelBank(kernels).plan(X, engine="torch").grams(X, budget=AMPLE)
        gram = grams.corrected(True, "trace").combine(np.ones(2))
        assert not gram.rough_products
        V = np.random.default_rng(1).normal(size=(30, 1))
        np.testing.assert_array_equal(gram.rough_matvec(V), gram.matvec(V))
