"""The sample size up to which NumPy, BLAS and LAPACK are used instead of compiled code.

Compiling all loops of a first fit takes some twenty seconds of processor time, once for each
installation, and again in every container that starts without the compiled files. Work on small
samples is done long before that. The choice depends on the sample size only, never on whether
compiled code is available, so that the same data give the same results everywhere; both ways agree
up to rounding.
"""

from __future__ import annotations

#: Largest number of samples handled without compiled code, except in some runs of SMO.
SMALL_SAMPLES = 2000
