"""Classifiers of imml for views of which some are missing: reads a problem, prints test errors.

    python run_imml.py PROBLEM.npz

The file has the number of views, an array for each (``view0``, ...) with NaN rows where a sample
lacks it, the classes ``y`` (0, 1, ...) and the number ``n`` of training samples, which come first.
Views are standardised on the training sample. Everything else is imml's default.
"""

from __future__ import annotations

import importlib.machinery
import json
import logging
import sys
import time
import types
import warnings
from typing import Any

import numpy as np
import pandas as pd
import torch
import transformers  # noqa: F401  before torchvision is replaced
from lightning import Trainer, seed_everything
from torch.utils.data import DataLoader

# imml imports torchvision, for images. Its builds do not all go with those of torch, and there are
# no images here.
for name in ("torchvision", "torchvision.models", "torchvision.transforms"):
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__path__ = []
    sys.modules[name] = module

from imml.classify import MUSE, M3Care  # noqa: E402
from imml.load import M3CareDataset, MUSEDataset  # noqa: E402

#: Classifiers with their data sets and epochs; more epochs did not help on digits.
CLASSIFIERS = {"M3Care": (M3Care, M3CareDataset, 60), "MUSE": (MUSE, MUSEDataset, 300)}
BATCH = 32


def standardised(X: np.ndarray, n: int) -> pd.DataFrame:
    mean, spread = np.nanmean(X[:n], axis=0), np.nanstd(X[:n], axis=0)
    return pd.DataFrame((X - mean) / np.where(spread > 0, spread, 1.0))


def prepared(dataset: Any, Xs: list[pd.DataFrame], y: np.ndarray) -> Any:
    """The data set, which knows by then which views are missing, with zeros instead of NaN.

    MUSE multiplies what is missing by zero; with NaN its predictions would be NaN.
    """
    made = dataset(Xs, torch.from_numpy(y))
    made.Xs = [torch.nan_to_num(X) for X in made.Xs]
    return made


def error(name: str, Xs: list[pd.DataFrame], y: np.ndarray, n: int) -> float:
    """The share of wrong labels among the samples after the first n."""
    kind, dataset, epochs = CLASSIFIERS[name]
    seed_everything(0)
    options = {"vocab": []} if name == "M3Care" else {}  # of texts, of which there are none
    model = kind(
        modalities=["tabular"] * len(Xs),
        input_dim=[X.shape[1] for X in Xs],
        output_dim=int(y.max()) + 1,
        **options,
    )
    trainer = Trainer(
        max_epochs=epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
    )
    train = prepared(dataset, [X[:n] for X in Xs], y[:n])
    trainer.fit(model, DataLoader(train, batch_size=BATCH, shuffle=True))
    test = prepared(dataset, [X[n:].reset_index(drop=True) for X in Xs], y[n:])
    found = trainer.predict(model, DataLoader(test, batch_size=len(y) - n))
    return float(np.mean(torch.cat(list(found)).argmax(dim=1).numpy() != y[n:]))


def main() -> None:
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with np.load(sys.argv[1]) as file:
        n, y = int(file["n"]), file["y"].astype(np.int64)
        Xs = [standardised(file[f"view{j}"], n) for j in range(int(file["views"]))]
    for name in CLASSIFIERS:
        started = time.process_time()
        try:
            found = error(name, Xs, y, n)
        except Exception as reason:  # another number of views than it was written for
            print(f"{name}: {reason}", file=sys.stderr)
            continue
        print(json.dumps([name, found, time.process_time() - started]), flush=True)


if __name__ == "__main__":
    main()
