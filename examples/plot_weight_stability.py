"""
How stable are the weights?
===========================

Weights are learned from a sample, and another sample would give different ones. Before you
interpret a weight, learn it again on resampled data, as for any other estimate.
"""

# %%
# The progression of diabetes after a year, from ten measurements. One narrow and one wide Gaussian
# per measurement: twenty kernels.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import RepeatedKFold, cross_val_score

import multikernel as mk

data = load_diabetes(scaled=False)
X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
y = data.target
bank = mk.per_view(
    {name: (mk.gaussians([0.1, 1.0]), [j]) for j, name in enumerate(data.feature_names)}
)

# %%
# Three rules, each fitted on 20 training parts of four fifths of the patients. The weight of a
# measurement is that of its two kernels together.

folds = RepeatedKFold(n_splits=5, n_repeats=4, random_state=0)
rules = ("alignf", "lp", "l1")
weights = {rule: [] for rule in rules}
for train, _ in folds.split(X):
    for rule in rules:
        learned = mk.MultiKernelRegressor(bank, rule).fit(X[train], y[train]).kernel_weights_
        weights[rule].append(learned.reshape(len(data.feature_names), 2).sum(axis=1))
for rule in (*rules, "uniform"):
    scores = cross_val_score(mk.MultiKernelRegressor(bank, rule), X, y, cv=5, scoring="r2")
    print(f"{rule:8s} R² {scores.mean():.3f} ± {scores.std():.3f} over five folds")

# %%
# Every dot is a training part. Within a rule the weights move little, so the sample is large enough
# for *this rule*. Between rules they vary considerably: body mass index (``bmi``) is first under
# all three, but the second place is the blood value ``s5`` under one rule and shared by several
# under another. The scores of the rules differ by less than their scatter over folds, so they do
# not show which weights are right. Trust what all rules agree on; the rest depends on the rule.

figure, axes = plt.subplots(1, 3, figsize=(11, 4), sharey=True, layout="constrained")
places = np.arange(len(data.feature_names))
jitter = np.random.default_rng(0).uniform(-0.2, 0.2, size=(folds.get_n_splits(), 1))
for axis, rule in zip(axes, rules, strict=True):
    share = np.array(weights[rule])
    share /= share.sum(axis=1, keepdims=True)
    axis.scatter(share, places + jitter, s=9, color="C0", alpha=0.5)
    axis.scatter(share.mean(axis=0), places, marker="|", s=250, color="k")
    axis.set(title=rule, xlabel="share of the weights", xlim=(-0.02, 0.45))
    axis.grid(axis="y", color="0.92")
axes[0].set_yticks(places, data.feature_names)
axes[0].invert_yaxis()
plt.show()
