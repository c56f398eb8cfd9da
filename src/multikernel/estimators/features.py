"""Features of a learned kernel, for estimators that read features."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from ..bounds.sample import training_grams
from ..grams.protocol import CombinedGram
from ..solvers.components import (
    MAX_EIGENVECTOR_SAMPLES,
    Components,
    landmark_components,
    principal_components,
)
from ..solvers.joint.definiteness import require_psd
from .base import MultiKernelEstimator
from .consensus import ConsensusKernel, KernelTransformer
from .learned_kernel import check_one_kernel


def _of_estimator(name: str, default: Any = None) -> Any:
    """A property that reads a parameter of the wrapped ``estimator``."""
    return property(lambda self: getattr(self.estimator, name, default))


class KernelFeatures(KernelTransformer):
    """Low-rank features of a learned kernel: ``F F'`` approximates K, for any estimator.

    An estimator of this library learns ``K = sum_k mu_k K_k``, with labels (for example
    :class:`MultiKernelClassifier`) or without (:class:`ConsensusKernel`). Samples then get
    ``n_components`` features whose dot products approximate the values of K. With as many features
    as samples they are exact on the training sample.

    Parameters
    ----------
    estimator : estimator of this library with one learned kernel, or None, default=None
        A copy of it is fitted. None takes ``ConsensusKernel()``, which reads no labels. Its
        parameter ``missing`` decides how NaN in X is treated.
    n_components : int, default=100
        Maximum number of features; fewer if K has a lower rank.
    method : {"auto", "eigen", "landmarks"}, default="auto"
        ``"eigen"``: the leading eigenvectors of the kernel matrix, the best approximation of a
        given rank. ``"landmarks"``: the leading components of the Nystrom approximation from twice
        as many samples, which a Cholesky factorisation with random pivots chooses; for large
        samples, since it computes only their columns of K. ``"auto"`` takes eigenvectors up to
        4,000 samples.
    random_state : int, RandomState or None, default=None
        Seed for the choice of landmarks.

    Attributes
    ----------
    estimator_ : estimator
        The fitted copy.
    kernel_weights_ : array of shape (n_kernels,)
    kernel_names_ : list of str
    eigenvalues_ : array of shape (n_features_out,)
        The sum of squares of each feature over the training sample, largest first.
    explained_ratio_ : float
        ``Tr(F F') / Tr(K)`` on the training sample; 1 if the features are exact.
    presence_ : array of shape (n_kernels,)
        The share of the training samples that have the columns of each kernel; only if the
        estimator has a parameter ``missing`` other than ``"error"``.
    plan_ : Plan
    bank_ : KernelBank or None
    n_features_in_ : int
    feature_names_in_ : array of str

    See Also
    --------
    LearnedKernel : The kernel itself, for ``SVC(kernel=...)`` and Gaussian processes.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> features = mk.KernelFeatures(mk.MultiKernelClassifier(), n_components=30)
    >>> model = make_pipeline(features, LogisticRegression()).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 2)
    0.96
    """

    _parameter_constraints = {
        "estimator": [MultiKernelEstimator, None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"auto", "eigen", "landmarks"})],
        "random_state": ["random_state"],
    }

    kernels = _of_estimator("kernels")
    weighting = _of_estimator("weighting")
    center = _of_estimator("center", True)
    normalize = _of_estimator("normalize", "multiplicative")
    dtype = _of_estimator("dtype")
    memory_budget = _of_estimator("memory_budget")
    n_jobs = _of_estimator("n_jobs")
    engine = _of_estimator("engine", "cpu")
    device = _of_estimator("device", None)
    verbose = _of_estimator("verbose", 0)
    missing = _of_estimator("missing", "error")

    def __init__(
        self,
        estimator: Any = None,
        n_components: int = 100,
        *,
        method: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.method = method
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.target_tags.required = self.estimator.__sklearn_tags__().target_tags.required
        return tags

    def certificate(self, X: Any, y: Any = None, delta: float = 0.05) -> Any:
        """Not available for this class; its ``estimator_`` may have one."""
        raise TypeError(
            "The bounds of certificate() apply to predictions, and KernelFeatures makes none. "
            "Call certificate on its estimator_."
        )

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> KernelFeatures:
        """Learn the kernel, and its features on the sample.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,), optional
            For an estimator that learns from labels.

        Returns
        -------
        self
        """
        checked = self._check_X(X, reset=True)
        model = ConsensusKernel(n_components=1) if self.estimator is None else clone(self.estimator)
        self.estimator_ = model.fit(X, y)
        check_one_kernel(self.estimator_, "KernelFeatures")
        self.bank_, self.grams_ = self.estimator_.bank_, self.estimator_.grams_
        self.kernel_weights_ = self.estimator_.kernel_weights_
        self.kernel_names_ = self.estimator_.kernel_names_
        self.__dict__.pop("presence_", None)  # of an earlier fit
        if hasattr(self.estimator_, "presence_"):
            self.presence_ = self.estimator_.presence_
        grams = training_grams(self.estimator_, checked)
        grams = grams.corrected(self.estimator_.center, self.estimator_.normalize)
        gram = grams.combine(self.kernel_weights_)
        require_psd(grams, self.kernel_weights_, gram, warn=False)
        found = self._find(gram)
        self.eigenvalues_ = found.values
        self.explained_ratio_ = float(found.shares.sum())
        self._store_components(grams, self.kernel_weights_, found)
        return self

    def _find(self, gram: CombinedGram) -> Components:
        small = gram.n <= MAX_EIGENVECTOR_SAMPLES and gram.fits(2)
        if self.method == "landmarks" or (self.method == "auto" and not small):
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            return landmark_components(gram, self.n_components, np.random.default_rng(seed))
        found = principal_components(gram, self.n_components, center=False)
        return found.first(max(found.rank, 1))
