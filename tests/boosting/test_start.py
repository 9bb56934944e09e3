"""The linear start: what it sees of rows, and folds that name the classes in their own way."""

import numpy as np
import pytest

from sdulearn.boosting.start import MOST_LOGIT, Features, LinearScore, ScoreFit


def plain_features(width):
    """Columns as they are."""
    return Features(np.zeros(width, dtype=int), np.zeros(width), np.ones(width))


def plain_score(coef):
    return LinearScore(plain_features(len(coef)), coef, np.zeros(coef.shape[1:]))


@pytest.mark.parametrize("change", [1, -1, [0, 1, 2], [2, 0, 1], [1, 0, 2]])
def test_a_fold_is_named_as_the_model_of_all_answers(change):
    """A change of sign of two classes, another order of more."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(60, 4))
    coef = 3 * rng.normal(size=4 if isinstance(change, int) else (4, 3))
    close = coef + 0.1 * rng.normal(size=coef.shape)
    score = plain_score(change * close if isinstance(change, int) else close[:, change])
    np.testing.assert_array_equal(score.named_like(A, A @ coef).coef, close)


def test_no_start_is_certain():
    found = plain_score(np.ones(1)).decide(np.array([[-50.0], [1.0], [50.0]]))
    np.testing.assert_array_equal(found, [-MOST_LOGIT, 1, MOST_LOGIT])
    found = plain_score(np.array([[0.0, 30.0, 28.0]])).decide(np.ones((1, 1)))
    np.testing.assert_array_equal(found, [[30 - MOST_LOGIT, 30, 28]])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_point_has_the_score_of_the_model_without_it_and_a_hub_their_mean(n_classes):
    shape = (4,) if n_classes == 2 else (4, n_classes)
    scores = np.array([np.full(shape, value) for value in (1.0, 10.0, 100.0)])
    chosen = ScoreFit(None, None, None, None, (), scores).held_out(np.array([2, 0, -1, 1]))
    np.testing.assert_array_equal(chosen.reshape(4, -1).T, np.tile([100, 1, 37, 10], (chosen[0].size, 1)))


def test_the_design_standardises_fills_and_keeps_constants_out():
    X = np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 1.0], [np.nan, 5.0, 1.0]])
    design = Features.of(X, np.array([0, 0, 2]))
    A = design.standardised(X)
    np.testing.assert_allclose(A[:, 0], [-1, 1, 0])
    np.testing.assert_array_equal(A[:, 1], 0)
    np.testing.assert_allclose(A.std(axis=0)[2:], 1)
    # A category that is missing is in no column.
    np.testing.assert_allclose(
        design.standardised(np.array([[2.0, 5.0, np.nan]]))[0, 2:], -design.mean[2:] * design.scale[2:]
    )
    # Contributions of columns are those of the features they come from.
    by_column = (A - A.mean(axis=0)) * [1, 2, 3, 5]
    found = LinearScore(design, np.array([1.0, 2.0, 3.0, 5.0]), np.zeros(())).contributions(X)[:, :, 0]
    np.testing.assert_allclose(found, np.column_stack([by_column[:, :2], by_column[:, 2:].sum(axis=1)]))


def test_the_kernel_map_reproduces_the_kernel():
    """With all rows as points of the kernel, inner products of the map are kernel values."""
    A = np.random.default_rng(0).normal(size=(30, 4))
    mapped = plain_features(4).with_kernel(A, 0)
    np.testing.assert_allclose(mapped.transform(A).std(axis=0), 1)
    features = mapped.transform(A) / mapped.kernel.scale + mapped.kernel.mean
    squares = ((A[:, None] - A[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(features @ features.T, np.exp(-squares / 8), atol=1e-6)
