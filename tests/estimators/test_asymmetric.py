"""Given matrices that are not symmetric: votes take them, everything else refuses them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

import multikernel as mk
from multikernel.grams.memory import MemoryBudget
from tests.naive_voted import distance, full_program, lopsided, sample

POOL, Y = sample(90)
TRAIN = 60
X, y, X_new = POOL[:TRAIN], Y[:TRAIN], POOL[TRAIN:]
IDS = mk.sample_ids(len(POOL))
CALLED = [mk.Callable(lopsided), mk.Callable(distance)]


def bank(**options):
    """The two kernels on the whole pool: row i is where a function is read."""
    matrices = [lopsided(POOL, POOL), distance(POOL, POOL)]
    return mk.precomputed(matrices, ["lopsided", "distance"], symmetric=False, **options)


def voted(kernels, **options):
    return mk.VotedKernelClassifier(kernels, [1.0, 0.5], 0.002, 0.002, **options)


@pytest.mark.parametrize("solver", ["columns", "lp", "descent"])
def test_the_vote_is_that_of_the_same_functions_and_of_the_whole_program(solver):
    given = voted(bank(), solver=solver).fit(IDS[:TRAIN], y)
    called = voted(CALLED, solver=solver).fit(X, y)
    f = given.decision_function(IDS[TRAIN:])
    np.testing.assert_allclose(f, called.decision_function(X_new), atol=1e-9)
    np.testing.assert_array_equal(given.predict(IDS[TRAIN:]), called.predict(X_new))
    matrices = [lopsided(X, X), distance(X, X)]
    penalties = [0.002 * 1.0 + 0.002, 0.002 * 0.5 + 0.002]
    assert given.objective_ == pytest.approx(full_program(matrices, y, penalties), abs=1e-7)
    assert given.duality_gap_ <= given.tol
    assert np.count_nonzero(given.kernel_counts_) == 2


def test_a_prediction_reads_rows_of_new_samples_at_columns_of_training_samples():
    model = voted(bank()).fit(IDS[:TRAIN], y)
    blocks = [lopsided(X_new, X), distance(X_new, X)]
    terms = model.terms_
    f = sum(t["coef"] * blocks[t["kernel"]][:, t["point"]] for t in terms)
    np.testing.assert_allclose(model.decision_function(IDS[TRAIN:]), f, rtol=1e-9)
    # Read the other way round it is another function.
    other = [lopsided(X, X_new).T, distance(X, X_new).T]
    g = sum(t["coef"] * other[t["kernel"]][:, t["point"]] for t in terms)
    assert np.abs(f - g).max() > 0.05
    shares = model.decision_function(IDS[TRAIN:], split=True)
    np.testing.assert_allclose(shares.sum(axis=1), f, rtol=1e-9)


def test_train_by_train_and_test_by_train_arrays_say_the_same():
    stack = np.stack([lopsided(X, X), distance(X, X)], axis=-1)
    new = np.stack([lopsided(X_new, X), distance(X_new, X)], axis=-1)
    array = voted("precomputed").fit(stack, y)
    ids = voted(bank()).fit(IDS[:TRAIN], y)
    np.testing.assert_allclose(
        array.decision_function(new), ids.decision_function(IDS[TRAIN:]), atol=1e-9
    )


def test_nothing_is_copied_or_written():
    stack = np.stack([lopsided(POOL, POOL), distance(POOL, POOL)])
    before = stack.copy()
    stack.flags.writeable = False
    kernels = mk.precomputed(stack, symmetric=False)
    model = clone(voted(kernels)).fit(IDS[:TRAIN], y)
    assert all(np.shares_memory(k.matrix, stack) for k in model.bank_)
    np.testing.assert_array_equal(stack, before)


def test_cross_validation_slices_rows_and_columns():
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    given = cross_val_score(voted(bank()), IDS, Y, cv=folds)
    np.testing.assert_array_equal(given, cross_val_score(voted(CALLED), POOL, Y, cv=folds))
    grid = {"sparsity_penalty": [0.001, 0.01, 0.1]}
    found = GridSearchCV(voted(bank()), grid, cv=folds).fit(IDS, Y)
    other = GridSearchCV(voted(CALLED), grid, cv=folds).fit(POOL, Y)
    scores = [search.cv_results_["mean_test_score"] for search in (found, other)]
    np.testing.assert_array_equal(*scores)


def test_the_search_of_the_library():
    options = dict(complexity="monte-carlo", n_draws=50, cv=3, random_state=0)
    given = mk.VotedKernelClassifierCV(bank(), **options).fit(IDS, Y)
    called = mk.VotedKernelClassifierCV(CALLED, **options).fit(POOL, Y)
    assert given.complexity_penalty_ == called.complexity_penalty_
    assert given.sparsity_penalty_ == called.sparsity_penalty_
    np.testing.assert_allclose(
        given.decision_function(IDS), called.decision_function(POOL), atol=1e-8
    )


def test_sample_weights_and_classes():
    weights = np.where(np.arange(TRAIN) % 3 == 0, 2.0, 1.0)
    given = voted(bank()).fit(IDS[:TRAIN], y, sample_weight=weights)
    often = np.repeat(np.arange(TRAIN), weights.astype(int))
    repeated = voted(bank()).fit(IDS[often], y[often])
    np.testing.assert_allclose(
        given.decision_function(IDS), repeated.decision_function(IDS), atol=1e-7
    )
    three = np.digitize(POOL[:, 0], [-0.5, 0.5])
    model = voted(bank()).fit(IDS, three)
    assert model.decision_function(IDS).shape == (len(POOL), 3)


def test_saved_files(tmp_path):
    model = voted(bank()).fit(IDS[:TRAIN], y)
    mk.save(model, tmp_path / "vote.skops")
    loaded = mk.load(tmp_path / "vote.skops")
    np.testing.assert_array_equal(loaded.decision_function(IDS), model.decision_function(IDS))
    assert loaded.bank_.names == ["lopsided", "distance"]
    with pytest.raises(ValueError, match="not part of the model file"):
        loaded.fit(IDS[:TRAIN], y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(IDS), model.decision_function(IDS))


def test_a_certificate_of_such_a_vote():
    model = voted(bank()).fit(IDS[:TRAIN], y)
    found = model.certificate(IDS[:TRAIN], y)
    called = voted(CALLED).fit(X, y)
    assert found.risk(proven=False) == pytest.approx(called.certificate(X, y).risk(proven=False))
    assert any("largest value on the sample" in note for note in found.unmet)


def test_kernels_made_of_such_kernels():
    lop, near = bank()
    # Products and sums of them, with symmetric kernels beside them.
    mixed = [lop * near, 2.0 * lop + near, lop**2, mk.precomputed([np.eye(90)])[0]]
    model = mk.VotedKernelClassifier(mixed, [1.0] * 4, 0.0, 0.01).fit(IDS[:TRAIN], y)
    A, B = lopsided(X, X), distance(X, X)
    program = full_program([A * B, 2 * A + B, A**2, np.eye(TRAIN)], y, [0.01] * 4)
    assert model.objective_ == pytest.approx(program, abs=1e-7)


def test_the_kernels_are_values():
    matrix = lopsided(POOL, POOL)
    one = mk.precomputed([matrix], symmetric=False)
    assert one == mk.precomputed([matrix], symmetric=False)
    assert repr(one[0]) == "Precomputed('precomputed[0]', 90 samples, not symmetric)"
    assert not one[0].is_symmetric and not (one[0] + mk.Linear()).is_symmetric
    assert not (one[0] ** 2).is_symmetric and not (3.0 * one[0]).is_symmetric
    symmetric = distance(POOL, POOL)
    given = mk.precomputed([symmetric])
    assert given[0].is_symmetric
    assert given != mk.precomputed([symmetric], symmetric=False)


REASON = "'lopsided' was passed with symmetric=False.*needed here.*VotedKernelClassifier"


@pytest.mark.parametrize(
    "model",
    [
        mk.MultiKernelClassifier(bank(), "uniform"),
        mk.MultiKernelClassifier(bank(), "alignf"),
        mk.MultiKernelClassifier(bank(), "l1"),
        mk.MultiKernelClassifier(bank(), "uniform", memory_budget="2MB"),
        mk.MultiKernelRegressor(bank(), "align"),
        mk.MultiKernelOneClass(bank(), "uniform"),
        mk.MultiKernelClassifierCV(bank()),
        mk.MultiKernelRegressorCV(bank()),
        mk.KernelEnsembleClassifier(bank()),
        mk.KernelEnsembleRegressor(bank()),
        mk.SpectralKernelClassifier(bank(), family="convex"),
        mk.ParzenClassifier(bank()),
        mk.ParzenRegressor(bank()),
        mk.ConsensusKernel(bank()),
        mk.KernelClustering(2, bank()),
        mk.KernelFeatures(mk.MultiKernelClassifier(bank(), "uniform")),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_other_estimator_refuses_them_with_the_reason(model):
    with pytest.raises(ValueError, match=REASON):
        model.fit(IDS, (Y > 0).astype(int))


def test_every_estimator_is_tried():
    """A new estimator has to be added to the list above, or to the votes."""
    from multikernel.estimators.base import MultiKernelEstimator

    classes = [value for value in (getattr(mk, n) for n in mk.__all__) if isinstance(value, type)]
    estimators = {cls.__name__ for cls in classes if issubclass(cls, MultiKernelEstimator)}
    refuse = {name for name in estimators if getattr(mk, name)._needs_symmetric_kernels}
    assert estimators - refuse == {"VotedKernelClassifier", "VotedKernelClassifierCV"}
    marks = test_every_other_estimator_refuses_them_with_the_reason.pytestmark
    assert refuse == {type(model).__name__ for model in marks[0].args[1]}


def test_products_and_plain_functions_refuse_them_as_well():
    lop, _ = bank()
    with pytest.raises(ValueError, match="was passed with symmetric=False"):
        mk.MultiKernelClassifier([lop * lop, mk.precomputed([np.eye(90)])[0]]).fit(IDS, Y)
    with pytest.raises(ValueError, match="was passed with symmetric=False"):
        mk.alignment_study(bank(), IDS, Y)
    with pytest.raises(ValueError, match="was passed with symmetric=False"):
        bank().plan(IDS).grams(IDS, budget=MemoryBudget.of(None))


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ([np.ones((3, 4))], "square"),
        ([np.eye(3), np.eye(4)], r"precomputed\[1\].*\(3 x 3\); got shape \(4, 4\)"),
        ([np.array([[1.0, np.nan], [0.0, 1.0]])], "NaN or infinite"),
        ([np.array([[1.0, 0.0], [np.inf, 1.0]], dtype=np.float16)], "NaN or infinite"),
        ([np.array([["a", "b"], ["c", "a"]])], "expected numbers"),
        (np.ones((2, 2)), r"precomputed\(\[K\]\)"),
        ([], "at least one matrix"),
    ],
)
def test_other_faults_of_matrices_are_still_refused(matrices, message):
    with pytest.raises(ValueError, match=message):
        mk.precomputed(matrices, symmetric=False)


def test_the_refusal_of_a_matrix_names_the_way_in():
    with pytest.raises(ValueError, match=r"not symmetric.*symmetric=False"):
        mk.precomputed([lopsided(POOL, POOL)])
    with pytest.raises(TypeError, match="symmetric must be True or False; got 'no'"):
        mk.precomputed([np.eye(2)], symmetric="no")


def test_arrays_of_the_wrong_shape():
    stack = np.stack([lopsided(X, X), distance(X, X)], axis=-1)
    model = voted("precomputed").fit(stack, y)
    with pytest.raises(ValueError, match=r"\(n_new, 60, 2\); got \(30, 90, 2\)"):
        model.predict(np.ones((30, 90, 2)))
    with pytest.raises(ValueError, match=r"\(n_new, 60, 2\); got \(30, 60, 1\)"):
        model.predict(np.ones((30, 60, 1)))
    with pytest.raises(ValueError, match="n_samples, n_samples"):
        voted("precomputed").fit(stack[:, :40], y)
    fitted = voted(bank()).fit(IDS[:TRAIN], y)
    with pytest.raises(ValueError, match="knows samples 0 to 89; X holds ids from 0 to 90"):
        fitted.predict(mk.sample_ids(91))
