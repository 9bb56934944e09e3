"""A quote that is left open is an error at its own line; cells with line breaks and quotes in them are read."""

import csv

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdulearn import fit_table
from sdulearn.answers import read_answers
from sdulearn.tables.source import read_whole
from tests.reference import refuses

ANSWERS = [f"r{k},r{k + 1},{'same' if k % 2 else 'different'},ok" for k in range(40)]


def with_quote(lines, place, behind=None):
    """Lines with a quote at the beginning of their last cell; ``behind`` has a whole quoted one."""
    lines = list(lines)
    for k, cell in ((place, '"{}'), (behind, '"{}"')):
        if k is not None:
            rest, _, last = lines[k].rpartition(",")
            lines[k] = f"{rest},{cell.format(last)}"
    return "\n".join(lines) + "\n"


@pytest.fixture
def files(tmp_path):
    """The lines of a table, the table itself and a function that writes answers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(41, 2)).round(3)
    table = ["id,x,y,note", *(f"r{k},{x},{y},fine" for k, (x, y) in enumerate(X))]
    (tmp_path / "t.csv").write_text("\n".join(table) + "\n")

    def answers(text):
        (tmp_path / "a.csv").write_text(text)
        return tmp_path / "a.csv"

    return table, tmp_path / "t.csv", answers


@pytest.mark.parametrize("behind", [None, 30])
@pytest.mark.parametrize("place", [0, 1, 7, 40])
def test_a_quote_left_open_in_answers(files, place, behind):
    """In the header, the first or the last row; also where a quoted cell further down would seem to close it."""
    _, table, answers = files
    header = "id_a,id_b,label,comment"
    path = answers(with_quote([header, *ANSWERS], place, behind if place < 40 else None))
    for call in (lambda: read_answers(path), lambda: fit_table(table, path, skip_bad=True)):
        with refuses(shows=[f"a.csv, line {place + 1}:"]):
            call()


@pytest.mark.parametrize("behind", [None, 30])
@pytest.mark.parametrize("place", [0, 5, 41])
def test_a_quote_left_open_in_a_table(files, place, behind):
    """Without the error all rows below it were one text, and lost."""
    lines, table, answers = files
    path = answers("\n".join(["id_a,id_b,label,comment", *ANSWERS]))
    title = 'People of the "north"\n'
    table.write_text(title + with_quote(lines, place, behind if place < 30 else None))
    for options in ({}, {"drop": ["note"]}, {"skip_rows": 1}):
        with refuses(shows=[f"t.csv, line {place + 2}:"]):
            fit_table(table, path, **options)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(",;\t"), st.booleans())
def test_what_the_csv_module_writes_is_read(tmp_path_factory, data, delimiter, everything):
    """Any text as a comment: line breaks, delimiters, quotes."""
    texts = data.draw(st.lists(st.text(f'ab "\n\r{delimiter}', max_size=12), min_size=1, max_size=8))
    folder = tmp_path_factory.mktemp("csv")
    quoting = csv.QUOTE_ALL if everything else csv.QUOTE_MINIMAL
    for name, header, row in (("a", ["id_a", "id_b", "label"], ["p", "q", "same"]), ("t", ["id", "x"], ["p", "1"])):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter, quoting=quoting)
            writer.writerows([[*header, "comment"], *([*row, text] for text in texts)])
    answers = read_answers(folder / "a.csv")
    assert (len(answers.answers), answers.bad_rows) == (len(texts), ())
    assert read_whole(folder / "t.csv").num_rows == len(texts)


def test_quotes_that_are_text(tmp_path):
    """Within a cell, or in one cell of a line that goes on behind them: they cannot reach the next line."""
    rows = ['a,5" wide', 'b,"good" enough', 'c,"two ""quotes"" here"', 'd, "blank before"', "e,it's"]
    (tmp_path / "t.csv").write_text("\n".join(["id,note", *rows]))
    expected = ['5" wide', "good enough", 'two "quotes" here', ' "blank before"', "it's"]
    assert read_whole(tmp_path / "t.csv")["note"].to_pylist() == expected
    (tmp_path / "a.csv").write_text("\n".join(["id_a,id_b,label,note", *(f"p,{row[0]},1,{row[2:]}" for row in rows)]))
    assert len(read_answers(tmp_path / "a.csv").answers) == 5
    pd.DataFrame({"id": ["a", "b"], "note": ['say "hi"\n\nthen, go', "x"]}).to_csv(tmp_path / "u.csv", index=False)
    assert read_whole(tmp_path / "u.csv")["note"].to_pylist()[0] == 'say "hi"\n\nthen, go'
