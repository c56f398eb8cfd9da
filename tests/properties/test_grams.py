"""What must hold of any bank on any sample."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import multikernel as mk
from multikernel.grams.memory import MemoryBudget

AMPLE = MemoryBudget.of("1GB")
BANK = (
    mk.gaussians([0.05, 0.5])
    + mk.per_feature(mk.Linear())
    + mk.KernelBank([mk.Laplacian(0.2), mk.Gaussian(0.1) * mk.Polynomial(2, gamma=0.1)])
)
HOWS = st.sampled_from(["trace", "trace-first", "multiplicative", "spherical", "frobenius", None])
CENTERS = st.booleans()


@st.composite
def samples(draw, d=3):
    """Tables without constant columns, targets, and weights (or none)."""
    n = draw(st.integers(3, 20))
    seed = draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)) * draw(st.sampled_from([0.1, 1.0, 10.0])), 4)
    omega = rng.integers(1, 4, size=n).astype(float) if draw(st.booleans()) else None
    return X, rng.normal(size=(n, 1)), omega, rng


def grams(X, omega=None, bank=BANK):
    return bank.plan(X).grams(X, budget=AMPLE, sample_weight=omega)


def close(a, b, rtol=1e-9):
    """Each kernel by its largest entry."""
    for one, two in zip(np.asarray(a), np.asarray(b), strict=True):
        scale = np.max(np.abs(two), initial=0.0)
        np.testing.assert_allclose(one, two, rtol=0, atol=rtol * scale + 1e-300)


def well_conditioned(G):
    """Spherical normalisation divides by diagonals: keep away from points at the centre."""
    d = G.corrected(G.center, None).diagonals()
    assume(np.all(d > 1e-4 * d.max(axis=1, keepdims=True)))


@given(samples(), HOWS)
def test_centred_blocks_have_no_mean(sample, how):
    X, _, omega, _ = sample
    G = grams(X, omega).corrected(True, None if how == "spherical" else how)
    n = len(X)
    weights = np.ones(n) if omega is None else omega
    K = G.block(slice(0, n))
    size = np.abs(K).max(axis=(1, 2))[:, None] * weights.sum()
    assert np.all(np.abs(K @ weights) <= 1e-12 * size)
    assert np.all(np.abs(weights @ K) <= 1e-12 * size)


@given(samples(), HOWS)
def test_centring_is_idempotent(sample, how):
    """Centred matrices, handed over as precomputed ones, do not change when centred again."""
    X, y, omega, _ = sample
    n = len(X)
    once = grams(X, omega).corrected(True, how if how != "spherical" else None)
    K = once.block(slice(0, n))
    twice = grams(mk.sample_ids(n), omega, mk.precomputed((K + K.transpose(0, 2, 1)) / 2))
    twice = twice.corrected(True, None)
    close(twice.block(slice(0, n)), K, 1e-11)
    close(twice.summary(y).M, once.summary(y).M, 1e-10)
    k = mk.center(K[0])
    np.testing.assert_allclose(mk.center(k), k, rtol=0, atol=1e-13 * np.abs(k).max())


@given(samples(), HOWS, arrays(float, 20, elements=st.floats(-10, 10)))
def test_what_depends_on_one_point_does_not_matter(sample, how, f):
    """``K(x, z) + f(x) + f(z)`` is the same kernel once it is centred."""
    assume(how != "trace-first")  # the trace before centring is another
    X, y, omega, rng = sample
    n = len(X)
    K = mk.Gaussian(0.3)(X)
    moved = K + f[:n, None] + f[None, :n]
    ids = mk.sample_ids(n)
    one = grams(ids, omega, mk.precomputed([K])).corrected(True, how)
    two = grams(ids, omega, mk.precomputed([moved])).corrected(True, how)
    if how == "spherical":
        well_conditioned(one)
    # Values up to 20 are moved about: that leaves this much of the centred kernel.
    lost = 1e-13 * 20 / one.corrected(True, None).diagonals().max()
    assume(lost < 1e-6)
    tol = 1e3 * lost
    close(two.block(slice(0, n)), one.block(slice(0, n)), tol)
    a, b = one.summary(y), two.summary(y)
    np.testing.assert_allclose(b.alignments, a.alignments, rtol=0, atol=tol)
    coef = rng.normal(size=(n, 1))
    here, there = (G.expand(np.ones(1), coef).values(G.points(np.arange(n))) for G in (one, two))
    scale = np.abs(one.block(slice(0, n))[0]) @ np.abs(coef)
    np.testing.assert_allclose(there, here, rtol=0, atol=tol * scale.max())


@given(samples(), HOWS, CENTERS)
def test_the_order_of_samples_does_not_matter(sample, how, center):
    X, y, omega, rng = sample
    order = rng.permutation(len(X))
    one = grams(X, omega).corrected(center, how)
    two = grams(X[order], None if omega is None else omega[order]).corrected(center, how)
    if how == "spherical":
        well_conditioned(one)
    n = len(X)
    close(two.block(slice(0, n)), one.block(slice(0, n))[:, order][:, :, order])
    a, b = one.summary(y), two.summary(y[order])
    norms = np.outer(a.norms, a.norms)
    assert np.all(np.abs(a.M - b.M) <= 1e-9 * norms)
    np.testing.assert_allclose(a.alignments, b.alignments, rtol=0, atol=1e-9)


@given(samples(), HOWS, CENTERS)
def test_the_order_of_kernels_does_not_matter(sample, how, center):
    X, y, omega, rng = sample
    kernels = [
        mk.Gaussian(0.05),
        mk.Linear(columns=0),
        mk.Linear(columns=2),
        mk.Laplacian(0.2),
        mk.Gaussian(0.1) * mk.Polynomial(2, gamma=0.1),
        mk.Polynomial(2, gamma=0.1),
    ]
    order = rng.permutation(len(kernels))
    one = grams(X, omega, mk.KernelBank(kernels)).corrected(center, how)
    two = grams(X, omega, mk.KernelBank([kernels[k] for k in order])).corrected(center, how)
    if how == "spherical":
        well_conditioned(one)
    n = len(X)
    assert list(two.names) == [one.names[k] for k in order]
    close(two.block(slice(0, n)), one.block(slice(0, n))[order], 1e-11)
    a, b = one.summary(y), two.summary(y)
    close(b.norms, a.norms[order])
    assert np.all(np.abs(b.M - a.M[np.ix_(order, order)]) <= 1e-9 * np.outer(b.norms, b.norms))
    mu = rng.uniform(size=len(kernels))
    np.testing.assert_allclose(
        two.combine(mu[order]).dense(),
        one.combine(mu).dense(),
        rtol=0,
        atol=1e-11 * np.abs(one.combine(mu).dense()).max(),
    )


@given(samples(), HOWS, st.floats(1e-6, 1e6))
def test_the_size_of_a_kernel_does_not_matter(sample, how, factor):
    """Alignments never see it; normalised kernels do not either."""
    X, y, omega, _ = sample
    kernel = mk.Gaussian(0.3) + mk.Linear()
    one = grams(X, omega, mk.KernelBank([kernel])).corrected(True, how)
    two = grams(X, omega, mk.KernelBank([factor * kernel])).corrected(True, how)
    if how == "spherical":
        well_conditioned(one)
    np.testing.assert_allclose(two.summary(y).alignments, one.summary(y).alignments, atol=1e-9)
    if how is not None:
        close(two.block(slice(0, len(X))), one.block(slice(0, len(X))))


@given(samples(), HOWS, CENTERS)
def test_combinations_are_psd_and_alignments_are_angles(sample, how, center):
    X, y, omega, rng = sample
    G = grams(X, omega).corrected(center, how)
    mu = rng.uniform(size=G.p)
    K = G.combine(mu).dense()
    values = np.linalg.eigvalsh((K + K.T) / 2)
    assert values[0] >= -1e-9 * values[-1]
    found = G.summary(y)
    assert np.all(np.abs(found.alignments) <= 1 + 1e-9)
    assert np.all(found.alignments >= -1e-9)
    assert -1e-9 <= found.alignment(mu) <= 1 + 1e-9
    values = np.linalg.eigvalsh(found.M)
    assert values[0] >= -1e-9 * values[-1]
