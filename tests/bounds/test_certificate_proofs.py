"""What a certificate calls proven, checked as a proof: shares of delta, choices, and risks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import multikernel as mk
from multikernel import bounds as b
from multikernel.bounds.families import CLASSES, FOR_DRAWS
from multikernel.estimators.voted import VotedKernelClassifier

GAMMAS = (0.05, 0.5, 2.0)
PLAIN = {"center": False, "normalize": None}


def shares_of(row, n):
    """What each margin of a row was given of delta, read back from its confidence term."""
    confidences = row.values - row.risks - row.complexity * row.margin / row.margins
    return 2 / np.exp(2 * n * (confidences / 3) ** 2)


def proven(found):
    return [[row for row in machine.bounds if row.proven] for machine in found.machines]


# -- the split of delta ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [3, 5])
def test_machines_share_delta(n_classes, rng):
    X = rng.standard_normal((90, 2))
    y = np.arange(90) % n_classes
    X[:, 0] += y
    options = {"fit_intercept": False, **PLAIN}
    model = mk.MultiKernelClassifier(mk.gaussians(GAMMAS), "alignf", **options).fit(X, y)
    delta = 0.2
    found = b.certificate(model, X, y, delta, n_draws=50)
    assert len(found.machines) == n_classes
    spent = 0.0
    for rows in proven(found):
        assert [row.name for row in rows] == [name for _, name in CLASSES]
        for row in rows:
            shares = shares_of(row, len(y))
            zero = int(np.argmax(shares))  # no size of an intercept to pay for: j = 0 is here
            part = shares[zero] / b.grid_share(0)
            assert part == pytest.approx((1 - FOR_DRAWS) * delta / n_classes / len(CLASSES))
            spent += part + FOR_DRAWS * delta / n_classes / len(CLASSES)
    assert spent == pytest.approx(delta)


@pytest.mark.parametrize("size", [1e-3, 1.0, 300.0])
def test_the_radius_of_a_regression_is_a_power_of_two_that_is_paid_for(size, rng):
    X = rng.standard_normal((70, 2))
    y = size * (np.sin(X[:, 0]) + 0.1 * rng.standard_normal(70))
    options = {"alpha": 0.5, "fit_intercept": False, **PLAIN}
    model = mk.MultiKernelRegressor(mk.gaussians(GAMMAS), "uniform", **options).fit(X, y)
    delta, S = 0.1, 100
    found = b.certificate(model, X, y, delta, n_draws=S, random_state=3)
    coef = np.zeros(70)
    coef[model.support_] = model.dual_coef_[:, 0]
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    Ks = [np.exp(-g * squares) for g in GAMMAS]
    norms = np.array(
        [w * math.sqrt(coef @ K @ coef) for w, K in zip(model.kernel_weights_, Ks, strict=True)]
    )
    (rows,) = proven(found)
    for row, (p, _) in zip(rows, CLASSES, strict=True):
        D = float(np.sum(norms**p) ** (1 / p))
        i = math.ceil(math.log2(D))
        shares = shares_of(row, 70)
        # margins are 2^(j/2) themselves, whatever the radius
        steps = np.round(2 * np.log2(row.margins)).astype(int)
        assert row.margins == pytest.approx(2.0 ** (steps / 2))
        part = (1 - FOR_DRAWS) * delta / len(CLASSES) * b.grid_share(i)
        assert shares == pytest.approx([part * b.grid_share(int(j)) for j in steps], rel=1e-6)
        # and the complexity is that of the larger ball
        unit = row.complexity * row.margin / 2 / 2.0**i
        exact = b.rademacher_block_exact(Ks, p, n_draws=4000).value
        assert exact * 0.99 < unit < 1.6 * exact
        assert D <= 2.0**i < 2 * D


def test_an_intercept_that_happens_to_be_zero_is_paid_for_all_the_same(rng):
    # The class may not depend on the sample: were it smaller whenever the intercept comes out as
    # zero, both classes together would spend twice delta.
    X = rng.standard_normal((60, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    model = mk.MultiKernelClassifier(mk.gaussians(GAMMAS), **PLAIN).fit(X, y)
    assert model.intercept_ != 0
    (before,) = proven(b.certificate(model, X, y, n_draws=50))
    model.intercept_ = 0.0 * model.intercept_
    found = b.certificate(model, X, y, n_draws=50)
    (after,) = proven(found)
    for one, two in zip(before, after, strict=True):
        assert shares_of(two, 60).max() == pytest.approx(shares_of(one, 60).max())
    assert "intercept's constant kernel" in str(found)
    never = mk.MultiKernelClassifier(mk.gaussians(GAMMAS), fit_intercept=False, **PLAIN).fit(X, y)
    found = b.certificate(never, X, y, n_draws=50)
    (rows,) = proven(found)
    assert shares_of(rows[0], 60).max() > 1.5 * shares_of(after[0], 60).max()
    assert "intercept's constant kernel" not in str(found)
    # Centring moves a part of the function into a constant, which is paid for too.
    moved = mk.MultiKernelClassifier(mk.gaussians(GAMMAS), fit_intercept=False).fit(X, y)
    assert "intercept's constant kernel" in str(b.certificate(moved, X, y, n_draws=50))


# -- what a row says is what it bounds ------------------------------------------------------------


@pytest.mark.parametrize("level", [0.0, 1e4, 1e9])
def test_the_tolerance_of_a_regression_never_exceeds_what_is_stated(level, rng):
    # Without an intercept residuals may be far larger than the standard deviation of y.
    X = rng.standard_normal((60, 2))
    y = level + rng.standard_normal(60)
    options = {"alpha": 1e9, "fit_intercept": False, **PLAIN}
    model = mk.MultiKernelRegressor(mk.gaussians([0.5]), "uniform", **options).fit(X, y)
    (machine,) = b.certificate(model, X, y, n_draws=50).machines
    for row in machine.bounds[:3]:
        assert 2 * row.margin <= y.std() * (1 + 1e-9)
        assert row.value >= machine.error


@pytest.mark.parametrize("offset", [None, 1e-5, 1e-12])
def test_the_tolerance_of_one_class_never_exceeds_half_of_the_offset(offset, rng):
    X = rng.uniform(1, 2, (60, 1))
    model = mk.MultiKernelOneClass([mk.Linear()], nu=0.1, **PLAIN).fit(X)
    model.offset_ = model.offset_ if offset is None else offset
    assert model.offset_ > 0
    (machine,) = b.certificate(model, X, n_draws=50).machines
    for row in machine.bounds:
        assert row.margin <= 0.5 * model.offset_ * (1 + 1e-9)
        assert row.value >= machine.error


def test_an_offset_of_zero_leaves_nothing_to_say(rng):
    X = rng.uniform(1, 2, (60, 1))
    model = mk.MultiKernelOneClass([mk.Linear()], nu=0.1, **PLAIN).fit(X)
    model.offset_ = 0.0
    found = b.certificate(model, X, n_draws=50)
    assert all(row.value == math.inf and row.vacuous for row in found.machines[0].bounds)
    assert "VACUOUS" in str(found)


def test_a_kernel_that_is_indefinite_on_the_sample_is_refused_though_signs_do_not_show_it(rng):
    # One direction is negative; random signs hardly ever lie along it.
    n = 80
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    v = rng.standard_normal(n)
    v /= np.linalg.norm(v)
    hidden = np.eye(n) - 1.3 * np.outer(v, v)
    signs = rng.choice([-1.0, 1.0], (n, 5000))
    assert np.einsum("is,ij,js->s", signs, hidden, signs).min() > 0
    bank = mk.precomputed([hidden, np.eye(n) + X @ X.T], names=["hidden", "good"])
    ids = mk.sample_ids(n)
    model = mk.MultiKernelClassifier(bank, "uniform", **PLAIN).fit(ids, y)
    with pytest.raises(b.AssumptionError, match="'hidden'"):
        b.certificate(model, ids, y, n_draws=50)


def test_a_mean_squared_error_is_never_taken_for_a_probability(rng):
    X = rng.standard_normal((60, 2))
    y = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)  # its variance is exactly one
    model = mk.MultiKernelRegressor(mk.gaussians([0.5]), "uniform", alpha=1e9).fit(X, y)
    found = b.certificate(model, X, y, n_draws=50)
    (machine,) = found.machines
    *_, stable = machine.bounds
    assert stable.name.startswith("stability") and stable.trivial == 1.0
    assert stable.value < min(row.value for row in machine.bounds if row is not stable)
    assert machine.tightest(proven=False) is not stable


@pytest.mark.parametrize("options", [{}, PLAIN, {"fit_intercept": False}])
def test_points_that_cancel_leave_a_function_of_rounding(options):
    # Every point twice, once with either label: the forms and the values are zero up to rounding.
    X = np.repeat(np.random.default_rng(3).standard_normal((4, 2)), 2, axis=0)
    y = np.tile([1, -1], 4)
    bank = mk.per_feature(mk.Linear()) + mk.gaussians([0.3])
    for C in (1.0, 100.0, 1e6):
        model = mk.MultiKernelClassifier(bank, "uniform", C=C, **options).fit(X, y)
        for row in b.certificate(model, X, y, n_draws=20).machines[0].bounds:
            assert row.value >= 0.5


# -- against distributions whose risk is known ----------------------------------------------------


class Atoms:
    """Finitely many points with known probabilities and label noise: risks without sampling."""

    def __init__(self, rng, size=8, noise=0.5, spread=1.0):
        self.X = spread * rng.standard_normal((size, 2))
        self.P = rng.dirichlet(np.ones(size))
        self.positive = np.clip(0.5 + (0.5 - noise) * np.sign(self.X[:, 0]), 0, 1)

    def draw(self, rng, n):
        i = rng.choice(len(self.P), n, p=self.P)
        return self.X[i], np.where(rng.random(n) < self.positive[i], 1, -1)

    def risk(self, decision):
        """``Pr[y f(x) <= 0]``."""
        wrong_positive = self.positive * (decision <= 0)
        return float(self.P @ (wrong_positive + (1 - self.positive) * (decision >= 0)))


@pytest.mark.parametrize("n", [4, 15, 60])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_no_row_lies_below_the_true_risk(n, noise):
    rng = np.random.default_rng(n)
    delta, below, rows = 0.9, 0, 0
    for trial in range(20):
        world = Atoms(rng, size=3 if trial % 3 == 0 else 40, noise=noise)
        X, y = world.draw(rng, n)
        if len(np.unique(y)) < 2 or len(np.unique(X, axis=0)) < 2:
            continue  # fit refuses such a sample
        options = ({"C": 1e-2}, {"C": 1e6}, {"C": 1e6, **PLAIN})
        for each in options:
            model = mk.MultiKernelClassifier(mk.gaussians([0.1, 30.0]), "uniform", **each)
            truth = world.risk(model.fit(X, y).decision_function(world.X))
            for row in b.certificate(model, X, y, delta, n_draws=30).machines[0].bounds:
                below += row.value < truth
                rows += 1
        model = VotedKernelClassifier(mk.gaussians([0.1, 30.0]), sparsity_penalty=1e-4).fit(X, y)
        truth = world.risk(model.decision_function(world.X))
        for row in b.certificate(model, X, y, delta).machines[0].bounds:
            below += row.value < truth
            rows += 1
    assert rows >= 5 * (6 + 6 + 3 + 2)
    assert below == 0
