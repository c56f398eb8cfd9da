"""Voted Kernel Regularization: a linear program over (kernel, sample) columns."""
