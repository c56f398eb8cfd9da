"""Figure 1 of Bousquet & Herrmann: its bookkeeping, and what a small run must show."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

from multikernel.experiments import spectral


@pytest.fixture(scope="module")
def result(data_dir, tmp_path_factory) -> spectral.SpectralResult:
    return spectral.run(4, names=["sonar"], out=tmp_path_factory.mktemp("spectral"))


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
    once, again = (spectral.run_one("sonar", 3, ["K_2"], seed=1) for _ in range(2))
    assert replace(once[0], seconds=0.0) == replace(again[0], seconds=0.0)
    other = spectral.run_one("sonar", 4, ["K_2"], seed=1)
    assert other[0].bound != once[0].bound


def test_breast_cancer_has_no_missing_values_left(data_dir):
    X, y = spectral.load("breastcancer")
    assert X.shape == (683, 9)
    assert set(y) == {-1, 1}


def test_rows_without_a_margin_are_counted_and_left_out_of_means(result, tmp_path):
    lost = tuple(
        replace(row, bound=np.nan, test_error=np.nan, gap=np.nan)
        if (row.method, row.split) == ("K_C", 0)
        else row
        for row in result.rows
    )
    part = spectral.SpectralResult(lost)
    assert "(1 of 4 splits not separable)" in part.table("sonar")
    left = result.values("sonar", "K_C", "test_error")[1:]
    assert part.mean("sonar", "K_C", "test_error") == pytest.approx(left.mean())
    part.to_csv(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(lost)


def test_the_text_has_table_and_claims(result):
    text = str(result)
    assert "| K_1 | 9.65 |" in text
    assert "sonar: K_L and K_C perform alike" in text
