"""Ensembles of kernel predictors: both stages against slow twins, leakage, and odd input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

import multikernel as mk
from multikernel.estimators.ensemble import KernelEnsembleClassifier, KernelEnsembleRegressor
from multikernel.grams.memory import MemoryBudget
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.sequences import Spectrum
from multikernel.learners.ridge import Ridge
from multikernel.problem import Target
from multikernel.problem.losses import Hinge, Squared
from multikernel.solvers.ensemble.hypotheses import check_partition, out_of_fold
from multikernel.solvers.ensemble.problem import HypothesisBall, combine_hypotheses
from tests.estimators.cases import BANKS, NORMALIZATIONS, iris, stratified, waves

BANK = mk.gaussians([0.02, 0.3, 4.0]) + KernelBank([mk.Linear()])


def alone(bank, k):
    return KernelBank([bank[k]])


def decisions(model, X):
    """Decision values with one column per machine."""
    return model.decision_function(X).reshape(len(X), -1)


def raw_grams(bank, X):
    budget = MemoryBudget.of(None)
    return bank.plan(X).grams(X, budget=budget)


# -- against slow twins ---------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize(("norm", "signed"), [("l1", False), ("l2", True)])
@pytest.mark.parametrize("classes", [2, 3])
def test_classifier_equals_machines_trained_one_by_one(normalize, norm, signed, classes):
    X, y = iris(3, classes)
    new = iris(5, classes)[0] + 0.1
    splits = stratified(y, 3)
    options = {"C": 2.0, "normalize": normalize}
    model = KernelEnsembleClassifier(BANK, norm, signed=signed, cv=splits, **options).fit(X, y)

    machines = [mk.MultiKernelClassifier(alone(BANK, k), "uniform", **options) for k in range(4)]
    t = 1 if classes == 2 else classes
    H = np.empty((len(X), 4, t))
    for train, test in splits:
        for k, machine in enumerate(machines):
            H[test, k] = decisions(machine.fit(X[train], y[train]), X[test])
    np.testing.assert_allclose(model.out_of_fold_, H, atol=1e-7)
    if t == 1:
        Y = np.where(y == model.classes_[1], 1.0, -1.0)[:, None]
    else:
        Y = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    ball = HypothesisBall({"l1": 1, "l2": 2}[norm], signed)
    second = combine_hypotheses(H, Y, np.ones(len(X)), Hinge(), ball)
    assert model.objective_ == pytest.approx(second.objective, rel=1e-6)
    assert model.weights_gap_ <= 1e-9 and ball.contains(model.kernel_weights_)
    whole = np.stack([decisions(m.fit(X, y), new) for m in machines], axis=1)
    # a vote among machines with the weights the model found, and with its own intercept
    vote = np.einsum("nkt,k->nt", whole, model.kernel_weights_)
    difference = decisions(model, new) - vote
    np.testing.assert_allclose(difference, np.tile(difference[:1], (len(new), 1)), atol=1e-7)
    # That intercept is the best one for the held-out values.
    F = np.einsum("nkt,k->nt", H, model.kernel_weights_)
    held = Hinge().value(F, Y, np.ones(len(X)), difference[0])
    assert held.sum() == pytest.approx(model.objective_, rel=1e-6)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("name", BANKS)
def test_regressor_equals_machines_trained_one_by_one(outputs, name):
    X, y = waves(40, outputs)
    new = waves(15, outputs, seed=8)[0]
    bank = BANKS[name]
    split = KFold(4, shuffle=True, random_state=0)
    model = KernelEnsembleRegressor(bank, "l2", 0.5, cv=split, radius=0.8).fit(X, y)

    closed = raw_grams(bank, X)
    splits = list(split.split(X))
    Y = y.reshape(len(y), -1)
    H = np.empty((40, closed.p, outputs))
    whole = np.empty((15, closed.p, outputs))
    for k in range(closed.p):
        weights = np.eye(closed.p)[k]
        for train, test in [*splits, (np.arange(40), None)]:
            part = raw_grams(bank, X[train]).corrected(True, "multiplicative")
            machine = Ridge(0.5).fit(part.combine(weights), Target(Y[train], "regression"))
            expansion = part.expand(weights, machine.coef)
            at = new if test is None else X[test]
            values = expansion.values(expansion.encode(at)) + machine.intercept
            if test is None:
                whole[:, k] = values
            else:
                H[test, k] = values
    np.testing.assert_allclose(model.out_of_fold_, H, atol=1e-7)
    second = combine_hypotheses(H, Y, np.ones(40), Squared(), HypothesisBall(2, False, 0.8))
    np.testing.assert_allclose(model.kernel_weights_, second.weights, atol=1e-5)
    expected = np.einsum("nkt,k->nt", whole, model.kernel_weights_) + second.intercept
    np.testing.assert_allclose(model.predict(new).reshape(15, -1), expected, atol=1e-4)
    np.testing.assert_allclose(
        model.kernel_scores_, -np.mean((H - Y[:, None]) ** 2, axis=(0, 2)), rtol=1e-6
    )


@pytest.mark.parametrize("Model", [KernelEnsembleClassifier, KernelEnsembleRegressor])
@pytest.mark.parametrize(("norm", "p"), [("l1", 1.0), ("l2", 2.0)])
@pytest.mark.parametrize("signed", [False, True])
def test_one_stage_is_multiple_kernel_learning_with_a_block_norm(Model, norm, p, signed):
    X, y = iris(2, 2) if Model is KernelEnsembleClassifier else waves(50)
    model = Model(BANK, norm, stages=1, signed=signed, radius=3.0).fit(X, y)
    other = mk.MultiKernelClassifier if y.dtype.kind == "i" else mk.MultiKernelRegressor
    joint = other(BANK, mk.LpNorm(p=p)).fit(X, y)
    ask = "decision_function" if y.dtype.kind == "i" else "predict"
    np.testing.assert_allclose(getattr(model, ask)(X), getattr(joint, ask)(X), atol=1e-9)
    assert np.linalg.norm(model.kernel_weights_, p) == pytest.approx(3.0)
    assert model.weights_gap_ <= 1e-3
    # The hypotheses f_k / mu_k have one norm: theta_k^2 a' K_k a / mu_k^2 is the same for all.
    grams = raw_grams(BANK, X).corrected(True, "multiplicative")
    coef = np.zeros((len(X), 1))
    coef[joint.support_] = joint.dual_coef_
    norms = joint.kernel_weights_ * np.sqrt(grams.quadratic_forms(coef)[:, 0])
    used = norms > 0
    ratio = norms[used] / model.kernel_weights_[used]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-8)


def test_a_single_kernel_is_its_own_ensemble():
    X, y = waves(50)
    one = KernelEnsembleRegressor([mk.Gaussian(0.3)], radius=1e3, alpha=0.1).fit(X, y)
    plain = mk.MultiKernelRegressor([mk.Gaussian(0.3)], "uniform", alpha=0.1).fit(X, y)
    scale, shift = np.polyfit(plain.predict(X), one.predict(X), 1)
    assert scale == pytest.approx(one.kernel_weights_[0])
    np.testing.assert_allclose(one.predict(X), scale * plain.predict(X) + shift, atol=1e-8)


# -- no leakage -----------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_nothing_about_a_held_out_point_enters_its_fold(normalize):
    """Poison one held-out point: the other held-out values of its fold stay what they were."""
    X, y = waves(40)
    splits = list(KFold(4).split(X))
    bank = BANK + KernelBank([mk.Callable(lambda A, B: (A @ B.T + 2.0) ** 3)])

    def held_out(X, y):
        target = Target(y[:, None], "regression")
        grams = raw_grams(bank, X).stored(True)
        return out_of_fold(grams, target, Ridge(0.1), splits, center=True, normalize=normalize)

    clean = held_out(X, y)
    test = splits[1][1]
    poisoned_X, poisoned_y = X.copy(), y.copy()
    poisoned_X[test[0]], poisoned_y[test[0]] = 8.0, -1e6
    poisoned = held_out(poisoned_X, poisoned_y)
    np.testing.assert_allclose(poisoned[test[1:]], clean[test[1:]], rtol=1e-9, atol=1e-11)
    others = np.setdiff1d(np.arange(40), test)
    assert np.abs(poisoned[others] - clean[others]).min() > 0  # it did go into the other folds


def test_learning_by_heart_earns_no_trust():
    """A kernel that is all diagonal fits training points perfectly and knows nothing else."""
    X, y = waves(80)
    bank = [mk.Gaussian(1e6), mk.Gaussian(0.2)]
    model = KernelEnsembleRegressor(bank, alpha=1e-3).fit(X, y)
    assert model.kernel_weights_[0] == 0.0
    assert model.kernel_weights_[1] > 0.9
    memorised = mk.MultiKernelRegressor([bank[0]], "uniform", alpha=1e-3).fit(X, y)
    assert memorised.score(X, y) > 0.999 > model.score(X, y)


def test_folds_must_hold_every_point_once():
    X, y = waves(40)
    model = KernelEnsembleRegressor(BANK, cv=ShuffleSplit(3, random_state=0))
    with pytest.raises(ValueError, match=r"every sample in exactly one test fold; .* in none"):
        model.fit(X, y)
    everyone = np.arange(4)
    with pytest.raises(ValueError, match=r"Fold 0 .* also test samples"):
        check_partition([(everyone, everyone)], 4)
    with pytest.raises(ValueError, match="Fold 0 has no training samples"):
        check_partition([(everyone[:0], everyone)], 4)


# -- sample and class weights ---------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_sample_weights_are_repetitions(norm):
    X, y = iris(4, 2)
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    groups = np.arange(len(y)) % 3

    def splits(of):
        return [(np.flatnonzero(of != f), np.flatnonzero(of == f)) for f in range(3)]

    weighted = KernelEnsembleClassifier(BANK, norm, cv=splits(groups)).fit(X, y, counts)
    often = KernelEnsembleClassifier(BANK, norm, cv=splits(groups[rows])).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(often.objective_, rel=1e-6)
    np.testing.assert_allclose(
        weighted.decision_function(X), often.decision_function(X), rtol=1e-5, atol=1e-6
    )
    assert len(weighted.out_of_fold_) == np.count_nonzero(counts)


def test_balanced_classes_enter_both_stages():
    X, y = iris(1, 3)
    y = (y == 2).astype(int)
    rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:15]]
    X, y = X[rows], y[rows]
    bank = [mk.Linear(columns=[0]), mk.Linear(columns=[1])]
    plain = KernelEnsembleClassifier(bank, C=0.1).fit(X, y)
    balanced = KernelEnsembleClassifier(bank, C=0.1, class_weight="balanced").fit(X, y)
    assert balanced.predict(X).sum() > plain.predict(X).sum()


# -- the estimator's manners ----------------------------------------------------------------------


def test_shares_add_up():
    X, y = iris(2)
    model = KernelEnsembleClassifier(BANK, "l2").fit(X, y)
    shares = model.decision_function(X, split=True)
    assert shares.shape == (len(X), 4, 3)
    np.testing.assert_allclose(
        shares.sum(axis=1) + model.intercept_, model.decision_function(X), atol=1e-10
    )


def test_matrices_sparse_data_and_pickles():
    X, y = iris(2, 2)
    model = KernelEnsembleClassifier(BANK).fit(X, y)
    expected = model.decision_function(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), expected)
    np.testing.assert_allclose(
        clone(model).fit(sp.csr_matrix(X), y).decision_function(sp.csr_matrix(X)),
        expected,
        atol=1e-6,
    )
    K = np.stack([kernel(X) for kernel in BANK], axis=-1)
    given = KernelEnsembleClassifier("precomputed").fit(K, y)
    np.testing.assert_allclose(given.decision_function(K), expected, atol=1e-6)
    ids = mk.sample_ids(len(X))
    bank = mk.precomputed([kernel(X) for kernel in BANK])
    np.testing.assert_allclose(
        KernelEnsembleClassifier(bank).fit(ids, y).decision_function(ids), expected, atol=1e-6
    )


def test_sequences(capsys):
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 25)
    words = ["".join(rng.choice(list("ab"), 12, p=[0.3 + 0.4 * c, 0.7 - 0.4 * c])) for c in y]
    X = np.array(words, dtype=object)[:, None]
    bank = [Spectrum(1, columns=0), Spectrum(3, columns=0)]
    model = KernelEnsembleClassifier(bank, "l2", verbose=1).fit(X, y)
    assert model.score(X, y) > 0.8
    assert "2 kernels on 50 samples" in capsys.readouterr().out


def test_the_same_answer_for_any_number_of_threads():
    X, y = iris(2)
    one = KernelEnsembleClassifier(BANK).fit(X, y)
    two = KernelEnsembleClassifier(BANK, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_constant_kernels_get_no_weight():
    X, y = waves(40)
    X = np.column_stack([X, np.ones(40)])
    bank = [mk.Gaussian(0.3, columns=[0, 1]), mk.Gaussian(1.0, columns=[4])]
    with pytest.warns(UserWarning, match="1 of 2 kernels are constant"):
        model = KernelEnsembleRegressor(bank).fit(X, y)
    assert model.kernel_weights_[1] == 0.0 and model.kernel_weights_[0] > 0


def test_a_kernel_may_be_constant_on_a_training_part_alone():
    X, y = waves(40)
    X = np.column_stack([X, np.zeros(40)])
    X[:10, 4] = np.linspace(1, 2, 10)
    bank = [mk.Gaussian(0.3, columns=[0, 1]), mk.Linear(columns=[4])]
    model = KernelEnsembleRegressor(bank, cv=KFold(4)).fit(X, y)  # fold 0 holds all its values
    np.testing.assert_allclose(model.out_of_fold_[:10, 1], y[10:].mean(), rtol=1e-9)


def test_a_class_that_a_training_part_lacks():
    X, y = iris(3)
    order = np.argsort(y, kind="stable")
    model = KernelEnsembleClassifier(BANK, cv=KFold(3)).fit(X[order], y[order])
    assert np.isfinite(model.decision_function(X)).all()
    with pytest.raises(ValueError, match="fold 0 contains only one class"):
        two = order[y[order] < 2]
        KernelEnsembleClassifier(BANK, cv=KFold(2)).fit(X[two], y[two])


@pytest.mark.parametrize("stages", [1, 2])
def test_attributes_are_those_of_the_last_fit(stages):
    X, y = iris()
    model = (
        KernelEnsembleClassifier(BANK, stages=3 - stages)
        .fit(X, y)
        .set_params(stages=stages)
        .fit(X, y)
    )
    assert set(vars(model)) == set(vars(KernelEnsembleClassifier(BANK, stages=stages).fit(X, y)))


def test_bad_parameters():
    X, y = iris(3, 2)
    for name, value in (
        ("norm", "l3"),
        ("stages", 3),
        ("stages", 0),
        ("radius", 0.0),
        ("radius", -1.0),
        ("signed", "yes"),
        ("C", 0.0),
        ("normalize", "size"),
        ("cv", 1.5),
    ):
        with pytest.raises(ValueError, match=f"The {name!r} parameter"):
            KernelEnsembleClassifier(BANK, **{name: value}).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        KernelEnsembleClassifier(BANK).fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="y is constant"):
        KernelEnsembleRegressor(BANK).fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="Every kernel is constant"):
        KernelEnsembleClassifier(BANK).fit(np.ones_like(X), y)
    with pytest.raises(NotImplementedError, match="has no certificate"):
        KernelEnsembleClassifier(BANK).fit(X, y).certificate(X, y)


def test_splitters_are_understood():
    X, y = iris(2)
    one = KernelEnsembleClassifier(BANK, cv=StratifiedKFold(3)).fit(X, y)
    two = KernelEnsembleClassifier(BANK, cv=list(StratifiedKFold(3).split(X, y))).fit(X, y)
    np.testing.assert_array_equal(one.out_of_fold_, two.out_of_fold_)
    default = KernelEnsembleClassifier(BANK).fit(X, y)
    np.testing.assert_array_equal(
        default.out_of_fold_, KernelEnsembleClassifier(BANK).fit(X, y).out_of_fold_
    )
