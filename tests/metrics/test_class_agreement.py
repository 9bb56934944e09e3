"""What answers tell of a classifier with K classes."""

import itertools

import numpy as np
import pytest

from sdulearn import stack_pairs
from sdulearn.dependence import design_effect
from sdulearn.errors import InputError
from sdulearn.metrics import class_agreement
from sdulearn.prior import clopper_pearson


def star_answers(y, n_classes=3):
    """Every point against the first of each class."""
    first = [int(np.argmax(y == k)) for k in range(1, n_classes + 1)]
    ends = np.array([(a, i) for i in range(len(y)) for a in first if a != i and (i not in first or a < i)])
    return stack_pairs(np.arange(len(y))[:, None] * 1.0, ends, y[ends[:, 0]] == y[ends[:, 1]])


CODES = [1, 1, 2, 2, -3, -3]


def test_agreement_counts_answers_of_either_kind():
    """Same, same, different; the second "same" and the "different" are predicted otherwise."""
    found = class_agreement([1, 1, 1, 2, 3, 3], CODES)
    assert (found.agreement.value, found.same.value, found.different.value) == (pytest.approx(1 / 3), 0.5, 0.0)
    assert (found.agreement.low, found.agreement.high) == pytest.approx(clopper_pearson(1, 2, 0.95))
    assert (found.agreement.n, found.accuracy, found.basis) == (pytest.approx(3), None, None)
    # Names of classes do not matter, and probabilities are taken as the likeliest class.
    assert class_agreement([2, 2, 2, 3, 1, 1], CODES).agreement == found.agreement
    assert class_agreement(np.eye(3)[[0, 0, 0, 1, 2, 2]], CODES) == found
    # Answers about chosen points do not count.
    part = class_agreement([1, 1, 1, 2, 3, 3], CODES, random_points=np.arange(6) < 4)
    assert (part.agreement.value, part.same.value) == (0.5, 0.5)
    assert np.isnan(part.different.value)
    assert (part.different.low, part.different.high, part.different.n) == (0, 1, 0)
    assert part.counts.different == ((0, 0, 0),) * 3
    with pytest.raises(InputError, match=r"`y_pred` has shape \(3,\), but `y` has 2 rows"):
        class_agreement([1, 2, 3], [1, 1])


def test_labels_or_large_groups_tell_the_accuracy():
    table = np.array([[1, 0, 0, 1], [1, 1, 0, 0], [0, 2, 0, 2], [0, 3, 0, 3]])
    found = class_agreement([2, 2, 2, 3], table)
    # Not the best of all names: class 1 was called 2.
    assert (found.basis, found.accuracy.value) == ("labels", pytest.approx(2 / 3))
    y = np.repeat([1, 2, 3], 10)
    rows, table = star_answers(y)
    point = rows[:, 0].astype(int)
    predicted = np.array([3, 1, 2])[y - 1]
    predicted[[5, 14]] = [1, 3]
    found = class_agreement(predicted[point], table)
    assert (found.basis, found.accuracy.value, found.accuracy.n) == ("groups", pytest.approx(28 / 30), 30)
    # Groups of nine points are too small, and fewer groups than predicted classes tell nothing.
    rows, table = star_answers(np.repeat([1, 2, 3], 9))
    assert class_agreement(np.repeat([1, 2, 3], 9)[rows[:, 0].astype(int)], table).accuracy is None
    rows, table = star_answers(y)
    assert class_agreement(np.where(point == 5, 4, y[point]), table).accuracy is None


def test_a_group_beyond_the_predicted_classes_is_wrong():
    """Four groups, of which the predictions take a small one for another: all of its points are wrong."""
    for small, other in ((1, 2), (2, 1), (4, 3), (3, 1)):
        y = np.repeat([1, 2, 3, 4], [12 if k == small else 20 for k in (1, 2, 3, 4)])
        rows, table = star_answers(y, 4)
        predicted = np.where(y == small, other, y)
        found = class_agreement(predicted[rows[:, 0].astype(int)], table)
        assert found.accuracy.value == pytest.approx(60 / 72)
    # Of two random points one is right; the last differs from three groups, and so is of the fourth.
    y = np.repeat([1, 2, 3, 4], [12, 10, 10, 11])
    rows, table = star_answers(y, 4)
    last = table[:, 1] == 42
    kept = table[:, 0] != table[last & (table[:, 0] > 0), 0]
    predicted = np.where(y == 4, 1, y)[rows[kept, 0].astype(int)]
    random = np.isin(table[kept, 1], [5, 42])
    found = class_agreement(predicted, table[kept], random_points=random)
    assert (found.basis, found.accuracy.value) == ("random questions", 0.5)


def test_a_point_has_the_class_of_most_of_its_rows():
    """A hub on three rows: any order of its rows, and any name of the odd one; probabilities go by their mean."""
    table = np.array([[1, 0], [1, 1], [2, 0], [2, 2], [-3, 0], [-3, 3]])
    for odd, other in itertools.product((0, 2, 4), (2, 3)):
        predicted = np.array([1, 1, 1, 1, 1, 2])
        predicted[odd] = other
        assert class_agreement(predicted, table).agreement.value == 1
        chances = np.eye(3)[predicted - 1]
        assert class_agreement(chances, table).agreement.value == 1
        chances[odd] *= 9
        assert class_agreement(chances, table).agreement.value < 1


def test_answers_are_counted_by_the_classes_of_their_points():
    codes = [1, 1, 2, 2, -3, -3, -4, -4, -5, -5]
    predicted = [2, 2, 5, 2, 2, 5, 5, 2, 5, 5]
    counts = class_agreement(predicted, codes, sample_weight=np.repeat([1, 2, 0.5, 0.5, 1], 2)).counts
    assert counts.classes == (2, 5)
    assert counts.same == ((1, 2), (2, 0))
    assert counts.different == ((0, 1), (1, 1))


def test_design_effect_sums_over_terms_that_share_a_point():
    rng = np.random.default_rng(3)
    ends = np.array([[i, j] for i in range(7) for j in range(i) if rng.random() < 0.6])
    r = rng.normal(size=len(ends))
    both = [(a, b) for a in range(len(ends)) for b in range(len(ends)) if set(ends[a]) & set(ends[b])]
    expected = sum(r[a] * r[b] for a, b in both) / (r @ r)
    assert design_effect(r, ends) == pytest.approx(max(1.0, expected))
    # A point that is given correlates nothing.
    star = np.column_stack([np.full(9, -1), np.arange(9)])
    assert design_effect(rng.normal(size=9), star) == 1
    assert design_effect(np.zeros(3), np.array([[0, 1], [1, 2], [0, 2]])) == 2


@pytest.mark.parametrize("wrong", [0.0, 0.2])
def test_the_accuracy_of_three_classes_by_random_points_allows_for_wrong_answers(wrong):
    """Of 1,200 points 80% are predicted rightly; by majority far fewer would agree, as each takes several answers."""
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 4, 1200)
    predicted = np.where(rng.random(1200) < 0.8, truth, 1 + (truth + rng.integers(0, 2, 1200)) % 3)
    ends, same = [], []
    for k, own in enumerate(truth):
        # Against the example of one class after the other, until one is said to be the same.
        for name in rng.permutation([1, 2, 3]):
            ends.append((k + 3, name - 1))
            same.append(bool((own == name) != (rng.random() < wrong)))
            if same[-1]:
                break
    labels = np.r_[1, 2, 3, np.zeros(1200, dtype=int)]
    rows, table = stack_pairs(np.arange(1203.0)[:, None], ends, same, labels=labels, unlabeled=None)
    random = np.zeros(len(table), dtype=bool)
    random[: 2 * len(ends) : 2] = True
    classes = np.r_[1, 2, 3, predicted][rows[:, 0].astype(int)]
    found = class_agreement(classes, table, error_rate=wrong, random_points=random)
    assert found.basis == "random questions"
    assert found.accuracy.value == pytest.approx(np.mean(predicted == truth), abs=1e-9 if wrong == 0 else 0.03)
    assert found.accuracy.low < found.accuracy.value < found.accuracy.high


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_points_that_are_not_of_a_class_count_whatever_class_they_are_of(n_classes):
    """Fault C16: one example and 60 random points, 15 "different". Its class everywhere is right about 45."""
    ends = np.column_stack([np.zeros(60, dtype=int), np.arange(1, 61)])
    labels = np.where(np.arange(61) == 0, 1.0, np.nan)
    rows, table = stack_pairs(np.arange(61.0)[:, None], ends, np.arange(60) < 45, labels=labels, unlabeled=None)
    random = rows[:, 0] > 0
    found = class_agreement(np.ones(len(rows), dtype=int), table, random_points=random)
    assert found.basis == "random questions"
    assert (found.accuracy.low, found.accuracy.high) == pytest.approx(clopper_pearson(45, 15, 0.95))
    assert found.accuracy.value == pytest.approx(0.75)
    # The other class of two is told by "different"; with more, only which points are not of it.
    other = np.where(rows[:, 0] > 45, -1 if n_classes == 2 else n_classes, 1)
    accuracy = class_agreement(other, table, random_points=random).accuracy
    assert accuracy.value == 1
    assert accuracy.low > 0.75


@pytest.mark.parametrize(
    ("predicted", "labels"),
    [
        ([0, 1, 0, 1], [1, 2, 0, 0]),
        ([0, 1, 0, 1], [-1, 1, 0, 0]),
        ([1, 2, 1, 2], [-1, 1, 0, 0]),
        ([-1, 1, -1, 1], [1, 2, 0, 0]),
        ([1.5, 2, 1, 2], [0, 0, 0, 0]),
        ([np.nan, 2, 1, 2], [0, 0, 0, 0]),
        (["a", "b", "a", "b"], [0, 0, 0, 0]),
    ],
)
def test_classes_of_other_names_are_refused(predicted, labels):
    """They would never be right, in silence."""
    table = np.column_stack([[1, 1, -2, -2], range(4), np.zeros(4, dtype=int), labels])
    with pytest.raises(InputError):
        class_agreement(predicted, table)


def test_two_columns_of_probabilities_are_those_of_two_classes():
    table = np.column_stack([[1, 1, -2, -2], range(4), np.zeros(4, dtype=int), [-1, -1, -1, 1]])
    p = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.1, 0.9]])
    found = class_agreement(p, table)
    assert found == class_agreement([-1, -1, 1, 1], table)
    assert found.accuracy.value == 0.75


def test_the_number_of_independent_answers_is_that_of_the_variance_of_their_share():
    """By all pairs of answers that share a point, with weights; a hub is given, so that it correlates nothing."""
    rng = np.random.default_rng(2)
    ends = np.array([(i, j) for i in range(12) for j in range(i) if rng.random() < 0.4])
    truth = rng.integers(1, 3, 12)
    same = truth[ends[:, 0]] == truth[ends[:, 1]]
    weight = rng.uniform(0.5, 2, len(ends))
    table = np.column_stack([np.repeat(np.where(same, 1, -1) * np.arange(1, len(ends) + 1), 2), ends.ravel()])
    # All answers about a point that is wrong disagree.
    predicted = np.where(np.arange(12) < 2, 3 - truth, truth)
    found = class_agreement(predicted[ends.ravel()], table, sample_weight=np.repeat(weight, 2)).agreement
    hits = (predicted[ends[:, 0]] == predicted[ends[:, 1]]) == same
    assert found.value == pytest.approx(weight @ hits / weight.sum())
    r = weight * (hits - found.value)
    shared = [(a, b) for a in range(len(ends)) for b in range(len(ends)) if set(ends[a]) & set(ends[b])]
    effect = sum(r[a] * r[b] for a, b in shared) / (r @ r)
    assert effect > 1.2
    assert found.n == pytest.approx(weight.sum() ** 2 / (weight @ weight) / effect)
    # With the decisions of folds two points count as one answer at most.
    of_folds = class_agreement(predicted[ends.ravel()], table, spread=1.5).agreement
    assert of_folds.n <= 12 / 2 / 1.5 + 1e-9
    # Two hubs; the predictions agree with all answers about one, and with half of those about the other.
    ends = np.column_stack([np.arange(60) // 30, np.arange(2, 62)])
    kind = np.where((np.arange(60) < 30) | (np.arange(60) % 2 > 0), 1, -1)
    star = np.column_stack([np.repeat(kind * np.arange(1, 61), 2), ends.ravel()])
    assert class_agreement(np.ones(120, dtype=int), star).agreement.n == pytest.approx(60)


@pytest.mark.parametrize("n_small", [1, 4, 9])
def test_a_small_class_has_the_name_that_the_others_leave_for_random_points(n_small):
    """Whatever is predicted for its points: no matching is chosen that would make them right."""
    y = np.repeat([1, 2, 3], [14, 11, n_small])
    rows, table = star_answers(y)
    point = rows[:, 0].astype(int)
    random = point % 2 == 0
    predicted = np.array([3, 1, 2])[y - 1]
    predicted[[2, 5, 16]] = [1, 1, 2]
    for of_small in (2, 3, 1):
        predicted[y == 3] = of_small
        found = class_agreement(predicted[point], table, random_points=random)
        right = predicted == np.array([3, 1, 2])[y - 1]
        assert (found.basis, found.accuracy.n) == ("random questions", len(np.unique(point[random])))
        assert found.accuracy.value == pytest.approx(right[::2].mean(), abs=1e-6)
        # If all points in answers count, the groups that name the classes are those that are judged.
        assert (class_agreement(predicted[point], table).accuracy is None) == (len(np.unique(predicted)) == 3)
    # Two small classes could be exchanged.
    small = np.repeat([1, 2, 3], [14, n_small, 4])
    rows, table = star_answers(small)
    point = rows[:, 0].astype(int)
    assert class_agreement(small[point], table, random_points=point % 2 == 0).accuracy is None
