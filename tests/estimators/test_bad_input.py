"""Bad input gets an error that says what was expected, what came, which part, and what to do."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import multikernel as mk
from multikernel.estimators.ensemble import KernelEnsembleClassifier
from multikernel.estimators.spectral import SpectralKernelClassifier
from tests.estimators.cases import NORMALIZATIONS, iris, waves

Classifier = mk.MultiKernelClassifier
Regressor = mk.MultiKernelRegressor
ClassifierCV = mk.MultiKernelClassifierCV
RegressorCV = mk.MultiKernelRegressorCV
BANK = mk.gaussians([0.1, 1.0])
EVERYONE = [
    Classifier,
    Regressor,
    ClassifierCV,
    RegressorCV,
    mk.ParzenClassifier,
    mk.ParzenRegressor,
]

X, y = iris()
both = pytest.mark.parametrize("Estimator", [Classifier, Regressor])
everyone = pytest.mark.parametrize("Estimator", EVERYONE)


def spoiled(value, where=(3, 2)):
    Z = X.copy()
    Z[where] = value
    return Z


def refuses(match, estimator, X=X, y=y, error=ValueError, **options):
    """Fit fails with this message, and with nothing else before it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error, match=match):
            estimator.fit(X, y, **options)


# -- inputs and targets ---------------------------------------------------------------------------


@everyone
def test_missing_and_infinite_inputs(Estimator):
    refuses("Input X contains NaN", Estimator(BANK), spoiled(np.nan))
    refuses("Input X contains infinity", Estimator(BANK), spoiled(np.inf))
    model = Estimator(BANK).fit(X, y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(spoiled(np.nan))


@everyone
def test_missing_and_infinite_targets(Estimator):
    refuses("Input y contains NaN", Estimator(BANK), y=np.where(y == 1, np.nan, y))
    refuses("Input y contains infinity", Estimator(BANK), y=np.where(y == 1, np.inf, y))
    refuses("requires y to be passed", Estimator(BANK), y=None)
    refuses(r"inconsistent numbers of samples: \[75, 10\]", Estimator(BANK), y=y[:10])


def test_targets_without_information():
    for Estimator in (Classifier, ClassifierCV):
        refuses(r"at least 2 classes.*only one class: .*7", Estimator(BANK), y=np.full(75, 7))
        refuses("Unknown label type: continuous", Estimator(BANK), y=X[:, 0])
        refuses(r"1d array, got an array of shape \(75, 2\)", Estimator(BANK), y=np.c_[y, y])
        refuses(
            r"at least 2 classes.*only one class", Estimator(BANK), sample_weight=(y == 1) * 1.0
        )
    for Estimator in (Regressor, RegressorCV):
        refuses(r"y is constant \(7\).*Check the target", Estimator(BANK), y=np.full(75, 7.0))
        refuses("y is constant", Estimator(BANK), sample_weight=(y == 1) * 1.0)


def test_one_constant_output_among_several_is_predicted():
    Z, target = waves(outputs=2)
    target[:, 1] = 5.0
    model = Regressor(BANK).fit(Z, target)
    np.testing.assert_allclose(model.predict(Z)[:, 1], 5.0, atol=1e-10)


@everyone
def test_few_samples(Estimator):
    refuses(
        rf"{Estimator.__name__} needs at least 2 samples; got n_samples = 1",
        Estimator(BANK),
        X[:1],
        y[:1],
    )
    refuses("0 sample", Estimator(BANK), X[:0], y[:0])


@both
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("weighting", ["uniform", "align", "alignf"])
def test_two_samples_are_enough(Estimator, weighting, normalize):
    rows = [int(np.argmin(y)), int(np.argmax(y))]
    for kernels in (BANK, mk.per_feature(), None, mk.Gaussian(0.5)):
        model = Estimator(kernels, weighting, normalize=normalize).fit(X[rows], y[rows])
        assert np.isfinite(model.predict(X)).all()
        assert model.kernel_weights_.sum() == pytest.approx(1.0)
    assert (
        Classifier(BANK, weighting, normalize=normalize)
        .fit(X[rows], y[rows])
        .score(X[rows], y[rows])
        == 1.0
    )


@both
def test_one_kernel_is_enough(Estimator):
    for weighting in ("uniform", "best", "align", "alignf", mk.AlignF(signed=True)):
        model = Estimator(mk.Gaussian(0.5), weighting).fit(X, y)
        assert model.kernel_weights_.tolist() == [1.0]


@both
def test_best_on_very_few_samples(Estimator):
    few = [int(np.flatnonzero(y == k)[0]) for k in range(3)]
    model = Estimator(BANK, "best", random_state=0).fit(X[few], y[few])
    assert sorted(model.kernel_weights_.tolist()) == [0.0, 1.0]


@everyone
def test_shapes_of_inputs(Estimator):
    refuses("Expected 2D array, got 1D array", Estimator(BANK), X[:, 0])
    refuses(r"mk\.precomputed", Estimator(BANK), np.stack([np.eye(75)] * 2, axis=-1))
    refuses(r"mk\.precomputed", Estimator(BANK), [np.eye(75), np.eye(75)])
    model = Estimator(BANK).fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features.*expecting 4 features"):
        model.predict(X[:, :3])


@everyone
def test_predict_before_fit(Estimator):
    with pytest.raises(NotFittedError, match=rf"{Estimator.__name__} instance is not fitted yet"):
        Estimator(BANK).predict(X)


@everyone
def test_text_where_numbers_are_needed(Estimator):
    table = pd.DataFrame(X, columns=list("abcd")).assign(town="Ulm", kind="x")
    refuses(r"category columns \('town', 'kind'\).*would treat as numbers", Estimator(BANK), table)
    one = table.drop(columns="kind")
    category = one.assign(town=one["town"].astype("category"))
    refuses(r"category columns \('town'\).*use mk.Overlap", Estimator(BANK), category)
    dated = one.assign(town=pd.Timestamp("2020-01-01"))
    refuses(r"'town' is of type datetime64", Estimator(BANK), dated)
    refuses(r"column 0 is not: it holds 'a'", Estimator(BANK), np.full((75, 2), "a"))
    refuses(r"samples are strings, such as 'a'", Estimator(BANK), list(np.full(75, "a")))
    refuses(r"X must be numeric", Estimator(BANK), np.array([["a", 1.0]] * 75, dtype=object))
    stray = np.array([["1.5", 1.0]] * 74 + [["unknown", 1.0]], dtype=object)
    refuses(r"column 0 is not: it holds 'unknown'", Estimator(BANK), stray)


def test_text_as_a_regression_target():
    refuses(r"y must be numeric", Regressor(BANK), y=np.array(["a", "b", "c"])[y])


@pytest.mark.parametrize(
    "model",
    [
        Classifier(BANK, "uniform"),
        ClassifierCV(BANK, "uniform", cv=2),
        mk.ParzenClassifier(BANK, "uniform"),
        Classifier(BANK, "uniform", loss="squared", approximation=mk.Nystroem(rank=20)),
        KernelEnsembleClassifier(BANK),
        SpectralKernelClassifier(mk.Gaussian(0.5)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_failed_fit_leaves_no_model_of_an_earlier_one(model):
    model = clone(model).fit(X, y)
    refuses("only one class", model, X[:, :2], np.full(75, "only"))
    with pytest.raises(NotFittedError):
        model.predict(X)
    if hasattr(model, "refit"):
        with pytest.raises(ValueError, match="there are none"):
            model.refit()


def test_a_failed_first_batch_or_transduction_leaves_no_model():
    stream = Classifier(BANK, "uniform", loss="squared", approximation=mk.Nystroem(rank=20))
    stream.set_params(approximation=None).fit(X, y).set_params(approximation=mk.Nystroem(20))
    with pytest.raises(ValueError, match="label 2 is not among"):
        stream.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(NotFittedError):
        stream.predict(X)
    with pytest.raises(ValueError, match="0 feature"):
        stream.partial_fit(X[:, :0], y, classes=["a", "b"])
    assert list(stream.fit(X, y).classes_) == [0, 1, 2]
    model = SpectralKernelClassifier(mk.Gaussian(0.5)).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        model.transduce(X, np.full(75, "only"), X)
    with pytest.raises(NotFittedError):
        model.predict(X)


# -- sample weights -------------------------------------------------------------------------------


@everyone
def test_sample_weights(Estimator):
    refuses(
        r"sample_weight.shape == \(3,\), expected \(75,\)",
        Estimator(BANK),
        sample_weight=np.ones(3),
    )
    refuses(
        "Negative values in data passed to `sample_weight`",
        Estimator(BANK),
        sample_weight=np.r_[-1.0, np.ones(74)],
    )
    refuses("non-zero|positive and finite sum", Estimator(BANK), sample_weight=np.zeros(75))
    refuses("sample_weight contains NaN", Estimator(BANK), sample_weight=np.full(75, np.nan))
    refuses(
        "sample_weight leaves fewer than 2 samples",
        Estimator(BANK),
        sample_weight=np.r_[1.0, np.zeros(74)],
    )


# -- kernels that cannot take part ----------------------------------------------------------------


@everyone
def test_all_kernels_constant(Estimator):
    refuses(r"Every kernel is constant.*rows of X are equal", Estimator(BANK), np.ones((75, 3)))
    refuses(r"Every kernel is constant", Estimator(mk.per_feature()), np.zeros((75, 3)))
    refuses(r"Every kernel is constant", Estimator("precomputed"), np.ones((75, 75)))


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(
    "weighting", ["uniform", "best", "align", "alignf", mk.AlignF(signed=True)]
)
@both
def test_one_constant_kernel_is_named_and_gets_no_weight(Estimator, weighting, center, normalize):
    Z = np.c_[X, np.full(75, 3.0), np.zeros(75)]
    kernels = [
        mk.Gaussian(0.5, columns=slice(0, 4)),
        mk.Linear(columns=4),
        mk.Polynomial(2, columns=[4, 5]),
        mk.Linear(columns=5),
        mk.Linear(columns=[0, 1]),
    ]
    options = {"weighting": weighting, "normalize": normalize, "center": center, "random_state": 0}
    with pytest.warns(
        UserWarning, match=r"3 of 5 kernels are constant.*weight 0: 'Linear\(columns=4\)'"
    ):
        model = Estimator(kernels, **options).fit(Z, y)
    assert model.kernel_weights_[[1, 2, 3]].tolist() == [0.0, 0.0, 0.0]
    rest = Estimator([kernels[0], kernels[4]], **options).fit(Z, y)
    np.testing.assert_allclose(model.kernel_weights_[[0, 4]], rest.kernel_weights_, atol=1e-8)
    np.testing.assert_allclose(model.predict(Z), rest.predict(Z), atol=1e-6)


def test_constant_and_zero_matrices_are_named():
    given = [np.zeros((75, 75)), mk.Gaussian(0.5)(X), np.full((75, 75), 3.7)]
    bank = mk.precomputed(given, names=["nothing", "round", "flat"])
    with pytest.warns(UserWarning, match=r"2 of 3 kernels.*'nothing', 'flat'.*Drop them"):
        model = Classifier(bank).fit(mk.sample_ids(75), y)
    assert model.kernel_weights_[1] > 0
    assert model.kernel_weights_[[0, 2]].tolist() == [0.0, 0.0]
    with pytest.warns(UserWarning, match=r"'precomputed\[0\]', 'precomputed\[2\]'"):
        Classifier("precomputed").fit(np.stack(given, axis=-1), y)


@pytest.mark.parametrize("weighting", ["uniform", "align", "alignf", mk.AlignF(signed=True)])
@both
def test_copies_of_a_kernel_share_its_weight(Estimator, weighting):
    model = Estimator(mk.gaussians([1.0, 0.1, 1.0, 1.0]), weighting).fit(X, y)
    single = Estimator(mk.gaussians([1.0, 0.1]), weighting).fit(X, y)
    weights = model.kernel_weights_
    np.testing.assert_allclose(weights[[2, 3]], weights[0], rtol=1e-5, atol=1e-9)
    assert model.kernel_names_[0] == "Gaussian(gamma=1) #1"
    if weighting not in ("uniform", "align"):
        assert weights[[0, 2, 3]].sum() == pytest.approx(single.kernel_weights_[0], abs=1e-5)


# -- kernels that are no kernels ------------------------------------------------------------------


def test_shapes_of_given_matrices():
    with pytest.raises(
        ValueError, match=r"'precomputed\[1\]'.*same size.*\(3 x 3\).*shape \(4, 4\)"
    ):
        mk.precomputed([np.eye(3), np.eye(4)])
    with pytest.raises(ValueError, match=r"'wide' must be a square matrix.*shape \(3, 4\)"):
        mk.precomputed([np.ones((3, 4))], names=["wide"])
    with pytest.raises(
        ValueError, match=r"got one matrix of shape \(3, 3\). Write precomputed\(\[K"
    ):
        mk.precomputed(np.eye(3))
    with pytest.raises(ValueError, match=r"at least one matrix; got none"):
        mk.precomputed([])
    with pytest.raises(ValueError, match=r"Got 1 names for 2 matrices"):
        mk.precomputed([np.eye(3), np.eye(3)], names=["a"])
    with pytest.raises(ValueError, match=r"'precomputed\[0\]': expected numbers; got dtype <U1"):
        mk.precomputed([np.full((3, 3), "a")])


@everyone
def test_shapes_of_kernel_arrays(Estimator):
    wanted = r"\(n_samples, n_samples, n_kernels\), kernel axis last; got .*np.stack.*axis=-1"
    refuses(wanted, Estimator("precomputed"), np.ones((75, 70, 2)))
    refuses(wanted, Estimator("precomputed"), np.ones((75, 75, 2, 1)))
    refuses(wanted, Estimator("precomputed"), [np.eye(75), np.eye(75)])
    refuses(wanted, Estimator("precomputed"), X)
    model = Estimator("precomputed").fit(np.stack([np.eye(75), X @ X.T], axis=-1), y)
    with pytest.raises(ValueError, match=r"predict takes .*\(n_new, 75, 2\); got \(5, 75, 1\)"):
        model.predict(np.ones((5, 75)))
    with pytest.raises(ValueError, match=r"\(n_new, 75, 2\); got \(5, 70, 2\)"):
        model.predict(np.ones((5, 70, 2)))


def test_asymmetric_and_missing_entries():
    lopsided = np.eye(75)
    lopsided[2, 3] = 0.5
    missing = np.eye(75)
    missing[2, 3] = missing[3, 2] = np.nan
    message = r"'odd' is not symmetric: .*reaches 0.5 with entries up to 1. Symmetrise"
    with pytest.raises(ValueError, match=message):
        mk.precomputed([np.eye(75), lopsided], names=["fine", "odd"])
    with pytest.raises(ValueError, match=r"'odd' holds NaN or infinite values"):
        mk.precomputed([np.eye(75), missing], names=["fine", "odd"])
    stacked = np.stack([np.eye(75), lopsided], axis=-1)
    refuses(r"'precomputed\[1\]' is not symmetric", Classifier("precomputed"), stacked)
    refuses("contains NaN", Classifier("precomputed"), np.stack([np.eye(75), missing], axis=-1))
    one_sided = mk.Callable(lambda A, B: A[:, [0]] + 0 * B[:, 0], label="first")
    refuses(r"'Callable\(first\)' is not symmetric", Classifier(one_sided))


@both
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_a_negative_definite_matrix(Estimator, normalize, center):
    bank = mk.precomputed([1e-3 * np.eye(75), -mk.Gaussian(1.0)(X)], names=["good", "negative"])
    model = Estimator(bank, "uniform", normalize=normalize, center=center)
    said = (
        r"(most negative eigenvalue is -.*kernel 'negative'|"
        r"'negative' has (trace|a diagonal entry of) -)"
    )
    refuses(said, model, mk.sample_ids(75))
    alone = Estimator(
        mk.precomputed([-np.eye(75)], ["negative"]), normalize=normalize, center=center
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No kernel is aligned")
        with pytest.raises(ValueError, match=said):
            alone.fit(mk.sample_ids(75), y)


@both
@pytest.mark.parametrize("n", [40, 75])  # small ones are factored, others go through Lanczos
def test_an_indefinite_kernel_is_named_with_its_eigenvalue(Estimator, n):
    kernels = [mk.Sigmoid(1.0, -3.0), mk.Gaussian(1.0)]
    model = Estimator(kernels, "uniform", normalize=None)
    with pytest.raises(ValueError, match="not positive semidefinite") as caught:
        model.fit(X[:n], y[:n])
    K = sum(mk.center(kernel(X[:n])) for kernel in kernels) / 2
    alone = np.linalg.eigvalsh(mk.center(kernels[0](X[:n])))[0]
    said = str(caught.value)
    assert f"most negative eigenvalue is {np.linalg.eigvalsh(K)[0]:.2g}"[:-1] in said
    assert f"kernel 'Sigmoid(gamma=1, coef0=-3)' alone: {alone:.2g}"[:-1] in said
    assert "Drop the kernel, or repair its matrix" in said


def test_an_indefinite_kernel_that_others_make_up_for():
    model = Classifier([0.001 * mk.Sigmoid(0.1, 0.0), mk.Gaussian(5.0)], "uniform", normalize=None)
    assert model.fit(X, y).score(X, y) > 0.9


def test_functions_that_are_no_kernels():
    short = mk.Callable(lambda A, B: A @ A.T, label="short")
    model = Classifier(short).fit(X, y)
    with pytest.raises(
        ValueError, match=r"Callable\(short\).*shape \(3, \d+\).*got shape \(3, 3\)"
    ):
        model.predict(X[:3])
    missing = mk.Callable(lambda A, B: A @ B.T * np.nan, label="missing")
    refuses(r"Callable\(missing\) returned NaN or infinite", Classifier(missing))
    words = mk.Callable(lambda A, B: np.full((len(A), len(B)), "a"), label="words")
    refuses(r"Callable\(words\).*numeric matrix.*dtype <U1", Classifier(words))
    with pytest.raises(TypeError, match=r"func must be a function of \(X, Z\); got 3"):
        mk.Callable(3)


# -- columns and views ----------------------------------------------------------------------------

TABLE = pd.DataFrame(X, columns=["age", "weight", "height", "income"])


@everyone
def test_unknown_columns(Estimator):
    refuses(
        r"Gaussian\(gamma=1, columns=\['age', 'wieght'\]\): X has no column 'wieght'.*4 columns.*"
        r"Did you mean 'weight'",
        Estimator([mk.Gaussian(1.0, columns=["age", "wieght"])]),
        TABLE,
    )
    refuses(
        r"column 'age' by name, but X has no column names.*DataFrame",
        Estimator([mk.Linear(columns="age")]),
    )
    refuses(
        r"column index 7 is out of range for X with 4 columns",
        Estimator([mk.Linear(columns=[0, 7])]),
    )
    refuses(
        r"slice\(9, 12\) selects none of the 4 columns",
        Estimator([mk.Linear(columns=slice(9, 12))]),
    )
    refuses(
        r"no column 'hieght'.*Did you mean 'height'",
        Estimator(mk.per_feature(columns=["hieght"])),
        TABLE,
    )


def test_columns_that_name_nothing():
    with pytest.raises(ValueError, match=r"at least one column; got \[\]. Give names"):
        mk.Gaussian(1.0, columns=[])
    with pytest.raises(ValueError, match=r"mask that selects no column"):
        mk.Gaussian(1.0, columns=[False, False])
    with pytest.raises(TypeError, match=r"names \(str\) or indices \(int\); got 0.5 of type float"):
        mk.Gaussian(1.0, columns=[0.5])


@pytest.mark.parametrize(
    ("views", "match"),
    [
        ({"a": mk.Gaussian()}, r"View 'a' must be a pair .*got Gaussian"),
        ({"a": (mk.Gaussian(), [0], 3)}, r"View 'a' must be a pair"),
        ({"a": (mk.Gaussian(columns=0), [1])}, r"View 'a': .*cannot be restricted to columns"),
        ({"a": (mk.Gaussian(), [])}, r"View 'a'.*at least one column; got \[\]"),
        ({"a": (5, [0])}, r"View 'a'.*5"),
        ({"a": (mk.per_feature(), [0, 1])}, r"View 'a'.*per_feature"),
        ({"a": (mk.precomputed([np.eye(3)]), [0])}, r"View 'a'.*cannot be restricted to columns"),
        ({}, r"at least one"),
        ([1], r"mapping|dict"),
    ],
    ids=[
        "no pair",
        "triple",
        "own columns",
        "no columns",
        "number",
        "open",
        "matrix",
        "empty",
        "list",
    ],
)
def test_bad_views(views, match):
    with pytest.raises((ValueError, TypeError), match=match):
        mk.per_view(views)


# -- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernels", "match"),
    [
        ([], r"at least one kernel; got none"),
        (5, r"kernels.*got 5"),
        ("rbf", r"kernels.*'precomputed'.*got 'rbf'"),
        (mk.Gaussian, r"got <class .*Gaussian"),
        ([mk.Gaussian], r"holds kernels such as mk.Gaussian\(gamma=0.5\); got <class"),
        ([1.0, 2.0], r"holds kernels .*got 1.0 of type float"),
        (np.ones((2, 75, 75)), r"matrices in mk.precomputed"),
        (lambda A, B: A @ B.T, r"mk.Callable"),
        ({"a": mk.Gaussian()}, r"got 'a' of type str|mapping|dict"),
    ],
    ids=["empty", "number", "word", "class", "classes", "numbers", "array", "function", "dict"],
)
@both
def test_what_is_no_bank(Estimator, kernels, match):
    refuses(f"(?i){match}", Estimator(kernels), error=(ValueError, TypeError))


def test_an_unknown_word_is_never_read_as_precomputed():
    # A square symmetric X would fit, silently, as a kernel matrix.
    refuses("rbf", Classifier("rbf"), np.eye(10), np.arange(10) % 2, error=(ValueError, TypeError))


@both
def test_unknown_weightings(Estimator):
    names = "'uniform', 'best', 'align', 'alignf'"
    refuses(
        rf"'alignff' is not known; the names are {names}.*Did you mean 'alignf'",
        Estimator(BANK, "alignff"),
    )
    refuses(r"'weighting' parameter .*Got 5", Estimator(BANK, 5))
    refuses(r"'weighting' parameter .*Got <class", Estimator(BANK, mk.AlignF))
    refuses(r"'weighting' parameter .*Got \['align'\]", Estimator(BANK, ["align"]))
    refuses(
        r"Align: q must be greater than 1 \(or None\); got 0.5", Estimator(BANK, mk.Align(q=0.5))
    )
    refuses(r"q must be .*got '2'", Estimator(BANK, mk.Align(q="2")), error=(TypeError, ValueError))
    refuses(r"cv.*got", Estimator(BANK, mk.BestSingle(cv="five")), error=(TypeError, ValueError))


@pytest.mark.parametrize("Estimator", [ClassifierCV, RegressorCV])
def test_searches(Estimator):
    grid = "Cs" if Estimator is ClassifierCV else "alphas"
    for values in ([], [-1.0], [1.0, 0.0], ["a"], [np.nan], [np.inf], [[]]):
        refuses(
            rf"{grid} must be one or more positive finite numbers; got",
            Estimator(BANK, **{grid: values}),
        )
    for values in (1.0, None):
        refuses(rf"'{grid}' parameter .*array-like. Got", Estimator(BANK, **{grid: values}))
    refuses(r"weighting is an empty list; name at least one", Estimator(BANK, []))
    refuses(r"'alignff' is not known.*Did you mean", Estimator(BANK, ["align", "alignff"]))
    refuses(
        r"weighting must be a name or an object such as mk.AlignF\(\); got 5",
        Estimator(BANK, ["align", 5]),
        error=TypeError,
    )
    refuses(r"'acc' is not a valid scoring value", Estimator(BANK, scoring="acc"))
    refuses(r"'cv' parameter .*Got 1 instead", Estimator(BANK, cv=1))
    refuses(r"(?i)split", Estimator(BANK, cv=100))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"center": "yes"}, "'center' parameter .*bool.*Got 'yes'"),
        ({"normalize": "tracee"}, "'normalize' parameter .*'trace'.*Got 'tracee'"),
        ({"normalize": 5}, "'normalize' parameter .*Got 5"),
        ({"normalize": True}, "'normalize' parameter .*Got True"),
        ({"tol": 0.0}, "'tol' parameter .*Got 0.0"),
        ({"tol": "small"}, "'tol' parameter .*Got 'small'"),
        ({"max_iter": -2}, "'max_iter' parameter .*Got -2"),
        ({"n_jobs": 1.5}, "'n_jobs' parameter .*Got 1.5"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": "a"}, "'random_state' parameter .*Got 'a'"),
        ({"verbose": "loud"}, "'verbose' parameter .*Got 'loud'"),
        ({"dtype": "float16"}, "(?i)dtype.*float32.*got 'float16'"),
        ({"dtype": int}, "(?i)dtype.*float32.*got <class 'int'>"),
        ({"dtype": np.float16}, "(?i)dtype.*float32.*got <class 'numpy.float16'>"),
        ({"dtype": str}, "(?i)dtype.*float32.*got <class 'str'>"),
        ({"dtype": 32}, "(?i)dtype.*float32.*got 32"),
    ],
    ids=repr,
)
@everyone
def test_parameters_of_the_wrong_kind(Estimator, options, match):
    if not options.keys() <= Estimator().get_params().keys():
        # Averages always centre, and have no solver.
        assert issubclass(Estimator, (mk.ParzenClassifier, mk.ParzenRegressor))
        assert options.keys() <= {"center", "tol", "max_iter"}
        return
    refuses(match, Estimator(BANK, **options))


@both
def test_costs_and_ridges(Estimator):
    name = "C" if Estimator is Classifier else "alpha"
    for value in (-1, 0, 0.0, "1", None, np.nan, np.inf):
        refuses(
            rf"'{name}' parameter of {Estimator.__name__} must be .*range \(0.*Got {value!r}",
            Estimator(BANK, **{name: value}),
        )


def test_regressor_options():
    refuses("'loss' parameter .*'squared'.*Got 'hinge'", Regressor(BANK, loss="hinge"))
    refuses("'solver' parameter .*Got 'lu'", Regressor(BANK, solver="lu"))


def test_class_weights():
    refuses(
        "'class_weight' parameter .*'balanced'.*Got 'bal'", Classifier(BANK, class_weight="bal")
    )
    refuses(r"\[.*0, .*1, .*2\], are not in class_weight", Classifier(BANK, class_weight={9: 2.0}))
    pair = y < 2
    for value in (0.0, -1.0):
        refuses(
            r"class_weight.*(positive|greater)",
            Classifier(BANK, class_weight={0: value, 1: 1.0}),
            X[pair],
            y[pair],
        )


@everyone
@pytest.mark.parametrize(
    "budget",
    ["lots", -1, 0, True, np.nan, "1.2.3GB", ".GB", "", "GB", "-1GB", "inf"],
    ids=repr,
)
def test_senseless_memory_budgets(Estimator, budget):
    refuses(
        r"memory_budget must be a positive number of bytes, text such as '4GB', or None",
        Estimator(BANK, memory_budget=budget),
    )


@pytest.mark.parametrize(
    "budget",
    [
        10**9,
        1e9,
        np.int64(10**9),
        np.float32(1e9),
        "1GB",
        " 1 gib ",
        "900MB",
        "1000000kb",
        "1.5GB",
        "1TB",
    ],
    ids=repr,
)
def test_sensible_memory_budgets(budget):
    expected = Classifier(BANK).fit(X, y).decision_function(X)
    model = Classifier(BANK, memory_budget=budget).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), expected)


def test_a_bank_that_does_not_fit_the_budget():
    refuses(
        r"combined Gram matrix of 75 samples needs 45 kB, more than the memory budget of 40 kB. "
        r"Raise memory_budget, or use fewer samples",
        Regressor(BANK, solver="cholesky", memory_budget="40kB"),
    )
    function = mk.Callable(lambda A, B: A @ B.T)
    refuses(
        r"1 kernels on 75 samples needs .* kB, more than the memory budget of 10 kB. Raise",
        Regressor(function, memory_budget="10kB"),
    )
    with pytest.raises(MemoryError, match=r"needs .*budget"):
        Classifier(BANK, memory_budget="1kB").fit(X, y)
    wide = np.random.default_rng(0).normal(size=(75, 400))
    refuses(
        r"400 x 400 products of rank-one kernels needs .*Use weighting='align'",
        Classifier(mk.per_feature(), memory_budget="1MB"),
        wide,
    )
    assert (
        Classifier(mk.per_feature(), "align", memory_budget="1MB").fit(wide, y).score(wide, y) == 1
    )


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: mk.Gaussian(-1.0), "Gaussian: gamma must be a positive finite number; got -1.0"),
        (lambda: mk.Gaussian("scale"), "gamma must be a positive finite number; got 'scale'"),
        (lambda: mk.Laplacian(np.nan), "Laplacian: gamma .*got nan"),
        (lambda: mk.Polynomial(2.5), "Polynomial: degree must be a positive whole number; got 2.5"),
        (lambda: mk.Sigmoid(coef0="a"), "Sigmoid: coef0 must be a finite number; got 'a'"),
        (lambda: -1.0 * mk.Linear(), "factor .*must be a positive finite number; got -1.0"),
        (lambda: mk.Linear() ** 0.5, "a fractional power"),
        (lambda: mk.KernelBank([mk.Linear()], names=["a", "b"]), "Got 2 names for 1 kernels"),
        (lambda: mk.per_feature(5), "per_feature needs a kernel on vectors .*got 5"),
        (lambda: mk.per_feature(mk.Linear(columns=1)), "selects its own. Use per_feature"),
        (lambda: mk.gaussians(1.0), "gammas.*got 1.0"),
        (lambda: mk.gaussians([]), "at least one"),
        (lambda: mk.polynomials(2), "degrees.*got 2"),
    ],
    ids=range(13),
)
def test_kernels_and_banks(make, match):
    with pytest.raises((ValueError, TypeError), match=match):
        make()


@pytest.mark.parametrize("how", ["dict", "MuData", "AnnData"])
def test_containers_of_tables_are_refused_with_the_way_to_join_them(how):
    tables = {"rna": np.zeros((4, 2)), "clinic": np.zeros((4, 1))}
    given = {
        "dict": tables,
        "MuData": SimpleNamespace(mod=tables, obs_names=list("abcd")),
        "AnnData": SimpleNamespace(X=tables["rna"], obs_names=list("abcd")),
    }[how]
    said = "X.X, or its table" if how == "AnnData" else r"\['rna', 'clinic'\].*mk.join_views"
    with pytest.raises(TypeError, match=said):
        mk.MultiKernelClassifier().fit(given, [0, 1, 0, 1])


def test_a_rule_without_steps_and_a_device_without_a_name_are_refused():
    X, y = iris()
    with pytest.raises(ValueError, match="max_iter must be a whole number of at least 1; got 0"):
        Classifier(BANK, mk.AlignmentRegularized(max_iter=0)).fit(X, y)
    with pytest.raises(ValueError, match=r"device must be 'cpu'.*got ''"):
        Classifier(BANK, device="").fit(X, y)


# -- arrays and extreme numbers in place of flags, names and numbers -------------------------------


def rule_in_a_fit(rule):
    return Regressor(BANK, rule).fit(X, y)


@pytest.mark.parametrize("odd", [np.ones(3), sp.csr_matrix((2, 2))], ids=["array", "sparse"])
@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda odd: mk.Spectrum(3, unit=odd), "Spectrum: unit must be 'letter' or 'word'"),
        (lambda odd: mk.Spectrum(3, blended=odd), "Spectrum: blended must be True or False"),
        (lambda odd: mk.per_ngram(presence=odd), "presence must be True or False"),
        (lambda odd: mk.EditSimilarity(relative=odd), "relative must be True or False"),
        (lambda odd: mk.EditSimilarity(distance=odd), "distance must be 'levenshtein' or"),
        (lambda odd: mk.Mismatch(m=odd), "m must be a whole number, zero or larger"),
        (lambda odd: mk.WeightedDegree(shift=odd), "shift must be a whole number, zero or larger"),
        (lambda odd: mk.products(BANK, lower=odd), "products: lower must be True or False"),
        (lambda odd: mk.products(BANK, repeated=odd), "products: repeated must be True or False"),
        (lambda odd: mk.join_views({"a": X}, missing=odd), "missing must be 'drop' or 'keep'"),
        (lambda odd: mk.default_bank(X, kind=odd), "kind must be 'tables' or 'gaussians'"),
        (lambda odd: rule_in_a_fit(mk.LpNorm(solver=odd)), "LpNorm: solver must be one of"),
        (lambda odd: rule_in_a_fit(mk.L1(solver=odd)), "solver must be one of"),
        (
            lambda odd: rule_in_a_fit(mk.HierarchicalNorm([0, 1], solver=odd)),
            "HierarchicalNorm: solver must be 'auto', 'alternation' or 'lbfgs'",
        ),
        (
            lambda odd: rule_in_a_fit(mk.LeaveOneOut(shrinkage=odd)),
            "shrinkage must be 'auto' or a number from 0 to 1",
        ),
    ],
)
def test_arrays_in_place_of_flags_and_names(make, match, odd):
    with pytest.raises((TypeError, ValueError), match=f"{match}.*; got"):
        make(odd)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (Classifier(BANK, C=1e308), r"MultiKernelClassifier: C must be .*1e\+150.*got 1e\+308"),
        (mk.KernelEnsembleClassifier(BANK, radius=1e200), "radius must be a number from"),
        (mk.KernelEnsembleClassifier(BANK, radius=1e-320), "radius must be a number from"),
        (mk.SpectralKernelClassifier(BANK[0], trace=1e-200), "trace must be a number from"),
        (mk.VotedKernelClassifier(BANK, sparsity_penalty=1e308), "sparsity_penalty must be"),
        (Classifier(BANK, mk.L2Ball(1e200)), r"radius must be .*at most 1e\+100; got 1e\+200"),
        (Classifier(BANK, mk.L2Ball(center=1e200)), r"center must be .*at most 1e\+100"),
        (Classifier(BANK, mk.AlignmentRegularized(gamma=1e200)), "gamma must be .*at most"),
        (Classifier(BANK, mk.AlignmentRegularized(gamma_norm=1e308)), "gamma_norm must be"),
        (Classifier(BANK, mk.HierarchicalNorm([0, 1], q=None)), "q must be a number; got None"),
        (Classifier(BANK, mk.HierarchicalNorm([[0.0], [1.0]])), "kernel 0.0 of group 0"),
        (ClassifierCV(BANK, "uniform", cv=[[1, 2]]), "cv must be .*row numbers from 0 to 74"),
        (ClassifierCV(BANK, "uniform", cv=np.eye(2)), "cv must be .*row numbers from 0 to 74"),
        (ClassifierCV(BANK, "uniform", cv=[([0, 1], [75])]), "cv must be .*got the rows"),
        (ClassifierCV(BANK, "uniform", scoring=object), "scoring must be a name or a function"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else value[:20],
)
def test_extreme_numbers_and_folds_that_are_none(model, match):
    with pytest.raises((TypeError, ValueError), match=match):
        model.fit(X, y)


@pytest.mark.parametrize("shift", [1e40, 1e70])
def test_votes_on_huge_numbers_fit_without_overflow(shift):
    bank = [mk.Gaussian(0.3), mk.Polynomial(2), mk.Linear(columns=[0])]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = mk.VotedKernelClassifier(bank).fit(X + shift, y)
    assert np.isfinite(model.complexity_).all()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble])
def test_parameters_of_any_type_of_float(kind):
    assert mk.MultiKernelOneClass(BANK, tol=kind(0.5)).fit(X).n_features_in_ == X.shape[1]
    vote = mk.VotedKernelClassifier(BANK, complexity_penalty=kind(0.5), sparsity_penalty=kind(0))
    exact = mk.VotedKernelClassifier(BANK, complexity_penalty=0.5, sparsity_penalty=0.0)
    np.testing.assert_array_equal(vote.fit(X, y).predict(X), exact.fit(X, y).predict(X))
    with pytest.raises(ValueError, match="power must be a positive"):
        mk.Exponential(power=kind(0))


@pytest.mark.parametrize("weights", [[1.0, 2.0], np.zeros(75), np.inf, 1e308, [[1, 2]]])
def test_weights_of_banks_and_learned_kernels(weights):
    with pytest.raises(ValueError, match=r"sample_weight|Sample weights"):
        mk.default_bank(X, sample_weight=weights)
    model = Classifier(BANK, "uniform").fit(X, y)
    with pytest.raises(ValueError, match=r"sample_weight|Sample weights"):
        mk.LearnedKernel(model, X, sample_weight=weights)


def test_a_number_as_weight_of_a_bank_stands_for_equal_weights():
    equal = mk.default_bank(X, sample_weight=np.full(75, 2.0))
    for weight in (2.0, 1e-300, 1e300):
        assert mk.default_bank(X, sample_weight=weight).names == equal.names


def test_a_fold_on_which_every_kernel_is_constant():
    two = np.repeat(X[:2], [37, 38], axis=0)
    folds = [(np.arange(37), np.arange(37, 75))]
    with pytest.raises(ValueError, match="constant on the training part of a fold"):
        RegressorCV(BANK, "uniform", cv=folds).fit(two, np.arange(75.0))


@pytest.mark.parametrize("kind", ["coo", "bsr", "dia", "csr"])
def test_one_sparse_matrix_as_precomputed_kernels(kind):
    with pytest.raises(TypeError, match=r"got a sparse matrix of shape \(4, 4\)"):
        mk.precomputed(sp.eye(4).asformat(kind))
