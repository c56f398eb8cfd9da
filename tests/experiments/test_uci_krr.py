"""Few kernels on small sets: preparation, no look at test labels, tables."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import uci_krr


def made_up(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(2.0, 3.0, size=(n, 4))
    score = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n)
    return X, np.where(score > np.median(score), 1.0, -1.0)


@pytest.fixture
def few(monkeypatch):
    """Coarse choices."""
    monkeypatch.setattr(uci_krr, "FOLDS", 3)
    monkeypatch.setattr(uci_krr, "RIDGES", (10.0, 1.0, 0.1))


def test_splits_and_kernels():
    _, y = made_up()
    train, test = uci_krr.split(y, 0)
    assert (len(train), len(test)) == (48, 12) and y[test].sum() == 0
    np.testing.assert_array_equal(np.sort([*train, *test]), np.arange(60))
    assert not np.array_equal(test, uci_krr.split(y, 1)[1])
    bank = uci_krr.make_bank(4)
    x, z = np.array([[1.0, 0.0, 2.0, 0.0]]), np.array([[0.0, 1.0, 1.0, 0.0]])
    values = [kernel(x, z).item() for kernel in bank]
    np.testing.assert_allclose(values, [np.exp(-3.0 / 4.0), 2.0, 9.0])


@pytest.mark.parametrize("method", uci_krr.METHODS)
def test_test_points_have_no_say(few, method):
    X, y = made_up()
    train, test = uci_krr.split(y, 0)
    clean = uci_krr.learn(method, X, y, train, 0)
    poisoned = y.copy()
    poisoned[test] = np.nan
    far = X.copy()
    far[test] *= 1e6
    dirty = uci_krr.learn(method, X, poisoned, train, 0)
    np.testing.assert_array_equal(dirty.predictions, clean.predictions)
    other = uci_krr.learn(method, far, y, train, 0)
    np.testing.assert_array_equal(other.predictions[train], clean.predictions[train])
    for found in (dirty, other):
        assert found.value == clean.value
        np.testing.assert_array_equal(found.weights, clean.weights)
    assert clean.weights.sum() == pytest.approx(1.0)
    assert np.count_nonzero(clean.weights) == 1 or method != "best"
    assert np.mean((clean.predictions[test] > 0) != (y[test] > 0)) < 0.3


def test_run_resumes_and_prints(few, tmp_path, monkeypatch):
    calls = []

    def load(name):
        calls.append(name)
        return made_up(seed=len(name))

    monkeypatch.setattr(uci_krr, "load", load)
    first = uci_krr.run(2, quick=True, names=["sonar", "heart"], out=tmp_path)
    assert len(calls) == 4 and len(first.rows) == 2 * 2 * 4
    again = uci_krr.run(2, quick=True, names=["sonar", "heart"], out=tmp_path)
    assert len(calls) == 4 and list(again.rows) == list(first.rows)
    text = str(again)
    assert "sonar: about 0.16 misclassified" in text and "| heart | even sum |" in text
    assert {p.suffix for p in again.save(tmp_path)} == {".csv", ".md", ".png"}
    with pytest.raises(ValueError, match=r"names must be among breast, .*got 'pima'"):
        uci_krr.run(names=["pima"])


def test_claims_follow_the_rows():
    def rows(even, learned):
        return [
            uci_krr.Row(data, draw, method, error + 0.01 * draw, rate, 1.0, 0.0, [1.0, 0, 0], 0.0)
            for data, rate in uci_krr.PRINTED.items()
            for draw in range(3)
            for method, error in zip(uci_krr.METHODS, (even, even, even, learned), strict=True)
        ]

    same = {claim.text: claim.ours for claim in uci_krr.claims(uci_krr.Found(rows(0.5, 0.5)))}
    assert set(same.values()) == {"yes"}
    apart = {claim.text: claim.ours for claim in uci_krr.claims(uci_krr.Found(rows(0.5, 0.3)))}
    assert apart["RMSE of all methods within one standard deviation of each other"] == "no"
    assert apart["L2 does not beat the uniform sum by a standard deviation of the RMSE"] == "no"
    assert apart["L1 does not beat the uniform sum by a standard deviation of the RMSE"] == "yes"


def test_real_sets(requires_data):
    requires_data(*uci_krr.SETS.values())
    sizes = {name: uci_krr.load(name)[0].shape for name in uci_krr.SETS}
    assert sizes == {
        "breast": (683, 9),
        "ionosphere": (351, 34),
        "sonar": (208, 60),
        "heart": (270, 13),
    }
