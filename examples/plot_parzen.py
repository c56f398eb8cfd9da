"""
From alignment to a predictor: Parzen windows
=============================================

If a kernel is well aligned with the target, a very simple predictor is already good: the mean of
the targets, weighted by the kernel (Cortes, Mohri and Rostamizadeh 2012, section 4.2). It needs no
training. The difference from a support vector machine shows what training adds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import multikernel as mk

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)

# %%
# One Gaussian after another: centred alignment on the training part, and the accuracy of both
# predictors on the rest.
gammas = np.geomspace(1e-4, 0.1, 10)
aligned, parzen, machine = [], [], []
for gamma in gammas:
    average = mk.ParzenClassifier([mk.Gaussian(gamma)], "uniform").fit(X, y)
    trained = mk.MultiKernelClassifier([mk.Gaussian(gamma)], "uniform").fit(X, y)
    aligned.append(average.alignment_)
    parzen.append(average.score(X_test, y_test))
    machine.append(trained.score(X_test, y_test))

# %%
# Both are best where the alignment is highest. Training adds about five percentage points to plain
# averaging there.
print(f"alignment and accuracy of averaging correlate by {np.corrcoef(aligned, parzen)[0, 1]:.2f}")
plt.semilogx(gammas, aligned, "k--", label="centred alignment")
plt.semilogx(gammas, parzen, label="Parzen predictor, accuracy")
plt.semilogx(gammas, machine, label="support vector machine, accuracy")
plt.xlabel("gamma")
plt.legend()
plt.show()
