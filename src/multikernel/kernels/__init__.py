"""What a kernel is: values that can be called, combined and collected in banks."""

from .bank import KernelBank
from .base import Kernel
from .default_bank import default_bank
from .distances import Exponential, Matern
from .histograms import AdditiveChiSquared, ChiSquared
from .make_banks import gaussians, per_feature, per_view, polynomials
from .precomputed import precomputed, sample_ids
from .vectors import Callable, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from .widths import at_distances

__all__ = [
    "AdditiveChiSquared",
    "Callable",
    "ChiSquared",
    "Gaussian",
    "Kernel",
    "KernelBank",
    "Exponential",
    "Laplacian",
    "Matern",
    "Linear",
    "Polynomial",
    "Sigmoid",
    "at_distances",
    "default_bank",
    "gaussians",
    "per_feature",
    "per_view",
    "polynomials",
    "precomputed",
    "sample_ids",
]
