"""Every parameter, X, y and sample_weight of every estimator against the odd values."""

from __future__ import annotations

import inspect

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import multikernel as mk
from tests.fuzz.judge import judge
from tests.fuzz.odd_values import Odd, sample_weights, scalars, tables, targets

BANK = [mk.Gaussian(0.3), mk.Polynomial(2), mk.Linear(columns=[0])]
rng = np.random.default_rng(7)
X = rng.normal(size=(24, 3))
SCORE = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=24)
LABELS = (np.median(SCORE) < SCORE).astype(int)
SCALARS = scalars()

#: Estimators with the options that keep a fit short, and their targets.
MODELS = {
    mk.MultiKernelClassifier: ({"weighting": "alignf"}, LABELS),
    mk.MultiKernelRegressor: ({"weighting": "alignf"}, SCORE),
    mk.MultiKernelOneClass: ({}, LABELS),
    mk.ParzenClassifier: ({}, LABELS),
    mk.ParzenRegressor: ({}, SCORE),
    mk.KernelEnsembleClassifier: ({}, LABELS),
    mk.KernelEnsembleRegressor: ({}, SCORE),
    mk.VotedKernelClassifier: ({}, LABELS),
    mk.SpectralKernelClassifier: ({}, LABELS),
    mk.ConsensusKernel: ({}, LABELS),
    mk.KernelClustering: ({}, LABELS),
}
#: Parameters that name places, ask for work in proportion to their value, or only print.
LEFT_OUT = {"n_jobs", "verbose", "checkpoint", "memory_budget"}
#: Whole numbers beyond this ask for honest work that nobody wants to wait for.
MANY = 1000


def makers():
    for kind, (options, y) in MODELS.items():
        for name in inspect.signature(kind).parameters:
            if name not in LEFT_OUT:
                yield kind, options, y, name


MAKERS = list(makers())
TABLES = tables(X)
PREDICTORS = [kind for kind in MODELS if hasattr(kind, "predict")]
WEIGHTED = [k for k in MODELS if "sample_weight" in inspect.signature(k.fit).parameters]


def sensible(value):
    return not (isinstance(value, (int, np.integer)) and abs(int(value)) > MANY)


def test_the_table_is_long_enough():
    assert len(SCALARS) + len(tables(X)) + len(targets(LABELS)) + len(sample_weights(24)) >= 300


def parameter(draw):
    kind, options, y, name = draw(st.sampled_from(MAKERS))
    odd = draw(st.sampled_from(SCALARS))
    if not sensible(odd.value):
        return "", lambda: None
    bank = {"kernels": BANK} if "kernels" in inspect.signature(kind).parameters else {}
    act = lambda: kind(**{**bank, **options, name: odd.value}).fit(X, y)  # noqa: E731
    return f"{kind.__name__}({name}={odd})", act


def table(draw):
    kind, odd = draw(st.sampled_from(list(MODELS))), draw(st.sampled_from(TABLES))
    options, y = MODELS[kind]
    return f"{kind.__name__}.fit(X: {odd})", lambda: kind(**options).fit(odd.value, y)


def new_samples(draw):
    kind, odd = draw(st.sampled_from(PREDICTORS)), draw(st.sampled_from(TABLES))

    def act():
        assert len(fitted(kind).predict(odd.value)) > 0

    return f"{kind.__name__}.predict(X: {odd})", act


def target(draw):
    kind = draw(st.sampled_from(PREDICTORS))
    options, y = MODELS[kind]
    odd = draw(st.sampled_from(targets(y)))
    return f"{kind.__name__}.fit(y: {odd})", lambda: kind(**options).fit(X, odd.value)


def weights(draw):
    kind, odd = draw(st.sampled_from(WEIGHTED)), draw(st.sampled_from(sample_weights(len(X))))
    options, y = MODELS[kind]
    act = lambda: kind(**options).fit(X, y, sample_weight=odd.value)  # noqa: E731
    return f"{kind.__name__}.fit(sample_weight: {odd})", act


def bound(draw):
    name, odd = draw(st.sampled_from(BOUNDS)), draw(st.sampled_from(SCALARS))
    function = getattr(mk.bounds, name)
    names = list(inspect.signature(function).parameters)
    chosen = draw(st.sampled_from(names))
    known = {key: USUAL[key] for key in names if key in USUAL}

    def act():
        if sensible(odd.value):
            value = function(**{**known, chosen: odd.value})
            if isinstance(value, float) and np.isnan(value):
                raise AssertionError("the bound is NaN")

    return f"{name}({chosen}={odd})", act


@given(st.data(), st.sampled_from([parameter, table, new_samples, target, weights, bound]))
def test_odd_input_is_refused_clearly_or_answered_rightly(data, attack):
    name, act = attack(data.draw)
    wrong = judge(act)
    assert wrong is None or "missing" in wrong, f"{name}: {wrong}"


_FITTED = {}


def fitted(kind):
    if kind not in _FITTED:
        options, y = MODELS[kind]
        _FITTED[kind] = kind(**options).fit(X, y)
    return _FITTED[kind]


NOT_NUMBERS = {
    "certificate",
    "plot_bound_factor",
    "bound_factor",
    "suggest_p",
    "learned_block_norms",
}
USUAL = {
    "m": 100, "n": 50, "M": 5, "p": 2, "R2": 1.0, "R2_other": 1.0, "delta": 0.05, "rho": 0.5,
    "variance": 1.0, "margin": 0.5, "risk": 0.1, "complexity": 0.1, "traces": [1.0, 2.0], "q": 2,
    "r": 2, "radius": 1.0, "alpha": 2.0, "s": 2.0, "c": 1.0, "Y": 1.0, "lambda_0": 1.0, "X": 1.0,
    "W": 1.0, "margins": [0.1, 0.5], "block_norms": [1.0, 2.0], "spectra": [[1.0, 0.5], [1.0, 0.2]],
    "j": 1, "B": 1.0, "mean": 1.0, "one": 1.0, "degree": 2, "trace": 1.0, "n_features": 3,
    "kappa": 1.0, "empirical": 0.1, "bound": 1.0, "square_sum": 1.0, "counts": [1, 2],
    "rho_u": 0.5, "square": 1.0, "square_other": 1.0, "product": 0.5, "R": 1.0, "Lambda": 1.0,
}  # fmt: skip


BOUNDS = sorted(
    name
    for name in mk.bounds.__all__
    if inspect.isfunction(getattr(mk.bounds, name)) and name not in NOT_NUMBERS
)


def test_functions_that_write_into_their_arguments_change_nothing():
    before = X.copy()
    model = mk.MultiKernelClassifier([mk.Callable(_spoil), mk.Gaussian(1.0)], "uniform").fit(
        X, LABELS
    )
    model.predict(X)
    np.testing.assert_array_equal(X, before)


def _spoil(A, B):
    K = np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))
    A[:] = 99.0
    B[:] = -99.0
    return K


def test_odd_values_have_names():
    assert repr(Odd("a name", 1)) == "a name"
