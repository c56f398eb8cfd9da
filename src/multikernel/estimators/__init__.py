"""scikit-learn estimators."""

from .classifier import MultiKernelClassifier
from .clustering import KernelClustering
from .codes import TableCodes
from .consensus import ConsensusKernel
from .ensemble import KernelEnsembleClassifier, KernelEnsembleRegressor
from .features import KernelFeatures
from .learned_kernel import LearnedKernel
from .oneclass import MultiKernelOneClass
from .parzen import ParzenClassifier, ParzenRegressor
from .regressor import MultiKernelRegressor
from .search import MultiKernelClassifierCV, MultiKernelRegressorCV
from .spectral import SpectralKernelClassifier
from .voted import VotedKernelClassifier
from .voted_search import VotedKernelClassifierCV

__all__ = [
    "ConsensusKernel",
    "KernelClustering",
    "KernelEnsembleClassifier",
    "KernelEnsembleRegressor",
    "KernelFeatures",
    "LearnedKernel",
    "MultiKernelClassifier",
    "MultiKernelClassifierCV",
    "MultiKernelOneClass",
    "MultiKernelRegressor",
    "MultiKernelRegressorCV",
    "ParzenClassifier",
    "ParzenRegressor",
    "SpectralKernelClassifier",
    "TableCodes",
    "VotedKernelClassifier",
    "VotedKernelClassifierCV",
]
