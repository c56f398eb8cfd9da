"""No test point may influence what is trained or chosen: checked by poisoning them.

An experiment's function is run on the same data three times: as they are, with garbage in place of
the test labels (and, where test points are not known in advance, of their features), and with
garbage in place of *training* labels. The first two must agree in everything but the scores, to
the last bit. The third must not, or the check would be blind itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

#: what may differ from run to run
TIMES = frozenset({"seconds"})


def garbage(y: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Labels in which those of some points are all wrong: the other class, or far away."""
    wrong = y.copy()
    classes = np.unique(y)
    if len(classes) > len(y) / 4:
        wrong[points] = 100.0 - 7.0 * y[points]
    else:
        wrong[points] = classes[(np.searchsorted(classes, y[points]) + 1) % len(classes)]
    return wrong


def assert_blind(
    learn: Callable[[np.ndarray, np.ndarray], Mapping[str, Any]],
    X: np.ndarray,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    scores: Collection[str],
    *,
    transductive: bool = False,
) -> None:
    """`learn(X, y)` gives what was trained, chosen and scored; the names in `scores` may differ."""
    clean = learn(X, y)
    trained = clean.keys() - set(scores) - TIMES
    assert trained and set(scores) <= clean.keys()
    poisoned = learn(X, garbage(y, test))
    assert {name: poisoned[name] for name in trained} == {name: clean[name] for name in trained}
    assert any(poisoned[name] != clean[name] for name in scores), "the poison had no effect"
    if not transductive:
        elsewhere = X.copy()
        elsewhere[test] = elsewhere[test][::-1] * 3.0 + 1.0
        poisoned = learn(elsewhere, y)
        assert {name: poisoned[name] for name in trained} == {name: clean[name] for name in trained}
    spoiled = [learn(X, garbage(y, train[::3])), learn(X, garbage(y, train))]
    assert any(bad[name] != clean[name] for bad in spoiled for name in trained), "nothing trained"
