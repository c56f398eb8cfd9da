"""
Does alignment tell which kernels predict well?
===============================================

The alignment of a kernel with the labels costs one look at its matrix; the accuracy of a machine
costs a training. If the first predicts the second, kernels can be weighed without training any.
:func:`multikernel.alignment_study` answers for one's own bank.
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
# A wide kernel is a large constant and a small rest. The constant says nothing about the points,
# and a machine with an intercept does not even see it; but without centring it is nearly all that
# the alignment sees, which for balanced labels is then close to zero. The rest is what counts, and
# what centring leaves.

study.plot()
plt.show()

# %%
# The same for the Parzen predictors, which are what the theorems on alignment speak about. They
# have no parameter to choose.

from multikernel.learners.parzen import Parzen

print(mk.alignment_study(bank, X, y, learner=lambda value: Parzen("h")))
