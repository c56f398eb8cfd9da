"""Other libraries on the same card: himalaya and GPyTorch, if they are installed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from .data import gaussian_bank, sample

#: Candidates of himalaya's random search; its default is 100.
CANDIDATES = 10
#: Steps of Adam on GPyTorch's marginal likelihood.
STEPS = 50


def himalaya_search() -> dict[str, Any]:
    """Ridge on weighted kernels whose weights come from a random search, 50 Gaussians."""
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    backend = set_backend("torch_cuda")
    X, y = sample(10_000, 28, False)
    Z = torch.as_tensor(X, device="cuda")
    rates = [kernel.gamma for kernel in gaussian_bank(28)]
    squares = torch.cdist(Z, Z).square_()
    K = torch.stack([torch.exp(-rate * squares) for rate in rates])
    del squares
    model = MultipleKernelRidgeCV(
        kernels="precomputed",
        solver="random_search",
        cv=5,
        solver_params={
            "n_iter": CANDIDATES,
            "alphas": np.logspace(-2, 4, 7),
            "progress_bar": False,
        },
    )
    torch.cuda.synchronize()
    start = time.perf_counter()
    model.fit(K, backend.asarray(y))
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "note": f"{CANDIDATES} candidates (its default is 100), 7 alphas"}


def gpytorch_fit() -> dict[str, Any]:
    """An exact Gaussian process with a sum of 10 scaled RBF kernels, by Adam."""
    import gpytorch

    X, y = sample(10_000, 28, False)
    x, t = (torch.as_tensor(a, device="cuda") for a in (X, y))

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self, likelihood: Any) -> None:
            super().__init__(x, t, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            parts = []
            for width in np.geomspace(1.0, 20.0, 10):
                part = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
                part.base_kernel.lengthscale = float(width)
                parts.append(part)
            self.kernel = gpytorch.kernels.AdditiveKernel(*parts)

        def forward(self, at: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(at), self.kernel(at))

    likelihood = gpytorch.likelihoods.GaussianLikelihood().to("cuda").double()
    model = Model(likelihood).to("cuda").double()
    model.train()
    likelihood.train()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = -objective(model(x), t)
        loss.backward()
        optimiser.step()
    torch.cuda.synchronize()
    return {"seconds": time.perf_counter() - start, "note": f"{STEPS} steps of Adam"}
