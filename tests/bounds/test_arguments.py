"""Every argument of every public function of the bounds is checked.

The functions come from ``multikernel.bounds.__all__`` by introspection: a new one without an
example below fails the first test. From each example one argument at a time is replaced by values
that make no sense. Either a ValueError or TypeError names the argument, or the answer is finite
and not negative and the case is listed in LEGITIMATE, with its reason.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import multikernel as mk
from multikernel import bounds as b

K4 = np.diag([2.0, 1.0, 0.5, 0.25]) + 0.1
Y4 = np.array([1.0, -1.0, 1.0, -1.0])
LAM = [0.5, 0.3, 0.2]
TWO = np.array([[2.0, 0.3], [0.3, 1.1]])
V, V_NEW = np.array([0.4, 0.3]), np.array([0.2, 0.7])
MOMENTS = dict(M=TWO, M_new=TWO.T + 0.1, a=TWO @ V, a_new=(TWO + 0.1) @ V_NEW, v_new=V_NEW)
DRAWS = dict(n_draws=10, random_state=0)
VOTE = dict(
    margin_error=0.1, margin=0.5, weights=[0.5, 0.4], complexities=[0.1, 0.2], m=100, delta=0.05
)
MARGIN = dict(risk=0.1, m=100, margin=0.5, delta=0.05)
RISK = dict(risk=0.1, complexity=0.1, delta=0.05)
LOSS = dict(bernstein=1.5, lipschitz=1.2)

#: Functions of a fitted estimator and its sample, with tests of their own.
OF_FITTED_ESTIMATORS = {"certificate", "learned_block_norms"}
EXAMPLES: dict[str, dict[str, Any]] = {
    "aggregation_rate": dict(M=40, n=100),
    "algebraic_decay": dict(spectra=[[1.0, 0.25, 0.111], [1.0, 0.2, 0.1]]),
    "algebraic_excess_risk": dict(
        decay=(1.0, 2.0), M=4, n=100, p=1.5, B=1.0, delta=0.05, radius=1.0, **LOSS
    ),
    "alignf_change": dict(**MOMENTS, v=V),
    "alignf_change_bound": dict(**MOMENTS),
    "alignment_concentration": dict(
        m=100, delta=0.05, square=0.5, square_other=0.4, R2=1.0, R2_other=1.0
    ),
    "alignment_interval": dict(
        product=0.3, square=0.5, square_other=0.4, m=100, delta=0.05, R2=1.0, R2_other=1.0, pairs=3
    ),
    "alignment_predictor": dict(K=K4, y=Y4, probabilities=[0.1, 0.2, 0.3, 0.4]),
    "block_holder": dict(v=[[3.0, 4.0], [1.0]], w=[[1.0, 2.0], [5.0]], p=1.5),
    "block_norm": dict(block_norms=[1.0, 2.0], p=1.5),
    "bound_factor": dict(block_norms=[1.0, 2.0], p=1.5, kind="local", alpha=2.0),
    "certificate": {},  # see below: it takes a fitted estimator
    "learned_block_norms": {},  # the same; it reads its arguments as `certificate` does
    "degree_complexity": dict(degree=2, n_features=3, kappa=1.0, m=100),
    "degree_penalty": dict(degree=2, n_features=3, kappa=1.0),
    "empirical_complexity": dict(K=K4, **DRAWS),
    "excess_risk": dict(fixed=0.1, n=100, delta=0.05, **LOSS, width=2.0),
    "expected_complexity": dict(empirical=0.1, m=100, delta=0.05, bound=1.0),
    "expected_product": dict(
        product=0.1, diagonal_product=0.5, diagonal=0.6, diagonal_other=0.7, m=10
    ),
    "fixed_point": dict(psi=lambda r: 2.0 * r**0.5 + 3.0, start=1.0, rtol=1e-9),
    "fixed_point_bound": dict(
        spectra=[LAM, LAM], n=100, p=1.5, B=1.0, h=[1, 0], radius=1.0, **LOSS
    ),
    "gaussian_complexity": dict(gamma=0.5, distance_complexity=0.1, m=100),
    "generalisation_bound": dict(**RISK, n=100, lipschitz=1.0),
    "global_rate": dict(M=4, n=100, p=1.5, radius=1.0),
    "good_classifier": dict(rho=0.5, Gamma=1.5, variance=0.9),
    "good_classifier_plain": dict(rho=0.5, variance=0.9),
    "good_classifier_unnormalised": dict(rho_u=0.5, R2=1.0),
    "good_regressor": dict(rho=0.5, variance=0.9),
    "grid_share": dict(j=3),
    "hull_complexity": dict(kernels=[K4, np.eye(4)], c=1.0, n=2, margin=0.5),
    "kahane_moment": dict(square_sum=2.0, s=3.0),
    "lanckriet_multiplicative": dict(p=5, m=100, margin=0.5, R=1.0),
    "lanckriet_vacuous": dict(traces=[5.0, 4.0], spectral_norms=[2.0, 1.0], m=100, margin=0.5),
    "learned_ridge_stability_shape": dict(
        m=100, p=5, R=1.0, M=1.0, Lambda=1.0, lambda_0=0.1, smallest_eigenvalue=0.1
    ),
    "local_complexity": dict(eigenvalues=LAM, m=50, s=0.25),
    "local_lower_shape": dict(eigenvalues=LAM, n=100, r=0.1, p=1.5, M=4, radius=1.0, c=1.0),
    "local_rademacher": dict(
        spectra=[LAM, LAM], n=100, r=0.1, p=1.5, joint=LAM, B=1.0, radius=1.0, uncorrelated=True
    ),
    "local_rademacher_dense": dict(joint=LAM, n=100, r=0.1, p=3.0, M=4, radius=1.0),
    "local_rademacher_l1": dict(spectra=[LAM] * 8, n=100, r=0.1, B=1.0, radius=1.0),
    "local_rademacher_sparse": dict(spectra=[LAM, LAM], n=100, r=0.1, p=1.5, B=1.0, radius=1.0),
    "local_rademacher_truncated": dict(
        spectra=[LAM, LAM], n=100, r=0.1, p=1.5, B=1.0, h=[1, 0], radius=1.0
    ),
    "local_rate": dict(alpha=2.0, M=4, n=100, p=1.5, radius=1.0),
    "local_voted_risk": dict(**VOTE, K=2.0, bound=1.0),
    "log_feature_dimension": dict(degree=2, n_features=3),
    "margin_bound": dict(**RISK, m=100, margin=0.5),
    "margin_bound_l1": dict(**MARGIN, traces=[5.0, 4.0], p=2, R2=1.0),
    "margin_bound_lq": dict(**MARGIN, q=1.5, traces=[5.0, 4.0], p=2, R2=1.0),
    "margin_error": dict(margins=[2.0, 0.5, -1.0], margin=0.5),
    "moment_bound": dict(trace=2.0, r=3),
    "multinomial_bound": dict(counts=[2, 1]),
    "plot_bound_factor": dict(
        block_norms=[1.0, 2.0], kind="global", alpha=2.0, norms=[1.0, 1.5], ax=None, label="toy"
    ),
    "poisson_moment": dict(s=2.5),
    "poisson_moment_bound": dict(s=2.5),
    "power_kernels": dict(K=K4, degree=2, trace=1.0),
    "product_bias": dict(m=100, R2=1.0, R2_other=1.0),
    "product_concentration": dict(m=100, delta=0.05, R2=1.0, R2_other=1.0),
    "product_perturbation": dict(m=100, R2=1.0, R2_other=1.0),
    "psd_ball_complexity": dict(c=1.0, n=5, margin=0.5),
    "rademacher_block": dict(traces=[5.0, 4.0], n=10, p=1.5, radius=1.0),
    "rademacher_block_cortes": dict(traces=[5.0, 4.0], n=10, p=1.5, radius=1.0),
    "rademacher_block_exact": dict(kernels=[K4, np.eye(4)], p=1.5, radius=1.0, **DRAWS),
    "rademacher_block_l1": dict(trace=5.0, M=4, n=10, radius=1.0),
    "rademacher_block_population": dict(traces=[5.0, 4.0], n=10, p=1.5, B=1.0, radius=1.0),
    "rademacher_equal_kernels": dict(one=0.5, p=4, q=1.5),
    "rademacher_l1": dict(traces=[5.0, 4.0], m=10, r=2),
    "rademacher_l1_traces": dict(traces=[5.0, 4.0], m=10),
    "rademacher_l1_uniform": dict(p=5, m=10, R2=1.0),
    "rademacher_linear": dict(X=1.0, W=1.0, m=10, r=4),
    "rademacher_linear_kakade": dict(X=1.0, W=1.0, m=10, r=4.0),
    "rademacher_linear_exact": dict(points=np.eye(4)[:, :3], q=1.5, W=1.0, **DRAWS),
    "rademacher_lower": dict(traces=[5.0, 4.0], m=10, q=1.5),
    "rademacher_lower_l1": dict(p=4, m=10),
    "rademacher_lq": dict(traces=[5.0, 4.0], m=10, q=1.5),
    "rademacher_lq_exact": dict(kernels=[K4, np.eye(4)], q=1.5, radius=1.0, **DRAWS),
    "rademacher_lq_uniform": dict(p=5, m=10, q=1.5, R2=1.0),
    "ramp_risk": dict(margins=[2.0, 0.5, -1.0], margin=0.5),
    "rank_one_rate": dict(M=40, n=100, p=1.5, radius=1.0),
    "reduced_problem": dict(r=0.1, p=1.5, M=4, radius=1.0),
    "residual_bound": dict(Y=1.0, R2=1.0, lambda_0=0.1),
    "ridge_stability": dict(m=100, R2=1.0, M=1.0, lambda_0=0.1, smallest_eigenvalue=0.1),
    "rosenthal_young": dict(mean=0.5, B=1.0, n=10, s=2.5),
    "sigmoid_complexity": dict(a=0.5, b=0.3, linear_complexity=0.1, m=100),
    "sparse_rate": dict(alpha=2.0, M=40, n=100, radius=1.0),
    "spectra_of": dict(kernels=[K4, np.eye(4)]),
    "spectral_complexity": dict(c=1.0, n=5, margin=0.5),
    "srebro_ben_david": dict(p=5, m=1000, margin=0.5, R=1.0),
    "stability_bound": dict(risk=0.1, beta=0.01, m=100, M=1.0, delta=0.05),
    "suggest_p": dict(block_norms=[1.0, 2.0], kind="global", largest=2.0),
    "sum_of_norms": dict(a=[1.0, 2.0], b=[0.5, 0.1], s=1.5),
    "trace_complexity": dict(trace=5.0, kappa=1.0, m=10),
    "transductive_bound": dict(**RISK, n=100),
    "transductive_exact": dict(kernels=[K4, np.eye(4)], trace=1.0, margin=0.5, **DRAWS),
    "two_stage_bound": dict(
        risk=0.1, stability=0.01, m=100, weights_sum=1.0, R2=1.0, M=1.0, lambda_0=0.1, delta=0.05
    ),
    "two_stage_stability": dict(
        m=100,
        weights_sum=1.0,
        R2=1.0,
        M=1.0,
        lambda_0=0.1,
        weight_changes=[0.1, 0.2],
        spectral_norms=[2.0, 1.0],
        s=1.5,
    ),
    "uniform_margin_bound": dict(**RISK, m=100, margin=0.5, largest=2.0),
    "unnormalised_range": dict(R2=1.0, M=2.0),
    "voted_risk": dict(**VOTE, bound=1.0),
    "weight_change": dict(v=V, v_new=V_NEW, radius=1.0),
    "ying_campbell": dict(p=5, m=100, margin=0.5, R=1.0),
}

#: Classes of results, which hold the numbers that functions put into them.
RESULTS = {
    "Alignment",
    "AlignmentPredictor",
    "Bound",
    "Certificate",
    "Decay",
    "Estimate",
    "LearnedStability",
    "LocalBound",
    "MachineCertificate",
}

#: Flags and labels are read for their truth, or not at all: every object has an answer.
NOT_CHECKED = {"label"}


def public() -> dict[str, Any]:
    return {name: getattr(b, name) for name in b.__all__}


def functions() -> dict[str, Any]:
    return {name: value for name, value in public().items() if inspect.isfunction(value)}


def checked_arguments(function: Any) -> list[str]:
    """Its parameters but the flags, which have True or False for a default."""
    parameters = inspect.signature(function).parameters.values()
    return [
        p.name for p in parameters if not isinstance(p.default, bool) and p.name not in NOT_CHECKED
    ]


def replacements(good: Any) -> dict[str, Any]:
    """Values in place of a good one: numbers, arrays full of them, and wrong shapes."""
    numbers = {"nan": math.nan, "inf": math.inf, "negative": -1.0, "zero": 0.0}
    if isinstance(good, (list, tuple, np.ndarray)):
        nested = isinstance(good, (list, tuple)) and not np.isscalar(good[0])
        first = np.asarray(good[0] if nested else good, dtype=float)

        def like(value: Any) -> Any:
            return [value, *good[1:]] if nested else value

        out = {}
        for name, number in numbers.items():
            entry = first.copy()
            entry.flat[0] = number
            out[f"one {name}"] = like(entry)
            out[f"all {name}"] = like(np.full(first.shape, number))
        out["longer"] = like(np.append(first, first, axis=0))
        out["more axes"] = like(first[None])
        out["empty"] = []
        out["a number"] = 1.0
    else:
        out = dict(numbers) | {"array": np.array([1.0, 2.0])}
        if isinstance(good, int):
            out["fraction"] = 0.5
    return out | {"none": None, "text": "many"}


def numbers_in(answer: Any) -> np.ndarray:
    if isinstance(answer, b.Estimate):
        answer = dataclasses.astuple(answer)
    if isinstance(answer, (tuple, list)):
        return np.concatenate([numbers_in(part) for part in answer])
    if isinstance(answer, str):
        return np.zeros(0)
    return np.asarray(answer, dtype=float).ravel()


#: What has an answer although it looks odd: reason, kinds of replacement, "function.argument".
TRACES = (
    "margin_bound_l1.traces margin_bound_lq.traces rademacher_block.traces "
    "rademacher_block_cortes.traces rademacher_block_population.traces rademacher_l1.traces "
    "rademacher_lower.traces rademacher_lq.traces"
)
SPECTRA = (
    "algebraic_decay.spectra fixed_point_bound.spectra local_rademacher.spectra "
    "local_rademacher_l1.spectra local_rademacher_sparse.spectra "
    "local_rademacher_truncated.spectra"
)
JOINT = "local_complexity.eigenvalues local_rademacher.joint local_rademacher_dense.joint"
BLOCKS = "bound_factor.block_norms suggest_p.block_norms plot_bound_factor.block_norms"
SIGNED = "margin_error.margins ramp_risk.margins empirical_complexity.K"
SIGNED += " rademacher_linear_exact.points"
LEGITIMATE = [
    (
        "risks, complexities, alignments, means and radii may vanish",
        "zero",
        "alignment_interval.product alignment_interval.square alignment_interval.square_other "
        "excess_risk.fixed expected_complexity.empirical expected_product.product "
        "expected_product.diagonal_product expected_product.diagonal "
        "expected_product.diagonal_other gaussian_complexity.distance_complexity "
        "generalisation_bound.risk generalisation_bound.complexity good_classifier.rho "
        "good_classifier_plain.rho good_classifier_unnormalised.rho_u good_regressor.rho "
        "kahane_moment.square_sum learned_ridge_stability_shape.smallest_eigenvalue "
        "local_complexity.s local_rademacher.r local_rademacher_dense.r local_rademacher_l1.r "
        "local_rademacher_sparse.r local_rademacher_truncated.r local_voted_risk.margin_error "
        "margin_bound.risk margin_bound.complexity margin_bound_l1.risk margin_bound_lq.risk "
        "margin_error.margin moment_bound.trace poisson_moment.s rademacher_block_l1.trace "
        "rademacher_equal_kernels.one reduced_problem.r ridge_stability.smallest_eigenvalue "
        "rosenthal_young.mean sigmoid_complexity.linear_complexity stability_bound.risk "
        "stability_bound.beta trace_complexity.trace transductive_bound.risk "
        "transductive_bound.complexity two_stage_bound.risk two_stage_bound.stability "
        "uniform_margin_bound.risk uniform_margin_bound.complexity voted_risk.margin_error",
    ),
    (
        "any integer, and any slope or offset",
        "negative|zero",
        "grid_share.j sigmoid_complexity.a sigmoid_complexity.b",
    ),
    (
        "an infinite exponent is the maximum norm, an infinite radius the whole class",
        "inf",
        "block_holder.p sum_of_norms.s block_norm.p local_complexity.s local_lower_shape.r "
        "local_lower_shape.p "
        "local_rademacher.r local_rademacher.p local_rademacher_dense.r local_rademacher_dense.p "
        "local_rademacher_l1.r local_rademacher_sparse.r margin_bound_lq.q rademacher_block.p "
        "rademacher_block_exact.p rademacher_block_population.p rademacher_equal_kernels.q "
        "rademacher_linear_exact.q rademacher_lower.q rademacher_lq.q rademacher_lq_exact.q "
        "rademacher_lq_uniform.q reduced_problem.r reduced_problem.p suggest_p.largest "
        "two_stage_stability.s",
    ),
    (
        "None is the default, or stands for a term that another argument replaces",
        "none",
        "alignment_predictor.probabilities empirical_complexity.random_state fixed_point_bound.h "
        "local_rademacher.joint local_rademacher.B margin_bound_l1.traces margin_bound_l1.p "
        "margin_bound_l1.R2 margin_bound_lq.traces margin_bound_lq.p margin_bound_lq.R2 "
        "plot_bound_factor.norms plot_bound_factor.alpha plot_bound_factor.ax "
        "rademacher_block_exact.random_state rademacher_block_population.B rademacher_l1.r "
        "rademacher_linear_exact.random_state rademacher_lq_exact.random_state "
        "transductive_exact.random_state",
    ),
    (
        "kernels, functions and changes may be zero",
        "one zero|all zero",
        f"{TRACES} {SPECTRA} {JOINT} {SIGNED} block_norm.block_norms rademacher_l1_traces.traces "
        "rademacher_block_exact.kernels rademacher_lq_exact.kernels alignf_change_bound.a "
        "sum_of_norms.a sum_of_norms.b block_holder.v block_holder.w "
        "fixed_point_bound.h local_rademacher_truncated.h local_voted_risk.weights "
        "local_voted_risk.complexities two_stage_stability.weight_changes "
        "two_stage_stability.spectral_norms voted_risk.weights voted_risk.complexities",
    ),
    (
        "one of them may be zero, not all",
        "one zero",
        f"{BLOCKS} local_lower_shape.eigenvalues transductive_exact.kernels "
        "alignment_predictor.y weight_change.v weight_change.v_new multinomial_bound.counts",
    ),
    ("zero is a kernel, but a zero on the diagonal is not", "all zero", "spectra_of.kernels"),
    (
        "margins, points and functions have signs; norms and changes are read without theirs",
        "one negative|all negative",
        f"{SIGNED} {BLOCKS} block_norm.block_norms alignf_change_bound.a "
        "two_stage_stability.weight_changes weight_change.v weight_change.v_new "
        "block_holder.v block_holder.w",
    ),
    ("a target may be negative", "one negative", "alignment_predictor.y"),
    (
        "more kernels, eigenvalues, points or exponents than in the example",
        "longer",
        f"{TRACES} {SPECTRA} {JOINT} {SIGNED} {BLOCKS} block_norm.block_norms "
        "local_lower_shape.eigenvalues rademacher_l1_traces.traces plot_bound_factor.norms "
        "multinomial_bound.counts",
    ),
    (
        "one number is one trace, or a spectrum of rank one",
        "a number",
        f"{TRACES} {JOINT} local_lower_shape.eigenvalues",
    ),
]
#: Answers that are no sizes: predictions and changes with a sign, an infinite radius or exponent.
SIGNED_ANSWERS = {"alignment_predictor", "weight_change", "block_holder"}
INFINITE_ANSWERS = {("local_rademacher", "p", "inf"), ("reduced_problem", "r", "inf")}


def legitimate() -> set[tuple[str, str, str]]:
    return {
        (*place.split("."), kind)
        for _, kinds, places in LEGITIMATE
        for kind in kinds.split("|")
        for place in places.split()
    }


PLACES = [
    (name, argument)
    for name, function in functions().items()
    if name not in OF_FITTED_ESTIMATORS
    for argument in checked_arguments(function)
]


@pytest.fixture(autouse=True)
def no_windows():
    """Figures are drawn without a display, and closed."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def test_nothing_public_is_left_out():
    classes = {n for n, v in public().items() if isinstance(v, type)}
    assert classes == RESULTS | {"AssumptionError"}
    assert set(functions()) == set(EXAMPLES)
    assert set(functions()) | classes == set(b.__all__)
    for name, function in functions().items():
        if name not in OF_FITTED_ESTIMATORS:
            assert set(checked_arguments(function)) <= set(EXAMPLES[name]), name
    cases = {(n, a, kind) for n, a in PLACES for kind in replacements(EXAMPLES[n][a])}
    assert legitimate() <= cases, "a listed case does not exist"


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - OF_FITTED_ESTIMATORS))
def test_the_examples_have_answers(name):
    answer = getattr(b, name)(**EXAMPLES[name])
    if name != "plot_bound_factor":
        values = numbers_in(answer)
        assert np.isfinite(values).all()
        assert name in SIGNED_ANSWERS or (values >= 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "argument"), PLACES)
def test_every_argument_is_checked(name, argument):
    example, call = EXAMPLES[name], functions()[name]
    for kind, value in replacements(example[argument]).items():
        if (name, argument, kind) not in legitimate():
            with pytest.raises((ValueError, TypeError), match=as_a_word(argument)):
                call(**{**example, argument: value})
            continue
        answer = call(**{**example, argument: value})
        if name == "plot_bound_factor":
            continue
        values = numbers_in(answer)
        assert not np.isnan(values).any(), kind
        if (name, argument, kind) not in INFINITE_ANSWERS:
            assert np.isfinite(values).all(), kind
        assert name in SIGNED_ANSWERS or (values >= 0).all(), kind


def as_a_word(name: str) -> str:
    return rf"(?<!\w){name}(?!\w)"


METHODS = [("upper", "delta"), ("lower", "delta"), ("interval", "confidence"), ("scaled", "factor")]


def test_methods_of_an_estimate_are_checked():
    estimate = b.empirical_complexity(np.eye(20), n_draws=10)
    taking = {
        name
        for name, method in inspect.getmembers(b.Estimate, inspect.isfunction)
        if not name.startswith("_") and len(inspect.signature(method).parameters) > 1
    }
    assert taking == {name for name, _ in METHODS}
    for name, argument in METHODS:
        for kind, value in replacements(0.5).items():
            if (name, kind) == ("scaled", "zero"):
                assert estimate.scaled(0.0).value == 0.0
                continue
            with pytest.raises((ValueError, TypeError), match=argument):
                getattr(estimate, name)(value)


@pytest.mark.parametrize("argument", ["estimator", "X", "y", "delta", "n_draws", "random_state"])
def test_arguments_of_a_certificate_are_checked(argument, rng):
    parameters = checked_arguments(b.certificate)
    assert parameters == ["estimator", "X", "y", "delta", "n_draws", "random_state"]
    X = rng.standard_normal((20, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    model = mk.MultiKernelClassifier(mk.gaussians([0.5, 2.0]), weighting="uniform").fit(X, y)
    example = dict(estimator=model, X=X, y=y, delta=0.05, n_draws=10, random_state=0)
    fine = {("random_state", "none"), ("n_draws", "none")}
    # Labels of one class only are possible, if strange; so is the sample, but for one entry.
    fine |= {("y", "one negative"), ("y", "all negative")}
    good = {"estimator": 0.5, "n_draws": 10, "random_state": 3}.get(argument, example[argument])
    for kind, value in replacements(good).items():
        call = {**example, argument: value}
        if (argument, kind) in fine:
            assert b.certificate(**call).risk() > 0
            continue
        # scikit-learn checks X as in predict; not all of its messages name it.
        names = None if argument == "X" else as_a_word(argument)
        with pytest.raises((ValueError, TypeError), match=names):
            b.certificate(**call)


@pytest.mark.parametrize("y", [np.full(20, np.nan), np.full(20, np.inf), np.ones((20, 2))])
def test_targets_of_a_regression_are_checked(y, rng):
    X = rng.standard_normal((20, 2))
    model = mk.MultiKernelRegressor(mk.gaussians([0.5, 2.0]), weighting="uniform").fit(X, X[:, 0])
    with pytest.raises(ValueError, match=as_a_word("y")):
        b.certificate(model, X, y)


def flags() -> list[tuple[str, str]]:
    """Every function and flag of it."""
    return [
        (name, parameter.name)
        for name, function in functions().items()
        for parameter in inspect.signature(function).parameters.values()
        if isinstance(parameter.default, bool)
    ]


@pytest.mark.parametrize(("name", "flag"), flags())
def test_flags_are_true_or_false(name, flag):
    for odd in (np.ones(3), "yes", None, 0.5):
        with pytest.raises(TypeError, match=f"{name}: {flag} must be True or False; got"):
            functions()[name](**{**EXAMPLES[name], flag: odd})


def test_flags_are_given_by_name():
    for name, flag in flags():
        parameter = inspect.signature(functions()[name]).parameters[flag]
        assert parameter.kind is parameter.KEYWORD_ONLY, (name, flag)


def test_bounds_that_are_not_a_number_are_refused():
    spectra = [[1.0, 0.5], [1.0, 0.2]]
    options = dict(n=50, p=2, B=1.0)
    assert b.fixed_point_bound(spectra, **options) > 0
    with pytest.raises(b.AssumptionError, match="fixed_point_bound overflows"):
        b.fixed_point_bound(spectra, **options, lipschitz=1e308)
    with pytest.raises(b.AssumptionError, match="srebro_ben_david overflows"):
        b.srebro_ben_david(1, 1, 1e200)  # a square root of a negative number


def test_a_huge_eigenvalue_counts_as_the_radius():
    lower = partial(b.local_lower_shape, n=50, r=1.0, p=2, M=5)
    assert math.isclose(lower([1e308]), lower([1e100]))


@pytest.mark.parametrize("psi", [object, lambda: 1.0, lambda x, y: x, 3.0])
def test_what_has_no_fixed_point_is_refused(psi):
    with pytest.raises(TypeError, match="psi must be a function of one number; got"):
        b.fixed_point(psi)


def test_margins_over_a_tiny_margin():
    assert b.ramp_risk([1e300, -1e300, 0.0, 1e-320], 1e-320) == 0.5
