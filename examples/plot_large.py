"""
Features instead of kernel matrices, with bounds
================================================

How the objective with landmarks approaches the exact one as their number grows, what is proven
about the exact optimum along the way, and the error on new samples.
"""

import matplotlib.pyplot as plt
import numpy as np

import multikernel as mk

rng = np.random.default_rng(0)
X = rng.standard_normal((1600, 3))
f = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2]
y = f + 0.3 * rng.standard_normal(len(f))
train, test = slice(0, 800), slice(800, None)

# %%
# The same problem with 10 to 300 landmarks. ``certify_approximation`` makes one pass over the exact
# kernels; the exact optimum lies between its two bounds. Without normalisation the kernels of all
# fits are the same.
bank = mk.gaussians([0.03, 0.3])
options = {"weighting": "uniform", "normalize": None}
ranks = [10, 20, 40, 80, 160, 300]
objectives, bounds, errors = [], [], []
for rank in ranks:
    model = mk.MultiKernelRegressor(bank, approximation=mk.Nystroem(rank=rank), **options)
    model.fit(X[train], y[train])
    certificate = model.certify_approximation(X[train], y[train])
    objectives.append(model.objective_)
    bounds.append((certificate.lower, certificate.upper))
    errors.append(np.sqrt(np.mean((model.predict(X[test]) - f[test]) ** 2)))
exact = mk.MultiKernelRegressor(bank, **options).fit(X[train], y[train])
exact_error = np.sqrt(np.mean((exact.predict(X[test]) - f[test]) ** 2))
print(f"error on new samples: {errors[-1]:.3f} with {ranks[-1]} landmarks, {exact_error:.3f} exact")

# %%
lower, upper = np.array(bounds).T
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.fill_between(ranks, lower, upper, alpha=0.25, label="exact optimum, proven")
left.plot(ranks, objectives, "o-", label="objective with features")
left.axhline(exact.objective_, color="black", linewidth=1, label="exact objective")
left.set(xscale="log", xlabel="landmarks", ylabel="objective")
left.legend()
right.plot(ranks, errors, "o-", label="features")
right.axhline(exact_error, color="black", linewidth=1, label="exact")
right.set(xscale="log", xlabel="landmarks", ylabel="error on new samples")
right.legend()
plt.show()
