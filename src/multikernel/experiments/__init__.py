"""The papers' tables, one module per experiment; each runs as ``python -m``."""
