import functools
import operator

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sdulearn import stack_pairs
from sdulearn.answers import AnswerGraph
from sdulearn.answers.y import LARGEST_NUMBER, D, S, U, pair_checksum
from sdulearn.errors import InputError


@st.composite
def pair_codes(draw):
    """Valid pair codes in any row order."""
    signs = draw(st.lists(st.sampled_from([-1, 1]), min_size=1, max_size=8))
    names = draw(st.lists(st.integers(1, 10**6), min_size=len(signs), max_size=len(signs), unique=True))
    codes = [sign * name for sign, name in zip(signs, names, strict=True) for _ in range(2)]
    codes += [0] * draw(st.integers(0, 5))
    return np.array(draw(st.permutations(codes)))


@given(pair_codes())
def test_reading_codes_finds_every_row_once(codes):
    graph = AnswerGraph.from_y(codes)
    for other in (codes.tolist(), codes.astype(float), codes[:, None]):
        assert AnswerGraph.from_y(other).fingerprint() == graph.fingerprint()
    np.testing.assert_array_equal(codes[graph.end_rows], np.repeat((graph.same * graph.codes)[:, None], 2, axis=1))
    assert (np.diff(graph.codes) > 0).all()
    assert graph.source.tolist() == [S if code > 0 else D if code else U for code in codes]
    np.testing.assert_array_equal(np.asarray(graph), codes)


@given(pair_codes(), st.data())
def test_damaged_codes_are_refused(codes, data):
    end = data.draw(st.sampled_from(np.flatnonzero(codes).tolist()))
    with pytest.raises(ValueError, match="only one row"):
        AnswerGraph.from_y(np.delete(codes, end))
    with pytest.raises(ValueError, match="appears on 3 rows"):
        AnswerGraph.from_y(np.append(codes, codes[end]))
    torn = codes.copy()
    torn[end] *= -1
    with pytest.raises(ValueError, match=r"one row as \+ .* Give both ends of a pair the same sign"):
        AnswerGraph.from_y(torn)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([], "`y` is empty"),
        ([[[1, 1], [0, 0]]], "should be a 1d array"),
        ([1.0, 1.0, np.nan], "NaN"),
        ([0.5, 0.5], "fractions"),
        (["a", "a"], "dtype"),
        ([2**62, 2**62], "smaller than 2"),
        ([1, 1, 1, 2, 2, 2], "appears on 3 rows.*not class labels"),
        (np.ones((2, 6), int), "6 columns, but there are at most 5: answer, point, annotator, label, question"),
        ([[1, 4], [1, -1]], "must not be negative, but row 1 has -1"),
        ([[1, 4], [1, 4]], r"joins point 4 with itself.*\(1 such answers\)"),
        ([[1, 4, 2], [1, 5, 3]], "Rows 0 and 1 are one answer, but `y` names annotators 2 and 3"),
        ([[1, 4, 0, 0, 2], [1, 5, 0, 0, 3]], "Rows 0 and 1 are one answer, but `y` names questions 2 and 3"),
        ([[1, 4, 0, 0, -2], [1, 5, 0, 0, -2]], "Questions are numbered from 1"),
        ([[1, 4, 2, 1], [1, 5, 2, 0], [0, 4, 0, -1]], r"Point 4 has two labels in `y`, -1 and 1\. Keep the right"),
    ],
)
def test_bad_codes_say_what_to_do(y, message):
    with pytest.raises(ValueError, match=message):
        AnswerGraph.from_y(y)


def test_unlabeled_choices():
    X = np.arange(6.0)[:, None]
    for unlabeled, expected in [("rest", [4, 5]), ("all", [0, 1, 2, 3, 4, 5]), (None, []), ([5], [5])]:
        rows, y = stack_pairs(X, [(0, 1), (2, 3)], [1, -1], unlabeled=unlabeled)
        assert rows[:, 0].tolist() == [0, 1, 2, 3, *expected]
        assert y[:, 0].tolist() == [1, 1, -2, -2] + [0] * len(expected)
        assert y[:, 1].tolist() == [0, 1, 2, 3, *expected]
    assert stack_pairs(X[:3], [], np.array([], dtype=bool))[1].tolist() == [[0, 0], [0, 1], [0, 2]]
    rows, _ = stack_pairs(X, [(0, 1)], [True], unlabeled=np.array([False] * 5 + [True]))
    assert rows[:, 0].tolist() == [0, 1, 5]


def test_dense_sparse_and_frames_stack_alike():
    X = np.arange(12.0).reshape(6, 2)
    pairs, same = [(0, 3), (3, 5)], [False, True]
    rows, y = stack_pairs(X, pairs, same)
    names = ["a", "b"]
    for other in (sparse.csr_matrix(X), pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        other_rows, other_y = stack_pairs(other, pairs, same)
        assert type(other_rows) is type(other)
        dense = other_rows.toarray() if sparse.issparse(other_rows) else np.asarray(other_rows)
        np.testing.assert_array_equal(dense, rows)
        np.testing.assert_array_equal(other_y, y)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pairs": [(0, 9)]}, "names row 9, but rows are numbered 0 to 3"),
        ({"pairs": [(0, -1)]}, "names row -1"),
        ({"pairs": [("a", "b")]}, "Number what it names first"),
        ({"pairs": [(0, 1, 2)]}, r"shape \(n_answers, 2\)"),
        ({"pairs": [(1, 1)]}, "Answer 0 of `pairs` joins row 1 with itself"),
        ({"same": [True, False]}, "one answer per pair"),
        ({"same": [0]}, "say which is which"),
        ({"same": ["alike"]}, "must be boolean"),
        ({"unlabeled": "others"}, "'rest', 'all', None"),
        ({"unlabeled": [[2]]}, "concatenate them to `X` first"),
        ({"unlabeled": [7]}, "`unlabeled` names row 7"),
        ({"annotators": [1, 2]}, "one number per answer: 1 answers"),
        ({"annotators": [-1]}, "numbered from 1, with 0 for none; got -1"),
        ({"annotators": [0.5]}, "`annotators` must contain integers"),
        ({"labels": [1]}, "one label per row of `X`, 4 in all"),
        ({"labels": [1, -1, 2, 0]}, "Labels must be -1 and .1"),
    ],
)
def test_bad_input_to_stack_pairs(changed, message):
    with pytest.raises(InputError, match=message):
        stack_pairs(np.zeros((4, 2)), **{"pairs": [(0, 1)], "same": [True], **changed})


@pytest.mark.parametrize("weight", [1e-300, LARGEST_NUMBER * 1.01, -1.0, np.nan, np.inf])
def test_weights_that_are_no_weights_or_beyond_a_limit_are_refused(weight):
    for column in ([weight] * 2, [0.0, weight]):
        with pytest.raises(InputError, match="`weights`"):
            AnswerGraph.from_answers([(0, 1), (1, 2)], [True, False], weights=column)
    for limit in (LARGEST_NUMBER, 1 / LARGEST_NUMBER):
        assert AnswerGraph.from_answers([(0, 1), (1, 2)], [True, False], weights=[limit] * 2).n_answers == 2


def test_the_checksum_of_parts_vanishes_for_whole_pairs_of_one_sign_and_one_weight():
    codes = np.array([1, -2, 0, 3, 1, 3, -2, 0])
    weight = np.array([0.5, 2.0, 7.0, 0.0, 0.5, -0.0, 2.0, 1.0])

    def checksum(codes, weight=None):
        """Of three parts, none of which holds both ends of every pair."""
        parts = [slice(0, 2), slice(2, 5), slice(5, 8)]
        return functools.reduce(
            operator.xor, (pair_checksum(codes[part], None if weight is None else weight[part]) for part in parts)
        )

    assert checksum(codes) == checksum(codes, weight) == 0
    assert checksum(np.where(np.arange(8) == 3, -3, codes)) != 0
    assert checksum(np.where(np.arange(8) == 4, 0, codes)) != 0
    for end in np.flatnonzero(codes):
        assert checksum(codes, np.where(np.arange(8) == end, weight + 1e-9, weight)) != 0
    # An unlabeled row has no partner to agree with.
    assert checksum(codes, np.where(codes == 0, 3.0, weight)) == 0


KNOWN = np.array([[1, 4, 2, 0], [1, 5, 2, -1], [-2, 5, 0, 0], [-2, 6, 0, 1], [0, 4, 0, 0]])


@pytest.mark.parametrize("n_columns", [1, 2, 3, 4])
def test_columns_are_read_and_given_back(n_columns):
    graph = AnswerGraph.from_y(KNOWN[:, :n_columns])
    # All rows of a point have its label.
    expected = np.where(np.arange(4) == 3, [[0], [-1], [-1], [1], [0]], KNOWN)
    assert np.asarray(graph).tolist() == (expected[:, 0] if n_columns == 1 else expected[:, :n_columns]).tolist()
    assert graph.shares_points == (n_columns > 1)
    assert np.array(graph, dtype=float, copy=True).dtype == float


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_are_read_by_name_in_any_order(library):
    frame = library.DataFrame({"label": KNOWN[:, 3], "answer": KNOWN[:, 0]})
    assert np.asarray(AnswerGraph.from_y(frame)).tolist() == [
        [a, k, 0, d] for k, (a, _, _, d) in enumerate(KNOWN.tolist())
    ]
    with pytest.raises(InputError, match="column 'who', but its columns are answer, point, annotator, label"):
        AnswerGraph.from_y(library.DataFrame({"answer": KNOWN[:, 0], "who": KNOWN[:, 2]}))
    with pytest.raises(InputError, match="no column 'answer', which contains the pair codes"):
        AnswerGraph.from_y(library.DataFrame({"point": KNOWN[:, 1]}))


def test_stacking_annotators_and_labels():
    X = np.arange(6.0)[:, None]
    labels = [0, 1, 0, 0, 0, -1]
    rows, y = stack_pairs(X, [(0, 1), (1, 2)], [True, False], unlabeled=None, annotators=[3, 0], labels=labels)
    # The labelled point in no answer comes along.
    assert rows[:, 0].tolist() == [0, 1, 1, 2, 5]
    assert y.tolist() == [[1, 0, 3, 0], [1, 1, 3, 1], [-2, 1, 0, 1], [-2, 2, 0, 0], [0, 5, 0, -1]]
    assert stack_pairs(X, [(0, 1)], [True], labels=labels)[1].shape == (6, 4)
    assert stack_pairs(X, [(0, 1)], [True], annotators=[1])[1].shape == (6, 3)


def test_a_target_of_0_and_1_is_no_column_of_labels():
    X = np.arange(8.0).reshape(4, 2)
    stack = functools.partial(stack_pairs, X, [(0, 1)], [True])
    for target in ([0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], [0, 1, 0, 0]):
        with pytest.raises(InputError, match=r"labels=2 \* y - 1"):
            stack(labels=target)
    # Nor is one of more classes, of which many rows are of class 0.
    for n_classes in (3, 7):
        target = np.arange(200) % n_classes
        with pytest.raises(InputError, match=r"y \+ 1"):
            stack_pairs(np.zeros((200, 1)), [(0, 1)], [True], labels=target)
        few = np.where(np.arange(200) < 20, target + 1, 0)
        assert set(stack_pairs(np.zeros((200, 1)), [(0, 1)], [True], labels=few)[1][:, 3]) == {0, *few}
    # Points of one class alone are no target; neither are other classes, or none.
    assert stack(labels=[np.nan, 1, np.nan, 1])[1][:, 3].tolist() == [0, 1, 0, 1]
    assert stack(labels=[0, -1, 0, -1])[1][:, 3].tolist() == [0, -1, 0, -1]
    assert stack(labels=[0, 1, 2, 0])[1][:, 3].tolist() == [0, 1, 2, 0]
    assert stack(labels=[0, 0, 0, 0])[1].shape == (4, 4)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_classes_from_0_are_refused_where_0_is_the_largest(n_classes):
    rng = np.random.default_rng(n_classes)
    classes = rng.choice(n_classes, 300, p=[0.6, *[0.4 / (n_classes - 1)] * (n_classes - 1)])
    ends = rng.permutation(300).reshape(-1, 2)
    answers = (np.zeros((300, 1)), ends, classes[ends[:, 0]] == classes[ends[:, 1]])
    with pytest.raises(InputError, match="labels"):
        stack_pairs(*answers, labels=classes)
    # Beside NaN a 0 is a class, and without an answer nothing tells.
    with pytest.raises(InputError, match="labels"):
        stack_pairs(*answers[:1], [(0, 1)], [True], labels=np.where(np.arange(300) < 60, classes, np.nan))
    known = np.where(np.arange(300) < 60, classes + 1, 0)
    assert stack_pairs(*answers, labels=known)[1][:, 3].max() == n_classes


def test_answers_given_together_share_a_question():
    X = np.arange(12.0)[:, None]
    ends = [(0, 1), (0, 2), (3, 4), (5, 6)]
    _, y = stack_pairs(X, ends, [True, False, True, False], questions=[7, 7, 0, 0])
    assert y.shape[1] == 5
    for graph in (AnswerGraph.from_y(y), AnswerGraph.from_answers(ends, y[:8:2, 0] > 0, questions=[7, 7, 0, 0])):
        assert graph.question[0] == graph.question[1]
        assert len(np.unique(graph.question)) == 3
    assert len(np.unique(AnswerGraph.from_y(y[:, :4]).question)) == 4
    again = np.asarray(AnswerGraph.from_y(y))
    np.testing.assert_array_equal(again[:, :4], y[:, :4])
    assert again[:4, 4].tolist() == 4 * [again[0, 4]]
    assert not again[4:, 4].any()


def test_people_by_name_and_answers_in_words():
    """Fault C22: names are numbered from 1, and no name is 0, not known."""
    X = np.arange(8.0)[:, None]
    ends = np.arange(8).reshape(-1, 2)
    people = np.array(["Bob", "", "Ann", None], dtype=object)
    _, by_name = stack_pairs(X, ends, ["same", "different", "same", "different"], annotators=people)
    _, by_number = stack_pairs(X, ends, [True, False, True, False], annotators=[2, 0, 1, 0])
    np.testing.assert_array_equal(by_name, by_number)
    frame = pd.DataFrame({"name": pd.array(["Bob", pd.NA, "Ann", ""], dtype="string")})
    _, of_frame = stack_pairs(X, ends, [True, False, True, False], annotators=frame["name"])
    np.testing.assert_array_equal(of_frame, by_number)
    # Numbers beside gaps stay numbers.
    for numbers in (pd.array([12, None, 2, 0], dtype="Int64"), np.array([12, None, 2, 0], dtype=object)):
        _, numbered = stack_pairs(X, ends, [True, False, True, False], annotators=numbers)
        assert numbered[::2, 2].tolist() == [12, 0, 2, 0]
