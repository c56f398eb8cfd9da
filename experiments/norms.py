"""What the experiments of Kloft's chapter 5 share: machines along C, kernel weights, verdicts.

Norms are exponents p of the block norm; ``p = 2`` is the plain support vector machine on the sum of
the kernels, which is why no experiment has a separate line for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from multikernel.bounds import bound_factor, suggest_p
from multikernel.estimators import MultiKernelClassifier
from multikernel.grams.normalise import centered_alignment
from multikernel.kernels import KernelBank, precomputed
from multikernel.weighting import LpNorm

from .record import Claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Fit = TypeVar("Fit")

#: the norms of the protein experiments as the text rounds them: block norms of kernel weights with
#: the norms q = 1, 32/31, 16/15, 8/7, 4/3, 2, 4, 8, inf
PROTEIN_NORMS = {
    "1": 1.0,
    "1.01": 64 / 63,
    "1.03": 32 / 31,
    "1.07": 16 / 15,
    "1.14": 8 / 7,
    "1.33": 4 / 3,
    "1.6": 8 / 5,
    "1.8": 16 / 9,
    "2": 2.0,
}


@dataclass(frozen=True)
class Problem:
    """Kernel matrices over all samples, and the classes of these."""

    names: list[str]
    matrices: np.ndarray
    y: np.ndarray

    def bank(self, rule: str = "") -> KernelBank:
        """Return all kernels or, where `rule` is the name of one, that kernel alone."""
        if rule not in self.names:
            return precomputed(self.matrices, names=self.names)
        k = self.names.index(rule)
        return precomputed(self.matrices[k : k + 1], names=[rule])


def increasing_costs(
    costs: Sequence[float],
    fit: Callable[[float], Fit],
    coefficients: Callable[[Fit], np.ndarray],
) -> Iterator[tuple[float, Fit]]:
    """Yield each C, from the smallest on, with what ``fit(C)`` returns.

    Once no coefficient is at its bound C, the bound plays no part: the same model is, to the
    tolerance, the answer for every larger C, and is not computed again.
    """
    found: Fit | None = None
    bound = 0.0
    for C in sorted(costs):
        if found is None or np.abs(coefficients(found)).max() >= bound * (1 - 1e-6):
            found, bound = fit(C), C
        yield C, found


def machines(
    bank: KernelBank,
    p: float,
    costs: Sequence[float],
    ids: np.ndarray,
    y: np.ndarray,
    normalize: str | None = "multiplicative",
) -> Iterator[tuple[float, MultiKernelClassifier]]:
    """Yield C and its classifier, for increasing C; each class has kernel weights of its own."""

    def fit(C: float) -> MultiKernelClassifier:
        return MultiKernelClassifier(
            bank, LpNorm(p), C=C, multiclass="per_class", normalize=normalize
        ).fit(ids, y)

    return increasing_costs(costs, fit, lambda model: model.dual_coef_)


def weights_of(model: MultiKernelClassifier) -> np.ndarray:
    """Kernel weights with sum one, mean over classes."""
    theta = np.atleast_2d(model.kernel_weights_)
    return np.asarray((theta / theta.sum(axis=1, keepdims=True)).mean(axis=0))


def standard_error(values: np.ndarray) -> float:
    """Standard error of the mean, NaN for one value."""
    found = np.asarray(values, dtype=np.float64)
    return float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else float("nan")


def mean_and_error(values: np.ndarray, digits: int = 2) -> str:
    """Return the mean and, for several values, its standard error.

    Examples
    --------
    >>> mean_and_error(np.array([1.0, 2.0])), mean_and_error(np.array([1.0]))
    ('1.50 ± 0.50', '1.00')
    """
    error = standard_error(values)
    shown = f" ± {error:.{digits}f}" if np.isfinite(error) else ""
    return f"{values.mean():.{digits}f}{shown}"


def alignment_matrix(matrices: np.ndarray) -> np.ndarray:
    """Return the centred alignments of all pairs of matrices, shape (kernels, kernels)."""
    A = np.eye(len(matrices))
    for k, K in enumerate(matrices):
        for j in range(k):
            A[k, j] = A[j, k] = centered_alignment(K, matrices[j])
    return A


def said(truth: bool) -> str:
    """Of a claim."""
    return "yes" if truth else "no"


def ahead(
    text: str, left: np.ndarray, right: np.ndarray, *, printed: str = "yes", unit: str = "points"
) -> Claim:
    """Verdict on "left is larger than right", from paired values.

    "yes" and "no" need a mean difference of two standard errors, else it is "undecided".
    """
    apart = np.asarray(left, dtype=np.float64) - np.asarray(right, dtype=np.float64)
    mean, error = float(apart.mean()), standard_error(apart)
    if not np.isfinite(error) or abs(mean) < 2 * error or mean == 0:
        ours = "undecided"
    else:
        ours = "yes" if mean > 0 else "no"
    shown = f" ± {error:.1f}" if np.isfinite(error) else ""
    return Claim(text, printed, ours, f"{mean:+.1f}{shown} {unit}")


def draw_factor(ax: Axes, norms: dict[str, np.ndarray]) -> None:
    """``nu_p`` of the global bound against p in [1, 2], one curve a label, its minimum marked.

    Curves are divided by their value at p = 2, so that what is seen is their shape.
    """
    grid = np.linspace(1.0, 2.0, 101)
    for label, sizes in norms.items():
        values = np.array([bound_factor(sizes, float(p)) for p in grid])
        best = suggest_p(sizes)
        (line,) = ax.plot(grid, values / values[-1], label=f"{label}: {best:.2f}")
        ax.plot([best], [bound_factor(sizes, best) / values[-1]], "o", color=line.get_color())
    ax.set_xlabel("block norm p")
    ax.set_ylabel("bound factor, relative to p = 2")
    ax.legend(title="its minimum", fontsize="small")


def draw_matrix(ax: Axes, values: np.ndarray, names: Sequence[str]) -> Any:
    """A matrix of alignments as a picture."""
    image = ax.imshow(values, vmin=0.0, vmax=1.0, cmap="viridis")
    if len(names) <= 16:
        ax.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
        ax.set_yticks(range(len(names)), names, fontsize="small")
    return image
