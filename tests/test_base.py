"""What all linear models of pairs share: the sign of the decision, and the names of the classes."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils import shuffle

from sdulearn import PairKFold, PairLogisticRegression, SDUClassifier, stack_pairs


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


@pytest.mark.parametrize("model", [SDUClassifier(prior=0.7), PairLogisticRegression(prior=0.7)], ids=str)
def test_a_score_does_not_depend_on_what_the_classes_are_called(waveform, model):
    """One kind of answer, which only the prior makes an accuracy of."""
    rows, codes = waveform
    model.fit(rows, codes)
    similar = codes >= 0
    before = model.score(rows[similar], codes[similar])
    assert before > 0.6
    model.orient(rows, -model.predict(rows))
    assert model.score(rows[similar], codes[similar]) == pytest.approx(before)


def graphs():
    """Loose pairs, a star, few points in many answers, a chain, and three classes, by name."""
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 40, (150, 2))
    chain = np.column_stack([np.arange(80), np.arange(1, 81)])
    return {
        "loose": np.arange(160).reshape(-1, 2),
        "star": np.column_stack([np.arange(1, 81), np.zeros(80, dtype=int)]),
        "dense": dense[dense[:, 0] != dense[:, 1]],
        "chain": chain,
        "three classes": np.arange(160).reshape(-1, 2),
    }


@pytest.mark.filterwarnings("ignore::sdulearn.errors.SdulearnWarning")
@pytest.mark.parametrize("design", graphs())
def test_scores_of_folds_need_folds_over_points(design):
    X, y = shuffle(*make_blobs(200, centers=3, random_state=0), random_state=0)
    n_classes = 3 if design == "three classes" else 2
    y = y if n_classes == 3 else y > 0
    ends = graphs()[design]
    rows, known = stack_pairs(X, ends, y[ends[:, 0]] == y[ends[:, 1]])
    model = PairLogisticRegression(n_classes=n_classes)
    with pytest.raises(ValueError, match=r"`y` holds no answers .* give `cv=PairKFold\(\)`"):
        model.fit(rows, known).score(rows[-5:], known[-5:])
    folds = PairKFold(3, random_state=0)
    assert np.isfinite(cross_val_score(model, rows, known, cv=folds, error_score="raise")).all()
    search = GridSearchCV(model, {"alpha": [0.1, 0.01]}, cv=folds, error_score="raise").fit(rows, known)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_decision_of_zero_is_the_negative_class(waveform):
    model = SDUClassifier().fit(*waveform)
    model.coef_ = np.zeros_like(model.coef_)
    for intercept, name in ((0.0, -1), (1e-300, 1), (-1e-300, -1)):
        model.intercept_ = np.array([intercept])
        assert set(model.predict(waveform[0])) == {name}
