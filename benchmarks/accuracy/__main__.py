"""How well defaults predict.

    python -m benchmarks.accuracy [--quick] [--splits N] [--sets ...] [--methods ...]
    python -m benchmarks.accuracy --table        the table of what has been run

Every finished (set, split, method) is a line of benchmarks/results/accuracy.jsonl (another file for
another --max-train), so that a run that was stopped goes on where it was. LightGBM, XGBoost and
CatBoost take part where they are installed (pip install lightgbm xgboost catboost).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

from rich.progress import track

from . import methods, problems, table

RESULTS = Path(__file__).parent.parent / "results"


def run_one(name: str, split: int, method: str, max_train: int) -> dict[str, Any] | None:
    """Error and seconds of one method on one split; None where the method does not apply."""
    data = problems.load(name, split, max_train)
    model = methods.METHODS[method](data.regression)
    if model is None:
        return None
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = model.fit(data.X, data.y).predict(data.X_new)
    seconds = time.perf_counter() - started
    return {
        "set": name,
        "split": split,
        "method": method,
        "train": len(data.y),
        "error": data.error(predicted),
        "seconds": seconds,
    }


def read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="eight small sets, four methods")
    parser.add_argument("--splits", type=int, help="splits of every set (10, quick: 3)")
    parser.add_argument("--sets", nargs="+", help="only these sets")
    parser.add_argument("--methods", nargs="+", help="only these methods")
    parser.add_argument("--max-train", type=int, default=problems.MAX_TRAIN)
    parser.add_argument("--table", action="store_true", help="print the table, run nothing")
    options = parser.parse_args()
    # Results with other sizes of the training part are another table.
    size = "" if options.max_train == problems.MAX_TRAIN else f"-{options.max_train}"
    path = RESULTS / f"accuracy{'-quick' if options.quick else ''}{size}.jsonl"
    rows = read(path)
    if not options.table:
        sets = options.sets or (problems.QUICK if options.quick else problems.TABLES)
        chosen = options.methods or (methods.QUICK if options.quick else methods.METHODS)
        splits = options.splits or (3 if options.quick else 10)
        done = {(row["set"], row["split"], row["method"]) for row in rows}
        # All sets have their first split before any has its second.
        work = [
            (name, split, method)
            for split in range(splits)
            for name in sets
            for method in chosen
            if (name, split, method) not in done
        ]
        for name, split, method in track(work, description="fits"):
            found = run_one(name, split, method, options.max_train)
            if found is not None:
                rows.append(found)
                with path.open("a") as file:
                    file.write(json.dumps(found) + "\n")
    if rows:
        text = table.markdown(rows)
        path.with_suffix(".md").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
