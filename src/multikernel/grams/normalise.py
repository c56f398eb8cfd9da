"""Centring and normalisation: affine corrections kept beside the grams, and on plain matrices.

A correction turns the raw kernel K into

    scale * d(x) d(z) * (K(x, z) - r(x) - r(z) + g)

with the training sample's row means r and grand mean g (0 without centring) and, for the spherical
normalisation only, ``d = 1 / sqrt(centred diagonal)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

HOW = ("trace", "multiplicative", "spherical", "frobenius", "trace-first")


@dataclass(frozen=True)
class Correction:
    """The numbers of the affine correction, one set per kernel.

    Attributes
    ----------
    row_means : array of shape (p, n) or None
        r; None without centring.
    grand_means : array of shape (p,) or None
        g; None without centring.
    scale : array of shape (p,)
        0 for a kernel that is constant on the sample.
    sphere : array of shape (p, n) or None
        d; None unless the normalisation is spherical.
    noise : array of shape (p,) or None
        Rounding error of the centred diagonal; samples with a smaller entry are at the centre.
    """

    row_means: np.ndarray | None
    grand_means: np.ndarray | None
    scale: np.ndarray
    sphere: np.ndarray | None = None
    noise: np.ndarray | None = None

    def state(self) -> dict[str, Any]:
        """The fields, for a model file."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Correction:
        """A correction from stored fields; a ValueError if their sizes differ."""
        new = cls(**state)
        if any(field is not None and len(field) != len(new.scale) for field in state.values()):
            raise ValueError("the sizes of its parts do not fit each other: number of kernels")
        return new

    def apply(self, block: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """Correct a raw block (p, |rows|, n) of the training sample, in place."""
        if self.row_means is not None and self.grand_means is not None:
            block -= self.row_means[:, rows, None]
            block -= self.row_means[:, None, :]
            block += self.grand_means[:, None, None]
        if self.sphere is not None:
            block *= self.sphere[:, rows, None]
            block *= self.sphere[:, None, :]
        block *= self.scale[:, None, None]
        return block

    def apply_new(
        self, block: np.ndarray, means: np.ndarray | None, diagonal: np.ndarray | None
    ) -> np.ndarray:
        """Correct a raw block (p, m, n) between new and training points, in place.

        Parameters
        ----------
        means : array of shape (p, m)
            The (weighted) mean of each new point's kernel values over the training sample.
        diagonal : array of shape (p, m)
            Raw K(x, x) of the new points; needed only for the spherical normalisation.
        """
        centred_diagonal = diagonal
        if self.row_means is not None and self.grand_means is not None:
            assert means is not None
            block -= means[:, :, None]
            block -= self.row_means[:, None, :]
            block += self.grand_means[:, None, None]
            if diagonal is not None:
                centred_diagonal = diagonal - 2.0 * means + self.grand_means[:, None]
        if self.sphere is not None:
            assert centred_diagonal is not None and self.noise is not None
            at_centre = centred_diagonal <= self.noise[:, None]
            block *= inverse_root(np.where(at_centre, 0.0, centred_diagonal))[:, :, None]
            block *= self.sphere[:, None, :]
        block *= self.scale[:, None, None]
        return block


def check_how(how: str | None) -> None:
    if how is not None and not (isinstance(how, str) and how in HOW):
        raise ValueError(
            f"normalize must be one of {', '.join(map(repr, HOW))} or None; got {how!r}."
        )


def inverse_root(values: np.ndarray) -> np.ndarray:
    """``1 / sqrt(v)``, and 0 where v is not positive (a point at the centre of the sample)."""
    return np.divide(
        1.0, np.sqrt(np.maximum(values, 0.0)), where=values > 0, out=np.zeros_like(values)
    )


def scales(
    how: str | None,
    traces: np.ndarray,
    variances: np.ndarray,
    norms: np.ndarray | None,
    degenerate: np.ndarray,
    names: list[str],
) -> np.ndarray:
    """The factors (p,) by which kernels are multiplied; 0 for constant ones.

    Parameters
    ----------
    traces : array of shape (p,)
        Trace of the kernel as used, centred or not; for ``"trace-first"``, before it is centred.
    variances : array of shape (p,)
        ``Tr(Kc) / W``, the variance in feature space (Kloft eq. 3.6), whether centred or not.
    norms : array of shape (p,) or None
        Frobenius norm of the kernel as used; needed only for ``"frobenius"``.
    """
    if how is None or how == "spherical":
        size = np.ones_like(traces)
    elif how in ("trace", "trace-first"):
        size = traces
    elif how == "multiplicative":
        size = variances
    else:
        assert norms is not None
        size = norms
    bad = np.flatnonzero((size <= 0) & ~degenerate)
    if bad.size:
        k = bad[0]
        raise ValueError(
            f"Kernel {names[k]!r} has {'trace' if how != 'frobenius' else 'norm'} {size[k]:.3g}, "
            f"so it is not positive semidefinite and does not allow {how!r} normalisation. Drop "
            "the kernel, repair its matrix, or use normalize='frobenius' or None if the "
            "combination with the other kernels is positive semidefinite."
        )
    return np.where(degenerate, 0.0, 1.0 / np.where(degenerate, 1.0, size))


# -- the same on plain matrices -------------------------------------------------------------------


def center(K: np.ndarray) -> np.ndarray:
    """Centre a kernel matrix in feature space: ``U K U`` with ``U = I - 11'/n``.

    Cortes, Mohri & Rostamizadeh 2012, eq. (1) and Lemma 1.

    Parameters
    ----------
    K : array of shape (n, n)

    Returns
    -------
    array of shape (n, n)
        Its rows sum to zero. K itself is not changed.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> mk.center(np.array([[2.0, 0.0], [0.0, 2.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    K = _square(K, "K")
    r = K.mean(axis=0)
    s = K.mean(axis=1)
    return K - r[None, :] - s[:, None] + K.mean()


def normalize(K: np.ndarray, how: str | None = "trace") -> np.ndarray:
    """Scale a kernel matrix to unit size, without centring it.

    Parameters
    ----------
    K : array of shape (n, n)
    how : {"trace", "multiplicative", "spherical", "frobenius", "trace-first"} or None
        ``trace``: trace one (Cortes et al.); ``multiplicative``: unit variance in feature space
        (Kloft eq. 3.6); ``spherical``: unit diagonal (Kloft eq. 3.7); ``frobenius``: unit norm.
        ``trace-first`` is the same as ``trace`` here. The two orders of centring and trace
        normalisation are ``normalize(center(K))`` and ``center(normalize(K))``.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> mk.normalize(np.array([[4.0, 2.0], [2.0, 9.0]]), "spherical").round(4)
    array([[1.    , 0.3333],
           [0.3333, 1.    ]])
    """
    check_how(how)
    K = _square(K, "K")
    if how == "spherical":
        d = inverse_root(np.diag(K).copy())
        return K * d[:, None] * d[None, :]
    if how is not None and not K.any():
        raise ValueError(f"K is zero, so {how!r} normalisation is undefined. Drop the kernel.")
    centred = center(K)
    if how == "multiplicative" and _is_constant(K, centred):
        raise ValueError(
            "K is constant: its variance in feature space is zero, so 'multiplicative' "
            "normalisation is undefined. Drop the kernel, or use how='trace' or 'frobenius'."
        )
    trace = np.array([np.trace(K)])
    variance = np.array([np.trace(centred) / len(K)])
    if variance[0] <= 10 * np.finfo(np.float64).eps * np.abs(K).max():
        variance[0] = 0.0  # rounding noise of an indefinite matrix
    size = np.array([np.linalg.norm(K)])
    return K * scales(how, trace, variance, size, np.array([False]), ["K"])[0]


def alignment(K: np.ndarray, L: np.ndarray) -> float:
    """Uncentred alignment ``<K, L> / (||K|| ||L||)`` of Cristianini et al., for comparison.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> mk.alignment(np.eye(4), np.outer(y, y))
    0.5
    """
    K, L = _pair(K, L)
    size = np.linalg.norm(K) * np.linalg.norm(L)
    if not size > 0:
        raise ValueError(
            "The alignment with a zero (after centring: constant) kernel is undefined."
        )
    return float(np.vdot(K, L) / size)


def centered_alignment(K: np.ndarray, L: np.ndarray) -> float:
    """Centred alignment ``<Kc, Lc> / (||Kc|| ||Lc||)``, Cortes et al. 2012, definition 4.

    In [0, 1] for positive semidefinite matrices; ``L`` may be the target kernel ``np.outer(y, y)``.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> round(mk.centered_alignment(np.eye(4), np.outer(y, y)), 6)
    0.57735
    """
    K, L = _pair(K, L)
    Kc, Lc = center(K), center(L)
    _refuse_constant(K, Kc, "K")
    _refuse_constant(L, Lc, "L")
    return alignment(Kc, Lc)


def value_centered_alignment(K: np.ndarray, L: np.ndarray) -> float:
    """Correlation of the entries of two kernel matrices, for comparison.

    Only the mean of all entries is subtracted. Cortes et al. 2012, section 2.3, discuss this
    alignment and reject it: unlike centring (:func:`center`), it does not correspond to centred
    features.

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> y = np.array([1.0, 1.0, 1.0, -1.0])
    >>> round(mk.value_centered_alignment(np.eye(4), np.outer(y, y)), 6)
    0.447214
    >>> round(mk.centered_alignment(np.eye(4), np.outer(y, y)), 6)
    0.57735
    """
    K, L = _pair(K, L)
    Kv, Lv = K - K.mean(), L - L.mean()
    _refuse_constant(K, Kv, "K")
    _refuse_constant(L, Lv, "L")
    return alignment(Kv, Lv)


def unnormalized_alignment(K: np.ndarray, L: np.ndarray) -> float:
    """Unnormalised centred alignment ``<Kc, Lc> / n^2``, Cortes et al. 2012, definition 5.

    It grows with the size of the kernels, so it can only compare kernels of equal size. For K with
    ``K_c(x, x) <= R^2`` and the target kernel ``np.outer(y, y)`` with ``|y| <= M`` it lies between
    0 and ``M^2 R^2`` (Lemma 6, repaired).

    Examples
    --------
    >>> import numpy as np
    >>> import multikernel as mk
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> mk.unnormalized_alignment(np.eye(4), np.outer(y, y))
    0.25
    """
    K, L = _pair(K, L)
    return float(np.vdot(center(K), center(L))) / K.size


def _pair(K: np.ndarray, L: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    K, L = _square(K, "K"), _square(L, "L")
    if K.shape != L.shape:
        raise ValueError(f"K and L must have the same shape; got {K.shape} and {L.shape}.")
    return K, L


def _is_constant(K: np.ndarray, centred: np.ndarray) -> bool:
    noise = 10 * np.finfo(np.float64).eps * np.linalg.norm(K)
    return bool(np.linalg.norm(centred) <= noise)


def _refuse_constant(K: np.ndarray, centred: np.ndarray, name: str) -> None:
    if _is_constant(K, centred):
        raise ValueError(f"{name} is constant: its centred alignment is undefined.")


def _square(K: np.ndarray, name: str) -> np.ndarray:
    K = np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.shape[0] == 0 or K.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be a square numeric matrix; got shape {K.shape}, {K.dtype}.")
    K = K.astype(np.float64)
    if not np.isfinite(K).all():
        raise ValueError(f"{name} holds NaN or infinite values.")
    return K
