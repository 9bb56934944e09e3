"""What the first pass finds, how rows count, and answers that share points."""

import numpy as np
import pytest

from sdulearn import SDUClassifier, SDUClassifierCV, stack_pairs
from sdulearn.blocks.double_hinge import RoundedHinge, kinked_rows
from sdulearn.blocks.estimators import fit_classifier
from sdulearn.blocks.problem import RowRule, _draw, slope_sums
from sdulearn.errors import InputError
from sdulearn.losses import TRAINING_LOSSES, DoubleHinge, Logistic
from sdulearn.pairs import sources

from .conftest import deal


@pytest.mark.parametrize(("count", "weighted"), [(5, True), (100, False), (10_000, True)])
def test_a_sample_weighs_what_its_block_weighs(many, count, weighted):
    rows, codes = many
    weight = np.random.default_rng(0).random(len(codes)) if weighted else None
    drawn, its_codes, stands_for = _draw(rows, codes, weight, count)
    assert len(drawn) == len(its_codes) == len(stands_for) <= 3 * count
    whole = np.bincount(sources(codes), weights=weight, minlength=3)
    np.testing.assert_allclose(np.bincount(sources(its_codes), weights=stands_for, minlength=3), whole)


def test_above_the_limit_no_kinked_rows_are_given():
    rows = np.linspace(0.9, 1.1, 11)[:, None]
    rule = RowRule(np.zeros(1), False, np.full(3, 1.0), DoubleHinge())
    block = (rows, np.zeros(11, dtype=int), None, rule, [np.ones(1)], 1.0)
    found = kinked_rows(*block, 11)
    assert (found["given"], found["overflow"], len(found["rows"][0])) == (11, 0, 11)
    found = kinked_rows(*block, 10)
    assert (found["given"], found["overflow"], found["rows"]) == (11, 1, [])


@pytest.mark.parametrize("loss", [Logistic(), RoundedHinge(1.0, 0.3), RoundedHinge(1.0, 2.0)])
def test_sums_of_a_newton_step_are_derivatives(loss):
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.r_[np.ones(20), -np.ones(20), np.zeros(10)]).astype(int)
    rule = RowRule(np.array([0.1, 0.2, 0.3]), True, np.array([0.5, 0.3, 0.2]), loss)
    block = (rng.normal(size=(50, 3)), codes, rng.random(50), rule)
    w = rng.normal(size=4)
    step = 1e-6
    around = [[slope_sums(*block, w + sign * e, True) for sign in (1, -1)] for e in step * np.eye(4)]
    found = slope_sums(*block, w, True)
    slopes = [(up["value"] - down["value"]) / (2 * step) for up, down in around]
    np.testing.assert_allclose(found["slopes"], slopes, rtol=1e-5, atol=1e-7)
    second = np.array([(up["slopes"] - down["slopes"]) / (2 * step) for up, down in around])
    np.testing.assert_allclose(found["second"], second, rtol=1e-5, atol=1e-7)
    # A secant's curvature times z is the slope, row by row.
    careful = slope_sums(*block, w, True, careful=True)
    np.testing.assert_allclose(careful["second"] @ w, found["slopes"], rtol=1e-9)
    if isinstance(loss, RoundedHinge):
        z = np.array([-9.0, -3.5, 3.5, 9.0])
        np.testing.assert_allclose(loss.even(z), DoubleHinge().even(z))


@pytest.mark.parametrize("loss", TRAINING_LOSSES)
def test_a_given_prior_is_all_that_a_risk_needs(shared, loss):
    rows, y = shared
    model = SDUClassifier(loss=loss, prior=0.7, tol=1e-10)
    whole = SDUClassifier(loss=loss, prior=0.7, tol=1e-10).fit(rows, y)
    found = model._accept(fit_classifier(model, deal(rows, y)))
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-7)


def test_what_needs_the_graph_is_refused(shared):
    rows, y = shared
    with pytest.raises(InputError, match=r"The 120 answers share 59 points.*`prior=None`.*Give `prior`"):
        fit_classifier(SDUClassifier(), deal(rows, y))
    with pytest.raises(InputError, match=r"a choice by folds over points needs all of these.*in memory"):
        fit_classifier(SDUClassifierCV(prior=0.7), deal(rows, y))
    star = stack_pairs(rows[:31], [(0, k) for k in range(1, 31)], np.arange(30) % 3 > 0)
    with pytest.raises(InputError, match=r"Point 0 is in 30 of the 30 answers"):
        fit_classifier(SDUClassifier(prior=0.7), deal(*star))


def test_loose_pairs_with_points_are_as_without():
    rng = np.random.default_rng(0)
    rows, y = stack_pairs(rng.normal(size=(500, 3)), np.arange(200).reshape(-1, 2), np.arange(100) < 60)
    found = fit_classifier(SDUClassifierCV(), deal(rows, y))
    plain = fit_classifier(SDUClassifierCV(), deal(rows, y[:, 0]))
    np.testing.assert_array_equal(found.coef, plain.coef)
    assert found.prior == plain.prior


def test_portions_that_come_only_once(shared):
    rows, y = shared
    with pytest.raises(InputError, match=r"The 120 answers share 59 points.*Give `prior`"):
        SDUClassifier().partial_fit(rows, y)
    whole = SDUClassifier(prior=0.7).fit(rows, y)
    found = SDUClassifier(prior=0.7).partial_fit(rows[:100], y[:100]).partial_fit(rows[100:], y[100:])
    np.testing.assert_allclose(found.coef_, whole.coef_)
