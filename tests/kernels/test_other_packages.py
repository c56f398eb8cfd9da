"""Kernels of other packages as views: graphs, molecules, time series; each where it is installed.

The examples of the page on views are run as they are printed there, and what they return is checked
against the other package itself.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import multikernel as mk

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "views.md"


def run_example(package):
    """Run the block of the page that imports a package, and return its names."""
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (code,) = [block for block in blocks if f"from {package}" in block]
    names = {"np": np, "mk": mk}
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def test_graphs_with_grakel():
    pytest.importorskip("grakel")
    names = run_example("grakel")
    model, ids, is_ring = names["model"], names["ids"], names["is_ring"]
    assert model.score(ids[30:], is_ring[30:]) == 1.0
    assert set(model.view_weights_) == {"graph"}
    # The matrices are those of the package, whatever the samples that a model is fitted to.
    K = names["matrices"][0]
    np.testing.assert_allclose(names["bank"][0](ids[:5], ids[5:9]), K[:5, 5:9])


def test_molecules_with_rdkit():
    pytest.importorskip("rdkit")
    from rdkit import DataStructs
    from rdkit.Chem import rdFingerprintGenerator

    names = run_example("rdkit")
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=512)
    bits = [morgan.GetFingerprint(molecule) for molecule in names["molecules"]]
    expected = [[DataStructs.TanimotoSimilarity(a, b) for b in bits] for a in bits]
    np.testing.assert_allclose(mk.Tanimoto()(names["tables"]["structure"]), expected, atol=1e-12)
    counts = [morgan.GetCountFingerprint(molecule) for molecule in names["molecules"]]
    dense = np.stack([morgan.GetCountFingerprintAsNumPy(m) for m in names["molecules"]])
    expected = [[DataStructs.TanimotoSimilarity(a, b) for b in counts] for a in counts]
    np.testing.assert_allclose(mk.MinMax()(dense.astype(float)), expected, atol=1e-12)


def test_time_series_with_tslearn(rng):
    """The global alignment kernel, as a function and as matrices: the same model."""
    metrics = pytest.importorskip("tslearn.metrics")
    t = np.arange(20)
    y = np.tile([0, 1], 15)
    shift = rng.uniform(0, 3, size=(30, 1))
    series = np.sin((t + shift) * np.where(y[:, None] == 1, 0.5, 0.9)) + 0.1 * rng.normal(
        size=(30, 20)
    )

    def alignment(A, B):
        return metrics.cdist_gak(A[:, :, None], B[:, :, None], sigma=2.0)

    direct = mk.MultiKernelClassifier([mk.Callable(alignment, psd=True)], "uniform")
    direct.fit(series[:20], y[:20])
    ids = mk.sample_ids(30)
    given = mk.MultiKernelClassifier(mk.precomputed([alignment(series, series)]), "uniform")
    given.fit(ids[:20], y[:20])
    found, expected = direct.decision_function(series[20:]), given.decision_function(ids[20:])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert given.score(ids[20:], y[20:]) > 0.8
