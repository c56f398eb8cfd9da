"""The voted classifier as its users meet it."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import multikernel as mk
from multikernel.estimators.voted import VotedKernelClassifier
from multikernel.estimators.voted_search import VotedKernelClassifierCV
from multikernel.grams.rankone import RankOneExpansion
from multikernel.grams.shared import Encoder
from tests.estimators.cases import BANKS, iris
from tests.naive_voted import MIXED, distance, full_program, lopsided, sample

X, y = sample(60)
X_new, y_new = sample(40, seed=9)
X3, y3 = iris()


def decisions(model, X_train, X_new, machine=0):
    """f by its definition, from the public attributes."""
    f = np.full(len(X_new), model.intercept_[machine])
    for term in model.terms_[model.terms_["machine"] == machine]:
        kernel = model.bank_[int(term["kernel"])]
        f += term["coef"] * kernel(X_new, X_train[[term["point"]]])[:, 0]
    return f


# -- what is fitted -------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "columns", "lp", "descent"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_attributes_say_what_was_fitted(solver, fit_intercept):
    model = VotedKernelClassifier(
        list(MIXED),
        complexity_penalty=0.05,
        sparsity_penalty=0.01,
        solver=solver,
        fit_intercept=fit_intercept,
    ).fit(X, y)
    K = [kernel(X, X) for kernel in MIXED]
    np.testing.assert_allclose(model.penalties_, 0.05 * model.complexity_ + 0.01)
    best = full_program(K, y, model.penalties_, fit_intercept)
    assert abs(model.objective_ - best) < 1e-7
    assert 0 <= model.duality_gap_ <= 1e-6
    np.testing.assert_allclose(
        model.decision_function(X_new), decisions(model, X, X_new), rtol=1e-9, atol=1e-11
    )
    assert model.n_terms_ == len(model.terms_) == model.kernel_counts_.sum()
    np.testing.assert_array_equal(model.support_, np.unique(model.terms_["point"]))
    for point, kernels in zip(model.support_, model.support_kernels_, strict=True):
        mine = model.terms_["kernel"][model.terms_["point"] == point]
        np.testing.assert_array_equal(np.sort(mine), kernels)
    assert model.intercept_.shape == (1,) and (model.intercept_[0] != 0) == fit_intercept
    assert model.complexity_interval_.shape == (len(MIXED), 2)
    assert model.history_[-1]["gap"] == model.duality_gap_
    assert model.score(X_new, y_new) > 0.6


@pytest.mark.parametrize("name", list(BANKS))
def test_every_implementation_of_the_waist(name):
    model = VotedKernelClassifier(BANKS[name]).fit(X3[:, :4], y3)
    shares = model.decision_function(X3, split=True)
    assert shares.shape == (len(X3), len(model.kernel_names_), 3)
    np.testing.assert_allclose(
        shares.sum(axis=1) + model.intercept_, model.decision_function(X3), atol=1e-10
    )
    assert model.score(X3, y3) > (0.8 if name == "rank-one" else 0.9)
    assert np.all(shares[:, model.kernel_counts_ == 0] == 0)


def test_prediction_touches_only_the_selected_pairs():
    asked = []

    def spy(A, B):
        asked.append((len(A), len(B)))
        return np.exp(-0.3 * np.abs(A[:, None] - B[None]).sum(axis=2))

    def unused(A, B):
        if len(A) != len(X):
            raise AssertionError("a kernel without a term was evaluated")
        return 1e-6 * np.cos(A @ B.T)

    bank = [mk.Callable(spy), mk.Callable(unused)]
    model = VotedKernelClassifier(bank, [0.01, 1.0], 1.0, 0.0).fit(X, y)
    assert model.kernel_counts_[1] == 0 < model.kernel_counts_[0] < len(X) / 2
    asked.clear()
    model.predict(X_new)
    assert asked == [(len(X_new), int(model.kernel_counts_[0]))]


def test_new_inputs_are_encoded_once_for_each_part_of_the_bank(monkeypatch, tmp_path):
    bank = mk.gaussians([0.1, 0.5, 2.0]) + mk.per_feature(mk.Linear())
    model = VotedKernelClassifier(bank, np.ones(6), 0.0, 1e-3).fit(X, y)
    assert np.count_nonzero(model.kernel_counts_[:3]) > 1  # of the part with distances
    assert np.count_nonzero(model.kernel_counts_[3:]) > 1  # of the part with features
    want = model.decision_function(X_new)
    loaded = mk.load(mk.save(model, tmp_path / "vote.skops"))
    calls = []

    def count(cls, name):
        before = getattr(cls, name)
        monkeypatch.setattr(cls, name, lambda *given: calls.append(cls) or before(*given))

    count(Encoder, "__call__")
    count(RankOneExpansion, "encode")
    for one in (model, pickle.loads(pickle.dumps(model)), loaded):
        calls.clear()
        np.testing.assert_array_equal(one.decision_function(X_new), want)
        assert sorted(cls.__name__ for cls in calls) == ["Encoder", "RankOneExpansion"]


def test_a_constant_kernel_votes():
    """Kernels vote as built: a constant one is an intercept with a penalty."""
    often = np.where(np.arange(len(y)) % 4 == 0, -1.0, 1.0)

    def one(A, B):
        return np.ones((len(A), len(B)))

    model = VotedKernelClassifier([mk.Callable(one)], [1.0], 0.0, 0.01).fit(X, often)
    assert model.n_terms_ == 1
    np.testing.assert_allclose(model.decision_function(X_new), np.ones(len(X_new)), rtol=1e-9)


def test_non_symmetric_kernels_are_functions_of_their_first_argument():
    model = VotedKernelClassifier([mk.Callable(lopsided)], [1.0], 0.0, 0.005).fit(X, y)
    K = lopsided(X_new, X)
    f = K[:, model.terms_["point"]] @ model.terms_["coef"]
    np.testing.assert_allclose(model.decision_function(X_new), f, rtol=1e-10)
    other = lopsided(X, X_new).T[:, model.terms_["point"]] @ model.terms_["coef"]
    assert not np.allclose(f, other)
    assert abs(model.objective_ - full_program([lopsided(X, X)], y, [0.005])) < 1e-7


def test_sigmoids_of_negative_slope_vote():
    """``tanh(-u) = -tanh(u)``: the same functions with the other sign, and the same ``|a|``."""
    pairs = [(0.7, 0.1), (-0.4, 0.3), (-1.5, -0.2)]
    there = [mk.Sigmoid(a, b) for a, b in pairs]
    back = [mk.Sigmoid(-a, -b) for a, b in pairs]
    one = VotedKernelClassifier(there, "sigmoid", 0.005, 0.003).fit(X, y)
    two = VotedKernelClassifier(back, "sigmoid", 0.005, 0.003).fit(X, y)
    np.testing.assert_allclose(one.complexity_, [0.7, 0.4, 1.5])
    np.testing.assert_allclose(two.complexity_, [0.7, 0.4, 1.5])
    assert one.objective_ == pytest.approx(two.objective_, abs=1e-9)
    np.testing.assert_allclose(
        one.decision_function(X_new), two.decision_function(X_new), atol=1e-7
    )
    matrices = [np.tanh(a * X @ X.T + b) for a, b in pairs]
    assert one.objective_ == pytest.approx(full_program(matrices, y, one.penalties_), abs=1e-7)
    assert one.kernel_counts_[1:].sum() > 0
    drawn = VotedKernelClassifier(there, "monte-carlo", 0.05, 0.003, random_state=0).fit(X, y)
    program = full_program(matrices, y, drawn.penalties_)
    assert drawn.objective_ == pytest.approx(program, abs=1e-7)


def test_a_sigmoid_of_negative_slope_is_refused_where_its_matrix_is_indefinite():
    with pytest.raises(ValueError, match="positive semidefinite"):
        mk.MultiKernelClassifier([mk.Sigmoid(-1.0)], "uniform", center=False).fit(X, y)


def test_kernels_evaluated_in_every_pass_give_the_same_vote():
    bank = [mk.Callable(lopsided), mk.Callable(distance), mk.Gaussian(0.5)]
    many = sample(200)
    roomy = VotedKernelClassifier(bank).fit(*many)
    tight = VotedKernelClassifier(bank, memory_budget="1.2MB").fit(*many)
    assert "again in every pass" in str(tight.grams_) and "again" not in str(roomy.grams_)
    np.testing.assert_array_equal(tight.terms_["point"], roomy.terms_["point"])
    np.testing.assert_allclose(
        tight.decision_function(X_new), roomy.decision_function(X_new), atol=1e-9
    )


def test_threads_change_nothing():
    one = VotedKernelClassifier(list(MIXED)).fit(X, y)
    two = VotedKernelClassifier(list(MIXED), n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.terms_, two.terms_)


# -- inputs ---------------------------------------------------------------------------------------


def test_given_matrices_that_are_not_symmetric():
    K = np.stack([lopsided(X, X), distance(X, X)], axis=-1)
    before = K.copy()
    given = VotedKernelClassifier("precomputed").fit(K, y)
    called = VotedKernelClassifier([mk.Callable(lopsided), mk.Callable(distance)]).fit(X, y)
    np.testing.assert_array_equal(K, before)
    new = np.stack([lopsided(X_new, X), distance(X_new, X)], axis=-1)
    np.testing.assert_allclose(
        given.decision_function(new), called.decision_function(X_new), atol=1e-10
    )
    scores = cross_val_score(VotedKernelClassifier("precomputed"), K, y)
    np.testing.assert_allclose(scores, cross_val_score(called, X, y))


def test_sample_ids():
    matrices = [mk.Gaussian(0.5)(np.vstack([X, X_new])), mk.Linear()(np.vstack([X, X_new]))]
    ids = mk.sample_ids(100)
    model = VotedKernelClassifier(mk.precomputed(matrices)).fit(ids[:60], y)
    plain = VotedKernelClassifier([mk.Gaussian(0.5), mk.Linear()]).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(ids[60:]), plain.decision_function(X_new), atol=1e-9
    )


def test_sparse_and_frames_and_single_precision():
    bank = mk.per_feature(mk.Linear()) + mk.gaussians([0.1, 1.0]) + [mk.Laplacian(0.3)]
    dense = VotedKernelClassifier(bank).fit(X3, y3)
    sparse = VotedKernelClassifier(bank).fit(sp.csr_matrix(X3), y3)
    frame = pd.DataFrame(X3, columns=list("abcd"))
    named = VotedKernelClassifier(bank).fit(frame, y3)
    for model, data in ((sparse, sp.csc_matrix(X3)), (named, frame)):
        np.testing.assert_allclose(
            model.decision_function(data), dense.decision_function(X3), atol=1e-7
        )
    single = VotedKernelClassifier(mk.gaussians([0.5])).fit(X3.astype(np.float32), y3)
    double = VotedKernelClassifier(mk.gaussians([0.5])).fit(X3, y3)
    np.testing.assert_allclose(
        single.decision_function(X3), double.decision_function(X3), atol=1e-3
    )


def test_labels_of_any_kind():
    words = np.where(y > 0, "yes", "no")
    model = VotedKernelClassifier().fit(X, words)
    assert set(model.predict(X_new)) == {"no", "yes"}
    numbers = VotedKernelClassifier().fit(X, y)
    np.testing.assert_array_equal(model.predict(X_new) == "yes", numbers.predict(X_new) > 0)


def test_several_classes_are_votes_against_the_rest():
    model = VotedKernelClassifier(mk.gaussians([0.1, 1.0]), "gamma").fit(X3, y3)
    total = 0.0
    for c in range(3):
        one = VotedKernelClassifier(mk.gaussians([0.1, 1.0]), "gamma").fit(X3, y3 == c)
        np.testing.assert_allclose(
            model.decision_function(X3)[:, c], one.decision_function(X3), atol=1e-9
        )
        mine = model.terms_[model.terms_["machine"] == c]
        np.testing.assert_array_equal(mine["point"], one.terms_["point"])
        total += one.objective_
    assert model.objective_ == pytest.approx(total)
    assert len(model.history_) == 3


def test_weights_are_repetitions(rng):
    counts = rng.integers(0, 4, size=len(y))
    repeated = np.repeat(np.arange(len(y)), counts)
    for options in ({}, {"fit_intercept": True}, {"class_weight": "balanced"}):
        weighted = VotedKernelClassifier(list(MIXED), **options)
        weighted.fit(X, y, sample_weight=counts)
        twice = VotedKernelClassifier(list(MIXED), **options).fit(X[repeated], y[repeated])
        assert weighted.objective_ == pytest.approx(twice.objective_, rel=1e-9)
        np.testing.assert_allclose(
            weighted.decision_function(X_new), twice.decision_function(X_new), atol=1e-8
        )
        assert not set(weighted.support_) & set(np.flatnonzero(counts == 0))


def test_class_weights_move_the_decision():
    even = VotedKernelClassifier(mk.gaussians([0.5]), "gamma", 0.0, 0.02).fit(X, y)
    heavy = VotedKernelClassifier(
        mk.gaussians([0.5]), "gamma", 0.0, 0.02, class_weight={1: 5.0, -1: 1.0}
    ).fit(X, y)
    assert heavy.decision_function(X_new).mean() > even.decision_function(X_new).mean()


def test_a_second_fit_leaves_nothing_of_the_first():
    model = VotedKernelClassifier(mk.gaussians([0.1, 1.0])).fit(X, y)
    assert hasattr(model, "complexity_interval_")
    assert not hasattr(model.set_params(complexity="gamma").fit(X, y), "complexity_interval_")
    search = VotedKernelClassifierCV(mk.gaussians([0.1, 1.0]), "local", [0.1], [0.01], cv=2)
    assert hasattr(search.fit(X, y), "local_radius_")
    assert not hasattr(search.set_params(complexity="gamma").fit(X, y), "local_radius_")


def test_banks_that_are_made_from_the_sample(rng):
    sequences = pytest.importorskip("multikernel.kernels.sequences")
    labels = np.where(np.arange(40) % 2 == 0, "plain", "rich")
    texts = [["".join(rng.choice(list("ACCC" if t == "plain" else "ACGT"), 12))] for t in labels]
    T = np.array(texts, dtype=object)
    bank = sequences.per_ngram(2, 5, unit="letter")
    for model in (VotedKernelClassifier(bank), VotedKernelClassifierCV(bank, cv=3)):
        model.fit(T, labels)
        assert len(model.kernel_names_) == len(model.complexity_) == len(model.kernel_counts_) > 1
        assert model.duality_gap_ <= model.tol
        assert model.score(T, labels) > 0.8
        assert model.certificate(T, labels).risk() == np.inf  # the kernels saw the sample
        new = np.array([["ACGTACGTAACC"], ["CCCCCC"], ["GGTT"]], dtype=object)
        f = np.zeros(3)
        for term in model.terms_:
            gram, anchor = model.kernel_names_[term["kernel"]], T[term["point"], 0]
            f += (
                term["coef"]
                * np.array([_occurs(gram, s) for s in new[:, 0]])
                * _occurs(gram, anchor)
            )
        np.testing.assert_allclose(model.decision_function(new), f, rtol=1e-12, atol=1e-14)


def _occurs(gram, text):
    return sum(text[i : i + len(gram)] == gram for i in range(len(text)))


def test_it_is_an_estimator_like_others(tmp_path):
    model = VotedKernelClassifier(mk.gaussians([0.1, 1.0])).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X_new), model.decision_function(X_new))
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(clone(model), {"sparsity_penalty": [0.03, 0.001]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    again = clone(model).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.best_estimator_.terms_, again.terms_)
    # Far fewer points are kept than were seen.
    assert len(pickle.dumps(model)) < 20_000 + 8 * X.shape[1] * 60


def test_norm_one_machine_and_complexity():
    """lambda = 0 ignores r_k; with lambda the simpler of two kernels is preferred."""
    bank = mk.gaussians([0.3, 3.0])
    plain = VotedKernelClassifier(bank, [1.0, 1.0], 0.0, 0.01).fit(X, y)
    other = VotedKernelClassifier(bank, [5.0, 0.1], 0.0, 0.01).fit(X, y)
    np.testing.assert_array_equal(plain.terms_, other.terms_)
    wide = VotedKernelClassifier(bank, "gamma", 0.01, 0.0).fit(X, y)
    narrow = VotedKernelClassifier(bank, [3.0, 0.3], 0.01, 0.0).fit(X, y)
    share = [model.kernel_counts_[0] / model.n_terms_ for model in (wide, narrow)]
    assert share[0] > 0.5 > share[1]


@pytest.mark.parametrize("how", ["auto", "monte-carlo", "trace", "local", "degree"])
def test_named_terms_on_polynomials(how):
    model = VotedKernelClassifier(
        mk.polynomials(range(1, 11)), how, complexity_penalty=1e-3, sparsity_penalty=1e-4
    ).fit(X, y)
    assert model.complexity_.shape == (10,) and np.all(np.diff(model.complexity_[1:]) > 0)
    assert hasattr(model, "complexity_interval_") == (how in ("auto", "monte-carlo"))
    assert model.duality_gap_ < 1e-6 and model.score(X_new, y_new) > 0.6


# -- what it says ---------------------------------------------------------------------------------


def test_penalties_that_leave_nothing_are_said():
    with pytest.warns(UserWarning, match=r"the vote has no terms.*times the largest.*Lower"):
        model = VotedKernelClassifier(mk.gaussians([1.0]), sparsity_penalty=10.0).fit(X, y)
    assert model.n_terms_ == 0 and model.objective_ == pytest.approx(1.0)
    assert len(model.support_) == 0 and model.support_kernels_ == []
    assert set(model.predict(X_new)) == {-1.0}
    assert model.decision_function(X_new, split=True).shape == (40, 1)
    factor = 1 / 10.01
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        VotedKernelClassifier(mk.gaussians([1.0]), sparsity_penalty=10.0 * factor**3).fit(X, y)


def test_the_warning_knows_the_largest_penalty():
    bank, r = mk.gaussians([1.0]), [1.0]
    with pytest.warns(UserWarning, match="has no terms") as caught:
        VotedKernelClassifier(bank, r, 0.0, 10.0).fit(X, y)
    factor = float(str(caught[0].message).split("penalties are ")[1].split(" times")[0])
    with pytest.warns(UserWarning, match="has no terms"):
        VotedKernelClassifier(bank, r, 0.0, 1.01 * 10.0 / factor).fit(X, y)
    assert VotedKernelClassifier(bank, r, 0.0, 0.99 * 10.0 / factor).fit(X, y).n_terms_ == 1


def test_too_few_rounds_are_said():
    model = VotedKernelClassifier(mk.gaussians([0.1, 1.0]), [1.0, 1.0], 0.0, 1e-3, "columns")
    with pytest.warns(ConvergenceWarning, match=r"after 1 rounds at a relative duality gap of"):
        model.set_params(max_iter=1).fit(X, y)
    assert model.duality_gap_ > 1e-6


def test_verbose_speaks(capsys):
    VotedKernelClassifier(mk.gaussians([0.5]), verbose=1).fit(X, y)
    out = capsys.readouterr().out
    assert "1 kernels on 60 samples" in out and "terms at" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"complexity": "degrees"}, "'complexity' parameter"),
        ({"complexity": [1.0, 2.0, 3.0]}, r"complexity must be.*2 finite non-negative numbers"),
        ({"complexity": "degree"}, r"Gaussian\(gamma=0\.1\).*polynomials only"),
        ({"complexity_penalty": -1.0}, "'complexity_penalty' parameter"),
        ({"sparsity_penalty": np.nan}, "'sparsity_penalty' parameter"),
        ({"complexity_penalty": 0, "sparsity_penalty": 0}, "both 0.*1e-8"),
        ({"complexity": [0.0, 1.0], "sparsity_penalty": 0}, r"gamma=0\.1.*must be positive"),
        ({"solver": "simplex"}, "'solver' parameter"),
        ({"n_draws": 1}, "'n_draws' parameter"),
        ({"local_radius": 0.0}, "'local_radius' parameter"),
        ({"memory_budget": "lots"}, "memory_budget must be"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        VotedKernelClassifier(mk.gaussians([0.1, 1.0]), **options).fit(X, y)


def test_bad_input():
    bank = mk.gaussians([0.1])
    with pytest.raises(NotFittedError):
        VotedKernelClassifier(bank).predict(X)
    with pytest.raises(ValueError, match="only one class"):
        VotedKernelClassifier(bank).fit(X, np.ones(60))
    with pytest.raises(ValueError, match="NaN"):
        VotedKernelClassifier(bank).fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(TypeError, match=r"mk\.Callable"):
        VotedKernelClassifier(lopsided).fit(X, y)
    with pytest.raises(ValueError, match=r"Polynomial.*overflows"):
        VotedKernelClassifier(mk.polynomials([300])).fit(100 * X, y)

    def hole(A, B):
        return np.where(A @ B.T > 2, np.nan, 1.0)

    with pytest.raises(ValueError, match=r"Callable\(hole\) returned NaN"):
        VotedKernelClassifier([mk.Callable(hole)]).fit(X, y)
    model = VotedKernelClassifier(bank).fit(X, y)
    with pytest.raises(ValueError, match="2 features"):
        model.predict(X[:, :2])
