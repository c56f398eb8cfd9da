"""Passes over rows on a cluster: `dask.distributed` workers read, map and combine."""

from __future__ import annotations

import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .._version import __version__
from .base import ChunkReader, Mark, Piece, Rows
from .chunk import Chunk
from .reduction import Report, Tree, map_piece

#: Pieces per subtree that is submitted at once: a power of two, so that the tree of all pieces does
#: not depend on it.
LEAVES = 64
#: Maximum bytes of rows in the graph of a subtree, if rows are in the memory of the client.
GRAPH_BYTES = 8 * 2**20
#: How long to wait for a scheduler to answer.
CONNECT_WAIT = "10s"
#: Seconds to wait for a first worker.
WORKER_WAIT = 30.0
#: Seconds between checks of what the workers report.
LOOK = 0.05


@dataclass(frozen=True)
class Leaf:
    """The arguments of a task except the rows and the functions."""

    label: str
    file: str
    first_in_file: int
    chunk_rows: int
    index: int
    first_row: int
    expected: Mark | None
    topic: str


@dataclass(frozen=True)
class Pass:
    """The functions of a pass; one node of the graph, sent to each worker once."""

    reader: ChunkReader
    map_chunk: Callable[[Chunk], Any]
    combine: Callable[[Any, Any], Any]
    version: str = __version__


class LeafPiece(Piece):
    """A block of a dask collection, computed and held by a worker."""

    def __init__(self, raw: Any, leaf: Leaf) -> None:
        self.raw = raw
        self.label, self.file, self.first_in_file = leaf.label, leaf.file, leaf.first_in_file

    def read(self, chunk_rows: int) -> Iterator[Any]:
        from .blocks import cut_block

        yield from cut_block(self.raw, chunk_rows)


def run_piece(given: Any, leaf: Leaf, work: Pass) -> tuple[Any, tuple[tuple[int, Mark], ...]]:
    """Task: the value of a piece, and the marks that the client remembers."""
    from distributed import get_worker

    if work.version != __version__:
        raise RuntimeError(
            f"This worker has multikernel {__version__}, but the client has {work.version}. "
            "Install the same version everywhere."
        )
    piece = given if isinstance(given, Piece) else LeafPiece(given, leaf)
    value, mark = map_piece(
        piece,
        work.reader,
        leaf.chunk_rows,
        leaf.index,
        leaf.first_row,
        leaf.expected,
        work.map_chunk,
        work.combine,
    )
    get_worker().log_event(leaf.topic, (leaf.index, mark.n_rows))
    return value, ((leaf.index, mark),)


def join_values(left: Any, right: Any, work: Pass) -> tuple[Any, tuple[tuple[int, Mark], ...]]:
    """Task: the combined value of two neighbours in the tree."""
    (a, marks), (b, more) = left, right
    # Copy `a`: if this worker dies, `a` is sent again to another one and must be unchanged.
    value = b if a is None else a if b is None else work.combine(_copy(a), b)
    return value, marks + more


def _copy(value: Any) -> Any:
    from copy import deepcopy

    return deepcopy(value)


def reduce_on_cluster(
    rows: Rows,
    map_chunk: Callable[[Chunk], Any],
    combine: Callable[[Any, Any], Any],
    client: Any,
    report: Report | None,
) -> Any:
    """Compute the tree of :func:`reduce_rows` on workers; only its root is sent back.

    Subtrees of `LEAVES` pieces are submitted one after the other, with enough of them in flight to
    keep all workers busy. The graph of a subtree holds all that is needed to compute it again, so
    a worker that dies costs only time.
    """
    from dask.delayed import delayed

    check_workers(client)
    leaves = subtree_leaves(rows)
    starts = rows.first_rows()
    work = delayed(Pass(rows.reader, map_chunk, combine), pure=False, traverse=False)
    run, join = delayed(run_piece, pure=False), delayed(join_values, pure=False)
    with connected(client), told(client, report) as watch:
        roots: list[Any] = []
        waiting: list[Any] = []
        for first in range(0, len(rows.pieces), leaves):
            tree = Tree(lambda left, right: join(left, right, work))
            for i in range(first, min(first + leaves, len(rows.pieces))):
                piece = rows.pieces[i]
                leaf = Leaf(
                    piece.label,
                    piece.file,
                    piece.first_in_file,
                    rows.chunk_rows,
                    i,
                    starts[i],
                    rows.seen.get(i),
                    watch.topic,
                )
                tree.add(run(piece.on_cluster(), leaf, work))
            roots.append(submit(client, tree.result()))
            waiting.append(roots[-1])
            while len(waiting) * leaves >= 2 * leaves + 2 * n_threads(client):
                waiting = watch.wait(waiting)
        if not roots:
            return None
        kept = client.compute(work)
        top = Tree(lambda left, right: client.submit(join_values, left, right, kept, pure=False))
        for root in roots[:-1]:
            top.add(root)
        top.levels.append((-1, roots[-1]))  # it may be a smaller tree, so it is joined last
        final = top.result()
        del roots, waiting, tree
        while watch.wait([final]):
            pass
        value, marks = final.result()
    for i, mark in marks:
        rows.seen.setdefault(i, mark)
    return value


def submit(client: Any, root: Any) -> Any:
    with warnings.catch_warnings():
        # Rows in the memory of the client are sent with the graph, as intended.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return client.compute(root)


def subtree_leaves(rows: Rows) -> int:
    """Pieces per subtree: a power of two, small enough to keep its graph small."""
    largest = max((piece.n_bytes for piece in rows.pieces), default=0)
    leaves = LEAVES
    while leaves > 1 and leaves * largest > GRAPH_BYTES:
        leaves //= 2
    return leaves


def n_threads(client: Any) -> int:
    return max(1, sum(client.nthreads().values()))


def as_client(given: Any) -> Any:
    """The given `Client`, or a new one for the address of a scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "Clusters need dask and distributed: pip install 'multikernel[cluster]'."
        ) from None
    if not isinstance(given, str):
        if not isinstance(given, Client):
            raise TypeError(
                "client must be a dask.distributed.Client or the address of a scheduler such as "
                f"'tcp://host:8786'; got {type(given).__name__}."
            )
        return given
    try:
        return Client(given, timeout=CONNECT_WAIT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"No scheduler answers at {given!r} ({type(error).__name__}: {error}). Start one with "
            "'dask scheduler' and workers with 'dask worker ADDRESS', or correct the address."
        ) from None


def check_workers(client: Any) -> None:
    """Wait for a first worker; an error if none comes, as tasks would wait for ever."""
    if getattr(client, "status", None) != "running":
        raise dead_scheduler(client, f"the client is {getattr(client, 'status', 'closed')}")
    with connected(client):
        end = time.monotonic() + WORKER_WAIT
        while not client.nthreads():
            if time.monotonic() > end:
                raise ConnectionError(
                    f"The scheduler at {address(client)} has no workers. Start some with "
                    f"'dask worker {address(client)}'."
                )
            time.sleep(0.2)


def address(client: Any) -> str:
    scheduler = getattr(client, "scheduler", None)
    return str(getattr(scheduler, "address", None) or "an address that is no longer known")


def dead_scheduler(client: Any, why: object) -> ConnectionError:
    return ConnectionError(
        f"The scheduler at {address(client)} no longer answers ({why}). Results held only by the "
        "workers are lost: start the cluster again and repeat the fit."
    )


@contextmanager
def connected(client: Any) -> Iterator[None]:
    """Explain errors of the cluster itself; errors of tasks pass unchanged."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    where = address(client)
    try:
        yield
    except KilledWorker as error:
        raise RuntimeError(
            f"Workers died {client_retries(error)} times on the same part of the rows, most likely "
            "because they ran out of memory. Give them more memory or fewer threads, or use "
            f"smaller chunks (chunk_rows). The error from dask: {error}"
        ) from None
    except (CommClosedError, CancelledError, TimeoutError) as error:
        raise ConnectionError(
            f"The scheduler at {where} no longer answers ({type(error).__name__}: {error}). "
            "Start the cluster again and repeat the fit."
        ) from None
    except ModuleNotFoundError as error:
        raise ImportError(
            f"A worker of the cluster at {where} cannot import {error.name!r}. Install multikernel "
            f"{__version__} and the packages that the data need on all workers."
        ) from None


def client_retries(error: Any) -> int:
    return int(getattr(error, "allowed_failures", 3)) + 1


class Watch:
    """Counts the pieces that workers report, and passes the count to the caller."""

    def __init__(self, report: Report | None) -> None:
        self.topic = f"multikernel-{uuid.uuid4().hex}"
        self.report = report
        self.lock = threading.Lock()
        self.done: set[int] = set()
        self.rows = 0

    def __call__(self, event: tuple[float, Any]) -> None:
        """Called by dask, in its own thread, for every finished piece."""
        index, n_rows = event[1]
        with self.lock:
            if index not in self.done:  # a piece may be computed again after a worker died
                self.done.add(index)
                self.rows += n_rows

    def tell(self) -> None:
        with self.lock:
            rows, self.rows = self.rows, 0
        if rows and self.report is not None:
            self.report(rows)

    def wait(self, futures: list[Any]) -> list[Any]:
        """Wait until one or more are done; return the pending ones. Raises errors of tasks."""
        while True:
            self.tell()
            failed = [future for future in futures if future.status in ("error", "cancelled")]
            if failed:
                failed[0].result()
            left = [future for future in futures if future.status == "pending"]
            if len(left) < len(futures):
                return left
            time.sleep(LOOK)


@contextmanager
def told(client: Any, report: Report | None) -> Iterator[Watch]:
    """Report the progress of the workers while the context is open."""
    watch = Watch(report)
    if report is not None:
        client.subscribe_topic(watch.topic, watch)
    try:
        yield watch
        watch.tell()
    finally:  # a client that has lost its scheduler cannot, and need not, unsubscribe
        if report is not None and client.status == "running":
            client.unsubscribe_topic(watch.topic)
