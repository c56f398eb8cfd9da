"""First contacts in Python: what newcomers write, and the sentence that helps them on.

Each case is a short script of a person who has read README and little else: a bioinformatician with
tables of several kinds, an analyst who comes from scikit-learn, a statistician with matrices.
"""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import multikernel as mk

pd = pytest.importorskip("pandas")

N = 60
RNG = np.random.default_rng(0)
y = np.arange(N) % 2
genes = pd.DataFrame(
    RNG.normal(size=(N, 8)) + 0.8 * y[:, None], columns=[f"gene_{j}" for j in range(8)]
)
clinic = pd.DataFrame(RNG.normal(size=(N, 3)) + y[:, None], columns=["age", "stage", "dose"])
table = pd.concat([genes, clinic], axis=1)
X = table.to_numpy()
views = mk.per_view({"expression": "gene_*", "clinic": ["age", "stage", "dose"]})
matrices = [genes.to_numpy() @ genes.to_numpy().T, clinic.to_numpy() @ clinic.to_numpy().T]


def classifier(kernels=views, **options):
    """Equal weights: these scripts are about words, not about weights."""
    return mk.MultiKernelClassifier(kernels, "uniform", **options)


def ragged_view():
    """The table, without an expression profile for seven patients."""
    gaps = table.copy()
    gaps.loc[3:9, list(genes)] = np.nan
    return gaps


def indefinite():
    """A similarity that no feature space has."""
    K = matrices[0] / 10 - 20 * (np.add.outer(np.arange(N), np.arange(N)) % 7 == 3)
    return (K + K.T) / 2


# -- it works as people expect --------------------------------------------------------------------


def test_a_data_frame_with_views_by_name():
    model = classifier().fit(table, y)
    assert model.score(table, y) > 0.8
    assert set(model.view_weights_) == {"expression", "clinic"}


def test_columns_are_found_by_name_in_any_order():
    model = classifier().fit(table, y)
    assert (model.predict(table) == model.predict_proba(table).argmax(axis=1)).all()


def test_a_scaler_in_front_that_keeps_the_names():
    scaler = StandardScaler().set_output(transform="pandas")
    assert make_pipeline(scaler, classifier()).fit(table, y).score(table, y) > 0.8


def test_one_table_per_view():
    joined, columns = mk.join_views({"expression": genes, "clinic": clinic.sample(frac=1)})
    assert classifier(mk.per_view(columns)).fit(joined, y).score(joined, y) > 0.8


def test_columns_of_two_levels():
    joined, columns = mk.join_views(pd.concat({"expression": genes, "clinic": clinic}, axis=1))
    assert list(columns) == ["expression", "clinic"] and len(joined) == N


def test_patients_that_lack_a_view():
    model = classifier(missing="ignore").fit(ragged_view(), y)
    assert model.view_presence_["expression"] == pytest.approx(53 / 60)


def test_matrices_with_row_numbers_are_sliced_by_cross_validation():
    bank = mk.precomputed(matrices, names=["expression", "clinic"])
    assert cross_val_score(classifier(bank), mk.sample_ids(N), y, cv=3).mean() > 0.7


def test_samples_of_one_patient_stay_in_one_fold():
    patient = np.repeat(np.arange(20), 3)
    search = mk.MultiKernelClassifierCV(views, ["uniform"], Cs=[1.0], cv=GroupKFold(3))
    for train, test in search.fit(table, y, groups=patient).cv_indices_:
        assert not set(patient[train]) & set(patient[test])


def test_probabilities_and_their_scores():
    three = np.arange(N) % 3
    scores = cross_val_score(classifier(), table, three, scoring="roc_auc_ovr", cv=3)
    assert np.isfinite(scores).all()


def test_parameters_of_a_rule_in_a_grid_search():
    search = GridSearchCV(
        mk.MultiKernelClassifier(views, mk.LpNorm()), {"weighting__p": [1.0, 2.0]}, cv=2
    )
    assert search.fit(table, y).best_params_["weighting__p"] in (1.0, 2.0)


def test_tools_of_scikit_learn_around_a_model():
    calibrated = CalibratedClassifierCV(classifier(), cv=2).fit(table, y)
    assert calibrated.predict_proba(table).shape == (N, 2)
    found = permutation_importance(classifier().fit(table, y), table, y, n_repeats=2)
    assert found.importances_mean.shape == (11,)


def test_shares_add_up_to_the_decision():
    model = classifier().fit(table, y)
    shares = model.decision_function(table, split=True)
    assert np.allclose(shares.sum(axis=1) + model.intercept_, model.decision_function(table))


def test_sparse_columns_and_one_kernel_each():
    bank = mk.per_feature(mk.Linear())
    assert classifier(bank).fit(sparse.csr_array(np.maximum(X, 0)), y).kernel_weights_.size == 11


def test_texts_with_a_kernel_on_sequences():
    windows = ["ACGTAC", "TTGTAC", "ACGTTT", "TTGAAC"] * 6
    model = mk.MultiKernelClassifier([mk.Spectrum(2)], "uniform").fit(windows, [0, 1, 0, 1] * 6)
    assert model.score(windows, [0, 1, 0, 1] * 6) == 1.0


def test_a_model_in_a_file(tmp_path):
    model = classifier().fit(table, y)
    again = mk.load(mk.save(model, tmp_path / "model.skops"))
    assert np.array_equal(again.decision_function(table), model.decision_function(table))


def test_an_interval_for_every_prediction():
    model = mk.MultiKernelRegressor(views, "uniform").fit(table, clinic["age"])
    lower, upper = model.predict_interval(table)
    assert np.mean((lower <= clinic["age"]) & (clinic["age"] <= upper)) > 0.8


def test_a_certificate_of_kernels_that_came_from_the_data_proves_nothing():
    certificate = classifier(None).fit(X, y).certificate(X, y)
    assert certificate.vacuous
    assert "Assumption not met" in str(certificate)


# -- it does not work, and the message says what to do ---------------------------------------------


REFUSED = {
    "a scaler that drops the names": (
        lambda: make_pipeline(StandardScaler(), classifier()).fit(table, y),
        ["no column names", "set_output(transform='pandas')"],
    ),
    "a dict of tables": (
        lambda: classifier(None).fit({"expression": genes, "clinic": clinic}, y),
        ["one table", "'expression', 'clinic'", "mk.join_views"],
    ),
    "kernels without columns for a view": (
        lambda: mk.per_view({"expression": mk.Linear()}),
        ["View 'expression' must be a pair", "'gene_*'"],
    ),
    "a typing slip in a column": (
        lambda: classifier(mk.per_view({"clinic": ["age", "stag"]})).fit(table, y),
        ["View 'clinic'", "no column 'stag'", "Did you mean 'stage'?"],
    ),
    "a pattern that matches nothing": (
        lambda: classifier(mk.per_view({"proteins": "protein_*"})).fit(table, y),
        ["View 'proteins'", "none of the 11 columns", "'protein_*'"],
    ),
    "matrices stacked along the first axis": (
        lambda: classifier("precomputed").fit(np.stack(matrices), y),
        ["kernel axis last", "(2, 60, 60)", "np.moveaxis(X, 0, -1)"],
    ),
    "a list of matrices for X": (
        lambda: classifier("precomputed").fit(matrices, y),
        ["list of 2 matrices", "np.stack(matrices, axis=-1)"],
    ),
    "a table for kernels that are matrices": (
        lambda: classifier(mk.precomputed(matrices)).fit(X, y),
        ["one column of sample ids", "mk.sample_ids(60)", "(60, 11)"],
    ),
    "a matrix that is not symmetric": (
        lambda: mk.precomputed([np.triu(matrices[0])]),
        ["is not symmetric", "(K + K.T) / 2"],
    ),
    "similarities that are no kernel": (
        lambda: classifier(mk.precomputed([indefinite()], names=["graph"])).fit(
            mk.sample_ids(N), y
        ),
        ["'graph'", "not positive semidefinite"],
    ),
    "gaps without saying what they mean": (
        lambda: classifier().fit(ragged_view(), y),
        ["56 missing values", "'expression' (7 samples", "missing='ignore'", "SimpleImputer"],
    ),
    "a category for a kernel of numbers": (
        lambda: classifier([mk.Gaussian(1.0)]).fit(table.assign(sex=["m", "f"] * 30), y),
        ["'sex'", "mk.Overlap", "kernels=None"],
    ),
    "texts for a kernel of numbers": (
        lambda: classifier([mk.Gaussian(1.0)]).fit(["ACGT", "TTGA"] * 10, [0, 1] * 10),
        ["strings, such as 'ACGT'", "Spectrum"],
    ),
    "a rule by a wrong name": (
        lambda: mk.MultiKernelClassifier(views, "algnf").fit(table, y),
        ["weighting='algnf' is not known", "'uniform'", "Did you mean 'alignf'?"],
    ),
    "a kernel by the name of scikit-learn": (
        lambda: classifier("rbf").fit(X, y),
        ["got 'rbf'", "mk.Gaussian(gamma=0.5)"],
    ),
    "the class of a kernel": (
        lambda: classifier([mk.Gaussian]).fit(X, y),
        ["mk.Gaussian(gamma=0.5)", "mk.Callable"],
    ),
    "a negative width": (lambda: mk.Gaussian(-1), ["gamma must be a positive", "got -1"]),
    "a cost of the wrong sign": (lambda: classifier(C=-1).fit(table, y), ["'C'", "(0.0, inf)"]),
    "one class": (
        lambda: classifier().fit(table, np.ones(N)),
        ["at least 2 classes", "only one class: 1.0"],
    ),
    "numbers for a classifier": (
        lambda: classifier().fit(table, clinic["age"]),
        ["continuous", "classifier"],
    ),
    "names of classes for a regressor": (
        lambda: mk.MultiKernelRegressor(views, "uniform").fit(table, np.array(["a", "b"] * 30)),
        ["y must be numeric", "got text"],
    ),
    "a table that lacks a column": (
        lambda: classifier().fit(table, y).predict(table.drop(columns="dose")),
        ["missing", "dose"],
    ),
    "predictions before the fit": (lambda: classifier().predict(table), ["not fitted yet", "fit"]),
    "a typing slip in a name": (
        lambda: mk.MultiKernelClasifier,
        ["'MultiKernelClasifier'", "Did you mean 'MultiKernelClassifier'?"],
    ),
    "a model file that is not there": (
        lambda: mk.load("nowhere.skops"),
        ["no model file", "nowhere.skops"],
    ),
}
EXPECTED = (ValueError, TypeError, AttributeError, FileNotFoundError, NotFittedError)


@pytest.mark.parametrize("contact", REFUSED)
def test_a_message_says_what_to_do(contact):
    script, sentences = REFUSED[contact]
    with pytest.raises(EXPECTED) as caught:
        script()
    said = " ".join(str(caught.value).split())
    for sentence in sentences:
        assert sentence in said, said


def test_widths_that_do_not_suit_the_units_are_noticed():
    with pytest.warns(UserWarning, match=r"nearly the identity.*scaling='standard'"):
        classifier(mk.gaussians([0.1, 1.0])).fit(500 * X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier(mk.gaussians([0.1], scaling="standard")).fit(500 * X, y)


def test_a_column_that_never_changes_is_named():
    constant = np.c_[np.ones(N), X]
    bank = mk.per_view({"constant": [0], "rest": slice(1, 4)})
    with pytest.warns(UserWarning, match=r"constant on the training data.*get weight 0"):
        mk.MultiKernelClassifier(bank, "alignf").fit(constant, y)


def test_a_pickle_is_not_taken_for_a_model_file(tmp_path):
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps([1, 2, 3]))
    with pytest.raises(ValueError, match=r"looks like a pickle.*save models with mk\.save"):
        mk.load(path)


def test_a_kernel_of_ones_own_cannot_be_put_into_a_file(tmp_path):
    model = classifier(mk.Callable(lambda A, B: A @ B.T, psd=True)).fit(X, y)
    with pytest.raises(TypeError, match=r"loading a model must not run code.*mk\.precomputed"):
        mk.save(model, tmp_path / "model.skops")
