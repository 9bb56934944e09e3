"""Rows of all kinds as numbers (categories, gaps, texts), and the labels that answers imply."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sdulearn import PairBoostingClassifier, PairModelCV, stack_pairs
from sdulearn.answers.graph import AnswerGraph
from sdulearn.boosting.rows import encode, find_categories, implied_labels, with_labels
from sdulearn.errors import InputError
from sdulearn.pairs import read_pairs

VALUES = {"size": [1.5, None, 3.0], "kind": ["b", "a", None], "flag": [True, False, True]}


@pytest.mark.parametrize("frame", [pd.DataFrame(VALUES), pl.DataFrame(VALUES)], ids=["pandas", "polars"])
def test_frames(frame):
    categories = find_categories(frame, "from_dtype")
    assert categories == {1: ["a", "b"]}
    np.testing.assert_array_equal(encode(frame, categories), [[1.5, 1, 1], [np.nan, 0, 0], [3, np.nan, 1]])


def test_types_that_say_category():
    numbers = pd.DataFrame({"code": pd.Categorical([7, 3, 7]), "n": pd.array([1, None, 2], dtype="Int64")})
    categories = find_categories(numbers, "from_dtype")
    assert categories == {0: [3, 7]}
    np.testing.assert_array_equal(encode(numbers, categories), [[1, 1], [0, np.nan], [1, 2]])


def test_named_columns():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [5.0, 4.0]})
    assert find_categories(frame, ["b"]) == find_categories(frame.to_numpy(), [1]) == {1: [4, 5]}
    assert find_categories(frame, None) == {}
    np.testing.assert_array_equal(encode(frame.to_numpy(), {1: [4, 5]}), [[1, 1], [2, 0]])
    for columns in (["c"], [2]):
        with pytest.raises(InputError, match=f"names {columns[0]!r}, which is no column"):
            find_categories(frame, columns)
    with pytest.raises(InputError, match=r"Column 1 of `X` holds texts. Name it in `categorical_features`"):
        encode(frame.assign(b=["x", "y"]), {})


def consistent(graph, n_classes):
    """All classes of the points that no answer and no label contradicts."""
    for classes in product(range(1, n_classes + 1), repeat=graph.n_points):
        found = np.array(classes)
        same = found[graph.ends[:, 0]] == found[graph.ends[:, 1]]
        known = graph.labels > 0
        if (same == (graph.same > 0)).all() and (found[known] == graph.labels[known]).all():
            yield found


@pytest.mark.parametrize("seed", range(12))
def test_implied_labels_are_all_that_is_consistent_up_to_names(seed):
    rng = np.random.default_rng(seed)
    truth = np.append([1, 2, 3], rng.integers(1, 4, 3))
    ends = np.array([(i, j) for i in range(6) for j in range(i) if j < 3 or rng.random() < 0.3])
    labels = np.where(np.arange(6) == 4, truth, 0) if seed % 2 else None
    graph = AnswerGraph.from_answers(ends, truth[ends[:, 0]] == truth[ends[:, 1]], labels=labels)
    found = implied_labels(graph, 3)
    assert (found > 0).all()
    turned = {tuple(np.array(names)[found - 1]) for names in permutations((1, 2, 3))}
    possible = {tuple(classes.tolist()) for classes in consistent(graph, 3)}
    assert tuple(found) in possible
    assert possible <= turned


def test_a_point_that_answers_leave_open_has_no_label():
    graph = AnswerGraph.from_answers([(0, 1), (0, 2), (1, 2), (3, 0)], [False, False, False, False])
    assert implied_labels(graph, 3).tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize(
    ("ends", "same", "labels"),
    [
        ([(0, 1), (1, 2)], [False, False], None),
        ([(0, 1), (0, 2), (1, 2), (0, 3), (3, 1)], [False, False, False, True, True], None),
        ([(0, 1), (0, 2), (1, 2), (3, 0), (3, 1), (3, 2)], [False] * 6, None),
        ([(0, 1), (0, 2), (1, 2), (0, 3)], [False, False, False, True], [1, 0, 0, 2, 0]),
        ([(0, 1), (0, 2), (1, 2), (2, 4)], [False, False, False, False], [0, 0, 0, 1, 2]),
    ],
    ids=["two groups", "contradiction", "four groups", "labels contradict", "labels outside the groups"],
)
def test_nothing_is_implied(ends, same, labels):
    graph = AnswerGraph.from_answers(ends, same, labels=labels, n_points=5)
    assert implied_labels(graph, 3) is graph.labels


def test_groups_are_named_by_size_and_labels_keep_their_names():
    ends = [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (1, 5)]
    same = [False, False, False, True, True, True]
    assert implied_labels(AnswerGraph.from_answers(ends, same), 3).tolist() == [3, 2, 1, 1, 1, 2]
    labels = [0, 0, 3, 0, 0, 0]
    assert implied_labels(AnswerGraph.from_answers(ends, same, labels=labels), 3).tolist() == [2, 1, 3, 3, 3, 1]


def test_labels_take_the_place_of_the_answers_that_imply_them():
    ends = np.array([(0, 1), (0, 2), (1, 2), (3, 0), (4, 5), (6, 7), (4, 0)])
    same = np.array([False, False, False, True, True, True, False])
    _, y = stack_pairs(np.zeros((9, 1)), ends, same)
    pairs = read_pairs(y)
    graph = AnswerGraph.from_y(pairs)
    rows, left = with_labels(pairs, graph, implied_labels(graph, 3), 2)
    found = AnswerGraph.from_y(left)
    assert sorted(map(tuple, found.ends.tolist())) == [(4, 5), (6, 7)]
    assert found.labels.tolist() == [1, 2, 3, 1, 0, 0, 0, 0, 0]
    # One row a point, beside those of the answers that are left; the rows show the points that they did.
    np.testing.assert_array_equal(graph.row_point[rows], found.points[found.row_point])
    assert len(rows) == 9


def rings(n, seed):
    """Three classes, one inside another: to lines, the outer ones look alike on all sides."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 1 + np.digitize(np.hypot(*X.T), [0.75, 1.5])


def test_linked_answers_are_worth_labels_where_no_line_sees_a_class():
    pytest.importorskip("lightgbm")
    X, label = rings(300, 0)
    examples = [int(np.flatnonzero(label == k)[0]) for k in (1, 2, 3)]
    others = [i for i in range(300) if i not in examples]
    ends = np.array([(e, f) for e in examples for f in examples if e < f] + [(e, i) for i in others for e in examples])
    rows, y = stack_pairs(X, ends, label[ends[:, 0]] == label[ends[:, 1]])
    test, truth = rings(1000, 1)
    model = PairBoostingClassifier(n_classes=3, cv=3).fit(rows, y).orient(X[examples], [1, 2, 3])
    assert np.mean(model.predict(test) == truth) > 0.9
    assert not model.start_.coef.any()


def test_answers_that_may_be_wrong_imply_no_labels():
    X, label = rings(60, 0)
    ends = np.array([(i, j) for i in range(60) for j in range(3) if j < i])
    rows, y = stack_pairs(X, ends, label[ends[:, 0]] == label[ends[:, 1]])
    model = PairModelCV(["linear"], n_classes=3, cv=3, error_rate=0.1)
    found, _ = model._training_rows(rows, y, None)
    assert not found.graph.labels.any()
    assert found.graph.n_answers == len(ends)


def test_many_unlabeled_rows_are_sampled_and_labelled_ones_kept():
    _, y = stack_pairs(np.zeros((3000, 1)), [(0, 1), (2, 3), (4, 5), (6, 7)], [True, False, True, False])
    y = np.column_stack([y, np.zeros((len(y), 2), dtype=int)])
    labelled = np.arange(100, 150)
    y[labelled, 3] = np.where(labelled % 2, 1, -1)
    found, _ = PairModelCV(["linear"], cv=2)._training_rows(np.random.default_rng(0).normal(size=(3000, 2)), y, None)
    assert len(found.all_rows) == 2_500 + 8 + 50
    assert np.isin(np.r_[np.arange(8), labelled], found.all_rows).all()
