"""Classes from answers: what follows, and what does not."""

import itertools

import numpy as np
import pytest

from sdulearn.answers import AnswerGraph
from sdulearn.asking.records import read_classes
from tests.made import made


def one(a, b, sign, why="uncertain"):
    return made(a, (b,), sign > 0, why=why)


def partition(label):
    groups = {}
    for point, number in label.items():
        groups.setdefault(number, set()).add(point)
    return sorted(map(sorted, groups.values()))


@pytest.mark.parametrize("seed", range(5))
def test_two_classes_are_the_sides_of_the_graph(seed):
    """Whatever the order of the answers, all that a connected graph says is found."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 12)
    ends = [(k, int(rng.integers(0, k))) for k in range(1, 12)]
    ends = [ends[k] for k in rng.permutation(11)]
    signs = [1 if y[a] == y[b] else -1 for a, b in ends]
    sides = AnswerGraph.from_answers(ends, signs, n_points=12).sides
    label = read_classes([one(*pair, sign) for pair, sign in zip(ends, signs, strict=True)], 2).label
    assert len(label) == 12
    for i, j in itertools.combinations(range(12), 2):
        assert (label[i] == label[j]) == (sides[i] == sides[j])


@pytest.mark.parametrize(
    ("answers", "limit", "classes", "excluded"),
    [
        # Different from all classes opens one.
        ([(0, 1, -1), (2, 0, -1), (2, 1, -1), (3, 2, 1)], None, [[0], [1], [2, 3]], {}),
        # A point under way is in none; the last of three follows.
        ([(0, 1, -1), (2, 0, -1)], None, [[0], [1]], {2: {1}}),
        ([(0, 1, -1), (2, 0, -1), (2, 1, -1), (3, 0, -1), (3, 1, -1)], None, [[0], [1], [2]], {3: {0, 1}}),
        ([(0, 1, -1), (2, 0, -1), (2, 1, -1), (3, 0, -1), (3, 1, -1)], 3, [[0], [1], [2, 3]], {}),
        # Answers that came before their points were known count later.
        ([(0, 1, 1), (2, 3, 1), (3, 4, -1), (0, 2, -1)], 2, [[0, 1, 4], [2, 3]], {}),
        # A contradiction changes nothing.
        ([(0, 1, 1), (1, 2, 1), (0, 2, -1)], 2, [[0, 1, 2]], {}),
        # Match answers: none opens a class, a pick joins one.
        ([(0, (1,), "none"), (2, (1, 0), "none"), (3, (0, 2, 1), 1)], None, [[0], [1], [2, 3]], {}),
        # A class that was not shown may be that of a point which is like none: two people at the same time.
        ([(0, (1,), "none"), (2, (1, 0), "none"), (3, (1, 0), "none")], None, [[0], [1], [2]], {3: {0, 1}}),
        # Where all classes are found, nothing follows from "none of them".
        ([(0, (1,), "none"), (2, (1, 0), "none")], 2, [[0], [1]], {2: {0, 1}}),
        ([(0, (1,), "none"), (2, (1, 0), "unsure")], None, [[0], [1]], {}),
    ],
)
def test_what_follows_from_answers(answers, limit, classes, excluded):
    """Of pairs with a sign, or of choices and what was said."""
    given = [made(*answer, form="match") if isinstance(answer[1], tuple) else one(*answer) for answer in answers]
    found = read_classes(given, limit)
    assert partition(found.label) == classes
    assert found.excluded == excluded


def test_the_majority_of_answers_to_a_question_stands():
    first = [one(0, 1, -1)]
    again = [one(1, 0, 1, "repeat"), one(0, 1, 1, "doubtful")]
    assert read_classes(first + again[:1], 2).label == {1: 0, 0: 1}
    assert read_classes(first + again, 2).label == {0: 0, 1: 0}
    first = [made(0, (1,), "none", form="match"), made(2, (0, 1), 0)]
    again = [made(2, (1, 0), 0), made(2, (1, 0), 0)]
    assert read_classes(first + again[:1], None).label[2] == 1
    assert read_classes(first + again, None).label[2] == 0
