"""Files of questions that are not plain pairs: groups, forced choices, scales, certainty; columns by their content."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from sdulearn import fit_table
from sdulearn.answers import classes_of_answers, read_answers
from sdulearn.errors import InputError
from sdulearn.findings import ForcedChoicesUnused
from tests.reference import refuses


def grouped(classes, sizes, n_questions, n_people, seed=0):
    """Items in groups by their classes, a tenth of the questions carelessly."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n_questions):
        items = rng.choice(len(classes), rng.choice(sizes), replace=False)
        said = classes[items] if rng.random() > 0.1 else rng.integers(0, 3, len(items))
        piles = [";".join(f"p{item}" for item in items[said == k]) for k in np.unique(said)]
        person = f"w{number % n_people}"
        rows.append((person, number, ";".join(f"p{item}" for item in items), "|".join(piles), 9.5))
    return pd.DataFrame(rows, columns=["annotator", "question", "items", "groups", "seconds"])


def test_groups_give_all_pairs_of_a_question_and_one_number(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text("annotator,question,items,groups,seconds\nw0,1,a;b;c,c;a|b,6.9\nw0,2,d;a,,3\nw1,1,c;d;e,e|d,7\n")
    found = read_answers(path)
    expected = [("a", "b", -1), ("a", "c", 1), ("b", "c", -1), ("d", "a", 0), ("d", "e", -1)]
    assert [(*ids, code) for ids, code in zip(found.ids.tolist(), found.answers.tolist(), strict=True)] == expected
    assert found.questions.tolist() == [0, 0, 0, 1, 2]
    assert (found.annotator_names, found.n_questions) == (("w0", "w1"), 3)
    assert found.seconds.tolist() == [6.9, 6.9, 6.9, 3, 7]
    assert found.lines.tolist() == [2, 2, 2, 3, 4]


@pytest.mark.parametrize(("items", "groups"), [("a", "a"), ("a;a", "a"), ("a;b", "a|a;b"), ("a;b", "a|c"), ("", "")])
def test_groups_that_cannot_be_read_come_with_their_line(items, groups):
    frame = pd.DataFrame({"items": ["a;b", items], "groups": ["a|b", groups]})
    found = read_answers(frame)
    assert ([row.line for row in found.bad_rows], found.answers.tolist()) == ([2], [-1])


def test_columns_of_groups_are_recognised_by_their_content_or_named():
    frame = grouped(np.arange(12) % 3, [3, 4], 30, 5)
    plain = read_answers(frame)
    other = frame.rename(columns={"items": "shown", "groups": "piles"})[["piles", "annotator", "seconds", "shown"]]
    assert read_answers(other).ids.tolist() == plain.ids.tolist()
    assert read_answers(other, columns={"items": "shown", "groups": "piles"}).answers.tolist() == plain.answers.tolist()
    with pytest.raises(InputError):
        read_answers(other.drop(columns="piles"))
    with pytest.raises(InputError):
        read_answers(frame, words={"same": "similar"})
    lists = [{"items": ["a", "b"], "groups": [["a", "b"]]}, {"items": ["b", "c"], "groups": [["b"], ["c"]]}]
    assert read_answers(pd.DataFrame(lists)).answers.tolist() == [1, -1]


def test_groups_of_a_file_are_checked_fitted_and_give_classes(tmp_path, capsys):
    from sdulearn.cli.main import main

    classes = np.arange(36) % 3
    path = tmp_path / "groups.csv"
    grouped(classes, [3, 4, 5], 240, 12).to_csv(path, index=False)
    answers = read_answers(path)
    columns, model = classes_of_answers(answers)
    names = {name: int(name[1:]) % 3 for name in columns["id"]}
    table = pd.crosstab(columns["class"], [names[name] for name in columns["id"]])
    assert table.shape == (3, 3)
    assert (table.max(axis=1) == 12).all()
    same = [(int(a[1:]) - int(b[1:])) % 3 == 0 for a, b in answers.ids]
    assert model.error_rate.value == pytest.approx(np.mean(same != (answers.answers > 0)), abs=0.01)
    assert main(["check", str(path), "--json"]) == 1
    codes = {finding["code"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert codes["crowd"]["numbers"]["n_classes"] == 3
    assert codes["answers_read"]["numbers"]["n_questions"] == 240
    rng = np.random.default_rng(1)
    points = pd.DataFrame(
        {"id": [f"p{k}" for k in range(36)], "x": classes + rng.normal(0, 0.1, 36), "y": classes == 1}
    )
    fitted = fit_table(points, path)
    assert len(fitted.classes) == 3
    assert fitted.report.n_questions == 240


@pytest.mark.parametrize("name", ["chosen", "answer", "label"])
@pytest.mark.parametrize("picks", [("first", "second"), ("FIRST", "Second"), ("a1", "b2"), ("0", "1"), ("1", "2")])
def test_forced_choices_are_no_answers_about_pairs(name, picks):
    frame = pd.DataFrame({"x": ["x1", "x2"], "first": ["a1", "a2"], "second": ["b1", "b2"], name: picks})
    found = read_answers(frame)
    assert found.nearer.tolist() == [["x1", "a1", "b1"], ["x2", "b2", "a2"]]
    assert len(found.answers) == len(found.ids) == 0
    # No words make pairs of them.
    with pytest.raises(InputError):
        read_answers(frame, words={"first": "similar", "second": "dissimilar"})
    points = pd.DataFrame({"id": ["x1", "x2", "a1", "a2", "b1", "b2"], "height": [1.0, 2, 3, 4, 5, 6]})
    for learn in (classes_of_answers, lambda answers: fit_table(points, answers)):
        with refuses(shows=["pairs"]):
            learn(found)


def test_forced_choices_with_unusual_columns_and_words():
    frame = pd.DataFrame(
        {"new": ["x", "y"], "l": ["a", "b"], "r": ["b", "c"], "nearer": ["L!", "R!"], "by": ["u", "v"]}
    )
    roles = {"x": "new", "first": "l", "second": "r", "chosen": "nearer"}
    words = {"L!": "first", "R!": "second"}
    assert read_answers(frame, columns=roles, words=words).nearer.tolist() == [["x", "a", "b"], ["y", "c", "b"]]
    by_side = frame.assign(nearer=["l", "r"])
    found = read_answers(by_side, table_ids=["x", "y", "a", "b", "c"])
    assert found.nearer.tolist() == [["x", "a", "b"], ["y", "c", "b"]]
    # Which row the others are compared with is asked for.
    with pytest.raises(InputError):
        read_answers(frame.rename(columns={"l": "left", "r": "right"}).assign(nearer=["left", "right"]))
    one = pd.DataFrame({"x": ["x"], "first": ["a"], "second": ["b"], "chosen": ["1"]})
    with pytest.raises(InputError):
        read_answers(one)
    assert read_answers(one, words={"1": "second"}).nearer.tolist() == [["x", "b", "a"]]


def test_choices_with_neither_among_the_answers_are_match_questions():
    frame = pd.DataFrame(
        {"x": list("xyz"), "first": list("aab"), "second": list("bcc"), "chosen": ["first", "none", "?"]}
    )
    found = read_answers(frame, words={"?": "unsure"})
    assert found.ids.tolist() == [["x", "a"], ["x", "b"], ["y", "a"], ["y", "c"], ["z", "b"]]
    assert (found.answers.tolist(), found.questions.tolist()) == ([1, -1, -1, -1, 0], [0, 0, 1, 1, 2])
    assert found.nearer is None


def test_forced_choices_beside_pairs_are_counted():
    from dataclasses import replace

    from sdulearn.diagnostics import check_source

    pairs = read_answers(pd.DataFrame({"id_a": list("aab"), "id_b": list("bcc"), "label": [1, 0, 0]}))
    both = replace(pairs, nearer=np.array([["a", "b", "c"]] * 7, dtype=object))
    assert ForcedChoicesUnused(count=7) in check_source(both)
    assert check_source(pairs) == []


def scale(n=400, seed=0):
    """Steps 1 to 4 of two people; the second calls nothing but 4 similar."""
    rng = np.random.default_rng(seed)
    same = rng.random(n) < 0.5
    person = rng.integers(0, 2, n)
    label = np.where(same, np.where(person, 4, rng.choice([3, 4], n)), np.where(person, rng.choice([2, 3], n), 1))
    ends = [f"p{k}" for k in range(2 * n)]
    columns = {"identifier1": ends[::2], "identifier2": ends[1::2], "judgment": label}
    return pd.DataFrame({**columns, "annotator": np.array(["ann", "bob"])[person]}), same


def test_a_scale_with_a_threshold_per_person_on_request():
    frame, same = scale()
    with pytest.raises(InputError):
        read_answers(frame)
    found = read_answers(frame, words="per person")
    np.testing.assert_array_equal(found.answers, np.where(same, 1, -1))
    assert {"ann: >=3", "bob: >=4"} <= found.words.keys() or {"ann: >=2", "bob: >=4"} <= found.words.keys()
    # One threshold for both is wrong about a quarter.
    assert np.mean(read_answers(frame, words={">=3": "similar", "<=2": "dissimilar"}).answers == found.answers) < 0.9
    with_zero = pd.concat([frame, frame[:5].assign(judgment=0)])
    with pytest.raises(InputError):
        read_answers(with_zero, words="per person")
    found = read_answers(with_zero, words={"0": "unsure", "1-4": "per person"})
    assert (found.n_unsure, found.n_similar) == (5, same.sum())
    for bad in ({"1-2": "per person", "3-4": "per person"}, {"few": "per person"}):
        with pytest.raises(InputError):
            read_answers(frame, words=bad)
    with pytest.raises(InputError):
        read_answers(frame.drop(columns="annotator"), words="per person")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [(["1", "2", "3", ""], [0.6, 0.75, 0.9, 1]), (["guess", "probably", "sure", ""], [0.6, 0.75, 0.95, 1])],
)
def test_certainty_in_steps_and_words(cells, expected):
    frame = pd.DataFrame({"id_a": list("abcd"), "id_b": list("bcde"), "label": [1, 0, 1, 0], "certainty": cells})
    found = read_answers(frame)
    np.testing.assert_allclose(found.certainty, expected)
    assert not found.bad_rows
    groups = pd.DataFrame(
        {"items": ["a;b", "b;c", "c;d", "d;e"], "groups": ["a;b", "b|c", "c;d", "d|e"], "certainty": cells}
    )
    np.testing.assert_allclose(read_answers(groups).certainty, expected)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::3])
def test_columns_are_found_by_the_ids_of_the_table(order):
    """Unusual names in any order; a note with words for answers and a third column with some ids change nothing."""
    rng = np.random.default_rng(0)
    ids = [f"0{k}" for k in range(100, 140)]
    ends = np.array([rng.choice(ids, 2, replace=False) for _ in range(30)])
    said = np.where(rng.random(30) < 0.5, "gleich", "verschieden")
    note = np.where(rng.random(30) < 0.3, ids[3], "Text")
    columns = [("wer", ends[:, 0]), ("wen", ends[:, 1]), ("Meinung", said), ("Notiz", note)]
    frame = pd.DataFrame(dict([columns[k] for k in order]))
    frame["geprüft"] = np.where(rng.random(30) < 0.5, "ja", "nein")
    found = read_answers(frame, table_ids=ids)
    assert sorted(map(sorted, found.ids.tolist())) == sorted(map(sorted, ends.tolist()))
    assert found.columns["label"] == "Meinung"
    with pytest.raises(InputError):
        read_answers(frame)


def test_three_columns_of_ids_are_asked_about_unless_their_names_tell():
    ids = list("abcdefgh")
    frame = pd.DataFrame({"one": list("abcd"), "other": list("bcde"), "third": list("cdef"), "Meinung": ["gleich"] * 4})
    with pytest.raises(InputError):
        read_answers(frame, table_ids=ids)
    named = frame.rename(columns={"one": "left", "third": "right"})
    assert read_answers(named, table_ids=ids).columns["id_b"] == "right"


def test_ids_of_a_table_tell_a_misleading_name_from_the_ends(tmp_path, capsys):
    """By every command that has a table: left and right are the sides of a screen, and the ids are elsewhere."""
    from sdulearn.cli.main import main

    rng = np.random.default_rng(0)
    classes = np.arange(60) % 2
    table = pd.DataFrame(
        {"Nr": [f"k{k}" for k in range(60)], "x": classes + rng.normal(0, 0.2, 60), "y": rng.normal(size=60)}
    )
    ends = np.array([rng.choice(60, 2, replace=False) for _ in range(80)])
    said = np.where(classes[ends[:, 0]] == classes[ends[:, 1]], "gleich", "verschieden")
    shown = table["Nr"].to_numpy()[ends]
    answers = pd.DataFrame(
        {"left": "oben", "right": "unten", "wen": shown[:, 0], "Meinung": said, "mit wem": shown[:, 1]}
    )
    table.to_csv(tmp_path / "t.csv", index=False, sep=";")
    answers.to_csv(tmp_path / "a.csv", index=False, sep=";")
    model = fit_table(tmp_path / "t.csv", tmp_path / "a.csv")
    assert (model.report.answer_columns["id_a"], model.report.answer_columns["id_b"]) == ("wen", "mit wem")
    assert model.report.accuracy.value > 0.9
    assert main(["check", str(tmp_path / "a.csv"), "--table", str(tmp_path / "t.csv")]) == 0
    assert "'mit wem'" in capsys.readouterr().out
