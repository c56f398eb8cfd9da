"""The factor that chooses p: the numbers of Kloft's Figures 4.2 and 5.2d."""

from __future__ import annotations

import math

import numpy as np
import pytest

import multikernel as mk
from multikernel import bounds as b

SOFT = {beta: np.arange(1.0, 1001.0) ** -beta for beta in (2, 1, 0.5)}


def toy(k):
    return np.r_[np.ones(k), np.zeros(50 - k)]


@pytest.mark.parametrize(
    ("beta", "values", "best", "lowest"),
    [
        (2, [98.404, 85.190, 90.300, 95.454, 115.316, 138.462, 162.982], 1.208, 85.160),
        (1, [270.334, 160.704, 144.776, 143.785, 151.870, 167.874, 187.348], 1.391, 143.764),
        (0.5, [1104.294, 534.198, 418.305, 387.981, 338.531, 317.874, 310.522], 2.0, 310.522),
    ],
)
def test_figure_4_2(beta, values, best, lowest):
    w = SOFT[beta]
    grid = (1, 1.2, 4 / 3, 1.4, 1.6, 1.8, 2)
    found = [b.bound_factor(w, p, kind="local", alpha=2) for p in grid]
    assert found == pytest.approx(values, abs=6e-4)
    p = b.suggest_p(w, kind="local")
    assert p == pytest.approx(best, abs=6e-4)
    assert b.bound_factor(w, p, kind="local", alpha=2) == pytest.approx(lowest, abs=6e-4)


def test_the_optimum_falls_as_soft_sparsity_rises():
    found = [b.suggest_p(np.arange(1.0, 1001.0) ** -beta, kind="local") for beta in (0.2, 1, 2, 4)]
    assert found == sorted(found, reverse=True)
    assert found[0] == 2


@pytest.mark.parametrize(
    ("k", "values", "best"),
    [
        (1, [4.6117, 4.6117, 5.3183, 6.3809, 10, 21.7119], 1.1465),
        (4, [18.4469, 16.2626, 15.0424, 16.0789, 20, 30.7052], 1.2468),
        (9, [41.5055, 33.9904, 27.6347, 27.6087, 30, 37.6060], 1.4116),
        (18, [83.0110, 63.8293, 46.4758, 43.8260, 42.4264, 44.7214], 1.9585),
        (28, [129.1282, 95.3808, 64.7353, 58.8377, 52.9150, 49.9444], 7.264),
        (50, [230.5860, 161.5776, 100, 86.6025, 70.7107, 57.7350], math.inf),
    ],
)
def test_golden_numbers_of_the_toy(k, values, best):
    found = [b.bound_factor(toy(k), p) for p in (1, 1.1, 4 / 3, 1.5, 2, 4)]
    assert found == pytest.approx(values, abs=6e-5)
    p = b.suggest_p(toy(k), largest=math.inf)
    assert p == pytest.approx(best, rel=1e-3)
    assert b.suggest_p(toy(k)) == pytest.approx(min(best, 2.0), rel=1e-4)
    if k not in (1, 50):
        assert p / (p - 1) == pytest.approx(2 * math.log(50 / k), rel=1e-5)


def test_metabolic_network():
    w = (0.332, 0.330, 0.338)
    found = [b.bound_factor(w, p) for p in (1, 1.33, 1.6, 2, 4, math.inf)]
    assert found == pytest.approx([2.4439, 1.8608, 1.6187, 1.4143, 1.1549, 1.0140], abs=6e-5)
    assert b.suggest_p(w) == 2.0


def slow_global(w, p):
    M, size = len(w), np.sum(w**p) ** (1 / p)
    last = 60.0 if p == 1 else p / (p - 1)
    return min(math.sqrt(s) * size * M ** (1 / s) for s in np.linspace(1, last, 40_001))


def slow_local(w, p, alpha):
    M, size, a = len(w), np.sum(w**p) ** (1 / p), 2 / (1 + alpha)
    last = 60.0 if p == 1 else p / (p - 1)
    grid = np.linspace(2, max(last, 2), 40_001)
    return min(size**a * s**a * M ** (1 + a * (1 / s - 1)) for s in grid)


@pytest.mark.parametrize("p", [1, 1.1, 1.5, 2])
def test_closed_inner_minimum_against_a_grid(p, rng):
    for M in (2, 6, 40):
        w = rng.random(M)
        assert b.bound_factor(w, p) == pytest.approx(slow_global(w, p), rel=1e-6)
        found = b.bound_factor(w, p, kind="local", alpha=1.7)
        assert found == pytest.approx(slow_local(w, p, 1.7), rel=1e-6)


def test_suggested_p_is_the_minimum(rng):
    for _ in range(10):
        w = rng.random(30) ** rng.integers(1, 6)
        for kind in ("global", "local"):
            grid = np.linspace(1, 2, 2001)
            values = [b.bound_factor(w, p, kind=kind, alpha=3.0) for p in grid]
            p = b.suggest_p(w, kind=kind)
            assert b.bound_factor(w, p, kind=kind, alpha=3.0) <= min(values) * (1 + 1e-9)


def test_the_factor_is_the_bound_up_to_a_constant():
    # Equal traces, D = ||w||_{2,p}: Proposition 4.2 divided by nu_p is the same for every p.
    w = toy(7)
    ratios = [
        b.rademacher_block([100.0] * 50, 100, p, radius=b.block_norm(w, p)) / b.bound_factor(w, p)
        for p in (1, 1.2, 1.5, 2, 4, math.inf)
    ]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-9)


def test_plot(rng):
    pytest.importorskip("matplotlib").use("agg")
    ax = b.plot_bound_factor(toy(4), label="toy")
    assert ax.get_xlabel() == "block norm p"
    (curve, mark) = ax.get_lines()
    assert curve.get_xydata().shape == (201, 2)
    assert mark.get_xdata()[0] == pytest.approx(1.2468, abs=1e-3)
    assert b.plot_bound_factor(SOFT[1], kind="local", ax=ax) is ax


def test_plot_without_matplotlib_says_what_to_install(monkeypatch):
    import builtins

    original = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        b.plot_bound_factor(toy(4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: b.bound_factor([0.0, 0.0], 1), "block_norms are zero"),
        (lambda: b.bound_factor([1.0, np.nan], 1), "finite"),
        (lambda: b.bound_factor([1.0], 0.5), "at least 1"),
        (lambda: b.bound_factor([1.0], 3, kind="local", alpha=2), r"\[1, 2\]"),
        (lambda: b.bound_factor([1.0], 1, kind="local"), "alpha > 1"),
        (lambda: b.suggest_p([1.0], kind="local", largest=4), r"\[1, 2\]"),
        (lambda: b.bound_factor([1.0], 1, kind="other"), "kind"),
    ],
)
def test_meaningless_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# -- block norms of a fitted model -----------------------------------------------------------------


@pytest.fixture(scope="module")
def matrices():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3, 2))
    y = np.where(X[:, 0, 0] + 0.3 * X[:, 1, 0] > 0, 1, -1)
    return np.einsum("ikd,jkd->kij", X, X), y


def test_block_norms_are_those_of_the_regulariser(matrices):
    K, y = matrices
    ids = mk.sample_ids(len(y))
    p = 4 / 3
    rule = mk.LpNorm(p, tol=1e-8)
    model = mk.MultiKernelClassifier(mk.precomputed(K), rule, C=1.0, normalize=None).fit(ids, y)
    found = b.learned_block_norms(model, ids)
    assert found.shape == (1, 3)
    # the slow way: theta_k^2 s'K_k s with the centred matrices written out
    H = np.eye(len(y)) - 1 / len(y)
    s = np.zeros(len(y))
    s[model.support_] = model.dual_coef_[:, 0]
    slow = [t * np.sqrt(s @ H @ k @ H @ s) for t, k in zip(model.kernel_weights_, K, strict=True)]
    np.testing.assert_allclose(found[0], slow, rtol=1e-9)
    # at the optimum theta_k is proportional to ||w_k||^(2-p) (Kloft 2011, Proposition 3.1)
    share = found[0] ** (2 - p)
    np.testing.assert_allclose(
        model.kernel_weights_ / model.kernel_weights_.sum(), share / share.sum(), rtol=1e-3
    )


def test_block_norms_of_linear_kernels_are_slopes(rng):
    """A linear kernel on one standardised feature: the block norm is the size of the slope."""
    X = rng.standard_normal((80, 4)) * [1.0, 3.0, 0.2, 1.0]
    y = X @ [1.0, 0.5, 2.0, 0.0] + 0.1 * rng.standard_normal(80)
    model = mk.MultiKernelRegressor(mk.per_feature(mk.Linear()), mk.LpNorm(1.5)).fit(X, y)
    steps = model.predict(np.vstack([np.zeros(4), np.eye(4)]))
    slopes = np.abs(steps[1:] - steps[0]) * X.std(axis=0)
    np.testing.assert_allclose(b.learned_block_norms(model, X)[0], slopes, rtol=1e-6)


def test_block_norms_of_several_machines(matrices):
    K, _ = matrices
    y = np.arange(K.shape[1]) % 3
    ids = mk.sample_ids(len(y))
    model = mk.MultiKernelClassifier(mk.precomputed(K), "lp", multiclass="per_class").fit(ids, y)
    assert b.learned_block_norms(model, ids).shape == (3, 3)
    whole = np.moveaxis(K, 0, -1)
    model = mk.MultiKernelClassifier("precomputed", "lp").fit(whole, y)
    assert b.learned_block_norms(model, whole).shape == (3, 3)


def test_block_norms_need_the_training_sample(matrices):
    K, y = matrices
    ids = mk.sample_ids(len(y))
    model = mk.MultiKernelClassifier(mk.precomputed(K), "lp")
    with pytest.raises(Exception, match="not fitted"):
        b.learned_block_norms(model, ids)
    with pytest.raises(ValueError, match=r"learned_block_norms needs the sample .* \(60 samples\)"):
        b.learned_block_norms(model.fit(ids, y), ids[:50])
    with pytest.raises(TypeError, match=r"learned_block_norms needs a fitted .* got dict"):
        b.learned_block_norms({}, ids)
