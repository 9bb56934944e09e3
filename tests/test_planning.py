import dataclasses
import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit
from scipy.stats import binom

from sdulearn import planning
from sdulearn.bounds import order_probability, recommended_gamma
from sdulearn.datasets import (
    FeaturePopulation,
    GaussianPopulation,
    gaussian_accuracy,
    gaussian_distance,
    logistic_scores,
)
from sdulearn.planning import simulate_plan


@pytest.fixture(scope="module")
def plan():
    return simulate_plan(prior=0.7, sizes=(25, 100, 400, 1600), n_features=4, n_repeats=3)


@pytest.fixture(scope="module")
def features():
    rng = np.random.default_rng(0)
    return rng.normal(size=(600, 5)) @ rng.normal(size=(5, 5)) + 3


def source(plan):
    return plan.n_rows, plan.n_features, plan.n_axes, plan.direction


@pytest.mark.parametrize(("prior", "ceiling"), [(0.5, 0.8), (0.7, 0.9), (0.9, 0.92), (0.6, 0.99)])
def test_gaussian_classes_have_the_ceiling_asked_for(prior, ceiling):
    distance = gaussian_distance(prior, ceiling)
    assert gaussian_accuracy(distance, prior) == pytest.approx(ceiling)
    population = GaussianPopulation(prior, ceiling, n_features=3)
    bayes = 2 * population.mean, math.log(prior / (1 - prior))
    assert population.accuracy(*bayes) == pytest.approx(ceiling)
    for coef, intercept in ((bayes[0], bayes[1] + 0.3), (bayes[0] + [0.5, 0, 0], bayes[1])):
        assert population.accuracy(coef, intercept) < ceiling


@pytest.mark.parametrize(("prior", "ceiling"), [(0.5, 0.75), (0.7, 0.9), (0.9, 0.95)])
def test_logistic_classes_have_the_prior_and_the_ceiling_asked_for(prior, ceiling):
    t = np.random.default_rng(0).gamma(2, size=500)
    s = expit(logistic_scores(t, prior, ceiling))
    assert np.mean(s) == pytest.approx(prior, abs=1e-6)
    assert np.mean(np.maximum(s, 1 - s)) == pytest.approx(ceiling, abs=1e-3)


def test_no_linear_model_beats_the_ceiling_on_the_user_s_rows(features):
    population = FeaturePopulation(features, 0.7, 0.9, "principal")
    _, pairs, _, unlabeled, accuracy = population.draw(100, 50, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    best = max(accuracy(rng.normal(size=5), rng.normal()) for _ in range(300))
    assert best <= 0.9 + 1e-3
    assert best > 0.75
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert len(np.unique(unlabeled)) == 50
    # Pairs are random, with the shares of similar ones that the prior implies.
    for each in (population, GaussianPopulation(0.7, 0.9, 2)):
        shares = [each.draw(400, 10, np.random.default_rng(seed))[2].mean() for seed in range(20)]
        assert np.mean(shares) == pytest.approx(0.58, abs=0.02)
        assert np.std(shares) > 0.01


def test_a_plan_rises_to_the_ceiling(plan):
    for curve in plan.curves:
        assert curve.accuracy[0] < curve.accuracy[-1] < plan.ceiling
        assert curve.accuracy[-1] > plan.ceiling - 0.02
        assert curve.error[-1] < curve.error[0] + 0.01
    joint, sddu = plan.curves
    assert (joint.method, sddu.method) == ("joint", "sddu")
    assert all(a > b for a, b in zip(joint.accuracy[:3], sddu.accuracy[:3], strict=True))


def test_what_counts_and_theory_say_in_a_plan(plan):
    assert plan.sizes == (25, 100, 400, 1600)
    widths = [row.prior.high - row.prior.low for row in plan.rows]
    assert widths == sorted(widths, reverse=True)
    assert plan.rows[1].no_value_probability == pytest.approx(binom.cdf(50, 100, 0.58))
    for row in plan.rows:
        assert row.prior.value == pytest.approx(0.7)
        assert row.order_bound == order_probability(row.n_pairs, 0.7)
        assert row.order_bound <= row.order_probability == order_probability(row.n_pairs, 0.7, exact=True)
        counts = {"n_similar": 0.58 * row.n_pairs, "n_dissimilar": 0.42 * row.n_pairs, "n_unlabeled": 500}
        assert row.recommended_gamma == pytest.approx(recommended_gamma("sddu", **counts, prior=0.7))
    half = planning.expected_row(100, 0.5, 500)
    assert (half.order_bound, half.order_probability, half.recommended_gamma) == (None, None, None)
    assert half.no_value_probability == pytest.approx(binom.cdf(50, 100, 0.5))


def test_the_same_seed_gives_the_same_plan_and_the_names_of_the_classes_do_not_matter(plan):
    options = {"n_features": 4, "n_repeats": 2, "methods": ("sddu",)}
    once = simulate_plan(prior=0.7, sizes=(25, 100), **options)
    assert simulate_plan(prior=0.3, sizes=(100, 25, 25), **options) == once
    other = simulate_plan(prior=0.7, sizes=(25,), methods=("sddu",), n_repeats=3, random_state=1)
    assert other.curves[0].accuracy != plan.curves[1].accuracy[:1]


def test_the_crossing_is_interpolated_in_the_logarithm(plan):
    curve = planning.Curve("joint", (0.72, 0.80, 0.78, 0.88), (0.0,) * 4, (0.0,) * 4)
    drawn = dataclasses.replace(plan, curves=(curve,))
    needed = {target: drawn.pairs_needed(target).n_pairs for target in (0.71, 0.755, 0.79, 0.835, 0.88, 0.89)}
    # 0.80 and 0.78 are made level at 0.79.
    assert needed == {0.71: 25, 0.755: 50, 0.79: 100, 0.835: 800, 0.88: 1600, 0.89: math.inf}
    noisy = dataclasses.replace(plan, curves=(dataclasses.replace(curve, error=(0.01,) * 4),))
    answer = noisy.pairs_needed(0.87)
    assert 25 < answer.low < answer.n_pairs < answer.high == math.inf
    # More for higher targets, as the curve itself has it.
    answers = [plan.pairs_needed(target, "sddu") for target in (0.71, 0.8, 0.89)]
    assert all(25 <= answer.low <= answer.n_pairs <= answer.high for answer in answers)
    assert answers[0].n_pairs < answers[1].n_pairs < answers[2].n_pairs
    with pytest.raises(ValueError, match="no curve of `method='su'`, only of"):
        plan.pairs_needed(0.8, "su")


def test_a_plan_says_from_what_and_more_features_or_a_lower_ceiling_need_more_pairs(features):
    options = {"prior": 0.7, "methods": ("sddu",), "sizes": (50, 200, 800), "n_repeats": 4}
    plans = [simulate_plan(**options, **more) for more in (
        {"n_features": 3}, {"n_features": 30}, {"n_features": 3, "ceiling": 0.82}, {"X": features, "known_prior": True},
    )]  # fmt: skip
    base, wide, hard, _ = (plan.pairs_needed(0.8, "sddu") for plan in plans)
    assert base.n_pairs < min(wide.n_pairs, hard.n_pairs)
    assert base.plan is plans[0]
    assert [source(plan) for plan in plans[:2]] == [(None, 3, 3, None), (None, 30, 30, None)]
    assert source(plans[3]) == (600, 5, 5, "random")
    assert [plan.known_prior for plan in plans] == [False, False, False, True]
    assert [plan.ceiling for plan in plans] == pytest.approx([0.9, 0.9, 0.82, 0.9])
    assert not any(plan.oriented for plan in plans)


def test_at_one_half_the_joint_method_plans_with_named_classes():
    plan = simulate_plan(prior=0.5, methods=("joint",), sizes=(300,), n_features=3, n_repeats=2)
    assert plan.curves[0].accuracy[0] > 0.8
    assert plan.oriented
    with pytest.raises(ValueError, match="PairLogisticRegression"):
        simulate_plan(prior=0.5, sizes=(50,))


def test_draws_without_an_answer_count_as_the_larger_class():
    options = {"methods": ("sddu",), "sizes": (30,), "n_repeats": 8}
    assert 0 < simulate_plan(prior=0.55, **options).curves[0].unfitted[0] < 1
    assert simulate_plan(prior=0.55, known_prior=True, **options).curves[0].unfitted[0] == 0
    rare = simulate_plan(prior=0.99, sizes=(10,), n_repeats=3).curves[1]
    assert (rare.unfitted[0], rare.accuracy[0]) == (1, pytest.approx(0.99))
    # Answers about few rows may imply no prior though there are more similar ones: such a draw is not fitted.
    X = np.random.default_rng(0).normal(size=(40, 3))
    options |= {"sizes": (200,), "n_repeats": 12, "n_unlabeled": 20}
    few = simulate_plan(prior=0.55, X=X, **options).curves[0]
    assert np.isfinite(few.accuracy).all()
    assert few.unfitted[0] > 0


def test_wide_and_sparse_features_are_cut_to_size():
    rng = np.random.default_rng(0)
    X = (rng.random((300, 1500)) < 0.02).astype(float)
    options = {"prior": 0.7, "methods": ("sddu",), "sizes": (50,), "n_repeats": 2}
    plan = simulate_plan(X=csr_matrix(X), **options)
    assert source(plan) == (300, 1500, 100, "random")
    assert plan.curves == simulate_plan(X=X, **options).curves
    assert plan.n_unlabeled == 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": 1.2}, "`prior` must lie strictly between 0 and 1"),
        ({"target_accuracy": 0.95}, "out of reach: .* 90.0% of the time.*raise `ceiling`"),
        ({"target_accuracy": 0.7}, "needs no pairs: always predicting the larger class is right 70.0%"),
        ({"target_accuracy": 85}, "`target_accuracy` must lie between 0 and 1, such as 0.85"),
        ({"ceiling": 0.6}, "`ceiling`, the accuracy of the best possible classifier, must lie between 0.701"),
        ({"ceiling": 1.0}, "and 0.999"),
        ({"methods": ("su",)}, r"Unknown `methods` \['su'\]; choose from"),
        ({"sizes": ()}, "each 10 or more"),
        ({"sizes": (3, 50)}, "each 10 or more"),
        ({"n_repeats": 0}, "`n_repeats` must be 1 or more"),
        ({"n_features": 0}, "`n_features` must be 1 or more"),
        ({"X": np.ones((50, 2))}, "too few different values.*Give a lower `ceiling`"),
        ({"X": np.ones((5, 2))}, "minimum of 20 is required"),
        ({"X": np.full((50, 2), np.nan)}, "NaN"),
        ({"X": np.ones((50, 2)), "direction": "up"}, "'random' or 'principal'"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        simulate_plan(**{"prior": 0.7, "sizes": (50,), "n_repeats": 1, **change})
