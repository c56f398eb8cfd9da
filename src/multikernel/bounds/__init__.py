"""Computable bounds from the papers, and a certificate for fitted models.

Each function evaluates one theorem, in the symbols of its paper. Where a printed statement is
wrong, the corrected one is computed, and the printed one with ``as_printed=True``. Inputs that
violate the assumptions of a theorem raise :class:`AssumptionError`, which names the assumption.

>>> import multikernel as mk
>>> round(mk.bounds.rademacher_l1_uniform(p=10, m=1000, R2=1.0), 4)
0.0923
"""

from functools import wraps
from inspect import isfunction, signature
from math import isnan
from typing import Any

from .._options import check_flag
from ..problem.assumptions import AssumptionError
from ..problem.complexity import (
    degree_penalty,
    local_complexity,
    log_feature_dimension,
    trace_complexity,
)
from .alignment import (
    AlignmentPredictor,
    alignment_concentration,
    alignment_interval,
    alignment_predictor,
    expected_product,
    good_classifier,
    good_classifier_plain,
    good_classifier_unnormalised,
    good_regressor,
    product_bias,
    product_concentration,
    product_perturbation,
    unnormalised_range,
)
from .blocknorm import (
    block_norm,
    generalisation_bound,
    rademacher_block,
    rademacher_block_cortes,
    rademacher_block_exact,
    rademacher_block_l1,
    rademacher_block_population,
)
from .bound_factor import bound_factor, learned_block_norms, plot_bound_factor, suggest_p
from .certificate import certificate
from .excess import (
    Decay,
    algebraic_decay,
    algebraic_excess_risk,
    excess_risk,
    fixed_point,
    fixed_point_bound,
)
from .lemmas import (
    block_holder,
    kahane_moment,
    multinomial_bound,
    poisson_moment,
    poisson_moment_bound,
    rosenthal_young,
    sum_of_norms,
)
from .local import (
    LocalBound,
    local_lower_shape,
    local_rademacher,
    local_rademacher_dense,
    local_rademacher_l1,
    local_rademacher_sparse,
    local_rademacher_truncated,
    reduced_problem,
    spectra_of,
)
from .margin import (
    grid_share,
    lanckriet_multiplicative,
    lanckriet_vacuous,
    margin_bound,
    margin_bound_l1,
    margin_bound_lq,
    margin_error,
    ramp_risk,
    srebro_ben_david,
    uniform_margin_bound,
    ying_campbell,
)
from .montecarlo import Estimate
from .rademacher import (
    moment_bound,
    rademacher_equal_kernels,
    rademacher_l1,
    rademacher_l1_traces,
    rademacher_l1_uniform,
    rademacher_linear,
    rademacher_linear_exact,
    rademacher_linear_kakade,
    rademacher_lower,
    rademacher_lower_l1,
    rademacher_lq,
    rademacher_lq_exact,
    rademacher_lq_uniform,
)
from .rates import aggregation_rate, global_rate, local_rate, rank_one_rate, sparse_rate
from .results import Alignment, Bound, Certificate, MachineCertificate
from .stability import (
    LearnedStability,
    alignf_change,
    alignf_change_bound,
    learned_ridge_stability_shape,
    residual_bound,
    ridge_stability,
    stability_bound,
    two_stage_bound,
    two_stage_stability,
    weight_change,
)
from .transduction import (
    hull_complexity,
    power_kernels,
    psd_ball_complexity,
    spectral_complexity,
    transductive_bound,
    transductive_exact,
)
from .voted import (
    degree_complexity,
    empirical_complexity,
    expected_complexity,
    gaussian_complexity,
    local_voted_risk,
    sigmoid_complexity,
    voted_risk,
)

__all__ = [
    "Alignment",
    "AlignmentPredictor",
    "AssumptionError",
    "Bound",
    "Certificate",
    "Decay",
    "Estimate",
    "LearnedStability",
    "LocalBound",
    "MachineCertificate",
    "aggregation_rate",
    "algebraic_decay",
    "algebraic_excess_risk",
    "alignf_change",
    "alignf_change_bound",
    "alignment_concentration",
    "alignment_interval",
    "alignment_predictor",
    "block_holder",
    "block_norm",
    "bound_factor",
    "certificate",
    "degree_complexity",
    "degree_penalty",
    "empirical_complexity",
    "excess_risk",
    "expected_complexity",
    "expected_product",
    "fixed_point",
    "fixed_point_bound",
    "gaussian_complexity",
    "generalisation_bound",
    "global_rate",
    "good_classifier",
    "good_classifier_plain",
    "good_classifier_unnormalised",
    "good_regressor",
    "grid_share",
    "hull_complexity",
    "kahane_moment",
    "lanckriet_multiplicative",
    "lanckriet_vacuous",
    "learned_block_norms",
    "learned_ridge_stability_shape",
    "local_complexity",
    "local_lower_shape",
    "local_rademacher",
    "local_rademacher_dense",
    "local_rademacher_l1",
    "local_rademacher_sparse",
    "local_rademacher_truncated",
    "local_rate",
    "local_voted_risk",
    "log_feature_dimension",
    "margin_bound",
    "margin_bound_l1",
    "margin_bound_lq",
    "margin_error",
    "moment_bound",
    "multinomial_bound",
    "plot_bound_factor",
    "poisson_moment",
    "poisson_moment_bound",
    "power_kernels",
    "product_bias",
    "product_concentration",
    "product_perturbation",
    "psd_ball_complexity",
    "rademacher_block",
    "rademacher_block_cortes",
    "rademacher_block_exact",
    "rademacher_block_l1",
    "rademacher_block_population",
    "rademacher_equal_kernels",
    "rademacher_l1",
    "rademacher_l1_traces",
    "rademacher_l1_uniform",
    "rademacher_linear",
    "rademacher_linear_exact",
    "rademacher_linear_kakade",
    "rademacher_lower",
    "rademacher_lower_l1",
    "rademacher_lq",
    "rademacher_lq_exact",
    "rademacher_lq_uniform",
    "ramp_risk",
    "rank_one_rate",
    "reduced_problem",
    "residual_bound",
    "ridge_stability",
    "rosenthal_young",
    "sigmoid_complexity",
    "sparse_rate",
    "spectra_of",
    "spectral_complexity",
    "srebro_ben_david",
    "stability_bound",
    "suggest_p",
    "sum_of_norms",
    "trace_complexity",
    "transductive_bound",
    "transductive_exact",
    "two_stage_bound",
    "two_stage_stability",
    "uniform_margin_bound",
    "unnormalised_range",
    "voted_risk",
    "weight_change",
    "ying_campbell",
]


#: How errors of `math` about arguments outside a domain begin; the second from Python 3.14 on.
MATH_DOMAIN_ERRORS = ("math domain error", "expected a")


def _representable(function: Any) -> Any:
    """Wrap a function so that overflow or a NaN result raises an :class:`AssumptionError`.

    Flags (parameters that are True or False by default) are checked as well.
    """
    parameters = signature(function).parameters.values()
    flags = [p.name for p in parameters if isinstance(p.default, bool)]  # all keyword-only

    @wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        for name in flags:
            if name in options:
                check_flag(function.__name__, name, options[name])
        cause = None
        try:
            found = function(*args, **options)
            if not (isinstance(found, float) and isnan(found)):
                return found
        except (OverflowError, ValueError) as error:
            if isinstance(error, ValueError) and not str(error).startswith(MATH_DOMAIN_ERRORS):
                raise
            cause = error
        given = [f"{a!r:.40}" for a in args] + [f"{k}={v!r:.40}" for k, v in options.items()]
        raise AssumptionError(
            f"{function.__name__} overflows or underflows for ({', '.join(given)}): use units in "
            "which these numbers are of moderate size."
        ) from cause

    return checked


for _name in __all__:
    if isfunction(globals()[_name]):
        globals()[_name] = _representable(globals()[_name])
