"""How many classes the answers of a crowd show, where there may be many."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from sdulearn.answers import AnswerGraph, classes_of_answers, read_answers
from sdulearn.answers.checks import count_classes
from sdulearn.answers.clusters import group_points


def asked(classes, n_answers, error, seed, n_people=15):
    """Half of the questions are about two points of one class, as an asker chooses them."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, len(classes), (2, 2 * n_answers))
    chosen = rng.random(2 * n_answers) < 0.5
    second[chosen] = [rng.choice(np.flatnonzero(classes == classes[k])) for k in first[chosen]]
    kept = np.flatnonzero(first != second)[:n_answers]
    ends = np.column_stack([first, second])[kept]
    who = rng.integers(0, n_people, len(ends))
    rates = rng.beta(2, 2 / error - 2, n_people)
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) ^ (rng.random(len(ends)) < rates[who])
    return ends, same, who


@pytest.mark.parametrize(("n_classes", "size"), [(40, 8), (150, 6)])
def test_many_classes_are_counted_and_found(n_classes, size):
    classes = np.repeat(np.arange(n_classes), size)
    ends, same, who = asked(classes, 7 * len(classes), 0.08, 0)
    graph = AnswerGraph.from_answers(ends, same, annotators=who + 1)
    number = count_classes(graph)
    assert number.low <= n_classes <= number.high
    assert abs(number.value - n_classes) <= 0.25 * n_classes
    assert not number.are_entities
    frame = pd.DataFrame({"id_a": ends[:, 0], "id_b": ends[:, 1], "label": same.astype(int), "annotator": who})
    columns, model = classes_of_answers(read_answers(frame), number.value)
    known = columns["class"] != ""
    assert known.mean() > 0.7
    assert adjusted_rand_score(classes[columns["id"][known].astype(int)], columns["class"][known]) > 0.8
    wrong = np.mean(same != (classes[ends[:, 0]] == classes[ends[:, 1]]))
    assert model.error_rate.value == pytest.approx(wrong, abs=0.04)


def test_classes_of_two_are_entities():
    classes = np.repeat(np.arange(400), 2)
    ends, same, who = asked(classes, 3200, 0.08, 1)
    number = count_classes(AnswerGraph.from_answers(ends, same, annotators=who + 1))
    assert number.are_entities
    assert number.low <= 400 <= number.high


def test_groups_do_not_depend_on_the_order_of_the_answers_nor_on_the_numbers_of_the_points():
    classes = np.repeat(np.arange(12), 7)
    ends, same, _ = asked(classes, 900, 0.05, 2)
    weights = np.ones(len(ends))
    group, odds = group_points(ends, same, weights, len(classes))
    assert adjusted_rand_score(classes, group) > 0.9
    assert (odds[same] > 0).all()
    assert (odds[~same] < 0).all()
    rng = np.random.default_rng(0)
    names, order = rng.permutation(len(classes)), rng.permutation(len(ends))
    other, _ = group_points(names[ends[order]][:, ::-1], same[order], weights, len(classes))
    assert adjusted_rand_score(group, other[names]) > 0.9
