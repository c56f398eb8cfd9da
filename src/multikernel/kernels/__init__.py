"""Kernels: values that can be called, combined and collected in banks."""

from .bank import KernelBank
from .base import Kernel
from .default_bank import default_bank
from .distances import Exponential, Matern, Periodic, RationalQuadratic
from .histograms import AdditiveChiSquared, ChiSquared
from .make_banks import gaussians, per_feature, polynomials
from .missing_pattern import MissingPattern
from .overlap import Overlap
from .precomputed import precomputed, sample_ids
from .similarities import Cosine, HistogramIntersection, MinMax, Tanimoto
from .vectors import Callable, Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from .views import per_view
from .widths import at_distances

__all__ = [
    "AdditiveChiSquared",
    "Callable",
    "ChiSquared",
    "Cosine",
    "Exponential",
    "Gaussian",
    "HistogramIntersection",
    "Kernel",
    "KernelBank",
    "Laplacian",
    "Linear",
    "Matern",
    "MinMax",
    "MissingPattern",
    "Overlap",
    "Periodic",
    "Polynomial",
    "RationalQuadratic",
    "Sigmoid",
    "Tanimoto",
    "at_distances",
    "default_bank",
    "gaussians",
    "per_feature",
    "per_view",
    "polynomials",
    "precomputed",
    "sample_ids",
]
