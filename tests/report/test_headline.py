"""The first sentences of a report, on models that are put together by hand."""

from types import SimpleNamespace

import numpy as np

from multikernel.report import svg
from multikernel.report.headline import lead
from multikernel.report.samples import _largest


def reported(shares, refits, groups, views=()):
    shares = np.asarray(shares)
    names = [f"kernel {k}" for k in range(len(shares))]
    weights = SimpleNamespace(
        names=names,
        n_used=int(np.count_nonzero(shares)),
        shares=shares,
        order=np.argsort(-shares, kind="stable"),
        views=dict(views),
    )
    return SimpleNamespace(
        weights=weights,
        labels=names,
        estimator=SimpleNamespace(weighting="loo", plan_=SimpleNamespace(n_samples=30)),
        refits=SimpleNamespace(shares=np.asarray(refits)),
        alignments=SimpleNamespace(kernels=np.arange(len(shares)), groups=np.asarray(groups)),
    )


UNSTABLE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_kernels_that_are_all_alike_share_their_weight_in_any_way():
    text = lead(reported([0.6, 0.3, 0.1], UNSTABLE, [0, 0, 0]))
    assert "not stable" in text and "hardly matters how the weight is divided" in text
    assert "100" not in text


def test_a_group_of_similar_kernels_is_named_if_others_are_different():
    text = lead(reported([0.6, 0.3, 0.1], UNSTABLE, [0, 0, 1]))
    assert "A group of 2 similar kernels (<strong>kernel 0, kernel 1</strong>) has 90.0 %" in text


def test_the_view_with_the_largest_weight_is_named_only_if_there_is_one():
    same = [[0.5, 0.5], [0.5, 0.5]]
    equal = lead(reported([0.5, 0.5], same, [0, 1], [("a", 0.5), ("b", 0.5)]))
    assert equal.endswith("All kernels have the same weight.")
    other = lead(reported([0.7, 0.3], [[0.7, 0.3]] * 2, [0, 1], [("a", 0.7), ("b", 0.3)]))
    assert "the view with the largest weight is <strong>a</strong>, with 70.0 %" in other


def test_shares_that_are_rounding_errors_have_no_bar():
    shares = {"a": np.array([0.8]), "absent": np.array([2e-12]), "b": np.array([-0.1])}
    assert [name for name, _ in _largest(shares, 0)] == ["a", "b"]


def test_numbers_above_narrow_columns_leave_gaps():
    names = [f"kernel {k}" for k in range(40)]
    picture = svg.heatmap(names, names, np.eye(40), label="alignments", numbered=True)
    heads = [k for k in range(1, 41) if f">{k}</text>" in picture]
    assert heads == list(range(1, 41, 5))
