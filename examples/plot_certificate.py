"""
Generalisation bounds of a fitted model
=======================================

A certificate applies generalisation bounds to a fitted model: how large its error on new samples
can be, at which margin, under which assumptions, and whether the bound is informative at all.
"""

# %%
# Two views of the same samples: one that separates the classes, one that is noise. Kernels are
# chosen before the data are seen, as the theorems require.

import numpy as np

import multikernel as mk
from multikernel import bounds

rng = np.random.default_rng(0)
n = 1200
y = rng.choice([-1, 1], n)
X = rng.standard_normal((n, 4))
X[:, 0] += 2.5 * y

bank = mk.per_view(
    {
        "signal": ([mk.Gaussian(0.02), mk.Gaussian(0.2)], [0, 1]),
        "noise": ([mk.Gaussian(0.02), mk.Gaussian(0.2)], [2, 3]),
    }
)
model = mk.MultiKernelClassifier(bank, weighting="alignf", C=0.01).fit(X, y)

# %%
# The certificate prints as a table. Bounds "as given" hold literally: the learned function lies in
# the class of the kernels as given, for any centring and scaling. Those for the kernels as prepared
# are smaller, but their class depends on the sample, and the table says so.

certificate = bounds.certificate(model, X, y)
print(certificate)

# %%
# Every bound is the sum of a loss on the sample, which grows with the margin, and of a complexity,
# which falls with it. The best margin lies in between; the bound accounts for choosing it after
# seeing the data.

certificate.plot()

# %%
# With few samples the same bound is vacuous, and the certificate says so.

few = slice(None, 60)
model.fit(X[few], y[few])
print(f"vacuous: {bounds.certificate(model, X[few], y[few]).vacuous}")

# %%
# Theory also suggests a norm. From the norms of the parts of a model that was learned with one p,
# the bound factor suggests the p to try next: few strong kernels call for a small p.

bank = mk.per_feature(mk.Linear())
machine = mk.MultiKernelClassifier(bank, weighting=mk.LpNorm(p=4 / 3), C=0.1).fit(X, y)
parts = bounds.certificate(machine, X, y).machines[0].block_norms
print(f"norms of the parts {np.round(parts, 3)}, suggested p = {bounds.suggest_p(parts):.2f}")
bounds.plot_bound_factor(parts)
