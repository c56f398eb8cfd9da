"""Kernel weights and predictor from one convex problem, with a certified duality gap."""
