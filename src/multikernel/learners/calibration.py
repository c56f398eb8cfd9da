"""Probabilities from decision values: a sigmoid, a monotone step function, or a temperature.

The parameters are fitted to decision values of held-out samples, such as the leave-one-out values
of :mod:`.left_out`. A sigmoid with slope a and offset b minimises

    sum_i w_i [ log(1 + exp(z_i)) - t_i z_i ],      z_i = a f_i + b

(Platt 1999). The targets t are smoothed: they are ``(N+ + 1) / (N+ + 2)`` for the ``N+`` positive
samples and ``1 / (N- + 2)`` for the ``N-`` others, so that the optimum is finite for separable
samples. As in Lin, Lin & Weng (2007), Newton's method with a line search works on ``log(1 +
exp(z))``, which neither overflows nor takes the logarithm of zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.isotonic import IsotonicRegression

METHODS = ("sigmoid", "isotonic", "temperature")

#: Newton's method stops when no entry of the mean gradient is larger.
GRADIENT_TOLERANCE = 1e-12
MAX_NEWTON_STEPS = 200
#: Added to the diagonal of the mean Hessian, which may be singular in double precision.
HESSIAN_RIDGE = 1e-12
#: Sufficient decrease of the line search (a fraction), and the shortest step that it tries.
SUFFICIENT_DECREASE, SHORTEST_STEP = 1e-4, 1e-10
#: Largest inverse temperature, in units of one over the largest decision value.
MAX_INVERSE_TEMPERATURE = 1e8
#: Relative difference that makes one of several tied classes the most probable one.
TIE_BREAKER = 1e-9


@dataclass(frozen=True)
class Calibration:
    """Maps decision values to probabilities of the classes.

    Attributes
    ----------
    method : {"sigmoid", "isotonic", "temperature"}
        For more than two classes, the first two compare each class with the rest and divide the
        results by their sum; the third is ``softmax(f / temperature)``.
    slopes, offsets : arrays of shape (t,)
        Of the sigmoids ``1 / (1 + exp(-(slope f + offset)))``, one per column of the decision
        values; with ``"temperature"``, all slopes are ``1 / temperature`` and all offsets zero.
    knots, levels : tuples of t arrays
        The step functions: probability ``levels[j]`` at the decision values ``knots[j]``, linear in
        between. Empty for the other methods.
    agrees : bool
        Whether the predicted class must also be the most probable one, see `agree`.
    """

    method: str
    slopes: np.ndarray
    offsets: np.ndarray
    knots: tuple[np.ndarray, ...] = ()
    levels: tuple[np.ndarray, ...] = ()
    agrees: bool = True

    @classmethod
    def identity(cls) -> Calibration:
        """The sigmoid of the decision value itself, for the two classes of a logistic loss."""
        return cls("sigmoid", np.ones(1), np.zeros(1))

    def log_probabilities(self, decisions: np.ndarray) -> np.ndarray:
        """Logarithms of the probabilities, shape (m, n_classes).

        Parameters
        ----------
        decisions : array of shape (m, t)
            One column for two classes, one per class for more. A class with the decision value
            minus infinity has probability zero.
        """
        if self.method == "isotonic":
            columns = zip(decisions.T, self.knots, self.levels, strict=True)
            levels = np.column_stack([np.interp(f, x, p) for f, x, p in columns])
            inside, outside = np.log(levels), np.log1p(-levels)
        else:
            with np.errstate(invalid="ignore"):  # zero times infinity
                scores = self.slopes * decisions + self.offsets
            scores = np.where(decisions == -np.inf, -np.inf, scores)
            if self.method == "temperature" and decisions.shape[1] > 1:
                return np.asarray(log_softmax(scores, axis=1))
            inside, outside = log_expit(scores), log_expit(-scores)
        if decisions.shape[1] == 1:
            logs = np.column_stack([outside[:, 0], inside[:, 0]])
            decided = (decisions[:, 0] > 0).astype(int)
        else:
            inside = np.where(decisions == -np.inf, -np.inf, inside)
            logs = np.asarray(log_softmax(inside, axis=1))
            decided = np.argmax(decisions, axis=1)
        return agree(logs, decided) if self.agrees else logs

    def probabilities(self, decisions: np.ndarray) -> np.ndarray:
        """Probabilities of the classes, shape (m, n_classes); every row sums to one."""
        return np.asarray(np.exp(self.log_probabilities(decisions)))


def agree(logs: np.ndarray, decided: np.ndarray) -> np.ndarray:
    """Logarithms of the nearest probabilities for which the decided class is the most probable.

    In Euclidean distance, the nearest probabilities give the decided class and those ranked above
    it the mean of their probabilities.

    Parameters
    ----------
    logs : array of shape (m, k)
    decided : array of shape (m,), int
    """
    rows = np.flatnonzero(np.argmax(logs, axis=1) != decided)
    if not len(rows):
        return logs
    p, own = np.exp(logs[rows]), decided[rows]
    here = np.arange(len(rows))
    others = p.copy()
    others[here, own] = -1.0  # last in the order
    order = np.argsort(-others, axis=1, kind="stable")
    others = np.take_along_axis(others, order, axis=1)[:, :-1]
    means = (p[here, own][:, None] + np.cumsum(others, axis=1)) / np.arange(2, p.shape[1] + 1)
    following = np.column_stack([others[:, 1:], np.full(len(rows), -1.0)])
    last = np.argmax(means >= following, axis=1)  # the smallest number of classes to average
    pooled = np.zeros_like(p, dtype=bool)
    np.put_along_axis(pooled, order, np.arange(p.shape[1]) <= last[:, None], axis=1)
    level = means[here, last]
    p = np.where(pooled, (level * (1.0 - TIE_BREAKER / (last + 1)))[:, None], p)
    p[here, own] = level * (1.0 + TIE_BREAKER)
    out = logs.copy()
    changed = pooled.copy()
    changed[here, own] = True
    out[rows] = np.where(changed, np.log(np.where(changed, p, 1.0)), logs[rows])
    return out


def calibrate(
    method: str,
    decisions: np.ndarray,
    labels: np.ndarray,
    sample_weight: np.ndarray | None = None,
    *,
    agrees: bool = True,
) -> Calibration:
    """Fit the map from decision values to probabilities.

    Parameters
    ----------
    method : {"sigmoid", "isotonic", "temperature"}
    decisions : array of shape (m, t)
        Of held-out samples: one column for two classes, one per class for more.
    labels : array of shape (m,), int
        Index of the class of each sample.
    sample_weight : array of shape (m,), optional
    agrees : bool, default=True
        Whether the predicted class must also be the most probable one.
    """
    weights = np.ones(len(labels)) if sample_weight is None else sample_weight
    t = decisions.shape[1]
    if method == "temperature":
        slope = fit_temperature(decisions, labels, weights)
        return Calibration(method, np.full(t, slope), np.zeros(t), agrees=agrees)
    columns = [labels == 1] if t == 1 else [labels == j for j in range(t)]
    if method == "isotonic":
        steps = [fit_isotonic(f, c, weights) for f, c in zip(decisions.T, columns, strict=True)]
        knots, levels = zip(*steps, strict=True)
        return Calibration(method, np.ones(t), np.zeros(t), knots, levels, agrees)
    if method != "sigmoid":
        raise ValueError(
            f"The method of calibration must be one of {', '.join(map(repr, METHODS))}; got "
            f"{method!r}."
        )
    pairs = [fit_sigmoid(f, c, weights) for f, c in zip(decisions.T, columns, strict=True)]
    slopes, offsets = np.array(pairs).T
    return Calibration(method, slopes, offsets, agrees=agrees)


def smoothed_targets(positive: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
    """``(N+ + 1) / (N+ + 2)`` for positive samples, ``1 / (N- + 2)`` for others; N sums weights."""
    n_positive = float(sample_weight[positive].sum())
    n_negative = float(sample_weight[~positive].sum())
    return np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))


def fit_sigmoid(
    decisions: np.ndarray, positive: np.ndarray, sample_weight: np.ndarray
) -> tuple[float, float]:
    """Slope (not negative) and offset of the sigmoid that fits smoothed targets best.

    Parameters
    ----------
    decisions : array of shape (m,)
    positive : array of shape (m,), bool
    sample_weight : array of shape (m,)
    """
    share = sample_weight / sample_weight.sum()
    target = smoothed_targets(positive, sample_weight)
    mean_target = float(share @ target)
    constant = float(np.log(mean_target) - np.log1p(-mean_target))
    # Scaled decision values neither overflow nor make the Hessian ill-conditioned.
    middle = float(share @ decisions)
    size = float(np.abs(decisions - middle).max())
    if not size > 1e-12 * max(abs(middle), 1e-300):
        return 0.0, constant
    x = (decisions - middle) / size

    def objective(slope: float, offset: float) -> float:
        z = slope * x + offset
        return float(share @ (np.logaddexp(0.0, z) - target * z))

    slope, offset = 0.0, constant
    value = objective(slope, offset)
    for _ in range(MAX_NEWTON_STEPS):
        z = slope * x + offset
        p = expit(z)
        error = share * (p - target)
        gradient = np.array([error @ x, error.sum()])
        if np.abs(gradient).max() <= GRADIENT_TOLERANCE:
            break
        curvature = share * p * expit(-z)
        mixed = float(curvature @ x)
        hessian = np.array([[curvature @ x**2, mixed], [mixed, curvature.sum()]])
        step = -np.linalg.solve(hessian + HESSIAN_RIDGE * np.eye(2), gradient)
        expected, length = float(gradient @ step), 1.0
        while length > SHORTEST_STEP:
            trial = objective(slope + length * step[0], offset + length * step[1])
            if trial <= value + SUFFICIENT_DECREASE * length * expected:
                break
            length *= 0.5
        else:
            break  # no step decreases the objective beyond rounding
        slope, offset = slope + length * step[0], offset + length * step[1]
        value = trial
    if slope < 0:
        # Probabilities must not fall with the decision value: the best such sigmoid is constant.
        return 0.0, constant
    return float(slope / size), float(offset - slope * middle / size)


def fit_temperature(decisions: np.ndarray, labels: np.ndarray, sample_weight: np.ndarray) -> float:
    """``1 / temperature`` of the ``softmax(f / temperature)`` with the smallest log loss.

    For two classes (one column), the scores are 0 and f. The target of a sample of class c is
    ``(N_c + 1) / (N_c + 2)`` for its own class; the others share the rest equally.
    """
    scores = decisions
    if decisions.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(decisions)), decisions[:, 0]])
    m, k = scores.shape
    share = sample_weight / sample_weight.sum()
    counts = np.bincount(labels, sample_weight, minlength=k)[labels]
    target = np.repeat((1.0 / ((counts + 2.0) * (k - 1)))[:, None], k, axis=1)
    target[np.arange(m), labels] = (counts + 1.0) / (counts + 2.0)
    scores = scores - scores.mean(axis=1, keepdims=True)
    size = float(np.abs(scores).max())
    if not size > 0:
        return 0.0
    scores = scores / size

    def slope(inverse: float) -> float:
        """Derivative of the mean log loss with respect to the inverse temperature."""
        p = softmax(inverse * scores, axis=1)
        return float(share @ np.sum((p - target) * scores, axis=1))

    if slope(0.0) >= 0:
        return 0.0
    upper = 1.0
    while slope(upper) < 0 and upper < MAX_INVERSE_TEMPERATURE:
        upper *= 2.0
    if slope(upper) < 0:
        return upper / size
    return float(brentq(slope, 0.0, upper, xtol=1e-14, rtol=1e-13)) / size


def fit_isotonic(
    decisions: np.ndarray, positive: np.ndarray, sample_weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Knots (decision values) and their probabilities, by isotonic regression of smoothed targets.

    Probabilities stay between ``1 / (N- + 2)`` and ``(N+ + 1) / (N+ + 2)``, so that the log loss of
    new samples is finite.
    """
    steps = IsotonicRegression(out_of_bounds="clip")
    steps.fit(decisions, smoothed_targets(positive, sample_weight), sample_weight=sample_weight)
    return np.asarray(steps.X_thresholds_), np.asarray(steps.y_thresholds_)
