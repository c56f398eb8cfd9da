"""Voted kernel regularisation: a sparse vote of kernel functions, solved as a linear program."""
