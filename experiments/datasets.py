"""Data sets of the learning-kernels literature, under the names the papers use.

A set is looked for in a local folder first, then in scikit-learn, then on OpenML. The local folder
is the one that the environment variable ``MULTIKERNEL_DATA`` names, or else ``shared/data`` beside
the checkout. It holds an ``index.json``, which maps each name to

``file``
    a ``.csv.gz`` with a header and the target in column ``y``, or a ``.npz`` with an array ``y``;
``task``
    ``"binary"`` (targets -1 and +1), ``"multiclass"`` or ``"regression"``;
``views``, ``beside``, ``text``, ``source`` (optional)
    the views of a multi-view set, the columns that are no features, whether the features are
    strings, and where the data came from.

Nothing is scaled, imputed or shuffled: missing entries are NaN, rows keep the order of the source.

>>> import multikernel as mk
>>> "ionosphere" in mk.datasets.names()
True
"""

from __future__ import annotations

import csv
import difflib
import gzip
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sklearn.utils import Bunch

__all__ = ["load", "names"]

logger = logging.getLogger(__name__)

VARIABLE = "MULTIKERNEL_DATA"


@dataclass(frozen=True)
class _Origin:
    """Where scikit-learn finds a set, and what must be there: a wrong set is worse than none."""

    task: str
    shape: tuple[int, int]
    key: str  # a loader of sklearn.datasets, or a name on OpenML
    version: int | None = None  # the version on OpenML; None for a loader
    positive: tuple[str, int] | None = None  # the class that becomes +1, and its size

    def __str__(self) -> str:
        if self.version is None:
            return f"sklearn.datasets.{self.key}"
        return f"OpenML {self.key!r}, version {self.version}"


_ORIGINS = {
    # bundled with scikit-learn
    "wdbc": _Origin("binary", (569, 30), "load_breast_cancer", positive=("malignant", 212)),
    "digits": _Origin("multiclass", (1797, 64), "load_digits"),
    "diabetes_progression": _Origin("regression", (442, 10), "load_diabetes"),
    # on OpenML: sets whose features are all numeric there
    "breastcancer": _Origin("binary", (699, 9), "breast-w", 1, ("malignant", 241)),
    "diabetes": _Origin("binary", (768, 8), "diabetes", 1, ("tested_positive", 268)),
    "ecoli": _Origin("multiclass", (336, 7), "ecoli", 1),
    "heart": _Origin("binary", (270, 13), "heart-statlog", 1, ("present", 120)),
    "ionosphere": _Origin("binary", (351, 34), "ionosphere", 1, ("g", 225)),
    "kin8nm": _Origin("regression", (8192, 8), "kin8nm", 1),
    "sonar": _Origin("binary", (208, 60), "sonar", 1, ("Mine", 111)),
    "spambase": _Origin("binary", (4601, 57), "spambase", 1, ("1", 1813)),
}


def names() -> list[str]:
    """List the data sets that `load` knows, sorted.

    Returns
    -------
    names : list of str
        The sets of the local folder, if there is one, and those that scikit-learn can fetch.

    Examples
    --------
    >>> from multikernel import datasets
    >>> {"ionosphere", "kin8nm", "wdbc"} <= set(datasets.names())
    True
    """
    return sorted({*_index(folder()), *_ORIGINS})


def load(name: str) -> Bunch:
    """Load one data set.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        `data`, the features: an array or a `csr_array` of shape (n_samples, n_features), or a
        DataFrame of texts or sequences. `target`, of shape (n_samples,): -1 and +1, the classes
        of the source, or real numbers, as `task` says. `feature_names`. `views`: the slice of
        columns of each view, or None. `extra`: arrays that come beside (a predefined split,
        similarity matrices, ...). `source`: where the data were read. `DESCR`: this in words.

    Raises
    ------
    ValueError, FileNotFoundError
        When no set of this name is known; when it is known and could not be downloaded.

    Examples
    --------
    >>> from multikernel import datasets
    >>> wdbc = datasets.load("wdbc")
    >>> wdbc.data.shape, wdbc.task
    ((569, 30), 'binary')
    """
    place = folder()
    entry = _index(place).get(name)
    if place is not None and entry is not None:
        path = place / entry["file"]
        if path.is_file():
            return _read(name, path, entry)
        if name not in _ORIGINS:
            raise FileNotFoundError(f"{place / 'index.json'} lists {name!r}, but {path} is absent.")
    if name not in _ORIGINS:
        close = " or ".join(map(repr, difflib.get_close_matches(name, names())))
        raise ValueError(
            f"Unknown data set {name!r}.{f' Did you mean {close}?' if close else ''} "
            f"Known: {', '.join(names())}. Local folder: {place or f'none, set {VARIABLE}'}."
        )
    return _fetch(name, _ORIGINS[name], place)


def folder() -> Path | None:
    """Return the local folder of data sets, or None where there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        place = Path(named).expanduser()
        if not (place / "index.json").is_file():
            raise FileNotFoundError(
                f"{VARIABLE} names {place}, which contains no index.json. Set it to a folder of "
                "data sets, or unset it."
            )
        return place
    checkout = Path(__file__).resolve().parents[1]
    place = checkout.parent / "shared" / "data"
    return place if (place / "index.json").is_file() else None


def _index(place: Path | None) -> dict[str, Any]:
    if place is None:
        return {}
    return json.loads((place / "index.json").read_text(encoding="utf-8"))


def _read(name: str, path: Path, entry: Mapping[str, Any]) -> Bunch:
    """Read one set of the local folder."""
    parts = (_read_npz if path.suffix == ".npz" else _read_csv)(path, entry)
    source = f"{path}, from {entry['source']}" if "source" in entry else str(path)
    return _bunch(name, task=entry["task"], source=source, **parts)


def _read_csv(path: Path, entry: Mapping[str, Any]) -> dict[str, Any]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    target = _typed(columns.pop("y"))
    extra = {column: _typed(columns.pop(column)) for column in entry.get("beside", ())}
    data: Any
    if entry.get("text"):
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                f"{path.name} contains text, which is returned as a DataFrame: install pandas."
            ) from error
        data = pd.DataFrame({column: list(cells) for column, cells in columns.items()})
    else:
        data = np.column_stack([_floats(cells) for cells in columns.values()])
    return {"data": data, "target": target, "feature_names": list(columns), "extra": extra}


def _read_npz(path: Path, entry: Mapping[str, Any]) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    target = arrays.pop("y")
    data: Any
    views, feature_names = None, None
    if "indptr" in arrays:  # the pattern of a sparse 0/1 matrix
        import scipy.sparse as sp

        indices, indptr = arrays.pop("indices"), arrays.pop("indptr")
        ones = np.ones(len(indices), dtype=np.float32)
        pattern = (ones, indices.astype(np.int32), indptr.astype(np.int32))
        data = sp.csr_array(pattern, shape=tuple(int(size) for size in arrays.pop("shape")))
    elif "packed" in arrays:  # two 4-bit values in a byte, the high one first
        packed = arrays.pop("packed")
        data = np.stack([packed >> 4, packed & 15], axis=-1).reshape(len(packed), -1)
        data = data.astype(np.float32)
    elif "X" in arrays:
        data = arrays.pop("X").astype(np.float32)
    else:
        blocks = [arrays.pop(view).astype(float) for view in entry["views"]]
        ends = np.cumsum([block.shape[1] for block in blocks]).tolist()
        views = dict(zip(entry["views"], map(slice, [0, *ends[:-1]], ends), strict=True))
        feature_names = [f"{v}_{j}" for v, at in views.items() for j in range(at.stop - at.start)]
        data = np.hstack(blocks)
    return {
        "data": data,
        "target": target.astype(int) if target.dtype.kind in "iu" else target,
        "feature_names": feature_names or [f"x{j}" for j in range(data.shape[1])],
        "views": views,
        "extra": arrays,
    }


def _floats(cells: Iterable[str]) -> np.ndarray:
    return np.array([float(cell) if cell else np.nan for cell in cells])


def _typed(cells: Sequence[str]) -> np.ndarray:
    """Return a column as integers if all its cells are, else as floats, else as strings."""
    for convert in (partial(np.array, dtype=int), _floats):
        with suppress(ValueError):
            return convert(cells)
    return np.array(cells)


def _fetch(name: str, origin: _Origin, place: Path | None) -> Bunch:
    """Get a set through scikit-learn, and make sure that it is the one we mean."""
    import sklearn.datasets

    logger.info("%s: not in a local folder, taken from %s", name, origin)
    try:
        if origin.version is not None:
            raw = sklearn.datasets.fetch_openml(
                origin.key, version=origin.version, as_frame=False, parser="liac-arff"
            )
        else:
            unscaled = {"scaled": False} if origin.key == "load_diabetes" else {}
            raw = getattr(sklearn.datasets, origin.key)(**unscaled)
    except (OSError, ValueError) as error:
        raise FileNotFoundError(
            f"Data set {name!r} is not in {place or 'a local folder (none is set)'} and could not "
            f"be downloaded from {origin} ({type(error).__name__}: {error}). Set {VARIABLE} to a "
            "folder that contains it, or allow network access."
        ) from error
    data, target, size = np.asarray(raw.data, dtype=float), np.asarray(raw.target), None
    if origin.positive is not None:
        label, size = origin.positive
        if target.dtype.kind in "iu":
            target = np.asarray(raw.target_names)[target]
        target = np.where(target == label, 1, -1)
    if data.shape != origin.shape or (size is not None and np.sum(target == 1) != size):
        raise FileNotFoundError(
            f"Data set {name!r}: {origin} gave an array of shape {data.shape} where {origin.shape} "
            f"was expected{f', {size} of them positive' if size else ''}, so it is a different "
            f"data set. Set {VARIABLE} to a folder that contains {name!r}."
        )
    parts = {"data": data, "target": target, "feature_names": list(raw.feature_names)}
    return _bunch(name, task=origin.task, source=str(origin), **parts)


def _bunch(name: str, **parts: Any) -> Bunch:
    """Complete the parts of a set, and describe it in words."""
    from sklearn.utils import Bunch

    bunch = Bunch(**{"views": None, "extra": {}, **parts})
    if bunch.task == "regression":
        bunch.target = bunch.target.astype(float)
    n, d = bunch.data.shape
    lines = [f"{name}: {n} samples, {d} features, {bunch.task}."]
    if bunch.task != "regression":
        sizes = zip(*np.unique(bunch.target, return_counts=True), strict=True)
        lines.append("Classes: " + ", ".join(f"{label} ({size})" for label, size in sizes) + ".")
    if bunch.views:
        lines.append("Views: " + ", ".join(bunch.views) + ".")
    if bunch.extra:
        lines.append("Beside the features: " + ", ".join(bunch.extra) + ".")
    if isinstance(bunch.data, np.ndarray) and np.isnan(bunch.data).any():
        lines.append(f"Missing entries: {np.isnan(bunch.data).sum()}, left as NaN.")
    bunch.DESCR = "\n".join([*lines, f"Source: {bunch.source}."])
    return bunch
