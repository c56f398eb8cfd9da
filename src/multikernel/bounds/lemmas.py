"""Lemmas behind the bounds, as functions: moments of random signs and sums, and norms of blocks.

Functions for inequalities return both sides, the smaller one first. Rostamizadeh 2010,
appendix A.2; Kloft 2011, section 4.1 and appendix C.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..problem.assumptions import (
    AssumptionError,
    check_bounded,
    check_count,
    check_items,
    check_nonnegative,
    check_norm,
    check_number,
    check_vector,
)
from .rademacher import conjugate, eta, norm

#: Largest order of a Poisson moment; from order 219 on, moments exceed the largest float64.
LARGEST_MOMENT = 200.0

# -- moments --------------------------------------------------------------------------------------


def multinomial_bound(counts: Sequence[int], *, sharp: bool = False) -> tuple[float, float]:
    """Lemma A.2: both sides of ``(2r; 2t_1, ..., 2t_m) <= (eta_0 r)^r (r; t_1, ..., t_m)``.

    Multinomial coefficients, ``r = t_1 + ... + t_m``, ``eta_0 = 23/22``. It bounds the moments of
    quadratic forms in random signs (:func:`moment_bound`). Infinite where a side overflows.

    Parameters
    ----------
    counts : sequence of int
        ``t_i >= 0``, not all zero.
    sharp : bool, default=False
        The best constant in place of 23/22; equality then holds if all ``t_i = 1``.

    Examples
    --------
    >>> from multikernel.bounds import multinomial_bound
    >>> left, right = multinomial_bound([2, 1])
    >>> round(left, 6), round(right, 2)
    (15.0, 92.56)
    """
    t = [check_count("counts", k, least=0) for k in check_items("counts", counts, "integers")]
    r = sum(t)
    if r == 0:
        raise AssumptionError("counts must not all be 0: the moment is of order r >= 1.")
    left = math.lgamma(2 * r + 1) - sum(math.lgamma(2 * k + 1) for k in t)
    right = math.lgamma(r + 1) - sum(math.lgamma(k + 1) for k in t)
    right += r * math.log(eta(r, sharp) * r)
    return _exp(left), _exp(right)


def kahane_moment(square_sum: float, s: float) -> float:
    """Lemma 4.1: ``E ||sum_i sigma_i v_i||^s <= (c sum ||v_i||^2)^(s/2)``, ``c = max(1, s-1)``."""
    s = check_number("s", s, low=1.0, closed="left", why="the order of a moment")
    square_sum = check_nonnegative("square_sum", square_sum, "a sum of squares")
    return (max(1.0, s - 1.0) * square_sum) ** (s / 2)


def poisson_moment(s: float) -> float:
    """``E Z^s`` of a Poisson variable with mean one; Bell numbers for integers."""
    s = check_number("s", s, low=0.0, high=LARGEST_MOMENT, closed="both", why="order of a moment")
    # Terms j^s / j! peak near j = s / log s; far beyond it they vanish.
    j = np.arange(1.0, 40.0 + 4.0 * s)
    logs = s * np.log(j) - np.cumsum(np.log(j)) - 1.0
    top = logs.max()
    return float(math.exp(top) * np.exp(logs - top).sum())


def rosenthal_young(mean: float, B: float, n: int, s: float, *, sharp: bool = False) -> float:
    """Lemma 4.3: ``E (mean of X_i)^s <= c_s ((B/n)^s + (mean of E X_i)^s)`` for ``0 <= X_i <= B``.

    ``c_s = (2 e s)^s`` for s >= 1/2; with ``sharp`` the smaller constants of appendix C: 1 up to
    s = 1, 2 up to s = 2, and the Poisson moment beyond.
    """
    s = check_number("s", s, low=0.5, closed="left", why="Lemma 4.3 holds for s >= 1/2")
    B, n = check_bounded("B", B), check_count("n", n)
    mean = check_nonnegative("mean", mean, "an expectation of non-negative variables")
    c = (2.0 * math.e * s) ** s
    if sharp:
        c = 1.0 if s <= 1 else 2.0 if s <= 2 else poisson_moment(s)
    return c * ((B / n) ** s + mean**s)


def poisson_moment_bound(s: float) -> float:
    """Lemma C.2: ``E Z^s <= (s + e)^s`` for a Poisson variable of mean one, s >= 1.

    :func:`poisson_moment` is the moment itself. Infinite where it overflows.

    Examples
    --------
    >>> from multikernel.bounds import poisson_moment, poisson_moment_bound
    >>> round(poisson_moment(3.0)), round(poisson_moment_bound(3.0), 1)
    (5, 187.0)
    """
    s = check_number("s", s, low=1.0, closed="left", why="the order of a moment, at least 1")
    return _exp(s * math.log(s + math.e))


# -- norms ----------------------------------------------------------------------------------------


def block_holder(v: Sequence[Any], w: Sequence[Any], p: float) -> tuple[float, float]:
    """Lemma C.1: both sides of ``<v, w> <= ||v||_{2,p} ||w||_{2,p*}``, p from 1 to infinity.

    Equality holds for ``w_m = ||v_m||^(p-2) v_m`` and its multiples. The left side may be negative.

    Parameters
    ----------
    v, w : sequences of M arrays
        Blocks ``v_m`` and ``w_m`` of the same lengths.
    p : float

    Examples
    --------
    >>> from multikernel.bounds import block_holder
    >>> left, right = block_holder([[3.0, 4.0], [1.0]], [[3.0, 4.0], [1.0]], p=2)
    >>> round(left, 6), round(right, 6)
    (26.0, 26.0)
    """
    p, s = check_norm("p", p), conjugate(p, "p")
    left, right = _blocks("v", v), _blocks("w", w)
    if [len(a) for a in left] != [len(b) for b in right]:
        raise AssumptionError(
            f"v and w must have blocks of the same lengths; got {[len(a) for a in left]} and "
            f"{[len(b) for b in right]}."
        )
    product = sum(float(a @ b) for a, b in zip(left, right, strict=True))
    first, second = (np.array([np.linalg.norm(one) for one in both]) for both in (left, right))
    return product, float(norm(first, p)) * float(norm(second, s))


def sum_of_norms(a: Any, b: Any, s: float) -> tuple[float, float]:
    """Lemma C.3: both sides of ``||a||_s + ||b||_s <= 2^(1 - 1/s) ||a + b||_s``, s >= 1.

    Equality holds for s = 1, and for vectors of equal norm with disjoint supports. It turns the
    16 of Theorem 4.5 into 8 times ``2^(1 - 2/t*)`` (:func:`local_rademacher_sparse`).

    Parameters
    ----------
    a, b : arrays of shape (M,)
        Non-negative.
    s : float
        From 1 to infinity.

    Examples
    --------
    >>> from multikernel.bounds import sum_of_norms
    >>> left, right = sum_of_norms([3.0, 0.0], [0.0, 3.0], s=2)
    >>> round(left, 6), round(right, 6)
    (6.0, 6.0)
    """
    first = check_vector("a", a, "one entry per kernel", negative=False)
    what = "one entry per kernel as in a"
    second = check_vector("b", b, what, length=len(first), negative=False)
    s = check_norm("s", s)
    factor = 2.0 ** (1.0 - 1.0 / s)
    return (
        float(norm(first, s)) + float(norm(second, s)),
        factor * float(norm(first + second, s)),
    )


def _blocks(name: str, blocks: Any) -> list[np.ndarray]:
    found = check_items(name, blocks, "blocks, one per kernel")
    return [check_vector(f"{name}[{m}]", one, "a block") for m, one in enumerate(found)]


def _exp(log: float) -> float:
    """``exp(log)``; infinity where it overflows."""
    return math.exp(log) if log < 709.0 else math.inf
