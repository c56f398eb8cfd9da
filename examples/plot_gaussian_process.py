"""
A Gaussian process with a learned kernel
========================================

:class:`multikernel.LearnedKernel` hands the kernel of a fitted model to scikit-learn's Gaussian
processes. Here a target with two scales, a slow wave and a fast one, that no single Gaussian
kernel describes well.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import multikernel as mk

rng = np.random.default_rng(0)


def wave(x):
    return np.sin(x) + 0.4 * np.sin(9 * x)


X = np.sort(rng.uniform(0, 10, 120))[:, None]
X = X[(X[:, 0] < 5.5) | (X[:, 0] > 6.5)]  # a gap without samples
y = wave(X[:, 0]) + 0.1 * rng.normal(size=len(X))
grid = np.linspace(-0.5, 10.5, 600)[:, None]

# %%
# Ridge regression learns the weights of six widths; the process on the learned kernel learns a
# factor and the noise.

model = mk.MultiKernelRegressor(mk.gaussians(np.geomspace(0.05, 50, 6)), weighting="lp", alpha=0.01)
model.fit(X, y)
learned = ConstantKernel() * mk.LearnedKernel(model, X) + WhiteKernel(0.01)
single = ConstantKernel() * RBF(0.2) + WhiteKernel(0.01)
processes = {
    "learned kernel": GaussianProcessRegressor(learned, normalize_y=True).fit(X, y),
    "one RBF, most likely width": GaussianProcessRegressor(single, normalize_y=True).fit(X, y),
}

figure, axes = plt.subplots(2, 1, figsize=(8, 5.5), sharex=True, layout="constrained")
for ax, (name, process) in zip(axes, processes.items(), strict=True):
    mean, std = process.predict(grid, return_std=True)
    inside = (grid[:, 0] > X.min()) & (grid[:, 0] < X.max())
    error = np.sqrt(np.mean((mean - wave(grid[:, 0]))[inside] ** 2))
    print(f"{name}: root mean squared error {error:.3f}")
    ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.25)
    ax.plot(grid[:, 0], mean)
    ax.plot(grid[:, 0], wave(grid[:, 0]), "k:", linewidth=1)
    ax.plot(X[:, 0], y, "k.", markersize=3)
    ax.set(title=f"{name}: error {error:.2f}", ylim=(-2.2, 2.2))
plt.show()
