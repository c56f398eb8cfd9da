"""The regressor: outputs, shares, sample weights, containers and scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import multikernel as mk
from tests.estimators.cases import BANKS, DIRECT, NORMALIZATIONS, WEIGHTINGS, waves

Regressor = mk.MultiKernelRegressor

pytestmark = pytest.mark.filterwarnings("ignore:The signed combination")


def test_one_linear_kernel_is_ridge_regression():
    X, y = waves()
    for center in (True, False):
        options = {"alpha": 2.0, "center": center, "normalize": None}
        model = Regressor(mk.Linear(), "uniform", **options).fit(X, y)
        other = Ridge(alpha=2.0).fit(X, y)
        np.testing.assert_allclose(model.predict(X), other.predict(X), atol=1e-10)
        assert model.intercept_ == pytest.approx(
            other.intercept_ + (X.mean(axis=0) @ other.coef_ if center else 0.0), abs=1e-10
        )


def test_one_gaussian_is_kernel_ridge_on_centred_data():
    X, y = waves()
    K = mk.center(mk.Gaussian(0.3)(X))
    other = KernelRidge(alpha=0.5, kernel="precomputed").fit(K, y - y.mean())
    model = Regressor(mk.Gaussian(0.3), "uniform", alpha=0.5, normalize=None).fit(X, y)
    np.testing.assert_allclose(model.predict(X), other.predict(K) + y.mean(), atol=1e-9)


def test_score_and_attributes():
    X, y = waves()
    model = Regressor(BANKS["shared"], "alignf", alpha=0.1).fit(X[:40], y[:40])
    assert model.score(X, y) == r2_score(y, model.predict(X)) > 0.5
    assert isinstance(model.intercept_, float)
    assert model.dual_coef_.shape == (len(model.support_), 1)
    assert model.kernel_weights_.sum() == pytest.approx(1.0, abs=1e-12)
    assert 0 <= model.duality_gap_ <= 1e-6 and 0 < model.alignment_ <= 1
    assert model.objective_ > 0


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("bank", BANKS)
def test_shares_and_intercept_add_up_to_the_prediction(bank, normalize, center):
    for outputs in (1, 2):
        X, y = waves(outputs=outputs)
        model = Regressor(BANKS[bank], "alignf", normalize=normalize, center=center)
        model.fit(X[:40], y[:40])
        shares = model.predict(X, split=True)
        p = len(model.kernel_names_)
        assert shares.shape == ((len(X), p) if outputs == 1 else (len(X), p, 2))
        np.testing.assert_allclose(
            shares.sum(axis=1) + model.intercept_,
            model.predict(X),
            rtol=0,
            atol=1e-10 * max(np.abs(shares).max(), 1.0),
        )
        silent = np.all(shares.reshape(len(X), p, -1) == 0, axis=(0, 2))
        np.testing.assert_array_equal(silent, model.kernel_weights_ == 0)


def test_several_outputs_share_weights_and_equal_single_fits():
    X, y = waves(outputs=3)
    model = Regressor(BANKS["stacked"], "uniform").fit(X[:40], y[:40])
    assert model.predict(X).shape == (60, 3) and model.intercept_.shape == (3,)
    assert model.dual_coef_.shape[1] == 3
    for k in range(3):
        single = Regressor(BANKS["stacked"], "uniform").fit(X[:40], y[:40, k])
        np.testing.assert_allclose(model.predict(X)[:, k], single.predict(X), atol=1e-10)
        assert model.intercept_[k] == pytest.approx(single.intercept_, abs=1e-10)


def test_a_column_of_targets_stays_a_column():
    X, y = waves()
    model = Regressor(BANKS["shared"]).fit(X, y[:, None])
    assert model.predict(X).shape == (60, 1)
    expected = Regressor(BANKS["shared"]).fit(X, y).predict(X)
    np.testing.assert_allclose(model.predict(X)[:, 0], expected, atol=1e-12)


def test_whole_number_targets_and_lists():
    X, y = waves()
    whole = np.round(10 * y).astype(int)
    model = Regressor(BANKS["shared"]).fit(X.tolist(), whole.tolist())
    expected = Regressor(BANKS["shared"]).fit(X, whole.astype(float)).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("weighting", DIRECT)
@pytest.mark.parametrize("bank", BANKS)
def test_weight_zero_is_removal_and_whole_weights_are_copies(bank, weighting, normalize, center):
    X, y = waves(n=40, outputs=2)
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    model = Regressor(BANKS[bank], WEIGHTINGS[weighting], normalize=normalize, center=center)
    weighted = clone(model).fit(X, y, sample_weight=counts)
    copied = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0))
    np.testing.assert_allclose(weighted.kernel_weights_, copied.kernel_weights_, atol=1e-7)
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X), atol=1e-7)
    assert weighted.alignment_ == pytest.approx(copied.alignment_, abs=1e-9)
    assert weighted.objective_ == pytest.approx(copied.objective_, rel=1e-8)
    removed = clone(model).fit(X[counts > 0], y[counts > 0])
    zeroed = clone(model).fit(X, y, sample_weight=(counts > 0).astype(float))
    np.testing.assert_array_equal(zeroed.kernel_weights_, removed.kernel_weights_)
    np.testing.assert_array_equal(zeroed.predict(X), removed.predict(X))


def test_fractions_of_weights_mean_something():
    # Halving every weight halves the loss, which is the same as twice the ridge.
    X, y = waves()
    half = Regressor(BANKS["shared"], "uniform", alpha=1.0).fit(
        X, y, sample_weight=np.full(60, 0.5)
    )
    twice = Regressor(BANKS["shared"], "uniform", alpha=2.0).fit(X, y)
    np.testing.assert_allclose(half.predict(X), twice.predict(X), atol=1e-10)


@pytest.mark.parametrize("bank", BANKS)
def test_conjugate_gradients_give_the_same_answer(bank):
    X, y = waves(outputs=2)
    direct = Regressor(BANKS[bank], solver="cholesky").fit(X, y)
    steps = Regressor(BANKS[bank], solver="cg", tol=1e-14).fit(X, y)
    np.testing.assert_allclose(steps.predict(X), direct.predict(X), atol=1e-6)
    assert steps.n_iter_ > 1
    with pytest.warns(ConvergenceWarning, match=r"\(cg\).*gap of .*tol=1e-14.*Raise max_iter"):
        Regressor(BANKS[bank], solver="cg", tol=1e-14, max_iter=1).fit(X, y)


def test_data_frames():
    X, y = waves()
    table = pd.DataFrame(X, columns=list("abcd"))
    bank = mk.per_view(
        {"first": (mk.gaussians([0.1, 1.0]), ["b", "a"]), "rest": (mk.Linear(), "d")}
    )
    model = Regressor(bank).fit(table, pd.Series(y))
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.kernel_names_[2] == "rest: Linear()"
    same = mk.gaussians([0.1, 1.0], columns=[1, 0]) + mk.KernelBank([mk.Linear(columns=3)])
    np.testing.assert_array_equal(model.predict(table), Regressor(same).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="same order"):
        model.predict(table[list("bacd")])
    several = Regressor(bank).fit(table, pd.DataFrame({"u": y, "v": -y}))
    assert several.predict(table).shape == (60, 2)


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("bank", ["shared", "rank-one", "mixed"])
def test_sparse_is_dense(bank, normalize):
    X, y = waves()
    X = np.where(np.abs(X) < 0.6, 0.0, X)
    kernels = BANKS.get(bank, BANKS["shared"] + BANKS["rank-one"])
    dense = Regressor(kernels, normalize=normalize).fit(X, y)
    sparse = Regressor(kernels, normalize=normalize).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.kernel_weights_, dense.kernel_weights_, atol=1e-9)
    np.testing.assert_allclose(sparse.predict(sp.csc_matrix(X)), dense.predict(X), atol=1e-9)
    np.testing.assert_allclose(
        sparse.predict(sp.csr_matrix(X), split=True), dense.predict(X, split=True), atol=1e-8
    )
    keep = (np.arange(60) % 3 > 0).astype(float)
    dense.fit(X, y, sample_weight=keep)
    sparse.fit(sp.csr_matrix(X), y, sample_weight=keep)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X)), dense.predict(X), atol=1e-9)


def test_sparse_default_bank_and_sparse_too_wide_to_write_out():
    rng = np.random.default_rng(0)
    X = sp.random(50, 4000, density=0.02, random_state=0, format="csr")
    y = np.asarray(X[:, :50].sum(axis=1)).ravel() + 0.1 * rng.normal(size=50)
    model = Regressor().fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    bank = mk.gaussians([0.01, 0.1]) + mk.KernelBank([mk.Linear()])
    roomy = Regressor(bank, normalize="trace").fit(X, y)
    # The columns written out take 1.6 MB each time; this budget does not allow that.
    tight = Regressor(bank, normalize="trace", memory_budget="2MB").fit(X, y)
    assert roomy.grams_.parts[0].kind == "shared" and tight.grams_.parts[0].kind == "dense"
    np.testing.assert_allclose(tight.predict(X), roomy.predict(X), atol=1e-8)


@pytest.mark.parametrize("bank", BANKS)
def test_float32_inputs_give_close_answers(bank):
    X, y = waves()
    double = Regressor(BANKS[bank], "align").fit(X.astype(np.float32).astype(float), y)
    single = Regressor(BANKS[bank], "align").fit(X.astype(np.float32), y.astype(np.float32))
    np.testing.assert_allclose(single.kernel_weights_, double.kernel_weights_, atol=1e-5)
    np.testing.assert_allclose(single.predict(X.astype(np.float32)), double.predict(X), atol=1e-4)


@pytest.mark.parametrize("bank", BANKS)
def test_memory_layout_does_not_matter_and_inputs_stay(bank):
    X, y = waves()
    expected = Regressor(BANKS[bank]).fit(X, y).predict(X)
    wide = np.full((len(X), 8), np.nan)
    wide[:, ::2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    target = y.copy()
    target.flags.writeable = False
    counts = np.ones(len(X))
    counts.flags.writeable = False
    for variant in (np.asfortranarray(X), wide[:, ::2], frozen):
        before = variant.copy()
        model = Regressor(BANKS[bank]).fit(variant, target, sample_weight=counts)
        # Leave-one-out weights end an iteration, which magnifies rounding in another order.
        np.testing.assert_allclose(
            model.predict(variant), expected, rtol=0, atol=1e-8 * np.abs(expected).max()
        )
        np.testing.assert_array_equal(variant, before)


@pytest.mark.parametrize("bank", BANKS)
def test_threads_do_not_change_a_bit(bank):
    X, y = waves(n=150)
    one = Regressor(BANKS[bank], n_jobs=1).fit(X, y)
    two = Regressor(BANKS[bank], n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.kernel_weights_, two.kernel_weights_)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_fits_repeat_themselves():
    X, y = waves()
    for weighting in WEIGHTINGS.values():
        first, second = (Regressor(BANKS["shared"], weighting).fit(X, y) for _ in range(2))
        np.testing.assert_array_equal(first.predict(X), second.predict(X))


def test_order_of_rows_and_kernels_does_not_matter():
    X, y = waves()
    order = np.random.default_rng(1).permutation(len(X))
    for weighting in ("uniform", "align", "alignf"):
        model = Regressor(BANKS["stacked"], weighting).fit(X, y)
        shuffled = Regressor(BANKS["stacked"], weighting).fit(X[order], y[order])
        np.testing.assert_allclose(shuffled.kernel_weights_, model.kernel_weights_, atol=1e-8)
        np.testing.assert_allclose(shuffled.predict(X), model.predict(X), atol=1e-8)
        kernels = list(BANKS["shared"])
        there = Regressor(kernels, weighting).fit(X, y)
        back = Regressor(kernels[::-1], weighting).fit(X, y)
        np.testing.assert_allclose(back.kernel_weights_[::-1], there.kernel_weights_, atol=1e-8)
        np.testing.assert_allclose(back.predict(X), there.predict(X), atol=1e-8)


@pytest.mark.parametrize("normalize", ["multiplicative", "trace", "spherical", "frobenius"])
def test_the_size_of_a_kernel_does_not_matter_once_normalised(normalize):
    X, y = waves()
    plain = [mk.Gaussian(0.1), mk.Polynomial(2)]
    scaled = [1e6 * mk.Gaussian(0.1), 1e-6 * mk.Polynomial(2)]
    for weighting in ("uniform", "align", "alignf"):
        expected = Regressor(plain, weighting, normalize=normalize).fit(X, y)
        model = Regressor(scaled, weighting, normalize=normalize).fit(X, y)
        np.testing.assert_allclose(model.kernel_weights_, expected.kernel_weights_, atol=1e-8)
        np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)


def test_grid_search_and_pipeline():
    X, y = waves()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), Regressor(BANKS["shared"], mk.Align())),
        {
            "multikernelregressor__alpha": [0.01, 1.0],
            "multikernelregressor__weighting__q": [None, 2.0],
        },
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_score_ > 0.5
    whole = GridSearchCV(
        Regressor(BANKS["shared"]), {"weighting": list(WEIGHTINGS.values())}, cv=3
    ).fit(X, y)
    assert np.all(np.isfinite(whole.cv_results_["mean_test_score"]))
    assert cross_val_score(Regressor(), X, y, cv=3).mean() > 0.3


def test_refit_on_other_data_leaves_no_trace():
    X, y = waves(outputs=2)
    model = Regressor(BANKS["shared"]).fit(pd.DataFrame(X, columns=list("abcd")), y)
    model.fit(X[:30, :3], y[:30, 0])
    fresh = Regressor(BANKS["shared"]).fit(X[:30, :3], y[:30, 0])
    assert set(vars(model)) == set(vars(fresh))
    np.testing.assert_array_equal(model.predict(X[:, :3]), fresh.predict(X[:, :3]))


def test_verbose(capsys):
    X, y = waves()
    Regressor(BANKS["rank-one"], verbose=1).fit(X, y)
    assert "4 kernels on 60 samples" in capsys.readouterr().out


@pytest.mark.parametrize("center", [True, False])
def test_an_outlying_row_does_not_spoil_the_others(center):
    # Squared distances from dot products lose what a far origin takes; rows near each other must
    # keep their distances when one row is far away.
    X, y = waves()
    far = np.vstack([X, np.full((1, 4), 1e7)])
    kernel = mk.Gaussian(0.5)
    model = Regressor(kernel, center=center, normalize=None).fit(far, np.append(y, 0.0))
    by_hand = Regressor("precomputed", center=center, normalize=None)
    distances = ((far[:, None] - far[None]) ** 2).sum(axis=2)
    by_hand.fit(np.exp(-0.5 * distances), np.append(y, 0.0))
    np.testing.assert_allclose(
        model.predict(far), by_hand.predict(np.exp(-0.5 * distances)), atol=1e-6
    )
