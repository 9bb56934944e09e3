"""Classes by answers alone."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment

from sdulearn.answers import classes_of_answers, read_answers
from sdulearn.errors import InputError


def answers_of(ends, same, **more):
    ends = np.asarray(ends)
    return read_answers(pd.DataFrame({"id_a": ends[:, 0], "id_b": ends[:, 1], "label": np.asarray(same, int), **more}))


def drawn(n_points, n_classes, n_answers, error, seed):
    """Random questions about random points, answered by three people; the classes, and the answers."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_points)
    ends = rng.permuted(np.tile(np.arange(n_points), (n_answers, 1)), axis=1)[:, :2]
    same = (truth[ends[:, 0]] == truth[ends[:, 1]]) ^ (rng.random(n_answers) < error)
    return truth, answers_of(ends, same, annotator=rng.choice(["ann", "bob", "cem"], n_answers))


def share_right(columns, truth):
    """Of the ids that have a class, under the best naming of the classes."""
    known = columns["class"] != ""
    table = np.zeros((20, 20))
    np.add.at(table, (columns["class"][known].astype(int), truth[columns["id"][known].astype(int)]), 1)
    return table[linear_sum_assignment(-table)].sum() / known.sum()


@pytest.mark.parametrize(("n_points", "n_classes", "n_answers", "error"), [(50, 2, 250, 0.15), (30, 3, 180, 0.0)])
def test_classes_and_their_number_follow_from_many_answers(n_points, n_classes, n_answers, error):
    truth, answers = drawn(n_points, n_classes, n_answers, error, 1)
    columns, model = classes_of_answers(answers)
    assert list(columns) == ["id", "class", "part", "n_answers", *(f"probability_{k + 1}" for k in range(n_classes))]
    assert share_right(columns, truth) > 0.95
    assert np.mean(columns["class"] == "") < 0.1
    assert columns["n_answers"].sum() == 2 * n_answers
    assert model.error_rate.low <= error <= model.error_rate.high
    sizes = [np.sum(columns[f"probability_{k + 1}"]) for k in range(n_classes)]
    assert sizes == sorted(sizes, reverse=True)


def test_what_answers_leave_open_has_no_class():
    # Of three classes, c and d are not of the class of a, and nothing tells them apart; e was never compared.
    labels = ["same", "different", "different", "same", "unsure"]
    frame = {"id_a": list("aaace"), "id_b": list("bcdxa"), "label": labels}
    columns, model = classes_of_answers(read_answers(pd.DataFrame(frame)), 3)
    by_id = dict(zip(columns["id"], columns["class"], strict=True))
    assert by_id == {"a": "2", "b": "2", "c": "1", "x": "1", "d": "", "e": ""}
    # Next to nothing: an answer may be wrong.
    assert columns["probability_3"][3] == pytest.approx(0.5, abs=0.02)
    assert dict(zip(columns["id"], columns["n_answers"], strict=True))["e"] == 0
    assert not model.error_rate.identified


def test_classes_of_parts_that_no_answer_connects_are_others():
    columns, _ = classes_of_answers(answers_of([(0, 1), (2, 3), (1, 4), (3, 5), (4, 6)], [1, 0, 0, 1, 1]))
    rows = zip(columns["id"], columns["class"], columns["part"], strict=True)
    found = {int(name): (label, part) for name, label, part in rows}
    assert {k: found[k] for k in (0, 1, 4, 6)} == {k: (found[k][0], 1) for k in (0, 1, 4, 6)}
    assert found[0][0] == found[1][0] != found[4][0] == found[6][0]
    assert (found[3], found[5], found[2]) == (("1 of part 2", 2), ("1 of part 2", 2), ("2 of part 2", 2))


def test_answers_that_give_no_classes_are_refused():
    with pytest.raises(InputError, match="answers of one kind only: classes follow from answers of both kinds"):
        classes_of_answers(answers_of([(0, 1), (1, 2)], [1, 1]))
    with pytest.raises(InputError, match="has no answer 'similar' or 'dissimilar'"):
        classes_of_answers(read_answers(pd.DataFrame({"id_a": ["a"], "id_b": ["b"], "label": ["unsure"]})))
    clique = [(a, b) for a in range(4) for b in range(a)]
    with pytest.raises(InputError, match="`n_classes=3`: the answers are about 4 classes or more"):
        classes_of_answers(answers_of([*clique, (0, 4)], [0] * 6 + [1]), 3)
    assert set(classes_of_answers(answers_of([*clique, (0, 4)], [0] * 6 + [1]))[0]["class"]) == set("1234")


def test_contradictions_leave_as_many_classes_as_the_share_of_same_answers_suggests():
    clique = [(a, b) for a in range(4) for b in range(a)]
    odd = [(5, 6), (6, 7), (5, 7)]
    columns, _ = classes_of_answers(answers_of([*clique, *odd], [0] * 6 + [1, 1, 0]))
    assert sum(name.startswith("probability_") for name in columns) == 4
    columns, _ = classes_of_answers(answers_of([*odd, *((8, k) for k in range(9, 15))], [1, 1, 0] + [1] * 6))
    assert sum(name.startswith("probability_") for name in columns) == 2


def test_same_answers_count_for_the_number_of_classes():
    """a and b are the same; c differs from a, d from b, c from d: three classes, though "different" alone needs two."""
    columns, _ = classes_of_answers(answers_of([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], [1, 0, 0, 0]))
    assert sum(name.startswith("probability") for name in columns) == 3
