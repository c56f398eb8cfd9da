"""Journals: answers come back in order, other questions are computed, files are refused clearly."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import multikernel as mk
from multikernel import _checkpoint, _journal
from multikernel._checkpoint import CheckpointError, fingerprint, journal_in, read_entries
from multikernel._journal import DONE, PART, ROUND, Entry, Journal


@pytest.fixture(autouse=True)
def keep_everything(monkeypatch):
    monkeypatch.setattr(_checkpoint, "MIN_SECONDS_TO_KEEP", 0.0)


def counted(values):
    """A computation that says how often it was made."""
    made = []

    def compute():
        made.append(1)
        return {"x": values}

    return compute, made


def test_answers_come_back_in_order_and_without_computing():
    first = Journal()
    for i in range(3):
        first.recall("step", (i, np.arange(i)), lambda i=i: {"x": np.full(2, i)})
    again = Journal(first.entries)
    for i in range(3):
        compute, made = counted(None)
        found = again.recall("step", (i, np.arange(i)), compute)
        assert found["x"].tolist() == [i, i] and not made


@pytest.mark.parametrize("question", [(1, np.arange(3.0)), (0, np.arange(3)), (0, np.ones(3))])
def test_another_question_is_computed_and_what_followed_is_dropped(question):
    first = Journal()
    first.recall("step", (0, np.arange(3.0)), lambda: {"x": 1})
    first.recall("step", (1,), lambda: {"x": 2})
    again = Journal(first.entries)
    compute, made = counted(7)
    assert again.recall("step", question, compute)["x"] == 7 and made
    assert len(again.entries) == 1


def test_questions_with_other_parts_are_other_questions():
    questions = [(1, 23), (12, 3), (123,), ("1", 23), (np.ones(2), 1), (np.ones(2), 1, "")]
    assert len({_journal.digest(question) for question in questions}) == len(questions)


def test_another_name_is_another_question():
    again = Journal([Entry("train", DONE, _journal.digest(()), {"x": 1})])
    compute, made = counted(2)
    assert again.recall("weigh", (), compute)["x"] == 2 and made


def test_later_changes_of_an_answer_do_not_reach_the_journal():
    journal, x = Journal(), np.zeros(3)
    journal.recall("step", (), lambda: {"x": x})
    x += 1
    assert journal.entries[0].answers["x"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "kinds, kept",
    [
        ([ROUND], 0),
        ([ROUND, ROUND], 1),
        ([ROUND, PART, ROUND, PART], 2),
        ([ROUND, DONE], 2),
        ([ROUND, DONE, PART], 3),
        ([DONE, ROUND, PART, PART], 1),
        ([], 0),
    ],
)
def test_the_last_round_is_made_again(kinds, kept):
    assert len(Journal([Entry("step", kind, "", {}) for kind in kinds]).entries) == kept


def test_the_state_of_a_loop_replaces_the_one_before(monkeypatch):
    monkeypatch.setattr(_journal, "SAVE_SECONDS", 0.0)
    journal = Journal()
    for loop in range(2):
        assert journal.state("loop") is None
        for i in range(3):
            journal.keep("loop", lambda i=i, loop=loop: {"at": (loop, i)})
    assert [entry.answers["at"] for entry in journal.entries] == [[0, 2], [1, 2]]
    again = Journal(journal.entries)
    assert again.state("loop")["at"] == [0, 2]
    again.keep("loop", lambda: {"at": (0, 3)})
    assert [entry.answers["at"] for entry in again.entries] == [[0, 3]]


def test_states_are_made_only_when_it_is_time_to_save():
    journal = Journal()
    journal.state("loop")
    journal.keep("loop", lambda: pytest.fail("too early"))


def test_a_save_that_takes_long_is_not_repeated_soon(monkeypatch):
    monkeypatch.setattr(_journal, "SAVE_SECONDS", 0.0)
    saved = []
    journal = Journal(save=lambda entries: saved.append(len(entries)))
    journal.recall("step", (0,), lambda: {})
    journal.saving_took = 1e6
    journal.recall("step", (1,), lambda: {})
    assert saved == [1]


# -- files ----------------------------------------------------------------------------------------

ANSWERS = {
    "floats": np.array([0.1, np.nan, -np.inf, 5e-324]),
    "order": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "turned": np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0),
    "ints": np.arange(4),
    "bools": np.array([True, False]),
    "single": np.ones(2, dtype=np.float32),
    "empty": np.empty((0, 3)),
    "scalars": [1, 0.1, float("inf"), float("nan"), None, True, "text", 2**100],
    "nested": [{"objective": np.float64(0.3), "active": 2}, [np.zeros(2)]],
}


def test_a_file_gives_back_every_bit_and_layout(tmp_path):
    path = tmp_path / "fit.checkpoint"
    known = fingerprint({"X": np.ones(3)})
    _checkpoint._CheckpointWriter(path, known)([Entry("step", ROUND, "asked", ANSWERS)])
    (entry,) = read_entries(path, known)
    assert (entry.name, entry.kind, entry.asked) == ("step", ROUND, "asked")
    for name, value in ANSWERS.items():
        found = entry.answers[name]
        if isinstance(value, np.ndarray):
            assert found.dtype == value.dtype and found.tobytes() == value.tobytes()
            assert found.strides == value.strides or not value.size
    assert repr(entry.answers["scalars"]) == repr(ANSWERS["scalars"])
    assert entry.answers["nested"][0] == {"objective": 0.3, "active": 2}


def test_no_file_is_left_when_all_went_well(tmp_path, monkeypatch):
    monkeypatch.setattr(_journal, "SAVE_SECONDS", 0.0)
    path = tmp_path / "fit.checkpoint"
    with journal_in(path, {"X": 1}) as journal:
        journal.recall("step", (), lambda: {"x": 1})
        assert path.exists()
    assert list(tmp_path.iterdir()) == []


def test_an_exception_saves_what_was_done(tmp_path):
    path = tmp_path / "fit.checkpoint"
    with pytest.raises(KeyboardInterrupt), journal_in(path, {"X": 1}) as journal:
        journal.recall("step", (), lambda: {"x": 1})
        raise KeyboardInterrupt
    with journal_in(path, {"X": 1}) as journal:
        assert journal.recall("step", (), lambda: pytest.fail("known"))["x"] == 1


def test_a_moment_of_work_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "MIN_SECONDS_TO_KEEP", 60.0)
    with pytest.raises(KeyboardInterrupt), journal_in(tmp_path / "a", {"X": 1}) as journal:
        journal.recall("step", (), lambda: {"x": 1})
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def write(path, parts):
    with pytest.raises(KeyboardInterrupt), journal_in(path, parts) as journal:
        journal.recall("step", (), lambda: {"x": np.arange(50.0)})
        raise KeyboardInterrupt


def test_another_problem_is_refused_with_the_names_of_what_differs(tmp_path):
    path = tmp_path / "fit.checkpoint"
    write(path, {"X": np.ones(3), "C": 1.0, "tol": 1e-3})
    before = path.read_bytes()
    with (
        pytest.raises(CheckpointError, match=r"another problem.* X, C\. Delete the file"),
        journal_in(path, {"X": np.zeros(3), "C": 2.0, "tol": 1e-3}),
    ):
        pass
    assert path.read_bytes() == before


def test_another_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "fit.checkpoint"
    monkeypatch.setattr(_checkpoint, "__version__", "0.0.1")
    write(path, {"X": 1})
    monkeypatch.undo()
    with (
        pytest.raises(CheckpointError, match=r"written by multikernel 0\.0\.1"),
        journal_in(path, {"X": 1}),
    ):
        pass


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "fit.checkpoint"
    write(path, {"X": 1})
    data = path.read_bytes()
    flips = [(i, data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :]) for i in range(0, len(data), 97)]
    cuts = [(i, data[:i]) for i in range(0, len(data), 211)]
    accepted = 0
    for _, damaged in flips + cuts:
        path.write_bytes(damaged)
        try:
            (entry,) = read_entries(path, fingerprint({"X": 1}))
        except CheckpointError as error:
            assert "damaged" in str(error) and "Delete the file" in str(error)
        else:  # a bit of the archive's own dates and flags
            accepted += 1
            assert entry.answers["x"].tolist() == list(range(50))
    assert accepted < len(flips) / 2


def test_a_checkpoint_is_no_model_and_a_model_no_checkpoint(tmp_path):
    path = tmp_path / "fit.checkpoint"
    write(path, {"X": 1})
    with pytest.raises(mk.files.ModelFileError, match="multikernel checkpoint"):
        mk.load(path)
    X = np.arange(20.0)[:, None]
    mk.save(mk.MultiKernelClassifier([mk.Linear()]).fit(X, X[:, 0] > 9), path)
    with pytest.raises(CheckpointError, match="not a checkpoint"), journal_in(path, {"X": 1}):
        pass


def test_a_file_holds_no_code(tmp_path):
    path = tmp_path / "fit.checkpoint"
    write(path, {"X": 1})
    with zipfile.ZipFile(path) as archive:
        schema = json.loads(archive.read("schema.json"))
    assert "pickle" not in json.dumps(schema).lower()


def test_a_folder_that_cannot_be_written_to_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint.os, "access", lambda *_: False)  # root may write anywhere
    with (
        pytest.raises(PermissionError, match="is not writable"),
        journal_in(tmp_path / "a", {}),
    ):
        pass
    with pytest.raises(FileNotFoundError), journal_in(tmp_path / "no" / "a", {}):
        pass
    with pytest.raises(IsADirectoryError), journal_in(tmp_path, {}):
        pass


def test_a_full_disk_is_said_once_and_work_goes_on(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_journal, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(_checkpoint, "write_archive", full)
    with (
        pytest.warns(UserWarning, match="No space left") as said,
        journal_in(tmp_path / "a", {}) as journal,
    ):
        for i in range(3):
            journal.recall("step", (i,), lambda: {})
    assert len(said) == 1


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(TypeError, match=r"kernels .* instead of lambdas"):
        fingerprint({"kernels": mk.Callable(lambda a, b: a @ b.T)})


def test_fingerprints_know_values_and_not_identities():
    one = fingerprint(
        {"kernels": mk.gaussians([0.1, 1.0]), "X": np.array(["a", "b"], dtype=object)}
    )
    two = fingerprint(
        {"kernels": mk.gaussians([0.1, 1.0]), "X": np.array(["a", "b"], dtype=object)}
    )
    assert one == two
    assert one != fingerprint({"kernels": mk.gaussians([0.1, 2.0]), "X": np.array(["a", "b"])})
