"""A page to look at, and a reader that minds its tags."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np

import multikernel as mk

#: Elements that have no end tag.
VOID = {"meta", "link", "br"}

#: Names that would do harm, were they not escaped.
VIEW, LABEL = "<b>bold</b>", '<script>alert("x")</script>'


class Page(HTMLParser):
    """Tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-4:])
        self.open.pop()

    def handle_data(self, data):
        if self.open[-1:] not in (["script"], ["style"]):
            self.words.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def section(raw: str, name: str) -> str:
    """The source of one section."""
    return raw.split(f'<section id="{name}"')[1].split("</section>")[0]


def two_views(n: int = 90, seed: int = 0):
    """Two views, one of which tells the classes apart, under names that must be escaped."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, LABEL, "plain & simple")
    X = rng.standard_normal((n, 4))
    X[:, 0] += 1.5 * np.where(y == LABEL, 1, -1)
    bank = mk.per_view(
        {
            VIEW: ([mk.Gaussian(0.1), mk.Gaussian(1.0), mk.Linear()], [0, 1]),
            "noise": ([mk.Gaussian(0.1), mk.Linear()], [2, 3]),
        }
    )
    return bank, X, y


def searched(n: int = 90):
    """A fitted search on two views."""
    bank, X, y = two_views(n)
    rules = [mk.LpNorm(1.0), mk.LpNorm(1.5), mk.LpNorm(1.9)]
    model = mk.MultiKernelClassifierCV(bank, rules, Cs=(0.1, 1.0, 10.0), cv=3).fit(X, y)
    return model, X, y


def leaderboard():
    """What `multikernel compare` hands over."""
    from multikernel.cli.leaderboard import Leaderboard, LeaderboardRow

    rng = np.random.default_rng(1)
    base = 0.8 + 0.02 * rng.standard_normal(6)
    rows = (
        LeaderboardRow("alignf", "weighting", base + 0.05, 0.1),
        LeaderboardRow("uniform", "weighting", base + 0.01 * rng.random(6), 0.05),
        LeaderboardRow("best", "weighting", base, 0.2),
        LeaderboardRow("forest <i>", "scikit-learn", base - 0.03, 0.3),
        LeaderboardRow("broken", "scikit-learn", np.full(6, np.nan), 0.0, "no such <thing>"),
    )
    return Leaderboard("accuracy", True, 3, 2, rows)
