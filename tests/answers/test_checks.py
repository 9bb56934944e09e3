import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sdulearn.answers import AnswerGraph, Answers, check_answers
from sdulearn.answers.checks import majority_votes


def answered(*rows):
    """Answers from (a, b, answer) rows."""
    ids = np.empty((len(rows), 2), dtype=object)
    for k, (a, b, _) in enumerate(rows):
        ids[k] = str(a), str(b)
    lines = np.arange(2, len(rows) + 2)
    said = np.array([row[2] for row in rows], dtype=int)
    return Answers("p", ids, said, np.ones(len(rows)), None, lines, {}, {})


def cycles(found):
    return [set(contradiction.answers) for contradiction in found]


def test_self_pairs_repeats_and_both_ways():
    checks = check_answers(answered(
        ("a", "a", 1), ("a", "b", 1), ("b", "a", 1), ("c", "d", 1), ("d", "c", -1), ("e", "f", -1), ("e", "f", 0)
    ))  # fmt: skip
    assert checks.self_pairs.tolist() == [0]
    assert checks.repeats.tolist() == [2]
    assert cycles(checks.disagreements) == [{3, 4}]
    assert not checks.closure
    assert not checks.odd_cycles


def test_cycles_are_shown_by_their_shortest_chain_and_without_the_way_to_them():
    rows = [("a", "b", 1), ("b", "c", 1), ("c", "d", 1), ("a", "x", 1), ("x", "y", 1), ("y", "z", 1), ("z", "d", 1)]
    checks = check_answers(answered(*rows, ("a", "d", -1)))
    assert cycles(checks.closure) == [{7, 0, 1, 2}]
    assert checks.closure[0].answers[0] == 7
    chain = [("r", "q", -1), ("q", "p", -1), ("p", "a", -1)]
    checks = check_answers(answered(*chain, ("a", "b", -1), ("b", "c", -1), ("c", "a", -1)))
    assert cycles(checks.odd_cycles) == [{3, 4, 5}]


def consistent(rows, n_points):
    """By brute force: is there a split into two classes that explains every answer?"""
    return any(
        all((classes[a] == classes[b]) == (answer > 0) for a, b, answer in rows)
        for classes in itertools.product((0, 1), repeat=n_points)
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([1, -1])), max_size=9))
def test_contradictions_are_found_exactly_where_no_two_classes_explain_the_answers(rows):
    rows = [row for row in rows if row[0] != row[1]]
    checks = check_answers(answered(*rows))
    by_graph = check_answers(AnswerGraph.from_answers([row[:2] for row in rows], [row[2] for row in rows]))
    for name in ("disagreements", "closure", "odd_cycles"):
        assert len(getattr(by_graph, name)) == len(getattr(checks, name))
    assert (checks.n_contradictions == 0) == consistent(rows, 6)
    for found in (*checks.disagreements, *checks.closure, *checks.odd_cycles):
        assert not consistent([rows[k] for k in found.answers], 6)
    for found in (*checks.closure, *checks.odd_cycles):
        # Each answer shares an end with the next, and none can be left out.
        ends = [set(rows[k][:2]) for k in found.answers]
        assert all(one & other for one, other in zip(ends, [*ends[1:], ends[0]], strict=True))
        for k in found.answers:
            assert consistent([rows[j] for j in found.answers if j != k], 6)


def test_a_question_asked_again_counts_once_by_weight():
    ends = np.array([[0, 1], [1, 0], [0, 1], [2, 3], [3, 2], [4, 5], [5, 4], [5, 4], [0, 2], [0, 3], [1, 2]])
    said = np.array([1, -1, -1, 1, -1, 1, -1, -1, 1, 1, -1])
    weights = np.array([1, 1, 1, 1, 3, 2, 1, 1, 1, 1, 0.0])
    chosen, n_repeated, n_tied = majority_votes(ends, said, weights, range(10))
    assert (chosen.tolist(), n_repeated, n_tied) == ([1, 4, 8, 9], 2, 1)


def test_chains_are_looked_for_among_credible_answers():
    """Two ways from a to d of the same length, and more dissimilar pairs than are explained."""
    rows = [("a", "b", 1), ("b", "d", 1), ("a", "c", 1), ("c", "d", 1), ("a", "d", -1)]
    errors = np.array([0.4, 0.1, 0.1, 0.1, 0.1])
    assert cycles(check_answers(answered(*rows), errors).closure) == [{4, 2, 3}]
    assert cycles(check_answers(answered(*rows), errors[[2, 1, 0, 3, 4]]).closure) == [{4, 0, 1}]
    star = [("hub", k, 1) for k in range(30)] + [(k, k + 1, -1) for k in range(29)]
    errors = np.r_[np.full(58, 0.1), 0.01]
    assert check_answers(answered(*star), errors).closure[0].answers[0] == 58
