"""How well defaults predict: ours and the methods that people use, on public tables.

Importing the package limits numerical libraries to one thread, unless the environment says
otherwise: seconds of one method and another are then comparable.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
