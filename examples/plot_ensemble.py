"""
One combined kernel, or an ensemble
===================================

Kernel learning adds kernels up and trains one model on the sum. An ensemble trains a model on each
kernel and combines their predictions. Here both get the same bank: some kernels are good, some are
noise, and one memorises its training samples.
"""

# %%
# Two views of noisy digits, the left and the right half of the image, columns of pure noise, and a
# Gaussian so narrow that every sample resembles only itself.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import multikernel as mk

X, y = load_digits(return_X_y=True)
keep = np.isin(y, (3, 5, 8))
rng = np.random.default_rng(0)
X, y = X[keep] / 16.0 + 0.5 * rng.normal(size=(keep.sum(), 64)), y[keep]
X = np.column_stack([X, rng.normal(size=(len(X), 32))])
train, test = np.arange(len(X)) % 3 == 0, np.arange(len(X)) % 3 != 0

bank = mk.per_view(
    {
        "left": (mk.gaussians([0.01, 0.1]), [c for c in range(64) if c % 8 < 4]),
        "right": (mk.gaussians([0.01, 0.1]), [c for c in range(64) if c % 8 >= 4]),
        "noise": (mk.gaussians([0.01, 0.1]), slice(64, 96)),
        "by heart": (mk.Gaussian(100.0), slice(0, 64)),
    }
)

# %%
# The weights of the ensemble come from predictions for held-out samples, so the last kernel, which
# makes no error on its training samples, gets no weight.

models = {
    "l1": mk.KernelEnsembleClassifier(bank, "l1"),
    "l2": mk.KernelEnsembleClassifier(bank, "l2"),
    "l1, signed": mk.KernelEnsembleClassifier(bank, "l1", signed=True),
    "l1, one stage": mk.KernelEnsembleClassifier(bank, "l1", stages=1),
}
for name, model in models.items():
    model.fit(X[train], y[train])
    error = 1 - model.score(X[test], y[test])
    print(f"ensemble {name:<14} test error {error:.3f}   gap {model.weights_gap_:.1e}")
for rule in ("uniform", "alignf"):
    error = 1 - mk.MultiKernelClassifier(bank, rule).fit(X[train], y[train]).score(X[test], y[test])
    print(f"one kernel, {rule:<11} test error {error:.3f}")

# %%
# The gap is a proof: no weights in the ball have a loss on the held-out predictions that is lower
# by more than this share of the loss without any model. The one-stage ensemble is equivalent to
# multiple kernel learning with a block norm, and its gap is that of the joint problem.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
places = np.arange(len(bank))
left.barh(places, models["l1"].kernel_scores_, color="0.7")
left.set_yticks(places, bank.names)
left.invert_yaxis()
left.set_xlabel("held-out accuracy")
for j, (name, model) in enumerate(models.items()):
    right.barh(places + 0.2 * (j - 1.5), model.kernel_weights_, 0.2, label=name)
right.set_xlabel("weight")
right.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
