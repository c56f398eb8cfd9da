"""
Save and load a model
=====================

A fitted model is saved to one file and loaded somewhere else. Loading runs no code from the file,
and the file holds no more of the training sample than predictions need.
"""

# %%
# A model with many kernels, few of which get a weight.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import multikernel as mk

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
bank = mk.gaussians(np.geomspace(1e-4, 1.0, 20)) + mk.polynomials([1, 2, 3])
model = mk.MultiKernelClassifier(bank, "l1", C=1.0).fit(X, y)
file = Path(tempfile.mkdtemp()) / "tumours.skops"
mk.save(model, file)

# %%
# The loaded model predicts the same numbers, to the last bit.

again = mk.load(file)
assert np.array_equal(model.decision_function(X), again.decision_function(X))
print(f"{np.count_nonzero(model.kernel_weights_)} of {len(bank)} kernels have a weight")
print(f"{len(model.support_)} of {len(X)} points are support vectors")

# %%
# A file that was changed on the way cannot be loaded, and the message says what is wrong with it.

from multikernel.files import ModelFileError

damaged = file.with_name("damaged.skops")
damaged.write_bytes(file.read_bytes()[:-1000])
try:
    mk.load(damaged)
except ModelFileError as error:
    print(error)

# %%
# The size of the file follows the number of support vectors, here along C.

Cs = np.geomspace(0.01, 100.0, 9)
points, sizes = [], []
for C in Cs:
    model.set_params(C=C).fit(X, y)
    mk.save(model, file)
    points.append(len(model.support_))
    sizes.append(file.stat().st_size / 1024)
figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
axis.plot(points, sizes, "o")
for C, x, size in list(zip(Cs, points, sizes, strict=True))[::4]:
    axis.annotate(f"C = {C:g}", (x, size), xytext=(0, -14), textcoords="offset points", ha="center")
axis.axhline(X.nbytes / 1024, color="0.6", ls="--")
axis.text(min(points), X.nbytes / 1024 * 0.95, "the training sample itself", va="top", color="0.4")
axis.set(xlabel="support vectors", ylabel="model file in KiB", ylim=(0, None))
plt.show()
