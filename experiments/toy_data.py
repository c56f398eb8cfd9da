"""Data of Kloft's toy experiment: two Gaussian classes of which k of 50 features tell apart.

:mod:`experiments.toy` describes the experiment.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm as gaussian

N_FEATURES = 50
N_TRAIN = 50
N_VALIDATION = 1000
N_TEST = 1000
RHO = 1.75
#: Number of informative features at each level, from the uniform scenario to the sparsest.
LEVELS = (50, 28, 18, 9, 4, 1)
BAYES_ERROR = float(gaussian.cdf(-RHO))

Sample = tuple[np.ndarray, np.ndarray]


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


def make_samples(informative: int, repetition: int, seed: int) -> tuple[Sample, Sample, Sample]:
    """Training, validation and test points; they follow from the three integers."""
    rng = np.random.default_rng([seed, informative, repetition])
    sizes = (N_TRAIN, N_VALIDATION, N_TEST)
    train, validation, test = (make_toy(n, informative, rng) for n in sizes)
    return train, validation, test


def name_of(p: float) -> str:
    """How the text writes a norm."""
    return "4/3" if abs(p - 4 / 3) < 1e-9 else f"{p:.3g}"


def noise_of(informative: int) -> str:
    return f"{100 * (1 - informative / N_FEATURES):.0f} %"
