"""
The path over C and p
=====================

Joint rules have two parameters: C is the cost of errors, p controls how unequal the kernels may
be. Both are chosen by cross-validation, and the map of the scores shows whether the choice
matters.
"""

# %%
# Tumours, with a narrow, a medium and a wide Gaussian on each of ten groups of three measurements:
# 30 kernels. The rules to try are lp norms from sparse to the plain sum.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import multikernel as mk

data = load_breast_cancer()
X, y = StandardScaler().fit_transform(data.data)[:300], data.target[:300]
measured = [name.removeprefix("mean ") for name in data.feature_names[:10]]
bank = mk.per_view(
    {name: (mk.gaussians([0.02, 0.2, 2.0]), [j, j + 10, j + 20]) for j, name in enumerate(measured)}
)
norms = [1.0, 8 / 7, 4 / 3, 8 / 5, 2.0]
Cs = [0.01, 0.1, 1.0, 10.0, 100.0]

# %%
# One search over both. Kernels are evaluated once; for each norm, fits start near the weights
# learned with the previous one.

search = mk.MultiKernelClassifierCV(bank, [mk.LpNorm(p) for p in norms], Cs=Cs, cv=4)
search.fit(X, y)
print(f"chosen: {search.weighting_}, C = {search.C_:g}, accuracy {search.best_score_:.3f}")

# %%
# Left, the scores; right, what happens to the kernels along p. From C = 1 on the norm hardly
# matters to the score on these data. What it changes is how many measurements are left to look at.

scores = np.array(search.cv_results_["mean_test_score"]).reshape(len(norms), len(Cs))
shares = []
for p in norms:
    weights = mk.MultiKernelClassifier(bank, mk.LpNorm(p), C=1.0).fit(X, y).kernel_weights_
    shares.append(weights.reshape(len(measured), -1).sum(axis=1) / weights.sum())

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
drawn = left.imshow(scores, cmap="viridis", aspect="auto", origin="lower")
for i, j in np.ndindex(scores.shape):
    dark = scores[i, j] < scores.min() + 0.6 * np.ptp(scores)
    left.text(j, i, f"{scores[i, j]:.3f}", ha="center", va="center", color="w" if dark else "k")
left.set_xticks(range(len(Cs)), [f"{C:g}" for C in Cs])
left.set_yticks(range(len(norms)), ["1", "8/7", "4/3", "8/5", "2"])
left.set(xlabel="C", ylabel="p", title="cross-validated accuracy")
shares = np.array(shares)
order = np.argsort(-shares[0])
right.stackplot(
    range(len(norms)), shares[:, order].T, labels=[measured[k] for k in order], alpha=0.85
)
right.set_xticks(range(len(norms)), ["1", "8/7", "4/3", "8/5", "2"])
right.set(xlabel="p", ylabel="share of the weights", title="by measurement, C = 1", ylim=(0, 1))
right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
plt.show()
