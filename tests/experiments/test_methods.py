import numpy as np
import pytest

from sdulearn.experiments.data import SETS, draw_trial
from sdulearn.experiments.methods import METHODS, accuracy, as_classes
from sdulearn.experiments.protocol import TABLE, Draw
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.risks import RISKS


@pytest.fixture(scope="module")
def trial():
    X, y = SETS["breast_cancer"]()
    return draw_trial(X, y, Draw("breast_cancer", 60, 100, 0.8, 0.0, 0), 100)


@pytest.mark.parametrize("name", TABLE.methods)
def test_every_method_learns_something(trial, name):
    method = METHODS[name]
    predicted = method.predict(trial, 0.8, 1)
    assert predicted.shape == trial.y_test.shape
    assert set(predicted) <= {-1, 1}
    assert accuracy(predicted, trial.y_test, matched=method.clustering) > 0.6


@pytest.mark.parametrize("name", TABLE.methods)
def test_every_method_repeats_itself(trial, name):
    first, again = (METHODS[name].predict(trial, None, 5) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_only_clusterings_are_scored_by_the_better_naming():
    y = np.array([1, 1, 1, -1])
    assert accuracy(-y, y, matched=METHODS["km"].clustering) == 1
    assert accuracy(-y, y, matched=METHODS["sddu-squared"].clustering) == 0
    assert {name for name, method in METHODS.items() if method.clustering} == {"km", "ckm", "ssp", "itml"}


def test_every_risk_with_every_loss():
    assert {f"{risk}-{loss}" for risk in RISKS for loss in TRAINING_LOSSES} <= set(METHODS)
    assert METHODS["sddu-double_hinge"].label == "SDDU double hinge"


def test_clusters_become_classes():
    np.testing.assert_array_equal(as_classes(np.array([3, 1, 3])), [1, -1, 1])
    np.testing.assert_array_equal(as_classes(np.array([0, 0])), [-1, -1])
