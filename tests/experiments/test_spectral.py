"""Figure 1 of Bousquet & Herrmann: its bookkeeping, and what a small run must show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import spectral
from experiments.record import Record
from tests.experiments.blind import assert_blind


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("spectral")


@pytest.fixture(scope="module")
def record(data_dir, folder) -> Record:
    return spectral.run(4, names=["sonar"], out=folder)


@pytest.fixture
def result(record) -> spectral.Found:
    return spectral.Found(record.rows)


def test_every_machine_is_certified(result):
    assert {row.method for row in result.rows} == set(spectral.METHODS)
    assert max(row.gap for row in result.rows if np.isfinite(row.gap)) <= 1e-4


def test_a_larger_class_has_a_smaller_bound_on_every_split(result):
    def bound(method):
        return result.values("sonar", method, "bound")

    slack = 1 + 1e-4  # the tolerance of the gap
    for larger, smaller in (
        ("K_S", "K_P10"),
        ("K_P10", "K_P"),
        ("K_P", "K_2"),
        ("K_S", "K_SA"),
        ("K_L", "K_C"),
        ("K_C", "K_A"),
        ("K_C", "K_1"),
        ("K_C", "K_2"),
        ("K_C", "K_3"),
    ):
        assert np.all(bound(larger) <= bound(smaller) * slack), (larger, smaller)


def test_bounds_are_of_the_printed_size(result):
    for method, (printed, _) in spectral.PRINTED["sonar"].items():
        ours = result.mean("sonar", method, "bound")
        assert printed / 1.5 < ours < printed * 1.5, method


def test_the_free_spectrum_overfits(result):
    d, _ = result.difference("sonar", "K_S", "K_P", "test_error")
    assert d > 0.02
    said = {claim.text: claim.ours for claim in result.claims()}
    assert said["sonar: the free spectrum K_S has the smallest bound"] == "yes"


def test_splits_follow_from_their_numbers(data_dir):
    once, again = (spectral.work("sonar", 3, "K_2", 1) for _ in range(2))
    assert replace(once[0], seconds=0.0) == replace(again[0], seconds=0.0)
    other = spectral.work("sonar", 4, "K_2", 1)
    assert other[0].bound != once[0].bound


def test_breast_cancer_has_no_missing_values_left(data_dir):
    X, y = spectral.load("breastcancer")
    assert X.shape == (683, 9)
    assert set(y) == {-1, 1}


def test_rows_without_a_margin_are_counted_and_left_out_of_means(result):
    lost = tuple(
        replace(row, bound=np.nan, test_error=np.nan, gap=np.nan)
        if (row.method, row.split) == ("K_C", 0)
        else row
        for row in result.rows
    )
    part = spectral.Found(lost)
    assert "(1 of 4 splits not separable)" in part.table("sonar")
    left = result.values("sonar", "K_C", "test_error")[1:]
    assert part.mean("sonar", "K_C", "test_error") == pytest.approx(left.mean())


def test_text_and_files(record, tmp_path):
    text = str(record)
    assert "| K_1 | 9.65 |" in text
    assert "sonar: K_L and K_C perform about equally" in text
    assert [path.suffix for path in record.save(tmp_path)] == [".csv", ".md", ".png"]


def test_finished_machines_are_kept(record, folder, monkeypatch):
    monkeypatch.setattr(spectral, "work", None)
    assert spectral.run(4, names=["sonar"], out=folder).rows == record.rows


@pytest.mark.parametrize("method", spectral.METHODS)
def test_test_labels_do_not_influence_training(data_dir, method):
    """Test points are known in advance here, their labels are not."""
    X, y = spectral.load("sonar")
    X, y = X[::2], y[::2]
    known, rest = spectral.cut("sonar", len(y), 0, 0)

    def learn(X, y):
        return spectral.learn("sonar", method, X, y, known, rest)

    assert_blind(learn, X, y, known, rest, {"test_error"}, transductive=True)
