"""Choice of the device on which estimators compute, and arrays of other libraries.

Public methods accept tensors of torch and arrays of CuPy, and return the same kind of array on the
same device. If the array is on a GPU, kernels are computed on that GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import getattr_static, isfunction
from typing import Any

import numpy as np

from ..grams.engines import move_expansion
from ..grams.planning import DEFAULT_ENGINE

#: Public methods whose arguments may be tensors; the result is converted back, except a score.
METHODS = (
    "fit",
    "fit_predict",
    "predict",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "score",
    "score_samples",
    "transform",
    "fit_transform",
)


@dataclass(frozen=True)
class ArrayKind:
    """The library of an array, "torch" or "cupy", and its device in the words of torch."""

    library: str
    device: str

    @classmethod
    def of(cls, X: Any) -> ArrayKind | None:
        """The kind of an array; None for NumPy arrays and all other objects."""
        module = type(X).__module__.partition(".")[0]
        if module == "torch" and hasattr(X, "detach"):
            return cls("torch", str(X.device))
        if module == "cupy" and hasattr(X, "get"):
            return cls("cupy", f"cuda:{X.device.id}")
        return None

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")

    def back(self, values: Any) -> Any:
        """Convert a numeric NumPy array to this kind; return anything else unchanged."""
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiub":
            return values
        if self.library == "torch":
            import torch

            return torch.from_numpy(np.array(values)).to(self.device)
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(int(self.device.partition(":")[2])):
            return cupy.asarray(values)


def to_host(X: Any) -> Any:
    """Convert a tensor to a NumPy array; return anything else unchanged."""
    kind = ArrayKind.of(X)
    if kind is None:
        return X
    return X.detach().cpu().numpy() if kind.library == "torch" else X.get()


def with_tensors(method: Callable[..., Any], fits: bool) -> Callable[..., Any]:
    """Wrap a method so that it also takes tensors, and returns tensors of the same kind."""

    @wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        kind = ArrayKind.of(X)
        # `fit_transform` of a tensor calls `fit` with an array, but the device stays the same.
        within = "_tensor_call" in self.__dict__
        if fits and not within:
            self.__dict__.pop("_tensor_device", None)  # of an earlier fit
        if kind is None:
            return method(self, X, *args, **kwargs)
        if kind.on_gpu and fits:
            self._tensor_device = kind.device
        elif kind.on_gpu and "_expansion" in self.__dict__:
            self._expansion = move_expansion(self._expansion, kind.device)
        args = tuple(to_host(value) for value in args)
        kwargs = {name: to_host(value) for name, value in kwargs.items()}
        self._tensor_call = True
        try:
            return kind.back(method(self, to_host(X), *args, **kwargs))
        finally:
            self.__dict__.pop("_tensor_call", None)

    wrapped.takes_tensors = True  # type: ignore[attr-defined]
    return wrapped


class DeviceMixin:
    """`device` of an estimator, and public methods that take tensors."""

    #: "cpu", "cuda", "cuda:1", or None for the engine as it is and the device of X
    device: str | None = None
    engine: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in METHODS:
            method = getattr_static(cls, name, None)  # of the class, or of a mixin
            if isfunction(method) and not hasattr(method, "takes_tensors"):
                setattr(cls, name, with_tensors(method, name.startswith("fit")))

    @property
    def _engine_name(self) -> str:
        """The name of the engine with the requested device, else with the device of X."""
        device = self.device
        if device is None:
            device = self.__dict__.get("_tensor_device")
        if device is None:
            return self.engine
        if device == "":
            raise ValueError(
                "device must be 'cpu', 'cuda', a numbered GPU such as 'cuda:1', or None; got ''."
            )
        name = self.engine.partition(":")[0]
        return f"{'torch' if name == DEFAULT_ENGINE else name}:{device}"
