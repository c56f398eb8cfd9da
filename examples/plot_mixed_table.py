"""
Numbers and categories in one table
===================================

One-hot columns put every category at the same distance from every other and hide how often each
occurs. :class:`multikernel.TableCodes` makes separate kernels for categories and for numbers, and
products of both, so that the model can learn interactions such as "age matters for nurses only".
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import multikernel as mk

rng = np.random.default_rng(0)
n, train = 400, 250
frame = pd.DataFrame(
    {
        "age": rng.integers(18, 80, n),
        "income": rng.lognormal(10, 0.5, n).round(),
        "job": pd.Categorical(rng.choice(["clerk", "nurse", "pilot", "cook"], n)),
        "town": pd.Categorical(rng.choice([f"town {i}" for i in range(12)], n)),
    }
)
y = ((frame["age"] > 45) ^ (frame["job"] == "nurse")).astype(int)

# %%
# Whether a person is in class 1 depends on age, and for nurses the dependence is reversed. Income
# and town are noise.

codes = mk.TableCodes().fit(frame[:train])
model = make_pipeline(codes, mk.MultiKernelClassifier(codes.bank())).fit(frame[:train], y[:train])
onehot = make_column_transformer(
    (StandardScaler(), ["age", "income"]),
    (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["job", "town"]),
)
svm = make_pipeline(onehot, SVC(C=10)).fit(frame[:train], y[:train])
print(f"TableCodes and learned weights: {model.score(frame[train:], y[train:]):.2f}")
print(f"one-hot columns and an RBF SVM: {svm.score(frame[train:], y[train:]):.2f}")

# %%
# Most weight goes to products of a kernel of numbers and a kernel of categories: the interaction
# was found.

fitted = model[-1]
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
mk.plot.weights(fitted, ax=ax)
plt.show()
