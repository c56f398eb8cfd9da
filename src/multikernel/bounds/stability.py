"""Algorithmic stability of kernel ridge regression with learned kernels.

The problem is ``min_h lambda_0 ||h||^2 + (1/m) sum_i (h(x_i) - y_i)^2`` without intercept, whose
dual is ``alpha = (K + lambda_0 m I)^-1 y``. A bound on how far predictions move when one training
point is replaced becomes a bound on the risk. Rostamizadeh 2010, section 2.3; Cortes, Mohri &
Rostamizadeh 2012, section 4.3 and appendix B. Kernels are fixed functions here: centring and
normalisation with statistics of the sample are not covered by any of these theorems.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..problem.assumptions import (
    AssumptionError,
    check_bounded,
    check_count,
    check_delta,
    check_nonnegative,
    check_norm,
    check_positive,
    check_psd,
    check_vector,
)
from .rademacher import conjugate, norm

#: Relative violation of the optimality conditions allowed in a computed minimiser.
OPTIMALITY = 1e-6


def residual_bound(Y: float, R2: float, lambda_0: float) -> float:
    """``|h(x) - y| <= Y + R Y / sqrt(lambda_0)`` for every ridge solution h, ``|y| <= Y``.

    From ``lambda_0 ||h||^2 <= Y^2``, as the objective at h = 0 is at most ``Y^2``. The largest
    *observed* residual is not such a bound.
    """
    Y = check_positive("Y", Y, "it bounds |y|")
    R2, lam = check_bounded("R2", R2), _ridge(lambda_0)
    return Y * (1.0 + math.sqrt(R2 / lam))


def ridge_stability(
    m: int, R2: float, M: float, lambda_0: float, smallest_eigenvalue: float = 0.0
) -> float:
    """Theorem 2.2, one kernel: predictions move by ``2 M R^2 / (lambda_min + lambda_0 m)`` at most.

    Parameters
    ----------
    R2 : float
        ``K(x, x) <= R^2``.
    M : float
        ``|h(x) - y| <= M``, also for the predictor fitted to m - 1 points; see
        :func:`residual_bound`.
    lambda_0 : float
        The ridge of the system, divided by m.
    smallest_eigenvalue : float, default=0.0
        Lower bound on the eigenvalues of the kernel matrices of both samples. (The printed proof
        uses the wrong Gram matrix; a proof with the sample without the point gives the same
        formula.)
    """
    m = check_count("m", m)
    low = check_nonnegative("smallest_eigenvalue", smallest_eigenvalue, "a kernel matrix is PSD")
    size = _residual("M", M) * check_bounded("R2", R2)
    return 2.0 * size / (low + _ridge(lambda_0) * m)


def stability_bound(
    risk: float,
    beta: float,
    m: int,
    M: float,
    delta: float,
    *,
    replaced: bool = False,
    as_printed: bool = False,
) -> float:
    """Theorem 2.4: ``risk + 2 beta + (4 m beta + M^2) sqrt(log(1/delta) / (2m))``, squared loss.

    Parameters
    ----------
    risk : float
        Mean squared error on the training sample.
    beta : float
        Stability of the *loss*: ``2 M`` times that of the prediction.
    M : float
        ``|h(x) - y| <= M``.
    replaced : bool, default=False
        beta is for *replacing* a point (as everywhere in this module), not removing it: then the
        sharper ``risk + beta + (2 m beta + M^2) sqrt(...)`` holds.
    as_printed : bool, default=False
        M in place of ``M^2``, although squared errors reach ``M^2``.
    """
    m, delta = check_count("m", m), check_delta(delta)
    check_nonnegative("risk", risk, "a mean of squares")
    check_nonnegative("beta", beta, "a stability coefficient")
    M = _residual("M", M)
    factor = 1.0 if replaced and not as_printed else 2.0
    top = M if as_printed else M * M
    root = math.sqrt(math.log(1.0 / delta) / (2.0 * m))
    return risk + factor * beta + (2.0 * factor * m * beta + top) * root


class LearnedStability(NamedTuple):
    """Terms of the stability of ridge regression with L2-learned kernels."""

    prediction_fixed: float
    prediction_kernel: float
    loss: float
    constant: float
    per_root_p: float


def learned_ridge_stability_shape(
    m: int,
    p: int,
    R: float,
    M: float,
    Lambda: float,
    lambda_0: float,
    smallest_eigenvalue: float = 0.0,
    *,
    as_printed: bool = False,
) -> LearnedStability:
    """Propositions 2.1 to 2.4 and Theorem 2.3: ``beta = O(1/m) + O(sqrt(p)/m)``; a *shape*.

    ``beta <= 2 M (C_0 + C_1 sqrt(p)) / (lambda_min + lambda_0 m)`` for orthogonal base kernels and
    weights in an L2 ball of radius Lambda, ``C_0 = 2 R^2 M + 8 Lambda R^2 M (R^2/lambda_0 + 1)``,
    ``C_1 = 32 Lambda^2 M R^4 / lambda_0``. The proof has gaps (a factor 2R is lost on the way,
    which is put back here; norms of a matrix are taken from its eigenvalues although it is not
    symmetric), so rely only on how it depends on m and p.

    Returns
    -------
    LearnedStability
        Change of the prediction from the changed point, from the changed kernel, change of the
        loss, and the two constants.
    """
    m, p = check_count("m", m), check_count("p", p)
    R, M = check_bounded("R", R), _residual("M", M)
    Lambda = check_positive("Lambda", Lambda, "the radius of the ball of weights")
    lam = _ridge(lambda_0)
    low = check_nonnegative("smallest_eigenvalue", smallest_eigenvalue, "a kernel matrix is PSD")
    scale = low + lam * m
    lost = 1.0 if as_printed else 2.0 * R
    fixed = 2.0 * M * R**2 / scale
    spread = (4.0 * Lambda * R**2 * math.sqrt(p) + R**2) / lam + 1.0
    kernel = 4.0 * lost * Lambda * M * R * spread / scale
    constant = 2.0 * R**2 * M + 4.0 * lost * Lambda * R * M * (R**2 / lam + 1.0)
    per_root_p = 16.0 * lost * Lambda**2 * M * R**3 / lam
    return LearnedStability(fixed, kernel, 2.0 * M * (fixed + kernel), constant, per_root_p)


# -- two-stage learning ---------------------------------------------------------------------------


def two_stage_stability(
    m: int,
    weights_sum: float,
    R2: float,
    M: float,
    lambda_0: float,
    weight_changes: Any,
    spectral_norms: Any,
    *,
    s: float = 1.0,
    as_printed: bool = False,
) -> float:
    r"""Theorem 16: how far predictions move when one point of two-stage learning is replaced.

    .. math::

        \frac{2 \Lambda_1 R^2 B}{\lambda_0 m}
        + \frac{\Lambda_1 R^2 M}{\lambda_0^2 m} \lVert\Delta\mu\rVert_s
          \Bigl(\sum_k \lVert K_k\rVert_2^t\Bigr)^{1/t}
        + \frac{R M}{\lambda_0} \sum_k |\Delta\mu_k| \sqrt{\lVert K_k\rVert_2 / m},
        \qquad B = M \Bigl(1 + \sqrt{\Lambda_1 R^2 / \lambda_0}\Bigr)

    with ``1/s + 1/t = 1``. The paper prints M in place of B, although a bound on labels does not
    bound residuals. It omits the last term, the change of the kernel at the new point: kernels that
    agree on the sample and differ at x violate the printed statement.

    Parameters
    ----------
    weights_sum : float
        ``Lambda_1 = ||mu||_1`` of both samples.
    R2 : float
        ``K_k(x, x) <= R^2`` for all base kernels.
    M : float
        ``|y| <= M``.
    lambda_0 : float
    weight_changes : array of shape (p,)
        ``|mu'_k - mu_k|``; their sum is at most ``2 Lambda_1``.
    spectral_norms : array of shape (p,)
        ``||K_k||_2`` of the kernel matrices.
    s : float, default=1.0
        Exponent of Hölder's inequality.
    as_printed : bool, default=False
    """
    m, lam = check_count("m", m), _ridge(lambda_0)
    total = check_positive("weights_sum", weights_sum, "the kernel weights are not all zero")
    R2, M = check_bounded("R2", R2), check_positive("M", M, "it bounds |y|")
    changes = np.abs(check_vector("weight_changes", weight_changes, "one entry per kernel"))
    p, what = len(changes), "one entry per kernel as in weight_changes"
    spectral = check_vector("spectral_norms", spectral_norms, what, length=p, negative=False)
    kernel_change = float(norm(changes, check_norm("s", s))) * float(norm(spectral, conjugate(s)))
    second = total * R2 * M * kernel_change / (lam**2 * m)
    if as_printed:
        return 2.0 * total * R2 * M / (lam * m) + second
    B = M * (1.0 + math.sqrt(total * R2 / lam))
    at_point = math.sqrt(R2) * M / lam * float(changes @ np.sqrt(spectral / m))
    return 2.0 * total * R2 * B / (lam * m) + second + at_point


def two_stage_bound(
    risk: float,
    stability: float,
    m: int,
    weights_sum: float,
    R2: float,
    M: float,
    lambda_0: float,
    delta: float,
    *,
    as_printed: bool = False,
) -> float:
    """Theorem 17: ``risk + 2 M_1 M_2 / m + (4 M_1 M_2 + M_1^2 / 4) sqrt(log(1/delta) / (2m))``.

    ``M_1 = 2 M (1 + sqrt(Lambda_1 R^2 / lambda_0))`` and ``M_2 = m`` times the ``stability`` of the
    prediction (:func:`two_stage_stability`). The paper prints ``M_1 M_2 / 4`` for ``M_1^2 / 4``, in
    the form ``(1 + 16 M_2/M_1) M_1 M_2 / 4``.
    """
    m, delta, lam = check_count("m", m), check_delta(delta), _ridge(lambda_0)
    check_nonnegative("risk", risk, "a mean of squares")
    check_nonnegative("stability", stability, "a change of a prediction")
    total = check_positive("weights_sum", weights_sum, "the kernel weights are not all zero")
    R2, M = check_bounded("R2", R2), check_positive("M", M, "it bounds |y|")
    M1, M2 = 2.0 * M * (1.0 + math.sqrt(total * R2 / lam)), m * stability
    root = math.sqrt(math.log(1.0 / delta) / (2.0 * m))
    if as_printed:
        return risk + 2.0 * M1 * M2 / m + (1.0 + 16.0 * M2 / M1) * M1 * M2 / 4.0 * root
    return risk + 2.0 * M1 * M2 / m + (4.0 * M1 * M2 + M1**2 / 4.0) * root


# -- change of the weights ------------------------------------------------------------------------


def weight_change(v: Any, v_new: Any, radius: float = 1.0) -> np.ndarray:
    """Lemma 20 (thesis, Lemma A.1): ``radius (v'/||v'|| - v/||v||)`` from the change of v.

    ``radius (dv/||v'|| - (dv.(v + v')) v / (||v|| ||v'|| (||v|| + ||v'||)))``, without cancellation
    between the two unit vectors.
    """
    v = check_vector("v", v, "one entry per kernel")
    v_new = check_vector("v_new", v_new, "one entry per kernel as in v", length=len(v))
    radius = check_positive("radius", radius, "the norm of the weights")
    a, b = np.linalg.norm(v), np.linalg.norm(v_new)
    if a == 0 or b == 0:
        zero = "v" if a == 0 else "v_new"
        raise AssumptionError(f"Lemma 20 is about directions of vectors; {zero} is zero.")
    dv = v_new - v
    return np.asarray(radius * (dv / b - float(dv @ (v + v_new)) * v / (a * b * (a + b))))


def alignf_change(
    M: Any, M_new: Any, a: Any, a_new: Any, v: Any, v_new: Any
) -> tuple[float, float]:
    """Proposition 21: both sides of ``||dv||_M^2 <= (da - dM v').dv`` for solutions of ``alignf``.

    v minimises ``v'Mv - 2 v'a`` over ``v >= 0`` and v' the same with the matrices of a sample that
    differs in one point. Returns the left and the right side.
    """
    M, a, v = _alignf_solution(M, a, v)
    M_new, a_new, v_new = _alignf_solution(M_new, a_new, v_new, "_new", p=len(a))
    dv = v_new - v
    return float(dv @ M @ dv), float(((a_new - a) - (M_new - M) @ v_new) @ dv)


def alignf_change_bound(M: Any, M_new: Any, a: Any, a_new: Any, v_new: Any) -> float:
    """A consequence of Proposition 21: ``||dv|| <= ||da - dM v'|| / lambda_min(M)``."""
    M_new, a_new, v_new = _alignf_solution(M_new, a_new, v_new, "_new")
    p = len(a_new)
    a = check_vector("a", a, "one entry per kernel as in a_new", length=p)
    M = _moments("M", M, p)
    low = float(np.linalg.eigvalsh(M)[0])
    if low <= p * np.finfo(float).eps * float(np.abs(M).max()):
        raise AssumptionError(
            f"The bound divides by the smallest eigenvalue of M, which is {low:.3g}: the weights "
            "of linearly dependent kernels are not stable."
        )
    change = (a_new - a) - (M_new - M) @ v_new
    return float(np.linalg.norm(change)) / low


def _moments(name: str, M: Any, p: int) -> np.ndarray:
    """Check the inner products ``<K_k, K_l>`` of p kernels: a PSD matrix of shape (p, p)."""
    M = check_psd(name, M)[0]
    if len(M) != p:
        vector = name.replace("M", "a")
        raise AssumptionError(
            f"{name} must have the shape ({p}, {p}), as {vector} has {p} entries; got {M.shape}."
        )
    return M


def _alignf_solution(
    M: Any, a: Any, v: Any, suffix: str = "", p: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Checked M, a and the minimiser v of ``v'Mv - 2 v'a`` over ``v >= 0``.

    For any other v Proposition 21 does not hold: its right side may be negative.
    """
    a = check_vector(f"a{suffix}", a, "one entry per kernel", length=p)
    M = _moments(f"M{suffix}", M, len(a))
    what = "one entry per kernel"
    v = check_vector(f"v{suffix}", v, what, length=len(a), negative=False)
    gradient = M @ v - a
    size = float(np.abs(a).max() + (np.abs(M) @ v).max())
    wrong = max(float(-gradient.min()), float(np.abs(gradient[v > 0]).max(initial=0.0)))
    if wrong > OPTIMALITY * size:
        raise AssumptionError(
            f"v{suffix} must minimise v'M{suffix} v - 2 v'a{suffix} over v >= 0, with the gradient "
            f"M{suffix} v - a{suffix} zero where v > 0 and not negative elsewhere; got a violation "
            f"of {wrong:.3g}."
        )
    return M, a, v


def _residual(name: str, value: float) -> float:
    return check_positive(name, value, "it bounds |h(x) - y|")


def _ridge(lambda_0: float) -> float:
    return check_positive("lambda_0", lambda_0, "stability comes from regularisation")
