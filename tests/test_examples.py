"""Every example runs from top to bottom, draws something, and prints no warning of ours."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import pytest

from experiments import datasets

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("plot_*.py"))
#: Sets that scikit-learn does not offer; these examples are not part of the gallery.
DATA = {"plot_promoters.py": "promoters"}
#: Examples that take longer than the others. `make docs` runs them, too.
LONG = (
    "plot_norm_study",
    "plot_uniform_is_hard_to_beat",
    "plot_path",
    "plot_alignment_study",
    "plot_report",
)
RUNS = [
    pytest.param(path, marks=[pytest.mark.slow] if path.stem in LONG else [], id=path.stem)
    for path in SCRIPTS
]


def test_there_are_at_least_twelve():
    assert len(SCRIPTS) - len(DATA) >= 12


@pytest.mark.parametrize("script", RUNS)
def test_example_runs(script, tmp_path, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    if script.name in DATA and DATA[script.name] not in datasets.names():
        pytest.skip(
            f"needs the set {DATA[script.name]!r} in the folder that MULTIKERNEL_DATA names"
        )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(script)])
    plt.close("all")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Agg has no window to show; that is matplotlib's to say, not the example's.
            warnings.filterwarnings("ignore", message=".*non-interactive.*")
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            runpy.run_path(str(script), run_name="__main__")
        assert plt.get_fignums(), f"{script.name} draws no picture"
        assert all(plt.figure(number).axes for number in plt.get_fignums())
    finally:
        plt.close("all")
    assert capsys.readouterr().out, f"{script.name} prints no number"
    assert not list(tmp_path.iterdir()), f"{script.name} leaves files behind"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_begins_with_a_title(script):
    """sphinx-gallery takes title and summary from the docstring."""
    lines = script.read_text(encoding="utf-8").splitlines()
    assert lines[0] == '"""'
    assert set(lines[2]) == {"="} and len(lines[2]) == len(lines[1])
    assert lines[4], "a summary under the title"
