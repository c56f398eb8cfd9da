"""
From alignment to a predictor: Parzen windows
=============================================

If a kernel is well aligned with the target, then a very simple predictor is good already: the mean
of the targets, weighed by the kernel (Cortes, Mohri and Rostamizadeh 2012, section 4.2). It needs
no training at all. How far it falls behind a machine shows what training adds.
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
signs = np.where(y == 1, 1.0, -1.0)

# %%
# One Gaussian after another: centred alignment on the training part, and the accuracy of both
# predictors on the rest.
gammas = np.geomspace(1e-4, 1.0, 13)
aligned, parzen, machine = [], [], []
for gamma in gammas:
    kernel = mk.Gaussian(gamma)
    K = kernel(X)
    aligned.append(mk.centered_alignment(K, np.outer(signs, signs)))
    # h(x) = mean of y' Kc(x, x'), centred with the statistics of the training part
    new = kernel(X_test, X)
    new = new - new.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    parzen.append(np.mean((new @ signs > 0) == (y_test == 1)))
    model = mk.MultiKernelClassifier([kernel], "uniform").fit(X, y)
    machine.append(model.score(X_test, y_test))

# %%
# Both are best where the alignment is. Training adds about five points to plain averaging there.
print(f"alignment and accuracy of averaging correlate by {np.corrcoef(aligned, parzen)[0, 1]:.2f}")
plt.semilogx(gammas, aligned, "k--", label="centred alignment")
plt.semilogx(gammas, parzen, label="Parzen predictor, accuracy")
plt.semilogx(gammas, machine, label="support vector machine, accuracy")
plt.xlabel("gamma")
plt.legend()
plt.show()
