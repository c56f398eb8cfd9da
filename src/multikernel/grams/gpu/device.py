"""Find the device named in an engine name; errors say what is missing."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..memory import MemoryBudget

#: Minimum compute capability: double precision and Triton work from Volta on.
OLDEST_CAPABILITY = (7, 0)
#: Share of the free memory of a GPU that a fit may use by default.
FREE_SHARE = 0.9
#: Maximum number of entries of a panel of kernel values; a pass holds a few such arrays.
GPU_PANEL_ENTRIES, CPU_PANEL_ENTRIES = 2**26, 2**20
#: Results between these sizes are copied to the host through pinned memory.
PINNED_BYTES = (2**20, 2**29)
#: Largest part of the memory budget that a panel may use.
PANEL_BUDGET_SHARE = 1 / 32


class DeviceError(RuntimeError, ValueError):
    """The requested device cannot be used; the message says why, and which devices can be."""


@dataclass(frozen=True)
class Device:
    """A torch device by name: "cpu", "cuda" or "cuda:1"."""

    name: str

    @property
    def on_gpu(self) -> bool:
        return self.name.startswith("cuda")

    @property
    def torch(self) -> Any:
        return importlib.import_module("torch")

    def put(self, values: Any, dtype: Any = None) -> Any:
        """A tensor with these values on the device, float64 by default.

        On a processor it may share memory with the values, so do not write to it.
        """
        torch = self.torch
        dtype = torch.float64 if dtype is None else dtype
        if not isinstance(values, torch.Tensor):
            values = np.asarray(values)
            if not values.flags.writeable:  # torch warns about read-only arrays
                values = values.copy()
            values = torch.from_numpy(np.ascontiguousarray(values))
        return values.to(device=self.name, dtype=dtype)

    def empty(self, *shape: int) -> Any:
        return self.torch.empty(shape, dtype=self.torch.float64, device=self.name)

    def zeros(self, *shape: int) -> Any:
        return self.torch.zeros(shape, dtype=self.torch.float64, device=self.name)

    def index(self, positions: Any) -> Any:
        """Positions as a tensor of integers on the device."""
        return self.put(np.asarray(positions, dtype=np.int64), self.torch.int64)

    def panel_rows(self, width: int, budget: MemoryBudget) -> int:
        """Number of rows of a panel with this many columns."""
        entries = GPU_PANEL_ENTRIES if self.on_gpu else CPU_PANEL_ENTRIES
        entries = min(entries, int(PANEL_BUDGET_SHARE * budget.bytes / 8))
        return max(1, entries // max(width, 1))

    def describe(self) -> str:
        """The description of the device in `engine_` of an estimator."""
        if not self.on_gpu:
            return f"torch on {self.name}"
        return f"torch on {self.name} ({self.torch.cuda.get_device_name(self.name)})"


def host(tensor: Any) -> np.ndarray:
    """The values of a tensor in host memory."""
    size = tensor.numel() * tensor.element_size()
    if not tensor.is_cuda or not PINNED_BYTES[0] <= size <= PINNED_BYTES[1]:
        return np.asarray(tensor.detach().cpu().numpy())
    torch = importlib.import_module("torch")
    # Copies to pinned memory are several times as fast; torch keeps it for the next copy.
    out = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    out.copy_(tensor)
    return np.asarray(out.numpy())


def find_device(name: str) -> Device:
    """The device of this name; an error says why it cannot be used."""
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdigit()):
        raise ValueError(
            f"device must be 'cpu', 'cuda', or a numbered GPU such as 'cuda:1'; got {name!r}."
        )
    if importlib.util.find_spec("torch") is None:
        raise ImportError(
            f"The engine 'torch' (device={name!r}) needs torch, which is not installed. Install it "
            "with pip install 'multikernel[gpu]', or use engine='cpu' and device=None."
        )
    torch = importlib.import_module("torch")
    if kind == "cpu":
        return Device("cpu")
    if not torch.cuda.is_available():
        built = "was built without CUDA" if torch.version.cuda is None else "finds no GPU"
        raise DeviceError(
            f"device={name!r} needs an NVIDIA GPU, but torch {torch.__version__} {built}. Use "
            "device=None to compute on the CPU, or install a CUDA build of torch and an NVIDIA "
            "driver."
        )
    count = torch.cuda.device_count()
    if number and int(number) >= count:
        raise DeviceError(f"device={name!r}: there are {count} GPUs, numbered from 0.")
    found = torch.cuda.get_device_capability(name)
    if found < OLDEST_CAPABILITY:
        raise DeviceError(
            f"device={name!r} is a {torch.cuda.get_device_name(name)} of compute capability "
            f"{found[0]}.{found[1]}; {OLDEST_CAPABILITY[0]}.{OLDEST_CAPABILITY[1]} or newer is "
            "needed. Use device=None to compute on the CPU."
        )
    if importlib.util.find_spec("triton") is None:
        raise ImportError(
            f"device={name!r} needs triton, which is not installed. Install it with pip install "
            "'multikernel[gpu]', or use device=None to compute on the CPU."
        )
    return Device(name if number else f"cuda:{torch.cuda.current_device()}")


def device_budget(device: Device, budget: Any) -> MemoryBudget:
    """The memory of the device that a fit may use: the given budget, or most of the free memory."""
    if budget is None and device.on_gpu:
        cuda = device.torch.cuda
        free, _ = cuda.mem_get_info(device.name)
        # torch keeps the memory of arrays that no longer exist for the next ones.
        kept = cuda.memory_reserved(device.name) - cuda.memory_allocated(device.name)
        return MemoryBudget(int(FREE_SHARE * (free + kept)))
    return MemoryBudget.of(budget)
