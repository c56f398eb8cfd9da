"""
Where in a sequence is the signal?
==================================

With one kernel per position in a sequence, the learned weights are a map of where the classes
differ.
"""

# %%
# Synthetic promoters: 57 random letters with two boxes, written with occasional errors: TTGACA 35
# letters before the start and TATAAT 10 before it, the latter sometimes shifted by one letter. Real
# promoters look like this, so the map can be checked: ``examples/plot_promoters.py`` does the same
# for the promoters of UCI.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import multikernel as mk

rng = np.random.default_rng(0)
BOXES = {"TTGACA": 14, "TATAAT": 38}  # where they begin; letter 50 is the start


def sequence(promoter):
    letters = rng.choice(list("ACGT"), 57)
    if promoter:
        for box, place in BOXES.items():
            place += rng.integers(-1, 2) if box == "TATAAT" else 0
            kept = rng.random(6) < 0.75
            letters[place : place + 6][kept] = np.array(list(box))[kept]
    return "".join(letters)


y = rng.permutation(np.repeat([0, 1], 100))
sequences = [sequence(label) for label in y]
print(sequences[int(np.flatnonzero(y)[0])])

# %%
# A table with one column of strings per window of six letters. Each of the 52 kernels reads one
# column.

windows = pd.DataFrame({f"{s - 50:+d}": [x[s : s + 6] for x in sequences] for s in range(52)})
bank = mk.KernelBank(
    [mk.WeightedDegree(3, columns=name) for name in windows.columns], names=list(windows.columns)
)
half = slice(0, 100), slice(100, 200)
for rule in ("uniform", "alignf", "lp", "l1"):
    model = mk.MultiKernelClassifier(bank, rule).fit(windows[half[0]], y[half[0]])
    print(f"{rule:8s} accuracy {model.score(windows[half[1]], y[half[1]]):.2f}")

# %%
# Accuracy is not the reason to learn weights here: the uniform sum is as good. What you gain is the
# map. The weights peak where the boxes are, over a wider range for the one whose position varies.
# Windows that contain part of a box get some of its weight.

model = mk.MultiKernelClassifier(bank, "lp").fit(windows, y)
weights = model.kernel_weights_ / model.kernel_weights_.sum()
middle = np.arange(52) - 50 + 2.5
figure, axis = plt.subplots(figsize=(9, 3.4), layout="constrained")
axis.bar(middle, weights, width=0.85, color="0.35")
axis.axhline(1 / len(bank), color="C0", ls="--", lw=1, label="uniform")
for box, place in BOXES.items():
    axis.axvspan(place - 50.5, place - 44.5, color="C1", alpha=0.25)
    axis.text(place - 47.5, weights.max() * 1.06, box, ha="center", family="monospace")
axis.set(xlabel="place, counted from the start", ylabel="weight", ylim=(0, weights.max() * 1.18))
axis.legend(loc="upper left")
plt.show()
