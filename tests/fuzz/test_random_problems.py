"""Random problems: whatever the data and the settings, the promises of a fit hold."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import multikernel as mk

RULES = ["uniform", "align", "alignf", "loo", "lp", "l1", "best"]
NORMS = ["multiplicative", "trace", "trace-first", "frobenius", "spherical", None]


def problem(seed):
    """A model that is not fitted, X, y and weights."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 50)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3) + rng.normal() * 10.0 ** rng.uniform(
        -2, 2
    )
    if rng.random() < 0.2:
        X[rng.integers(n)] = X[0]
    score = np.sin(X[:, 0] / X[:, 0].std()) + 0.3 * rng.normal(size=n)
    width = 1.0 / (d * X.var())
    every = [
        mk.Gaussian(width * 10.0 ** rng.uniform(-3, 3)) for _ in range(int(rng.integers(1, 5)))
    ]
    every += [mk.Linear()] if rng.random() < 0.5 else []
    every += [mk.Laplacian(np.sqrt(width))] if rng.random() < 0.5 else []
    common = {
        "kernels": every,
        "weighting": str(rng.choice(RULES)),
        "normalize": NORMS[rng.integers(len(NORMS))],
        "center": bool(rng.random() < 0.8),
    }
    cost = 10.0 ** rng.uniform(-4, 4)
    weights = rng.uniform(0.1, 3.0, n) if rng.random() < 0.3 else None
    if rng.random() < 0.5:
        y = (score > np.quantile(score, rng.uniform(0.2, 0.8))).astype(int)
        loss = str(rng.choice(["hinge", "hinge", "squared", "logistic"]))
        model = mk.MultiKernelClassifier(**common, C=cost, loss=loss)
    else:
        y = score * 10.0 ** rng.uniform(-3, 3)
        loss = str(rng.choice(["squared", "epsilon_insensitive"]))
        model = mk.MultiKernelRegressor(
            **common, alpha=1.0 / cost, loss=loss, epsilon=0.1 * y.std()
        )
    return model, X, y, weights


def fit(model, X, y, weights):
    """The fitted model and what it said; None where the problem was refused with a reason."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            return model.fit(X, y, sample_weight=weights), said
        except ValueError as error:
            assert len(str(error)) > 30, error
            return None, said


def values(model, X, **options):
    if hasattr(model, "decision_function"):
        return model.decision_function(X, **options)
    return model.predict(X, **options)


@given(st.integers(0, 2**32 - 1))
def test_promises(tmp_path_factory, seed):
    model, X, y, weights = problem(seed)
    fitted, said = fit(model, X, y, weights)
    if fitted is None:
        return
    assert not [w for w in said if issubclass(w.category, RuntimeWarning)], said[0].message
    tol = max(getattr(model, "tol", 1e-3), 1e-3)
    assert fitted.duality_gap_ <= tol or said, "a gap without a warning"
    whole = np.asarray(values(fitted, X), dtype=float)
    assert np.isfinite(whole).all()
    intercept = np.ravel(fitted.intercept_)
    size = np.abs(whole).max() + np.abs(intercept).max()
    shares = np.asarray(values(fitted, X, split=True))
    np.testing.assert_allclose(
        shares.sum(axis=1) + intercept, whole, atol=1e-8 * size, rtol=1e-8, err_msg="shares"
    )
    place = tmp_path_factory.mktemp("models") / "model.skops"
    again = mk.load(mk.save(fitted, place))
    np.testing.assert_array_equal(values(again, X), values(fitted, X), err_msg="model file")
    place.unlink()
