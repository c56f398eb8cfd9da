"""``multikernel warm-up``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import typer

from . import options as o
from .common import Out, command


@command
def warm_up(quiet: o.Quiet = False, as_json: o.Json = False) -> None:
    """Compile the loops for large samples now, and store them on disk.

    Fits on up to 2,000 samples need nothing compiled. Beyond that the first fit of a new
    installation compiles what it needs; this command does so in advance, once, for instance while
    building a container image. Set NUMBA_CACHE_DIR to store the compiled files in another folder
    than that of the package.

    [bold]Example[/]

    NUMBA_CACHE_DIR=/opt/multikernel multikernel warm-up
    """
    from .._compiling import kept_in

    say = Out(quiet, as_json)
    begun = time.process_time()
    tasks = list(_tasks().items())
    with say.progress("Compiling", len(tasks)) as step:
        for name, task in tasks:
            task()
            step(name)
    folder, seconds = kept_in(), time.process_time() - begun
    if folder is None:
        raise OSError(
            "Compiled code cannot be stored here: set NUMBA_CACHE_DIR to a writable folder."
        )
    say.text(f"Compiled code is in {folder} ({seconds:.0f} s of processor time).")
    say.result({"folder": folder, "seconds": seconds})


def _tasks() -> dict[str, Callable[[], object]]:
    """Fits, by name, that are just large enough to need compiled loops."""
    import warnings

    import numpy as np

    from .. import estimators as e
    from .._small import SMALL_SAMPLES
    from ..kernels import Gaussian, KernelBank, Laplacian, Polynomial

    rng = np.random.default_rng(0)
    X = rng.normal(size=(SMALL_SAMPLES + 1, 3))
    y = np.sign(X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.1 * rng.normal(size=len(X)))
    bank = KernelBank([Gaussian(0.1), Gaussian(1.0), Laplacian(0.5), Polynomial(2)])
    common: dict[str, Any] = {"kernels": bank, "memory_budget": "2GB"}

    def fit(model: object, dtype: type = np.float64) -> Callable[[], object]:
        def run() -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = model.fit(X.astype(dtype), y)  # type: ignore[attr-defined]
                fitted.predict(X.astype(dtype))

        return run

    return {
        "classification": fit(e.MultiKernelClassifier(weighting="alignf", **common)),
        "single precision": fit(e.MultiKernelClassifier(weighting="alignf", **common), np.float32),
        "joint weights": fit(e.MultiKernelClassifier(weighting="lp", **common)),
        "regression": fit(e.MultiKernelRegressor(weighting="align", **common)),
        "many Gaussians": fit(
            e.MultiKernelRegressor(
                kernels=KernelBank([Gaussian(2.0**k) for k in range(-6, 6)]), weighting="alignf"
            )
        ),
        "leave-one-out": fit(e.MultiKernelRegressor(**common)),
    }


def register(app: typer.Typer) -> None:
    app.command(name="warm-up")(warm_up)
