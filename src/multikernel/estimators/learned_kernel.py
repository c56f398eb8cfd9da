"""A learned kernel as a function of two samples, for other libraries' kernel methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import Kernel as GaussianProcessKernel
from sklearn.utils.validation import check_is_fitted

from .._sample_weight import check_sample_weight
from .._threads import count_threads
from ..grams.engines import build
from ..grams.memory import MemoryBudget
from ..grams.protocol import Grams
from ..kernels.sequences.base import reads_sequences
from ..kernels.sequences.table import Table
from .base import MultiKernelEstimator
from .checks import check_dtype


class LearnedKernel(GaussianProcessKernel):  # type: ignore[misc]
    """The kernel of a fitted model as a function ``kernel(X, Z)``.

    The value is ``sum_k mu_k K_k(x, z)`` with the model's kernel weights. Every kernel is centred
    and normalised by the statistics of the sample X that the model was fitted to, whatever samples
    it is evaluated at. So ``SVC(kernel=LearnedKernel(model, X), C=model.C)``, trained on the same
    sample, is the same classifier.

    It is also a kernel for :class:`sklearn.gaussian_process.GaussianProcessRegressor`, without
    parameters of its own: multiply it by a ``ConstantKernel`` and add a ``WhiteKernel`` to learn
    the size of signal and noise.

    Parameters
    ----------
    model : fitted estimator of this library with one learned kernel
        For example :class:`MultiKernelClassifier` or :class:`ConsensusKernel`. ``sklearn.clone``
        keeps it fitted.
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        The sample that the model was fitted to, which a fitted model does not keep.
    sample_weight : array of shape (n_samples,), optional
        The sample weights that the model was fitted with.

    Examples
    --------
    >>> import multikernel as mk
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.svm import SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = mk.MultiKernelClassifier().fit(X[::2], y[::2])
    >>> kernel = mk.LearnedKernel(model, X[::2])
    >>> kernel(X[:3], X[:5]).shape
    (3, 5)
    >>> machine = SVC(kernel=kernel).fit(X[::2], y[::2])
    >>> bool((machine.predict(X) == model.predict(X)).all())
    True
    """

    def __init__(self, model: Any, X: Any, sample_weight: Any = None) -> None:
        check_one_kernel(model, "LearnedKernel")
        if model.bank_ is None:
            raise ValueError(
                "LearnedKernel evaluates kernels at any two samples, which a model with "
                "kernels='precomputed' cannot. Fit it with mk.precomputed(matrices) and X = "
                "mk.sample_ids(n)."
            )
        self.model = model
        self.X = X
        self.sample_weight = sample_weight
        sample = model._check_X(X, reset=False)
        omega = np.ones(sample.shape[0])
        if sample_weight is not None:
            omega = check_sample_weight(sample_weight, sample)
        keep = np.flatnonzero(omega > 0)
        fitted = model.plan_.n_samples
        if len(keep) != fitted:
            raise ValueError(
                f"LearnedKernel needs the sample that the model was fitted to, with its sample "
                f"weights: {fitted} samples of positive weight; got {len(keep)}."
            )
        self._sample = sample if len(keep) == sample.shape[0] else sample[keep]
        self._omega = omega[keep]
        self._grams = self._make_grams(self._sample, self._omega)

    def __sklearn_clone__(self) -> LearnedKernel:
        return self  # there is nothing to fit, and a clone of the model would be unfitted

    # -- the interface of kernels of Gaussian processes -------------------------------------------

    @property
    def requires_vector_input(self) -> bool:
        """Whether samples are rows of numbers; False for kernels on sequences."""
        return not reads_sequences(self.model.kernels)

    def is_stationary(self) -> bool:
        """False: values depend on more than the difference of two samples."""
        return False

    def diag(self, X: Any) -> np.ndarray:
        """``kernel(x, x)`` for every sample.

        Parameters
        ----------
        X : array of shape (n_new, n_features)

        Returns
        -------
        array of shape (n_new,)
        """
        grams, rows = self._with(self.model._check_X(X, reset=False))
        return np.asarray(grams.combine(self.model.kernel_weights_).diagonal()[rows])

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Values of the kernel at pairs of samples.

        Parameters
        ----------
        X : array of shape (n_new, n_features)
        Y : array of shape (n_other, n_features), optional
            X itself by default.
        eval_gradient : bool, default=False
            Also return the gradient in the parameters, an empty array: there are none.

        Returns
        -------
        K : array of shape (n_new, n_other)
        gradient : array of shape (n_new, n_new, 0)
            With ``eval_gradient=True``.
        """
        if eval_gradient and Y is not None:
            raise ValueError("The gradient can be evaluated only if Y is None.")
        points = self.model._check_X(X, reset=False)
        if Y is None:
            grams, rows = self._with(points)
            K = grams.combine(self.model.kernel_weights_).submatrix(rows)
            return (K, np.empty((*K.shape, 0))) if eval_gradient else K
        grams, rows = self._with(self.model._check_X(Y, reset=False))
        # Evaluate K(., z) for each sample z as an expansion, as models do.
        units = np.zeros((grams.n, len(rows)))
        units[rows, np.arange(len(rows))] = 1.0
        expansion = grams.expand(self.model.kernel_weights_, units)
        return expansion.values(expansion.encode(points))

    def __repr__(self) -> str:
        return f"LearnedKernel({type(self.model).__name__}, {self.model.plan_.n_samples} samples)"

    # -- through the waist ------------------------------------------------------------------------

    def _with(self, points: Any) -> tuple[Grams, np.ndarray]:
        """Grams that contain these samples, and the rows of the samples in them.

        New samples have weight zero, so that all statistics are those of the training sample.
        """
        n = self._sample.shape[0]
        if _same(points, self._sample):
            return self._grams, np.arange(n)
        both = _stacked(self._sample, points)
        omega = np.concatenate([self._omega, np.zeros(points.shape[0])])
        return self._make_grams(both, omega), np.arange(n, both.shape[0])

    def _make_grams(self, sample: Any, omega: np.ndarray) -> Grams:
        model, budget = self.model, MemoryBudget.of(self.model.memory_budget)
        grams = build(
            model._make_plan(model.bank_, sample, budget),
            sample,
            budget=budget,
            dtype=check_dtype(model.dtype) or sample.dtype,
            sample_weight=None if np.all(omega == 1.0) else omega,
            n_jobs=count_threads(model.n_jobs),
        )
        return grams.corrected(model.center, model.normalize)


def check_one_kernel(model: Any, caller: str) -> None:
    """Raise unless the model is fitted and has learned one kernel."""
    if not isinstance(model, MultiKernelEstimator) or not model._learns_one_kernel:
        raise TypeError(
            f"{caller} needs an estimator of multikernel that learns one combination of kernels, "
            f"such as mk.MultiKernelClassifier or mk.ConsensusKernel; got {type(model).__name__}."
        )
    check_is_fitted(model)
    if model.kernel_weights_.ndim != 1:
        raise ValueError(
            f"{caller} needs one learned kernel, but this {type(model).__name__} has "
            f"{len(model.kernel_weights_)}: one for each output. Use multiclass='shared'."
        )


def _same(points: Any, sample: Any) -> bool:
    if points is sample:
        return True
    if points.shape != sample.shape or isinstance(points, Table):
        return False
    if sp.issparse(points) or sp.issparse(sample):
        return sp.issparse(points) and sp.issparse(sample) and (points != sample).nnz == 0
    return bool(np.array_equal(points, sample))


def _stacked(sample: Any, points: Any) -> Any:
    if isinstance(sample, Table):
        columns = zip(sample.columns, points.columns, strict=True)
        return Table([np.concatenate(pair) for pair in columns], sample.names)
    if sp.issparse(sample) or sp.issparse(points):
        return sp.vstack([sp.csr_array(sample), sp.csr_array(points)]).tocsr()
    return np.vstack([sample, points])
