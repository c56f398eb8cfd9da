"""Learners: they train a predictor with one fixed kernel."""

from .ridge import Ridge
from .svm import SVM

__all__ = ["SVM", "Ridge"]
