"""The training sample of a fitted estimator, checked and prepared for the bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._threads import count_threads
from ..grams.engines import build
from ..grams.memory import MemoryBudget
from ..grams.planning import Plan
from ..grams.protocol import Grams
from ..kernels.algebra import Composite, Power, Scaled
from ..kernels.bank import as_bank
from ..kernels.base import Kernel
from ..kernels.distances import Exponential, Matern
from ..kernels.from_sample import took_from_sample
from ..kernels.vectors import Gaussian, Laplacian
from ..problem.assumptions import AssumptionError, check_finite

FIXED_KERNELS = "kernels fixed before the sample is seen"


def training_sample(estimator: Any, X: Any, *needed: str, caller: str = "certificate") -> Any:
    """Validate X as the estimator does, and check that it has the size of the training sample."""
    usable = hasattr(estimator, "_check_X")
    if usable:
        check_is_fitted(estimator)
        usable = all(hasattr(estimator, name) for name in (*needed, "plan_", "support_"))
    if not usable:
        raise TypeError(
            f"{caller} needs a fitted multiple-kernel estimator with one predictor per "
            f"output{', or a vote' if caller == 'certificate' else ''}; got "
            f"{type(estimator).__name__}. For other models, call the functions of "
            "multikernel.bounds directly."
        )
    checked = estimator._check_X(X, reset=False)
    n, fitted = checked.shape[0], estimator.plan_.n_samples
    if n != fitted or n <= int(estimator.support_.max(initial=-1)):
        raise ValueError(
            f"{caller} needs the sample that the estimator was fitted to ({fitted} samples); got "
            f"{n} samples. Samples with sample_weight 0 do not count: leave them out of fit."
        )
    return checked


def training_grams(estimator: Any, checked: Any) -> Grams:
    """The estimator's bank on its sample, neither centred nor normalised."""
    return build(
        estimator.plan_,
        checked,
        budget=MemoryBudget.of(estimator.memory_budget),
        dtype=np.dtype(getattr(estimator, "dtype", None) or checked.dtype),
        n_jobs=count_threads(estimator.n_jobs),
        symmetric=estimator._needs_symmetric_kernels,
    )


def encode_targets(estimator: Any, y: Any, n: int) -> np.ndarray | None:
    """Targets in the form that predictors are trained with, (n, t); None without targets."""
    if hasattr(estimator, "offset_"):
        return None
    if y is None:
        raise ValueError("certificate needs the targets y of the training sample; got None.")
    y = np.asarray(y)
    if y.shape[:1] != (n,):
        found = len(y) if y.ndim else repr(y.item())
        raise ValueError(f"X and y must have the same number of samples; got {n} and {found}.")
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        Y = check_finite("y", y.reshape(n, -1), 2, "targets, one per sample and output")
        t = estimator.dual_coef_.shape[1]
        if Y.shape[1] != t:
            raise AssumptionError(f"y must have {t} outputs, as in fit; got {Y.shape[1]}.")
        return Y
    if y.ndim != 1:
        raise AssumptionError(f"y must be a vector of class labels; got shape {y.shape}.")
    codes = np.searchsorted(classes, y)
    codes = np.clip(codes, 0, len(classes) - 1)
    if not np.all(classes[codes] == y):
        strange = y[classes[codes] != y][0]
        raise AssumptionError(f"y holds a class that the estimator does not know: {strange}.")
    if len(classes) == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)


def machine_names(estimator: Any, t: int) -> list[str]:
    """The name of each predictor: a class, an output, or both classes of a binary problem."""
    classes = getattr(estimator, "classes_", None)
    if classes is not None and len(classes) == 2:
        return [f"class {classes[1]} against {classes[0]}"]
    if classes is not None:
        return [f"class {c} against the rest" for c in classes]
    if hasattr(estimator, "offset_"):
        return ["one class"]
    return ["regression"] if t == 1 else [f"output {j}" for j in range(t)]


def unmet_by_choice(estimator: Any) -> tuple[str, ...]:
    """The assumptions that fail if the kernels themselves were chosen from the sample."""
    if estimator.kernels is None:
        return (
            f"{FIXED_KERNELS}; kernels=None takes widths and column scales from the sample (name "
            "the kernels to meet this assumption)",
        )
    if learned_kernels(estimator):
        return (
            f"{FIXED_KERNELS}; some of these kernels learned from the sample (bank_ differs from "
            "the bank that was passed)",
        )
    if not estimator._is_precomputed:
        bank = as_bank(estimator.kernels)
        made = [
            name
            for entry, name in zip(bank.entries, bank._entry_names(), strict=True)
            if took_from_sample(entry)
        ]
        if made:
            return (
                f"{FIXED_KERNELS}; {len(made)} of them, such as {made[0]}, hold numbers, such "
                "as column scales, that were learned from data (as those of mk.default_bank do)",
            )
    return ()


def learned_kernels(estimator: Any) -> bool:
    """Whether kernels of the bank were learned from the training sample, as n-grams are."""
    if estimator._is_precomputed:
        return False
    given, used = as_bank(estimator.kernels).entries, estimator.bank_.entries
    if len(given) != len(used):  # one entry became several kernels
        return True
    pairs = zip(given, used, strict=True)
    return any(given is not used and given != used for given, used in pairs)


def constant_by_chance(plan: Plan, diagonals: np.ndarray) -> list[str]:
    """Names of kernels whose K(x, x) is constant on the sample, but not by definition."""
    known = np.zeros(plan.n_kernels, dtype=bool)
    for part in plan.parts:
        for k, kernel in zip(part.positions, part.kernels, strict=False):
            known[k] = has_constant_diagonal(kernel)
    constant = np.ptp(diagonals, axis=1) <= 1e-9 * diagonals.max(axis=1)
    return [plan.names[k] for k in np.flatnonzero(constant & ~known).tolist()]


def has_constant_diagonal(kernel: Kernel) -> bool:
    """Whether K(x, x) is the same for all x by the kernel's definition."""
    if isinstance(kernel, Composite):
        return all(has_constant_diagonal(part) for part in kernel.parts)
    if isinstance(kernel, (Scaled, Power)):
        return has_constant_diagonal(kernel.kernel)
    return isinstance(kernel, (Gaussian, Laplacian, Exponential, Matern))


def taken_on_trust(estimator: Any, grams: Grams, constant: list[str]) -> tuple[str, ...]:
    """Assumptions that the sample cannot confirm; ``constant`` names the constant diagonals."""
    notes = ["samples are drawn independently from one distribution"]
    doubtful = [grams.names[k] for k in np.flatnonzero(~grams.known_psd).tolist()]
    if doubtful:
        notes.append(
            f"these kernels are also positive semidefinite outside the sample: {_listed(doubtful)}"
        )
    if constant:
        notes.append(
            f"K(x, x) is the same for all x, as it is on the sample, for {_listed(constant)}"
        )
    if estimator.kernels is not None:
        notes.append(
            "the kernels were chosen, and the columns scaled, without looking at this sample"
        )
    return tuple(notes)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(repr, names[:3])) + more
