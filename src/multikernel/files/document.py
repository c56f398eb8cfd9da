"""Convert objects to a description in plain JSON values and a list of arrays, and back.

Numbers, texts, None and lists are described by themselves. Everything else is a dictionary with one
key that says what it is:

==========  ====================================================================================
``object``  ``[name, {attribute: value}]`` of a registered class; objects are numbered in order
``seen``    the number of an earlier object: shared objects stay shared
``array``   an index into the arrays; ``scalar`` the same for a NumPy scalar
``sparse``  ``[format, shape, data, indices, indptr]``
``items``   ``[shape, values]`` of an array of objects (texts, lists of tokens)
``tuple``   a list of values; ``numbers`` an index into the arrays for a long one of plain numbers
``dict``    pairs of key and value
``float``   ``"nan"``, ``"inf"`` or ``"-inf"``
``slice``, ``dtype``, ``random``
            their components
==========  ====================================================================================
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from .._archive import ModelFileError
from ..kernels.precomputed import Precomputed
from ..kernels.sequences.edit import Repaired
from ..kernels.vectors import Callable
from .pruning import Absent
from .registry import by_class, by_name
from .upgrades import UPGRADES

#: Tuples of numbers longer than this become arrays.
LONG = 16

SPARSE = {
    name: getattr(sp, name) for name in ("csr_matrix", "csc_matrix", "csr_array", "csc_array")
}

#: Attributes that define the kernels; the data that prediction needs are in the expansion.
FORMULAS = ("kernels", "bank_", "grams_")


#: Placeholder for an object while its attributes are built.
_UNFINISHED = object()


class Writer:
    """Describes one object; its arrays are collected in :attr:`arrays`."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._places: dict[int, int] = {}  # of arrays, by identity
        self._seen: dict[int, int] = {}  # of objects, by identity
        self._alive: list[Any] = []  # kept alive, so that identities stay unique
        self._formulas = False

    def describe(self, value: Any, where: str) -> Any:
        """The description of a value that is found at ``where`` in the estimator."""
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if type(value) is list:
            return [self.describe(item, f"{where}[{i}]") for i, item in enumerate(value)]
        if type(value) is tuple:
            return self._tuple(value, where)
        if type(value) is dict:
            return {
                "dict": [
                    [self.describe(key, where), self.describe(item, f"{where}[{key!r}]")]
                    for key, item in value.items()
                ]
            }
        if isinstance(value, (np.ndarray, np.generic)) or sp.issparse(value):
            return self._array(value, where)
        if isinstance(value, slice):
            return {
                "slice": [self.describe(v, where) for v in (value.start, value.stop, value.step)]
            }
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, np.random.RandomState):
            return {"random": self.describe(value.get_state(legacy=False), where)}
        if isinstance(value, type) and value in (np.float32, np.float64):
            return {"dtype": np.dtype(value).str}
        return self._object(value, where)

    def _tuple(self, value: tuple[Any, ...], where: str) -> Any:
        if len(value) > LONG and all(type(v) is float for v in value):
            return {"numbers": self._place(np.array(value, dtype=np.float64), value)}
        if len(value) > LONG and all(type(v) is int and abs(v) < 2**62 for v in value):
            return {"numbers": self._place(np.array(value, dtype=np.int64), value)}
        return {"tuple": [self.describe(item, f"{where}[{i}]") for i, item in enumerate(value)]}

    def _array(self, value: Any, where: str) -> Any:
        if sp.issparse(value):
            name = type(value).__name__
            if name not in SPARSE:
                raise _refusal(where, value, "Convert it to a CSR matrix first.")
            arrays = (value.data, value.indices, value.indptr)
            return {"sparse": [name, list(value.shape), *(self._place(a, a) for a in arrays)]}
        if isinstance(value, np.generic):
            return {"scalar": self._place(np.asarray(value), value)}
        if value.dtype.hasobject:
            if value.dtype != object:
                raise _refusal(where, value, "Only numbers and strings can be stored.")
            flat = [self.describe(item, where) for item in value.ravel().tolist()]
            return {"items": [list(value.shape), flat]}
        if type(value) is not np.ndarray:
            raise _refusal(where, value, "Convert it with np.asarray first.")
        return {"array": self._place(value, value)}

    def _place(self, array: np.ndarray, owner: Any) -> int:
        if id(owner) not in self._places:
            self._places[id(owner)] = len(self.arrays)
            self._alive.append(owner)
            self.arrays.append(array)
        return self._places[id(owner)]

    def _object(self, value: Any, where: str) -> Any:
        if self._formulas and isinstance(value, Precomputed):
            value = Absent.of(value)
        if self._formulas and isinstance(value, Repaired):
            value = value.kernel  # repaired again, and alike, on the training sample
        if id(value) in self._seen:
            return {"seen": self._seen[id(value)]}
        known = by_class(type(value))
        if known is None:
            raise _refusal(where, value, _advice(value, where))
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        attributes = {}
        for name, item in known.state(value).items():
            was = self._formulas
            self._formulas = was or (isinstance(value, BaseEstimator) and name in FORMULAS)
            attributes[name] = self.describe(item, f"{where}.{name}")
            self._formulas = was
        return {"object": [known.name, attributes]}


def _refusal(where: str, value: Any, advice: str) -> TypeError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return TypeError(
        f"{where} is {shown} of type {type(value).__name__}, which a model file cannot store. "
        f"{advice}"
    )


def _advice(value: Any, where: str) -> str:
    if isinstance(value, Callable):
        return (
            "A Python function is code, and loading a model must not run code. Use one of the "
            "library's kernels, or compute the matrix and use mk.precomputed."
        )
    parameter = where.split(".")[1] if where.count(".") == 1 else None
    if parameter in ("scoring", "cv"):
        return (
            f"It is not needed for prediction: call estimator.set_params({parameter}=None) before "
            "saving."
        )
    return (
        "Only the library's own kernels, weightings and estimators can be stored, and classes "
        "registered with multikernel.files.register."
    )


class Reader:
    """Builds objects from a description and its arrays."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays = arrays
        self._built: list[Any] = []

    def build(self, value: Any) -> Any:
        """Build the value of a description."""
        if value is None or isinstance(value, (bool, str, int, float)):
            return value
        if isinstance(value, list):
            return [self.build(item) for item in value]
        (kind, content), *more = value.items()
        if more or kind not in self._makers:
            raise ModelFileError(f"its description contains {kind!r}, which is not known here.")
        return self._makers[kind](self, content)

    def _object(self, content: Any) -> Any:
        name, attributes = content
        known = by_name(name)
        if known is None:
            raise ModelFileError(
                f"it names the class {name!r}, which is not among those that a model file may "
                "contain. If a package registers the class, import it first; nothing in the file "
                "was run."
            )
        number = len(self._built)
        self._built.append(_UNFINISHED)
        found = {key: self.build(item) for key, item in attributes.items()}
        try:
            found = UPGRADES[name](found) if name in UPGRADES else found
            self._built[number] = known.rebuild(found)
        except ModelFileError:
            raise
        except ValueError as error:
            raise ModelFileError(
                f"{name}: {error}. The file was not written by mk.save, or was changed afterwards."
            ) from None
        return self._built[number]

    def _seen(self, content: Any) -> Any:
        found = self._built[content]
        if found is _UNFINISHED:
            raise ModelFileError("an object in it is a part of itself.")
        return found

    def _array(self, content: Any) -> Any:
        return self.arrays[content]

    def _scalar(self, content: Any) -> Any:
        return self.arrays[content][()]

    def _numbers(self, content: Any) -> Any:
        return tuple(self.arrays[content].tolist())

    def _sparse(self, content: Any) -> Any:
        name, shape, *where = content
        matrix = SPARSE[name](tuple(self.arrays[i] for i in where), shape=tuple(shape))
        matrix.check_format(full_check=True)
        return matrix

    def _items(self, content: Any) -> Any:
        shape, values = content
        out = np.empty(len(values), dtype=object)
        for i, value in enumerate(values):
            out[i] = self.build(value)
        return out.reshape(shape)

    def _tuple(self, content: Any) -> Any:
        return tuple(self.build(item) for item in content)

    def _dict(self, content: Any) -> Any:
        return {self.build(key): self.build(item) for key, item in content}

    def _float(self, content: Any) -> Any:
        return float(content)

    def _slice(self, content: Any) -> Any:
        return slice(*(self.build(item) for item in content))

    def _dtype(self, content: Any) -> Any:
        return np.dtype(content)

    def _random(self, content: Any) -> Any:
        random = np.random.RandomState()
        random.set_state(self.build(content))
        return random

    _makers = {
        "object": _object,
        "seen": _seen,
        "array": _array,
        "scalar": _scalar,
        "numbers": _numbers,
        "sparse": _sparse,
        "items": _items,
        "tuple": _tuple,
        "dict": _dict,
        "float": _float,
        "slice": _slice,
        "dtype": _dtype,
        "random": _random,
    }
