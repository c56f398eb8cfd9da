"""What a fitted model shows: pictures (:mod:`.plots`), a page (:func:`write_report`), a table.

:mod:`.findings` reads the numbers off a model and its sample; what draws them computes nothing.

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
