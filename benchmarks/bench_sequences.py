"""Gram matrices of 5,000 DNA windows of length 200: ours, CountVectorizer, strkernel.

    python benchmarks/bench_sequences.py [--quick] [--strkernel PYTHON]

Every route starts from the same list of strings and ends with the same dense float64 matrix; times
are CPU seconds on one BLAS thread, medians of a few runs for ours, one run for the slower ones.

* *spectrum*: `Spectrum(k)` against `CountVectorizer(analyzer="char", ngram_range=(k, k))` and the
  sparse product of its counts with themselves; against `gappypair_kernel(k, g=0)` of strkernel and
  the product of its features, sparse as they come by default and (second row) dense.
* *weighted degree*: `WeightedDegree(10)` against CountVectorizer on d-mers that carry their
  position, one vectoriser for each d, and the weighted sum of the products.
* *limit*: what the weighted degree kernel must at least do: read the packed words of both sequences
  for every pair once (2 bits per letter, 64 bytes for a window of 200), and write the matrix. The
  same loop as ours with nothing but an exclusive or in it, and the same matrix allocated, filled
  and mirrored.

strkernel lives in an environment of its own, since it holds other packages back: `--strkernel`
names the Python there. `--quick` takes 1,000 windows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numba
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from threadpoolctl import threadpool_limits

from multikernel._mirror import mirror
from multikernel._places import write_atomically, write_csv
from multikernel.kernels.sequences import Mismatch, Spectrum, WeightedDegree
from multikernel.kernels.sequences._bits import LANES, PANEL, planes
from multikernel.kernels.sequences.encoding import common_codes
from multikernel.kernels.sequences.table import Table

RESULTS = Path(__file__).parent / "results"
LENGTH, DEGREE = 200, 10

PEER = """
SPARSE = True  # as it comes; False gives its features as a dense array
import json, sys, time
import numpy as np
from strkernel.gappy_kernel import gappypair_kernel
from strkernel.mismatch_kernel import MismatchKernel
windows, ks = json.load(sys.stdin)
out = {}
for k in ks:
    start = time.process_time()
    F = gappypair_kernel(windows, k, g=0, sparse=SPARSE, include_flanking=True)
    K = (F @ F.T).toarray() if SPARSE else F @ F.T
    out[f"spectrum {k}"] = [time.process_time() - start, K[:50, :50].tolist()]
some = [[ "ACGT".index(c) for c in w] for w in windows[:100]]
start = time.process_time()
K = MismatchKernel(l=4, k=5, m=1).get_kernel(some, normalize=False).kernel
out["mismatch"] = [time.process_time() - start, np.asarray(K).tolist()]
json.dump(out, sys.stdout)
"""


def windows(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    return ["".join(row) for row in rng.choice(list("ACGT"), size=(n, LENGTH))]


def timed(route: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    times = []
    for _ in range(repeats):
        start = process_time()
        K = route()
        times.append(process_time() - start)
    return float(np.median(times)), K


def sklearn_spectrum(X: list[str], k: int) -> np.ndarray:
    counts = CountVectorizer(analyzer="char", ngram_range=(k, k), lowercase=False)
    F = counts.fit_transform(X).astype(np.float64)
    return (F @ F.T).toarray()


def sklearn_weighted_degree(X: list[str], degree: int) -> np.ndarray:
    total = np.zeros((len(X), len(X)))
    for d in range(1, degree + 1):
        counts = CountVectorizer(
            analyzer=lambda x, d=d: [f"{i}{x[i : i + d]}" for i in range(len(x) - d + 1)]
        )
        F = counts.fit_transform(X).astype(np.float64)
        total += 2 * (degree - d + 1) / (degree * (degree + 1)) * (F @ F.T).toarray()
    return total


@numba.njit(nogil=True)
def read_words(x: np.ndarray, across: np.ndarray, n: int, out: np.ndarray) -> None:
    """Read the packed words of every pair once and write one number for it."""
    n_words = x.shape[2]
    seen = np.zeros(LANES, dtype=np.uint64)
    for panel in range(0, n, PANEL):
        for i in range(panel, n):
            end = min(panel + PANEL, i + 1)
            for start in range(panel, end, LANES):
                seen[:] = 0
                for b in range(2):
                    for w in range(n_words):
                        word = x[i, b, w]
                        for lane in range(LANES):
                            seen[lane] ^= word ^ across[b, w, np.uint64(start + lane)]
                for lane in range(min(LANES, end - start)):
                    out[i, np.uint64(start + lane)] = seen[lane]


def limit(X: list[str]) -> Callable[[], np.ndarray]:
    sample = Table.of(X).sequences(None, "letter", "benchmark")
    coded, _, _ = common_codes(sample, sample, None, False)
    bits = planes(coded.codes, coded.offsets, 2, -(-LENGTH // 64))
    across = np.zeros((2, bits.shape[2], -(-len(X) // LANES) * LANES), dtype=np.uint64)
    across[:, :, : len(X)] = bits[:, :2].transpose(1, 2, 0)

    def route() -> np.ndarray:
        out = np.empty((len(X), len(X)))
        read_words(bits, across, len(X), out)
        mirror(out)
        return out

    return route


def ask_strkernel(python: str, X: list[str], sparse: bool) -> dict[str, list]:
    """Times and (corners of) matrices from the other environment."""
    script = PEER if sparse else PEER.replace("SPARSE = True", "SPARSE = False")
    text = json.dumps([X, [3, 6]])
    done = subprocess.run([python, "-c", script], input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"strkernel failed:\n{done.stderr}")
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 windows")
    parser.add_argument("--strkernel", metavar="PYTHON", help="a Python that has strkernel")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    X = windows(1000 if options.quick else 5000)
    rows = []

    def report(what: str, ours: float, peer: str, theirs: float, error: float | None) -> None:
        row = {
            "kernel": what,
            "ours [s]": f"{ours:.3f}",
            "against": peer,
            "theirs [s]": f"{theirs:.3f}",
            "theirs / ours": f"{theirs / ours:.2f}",
            "largest difference": "" if error is None else f"{error:.1e}",
        }
        print("  ".join(f"{name}: {value}" for name, value in row.items()), flush=True)
        rows.append(row)

    with threadpool_limits(1):
        measured: dict[str, tuple[float, np.ndarray]] = {}
        for k in (3, 6):
            Spectrum(k)(X[:300])  # compilation is nobody's business
            measured[f"spectrum {k}"] = timed(lambda k=k: Spectrum(k)(X), options.repeats)
            ours, K = measured[f"spectrum {k}"]
            theirs, expected = timed(lambda k=k: sklearn_spectrum(X, k), 1)
            error = np.abs(K - expected).max()
            report(f"Spectrum({k})", ours, "CountVectorizer", theirs, error)
        kernel = WeightedDegree(DEGREE)
        kernel(X[:300])
        ours, K = timed(lambda: kernel(X), options.repeats)
        theirs, expected = timed(lambda: sklearn_weighted_degree(X, DEGREE), 1)
        error = np.abs(K - expected).max()
        report(repr(kernel), ours, "CountVectorizer", theirs, error)
        route = limit(X)
        route()
        floor, _ = timed(route, options.repeats)
        report(repr(kernel), ours, "reading the packed pairs, writing K", floor, None)
        if options.strkernel:
            peer = ask_strkernel(options.strkernel, X, sparse=True)
            dense = ask_strkernel(options.strkernel, X, sparse=False)
            for found, how in ((peer, "strkernel"), (dense, "strkernel, dense features")):
                for k in (3, 6):
                    (ours, K), (seconds, corner) = measured[f"spectrum {k}"], found[f"spectrum {k}"]
                    error = np.abs(K[:50, :50] - corner).max()
                    report(f"Spectrum({k})", ours, how, seconds, error)
            seconds, expected = peer["mismatch"]
            Mismatch(5, 1)(X[:20])
            ours, K = timed(lambda: Mismatch(5, 1)(X[:100]), options.repeats)
            error = np.abs(K - expected).max()
            report("Mismatch(5, 1), 100 windows", ours, "strkernel", seconds, error)
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        write_csv(RESULTS / "sequences.csv", rows)
        lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
        lines += ["| " + " | ".join(row.values()) + " |" for row in rows]
        write_atomically(RESULTS / "sequences.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
