"""Model files: what goes in comes out, what does not belong is refused, and nothing is run."""

import io
import json
import os
import pickle
import re
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import multikernel as mk
from multikernel import _archive as archive
from multikernel import files
from multikernel.estimators.voted import VotedKernelClassifier
from multikernel.estimators.voted_search import VotedKernelClassifierCV
from multikernel.files import ModelFileError
from multikernel.files.document import Reader, Writer
from multikernel.files.types import ESTIMATORS, TYPES
from multikernel.grams.planning import Part
from multikernel.grams.protocol import Expansion
from multikernel.kernels.sequences import (
    EditSimilarity,
    LocalityImproved,
    Mismatch,
    Oligo,
    Rational,
    Spectrum,
    Subsequence,
    Transducer,
    WeightedDegree,
    per_ngram,
)
from multikernel.tables import TableModel

STORED = Path(__file__).parent / "modelfiles"

X2, y2 = make_classification(120, 8, n_informative=5, random_state=0)
X3, y3 = load_iris(return_X_y=True)
XR, yR = make_regression(100, 6, n_targets=2, noise=5.0, random_state=0)
K_POOL = [X2 @ X2.T, (X2 @ X2.T + 1) ** 2, np.eye(len(X2))]
GENES = np.array(["ACGTACGT", "ACGTTTGA", "TTTTACGA", "CCGTACGA", "ACACACAC", "GTGTACCA"] * 5)
HALF = np.array([0, 1, 1, 0, 0, 1] * 5)


def mixed_bank():
    return (
        mk.gaussians([0.01, 0.1]) + mk.per_feature(mk.Linear()) + [mk.Linear() * mk.Gaussian(0.1)]
    )


CASES = {
    "default": lambda: (mk.MultiKernelClassifier(), X2, y2),
    "single precision": lambda: (mk.MultiKernelClassifier(dtype="float32"), X2, y2),
    "shared weights": lambda: (mk.MultiKernelClassifier(class_weight={0: 2.0, 1: 1, 2: 1}), X3, y3),
    "own weights": lambda: (mk.MultiKernelClassifier(multiclass="per_class"), X3, y3),
    "text labels": lambda: (mk.MultiKernelClassifier(), X3, np.array(["a", "bb", "c"])[y3]),
    "object labels": lambda: (
        mk.MultiKernelClassifier(),
        X3,
        np.array(["a", "bb", "c"], dtype=object)[y3],
    ),
    "logistic": lambda: (mk.MultiKernelClassifier(loss="logistic"), X2, y2),
    "spherical": lambda: (mk.MultiKernelClassifier(normalize="spherical"), X2, y2),
    "all points": lambda: (mk.MultiKernelClassifier(fit_intercept=False, center=True), X2, y2),
    "joint": lambda: (mk.MultiKernelClassifier(weighting=mk.LpNorm(p=1.2)), X2, y2),
    "groups": lambda: (
        mk.MultiKernelClassifier(
            mk.gaussians([0.01, 0.1, 1.0]), weighting=mk.HierarchicalNorm([[0, 1], [2]])
        ),
        X2,
        y2,
    ),
    "ridge": lambda: (mk.MultiKernelRegressor(alpha=0.3), XR, yR),
    "svr": lambda: (mk.MultiKernelRegressor(loss="epsilon_insensitive"), XR, yR[:, 0]),
    "one class": lambda: (mk.MultiKernelOneClass(), X2, None),
    "one class with a cost": lambda: (mk.MultiKernelOneClass(C=0.01), X2, None),
    "search": lambda: (
        mk.MultiKernelClassifierCV(
            weighting=["uniform", mk.Align(q=2)], Cs=[0.1, 1.0], cv=KFold(3, shuffle=True)
        ),
        X2,
        y2,
    ),
    "ridge search": lambda: (mk.MultiKernelRegressorCV(alphas=[0.1, 1.0], cv=3), XR, yR),
    "random state": lambda: (
        mk.MultiKernelClassifier(weighting="best", random_state=np.random.RandomState(3)),
        X2,
        y2,
    ),
    "mixed": lambda: (mk.MultiKernelClassifier(mixed_bank()), X2, y2),
    "mixed, sparse weights": lambda: (
        mk.MultiKernelClassifier(mixed_bank(), weighting="best"),
        X2,
        y2,
    ),
    "rank one, sparse": lambda: (
        mk.MultiKernelClassifier(mk.per_feature(mk.Linear())),
        sp.csr_matrix(np.maximum(X2, 0)),
        y2,
    ),
    "composites, sparse": lambda: (
        mk.MultiKernelRegressor(
            [mk.Linear() + mk.Gaussian(0.1), 2.0 * mk.Gaussian(0.5) ** 2, mk.Gaussian(0.5) ** 0.3]
        ),
        sp.csr_matrix(np.maximum(X2, 0)),
        y2.astype(float),
    ),
    "histograms": lambda: (
        mk.MultiKernelClassifier(
            [mk.ChiSquared(0.1), mk.ChiSquared(1.0, columns=[0, 2]), mk.AdditiveChiSquared()]
        ),
        np.abs(X2),
        y2,
    ),
    "given matrices": lambda: (
        mk.MultiKernelClassifier(mk.precomputed(K_POOL, ["a", "b", "c"])),
        mk.sample_ids(len(X2))[:80],
        y2[:80],
    ),
    "given matrices, spherical": lambda: (
        mk.MultiKernelClassifier(mk.precomputed(K_POOL), normalize="spherical"),
        mk.sample_ids(len(X2))[:80],
        y2[:80],
    ),
    "kernel array": lambda: (
        mk.MultiKernelClassifier("precomputed"),
        np.stack(K_POOL, axis=-1),
        y2,
    ),
    "ensemble": lambda: (mk.KernelEnsembleClassifier(mixed_bank()), X2, y2),
    "ensemble in one stage": lambda: (
        mk.KernelEnsembleClassifier(mk.gaussians([0.01, 0.1]), stages=1),
        X3,
        y3,
    ),
    "ensemble for regression": lambda: (
        mk.KernelEnsembleRegressor(mk.gaussians([0.01, 0.1]), signed=True),
        X2,
        X2[:, 0],
    ),
    "averages": lambda: (mk.ParzenClassifier(mixed_bank()), X3, y3),
    "averages for regression": lambda: (
        mk.ParzenRegressor(mk.gaussians([0.01, 0.1]), "align", form="g"),
        X2,
        X2[:, :2],
    ),
    "powers of a matrix": lambda: (mk.SpectralKernelClassifier(mk.Gaussian(0.1)), X3, y3),
    "eigenvectors": lambda: (
        mk.SpectralKernelClassifier(mk.Gaussian(0.1), family="spectral"),
        X2,
        y2,
    ),
    "hull of kernels": lambda: (
        mk.SpectralKernelClassifier(mk.gaussians([0.01, 0.1]), family="convex"),
        X3,
        y3,
    ),
    "signed hull": lambda: (
        mk.SpectralKernelClassifier(mk.gaussians([0.01, 0.1]), family="linear"),
        X2[:60],
        y2[:60],
    ),
    "votes": lambda: (VotedKernelClassifier(mixed_bank()), X2, y2),
    "votes search": lambda: (VotedKernelClassifierCV(mk.gaussians([0.01, 0.1]), cv=2), X2, y2),
    "votes, three classes": lambda: (VotedKernelClassifier(), X3, y3),
    "votes on matrices": lambda: (
        VotedKernelClassifier(mk.precomputed(K_POOL)),
        mk.sample_ids(len(X2)),
        y2,
    ),
    "sequences": lambda: (
        mk.MultiKernelClassifier([Spectrum(2), Spectrum(3), EditSimilarity(psd="clip")]),
        GENES,
        HALF,
    ),
    "all sequences": lambda: (
        mk.MultiKernelClassifier(
            [
                *(WeightedDegree(3), Mismatch(3, 1), Subsequence(2), Oligo(2), LocalityImproved(1)),
                Rational(Transducer.ngrams(2), alphabet="dna"),
            ],
            "uniform",
        ),
        GENES,
        HALF,
    ),
    "n-grams": lambda: (
        mk.MultiKernelClassifier(per_ngram(2, top=20, unit="letter"), weighting="align"),
        GENES,
        HALF,
    ),
}


@pytest.fixture(scope="module")
def fitted():
    """Every case, fitted once."""
    out = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in CASES.items():
            estimator, X, y = make()
            out[name] = (estimator.fit(X) if y is None else estimator.fit(X, y), X)
    return out


def outputs(estimator, X):
    """All numbers that the estimator predicts, the shares of the kernels included."""
    values = [estimator.predict(X)]
    if hasattr(estimator, "decision_function"):
        values += [estimator.decision_function(X), estimator.decision_function(X, split=True)]
    else:
        values += [estimator.predict(X, split=True)]
    return values


@pytest.mark.parametrize("name", CASES)
def test_what_is_saved_is_what_is_loaded(name, fitted, tmp_path):
    estimator, X = fitted[name]
    path = mk.save(estimator, tmp_path / "model.skops")
    again = mk.load(path)
    assert type(again) is type(estimator)
    for before, after in zip(outputs(estimator, X), outputs(again, X), strict=True):
        np.testing.assert_array_equal(before, after)  # the same bits
    for attribute in vars(estimator):
        assert hasattr(again, attribute)
    assert again.kernel_names_ == estimator.kernel_names_
    assert set(again.get_params()) == set(estimator.get_params())
    clone(again)


def test_parameters_and_fitted_attributes_survive(fitted, tmp_path):
    estimator, _ = fitted["search"]
    again = mk.load(mk.save(estimator, tmp_path / "model.skops"))
    assert repr(again) == repr(estimator)
    assert again.weighting[1].q == 2 and again.C_ == estimator.C_
    assert again.cv_results_.keys() == estimator.cv_results_.keys()
    np.testing.assert_array_equal(
        again.cv_results_["mean_test_score"], estimator.cv_results_["mean_test_score"]
    )
    assert again.bank_ == estimator.bank_
    assert str(again.grams_) == str(estimator.grams_)
    assert again.history_ == estimator.history_


def test_a_loaded_estimator_can_be_fitted_and_certified(fitted, tmp_path):
    from multikernel.bounds import certificate

    estimator, X = fitted["mixed"]
    again = mk.load(mk.save(estimator, tmp_path / "model.skops"))
    first, second = certificate(estimator, X, y2), certificate(again, X, y2)
    assert first.to_dict() == second.to_dict()
    np.testing.assert_array_equal(again.fit(X, y2).predict(X), estimator.predict(X))


def test_a_table_model_travels_with_its_encoder(tmp_path):
    from multikernel.tables import Frame, TableEncoder, TableModel

    frame = Frame.of({"size": X3[:, 0], "kind": np.array(["a", "b", "c"])[y3], "w": X3[:, 3]})
    encoder = TableEncoder.fit(frame)
    estimator = mk.MultiKernelClassifier().fit(encoder(frame), y3)
    model = TableModel(estimator, encoder, "y", "classification", True)
    again = mk.load(mk.save(model, tmp_path / "model.skops"))
    assert again.encoder == encoder and again.target == "y"
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


# -- what is left out -----------------------------------------------------------------------------


def stored_arrays(path):
    return archive.read_archive(path)[1]


def test_only_support_vectors_are_stored(tmp_path):
    rng = np.random.default_rng(0)
    sizes = []
    for n in (200, 2000):
        y = np.arange(n) % 2
        X = rng.normal(size=(n, 5))
        X[:, 0] += 12 * y  # far apart: few support vectors whatever n is
        model = mk.MultiKernelClassifier(mk.gaussians([0.01, 0.1]), C=10.0).fit(X, y)
        path = mk.save(model, tmp_path / f"{n}.skops")
        support = len(model.support_)
        assert support < 60
        anchors = [a for a in stored_arrays(path) if a.ndim == 2 and a.shape[1] == 5]
        assert [len(a) for a in anchors] == [support]
        sizes.append(path.stat().st_size)
    assert sizes[1] < 2 * sizes[0]


def test_of_given_matrices_only_the_columns_of_support_vectors_are_stored(fitted, tmp_path):
    estimator, _ = fitted["given matrices"]
    path = mk.save(estimator, tmp_path / "model.skops")
    used, n = int(np.sum(estimator.kernel_weights_ > 0)), len(estimator.support_)
    assert used < 3 or n < 80
    matrices = [a for a in stored_arrays(path) if a.ndim == 2 and a.shape[0] == len(X2)]
    assert [a.shape for a in matrices] == [(len(X2), n)] * used
    again = mk.load(path)
    assert "not stored" in repr(again.kernels[0])
    with pytest.raises(ValueError, match=r"'a' is not part of the model file.*mk\.precomputed"):
        mk.load(path).fit(mk.sample_ids(80), y2[:80])
    # Saved a second time it is the same model still.
    twice = mk.load(mk.save(again, tmp_path / "again.skops"))
    ids = mk.sample_ids(len(X2))
    np.testing.assert_array_equal(twice.predict(ids), estimator.predict(ids))


def test_kernels_without_a_weight_store_no_data(fitted, tmp_path):
    estimator, _ = fitted["mixed, sparse weights"]
    assert np.count_nonzero(estimator.kernel_weights_) == 1
    path = mk.save(estimator, tmp_path / "model.skops")
    support = len(estimator.support_)
    tables = [a for a in stored_arrays(path) if a.ndim == 2 and a.shape == (support, X2.shape[1])]
    assert len(tables) <= 1
    again = mk.load(path)
    assert len([part for part in again._expansion.parts if part is not None]) == 1


def test_a_wide_scaling_is_stored_once(tmp_path):
    X, y = make_classification(60, 2000, random_state=0)
    model = mk.MultiKernelClassifier().fit(X, y)
    path = mk.save(model, tmp_path / "model.skops")
    wide = [a for a in stored_arrays(path) if a.shape == (2000,)]
    # Mean and scale, shared by ten kernels, the points around which two kinds of distances are
    # computed, and the importance of the columns.
    assert len(wide) == 5
    # The ranks of three kernels: values and their normal scores.
    assert len([a for a in stored_arrays(path) if a.shape == (2000, 60)]) == 2
    with zipfile.ZipFile(path) as file:
        assert file.getinfo("schema.json").file_size < 60_000


# -- what cannot be stored ------------------------------------------------------------------------


def test_functions_are_refused_with_advice(tmp_path):
    path = tmp_path / "model.skops"
    model = mk.MultiKernelClassifier([mk.Callable(lambda A, B: A @ B.T), mk.Linear()]).fit(X2, y2)
    with pytest.raises(TypeError, match=r"kernels.*A Python function is code.*mk\.precomputed"):
        mk.save(model, path)

    def scorer(estimator, X, y):
        return estimator.score(X, y)

    model = mk.MultiKernelClassifierCV(Cs=[1.0], cv=3, scoring=scorer).fit(X2, y2)
    with pytest.raises(TypeError, match=r"\.scoring is .*set_params\(scoring=None\)"):
        mk.save(model, path)
    assert not path.exists()
    mk.save(model.set_params(scoring=None), path)


def test_only_our_fitted_estimators_are_stored(tmp_path):
    with pytest.raises(NotFittedError):
        mk.save(mk.MultiKernelClassifier(), tmp_path / "model.skops")
    with pytest.raises(TypeError, match="fitted estimators of multikernel; got LogisticRegression"):
        mk.save(LogisticRegression().fit(X2, y2), tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written_are_named(fitted, tmp_path):
    estimator, _ = fitted["default"]
    with pytest.raises(FileNotFoundError, match="no folder"):
        mk.save(estimator, tmp_path / "nowhere" / "model.skops")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        mk.save(estimator, tmp_path)


# -- a crash while writing ------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["replace", "fsync"])
def test_a_crash_leaves_the_old_file_and_no_rubbish(where, fitted, tmp_path, monkeypatch):
    path = mk.save(fitted["default"][0], tmp_path / "model.skops")
    before = path.read_bytes()

    def crash(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, where, crash)
    with pytest.raises(KeyboardInterrupt):
        mk.save(fitted["joint"][0], path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]


# -- damaged, foreign, tampered, newer -------------------------------------------------------------


@pytest.fixture
def model_file(fitted, tmp_path):
    return mk.save(fitted["default"][0], tmp_path / "model.skops")


def test_truncated_files_are_refused_at_every_length(model_file):
    data = model_file.read_bytes()
    for length in [0, 1, 4, 100, *np.linspace(200, len(data) - 1, 40).astype(int).tolist()]:
        model_file.write_bytes(data[:length])
        with pytest.raises(ModelFileError, match=r"cut short|is empty|not a model file"):
            mk.load(model_file)


def test_no_flipped_byte_goes_unnoticed_or_crashes(model_file, fitted):
    estimator, X = fitted["default"]
    data = bytearray(model_file.read_bytes())
    expected = estimator.decision_function(X)
    refused = 0
    for at in np.linspace(0, len(data) - 1, 150).astype(int).tolist():
        data[at] ^= 0x55
        model_file.write_bytes(data)
        data[at] ^= 0x55
        try:
            again = mk.load(model_file)
        except ModelFileError:
            refused += 1
        else:  # the byte was one that says nothing, such as a time stamp
            np.testing.assert_array_equal(again.decision_function(X), expected)
    assert refused > 120


def rewrite(path, change, sign=True):
    """The file with its parts changed by somebody who knows the format."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    header = json.loads(parts.pop(archive.HEADER))
    parts, header = change(parts, header)
    if sign:
        header["sha256"] = {name: archive._digest(data) for name, data in parts.items()}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
        file.writestr(archive.HEADER, json.dumps(header))


def described(path, change):
    """The file with another description, its digests made right."""
    description, arrays = archive.read_archive(path)
    archive.write_archive(change(description), arrays, path)


def test_changed_parts_are_noticed(model_file):
    def scale_an_array(parts, header):
        name = next(name for name in parts if name.endswith(".npy"))
        buffer = io.BytesIO()
        np.save(buffer, 2 * np.load(io.BytesIO(parts[name])))
        return parts | {name: buffer.getvalue()}, header

    rewrite(model_file, scale_an_array, sign=False)
    with pytest.raises(ModelFileError, match=r"changed after it was written: \d+\.npy is not"):
        mk.load(model_file)


def test_added_and_missing_parts_are_noticed(model_file):
    data = model_file.read_bytes()
    rewrite(model_file, lambda parts, header: (parts | {"more": b"x"}, header), sign=False)
    with pytest.raises(ModelFileError, match="changed after it was written: more is not"):
        mk.load(model_file)
    model_file.write_bytes(data)
    rewrite(
        model_file,
        lambda parts, header: (dict(list(parts.items())[1:]), header),
        sign=False,
    )
    with pytest.raises(ModelFileError, match="changed after it was written"):
        mk.load(model_file)


@pytest.mark.parametrize(
    "node",
    [
        {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"},
        {"__class__": "LogisticRegression", "__module__": "sklearn.linear_model._logistic",
         "__loader__": "ObjectNode"},
        {"__class__": "Popen", "__module__": "subprocess", "__loader__": "TypeNode"},
    ],
)  # fmt: skip
def test_what_skops_is_asked_to_make_is_on_a_short_list(node, model_file):
    def smuggle(parts, header):
        schema = json.loads(parts["schema.json"])
        schema["content"]["arrays"]["content"].append(node)
        return parts | {"schema.json": json.dumps(schema).encode()}, header

    rewrite(model_file, smuggle)
    with pytest.raises(ModelFileError, match=f"refers to {node['__module__']}.*nothing was loaded"):
        mk.load(model_file)


def test_classes_outside_the_list_are_refused(model_file):
    described(model_file, lambda _: {"object": ["Popen", {"args": "touch /tmp/x"}]})
    with pytest.raises(ModelFileError, match=r"class 'Popen', which is not among those"):
        mk.load(model_file)


def find(description, name):
    """The attributes of the first object of a class."""
    waiting = [description]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("object"), list) and value["object"][0] == name:
                return value["object"][1]
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    raise KeyError(name)


@pytest.mark.parametrize(
    ("name", "attribute", "value", "message"),
    [
        ("Encoder", "widths", {"tuple": [10**6]}, "sizes of its parts"),
        ("SharedCross", "n_anchors", 10**6, "sizes of its parts"),
        ("SharedCross", "kernels", [], "sizes of its parts"),
        ("BlockExpansion", "weights", {"array": 0}, "sizes of its parts"),
        ("BlockExpansion", "mean_weights", {"array": 0}, "sizes of its parts"),
        ("Gaussian", "gamma", {"nonsense": 1}, "'nonsense', which is not known"),
        ("MultiKernelClassifier", "kernel_weights_", {"array": 10**6}, "IndexError"),
        ("MultiKernelClassifier", "_expansion", None, "sizes of its parts"),
    ],
)
def test_parts_that_do_not_fit_are_refused(name, attribute, value, message, model_file):
    def change(description):
        find(description, name)[attribute] = value
        return description

    described(model_file, change)
    with pytest.raises(ModelFileError, match=message):
        mk.load(model_file)


def test_missing_attributes_are_refused(model_file, fitted, tmp_path):
    def without_gamma(description):
        del find(description, "Gaussian")["gamma"]
        return description

    described(model_file, without_gamma)
    with pytest.raises(ModelFileError, match=r"Gaussian has missing or unexpected parts \(gamma\)"):
        mk.load(model_file)

    def without_parameter(description):
        del find(description, "HierarchicalNorm")["groups"]
        return description

    path = mk.save(fitted["groups"][0], tmp_path / "groups.skops")
    described(path, without_parameter)
    with pytest.raises(
        ModelFileError, match=r"HierarchicalNorm has missing or unexpected parts .*\(groups\)"
    ):
        mk.load(path)


def test_parameters_that_a_file_does_not_know_get_their_defaults(model_file, fitted):
    def without_parameter(description):
        del find(description, "MultiKernelClassifier")["engine"]
        return description

    described(model_file, without_parameter)
    again = mk.load(model_file)
    assert again.engine == "cpu" and again.get_params() == fitted["default"][0].get_params()


def test_files_that_know_fewer_kinds_of_parts():
    """Arrays of kernel values were called dense, and features made from X rank-one."""
    nothing = np.array([], dtype=int)
    state = {"positions": np.arange(2), "kernels": (), "columns": nothing, "what": ""}
    part = Part.from_state({**state, "kind": "dense", "features": None})
    assert part.kind == "given" and part.engine == "cpu" and "engine" not in part.state()
    counts = mk.load(STORED / "format-1-ngrams.skops")
    assert [part.kind for part in counts.plan_.parts] == ["features"]
    given = mk.load(STORED / "format-1-given.skops")
    assert [part.kind for part in given.plan_.parts] == ["dense"]
    assert Part.from_state(replace(part, engine="mine").state()).engine == "mine"


class Constant(Expansion):
    """An expansion of somebody else's engine."""

    n_kernels = 1

    def __init__(self, value):
        self.value = value

    @classmethod
    def from_state(cls, state):
        if not np.isfinite(state["value"]):
            raise ValueError("the value is not finite")
        return super().from_state(state)

    def encode(self, X):
        return X

    def shares(self, points):
        return np.full((len(points), 1, 1), self.value)


def test_classes_of_others_are_stored_once_they_are_registered(tmp_path):
    model = mk.MultiKernelClassifier([mk.Linear()]).fit(X2, y2)
    model._expansion, path = Constant(2.5), tmp_path / "model.skops"
    with pytest.raises(TypeError, match=r"_expansion is .*Constant.*files\.register"):
        mk.save(model, path)
    with pytest.raises(ValueError, match=r"'Gaussian' for multikernel\.kernels.*another name"):
        files.register(Constant, "Gaussian")
    assert files.register(Constant, "tests.Constant") is Constant
    again = mk.load(mk.save(model, path))
    assert type(again._expansion) is Constant
    np.testing.assert_array_equal(again.decision_function(X2), model.decision_function(X2))
    described(path, lambda d: find(d, "tests.Constant").update(value={"float": "nan"}) or d)
    with pytest.raises(ModelFileError, match=r"tests\.Constant: the value is not finite"):
        mk.load(path)


def test_an_object_that_is_no_estimator_is_refused(model_file):
    described(model_file, lambda _: [1, 2])
    with pytest.raises(ModelFileError, match="holds no estimator"):
        mk.load(model_file)


def test_newer_formats_ask_for_an_upgrade(model_file):
    def age(parts, header):
        return parts, header | {"format": archive.FORMAT + 1, "multikernel": "99.0"}

    rewrite(model_file, age)
    with pytest.raises(ModelFileError, match=r"written by multikernel 99\.0.*Upgrade"):
        mk.load(model_file)


def test_foreign_files_are_told_apart(tmp_path):
    path = tmp_path / "model.skops"
    with pytest.raises(FileNotFoundError, match=r"no model file .*model\.skops"):
        mk.load(path)
    with pytest.raises(ModelFileError, match="is a folder"):
        mk.load(tmp_path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ModelFileError, match="is not a model file"):
        mk.load(path)
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ModelFileError, match=r"looks like a pickle.*can run code"):
        mk.load(path)
    skops.io.dump(LogisticRegression().fit(X2, y2), path)
    with pytest.raises(ModelFileError, match="a skops file, but not one written by multikernel"):
        mk.load(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme", "hello")
    with pytest.raises(ModelFileError, match="a zip archive, not one"):
        mk.load(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(archive.HEADER, "{}")
    with pytest.raises(ModelFileError, match=r"header .* is damaged"):
        mk.load(path)


def test_loading_never_unpickles(model_file, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    mk.load(model_file)


# -- descriptions ---------------------------------------------------------------------------------


def test_values_keep_their_types():
    shared = np.arange(3)
    value = {
        "a": (1, 2.5, float("inf"), None, True),
        ("key", 1): [np.float32(0.1), np.int64(3), slice(1, None), np.dtype("f4")],
        "long": tuple(0.1 * i for i in range(40)),
        "ints": tuple(range(40)),
        "texts": np.array([["a", None], ["b", "c"]], dtype=object),
        "same": [shared, shared],
        "sparse": sp.csc_matrix(np.eye(3)),
    }
    writer = Writer()
    description = json.loads(json.dumps(writer.describe(value, "value"), allow_nan=False))
    again = Reader(writer.arrays).build(description)
    assert list(again) == list(value)
    for key in ("a", "long", "ints"):
        assert again[key] == value[key] and type(again[key]) is tuple
        assert [type(v) for v in again[key]] == [type(v) for v in value[key]]
    assert [type(v) for v in again["key", 1]] == [type(v) for v in value["key", 1]]
    assert again["texts"].tolist() == value["texts"].tolist()
    assert again["same"][0] is again["same"][1]
    assert sp.issparse(again["sparse"]) and (again["sparse"] != value["sparse"]).nnz == 0


def test_names_on_the_list_are_unique_and_every_public_weighting_is_there():
    for name in mk.__all__:
        value = getattr(mk, name)
        # Neither base classes nor functions (of the user, or of a fitted model) are part of it.
        others = ("Kernel", "Callable", "LearnedKernel")
        if isinstance(value, type) and name not in others:
            assert TYPES[name] is value


# -- files of earlier versions --------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(STORED.glob("*.skops")), ids=lambda path: path.stem)
def test_stored_files_go_on_loading(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    model = mk.load(path)
    assert type(model).__name__ == expected["type"]
    X = expected["X"]
    if not isinstance(X, dict):
        X = np.array(X)
    elif "frame" in X:
        X = pd.DataFrame(X["frame"])
    method = "predict" if "predict" in expected else "transform"
    answers = getattr(model, method)(X)
    if answers.dtype.kind == "f":
        np.testing.assert_allclose(answers, expected[method], rtol=1e-8, atol=1e-10)
    else:
        assert answers.tolist() == expected[method]
    if "decision_function" in expected:
        values = model.decision_function(X)
        np.testing.assert_allclose(values, expected["decision_function"], rtol=1e-8, atol=1e-10)
    for name in ("predict_proba", "predict_interval"):
        if name in expected:
            np.testing.assert_allclose(getattr(model, name)(X), expected[name], rtol=1e-8)
    if "kernel_weights" in expected:
        weights = (model.estimator if isinstance(model, TableModel) else model).kernel_weights_
        np.testing.assert_array_equal(weights, expected["kernel_weights"])


def test_files_from_before_probabilities_and_intervals_say_what_to_do():
    expected = json.loads((STORED / "format-1-classifier.json").read_text())
    with pytest.raises(NotFittedError, match="Fit it again to get them"):
        mk.load(STORED / "format-1-classifier.skops").predict_proba(np.array(expected["X"]))
    expected = json.loads((STORED / "format-1-regressor.json").read_text())
    with pytest.raises(NotFittedError, match="Fit it again to get them"):
        mk.load(STORED / "format-1-regressor.skops").predict_interval(np.array(expected["X"]))


@pytest.mark.parametrize("path", sorted(STORED.glob("format-1-voted*.skops")), ids=lambda p: p.stem)
def test_votes_of_the_first_format_predict_the_same_numbers(path, tmp_path):
    """They are read in another form than they were stored in, and written in the new one."""
    expected = json.loads(path.with_suffix(".json").read_text())
    X, wanted = np.array(expected["X"]), np.array(expected["decision_function"])
    model = mk.load(path)
    np.testing.assert_allclose(model.decision_function(X), wanted, rtol=1e-12)
    shares = model.decision_function(X, split=True)
    assert shares.shape == (len(X), len(model.kernel_names_))
    total = shares.sum(axis=1) + model.intercept_
    np.testing.assert_allclose(total, wanted, rtol=1e-12, atol=1e-14)
    assert np.all(shares[:, model.kernel_counts_ == 0] == 0)
    again = mk.load(mk.save(model, tmp_path / "again.skops"))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_there_is_a_stored_file_of_every_kind_of_model():
    """Every estimator of the list, and what they are made of: a new kind needs a new file."""
    stored = set()
    for path in STORED.glob("*.skops"):
        stored |= set(re.findall(r'"object": \["(\w+)"', json.dumps(archive.read_archive(path)[0])))
    assert {cls.__name__ for cls in ESTIMATORS} <= stored
    assert {"BlockExpansion", "SeparateExpansions", "StackedExpansion", "RankOneExpansion",
            "NgramExpansion", "VotedExpansion", "EnsembleExpansion", "Spectrum", "Mismatch",
            "WeightedDegree", "EditSimilarity", "Absent"} <= stored  # fmt: skip


@pytest.mark.parametrize("path", sorted(STORED.glob("*.skops")), ids=lambda path: path.stem)
def test_every_kind_of_file_is_refused_when_cut_or_changed(path, tmp_path):
    data = path.read_bytes()
    copy = tmp_path / "model.skops"
    for length in np.linspace(1, len(data) - 1, 6).astype(int).tolist():
        copy.write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            mk.load(copy)
    copy.write_bytes(data)

    def change(parts, header):
        name = next(name for name in sorted(parts) if name.endswith(".npy"))
        return parts | {name: parts[name][:-1] + bytes([parts[name][-1] ^ 1])}, header

    rewrite(copy, change, sign=False)
    with pytest.raises(ModelFileError, match="was changed after it was written"):
        mk.load(copy)


def test_there_is_a_stored_file_of_every_format():
    formats = set()
    for path in STORED.glob("*.skops"):
        with zipfile.ZipFile(path) as file:
            formats.add(json.loads(file.read(archive.HEADER))["format"])
    assert formats == set(range(1, archive.FORMAT + 1))
