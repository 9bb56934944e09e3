"""What all models of pairs share: the sign of the decision, the names of the classes, and weights at the door."""

import itertools
import pickle
import subprocess
import sys
from dataclasses import astuple

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_score
from sklearn.utils import shuffle

from sdulearn import (
    PairBoostingClassifier,
    PairKFold,
    PairLogisticRegression,
    PairLogisticRegressionCV,
    PairModelCV,
    SDUClassifier,
    SDUClassifierCV,
    stack_pairs,
)
from sdulearn.errors import InputError, OrientationWarning


@pytest.mark.parametrize(
    "model", [SDUClassifier(), PairLogisticRegression(), PairBoostingClassifier(max_iter=5, cv=2)], ids=str
)
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


@pytest.mark.filterwarnings("ignore::sdulearn.errors.SdulearnWarning")
@pytest.mark.parametrize("design", ["loose", "star", "three classes"])
def test_scores_of_folds_need_folds_over_points(design):
    X, y = shuffle(*make_blobs(200, centers=3, random_state=0), random_state=0)
    n_classes = 3 if design == "three classes" else 2
    y = y if n_classes == 3 else y > 0
    star = np.column_stack([np.arange(1, 81), np.zeros(80, dtype=int)])
    ends = star if design == "star" else np.arange(160).reshape(-1, 2)
    rows, known = stack_pairs(X, ends, y[ends[:, 0]] == y[ends[:, 1]])
    model = PairLogisticRegression(n_classes=n_classes)
    with pytest.raises(ValueError, match=r"`y` has no answers .* give `cv=PairKFold\(\)`"):
        model.fit(rows, known).score(rows[-5:], known[-5:])
    folds = PairKFold(2, random_state=0)
    for estimator in (model, SDUClassifier(prior=0.7)):
        with pytest.raises(ValueError, match=r"`y` has no answers .* give `cv=PairKFold\(\)`"):
            estimator.fit(rows[-9:], known[-9:])
    search = GridSearchCV(model, {"alpha": [0.1, 0.01]}, cv=folds, error_score="raise").fit(rows, known)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    # Fault S10: folds without a seed are the same in every run.
    first, second = (cross_val_score(model, rows, known, cv=PairKFold(3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.filterwarnings("ignore::sdulearn.errors.OrientationWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_answers_of_the_fit_are_known_in_another_process(tmp_path, n_classes):
    """Fault C18: Python's own hash differs from process to process."""
    X, y = make_blobs(200, centers=n_classes, random_state=0)
    ends = np.arange(200).reshape(-1, 2)
    rows, known = stack_pairs(X, ends, y[ends[:, 0]] == y[ends[:, 1]])
    model = PairLogisticRegression(n_classes=n_classes, error_rate=0.01).fit(rows, known)
    (tmp_path / "model").write_bytes(pickle.dumps((model, rows, known)))
    code = "import pickle, sys; model, *given = pickle.load(open(sys.argv[1], 'rb')); model.score(*given)"
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "model"], capture_output=True, text=True, check=True)
    assert "TrainingAnswersWarning" in run.stderr


def test_a_decision_of_zero_is_the_negative_class(waveform):
    model = SDUClassifier().fit(*waveform)
    model.coef_ = np.zeros_like(model.coef_)
    for intercept, name in ((0.0, -1), (1e-300, 1), (-1e-300, -1)):
        model.intercept_ = np.array([intercept])
        assert set(model.predict(waveform[0])) == {name}


ESTIMATORS = {
    "squared": SDUClassifier(),
    "double hinge": SDUClassifier(loss="double_hinge"),
    "SDU cv": SDUClassifierCV(loss="logistic", cv=3),
    # Other powers, rates above 0 and K classes with shared points: tests/joint/test_graph_fit.py.
    "joint cv": PairLogisticRegressionCV(cv=3),
    "three classes": PairLogisticRegression(n_classes=3),
    "trees": PairBoostingClassifier(max_iter=5, min_hessian=0.1, cv=3),
    "best of all": PairModelCV(["linear", "boosted"], max_iter=5, min_hessian=0.1, cv=3),
}


@pytest.fixture
def weighted(waveform):
    """Rows, pair codes, and a weight of each row, one for both ends of a pair."""
    rows, codes = waveform
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.3, 3, 1000)[np.abs(codes)]
    weight[codes == 0] = rng.uniform(0.3, 3, np.sum(codes == 0))
    return rows[:, :5], codes, weight


def assert_same_fit(one, other, rows, tol):
    expected = one.decision_function(rows)
    np.testing.assert_allclose(other.decision_function(rows), expected, rtol=0, atol=tol * np.abs(expected).max())
    if one.prior_ is not None:
        assert astuple(other.prior_) == pytest.approx(astuple(one.prior_), rel=tol)


@pytest.mark.filterwarnings(f"ignore::{OrientationWarning.__module__}.OrientationWarning")
@pytest.mark.filterwarnings(f"ignore::{OrientationWarning.__module__}.TrainingAnswersWarning")
@pytest.mark.filterwarnings(f"ignore::{OrientationWarning.__module__}.UselessModelWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_weight_0_is_a_row_left_out_and_weights_have_no_unit(weighted, name):
    rows, codes, weight = weighted
    weight[(np.abs(codes) % 4 == 1) | (np.arange(len(codes)) == len(codes) - 1)] = 0
    kept = weight > 0
    one = clone(ESTIMATORS[name]).fit(rows[kept], codes[kept], weight[kept])
    assert_same_fit(one, clone(ESTIMATORS[name]).fit(rows, codes, weight), rows, 0.0)
    assert_same_fit(one, clone(ESTIMATORS[name]).fit(rows, codes, 7.3 * weight), rows, 1e-10)
    assert one.score(rows, codes, weight) == one.score(rows[kept], codes[kept], weight[kept])
    assert one.score(rows, codes, 100 * weight) == pytest.approx(one.score(rows, codes, weight), rel=1e-10)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_that_leave_nothing_or_half_a_pair(weighted, name):
    rows, codes, weight = weighted
    with pytest.raises(InputError, match=r"All weights in `sample_weight` are zero"):
        clone(ESTIMATORS[name]).fit(rows, codes, np.zeros(len(codes)))
    weight[np.argmax(codes == 7)] = 0
    with pytest.raises(InputError, match=r"two ends of a pair must carry one weight.*weight 0 on both leaves it out"):
        clone(ESTIMATORS[name]).fit(rows, codes, weight)


@pytest.mark.filterwarnings(f"ignore::{OrientationWarning.__module__}.UselessModelWarning")
@pytest.mark.parametrize("model", [SDUClassifierCV(), PairLogisticRegressionCV()], ids=str)
def test_folds_by_the_places_of_rows_know_nothing_of_rows_left_out(weighted, model):
    rows, codes, weight = weighted
    fold = PairKFold(3, random_state=0).fold_of_points(codes)
    model = model.set_params(cv=PredefinedSplit(fold))
    model.fit(rows, codes, weight)
    with pytest.raises(InputError, match=r"Rows of weight 0 are left out before folds.*sdulearn.PairKFold"):
        model.fit(rows, codes, np.where(np.abs(codes) == 1, 0, weight))


@pytest.mark.filterwarnings("ignore::sdulearn.errors.OrientationWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_posterior_sums_over_the_classes_of_all_points(n_classes):
    """A chain of three answers, the second one asked twice, against enumeration; a label and a row in no answer."""
    X, truth = make_blobs(60, 3, centers=n_classes, cluster_std=2.5, random_state=0)
    asked = np.array([(a, (a + k) % 60) for a in range(60) for k in (1, 7, 17)])
    known = stack_pairs(X, asked, truth[asked[:, 0]] == truth[asked[:, 1]])
    model = PairLogisticRegression(n_classes=n_classes, error_rate=0.2).fit(*known)
    ends = np.array([(0, 1), (1, 2), (2, 1), (2, 3)])
    same = np.array([True, False, True, False])
    rows, y = stack_pairs(X, ends, same, labels=np.where(np.arange(60) == 3, 1, np.nan))
    found = model.posterior(rows, y)
    at = [int(np.flatnonzero((rows == X[k]).all(axis=1))[0]) for k in range(5)]
    p = model.predict_proba(X[:4])
    total = np.zeros((4, n_classes))
    label = list(model.classes_).index(1)
    for classes in itertools.product(range(n_classes), repeat=4):
        right = [(classes[a] == classes[b]) == said for (a, b), said in zip(ends, same, strict=True)]
        chance = np.prod(np.where(right, 0.8, 0.2)) * np.prod(p[np.arange(4), classes]) * (classes[3] == label)
        total[np.arange(4), classes] += chance
    np.testing.assert_allclose(found[at[:4]], total / total.sum(axis=1, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(found[at[4]], model.predict_proba(X[4:5])[0], atol=1e-12)
    assert not hasattr(SDUClassifier(), "posterior")
    with pytest.raises(InputError, match="rows, but `y` has"):
        model.posterior(rows[:5], y)
