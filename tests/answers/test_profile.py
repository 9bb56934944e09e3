import itertools

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, chi2

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.prior import classes_by_answers, log_likelihood, one_way, oriented, profile

GRID = np.array([0.1, 0.5, 0.62, 0.9])


def propagated(graph, grid, error=0.0):
    """Log-probability of the answers and labels where all points have one node probability, by messages."""
    factors = AnswerModel.given(error, graph).factor_graph(graph, 2)
    return np.array([factors.propagate(np.log([1 - p, p])).value for p in grid])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("with_labels", [False, True])
def test_the_likelihood_sums_over_all_classes(seed, with_labels):
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(8) < 0.6, 1, -1)
    ends = [pair for pair in itertools.combinations(range(8), 2) if rng.random() < 0.25] or [(0, 1)]
    same = [truth[a] * truth[b] for a, b in ends]
    labels = np.where(rng.random(8) < 0.3, truth, 0) if with_labels else np.zeros(8, dtype=int)
    graph = AnswerGraph.from_answers(ends, same, labels=labels)
    np.testing.assert_allclose(log_likelihood(graph, GRID), propagated(graph, GRID), atol=1e-10)


TRIANGLE = [(0, 1), (1, 2), (0, 2), (3, 4)], [1, 1, -1, -1]


@pytest.mark.parametrize(("labels", "lowest"), [([0, 0, 0, 0, 0], 0.5), ([-1, 0, 0, 1, 0], 0.01)])
def test_errors_of_a_given_rate(labels, lowest):
    """With labels the classes cannot be exchanged: probabilities below 1/2 count too."""
    graph = AnswerGraph.from_answers(*TRIANGLE, labels=labels)
    grid = np.linspace(lowest, 0.99, 40)
    found = log_likelihood(graph, grid, AnswerModel.given(0.1, graph))
    np.testing.assert_allclose(found, propagated(graph, grid, 0.1), atol=2e-3)


@pytest.mark.parametrize("labels", [None, [-1, 0, 0, 1, 0]])
def test_a_contradiction_is_taken_at_every_rate_as_likely_as_it_is(labels):
    """The mean over a prior of rates, Beta(1/2, 19/2), also of the components that contradict nothing."""
    graph = AnswerGraph.from_answers(*TRIANGLE, labels=labels)
    grid = np.linspace(0.5, 0.99, 40)
    rates = np.linspace(0.005, 0.495, 50)
    values = np.array([propagated(graph, grid[::20], rate) for rate in rates])
    mean = np.average(np.exp(values), axis=0, weights=beta.pdf(rates, 0.5, 9.5))
    found = log_likelihood(graph, grid)[::20]
    np.testing.assert_allclose(found - found[0], np.log(mean / mean[0]), atol=0.01)


def test_weights_count_components_and_their_unit_does_not_matter():
    ends = [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7)]
    same = [1, -1, 1, 1, -1]
    once = AnswerGraph.from_answers(ends, same)
    alike = AnswerGraph.from_answers(ends, same, weights=np.full(5, 7.0))
    np.testing.assert_allclose(log_likelihood(alike, GRID), log_likelihood(once, GRID))
    # Two components of weight 2 and one of weight 1 are worth 5^2 / 9 components.
    uneven = AnswerGraph.from_answers(ends, same, weights=[2.0, 2.0, 2.0, 2.0, 1.0])
    first, second = (np.log(GRID**k * (1 - GRID) ** (3 - k) + GRID ** (3 - k) * (1 - GRID) ** k) for k in (2, 3))
    expected = 5 / 9 * (2 * first + 2 * second + np.log(2 * GRID * (1 - GRID)))
    np.testing.assert_allclose(log_likelihood(uneven, GRID), expected)


def test_a_wider_spread_is_a_wider_interval():
    graph = AnswerGraph.from_answers([(0, k) for k in range(1, 40)], np.where(np.arange(39) < 30, 1, -1))
    value, low, high = profile(graph, 0.95)
    same, lower, higher = profile(graph, 0.95, spread=2.0)
    assert same == value
    # Twice the variance is about the square root of two times the width.
    assert (higher - lower) / (high - low) == pytest.approx(np.sqrt(2), abs=0.1)


def test_a_large_component_is_turned_as_the_model_says():
    """Of stars of 12 and of 9 points the first is large; the side of its centre is that of most decisions."""
    side = np.array([1] * 8 + [-1] * 4 + [1] * 9)
    ends = [(0, k) for k in range(1, 12)] + [(12, k) for k in range(13, 21)]
    same = [side[a] * side[b] for a, b in ends]
    graph = AnswerGraph.from_answers(ends, same)
    for sign in (1, -1):
        decision = sign * side * np.linspace(0.1, 3, 21)
        # One strong decision against four weak ones counts as one.
        decision[3] *= -50
        assert oriented(graph, decision).labels.tolist() == [sign] + 20 * [0]
    turned = oriented(graph, side)
    assert one_way(turned, np.arange(21) < 12)
    assert not one_way(turned, np.ones(21, dtype=bool))
    # A component with a label stays as it is.
    named = AnswerGraph.from_answers(ends, same, labels=np.r_[0, -1, np.zeros(19, dtype=int)])
    assert oriented(named, side).labels.tolist() == named.labels.tolist()


def test_where_answers_contradict_each_other_neighbours_turn_a_component():
    """A star asked twice, the first of its points answered both ways: the others outvote it."""
    ends = [(0, k) for k in range(1, 12)] + [(0, 1)]
    side = np.array([1] * 7 + [-1] * 5)
    same = [side[a] * side[b] for a, b in ends[:-1]] + [-1]
    graph = AnswerGraph.from_answers(ends, same)
    assert not graph.sides.any()
    assert oriented(graph, side).labels.tolist() == [1] + 11 * [0]
    assert oriented(graph, -side).labels.tolist() == [-1] + 11 * [0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_by_answers_alone(n_classes):
    labels = [-1, 0, 0] if n_classes == 2 else [1, 0, 0]
    graph = AnswerGraph.from_answers([(0, 1)], [True], labels=labels)
    sure = classes_by_answers(graph, None, n_classes)
    np.testing.assert_allclose(sure, [*[np.eye(n_classes)[0]] * 2, np.full(n_classes, 1 / n_classes)], atol=1e-12)
    half = classes_by_answers(graph, AnswerModel.given(0.2, graph), n_classes)
    others = 0.2 / (0.8 + 0.2 * (n_classes - 1))
    np.testing.assert_allclose(half[1], np.r_[1 - others * (n_classes - 1), np.full(n_classes - 1, others)])
    # Answered both ways: each answer is seldom wrong, so nothing is known.
    both = AnswerGraph.from_answers([(0, 1), (0, 1)], [True, False], labels=labels[:2])
    found = classes_by_answers(both, None, n_classes)[1]
    same = 0.05 * 0.95
    np.testing.assert_allclose(found, np.full(n_classes, same) / (n_classes * same))


def test_points_that_do_not_count_only_connect():
    """A chain of three whose middle was chosen: its ends are on one side, or on two."""
    counted = np.array([True, False, True])
    for second, expected in ((1, GRID**2 + (1 - GRID) ** 2), (-1, 2 * GRID * (1 - GRID))):
        graph = AnswerGraph.from_answers([(0, 1), (1, 2)], [1, second])
        np.testing.assert_allclose(log_likelihood(graph, GRID, counted=counted), np.log(expected))
        grid = GRID[1:]
        wrong = log_likelihood(graph, grid, AnswerModel.given(1e-7, graph), counted)
        np.testing.assert_allclose(wrong - wrong[0], np.log(expected[1:] / expected[1]), atol=2e-3)


def test_the_interval_is_that_of_clopper_and_pearson_on_known_sides():
    labels = np.repeat([1, -1], [30, 10])
    graph = AnswerGraph.from_answers(np.empty((0, 2), dtype=int), [], labels=labels)
    expected = 0.75, beta.ppf(0.05, 30, 11), beta.ppf(0.95, 31, 10)
    assert profile(graph, 0.9) == pytest.approx(expected, abs=1e-4)
    value, low, high = profile(AnswerGraph.from_answers([(0, k) for k in range(1, 8)], [1] * 7), 0.95)
    assert (value, high) == (1.0, 1.0)
    assert 0.5 < low < 0.75


def test_the_interval_of_loose_pairs_is_that_of_as_many_points_as_their_likelihood_is_worth():
    """Equation (4), with the ends of the likelihood ratio interval by root finding: 30 of 40 pairs are similar."""
    pairs = np.arange(80).reshape(-1, 2)
    value, low, high = profile(AnswerGraph.from_answers(pairs, np.arange(40) < 30), 0.95)

    def log_likelihood_at(p):
        return 30 * np.log(p**2 + (1 - p) ** 2) + 10 * np.log(2 * p * (1 - p))

    limit = chi2.ppf(0.95, 1)
    ends = [
        brentq(lambda p: 2 * (log_likelihood_at(value) - log_likelihood_at(p)) - limit, *around)
        for around in ((0.5 + 1e-6, value), (value, 1 - 1e-6))
    ]
    n = [limit / (2 * (value * np.log(value / p) + (1 - value) * np.log((1 - value) / (1 - p)))) for p in ends]
    assert max(n) < 80
    exact = beta.ppf(0.025, n[0] * value, n[0] * (1 - value) + 1), beta.ppf(0.975, n[1] * value + 1, n[1] * (1 - value))
    assert (low, high) == pytest.approx(exact, abs=2e-5)


def test_no_answers_say_more_of_points_than_their_classes_would():
    """200 answers about 60 points, a third of them wrong: belief propagation is sure of a share within 0.4%."""
    rng = np.random.default_rng(0)
    classes = np.where(rng.random(60) < 0.8, 1, -1)
    ends = rng.permuted(np.tile(np.arange(60), (200, 1)), axis=1)[:, :2]
    same = (classes[ends].prod(axis=1) > 0) ^ (rng.random(200) < 0.35)
    graph = AnswerGraph.from_answers(ends, same)
    value, low, high = profile(graph, 0.95)
    exact = beta.ppf([0.025, 0.975], [60 * value, 60 * value + 1], [60 * (1 - value) + 1, 60 * (1 - value)])
    assert low <= max(exact[0], 0.5) + 1e-9
    assert high >= exact[1] - 1e-9
