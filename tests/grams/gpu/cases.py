"""What the tests of the engine "torch" share: the devices, and a reason to skip without torch."""

from __future__ import annotations

import importlib.util

import pytest

#: torch is no part of the development tools, for its size; tests that need it say so and skip.
HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(
    not HAS_TORCH, reason="torch is not installed: pip install 'multikernel[gpu]'"
)


def has_gpu() -> bool:
    if not HAS_TORCH:
        return False
    import torch

    torch.set_num_threads(1)  # workers of the test suite keep to one thread
    return torch.cuda.is_available()


#: The processor always, and a GPU where there is one.
DEVICES = ["cpu", "cuda"] if has_gpu() else ["cpu"]
#: The device of contract tests, which have no parameter for it: the best there is.
DEVICE = DEVICES[-1]
needs_gpu = pytest.mark.skipif(not has_gpu(), reason="no GPU that torch can use")
