"""Panels c and d of Figure 5.2: alignments of the toy kernels, and the best p beside the bound's.

Panel c has the centred alignments of all pairs of kernels. Kernels of single features have rank
one, and their centred alignment is the squared correlation of the features. Between two independent
features its mean over samples of n points is exactly ``1 / (n - 1)``.

Panel d has the test error on a fine grid of p beside the bound factor of the Bayes hypothesis,
which has k equal blocks out of 50. :mod:`experiments.toy` describes the experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from multikernel.bounds import bound_factor, suggest_p

from .norms import ahead, said, standard_error
from .record import Claim, Results, markdown, panels, select
from .toy_data import N_FEATURES, N_TRAIN, RHO, direction, make_samples, name_of, noise_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Mean alignment of two independent features in a sample of this size.
CHANCE_ALIGNMENT = 1.0 / (N_TRAIN - 1)
#: What the text calls small is not a number; a mean over all pairs below this is taken for it.
SMALL_ALIGNMENT = 0.1
#: "Equally good" needs a difference below two standard errors, and these below half a point.
RESOLVED_ERROR = 0.005


class Cells(Results[Any]):
    """Rows by level and norm: one value per data set, and the same data sets for all norms."""

    @property
    def levels(self) -> list[int]:
        return sorted({row.informative for row in self.rows}, reverse=True)

    @property
    def norms(self) -> list[float]:
        return sorted({row.p for row in self.rows})

    def values(self, informative: int, p: float, field: str = "test_error") -> np.ndarray:
        """One field of all repetitions of a cell, in their order."""
        return select(self.rows, field, informative=informative, p=p)

    def mean(self, informative: int, p: float, field: str = "test_error") -> float:
        return float(self.values(informative, p, field).mean())

    def standard_error(self, informative: int, p: float, field: str = "test_error") -> float:
        return standard_error(self.values(informative, p, field))

    def difference(self, informative: int, p: float, q: float) -> tuple[float, float]:
        """Mean and standard error of error(p) - error(q), on the same data sets."""
        apart = self.values(informative, p) - self.values(informative, q)
        return float(apart.mean()), standard_error(apart)

    def notes(self) -> str:
        """Number of data sets, and what did not converge."""
        worst = max(self.rows, key=lambda row: row.gap)
        failed, fits = (sum(getattr(r, f) for r in self.rows) for f in ("unconverged", "n_costs"))
        return (
            f"{len({row.repetition for row in self.rows})} data sets per level. Largest relative "
            f"duality gap of a chosen model: {worst.gap:.1e}, for p = {name_of(worst.p)}. {failed} "
            f"of {fits} fits on the grid of C are above the tolerance."
        )


# -- alignments -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alignments:
    """Alignments of the kernels of one level.

    Attributes
    ----------
    informative : int
        Number of informative features, which come first.
    mean : array of shape (50, 50)
        Mean over data sets.
    among_informative : array of shape (data sets,)
        Mean over pairs of informative kernels; NaN where there is only one.
    with_noise : array of shape (data sets,)
        Mean over pairs with at least one noise kernel; NaN where there is none.
    """

    informative: int
    mean: np.ndarray
    among_informative: np.ndarray
    with_noise: np.ndarray

    @property
    def expected(self) -> float:
        """Alignment of two informative kernels in the limit of many points."""
        signal = RHO**2 / self.informative
        return float((signal / (1 + signal)) ** 2)

    @property
    def over_all_pairs(self) -> float:
        return float(self.mean[np.triu_indices(N_FEATURES, 1)].mean())


def align_features(levels: Sequence[int], repetitions: int, seed: int) -> list[Alignments]:
    """Alignments on the training samples of the experiment, for each level."""
    out = []
    rows, columns = np.triu_indices(N_FEATURES, 1)
    for k in levels:
        found = np.stack(
            [
                np.corrcoef(make_samples(k, repetition, seed)[0][0], rowvar=False) ** 2
                for repetition in range(repetitions)
            ]
        )
        pairs, both = found[:, rows, columns], columns < k
        nothing = np.full(repetitions, np.nan)
        among = pairs[:, both].mean(axis=1) if both.any() else nothing
        others = pairs[:, ~both].mean(axis=1) if not both.all() else nothing
        out.append(Alignments(k, found.mean(axis=0), among, others))
    return out


def alignment_table(levels: Sequence[Alignments]) -> str:
    """Mean alignments ± standard errors, one line per level."""

    def shown(values: np.ndarray) -> str:
        if np.isnan(values).any():
            return ""
        error = standard_error(values)
        return f"{values.mean():.4f}" + (f" ± {error:.4f}" if np.isfinite(error) else "")

    lines = [
        [
            noise_of(level.informative),
            shown(level.among_informative),
            f"{level.expected:.4f}" if level.informative > 1 else "",
            shown(level.with_noise),
            f"{CHANCE_ALIGNMENT:.4f}" if level.informative < N_FEATURES else "",
        ]
        for level in levels
    ]
    head = ["noise", "informative pairs", "many points", "pairs with noise", "by chance"]
    return markdown(head, lines)


def alignment_claims(levels: Sequence[Alignments]) -> list[Claim]:
    """What the text says of panel c."""
    out = []
    for level in levels:
        if 1 < level.informative < N_FEATURES:
            noise = noise_of(level.informative)
            text = "informative kernels are more aligned with each other than with noise, at "
            text += f"{noise} noise"
            left, right = 100 * level.among_informative, 100 * level.with_noise
            out.append(ahead(text, left, right, unit="hundredths"))
    others = [level.with_noise for level in levels if level.informative < N_FEATURES]
    if others:
        values = np.concatenate(others)
        mean, error = float(values.mean()), standard_error(values)
        near = bool(abs(mean - CHANCE_ALIGNMENT) <= 2 * error)
        told = f"{mean:.5f} ± {error:.5f}, by chance {CHANCE_ALIGNMENT:.5f}"
        ours = said(near) if np.isfinite(error) else "undecided"
        out.append(Claim("noise kernels are not aligned with any other kernel", "yes", ours, told))
    largest = max(level.over_all_pairs for level in levels)
    text = "alignments are small overall"
    told = f"at most {largest:.3f}, the mean over all pairs of a level"
    out.append(Claim(text, "yes", said(largest < SMALL_ALIGNMENT), told))
    return out


def draw_alignments(levels: Sequence[Alignments]) -> Figure:
    """Panel c: mean alignments of all pairs, one map per level."""
    figure, axes = panels(min(3, len(levels)), -(-len(levels) // 3))
    pairs = [level.mean[np.triu_indices(N_FEATURES, 1)].max() for level in levels]
    for ax, level in zip(axes.flat, levels, strict=False):
        shown = level.mean.copy()
        np.fill_diagonal(shown, np.nan)  # one, and far off the scale
        image = ax.imshow(shown, vmin=0.0, vmax=max(pairs), cmap="viridis")
        ax.set_title(
            f"{noise_of(level.informative)} noise, {level.informative} informative",
            fontsize="medium",
        )
        ax.set_xticks([0, 24, 49], ["1", "25", "50"])
        ax.set_yticks([0, 24, 49], ["1", "25", "50"])
    for ax in axes.flat[len(levels) :]:
        ax.set_axis_off()
    for ax in axes[-1]:
        ax.set_xlabel("kernel")
    for ax in axes[:, 0]:
        ax.set_ylabel("kernel")
    figure.colorbar(image, ax=axes, shrink=0.7, label="centred alignment")
    return figure


# -- the fine grid of p ---------------------------------------------------------------------------


def bayes_blocks(informative: int) -> np.ndarray:
    """Block norms of the Bayes hypothesis; their scale does not matter."""
    return direction(informative)


def bound_p(informative: int) -> float:
    """The p at which the bound factor of the Bayes hypothesis is smallest; the largest of several.

    Examples
    --------
    >>> [round(bound_p(k), 3) for k in (1, 4, 9)]
    [1.147, 1.247, 1.412]
    """
    return suggest_p(bayes_blocks(informative), largest=float("inf"))


class FineGrid(Cells):
    """Test errors on a fine grid of p, beside the bound factor."""

    def winner(self, k: int) -> float:
        return min(self.norms, key=lambda p: self.mean(k, p))

    def as_good(self, k: int) -> list[float]:
        """The norms that are less than two standard errors worse than the best one."""
        best = self.winner(k)
        found = {p: self.difference(k, p, best) for p in self.norms}
        return [p for p, (d, s) in found.items() if p == best or not d >= 2 * s]

    def error_table(self) -> str:
        """Means ± standard errors: a line per norm, because there are many."""
        lines = [
            [
                name_of(p),
                *(
                    f"{100 * self.mean(k, p):.2f} ± {100 * self.standard_error(k, p):.2f}"
                    for k in self.levels
                ),
            ]
            for p in self.norms
        ]
        return markdown(["p", *(f"{noise_of(k)} noise" for k in self.levels)], lines)

    def best_table(self) -> str:
        """Best p, the norms as good, the bound's p, and what it costs to follow the bound."""
        lines = []
        for k in self.levels:
            best, bound = self.winner(k), bound_p(k)
            d, s = self.difference(k, self.nearest(bound), best)
            cost = "" if self.nearest(bound) == best else f"{100 * d:.2f} ± {100 * s:.2f}"
            good = ", ".join(map(name_of, self.as_good(k)))
            # With one block the factor is flat from 1 on.
            shown = f"1 to {bound:.3f}" if k == 1 else f"{bound:.4g}"
            lines.append([noise_of(k), name_of(best), good, shown, cost or "0"])
        head = ["noise", "best p", "not worse by 2 s.e.", "p of the bound", "its loss in points"]
        return markdown(head, lines)

    def nearest(self, p: float) -> float:
        """The norm of the grid nearest to p, measured by ``1/p``."""
        return min(self.norms, key=lambda q: abs(1 / q - 1 / p))

    def claims(self) -> list[Claim]:
        """What the text says of panel d, as far as this run can tell."""
        out = []
        levels, norms = self.levels, self.norms
        if 1 in levels:
            found = bound_p(1)
            text = "the bound is smallest for p from 1 to 1.14 at 98 % noise"
            told = f"from 1 to {found:.4f}"
            out.append(Claim(text, "yes", said(abs(found - 1.14) < 0.01), told))
            out += [*self._equally_good(1, 1.0, 1.15), *self._worse(1, 1.19, 1.15)]
        if 4 in levels:
            found = bound_p(4)
            text = "the bound is smallest at p = 1.25 at 92 % noise"
            out.append(Claim(text, "yes", said(abs(found - 1.25) < 0.01), f"{found:.4f}"))
            text = "the best p is 1.26 at 92 % noise"
            out.append(self._best_within(text, 4, 1.255, 1.265))
        for k in (28, 18, 9):
            if k in levels:
                text = f"the best p lies between 1 and 2 at {noise_of(k)} noise"
                out.append(self._best_within(text, k, 1.0, 2.0))
        for k in (28, 18, 9, 4):
            if k in levels:
                text = f"the p of the bound works as well as the best at {noise_of(k)} noise"
                near = self.nearest(bound_p(k))
                d, s = self.difference(k, near, self.winner(k))
                told = (
                    f"p = {name_of(near)} against {name_of(self.winner(k))}: "
                    f"{100 * d:+.2f} ± {100 * s:.2f} points"
                )
                out.append(Claim(text, "yes", _as_good([(d, s)]), told))
        if 50 in levels:
            text = "the bound is smallest beyond p = 2 at 0 % noise"
            out.append(Claim(text, "yes", said(bound_p(50) > 2), f"at p = {bound_p(50):g}"))
            if max(norms) >= 4:
                text = "the best p is 4 or more at 0 % noise"
                out.append(self._best_within(text, 50, 4.0, float("inf")))
                out += self._equally_good(50, 4.0, float("inf"))
        return out

    def _best_within(self, text: str, k: int, low: float, high: float) -> Claim:
        """Yes if the best p is in the range; undecided if one in the range is as good."""
        best, good = self.winner(k), self.as_good(k)
        inside = [p for p in good if low <= p <= high]
        ours = "yes" if low <= best <= high else "undecided" if inside else "no"
        others = ", ".join(name_of(p) for p in good if p != best)
        told = f"p = {name_of(best)}" + (f"; as good: {others}" if others else "")
        return Claim(text, "yes", ours, told)

    def _equally_good(self, k: int, low: float, high: float) -> list[Claim]:
        """Are all norms of a range as good as the best of them? None if there are less than two."""
        flat = self._within(low, high)
        if len(flat) < 2:
            return []
        best = min(flat, key=lambda p: self.mean(k, p))
        apart = {p: self.difference(k, p, best) for p in flat if p != best}
        p, (d, s) = max(apart.items(), key=lambda item: item[1][0])
        text = f"p from {low:g} to {high:g} are equally good at {noise_of(k)} noise"
        told = f"p = {name_of(p)} against {name_of(best)}: {100 * d:+.2f} ± {100 * s:.2f} points"
        return [Claim(text, "yes", _as_good(list(apart.values())), told)]

    def _worse(self, k: int, p: float, q: float) -> list[Claim]:
        """Is p worse than q? None if one is not on the grid."""
        left, right = self._within(p, p), self._within(q, q)
        if not left or not right:
            return []
        text = f"p = {p:g} is worse than p = {q:g} at {noise_of(k)} noise"
        return [ahead(text, 100 * self.values(k, left[0]), 100 * self.values(k, right[0]))]

    def _within(self, low: float, high: float) -> list[float]:
        """Norms of the grid in a range whose ends have two digits in the text."""
        return [p for p in self.norms if low - 0.005 <= p <= high + 0.005]

    def figure(self) -> Figure:
        """Panel d: test error and bound factor against p, one panel per level."""
        levels, norms = self.levels, np.array(self.norms)
        figure, axes = panels(min(3, len(levels)), -(-len(levels) // 3))
        # 1 - 1/p runs from 0 at p = 1 over 1/2 at p = 2 to 1 at infinity.
        smooth = np.linspace(0.0, 1.0, 201)
        ticks = [p for p in (1.0, 4 / 3, 2.0, 4.0, float("inf")) if p <= norms.max()]
        for place, (ax, k) in enumerate(zip(axes.flat, levels, strict=False)):
            at = 1 - 1 / norms
            means = [100 * self.mean(k, p) for p in self.norms]
            bars = np.nan_to_num([100 * self.standard_error(k, p) for p in self.norms])
            ax.errorbar(at, means, bars, color="C0", marker=".", label="test error")
            good = [self.norms.index(p) for p in self.as_good(k)]
            label = "best p, to within 2 s.e."
            ax.plot(at[good], np.array(means)[good], "o", color="C0", label=label)
            other = ax.twinx()
            reach = smooth[smooth <= at.max() + 1e-9]
            w = bayes_blocks(k)
            factors = np.array([bound_factor(w, 1 / (1 - s) if s < 1 else np.inf) for s in reach])
            other.plot(reach, factors / factors.min(), color="C1", label="bound factor")
            # A factor that is smallest beyond the norms shown has its mark at their end.
            low = min(1 - 1 / bound_p(k), float(at.max()))
            other.plot([low], [1.0], "v", color="C1", ms=8, label="its minimum")
            other.locator_params(axis="y", nbins=5)
            other.tick_params(axis="y", labelcolor="C1")
            ax.tick_params(axis="y", labelcolor="C0")
            ax.set_xticks([1 - 1 / p for p in ticks], [name_of(p) for p in ticks])
            ax.set_title(f"{noise_of(k)} noise", fontsize="medium")
            if place % 3 == 0:
                ax.set_ylabel("test error in %", color="C0")
            if place % 3 == min(3, len(levels)) - 1:
                other.set_ylabel("bound factor / its minimum", color="C1")
        for ax in axes.flat[len(levels) :]:
            ax.set_axis_off()
        for ax in axes[-1]:
            ax.set_xlabel("block norm p")
        handles = [
            (line, text)
            for source in (axes.flat[len(levels) - 1], other)
            for line, text in zip(*source.get_legend_handles_labels(), strict=True)
        ]
        figure.legend(*zip(*handles, strict=True), loc="outside upper center", ncols=4)
        return figure


def _as_good(differences: Sequence[tuple[float, float]]) -> str:
    """Verdict on "not worse", from means and standard errors of the loss against the best."""
    if all(d == s == 0 for d, s in differences):  # the best one itself
        return "yes"
    if any(d >= 2 * s for d, s in differences):
        return "no"
    return "yes" if all(2 * s <= RESOLVED_ERROR for _, s in differences) else "undecided"
