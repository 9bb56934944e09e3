from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from sdulearn.baselines import clustering_accuracy


@given(st.lists(st.tuples(st.sampled_from([-1, 1]), st.sampled_from([-1, 1])), min_size=1))
def test_is_the_better_of_the_two_namings(rows):
    y, labels = np.array(rows).T
    best = max(accuracy_score(y, labels), accuracy_score(y, -labels))
    assert clustering_accuracy(y, labels) == pytest.approx(best)
    assert clustering_accuracy(y, (labels + 1) // 2) == pytest.approx(best)


def test_one_cluster_scores_the_larger_class():
    assert clustering_accuracy(["a", "b", "b", "b"], [0, 0, 0, 0]) == 0.75
    assert clustering_accuracy([1, 1], [0, 1]) == 0.5


@pytest.mark.parametrize(
    ("y", "labels", "text"),
    [
        ([1, 2, 3], [0, 0, 1], "`y_true` has 3 different values"),
        ([1, 1, -1], [0, 1, 2], "adjusted_rand_score"),
        ([1, -1], [0, 1, 1], "`y_true` has 2 points, but `labels` has 3"),
        ([], [], "`y_true` must be a 1d array"),
        ([[1, -1]], [0, 1], "`y_true` must be a 1d array"),
    ],
)
def test_bad_input(y, labels, text):
    with pytest.raises(ValueError, match=text):
        clustering_accuracy(y, labels)
