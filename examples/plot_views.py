"""
Several views of the same samples
=================================

The same samples were measured in several ways, and it is not known which of them matter. Each view
gets its own kernels; the weights say how much each view counts.
"""

# %%
# Handwritten digits in five views, each with its own noise: pixels, the ink in each row and column,
# the ink in 2 x 2 blocks, and the lowest frequencies of the image. The fifth view was shuffled: it
# shows the pixels of *another* digit.

import matplotlib.pyplot as plt
import numpy as np
from scipy.fft import dctn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import multikernel as mk

rng = np.random.default_rng(0)
digits = load_digits()
images = digits.images / 16.0
n = len(images)
parts = {
    "pixels": images.reshape(n, -1),
    "profiles": np.hstack([images.sum(axis=1), images.sum(axis=2)]),
    "blocks": images.reshape(n, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(n, -1),
    "frequencies": dctn(images, axes=(1, 2), norm="ortho")[:, :4, :4].reshape(n, -1),
    "shuffled": rng.permutation(images).reshape(n, -1),
}
for name, part in parts.items():
    parts[name] = part + 1.5 * part.std(axis=0).mean() * rng.normal(size=part.shape)
X = np.hstack(list(parts.values()))
ends = np.cumsum([part.shape[1] for part in parts.values()])
columns = {
    name: slice(end - part.shape[1], end)
    for (name, part), end in zip(parts.items(), ends, strict=True)
}

# %%
# A view has its own scale, so its bandwidths depend on the number and the variance of its columns.
# Two Gaussians per view are enough. ``per_view`` names the kernels after the views.


def widths(part):
    return mk.gaussians(np.array([0.2, 1.0]) / (part.shape[1] * part.var()))


bank = mk.per_view({name: (widths(parts[name]), columns[name]) for name in parts})
train, test, y_train, y_test = train_test_split(
    X, digits.target, train_size=400, random_state=0, stratify=digits.target
)

# %%
# What each view achieves alone, and what their combinations do.

alone = {}
for name in parts:
    view = mk.per_view({name: (widths(parts[name]), columns[name])})
    alone[name] = mk.MultiKernelClassifier(view, "uniform", C=10.0).fit(train, y_train)
rules = {rule: mk.MultiKernelClassifier(bank, rule, C=10.0) for rule in ("uniform", "alignf", "lp")}
accuracy = {f"{name} alone": model.score(test, y_test) for name, model in alone.items()}
for rule, model in rules.items():
    accuracy[f"all views, {rule}"] = model.fit(train, y_train).score(test, y_test)
for name, value in accuracy.items():
    print(f"{name:22s} {value:.3f}")

# %%
# Together the views are better than any single one. ``alignf`` asks how well a kernel agrees with
# the labels and drops the shuffled view; the uniform sum cannot. ``lp`` does not drop it either: it
# asks how well the training digits can be fitted, and even a view of pure noise helps with that.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
names = list(accuracy)
left.barh(names, list(accuracy.values()), color=["0.7"] * len(parts) + ["C0", "C1", "C2"])
left.set(xlim=(0, 1), xlabel="accuracy on new digits")
left.invert_yaxis()
for name, value in accuracy.items():
    left.text(value + 0.01, name, f"{value:.2f}", va="center", fontsize=8)
left.margins(x=0.1)
places = np.arange(len(parts))
for j, (rule, model) in enumerate(rules.items()):
    weights = model.kernel_weights_.reshape(len(parts), -1).sum(axis=1)
    right.barh(places + 0.27 * (j - 1), weights / weights.sum(), 0.25, label=rule, color=f"C{j}")
right.set_yticks(places, list(parts))
right.set_xlabel("share of the view in the weights")
right.invert_yaxis()
right.legend()
plt.show()

# %%
# The same for one prediction: which view is responsible for it? The shares and the intercept add up
# to the decision value, because they come from the same code.

model = rules["alignf"]
shares = model.decision_function(test[:1], split=True)[0]
winner = int(model.decision_function(test[:1])[0].argmax())
for name, share in zip(parts, shares[:, winner].reshape(len(parts), -1).sum(axis=1), strict=True):
    print(f"{name:12s} {share:+.2f} for the digit {model.classes_[winner]}")
