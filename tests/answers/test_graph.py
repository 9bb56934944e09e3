import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.answers.graph import connect, connect_both_ways, distinct_groups, least_classes, number_questions
from sdulearn.errors import InputError


def graphs(max_points=7, max_answers=12):
    """Any answers over few points."""
    ends = st.tuples(st.integers(0, max_points - 1), st.integers(0, max_points - 1)).filter(lambda e: e[0] != e[1])
    answers = st.lists(st.tuples(ends, st.sampled_from([-1, 1])), max_size=max_answers)
    return answers.map(
        lambda rows: AnswerGraph.from_answers([e for e, _ in rows], [s for _, s in rows], n_points=max_points)
    )


def explained(graph, points):
    """Assignments of two sides to some points, the first +1, that agree with all answers among them."""
    inside = np.isin(graph.ends[:, 0], points)
    found = []
    for rest in itertools.product([1, -1], repeat=len(points) - 1):
        side = np.zeros(graph.n_points, dtype=int)
        side[points] = (1, *rest)
        if (side[graph.ends[inside]].prod(axis=1) == graph.same[inside]).all():
            found.append(side[points])
    return found


@given(graphs())
@settings(deadline=None, max_examples=60)
def test_components_and_their_sides(graph):
    """Components are what can be reached, in the order of their first points; sides the only explanation of answers."""
    asked, question = number_questions(graph.ends, graph.n_points)
    np.testing.assert_array_equal(asked[question], np.sort(graph.ends, axis=1))
    assert [tuple(pair) for pair in asked.tolist()] == sorted({tuple(pair) for pair in asked.tolist()})
    near = np.eye(graph.n_points, dtype=int)
    near[graph.ends[:, 0], graph.ends[:, 1]] = 1
    near[graph.ends[:, 1], graph.ends[:, 0]] = 1
    reached = np.linalg.matrix_power(near, graph.n_points) > 0
    np.testing.assert_array_equal(graph.component[:, None] == graph.component, reached)
    assert graph.component_sizes.tolist() == np.bincount(graph.component).tolist()
    assert graph.n_independent == graph.n_points - graph.n_components
    assert (np.diff(np.unique(graph.component, return_index=True)[1]) > 0).all()
    for number in range(graph.n_components):
        points = np.flatnonzero(graph.component == number)
        found = explained(graph, points)
        assert graph.contradictory[number] == (not found)
        if found:
            assert len(found) == 1
            np.testing.assert_array_equal(graph.sides[points], found[0])
        else:
            assert not graph.sides[points].any()


@given(graphs(), st.permutations(range(7)), st.sets(st.integers(0, 6)))
@settings(deadline=None, max_examples=60)
def test_components_of_a_part_are_those_of_its_answers(graph, order, chosen):
    """Also where they are taken over from the whole graph: in any order of the points."""
    for inside in (np.isin(graph.component[order], list(chosen)), np.isin(order, list(chosen))):
        part = graph.subgraph(np.array(order)[inside])
        fresh = AnswerGraph.from_answers(part.ends, part.same, n_points=part.n_points)
        np.testing.assert_array_equal(part.component, fresh.component)


def test_graphs_compare_by_identity():
    """Arrays have no truth value: a graph is equal to itself alone, and may be a key."""
    graph, other = (AnswerGraph.from_answers([(0, 1), (1, 2)], [True, False]) for _ in range(2))
    assert graph.fingerprint() == other.fingerprint()
    assert graph != other
    assert {graph: 1, other: 2}[graph] == 1


def test_what_contradicts_two_classes_and_what_contradicts_any_number():
    different = AnswerGraph.from_answers([(0, 1), (1, 2), (2, 0)], [-1, -1, -1])
    assert (different.contradictory.tolist(), different.refuted.any()) == ([True], False)
    within = AnswerGraph.from_answers([(0, 1), (1, 2), (2, 0), (2, 3)], [1, 1, -1, -1])
    assert (within.group.tolist(), within.refuted.tolist()) == ([0, 0, 0, 1], [False, False, True, False])


def hubs_of(ends):
    return AnswerGraph.from_answers(ends, np.ones(len(ends), dtype=bool)).hubs().tolist()


def test_a_hub_is_in_many_answers_and_in_many_more_than_others():
    star = [(0, k) for k in range(1, 31)]
    assert hubs_of(star) == [0]
    assert hubs_of(star[:10]) == [0]
    assert hubs_of(star[:9]) == []
    # Two hubs, the one in more answers first; five times the mean is a hub, and less is none.
    assert hubs_of([(1, k) for k in range(2, 30)] + [(0, k) for k in range(30, 80)]) == [0, 1]
    # Few points with many answers each: none stands out.
    assert hubs_of(list(itertools.combinations(range(20), 2))) == []
    # A question asked again counts once: control questions are asked of everybody.
    loose = [(2 * k, 2 * k + 1) for k in range(100)]
    assert hubs_of(loose + 20 * loose[:3]) == []


def test_y_of_labels_alone():
    labelled = AnswerGraph.from_y([[0, 0, 0, 3], [0, 0, 0, 3], [0, 1, 0, 0]])
    assert (labelled.n_answers, labelled.n_components, labelled.labels.tolist()) == (0, 2, [3, 0])
    assert labelled.hubs().size == 0
    assert AnswerGraph.from_answers(np.empty((0, 2), dtype=int), []).n_components == 0


@pytest.mark.parametrize("far", [1, 10**12])
def test_y_with_all_columns(far):
    """Points keep their numbers, with large gaps or without."""
    columns = [1, 1, -2, -2, 0, 0, 0], [3, 4, 4, 9, 3, 8, 7], [5, 5, 6, 6, 0, 0, 0], [0, 1, 0, -1, 0, -1, 0]
    y = np.column_stack(columns)
    y[:, 1] *= far
    graph = AnswerGraph.from_y(y)
    assert (graph.points // far).tolist() == [3, 4, 7, 8, 9]
    assert graph.row_point.tolist() == [0, 1, 1, 4, 0, 3, 2]
    assert graph.ends.tolist() == [[0, 1], [1, 4]]
    assert graph.annotators.tolist() == [5, 6]
    assert graph.labels.tolist() == [0, 1, 0, -1, -1]
    assert graph.unlabeled.tolist() == [2]
    assert graph.sides.tolist() == [1, 1, 1, 1, -1]


def test_an_answer_of_weight_0_is_no_answer():
    """Nor is its label one; the property below has the weights of what is left."""
    y = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [2, 1, 0, 0], [2, 2, 0, 0], [-3, 0, 0, 0], [-3, 2, 0, 1]])
    for weight, contradicts, label in ((None, True, 1), ([2, 2, 1, 1, 0, 0], False, 0)):
        graph = AnswerGraph.from_y(y, sample_weight=weight)
        assert (graph.contradictory.tolist(), graph.labels.tolist()) == ([contradicts], [0, 0, label])
    with pytest.raises(InputError, match="no row is left"):
        AnswerGraph.from_y(y, sample_weight=np.zeros(6))


@given(graphs(), st.data())
@settings(deadline=None, max_examples=60)
def test_rows_of_weight_0_are_left_out_and_y_comes_back(graph, data):
    """Weights of rows have mean 1, those of answers too; the graph of what comes back is the same."""
    y = np.asarray(graph)
    of_answer = data.draw(
        st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=graph.n_answers, max_size=graph.n_answers)
    )
    weight = np.ones(graph.n_rows)
    weight[graph.end_rows] = np.reshape(of_answer, (-1, 1))
    if not weight.any():
        return
    found = AnswerGraph.from_y(y, weight)
    assert found.rows.tolist() == np.flatnonzero(weight).tolist()
    assert found.row_weight.mean() == pytest.approx(1)
    assert not found.n_answers or found.weights.mean() == pytest.approx(1)
    unit = np.mean([w for w in of_answer if w]) if any(of_answer) else weight[found.rows].mean()
    by_point = np.bincount(found.row_point, weight[found.rows]) / np.bincount(found.row_point)
    assert found.point_weights == pytest.approx(by_point / unit)
    for known in (y[weight > 0], np.asarray(found)):
        again = AnswerGraph.from_y(known, weight[weight > 0])
        for name in ("row_point", "row_weight", "end_rows", "same", "codes", "weights", "point_weights", "source"):
            np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
        assert again.fingerprint() == found.fingerprint()
    assert AnswerGraph.from_y(found) is found
    with pytest.raises(InputError, match="has its weights already"):
        AnswerGraph.from_y(found, weight)


@given(graphs(), st.data())
@settings(deadline=None, max_examples=60)
def test_parts_of_a_graph(graph, data):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=graph.n_points, max_size=graph.n_points)))
    copies, answer = graph.folds(np.column_stack([~mask, mask]))
    within = [np.flatnonzero(~mask[graph.ends].any(axis=1)), np.flatnonzero(mask[graph.ends].all(axis=1))]
    np.testing.assert_array_equal(answer, np.concatenate(within))
    fold = np.repeat([0, 1], list(map(len, within)))
    np.testing.assert_array_equal(copies.ends, graph.ends[answer] + fold[:, None] * graph.n_points)
    np.testing.assert_array_equal(copies.rows[copies.end_rows], graph.rows[graph.end_rows[answer]])
    np.testing.assert_array_equal(copies.component, connect(copies.ends, 2 * graph.n_points))
    # The second time from memory.
    again, _ = graph.folds(np.column_stack([~mask, mask]))
    np.testing.assert_array_equal(again.sides, copies.sides)
    points = np.flatnonzero(mask)[::-1]
    part = graph.subgraph(points)
    inside = mask[graph.ends].all(axis=1)
    np.testing.assert_array_equal(part.codes, graph.codes[inside])
    # Points and rows are numbered anew, and known by their old numbers.
    np.testing.assert_array_equal(part.points, points)
    np.testing.assert_array_equal(part.points[part.ends], graph.ends[inside])
    np.testing.assert_array_equal(part.points[part.row_point], graph.row_point[part.rows])
    np.testing.assert_array_equal(part.rows[part.end_rows], graph.end_rows[inside])
    np.testing.assert_array_equal((part.component, part.sides), connect_both_ways(part.ends, part.same, part.n_points))
    everything = np.ones(graph.n_points, dtype=bool)
    assert graph.restrict(np.ones(graph.n_answers, dtype=bool), everything) is graph
    assert graph.subgraph(np.flatnonzero(everything)) is graph


def test_groups_that_all_differ_need_a_class_each():
    """Groups of three, two and one point, all different from each other."""
    ends = [(0, 1), (1, 2), (3, 4), (0, 3), (2, 5), (4, 5)]
    same = [True, True, True, False, False, False]
    graph = AnswerGraph.from_answers(ends, same)
    for least, points in ((1, [0, 3, 5]), (2, [0, 3]), (3, [])):
        assert sorted(distinct_groups(graph, least).tolist()) == sorted(graph.group[points].tolist())
    assert distinct_groups(AnswerGraph.from_answers([*ends, (0, 2)], [*same, False]), 1).tolist() == []
    assert least_classes(graph, np.ones(6, dtype=bool)) == 3
    cycle = AnswerGraph.from_answers([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], [False] * 5)
    assert least_classes(cycle, np.ones(5, dtype=bool)) == 3
    assert least_classes(cycle, np.zeros(5, dtype=bool)) == 2
    labelled = AnswerGraph.from_answers([(0, 1)], [True], labels=[4, 0])
    assert least_classes(labelled, np.ones(1, dtype=bool)) == 4


def test_answers_given_together_are_left_out_together():
    """A match question about 0 and a sorted group of 3, 4 and 5 lose all their answers with one of their points."""
    ends = [(0, 1), (0, 2), (3, 4), (3, 5), (4, 5), (5, 6)]
    graph = AnswerGraph.from_answers(ends, [1, -1, 1, -1, -1, 1], questions=[1, 1, 2, 2, 2, 0])
    for point, left in ((1, [2, 3, 4, 5]), (4, [0, 1, 5]), (6, [0, 1, 2, 3, 4])):
        left_out = np.arange(7) == point
        np.testing.assert_array_equal(graph.folds(~left_out[:, None])[1], left)
        likelihood = AnswerModel.given(0.1, graph).likelihood(graph, 3)
        # The likelihood has no answer that follows from others of its question.
        expected = [k for k in left if k + 1 in likelihood.graph.codes]
        np.testing.assert_array_equal(likelihood.folds(~left_out[:, None]).graph.codes - 1, expected)


def test_the_ways_to_sort_things_are_bells_numbers():
    """By enumeration of all partitions of two to seven things, each sorted in one question."""

    def partitions(n):
        return 1 if n == 0 else sum(math.comb(n - 1, k) * partitions(k) for k in range(n))

    for n in range(2, 8):
        ends = list(itertools.combinations(range(n), 2))
        graph = AnswerGraph.from_answers(ends, [True] * len(ends), questions=[1] * len(ends))
        expected = 2 if n == 2 else partitions(n)
        assert set(graph.outcomes) == {expected}
