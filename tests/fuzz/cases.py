"""Odd cases: every public class, function and parameter, tables, targets, weights and functions.

A maker gets ``choose``, which takes one of a sequence, and returns a case: its name and a function
that tries it. Hypothesis chooses in the tests, a generator in ``python -m tests.fuzz``.
"""

from __future__ import annotations

import inspect

import numpy as np

import multikernel as mk
from tests.fuzz.judge import Raised
from tests.fuzz.odd_values import sample_weights, scalars, tables, targets

rng = np.random.default_rng(7)
BANK = [mk.Gaussian(0.3), mk.Polynomial(2), mk.Linear(columns=[0])]
X = rng.normal(size=(24, 3))
SCORE = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=24)
LABELS = (np.median(SCORE) < SCORE).astype(int)
TEXTS = ["".join(rng.choice(list("ACGT"), size=12)) for _ in range(10)]
K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
SCALARS, TABLES = scalars(), tables(X)

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
    mk.KernelClustering: ({"n_clusters": 2}, LABELS),
    mk.MultiKernelClassifierCV: ({"weighting": "uniform", "Cs": [1.0], "cv": 2}, LABELS),
    mk.MultiKernelRegressorCV: ({"weighting": "uniform", "alphas": [1.0], "cv": 2}, SCORE),
    mk.VotedKernelClassifierCV: (
        {"complexity_penalties": [0.01], "sparsity_penalties": [0.01], "cv": 2},
        LABELS,
    ),
    mk.KernelFeatures: ({"estimator": mk.MultiKernelClassifier(BANK, "uniform")}, LABELS),
}
#: Parameters that name places, ask for work in proportion to their value, or only print.
LEFT_OUT = {"n_jobs", "verbose", "checkpoint", "memory_budget"}
#: Whole numbers beyond this ask for honest work that nobody wants to wait for.
MANY = 1000
#: Tables with the content of X in another form, to which the same answers belong.
SAME = {"read only", "Fortran order", "every other row", "big endian", "list", "float64"}
SAME |= {odd.name for odd in TABLES if odd.name.startswith("sparse")}

PREDICTORS = [kind for kind in MODELS if hasattr(kind, "predict")]
#: Ensembles of classifiers take their limit of steps, 15 s, with weights of 1e12, and say so.
WEIGHTED = [
    kind
    for kind in MODELS
    if "sample_weight" in inspect.signature(kind.fit).parameters
    and kind is not mk.KernelEnsembleClassifier
]


def parameters(function):
    named = inspect.signature(function).parameters.values()
    return [p.name for p in named if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


ESTIMATOR_PARAMETERS = [
    (kind, name) for kind in MODELS for name in parameters(kind) if name not in LEFT_OUT
]


def sensible(value):
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64)
    return not (whole and abs(int(value)) > MANY)


def odd_scalar(choose):
    while not sensible((odd := choose(SCALARS)).value):
        pass
    return odd


def bank_of(kind):
    return {"kernels": BANK} if "kernels" in parameters(kind) else {}


def values(model, table=X):
    """Numbers that a model gives."""
    for name in ("decision_function", "predict", "transform"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(table), dtype=float)
    return np.asarray(model.kernel_weights_)


_FITTED = {}


def fitted(kind):
    if kind not in _FITTED:
        options, y = MODELS[kind]
        _FITTED[kind] = kind(**bank_of(kind), **options).fit(X, y)
    return _FITTED[kind]


# -- estimators ------------------------------------------------------------------------------------


def parameter(choose):
    kind, name = choose(ESTIMATOR_PARAMETERS)
    odd, (options, y) = odd_scalar(choose), MODELS[kind]
    act = lambda: kind(**{**bank_of(kind), **options, name: odd.value}).fit(X, y)  # noqa: E731
    return f"{kind.__name__}({name}={odd})", act


def table(choose):
    kind, odd = choose(list(MODELS)), choose(TABLES)
    options, y = MODELS[kind]

    def act():
        model = kind(**bank_of(kind), **options).fit(odd.value, y)
        if odd.name in SAME and kind not in (mk.KernelFeatures, mk.KernelClustering):
            expected = values(fitted(kind))
            np.testing.assert_allclose(values(model), expected, rtol=1e-5, atol=1e-6)
        return model

    return f"{kind.__name__}.fit(X: {odd})", act


def new_samples(choose):
    kind, odd = choose(PREDICTORS), choose(TABLES)

    def act():
        found = fitted(kind).predict(odd.value)
        assert len(found) > 0
        if odd.name in SAME:
            np.testing.assert_allclose(found, fitted(kind).predict(X), rtol=1e-6, atol=1e-8)
        return np.asarray(found)

    return f"{kind.__name__}.predict(X: {odd})", act


def target(choose):
    kind = choose(PREDICTORS)
    options, y = MODELS[kind]
    odd = choose(targets(y))
    return f"{kind.__name__}.fit(y: {odd})", lambda: kind(**bank_of(kind), **options).fit(
        X, odd.value
    )


def weights(choose):
    kind, odd = choose(WEIGHTED), choose(sample_weights(len(X)))
    options, y = MODELS[kind]
    model = kind(**bank_of(kind), **options)
    return f"{kind.__name__}.fit(sample_weight: {odd})", lambda: model.fit(
        X, y, sample_weight=odd.value
    )


# -- kernels, weightings, functions ----------------------------------------------------------------

VECTOR_KERNELS = [
    *(mk.Linear, mk.Polynomial, mk.Gaussian, mk.Laplacian, mk.Sigmoid, mk.Exponential, mk.Matern),
    *(mk.RationalQuadratic, mk.Periodic, mk.ChiSquared, mk.AdditiveChiSquared, mk.Tanimoto),
    *(mk.HistogramIntersection, mk.MinMax, mk.Cosine, mk.Overlap, mk.MissingPattern),
]
#: Kernels for histograms, sets and codes read these.
COUNTS = np.abs(np.round(3 * X))
COUNTED = {mk.ChiSquared, mk.AdditiveChiSquared, mk.Tanimoto, mk.HistogramIntersection}
COUNTED |= {mk.MinMax, mk.Overlap}
SEQUENCE_KERNELS = [
    *(mk.Spectrum, mk.Mismatch, mk.Subsequence, mk.WeightedDegree, mk.LocalityImproved, mk.Oligo),
    mk.EditSimilarity,
]
KERNEL_PARAMETERS = [
    (kind, name) for kind in [*VECTOR_KERNELS, *SEQUENCE_KERNELS] for name in parameters(kind)
]
WEIGHTINGS = {
    mk.Align: {},
    mk.AlignF: {},
    mk.AlignmentRegularized: {},
    mk.BestSingle: {"cv": 2},
    mk.ElasticNetNorm: {},
    mk.HierarchicalNorm: {"groups": [[0, 1], [2]]},
    mk.L1: {},
    mk.L2Ball: {},
    mk.LeaveOneOut: {},
    mk.LpNorm: {},
    mk.NonIsotropicNorm: {},
    mk.FullNeighbours: {},
    mk.SparseNeighbours: {},
}
WEIGHTING_PARAMETERS = [(kind, name) for kind in WEIGHTINGS for name in parameters(kind)]
FUNCTIONS = {
    mk.alignment: {"K": K, "L": K},
    mk.centered_alignment: {"K": K, "L": K},
    mk.unnormalized_alignment: {"K": K, "L": K},
    mk.value_centered_alignment: {"K": K, "L": K},
    mk.center: {"K": K},
    mk.normalize: {"K": K},
    mk.at_distances: {},
    mk.default_bank: {"X": X},
    mk.gaussians: {"gammas": [0.1, 1.0]},
    mk.polynomials: {"degrees": [1, 2]},
    mk.join_views: {"views": {"a": X, "b": X}},
    mk.per_feature: {"kernel": mk.Gaussian(1.0)},
    mk.per_view: {"views": {"a": [0], "b": [1, 2]}},
    mk.per_ngram: {},
    mk.powers: {"bank": BANK, "degrees": [2]},
    mk.products: {"bank": BANK},
    mk.precomputed: {"matrices": [K]},
    mk.sample_ids: {"n_samples": 5},
    mk.KernelBank: {"kernels": BANK},
    mk.Nystroem: {"rank": 5},
    mk.RandomFeatures: {"n_features": 5},
    mk.TableCodes: {},
    mk.LearnedKernel: {"model": fitted(mk.MultiKernelClassifier), "X": X},
}
FUNCTION_PARAMETERS = [(f, name) for f in FUNCTIONS for name in parameters(f)]
MATRICES = [mk.center, mk.normalize, mk.alignment, mk.centered_alignment, mk.precomputed]


def evaluated(kernel, data, other):
    """Values of a kernel: finite, symmetric, and the same in any block."""
    whole = kernel(data)
    whole = np.asarray(whole.toarray() if hasattr(whole, "toarray") else whole)
    n = len(data)
    assert whole.shape == (n, n), f"shape {whole.shape}"
    size = np.abs(whole).max(initial=0.0)
    np.testing.assert_allclose(whole, whole.T, rtol=1e-6, atol=1e-9 * size, err_msg="symmetry")
    diagonal = np.asarray(kernel.diag(data))
    np.testing.assert_allclose(np.diag(whole), diagonal, rtol=1e-5, atol=1e-7 * size)
    return whole


def kernel_parameter(choose):
    kind, name = choose(KERNEL_PARAMETERS)
    odd = odd_scalar(choose)
    data = COUNTS if kind in COUNTED else X

    def act():
        kernel = kind(**{name: odd.value})
        if kind in SEQUENCE_KERNELS:
            return evaluated(kernel, TEXTS, TEXTS[:3])
        return evaluated(kernel, data, data[:3])

    return f"{kind.__name__}({name}={odd})", act


def kernel_table(choose):
    kind, odd = choose(VECTOR_KERNELS), choose(TABLES)

    def act():
        found = kind()(odd.value)
        return np.asarray(found.toarray() if hasattr(found, "toarray") else found)

    return f"{kind.__name__}()(X: {odd})", act


def weighting_parameter(choose):
    kind, name = choose(WEIGHTING_PARAMETERS)
    odd, classifies = odd_scalar(choose), choose([True, False])

    def act():
        rule = kind(**{**WEIGHTINGS[kind], name: odd.value})
        if classifies:
            return mk.MultiKernelClassifier(BANK, rule).fit(X, LABELS)
        return mk.MultiKernelRegressor(BANK, rule).fit(X, SCORE)

    return f"{kind.__name__}({name}={odd}), {'classes' if classifies else 'numbers'}", act


def function_parameter(choose):
    function, name = choose(FUNCTION_PARAMETERS)
    odd = choose(TABLES) if function in MATRICES and choose([True, False]) else odd_scalar(choose)

    def act():
        found = function(**{**FUNCTIONS[function], name: odd.value})
        return found if isinstance(found, (float, np.ndarray)) else None

    return f"{function.__name__}({name}={odd})", act


# -- functions given as kernels --------------------------------------------------------------------


def _raises(A, B):
    raise Raised("from the user's function")


def _good(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))


CALLABLES = {
    "raises": _raises,
    "None": lambda A, B: None,
    "a number": lambda A, B: 1.0,
    "a text": lambda A, B: "K",
    "too small": lambda A, B: _good(A, B)[:-1],
    "transposed": lambda A, B: _good(B[:-1], A),
    "a vector": lambda A, B: _good(A, B)[0],
    "three axes": lambda A, B: _good(A, B)[None],
    "nan": lambda A, B: np.full((len(A), len(B)), np.nan),
    "inf": lambda A, B: np.full((len(A), len(B)), np.inf),
    "1e300": lambda A, B: 1e300 * _good(A, B),
    "complex": lambda A, B: 1j * _good(A, B),
    "objects": lambda A, B: _good(A, B).astype(object),
    "texts": lambda A, B: _good(A, B).astype(str),
    "a list": lambda A, B: _good(A, B).tolist(),
    "float16": lambda A, B: _good(A, B).astype(np.float16),
    "not symmetric": lambda A, B: A @ np.triu(np.ones((A.shape[1], A.shape[1]))) @ B.T,
    "not definite": lambda A, B: -_good(A, B),
    "one argument": lambda A: A,
    "three arguments": lambda A, B, C: A,
    "random": lambda A, B: rng.normal(size=(len(A), len(B))),
    "zero": lambda A, B: np.zeros((len(A), len(B))),
    "spoils": lambda A, B: (A.__imul__(0.0), B.__imul__(0.0), np.ones((len(A), len(B))))[2],
}


def function_as_kernel(choose):
    name, kind = choose(list(CALLABLES)), choose(list(MODELS)[:9])
    options, y = MODELS[kind]

    def act():
        before = X.copy()
        bank = [mk.Callable(CALLABLES[name]), mk.Gaussian(1.0)]
        given = {"kernels": bank} if "kernels" in parameters(kind) else {"kernel": bank[0]}
        try:
            return kind(**{**options, **given}).fit(X, y)
        finally:
            np.testing.assert_array_equal(X, before)

    return f"{kind.__name__}(Callable: {name})", act


# -- bounds ----------------------------------------------------------------------------------------

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
BOUNDS = [
    (name, parameter)
    for name in sorted(mk.bounds.__all__)
    if inspect.isfunction(getattr(mk.bounds, name)) and name not in NOT_NUMBERS
    for parameter in parameters(getattr(mk.bounds, name))
    if parameter != "as_printed"  # a flag
]


def bound(choose):
    (name, chosen), odd = choose(BOUNDS), odd_scalar(choose)
    function = getattr(mk.bounds, name)
    known = {key: USUAL[key] for key in parameters(function) if key in USUAL}
    lacking = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.name not in known and p.name != chosen
    ]

    def act():
        if lacking:
            return  # a case that this table cannot make
        value = function(**{**known, chosen: odd.value})
        assert not (isinstance(value, float) and np.isnan(value)), "the bound is NaN"

    return f"bounds.{name}({chosen}={odd})", act


MAKERS = [
    *(parameter, table, new_samples, target, weights, bound),
    *(kernel_parameter, kernel_table, weighting_parameter, function_parameter, function_as_kernel),
]
