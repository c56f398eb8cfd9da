"""multikernel: learn which kernels to trust.

>>> import multikernel as mk
>>> from sklearn.datasets import load_wine
>>> X, y = load_wine(return_X_y=True)
>>> mk.MultiKernelClassifier().fit(X, y).score(X, y)
1.0
"""

from . import datasets
from ._version import __version__
from .estimators import (
    MultiKernelClassifier,
    MultiKernelClassifierCV,
    MultiKernelOneClass,
    MultiKernelRegressor,
    MultiKernelRegressorCV,
)
from .grams.normalise import alignment, center, centered_alignment, normalize
from .kernels import (
    Callable,
    Gaussian,
    Kernel,
    KernelBank,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
    default_bank,
    gaussians,
    per_feature,
    per_view,
    polynomials,
    precomputed,
    sample_ids,
)
from .weighting import (
    L1,
    Align,
    AlignF,
    AlignmentRegularized,
    BestSingle,
    ElasticNetNorm,
    HierarchicalNorm,
    L2Ball,
    LpNorm,
    NonIsotropicNorm,
    Uniform,
)

__all__ = [
    "L1",
    "L2Ball",
    "Align",
    "AlignF",
    "AlignmentRegularized",
    "BestSingle",
    "Callable",
    "ElasticNetNorm",
    "Gaussian",
    "HierarchicalNorm",
    "Kernel",
    "KernelBank",
    "Laplacian",
    "Linear",
    "LpNorm",
    "MultiKernelClassifier",
    "MultiKernelClassifierCV",
    "MultiKernelOneClass",
    "MultiKernelRegressor",
    "MultiKernelRegressorCV",
    "NonIsotropicNorm",
    "Polynomial",
    "Sigmoid",
    "Uniform",
    "__version__",
    "alignment",
    "center",
    "centered_alignment",
    "datasets",
    "default_bank",
    "gaussians",
    "normalize",
    "per_feature",
    "per_view",
    "polynomials",
    "precomputed",
    "sample_ids",
]
