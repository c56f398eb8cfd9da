"""Shim."""

from ..solvers.regularisers import conjugate, norm
from .joint import L1, LpNorm

__all__ = ["L1", "LpNorm", "conjugate", "norm"]
