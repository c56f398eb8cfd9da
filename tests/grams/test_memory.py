"""Memory budgets: how they are written, and what is said when they do not suffice."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import multikernel as mk
from multikernel.grams import memory
from multikernel.grams.memory import FRACTION, MemoryBudget, MemoryBudgetError, readable
from tests.peak import peak_bytes


@pytest.mark.parametrize(
    "given, size",
    [
        (1000, 1000),
        (1.5e9, 1_500_000_000),
        (np.float64(2e6), 2_000_000),
        (np.int64(12345), 12345),
        ("4GB", 4_000_000_000),
        ("4 gb", 4_000_000_000),
        (" 0.5 GiB ", 2**29),
        ("512MiB", 512 * 2**20),
        ("10kB", 10_000),
        ("1KiB", 1024),
        ("77b", 77),
        (MemoryBudget(5), 5),
    ],
    ids=str,
)
def test_budgets(given, size):
    assert MemoryBudget.of(given).bytes == size


@pytest.mark.parametrize("free", [10_000, 7 * 2**30])
def test_the_default_is_part_of_what_is_free(free, monkeypatch):
    machine = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=free))
    monkeypatch.setattr(memory, "psutil", machine)
    assert MemoryBudget.of(None).bytes == int(FRACTION * free)
    assert 0.3 < FRACTION < 0.9


@pytest.mark.parametrize(
    "given",
    [0, -5, "0GB", "lots", "4", "4GBs", "", "1.2.3GB", ".GB", True, float("nan"), [1]],
    ids=str,
)
def test_what_is_no_budget(given):
    with pytest.raises(ValueError, match="positive number of bytes, text such as '4GB', or None"):
        MemoryBudget.of(given)


def test_no_limit():
    assert MemoryBudget.of(float("inf")).allows(1e18)


def test_require():
    budget = MemoryBudget.of("1MB")
    budget.require(1e6, "This", "Do that.")
    with pytest.raises(MemoryBudgetError) as caught:
        budget.require(2.5e6, "This", "Do that.")
    assert str(caught.value) == "This needs 2.5 MB, more than the memory budget of 1 MB. Do that."
    assert isinstance(caught.value, MemoryError) and isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "size, text",
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1500, "1.5 kB"),
        (2.5e6, "2.5 MB"),
        (3.2e12, "3.2e+03 GB"),
    ],
)
def test_readable(size, text):
    assert readable(size) == text


N = 400


def overlap(X, Z):
    return np.minimum(X[:, None], Z[None]).sum(axis=2)


@pytest.mark.parametrize("weighting", ["uniform", "alignf"])
def test_fits_that_do_not_fit_say_so(weighting, rng):
    """The message says what is needed and what to change, before it is allocated."""
    X = rng.normal(size=(N, 3))
    bank = mk.KernelBank([mk.Callable(overlap)])
    model = mk.MultiKernelClassifier(bank, weighting, memory_budget="20kB")

    def refuse():
        with pytest.raises(
            MemoryBudgetError, match=r"needs .* of 20 kB\. .*[Rr]aise memory_budget"
        ):
            model.fit(X, X[:, 0] > 0)

    peak = peak_bytes(refuse)
    assert peak < 8 * N**2, f"{peak / 1e3:.0f} kB"


@pytest.mark.parametrize(
    "bank",
    [mk.gaussians([0.1, 1.0]), mk.per_feature(), mk.gaussians([0.1]) + mk.per_feature()],
    ids=["shared", "rank-one", "stacked"],
)
@pytest.mark.parametrize("weighting", ["uniform", "alignf"])
def test_logistic_regression_without_room_for_a_matrix(bank, weighting, rng):
    """Newton's systems are solved by conjugate gradients then, with the same answer."""
    X = rng.normal(size=(N, 3))
    y = X[:, 0] > 0
    ample = mk.MultiKernelClassifier(bank, weighting, loss="logistic").fit(X, y)
    tight = mk.MultiKernelClassifier(bank, weighting, loss="logistic", memory_budget="20kB")
    peak = peak_bytes(lambda: tight.fit(X, y))
    assert peak < 8 * N**2, f"{peak / 1e3:.0f} kB"
    assert tight.duality_gap_ <= 1e-8
    assert tight.objective_ == pytest.approx(ample.objective_, rel=1e-7)


def test_the_combined_matrix_says_what_it_needs(rng):
    X = rng.normal(size=(N, 3))
    for bank in (mk.gaussians([0.1]), mk.per_feature()):
        grams = bank.plan(X).grams(X, budget=MemoryBudget.of("1MB")).corrected(True, "trace")
        operator = grams.combine(np.ones(grams.p))
        operator.matvec(np.ones(N))
        with pytest.raises(MemoryBudgetError, match=r"matrix of 400 samples needs 1.28 MB"):
            operator.dense()


def test_one_block_of_functions_says_what_it_needs(rng):
    X = rng.normal(size=(N, 3))
    bank = mk.KernelBank([mk.Callable(overlap)])
    with pytest.raises(
        MemoryBudgetError, match="One block of 1 kernels on 400 samples needs 413 kB"
    ):
        bank.plan(X).grams(X, budget=MemoryBudget.of("100kB"))


def test_enough_is_enough(rng):
    """The same answer within a small budget as within a large one."""
    X = rng.normal(size=(N, 3))
    y = X[:, 0] + X[:, 1] > 0
    bank = mk.gaussians([0.1, 1.0]) + mk.KernelBank([mk.Callable(overlap)])
    small = mk.MultiKernelClassifier(bank, memory_budget="2MB").fit(X, y)
    large = mk.MultiKernelClassifier(bank, memory_budget="1GB").fit(X, y)
    assert "evaluated again" in str(small.grams_) and "evaluated again" not in str(large.grams_)
    np.testing.assert_allclose(small.kernel_weights_, large.kernel_weights_, rtol=1e-9)
    np.testing.assert_allclose(
        small.decision_function(X[:20]), large.decision_function(X[:20]), rtol=1e-4, atol=1e-4
    )
