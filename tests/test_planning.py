"""Plans: simulated populations have the requested ceiling, curves rise to it, theory stands beside them."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import binom

from sdulearn.bounds import order_probability, recommended_gamma
from sdulearn.datasets import FeaturePopulation, GaussianPopulation
from sdulearn.planning import Curve, simulate_plan


@pytest.fixture(scope="module")
def plan():
    return simulate_plan(prior=0.7, sizes=(25, 100, 400, 1600), n_features=4, n_repeats=2)


@pytest.fixture(scope="module")
def features():
    rng = np.random.default_rng(0)
    return rng.normal(size=(600, 5)) @ rng.normal(size=(5, 5)) + 3


@pytest.mark.parametrize(("prior", "ceiling"), [(0.5, 0.8), (0.7, 0.9), (0.9, 0.92), (0.6, 0.99)])
def test_no_linear_model_beats_the_ceiling(features, prior, ceiling):
    gaussian = GaussianPopulation(prior, ceiling, n_features=3)
    bayes = 2 * gaussian.mean, math.log(prior / (1 - prior))
    assert gaussian.accuracy(*bayes) == pytest.approx(ceiling)
    for coef, intercept in ((bayes[0], bayes[1] + 0.3), (bayes[0] + [0.5, 0, 0], bayes[1])):
        assert gaussian.accuracy(coef, intercept) < ceiling
    population = FeaturePopulation(features, prior, ceiling)
    rows, pairs, _, unlabeled, accuracy = population.draw(100, 50, np.random.default_rng(0))
    # The first numbers of the same generator are the direction.
    direction = np.random.default_rng(0).normal(size=5)
    score = rows @ direction
    best = max(accuracy(direction, shift) for shift in np.linspace(-score.max(), -score.min(), 500))
    assert best == pytest.approx(ceiling, abs=2e-3)
    rng = np.random.default_rng(1)
    assert max(accuracy(rng.normal(size=5), rng.normal()) for _ in range(100)) < ceiling + 1e-3
    assert accuracy(np.zeros(5), 1.0) == pytest.approx(prior, abs=1e-6)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert len(np.unique(unlabeled)) == 50
    # Pairs are random, with the shares of similar ones that the prior implies.
    for each in (population, gaussian):
        shares = [each.draw(400, 10, np.random.default_rng(seed))[2].mean() for seed in range(20)]
        assert np.mean(shares) == pytest.approx(prior**2 + (1 - prior) ** 2, abs=0.02)
        assert np.std(shares) > 0.005


def test_a_plan_rises_to_the_ceiling_beside_its_theory(plan):
    joint, sddu = plan.curves
    assert (joint.method, sddu.method) == ("joint", "sddu")
    assert all(a > b for a, b in zip(joint.accuracy[:3], sddu.accuracy[:3], strict=True))
    for curve in plan.curves:
        assert curve.accuracy[0] < curve.accuracy[-1] < plan.ceiling
        assert curve.accuracy[-1] > plan.ceiling - 0.02
        assert curve.error[-1] < curve.error[0] + 0.01
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


def test_the_same_seed_gives_the_same_plan_and_the_names_of_the_classes_do_not_matter():
    options = {"n_features": 4, "n_repeats": 2, "methods": ("sddu",)}
    once = simulate_plan(prior=0.7, sizes=(25, 100), **options)
    assert simulate_plan(prior=0.3, sizes=(100, 25, 25), **options) == once
    assert simulate_plan(prior=0.7, sizes=(25, 100), **options, random_state=1).curves != once.curves


def test_the_crossing_is_interpolated_in_the_logarithm(plan):
    curve = Curve("joint", (0.72, 0.80, 0.78, 0.88), (0.0,) * 4, (0.0,) * 4)
    drawn = dataclasses.replace(plan, curves=(curve,))
    needed = {target: drawn.pairs_needed(target).n_pairs for target in (0.71, 0.755, 0.79, 0.835, 0.88, 0.89)}
    # 0.80 and 0.78 are made level at 0.79.
    assert needed == {0.71: 25, 0.755: 50, 0.79: 100, 0.835: 800, 0.88: 1600, 0.89: math.inf}
    noisy = dataclasses.replace(plan, curves=(dataclasses.replace(curve, error=(0.01,) * 4),))
    answer = noisy.pairs_needed(0.87)
    assert 25 < answer.low < answer.n_pairs < answer.high == math.inf
    with pytest.raises(ValueError, match="no curve of `method='su'`, only of"):
        plan.pairs_needed(0.8, "su")


def test_a_plan_says_from_what_and_more_features_or_a_lower_ceiling_need_more_pairs(features):
    options = {"prior": 0.7, "methods": ("sddu",), "sizes": (50, 200, 800), "n_repeats": 3}
    wide = np.random.default_rng(0).random((300, 1500)) < 0.02
    changes = ({"n_features": 3}, {"n_features": 30}, {"n_features": 3, "ceiling": 0.82})
    few, many, hard = plans = [simulate_plan(**options, **more) for more in changes]
    needed = [each.pairs_needed(0.8, "sddu") for each in plans]
    assert needed[0].n_pairs < min(needed[1].n_pairs, needed[2].n_pairs)
    assert needed[0].plan is few
    assert [(each.n_rows, each.n_features, each.n_axes) for each in plans] == [(None, n, n) for n in (3, 30, 3)]
    assert (many.ceiling, hard.ceiling) == pytest.approx((0.9, 0.82))
    options |= {"sizes": (50,), "n_repeats": 2}
    own = simulate_plan(**options, X=features)
    assert (own.n_rows, own.n_features, own.n_axes, own.n_unlabeled) == (600, 5, 5, 500)
    # Wide and sparse features are cut to size.
    cut = simulate_plan(**options, X=csr_matrix(wide, dtype=float))
    assert (cut.n_rows, cut.n_features, cut.n_axes, cut.n_unlabeled) == (300, 1500, 100, 300)
    assert cut.curves == simulate_plan(**options, X=wide).curves


def test_at_one_half_the_joint_method_plans_with_named_classes():
    plan = simulate_plan(prior=0.5, methods=("joint",), sizes=(300,), n_features=3, n_repeats=2)
    assert plan.curves[0].accuracy[0] > 0.8
    (row,) = plan.rows
    assert (row.order_bound, row.order_probability, row.recommended_gamma) == (None, None, None)
    assert row.no_value_probability == pytest.approx(binom.cdf(150, 300, 0.5))


def test_draws_without_an_answer_count_as_the_larger_class():
    options = {"prior": 0.55, "methods": ("sddu",), "sizes": (30,), "n_repeats": 8}
    assert 0 < simulate_plan(**options).curves[0].unfitted[0] < 1
    rare = simulate_plan(prior=0.99, sizes=(10,), n_repeats=3).curves[1]
    assert (rare.unfitted[0], rare.accuracy[0]) == (1, pytest.approx(0.99))
    # Answers about few rows may imply no prior though there are more similar ones: such a draw is not fitted.
    options |= {"sizes": (200,), "n_repeats": 12, "n_unlabeled": 20}
    few = simulate_plan(**options, X=np.random.default_rng(0).normal(size=(40, 3))).curves[0]
    assert np.isfinite(few.accuracy).all()
    assert few.unfitted[0] > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": 1.2}, "`prior` must lie strictly between 0 and 1"),
        ({"prior": 0.5}, "Plan for 'joint'.*PairLogisticRegression"),
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
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError, match=message):
        simulate_plan(**{"prior": 0.7, "sizes": (50,), "n_repeats": 1, **change})
