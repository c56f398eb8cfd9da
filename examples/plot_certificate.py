"""
What a fitted model can prove about itself
==========================================

A certificate collects what theory says about a fitted model: how its error on new samples is
bounded, at which margin, under which assumptions, and whether the number says anything at all.
"""

# %%
# Two views of the same points: one that tells the classes apart, one that is noise. Kernels are
# named before the data are seen, which is what the theorems ask for.

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
# the class of the kernels as they were named, whatever centring and scaling did. Those for the
# kernels as they were prepared are smaller, but their class depends on the sample, and the table
# says so.

certificate = bounds.certificate(model, X, y)
print(certificate)

# %%
# Every bound is the sum of a loss on the sample, which grows with the margin, and of a complexity,
# which falls with it. The best margin lies between; that it was chosen after the fact is paid for.

certificate.plot()

# %%
# With few points the same bound says nothing, and the certificate is plain about it.

few = slice(None, 60)
model.fit(X[few], y[few])
print(f"vacuous: {bounds.certificate(model, X[few], y[few]).vacuous}")

# %%
# Theory also has an opinion on the norm of multiple kernel learning. From the norms of the parts of
# a machine that was learned with one p, the bound factor suggests the p to try next: few strong
# kernels call for a small one.

bank = mk.per_feature(mk.Linear())
machine = mk.MultiKernelClassifier(bank, weighting=mk.LpNorm(p=4 / 3), C=0.1).fit(X, y)
parts = bounds.certificate(machine, X, y).machines[0].block_norms
print(f"norms of the parts {np.round(parts, 3)}, suggested p = {bounds.suggest_p(parts):.2f}")
bounds.plot_bound_factor(parts)
