"""The store: one list of answers, in memory and in the log."""

import json

import pytest

from sdulearn.answer_files.log import parse_log, read_log
from sdulearn.answer_files.store import AnswerStore
from sdulearn.errors import FileError, InputError
from tests.made import store as put
from tests.reference import refuses


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.jsonl"


@pytest.mark.parametrize("left", ["", " a"])
def test_an_id_that_no_log_can_hold_is_refused_before_it_is_written(path, left):
    with AnswerStore(path) as store:
        with pytest.raises(InputError):
            put(store, left, ("b",), True)
        assert (path.read_bytes(), store.version, store.contents.answers) == (b"", 0, {})
        put(store, "a", ("b",), True)
    assert len(read_log(path).answers) == 1


def test_several_answers_are_changed_at_once_or_not_at_all(path):
    with AnswerStore(path) as store:
        first, second = (put(store, left, ("b", "c"), 0).key for left in ("a", "d"))
        before = path.read_bytes()
        for bad in ({first: 1, second: 2}, {first: 1, ("", 9): 0}):
            with pytest.raises(InputError):
                store.change(bad)
        assert (path.read_bytes(), store.version) == (before, 2)
        store.change({first: 1, second: "none"}, "ann")
        assert store.version == 3
        assert [answer.reply for answer in store.snapshot().answers] == [1, "none"]
    assert [answer.reply for answer in read_log(path).answers.values()] == [1, "none"]


def test_a_snapshot_stays_and_memory_is_like_a_file(path):
    with AnswerStore(path) as stored:
        for store in (stored, AnswerStore.in_memory()):
            put(store, "a", ("b",), True)
            before = store.snapshot()
            key = put(store, "c", ("b",), False).key
            store.undo(key)
            with pytest.raises(InputError):
                store.undo(key)
            assert store.snapshot().answers == before.answers
            assert (before.version, store.version) == (1, 3)
        path.unlink()
        with pytest.raises(FileError):
            put(stored, "e", ("f",), True)
        assert len(stored.snapshot().answers) == 1


def test_a_reading_that_cannot_be_read_is_not_taken_for_a_wrong_epsilon():
    """Without it the ids would be guessed; another session of the log may know it."""
    session = {"event": "session", "seed": 1, "reading": {"id_column": 7}, "session": "s"}
    answer = {"event": "answer", "number": 1, "left": "a", "right": "b", "answer": "same", "session": "s"}
    text = "\n".join(map(json.dumps, (session, answer)))
    contents = parse_log(text.encode())
    assert contents.epsilon(contents.answers.values()) is None
    assert [row.line for row in contents.bad_rows] == [1]
    with refuses(shows=["line 1"]):
        _ = contents.reading
    good = {**session, "reading": {"id_column": "nr"}, "session": "t"}
    assert parse_log(f"{text}\n{json.dumps(good)}".encode()).reading.id_column == "nr"
