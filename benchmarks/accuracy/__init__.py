"""How well defaults predict: ours and the methods that people use, on public tables."""
