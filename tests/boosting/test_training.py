"""Boosters of folds: none sees an answer or a label about the points that it is judged by."""

import numpy as np
import pytest

from sdulearn.boosting.score_classifier import held_out_scores

pytest.importorskip("lightgbm")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_point_has_the_score_of_the_model_without_it_and_a_hub_their_mean(n_classes):
    fold = np.array([2, 0, -1, 1])
    shape = (4,) if n_classes == 2 else (4, n_classes)
    scores = [np.full(shape, value) for value in (1.0, 10.0, 100.0)]
    chosen = held_out_scores(scores, fold)
    assert chosen.shape == shape
    np.testing.assert_allclose(chosen.reshape(4, -1)[:, 0], [100, 1, 37, 10])
