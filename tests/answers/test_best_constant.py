"""The best likelihood of class shares alone, which a useful model must beat."""

import numpy as np
import pytest

from sdulearn.answers import AnswerGraph, AnswerModel


@pytest.mark.parametrize(("n_classes", "labels"), [(2, [-1] * 8 + [1] * 2), (3, [2] * 8 + [1, 3]), (4, [4] * 9 + [1])])
def test_labels_name_the_class_that_is_larger(n_classes, labels):
    graph = AnswerGraph.from_answers(np.empty((0, 2), dtype=int), [], labels=labels)
    constant = AnswerModel.given(0.0, graph).likelihood(graph, n_classes).best_constant()
    # One class is larger and the others are equally large.
    share = np.bincount(np.array(labels) + 1).max() / 10
    best = share * np.log(share) + (1 - share) * np.log((1 - share) / (n_classes - 1))
    assert best - 0.01 < constant <= best + 1e-12


@pytest.mark.parametrize("n_classes", [2, 3])
def test_answers_do_not_name_it(n_classes):
    """Seven of ten answers are "same": with P(same) = q the likelihood is highest at q = 0.7."""
    graph = AnswerGraph.from_answers(np.arange(20).reshape(-1, 2), np.arange(10) < 7)
    constant = AnswerModel.given(0.0, graph).likelihood(graph, n_classes).best_constant()
    best = 0.7 * np.log(0.7) + 0.3 * np.log(0.3)
    assert best - 0.01 < constant <= best + 1e-12
