"""scikit-learn estimators."""

from .classifier import MultiKernelClassifier
from .oneclass import MultiKernelOneClass
from .regressor import MultiKernelRegressor
from .search import MultiKernelClassifierCV, MultiKernelRegressorCV

__all__ = [
    "MultiKernelClassifier",
    "MultiKernelClassifierCV",
    "MultiKernelOneClass",
    "MultiKernelRegressor",
    "MultiKernelRegressorCV",
]
