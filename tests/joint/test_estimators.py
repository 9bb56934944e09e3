import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from sdulearn import PairKFold, PairLogisticRegression, PairLogisticRegressionCV, stack_pairs
from sdulearn.errors import OneKindWarning, ScalingWarning
from sdulearn.joint.data import Axes
from sdulearn.solvers.problem import Design

ARBITRARY = "names -1 and \\+1 are arbitrary"


def logistic_data(n_pairs, n_unlabeled, intercept, seed=0):
    """Pairs and unlabeled rows from a known logistic model, drawn at random."""
    rng = np.random.default_rng(seed)
    w = np.array([1.5, -1.0, 0.5, 0.0])
    X = rng.normal(size=(2 * n_pairs + n_unlabeled, 4))
    y = np.where(rng.random(len(X)) < expit(X @ w + intercept), 1, -1)
    same = y[: 2 * n_pairs : 2] == y[1 : 2 * n_pairs : 2]
    codes = np.repeat(np.where(same, 1, -1) * np.arange(1, n_pairs + 1), 2)
    return X, np.r_[codes, np.zeros(n_unlabeled, dtype=int)], y, w


def quiet(model, X, codes):
    """Fit where the names of the classes, or more, are known to be arbitrary."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneKindWarning)
        warnings.filterwarnings("ignore", f".*{ARBITRARY}")
        return model.fit(X, codes)


def objective_of(rows, codes, alpha, prior, rate):
    """The objective written out: mean log-loss of the answers, ridge, and the distance of the mean prediction."""
    order = np.argsort(codes, kind="stable")
    first, second = order[codes[order] != 0].reshape(-1, 2).T

    def J(v):
        p = expit(rows @ v[:-1] + v[-1])
        same = p[first] * p[second] + (1 - p[first]) * (1 - p[second])
        same = (1 - rate) * same + rate * (1 - same)
        value = -np.log(np.where(codes[first] > 0, same, 1 - same)).mean() + alpha / 2 * v[:-1] @ v[:-1]
        if (codes == 0).any():
            m = p[codes == 0].mean()
            value += 3 * (prior * np.log(prior / m) + (1 - prior) * np.log((1 - prior) / (1 - m)))
        return value

    return J


@pytest.mark.parametrize("rate", [0.0, 0.02])
@pytest.mark.parametrize("kept", ["all", "S and U", "D and U", "S and D"])
def test_the_optimum_is_scipy_s(waveform, kept, rate):
    codes = waveform[1]
    keep = {"S and U": codes >= 0, "D and U": codes <= 0, "S and D": codes != 0}.get(kept, codes < 1e9)
    rows, codes = waveform[0][keep, :5], codes[keep]
    model = quiet(PairLogisticRegression(0.02, covariance_power=0, prior=0.7, error_rate=rate), rows, codes)
    J = objective_of(rows, codes, 0.02, 0.7, rate)
    ours = np.r_[model.coef_[0], model.intercept_]
    assert J(ours) == pytest.approx(model.objective_, abs=1e-9)
    assert model.optimality_ < 1e-6
    # With one kind of answer there are other minima.
    starts = [ours, *np.random.default_rng(0).normal(size=(5 if kept == "all" else 0, 6))]
    assert J(ours) <= min(minimize(J, start, method="BFGS").fun for start in starts) + 1e-8


def test_names_of_the_classes(waveform):
    rows, codes = waveform
    larger = PairLogisticRegression(0.05).fit(rows, codes)
    smaller = PairLogisticRegression(0.05, orientation="minority").fit(rows, codes)
    unlabeled = rows[codes == 0]
    assert (larger.predict(unlabeled) == 1).mean() > 0.5
    np.testing.assert_allclose(smaller.coef_, -larger.coef_, atol=1e-5)
    assert smaller.prior_.value == pytest.approx(1 - larger.prior_.value)
    by_prior = PairLogisticRegression(0.05, prior=0.3).fit(rows, codes)
    assert (by_prior.predict(unlabeled) == 1).mean() < 0.5
    with pytest.warns(UserWarning, match=ARBITRARY):
        PairLogisticRegression(0.05, prior=0.5).fit(rows, codes)
    X, codes, _, _ = logistic_data(300, 2000, 0.0, seed=2)
    with pytest.warns(UserWarning, match=rf"{ARBITRARY}.*orient\(X, y_true\)"):
        PairLogisticRegression(0.05).fit(X, codes)


def test_cv_chooses_on_held_out_answers(waveform):
    rows, codes = waveform
    model = PairLogisticRegressionCV(alphas=[1.0, 0.1, 0.01], covariance_power=1, cv=PairKFold(4, random_state=0))
    model.fit(rows, codes)
    results = model.cv_results_
    assert {"params", "mean_test_score", "split3_test_score", "rank_test_score", "param_alpha"} <= set(results)
    assert model.alpha_ == results["params"][int(np.argmax(results["mean_test_score"]))]["alpha"]
    assert model.alpha_ in (1.0, 0.1, 0.01)
    assert (results["mean_test_score"] < 0).all()
    assert not [name for name in results if "time" in name]
    same = PairLogisticRegression(model.alpha_, covariance_power=1, error_rate=model.answer_model_).fit(rows, codes)
    np.testing.assert_allclose(same.coef_, model.temperature_ * model.coef_, atol=1e-5)


@pytest.mark.filterwarnings("ignore::sdulearn.errors.UselessModelWarning")
def test_the_models_of_folds_know_no_answer_of_theirs(waveform):
    """Other answers about the points of a fold leave its model as it is, but for the names."""
    rows, codes = waveform
    splits = list(PairKFold(3, random_state=0).split(rows, codes))
    folds = SimpleNamespace(split=lambda X, y: splits)
    model = PairLogisticRegressionCV([0.1], covariance_power=1, prior=0.7, error_rate=0.02, cv=folds).fit(rows, codes)
    held_out, fold = model.fold_models_[0]
    np.testing.assert_array_equal(held_out, splits[0][1])
    other = np.where(np.isin(np.arange(len(codes)), held_out) & (np.abs(codes) % 2 == 0), -codes, codes)
    again = clone(model).fit(rows, other)
    # All folds together choose the temperature.
    coef = again.temperature_ / model.temperature_ * again.fold_models_[0][1].coef_
    np.testing.assert_allclose(np.abs(coef), np.abs(fold.coef_), atol=1e-6)
    assert np.abs(again.coef_ - model.coef_).max() > 0.01
    alone = PairLogisticRegression(0.1, prior=0.7).fit(rows[splits[0][0]], codes[splits[0][0]])
    assert np.mean(alone.predict(rows) == fold.predict(rows)) > 0.95


@pytest.mark.filterwarnings("ignore::sdulearn.errors.OrientationWarning")
@pytest.mark.parametrize("prior", [None, 0.7])
@pytest.mark.parametrize(("kind", "word"), [(1, "same"), (-1, "different")])
def test_one_kind_of_answer_is_warned_of_by_class(waveform, kind, word, prior):
    rows, codes = waveform
    keep = kind * codes >= 0
    with pytest.warns(
        OneKindWarning, match=f'"{word}".*{"prior=0.7" if prior else "not identified by the answers. Ask"}'
    ):
        PairLogisticRegression(prior=prior).fit(rows[keep], codes[keep])


@pytest.mark.parametrize("factor", [1e4, 1e12])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_one_unscaled_column_does_not_hide_the_others(waveform, make, factor):
    """The ridge in units of the columns: a column that says nothing leaves the others as they are."""
    rows, codes = waveform
    noise = np.random.default_rng(0).normal(size=len(codes))
    column = noise - np.linalg.lstsq(rows, noise, rcond=None)[0] @ rows.T
    rows = np.column_stack([rows, column])
    other = rows * np.r_[np.ones(21), factor]
    with pytest.warns(ScalingWarning, match=r"deviation of column 21 is .* times that of column \d+ \(20 more"):
        model = PairLogisticRegression(0.05, covariance_power=0, prior=0.7).fit(make(other), codes)
    assert model.optimality_ < 1e-6
    # The unit of the column weakens its penalty by the square: the same as a penalty of its own.
    z = model.decision_function(other)
    small = PairLogisticRegression(0.05, covariance_power=0, prior=0.7).fit(rows[:, :21], codes)
    assert np.linalg.norm(model.coef_[0, :21]) > np.linalg.norm(small.coef_[0]) / 3
    assert np.mean(np.sign(z) == np.sign(small.decision_function(rows[:, :21]))) > 0.8


def test_columns_that_lose_their_say_are_named(waveform):
    rows, codes = waveform

    def unscaled(rows, factor):
        return rows * np.where(np.arange(rows.shape[1]) == 4, factor, 1.0)

    frame = pd.DataFrame(unscaled(rows, 1e7), columns=[f"f{k}" for k in range(21)])
    with pytest.warns(ScalingWarning, match=r"column 'f4' is 1e\+07 times that of column 'f\d+' .*Standardise"):
        PairLogisticRegression().fit(frame, codes)
    # Nothing to say of a constant column, nor of units that differ a little.
    PairLogisticRegression().fit(np.column_stack([unscaled(rows, 100.0), np.full(len(codes), 1e9)]), codes)
    level = sparse.csr_matrix(np.column_stack([unscaled(rows, 100.0), np.full(len(codes), -7.1)]))
    PairLogisticRegression().fit(level, codes)


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_a_direction_without_variance_is_no_axis(unit):
    """A correlation of 1 but for rounding, between columns in units that are alike or not."""
    scale = np.array([1.0, unit])
    correlation = np.array([[1.0, 1 - 1e-13], [1 - 1e-13, 1.0]])
    axes = Axes.from_moments(np.zeros(2), correlation * np.outer(scale, scale), Design.from_rows(np.eye(2), True))
    np.testing.assert_allclose(np.abs(axes.V[:, 0]), scale / np.linalg.norm(scale), atol=1e-9)
    np.testing.assert_allclose(axes.variance, [scale @ scale])


@pytest.mark.parametrize("seed", range(2))
def test_with_one_kind_of_answer_rounding_does_not_choose_the_solution(seed):
    """There is no SD solution to follow, so both signs of the eigenvector are tried."""
    X, codes, _, _ = logistic_data(30, 20, 1.0, seed)
    X = np.hstack([X, np.random.default_rng(seed).normal(size=(len(X), 8))])
    X, codes = X[codes <= 0], codes[codes <= 0]
    shuffle = np.random.default_rng(seed).permutation(len(codes))
    model = quiet(PairLogisticRegression(prior=0.3), X, codes)
    for rows, names, sign in ((-X, codes, -1), (X[shuffle], codes[shuffle], 1)):
        other = quiet(PairLogisticRegression(prior=0.3), rows, names)
        np.testing.assert_allclose(sign * other.coef_, model.coef_, atol=1e-5)


@pytest.mark.filterwarnings("ignore::sdulearn.errors.UselessModelWarning")
def test_a_fold_that_knows_no_answer_is_fitted():
    """It holds out the centre of a star; its moment is 0, in which an eigensolver for many columns finds no start."""
    X = np.random.default_rng(0).normal(size=(120, 40))
    star = np.column_stack([np.zeros(4, dtype=int), np.arange(1, 5)])
    model = quiet(PairLogisticRegressionCV(cv=2), *stack_pairs(X, star, [True, False, True, False]))
    assert len(model.fold_models_) == 2
    assert np.isfinite(model.coef_).all()


def test_more_dissimilar_than_similar_pairs_need_no_prior(waveform):
    rows, codes = waveform
    keep = (codes <= 0) | (codes < 10)
    model = quiet(PairLogisticRegressionCV(cv=3), rows[keep], codes[keep])
    assert not model.prior_.identified
    assert np.linalg.norm(model.coef_) > 0


def test_no_convergence_is_never_silent(waveform):
    with pytest.warns(ConvergenceWarning, match="relative KKT residual"):
        PairLogisticRegression(1e-4, tol=1e-13, max_iter=1).fit(*waveform)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alphas": 0}, "'alphas' parameter"),
        ({"alphas": [0.1, np.nan]}, "`alphas`"),
        ({"covariance_power": -1}, "'covariance_power' parameter"),
        ({"prior": 1.0}, "'prior' parameter"),
        ({"orientation": "left"}, "'orientation' parameter"),
        ({"cv": 50}, "50 folds need at least 50"),
    ],
)
def test_bad_parameters(waveform, parameters, message):
    with pytest.raises(ValueError, match=message):
        PairLogisticRegressionCV(**parameters).fit(*waveform)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("unit", [1e-12, 1e-5, 1e12])
def test_the_unit_of_the_columns_does_not_matter(n_classes, unit):
    """Fault S7: with X in another unit the model was at chance, without a warning."""
    rng = np.random.default_rng(0)
    truth = rng.integers(n_classes, size=260)
    X = rng.normal(size=(260, 4)) + 2 * np.eye(n_classes, 4)[truth]
    codes = np.r_[np.repeat(np.where(truth[:160:2] == truth[1:160:2], 1, -1) * np.arange(1, 81), 2), np.zeros(100, int)]
    for model in (PairLogisticRegression(n_classes=n_classes), PairLogisticRegressionCV(3, n_classes=n_classes, cv=3)):
        ours, other = quiet(clone(model), X, codes), quiet(clone(model), X * unit, codes)
        assert len(np.unique(ours.predict(X))) == n_classes
        np.testing.assert_array_equal(other.predict(X * unit), ours.predict(X))
        np.testing.assert_allclose(other.coef_ * unit, ours.coef_, rtol=1e-3, atol=1e-3 * np.abs(ours.coef_).max())


def test_only_a_given_prior_pulls():
    """Fault C1: answers about rows of other class shares than the rest; the estimate of the prior moved the model."""
    X, truth = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ends = np.array([np.random.default_rng(k).choice(150, 2, replace=False) for k in range(200)])
    rows, y = stack_pairs(X, ends, truth[ends[:, 0]] == truth[ends[:, 1]])
    free = PairLogisticRegressionCV().fit(rows, y)
    assert np.mean((free.predict(X[150:]) > 0) == truth[150:]) > 0.94
    alone = PairLogisticRegressionCV(prior_strength=0).fit(rows, y)
    np.testing.assert_array_equal(alone.coef_, free.coef_)
    shares = [PairLogisticRegressionCV(prior=p).fit(rows, y).predict_proba(X[150:])[:, 1].mean() for p in (0.4, 0.9)]
    assert shares[0] < free.predict_proba(X[150:])[:, 1].mean() < shares[1]
