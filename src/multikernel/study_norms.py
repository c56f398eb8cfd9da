"""Which norm suits which sample size? A study for any bank of kernels.

The protocol of Kloft 2011, chapter 5: lp-norm multiple kernel learning for several p and several
sample sizes, with C chosen on held-out samples, and the figures of his experiments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from .bounds.bound_factor import bound_factor, learned_block_norms, suggest_p
from .estimators.classifier import MultiKernelClassifier
from .estimators.grid_search import check_grid
from .estimators.regressor import MultiKernelRegressor
from .estimators.weights import Weights
from .kernels import default_bank
from .kernels.bank import as_bank
from .problem.assumptions import check_count, check_norm
from .study import is_classification
from .weighting import LpNorm


@dataclass(frozen=True, repr=False)
class NormStudy:
    """Scores, weights and block norms for every size, norm and repetition; printing shows a table.

    Attributes
    ----------
    names : tuple of str
        The kernels.
    norms : tuple of float
        The exponents p of the block norm.
    sizes : tuple of int
        The numbers of training samples.
    scores : array of shape (n_sizes, n_norms, repetitions)
        On the test samples.
    costs : array of shape (n_sizes, n_norms, repetitions)
        The chosen C, or alpha.
    weights : array of shape (n_sizes, n_norms, repetitions, n_kernels)
        Kernel weights with sum one.
    block_norms : array of shape (n_sizes, n_norms, repetitions, n_kernels)
        Root of the sum of squares over classes or outputs.
    gaps : array of shape (n_sizes, n_norms, repetitions)
        Relative duality gaps.
    measure : str
        Name of the score; larger is better.
    """

    names: tuple[str, ...]
    norms: tuple[float, ...]
    sizes: tuple[int, ...]
    scores: np.ndarray
    costs: np.ndarray
    weights: np.ndarray
    block_norms: np.ndarray
    gaps: np.ndarray
    measure: str

    def best_p(self, n: int | None = None) -> float:
        """The norm with the largest mean score at sample size n, by default the largest size."""
        return self.norms[int(self.scores[self._size(n)].mean(axis=1).argmax())]

    def suggested_p(self, n: int | None = None) -> float:
        """The p in [1, 2] that the bound prefers, from the block norms learned at the best p."""
        return suggest_p(self._typical_block_norms(n))

    def table(self) -> list[dict[str, Any]]:
        """One row per size and norm, ready for a DataFrame."""
        rows = []
        for i, n in enumerate(self.sizes):
            for j, p in enumerate(self.norms):
                values = self.scores[i, j]
                rows.append(
                    {
                        "n": n,
                        "p": p,
                        "score": float(values.mean()),
                        "standard_error": float(_standard_error(values)),
                        "kernels_used": float((self.weights[i, j] > 0).sum(axis=1).mean()),
                    }
                )
        return rows

    def __str__(self) -> str:
        head = f"{'n':>7}" + "".join(f"{label:>18}" for label in self._labels()) + "   bound's p"
        lines = [f"{self.measure}, mean ± standard error over {self.scores.shape[2]}", head]
        for i, n in enumerate(self.sizes):
            cells = [
                f"{values.mean():.4f} ± {_standard_error(values):.4f}" for values in self.scores[i]
            ]
            line = f"{n:>7}" + "".join(f"{cell:>18}" for cell in cells)
            lines.append(f"{line}   {self.suggested_p(n):9.2f}")
        return "\n".join(lines)

    __repr__ = __str__

    # -- pictures ---------------------------------------------------------------------------------

    def plot_weights(self, ax: Any = None, *, n: int | None = None, most: int = 20) -> Any:
        """Shares of the kernel weights, one bar for each norm, at sample size n (the largest).

        Parameters
        ----------
        ax : matplotlib axes, optional
        n : int, optional
            One of ``sizes``.
        most : int, default=20
            Kernels to show.

        Returns
        -------
        matplotlib axes
        """
        from .report.comparisons import draw_weights

        values = self.weights[self._size(n)]
        shares = {label: values[j] for j, label in enumerate(self._labels())}
        return draw_weights(self.names, shares, ax, most=most)

    def plot_block_norms(self, ax: Any = None, *, p: float | None = None, most: int = 10) -> Any:
        """Shares of the block norms against the sample size, one curve for each kernel.

        Parameters
        ----------
        ax : matplotlib axes, optional
        p : float, optional
            One of ``norms``; by default the best at the largest size.
        most : int, default=10
            Kernels to show.

        Returns
        -------
        matplotlib axes
        """
        from .report.comparisons import draw_block_norms, norm_shares

        j = self._norm(self.best_p() if p is None else p)
        shares = {
            n: np.stack([norm_shares(v[None, :]) for v in self.block_norms[i, j]])
            for i, n in enumerate(self.sizes)
        }
        return draw_block_norms(self.names, shares, ax, most=most)

    def plot_scores_by_size(self, ax: Any = None) -> Any:
        """Scores against the sample size, one curve for each norm; returns the matplotlib axes."""
        from .report.comparisons import scores_by_size

        cells = {
            label: {n: self.scores[i, j] for i, n in enumerate(self.sizes)}
            for j, label in enumerate(self._labels())
        }
        return scores_by_size(cells, ax, measure=self.measure)

    def plot_scores_by_norm(self, ax: Any = None) -> Any:
        """Scores against the norm, one curve for each sample size; returns the matplotlib axes."""
        from .report.comparisons import scores_by_norm

        cells = {
            f"n = {n}": dict(zip(self.norms, self.scores[i], strict=True))
            for i, n in enumerate(self.sizes)
        }
        return scores_by_norm(cells, ax, measure=self.measure)

    def plot_bound_factor(self, ax: Any = None) -> Any:
        """The bound factor against p, one curve for each sample size, its minimum marked.

        It is computed from the block norms at the best p of each size, as medians over repetitions.
        p goes from 1 to 2, or to the largest of ``norms`` if that is larger. Curves are divided by
        their values at the largest p.

        Returns
        -------
        matplotlib axes
        """
        from .report.comparisons import axes, norm_axis, place_of_norm

        ax = axes(ax)
        largest = max(2.0, max(self.norms))
        places = np.linspace(0.0, float(place_of_norm(largest)), 201)
        for n in self.sizes:
            w = self._typical_block_norms(n)
            values = [bound_factor(w, 1 / (1 - at) if at < 1 else float("inf")) for at in places]
            best = suggest_p(w, largest=largest)
            label = f"n = {n}, smallest at {best:.2f}"
            (line,) = ax.plot(places, np.array(values) / values[-1], label=label)
            low = bound_factor(w, best) / values[-1]
            ax.plot(place_of_norm(best), low, "o", color=line.get_color())
        norm_axis(ax, sorted({*self.norms, 1.0, largest}))
        ax.set_ylabel(f"bound factor, relative to p = {largest:.3g}")
        ax.legend(fontsize="small")
        return ax

    # -- cells ------------------------------------------------------------------------------------

    def _labels(self) -> list[str]:
        """The norms with three digits, or as many as tell them apart."""
        for digits in range(3, 18):
            labels = [f"p = {p:.{digits}g}" for p in self.norms]
            if len(set(labels)) == len(labels):
                break
        return labels

    def _size(self, n: int | None) -> int:
        if n is None:
            return int(np.argmax(self.sizes))
        if n not in self.sizes:
            raise ValueError(f"n must be one of the sizes {self.sizes}; got {n!r}.")
        return self.sizes.index(n)

    def _norm(self, p: float) -> int:
        close = np.isclose(self.norms, p, rtol=1e-6)
        if not close.any():
            raise ValueError(f"p must be one of the norms {self.norms}; got {p!r}.")
        return int(np.argmax(close))

    def _typical_block_norms(self, n: int | None) -> np.ndarray:
        """Medians over repetitions at the best p, as in the thesis; means if all medians are 0."""
        values = self.block_norms[self._size(n), self._norm(self.best_p(n))]
        middle = np.median(values, axis=0)
        return middle if middle.any() else values.mean(axis=0)


def norm_study(
    bank: Any,
    X: Any,
    y: Any,
    *,
    task: str | None = None,
    norms: Sequence[float] = (1.0, 4 / 3, 2.0),
    sizes: Sequence[int] | None = None,
    grid: Any = (0.01, 0.1, 1.0, 10.0),
    repetitions: int = 5,
    held_out: float = 0.5,
    scoring: Any = None,
    normalize: str | None = "multiplicative",
    n_jobs: int | None = None,
    random_state: int = 0,
) -> NormStudy:
    """lp-norm multiple kernel learning for several norms and sample sizes, scored on test samples.

    Every repetition splits the sample anew: one part for training, and two equal parts for choosing
    C (or alpha) and for scoring. Training sets of each size are drawn from the first part.

    Parameters
    ----------
    bank : KernelBank, list of kernels or None
        As ``kernels`` of :class:`MultiKernelClassifier`; None for :func:`default_bank` of X. Kernel
        matrices are given as ``mk.precomputed(K)`` with ``X = mk.sample_ids(n)``.
    X, y
        The sample.
    task : {"classification", "regression"} or None, default=None
        None treats whole numbers and text as classes.
    norms : sequence of float, default=(1, 4/3, 2)
        Exponents p of the block norm, at least 1.
    sizes : sequence of int or None, default=None
        Numbers of training samples; None for a quarter, half and all of those not held out.
    grid : float or sequence of float, default=(0.01, 0.1, 1, 10)
        Values of C, or of alpha. If scores are equal, the smallest C or largest alpha is chosen.
    repetitions : int, default=5
    held_out : float, default=0.5
        Share of the sample for choosing and testing, half of it for each.
    scoring : str, callable or None, default=None
        As in scikit-learn; None for accuracy or R².
    normalize : {"multiplicative", "trace", "spherical", "frobenius"} or None
        As in :class:`MultiKernelClassifier`.
    n_jobs : int or None, default=None
        Threads for passes over the kernels.
    random_state : int, default=0

    Returns
    -------
    NormStudy

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bank = mk.per_feature(mk.Gaussian(gamma=0.5))
    >>> study = mk.norm_study(bank, X / X.std(axis=0), y, sizes=(50, 200), grid=1.0, repetitions=2)
    >>> study.scores.shape, study.weights.shape
    ((2, 3, 2), (2, 3, 2, 30))
    """
    classify = is_classification(task, y)
    norms = tuple(sorted({check_norm("norms", p) for p in norms}))
    if not norms:
        raise ValueError("norm_study: norms is empty; give at least one p, such as 4/3.")
    values = sorted(check_grid("grid", [grid] if np.isscalar(grid) else grid), reverse=not classify)
    repetitions = check_count("repetitions", repetitions)
    if isinstance(bank, str):
        raise ValueError(
            f"norm_study: bank={bank!r} has no samples to draw from. For kernel matrices use "
            "mk.precomputed(K) with X = mk.sample_ids(n)."
        )
    # Set data-dependent parameters once, so that all models have the same kernels.
    bank = default_bank(X, kind="gaussians") if bank is None else as_bank(bank).adapt(X)
    y = np.asarray(y)
    everyone = np.arange(len(y))
    if not 0 < held_out < 1:
        raise ValueError(f"norm_study: held_out must be between 0 and 1; got {held_out!r}.")
    n_held = 2 * max(1, round(held_out * len(y) / 2))
    pool_size = len(y) - n_held
    sizes = _check_sizes(sizes, pool_size)

    def fit(p: float, value: float, rows: np.ndarray) -> Any:
        options: dict[str, Any] = {"normalize": normalize, "n_jobs": n_jobs}
        if classify:
            model: Any = MultiKernelClassifier(bank, LpNorm(p), C=value, **options)
        else:
            model = MultiKernelRegressor(bank, LpNorm(p), alpha=value, **options)
        return model.fit(_safe_indexing(X, rows), y[rows])

    def part(rows: np.ndarray, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """A random part of the rows, stratified by class, and the other rows."""
        if size == len(rows):
            return rows, rows[:0]
        stratify = y[rows] if classify else None
        return train_test_split(rows, train_size=size, stratify=stratify, random_state=seed)

    shape = (len(sizes), len(norms), repetitions)
    scores, costs, gaps = (np.zeros(shape) for _ in range(3))
    weights: dict[tuple[int, int, int], np.ndarray] = {}
    blocks: dict[tuple[int, int, int], np.ndarray] = {}
    for r in range(repetitions):
        seed = random_state + r
        pool, held = part(everyone, pool_size, seed)
        choosing, test = part(held, n_held // 2, seed)
        X_choosing, X_test = _safe_indexing(X, choosing), _safe_indexing(X, test)
        for i, n in enumerate(sizes):
            rows, _ = part(pool, n, seed)
            for j, p in enumerate(norms):
                best: tuple[float, float, Any] | None = None
                for value in values:
                    model = fit(p, value, rows)
                    scorer = check_scoring(model, scoring)
                    score = float(scorer(model, X_choosing, y[choosing]))
                    if best is None or score > best[0]:
                        best = score, value, model
                assert best is not None
                _, costs[i, j, r], model = best
                scores[i, j, r] = scorer(model, X_test, y[test])
                gaps[i, j, r] = model.duality_gap_
                found = learned_block_norms(model, _safe_indexing(X, rows))
                blocks[i, j, r] = np.sqrt(np.square(found).sum(axis=0))
                weights[i, j, r] = Weights.of(model).shares
    names = tuple(model.kernel_names_)
    measure = "accuracy" if classify else "R²"
    if scoring is not None:
        measure = scoring if isinstance(scoring, str) else "score"
    return NormStudy(
        names,
        norms,
        sizes,
        scores,
        costs,
        _stacked(weights, shape),
        _stacked(blocks, shape),
        gaps,
        measure,
    )


def _check_sizes(sizes: Sequence[int] | None, pool_size: int) -> tuple[int, ...]:
    if sizes is None:
        sizes = [pool_size // 4, pool_size // 2, pool_size]
    found = tuple(sorted({check_count("sizes", n, least=2) for n in sizes}))
    if not found:
        raise ValueError("norm_study: sizes is empty; give at least one number of samples.")
    if found[-1] > pool_size:
        raise ValueError(
            f"norm_study: sizes must be at most {pool_size}, the samples that are not held out; "
            f"got {found[-1]}. Lower sizes or held_out."
        )
    return found


def _stacked(cells: dict[tuple[int, int, int], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    return np.stack([cells[index] for index in np.ndindex(*shape)]).reshape(*shape, -1)  # type: ignore[index]


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
