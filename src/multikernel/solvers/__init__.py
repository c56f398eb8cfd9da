"""Solvers: from grams and targets to weights and machines."""
