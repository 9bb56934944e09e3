"""What all linear models of pairs share: the sign of the decision, and the names of the classes."""

import numpy as np
import pytest

from sdulearn import PairLogisticRegression, SDUClassifier


@pytest.mark.parametrize("model", [SDUClassifier(), PairLogisticRegression()], ids=str)
def test_a_model_turned_round_is_the_model_of_the_other_names(waveform, model):
    rows, codes = waveform
    model.fit(rows, codes)
    decision = model.decision_function(rows)
    before = model.prior_
    labels = np.where(decision > 0, 1, -1)
    # Labels that agree change nothing.
    np.testing.assert_array_equal(model.orient(rows, labels).decision_function(rows), decision)
    assert model.prior_ == before
    model.orient(rows, -labels)
    np.testing.assert_array_equal(model.decision_function(rows), -decision)
    np.testing.assert_array_equal(model.predict(rows), -labels)
    assert (model.prior_.value, model.prior_.low, model.prior_.high) == pytest.approx(
        (1 - before.value, 1 - before.high, 1 - before.low)
    )
    assert model.orient(rows, labels).prior_.value == pytest.approx(before.value)
    np.testing.assert_array_equal(model.decision_function(rows), decision)


def test_a_decision_of_zero_is_the_negative_class(waveform):
    model = SDUClassifier().fit(*waveform)
    model.coef_ = np.zeros_like(model.coef_)
    for intercept, name in ((0.0, -1), (1e-300, 1), (-1e-300, -1)):
        model.intercept_ = np.array([intercept])
        assert set(model.predict(waveform[0])) == {name}
