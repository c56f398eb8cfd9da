"""Numbers behind the plots, computed from a fitted model and a sample.

Results computed on a subset of the samples state or return that subset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimators.weights import Weights
from .sample import draw_rows, n_rows, one_kernel, prepared_grams

#: Maximum numbers of samples for alignments between kernels, for spectra and for scatter plots.
ALIGNMENT_POINTS, SPECTRUM_POINTS, SCATTER_POINTS = 2000, 1000, 1000
#: Maximum number of kernels whose alignments are shown: those with the largest weights.
MOST_KERNELS = 60
#: Sign vectors for the Monte-Carlo complexities of a certificate; the bounds include their error.
CERTIFICATE_DRAWS = 200
#: Maximum number of base kernels whose spectra are drawn, besides the learned one.
MOST_SPECTRA = 12


# -- alignments -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alignments:
    """Centred alignments of kernels with each other, rows and columns in clustering order.

    Attributes
    ----------
    kernels : array of int
        Positions in the bank.
    names : list of str
    A : array of shape (m, m)
    target : array of shape (m,) or None
        Alignments with the target.
    groups : array of shape (m,)
        Number of the cluster that each belongs to (average linkage, cut at an alignment of 0.8).
    n_points, n_all : int
        Numbers of samples used, and in all.
    n_kernels : int
        Number of kernels in the bank.
    """

    kernels: np.ndarray
    names: list[str]
    A: np.ndarray
    target: np.ndarray | None
    groups: np.ndarray
    n_points: int
    n_all: int
    n_kernels: int


def find_alignments(
    source: Any, X: Any, Y: np.ndarray | None = None, order: np.ndarray | None = None
) -> Alignments:
    """Alignments of the kernels; of a large bank, only of the first kernels in ``order``."""
    rows = draw_rows(n_rows(X), ALIGNMENT_POINTS)
    grams = prepared_grams(source, X, rows)
    many = grams.p > MOST_KERNELS
    if many:
        rows = draw_rows(n_rows(X), ALIGNMENT_POINTS // 4)
        grams = prepared_grams(source, X, rows)
    targets = np.zeros((len(rows), 1)) if Y is None else Y[rows]
    summary = grams.summary(targets, products=not many)
    if many:
        chosen = np.sort((np.arange(grams.p) if order is None else order)[:MOST_KERNELS])
        matrices = np.stack([one_kernel(grams, int(k)).ravel() for k in chosen])
        M = matrices @ matrices.T
    else:
        chosen = np.arange(grams.p)
        assert summary.M is not None
        M = summary.M
    sizes = np.sqrt(np.clip(np.diag(M), 0.0, None))
    norms = np.outer(sizes, sizes)
    A = np.divide(M, norms, out=np.zeros_like(M), where=norms > 0)
    places, groups = cluster(A)
    target = None if Y is None else summary.alignments[chosen][places]
    names = getattr(source, "kernel_names_", grams.names)
    return Alignments(
        chosen[places],
        [names[int(k)] for k in chosen[places]],
        A[np.ix_(places, places)],
        target,
        groups[places],
        len(rows),
        n_rows(X),
        grams.p,
    )


def cluster(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An order that puts similar kernels side by side, and the cluster of each kernel."""
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(A) < 3:
        return np.arange(len(A)), np.arange(len(A))
    distance = np.clip(1.0 - (A + A.T) / 2.0, 0.0, None)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=len(A) <= 200)
    return leaves_list(tree), fcluster(tree, 0.2, "distance")


# -- spectra and embeddings -----------------------------------------------------------------------


@dataclass(frozen=True)
class Spectra:
    """Eigenvalues of centred kernel matrices as parts of their trace, largest first.

    Attributes
    ----------
    kernels : list of int
        Positions in the bank of the base kernels shown; -1 for the original kernel of a model that
        learned new eigenvalues for it.
    names : list of str
    values : array of shape (m, n_points)
    learned : array of shape (n_points,) or None
        Spectrum of the learned combination; None for votes and ensembles, which have none.
    n_points, n_all : int
    """

    kernels: list[int]
    names: list[str]
    values: np.ndarray
    learned: np.ndarray | None
    n_points: int
    n_all: int


def effective_rank(spectrum: np.ndarray) -> float:
    """Effective rank ``(sum lambda)^2 / sum lambda^2``, which is k for k equal eigenvalues."""
    squares = float(np.sum(spectrum**2))
    return float(np.sum(spectrum)) ** 2 / squares if squares > 0 else 0.0


def find_spectra(estimator: Any, X: Any) -> Spectra:
    weights = Weights.of(estimator)
    rows = draw_rows(n_rows(X), SPECTRUM_POINTS)
    grams = prepared_grams(estimator, X, rows)
    names: list[str]
    if getattr(estimator, "family", None) == "spectral":
        # Its members are single eigenvectors, so the original kernel is shown for comparison.
        shown, names = [-1], ["the original kernel"]
        own = np.asarray(estimator.eigenvalues_) / estimator.trace_
        values = _spectrum(grams.combine(own).dense())[None, :]
    else:
        shown = [int(k) for k in weights.order[:MOST_SPECTRA]]
        names = [weights.names[k] for k in shown]
        values = np.stack([_spectrum(one_kernel(grams, k)) for k in shown])
    learned = None
    if has_combination(estimator) and weights.n_used:
        learned = _spectrum(grams.combine(weights.mean).dense())
    return Spectra(shown, names, values, learned, len(rows), n_rows(X))


def has_combination(estimator: Any) -> bool:
    """Whether the model predicts with one combined kernel, unlike votes and ensembles."""
    return not hasattr(estimator, "terms_") and not hasattr(estimator, "weights_gap_")


def _spectrum(K: np.ndarray) -> np.ndarray:
    from scipy.linalg import eigvalsh

    found = np.clip(eigvalsh(K)[::-1], 0.0, None)
    total = found.sum()
    return found / total if total > 0 else found


@dataclass(frozen=True)
class Embedding:
    """The first two kernel principal components, scaled to a largest absolute value of one.

    Attributes
    ----------
    title : str
    points : array of shape (m, 2)
    explained : tuple of float
        Shares of the variance in feature space.
    """

    title: str
    points: np.ndarray
    explained: tuple[float, float]


def find_embeddings(estimator: Any, X: Any) -> tuple[np.ndarray, list[Embedding]]:
    """Row numbers, and kernel PCA of the learned, the uniform and the strongest kernel."""
    weights = Weights.of(estimator)
    rows = draw_rows(n_rows(X), SCATTER_POINTS)
    grams = prepared_grams(estimator, X, rows)
    found = []
    if has_combination(estimator) and weights.n_used:
        found.append(_embed("Learned combination", grams.combine(weights.mean).dense()))
    if grams.p > 1:
        uniform = grams.combine(np.full(grams.p, 1.0 / grams.p)).dense()
        found.append(_embed("Uniform combination", uniform))
    first = int(weights.order[0])
    title = f"Largest weight alone: {weights.names[first]}" if grams.p > 1 else weights.names[0]
    found.append(_embed(title, one_kernel(grams, first)))
    return rows, found


def _embed(title: str, K: np.ndarray) -> Embedding:
    from scipy.linalg import eigh

    n = len(K)
    values, vectors = eigh(K, subset_by_index=[max(n - 2, 0), n - 1])
    values, vectors = np.clip(values[::-1], 0.0, None), vectors[:, ::-1]
    # Signs of eigenvectors are arbitrary: the largest entry is made positive.
    vectors = vectors * np.sign(
        vectors[np.argmax(np.abs(vectors), axis=0), range(vectors.shape[1])]
    )
    points = vectors * np.sqrt(values)
    size = np.abs(points).max(initial=0.0)
    trace = float(np.trace(K))
    part = values / trace if trace > 0 else values
    return Embedding(title, points / size if size > 0 else points, (float(part[0]), float(part[1])))


# -- search, stability, convergence ---------------------------------------------------------------


@dataclass(frozen=True)
class SearchPath:
    """Cross-validated scores along a grid.

    Attributes
    ----------
    name : str
        What the grid is over: "C", "alpha" or "sparsity_penalty".
    grid : array of shape (m,)
    labels : list of str
        One per line: the weighting, or another parameter.
    norms : list of float or None
        The p of each line where all are lp norms that differ in nothing else.
    means, deviations : arrays of shape (n_lines, m)
    best : tuple of int
        Indices of the chosen line and grid value.
    """

    name: str
    grid: np.ndarray
    labels: list[str]
    norms: list[float] | None
    means: np.ndarray
    deviations: np.ndarray
    best: tuple[int, int]


def find_path(estimator: Any) -> SearchPath | None:
    """The grid of a fitted search; None for other estimators."""
    results = getattr(estimator, "cv_results_", None)
    if results is None:
        return None
    name = next(key for key in ("C", "alpha", "sparsity_penalty") if key in results)
    rules: Sequence[Any]
    if name == "sparsity_penalty":
        rules = [f"λ = {value:g}" for value in results["complexity_penalty"]]
        if "local_radius" in results:
            radii = results["local_radius"]
            rules = [f"{rule}, s = {s:g}" for rule, s in zip(rules, radii, strict=True)]
    else:
        rules = results["weighting"]
    values = np.asarray(results[name], dtype=np.float64)
    lines = list(dict.fromkeys(map(str, rules)))
    grid = np.unique(values)
    means = np.full((len(lines), len(grid)), np.nan)
    deviations = np.full_like(means, np.nan)
    for i, rule in enumerate(rules):
        place = lines.index(str(rule)), int(np.searchsorted(grid, values[i]))
        means[place] = results["mean_test_score"][i]
        deviations[place] = results["std_test_score"][i]
    best = estimator.best_index_
    chosen = lines.index(str(rules[best])), int(np.searchsorted(grid, values[best]))
    each = {str(rule): rule for rule in rules}
    norms: list[float] | None = [getattr(each[line], "p", None) for line in lines]  # type: ignore[misc]
    if len(lines) < 2 or any(p is None for p in norms or ()) or len(set(norms or ())) < len(lines):
        norms = None
    return SearchPath(name, grid, lines, norms, means, deviations, chosen)


def same_model(estimator: Any) -> Any:
    """An unfitted copy of a model, with the parameters that its search chose and its kernels."""
    from .. import estimators

    cls, options = type(estimator), estimator.get_params(deep=False)
    if hasattr(estimator, "cv_results_"):
        cls = getattr(estimators, cls.__name__.removesuffix("CV"))
        chosen = {
            name: getattr(estimator, f"{name}_")
            for name in ("C", "alpha", "weighting", "complexity_penalty", "sparsity_penalty")
            if hasattr(estimator, f"{name}_")
        }
        if hasattr(estimator, "local_radius_"):
            chosen["local_radius"] = estimator.local_radius_
        known = cls().get_params(deep=False)
        options = {key: value for key, value in (options | chosen).items() if key in known}
    options["verbose"] = 0
    kernels = "kernels" if "kernels" in options else "kernel"
    if options[kernels] is None:
        options[kernels] = estimator.bank_  # keep widths chosen on the whole sample
    return cls(**options)


def find_histories(estimator: Any) -> list[tuple[str, np.ndarray]]:
    """Relative duality gaps by iteration, one entry per predictor that recorded any."""
    history = getattr(estimator, "history_", None) or []
    machines = history if history and isinstance(history[0], list) else [history]
    found = []
    for j, steps in enumerate(machines):
        gaps = np.array([step["gap"] for step in steps if "gap" in step], dtype=np.float64)
        if len(gaps):
            found.append((f"predictor {j}" if len(machines) > 1 else "relative duality gap", gaps))
    return found


def find_certificate(
    estimator: Any,
    X: Any,
    y: Any,
    delta: float = 0.05,
    *,
    unmet: Sequence[str] = (),
    n_draws: int = CERTIFICATE_DRAWS,
    random_state: Any = 0,
) -> Any:
    """The certificate of an estimator; estimators without one raise an error that says why.

    ``unmet`` are assumptions that fail for reasons the estimator cannot know, such as imputation of
    medians before the fit.
    """
    from ..bounds import certificate
    from ..estimators.base import MultiKernelEstimator

    if type(estimator).certificate is not MultiKernelEstimator.certificate:
        return estimator.certificate(X, y, delta)
    found = certificate(estimator, X, y, delta, n_draws=n_draws, random_state=random_state)
    for note in unmet:
        found = found.with_unmet(note)
    return found
