"""
Norms and sample sizes: a study of your own bank
================================================

``mk.norm_study`` learns with several norms p on training sets of several sizes and keeps scores,
kernel weights and block norms. Its pictures are those that accompany the experiments of Kloft 2011,
chapter 5.
"""

# %%
# Friedman's first problem: five of twenty features determine the target, one of them weakly, and
# the others are noise. Every feature is a kernel, so the learned function is a sum of twenty
# functions of one variable.

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1

import multikernel as mk

X, y = make_friedman1(900, n_features=20, noise=2.0, random_state=0)
bank = mk.per_feature(mk.Gaussian(gamma=2.0))
study = mk.norm_study(
    bank, X, y, norms=(1, 1.15, 4 / 3, 2, 4), sizes=(30, 60, 120, 240, 450), grid=(0.1, 1, 10)
)
print(study)

# %%
# Scores against sample size and against the norm. The norm matters with few samples, and less with
# many. Large dots are the best p of each size.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
study.plot_scores_by_size(ax=left)
study.plot_scores_by_norm(ax=right)

# %%
# Weights for several p side by side: p = 1 nearly drops the noise features, a larger p spreads the
# weights, p = 2 gives equal weights and p = 4 favours weak kernels. Block norms against n show
# which kernels fade as the sample grows.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
study.plot_weights(ax=left, most=10)
study.plot_block_norms(ax=right, p=4 / 3)

# %%
# What theory says: the bound factor of the learned block norms is smallest near p = 1.5, while p =
# 1 predicts best. Learned norms are more even than the true ones, so the p of the bound is too
# large, as in most experiments of the thesis.

study.plot_bound_factor()

# %%
# The same pictures from models that were fitted elsewhere.

models = {
    f"p = {p:.3g}": mk.MultiKernelRegressor(bank, mk.LpNorm(p)).fit(X[:200], y[:200])
    for p in (1, 4 / 3, 2)
}
mk.plot.compare_weights(models)
plt.show()
