import numpy as np
import pytest

from reproduction.methods import METHODS, accuracy, as_classes
from reproduction.protocol import TABLE, Draw
from reproduction.trials import SETS, draw_trial
from sdulearn import SDUClassifier
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


@pytest.mark.parametrize("risk", ["su", "du", "sd"])
def test_as_printed_is_penalty_1_on_the_weights_and_the_bias(trial, risk):
    """A risk without gamma leaves nothing to choose: the method is the minimum of the printed objective.

    ``SDUClassifier`` has no penalty on its intercept, so the bias is a weight here. Scaling the column
    of ones by s penalises the bias by 1/s^2, so a large s gives the free bias back: the two differ.
    """
    predicted = METHODS[f"{risk}-printed"].predict(trial, 0.8, 0)

    def decisions(scale):
        rows, test = (np.column_stack([X, np.full(len(X), scale)]) for X in (trial.rows, trial.X_test))
        model = SDUClassifier(risk, "double_hinge", alpha=1.0, prior=0.8, fit_intercept=False)
        return model.fit(rows, trial.codes).decision_function(test)

    np.testing.assert_array_equal(predicted, np.where(decisions(1.0) > 0, 1, -1))
    free = SDUClassifier(risk, "double_hinge", alpha=1.0, prior=0.8).fit(trial.rows, trial.codes)
    np.testing.assert_allclose(decisions(1e4), free.decision_function(trial.X_test), atol=1e-4)
    assert np.abs(decisions(1.0) - decisions(1e4)).max() > 0.05


def test_the_experiments_keep_the_papers_penalties(trial, monkeypatch):
    """Whatever SDUClassifierCV tries by default."""
    seen = []

    class Recorder:
        def __init__(self, risk, loss, **parameters):
            seen.append((loss, tuple(parameters["alphas"]), parameters.get("fit_intercept", True)))

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.ones(len(X))

    monkeypatch.setattr("reproduction.methods.SDUClassifierCV", Recorder)
    for name in ("sddu-squared", "sdsu-double_hinge", "sudu-printed"):
        METHODS[name].predict(trial, None, 0)
    stated = (1e-1, 1e-4, 1e-7)
    assert seen == [("squared", stated, True), ("double_hinge", stated, True), ("double_hinge", (1.0,), False)]


def test_clusters_become_classes():
    np.testing.assert_array_equal(as_classes(np.array([3, 1, 3])), [1, -1, 1])
    np.testing.assert_array_equal(as_classes(np.array([0, 0])), [-1, -1])
