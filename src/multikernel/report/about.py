"""Facts about the data of a report that the model itself does not know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: The assumption of every bound that default kernels and imputation violate.
IMPUTED = (
    "kernels fixed before the sample is seen; default kernels take their widths and scales from "
    "it, and imputation takes its medians from it (name the kernels with --kernels to meet this "
    "assumption)"
)


@dataclass(frozen=True)
class DataSummary:
    """Where the sample came from and what was done to it.

    Attributes
    ----------
    source : str
        Such as the name of a file.
    target : str
        Name of the target.
    columns : tuple of str
        Names of the columns of X.
    notes : tuple of str
        What was dropped, filled in or converted, one sentence each.
    rows : array of shape (n_samples,) or None
        Row numbers of the samples in the source, from 1; None if they are 1, 2, ...
    model : str
        The model file, for the commands in the last section.
    assumptions : tuple of str
        Assumptions of bounds that do not hold because of how the data were prepared.
    kept_out : bool
        Whether the samples are known to have been kept out of the fit.
    """

    source: str = ""
    target: str = ""
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rows: Any = field(default=None, compare=False)
    model: str = ""
    assumptions: tuple[str, ...] = ()
    kept_out: bool = False

    def row(self, i: int) -> int:
        """The row number of sample i in the source, from 1."""
        return i + 1 if self.rows is None else int(self.rows[i])
