"""The linear start: folds may name the classes in their own way."""

import numpy as np
import pytest

from sdulearn.boosting.start import MOST_LOGIT, _named_alike, bounded


@pytest.mark.parametrize("sign", [1, -1])
def test_a_fold_is_turned_to_the_model_of_all_answers(sign):
    rng = np.random.default_rng(0)
    reference = rng.normal(size=50)
    z = reference + 0.3 * rng.normal(size=50)
    np.testing.assert_array_equal(_named_alike(sign * z, reference), z)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 0, 2]])
def test_so_are_more_classes(order):
    rng = np.random.default_rng(1)
    reference = 3 * rng.normal(size=(60, 3))
    z = reference + 0.3 * rng.normal(size=(60, 3))
    np.testing.assert_array_equal(_named_alike(z[:, order], reference), z)


def test_no_start_is_certain():
    np.testing.assert_array_equal(bounded(np.array([-50.0, 1.0, 50.0])), [-MOST_LOGIT, 1, MOST_LOGIT])
    found = bounded(np.array([[0.0, 30.0, 28.0]]))
    np.testing.assert_array_equal(found, [[30 - MOST_LOGIT, 30, 28]])
