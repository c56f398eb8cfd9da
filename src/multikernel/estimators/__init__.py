"""scikit-learn estimators."""

from .classifier import MultiKernelClassifier
from .regressor import MultiKernelRegressor
from .search import MultiKernelClassifierCV, MultiKernelRegressorCV

__all__ = [
    "MultiKernelClassifier",
    "MultiKernelClassifierCV",
    "MultiKernelRegressor",
    "MultiKernelRegressorCV",
]
