"""Figure 1 of Cortes, Mohri and Rostamizadeh: its curves, and what a run says of them."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import two_points
from experiments.two_points import Row, claims


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return two_points.run(quick=True, out=tmp_path_factory.mktemp("two_points"))


def test_values(record):
    found = {round(row.alpha, 3): row for row in record.rows}
    assert len(found) == 39 and min(found) == 0.025 and max(found) == 0.975
    for alpha, expected in ((0.1, 0.905539), (0.25, 0.790569), (0.5, 0.707107)):
        assert found[alpha].uncentered == pytest.approx(expected, abs=5e-7)
        assert found[alpha].centered == pytest.approx(1.0, rel=1e-12)
        # By counting pairs: of the m^2 entries of K, those of equal points are 2, others 0.
        assert found[alpha].formula == pytest.approx(np.sqrt(alpha**2 + (1 - alpha) ** 2))


def test_claims_follow_the_numbers(record):
    assert [claim.ours for claim in record.claims] == ["yes", "yes", "yes"]
    wrong = [Row(row.alpha, row.centered, row.uncentered) for row in record.rows]
    assert [claim.ours for claim in claims(wrong)] == ["no", "no", "no"]


def test_text_and_files(record, tmp_path):
    assert "| 0.5 | 0.707107 | 0.707107 | 1.000000 |" in str(record)
    assert [path.suffix for path in record.save(tmp_path)] == [".csv", ".md", ".png"]


def test_the_figure_shows_both_curves(record):
    (ax,) = record.figure().axes
    labels = [line.get_label() for line in ax.lines]
    assert labels == ["centred", "uncentred"]
    assert np.all(ax.lines[0].get_ydata() > 0.999999)
    assert ax.lines[1].get_ydata().min() == pytest.approx(np.sqrt(0.5))
