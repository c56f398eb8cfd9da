"""A kernel on which many kernels agree, and its principal components."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval

from ..grams.protocol import Expansion, Grams
from ..solvers.components import Components, principal_components
from .base import MultiKernelEstimator
from .missing import MISSING
from .unlabelled import UnlabelledEstimator


class KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultiKernelEstimator):  # type: ignore[misc]
    """Coordinates of samples in the feature space of a learned kernel."""

    _predicts_targets = False

    def _store_components(
        self, grams: Grams, kernel_weights: np.ndarray, found: Components
    ) -> None:
        self._offset = found.offset
        self._expansion: Expansion = grams.expand(kernel_weights, found.coef)
        self._expansion.release()

    @property
    def _n_features_out(self) -> int:
        return len(self._offset)

    def transform(self, X: Any) -> np.ndarray:
        """Coordinates of samples, from the training sample or new.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_new, n_features)

        Returns
        -------
        array of shape (n_new, n_components)
        """
        return self._evaluate(X, False) - self._offset


class ConsensusKernel(KernelTransformer, UnlabelledEstimator):
    """Learn a kernel without labels, and embed samples by its principal components.

    A rule finds non-negative weights of ``K = sum_k mu_k K_k`` from the kernels alone, and kernel
    PCA of K gives each sample ``n_components`` coordinates. Kernels are centred. New samples are
    placed by the same kernel expansions.

    Parameters
    ----------
    kernels : KernelBank, list of kernels, "precomputed" or None, default=None
        As in :class:`MultiKernelClassifier`.
    weighting : str or weighting, default="statis"
        A rule that needs no targets. ``"uniform"``: equal weights. ``"statis"``: by how far each
        kernel agrees with the consensus of all (:class:`Statis`). ``"full-neighbours"`` and
        ``"sparse-neighbours"``: rules that keep the neighbourhoods of the kernels, with all
        kernels or few (:class:`FullNeighbours`, :class:`SparseNeighbours`).
    n_components : int or None, default=2
        Number of principal components; None for all with a positive eigenvalue.
    normalize : {"multiplicative", "trace", "trace-first", "spherical", "frobenius"} or None
        How kernels are scaled to the same size; the weights refer to the scaled kernels.
    missing : {"error", "ignore", "complete"}, default="error"
        How to treat NaN in X, as in :class:`MultiKernelClassifier`: with ``"ignore"``, samples that
        lack a view are placed at its centre; with ``"complete"``, where their other views predict
        them to be.
    dtype, memory_budget, n_jobs, engine, device, verbose
        As in :class:`MultiKernelClassifier`.

    Attributes
    ----------
    kernel_weights_ : array of shape (n_kernels,)
        They sum to one.
    kernel_names_ : list of str
    alignments_ : array of shape (n_kernels, n_kernels)
        Centred alignments of the kernels with each other; 0 for a kernel that is constant.
    optimality_ : float
        How far the weights are from satisfying the optimality conditions of their rule: for
        ``"sparse-neighbours"`` a proven bound on the distance from the minimum of its quadratic
        program, relative to its value for single kernels; for ``"statis"`` and
        ``"full-neighbours"`` the relative residual of the eigenvector equation.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the centred kernel matrix, largest first; 0 beyond its rank.
    explained_variance_ratio_ : array of shape (n_components,)
        The eigenvalues divided by their sum over all components.
    history_ : list of dict
    plan_ : Plan
    bank_ : KernelBank or None
    n_features_in_ : int
    feature_names_in_ : array of str

    See Also
    --------
    KernelClustering : Clusters of the samples, with weights from the same rules.
    KernelFeatures : Features of a kernel learned by any estimator.
    multikernel.plot.embedding : A picture of the first two components.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_wine
    >>> X = load_wine().data
    >>> model = mk.ConsensusKernel(mk.gaussians([0.001, 0.01, 1.0], scaling="standard")).fit(X)
    >>> print(model.kernel_weights_.round(2), model.transform(X).shape)
    [0.42 0.42 0.16] (178, 2)
    """

    _parameter_constraints = {
        **UnlabelledEstimator._parameter_constraints,
        "missing": [MISSING],
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        kernels: Any = None,
        weighting: Any = "statis",
        n_components: int | None = 2,
        *,
        normalize: str | None = "multiplicative",
        missing: str = "error",
        dtype: Any = None,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        engine: str = "cpu",
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.weighting = weighting
        self.n_components = n_components
        self.normalize = normalize
        self.missing = missing
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.engine = engine
        self.device = device
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> ConsensusKernel:
        """Learn kernel weights and components.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        X = self._check_sample(X)
        n = X.shape[0]
        if self.n_components is not None and self.n_components > n:
            raise ValueError(
                f"n_components={self.n_components} must not exceed the number of samples, "
                f"n_samples = {n}. Use fewer components, or None for all of them."
            )
        grams, gram = self._learn_weights(X)
        found = principal_components(gram, self.n_components)
        if self.n_components is not None and found.rank < self.n_components:
            warnings.warn(
                f"n_components={self.n_components}, but the rank of the learned kernel on this "
                f"sample is {found.rank}: further coordinates are zero. Use "
                f"n_components={found.rank}, or None.",
                UserWarning,
                stacklevel=2,
            )
        self.eigenvalues_ = found.values
        self.explained_variance_ratio_ = found.shares
        self._store_components(grams, self.kernel_weights_, found)
        return self
