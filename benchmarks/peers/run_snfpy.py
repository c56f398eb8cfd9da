"""snfpy: similarity network fusion of several views, then scikit-learn's spectral clustering.

    python run_snfpy.py VIEWS.npz N_CLUSTERS SEED...

prints one list of labels for each seed, as JSON.
"""

import json
import sys

import numpy as np
import snf
from sklearn.cluster import SpectralClustering

# What the package recommends.
NEIGHBOURS, WIDTH = 20, 0.5


def main(path: str, n_clusters: str, *seeds: str) -> None:
    with np.load(path) as views:
        columns = [views[name] for name in views.files]
    affinities = snf.make_affinity(columns, metric="sqeuclidean", K=NEIGHBOURS, mu=WIDTH)
    fused = snf.snf(affinities, K=NEIGHBOURS)
    labels = [
        SpectralClustering(int(n_clusters), affinity="precomputed", random_state=int(seed))
        .fit(fused)
        .labels_.tolist()
        for seed in seeds
    ]
    print(json.dumps(labels))


if __name__ == "__main__":
    main(*sys.argv[1:])
