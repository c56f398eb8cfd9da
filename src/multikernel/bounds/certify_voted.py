"""Bounds for a fitted vote of kernel functions: Theorems 1 and 2 of voted risk minimisation.

``f = sum_kj alpha_kj K_k(., x_j) + b`` divided by ``A = ||alpha||_1 + |b|/c`` lies in the convex
hull of the families ``H_k = {±K_k(., x')}`` and the constants ±c, where c bounds all kernels. The
bounds hold for every such function at once, so coefficients, points and kernels may be chosen from
the sample. They need *expected* complexities. The bound ``R_m(H_k) <= sup K_k(x, x) / sqrt(m)``,
Lemma 3 with the largest possible trace, needs no sample; the Monte-Carlo value on the sample is no
bound, because its x' are sample points only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..grams.protocol import Grams
from .families import classify
from .margin import grid_share, margin_error
from .results import Bound, Certificate, MachineCertificate
from .sample import (
    constant_by_chance,
    encode_targets,
    machine_names,
    taken_on_trust,
    training_grams,
    training_sample,
    unmet_by_choice,
)
from .voted import local_voted_risk, voted_risk

#: The constant K of Theorem 2; fixed beforehand.
LOCAL_K = 2.0
UNPROVEN_STEP = "a complete proof; the proof of Theorem 2 omits a step, on hulls of loss functions"


def certify_vote(estimator: Any, X: Any, y: Any, delta: float) -> Certificate:
    """The certificate of a voted classifier; see :func:`multikernel.bounds.certificate`."""
    checked = training_sample(estimator, X, "terms_")
    n = checked.shape[0]
    Y = encode_targets(estimator, y, n)
    assert Y is not None
    grams = training_grams(estimator, checked)  # votes use neither centring nor normalisation
    sizes, unmet = kernel_sizes(grams)
    unmet = unmet_by_choice(estimator) + unmet
    values = np.asarray(estimator.decision_function(X), dtype=np.float64).reshape(n, -1)
    intercept = np.broadcast_to(np.asarray(estimator.intercept_, dtype=float), (Y.shape[1],))
    names = machine_names(estimator, Y.shape[1])
    machines = []
    for j, name in enumerate(names):
        mine = estimator.terms_[estimator.terms_["machine"] == j]
        alpha = np.bincount(mine["kernel"], np.abs(mine["coef"]), minlength=grams.p)
        margins = Y[:, j] * values[:, j]
        vote = Vote(margins, alpha, float(intercept[j]), sizes)
        share = delta / (2 * len(names))
        task = classify(margins)
        bounds = (
            vote.bound("Theorem 1", voted_risk, 1.0, share, unmet),
            vote.bound(
                f"Theorem 2, K = {LOCAL_K:g}",
                local_voted_risk,
                LOCAL_K / (LOCAL_K - 1),
                share,
                (*unmet, UNPROVEN_STEP),
            ),
        )
        machines.append(
            MachineCertificate(
                name,
                task.statement,
                task.error,
                task.axis,
                task.levels,
                task.tail,
                task.tail_name,
                alpha * np.sqrt(sizes.sizes),
                bounds,
            )
        )
    trusted = constant_by_chance(estimator.grams_, grams.diagonals()) if not unmet else []
    paid: tuple[str, ...] = (
        "delta is shared between 2 theorems, and the better one is used",
        "each margin of the grid 2^(j/2), j any integer, has its own share 2/(3(|j|+1)(|j|+2)) "
        "of delta, so the best margin can be chosen afterwards",
    )
    if len(names) > 1:
        paid += (f"delta is shared among {len(names)} classifiers",)
    return Certificate(
        estimator=type(estimator).__name__,
        n_samples=n,
        n_kernels=grams.p,
        delta=delta,
        duality_gap=float(estimator.duality_gap_),
        alignments=(),
        machines=tuple(machines),
        paid=paid,
        assumptions=taken_on_trust(estimator, grams, trusted),
        n_draws=0,
    )


class Sizes:
    """The largest value of each kernel's functions, and the expected complexity of its family."""

    def __init__(self, sizes: np.ndarray, complexities: np.ndarray) -> None:
        self.sizes = sizes
        self.complexities = complexities
        self.bound = float(sizes.max()) or 1.0  # any bound holds if all kernels are 0


def kernel_sizes(grams: Grams) -> tuple[Sizes, tuple[str, ...]]:
    """``sup |K_k|`` and ``R_m(H_k)``; from the diagonal where the kernel is known to be PSD."""
    diagonals = grams.diagonals()
    known = grams.known_psd
    sizes = np.where(known, diagonals.max(axis=1), 0.0)
    unmet: tuple[str, ...] = ()
    if not np.all(known):
        parts = grams.map(lambda rows: np.abs(grams.block(rows)).max(axis=(1, 2)))
        sizes = np.where(known, sizes, np.max(parts, axis=0))
        unmet += ("|K(x, x')| <= c for all x, x'; c is the largest value on the sample",)
    elif np.any(np.ptp(diagonals, axis=1) > 1e-9 * sizes):
        unmet += ("K(x, x) <= c for all x; c is the largest value on the sample",)
    # For a kernel that is not positive semidefinite no bound better than sup |h| is known.
    complexities = np.where(known, sizes / math.sqrt(grams.n), sizes)
    return Sizes(sizes, complexities), unmet


class Vote:
    """One predictor in the convex hull."""

    def __init__(self, margins: np.ndarray, alpha: np.ndarray, b: float, sizes: Sizes) -> None:
        self.margins = margins
        self.n = len(margins)
        self.c = sizes.bound
        weights = np.append(alpha, abs(b) / self.c)
        self.total = float(weights.sum()) or 1.0
        self.weights = weights / self.total
        self.complexities = np.append(sizes.complexities, self.c / math.sqrt(self.n))

    def bound(
        self, name: str, theorem: Any, factor: float, delta: float, unmet: tuple[str, ...]
    ) -> Bound:
        """Evaluate a theorem on a grid of margins; its ``factor`` multiplies the margin error."""
        # A vote without functions has margin 0 everywhere: its bound is vacuous on any grid.
        largest = float(np.abs(self.margins).max()) / (self.total * self.c) or 1.0
        top = math.ceil(2.0 * math.log2(largest)) + 1
        steps = np.arange(top - 20, top + 1)
        grid = self.total * self.c * 2.0 ** (0.5 * steps)
        shares = [delta * grid_share(int(k)) for k in steps]
        errors = np.array([margin_error(self.margins, m) for m in grid])

        def value(error: float, margin: float, complexities: np.ndarray, share: float) -> float:
            rho = margin / self.total
            return float(
                theorem(error, rho, self.weights, complexities, self.n, share, bound=self.c)
            )

        each = zip(errors, grid, shares, strict=True)
        values = np.array([value(e, m, self.complexities, s) for e, m, s in each])
        i = int(np.argmin(values))
        free = value(0.0, grid[i], 0.0 * self.complexities, shares[i])
        return Bound(
            name=name,
            kernels="as given",
            margins=grid,
            risks=errors,
            values=values,
            chosen=i,
            margin=float(grid[i]),
            risk=factor * float(errors[i]),
            complexity=float(values[i]) - factor * float(errors[i]) - free,
            confidence=free,
            value=float(values[i]),
            delta=shares[i],
            unmet=unmet,
        )
