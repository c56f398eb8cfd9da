"""Every formula of the bounds, written out a second time.

The arguments are such that no factor is one and no term vanishes: a factor or a term that is lost
changes the number. Norms, conjugate exponents and factorials are written out here as well.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from multikernel import bounds as b
from multikernel.bounds.rademacher import conjugate, eta, norm

E, LOG, ROOT = math.e, math.log, math.sqrt
TRACES = [3.0, 7.5, 1.2, 4.4, 6.1]


def dual(p):
    """1/p + 1/p* = 1."""
    return math.inf if p == 1 else 1 / (1 - 1 / p)


def power_norm(values, r):
    return max(values) if math.isinf(r) else float(np.sum(np.asarray(values) ** r)) ** (1 / r)


def odd_factorial(r):
    return math.prod(range(1, 2 * r, 2))


@functools.cache
def formulas():
    """Name, the library's number, and the number of the formula."""
    return list(written_out())


def written_out():
    u, m = TRACES, 37
    yield "moment_bound", b.moment_bound(3.1, 4), (23 / 22 * 4 * 3.1) ** 4
    yield "moment_bound sharp", b.moment_bound(3.1, 4, sharp=True), odd_factorial(4) * 3.1**4
    yield (
        "rademacher_l1",
        b.rademacher_l1(u, m, r=3),
        ROOT(23 / 22 * 3 * power_norm(u, 3)) / m,
    )
    yield (
        "rademacher_l1 sharp",
        b.rademacher_l1(u, m, r=3, sharp=True),
        ROOT(odd_factorial(3) ** (1 / 3) * power_norm(u, 3)) / m,
    )
    yield (
        "rademacher_l1_uniform",
        b.rademacher_l1_uniform(30, m, 2.3),
        ROOT(23 / 22 * E * math.ceil(LOG(30)) * 2.3 / m),
    )
    yield (
        "rademacher_l1_uniform sharp",
        b.rademacher_l1_uniform(30, m, 2.3, sharp=True),
        ROOT(odd_factorial(4) ** (1 / 4) * E * 2.3 / m),
    )
    yield (
        "rademacher_l1_traces",
        b.rademacher_l1_traces(u, m),
        ROOT(23 / 22 * E * math.ceil(LOG(5)) * 7.5) / m,
    )
    yield (
        "rademacher_lq",
        b.rademacher_lq(u, m, 1.5),
        ROOT(23 / 22 * 3 * power_norm(u, 3)) / m,
    )
    yield (
        "rademacher_lq sharp",
        b.rademacher_lq(u, m, 1.5, sharp=True),
        ROOT(odd_factorial(3) ** (1 / 3) * power_norm(u, 3)) / m,
    )
    yield (
        "rademacher_lq_uniform",
        b.rademacher_lq_uniform(30, m, 1.5, 2.3),
        ROOT(23 / 22 * 3 * 30 ** (1 / 3) * 2.3 / m),
    )
    # r = 1/(1 - 1/1.8) = 2.25 is compared with s = 3, at p^(1/r - 1/s) of p^(1/s).
    yield (
        "rademacher_lq_uniform between integers",
        b.rademacher_lq_uniform(30, m, 1.8, 2.3, sharp=True),
        ROOT(odd_factorial(3) ** (1 / 3) * 30 ** (1 / 2.25) * 2.3 / m),
    )
    yield "rademacher_lower", b.rademacher_lower(u, m, 1.5), ROOT(power_norm(u, 3) / 2) / m
    yield (
        "rademacher_equal_kernels",
        b.rademacher_equal_kernels(0.7, 5, 1.5),
        0.7 * 5 ** (1 / 6),
    )
    yield (
        "rademacher_linear",
        b.rademacher_linear(1.7, 2.2, m, 6),
        1.7 * 2.2 * ROOT(23 / 22 * 6 / (2 * m)),
    )
    yield (
        "rademacher_linear sharp",
        b.rademacher_linear(1.7, 2.2, m, 6, sharp=True),
        1.7 * 2.2 * ROOT(odd_factorial(3) ** (1 / 3) / m),
    )

    yield "block_norm", b.block_norm([-2.0, 0.5, 1.5], 1.3), power_norm([2.0, 0.5, 1.5], 1.3)
    yield "kahane_moment", b.kahane_moment(2.7, 3.4), ((3.4 - 1) * 2.7) ** 1.7
    yield "kahane_moment, s below 2", b.kahane_moment(2.7, 1.4), 2.7**0.7
    young = (2.1 / 9) ** 2.6 + 0.8**2.6
    yield (
        "rosenthal_young",
        b.rosenthal_young(0.8, 2.1, 9, 2.6),
        (2 * E * 2.6) ** 2.6 * young,
    )
    poisson = sum(j**2.6 / math.factorial(j) for j in range(1, 60)) / E
    yield (
        "rosenthal_young sharp",
        b.rosenthal_young(0.8, 2.1, 9, 2.6, sharp=True),
        poisson * young,
    )
    yield (
        "rosenthal_young sharp, s below 2",
        b.rosenthal_young(0.8, 2.1, 9, 1.6, sharp=True),
        2 * ((2.1 / 9) ** 1.6 + 0.8**1.6),
    )
    yield (
        "rademacher_block_l1",
        b.rademacher_block_l1(5.5, 12, m, radius=1.6),
        1.6 / m * ROOT(2 * E * LOG(12) * 5.5),
    )
    yield (
        "rademacher_block_cortes",
        b.rademacher_block_cortes(u, m, 1.25, radius=1.6),
        1.6 / m * ROOT(23 / 22 * 5 * power_norm(u, 2.5)),
    )
    # At p >= 2 the smallest exponent t* = 1 is the end of the range, or p* itself.
    for p in (2.0, 3.0):
        s, a = dual(p), [v / m for v in u]
        yield (
            f"rademacher_block, p = {p}",
            b.rademacher_block(u, m, p, radius=1.6),
            1.6 * min(ROOT(t / m * power_norm(a, t / 2)) for t in np.linspace(1, s, 20_001)),
        )
        yield (
            f"rademacher_block_population, p = {p}",
            b.rademacher_block_population(u, m, p, radius=1.6),
            1.6 * min(t * ROOT(E / m * power_norm(u, t / 2)) for t in np.linspace(1, s, 20_001)),
        )
        yield (
            f"rademacher_block_population sharp, p = {p}",
            b.rademacher_block_population(u, m, p, radius=1.6, sharp=True),
            1.6 * min(ROOT(t / m * power_norm(u, t / 2)) for t in np.linspace(1, s, 20_001)),
        )
    many, B = [0.4 + 0.01 * k for k in range(300)], 4.2
    yield (
        "rademacher_block_population, p = 1.2",
        b.rademacher_block_population(many, 10**5, 1.2, B, radius=1.6),
        1.6
        * min(
            t * ROOT(E / 10**5 * power_norm(many, t / 2)) + ROOT(B * E) * 300 ** (1 / t) * t / 10**5
            for t in np.linspace(2, 6, 4001)
        ),
    )
    yield (
        "generalisation_bound",
        b.generalisation_bound(0.13, 0.04, m, 0.07, lipschitz=1.7),
        0.13 + 2 * 1.7 * 0.04 + ROOT(8 * LOG(2 / 0.07) / m),
    )
    yield (
        "generalisation_bound empirical",
        b.generalisation_bound(0.13, 0.04, m, 0.07, lipschitz=1.7, empirical=True),
        0.13 + 2 * 1.7 * 0.04 + 3 * ROOT(LOG(2 / 0.07) / (2 * m)),
    )

    lam = [2.0, 0.9, 0.5, 0.2, 0.05]
    D, r = 1.6, 0.3
    yield (
        "local_rademacher_dense",
        b.local_rademacher_dense(lam, m, r, 3.0, 4, radius=D),
        ROOT(2 / m * sum(min(r, D**2 * 4 ** (2 / 1.5 - 1) * x) for x in lam)),
    )
    spectra = [[x * f for x in lam] for f in (1.0, 0.3, 2.0)]
    for sharp in (False, True):
        # p = 2 leaves one exponent, t* = 2.
        constant = 8.0 if sharp else 16.0
        inner = [sum(min(r, E * D**2 * 4 * x) for x in e) for e in spectra]
        yield (
            f"local_rademacher_sparse, p = 2, sharp = {sharp}",
            b.local_rademacher_sparse(spectra, m, r, 2.0, B, radius=D, sharp=sharp).value,
            ROOT(constant / m * sum(inner)) + ROOT(B * E) * D * ROOT(3) * 2 / m,
        )

        def sparse(t, sharp=sharp):
            cut = r * 3 ** (1 - 2 / t)
            inner = [sum(min(cut, E * D**2 * t**2 * x) for x in e) for e in spectra]
            constant = 8 * 2 ** (1 - 2 / t) if sharp else 16
            first = ROOT(constant / m * power_norm(inner, t / 2))
            return first + ROOT(B * E) * D * 3 ** (1 / t) * t / m

        yield (
            f"local_rademacher_sparse, p = 1.5, sharp = {sharp}",
            b.local_rademacher_sparse(spectra, m, r, 1.5, B, radius=D, sharp=sharp).value,
            min(sparse(t) for t in np.linspace(2, 3, 20_001)),
        )
    # Four hundred kernels: the best exponent lies inside the range.
    plenty = 0.5 + 0.001 * np.arange(400)

    def rich(t):
        inner = np.minimum(50.0 * 400 ** (1 - 2 / t), E * D**2 * t**2 * plenty)
        first = ROOT(8 * 2 ** (1 - 2 / t) / 10**4 * power_norm(inner, t / 2))
        return first + ROOT(B * E) * D * 400 ** (1 / t) * t / 10**4

    grid = np.linspace(2, 6, 8001)
    values = [rich(t) for t in grid]
    assert 2.1 < grid[np.argmin(values)] < 5.9
    yield (
        "local_rademacher_sparse of many kernels, sharp",
        b.local_rademacher_sparse(plenty[:, None], 10**4, 50.0, 1.2, B, radius=D, sharp=True).value,
        min(values),
    )
    eight = [[x * (1 + 0.1 * k) for x in lam] for k in range(9)]
    size = E**3 * D**2 * LOG(9) ** 2
    for radius in (1e-3, 0.3, 40.0):
        yield (
            f"local_rademacher_l1, r = {radius}",
            b.local_rademacher_l1(eight, m, radius, B, radius=D),
            ROOT(16 / m * max(sum(min(radius * 9, size * x) for x in e) for e in eight))
            + ROOT(B) * E**1.5 * D * LOG(9) / m,
        )
    yield "reduced_problem", b.reduced_problem(r, 1.5, 7, D), (r * 7, D * 7 ** (1 / 3))
    yield (
        "local_lower_shape",
        b.local_lower_shape(lam, m, r, 1.5, 7, radius=D, c=0.8),
        ROOT(0.8 / m * sum(min(r * 7, D**2 * 7 ** (2 / 3) * x) for x in lam)),
    )

    yield (
        "excess_risk",
        b.excess_risk(0.02, m, 0.07, bernstein=1.3, lipschitz=0.6, width=2.5),
        7 * 0.02 / 1.3 + (11 * 0.6 * 2.5 + 27 * 1.3) * LOG(1 / 0.07) / m,
    )
    # p* = 5 stays below log M: the exponent is p* itself, and log M for p = 1.
    M, n, alpha = 1000, 5000, 2.5
    a = 2 / (1 + alpha)
    for p, s in ((1.25, 5.0), (1.0, LOG(M)), (2.0, 2.0)):
        yield (
            f"local_rate, p = {p}",
            b.local_rate(alpha, M, n, p, D),
            (s * D) ** a * M ** (1 + a * (1 / s - 1)) * n ** (-alpha / (1 + alpha)),
        )
        yield f"global_rate, p = {p}", b.global_rate(M, n, p, D), s * D * M ** (1 / s) / ROOT(n)

    yield "confidence", b.margin_bound(0.0, 0.0, m, 1.0, 0.07), 3 * ROOT(LOG(2 / 0.07) / (2 * m))
    yield (
        "margin_bound",
        b.margin_bound(0.13, 0.04, m, 0.6, 0.07),
        0.13 + 2 / 0.6 * 0.04 + 3 * ROOT(LOG(2 / 0.07) / (2 * m)),
    )
    confidence = 3 * ROOT(LOG(2 / 0.07) / (2 * m))
    for sharp in (False, True):
        options = {"margin": 0.6, "delta": 0.07, "sharp": sharp}
        yield (
            f"margin_bound_l1 of traces, sharp = {sharp}",
            b.margin_bound_l1(0.13, m, traces=u, **options),
            0.13 + 2 / 0.6 * b.rademacher_l1(u, m, sharp=sharp) + confidence,
        )
        yield (
            f"margin_bound_l1 of p, sharp = {sharp}",
            b.margin_bound_l1(0.13, m, p=30, R2=2.3, **options),
            0.13 + 2 / 0.6 * b.rademacher_l1_uniform(30, m, 2.3, sharp=sharp) + confidence,
        )
        yield (
            f"margin_bound_lq of traces, sharp = {sharp}",
            b.margin_bound_lq(0.13, m, q=1.7, traces=u, **options),
            0.13 + 2 / 0.6 * b.rademacher_lq(u, m, 1.7, sharp=sharp) + confidence,
        )
        yield (
            f"margin_bound_lq of p, sharp = {sharp}",
            b.margin_bound_lq(0.13, m, q=1.7, p=30, R2=2.3, **options),
            0.13 + 2 / 0.6 * b.rademacher_lq_uniform(30, m, 1.7, 2.3, sharp=sharp) + confidence,
        )
    # largest / rho = 3.1 / 0.6 lies between 4 and 8: k = 3.
    yield (
        "uniform_margin_bound",
        b.uniform_margin_bound(0.13, 0.04, m, 0.6, 0.07, 3.1),
        0.13 + 4 / 0.6 * 0.04 + 3 * ROOT(LOG(2 * 3 * 4 / 0.07) / (2 * m)),
    )
    yield (
        "uniform_margin_bound as printed",
        b.uniform_margin_bound(0.13, 0.04, m, 0.6, 0.07, 3.1, as_printed=True),
        0.13 + 2 / 0.6 * 0.04 + confidence + LOG(math.log2(4 * 3.1 / 0.6)) / m,
    )
    for j in (-3, 0, 2):
        yield f"grid_share of {j}", b.grid_share(j), 2 / (3 * (abs(j) + 1) * (abs(j) + 2))
    ratio = (1.8 / 0.6) ** 2
    yield (
        "srebro_ben_david",
        b.srebro_ben_david(11, 400, 0.6, 1.8),
        ROOT(
            8
            * (
                2
                + 11 * LOG(128 * E * 400**3 * ratio / 11)
                + 256 * ratio * LOG(0.6 * E * 400 / (8 * 1.8)) * LOG(128 * 400 * ratio)
            )
            / 400
        ),
    )

    c, margin = 2.6, 0.45
    yield "psd_ball_complexity", b.psd_ball_complexity(c, 9, margin), ROOT(2 * c / 9) / margin
    diagonal = [np.diag([4.0, 1.0, 1.0, 0.5]), np.diag([2.0, 2.0, 1.0, 1.0])]
    yield (
        "hull_complexity",
        b.hull_complexity(diagonal, c, 2, margin),
        ROOT(2 * c / 2) / margin * ROOT(4 / 6.5),
    )
    yield (
        "spectral_complexity",
        b.spectral_complexity(c, 9, margin),
        ROOT(2 * c * LOG(36)) / (9 * margin),
    )
    yield (
        "transductive_bound",
        b.transductive_bound(0.13, 0.04, 90, 0.07),
        0.13 + 0.04 + ROOT(LOG(1 / 0.07) / 90) + 4 / ROOT(90),
    )

    yield "product_perturbation", b.product_perturbation(m, 1.4, 2.2), 24 * 1.4 * 2.2 / m
    yield "product_bias", b.product_bias(m, 1.4, 2.2), 18 * 1.4 * 2.2 / m
    yield "product_bias sharp", b.product_bias(m, 1.4, 2.2, sharp=True), 4 * 1.4 * 2.2 / m

    def product(delta, first, second):
        return first * second * (18 / 4000 + 24 * ROOT(LOG(2 / delta) / 8000))

    yield (
        "product_concentration",
        b.product_concentration(4000, 0.07, 1.4, 2.2),
        product(0.07, 1.4, 2.2),
    )
    big = 10**7

    def wide(delta, first, second):
        return first * second * (18 / big + 24 * ROOT(LOG(2 / delta) / (2 * big)))

    for pairs in (3, 50):
        d = 0.07 / pairs
        mixed, own, other = wide(d, 1.4, 0.7), wide(d, 1.4, 1.4), wide(d, 0.7, 0.7)
        yield (
            f"alignment_interval, {pairs} pairs",
            b.alignment_interval(0.3, 0.5, 0.4, big, 0.07, 1.4, 0.7, pairs=pairs),
            (
                (0.3 - mixed) / ROOT((0.5 + own) * (0.4 + other)),
                (0.3 + mixed) / ROOT((0.5 - own) * (0.4 - other)),
            ),
        )
    yield "unnormalised_range", b.unnormalised_range(2.3, 1.7), (0.0, 1.7**2 * 2.3)
    yield "good_classifier", b.good_classifier(0.4, 1.7, 0.6), 1 - 0.4 * ROOT(0.6) / 1.7
    yield "good_classifier_plain", b.good_classifier_plain(0.4, 0.6), 1 - (0.4 * 0.6) ** 2
    yield "good_regressor", b.good_regressor(0.4, 0.6), 2 - 2 * 0.4 * 0.6
    yield "good_classifier_unnormalised", b.good_classifier_unnormalised(0.4, 1.7), 1 - 0.4 / 1.7

    yield "residual_bound", b.residual_bound(1.2, 2.3, 0.4), 1.2 + ROOT(2.3) * 1.2 / ROOT(0.4)
    yield (
        "ridge_stability",
        b.ridge_stability(m, 2.3, 1.2, 0.4, 0.9),
        2 * 1.2 * 2.3 / (0.9 + 0.4 * m),
    )
    root = ROOT(LOG(1 / 0.07) / (2 * m))
    yield (
        "stability_bound",
        b.stability_bound(0.3, 0.02, m, 1.7, 0.07),
        0.3 + 2 * 0.02 + (4 * m * 0.02 + 1.7**2) * root,
    )
    yield (
        "stability_bound, point replaced",
        b.stability_bound(0.3, 0.02, m, 1.7, 0.07, replaced=True),
        0.3 + 0.02 + (2 * m * 0.02 + 1.7**2) * root,
    )
    change, spectral, total, R2, label, ridge = [0.3, -0.2], [2.5, 6.0], 1.4, 2.3, 1.2, 0.4
    residual = label * (1 + ROOT(total * R2 / ridge))
    for s, t in ((1.0, math.inf), (1.25, 5.0), (3.0, 1.5)):
        kernel_change = power_norm([0.3, 0.2], s) * power_norm(spectral, t)
        second = total * R2 * label * kernel_change / (ridge**2 * m)
        yield (
            f"two_stage_stability, s = {s}",
            b.two_stage_stability(m, total, R2, label, ridge, change, spectral, s=s),
            2 * total * R2 * residual / (ridge * m)
            + second
            + ROOT(R2) * label / ridge * (0.3 * ROOT(2.5 / m) + 0.2 * ROOT(6 / m)),
        )
        yield (
            f"two_stage_stability as printed, s = {s}",
            b.two_stage_stability(
                m, total, R2, label, ridge, change, spectral, s=s, as_printed=True
            ),
            2 * total * R2 * label / (ridge * m) + second,
        )
    M_old, M_new = np.array([[2.0, 0.3], [0.3, 1.1]]), np.array([[1.7, 0.4], [0.4, 1.5]])
    a_old, a_new = np.array([0.8, 0.5]), np.array([0.6, 0.9])
    v_old, v_new = np.array([0.4, 0.3]), np.array([0.2, 0.7])
    moved = [
        (a_new[i] - a_old[i]) - sum((M_new - M_old)[i, j] * v_new[j] for j in range(2))
        for i in range(2)
    ]
    dv = v_new - v_old
    yield (
        "alignf_change",
        b.alignf_change(M_old, M_new, a_old, a_new, v_old, v_new),
        (
            sum(dv[i] * M_old[i, j] * dv[j] for i in range(2) for j in range(2)),
            sum(moved[i] * dv[i] for i in range(2)),
        ),
    )
    lowest = (3.1 - ROOT(0.9**2 + 4 * 0.3**2)) / 2
    yield (
        "alignf_change_bound",
        b.alignf_change_bound(M_old, M_new, a_old, a_new, v_new),
        ROOT(moved[0] ** 2 + moved[1] ** 2) / lowest,
    )

    yield "trace_complexity", b.trace_complexity(5.5, 1.4, m), 1.4 * ROOT(5.5) / m
    yield "degree_penalty", b.degree_penalty(3, 4, 1.4), 1.4**2 * ROOT(math.comb(7, 3))
    yield (
        "degree_complexity",
        b.degree_complexity(3, 4, 1.4, m),
        12 * 1.4**2 * ROOT(math.pi * math.comb(7, 3) / m),
    )
    yield "gaussian_complexity", b.gaussian_complexity(0.7, 0.3, m), 2 * 0.7 * 0.3 + 1 / ROOT(m)
    yield (
        "sigmoid_complexity",
        b.sigmoid_complexity(-0.7, -0.5, 0.3, m),
        2 * 0.7 * 0.3 + math.tanh(0.5) / ROOT(m),
    )
    yield (
        "sigmoid_complexity as printed",
        b.sigmoid_complexity(-0.7, -0.5, 0.3, m, as_printed=True),
        4 * 0.7 * 0.3,
    )
    yield (
        "gaussian_complexity as printed",
        b.gaussian_complexity(0.7, 0.3, m, as_printed=True),
        0.7 * 0.3,
    )
    yield (
        "expected_complexity",
        b.expected_complexity(0.3, m, 0.07, 1.4),
        0.3 + 1.4 * ROOT(2 * LOG(1 / 0.07) / m),
    )


#: Numbers that other files of this folder compare with loops, enumerations or roots.
ELSEWHERE = {
    *("algebraic_decay", "algebraic_excess_risk", "fixed_point", "fixed_point_bound"),
    *("alignment_concentration", "alignment_predictor", "expected_product"),
    *("bound_factor", "suggest_p", "plot_bound_factor", "learned_block_norms", "certificate"),
    *("empirical_complexity", "local_complexity", "log_feature_dimension", "poisson_moment"),
    *("lanckriet_multiplicative", "lanckriet_vacuous", "ying_campbell"),
    *("learned_ridge_stability_shape", "two_stage_bound", "weight_change"),
    *("local_rademacher", "local_rademacher_truncated", "spectra_of"),
    *("margin_error", "ramp_risk", "voted_risk", "local_voted_risk"),
    *("power_kernels", "transductive_exact", "rademacher_lower_l1"),
    *("rademacher_block_exact", "rademacher_linear_exact", "rademacher_lq_exact"),
}


def test_every_formula():
    # Minima over an exponent are taken on a grid here, which costs a few digits.
    wrong = {
        name: (found, expected)
        for name, found, expected in formulas()
        if found != pytest.approx(expected, rel=1e-8)
    }
    assert not wrong


def test_no_formula_is_left_out():
    functions = {name for name in b.__all__ if callable(getattr(b, name)) and name.islower()}
    here = {name.split()[0].rstrip(",") for name, _, _ in formulas()}
    assert functions - here - ELSEWHERE == set()
    assert functions >= ELSEWHERE


@pytest.mark.parametrize(("q", "r"), [(1, math.inf), (1.25, 5), (2, 2), (3, 1.5), (math.inf, 1)])
def test_conjugate_exponents(q, r):
    assert conjugate(q) == pytest.approx(r)
    assert conjugate(r) == pytest.approx(q)


def test_norms_and_moment_constants():
    values = np.array([[1.0, 2.0, 0.0], [3.0, 0.5, 0.0]])
    for r in (0.5, 1.0, 2.7, math.inf):
        columns = [power_norm(values[:, j], r) for j in range(3)]
        assert norm(values, r) == pytest.approx(columns)
        assert norm(values, r, axis=1) == pytest.approx([power_norm(v, r) for v in values])
    for r in (1, 2, 5, 30):
        assert eta(r) == 23 / 22
        assert eta(r, sharp=True) == pytest.approx(odd_factorial(r) ** (1 / r) / r)
