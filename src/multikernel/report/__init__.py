"""Plots (:mod:`.plots`) and an HTML page (:func:`write_report`) about a fitted model.

:mod:`.findings` computes the numbers from a model and its sample; other modules draw them.

>>> import tempfile
>>> from pathlib import Path
>>> from sklearn.datasets import load_iris
>>> import multikernel as mk
>>> X, y = load_iris(return_X_y=True)
>>> model = mk.MultiKernelClassifier().fit(X, y)
>>> mk.report.write_report(model, X, y, Path(tempfile.mkdtemp()) / "iris.html").name
'iris.html'
"""

from __future__ import annotations

from .page import write_report

__all__ = ["write_report"]
