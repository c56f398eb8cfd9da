"""Random frequencies of kernels of ``x - z``, orthogonal to each other where the kernel allows it.

A kernel ``h(x - z)`` with ``h(0) = 1`` is the mean of ``cos(w'(x - z))`` over frequencies w with
the density that is its Fourier transform (Bochner; Rahimi & Recht 2007). Kernels of the Euclidean
distance are mixtures of Gaussians: ``w = sqrt(2 g) z`` with z standard normal and a random g,

    Gaussian            g = gamma
    rational quadratic  g = Gamma(alpha) / (2 alpha length^2)
    Matern              g = 1 / (2 length^2 Gamma(nu) / nu):  a t distribution, 2 nu degrees
    exponential         the same with nu = 1/2, for power 1; a positive stable g for other powers

The directions of z may be orthogonal in blocks of d with lengths drawn as before, which lowers the
variance (Yu et al. 2016). The Laplacian is a product over columns: its frequencies are Cauchy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels.base import Kernel
from ...kernels.distances import Exponential, Matern, RationalQuadratic
from ...kernels.vectors import Gaussian, Laplacian

#: Kernels of ``x - z`` whose frequencies can be drawn.
SHIFT_INVARIANT = (Gaussian, Laplacian, Exponential, Matern, RationalQuadratic)


def has_frequencies(kernel: Kernel) -> bool:
    """Whether frequencies of this kernel can be drawn."""
    return type(kernel) in SHIFT_INVARIANT


def orthogonal_normal(d: int, m: int, random: np.random.Generator) -> np.ndarray:
    """m standard normal columns that are orthogonal within blocks of d, shape (d, m)."""
    blocks = []
    for start in range(0, m, d):
        Q, R = np.linalg.qr(random.standard_normal((d, d)))
        Q *= np.sign(np.diag(R))  # uniform over rotations and reflections
        lengths = np.sqrt(random.chisquare(d, size=d))
        blocks.append((Q * lengths)[:, : min(d, m - start)])
    return np.concatenate(blocks, axis=1)


def draw(kernel: Any, Z: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Frequencies of a kernel, shape (d, m), from standard normal columns Z of the same shape."""
    d, m = Z.shape
    if type(kernel) is Laplacian:
        return kernel.gamma * random.standard_cauchy((d, m))
    return np.asarray(Z * np.sqrt(2.0 * _mixing(kernel, m, random)))


def _mixing(kernel: Any, m: int, random: np.random.Generator) -> np.ndarray | float:
    """Random ``g`` such that the kernel is the mean of ``exp(-g ||x - z||^2)``."""
    if type(kernel) is Gaussian:
        return float(kernel.gamma)
    if type(kernel) is RationalQuadratic:
        return random.gamma(kernel.alpha, size=m) / (kernel.alpha * 2.0 * kernel.length**2)
    if type(kernel) is Matern:
        return kernel.nu / (2.0 * kernel.length**2 * random.gamma(kernel.nu, size=m))
    assert type(kernel) is Exponential
    if kernel.power == 2.0:
        return float(kernel.length**-2.0)
    # exp(-(d^2)^a) is the Laplace transform of a positive stable law with exponent a.
    return positive_stable(0.5 * kernel.power, m, random) / kernel.length**2


def positive_stable(a: float, m: int, random: np.random.Generator) -> np.ndarray:
    """Random numbers g > 0 with ``E exp(-g t) = exp(-t^a)``, by Kanter's formula (1975)."""
    u = np.pi * random.random(m)
    e = random.standard_exponential(m)
    first = np.sin(a * u) / np.sin(u) ** (1.0 / a)
    return np.asarray(first * (np.sin((1.0 - a) * u) / e) ** ((1.0 - a) / a))
