"""Error rates: the laws of repeats and triangles, several people, and when nothing tells."""

from dataclasses import astuple

import numpy as np
import pytest

from sdulearn.answers import AnswerGraph, estimate_error_rates
from sdulearn.answers.error_rates import contradicts, on_cycles


def test_repeats_disagree_at_twice_e_times_one_less_e():
    """600 of 2,000 questions asked twice are answered both ways: 2 e (1 - e) = 0.3."""
    ends = np.repeat(np.arange(4000).reshape(-1, 2), 2, axis=0)
    same = np.ones(4000, dtype=int)
    same[:1200:2] = -1
    (found,) = estimate_error_rates(AnswerGraph.from_answers(ends, same))
    assert 2 * found.rate * (1 - found.rate) == pytest.approx(0.3, abs=5e-3)
    assert found.low < found.rate < found.high
    assert found.identified


def test_triangles_are_odd_at_the_rate_of_the_formula():
    """300 of 1,000 triangles are odd: (1 - (1 - 2 e)^3) / 2 = 0.3."""
    corners = np.arange(3000).reshape(-1, 3)
    ends = corners[:, [[0, 1], [1, 2], [0, 2]]].reshape(-1, 2)
    same = np.ones(3000, dtype=int)
    same[:900:3] = -1
    (found,) = estimate_error_rates(AnswerGraph.from_answers(ends, same))
    assert (1 - (1 - 2 * found.rate) ** 3) / 2 == pytest.approx(0.3, abs=5e-3)


@pytest.mark.parametrize("n_clean", [0, 1, 9])
def test_one_contradiction_among_few_checks_moves_a_rate_little(n_clean):
    ends = np.repeat(np.arange(2 + 2 * n_clean).reshape(-1, 2), 2, axis=0)
    same = np.ones(len(ends), dtype=int)
    same[0] = -1
    (found,) = estimate_error_rates(AnswerGraph.from_answers(ends, same))
    # A posterior mean under Beta(0.6, 29.4), mixed with weaker priors.
    assert 0.02 < found.rate < 0.07
    assert found.high >= 1 / len(ends)
    assert found.identified == (n_clean == 9)


def test_clean_repeats_say_zero_with_an_interval():
    ends = np.repeat(np.arange(80).reshape(-1, 2), 2, axis=0)
    (found,) = estimate_error_rates(AnswerGraph.from_answers(ends, np.ones(80, dtype=int)))
    assert found.rate == 0
    # Twice 40 e is the log likelihood that is lost; an exact bound for 0 of 40 disagreements is 0.046.
    assert 1.92 / 80 < found.high < 0.046


def test_loose_pairs_of_one_annotator_say_nothing():
    ends = np.arange(80).reshape(-1, 2)
    (found,) = estimate_error_rates(AnswerGraph.from_answers(ends, np.tile([1, -1], 20)))
    assert (found.rate, found.identified, found.low, found.high) == (0.0, False, 0.0, 0.5)


def test_five_people_and_the_one_who_guesses():
    rng = np.random.default_rng(5)
    classes = np.where(rng.random(200) < 0.7, 1, -1)
    ends = np.tile(np.arange(200).reshape(-1, 2), (5, 1))
    shares = (0.05, 0.05, 0.1, 0.2, 0.5)
    wrong = np.concatenate([rng.permutation(np.arange(100) < 100 * share) for share in shares])
    same = classes[ends[:, 0]] * classes[ends[:, 1]] * np.where(wrong, -1, 1)
    graph = AnswerGraph.from_answers(ends, same, annotators=np.repeat([3, 4, 5, 6, 9], 100))
    found = estimate_error_rates(graph)
    assert [one.annotator for one in found] == [3, 4, 5, 6, 9]
    np.testing.assert_allclose([one.rate for one in found], shares, atol=0.04)
    assert found.mean == pytest.approx(0.18, abs=0.02)


def test_labels_are_checks():
    """Ten answers between labelled points, two of them against the labels."""
    labels = np.tile([1, -1], 10)
    same = np.full(10, -1)
    same[:2] = 1
    (found,) = estimate_error_rates(AnswerGraph.from_answers(np.arange(20).reshape(-1, 2), same, labels=labels))
    # Drawn from 0.2 to 0.02: ten checks are few.
    assert 0.04 < found.rate < 0.2
    assert found.low < 0.2 < found.high


def test_logits_of_a_model_tell_people_apart():
    rng = np.random.default_rng(2)
    logits = 4 * rng.normal(size=800)
    classes = np.where(rng.random(800) < 1 / (1 + np.exp(-logits)), 1, -1)
    ends = np.arange(800).reshape(-1, 2)
    annotators = np.repeat([1, 2], 200)
    wrong = (annotators == 2) & (rng.random(400) < 0.4)
    same = classes[ends[:, 0]] * classes[ends[:, 1]] * np.where(wrong, -1, 1)
    one, two = estimate_error_rates(AnswerGraph.from_answers(ends, same, annotators=annotators), logits)
    assert one.rate < 0.08
    assert two.rate == pytest.approx(0.4, abs=0.08)


def test_what_is_on_a_cycle_and_what_contradicts():
    ends = [(0, 1), (1, 2), (0, 2), (2, 3), (4, 5), (4, 5), (6, 7)]
    graph = AnswerGraph.from_answers(ends, [1, 1, -1, 1, 1, 1, 1])
    assert on_cycles(graph).tolist() == [True, True, True, False, True, True, False]
    everyone = np.ones(7, dtype=bool)
    assert contradicts(graph, everyone)
    assert not contradicts(graph, np.arange(7) != 2)


def test_the_interval_covers_the_rate():
    """20 draws of 200 answers about 60 points, 5% of them wrong; over 300 draws it covered in 95%."""
    rng = np.random.default_rng(11)
    covered = 0
    rates = []
    for _ in range(20):
        truth = np.where(rng.random(60) < 0.6, 1, -1)
        ends = rng.integers(0, 60, (400, 2))
        ends = ends[ends[:, 0] != ends[:, 1]][:200]
        wrong = rng.random(len(ends)) < 0.05
        same = truth[ends[:, 0]] * truth[ends[:, 1]] * np.where(wrong, -1, 1)
        (found,) = estimate_error_rates(AnswerGraph.from_answers(ends, same, n_points=60))
        covered += found.low <= 0.05 <= found.high
        rates.append(found.rate)
    assert covered >= 15
    assert np.mean(rates) == pytest.approx(0.05, abs=0.015)


@pytest.mark.parametrize("unit", [0.01, 7.3, 100])
def test_the_unit_of_weights_changes_no_rate(unit):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 20, 80)
    ends = np.column_stack([first, (first + rng.integers(1, 20, 80)) % 20])
    same = (ends[:, 0] % 2 == ends[:, 1] % 2) ^ (rng.random(80) < 0.1)
    codes = np.where(same, 1, -1) * np.arange(1, 81)
    y = np.column_stack([np.repeat(codes, 2), ends.ravel(), np.repeat(rng.integers(1, 3, 80), 2)])
    weight = np.repeat(rng.uniform(0.3, 3, 80), 2)
    found = estimate_error_rates(AnswerGraph.from_y(y, unit * weight))
    expected = estimate_error_rates(AnswerGraph.from_y(y, weight))
    assert [astuple(one) for one in found] == [pytest.approx(astuple(one), rel=1e-8) for one in expected]
    assert expected.mean > 0.02
