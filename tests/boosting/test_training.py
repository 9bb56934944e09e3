"""Boosters of folds: none sees an answer or a label about the points that it is judged by."""

import numpy as np
import pytest

from sdulearn import PairBoostingClassifier
from sdulearn.boosting.training import held_out_scores

pytest.importorskip("lightgbm")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_point_has_the_score_of_the_model_without_it_and_a_hub_their_mean(n_classes):
    fold = np.array([2, 0, -1, 1])
    shape = (4,) if n_classes == 2 else (4, n_classes)
    scores = [np.full(shape, value) for value in (1.0, 10.0, 100.0)]
    chosen = held_out_scores(scores, fold)
    assert chosen.shape == shape
    np.testing.assert_allclose(chosen.reshape(4, -1)[:, 0], [100, 1, 37, 10])


@pytest.mark.filterwarnings("ignore::sdulearn.errors.OrientationWarning")
def test_answers_at_random_are_not_learned():
    """On the points they are trained on trees would look better round by round."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    codes = np.repeat(np.arange(1, 201) * np.where(rng.random(200) < 0.6, 1, -1), 2)
    model = PairBoostingClassifier(prior=0.7).fit(X, codes)
    curve = model.held_out_log_likelihood_
    assert curve.max() - curve[0] < 0.1
