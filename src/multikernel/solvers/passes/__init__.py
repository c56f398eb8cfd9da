"""Learning from features in passes over rows that need not fit into memory."""
