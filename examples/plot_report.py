"""
Looking at what was learned
===========================

A fitted model can be drawn piece by piece with ``mk.plot``, or
written as one page that needs nothing else.
"""

# %%
# Three groups of measurements of the same tumours: means, errors and worst values. Each gets its
# own narrow, medium and wide Gaussian and a linear kernel.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import multikernel as mk
from multikernel.report import write_report

data = load_breast_cancer()
X = StandardScaler().fit_transform(data.data)
y = data.target_names[data.target]

kernels = mk.gaussians([0.01, 0.05, 0.25]) + mk.Linear()
bank = mk.per_view(
    {
        "means": (kernels, slice(0, 10)),
        "errors": (kernels, slice(10, 20)),
        "worst": (kernels, slice(20, 30)),
    }
)
model = mk.MultiKernelClassifierCV(bank, weighting=["uniform", "alignf", mk.L1()]).fit(X, y)
print(f"chosen: {model.weighting_}, C = {model.C_:g}, accuracy {model.best_score_:.3f}")

# %%
# Which kernels have large weights, and which of them are redundant? A weight can move between
# kernels of one group without much effect.

figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
mk.plot.weights(model, ax=left)
mk.plot.alignments(model, X, y, ax=right)

# %%
# How the score depends on C, for each rule.

mk.plot.path(model)

# %%
# Spectra: the learned kernel lies between the smooth and the narrow ones. The effective rank is in
# brackets.

mk.plot.spectrum(model, X)

# %%
# Rules that learn weights and model together prove how far they are from the optimum.

joint = mk.MultiKernelClassifier(bank, weighting=mk.L1()).fit(X, y)
mk.plot.convergence(joint)

# %%
# Everything, with the stability of the weights and the certificate, on one HTML page that you can
# open, send and archive.

page = write_report(
    model, X, y, Path(tempfile.mkdtemp()) / "tumours.html", title="Tumours, three views"
)
print(f"{page.name}: {page.stat().st_size // 1024} KiB, nothing outside it")
