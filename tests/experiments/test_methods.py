import numpy as np
import pytest

from sdulearn.experiments.data import SETS, draw_trial
from sdulearn.experiments.methods import METHODS, accuracy, as_classes
from sdulearn.experiments.protocol import TABLE, Draw

HERE = [name for name in TABLE.methods if METHODS[name].missing() is None]


@pytest.fixture(scope="module")
def trial():
    X, y = SETS["breast_cancer"]()
    return draw_trial(X, y, Draw("breast_cancer", 60, 100, 0.8, 0.0, 0), 100)


@pytest.mark.parametrize("name", HERE)
def test_every_method_learns_something(trial, name):
    method = METHODS[name]
    predicted = method.predict(trial, 0.8, 1)
    assert predicted.shape == trial.y_test.shape
    assert set(predicted) <= {-1, 1}
    assert accuracy(method, predicted, trial.y_test) > 0.6


@pytest.mark.parametrize("name", HERE)
def test_every_method_repeats_itself(trial, name):
    first, again = (METHODS[name].predict(trial, None, 5) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_only_clusterings_are_scored_by_the_better_naming():
    y = np.array([1, 1, 1, -1])
    assert accuracy(METHODS["km"], -y, y) == 1
    assert accuracy(METHODS["sddu-squared"], -y, y) == 0
    assert {name for name, method in METHODS.items() if method.clustering} == {"km", "ckm", "ssp", "itml"}


def test_clusters_become_classes():
    np.testing.assert_array_equal(as_classes(np.array([3, 1, 3])), [1, -1, 1])
    np.testing.assert_array_equal(as_classes(np.array([0, 0])), [-1, -1])


def test_missing_says_what(monkeypatch):
    assert METHODS["km"].missing() is None
    monkeypatch.setattr("sdulearn.experiments.methods.import_module", _refuse)
    assert "PairLogisticRegressionCV is not in this version" in METHODS["joint"].missing()


def _refuse(name):
    raise ModuleNotFoundError(name)
