"""What is measured: the entries of the table, full and quick.

Work (a) all peers on one problem, (b) alignf where matrices no longer fit, (c) growth with the
number of points, (d) with the number of kernels, (e) one kernel per word, (f) predictions, (g)
searches. The yardstick of an entry runs beside everything else in it; ratios to it are what
`make bench-check` compares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

LP = "LpNorm(4/3)"
NORM = 4.0 / 3.0


@dataclass(frozen=True)
class Run:
    """One line of an entry."""

    who: str  # a runner in peers/
    method: str  # its name in the table
    call: str  # the runner's method ...
    options: dict[str, Any]  # ... and what it is given
    learns: bool = False  # learns weights of kernels (a peer that does not is not raced)
    against: str = ""  # the method of ours that a peer is compared with
    limit: str = ""  # which of the machine's limits applies; see `limits`
    threads: int = 1

    @property
    def key(self) -> str:
        return f"{self.who} {self.method}"


@dataclass(frozen=True)
class Entry:
    """One problem and all that runs on it."""

    name: str
    work: str
    maker: str  # of the problem, in problems.MAKERS
    n: int
    p: int
    runs: tuple[Run, ...]
    yardstick: str  # the key of a run
    repeats: int = 3
    minutes: float = 1.0  # a guess, until a run has been timed
    on_request: bool = False  # only with --only


def ours(rule: str, limit: str = "support", **options: Any) -> Run:
    return Run("ours", rule, "fit", {"rule_name": rule, **options}, True, limit=limit)


def alignf_weights(dtype: str) -> Run:
    """alignf without a machine; float32 is what estimators take for data of single precision."""
    limit = "alignf" if dtype == "float32" else "alignf, float64"
    options = {"rule_name": "alignf", "dtype": dtype}
    return Run("ours", f"alignf weights, {dtype}", "weights", options, True, limit=limit)


#: Costs for which machines on kernels of unit diagonal or unit variance do well on digits.
_C = {"C": 10.0}
OURS = (
    ours("align", "align", **_C),
    ours("alignf", "alignf", **_C),
    ours(LP, **_C),
    ours("L1", **_C),
    Run("ours", f"{LP}, matrices given", "fit", {"rule_name": LP, "given": True, **_C}, True),
    Run(
        "ours", "alignf, matrices given", "fit", {"rule_name": "alignf", "given": True, **_C}, True
    ),
)
LP_BY_HAND = Run("numpy", "lp-norm by hand", "lp-norm", {"norm": NORM, "C": 1.0}, True, LP)
PLAIN_SUM = Run("sklearn", "SVC on the plain sum", "plain sum", {"machine": "SVC"})
YARDSTICKS = (
    PLAIN_SUM,
    Run("sklearn", "SVC, matrices held", "plain sum", {"machine": "SVC", "held": True}),
    Run("numpy", "alignf by hand", "alignf", {}, True, "alignf"),
    replace(LP_BY_HAND, options={"norm": NORM, **_C}),
)
PEERS = (
    Run("sklearn", "SVR on the plain sum", "plain sum", {"machine": "SVR"}),
    Run("sklearn", "KernelRidge on the plain sum", "plain sum", {"machine": "KernelRidge"}),
    Run("sklearn", "SVC, one Gaussian, tuned", "tuned", {}),
    Run("mklpy", "AverageMKL", "fit", {"rule": "AverageMKL", **_C}),
    *(
        Run("mklpy", rule, "fit", {"rule": rule, **_C}, True, against)
        for rule, against in {
            "FHeuristic": "align",
            "PWMK": LP,
            "EasyMKL": LP,
            "MEMO": LP,
            "GRAM": LP,
            "CKA": "alignf",
        }.items()
    ),
    Run("himalaya", "WeightedKernelRidge", "fit", {"rule": "WeightedKernelRidge"}),
    *(
        Run("himalaya", rule, "fit", {"rule": rule}, True, LP)
        for rule in ("MultipleKernelRidgeCV, random search", "MultipleKernelRidgeCV, gradient")
    ),
    Run("multimodal", "MKL", "fit", {"lmbda": 0.1}, True, LP),
    Run("mklaren", "Align", "fit", {"rule": "Align", **_C}, True, "align"),
    Run("mklaren", "Alignf", "fit", {"rule": "Alignf", **_C}, True, "alignf"),
)


def all_peers(name: str, n: int, p: int, **rest: Any) -> Entry:
    return Entry(name, "a", "digits", n, p, (*OURS, *YARDSTICKS, *PEERS), PLAIN_SUM.key, **rest)


def alignment(name: str, n: int, p: int, share: float, **rest: Any) -> Entry:
    ours = alignf_weights("float32")
    options = {"machine": False, "share": share}
    by_hand = Run("numpy", "alignf by hand", "alignf", options, True, ours.method)
    runs = (ours, alignf_weights("float64"), by_hand)
    return Entry(name, "b", "digits", n, p, runs, by_hand.key, **rest)


def growth(name: str, work: str, n: int, p: int, by_hand: bool, **rest: Any) -> Entry:
    """lp-norm to a gap of 1e-3 within a budget of 2 GB; by hand as long as that fits in memory."""
    runs = (ours(LP, memory_budget="2GB"), PLAIN_SUM, *((LP_BY_HAND,) if by_hand else ()))
    return Entry(name, work, "digits", n, p, runs, PLAIN_SUM.key, **rest)


def words(name: str, maker: str, n: int, p: int, dense: int, **rest: Any) -> Entry:
    by_hand = Run("numpy", "align by hand", "rank-one", {"kernels": dense}, True, "align weights")
    options = {"rule_name": "align", "dtype": "float64"}
    align = Run("ours", "align weights", "weights", options, True, limit="traffic")
    runs = (align, by_hand, *(ours(rule, "traffic") for rule in ("align", LP, "L1")))
    return Entry(name, "e", maker, n, p, runs, by_hand.key, **rest)


def predictions(name: str, n: int, p: int, rows: int, **rest: Any) -> Entry:
    runs = (
        Run("ours", LP, "predict", {"rule_name": LP, "rows": rows}, True, limit="predict"),
        Run("ours", "L1", "predict", {"rule_name": "L1", "rows": rows}, True, limit="predict"),
        Run("numpy", "lp-norm by hand", "predict", {"norm": NORM, "rows": rows}, True, LP),
        Run("sklearn", "SVC, one Gaussian", "predict", {"rows": rows}),
    )
    return Entry(name, "f", "digits", n, p, runs, "numpy lp-norm by hand", **rest)


def searches(
    name: str, n: int, p: int, norms: dict[str, float], Cs: list[float], **rest: Any
) -> Entry:
    mine = {"rules": list(norms), "Cs": Cs, "folds": 3}
    theirs = {"norms": list(norms.values()), "Cs": Cs, "folds": 3}
    runs = (
        Run("ours", "search", "search", mine, True),
        Run("numpy", "GridSearchCV by hand", "search", theirs, True, "search"),
    )
    return Entry(name, "g", "digits", n, p, runs, runs[1].key, **rest)


NORMS = {"LpNorm(8/7)": 8 / 7, LP: NORM, "LpNorm(2)": 2.0, "LpNorm(4)": 4.0}

FULL = (
    all_peers("a1000", 1000, 20, minutes=6.0),
    all_peers("a3000", 3000, 50, minutes=9.0),
    alignment("b10000", 10_000, 50, 0.2, minutes=1.5),
    alignment("b20000", 20_000, 50, 0.05, minutes=2.0),
    *(
        growth(f"c{n}", "c", n, 50, n <= 4000, minutes=m)
        for n, m in ((1000, 0.2), (2000, 0.3), (4000, 1.5), (8000, 1.0), (20_000, 2.0))
    ),
    Entry(
        "c60k",
        "c",
        "digits",
        60_000,
        50,
        (replace(ours(LP, memory_budget="16GB", n_jobs=2), threads=2),),
        f"ours {LP}",
        repeats=1,
        minutes=15.0,
        on_request=True,
    ),
    *(
        growth(f"d{p}", "d", 1000, p, p <= 300, minutes=m)
        for p, m in ((10, 0.2), (30, 0.2), (100, 0.3), (300, 0.5), (1000, 0.4), (3000, 0.8))
    ),
    growth("d10000", "d", 1000, 10_000, False, minutes=2.0),
    words("e4000", "documents", 2000, 4000, 50, minutes=2.0),
    words("e100000", "documents", 2000, 100_000, 50, minutes=1.0),
    words("e reviews", "reviews", 1600, 4000, 50, minutes=0.5),
    predictions("f3000", 3000, 50, 10_000, minutes=1.5),
    searches("g1000", 1000, 20, NORMS, [0.1, 1.0, 10.0, 100.0], minutes=3.0),
)
QUICK = (
    all_peers("quick a", 400, 8, minutes=4.0),
    alignment("quick b", 2000, 50, 1.0, minutes=1.0),
    growth("quick c1", "c", 500, 20, True, minutes=0.5),
    growth("quick c2", "c", 2000, 20, False, minutes=0.5),
    growth("quick d", "d", 500, 300, True, minutes=0.5),
    words("quick e", "documents", 1000, 10_000, 20, minutes=0.5),
    predictions("quick f", 500, 10, 2000, minutes=0.5),
    searches("quick g", 300, 5, {LP: NORM, "LpNorm(2)": 2.0}, [1.0, 10.0], minutes=0.5),
)


def limits(
    run: Run, n: int, p: int, stored: int, facts: dict[str, Any], rates: dict[str, float]
) -> float | None:
    """The least seconds that a run could take on this machine, on one thread.

    align, alignf
        Exponentials of half of the pairs for every kernel; for alignf their products too.
    support
        Every kernel between every support vector and every point, each pair once.
    predict
        Every kernel that has a weight between every support vector and every new point.
    traffic
        The stored numbers of a sparse matrix read once, with their columns.
    """
    s = facts.get("support") or 0
    if run.limit.startswith("align"):
        kind = "64" if run.limit.endswith("float64") else "32"
        pairs = n * n / 2
        products = p * (p + 1) * pairs / rates[f"flops{kind}"] if "alignf" in run.limit else 0.0
        return p * pairs / rates[f"exp{kind}"] + products
    if run.limit == "support":
        return p * (n * s - s * s / 2) / rates["exp32"]
    if run.limit == "predict":
        return float(run.options["rows"]) * s * facts["active"] / rates["exp32"]
    if run.limit == "traffic":
        return 12.0 * stored / rates["bytes"]
    return None
