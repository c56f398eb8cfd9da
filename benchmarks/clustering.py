"""How well clusters of several views match the classes, without labels.

    python -m benchmarks.clustering [--samples N] [--seeds N] [--shuffled N] [--no-snf]

Prints the normalised mutual information of clusters and classes, mean and standard deviation over
random draws of N samples, for every rule of `mk.ConsensusKernel`, for all columns side by side, for
each view alone, and for similarity network fusion (snfpy, in an environment of its own).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import PCA
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler

import multikernel as mk

from .environments import InstallationError, python

RULES = ("uniform", "statis", "full-neighbours", "sparse-neighbours")
#: Components of the embeddings before k-means, ours and those of the columns.
COMPONENTS = 10
STARTS = 10
METHODS = {"kmeans": "kernel k-means", "spectral": "spectral clustering"}


def one_draw(
    X: np.ndarray, views: dict[str, slice], n_clusters: int, seed: int
) -> dict[str, np.ndarray]:
    """Labels by method; kernels are Gaussians of median width on scaled columns, one per view."""
    kernel = mk.at_distances(mk.Gaussian(), [1.0])
    bank = mk.per_view({name: (kernel, columns) for name, columns in views.items()})
    means = KMeans(n_clusters, n_init=STARTS, random_state=seed)
    Z = StandardScaler().fit_transform(X)
    reduced = PCA(COMPONENTS, random_state=seed).fit_transform(Z)
    found = {"all columns: PCA, k-means": means.fit_predict(reduced)}
    neighbours = SpectralClustering(
        n_clusters, affinity="nearest_neighbors", n_neighbors=10, random_state=seed
    )
    found["all columns: spectral clustering"] = neighbours.fit_predict(Z)
    for rule in RULES:
        model = mk.ConsensusKernel(bank, rule, COMPONENTS)
        found[f"{rule}: embedding, k-means"] = means.fit_predict(model.fit_transform(X))
        for method, what in METHODS.items():
            clusters = mk.KernelClustering(
                n_clusters, bank, rule, method, n_init=STARTS, random_state=seed
            )
            found[f"{rule}: {what}"] = clusters.fit_predict(X)
        if seed == 0:
            shown = zip(views, model.kernel_weights_, strict=True)
            print(f"  weights, {rule}: " + ", ".join(f"{v} {w:.2f}" for v, w in shown))
    for view, columns in views.items():
        alone = mk.KernelClustering(n_clusters, kernel, n_init=STARTS, random_state=seed)
        found[f"view {view} alone: kernel k-means"] = alone.fit_predict(X[:, columns])
    return found


def with_shuffled(
    X: np.ndarray, views: dict[str, slice], count: int, seed: int
) -> tuple[np.ndarray, dict[str, slice]]:
    """The data with copies of the first views whose rows are shuffled: they show other samples."""
    rng, more = np.random.default_rng(seed), dict(views)
    for name, columns in list(views.items())[:count]:
        copy = rng.permutation(X[:, columns])
        more[f"shuffled {name}"] = slice(X.shape[1], X.shape[1] + copy.shape[1])
        X = np.hstack([X, copy])
    return X, more


def fused(X: np.ndarray, views: dict[str, slice], n_clusters: int, seed: int) -> np.ndarray:
    """Labels by similarity network fusion of the scaled views."""
    Z = StandardScaler().fit_transform(X)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "views.npz"
        np.savez(path, **{name: Z[:, columns] for name, columns in views.items()})
        script = Path(__file__).parent / "peers" / "run_snfpy.py"
        command = [str(python("snfpy")), str(script), str(path), str(n_clusters), str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return np.array(json.loads(done.stdout)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--set", default="mfeat", help="a data set with views")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--shuffled", type=int, default=0, help="shuffled views to add")
    parser.add_argument("--no-snf", action="store_true", help="without snfpy")
    options = parser.parse_args()
    data = mk.datasets.load(options.set)
    scores: dict[str, list[float]] = {}
    for seed in range(options.seeds):
        rows = np.random.default_rng(seed).permutation(len(data.target))[: options.samples]
        X, y = data.data[rows], data.target[rows]
        X, views = with_shuffled(X, data.views, options.shuffled, seed)
        n_clusters = len(np.unique(y))
        found = one_draw(X, views, n_clusters, seed)
        if not options.no_snf:
            try:
                found["snfpy: fusion, spectral clustering"] = fused(X, views, n_clusters, seed)
            except InstallationError as error:
                print(f"snfpy cannot be installed: {error}")
                options.no_snf = True
        for name, labels in found.items():
            scores.setdefault(name, []).append(normalized_mutual_info_score(y, labels))
        print(f"  draw {seed + 1} of {options.seeds}", flush=True)
    for name, values in scores.items():
        print(f"| {name} | {np.mean(values):.3f} ± {np.std(values):.3f} |")


if __name__ == "__main__":
    main()
