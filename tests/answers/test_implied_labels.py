"""The labels that answers imply."""

from itertools import permutations, product

import numpy as np
import pytest

from sdulearn.answers.graph import AnswerGraph, with_implied_labels


def consistent(graph, n_classes):
    """All classes of the points that no answer and no label contradicts."""
    for classes in product(range(1, n_classes + 1), repeat=graph.n_points):
        point_class = np.array(classes)
        same = point_class[graph.ends[:, 0]] == point_class[graph.ends[:, 1]]
        known = graph.labels > 0
        if (same == (graph.same > 0)).all() and (point_class[known] == graph.labels[known]).all():
            yield point_class


@pytest.mark.parametrize("seed", range(12))
def test_implied_labels_are_all_that_is_consistent_up_to_names(seed):
    rng = np.random.default_rng(seed)
    truth = np.append([1, 2, 3], rng.integers(1, 4, 3))
    ends = np.array([(i, j) for i in range(6) for j in range(i) if j < 3 or rng.random() < 0.3])
    labels = np.where(np.arange(6) == 4, truth, 0) if seed % 2 else None
    graph = AnswerGraph.from_answers(ends, truth[ends[:, 0]] == truth[ends[:, 1]], labels=labels)
    labels = with_implied_labels(graph, 3).labels
    assert (labels > 0).all()
    turned = {tuple(np.array(names)[labels - 1]) for names in permutations((1, 2, 3))}
    possible = {tuple(classes.tolist()) for classes in consistent(graph, 3)}
    assert tuple(labels.tolist()) in possible
    assert possible <= turned


@pytest.mark.parametrize(
    ("further", "same", "labels", "implied"),
    [
        ([(3, 0)], [False], None, [1, 2, 3, 0, 0, 0]),  # point 3 is left open
        ([(2, 3), (2, 4), (1, 5)], [True] * 3, None, [3, 2, 1, 1, 1, 2]),  # by size
        ([(2, 3), (2, 4), (1, 5)], [True] * 3, [0, 0, 3, 0, 0, 0], [2, 1, 3, 3, 3, 1]),
        ([(0, 3), (3, 1)], [True] * 2, None, None),
        ([(3, 0), (3, 1), (3, 2)], [False] * 3, None, None),
        ([(0, 3)], [True], [1, 0, 0, 2, 0, 0], None),
        ([(2, 4)], [False], [0, 0, 0, 1, 2, 0], None),
    ],
    ids=["open", "by size", "labels keep their names", "contradiction", "four groups", "labels contradict", "outside"],
)
def test_what_three_different_points_and_further_answers_imply(further, same, labels, implied):
    ends = [(0, 1), (0, 2), (1, 2), *further]
    graph = AnswerGraph.from_answers(ends, [False, False, False, *same], labels=labels, n_points=6)
    named = with_implied_labels(graph, 3)
    assert named is graph if implied is None else named.labels.tolist() == implied
    # Too few groups for five classes.
    assert with_implied_labels(graph, 5) is graph


def test_labels_take_the_place_of_the_answers_that_imply_them():
    ends = [(0, 1), (0, 2), (1, 2), (3, 0), (4, 5), (6, 7), (4, 0)]
    graph = AnswerGraph.from_answers(ends, [False, False, False, True, True, True, False], n_points=9)
    named = with_implied_labels(graph, 3)
    assert named.ends.tolist() == [[4, 5], [6, 7], [4, 0]]
    assert named.labels.tolist() == [1, 2, 3, 1, 0, 0, 0, 0, 0]
