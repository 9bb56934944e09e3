"""The log of ``sdulearn ask`` as a file of answers."""

import json

import pytest

from sdulearn.answers import read_answers


def line(number, left, right, answer="same"):
    return {"event": "answer", "number": number, "left": left, "right": right, "answer": answer, "session": "s"}


def read(folder, *records):
    path = folder / "x.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return read_answers(path)


def test_a_copy_of_a_line_counts_once_and_another_answer_of_its_number_is_told(tmp_path):
    answers = read(tmp_path, line(1, "a", "b"), line(1, "a", "b"), line(1, "c", "d"), line(2, "c", "d", ["same"]))
    assert answers.ids.tolist() == [["a", "b"]]
    assert [(row.line, row.reason) for row in answers.bad_rows] == [
        (3, "answer 1 of its session is about other rows in line 1"),
        (4, "answer ['same'] is not same, different or unsure"),
    ]


def test_lines_of_no_log_are_unreadable_and_not_a_reason_to_read_it_as_a_table(tmp_path):
    """As a table, the answer that was taken back would count."""
    undo = {"event": "undo", "number": 1, "session": "s"}
    answers = read(tmp_path, line(1, "a", "b"), undo, {"id_a": "a", "id_b": "c", "label": 1}, line(2, "a", "d"))
    assert answers.format == "answer_log"
    assert answers.ids.tolist() == [["a", "d"]]
    assert [row.line for row in answers.bad_rows] == [3]


def test_a_log_of_which_nothing_can_be_read_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no line of this log can be read\. Line 1: left is empty"):
        read(tmp_path, line(1, "", "b"))
