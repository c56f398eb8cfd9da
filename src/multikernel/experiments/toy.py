"""Kloft's toy experiment: which norm for which sparsity (Kloft 2011, section 5.2).

Two Gaussian classes in 50 dimensions with means ``± rho w / ||w||``, covariance I and ``rho =
1.75``; k of the 50 entries of w are one, the others zero. Each feature is a kernel of its own, and
lp-norm multiple kernel learning with ``p in {1, 4/3, 2, 4, inf}`` (exponent of the block norm)
learns from 50 points. The Bayes error is ``Phi(-rho) = 4.006 %`` whatever k is, so that only the
fit of the norm to the sparsity differs between levels. ``p = 2`` is the plain support vector
machine on the sum of all kernels.

What the text leaves open, and what is done here:

* *Levels.* The text names 0, 64, 92 and 98 % of uninformative features; the two others stand in a
  figure and are taken as 44 and 82 % (k = 28 and 9).
* *Classes* are exactly balanced in training, validation and test sets, as "balanced" suggests.
* *Normalisation* is multiplicative (unit variance of each feature on the training set). Centring
  changes nothing, because the intercept is free; the estimator's default is kept.
* *C* is the best of the grid on 1000 validation points. Errors tie over long stretches of small C,
  where all points are at their bound; the smallest C among ties is taken, the smoothest machine.
* *Stopping.* A gap of 1e-3 of the objective, as in the text, and at most 1e-2 of the regulariser:
  at C = 1e-4 the objective is nearly all loss, and the first rule alone would accept the uniform
  start as the solution for every p.

Run ``python -m multikernel.experiments.toy --help``.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy.stats import norm as gaussian
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ..estimators import MultiKernelClassifier
from ..kernels import Linear, per_feature
from ..weighting import LpNorm

N_FEATURES = 50
N_TRAIN = 50
N_VALIDATION = 1000
N_TEST = 1000
RHO = 1.75
#: Number of informative features at each level, from the uniform scenario to the sparsest.
LEVELS = (50, 28, 18, 9, 4, 1)
NORMS = (1.0, 4 / 3, 2.0, 4.0, float("inf"))
COSTS = tuple(float(10.0**e) for e in np.arange(-4.0, 0.25, 0.5))
BAYES_ERROR = float(gaussian.cdf(-RHO))
#: Quick runs: the ends and one level between, no p = inf, whole decades of C.
QUICK_LEVELS = (50, 4, 1)
QUICK_NORMS = NORMS[:4]
QUICK_COSTS = COSTS[::2]


@dataclass(frozen=True)
class Row:
    """One learned machine: one data set, one norm, C chosen on the validation set."""

    seed: int
    informative: int
    repetition: int
    p: float
    n_costs: int
    C: float
    validation_error: float
    test_error: float
    #: exact error of the learned hyperplane under the two Gaussians
    risk: float
    model_error: float
    effective_kernels: float
    #: relative duality gap of the chosen machine, and the largest over the grid of C
    gap: float
    worst_gap: float
    #: points of the grid whose fit ended with a ConvergenceWarning
    unconverged: int
    seconds: float


@dataclass(frozen=True)
class Claim:
    """A sentence of the thesis, and whether it holds here."""

    text: str
    printed: str
    ours: str
    detail: str

    def __str__(self) -> str:
        return f"{self.text}: printed {self.printed}, ours {self.ours} ({self.detail})"


def direction(informative: int) -> np.ndarray:
    """Unit vector of the Bayes classifier: equal weight on the first features."""
    w = np.zeros(N_FEATURES)
    w[:informative] = 1.0
    return np.asarray(w / np.linalg.norm(w))


def make_toy(
    n_samples: int, informative: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Balanced sample of the two Gaussians.

    Parameters
    ----------
    n_samples : int
        Even.
    informative : int
        Number of features whose mean depends on the class, from 1 to 50.
    rng : numpy Generator

    Returns
    -------
    X : array of shape (n_samples, 50)
    y : array of shape (n_samples,)
        -1 and +1.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = make_toy(10_000, 4, np.random.default_rng(0))
    >>> print(abs(X.T @ y / len(y)).round(1)[:6])  # half the distance of the class means
    [0.9 0.9 0.9 0.9 0.  0. ]
    """
    if n_samples % 2 or not 1 <= informative <= N_FEATURES:
        raise ValueError(
            f"make_toy: n_samples must be even and informative from 1 to {N_FEATURES}; got "
            f"{n_samples} and {informative}."
        )
    y = np.repeat([1, -1], n_samples // 2)
    noise = rng.standard_normal((n_samples, N_FEATURES))
    return noise + RHO * y[:, None] * direction(informative), y


def linear_risk(slopes: np.ndarray, intercept: float, informative: int) -> float:
    """Exact error of ``sign(slopes'x + intercept)``: the mean of two Gaussian tails."""
    size = float(np.linalg.norm(slopes))
    if size == 0:
        return 0.5
    margin = RHO * float(slopes @ direction(informative))
    return float(
        0.5 * gaussian.cdf(-(margin + intercept) / size)
        + 0.5 * gaussian.cdf(-(margin - intercept) / size)
    )


def hyperplane(model: MultiKernelClassifier) -> tuple[np.ndarray, float]:
    """Slopes and intercept of a fitted machine in the features as they came."""
    values = model.decision_function(np.vstack([np.zeros(N_FEATURES), np.eye(N_FEATURES)]))
    return values[1:] - values[0], float(values[0])


def effective_number(sizes: np.ndarray) -> float:
    """Exponential of the entropy of ``sizes / sum(sizes)``; 1 for one kernel, 50 for all alike."""
    share = sizes[sizes > 0] / sizes.sum()
    return float(np.exp(-np.sum(share * np.log(share))))


def fit_norm(
    p: float, C: float, X: np.ndarray, y: np.ndarray
) -> tuple[MultiKernelClassifier, bool]:
    """One machine, and whether it converged."""
    model = MultiKernelClassifier(per_feature(Linear()), LpNorm(p), C=C)
    with warnings.catch_warnings(record=True) as caught:
        # Said in the result, in the column `unconverged`; what the inner solver says of single
        # alternations does not matter, because the gap is that of the joint problem.
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X, y)
    return model, not any(str(w.message).startswith("LpNorm") for w in caught)


def learn_path(
    p: float, costs: Sequence[float], X: np.ndarray, y: np.ndarray
) -> Iterator[tuple[float, MultiKernelClassifier, bool]]:
    """Machines for increasing C.

    Once no coefficient is at its bound C, the bound plays no part: the same machine is, to the
    tolerance, the answer for every larger C, and is not computed again.
    """
    found: tuple[MultiKernelClassifier, bool] | None = None
    bound = 0.0
    for C in sorted(costs):
        if found is None or np.abs(found[0].dual_coef_).max() >= bound * (1 - 1e-6):
            found, bound = fit_norm(p, C, X, y), C
        yield C, *found


def run_one(
    informative: int,
    repetition: int,
    norms: Iterable[float],
    costs: Sequence[float] = COSTS,
    seed: int = 0,
) -> list[Row]:
    """All norms on one data set; the data depend on nothing but the three integers."""
    rng = np.random.default_rng([seed, informative, repetition])
    X, y = make_toy(N_TRAIN, informative, rng)
    X_val, y_val = make_toy(N_VALIDATION, informative, rng)
    X_test, y_test = make_toy(N_TEST, informative, rng)
    rows = []
    # Problems of 50 points: more than one BLAS thread only makes workers wait for each other.
    with threadpool_limits(limits=1):
        for p in norms:
            started = time.perf_counter()
            best: tuple[float, float, MultiKernelClassifier] | None = None
            gaps, failures = [], 0
            for C, model, converged in learn_path(p, costs, X, y):
                gaps.append(model.duality_gap_)
                failures += not converged
                error = float(np.mean(model.predict(X_val) != y_val))
                if best is None or error < best[0]:
                    best = error, C, model
            assert best is not None
            error, C, model = best
            slopes, intercept = hyperplane(model)
            size = np.linalg.norm(slopes)
            apart = slopes / (size if size > 0 else 1.0) - direction(informative)
            rows.append(
                Row(
                    seed=seed,
                    informative=informative,
                    repetition=repetition,
                    p=p,
                    n_costs=len(costs),
                    C=C,
                    validation_error=error,
                    test_error=float(np.mean(model.predict(X_test) != y_test)),
                    risk=linear_risk(slopes, intercept, informative),
                    model_error=float(np.linalg.norm(apart)),
                    # Block norms belong to the normalised features.
                    effective_kernels=effective_number(np.abs(slopes) * X.std(axis=0)),
                    gap=model.duality_gap_,
                    worst_gap=max(gaps),
                    unconverged=failures,
                    seconds=round(time.perf_counter() - started, 3),
                )
            )
    return rows


@dataclass(frozen=True)
class ToyResult:
    """Rows of finished repetitions, with the tables and verdicts drawn from them."""

    rows: tuple[Row, ...]

    @property
    def levels(self) -> list[int]:
        return sorted({row.informative for row in self.rows}, reverse=True)

    @property
    def norms(self) -> list[float]:
        return sorted({row.p for row in self.rows})

    def values(self, informative: int, p: float, field: str = "test_error") -> dict[int, float]:
        """One field of all repetitions of a cell, by repetition."""
        return {
            row.repetition: float(getattr(row, field))
            for row in self.rows
            if row.informative == informative and row.p == p
        }

    def mean(self, informative: int, p: float, field: str = "test_error") -> float:
        values = list(self.values(informative, p, field).values())
        return float(np.mean(values)) if values else float("nan")

    def standard_error(self, informative: int, p: float, field: str = "test_error") -> float:
        return _standard_error(list(self.values(informative, p, field).values()))

    def difference(self, informative: int, p: float, q: float) -> tuple[float, float]:
        """Mean and standard error of error(p) - error(q), over data sets that both have seen."""
        left, right = self.values(informative, p), self.values(informative, q)
        apart = [left[r] - right[r] for r in left.keys() & right.keys()]
        return (float(np.mean(apart)) if apart else float("nan")), _standard_error(apart)

    # -- what to read -----------------------------------------------------------------------------

    def table(self, field: str = "test_error", scale: float = 100.0, digits: int = 1) -> str:
        """Means ± standard errors, one line per level; Markdown."""
        norms = self.norms
        lines = [
            "| noise | " + " | ".join(f"p = {name_of(p)}" for p in norms) + " |",
            "|---|" + "---|" * len(norms),
        ]
        for k in self.levels:
            cells = []
            for p in norms:
                if not self.values(k, p):
                    cells.append("")
                    continue
                mean = scale * self.mean(k, p, field)
                error = scale * self.standard_error(k, p, field)
                cells.append(f"{mean:.{digits}f} ± {error:.{digits}f}")
            lines.append(f"| {noise_of(k)} | " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def __str__(self) -> str:
        counts = ", ".join(
            f"{len({row.repetition for row in self.rows if row.p == p})} for p = {name_of(p)}"
            for p in self.norms
        )
        gaps = ", ".join(f"{self._worst_gap(p):.1e} for p = {name_of(p)}" for p in self.norms)
        failed = {p: sum(row.unconverged for row in self.rows if row.p == p) for p in self.norms}
        fits = {p: sum(row.n_costs for row in self.rows if row.p == p) for p in self.norms}
        short = ", ".join(f"{failed[p]} of {fits[p]} for p = {name_of(p)}" for p in self.norms)
        parts = [
            f"Test error in % (Bayes {100 * BAYES_ERROR:.2f}), mean ± standard error",
            self.table(),
            f"Repetitions: {counts}.",
            "Model error ||w/|w| - w_Bayes/|w_Bayes| ||",
            self.table("model_error", 1.0, 2),
            "Effective number of kernels",
            self.table("effective_kernels", 1.0),
            f"Largest relative duality gap of a chosen machine: {gaps}.",
            f"Points of the grid of C whose machine is above the tolerance: {short}.",
            "Claims\n" + "\n".join(f"- {claim}" for claim in self.claims()),
        ]
        return "\n\n".join(parts)

    def _worst_gap(self, p: float) -> float:
        return max(row.gap for row in self.rows if row.p == p)

    def to_csv(self, path: str | Path) -> None:
        """All rows, one line each."""
        write_rows(Path(path), self.rows)

    # -- claims -----------------------------------------------------------------------------------

    def claims(self) -> list[Claim]:
        """What section 5.2 says in words, as far as this run can tell.

        A comparison is "yes" or "no" where the difference of means on common data sets is at least
        two standard errors, else "undecided". Claims about the order of all norms go by the means
        in the tables.
        """
        out = []
        levels, norms = self.levels, self.norms
        sparsest, dense = 1, 50
        if sparsest in levels and 1.0 in norms:
            out.append(self._best("p = 1 is best at 98 % noise", sparsest, 1.0))
            out.append(self._near("p = 1 has 4 % error at 98 % noise", sparsest, 1.0, 0.04))
            if float("inf") in norms:
                inf = float("inf")
                out.append(self._near("p = inf has 43 % error at 98 % noise", sparsest, inf, 0.43))
        if 1.0 in norms:
            denser = [k for k in levels if k != sparsest]
            best = [k for k in denser if self._winner(k) == 1.0]
            out.append(
                Claim(
                    "p = 1 is best at no other level",
                    "yes",
                    "no" if best else "yes",
                    "best p: "
                    + ", ".join(f"{name_of(self._winner(k))} at {noise_of(k)}" for k in denser),
                )
            )
        middle = 4 / 3
        if middle in norms:
            for k in (18, 9, 4):
                if k in levels:
                    out.append(self._best(f"p = 4/3 is best at {noise_of(k)} noise", k, middle))
            worst = max(self.mean(k, middle) for k in levels)
            out.append(
                Claim(
                    "p = 4/3 stays below 12 % error at every level",
                    "yes",
                    "yes" if worst < 0.12 else "no",
                    f"largest mean {100 * worst:.1f} %",
                )
            )
            # Not in the text, but what it calls robust.
            last = [k for k in levels if max(norms, key=lambda p: self.mean(k, p)) == middle]
            out.append(
                Claim(
                    "p = 4/3 is worst at no level",
                    "implied",
                    "no" if last else "yes",
                    "worst at " + ", ".join(map(noise_of, last)) if last else "no level",
                )
            )
        if dense in levels:
            big = max(norms)
            if big > 2:
                out.append(self._best("the largest p is best at 0 % noise", dense, big))
                low, error = self.mean(dense, big), self.standard_error(dense, big)
                reached = low - BAYES_ERROR < 2 * error
                out.append(
                    Claim(
                        "the largest p comes near the Bayes error at 0 % noise, but not to it",
                        "yes",
                        "no" if reached else "yes",
                        f"p = {name_of(big)}: {100 * low:.1f} ± {100 * error:.1f} %, "
                        f"Bayes {100 * BAYES_ERROR:.1f} %",
                    )
                )
        edges = {min(COSTS), max(COSTS)}
        at_edge = {
            p: float(np.mean([row.C in edges for row in self.rows if row.p == p])) for p in norms
        }
        out.append(
            Claim(
                "the best C lies inside the grid",
                "yes",
                "no" if any(at_edge.values()) else "yes",
                "at an end: " + ", ".join(f"{at_edge[p]:.0%} for p = {name_of(p)}" for p in norms),
            )
        )
        agree = [self._order(k, "test_error") == self._order(k, "model_error") for k in levels]
        out.append(
            Claim(
                "model error orders the norms as test error does",
                "yes",
                "yes" if all(agree) else "partly" if any(agree) else "no",
                f"the same order at {sum(agree)} of {len(levels)} levels",
            )
        )
        return out

    def _winner(self, k: int) -> float:
        return min(self._tried(k), key=lambda p: self.mean(k, p))

    def _order(self, k: int, field: str) -> list[float]:
        return sorted(self._tried(k), key=lambda p: self.mean(k, p, field))

    def _tried(self, k: int) -> list[float]:
        return [p for p in self.norms if self.values(k, p)]

    def _best(self, text: str, k: int, p: float) -> Claim:
        """Is p best at level k? The strongest rival decides."""
        rivals = {q: self.difference(k, p, q) for q in self._tried(k) if q != p}
        # The rival against which p does worst, in standard errors.
        scores = {q: d / max(s, 1e-12) for q, (d, s) in rivals.items() if np.isfinite(s)}
        if not scores:
            return Claim(text, "yes", "undecided", "too few repetitions")
        q = max(scores, key=lambda q: scores[q])
        d, s = rivals[q]
        ours = "yes" if scores[q] <= -2 else "no" if scores[q] >= 2 else "undecided"
        return Claim(
            text,
            "yes",
            ours,
            f"against p = {name_of(q)}: {100 * d:+.1f} ± {100 * s:.1f} points",
        )

    def _near(self, text: str, k: int, p: float, value: float) -> Claim:
        """Within half a point, or two standard errors if that is more."""
        mean, error = self.mean(k, p), self.standard_error(k, p)
        room = max(0.005, 2 * error) if np.isfinite(error) else 0.005
        ours = "yes" if abs(mean - value) <= room else "no"
        return Claim(text, "yes", ours, f"{100 * mean:.1f} ± {100 * error:.1f} %")


def name_of(p: float) -> str:
    """How the text writes a norm."""
    return "4/3" if abs(p - 4 / 3) < 1e-9 else f"{p:g}"


def noise_of(informative: int) -> str:
    return f"{100 * (1 - informative / N_FEATURES):.0f} %"


def _standard_error(values: list[float]) -> float:
    if len(values) < 2:
        return float("nan")
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


# -- running and keeping ---------------------------------------------------------------------------


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def read_rows(path: Path) -> list[Row]:
    """Rows of a file; a line that an interrupted run left unfinished is passed over."""
    if not path.exists():
        return []
    kinds: dict[str, Any] = {
        field.name: int if field.type == "int" else float for field in fields(Row)
    }
    rows = []
    with path.open(newline="") as file:
        for record in csv.DictReader(file):
            try:
                rows.append(Row(**{name: kind(record[name]) for name, kind in kinds.items()}))
            except (KeyError, TypeError, ValueError):
                continue
    return rows


def run(
    repetitions: int = 50,
    quick: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    *,
    out: str | Path | None = None,
    progress: bool = False,
) -> ToyResult:
    """Run the experiment, or what is missing of it.

    Parameters
    ----------
    repetitions : int, default=50
        Data sets per level; the thesis has 250.
    quick : bool, default=False
        Three levels, whole decades of C, no p = inf.
    seed : int, default=0
        Data sets follow from it, from the level and from the number of the repetition.
    n_jobs : int or None, default=None
        Processes, -1 for all cores; BLAS has one thread in each.
    out : path or None, default=None
        Folder for ``toy.csv`` (``toy-quick.csv``): rows are added as they are finished, and those
        that are there already are not computed again.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    ToyResult
        ``print`` it for tables and claims.

    Examples
    --------
    >>> result = run(repetitions=1, quick=True)
    >>> print(result.claims()[0].text)
    p = 1 is best at 98 % noise
    >>> result.mean(1, 1.0) < 0.1 < result.mean(1, 4.0)
    True
    """
    levels, norms, costs = (
        (QUICK_LEVELS, QUICK_NORMS, QUICK_COSTS) if quick else (LEVELS, NORMS, COSTS)
    )
    path = None if out is None else Path(out) / ("toy-quick.csv" if quick else "toy.csv")
    kept: dict[tuple[int, int, float], Row] = {}
    if path is not None:
        earlier = read_rows(path)
        kept = {
            (row.informative, row.repetition, row.p): row
            for row in earlier
            if row.seed == seed and row.n_costs == len(costs)
        }
        # Written again, so that what is added does not follow half a line.
        write_rows(path, earlier)
    tasks: list[tuple[int, int, list[float]]] = []
    wanted: set[tuple[int, int, float]] = set()
    for repetition in range(repetitions):
        wanted |= {(k, repetition, p) for k in levels for p in norms}
        for k in levels:
            todo = [p for p in norms if (k, repetition, p) not in kept]
            if todo:
                tasks.append((k, repetition, todo))
    pool = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    results = pool(joblib.delayed(run_one)(k, r, part, costs, seed) for k, r, part in tasks)
    for rows in _tracked(results, len(tasks), progress):
        kept |= {(row.informative, row.repetition, row.p): row for row in rows}
        if path is not None:
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, [field.name for field in fields(Row)])
                writer.writerows(asdict(row) for row in rows)
    chosen = sorted(wanted & kept.keys(), key=lambda key: (-key[0], key[1], key[2]))
    return ToyResult(tuple(kept[key] for key in chosen))


def _tracked(results: Iterable[Any], total: int, progress: bool) -> Iterable[Any]:
    if not progress:
        return results
    from rich.progress import track

    return track(results, "toy experiment", total=total)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m multikernel.experiments.toy",
        description="Kloft's toy experiment: which norm for which sparsity.",
    )
    parser.add_argument("--quick", action="store_true", help="three levels, few C, no p = inf")
    parser.add_argument("--repetitions", type=int, default=None, help="data sets per level")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1, help="processes, -1 for all cores")
    parser.add_argument("--out", type=Path, default=None, help="folder to keep results in")
    given = parser.parse_args(arguments)
    repetitions = given.repetitions or (5 if given.quick else 50)
    result = run(repetitions, given.quick, given.seed, given.jobs, out=given.out, progress=True)
    print(result)


if __name__ == "__main__":
    main()
