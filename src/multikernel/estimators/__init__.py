"""scikit-learn estimators."""

from .classifier import MultiKernelClassifier
from .oneclass import MultiKernelOneClass
from .regressor import MultiKernelRegressor
from .search import MultiKernelClassifierCV, MultiKernelRegressorCV
from .voted import VotedKernelClassifier
from .voted_search import VotedKernelClassifierCV

__all__ = [
    "MultiKernelClassifier",
    "MultiKernelClassifierCV",
    "MultiKernelOneClass",
    "MultiKernelRegressor",
    "MultiKernelRegressorCV",
    "VotedKernelClassifier",
    "VotedKernelClassifierCV",
]
