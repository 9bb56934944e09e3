"""From answers to rows, a model and its estimates: what users wrote is what is used, through the public API."""

import numpy as np
import pytest
from scipy.sparse import coo_array, coo_matrix, csr_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, SDUClassifier, estimate_prior, stack_pairs
from sdulearn.diagnostics import check_assumptions
from sdulearn.errors import InputError, OrientationWarning
from sdulearn.metrics import class_agreement, cross_val_accuracy, pair_accuracy, pair_log_likelihood

pytestmark = pytest.mark.filterwarnings("ignore::sdulearn.errors.SdulearnWarning", "ignore:The solver stopped")


@pytest.fixture(scope="module")
def drawn():
    """200 rows of two classes, 300 answers about the first 100 by three people, 15% of them wrong."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, 200)
    X = 1.8 * np.eye(2)[classes] + rng.normal(size=(200, 2))
    ends = np.array([rng.choice(100, 2, replace=False) for _ in range(300)])
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) != (rng.random(300) < 0.15)
    return X, classes, ends, same, rng.integers(1, 4, 300)


def test_scores_reckon_with_wrong_answers(drawn):
    X, classes, ends, same, who = drawn
    train, test = np.arange(300) < 200, np.arange(300) >= 200
    model = PairLogisticRegressionCV().fit(*stack_pairs(X, ends[train], same[train], annotators=who[train]))
    rows, y = stack_pairs(X, ends[test], same[test], annotators=who[test], unlabeled=None)
    truth = (model.predict(X) == 2 * classes - 1).mean()
    by_rate = pair_accuracy(model.decision_function(rows), y, error_rate=model.answer_model_).value
    raw = pair_accuracy(model.decision_function(rows), y, error_rate=0.0).value
    assert model.score(rows, y) == by_rate
    assert abs(by_rate - max(truth, 1 - truth)) < abs(raw - max(truth, 1 - truth))
    # Two probabilities of an answer: that both points are of one class, and that it is right.
    p = model.predict_proba(rows)
    alike = (p[::2] * p[1::2]).sum(axis=1)
    errors = model.answer_model_.errors(y[::2, 2])
    chance = np.where(y[::2, 0] > 0, alike, 1 - alike)
    expected = np.log((1 - errors) * chance + errors * (1 - chance)).mean()
    assert pair_log_likelihood(model, rows, y) == pytest.approx(expected)


def test_orient_renames_the_models_of_folds_too(drawn):
    X, _, ends, same, _ = drawn
    model = PairLogisticRegressionCV().fit(*stack_pairs(X, ends, same))
    before = [of_fold.decision_function(X) for _, of_fold in model.fold_models_]
    model.orient(X[:9], -model.predict(X[:9]))
    for (_, of_fold), decision in zip(model.fold_models_, before, strict=True):
        np.testing.assert_allclose(of_fold.decision_function(X), -decision)


def test_a_second_fit_leaves_nothing_of_the_first(drawn):
    X, _, ends, same, _ = drawn
    rows, y = stack_pairs(X, ends, same)
    model = PairLogisticRegressionCV(n_classes=3, alphas=2).fit(rows, y)
    assert hasattr(model, "class_shares_")
    model.set_params(n_classes=2).fit(rows, y)
    fresh = PairLogisticRegressionCV(alphas=2).fit(rows, y)
    assert set(vars(model)) == set(vars(fresh))


def test_labels_name_the_classes_of_the_risks(drawn):
    X, classes, ends, _, _ = drawn
    right = classes[ends[:, 0]] == classes[ends[:, 1]]
    plain = SDUClassifier(prior=0.6).fit(*stack_pairs(X, ends, right))
    for sign in (1, -1):
        labels = np.where(np.arange(200) < 9, sign * plain.predict(X), 0)
        rows, y = stack_pairs(X, ends, right, labels=labels)
        model = SDUClassifier(prior=0.6)
        if sign < 0:
            with pytest.warns(OrientationWarning, match="labels"):
                model.fit(rows, y)
        else:
            model.fit(rows, y)
        np.testing.assert_allclose(model.coef_, sign * plain.coef_)
        assert model.prior_.value == pytest.approx(0.5 + 0.1 * sign)
    with pytest.raises(InputError, match="orient"):
        SDUClassifier(loss="squared", prior=0.6).partial_fit(rows, y)


def test_agreement_of_a_model_that_predicts_one_class(drawn):
    X, classes, ends, _, _ = drawn
    right = classes[ends[:, 0]] == classes[ends[:, 1]]
    rows, y = stack_pairs(X, ends, right, labels=np.where(np.arange(200) < 9, 2 * classes - 1, 0))
    random_rows = y[:, 1] < 60
    found = class_agreement(np.ones(len(rows), dtype=int), y, random_points=random_rows)
    assert found.basis == "random questions"
    assert found.accuracy.low <= classes[:60].mean() <= found.accuracy.high


def test_weights_reach_the_last_step_of_a_pipeline(drawn):
    X, _, ends, same, _ = drawn
    rows, y = stack_pairs(X, ends, same)
    weight = np.where(np.abs(y[:, 0]) % 5 == 1, 0.0, 1.0)
    model = make_pipeline(StandardScaler(with_mean=False, with_std=False), PairLogisticRegression())
    expected = cross_val_accuracy(PairLogisticRegression(), rows, y, sample_weight=weight)
    assert cross_val_accuracy(model, rows, y, sample_weight=weight) == expected


def test_every_sparse_format_is_checked(drawn):
    X, _, ends, same, _ = drawn
    rows, y = stack_pairs(X, ends, same)
    assert check_assumptions(coo_matrix(rows), y) == check_assumptions(csr_matrix(rows), y)
    assert check_assumptions(coo_array(rows), y) == check_assumptions(csr_matrix(rows), y)


def test_estimates_print_as_a_line_with_their_interval(drawn):
    X, _, ends, same, _ = drawn
    rows, y = stack_pairs(X, ends, same)
    agreement = class_agreement(np.where(rows[:, 0] > 0, 1, -1), y)
    accuracy, prior = cross_val_accuracy(PairLogisticRegression(), rows, y), estimate_prior(80, 60)
    for text, interval in ((str(accuracy), accuracy), (str(prior), prior), (str(agreement), agreement.agreement)):
        assert "\n" not in text
        for end in (interval.low, interval.high):
            assert f"{end:.1%}" in text or f"{end:.3f}" in text


@pytest.mark.parametrize(("wrong", "least", "most"), [(0.0, -0.1, 0.01), (0.15, -0.1, 0.1)])
def test_probabilities_of_asked_rows_allow_for_an_unknown_error_rate(wrong, least, most):
    # A chain: one wrong answer misplaces all points behind it, and nothing tells how many are wrong.
    gaps = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(300) < 0.6, 1, -1)
        X = rng.normal(size=(300, 4)) + 0.35 * y[:, None]
        ends = np.column_stack([np.arange(100), np.arange(1, 101)])
        same = (y[ends[:, 0]] == y[ends[:, 1]]) ^ (rng.random(100) < wrong)
        rows, known = stack_pairs(X, ends, same)
        chances = PairLogisticRegression().fit(rows, known).posterior(rows, known)[:200]
        right = np.mean(np.sign(chances[:, 1] - 0.5) == y[ends.ravel()])
        gaps.append(chances.max(axis=1).mean() - max(right, 1 - right))
    assert least < np.mean(gaps) < most
