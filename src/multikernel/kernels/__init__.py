"""What a kernel is: values that can be called, combined and collected in banks."""

from .bank import KernelBank
from .base import Kernel
from .default_bank import default_bank
from .histograms import AdditiveChiSquared, ChiSquared
from .make_banks import gaussians, per_feature, per_view, polynomials
from .precomputed import precomputed, sample_ids
from .vectors import Callable, Gaussian, Laplacian, Linear, Polynomial, Sigmoid

__all__ = [
    "AdditiveChiSquared",
    "Callable",
    "ChiSquared",
    "Gaussian",
    "Kernel",
    "KernelBank",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Sigmoid",
    "default_bank",
    "gaussians",
    "per_feature",
    "per_view",
    "polynomials",
    "precomputed",
    "sample_ids",
]
