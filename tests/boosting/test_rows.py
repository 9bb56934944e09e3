"""The labels that answers imply, and the rows of a fit."""

from itertools import permutations, product

import numpy as np
import pytest

from sdulearn import PairBoostingClassifier, PairModelCV, stack_pairs
from sdulearn.answers.graph import AnswerGraph
from sdulearn.boosting.rows import implied_labels, with_labels


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
    found = implied_labels(graph, 3)
    assert found is graph.labels if implied is None else found.tolist() == implied
    # Too few groups for five classes.
    assert implied_labels(graph, 5) is graph.labels


def test_labels_take_the_place_of_the_answers_that_imply_them():
    ends = np.array([(0, 1), (0, 2), (1, 2), (3, 0), (4, 5), (6, 7), (4, 0)])
    same = np.array([False, False, False, True, True, True, False])
    _, y = stack_pairs(np.zeros((9, 1)), ends, same)
    graph = AnswerGraph.from_y(y)
    rows, found = with_labels(graph, implied_labels(graph, 3), 2)
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
    pytest.importorskip("lightgbm")
    label = 1 + np.arange(36) % 3
    X = np.random.default_rng(0).normal(size=(36, 3)) + 4 * np.eye(3)[label - 1]
    ends = np.array([(i, j) for i in range(36) for j in range(3) if j < i])
    rows, y = stack_pairs(X, ends, label[ends[:, 0]] == label[ends[:, 1]])
    model = PairBoostingClassifier(n_classes=3, cv=2, max_iter=1, error_rate=0.1).fit(rows, y)
    assert model.start_.coef.any()


def test_many_unlabeled_rows_are_sampled_and_labelled_ones_kept():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    pairs = np.arange(40).reshape(-1, 2)
    labels = np.where(np.arange(3000) % 2, 1, -1) * np.isin(np.arange(3000), np.arange(100, 150))
    rows, y = stack_pairs(X, pairs, X[pairs[:, 0], 0] * X[pairs[:, 1], 0] > 0, labels=labels)
    model = PairModelCV(["linear"], cv=2).fit(rows, y)
    used = np.concatenate([its_rows for its_rows, _ in model.fold_models_])
    assert len(used) == 40 + 50 + 2_500
    assert np.isin(np.flatnonzero((y[:, 0] != 0) | (y[:, 3] != 0)), used).all()
    assert np.isfinite(model.held_out_decisions_).all()
