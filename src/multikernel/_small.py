"""Where compiled code begins: samples up to this size are served by NumPy, BLAS and LAPACK alone.

Compiling all loops of a first fit takes some twenty seconds of processor time, once for each
installation, and again in every container that starts without the compiled files. Work on small
samples is done long before that. The size of the sample decides, never whether compiled code is at
hand, so that the same data give the same results everywhere; the two ways agree to rounding.
"""

from __future__ import annotations

#: Samples up to which nothing is compiled.
SMALL_SAMPLES = 2000
