"""
What is normal? One class, several kernels
==========================================

Novelty detection has samples of one kind only and asks whether a new sample belongs to them. There
are no labels to align kernels with, and none to choose a bandwidth by.
"""

# %%
# Two clusters, one tight and one wide, and Gaussians of four widths. Without labels there is no
# cross-validation to choose the width; here new samples of both kinds serve as a check that is not
# available in practice.

import matplotlib.pyplot as plt
import numpy as np

import multikernel as mk

rng = np.random.default_rng(0)


def draw(n):
    return np.vstack(
        [rng.normal([-2.0, 0.0], 0.2, size=(n, 2)), rng.normal([1.5, 0.0], 0.9, size=(n, 2))]
    )


X, fresh = draw(150), draw(1000)
strange = rng.uniform([-4, -3], [5, 3], size=(400, 2))
far = np.linalg.norm((strange - [-2.0, 0.0]) / 0.2, axis=1) > 4
strange = strange[far & (np.linalg.norm((strange - [1.5, 0.0]) / 0.9, axis=1) > 3)]
gammas = [0.05, 0.3, 2.0, 12.0]
bank = mk.gaussians(gammas)

# %%
# ``nu`` bounds the share of the sample that is left outside; here one in twenty.

models = {f"gamma = {gamma:g} alone": [mk.Gaussian(gamma)] for gamma in (0.05, 12.0)}
models["all four, uniform"] = bank
fitted = {
    name: mk.MultiKernelOneClass(kernels, "uniform", nu=0.05).fit(X)
    for name, kernels in models.items()
}
for name, model in fitted.items():
    print(
        f"{name:20s} called strange: {np.mean(model.predict(fresh) == -1):.1%} of new normal "
        f"points, {np.mean(model.predict(strange) == -1):.1%} of strangers"
    )

# %%
# A wide kernel accepts what lies between the clusters. A narrow one isolates every sample and
# rejects much that is normal. The sum of all four stays close to the requested rate (one in twenty)
# and finds the outliers, without a choice of width.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), sharey=True, layout="constrained")
across, up = np.linspace(-4, 5, 150), np.linspace(-3, 3, 100)
plane = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
for axis, (name, model) in zip(axes, fitted.items(), strict=True):
    values = model.decision_function(plane).reshape(len(up), -1)
    axis.contourf(across, up, values, levels=[0, 1e9], colors=["C0"], alpha=0.25)
    axis.contour(across, up, values, levels=[0], colors=["C0"])
    axis.scatter(*strange.T, s=6, color="0.6")
    axis.scatter(*X.T, s=6, color="C0")
    wrong, right = np.mean(model.predict(fresh) == -1), np.mean(model.predict(strange) == -1)
    axis.set_title(f"{name}\ncalled strange: {wrong:.0%} of normal, {right:.0%} of strangers")
    axis.title.set_fontsize(10)
plt.show()

# %%
# Learned weights prefer the wide kernels, whose models have the smallest norm, and more so the
# sparser they are. Without labels, that does not mean that these widths are right.

for rule in ("lp", "l1"):
    weights = mk.MultiKernelOneClass(bank, rule, nu=0.05).fit(X).kernel_weights_
    shares = zip(gammas, weights / weights.sum(), strict=True)
    print(f"{rule}: " + ", ".join(f"{share:.2f} for gamma {gamma:g}" for gamma, share in shares))
