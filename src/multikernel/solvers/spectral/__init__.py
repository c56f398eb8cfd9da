"""Spectral and convex-hull classes of kernel matrices (Bousquet & Herrmann)."""
