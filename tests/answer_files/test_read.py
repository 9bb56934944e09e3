import io
import re

import numpy as np
import pandas as pd
import pytest

from sdulearn.answers import read_answers
from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.errors import InputError
from sdulearn.report.results import findings_of_answers
from tests.reference import refuses

# Header, and the words for similar, dissimilar and unsure.
CODINGS = [
    ("id_a,id_b,label", "similar", "dissimilar", "unsure"), ("id_a,id_b,label", "1", "0", None),
    ("id_a,id_b,label", "1", "-1", None), ("id_a,id_b,label", "1.0", "-1.0", None),
    ("id_a,id_b,label", "True", "FALSE", None), ("id_a,id_b,label", "Same", "different", None),
    ("id_a,id_b,label", "must-link", "cannot_link", None), ("id_a,id_b,label", "Must Link", "cannot link", None),
    ("id_a,id_b,label", "match", "distinct", "unsure"), ("id_a,id_b,label", "accept", "reject", "ignore"),
    ("id_a,id_b,answer", "Yes", "no", "don't know"), ("links,rechts,Antwort", "gleich", "Verschieden", "weiß nicht"),
]  # fmt: skip


EMPTY = io.BytesIO()
pd.DataFrame({"id_a": ["a"], "id_b": ["b"]})[:0].to_parquet(EMPTY)


def written(folder, text, name="pairs.csv"):
    path = folder / name
    text = text.getvalue() if isinstance(text, io.BytesIO) else text
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(("header", "similar", "dissimilar", "unsure"), CODINGS)
def test_every_coding(tmp_path, header, similar, dissimilar, unsure):
    rows = [("a", "b", similar), ("a", "c", dissimilar), ("b", "c", dissimilar)] + [("c", "d", unsure)] * bool(unsure)
    pairs = read_answers(written(tmp_path, "\n".join([header, *map(",".join, rows)])))
    assert pairs.answers.tolist() == [SIMILAR, DISSIMILAR, DISSIMILAR] + [UNSURE] * bool(unsure)
    assert (pairs.n_similar, pairs.n_dissimilar, pairs.n_unsure) == (1, 2, bool(unsure))
    assert not pairs.bad_rows
    # What was read is reported with counts: nothing is guessed in silence.
    assert "= similar (1)" in str(findings_of_answers(pairs)[1])
    assert "= dissimilar (2)" in str(findings_of_answers(pairs)[1])


@pytest.mark.parametrize(
    ("first", "second"),
    [("id1", "id2"), ("left", "right"), ("unique_id_l", "unique_id_r"), ("ltable_id", "rtable_id"), ("ID_A", "ID_B"),
     ("id a", "id-b"), ("Left ID", "Right ID")],
)  # fmt: skip
def test_the_usual_column_names(tmp_path, first, second):
    """Also as a spreadsheet writes them."""
    text = f"note,{first},is_match,{second}\nx,ä,1,b\n"
    spreadsheet = "\ufeff" + text.replace(",", ";").replace("\n", "\r\n")
    assert read_answers(written(tmp_path, spreadsheet)).ids.tolist() == [["ä", "b"]]
    pairs = read_answers(written(tmp_path, text))
    assert pairs.ids.tolist() == [["ä", "b"]]
    assert (pairs.columns["id_a"], pairs.columns["id_b"], pairs.columns["label"]) == (first, second, "is_match")


def test_columns_and_labels_as_told(tmp_path):
    path = written(tmp_path, "from,to,verdict\na,b,Yep\na,c,nope\n")
    with refuses(shows=["label=verdict"]):
        read_answers(path)
    columns = {"id_a": "from", "id_b": "to", "label": "verdict"}
    with refuses("words", error=ValueError, shows=["Line 2", "'yep'"]):
        read_answers(path, columns=columns)
    pairs = read_answers(path, columns=columns, words={"yep": "similar", "nope": "dissimilar"})
    assert pairs.answers.tolist() == [1, -1]
    # As text, by place or by role.
    for text in ("from, to,verdict", "label=verdict,id_a=from,id_b=to"):
        assert read_answers(path, columns=text, words="yep=similar, nope=0.1").answers.tolist() == [1, -1]
    for wrong in ({"columns": "from,to"}, {"columns": "from,to,"}, {"words": "yep"}, {"words": "=similar"}):
        with pytest.raises(InputError):
            read_answers(path, **{"columns": columns, "words": "yep=similar,nope=0.1", **wrong})
    with refuses(error=ValueError, shows=["'x'", "id_a"]):
        read_answers(path, columns={**columns, "id_a": "x"})
    with refuses(error=ValueError, shows=["'perhaps'"]):
        read_answers(path, columns=columns, words={"yep": "perhaps"})


@pytest.mark.parametrize(
    ("labels", "advice", "words", "expected"),
    [
        ((1, 0, -1), "'0=unsure'", {"0": "unsure"}, [1, 0, -1]),
        ((1, 2, 1), "'>=2=similar,", {">=2": "similar", "1": "0"}, [-1, 1, -1]),
        ((5, 3, 1), "'>=5=similar,3=unsure,<=1=dis", {">3": "similar", "<=3": "0.2"}, [1, -1, -1]),
        ((5, 5, 5), "5 (3 times)", {">4": "similar"}, [1, 1, 1]),
    ],
)
def test_numbers_that_are_never_guessed(tmp_path, labels, advice, words, expected):
    path = written(tmp_path, "id_a,id_b,label\na,b,{}\na,c,{}\nb,c,{}\n".format(*labels))
    with pytest.raises(InputError, match=re.escape(advice)):
        read_answers(path)
    assert read_answers(path, words=words).answers.tolist() == expected


def test_bad_rows_come_with_line_numbers(tmp_path):
    lines = [
        "id_a,id_b,label,weight,annotator", "a,b,similar,2,ann", "a,,similar,1,ann", "", "a,c,perhaps,1,bob", "a,d",
        '"two\nlines",d,dissimilar,,bob', "a,e,similar,-1,ann", "a,e,similar,nan,ann", "a,f,unsure,1,", "a,g,1.5,1,ann",
    ]  # fmt: skip
    pairs = read_answers(written(tmp_path, "\n".join(lines)))
    assert [row.line for row in pairs.bad_rows] == [3, 5, 6, 9, 10, 12]
    assert pairs.lines.tolist() == [2, 8, 11]
    assert pairs.weights.tolist() == [2, 1, 1]
    assert pairs.annotators.tolist() == ["ann", "bob", ""]
    assert pairs.ids[1, 0] == "two\nlines"


@pytest.mark.parametrize("name", ["csv", "tsv", "jsonl", "parquet", "xlsx", "csv.gz", "tsv.gz", "jsonl.gz", "folder"])
def test_all_formats_read_the_same(tmp_path, name):
    rows = [(1, 4, True, 1.0, "x", 6.2), (2, 5, False, 0.5, "y", None), (3, 6, True, 2.0, "z", 1)]
    frame = pd.DataFrame(rows, columns=["id1", "id2", "label", "weight", "worker", "seconds"])
    path = tmp_path / f"pairs.{name}"
    if name == "folder":
        path.mkdir()
        frame[:1].to_parquet(path / "1.parquet")
        frame[1:].to_parquet(path / "2.parquet")
    elif name in ("parquet", "xlsx"):
        (frame.to_parquet if name == "parquet" else frame.to_excel)(path, index=False)
    elif name.startswith("jsonl"):
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="," if name.startswith("csv") else "\t")
    pairs = read_answers(path)
    assert pairs.ids.tolist() == [["1", "4"], ["2", "5"], ["3", "6"]]
    assert pairs.answers.tolist() == [1, -1, 1]
    assert pairs.weights.tolist() == [1, 0.5, 2]
    np.testing.assert_allclose(pairs.seconds, [6.2, np.nan, 1])
    assert (pairs.annotator_names, pairs.annotator_numbers.tolist()) == (("x", "y", "z"), [1, 2, 3])


@pytest.mark.parametrize(
    ("text", "name"),
    [("", "p.csv"), ("\n\n", "p.jsonl"), (",,\n", "p.csv"), ("id_a,id_b,label,label\na,b,1,0\n", "p.csv"),
     ("a,b,1\n", "p.csv"), (b"id_a,id_b,label\n\xff\xfe,b,1\n", "p.csv"), (b"\x1f\x8b\x08\x00broken", "p.csv.gz"),
     ("id_a,id_b,label\na,b,1\n", "p.sav"), ("x", "p.xlsx"), (EMPTY, "p.parquet"), (b"not parquet", "p.parquet"),
     ('id_a,id_b,label\n"' + "x" * 200_000 + "\n", "p.csv")],
)  # fmt: skip
def test_files_that_are_no_pair_files(tmp_path, text, name):
    with pytest.raises(InputError, match=re.escape(name)):
        read_answers(written(tmp_path, text, name))


SECONDS = {"6.2": 6.2, "6,2": 6.2, "5e-1": 0.5, "": None, "n/a": None, "-3": None, "soon": None, "inf": None}


@pytest.mark.parametrize(
    ("column", "unit"),
    [("seconds", 1), ("Duration", 1), ("response time", 1), ("Response Time (s)", 1), ("lead_time", 1),
     ("duration_ms", 1000), ("Response Time (ms)", 1000)],
)  # fmt: skip
def test_how_long_an_answer_took(tmp_path, column, unit):
    rows = [f'a,b,1,"{text}"' for text in SECONDS]
    answers = read_answers(written(tmp_path, "\n".join([f"id_a,id_b,label,{column}", *rows])))
    expected = [np.nan if took is None else took / unit for took in SECONDS.values()]
    np.testing.assert_allclose(answers.seconds, expected)
    assert answers.columns["seconds"] == column
    assert not answers.bad_rows


@pytest.mark.parametrize(
    ("header", "cells", "answers", "certainty"),
    [
        ("p_same", ["0.9", "0.2", "0.5", "1"], [1, -1, 0, 1], [0.9, 0.8, 0.5, 1]),
        ("label,confidence", ["same,0.8", "different,1", "same,unsure", "same,"], [1, -1, 0, 1], [0.8, 1, 0.5, 1]),
        ("label", ["definitely same", "Probably different", "unsure", "rather_not_same"], [1, -1, 0, -1],
         [0.95, 0.75, 0.5, 0.75]),
    ],
)  # fmt: skip
def test_answers_with_a_certainty(tmp_path, header, cells, answers, certainty):
    found = read_answers(
        written(tmp_path, "\n".join([f"id_a,id_b,{header}", *(f"a{k},b,{c}" for k, c in enumerate(cells))]))
    )
    assert found.bad_rows == ()
    assert found.answers.tolist() == answers
    np.testing.assert_allclose(found.certainty, certainty)


def test_what_is_no_certainty(tmp_path):
    rows = ["a,b,same,0.3", "a,c,same,4", "a,d,same,high", "a,e,different,0.9"]
    found = read_answers(written(tmp_path, "\n".join(["id_a,id_b,label,confidence", *rows])))
    assert [row.line for row in found.bad_rows] == [2, 3, 4]
    assert found.bad_rows[0].reason == "confidence '0.3' is not a probability from 0.5 to 1 that the answer is right"
    path = written(tmp_path, "id_a,id_b,label\na,b,5\na,c,4\na,d,0.25\n")
    found = read_answers(path, words={"5": "0.95", "4": "unsure"})
    assert (found.answers.tolist(), found.certainty.tolist()) == ([1, 0, -1], [0.95, 0.5, 0.75])
    assert found.words == {"5": (1, 1), "4": (0, 1), "below 0.5": (-1, 1)}
    with refuses(error=ValueError, shows=["'5'", "'often'"]):
        read_answers(path, words={"5": "often"})
    plain = read_answers(written(tmp_path, "id_a,id_b,label,confidence\na,b,same,1\na,c,different,\n"))
    assert plain.certainty is None


def test_a_scale_is_shown_whole_and_never_begins_with_similar(tmp_path):
    frame = pd.DataFrame({"question": [f"a{k}|b{k}" for k in range(5)], "worker": "ann", "answer": [1, 3, 4, 5, 7]})
    with refuses(shows=["1 (1 times)", "'>=5=similar,4=unsure,<=3=", "'1=0.05,"]):
        read_answers(frame)
    answers = read_answers(frame, words={"1": "0.05", "3": "0.3", "4": "unsure", "5": "0.75", "7": "0.95"})
    assert (answers.format, answers.answers.tolist()) == ("crowd", [-1, -1, 0, 1, 1])
    asked = pd.DataFrame({"id_a": ["a"], "id_b": ["b"], "verschieden": ["ja"]})
    roles = {"label": "verschieden"}
    with refuses("words", error=ValueError):
        read_answers(asked, columns=roles)
    for word in ("ja", "Ja"):
        assert read_answers(asked, columns=roles, words={word: "dissimilar"}).answers.tolist() == [-1]
    with refuses("words", error=ValueError, shows=["3"]):
        read_answers(frame, words={">2": "similar", "<=3": "dissimilar"})


def test_labels_that_are_ids_too_are_no_forced_choices():
    frame = pd.DataFrame({"id_a": [0, 1], "id_b": [1, 0], "label": [1, 0]})
    assert read_answers(frame).answers.tolist() == [1, -1]


@pytest.mark.parametrize("given", [{"words": "yes=similar,yes=dissimilar"}, {"columns": "id_a=a,id_b=b,id_a=c"}])
def test_a_word_or_a_column_cannot_have_two_meanings(given):
    frame = pd.DataFrame({"a": ["x"], "b": ["y"], "c": ["z"], "label": ["yes"]})
    with refuses(*given):
        read_answers(frame, **given)


def test_decimal_commas_are_read_wherever_a_number_may_be(tmp_path):
    """Weights, certainties, seconds and probabilities of a German spreadsheet are those of an English one."""
    frame = pd.DataFrame({"id_a": ["a", "b", "c"], "id_b": ["b", "c", "d"], "label": [0.9, 0.25, 0.625]})
    frame = frame.assign(weight=[0.5, 1.25, 2], certainty=[0.75, 0.9, 0.125 + 0.5], seconds=[1.5, 2.25, 12])
    english = read_answers(written(tmp_path, frame.to_csv(index=False), "e.csv"))
    german = read_answers(written(tmp_path, frame.to_csv(index=False, sep=";", decimal=","), "g.csv"))
    assert german.bad_rows == english.bad_rows == ()
    for name in ("answers", "weights", "certainty", "seconds"):
        np.testing.assert_array_equal(getattr(german, name), getattr(english, name))
    # It may be a thousand.
    thousand = read_answers(written(tmp_path, "id_a;id_b;label;weight\na;b;1;1,234\nb;c;0;2\n"))
    assert [row.line for row in thousand.bad_rows] == [2]


def test_a_file_of_one_object_has_one_row(tmp_path):
    whole = written(tmp_path, '{"id_a": "a", "id_b": "b", "label": "same"}', "whole.json")
    assert read_answers(whole).lines.tolist() == [1]


def test_a_row_with_more_cells_than_columns_is_reported(tmp_path):
    """A delimiter in an id has shifted the cells behind it; delimiters at the end have not."""
    answers = read_answers(written(tmp_path, "label,id_a,id_b\nsame,a,b,,\nsame,Smith, John,b\ndifferent,a,c\n"))
    assert [row.line for row in answers.bad_rows] == [3]
    assert answers.ids.tolist() == [["a", "b"], ["a", "c"]]


def test_an_object_with_a_key_twice_is_no_answer(tmp_path):
    """Nobody can tell which of the two is meant."""
    lines = '{"id_a": "a", "id_b": "b", "label": 1}\n{"id_a": "a", "id_a": "c", "id_b": "b", "label": 1}\n'
    assert [row.line for row in read_answers(written(tmp_path, lines, "x.jsonl")).bad_rows] == [2]


def test_steps_of_a_scale_from_zero_are_no_probabilities():
    frame = pd.DataFrame({"id_a": list("abc"), "id_b": list("bcd"), "label": [1, 0, 1], "certainty": [0, 1, 2]})
    with pytest.raises(InputError):
        read_answers(frame)


@pytest.mark.parametrize("name", ["Annotator", "Bearbeiter", "Wer", "Annotateur", "anotador", "Utente", "beoordelaar"])
def test_who_answered_has_usual_names_in_several_languages(name):
    frame = pd.DataFrame({"id_a": ["a", "b"], "id_b": ["c", "d"], "label": [1, 0], name: ["x", "y"]})
    answers = read_answers(frame)
    assert list(answers.annotator_names) == ["x", "y"]
    assert answers.unused_columns == {}


@pytest.mark.parametrize(
    ("cells", "people"),
    [
        (["ann", "bob", "cid"] * 4, True),
        ([7, 12] * 6, True),
        ([7.0, 12.0] * 6, True),
        ([f"text {k}" for k in range(12)], False),
        (["ann"] * 12, False),
        ([0.25, 0.5] * 6, False),
        (["yes", "no"] * 6, False),
        (["ann"] * 10 + ["bob"] * 2, False),
        (["ann", "bob"] + [None] * 10, False),
    ],
)
def test_columns_without_a_role_are_named_and_looked_at(cells, people):
    frame = pd.DataFrame({"id_a": [f"a{k}" for k in range(12)], "id_b": "b", "label": [1, 0] * 6})
    assert read_answers(frame).unused_columns == {}
    assert read_answers(frame.assign(other=cells, empty="")).unused_columns == {"other": people}
    assert read_answers(frame.assign(other=cells), columns="annotator=other").unused_columns == {}
    groups = pd.DataFrame({"items": ["a;b;c"] * 12, "groups": ["a;b|c"] * 12, "other": cells})
    assert read_answers(groups).unused_columns == {"other": people}


def test_titles_of_items_are_not_people():
    items = [f"i{k}" for k in range(4)]
    pairs = [(a, b) for a in items for b in items if a != b]
    frame = pd.DataFrame(pairs, columns=["id_a", "id_b"]).assign(label=[1, 0] * 6, whose=["x", "y", "z"] * 4)
    frame = frame.assign(title_a="title of " + frame["id_a"], title_b="title of " + frame["id_b"])
    assert read_answers(frame).unused_columns == {"whose": True, "title_a": False, "title_b": False}
