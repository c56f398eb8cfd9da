"""Try many odd cases or random problems, and count what came of them.

``python -m tests.fuzz odd --cases 10000`` and ``python -m tests.fuzz fits --cases 10000``;
``--seed`` starts elsewhere, ``--seconds`` stops after a while. The exit code is 1 if anything was
wrong; every such case is printed with the seed that makes it again.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.fuzz.cases import MAKERS
from tests.fuzz.judge import Verdict, judge
from tests.fuzz.test_random_problems import check_promises


def odd_case(seed: int) -> tuple[str, Verdict]:
    rng = np.random.default_rng(seed)
    maker = MAKERS[seed % len(MAKERS)]
    name, act = maker(lambda values: values[int(rng.integers(len(values)))])
    return name, judge(act)


def random_fit(seed: int) -> tuple[str, Verdict]:
    with tempfile.TemporaryDirectory() as folder:
        return f"seed {seed}", judge(lambda: check_promises(seed, Path(folder)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["odd", "fits"])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    attempt = odd_case if options.what == "odd" else random_fit
    counts: collections.Counter[str] = collections.Counter()
    started = time.monotonic()
    for seed in range(options.seed, options.seed + options.cases):
        if time.monotonic() - started > options.seconds:
            break
        begun = time.process_time()
        name, verdict = attempt(seed)
        counts[verdict.kind] += 1
        if verdict.kind == "WRONG":
            print(f"{seed}: {name}: {verdict.text}", flush=True)
        elif time.process_time() - begun > 20:
            print(f"{seed}: {name} took {time.process_time() - begun:.0f} s", flush=True)
    print(f"{sum(counts.values())} cases:", dict(counts))
    sys.exit(counts["WRONG"] > 0)


if __name__ == "__main__":
    main()
