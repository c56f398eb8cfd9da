"""Cross-validation from sums over rows: one pass for all folds, rules and constants.

Every row belongs to one fold, and a pass adds up the sums of each fold. The training part of a fold
is the sum of the others, and the squared error on the fold itself follows from its own sums:

    sum_i omega_i (y_i - w'phi_i - c)^2 = [-w; 1]'S [-w; 1] + W (m_y - w'm_phi - c)^2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from numbers import Integral
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone

from .._checksum import checksum
from ..grams.engines import find_products
from ..grams.lowrank.approximations import Approximation
from ..grams.lowrank.sums import FeatureSums, SumsOfChunk
from ..solvers.joint.find import find
from ..solvers.passes.learn import FeatureProblem
from ..solvers.passes.targets import OneColumn
from ..weighting import Weighting
from .from_sums import Stream
from .large import LargeSampleMixin
from .selection import select

DEFAULT_FOLDS = 5


@dataclass(frozen=True)
class FoldSums:
    """The sums of every fold."""

    folds: tuple[FeatureSums, ...]

    def __add__(self, other: FoldSums) -> FoldSums:
        return FoldSums(tuple(a + b for a, b in zip(self.folds, other.folds, strict=True)))

    def without(self, f: int) -> FeatureSums:
        """The sums of all folds but one."""
        return add_up([own for g, own in enumerate(self.folds) if g != f])


def add_up(sums: Sequence[FeatureSums]) -> FeatureSums:
    """The total of several sums, added in order."""
    return reduce(lambda a, b: a + b, sums)


@dataclass(frozen=True)
class FoldSumsOfChunk:
    """Maps a chunk to the sums of its rows in each fold; rows are assigned at random."""

    sums: SumsOfChunk
    n_folds: int

    def __call__(self, chunk: Any) -> FoldSums:
        X, y, sample_weight = chunk
        n = X.shape[0]
        fold = np.random.default_rng([checksum(X), n, 1]).permutation(np.arange(n) % self.n_folds)
        parts = []
        for f in range(self.n_folds):
            rows = np.flatnonzero(fold == f)
            weights = None if sample_weight is None else sample_weight[rows]
            parts.append(self.sums((X[rows], y[rows], weights)))
        return FoldSums(tuple(parts))


def squared_error(
    sums: FeatureSums, shift: np.ndarray, slopes: np.ndarray, intercept: np.ndarray
) -> tuple[float, float]:
    """Squared errors of ``(phi - shift)'slopes + intercept`` and of the mean target, from sums."""
    D = len(shift)
    both = np.vstack([-slopes, np.eye(len(intercept))])
    offset = sums.mean[D:] - (sums.mean[:D] - shift) @ slopes - intercept
    error = float(np.einsum("dt,de,et->", both, sums.products, both))
    total = float(np.trace(sums.products[D:, D:]))
    return error + sums.weight * float(offset @ offset), total


class FoldSumsMixin(LargeSampleMixin):
    """``approximation`` in the search for C (or alpha) and the weighting."""

    cv: Any
    scoring: Any
    _chosen: tuple[Any, float]

    def _search_rows(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        approximation: Approximation,
        values: Sequence[float],
        name: str,
    ) -> tuple[Any, float]:
        """Score every (weighting, value) on every fold by sums, and fit the best to all rows."""
        this: Any = self
        n_folds = self._check_search(name)
        self._check_for_rows()
        rows = self._open(X, y, sample_weight)
        self._stream, self._streaming = None, False
        # Several rules share the sums of one pass, so every kernel has its own features.
        stream = self._begin(rows, approximation, learned_sum=False)
        some = stream.survey.X[: min(500, stream.survey.X.shape[0])]
        origin = stream.features(some).mean(axis=0)
        of = SumsOfChunk(stream.features, origin, stream.columns, find_products(this._engine_name))
        found: FoldSums = self._reduce(rows, FoldSumsOfChunk(of, n_folds))
        stream.sums = add_up(found.folds)
        candidates = this._candidates()
        scores = np.empty((n_folds, len(candidates), len(values)))
        for f in range(n_folds):
            problem = self._problem(stream, found.without(f))
            for w, candidate in enumerate(candidates):
                scores[f, w] = self._scores(stream, problem, candidate, values, found.folds[f])
        mean = scores.mean(axis=0)
        flat = mean.ravel()
        rule_index, value_index = select(scores, this.selection)
        this.best_index_ = rule_index * len(values) + value_index
        this.best_score_ = float(flat[this.best_index_])
        this.cv_results_ = {
            "weighting": [candidate for candidate in candidates for _ in values],
            name: np.tile(np.asarray(values, dtype=np.float64), len(candidates)),
            "mean_test_score": flat,
            "std_test_score": scores.std(axis=0).ravel(),
            "rank_test_score": rankdata(-flat, method="min").astype(int),
            **{f"split{f}_test_score": scores[f].ravel() for f in range(n_folds)},
        }
        this.n_splits_ = n_folds
        for attribute in ("cv_indices_", "cv_predictions_"):
            this.__dict__.pop(attribute, None)  # of an earlier fit: sums keep no single samples
        self._chosen = candidates[rule_index], float(values[value_index])
        self._stream = stream
        self._learn_rows(stream, None)
        return self._chosen

    def _check_search(self, name: str) -> int:
        this: Any = self
        kind = type(self).__name__
        if this.loss != "squared":
            raise ValueError(
                f"{kind} with approximation=... scores all folds from the sums of one pass, which "
                f"works only with loss='squared'; got loss={this.loss!r}. Set it, or pass "
                f"{name}=... to the estimator without CV."
            )
        if self.scoring is not None:
            raise ValueError(
                f"{kind} with approximation=... can only score folds by squared error "
                "(scoring=None: R^2, of the labels -1 and +1 for classification); got "
                f"scoring={self.scoring!r}."
            )
        folds = DEFAULT_FOLDS if self.cv is None else self.cv
        if not isinstance(folds, Integral) or folds < 2:
            raise ValueError(
                f"{kind} with approximation=... draws its own folds: cv must be a number of folds, "
                f"at least 2, or None for {DEFAULT_FOLDS}; got {self.cv!r}."
            )
        return int(folds)

    def _scores(
        self,
        stream: Stream,
        problem: FeatureProblem,
        candidate: Any,
        values: Sequence[float],
        held: FeatureSums,
    ) -> np.ndarray:
        """R^2 on one fold of the functions learned from the other folds, for every constant."""
        this: Any = self
        make: Callable[[float], Any] = self._learner_with
        t = problem.target.Y.shape[1]
        parts: list[tuple[FeatureProblem, Any]] = [(problem, stream.columns)]
        if self._weights_per_output(t):
            parts = [(problem.column(j), OneColumn(stream.columns, j)) for j in range(t)]
        rules: list[Weighting] = []
        for part, columns in parts:
            rule: Weighting = this._as_weighting(clone(candidate, safe=False))
            if rule.reads_samples:
                found = self._weights_from_sample(
                    stream.exact_plan, stream.survey, columns, rule, make(values[0])
                )
                rule = found.on(part)
            rules.append(rule)
        scores = []
        for value in values:
            slopes, intercepts = [], []
            for (part, _), rule in zip(parts, rules, strict=True):
                one = find(part.grams, part.target, rule, make(value))
                expansion: Any = part.grams.expand(one.kernel_weights, one.machine.coef)
                slopes.append(expansion.slopes)
                intercepts.append(one.machine.intercept)
            function = np.hstack(slopes), np.concatenate(intercepts)
            error, total = squared_error(held, problem.grams.shift, *function)
            scores.append(1.0 - error / total if total > 0 else 0.0)
        return np.array(scores)

    def _refuse_groups(self, groups: Any) -> None:
        if groups is not None:
            raise ValueError(
                f"{type(self).__name__} with approximation=... draws its own folds and does not "
                "support groups. Use approximation=None."
            )

    def _learner_with(self, value: float) -> Any:
        raise NotImplementedError

    def _learner_for_rows(self) -> Any:
        return self._learner_with(self._chosen[1])

    def _rule_for_rows(self) -> Weighting:
        this: Any = self
        rule: Weighting = this._as_weighting(clone(self._chosen[0], safe=False))
        return rule
