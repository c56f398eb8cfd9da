"""The engine "torch": the passes of the waist on torch tensors, on a processor or a GPU.

Arithmetic is float64. Samples are held on the device; algorithms run on the host and exchange
vectors with it. Kernels that are functions of one distance are evaluated tile by tile by Triton
programs (:mod:`._programs`) on a GPU; :mod:`.sums` and :mod:`.table` have the same functions in
plain torch for processors and for tests. Results have the same bits in every run on the same
device: no sum depends on the order in which programs finish.

torch is imported when grams are built, never before.
"""
