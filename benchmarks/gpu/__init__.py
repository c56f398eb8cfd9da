"""What one GPU does, and the limits of the card in the same run; see `__main__`."""
