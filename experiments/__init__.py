"""The papers' experiments, one module each, and the data sets they need.

Run one from the root of the checkout, ``python -m experiments.toy``, or from anywhere,
``multikernel reproduce toy``.
"""
