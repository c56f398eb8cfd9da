"""
A common picture of several views
=================================

Three views of the same handwritten digits: the upper half of the image, the lower half, and noise.
There are no labels. The consensus of the views finds its own weights, and its principal components
show groups more clearly than either half.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

import multikernel as mk

X, y = load_digits(n_class=6, return_X_y=True)
X, y = X[:500], y[:500]
noise = np.random.default_rng(0).normal(size=(len(X), 32))
X = np.hstack([X, noise])

# %%
# One Gaussian per view, as wide as the median distance there. Columns of one view have the same
# unit, so they are not scaled.
gaussian = mk.at_distances(mk.Gaussian(), [1.0], scaling=None)
views = {"upper half": slice(0, 32), "lower half": slice(32, 64), "noise": slice(64, 96)}
bank = mk.per_view({name: (gaussian, columns) for name, columns in views.items()})

rules = ("uniform", "statis", "full-neighbours", "sparse-neighbours")
models = {rule: mk.ConsensusKernel(bank, rule).fit(X) for rule in rules}
for rule, model in models.items():
    print(f"{rule:20}", dict(zip(views, model.kernel_weights_.round(2).tolist(), strict=True)))

# %%
# The embedding by one half, and by the consensus of all views.
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
half = mk.ConsensusKernel(gaussian).fit(X[:, views["upper half"]])
mk.plot.embedding(half, X[:, views["upper half"]], y, left)
left.set_title("upper half alone")
mk.plot.embedding(models["full-neighbours"], X, y, right)
right.set_title("consensus of all views")
fig.tight_layout()

# %%
# The same kernel finds the groups.
for rule in rules:
    clusters = mk.KernelClustering(6, bank, rule, random_state=0).fit(X)
    score = normalized_mutual_info_score(y, clusters.labels_)
    print(f"{rule:20} normalised mutual information with the digits {score:.2f}")
for name in ("upper half", "lower half"):
    alone = mk.KernelClustering(6, gaussian, random_state=0).fit(X[:, views[name]])
    print(f"{name:20} {normalized_mutual_info_score(y, alone.labels_):.2f}")
plt.show()
