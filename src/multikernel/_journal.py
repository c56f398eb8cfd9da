"""Journals of long computations, which can be resumed with the same result.

A solver is deterministic: it depends only on the results of its expensive steps. A journal keeps
these results in order. A resumed computation starts from the beginning and reads them from the
journal up to the point where it was stopped; from there on it computes. Its result is therefore the
same, to the last bit, as without the interruption.

- `Journal.recall` reads the result of a step from the journal, or computes and records it. A result
  is stored with a digest of the step's inputs. If the inputs differ (other libraries, other
  processor), the rest of the journal is dropped and computed again.
- `Journal.state` and `Journal.keep` serve loops that can restart from a state; the last is kept.

A matrix that is still in memory after a training run may differ in its last bits from one that is
computed on demand. The last `ROUND` of a journal is therefore repeated on resumption, unless
finished work follows it.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

logger = logging.getLogger("multikernel")

#: Kinds of entries: finished work; a part of a round; a round, repeated if it is the last one.
DONE, PART, ROUND = "done", "part", "round"
#: Least time between saves, in seconds, ...
SAVE_SECONDS = 30.0
#: ... and as a multiple of the duration of a save.
SECONDS_PER_SECOND_OF_SAVING = 20.0

Answers = dict[str, Any]


@dataclass
class Entry:
    """The results of one step."""

    name: str
    kind: str
    asked: str
    answers: Answers


class Save(Protocol):
    """Writes the entries of a journal to permanent storage."""

    def __call__(self, entries: list[Entry]) -> None: ...


@dataclass
class Journal:
    """Results of expensive steps, in order; see the module docstring.

    Attributes
    ----------
    entries : list of Entry
        Initially those of an earlier run.
    save : callable or None
        Called with the entries from time to time.
    """

    entries: list[Entry] = field(default_factory=list)
    save: Save | None = None

    def __post_init__(self) -> None:
        self.at = 0
        self.saved_at, self.saving_took = time.monotonic(), 0.0
        self.unsaved = self.has_state = self.has_saved = False
        for i in range(len(self.entries) - 1, -1, -1):
            if self.entries[i].kind == DONE:
                break
            if self.entries[i].kind == ROUND:
                del self.entries[i:]
                break

    def recall(
        self,
        name: str,
        question: tuple[Any, ...],
        compute: Callable[[], Answers],
        kind: str = DONE,
    ) -> Answers:
        """The results of a step: from the journal if its inputs are the same, else computed."""
        asked = digest(question)
        entry = self._next(name)
        if entry is not None and entry.asked == asked:
            self.at += 1
            return entry.answers
        if self.at < len(self.entries):
            logger.info("Step %d (%s) of the checkpoint was another one.", self.at, name)
            del self.entries[self.at :]
        answers = compute()
        self.entries.append(Entry(name, kind, asked, copied(answers)))
        self.at += 1
        self.unsaved = True
        if self._is_due():
            self.flush()
        return answers

    def state(self, name: str) -> Answers | None:
        """Begin a loop; return the state that an earlier run kept, or None."""
        entry = self._next(name)
        self.has_state = entry is not None
        if entry is None:
            return None
        self.at += 1
        return entry.answers

    def keep(self, name: str, state: Callable[[], Answers]) -> None:
        """Replace the loop's stored state by this one, if it is time to save."""
        if not self._is_due():
            return
        self.at -= self.has_state
        del self.entries[self.at :]
        self.entries.append(Entry(name, DONE, "", copied(state())))
        self.at += 1
        self.has_state = True
        self.flush()

    def flush(self) -> None:
        """Save the entries now."""
        if self.save is not None:
            started = time.monotonic()
            self.save(self.entries)
            # The first save is not representative: it also imports modules.
            self.saving_took = time.monotonic() - started if self.has_saved else 0.0
            self.has_saved = True
        self.saved_at, self.unsaved = time.monotonic(), False

    def _next(self, name: str) -> Entry | None:
        """The next entry of an earlier run, if it has this name."""
        if self.at < len(self.entries) and self.entries[self.at].name == name:
            return self.entries[self.at]
        return None

    def _is_due(self) -> bool:
        pause = max(SAVE_SECONDS, SECONDS_PER_SECOND_OF_SAVING * self.saving_took)
        return time.monotonic() - self.saved_at >= pause


@dataclass(frozen=True)
class Watched:
    """A callback for history entries, which also carries a journal."""

    show: Callable[[dict[str, Any]], None] | None
    journal: Journal | None

    def __call__(self, entry: dict[str, Any]) -> None:
        if self.show is not None:
            self.show(entry)


def journal_of(report: Any) -> Journal | None:
    """The journal that a callback carries, or None."""
    found = getattr(report, "journal", None)
    return found if isinstance(found, Journal) else None


def recall(
    report: Any,
    name: str,
    question: tuple[Any, ...],
    compute: Callable[[], Answers],
    kind: str = DONE,
) -> Answers:
    """The results of a step, through the journal that ``report`` carries, if any."""
    journal = journal_of(report)
    return compute() if journal is None else journal.recall(name, question, compute, kind)


def digest(question: tuple[Any, ...]) -> str:
    """A digest of the inputs of a step, exact to the last bit."""
    total = hashlib.blake2b(digest_size=16)
    for part in question:
        if isinstance(part, np.ndarray):
            kind, data = f"{part.dtype.str}{part.shape}", np.ascontiguousarray(part).tobytes()
        else:
            kind, data = "", repr(part).encode()
        # The length separates a part from the next one: (1, 23) is not (12, 3).
        total.update(f"{kind}:{len(data)}:".encode())
        total.update(data)
    return total.hexdigest()


def copied(value: Any) -> Any:
    """The value with copies of its arrays, which later steps may change in place."""
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [copied(item) for item in value]
    return value
