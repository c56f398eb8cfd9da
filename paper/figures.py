"""Draw the figure of the paper: ``python paper/figures.py`` writes ``paper/views.png``."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import multikernel as mk


def main() -> None:
    rng = np.random.default_rng(0)
    digits = load_digits()
    images = digits.images / 16.0
    n = len(images)
    views = {
        "pixels": images.reshape(n, -1),
        "row and column sums": np.hstack([images.sum(axis=1), images.sum(axis=2)]),
        "2 x 2 blocks": images.reshape(n, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(n, -1),
        "shuffled pixels": rng.permutation(images).reshape(n, -1),
    }
    for name, view in views.items():
        views[name] = view + 1.5 * view.std(axis=0).mean() * rng.normal(size=view.shape)
    X, columns = mk.join_views(views)
    bank = mk.per_view(columns)
    train, test, y_train, y_test = train_test_split(
        X, digits.target, train_size=400, random_state=0, stratify=digits.target
    )
    rules = {"equal weights": "uniform", "lp-norm MKL (p = 4/3)": "lp", "alignf": "alignf"}
    models = {
        label: mk.MultiKernelClassifier(bank, rule, C=10.0).fit(train, y_train)
        for label, rule in rules.items()
    }
    places = np.arange(len(views))
    figure, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
    for j, (label, model) in enumerate(models.items()):
        accuracy = model.score(test, y_test)
        shares = [model.view_weights_[name] for name in views]
        ax.barh(places + 0.27 * (j - 1), shares, 0.25, label=f"{label}: accuracy {accuracy:.3f}")
        print(f"{label}: accuracy {accuracy:.3f}, shares", np.round(shares, 2))
    ax.set_yticks(places, list(views))
    ax.invert_yaxis()
    ax.set_xlabel("share of the view in the kernel weights")
    ax.legend(frameon=False)
    figure.savefig(Path(__file__).with_name("views.png"), dpi=200)


if __name__ == "__main__":
    main()
