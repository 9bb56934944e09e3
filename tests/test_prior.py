"""The likelihood of one probability for all points, and the prior and intervals that follow from it."""

import itertools
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from sdulearn import estimate_prior, stack_pairs
from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.prior import (
    PriorEstimate,
    classes_by_answers,
    clopper_pearson,
    effective_number,
    log_likelihood,
    one_way,
    oriented,
    prior_from_share,
    profile,
    share_of,
)
from sdulearn.risks import dissimilar_share, similar_share

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


@given(st.floats(0.5, 1), st.floats(0, 0.45))
def test_there_and_back(p, e):
    # Slip 3 of the paper: 2 ps - 1 is (p - q)^2, with the square.
    assert similar_share(p) + dissimilar_share(p) == pytest.approx(1)
    assert 2 * similar_share(p) - 1 == pytest.approx((2 * p - 1) ** 2, abs=1e-12)
    assert prior_from_share(similar_share(p)) == pytest.approx(p, abs=1e-7)
    # Wrong answers exchange the two kinds.
    similar = similar_share(p) * (1 - e) + dissimilar_share(p) * e
    assert estimate_prior(similar, 1 - similar, error_rate=e).value == pytest.approx(p, abs=1e-6)


@given(st.integers(0, 300), st.integers(0, 300))
def test_interval_holds_the_value_and_mirrors(n_similar, n_dissimilar):
    if n_similar + n_dissimilar == 0:
        return
    estimate = estimate_prior(n_similar, n_dissimilar)
    assert 0.5 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.identified == (estimate.low > 0.5)
    mirror = estimate_prior(n_similar, n_dissimilar, majority="negative")
    assert mirror == estimate.mirrored()
    assert astuple(mirror)[:4] == (1 - estimate.value, 1 - estimate.high, 1 - estimate.low, estimate.identified)


@pytest.mark.parametrize("p", [0.6, 0.7, 0.9])
def test_coverage_is_exact_at_least(p):
    estimates = [estimate_prior(k, 120 - k, confidence=0.9) for k in range(121)]
    covered = [one.low <= p <= one.high for one in estimates]
    assert 0.9 <= binom.pmf(np.arange(121), 120, similar_share(p)) @ covered < 0.97
    low, high = clopper_pearson(30, 20, 0.9)
    assert binom.sf(29, 50, low) == pytest.approx(0.05)
    assert binom.cdf(30, 50, high) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_similar": -1, "n_dissimilar": 3}, "`n_similar` must be a number of pairs"),
        ({"n_similar": 1, "n_dissimilar": np.nan}, "`n_dissimilar` must be a number of pairs"),
        ({"n_similar": 0, "n_dissimilar": 0}, "No pairs"),
        ({"n_similar": 1, "n_dissimilar": 1, "confidence": 1.0}, "`confidence` must lie between"),
        ({"n_similar": 1, "n_dissimilar": 1, "n_effective": np.nan}, "`n_effective` must be a number"),
        ({"n_similar": 1, "n_dissimilar": 1, "majority": "+"}, "'positive' or 'negative'"),
        ({"n_similar": 3}, "counts .* both of them"),
        ({"n_similar": 3, "n_dissimilar": 1, "decision": [1.0]}, "`decision` is about the rows of `y`"),
        ({"n_similar": 3, "n_dissimilar": 1, "error_rate": {0: 0.1}}, "`error_rate` is one number"),
        ({"n_similar": 3, "y": [1, 1]}, "Give either `y` or the counts"),
        ({"y": [1, 1], "sample_weight": [0, 0]}, "All weights in `sample_weight` are zero"),
        ({"y": [1, 1], "sample_weight": [np.nan, np.nan]}, "`sample_weight` must"),
        ({"y": [1, 1], "sample_weight": [0, 1]}, "weigh 0 and 1.*weight 0 on both leaves it out"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        estimate_prior(**arguments)


def test_counts_have_a_value_where_similar_pairs_are_more_frequent():
    assert [estimate_prior(n, 50).has_value for n in (49, 50, 51)] == [False, False, True]
    assert PriorEstimate.given(0.5).has_value
    assert PriorEstimate.given(0.3) == PriorEstimate(0.3, 0.3, 0.3, True)


def test_the_unit_of_weights_does_not_set_the_width_of_the_interval():
    counted = estimate_prior(80, 70)
    weighed = estimate_prior(8000, 7000, n_effective=150)
    assert astuple(weighed)[:4] == pytest.approx(astuple(counted)[:4])
    assert (weighed.n_similar, weighed.n_dissimilar) == (8000, 7000)
    weight = np.array([9.0] * 10 + [1.0] * 90)
    assert effective_number(weight.sum(), weight @ weight) == pytest.approx(180**2 / (810 + 90))
    assert effective_number(7.0, 7.0) == 7
    assert effective_number(1e200, 1e300) == pytest.approx(1e100)
    codes = np.repeat(np.where(np.arange(100) < 60, 1, -1) * np.arange(1, 101), 2)
    assert estimate_prior(y=codes) == estimate_prior(60, 40)
    weighed = estimate_prior(y=codes, sample_weight=np.repeat(weight, 2), majority="negative")
    # 140 and 40 by weight, worth 180^2 / 900 = 36 answers.
    assert astuple(weighed) == pytest.approx(astuple(estimate_prior(28, 8, majority="negative")))


@pytest.mark.parametrize("error_rate", [None, 0.1])
@pytest.mark.parametrize("linked", [True, False])
def test_labels_say_which_class_is_larger(error_rate, linked):
    """60 points, 42 of one class; labels of points in answers name it, labels of other points do not."""
    rng = np.random.default_rng(0)
    truth = np.where(rng.permutation(60) < 42, -1, 1)
    ends = rng.permuted(np.tile(np.arange(60), (150, 1)), axis=1)[:, :2]
    same = truth[ends].prod(axis=1)
    labels = np.zeros(70, dtype=int)
    places = [0, 1, 2] if linked else [60, 61, 62]
    labels[places] = truth[:3] if linked else [-1, -1, 1]
    plain = estimate_prior(y=AnswerGraph.from_answers(ends, same, n_points=70), error_rate=error_rate)
    for sign in (1, -1):
        graph = AnswerGraph.from_answers(ends, same, labels=sign * labels)
        for majority in ("positive", "negative"):
            estimate = estimate_prior(y=graph, error_rate=error_rate, majority=majority)
            larger_is_negative = sign > 0 if linked else majority == "negative"
            assert estimate == (plain.mirrored() if larger_is_negative else plain)
    with pytest.raises(ValueError, match="labels -1 and \\+1"):
        estimate_prior(y=AnswerGraph.from_answers(ends, same, labels=3 * (labels != 0)))


def test_labels_weigh_what_their_rows_weigh():
    """Nine of eleven by weight, worth 11^2 / 29 labels of one weight."""
    y = np.column_stack([np.zeros(5, dtype=int), np.arange(5), np.zeros(5, dtype=int), [1, 1, 1, -1, -1]])
    values = log_likelihood(AnswerGraph.from_y(y, [3.0, 3.0, 3.0, 1.0, 1.0]), GRID)
    np.testing.assert_allclose(values, 11 / 29 * (9 * np.log(GRID) + 2 * np.log(1 - GRID)))


def star(truth):
    """Answers about the first point and each other, all true."""
    others = np.arange(1, len(truth))
    points = np.column_stack([np.zeros_like(others), others]).ravel()
    return np.column_stack([np.repeat(truth[0] * truth[1:] * others, 2), points])


def test_the_interval_of_a_hub_of_20_covers_at_every_prior():
    """By enumeration: j of the 20 others are on the side of the hub."""
    found = [estimate_prior(y=star(np.where(np.arange(21) <= j, 1, -1))) for j in range(21)]
    low, high = np.array([(one.low, one.high) for one in found]).T
    j = np.arange(21)
    for p in np.linspace(0.5, 0.99, 50):
        chance = p * binom.pmf(j, 20, p) + (1 - p) * binom.pmf(j, 20, 1 - p)
        assert chance @ ((low <= p) & (p <= high)) > 0.945


def test_points_that_were_chosen_do_not_tell_the_prior():
    """A star of which the 40 random points are on one side 28 times, and the 60 chosen ones half of the time."""
    sides = np.repeat([1, 1, -1, 1, -1], [1, 28, 12, 30, 30])
    y = star(sides)
    random = np.isin(y[:, 1], np.arange(1, 41))
    found = estimate_prior(y=y, random_points=random)
    assert found.value == pytest.approx(0.7, abs=1e-3)
    assert (found.n_similar, found.n_dissimilar) == (28, 12)
    assert estimate_prior(y=y).value < 0.6
    # A model says which side is class +1.
    for sign in (1, -1):
        known = estimate_prior(y=y, random_points=random, decision=sign * sides[y[:, 1]])
        assert known.value == pytest.approx(0.5 + sign * 0.2)
        assert (known.low, known.high) == pytest.approx(clopper_pearson(*((28, 12)[::sign]), 0.95))
    with pytest.raises(ValueError, match="marks no row of an answer"):
        estimate_prior(y=y, random_points=np.zeros(200, dtype=bool))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_likelihood_of_a_share_is_right_on_average(n_classes):
    """By enumeration: a point is asked about the classes in turn until one is said to be its own."""
    e = 0.2
    share = 0.75
    chances, weights = [], []
    for first, truth in itertools.product(range(n_classes), repeat=2):
        # Class 0 is the one that is predicted.
        order = np.roll(np.arange(n_classes), -first)
        p_truth = share if truth == 0 else (1 - share) / (n_classes - 1)
        for n_different in range(n_classes + 1):
            said = np.arange(n_different + 1)[:n_classes] == n_different
            right = said == (np.arange(n_classes)[:, None] == order[: len(said)])
            likelihood = np.where(right, 1 - e, e).prod(axis=1)
            chances.append(likelihood / likelihood.sum())
            weights.append(p_truth / n_classes * likelihood[truth])
    counts = np.round(np.array(weights) * 40_000).astype(int)
    repeated = np.repeat(chances, counts, axis=0)
    value, low, high = share_of(repeated, np.zeros(len(repeated), dtype=int), 0.95)
    assert value == pytest.approx(share, abs=2e-3)
    # Forty thousand points.
    assert (low, high) == pytest.approx((value, value), abs=0.02)
    assert low < share < high


def test_errors_that_depend_on_the_two_classes_widen_the_interval():
    """48 of 60 points are of one class, and 45% of the answers about two of these are wrong, 5% of the others."""
    rng = np.random.default_rng(3)
    ends = rng.permuted(np.tile(np.arange(60), (200, 1)), axis=1)[:, :2]
    larger = (ends < 48).sum(axis=1)
    same = (larger != 1) ^ (rng.random(200) < np.array([0.05, 0.05, 0.45])[larger])
    y = np.asarray(AnswerGraph.from_answers(ends, same))
    found = estimate_prior(y=y)
    assert found.low < 0.8 < found.high
    # At a given rate nobody's errors depend on them.
    assert estimate_prior(y=y, error_rate=0.1).high < found.high


def test_only_random_points_say_which_class_is_larger():
    """Points that were chosen are mostly of the smaller class; a labelled example tells which class is which."""
    same = np.repeat([True, False, True, False], [14, 6, 3, 27])
    star = np.column_stack([np.zeros(50, dtype=int), np.arange(1, 51)])
    for label in (1, -1):
        labels = np.where(np.arange(51) == 0, label, np.nan)
        _, y = stack_pairs(np.zeros((51, 1)), star, same, labels=labels, unlabeled=None)
        estimate = estimate_prior(y=y, random_points=np.isin(y[:, 1], np.arange(1, 21)))
        assert estimate.value == pytest.approx(0.7 if label > 0 else 0.3, abs=0.01)
