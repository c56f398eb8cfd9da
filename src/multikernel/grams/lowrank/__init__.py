"""Features of kernels for samples too large for kernel matrices: maps, sums, and a small sample."""
