"""A bank entry for kernels on columns whose scales are learned from the targets."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from .._options import check_choice, check_flag
from .bank import KernelBank, Open
from .sequences.base import reads_sequences

#: Smallest ``max_samples``, and fewest samples with which learned scales can be validated.
MIN_SAMPLES = 20
#: Values of ``keep=``: the rounds whose kernels are kept besides those of round 0.
KEPT_ROUNDS = ("last", "all")


@dataclass(frozen=True)
class LearnedScales(Open):
    """Kernels on rescaled columns, made by an estimator in ``fit``.

    Parameters
    ----------
    base : KernelBank or None
        The kernels to repeat; None for those of ``default_bank(X, kind="tables")``.
    rounds, keep, validate, max_samples, random_state
        As in :func:`multikernel.learned_scales`.
    """

    base: KernelBank | None = None
    rounds: int = 2
    validate: bool = True
    max_samples: int = 600
    random_state: Any = 0
    keep: str = "last"

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("max_samples", MIN_SAMPLES)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(
                    f"learned_scales: {name} must be a whole number of at least {least}; "
                    f"got {value!r}."
                )
        check_flag("learned_scales", "validate", self.validate)
        check_choice("learned_scales", "keep", self.keep, KEPT_ROUNDS)
        if self.base is None:
            return
        if reads_sequences(self.base):
            raise ValueError(
                "learned_scales: sequence kernels have no columns to scale. Add them to the "
                "result: mk.learned_scales() + [mk.Spectrum(3, columns=...)]."
            )
        if any(isinstance(entry, Open) for entry in self.base.entries):
            raise ValueError(
                f"learned_scales: kernels must not depend on data not seen yet; got {self.base!r}. "
                "List the kernels, or add the others to the result."
            )

    def adapt(self, X: Any, sample_weight: Any = None) -> Any:
        raise ValueError(
            "mk.learned_scales() learns column scales from the targets, which are not known here. "
            "MultiKernelClassifier and MultiKernelRegressor learn them in fit. Otherwise, call "
            "mk.learned_scales(X, y) with a training sample, which returns ordinary kernels; in "
            "cross-validation, call it for every training part."
        )


def learns_from_targets(bank: KernelBank) -> bool:
    """Whether a bank has an entry whose kernels depend on the targets."""
    return any(isinstance(entry, LearnedScales) for entry in bank.entries)
