"""The waist: a bank evaluated on one training sample, seen through passes over it."""
