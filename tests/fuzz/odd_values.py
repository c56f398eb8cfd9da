"""Values that nobody means, for parameters and data."""

from __future__ import annotations

import decimal
import fractions

import numpy as np
import scipy.sparse as sp


class Odd:
    """A value with a name, for messages."""

    def __init__(self, name, value):
        self.name, self.value = name, value

    def __repr__(self):
        return self.name


def scalars():
    """Single values: numbers of all kinds and sizes, texts, containers, objects."""
    numbers = [0, -0.0, 1, -1, 2, 3, 10**6, 2**31, 2**63, -(2**63), 10**30, 0.1, 0.5, 0.999, 1.5]
    numbers += [1 + 1e-12, 1 - 1e-12, 1.0000001, float("nan"), float("inf"), -float("inf")]
    numbers += [
        sign * 10.0**k
        for k in (-320, -308, -300, -200, -100, -30, -16, -12, -8, -4)
        for sign in (1, -1)
    ]
    numbers += [
        sign * 10.0**k for k in (3, 4, 8, 12, 16, 30, 100, 200, 300, 308) for sign in (1, -1)
    ]
    kinds = [np.float16, np.float32, np.longdouble, np.int8, np.uint8, np.int64, np.uint64]
    numbers += [kind(value) for kind in kinds for value in (0, 1, 2)]
    numbers += [np.float32("nan"), np.float64("inf"), np.bool_(True), np.bool_(False), True, False]
    numbers += [1j, 1 + 0j, np.complex64(1), decimal.Decimal("0.5"), fractions.Fraction(1, 2)]
    texts = [
        "",
        " ",
        "auto",
        "AUTO",
        "none",
        "None",
        "nan",
        "1",
        "0.5",
        "linear",
        "rbf",
        "balanced",
    ]
    texts += [
        "loo",
        "LOO",
        "alignf ",
        "lp-norm",
        "Ü",
        "\x00",
        "a" * 1000,
        "'; DROP",
        "../x",
        b"loo",
    ]
    containers = [[], (), {}, set(), [None], [1], [1, 2, 3], (0.5,), {"a": 1}, {0: 1.0}, {None: 1}]
    containers += [{0: 1e12, 1: 1e-12}, {0: -1, 1: 1}, {0: 0, 1: 1}, {"0": 1, "1": 1}, [[1, 2]]]
    containers += [range(3), iter([1]), slice(None), Ellipsis, NotImplemented, frozenset([1])]
    texts += ["inf", "-1", "True", "\n", "\t"]
    objects = [None, object(), object, int, len, lambda: 1, lambda x, y: None, np, Exception("x")]
    objects += [np.datetime64("2020-01-01"), np.timedelta64(1, "s"), np.random.default_rng(0)]
    arrays = [np.array(v) for v in (0, 1.0, np.nan, "x")]
    arrays += [np.array([]), np.zeros(0), np.ones(1), np.ones(3), np.eye(2), np.zeros((0, 0))]
    arrays += [np.full(2, np.nan), np.array([None]), np.array(["a"]), sp.csr_matrix((2, 2))]
    every = numbers + texts + containers + objects + arrays
    return [Odd(f"{type(v).__name__} {v!r:.40}", v) for v in every]


def tables(X):
    """Versions of a table of numbers: types, layouts, scales, holes, shapes."""
    n, d = X.shape
    kinds = [
        "float16",
        "float32",
        "longdouble",
        "int8",
        "int64",
        "uint8",
        "bool",
        "complex128",
        "object",
        "S8",
        "U8",
    ]
    with np.errstate(all="ignore"):
        found = [(str(kind), X.astype(kind)) for kind in kinds]
        found += [(f"times 1e{k}", X * 10.0**k) for k in range(-320, 310, 30)]
        found += [(f"plus 1e{k}", X + 10.0**k) for k in range(-20, 310, 30)]
    for name, hole in (("nan", np.nan), ("inf", np.inf), ("-inf", -np.inf), ("1e308", 1e308)):
        for where in ((0, 0), (n - 1, d - 1), (slice(None), 0), (0, slice(None))):
            one = X.copy()
            one[where] = hole
            found.append((f"{name} at {where}", one))
    for name, value in (("zeros", 0.0), ("ones", 1.0), ("tiny", 1e-300), ("huge", 1e150)):
        found.append((name, np.full_like(X, value)))
    duplicated = np.repeat(X[:2], n // 2, axis=0)
    read_only = X.copy()
    read_only.flags.writeable = False
    found += [
        ("duplicates", duplicated),
        ("read only", read_only),
        ("Fortran order", np.asfortranarray(X)),
        ("every other row", np.repeat(X, 2, axis=0)[::2]),
        ("reversed", X[::-1, ::-1]),
        ("big endian", X.astype(">f8")),
        ("list", X.tolist()),
        ("masked", np.ma.masked_array(X, mask=X > 1)),
        ("matrix of one column", X[:, :1]),
        ("no columns", X[:, :0]),
        ("no rows", X[:0]),
        ("one row", X[:1]),
        ("a vector", X[:, 0]),
        ("three axes", X[:, :, None]),
        ("a number", 1.0),
        ("None", None),
        ("text", "table.csv"),
        ("ragged", [[1.0], [1.0, 2.0]]),
        ("a dict", {"a": [1, 2]}),
    ]
    for kind in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
        found.append((f"sparse {kind}", sp.csr_matrix(X).asformat(kind)))
        found.append((f"sparse array {kind}", sp.csr_array(X).asformat(kind)))
    return [Odd(name, value) for name, value in found]


def targets(y):
    """Versions of a target."""
    n = len(y)
    found = [
        (kind, np.asarray(y).astype(kind))
        for kind in ["int8", "float32", "bool", "object", "U4", "complex64"]
    ]
    found += [
        ("one class", np.zeros(n)),
        ("a class for each", np.arange(n)),
        ("one of a class", np.eye(1, n)[0]),
        ("nan", np.where(np.arange(n) == 0, np.nan, y)),
        ("inf", np.where(np.arange(n) == 0, np.inf, y)),
        ("1e200", 1e200 * np.asarray(y, dtype=float)),
        ("1e-200", 1e-200 * np.asarray(y, dtype=float)),
        ("1e15 apart", 1e15 + np.asarray(y, dtype=float)),
        ("a column", np.asarray(y)[:, None]),
        ("two columns", np.column_stack([y, y])),
        ("too short", np.asarray(y)[:-1]),
        ("too long", np.append(y, 0)),
        ("empty", []),
        ("None", None),
        ("a number", 1),
        ("text", "y"),
        ("mixed", [0, "a"] * (n // 2)),
        ("with None", [None, *np.asarray(y)[1:]]),
        ("dates", np.arange(n).astype("datetime64[D]")),
        ("sparse", sp.csr_matrix(np.asarray(y, dtype=float)[:, None])),
    ]
    return [Odd(name, value) for name, value in found]


def sample_weights(n):
    """Versions of sample weights."""
    found = [("zeros", np.zeros(n)), ("one", np.eye(1, n)[0]), ("negative", -np.ones(n))]
    found += [("nan", np.full(n, np.nan)), ("inf", np.full(n, np.inf)), ("short", np.ones(n - 1))]
    found += [(f"1e{k}", np.full(n, 10.0**k)) for k in (-300, -100, -12, 12, 100, 300)]
    found += [("1e12 apart", np.where(np.arange(n) % 2, 1e12, 1e-12)), ("text", ["a"] * n)]
    return [Odd(name, value) for name, value in found]
