"""Texts as counts of pairs of words, and what sparse learning on them comes down to.

The experiments on rank-one kernels share it. A pair of words u that occurs ``v_u(x)`` times in text
x is the kernel ``v_u(x) v_u(z)``; thousands of them are one sparse matrix of counts, whose columns
are the kernels. Combined by weights that are learned with the machine and sum to one, such kernels
make a linear function whose coefficients are bounded in their 1-norm, so that "l1" learning has
paths of its own: linear programs for the support vector machine, and the lasso for ridge
regression.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from multikernel.kernels.sequences import per_ngram
from multikernel.problem.losses import Hinge
from multikernel.solvers.spectral.lp import Duals
from multikernel.solvers.spectral.problem import Labels

from . import datasets


@dataclass(frozen=True)
class Texts:
    """Texts with what is known about them: labels -1 and +1, and ratings or the labels again."""

    texts: tuple[str, ...]
    labels: np.ndarray
    ratings: np.ndarray
    #: rows that may be trained on; None for all
    train: np.ndarray | None = None


@lru_cache(maxsize=2)
def load(name: str) -> Texts:
    """A sentiment domain ("books", ...), or "acq": Reuters, whether a story is about acquisitions.

    Reviews are their text, without the title; a story is title and body.
    """
    if name == "acq":
        found = datasets.load("reuters_modapte")
        texts = [f"{title}\n{text}" for title, text in zip(*_columns(found.data), strict=True)]
        labels = np.asarray(found.target, dtype=np.float64)
        rows = np.flatnonzero(np.asarray(found.extra["split"]) == "train")
        return Texts(tuple(texts), labels, labels, rows)
    found = datasets.load(f"sentiment_{name}")
    labels = np.asarray(found.target, dtype=np.float64)
    ratings = np.asarray(found.extra["rating"], dtype=np.float64)
    return Texts(tuple(_columns(found.data)[1]), labels, ratings)


def _columns(frame: Any) -> tuple[list[str], list[str]]:
    return frame["title"].tolist(), frame["text"].tolist()


def count_bigrams(
    texts: Sequence[str], train: np.ndarray, top: int, rows: np.ndarray | None = None
) -> sp.csr_matrix:
    """Counts of the pairs of words that are most frequent in the training texts.

    Parameters
    ----------
    texts : sequence of str
    train : array of int
        The texts that the vocabulary is taken from.
    top : int
        Its size, less if there are not so many pairs; most frequent first.
    rows : array of int or None
        The texts to count in, None for all.
    """
    vocabulary: Any
    (vocabulary,) = per_ngram(2, top=top).adapt([texts[i] for i in train]).entries
    chosen = texts if rows is None else [texts[i] for i in rows]
    return vocabulary(list(chosen)).tocsr()


def trace_one(V: sp.csr_matrix, train: np.ndarray) -> sp.csc_matrix:
    """Columns such that every kernel has trace one on the training texts."""
    power = np.sqrt(np.asarray(V[train].multiply(V[train]).sum(axis=0)).ravel())
    factors = np.divide(1.0, power, out=np.zeros_like(power), where=power > 0)
    return V.multiply(factors[None, :]).tocsc()


@dataclass(frozen=True)
class Linear:
    """``f(x) = sum_k slopes_k u_k(x) + intercept``, the kernel weights and the proven gap."""

    slopes: np.ndarray
    intercept: float
    weights: np.ndarray
    gap: float

    def __call__(self, U: sp.csc_matrix) -> np.ndarray:
        return np.asarray(U @ self.slopes).ravel() + self.intercept


def sparse_machine_path(
    U: sp.csc_matrix, y: np.ndarray, parts: Sequence[float]
) -> Iterator[Linear]:
    """l1 multiple kernel learning with the hinge loss: linear programs, from smooth to rough.

    With ``f = U beta``, weights of sum Lambda and cost C it is

        min ||beta||_1^2 / (2 C Lambda) + sum_i max(0, 1 - y_i (f(x_i) + b))

    whose solution for any C Lambda is that of ``min l ||beta||_1 + sum of losses`` for ``l =
    ||beta||_1 / (C Lambda)``: as C Lambda runs from zero to infinity, l runs down to zero. The
    simplex method goes on from the basis of the last l.

    Parameters
    ----------
    U, y
        Features and labels -1 and +1 of the training points.
    parts : decreasing sequence of float
        l, in parts of ``max_k |u_k'(y - mean)|``.
    """
    largest = float(np.abs(U.T @ (y - y.mean())).max())
    programs = Duals(U.toarray(), Labels(y, "1-norm", 1.0))
    hinge, ones = Hinge(), np.ones(len(y))
    for part in parts:
        level = part * largest
        answer = programs.solve(level)
        if answer is None:
            raise RuntimeError(f"HiGHS could not solve the linear program of l = {level:g}.")
        alpha, slopes = answer
        values = np.asarray(U @ slopes)[:, None]
        intercept = hinge.intercept(values, y[:, None], ones)
        size = float(np.abs(slopes).sum())
        primal = level * size + float(hinge.value(values, y[:, None], ones, intercept)[0])
        gap = max(primal - float(alpha.sum()), 0.0) / max(primal, 1e-300)
        weights = np.abs(slopes) / size if size > 0 else np.zeros(len(slopes))
        yield Linear(slopes, float(intercept[0]), weights, gap)


def sparse_ridge_path(U: sp.csc_matrix, y: np.ndarray, parts: Sequence[float]) -> Iterator[Linear]:
    """l1 multiple kernel learning with the squared loss: the lasso, from large penalties to small.

    ``min_mu min_f lam ||f||^2 + sum (y - f - b)^2`` over weights of sum Lambda is
    ``min lam/Lambda ||beta||_1^2 + ||y - U beta - b||^2``, and its solution for any ``lam /
    Lambda`` is that of ``min ||y - U beta - b||^2 / 2 + l ||beta||_1`` for
    ``l = lam/Lambda ||beta||_1``: as lam / Lambda runs from infinity to zero, l runs from its
    largest value ``max_k |u_k'(y - mean)|`` to zero.

    Parameters
    ----------
    U, y
        Features and outputs of the training points.
    parts : decreasing sequence of float
        l, in parts of its largest value.
    """
    from sklearn.linear_model import Lasso

    n = len(y)
    centred = y - y.mean()
    largest = float(np.abs(U.T @ centred).max())
    lasso = Lasso(warm_start=True, tol=1e-5, max_iter=20_000)
    for part in parts:
        lasso.set_params(alpha=part * largest / n).fit(U, y)
        slopes = np.asarray(lasso.coef_, dtype=np.float64).copy()
        size = np.abs(slopes).sum()
        weights = np.abs(slopes) / size if size > 0 else slopes
        residual = centred - np.asarray(U @ slopes).ravel()
        gap = squared_gap(U, residual - residual.mean(), slopes)
        yield Linear(slopes, float(lasso.intercept_), weights, gap)


def squared_gap(U: sp.csc_matrix, residual: np.ndarray, slopes: np.ndarray) -> float:
    """Relative duality gap of ``a/2 ||beta||_1^2 + ||y - U beta||^2 / 2`` at these slopes.

    With the residual r as dual variable, ``t = ||beta||_1`` and ``m = max_k |u_k'r|``, the gap is
    ``(a t - m)^2 / (2 a) + t m - beta'U'r``. It is held against the problem of ``a = m / t``, the
    one that the slopes are nearest to solving.
    """
    products = np.asarray(U.T @ residual).ravel()
    m, t = float(np.abs(products).max(initial=0.0)), float(np.abs(slopes).sum())
    primal = 0.5 * (m * t + float(residual @ residual))
    return max(m * t - float(slopes @ products), 0.0) / max(primal, 1e-300)
