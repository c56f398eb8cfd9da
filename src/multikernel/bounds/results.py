"""The certificate of a fitted model, with its bounds as a table and as a plot."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .bound_factor import axes


@dataclass(frozen=True)
class Bound:
    """One bound on the risk of one predictor.

    Attributes
    ----------
    name : str
        The class of functions, or the theorem.
    kernels : str
        Which kernels span the class.
    margins : array of shape (n_margins,)
        Margins (tolerances) in units of the decision function; empty if the bound has none.
    risks : array of shape (n_margins,)
        Empirical loss at each.
    values : array of shape (n_margins,)
        The bound at each margin: all hold at once, so the best can be used.
    chosen : int
        Index of the margin that the numbers below refer to; -1 if no margin applies, and the bound
        is infinite.
    margin, risk, complexity, confidence, value : float
        ``value = risk + complexity + confidence``.
    delta : float
        Share of delta allotted to this class at this margin.
    trivial : float
        The trivial bound: 1 for probabilities, the variance for squared errors.
    unmet : tuple of str
        Assumptions of the theorem that do not hold here.
    """

    name: str
    kernels: str
    margins: np.ndarray
    risks: np.ndarray
    values: np.ndarray
    chosen: int
    margin: float
    risk: float
    complexity: float
    confidence: float
    value: float
    delta: float
    trivial: float = 1.0
    unmet: tuple[str, ...] = ()

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no better than the trivial one."""
        return not self.value < self.trivial

    @property
    def proven(self) -> bool:
        """Whether every assumption of the theorem holds, as far as can be checked."""
        return not self.unmet


@dataclass(frozen=True)
class Alignment:
    """Centred alignment with the target on the sample, and an interval for its true value."""

    value: float
    low: float
    high: float
    unmet: tuple[str, ...] = ()

    @property
    def vacuous(self) -> bool:
        return self.low <= 0 and self.high >= 1


@dataclass(frozen=True)
class MachineCertificate:
    """The bounds of one predictor: a binary classifier, one class against the rest, or one output.

    Attributes
    ----------
    name : str
    statement : str
        Which probability (or expectation) the bounds are about.
    error : float
        The same quantity on the training sample.
    axis : str
        The meaning of the margins in the bounds.
    levels : array
        Margins (or tolerances) in units of the decision function.
    tail : array
        The share of the sample beyond each of these levels, as ``tail_name`` says.
    tail_name : str
    block_norms : array of shape (n_kernels,)
        ``||w_k||``, each kernel's part of the predictor, for the kernels as prepared; for a vote an
        upper bound. An input of :func:`suggest_p`.
    bounds : tuple of Bound
    """

    name: str
    statement: str
    error: float
    axis: str
    levels: np.ndarray
    tail: np.ndarray
    tail_name: str
    block_norms: np.ndarray
    bounds: tuple[Bound, ...]

    def tightest(self, *, proven: bool = True) -> Bound | None:
        """The smallest bound on the probability; only proven ones by default."""
        # Bounds on a squared error have no margins.
        candidates = [b for b in self.bounds if len(b.margins) and (b.proven or not proven)]
        return min(candidates, key=lambda b: b.value) if candidates else None


@dataclass(frozen=True)
class Certificate:
    """The bounds that hold for a fitted estimator; ``print`` it.

    Attributes
    ----------
    estimator : str
    n_samples, n_kernels : int
    delta : float
        All proven bounds hold at once, except with this probability.
    duality_gap : float
        Relative gap of the optimisation, as proven by the fit.
    alignments : tuple of Alignment
        One, or one per predictor when each has kernel weights of its own; empty without targets.
    machines : tuple of MachineCertificate
    paid : tuple of str
        The cost of choosing margins and classes after seeing the data.
    assumptions : tuple of str
        Assumptions that cannot be checked.
    n_draws : int
        Number of sign vectors for the Monte-Carlo complexities.
    """

    estimator: str
    n_samples: int
    n_kernels: int
    delta: float
    duality_gap: float
    alignments: tuple[Alignment, ...]
    machines: tuple[MachineCertificate, ...]
    paid: tuple[str, ...]
    assumptions: tuple[str, ...]
    n_draws: int

    @property
    def unmet(self) -> tuple[str, ...]:
        """All assumptions that are not met, without repetition."""
        every = [
            note for machine in self.machines for bound in machine.bounds for note in bound.unmet
        ]
        every += [note for alignment in self.alignments for note in alignment.unmet]
        return tuple(dict.fromkeys(every))

    def risk(self, *, proven: bool = True) -> float:
        """Bound on the probability that *some* classifier fails: the sum over classifiers.

        For several classes it bounds the error of the decision, which can only be wrong where a
        classifier is. Infinite if a classifier has no bound with all assumptions met.
        """
        found = [machine.tightest(proven=proven) for machine in self.machines]
        return float(sum(np.inf if bound is None else bound.value for bound in found))

    @property
    def vacuous(self) -> bool:
        """Whether the best proven bound is at least one, and so carries no information."""
        return not self.risk() < 1.0

    @property
    def verdict(self) -> str:
        """What is proven about new samples, in one sentence."""
        total, hopeful = self.risk(), self.risk(proven=False)
        if np.isinf(total):
            said = "Nothing is proven about new samples: no bound has all its assumptions met"
            if np.isinf(hopeful):
                return f"{said}."
            if hopeful >= 1:
                return f"{said}, and even if they were, no bound would be below 1."
            return f"{said}; if they were, the smallest bound would be {hopeful:.3g}."
        if total >= 1:
            return (
                f"Nothing useful is proven about new samples: the smallest bound on the error is "
                f"{total:.3g}, and an error rate is at most 1 anyway."
            )
        what = (
            self.machines[0].statement if len(self.machines) == 1 else "one of the predictors fails"
        )
        return f"Proven with probability {1 - self.delta:g}: {what} <= {total:.3g}."

    def with_unmet(self, note: str) -> Certificate:
        """The same certificate with one more unmet assumption about the kernels.

        Nothing changes if the certificate already lists that the kernels came from the sample.
        """

        def more(unmet: tuple[str, ...]) -> tuple[str, ...]:
            known = any(text.startswith("kernels fixed before the sample") for text in unmet)
            return unmet if known else (note, *unmet)

        machines = tuple(
            replace(
                machine,
                bounds=tuple(replace(bound, unmet=more(bound.unmet)) for bound in machine.bounds),
            )
            for machine in self.machines
        )
        alignments = tuple(replace(one, unmet=more(one.unmet)) for one in self.alignments)
        return replace(self, machines=machines, alignments=alignments)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, texts and lists, ready for JSON."""
        out = _plain(asdict(self))
        out["risk"] = _plain(self.risk())
        out["vacuous"] = self.vacuous
        out["verdict"] = self.verdict
        out["unmet"] = list(self.unmet)
        for machine, entry in zip(self.machines, out["machines"], strict=True):
            best = machine.tightest()
            entry["tightest"] = None if best is None else f"{best.name}, {best.kernels}"
            for bound, row in zip(machine.bounds, entry["bounds"], strict=True):
                row["vacuous"], row["proven"] = bound.vacuous, bound.proven
        return out

    def plot(self, ax: Any = None, *, machine: int = 0) -> Any:
        """Plot the bounds of one predictor against the margin, with the loss on the sample.

        Parameters
        ----------
        ax : matplotlib axes or None
            None makes a figure.
        machine : int, default=0

        Returns
        -------
        matplotlib axes
        """
        ax = axes(ax)
        shown = self.machines[machine]
        colors: dict[str, str] = {}
        for bound in shown.bounds:
            if len(bound.margins):
                color = colors.setdefault(bound.name, f"C{len(colors)}")
                style = "-" if bound.proven else ":"
                label = f"{bound.name}, {bound.kernels}"
                ax.plot(bound.margins, bound.values, style, color=color, label=label)
                ax.plot([bound.margin], [bound.value], "o", color=color)
        first = next(bound for bound in shown.bounds if len(bound.margins))
        ax.plot(first.margins, first.risks, "k-", lw=2, label="loss on the sample")
        ax.axhline(1.0, color="0.6", lw=1, ls="--")
        ax.text(
            0.99,
            1.0,
            "no information above this line",
            color="0.4",
            ha="right",
            va="bottom",
            transform=ax.get_yaxis_transform(),
            fontsize="small",
        )
        ax.set_xscale("log")
        ax.set_xlabel(shown.axis)
        ax.set_ylabel("bound")
        # Small margins make every bound huge; only values up to a few units are of interest.
        curves = [bound for bound in shown.bounds if len(bound.margins)]
        top = max(2.0, 1.5 * min(float(bound.values.min()) for bound in curves))
        ax.set_ylim(0.0, top)
        seen = np.concatenate([bound.margins[bound.values < top] for bound in curves])
        ax.set_xlim(0.7 * seen.min(), 1.4 * seen.max())
        ax.set_title(f"{shown.name}; dotted: an assumption is not met", fontsize="medium")
        ax.legend(fontsize="small")
        return ax

    def __str__(self) -> str:
        lines = [
            f"Certificate of {self.estimator}: {self.n_samples} samples, {self.n_kernels} "
            f"kernels, delta = {self.delta:g}",
            f"  duality gap {self.duality_gap:.2g}, relative, proven by the fit",
        ]
        lines += [f"  {_alignment_line(alignment)}" for alignment in self.alignments]
        for machine in self.machines:
            lines += ["", *_machine_lines(machine)]
        lines += ["", *self._verdict()]
        lines += [f"Paid: {text}." for text in self.paid]
        lines += [f"Assumed: {text}." for text in self.assumptions]
        lines += [f"Assumption not met: {text}." for text in self.unmet]
        return "\n".join(lines)

    def _verdict(self) -> list[str]:
        total = self.risk()
        if any(machine.tightest() is None for machine in self.machines):
            lines = ["No bound has all its assumptions met: nothing is proven about new samples."]
            hopeful = self.risk(proven=False)
            if not np.isinf(hopeful):
                lines.append(
                    f"If the assumptions below held, the smallest would be {hopeful:.3g}"
                    + (", which is vacuous." if hopeful >= 1 else ".")
                )
            return lines
        what = (
            self.machines[0].statement if len(self.machines) == 1 else "one of the predictors fails"
        )
        text = f"Proven with probability {1 - self.delta:g}: {what} <= {total:.3g}"
        if total >= 1:
            return [f"{text}. This is VACUOUS, because a probability is at most 1 anyway."]
        return [f"{text}. This is informative: it is below 1."]

    __repr__ = __str__


def _alignment_line(alignment: Alignment) -> str:
    text = (
        f"alignment {alignment.value:.3f} on the sample; of the distribution in "
        f"[{alignment.low:.3f}, {alignment.high:.3f}]"
    )
    return text + (": the interval is vacuous" if alignment.vacuous else "")


def _machine_lines(machine: MachineCertificate) -> list[str]:
    lines = [f"{machine.name}: {machine.statement}", f"  on the sample {machine.error:.4g}"]
    cells = [f"{m:.3g}: {e:.3f}" for m, e in zip(machine.levels, machine.tail, strict=True)]
    lines.append(f"  part of the sample with {machine.tail_name}  " + "   ".join(cells))
    head = ("bound", "kernels", "margin", "loss", "complexity", "confidence", "total", "")
    rows = [head]
    best = machine.tightest()
    for b in machine.bounds:
        margin = f"{b.margin:.3g}" if len(b.margins) else "-"
        remark = [] if b.proven else ["assumption not met"]
        remark += ["vacuous"] if b.vacuous else []
        remark += ["tightest proven"] if b is best else []
        rows.append(
            (
                b.name,
                b.kernels,
                margin,
                f"{b.risk:.3g}",
                f"{b.complexity:.3g}",
                f"{b.confidence:.3g}",
                f"{b.value:.3g}",
                ", ".join(remark),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        texts = [
            row[i].ljust(widths[i]) if i in (0, 1, 7) else row[i].rjust(widths[i])
            for i in range(len(head))
        ]
        lines.append(("  " + "  ".join(texts)).rstrip())
    return lines


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    if isinstance(value, (bool, str, int)) or value is None:
        return value
    number = float(value)
    return number if np.isfinite(number) else None
