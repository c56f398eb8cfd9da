"""
Kernels beyond sums: products of kernels
========================================

A sum of kernels adds functions of single features; it cannot represent what depends on two
features *together*. :func:`multikernel.products` makes a bank of all products, and every weighting
can choose among them.

Here the class is the sign of ``x0 * x1``; six more features are noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

import multikernel as mk

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 8))
y = np.where(X[:, 0] * X[:, 1] > 0, "same sign", "opposite signs")

# %%
# One linear kernel per feature cannot do it, for any weights: the best sum is no better than
# guessing.
features = mk.KernelBank([mk.Linear(columns=[j]) for j in range(X.shape[1])])
pairs = mk.products(features, degree=2)
for name, bank in (("features", features), ("features and their products", pairs)):
    model = mk.MultiKernelClassifier(bank, "alignf", C=10.0)
    print(f"{name}: {len(bank)} kernels, accuracy {cross_val_score(model, X, y, cv=5).mean():.2f}")

# %%
# The learned weights name the interaction. Learning them is a convex problem, as for any bank;
# learning which kernels to *multiply* by a continuous parameter would not be.
model = mk.MultiKernelClassifier(pairs, "alignf", C=10.0).fit(X, y)
best = np.argsort(model.kernel_weights_)[::-1][:6]
figure, axis = plt.subplots(figsize=(8, 3), layout="constrained")
axis.barh([model.kernel_names_[k] for k in best], model.kernel_weights_[best])
axis.invert_yaxis()
axis.set_xlabel("weight")
plt.show()
