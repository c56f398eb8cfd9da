"""
Samples that lack a view
========================

Some samples were not measured in every way. Dropping them wastes data, and filling in column means
makes data up. With ``missing="ignore"`` every sample contributes through the views it has.
"""

import matplotlib.pyplot as plt
import numpy as np

import multikernel as mk

rng = np.random.default_rng(0)
gaussian = mk.at_distances(mk.Gaussian(), [1.0])
bank = mk.per_view({f"view {v}": (gaussian, slice(10 * v, 10 * v + 10)) for v in range(3)})
plain = mk.MultiKernelClassifier(bank, "uniform")
ignoring = mk.MultiKernelClassifier(bank, "uniform", missing="ignore")

# %%
# Three views, each of which is slightly informative about the class. A growing share of the
# (sample, view) pairs is removed, in training and test samples alike; every sample keeps at least
# one view. Means over ten draws of 100 training and 400 test samples.


def draw(share):
    """A data set, with a share of its views missing."""
    y = rng.permutation(np.repeat([0, 1], 250))
    gone = rng.random((500, 3)) < share
    gone[gone.all(axis=1), rng.integers(3)] = False
    X = rng.normal(size=(500, 30)) + 0.3 * y[:, None]
    return np.where(gone.repeat(10, axis=1), np.nan, X), y, gone.any(axis=1)


shares = [0.0, 0.2, 0.4, 0.6]
ways = ["ignored", "filled with means", "incomplete samples dropped"]
accuracy = np.zeros((len(shares), 10, 3))
for i, share in enumerate(shares):
    for j in range(10):
        X, y, incomplete = draw(share)
        filled = np.where(np.isnan(X), np.nanmean(X[:100], axis=0), X)
        kept = np.flatnonzero(~incomplete[:100])
        accuracy[i, j] = (
            ignoring.fit(X[:100], y[:100]).score(X[100:], y[100:]),
            plain.fit(filled[:100], y[:100]).score(filled[100:], y[100:]),
            plain.fit(X[kept], y[kept]).score(filled[100:], y[100:]),
        )
means, errors = accuracy.mean(axis=1), accuracy.std(axis=1) / np.sqrt(10)
for way, scores in zip(ways, means.T, strict=True):
    print(f"{way:<28}", *(f"{score:.3f}" for score in scores))

# %%
# Ignoring and filling stay close on such simple data. Dropping incomplete samples costs the most:
# with 60 % of the pairs removed, few training samples are complete.

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for way, scores, error in zip(ways, means.T, errors.T, strict=True):
    ax.errorbar([100 * share for share in shares], scores, error, fmt="o-", capsize=3, label=way)
ax.set(xlabel="views removed (%)", ylabel="accuracy on test samples", xticks=[0, 20, 40, 60])
ax.legend(frameon=False)
plt.show()
