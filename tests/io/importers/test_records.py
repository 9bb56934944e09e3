"""Answers that hold whole records: the rows of the table that they are."""

import json

import pandas as pd
import pytest

from sdulearn.answers import read_answers

ROWS = pd.DataFrame({"name": ["Ann Lee", "Bob", "Cid", "Cid"], "age": [7, 8, 9, 9], "extra": [1.5, 2.5, 3.5, 4.5]})


def training(folder, *pairs):
    path = folder / "training.json"
    path.write_text(json.dumps({"match": [list(pair) for pair in pairs], "distinct": []}))
    return path


ANN = {"name": " ann  lee", "age": "7"}
BOB = {"name": "bob", "age": 8.0}
CID = {"name": "Cid", "age": 9}


def test_records_are_looked_up_by_the_fields_that_both_have(tmp_path):
    path = training(tmp_path, (ANN, BOB))
    assert read_answers(path, table=ROWS).ids.tolist() == [["0", "1"]]
    named = ROWS.assign(key=list("wxyz"))
    assert read_answers(path, table=named, id_column="key").ids.tolist() == [["w", "x"]]
    assert read_answers(path, table=ROWS.assign(id=list("wxyz"))).ids.tolist() == [["w", "x"]]


def test_row_numbers_count_the_rows_that_the_table_s_reader_counts(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("name,age\n,\n\nann lee,7\nbob,8\n")
    assert read_answers(training(tmp_path, (ANN, BOB)), table=table).ids.tolist() == [["1", "2"]]


def test_a_record_of_several_rows_or_none_is_left_out(tmp_path):
    answers = read_answers(training(tmp_path, (ANN, BOB), (ANN, CID), (BOB, {"name": "Dan", "age": 3})), table=ROWS)
    assert answers.ids.tolist() == [["0", "1"]]
    assert [(row.line, row.reason) for row in answers.bad_rows] == [
        (2, "not one row of the table has its fields"),
        (3, "not one row of the table has its fields"),
    ]


def test_ids_in_the_records_need_no_table(tmp_path):
    path = training(tmp_path, ({**ANN, "id": 5}, {**BOB, "id": 6}))
    assert read_answers(path).ids.tolist() == [["5", "6"]]
    keyed = training(tmp_path, ({**ANN, "key": 5}, {**BOB, "key": 6}))
    assert read_answers(keyed, columns={"id_a": "key", "id_b": "key"}).ids.tolist() == [["5", "6"]]
    assert read_answers(keyed, id_column="key").ids.tolist() == [["5", "6"]]


@pytest.mark.parametrize(
    ("pair", "options", "message"),
    [
        ((ANN, BOB), {}, "holds whole records and no ids. Say with `table`"),
        ((ANN, BOB), {"columns": {"id_a": "key", "id_b": "key"}}, "not every record has the field 'key' for id_a"),
        ((ANN, BOB), {"table": ROWS.rename(columns=str.upper)}, "no field that the table has as a column"),
        ((ANN, BOB), {"table": ROWS.assign(customer_no=[1, 2, 3, 4])}, "say with `id_column` whether 'customer_no'"),
        ((ANN, BOB), {"table": ROWS, "id_column": "key"}, "the table has no column 'key'"),
        (({"name": "x"}, {"name": "y"}), {"table": ROWS}, "none of its records is found in the table by .* name"),
        (({}, {}), {"table": ROWS}, "no field that"),
    ],
)
def test_refusals_say_what_to_do(tmp_path, pair, options, message):
    with pytest.raises(ValueError, match=message):
        read_answers(training(tmp_path, pair), **options)


def test_the_same_pair_in_both_lists_is_unsure_once(tmp_path):
    """As dedupe marks "unsure"; a further match beside it stays a match."""
    path = tmp_path / "t.json"
    wrapped = {"__class__": "tuple", "__value__": [BOB, ANN]}
    path.write_text(json.dumps({"distinct": [wrapped], "match": [[ANN, BOB], [ANN, BOB], ["x", "y"]]}))
    answers = read_answers(path, table=ROWS)
    assert answers.answers.tolist() == [0, 1]
    assert [row.reason for row in answers.bad_rows] == ["not a pair of two records"]


def test_sets_and_tuples_within_records_are_unwrapped(tmp_path):
    tags = {"__class__": "frozenset", "__value__": ["b", "a"]}
    path = training(tmp_path, ({"name": "x", "tags": tags}, {"name": "y", "tags": {**tags, "__value__": ["a"]}}))
    table = pd.DataFrame({"name": ["x", "y"], "tags": ["a, b", "a"]})
    assert read_answers(path, table=table).ids.tolist() == [["0", "1"]]
