"""First contacts on the command line: what an analyst with a file and no Python is told.

Each contact is a file, a command, whether it works, and the key sentences of what is said.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.cli.helpers import call, write_csv

rng = np.random.default_rng(0)
N = 60
KIND = np.array(["ape", "bee", "cat"])[np.arange(N) % 3]
SIZE = np.round(rng.normal(size=N) + 3 * (KIND == "bee"), 3)
WEIGHT = np.round(rng.normal(size=N) + 3 * (KIND == "cat"), 3)
BASE = {"size": SIZE.tolist(), "weight": WEIGHT.tolist(), "kind": KIND.tolist()}


def with_column(name, values):
    return {name: list(values), **BASE}


def with_gaps():
    size, kind = list(BASE["size"]), list(BASE["kind"])
    size[3] = size[7] = kind[5] = ""
    return {"id": [f"B{i:04d}" for i in range(N)], "size": size, "weight": BASE["weight"],
            "kind": kind}  # fmt: skip


def european(path):
    rows = [f"{s};{w};{k}".replace(".", ",") for s, w, k in zip(SIZE, WEIGHT, KIND, strict=True)]
    path.write_text("size;weight;kind\n" + "\n".join(rows) + "\n")


def latin(path):
    names = np.where(KIND == "bee", "abeille à miel", KIND)
    rows = [f"{s},{k}" for s, k in zip(SIZE, names, strict=True)]
    path.write_bytes(("size,kind\n" + "\n".join(rows) + "\n").encode("latin1"))


def utf16(path, mark=True):
    rows = [f"{s},{k}" for s, k in zip(SIZE, KIND, strict=True)]
    text = "size,kind\n" + "\n".join(rows) + "\n"
    path.write_bytes(text.encode("utf-16" if mark else "utf-16-le"))


def workbook(path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(list(BASE))
    for row in zip(*BASE.values(), strict=True):
        book.active.append(list(row))
    book.save(path)


def genes(extra=True):
    own = np.random.default_rng(1)
    yes = np.arange(N) % 2
    dna = ["".join(own.choice(list("ACGT"), 20)) for _ in range(N)]
    dna = [s[:7] + "TATAAT" + s[13:] if y else s for s, y in zip(dna, yes, strict=True)]
    columns = {"dna": dna, "promoter": np.where(yes == 1, "yes", "no").tolist()}
    return {"gc": own.normal(size=N).round(3).tolist(), **columns} if extra else columns


def noise(n=100, rare=None):
    own = np.random.default_rng(7)
    y = (np.arange(n) % 2) if rare is None else (np.arange(n) < rare).astype(int)
    return {"a": own.normal(size=n).round(4).tolist(), "b": own.normal(size=n).round(4).tolist(),
            "y": own.permutation(y).tolist()}  # fmt: skip


QUICK = "-w uniform --C 1 --folds 3"


@dataclass
class Contact:
    """``data`` are columns of data.csv, or a function that writes the file of this name."""

    data: object
    command: str
    said: list[str]
    works: bool = True
    file: str = "data.csv"
    unsaid: list[str] = field(default_factory=list)


CONTACTS = {
    "no target": Contact(
        BASE, "fit {data}", ["Name the column to predict with --target", "'kind'"], False
    ),
    "target misspelt": Contact(BASE, "fit {data} --target Kind", ["Did you mean 'kind'?"], False),
    "no such file": Contact(
        BASE, "fit nothing.csv --target kind", ["There is no data file 'nothing.csv'"], False
    ),
    "everything wrong at once": Contact(
        with_gaps(),
        "fit {data} --target kind",
        [
            "1 of 60 rows have no 'kind' and are not used",
            "'id' looks like an identifier",
            "Missing values in 1 of 3 columns (59 rows): 'size' 2",
            "This would work:",
            "--target kind --drop id --impute median",
        ],
        False,
    ),
    "the command that would work": Contact(
        with_gaps(),
        f"fit {{data}} --target kind --drop id --impute median {QUICK}",
        ["Accuracy 0.", "(always answering", "better than the baseline", "'size' (2)"],
    ),
    "score first, next command last": Contact(
        BASE,
        f"fit {{data}} --target kind {QUICK}",
        ["Accuracy 0.", "What was learned", "Next: multikernel predict"],
    ),
    "noise": Contact(
        noise(), f"fit {{data}} --target y {QUICK}", ["nothing was learned", "multikernel compare"]
    ),
    "rare class": Contact(
        noise(200, rare=8),
        f"fit {{data}} --target y {QUICK}",
        ["Accuracy 0.960", "(always answering '0': 0.960): nothing was learned", "AUC 0.",
         "balanced accuracy 0.5", "'1' is never predicted", "--class-weight balanced"],
    ),
    "class weights and another scoring": Contact(
        noise(200, rare=20),
        f"fit {{data}} --target y {QUICK} --class-weight balanced --scoring roc_auc",
        ["AUC 0.", "(always answering '0': 0.500)"],
    ),
    "scoring misspelt": Contact(
        BASE, "fit {data} --target kind --scoring acuracy", ["Did you mean accuracy"], False
    ),
    "class weight of no class": Contact(
        BASE, "fit {data} --target kind --class-weight dog=3", ["one of the classes ape, bee, cat"],
        False,
    ),
    "groups": Contact(
        with_column("patient", [f"P{i // 4}" for i in range(N)]),
        f"fit {{data}} --target kind --groups patient {QUICK}",
        ["2 columns to learn from", "Accuracy 0."],
    ),
    "copies of rows": Contact(
        {name: values * 2 for name, values in BASE.items()},
        f"fit {{data}} --target kind {QUICK}",
        ["60 of 120 rows are copies of others", "--groups"],
    ),
    "decimal commas": Contact(
        european, f"fit {{data}} --target kind {QUICK}",
        ["'size', 'weight' have decimal commas", "is read as", "Accuracy 0."],
    ),
    "thousands": Contact(
        with_column("price", [f"{1000 + 37 * i:,}.50" for i in range(N)]),
        f"fit {{data}} --target kind {QUICK}",
        ["'price' has commas between thousands", "'1,000.50' is read as 1000.5"],
    ),
    "dates": Contact(
        with_column("day", [f"2019-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]),
        "fit {data} --target kind",
        ["'day' holds dates, such as '2019-01-01'", "--dates", "This would work:"],
        False,
    ),
    "dates as numbers": Contact(
        with_column("day", [f"{1 + i % 28}.{1 + i % 12}.2019" for i in range(N)]),
        f"fit {{data}} --target kind --dates {QUICK}",
        ["Accuracy 0.", "3 columns to learn from"],
    ),
    "day or month first": Contact(
        with_column("day", ["01/02/2019", "03/04/2019"] * (N // 2)),
        "fit {data} --target kind --dates",
        ["not clear whether the day or the month comes first"],
        False,
    ),
    "a column that counts": Contact(
        with_column("row", range(1, N + 1)), f"fit {{data}} --target kind {QUICK}",
        ["'row' numbers the rows (1, 2, 3, ...)", "--drop row"],
    ),
    "codes with leading zeros": Contact(
        with_column("zip", [f"{1000 + 37 * i:05d}" for i in range(N)]),
        f"fit {{data}} --target kind {QUICK}",
        ["'zip' has leading zeros ('01000' is read as 1000; for codes, use --categorical)"],
    ),
    "codes as categories": Contact(
        with_column("zip", [f"{1000 + 37 * i:05d}" for i in range(N)]),
        f"fit {{data}} --target kind --categorical zip {QUICK}",
        ["Accuracy 0.", "3 columns to learn from"],
    ),
    "the target in other words": Contact(
        with_column("grp", [{"ape": "x", "bee": "z", "cat": "y"}[k] for k in BASE["kind"]]),
        f"fit {{data}} --target kind {QUICK}",
        ["'grp' gives 'kind' away", "leave it out: --drop grp"],
    ),
    "the target in another unit": Contact(
        with_column("grams", [1000.0 * w + 3.0 for w in BASE["weight"]]),
        "fit {data} --target weight --alpha 1",
        ["'grams' gives 'weight' away"],
    ),
    "some words among numbers": Contact(
        with_column("lab", ["low" if i == 4 else f"{i}.5" for i in range(N)]),
        "fit {data} --target kind",
        ["'lab' holds numbers except in 1 of 60 rows, such as 'low'"],
        False,
    ),
    "one word among numbers that repeat": Contact(
        with_column("age", ["unknown" if i == 4 else 20 + i % 20 for i in range(N)]),
        "fit {data} --target kind",
        ["'age' holds numbers except in 1 of 60 rows, such as 'unknown'", "--categorical age"],
        False,
    ),
    "percentages": Contact(
        with_column("share", [f"{20 + i % 25}%" for i in range(N)]),
        "fit {data} --target kind",
        ["'share' holds percentages, such as '20%'"],
        False,
    ),
    "too few rows to tell": Contact(
        noise(20), "fit {data} --target y -w uniform --C 1 --folds 3",
        ["no sign of learning, but 20 samples may be too few to show it"],
    ),
    "a typing error among the labels": Contact(
        {**BASE, "kind": ["appe", *BASE["kind"][1:]]},
        "fit {data} --target kind -w uniform --C 1",
        ["Class 'appe' has 1 row, so there are 2 folds instead of 5", "typing error"],
        unsaid=["n_splits", "--folds 10"],
    ),
    "few numbers to predict": Contact(
        {"size": [1.5, 2.5, 3.1, 4.2, 5.9, 6.1, 7.3, 8.8],
         "y": [1.1, 2.3, 2.9, 4.4, 5.7, 6.3, 7.1, 9.2]},
        "fit {data} --target y -w uniform --alpha 1", ["R² "],
    ),
    "text among the numbers of the target": Contact(
        {"size": BASE["size"], "y": ["none yet" if i == 3 else f"{i}.25" for i in range(N)]},
        "fit {data} --target y", ["It holds text, such as 'none yet'"], False,
    ),
    "Latin-1": Contact(
        latin, "fit {data} --target kind",
        ["it is not UTF-8 text", "in line 3", "add --encoding latin1"], False,
    ),
    "Latin-1, told": Contact(
        latin, f"fit {{data}} --target kind --encoding latin1 {QUICK}", ["abeille à miel (20)"]
    ),
    "UTF-16": Contact(utf16, f"fit {{data}} --target kind {QUICK}", ["ape (20)"]),
    "UTF-16 without a mark": Contact(
        lambda path: utf16(path, mark=False), "fit {data} --target kind",
        ["it looks like UTF-16 text: add --encoding utf-16-le"], False,
    ),
    "Excel": Contact(
        workbook, f"fit {{data}} --target kind {QUICK}", ["60 rows, 2 columns"], file="data.xlsx"
    ),
    "old Excel": Contact(
        lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0" * 100), "fit {data} --target kind",
        ["Excel 2003 or older. Save it as .xlsx or CSV UTF-8"], False, file="data.xls",
    ),
    "one column of sequences": Contact(
        genes(extra=False), "fit {data} --target promoter",
        ["'dna' holds 60 distinct text values", 'This would work:', "-k 'Spectrum(k=3)'"], False,
    ),
    "a kernel on sequences": Contact(
        genes(), f"fit {{data}} --target promoter -k Spectrum(k=5) {QUICK}",
        ["Spectrum(k=5) reads 'dna'; other columns are not used", "Accuracy 1.000", "dna: Spec"],
    ),
    "sequences and numbers": Contact(
        genes(), f"fit {{data}} --target promoter -k Spectrum(k=5) -k linear {QUICK}",
        ["dna: Spectrum(k=5)", "other columns: Linear()"],
    ),
    "a sample of the rows": Contact(
        BASE, f"fit {{data}} --target kind --sample 30 {QUICK}",
        ["30 of 60 rows are used, chosen at random", "ape (10), bee (10), cat (10)"],
    ),
    "quiet": Contact(BASE, f"fit {{data}} --target kind --quiet {QUICK}", [], unsaid=["Accuracy"]),
    "help without types of flags": Contact(
        BASE, "fit --help", ["--quiet", "--class-weight", "--groups"], unsaid=["<bool>"]
    ),
    "noise compared": Contact(
        noise(), "compare {data} --target y -w uniform -w alignf --no-baselines --repeats 1",
        ["t-test"], unsaid=["alignf is better"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTACTS)
def test_first_contact(name, tmp_path, monkeypatch):
    contact = CONTACTS[name]
    monkeypatch.chdir(tmp_path)
    path = tmp_path / contact.file
    if callable(contact.data):
        contact.data(path)
    else:
        write_csv(path, contact.data)
    words = shlex.split(contact.command.replace("(", "'(").replace(")", ")'"))
    done = call(*(word.format(data=contact.file) for word in words))
    said = " ".join(done.output.split())
    assert done.exit_code == (0 if contact.works else 1), done.output
    for sentence in contact.said:
        assert sentence in said, f"{sentence!r} is not in:\n{done.output}"
    for sentence in contact.unsaid:
        assert sentence not in said


def test_the_report_of_a_model_that_was_fitted_without_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "data.csv", with_gaps())
    words = "fit data.csv --target kind --drop id --impute median --out m.skops"
    assert call(*words.split(), *QUICK.split()).exit_code == 0
    done = call("report", "m.skops", "data.csv")
    assert done.exit_code == 0 and "Report: m.html" in done.output, done.output
    text = (tmp_path / "m.html").read_text(encoding="utf-8")
    for heading in ("How good are the predictions?", "Confusion matrix", "Which columns matter",
                    "Which samples are wrong", "multikernel predict m.skops"):  # fmt: skip
        assert heading in text
