"""Weighted transducers, and their composition, which a rational kernel evaluates.

A transducer T reads a sequence x and writes sequences w, each with the sum of the weights of the
paths that do so, ``T(x, w)``. The rational kernel of T (Cortes, Haffner & Mohri 2004) is

    K(x, z) = (T o T^-1)(x, z) = sum_w T(x, w) T(z, w),

positive semidefinite whatever the weights. It is computed on the composition of T with its
inverse, whose states are pairs of states of T; pairs of paths that differ only in the order in
which the two sides write nothing are counted once, by letting the left side go first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base import is_number

#: Labels that are not symbols. On the input side: nothing, or any symbol. On the output side:
#: nothing, the symbol that was read, any known symbol but that, any known symbol.
EPSILON, ANY, SAME, OTHER = "<epsilon>", "<any>", "<same>", "<other>"

_INPUTS = (EPSILON, ANY)
_OUTPUTS = (EPSILON, ANY, SAME, OTHER)

Arc = tuple[int, int, str, str, float]


@dataclass(frozen=True, repr=False)
class Transducer:
    """A weighted transducer: reads a sequence and writes others, each with a weight.

    Parameters
    ----------
    arcs : iterable of (source, target, input, output, weight)
        States are whole numbers from 0. Labels are symbols, or one of ``EPSILON`` (nothing is read
        or written), ``ANY`` (input: any symbol; output: any known symbol), and for the output
        ``SAME`` (the symbol that was read) and ``OTHER`` (any known symbol but that one).
    initial, final : int, iterable of int, or mapping of state to weight
    label : str or None
        The name of the transducer.

    Examples
    --------
    Bigrams: skip some letters, copy two, skip the rest.

    >>> from multikernel.kernels.sequences import ANY, EPSILON, SAME, Transducer
    >>> T = Transducer(
    ...     [(0, 0, ANY, EPSILON, 1.0), (0, 1, ANY, SAME, 1.0),
    ...      (1, 2, ANY, SAME, 1.0), (2, 2, ANY, EPSILON, 1.0)],
    ...     initial=0, final=2)
    >>> T.outputs("abab")
    {'ab': 2.0, 'ba': 1.0}
    """

    arcs: tuple[Arc, ...]
    initial: Any = 0
    final: Any = 0
    label: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        arcs = tuple(_check_arc(arc) for arc in self.arcs)
        if not arcs:
            raise ValueError("Transducer: arcs must contain at least one arc; got none.")
        object.__setattr__(self, "arcs", arcs)
        for name in ("initial", "final"):
            object.__setattr__(self, name, _check_states(name, getattr(self, name), self.n_states))

    def __repr__(self) -> str:
        if self.label is not None:
            return f"Transducer.{self.label}"
        return f"<Transducer with {self.n_states} states and {len(self.arcs)} arcs>"

    @property
    def n_states(self) -> int:
        return 1 + max(max(arc[0], arc[1]) for arc in self.arcs)

    @property
    def literals(self) -> tuple[str, ...]:
        """The symbols that arcs name."""
        named = {arc[2] for arc in self.arcs} | {arc[3] for arc in self.arcs}
        return tuple(sorted(named - {EPSILON, ANY, SAME, OTHER}))

    # -- common transducers -----------------------------------------------------------------------

    @classmethod
    def ngrams(cls, n: int) -> Transducer:
        """Write every n-gram of the input: the kernel is :class:`Spectrum`."""
        arcs: list[Arc] = [(0, 0, ANY, EPSILON, 1.0)]
        arcs += [(i, i + 1, ANY, SAME, 1.0) for i in range(n)]
        arcs.append((n, n, ANY, EPSILON, 1.0))
        return cls(tuple(arcs), 0, n, label=f"ngrams({n})")

    @classmethod
    def gappy_ngrams(cls, n: int, decay: float) -> Transducer:
        """Write n symbols, with the factor ``decay`` for each one skipped between first and last.

        The kernel is :class:`Subsequence` without a limit on the span, divided by ``decay^(2 n)``.
        """
        arcs = list(cls.ngrams(n).arcs)
        arcs += [(i, i, ANY, EPSILON, decay) for i in range(1, n)]
        return cls(tuple(arcs), 0, n, label=f"gappy_ngrams({n}, {decay:g})")

    @classmethod
    def mismatches(cls, k: int, m: int) -> Transducer:
        """Write every k-mer with up to m symbols replaced: the kernel is :class:`Mismatch`."""
        # State i * (m + 1) + j: i symbols written, j of them replaced.
        arcs: list[Arc] = [(0, 0, ANY, EPSILON, 1.0)]
        for i in range(k):
            for j in range(min(i, m) + 1):
                here = i * (m + 1) + j
                arcs.append((here, here + m + 1, ANY, SAME, 1.0))
                if j < m:
                    arcs.append((here, here + m + 2, ANY, OTHER, 1.0))
        ends = [k * (m + 1) + j for j in range(min(k, m) + 1)]
        arcs += [(end, end, ANY, EPSILON, 1.0) for end in ends]
        return cls(tuple(arcs), 0, ends, label=f"mismatches({k}, {m})")

    # -- inspection -------------------------------------------------------------------------------

    def outputs(self, x: Any, alphabet: Iterable[str] = ()) -> dict[Any, float]:
        """All outputs w for the input x, with their weights ``T(x, w)``.

        For small examples only: every path is followed.

        Parameters
        ----------
        x : str or sequence of str
        alphabet : iterable of str
            The known symbols besides those of x, for ``OTHER`` and ``ANY`` on the output side.

        Returns
        -------
        dict of output to weight
            Sorted by output: strings if x is a string, tuples of symbols otherwise.
        """
        known = sorted({*x, *alphabet, *self.literals})
        if self._reads_nothing_in_a_cycle():
            raise ValueError(
                f"{self!r} has a cycle of arcs that read nothing: it writes infinitely many "
                "outputs."
            )
        found: dict[tuple[str, ...], float] = {}
        stack: list[tuple[int, int, tuple[str, ...], float]] = [
            (state, 0, (), weight) for state, weight in self.initial
        ]
        final = dict(self.final)
        while stack:
            state, place, written, weight = stack.pop()
            if place == len(x) and state in final:
                found[written] = found.get(written, 0.0) + weight * final[state]
            for source, target, reads, writes, factor in self.arcs:
                if source != state:
                    continue
                if reads == EPSILON:
                    symbol, after = None, place
                elif place < len(x) and reads in (ANY, x[place]):
                    symbol, after = x[place], place + 1
                else:
                    continue
                for output in _written(writes, symbol, known):
                    stack.append((target, after, (*written, *output), weight * factor))
        whole = isinstance(x, str)
        return {"".join(w) if whole else w: found[w] for w in sorted(found)}

    def _reads_nothing_in_a_cycle(self) -> bool:
        n = self.n_states
        reach = np.zeros((n, n), dtype=np.int64)
        for source, target, reads, _, _ in self.arcs:
            if reads == EPSILON:
                reach[source, target] = 1
        for _ in range(n.bit_length()):
            reach = np.minimum(reach + reach @ reach, 1)
        return bool(np.trace(reach))


def _written(writes: str, symbol: str | None, known: list[str]) -> list[tuple[str, ...]]:
    if writes == EPSILON:
        return [()]
    if writes == SAME:
        return [(symbol,)] if symbol is not None else []
    if writes == OTHER:
        return [(s,) for s in known if s != symbol]
    return [(s,) for s in known] if writes == ANY else [(writes,)]


def _check_arc(arc: Any) -> Arc:
    try:
        source, target, reads, writes, weight = arc
    except (TypeError, ValueError):
        raise ValueError(
            f"Transducer: an arc is (source, target, input, output, weight); got {arc!r}."
        ) from None
    states = all(is_number(s) and float(s).is_integer() and s >= 0 for s in (source, target))
    if not states or not is_number(weight) or not np.isfinite(weight):
        raise ValueError(
            f"Transducer: states are whole numbers from 0 and weights finite; got arc {arc!r}."
        )
    if not isinstance(reads, str) or not isinstance(writes, str) or "" in (reads, writes):
        raise ValueError(
            f"Transducer: labels are symbols, or ANY, EPSILON, SAME, OTHER; got arc {arc!r}."
        )
    if reads in (SAME, OTHER):
        raise ValueError(f"Transducer: {reads} is an output label; got arc {arc!r}.")
    if reads == EPSILON and writes in (SAME, OTHER):
        raise ValueError(f"Transducer: {writes} needs a symbol that was read; got arc {arc!r}.")
    return int(source), int(target), reads, writes, float(weight)


def _check_states(name: str, given: Any, n_states: int) -> tuple[tuple[int, float], ...]:
    if is_number(given):
        given = [given]
    if isinstance(given, tuple) and all(isinstance(g, tuple) for g in given):
        given = dict(given)
    pairs = given.items() if isinstance(given, Mapping) else [(state, 1.0) for state in given]
    out = tuple(sorted((int(state), float(weight)) for state, weight in pairs))
    if not out or not all(0 <= state < n_states for state, _ in out):
        raise ValueError(
            f"Transducer: {name} states must be among 0 to {n_states - 1}, at least one; "
            f"got {given!r}."
        )
    return out


# -- composition ----------------------------------------------------------------------------------

# Sets of symbols that an arc may write, for the compiled loops: one symbol, the one that was read,
# all but that one, all.
ONE, READ, BUT_READ, ALL = 0, 1, 2, 3
_KIND = {SAME: READ, OTHER: BUT_READ, ANY: ALL}


@dataclass(frozen=True, eq=False)
class Composition:
    """``T o T^-1`` as arrays: moves between pairs of states, sorted by what they read.

    ``moves[kind]`` for kind 0..3 (reads nothing, x, z, both) has rows

        source, target, x reads, z reads, x writes (kind, symbol), z writes (kind, symbol)

    where a read of -2 is any symbol, and a kind of -1 means that nothing is written on both sides.
    """

    n_states: int
    moves: tuple[np.ndarray, ...]
    weights: tuple[np.ndarray, ...]
    initial: np.ndarray
    final: np.ndarray


def compose(T: Transducer, code: Mapping[str, int]) -> Composition:
    """The composition of T with its inverse; labels become codes, useless states are dropped."""

    def reading(label: str) -> int:
        return -2 if label == ANY else code.get(label, -3)  # -3 never occurs in x

    def writing(label: str) -> tuple[int, int]:
        return (_KIND[label], 0) if label in _KIND else (ONE, code.get(label, -3))

    n = T.n_states
    nothing = (-1, 0, -1, 0)
    rows: list[tuple[int, ...]] = []  # kind, source, target, ...
    weights: list[float] = []

    # State (p, q, f): p reads x, q reads z; f = 1 if q has moved alone since both last wrote.
    def state(p: int, q: int, f: int) -> int:
        return (p * n + q) * 2 + f

    for p, p_next, reads, writes, weight in T.arcs:
        consumes = int(reads != EPSILON)
        label = reading(reads) if consumes else -1
        if writes == EPSILON:
            for q in range(n):
                rows.append((consumes, state(p, q, 0), state(p_next, q, 0), label, -1, *nothing))
                weights.append(weight)
                for f in (0, 1):
                    rows.append(
                        (2 * consumes, state(q, p, f), state(q, p_next, 1), -1, label, *nothing)
                    )
                    weights.append(weight)
            continue
        for q, q_next, other_reads, other_writes, other in T.arcs:
            if other_writes == EPSILON:
                continue
            also = int(other_reads != EPSILON)
            z_label = reading(other_reads) if also else -1
            for f in (0, 1):
                rows.append(
                    (
                        consumes + 2 * also,
                        state(p, q, f),
                        state(p_next, q_next, 0),
                        label,
                        z_label,
                        *writing(writes),
                        *writing(other_writes),
                    )
                )
                weights.append(weight * other)
    table, values = np.array(rows, dtype=np.int64), np.array(weights)
    initial, final = np.zeros(2 * n * n), np.zeros(2 * n * n)
    for p, v in T.initial:
        for q, w in T.initial:
            initial[state(p, q, 0)] = v * w
    for p, v in T.final:
        for q, w in T.final:
            final[[state(p, q, 0), state(p, q, 1)]] = v * w
    useful = _reached(table, initial != 0) & _reached(table[:, [0, 2, 1]], final != 0)
    kept = useful[table[:, 1]] & useful[table[:, 2]] & (values != 0)
    table, values = table[kept], values[kept]
    number = np.cumsum(useful) - 1
    table[:, 1:3] = number[table[:, 1:3]]
    return Composition(
        int(useful.sum()),
        tuple(np.ascontiguousarray(table[table[:, 0] == kind, 1:]) for kind in range(4)),
        tuple(values[table[:, 0] == kind] for kind in range(4)),
        initial[useful],
        final[useful],
    )


def _reached(table: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Mask of the states that moves (from column 1 to column 2) reach from the start."""
    found = start.copy()
    while True:
        new = found.copy()
        new[table[found[table[:, 1]], 2]] = True
        if np.array_equal(new, found):
            return found
        found = new
