import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score

from sdulearn import (
    PairKFold,
    PairLogisticRegression,
    PairLogisticRegressionCV,
    SDUClassifier,
    SDUClassifierCV,
    estimate_prior,
    load_model,
    stack_pairs,
)
from sdulearn.errors import InputError, TrainingAnswersWarning, UndeterminedError
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.metrics import pair_accuracy, pair_risk

# Many draws here are small, or noise.
pytestmark = pytest.mark.filterwarnings("ignore::sdulearn.errors.UselessModelWarning")
losses = pytest.mark.parametrize("loss", TRAINING_LOSSES)


def assert_same_model(one, other, atol=1e-7):
    np.testing.assert_allclose(one.coef_, other.coef_, atol=atol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=atol)


@losses
def test_order_of_rows_and_ends_and_names_of_pairs_do_not_matter(waveform, loss):
    rows, codes = waveform
    shuffle = np.random.default_rng(0).permutation(len(codes))
    renamed = np.sign(codes) * (1000 - np.abs(codes)) * (codes != 0)
    one = SDUClassifier(loss=loss, prior=0.7).fit(rows, codes)
    other = SDUClassifier(loss=loss, prior=0.7).fit(rows[shuffle], renamed[shuffle])
    assert_same_model(one, other)
    # The mirrored prior mirrors the model, and so do labels of the other names.
    mirror = SDUClassifier(loss=loss, prior=0.3).fit(rows, codes)
    np.testing.assert_allclose(mirror.coef_, -one.coef_, atol=1e-7)
    assert mirror.objective_ == pytest.approx(one.objective_, abs=1e-9)
    one.orient(rows[:9], -one.predict(rows[:9]))
    assert_same_model(one, mirror)
    assert one.prior_.value == pytest.approx(0.3)
    for labels, message in (([0, 1], r"true classes -1 and \+1"), ([1], "`y_true` has shape")):
        with pytest.raises(ValueError, match=message):
            one.orient(rows[:2], labels)


@losses
def test_integer_weights_are_repeated_rows(waveform, loss):
    rows, codes = waveform
    times = np.where(np.abs(codes) % 3 == 1, 3, 1)
    weighted = SDUClassifier(loss=loss).fit(rows, codes, sample_weight=times)
    copies = [np.flatnonzero(times > k) for k in range(3)]
    repeated = np.concatenate(copies)
    renamed = np.concatenate([np.sign(codes[c]) * (np.abs(codes[c]) + 1000 * k) for k, c in enumerate(copies)])
    other = SDUClassifier(loss=loss).fit(rows[repeated], renamed)
    assert weighted.prior_.value == pytest.approx(other.prior_.value)
    assert_same_model(weighted, other)


@pytest.mark.filterwarnings("ignore::sdulearn.errors.OrientationWarning")
@pytest.mark.parametrize("make", [SDUClassifier, SDUClassifierCV, PairLogisticRegression, PairLogisticRegressionCV])
def test_weights_as_large_as_numbers_allow(waveform, make):
    """Units of different weights are in test_base.py."""
    rows, codes = waveform
    assert_same_model(make().fit(rows, codes, np.full(len(codes), 1e16)), make().fit(rows, codes), 1e-9)
    # One pair outweighs everything, in its fold too.
    make(prior=0.7).fit(rows, codes, np.where(np.abs(codes) == 1, 1e16, 1.0))
    for bad in (1e160, 1e-160):
        with pytest.raises(InputError, match="`sample_weight`"):
            make().fit(rows, codes, np.full(len(codes), bad))


def test_frames_keep_feature_names(waveform):
    rows, codes = waveform
    names = [f"f{k}" for k in range(rows.shape[1])]
    plain = SDUClassifier().fit(rows, codes)
    for frame in (pd.DataFrame(rows, columns=names), pl.DataFrame(rows, schema=names)):
        model = SDUClassifier().fit(frame, codes)
        assert model.feature_names_in_.tolist() == names
        assert_same_model(model, plain, 1e-10)
        np.testing.assert_array_equal(model.predict(frame), plain.predict(rows))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(rows, columns=names)[names[::-1]])


def held_out_score(model, X, y):
    """The paper's validation score; :meth:`score` is the accuracy by the answers, another estimate."""
    return 1 - pair_risk(model.decision_function(X), y, prior=model.prior_.value)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_cv_agrees_with_grid_search(waveform, fit_intercept):
    rows, codes = waveform
    alphas = [1e-1, 1e-4, 1e-7]
    cv = PairKFold(3, random_state=1)
    options = {"prior": 0.7, "fit_intercept": fit_intercept}
    ours = SDUClassifierCV(**options, alphas=alphas, gammas=[0.2, 1.0], cv=cv).fit(rows, codes)
    grid = {"alpha": alphas, "gamma": [0.2, 1.0]}
    theirs = GridSearchCV(SDUClassifier(**options), grid, cv=cv, scoring=held_out_score).fit(rows, codes)
    times = {name for name in theirs.cv_results_ if name.endswith("_time")}
    # The same columns in the same order; all settings are fitted together, so none has a time.
    assert [name for name in theirs.cv_results_ if name not in times] == list(ours.cv_results_)
    for name, column in ours.cv_results_.items():
        if name == "params":
            assert column == theirs.cv_results_[name]
        else:
            np.testing.assert_allclose(column, theirs.cv_results_[name], atol=1e-9)
            assert column.dtype.kind == theirs.cv_results_[name].dtype.kind
            assert type(column) is type(theirs.cv_results_[name])
    assert {"alpha": ours.alpha_, "gamma": ours.gamma_} == theirs.best_params_
    assert_same_model(ours, theirs.best_estimator_)


@losses
@pytest.mark.parametrize(("risk", "sign"), [("su", 1), ("du", -1)])
def test_one_kind_of_answer_with_a_prior(waveform, loss, risk, sign):
    """What SU and DU are for: choice by folds, refit and score need no pair of the other kind."""
    rows, codes = waveform
    keep = sign * codes >= 0
    rows, codes = rows[keep], codes[keep]
    model = SDUClassifierCV(risk, loss, prior=0.7, alphas=[0.1, 0.01], cv=3).fit(rows, codes)
    assert np.isfinite([model.cv_results_[f"split{k}_test_score"] for k in range(3)]).all()
    assert model.gamma_ is None
    assert "param_gamma" not in model.cv_results_
    decision = model.decision_function(rows)
    with pytest.warns(TrainingAnswersWarning):
        assert model.score(rows, codes) == pair_accuracy(decision, codes, prior=0.7).value
    local = SDUClassifier(risk, loss, prior=0.7).fit(rows, codes)
    assert_same_model(SDUClassifier(risk, loss, prior=0.7).fit(*waveform), local)
    with pytest.raises(UndeterminedError, match="Give `prior`"):
        SDUClassifierCV(risk, loss).fit(rows, codes)


def test_probability_only_where_the_decision_is_log_odds(waveform):
    rows, codes = waveform
    model = SDUClassifier(loss="logistic").fit(rows, codes)
    positive = 1 / (1 + np.exp(-model.decision_function(rows)))
    np.testing.assert_allclose(model.predict_proba(rows), np.column_stack([1 - positive, positive]))
    for loss in ("squared", "double_hinge"):
        model = SDUClassifier(loss=loss).fit(rows, codes)
        assert not hasattr(model, "predict_proba")
        with pytest.raises(AttributeError) as caught:
            model.predict_proba(rows)
        assert "loss='logistic'" in str(caught.value.__cause__)


# What is wrong in X alone is in tests/test_estimator_checks.py, and in y alone in tests/answers/test_y.py.
BAD = {
    "half a pair": (lambda X, y: (X[1:], y[1:]), {}, "appears on only one row.*half a pair.*PairKFold"),
    "prior 0.5": (lambda X, y: (X, y), {"prior": 0.5}, "undefined at `prior=0.5`.*PairLogisticRegression"),
    "more D than S": (lambda X, y: (X[y < 10], y[y < 10]), {}, r"no more similar .* \(9 and 25\).*Give `prior`.*Pair"),
    "no D, no prior": (lambda X, y: (X[y >= 0], y[y >= 0]), {"risk": "su"}, r" and 0\).*Give `prior`"),
    "missing S": (lambda X, y: (X[y <= 0], y[y <= 0]), {"prior": 0.7}, "needs similar pairs.*'du'"),
    "missing D": (lambda X, y: (X[y >= 0], y[y >= 0]), {"prior": 0.7}, "needs dissimilar pairs.*'su'"),
    "missing U": (lambda X, y: (X[y != 0], y[y != 0]), {"prior": 0.7}, "needs unlabeled rows.*'sd'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_says_what_is_wrong_and_what_to_do(waveform, case):
    spoil, parameters, message = BAD[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        SDUClassifier(**parameters).fit(*spoil(*waveform))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alphas": []}, "`alphas`"),
        ({"alphas": [0.1, 0]}, "`alphas`"),
        ({"gammas": []}, "`gammas`"),
        ({"gammas": [2.0]}, "`gamma`"),
        ({"cv": 1}, "'cv'"),
        ({"cv": 30}, "30 folds"),
    ],
)
def test_bad_grids(waveform, parameters, message):
    with pytest.raises(ValueError, match=message):
        SDUClassifierCV(**parameters).fit(*waveform)


@pytest.mark.parametrize("scale", [1e51, 1e300])
def test_numbers_whose_squares_overflow_are_refused(waveform, scale):
    rows, codes = waveform[0] * scale, waveform[1]
    for fit in (SDUClassifier().fit, PairLogisticRegressionCV().fit, SDUClassifier().partial_fit):
        with pytest.raises(InputError, match=r"beyond 1e\+50.*standardise the features"):
            fit(rows, codes)


@pytest.mark.parametrize("make", [SDUClassifier, SDUClassifierCV])
def test_a_risk_as_an_array_works_everywhere(waveform, tmp_path, make):
    rows, codes = waveform
    risk = np.array([0.2, 0.3, 0.5])
    expected = make(risk=(0.2, 0.3, 0.5)).fit(rows, codes)
    model = clone(make(risk=risk)).fit(rows, codes)
    assert_same_model(model, expected)
    assert repr(model).startswith(make.__name__)
    model.save(tmp_path / "model.sdu")
    assert_same_model(load_model(tmp_path / "model.sdu"), expected)
    np.testing.assert_array_equal(model.get_params()["risk"], risk)


def test_cross_val_predict_says_why_it_cannot(waveform):
    """scikit-learn numbers the values of y anew for these methods, before it splits them."""
    rows, codes = waveform
    with pytest.raises(InputError, match=r"renumbered the codes.*cross_val_predict.*held_out"):
        cross_val_predict(PairLogisticRegression(), rows, codes, cv=PairKFold(random_state=0), method="predict_proba")
    assert set(cross_val_predict(PairLogisticRegression(), rows, codes, cv=PairKFold(random_state=0))) == {-1, 1}
    with pytest.raises(InputError, match=r"pair codes, which sdulearn.stack_pairs makes, not class labels"):
        SDUClassifier().fit(rows, np.sign(codes))
    with pytest.raises(ValueError, match=r"sdulearn\.PairKFold"):
        cross_val_score(SDUClassifier(), rows, codes, cv=KFold(3), error_score="raise")


def test_a_star_beside_loose_pairs_is_linked_too_and_few_answers_about_one_point_are_not():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.7, 1, -1)
    for n_linked, refused in ((20, True), (9, False)):
        star = np.column_stack([np.zeros(n_linked, dtype=int), np.arange(1, n_linked + 1)])
        ends = np.r_[star, np.arange(100, 200).reshape(-1, 2)]
        rows, known = stack_pairs(rng.normal(size=(200, 2)) + y[:, None], ends, y[ends[:, 0]] == y[ends[:, 1]])
        if refused:
            with pytest.raises(InputError, match=r"Point 0 is in 20 of the 70 answers.*linked"):
                SDUClassifier(prior=0.7).fit(rows, known)
        else:
            SDUClassifier(prior=0.7).fit(rows, known)


def test_shared_points_leave_the_risk_as_it_is_and_the_prior_follows_the_points(shared):
    rows, known = shared
    model = SDUClassifier(prior=0.7).fit(rows, known)
    np.testing.assert_allclose(model.coef_, SDUClassifier(prior=0.7).fit(rows, known[:, 0]).coef_)
    assert SDUClassifier().fit(rows, known).prior_ == estimate_prior(y=known)


def test_equal_classes_by_shared_points_leave_the_prior_open():
    ends = [(0, 1), (2, 3), (0, 2), (1, 3), (4, 5), (4, 0), (5, 2), (1, 4), (3, 5), (6, 7), (6, 1), (7, 3)]
    y = np.array([1, 1, -1, -1, 1, -1, 1, -1])
    rows, known = stack_pairs(y[:, None] + 0.1 * np.arange(8.0)[:, None], ends, [y[a] == y[b] for a, b in ends])
    with pytest.raises(UndeterminedError, match=r"two equally large classes.*Give `prior`"):
        SDUClassifier("sd").fit(rows, known)


@pytest.mark.parametrize(("loss", "weighted"), [("squared", True), ("double_hinge", False), ("logistic", True)])
def test_a_score_is_the_risk_of_a_separate_fit_on_held_out_answers(waveform, loss, weighted, monkeypatch):
    # Folds solved to the last digit, as cold fits are.
    monkeypatch.setattr("sdulearn.linear._FOLD_TOL", 0.0)
    rows, codes = waveform
    weight = None
    if weighted:
        weight = np.random.default_rng(0).choice([1.0, 10.0], 1000)[np.abs(codes)]
        if loss == "squared":
            # A fold that outweighs the others leaves no rounding in theirs.
            weight[np.abs(codes) == 1] = 1e12
    alphas, gammas = [0.1, 1e-3], [0.2, 0.7, 1.0]
    cv = PairKFold(3, random_state=4)
    model = SDUClassifierCV(loss=loss, alphas=alphas, gammas=gammas, prior=0.7, cv=cv, n_jobs=2)
    with parallel_config("threading"):
        results = model.fit(rows, codes, weight).cv_results_
    for k, (train, test) in enumerate(cv.split(rows, codes)):
        its_weight = {} if weight is None else {"sample_weight": weight[train]}
        for setting, score in zip(results["params"], results[f"split{k}_test_score"], strict=True):
            one = SDUClassifier(loss=loss, prior=0.7, **setting).fit(rows[train], codes[train], **its_weight)
            held_out = None if weight is None else weight[test]
            risk = pair_risk(one.decision_function(rows[test]), codes[test], prior=0.7, sample_weight=held_out)
            assert score == pytest.approx(1 - risk, abs=1e-9)
