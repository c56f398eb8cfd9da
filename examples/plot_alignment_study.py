"""
Does alignment predict accuracy?
================================

Computing the alignment of a kernel with the labels takes one pass over its matrix; measuring its
accuracy takes training. If alignment predicts accuracy, kernels can be weighted without training a
model on each. :func:`multikernel.alignment_study` checks this for your own bank.
"""

# %%
# Two classes of equal size, and Gaussians from very wide to very narrow.

import matplotlib.pyplot as plt
import numpy as np

import multikernel as mk

rng = np.random.default_rng(3)
y = np.where(np.arange(400) < 200, 1, -1)
X = rng.normal(size=(400, 6))
X[y < 0, :2] += 1.5
bank = mk.gaussians(2.0 ** np.arange(-12.0, 5.0, 2.0))

study = mk.alignment_study(bank, X, y, grid=[0.1, 1.0, 10.0, 100.0])
print(study)

# %%
# A wide kernel is a large constant plus a small rest. The constant carries no information, and a
# model with an intercept ignores it; but without centring it dominates the alignment, which is then
# close to zero for balanced labels. Centring keeps the rest, which is what counts.

study.plot()
plt.show()

# %%
# The same for the Parzen predictors, which the theorems on alignment are about. They have nothing
# to tune.

from multikernel.learners.parzen import Parzen

print(mk.alignment_study(bank, X, y, learner=lambda value: Parzen("h")))
