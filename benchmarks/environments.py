"""Peers in environments of their own, so that their pins do not touch ours, nor ours theirs.

The library too runs with nothing but what it depends on: packages that happen to be installed where
it is developed (pandas, matplotlib) are imported by scikit-learn and weigh as much as a fit.
Environments lie in ``~/.cache/multikernel-bench`` (or where ``MULTIKERNEL_BENCH_CACHE`` says) and
are made once; a change of pins makes them anew. A peer that cannot be installed is a row of the
table that says why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

SHARED = ("numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1")
#: What each peer is installed from.
PINS: dict[str, tuple[str, ...]] = {
    "mklpy": ("MKLpy==0.6", "torch==2.13.0", "cvxopt==1.3.3", *SHARED),
    "himalaya": ("himalaya==0.4.11", "packaging==26.3", *SHARED),
    "multimodal": ("scikit-multimodallearn==0.1.0", "cvxopt==1.3.3", *SHARED),
    # It calls scikit-learn by a keyword that versions from 1.8 on do not know.
    "snfpy": ("snfpy==0.2.2", "scikit-learn==1.5.2"),
    # Not its extra "deep", whose torchvision may be a build for another torch.
    "imml": (
        *("imml==0.6.0", "lightning==2.6.6", "torch==2.13.0", "torch-geometric==2.8.1"),
        "transformers==5.23.0",
    ),
    "mklaren": ("mklaren==1.2", "cvxopt==1.3.3", *SHARED),
    # The library runs beside these (benchmarks.accuracy): its dependencies are added. Wheels of
    # XGBoost without CUDA exist for Linux and Windows.
    "boosters": (
        *("lightgbm==4.7.0", "catboost==1.2.10"),
        "xgboost-cpu==3.2.0; platform_system != 'Darwin'",
        "xgboost==3.2.0; platform_system == 'Darwin'",
    ),
}
#: Runners that use the environment of the library itself.
OWN = ("ours", "sklearn", "numpy")
ROOT = Path(__file__).parent.parent
#: Why installations failed in this run; they are not tried again for every method of a peer.
_FAILED: dict[str, str] = {}


class InstallationError(Exception):
    """A peer's environment could not be made; the message says why, in one line."""


def cache() -> Path:
    named = os.environ.get("MULTIKERNEL_BENCH_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "multikernel-bench"


def own_pins() -> tuple[str, ...]:
    """The versions shared with the peers, and whatever else the library depends on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return (*SHARED, *project["dependencies"])


def python(peer: str) -> Path:
    """The interpreter that runs a peer, in an environment that is made if it is not there."""
    peer = "own" if peer in OWN else peer
    pins = () if peer == "own" else PINS[peer]
    if peer in ("own", "boosters"):
        pins = (*pins, *own_pins())
    folder = cache() / peer
    interpreter, stamp = folder / "bin" / "python", folder / "pins.txt"
    wanted = "\n".join(pins)
    if peer in _FAILED:
        raise InstallationError(_FAILED[peer])
    if stamp.exists() and stamp.read_text() == wanted:
        return interpreter
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    print(f"Installing {peer} into {folder} ...", flush=True)
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(interpreter), "-m", "pip", "install", "--quiet", *pins],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            lines = [x for x in (done.stderr or done.stdout).splitlines() if x.strip()]
            errors = [x for x in lines if "ERROR" in x] or lines or ["no message"]
            _FAILED[peer] = errors[-1].strip()
            raise InstallationError(_FAILED[peer])
    stamp.write_text(wanted)
    return interpreter
