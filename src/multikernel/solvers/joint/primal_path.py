"""The iterates of the primal barrier method, their Newton steps and their certificates.

See :mod:`multikernel.solvers.joint.primal` for the problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ...grams.protocol import Grams
from ...learners.base import Learner
from ...problem import Target
from ...problem.losses import OneClass
from ...problem.regularisers import BlockNorm, conjugate, norm
from ..certificate import CertifiedIterate, centred_outputs, certify
from .barriers import MAX_STEP_TO_BOUND
from .smoothed_losses import SmoothedLoss, best_intercept, smoothed

#: Largest number of columns times outputs: a Newton step factors a matrix of this size.
MAX_VARIABLES = 4000
#: The first mu, relative to the objective of a constant predictor per barrier term.
FIRST_BARRIER = 0.1
#: Smallest mu, in the same units: beyond it only rounding errors remain.
LAST_BARRIER = 1e-14
#: The iterate is near the optimum of the barrier problem if the square of the Newton decrement is
#: below this times mu.
CENTRED_BELOW = 1e-6
#: Rounds of iterative refinement of the coefficients.
REFINEMENTS = 3


def explicit_features(grams: Grams, n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """The columns of all usable kernels, shape (n, d), and the kernel of each column.

    Raises
    ------
    ValueError
        If a kernel has no explicit features, or all of them together have too many columns.
    """
    usable = np.flatnonzero(~grams.degenerate)
    columns: list[np.ndarray] = []
    widths: list[int] = []
    for k in usable.tolist():
        alone = np.zeros(grams.p)
        alone[k] = 1.0
        gram = grams.combine(alone)
        if "features" not in gram.offers:
            raise ValueError(
                f"LpNorm: solver='primal' needs kernels with explicit features, such as mk.Linear "
                f"on dense columns, fewer than there are samples; kernel {grams.names[k]!r} has "
                "none here. Use solver='auto'."
            )
        columns.append(gram.features())
        widths.append(columns[-1].shape[1])
        if sum(widths) * n_outputs > MAX_VARIABLES:
            raise ValueError(
                f"LpNorm: solver='primal' is for at most {MAX_VARIABLES} columns of all kernels "
                f"together, times outputs; got more, with {n_outputs} outputs. Use solver='auto'."
            )
    return np.hstack(columns), np.repeat(usable, widths)


class PrimalPath:
    """An iterate (w, b, u) of the barrier problem, and its Newton steps."""

    def __init__(
        self, grams: Grams, target: Target, rule: BlockNorm, learner: Learner, p: float
    ) -> None:
        self.grams, self.target, self.rule, self.learner = grams, target, rule, learner
        self.p, self.alpha = p, 1.0 / p
        self.Y, self.mean = centred_outputs(target, learner)
        self.F, owner = explicit_features(grams, self.Y.shape[1])
        self.usable, self.owner = np.unique(owner, return_inverse=True)
        C = learner.costs(target)
        loss = smoothed(learner.loss, self.Y, C)
        if loss is None:
            raise ValueError(
                f"LpNorm: solver='primal' has no smooth form of {learner.loss!r}. Use "
                "solver='alternation'."
            )
        self.loss: SmoothedLoss = loss
        self.free = learner.fit_intercept
        t, M = self.Y.shape[1], len(self.usable)
        self.w, self.b = np.zeros((self.F.shape[1], t)), np.zeros(t)
        start = np.zeros_like(self.Y)
        if self.free and not isinstance(learner.loss, OneClass):
            self.b = learner.loss.intercept(start, self.Y, C)
        constant = float(learner.loss.value(start, self.Y, C, self.b).sum())
        if isinstance(learner.loss, OneClass):
            s = np.broadcast_to((C / C.sum())[:, None], self.Y.shape)
        else:
            s = loss.derivatives(start + self.b, 0.1 * max(constant, 1e-150) / len(C))[0]
        size = norm(np.sqrt(self._forms(s)), conjugate(p))
        # The norm of the solution is about that of F's; its square is below twice the loss.
        if constant > 0:
            size = min(size, np.sqrt(2.0 * constant))
        size = max(size, 1e-150)
        self.u = np.full(M, size / M)
        self.unit = max(constant, size**2) / (3 * M + loss.count)
        self.mu = FIRST_BARRIER * self.unit

    def state(self) -> dict[str, Any]:
        """The iterate, for `restore`."""
        return {"w": self.w, "b": self.b, "u": self.u, "mu": self.mu}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the result of `state`."""
        self.w, self.b, self.u, self.mu = state["w"], state["b"], state["u"], state["mu"]

    @property
    def exhausted(self) -> bool:
        """Whether mu is so small that only rounding errors remain."""
        return self.mu <= LAST_BARRIER * self.unit

    def _forms(self, s: np.ndarray) -> np.ndarray:
        """``||F_k's||^2`` of usable kernels."""
        return np.bincount(self.owner, ((self.F.T @ s) ** 2).sum(axis=1), len(self.usable))

    def _squares(self, w: np.ndarray) -> np.ndarray:
        return np.bincount(self.owner, (w**2).sum(axis=1), len(self.usable))

    def _heights(self, u: np.ndarray) -> np.ndarray:
        """``u_k^(2/p) r^(2-2/p)``, the bounds of ``||w_k||^2``."""
        r = float(u.sum())
        return r**2 * (u / r) ** (2.0 * self.alpha)

    def _value(self, w: np.ndarray, Z: np.ndarray, u: np.ndarray, b: np.ndarray) -> float:
        r, alpha = float(u.sum()), self.alpha
        logs = np.log(self._heights(u) - self._squares(w)).sum()
        logs += (1.0 - alpha) * np.log(u).sum() + len(u) * alpha * np.log(r)
        loss = self.loss.value(Z, self.mu) + self.loss.total * float(b.sum())
        return 0.5 * r**2 + loss - self.mu * float(logs)

    def _slopes(self, u: np.ndarray) -> np.ndarray:
        """The gradients of ``log c_k`` in u, one per row, for the heights c."""
        slopes = np.full((len(u), len(u)), (2.0 - 2.0 * self.alpha) / float(u.sum()))
        slopes[np.diag_indices(len(u))] += 2.0 * self.alpha / u
        return slopes

    def _gradient(self, w: np.ndarray, s: np.ndarray, u: np.ndarray, mu: float) -> np.ndarray:
        """The gradient of the barrier problem in (w, b, u), for the coefficients s of the loss."""
        c, r, alpha = self._heights(u), float(u.sum()), self.alpha
        g = c - self._squares(w)
        by_w = -self.F.T @ s + 2.0 * mu * w / g[self.owner, None]
        by_b = self.loss.total - s.sum(axis=0) if self.free else np.zeros(0)
        by_u = (c / g) @ self._slopes(u) + (1.0 - alpha) / u + len(u) * alpha / r
        return np.concatenate([by_w.T.ravel(), by_b, r - mu * by_u])

    def advance(self) -> tuple[bool, bool]:
        """Take one Newton step; returns whether it moved, and whether mu may be reduced."""
        mu, alpha, u, w, own = self.mu, self.alpha, self.u, self.w, self.owner
        (d, t), M = w.shape, len(u)
        r = float(u.sum())
        c = self._heights(u)
        g = c - self._squares(w)
        Z = self.F @ w + self.b
        s, bend = self.loss.derivatives(Z, mu)
        gradient = self._gradient(w, s, u, mu)
        A = self._slopes(u)
        size = d * t + (t if self.free else 0) + M
        H = np.zeros((size, size))
        places = [slice(j * d, (j + 1) * d) for j in range(t)]
        for j, at in enumerate(places):
            weighted = bend[:, j, None] * self.F
            H[at, at] = self.F.T @ weighted
            if self.free:
                H[at, d * t + j] = H[d * t + j, at] = weighted.sum(axis=0)
                H[d * t + j, d * t + j] = bend[:, j].sum()
        flat, owners = w.T.ravel(), np.tile(own, t)
        same = owners[:, None] == owners[None, :]
        H[: d * t, : d * t] += same * (4.0 * mu / g[owners] ** 2 * flat)[:, None] * flat
        H[np.arange(d * t), np.arange(d * t)] += 2.0 * mu / g[owners]
        cross = -2.0 * mu * (flat * (c / g**2)[owners])[:, None] * A[owners]
        H[: d * t, -M:], H[-M:, : d * t] = cross, cross.T
        curved = A.T @ (((c / g) ** 2 - c / g)[:, None] * A)
        curved += float((c / g).sum()) * (2.0 - 2.0 * alpha) / r**2 + M * alpha / r**2
        curved[np.diag_indices(M)] += (2.0 * alpha * c / g + 1.0 - alpha) / u**2
        H[-M:, -M:] = mu * curved + 1.0
        try:
            # Scale to a unit diagonal: variables differ by orders of magnitude.
            root = np.sqrt(np.diag(H))
            step = -cho_solve(cho_factor(H / np.outer(root, root)), gradient / root) / root
        except LinAlgError:
            return False, True
        first = float(gradient @ step)
        dw = step[: d * t].reshape(t, d).T
        db = step[d * t : size - M] if self.free else np.zeros(t)
        du = step[-M:]
        length = min(1.0, MAX_STEP_TO_BOUND / max(float(np.max(-du / u)), 1e-300))
        here, dZ = self._value(w, Z, u, self.b), self.F @ dw + db
        while length > 1e-10:
            new = w + length * dw, Z + length * dZ, u + length * du, self.b + length * db
            if np.all(self._heights(new[2]) > self._squares(new[0])):
                if self._value(*new) - here <= 0.1 * length * first:
                    break
                # Rounding errors may hide the decrease of the objective, but not that of its slope.
                slope = self._gradient(new[0], self.loss.derivatives(new[1], mu)[0], new[2], mu)
                if -first <= 1e-8 * abs(here) and abs(slope @ step) <= 0.5 * abs(first):
                    break
            length *= 0.5
        else:
            return False, True
        self.w, _, self.u, self.b = new
        # Minus `first` is the square of the Newton decrement, in units of mu. With a large C the
        # coefficients, and with them the certificate, are sensitive to errors of w.
        return True, -first < CENTRED_BELOW * mu

    def certified(self) -> CertifiedIterate:
        """The current iterate, certified with the kernel weights that give the smallest gap."""
        s, bend = self._coefficients()
        a = self._forms(s)
        v, zeta = np.sqrt(self._squares(self.w)), np.sqrt(a)
        ratio = np.divide(v, zeta, out=np.zeros_like(v), where=zeta > 0)
        theta = self._everywhere(ratio)
        choices = [self._certify(theta, s)]
        exact = self._aligned(s, bend, ratio)
        if exact is not None:
            choices.append(self._certify(theta, exact))
        if 1 < self.p < np.inf:
            choices.append(self._certify(self.rule.dual_weights(self._everywhere(a)), s))
        return min(choices, key=lambda iterate: iterate.gap)

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients of the loss, feasible for the dual, and the curvature of the loss."""
        f = self.F @ self.w
        if self.free:
            self.b = best_intercept(self.loss, f, self.b, self.mu)
        s, bend = self.loss.derivatives(f + self.b, self.mu)
        if self.free:
            s = s - bend * (s.sum(axis=0) - self.loss.total) / bend.sum(axis=0)
        return s, bend

    def _aligned(self, s: np.ndarray, bend: np.ndarray, ratio: np.ndarray) -> np.ndarray | None:
        """Coefficients near s with ``theta_k F_k's = w_k``; None if there are none within bounds.

        If p is large some ``||F_k's||`` are tiny, their kernel weights are huge, and small errors
        of s would turn into large errors of the predictor. The correction solves only d
        equations. It is proportional to the curvature of the loss, which is small near bounds.
        """
        weights = ratio[self.owner, None]
        if not np.all(weights > 0):
            return None
        aim, F, s = self.w / weights, self.F, s.copy()
        if self.free:
            F = np.column_stack([F, np.ones(len(F))])
            aim = np.vstack([aim, np.full(s.shape[1], self.loss.total)])
        for j in range(s.shape[1]):
            weighted = bend[:, j, None] * F
            H = F.T @ weighted
            root = np.sqrt(np.diag(H))
            if not np.all(root > 0):
                return None
            try:
                factor = cho_factor(H / np.outer(root, root))
            except LinAlgError:
                return None
            for _ in range(REFINEMENTS):
                left = aim[:, j] - F.T @ s[:, j]
                s[:, j] += weighted @ (cho_solve(factor, left / root) / root)
        return s if self.loss.is_feasible(s) else None

    def _everywhere(self, values: np.ndarray) -> np.ndarray:
        full = np.zeros(self.grams.p)
        full[self.usable] = values
        return full

    def _certify(self, theta: np.ndarray, s: np.ndarray) -> CertifiedIterate:
        gram = self.grams.combine(theta)
        a = self.grams.quadratic_forms(s).sum(axis=1)
        return certify(self.target, self.rule, self.learner, theta, gram, s, gram.matvec(s), a)

    def cleaned(self, iterate: CertifiedIterate, tol: float) -> CertifiedIterate | None:
        """The iterate with small weights (p = 1) at zero and coefficients at their bounds.

        None if its gap is then above the tolerance; a smaller mu would help.
        """
        theta = iterate.theta
        s: np.ndarray | None = iterate.coef
        if self.p == 1:
            # At the optimum a kernel has no weight or the largest a_k: take the nearer case.
            v = theta * np.sqrt(iterate.a)
            unused = v / v.sum() < 1.0 - iterate.a / iterate.a.max()
            theta = np.where(unused, 0.0, theta)
        if self.loss.count:
            s = self._rounded(theta)
        if s is None:
            return None
        clean = self._certify(theta, s)
        return clean if clean.meets(tol) else None

    def _rounded(self, theta: np.ndarray) -> np.ndarray | None:
        """Feasible coefficients, most of them at their bounds; None if none are near."""
        Z = self.F @ self.w + self.b
        s, bend = self.loss.derivatives(Z, self.mu)
        rounded = self.loss.rounded(Z, self.mu)
        inner = np.where(rounded == s, bend, 0.0)
        aligned = self._aligned(rounded, inner, theta[self.usable])
        if aligned is not None:
            return aligned
        if self.free:
            left = rounded.sum(axis=0) - self.loss.total
            if np.any((inner.sum(axis=0) == 0) & (left != 0)):
                return None
            rounded = rounded - inner * left / np.maximum(inner.sum(axis=0), 1e-300)
        return rounded if self.loss.is_feasible(rounded) else None
