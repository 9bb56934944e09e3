import itertools
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from sdulearn import estimate_prior
from sdulearn.answers import AnswerGraph
from sdulearn.prior import (
    PriorEstimate,
    clopper_pearson,
    effective_number,
    prior_from_share,
    share_of,
)
from sdulearn.risks import dissimilar_share, similar_share


@given(st.floats(0.5, 1))
def test_there_and_back(p):
    # Slip 3 of the paper: 2 ps - 1 is (p - q)^2, with the square.
    assert similar_share(p) + dissimilar_share(p) == pytest.approx(1)
    assert 2 * similar_share(p) - 1 == pytest.approx((2 * p - 1) ** 2, abs=1e-12)
    assert prior_from_share(similar_share(p)) == pytest.approx(p, abs=1e-7)


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
        ({"n_similar": 3}, "Give both counts"),
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


def star(truth):
    """Answers about the first point and each other, all true."""
    others = np.arange(1, len(truth))
    points = np.column_stack([np.zeros_like(others), others]).ravel()
    return np.column_stack([np.repeat(truth[0] * truth[1:] * others, 2), points])


def test_a_star_tells_the_share_of_its_larger_side():
    truth = np.where(np.arange(100) < 80, 1, -1)
    found = estimate_prior(y=star(truth))
    assert found.value == pytest.approx(0.8, abs=1e-3)
    # The mirror image is so unlikely that the interval is the binomial one.
    assert (found.low, found.high) == pytest.approx(clopper_pearson(80, 20, 0.95), abs=1e-4)
    assert found.n_effective == 99
    assert found.identified
    assert estimate_prior(y=star(truth), majority="negative").value == pytest.approx(0.2, abs=1e-3)


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
