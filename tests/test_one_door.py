"""One fit reads y once, whatever it does with it afterwards."""

import sys
from collections import Counter

import numpy as np
import pytest

from sdulearn import PairLogisticRegressionCV, SDUClassifierCV, stack_pairs
from sdulearn.answers import graph as graph_module
from sdulearn.metrics import cross_val_accuracy


@pytest.fixture
def calls(monkeypatch):
    """Count how often y is read, and how often connected components are found."""
    count = Counter()

    def counted(function):
        def call(*arguments):
            count[function.__name__] += 1
            return function(*arguments)

        return call

    for name in ("read_columns", "connect"):
        function = getattr(graph_module, name)
        for module in [m for key, m in sys.modules.items() if key.startswith("sdulearn.")]:
            if getattr(module, name, None) is function:
                monkeypatch.setattr(module, name, counted(function))
    return count


def answers(n_answers, n_points, people):
    rng = np.random.default_rng(0)
    classes = rng.random(n_points) < 0.7
    X = rng.normal(size=(n_points, 4)) + 2 * classes[:, None]
    ends = rng.permuted(np.tile(np.arange(n_points), (n_answers, 1)), axis=1)[:, :2]
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) ^ (rng.random(n_answers) < 0.05)
    return stack_pairs(X, ends, same, annotators=1 + np.arange(n_answers) % people)


@pytest.mark.filterwarnings("ignore::sdulearn.errors.OrientationWarning")
# Few of the answers are within a fold.
@pytest.mark.filterwarnings("ignore::sdulearn.errors.UselessModelWarning")
def test_a_fit_reads_y_once(calls):
    rows, y = answers(300, 120, 3)
    PairLogisticRegressionCV().fit(rows, y)
    assert calls["read_columns"] == 1
    # The graph with its sides, and the answers of all folds.
    assert calls["connect"] == 2
    calls.clear()
    SDUClassifierCV(prior=0.7).fit(rows, y)
    assert calls["read_columns"] == 1
    # Of the answers between points that are not hubs, which folds keep together.
    assert calls["connect"] == 1


def test_cross_validation_reads_y_once_and_the_rows_of_each_fit(calls):
    rows, y = answers(60, 200, 1)
    cross_val_accuracy(SDUClassifierCV(prior=0.7, cv=2), rows, y, cv=3)
    # The metric, the fit to all rows, and one to each of the folds.
    assert calls["read_columns"] == 1 + 1 + 3
