"""Ensembles of single-kernel predictors."""
