"""Where estimators compute: devices, tensors in and out, errors, files."""

from __future__ import annotations

import importlib.util
import pickle
import sys
import types

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.utils.estimator_checks import parametrize_with_checks

import multikernel as mk
from tests.grams.gpu.cases import DEVICES, has_gpu, needs_gpu, needs_torch

BANK = mk.gaussians([0.001, 0.01, 0.1])


@pytest.fixture(scope="module")
def data():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[::4], y[::4], X[1::4], y[1::4]


def classifier(weighting, **options):
    return mk.MultiKernelClassifier(BANK, weighting, **options)


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weighting", ["alignf", "lp", "loo"])
def test_classifiers_agree_with_the_processor(data, weighting, device):
    X, y, X_new, _ = data
    ours = classifier(weighting, device=device).fit(X, y)
    other = classifier(weighting).fit(X, y)
    assert ours.engine_.startswith(f"torch on {device}") and other.engine_ == "cpu"
    np.testing.assert_allclose(ours.kernel_weights_, other.kernel_weights_, atol=1e-8)
    found, want = ours.decision_function(X_new), other.decision_function(X_new)
    np.testing.assert_allclose(found, want, atol=1e-6)
    assert ours.duality_gap_ <= 1e-3
    shares = ours.decision_function(X_new, split=True).sum(axis=1) + ours.intercept_
    np.testing.assert_allclose(shares, found, atol=1e-9)


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "make",
    [
        lambda **o: mk.MultiKernelRegressor(BANK, "alignf", **o),
        lambda **o: mk.MultiKernelRegressor(BANK, "alignf", loss="epsilon_insensitive", **o),
        lambda **o: mk.MultiKernelOneClass(BANK, **o),
        lambda **o: mk.MultiKernelClassifier(BANK, "l1", loss="logistic", **o),
        lambda **o: mk.MultiKernelRegressorCV(BANK, "alignf", alphas=[0.1, 1.0], cv=2, **o),
    ],
    ids=["ridge", "svr", "one-class", "logistic", "search"],
)
def test_other_learners_agree_with_the_processor(data, make, device):
    X, y, X_new, _ = data
    target = (y,) if isinstance(make(), mk.MultiKernelClassifier) else (X[:, 0],)
    ours, other = make(device=device).fit(X[:, 1:], *target), make().fit(X[:, 1:], *target)
    answer = "decision_function" if hasattr(ours, "decision_function") else "predict"
    found, want = (getattr(model, answer)(X_new[:, 1:]) for model in (ours, other))
    np.testing.assert_allclose(found, want, atol=1e-5 * np.abs(want).max())


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
def test_tensors_come_back_as_tensors(data, device):
    import torch

    X, y, X_new, y_new = (torch.tensor(a).to(device) for a in data)
    model = classifier("alignf").fit(X, y)
    assert model.engine_.startswith("torch on cuda" if device == "cuda" else "cpu")
    for method in ("predict", "decision_function", "predict_proba"):
        answer = getattr(model, method)(X_new)
        assert isinstance(answer, torch.Tensor) and answer.device == X.device
        np.testing.assert_array_equal(answer.cpu(), getattr(model, method)(data[2]))
    assert model.score(X_new, y_new) > 0.9
    again = model.fit(data[0], data[1])
    assert again.engine_ == "cpu" and isinstance(again.predict(data[2]), np.ndarray)


@needs_gpu
def test_arrays_of_cupy_come_back_as_such(data):
    cupy = pytest.importorskip("cupy")
    X, y, X_new, _ = (cupy.asarray(a) for a in data)
    model = classifier("alignf").fit(X, y)
    assert model.engine_.startswith("torch on cuda")
    assert isinstance(model.predict(X_new), cupy.ndarray)


def test_arrays_of_cupy_are_recognised(data, monkeypatch):
    """With a stand-in: CuPy needs a GPU."""
    from multikernel.estimators.devices import ArrayKind, to_host

    class ndarray:
        __module__ = "cupy"
        device = types.SimpleNamespace(id=1)

        def get(self):
            return np.arange(3.0)

    assert ArrayKind.of(ndarray()) == ArrayKind("cupy", "cuda:1")
    np.testing.assert_array_equal(to_host(ndarray()), np.arange(3.0))
    assert ArrayKind.of(data[0]) is None and to_host(data[0]) is data[0]


@pytest.mark.parametrize(
    ("model", "method"),
    [(mk.KernelClustering(2, BANK), "fit_predict"), (mk.ConsensusKernel(BANK), "fit_transform")],
)
def test_methods_that_call_fit_keep_the_device(data, monkeypatch, model, method):
    """With a stand-in for arrays on a GPU."""
    from multikernel.estimators import devices

    class Tensor:
        def __init__(self, values):
            self.values = values

    kind = devices.ArrayKind("cupy", "cuda:1")
    asked = []
    engine = devices.DeviceMixin._engine_name.fget
    seen = property(lambda self: (asked.append(engine(self)), "cpu")[1])
    monkeypatch.setattr(devices.DeviceMixin, "_engine_name", seen)
    monkeypatch.setattr(devices.ArrayKind, "of", lambda X: kind if isinstance(X, Tensor) else None)
    monkeypatch.setattr(devices.ArrayKind, "back", lambda self, values: values)
    monkeypatch.setattr(devices, "to_host", lambda X: X.values if isinstance(X, Tensor) else X)
    monkeypatch.setattr(devices, "move_expansion", lambda expansion, device: expansion)
    getattr(model, method)(Tensor(data[0]))
    assert set(asked) == {"torch:cuda:1"} and "_tensor_call" not in vars(model)
    asked.clear()
    model.fit(data[0])
    assert set(asked) == {"cpu"}


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
def test_models_are_saved_without_their_device(data, device, tmp_path):
    X, y, X_new, _ = data
    bank = [*BANK, mk.Laplacian(0.01), mk.Linear() + mk.Gaussian(0.02)]
    model = mk.MultiKernelClassifier(bank, "alignf", device=device).fit(X, y)
    want = model.decision_function(X_new)
    loaded = mk.load(mk.save(model, tmp_path / "model.skops"))
    for copy in (loaded, pickle.loads(pickle.dumps(model))):
        crosses = {type(part.cross).__name__ for part in copy._expansion.parts if part}
        assert not any(name.startswith("Device") for name in crosses)
        np.testing.assert_allclose(copy.decision_function(X_new), want, atol=1e-9)
    assert loaded.engine_ == model.engine_


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
def test_a_loaded_model_moves_to_the_device_of_its_inputs(data, device):
    from multikernel.grams.engines import move_expansion

    X, y, X_new, _ = data
    model = classifier("alignf").fit(X, y)
    want = model.decision_function(X_new)
    model._expansion = move_expansion(model._expansion, device)
    assert type(model._expansion.cross).__name__ == "DeviceSharedCross"
    np.testing.assert_allclose(model.decision_function(X_new), want, atol=1e-10)
    assert move_expansion(model._expansion, device) is model._expansion


def test_without_torch_the_error_says_what_to_install(data, monkeypatch):
    from multikernel.grams.gpu import device

    found = importlib.util.find_spec
    monkeypatch.setattr(
        device.importlib.util, "find_spec", lambda name: None if name == "torch" else found(name)
    )
    with pytest.raises(ImportError, match=r"needs torch.*pip install 'multikernel\[gpu\]'"):
        classifier("alignf", device="cuda").fit(*data[:2])


@needs_torch
@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
def test_without_a_gpu_the_error_says_so(data):
    with pytest.raises(RuntimeError, match=r"device='cuda' needs an NVIDIA GPU, but torch"):
        classifier("alignf", device="cuda").fit(*data[:2])


@needs_torch
def test_a_card_that_is_too_old_is_named(data, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda name: (6, 1))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda name: "GTX 1080")
    with pytest.raises(RuntimeError, match=r"GTX 1080 of compute capability 6\.1; 7\.0 or newer"):
        classifier("alignf", device="cuda").fit(*data[:2])
    with pytest.raises(RuntimeError, match="there are 1 GPUs"):
        classifier("alignf", device="cuda:3").fit(*data[:2])


@needs_torch
@pytest.mark.parametrize("name", ["gpu", "cuda:x", "mps"])
def test_unknown_devices_are_refused(data, name):
    with pytest.raises(ValueError, match=r"device must be 'cpu', 'cuda'"):
        classifier("alignf", device=name).fit(*data[:2])


def test_nothing_imports_torch_before_it_is_used():
    """In a fresh interpreter: this one may have torch from other tests."""
    import subprocess

    code = "import sys, multikernel.estimators.devices; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_torch
@needs_gpu
def test_the_memory_budget_of_the_card_holds():
    import torch

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12_000, 20)), rng.normal(size=12_000)
    bank = mk.gaussians(np.geomspace(1e-3, 1e-1, 20))
    for budget in (0.3e9, 3e9):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        model = mk.MultiKernelRegressor(bank, "alignf", device="cuda", memory_budget=budget)
        model.fit(X, y).predict(X)
        assert torch.cuda.max_memory_allocated() <= 1.1 * budget


if importlib.util.find_spec("torch") is not None:

    @pytest.mark.slow
    @parametrize_with_checks(
        [mk.MultiKernelClassifier(device="cpu"), mk.MultiKernelRegressor(device="cpu")]
    )
    def test_checks_of_scikit_learn(estimator, check):
        check(estimator)
