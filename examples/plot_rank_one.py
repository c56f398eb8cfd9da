"""
Thousands of features as kernels
================================

Every column of X is a kernel of rank one. A learned combination of them is a soft selection of
features; it costs as much as the columns, not thousands of matrices.
"""

# %%
# Counts of 5,000 words in 600 texts. A hundred of the words are more frequent in one of the two
# classes than in the other, 4,900 are not. The matrix is sparse and stays so.

import time

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

import multikernel as mk

rng = np.random.default_rng(0)
n, p, telling = 600, 5000, 100
y = rng.permutation(np.repeat([-1, 1], n // 2))
rates = np.tile(2.0 / np.sqrt(1.0 + np.arange(p)), (n, 1))
words = rng.choice(np.arange(20, 2500), telling, replace=False)
sign = np.where(np.arange(telling) % 2 == 0, 1, -1)
rates[:, words] *= np.exp(0.8 * np.outer(y, sign))
X = sp.csr_array(rng.poisson(rates).astype(float))
print(f"{X.shape[1]} words, {X.nnz / n:.0f} per text")

train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
seen = np.flatnonzero(np.diff(train.tocsc().indptr) > 0)  # words of the training texts
train, test, telling_words = train[:, seen], test[:, seen], np.isin(seen, words)
bank = mk.per_feature(mk.Linear())
print(bank.plan(train))

# %%
# Three rules. ``align`` weights each word by its own alignment with the classes, ``lp`` learns
# weights and model together.

models = {}
for rule in ("uniform", "align", "lp"):
    started = time.perf_counter()
    models[rule] = mk.MultiKernelClassifier(bank, rule, C=1.0).fit(train, y_train)
    seconds = time.perf_counter() - started
    print(f"{rule:8s} accuracy {models[rule].score(test, y_test):.3f}, {seconds:.2f} s")

# %%
# Learned weights find the informative words and improve the accuracy. Cortes, Mohri and
# Rostamizadeh (2012, Table 3) found the same on reviews, with 4,000 pairs of words as kernels:
# ``align`` makes fewer errors than the uniform sum on all four sets. Their sparse rule makes *more*
# errors than the sum on all four: where many features carry a little information, dropping most of
# them loses it. For the same reason the authors advise against ``alignf`` here.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
names = list(models)
accuracies = [models[rule].score(test, y_test) for rule in names]
left.bar(names, accuracies, color=["0.6", "C0", "C1"])
left.set(ylim=(0.5, 1.0), ylabel="accuracy on new texts")
for place, accuracy in enumerate(accuracies):
    left.text(place, accuracy + 0.01, f"{accuracy:.2f}", ha="center")
top = np.arange(1, 401)
for rule, colour in zip(names, ("0.6", "C0", "C1"), strict=True):
    order = np.argsort(-models[rule].kernel_weights_, kind="stable")
    right.plot(top, np.cumsum(telling_words[order])[:400], color=colour, label=rule)
right.axhline(telling, color="k", lw=0.8, ls=":")
right.text(5, telling - 6, "all telling words")
right.set(xlabel="words with the largest weights", ylabel="telling words among them")
right.legend(loc="center right")
plt.show()
