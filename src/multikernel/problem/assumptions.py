"""Checks of the assumptions of theorems, for every input; an error names the one that fails.

Every message names the argument, the expected range and the given value. Values that are not
numbers or arrays raise a TypeError; numbers to which a theorem does not apply raise an
:class:`AssumptionError`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, Literal

import numpy as np

Closed = Literal["neither", "left", "right", "both"]
#: Negative eigenvalues down to minus this fraction of the largest count as rounding error.
PSD_TOLERANCE = 1e-8


class AssumptionError(ValueError):
    """Raised for an input to which a theorem does not apply."""


# -- numbers --------------------------------------------------------------------------------------


def check_number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    closed: Closed = "neither",
    why: str = "",
) -> float:
    """A number in the interval from low to high; ``closed`` says which ends belong to it.

    With an infinite end that is not closed, the number must be finite. NaN is always refused.
    """
    left, right = closed in ("left", "both"), closed in ("right", "both")
    expected = f"a number in {'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    expected += f" ({why})" if why else ""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, Real):
        found = f"shape {value.shape}" if isinstance(value, np.ndarray) else f"{value!r:.60}"
        raise TypeError(f"{name} must be {expected}; got {found}, of type {type(value).__name__}.")
    number = float(value)
    above = number >= low if left else number > low
    below = number <= high if right else number < high
    if not (above and below):  # NaN as well
        raise AssumptionError(f"{name} must be {expected}; got {value!r}.")
    return number


def check_delta(delta: float) -> float:
    """Check delta, the probability with which a bound may fail, strictly between 0 and 1."""
    why = "the probability with which a bound may fail, for example 0.05"
    return check_number("delta", delta, low=0.0, high=1.0, why=why)


def check_count(name: str, value: float, least: int = 1) -> int:
    """Check a count, such as a number of samples, kernels or draws."""
    # Beyond 2^53 not every integer is a floating-point number.
    number = check_number(name, value, low=least, high=2.0**53, closed="both", why="an integer")
    if number != int(number):
        raise AssumptionError(f"{name} must be an integer of at least {least}; got {value!r}.")
    return int(value)


def check_positive(name: str, value: float, why: str) -> float:
    """A finite number above zero; ``why`` is the assumption that needs it."""
    return check_number(name, value, low=0.0, why=why)


def check_nonnegative(name: str, value: float, why: str) -> float:
    """A finite number of at least zero; ``why`` is the assumption that needs it."""
    return check_number(name, value, low=0.0, closed="left", why=why)


def check_radius(name: str, value: float, why: str) -> float:
    """A number of at least zero; infinity means the whole class."""
    return check_number(name, value, low=0.0, closed="both", why=why)


def check_margin(margin: float) -> float:
    """Check a margin: positive, because bounds divide by it."""
    return check_positive("margin", margin, "the bound divides by it, so there is no bound at 0")


def check_bounded(name: str, value: float) -> float:
    """The assumption ``K(x, x) <= R^2`` for every x, which an unbounded kernel does not meet."""
    if isinstance(value, Real) and value == math.inf:
        raise AssumptionError(
            f"The theorem assumes a bounded kernel, K(x, x) <= {name} for all x; got {name} = "
            f"{value!r}. Normalise the kernel, or bound the inputs, or use a bound from traces."
        )
    return check_positive(name, value, "it bounds K(x, x)")


def check_norm(name: str, p: float) -> float:
    """Check the exponent of a norm."""
    return check_number(name, p, low=1.0, closed="both", why="the exponent of a norm, at least 1")


def check_exponent(name: str, p: float, where: str, *, above: bool = False) -> float:
    """An exponent between 1 (excluded if ``above``) and 2, the range of ``where``."""
    closed: Closed = "right" if above else "both"
    return check_number(name, p, low=1.0, high=2.0, closed=closed, why=f"the range of {where}")


def check_probability(name: str, value: float) -> float:
    """Check a risk or an error rate."""
    why = "an average of numbers in [0, 1]"
    return check_number(name, value, low=0.0, high=1.0, closed="both", why=why)


def check_trace(name: str, value: float) -> float:
    """The trace of one positive semidefinite kernel."""
    return check_nonnegative(name, value, "the kernel is positive semidefinite, of finite trace")


# -- arrays ---------------------------------------------------------------------------------------


def check_finite(name: str, values: Any, ndim: int, what: str) -> np.ndarray:
    """A finite, non-empty float64 array with this number of axes; ``what`` describes it."""
    if values is None:  # NumPy reads None as NaN
        raise TypeError(f"{name} must be {what}; got None.")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        found = f"{values!r:.60}, of type {type(values).__name__}"
        raise TypeError(f"{name} must be {what}; got {found}.") from error
    if array.ndim != ndim or array.size == 0:
        raise AssumptionError(f"{name} must be {what}; got shape {array.shape}.")
    if not np.isfinite(array).all():
        place = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        raise AssumptionError(
            f"{name} must be {what}, of finite numbers; entry {', '.join(map(str, place))} is "
            f"{array[place]}."
        )
    return array


def check_vector(
    name: str, values: Any, what: str, *, length: int | None = None, negative: bool = True
) -> np.ndarray:
    """A finite vector of this length; ``negative=False`` refuses entries below zero."""
    what = f"a vector, {what}"
    array = check_finite(name, values, 1, what)
    if length is not None and len(array) != length:
        raise AssumptionError(f"{name} must be {what}: {length} entries; got {len(array)}.")
    if not negative and array.min() < 0:
        k = int(array.argmin())
        raise AssumptionError(f"{name} must be {what}, none below 0; entry {k} is {array[k]:.3g}.")
    return array


def check_traces(traces: Any) -> np.ndarray:
    """Traces of positive semidefinite kernels, shape (p,); a number is the trace of one kernel."""
    what = "one entry per kernel: the theorem assumes positive semidefinite kernels of finite trace"
    values = [traces] if isinstance(traces, Real) else traces
    return check_vector("traces", values, what, negative=False)


def check_eigenvalues(eigenvalues: Any, name: str = "eigenvalues") -> np.ndarray:
    """Spectrum of a positive semidefinite operator, in decreasing order; rounding is clipped.

    A single number is the spectrum of an operator of rank one.
    """
    given = [eigenvalues] if isinstance(eigenvalues, Real) else eigenvalues
    values = check_vector(name, given, "the spectrum of a kernel")
    if values.min() < -PSD_TOLERANCE * max(values.max(), 0.0):
        raise AssumptionError(
            f"{name} must be at least 0, as the theorem assumes a positive semidefinite kernel; "
            f"got {values.min():.3g}."
        )
    return np.sort(np.maximum(values, 0.0))[::-1]


def check_items(name: str, items: Any, what: str) -> list[Any]:
    """A non-empty sequence with one item per kernel."""
    scalar = isinstance(items, np.ndarray) and items.ndim == 0
    if scalar or not isinstance(items, Iterable) or isinstance(items, (str, bytes, dict)):
        raise TypeError(f"{name} must be a sequence of {what}; got {items!r:.60}.")
    found = list(items)
    if not found:
        raise AssumptionError(f"{name} must be a sequence of {what}; got none.")
    return found


def check_spectra(spectra: Any) -> list[np.ndarray]:
    """Spectra of M positive semidefinite operators, each in decreasing order."""
    items = check_items("spectra", spectra, "spectra, one per kernel")
    return [check_eigenvalues(values, f"spectra[{m}]") for m, values in enumerate(items)]


def check_matrix(name: str, K: Any) -> np.ndarray:
    """One kernel matrix."""
    K = check_finite(name, K, 2, "a square matrix")
    if K.shape[0] != K.shape[1]:
        raise AssumptionError(f"{name} must be a square matrix; got shape {K.shape}.")
    if not np.allclose(K, K.T, rtol=0, atol=1e-8 * np.abs(K).max()):
        raise AssumptionError(f"{name} is not symmetric, as a kernel matrix is.")
    return K


def check_psd(name: str, K: Any) -> tuple[np.ndarray, np.ndarray]:
    """A positive semidefinite matrix and its eigenvalues, in decreasing order."""
    K = check_matrix(name, K)
    return K, check_eigenvalues(np.linalg.eigvalsh(K), f"eigenvalues of {name}")


def check_matrices(name: str, kernels: Any) -> np.ndarray:
    """Symmetric matrices of one size, shape (M, n, n)."""
    items = check_items(name, kernels, "matrices, one per kernel")
    found = [check_matrix(f"{name}[{k}]", K) for k, K in enumerate(items)]
    sizes = sorted({len(K) for K in found})
    if len(sizes) > 1:
        raise AssumptionError(f"{name} must be matrices of one size; got the sizes {sizes}.")
    return np.stack(found)
