"""
When equal weights are as good, and when alignment misleads
===========================================================

A sum of kernels with equal weights has nothing to overfit. The papers that propose to learn the
weights keep finding it hard to beat. Two cases here: one where learning gains nothing, and one
where a good criterion picks the wrong kernels.
"""

# %%
# **Nothing to gain.** Tumours: nearly every kernel of the family predicts well. Scores over five
# folds, all rules with the same default bank and C.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, make_friedman1
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

import multikernel as mk

rules = ("uniform", "best", "align", "alignf", "lp", "l1")
X, y = load_breast_cancer(return_X_y=True)
folds = StratifiedKFold(5, shuffle=True, random_state=0)
tumours = {
    rule: 100 - 100 * cross_val_score(mk.MultiKernelClassifier(weighting=rule), X, y, cv=folds)
    for rule in rules
}
for rule, errors in tumours.items():
    print(f"tumours, {rule:8s} error {errors.mean():.1f} ± {errors.std():.1f} %")

# %%
# **Alignment misleads.** Friedman's function is linear in two variables, curved in one, and has an
# interaction of two more. The linear kernel has the highest alignment with such an output, so
# ``alignf`` gives it most of the weight, and the curved part suffers. Alignment asks how much
# a kernel looks like the outer product of the outputs, which rewards kernels of few, strong
# directions; ridge regression with a small ridge can use weak directions as well.

X, y = make_friedman1(400, n_features=10, noise=0.5, random_state=0)
folds = KFold(5, shuffle=True, random_state=0)
friedman = {
    rule: -cross_val_score(
        mk.MultiKernelRegressor(weighting=rule, alpha=0.1),
        X,
        y,
        cv=folds,
        scoring="neg_root_mean_squared_error",
    )
    for rule in rules
}
model = mk.MultiKernelRegressor(alpha=0.1).fit(X, y)
for k in np.argsort(-model.kernel_weights_)[:3]:
    name, weight = model.kernel_names_[k], model.kernel_weights_[k]
    print(f"alignf gives {weight:.2f} to {name}, alignment {model.kernel_alignments_[k]:.2f}")

# %%
# What to do: let cross-validation choose among rules with ``uniform`` in the list, as in the last
# lines; it costs little, because the kernels are evaluated once. ``multikernel compare`` does the
# same with tests of significance.

search = mk.MultiKernelRegressorCV(weighting=["uniform", "best", "alignf"], alphas=[0.01, 0.1])
search.fit(X, y)
print(f"cross-validation chooses {search.weighting_!r} and alpha = {search.alpha_:g}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for axis, scores in ((left, tumours), (right, friedman)):
    axis.boxplot(list(scores.values()), tick_labels=rules, medianprops={"color": "C0"})
    axis.axhline(np.median(scores["uniform"]), color="0.6", lw=0.8, ls="--")
left.set(title="tumours: no rule stands out", ylabel="error in %, by fold")
right.set(title="Friedman: alignf picks the linear kernel", ylabel="RMSE, by fold", ylim=(0, None))
plt.show()
