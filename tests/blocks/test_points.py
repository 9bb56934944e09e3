"""Answers that share points, in blocks: what does not need their graph is done, what needs it is refused."""

import numpy as np
import pandas as pd
import pytest

from sdulearn import SDUClassifier, SDUClassifierCV, stack_pairs
from sdulearn.blocks import LocalBlocks, fit_classifier, fit_classifier_cv
from sdulearn.blocks.points import PointCounts, codes_of, known_of_rows
from sdulearn.errors import InputError
from sdulearn.losses import TRAINING_LOSSES


@pytest.fixture(scope="module")
def shared():
    """120 answers about 59 points, and 200 further rows."""
    rng = np.random.default_rng(0)
    truth = rng.random(260) < 0.7
    X = rng.normal(size=(260, 3)) + 1.5 * truth[:, None]
    ends = np.array([rng.choice(60, 2, replace=False) for _ in range(120)])
    return stack_pairs(X, ends, truth[ends[:, 0]] == truth[ends[:, 1]])


def blocks_of(rows, y, n=4):
    order = np.array_split(np.random.default_rng(1).permutation(len(y)), n)
    return LocalBlocks([lambda part=part: [(rows[part], y[part], None)] for part in order])


def test_points_add_up_over_blocks(shared):
    _, y = shared
    whole = PointCounts.of(y)
    first, *others = (PointCounts.of(part) for part in np.array_split(y, 7))
    summed = sum(others, start=first)
    np.testing.assert_array_equal(summed.points, whole.points)
    np.testing.assert_array_equal(summed.counts, whole.counts)
    assert whole.shared
    assert whole.counts.sum() == 240
    # Each end is of another answer in the first of these, of one that comes again in the second.
    assert not PointCounts.of(np.array([[1, 4], [1, 5], [0, 4]])).shared
    assert (PointCounts.of(np.array([[1, 4]])) + PointCounts.of(np.array([[-2, 4]]))).shared
    assert not PointCounts.of(y[:, 0]).shared


def test_what_is_known_of_a_block():
    frame = pd.DataFrame({"annotator": [7, 7], "point": [3, 4], "answer": [1, 1]})
    np.testing.assert_array_equal(known_of_rows(frame), [[1, 3, 7], [1, 4, 7]])
    np.testing.assert_array_equal(known_of_rows([1, 1, 0]), [1, 1, 0])
    np.testing.assert_array_equal(codes_of(known_of_rows([[1, 3, 0, 1], [1, 4, 0, 1]])), [1, 1])


@pytest.mark.parametrize("loss", TRAINING_LOSSES)
def test_a_given_prior_is_all_that_a_risk_needs(shared, loss):
    rows, y = shared
    model = SDUClassifier(loss=loss, prior=0.7, tol=1e-10)
    whole = SDUClassifier(loss=loss, prior=0.7, tol=1e-10).fit(rows, y)
    found = model._accept(fit_classifier(model, blocks_of(rows, y)))
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-7)


def test_what_needs_the_graph_is_refused(shared):
    rows, y = shared
    with pytest.raises(InputError, match=r"The 120 answers share 59 points.*`prior=None`.*Give `prior`"):
        fit_classifier(SDUClassifier(), blocks_of(rows, y))
    with pytest.raises(InputError, match=r"a choice by folds over points needs all of these.*in memory"):
        fit_classifier_cv(SDUClassifierCV(prior=0.7), blocks_of(rows, y))
    star = stack_pairs(rows[:31], [(0, k) for k in range(1, 31)], np.arange(30) % 3 > 0)
    with pytest.raises(InputError, match=r"Point 0 is in 30 of the 30 answers"):
        fit_classifier(SDUClassifier(prior=0.7), blocks_of(*star))


def test_loose_pairs_with_points_are_as_without():
    rng = np.random.default_rng(0)
    rows, y = stack_pairs(rng.normal(size=(500, 3)), np.arange(200).reshape(-1, 2), np.arange(100) < 60)
    found = fit_classifier_cv(SDUClassifierCV(), blocks_of(rows, y))
    plain = fit_classifier_cv(SDUClassifierCV(), blocks_of(rows, y[:, 0]))
    np.testing.assert_array_equal(found.coef, plain.coef)
    assert found.prior == plain.prior


def test_portions_that_come_only_once(shared):
    rows, y = shared
    with pytest.raises(InputError, match=r"The answers of this portion share points.*Give `prior`"):
        SDUClassifier().partial_fit(rows, y)
    whole = SDUClassifier(prior=0.7).fit(rows, y)
    found = SDUClassifier(prior=0.7).partial_fit(rows[:100], y[:100]).partial_fit(rows[100:], y[100:])
    np.testing.assert_allclose(found.coef_, whole.coef_)
