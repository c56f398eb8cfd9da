"""
Bandwidths without a grid search
================================

The usual way to choose a bandwidth is a grid search: train a model for every gamma and every
ridge, in every fold. The other way is to put all gammas into one bank and learn their weights, so
that only the ridge has to be chosen.
"""

# %%
# A slow wave with a fast ripple on a part of it. No single bandwidth suits both.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

import multikernel as mk


def truth(x):
    ripple = 0.8 * np.sin(25 * x) * np.cos((x - 1) / 0.7 * np.pi / 2) ** 2
    return np.sin(2 * x) + np.where(np.abs(x - 1) < 0.7, ripple, 0.0)


rng = np.random.default_rng(1)
X = rng.uniform(-3, 3, size=(300, 1))
y = truth(X[:, 0]) + 0.2 * rng.normal(size=300)
new = np.linspace(-3, 3, 1000)[:, None]
gammas = np.geomspace(0.03, 1000.0, 10)


def error(model):
    return np.sqrt(np.mean((model.predict(new) - truth(new[:, 0])) ** 2))


# %%
# The grid: ten bandwidths, four ridges, five folds: 200 fits.

alphas = [0.01, 0.1, 1.0, 10.0]
grid = GridSearchCV(KernelRidge(kernel="rbf"), {"gamma": gammas, "alpha": alphas}, cv=5).fit(X, y)
print(f"one kernel, tuned: gamma {grid.best_params_['gamma']:.3g}, error {error(grid):.3f}")

# %%
# The bank: the same ten bandwidths at once, and a search over the ridge only. The kernels are
# evaluated once for all folds.

found = {}
for rule in ("uniform", "alignf", "lp"):
    found[rule] = mk.MultiKernelRegressorCV(mk.gaussians(gammas), rule, alphas=alphas, cv=5)
    found[rule].fit(X, y)
    print(f"bank, {rule:8s} error {error(found[rule]):.3f}")

# %%
# ``lp`` is about as good as the tuned kernel with a tenth of the fits, and its weights say what the
# grid cannot: there are *two* scales in these data, and the tuned gamma is a compromise between
# them. ``alignf`` is the wrong rule here. Its weights follow the alignment, which the slow wave
# decides, and the ripple goes unlearned; see
# :ref:`sphx_glr_generated_gallery_plot_uniform_is_hard_to_beat.py`.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
places = np.arange(len(gammas))
for j, rule in enumerate(("alignf", "lp")):
    weights = found[rule].kernel_weights_
    left.bar(places + 0.4 * (j - 0.5), weights / weights.sum(), 0.4, label=rule, color=f"C{j}")
chosen = int(np.argmin(abs(gammas - grid.best_params_["gamma"])))
left.axvline(chosen, color="0.4", ls="--", label="gamma of the grid search")
left.set_xticks(places, [f"{g:.2g}" if g < 10 else f"{g:.0f}" for g in gammas])
left.set(xlabel="gamma", ylabel="share of the weights", ylim=(0, 0.5))
left.text(places[4] - 0.5, 0.46, "alignf: 1.0", ha="right", color="C0")
left.legend(loc="upper right", fontsize=8)
right.plot(X[:, 0], y, ".", color="0.8", ms=4)
for rule, colour in (("alignf", "C0"), ("lp", "C1")):
    right.plot(new[:, 0], found[rule].predict(new), color=colour, label=rule)
right.plot(new[:, 0], truth(new[:, 0]), "k--", lw=0.8, label="truth")
right.legend()
plt.show()
