"""scikit-learn estimators."""

from .classifier import MultiKernelClassifier
from .ensemble import KernelEnsembleClassifier, KernelEnsembleRegressor
from .oneclass import MultiKernelOneClass
from .parzen import ParzenClassifier, ParzenRegressor
from .regressor import MultiKernelRegressor
from .search import MultiKernelClassifierCV, MultiKernelRegressorCV
from .spectral import SpectralKernelClassifier
from .voted import VotedKernelClassifier
from .voted_search import VotedKernelClassifierCV

__all__ = [
    "KernelEnsembleClassifier",
    "KernelEnsembleRegressor",
    "MultiKernelClassifier",
    "MultiKernelClassifierCV",
    "MultiKernelOneClass",
    "MultiKernelRegressor",
    "MultiKernelRegressorCV",
    "ParzenClassifier",
    "ParzenRegressor",
    "SpectralKernelClassifier",
    "VotedKernelClassifier",
    "VotedKernelClassifierCV",
]
