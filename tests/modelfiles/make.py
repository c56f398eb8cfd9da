"""Write the stored model files of the current format, for the tests of all later versions.

Run ``python tests/modelfiles/make.py`` once per format, and again when there is a new kind of
model. Files that are there are left alone: those that later versions have written prove nothing
about earlier ones.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification, make_regression

import multikernel as mk
from multikernel.files import FORMAT
from multikernel.tables import Frame, TableEncoder, TableModel

HERE = Path(__file__).parent


def genes(n=48, seed=0):
    """Sequences with a motif that tells two classes apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    letters = ["".join(rng.choice(list("ACGT"), 12)) for _ in y]
    return np.array([("TATA" if t else "GCGC") + s for s, t in zip(letters, y, strict=True)]), y


def models():
    """Estimators with the data to fit them to, by name."""
    X, y = make_classification(120, 4, n_informative=3, n_redundant=0, n_classes=3, random_state=0)
    R, t = make_regression(100, 5, noise=3.0, random_state=0)
    bank = mk.gaussians([0.1, 1.0]) + mk.per_feature(mk.Linear()) + [mk.Linear() * mk.Gaussian(0.5)]
    search = mk.MultiKernelClassifierCV(bank, ["uniform", mk.LpNorm(1.5)], [1.0], cv=3)
    two, few = X[y < 2][:60], y[y < 2][:60]
    S, s = genes()
    strings = [mk.Spectrum(2), mk.WeightedDegree(2), mk.Mismatch(3, 1), mk.EditSimilarity()]
    views = mk.per_view({"left": (mk.Gaussian(0.1), [0, 1]), "right": (mk.Linear(), [2, 3])})
    gaussians = mk.gaussians([0.1, 1.0])
    matrices = mk.precomputed([two @ two.T, np.eye(60)], ["dot", "same"])
    lopsided = mk.precomputed([np.tanh(two @ two.T + two[:, :1])], ["tanh"], symmetric=False)
    return {
        "classifier": (mk.MultiKernelClassifier(weighting="alignf"), X, y),
        "search": (search, X, y),
        "regressor": (mk.MultiKernelRegressor(weighting="l1"), R, np.round(t)),
        "regressor-search": (mk.MultiKernelRegressorCV(gaussians, alphas=[0.1, 1.0], cv=3), R, t),
        "one-class": (mk.MultiKernelOneClass(gaussians), two, None),
        "voted": (mk.VotedKernelClassifier(bank), two, few),
        "voted-search": (mk.VotedKernelClassifierCV(gaussians, cv=2), two, few),
        "voted-ngrams": (mk.VotedKernelClassifier(mk.per_ngram(2, top=12, unit="letter")), S, s),
        "voted-given": (mk.VotedKernelClassifier(matrices), mk.sample_ids(60), few),
        "voted-asymmetric": (mk.VotedKernelClassifier(lopsided), mk.sample_ids(60), few),
        "voted-empty": (mk.VotedKernelClassifier(bank, sparsity_penalty=10.0), two, few),
        "ensemble": (mk.KernelEnsembleClassifier(bank), X, y),
        "ensemble-one-stage": (mk.KernelEnsembleClassifier(gaussians, stages=1), two, few),
        "ensemble-regressor": (mk.KernelEnsembleRegressor(gaussians, signed=True), R, t),
        "parzen": (mk.ParzenClassifier(gaussians), X, y),
        "parzen-regressor": (mk.ParzenRegressor(gaussians, "uniform", "h_S"), R, t),
        "consensus": (mk.ConsensusKernel(bank, mk.FullNeighbours(3), n_components=3), X, None),
        "clustering": (mk.KernelClustering(3, gaussians, random_state=0), X, None),
        "features": (mk.KernelFeatures(mk.MultiKernelClassifier(gaussians), 4), X, y),
        "spectral-polynomial": (mk.SpectralKernelClassifier(mk.Gaussian(0.5)), two, few),
        "spectral-convex": (mk.SpectralKernelClassifier(gaussians, family="convex"), X, y),
        "sequences": (mk.MultiKernelClassifier(strings, "uniform"), S, s),
        "ngrams": (mk.MultiKernelClassifier(mk.per_ngram(2, top=12, unit="letter")), S, s),
        "views": (mk.MultiKernelClassifier(views, mk.LpNorm(p=2)), X, y),
        "per-class": (mk.MultiKernelClassifier(gaussians, "l1", multiclass="per_class"), X, y),
        "given": (mk.MultiKernelClassifier(matrices), mk.sample_ids(60), few),
        "probabilities": (mk.MultiKernelClassifier(gaussians, calibration="isotonic"), X, y),
        "intervals": (mk.MultiKernelRegressor(gaussians), R, t),
    }


def table_model():
    """What ``multikernel fit`` writes: numbers, a category with gaps, texts, views."""
    S, s = genes()
    rng = np.random.default_rng(1)
    colour = [("red", "blue", None)[i % 3] for i in range(len(s))]
    columns = {"size": rng.normal(size=len(s)).tolist(), "colour": colour, "gene": S.tolist()}
    frame = Frame.of(columns)
    encoder = TableEncoder.fit(frame, texts=["gene"], impute="median")
    numbers, gene = encoder.places(["size", "colour"]), encoder.places(["gene"])
    bank = mk.per_view({"numbers": (mk.Gaussian(0.5), numbers), "gene": (mk.Spectrum(2), gene)})
    estimator = mk.MultiKernelClassifier(bank).fit(encoder(frame), np.array(["no", "yes"])[s])
    rows = {name: values[::4] for name, values in columns.items()}
    return TableModel(estimator, encoder, "class", "classification", True), rows


def frame_model():
    """A data frame with categories, whose codes are part of the model."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"size": rng.normal(size=60), "colour": rng.choice(["red", "blue"], 60)})
    y = np.where((frame["colour"] == "red") ^ (frame["size"] > 0), "no", "yes")
    return mk.MultiKernelClassifier(weighting="uniform").fit(frame, y), frame[::10]


def store(name, model, rows):
    """The model, and what it predicts for some rows, unless it is there already."""
    path = HERE / f"format-{FORMAT}-{name}.skops"
    if path.exists():
        print(f"{path.name} is there already and stays as it is.")
        return
    mk.save(model, path)
    estimator = model.estimator if isinstance(model, TableModel) else model
    method = "predict" if hasattr(model, "predict") else "transform"
    expected = {
        "type": type(model).__name__,
        "X": rows if isinstance(rows, dict) else as_json(rows),
        method: getattr(model, method)(rows).tolist(),
    }
    if hasattr(estimator, "kernel_weights_"):
        expected["kernel_weights"] = estimator.kernel_weights_.tolist()
    if hasattr(model, "decision_function"):
        expected["decision_function"] = model.decision_function(rows).tolist()
    if hasattr(model, "predict_proba"):
        expected["predict_proba"] = model.predict_proba(rows).tolist()
    if hasattr(model, "predict_interval"):
        expected["predict_interval"] = np.array(model.predict_interval(rows)).tolist()
    path.with_suffix(".json").write_text(json.dumps(expected) + "\n")
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def as_json(rows):
    if isinstance(rows, pd.DataFrame):
        return {"frame": rows.to_dict("list")}
    return rows.tolist()


def main():
    for name, (estimator, X, y) in models().items():
        store(name, estimator.fit(X) if y is None else estimator.fit(X, y), X[::10])
    store("table", *table_model())
    store("frame", *frame_model())


if __name__ == "__main__":
    main()
