"""Fits of answers that share points, are labelled or may be wrong."""

import warnings
from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.base import clone

from sdulearn import PairKFold, PairLogisticRegression, PairLogisticRegressionCV, load_model, stack_pairs
from sdulearn.answers import AnswerGraph
from sdulearn.errors import InputError, OneKindWarning, OrientationWarning, SdulearnWarning
from sdulearn.metrics import pair_log_likelihood
from sdulearn.prior import clopper_pearson
from tests.reference import random_ends

pytestmark = pytest.mark.filterwarnings(f"ignore::{OrientationWarning.__module__}.OrientationWarning")

BOTH = [PairLogisticRegression, PairLogisticRegressionCV]


def draw(n, seed=0, shift=1.0, d=3, prior=0.65):
    rng = np.random.default_rng(seed)
    classes = np.where(rng.random(n) < prior, 1, -1)
    return shift * classes[:, None] * np.eye(d)[0] + rng.normal(size=(n, d)), classes


def answers(classes, ends):
    ends = np.asarray(ends)
    return classes[ends[:, 0]] == classes[ends[:, 1]]


def star(n):
    return np.column_stack([np.zeros(n, dtype=int), np.arange(1, n + 1)])


@pytest.mark.parametrize("design", ["labels", "star"])
def test_labels_alone_and_a_star_up_to_one_flip_are_logistic_regression(design):
    """The likelihood of a star is P(classes) + P(classes flipped); the smaller term is nothing beside the larger."""
    X, classes = draw(61)
    ends = star(60) if design == "star" else np.empty((0, 2), dtype=int)
    labels = classes if design == "labels" else None
    rows, y = stack_pairs(X, ends, answers(classes, ends), labels=labels, unlabeled=None)
    model = PairLogisticRegression(0.05, covariance_power=0, error_rate=0).fit(rows, y)
    # 61 points and 60 answers: the mean is over answers.
    n = 60 if design == "star" else 61

    def J(v):
        return np.logaddexp(0, -classes * (X @ v[:-1] + v[-1])).sum() / n + 0.025 * v[:-1] @ v[:-1]

    v = minimize(J, np.zeros(4), method="BFGS", options={"gtol": 1e-10, "maxiter": 2000}).x
    sign = 1 if design == "labels" else np.sign(model.coef_[0] @ v[:-1])
    np.testing.assert_allclose(sign * model.coef_[0], v[:-1], atol=1e-5)
    np.testing.assert_allclose(sign * model.intercept_, v[-1:], atol=1e-5)


@pytest.mark.parametrize(("n_positive", "identified"), [(5, True), (15, False), (25, True)])
def test_the_share_of_labels_alone_has_the_interval_of_a_binomial_share(n_positive, identified):
    labels = np.where(np.arange(30) < n_positive, 1, -1)
    rows, y = stack_pairs(draw(30)[0], np.empty((0, 2), dtype=int), [], labels=labels)
    found = PairLogisticRegression(0.1).fit(rows, y).prior_
    assert (found.value, found.identified) == (pytest.approx(n_positive / 30), identified)
    assert (found.low, found.high) == pytest.approx(clopper_pearson(n_positive, 30 - n_positive, 0.95))


@pytest.mark.parametrize("make", BOTH)
def test_loose_pairs_with_points_are_loose_pairs(make, waveform):
    rows, codes = waveform
    y = np.column_stack([codes, np.arange(len(codes))[::-1], np.where(codes == 0, 0, 7)])
    plain = make().fit(rows, codes)
    model = make().fit(rows, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-7)


def test_one_who_guesses_is_found_among_people_without_a_common_question():
    X, classes = draw(900, shift=2.0)
    ends = np.arange(800).reshape(-1, 2)
    annotators = np.repeat([1, 2, 3, 4], 100)
    same = answers(classes, ends)
    rng = np.random.default_rng(0)
    same[300:] ^= rng.random(100) < 0.5
    rows, y = stack_pairs(X, ends, same, annotators=annotators)
    model = PairLogisticRegression().fit(rows, y)
    rates = model.answer_model_.rates
    assert rates[4] > 0.35
    assert max(rates[1], rates[2], rates[3]) < 0.12


@pytest.mark.filterwarnings("ignore::sdulearn.errors.ClassNumberWarning")
@pytest.mark.parametrize(("n_classes", "error_rate"), [(2, 0.0), (2, 0.1), (3, 0.0)])
@pytest.mark.parametrize("power", [0, 1, 2])
def test_weights_count_components(power, n_classes, error_rate):
    """Weight 2 on a component is the component twice, on points of their own; so it is of unlabeled rows."""
    X, classes = draw(40, shift=0.8)
    prior = 0.6 if n_classes == 2 else [0.5, 0.3, 0.2]
    ends = np.array([[0, 1], [1, 2], [3, 4], [5, 6], [6, 7], [8, 9], [10, 11], [12, 13], [14, 15]])
    same = answers(classes, ends)
    rows, y = stack_pairs(X, ends, same)
    first = np.isin(y[:, 1], [0, 1, 2, *range(20, 26)])
    again = y[first].copy()
    again[:, 0] = np.sign(again[:, 0]) * (np.abs(again[:, 0]) + 100)
    again[:, 1] += 100
    options = {"n_classes": n_classes, "prior": prior, "covariance_power": power, "error_rate": error_rate}
    model = PairLogisticRegression(tol=1e-10, max_iter=1000, **options)
    doubled = clone(model).fit(np.vstack([rows, rows[first]]), np.vstack([y, again]))
    model.fit(rows, y, np.where(first, 2.0, 1.0))
    np.testing.assert_allclose(model.coef_, doubled.coef_, atol=1e-8)
    assert model.objective_ == pytest.approx(doubled.objective_, abs=1e-10)


def weighted_answers(n_classes=2):
    """Answers of two people about shared points, some of them wrong, some labels, and a weight of each row."""
    X, _ = draw(60)
    rng = np.random.default_rng(1)
    classes = np.where(X[:, 0] + X[:, 1] > 0.5, 1, -1) if n_classes == 2 else 1 + np.digitize(X[:, 0], [0.0, 1.0])
    ends = random_ends(rng, 30, 40)
    known = np.where(rng.random(60) < 0.2, classes, 0)
    same = answers(classes, ends) ^ (rng.random(40) < 0.1)
    rows, y = stack_pairs(X, ends, same, annotators=rng.integers(1, 3, 40), labels=known)
    weight = rng.uniform(0.3, 3, 200)[np.abs(y[:, 0])]
    weight[y[:, 0] == 0] = rng.uniform(0.3, 3, np.sum(y[:, 0] == 0))
    return rows, y, weight


GRAPHS = {
    "given rate": PairLogisticRegression(error_rate=0.1),
    "estimated rates": PairLogisticRegression(),
    "chosen penalty": PairLogisticRegressionCV(3, covariance_power=1, error_rate=0.1),
    "three classes": PairLogisticRegression(n_classes=3, error_rate=0.1),
    "three classes, estimated rates": PairLogisticRegressionCV(2, n_classes=3, cv=2),
}


# So few answers need not find all three classes.
def numbers_of(rate):
    return (*astuple(rate)[:-1], *rate.likely)


@pytest.mark.filterwarnings(f"ignore::{SdulearnWarning.__module__}.SdulearnWarning")
@pytest.mark.parametrize("name", GRAPHS)
def test_weight_0_leaves_answers_labels_and_rows_out_and_weights_have_no_unit(name):
    rows, y, weight = weighted_answers(GRAPHS[name].n_classes)
    left_out = (np.abs(y[:, 0]) % 5 == 1) | ((y[:, 0] == 0) & (np.arange(len(y)) % 3 == 0))
    weight[left_out] = 0
    assert y[left_out, 3].any()
    one = clone(GRAPHS[name]).fit(rows[~left_out], y[~left_out], weight[~left_out])
    other = clone(GRAPHS[name]).fit(rows, y, 7.3 * weight)
    np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-8)
    for a, rate in one.answer_model_.by_annotator.items():
        assert numbers_of(other.answer_model_.by_annotator[a]) == pytest.approx(numbers_of(rate), rel=1e-8)
    if one.prior_ is not None:
        assert astuple(other.prior_) == pytest.approx(astuple(one.prior_), rel=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_names_of_answers_points_and_questions_do_not_matter(n_classes):
    """Answers of one question have weights of their own, and which of them is the first means nothing."""
    X, _ = draw(60)
    rng = np.random.default_rng(1)
    classes = np.digitize(X[:, 0] + X[:, 1], [0.0, 1.0][: n_classes - 1])
    sorted_sets = np.array([rng.choice(60, 3, replace=False) for _ in range(25)])
    said = np.where(rng.random((25, 3)) < 0.1, (classes[sorted_sets] + 1) % n_classes, classes[sorted_sets])
    pairs = [[0, 1], [0, 2], [1, 2]]
    ends, piles = sorted_sets[:, pairs].reshape(-1, 2), said[:, pairs].reshape(-1, 2)
    questions, people = np.repeat(np.arange(1, 26), 3), np.repeat(rng.integers(1, 3, 25), 3)
    rows, y = stack_pairs(X, ends, piles[:, 0] == piles[:, 1], annotators=people, questions=questions)
    code = np.abs(y[:, 0])
    weight = np.append(1.0, rng.uniform(0.3, 3, 75))[code]
    names = np.append(0, 1 + rng.permutation(75))
    other = np.column_stack([np.sign(y[:, 0]) * names[code], 2 * y[:, 1] + 5, y[:, 2], y[:, 3], 9 * y[:, 4]])
    model = PairLogisticRegression(n_classes=n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SdulearnWarning)
        first, second = (clone(model).fit(rows, known, weight) for known in (y, other))
    assert first.answer_model_.rates == pytest.approx(second.answer_model_.rates, rel=1e-6)
    np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_neither_the_order_of_rows_nor_their_storage_matters(n_classes):
    """Folds, judges of answers and starts are the same, although one answer in ten is wrong."""
    X, _ = draw(120, 2)
    rng = np.random.default_rng(5)
    classes = np.digitize(X[:, 0] + X[:, 1], [0.0, 1.0][: n_classes - 1])
    ends = np.array([(i, rng.integers(0, i)) for i in range(1, 80)])
    same = answers(classes, ends) ^ (rng.random(79) < 0.1)
    rows, y = stack_pairs(X, ends, same, annotators=rng.integers(1, 3, 79))
    order = rng.permutation(len(y))
    model = PairLogisticRegressionCV(n_classes=n_classes)
    fits = []
    for table, known in ((rows, y), (rows[order], y[order]), (csr_matrix(rows), y)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SdulearnWarning)
            fits.append(clone(model).fit(table, known))
    first = fits[0].answer_model_
    for other in fits[1:]:
        np.testing.assert_allclose(other.decision_function(X), fits[0].decision_function(X), atol=1e-4)
        for number, rate in other.answer_model_.by_annotator.items():
            assert numbers_of(rate) == pytest.approx(numbers_of(first.by_annotator[number]), abs=1e-5)


def test_a_point_that_rows_show_with_several_values_is_their_mean_by_weight():
    X, classes = draw(60)
    ends = np.array([[0, 1], [1, 2], [3, 4], [5, 6], [7, 8], [9, 10]])
    rows, y = stack_pairs(X, ends, answers(classes, ends), unlabeled=np.arange(20, 60))
    weight = np.where(y[:, 0] == 0, 3.0, 1.0)
    model = PairLogisticRegression(prior=0.6, tol=1e-9)
    shown = np.flatnonzero(y[:, 1] == 1)
    again = np.append(np.arange(len(y)), shown[:1])
    table = y[again]
    table[-1, 0] = 0
    apart = rows[again]
    apart[[*shown, -1]] += np.array([[1.0], [-4.0], [1.0]])
    found = clone(model).fit(apart, table, np.append(weight, 3.0))
    # One row of weight 3 and two of weight 1 are 0 on average.
    apart[[*shown, -1]] = rows[shown[0]]
    expected = clone(model).fit(apart, table, np.append(weight, 3.0))
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-7)


@pytest.mark.parametrize("linked", [False, True])
def test_a_row_that_shows_an_answered_point_again_adds_nothing(linked):
    """Points count once in the covariance, be they in loose pairs or in linked answers."""
    X, classes = draw(60)
    ends = np.arange(40).reshape(-1, 2)
    ends = np.vstack([ends, [[0, 2]]]) if linked else ends
    rows, y = stack_pairs(X, ends, answers(classes, ends), unlabeled=np.arange(40, 60))
    model = PairLogisticRegression(covariance_power=2, prior_strength=0)
    again = np.r_[np.arange(len(y)), np.arange(10)]
    table = y[again]
    table[len(y) :, 0] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SdulearnWarning)
        expected = clone(model).fit(rows, y)
        found = clone(model).fit(rows[again], table)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-10)


@pytest.mark.parametrize("name", ["given rate", "chosen penalty", "three classes", "loose pairs"])
def test_dense_sparse_frames_and_files_agree(name, waveform, tmp_path):
    model = clone(GRAPHS.get(name, PairLogisticRegressionCV()))
    rows, y = waveform if name == "loose pairs" else weighted_answers(model.n_classes)[:2]
    rows = np.where(np.abs(rows) > 0.5, rows, 0)
    if name == "given rate":
        model.set_params(error_rate={1: 0.05, 2: 0.01})
    frame = pd.DataFrame(rows, columns=[f"x{k}" for k in range(rows.shape[1])])
    thin, framed = (clone(model).fit(X, y) for X in (csr_matrix(rows), frame))
    model.fit(rows, y)
    np.testing.assert_allclose(framed.coef_, model.coef_, atol=1e-9)
    np.testing.assert_allclose(thin.coef_, model.coef_, atol=1e-4)
    framed.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(frame), framed.predict_proba(frame))
    assert loaded.error_rate == framed.error_rate
    for attribute in set(vars(framed)) - {"feature_names_in_", "_learned", "_learned_rows", "fold_models_"}:
        np.testing.assert_equal(getattr(loaded, attribute), getattr(framed, attribute))


def test_folds_hold_out_points():
    """Every score is the mean log chance of an answer, by itself, by a fit without the points of its fold."""
    X, classes = draw(120)
    chains = np.arange(90).reshape(-1, 3)
    ends = np.concatenate([chains[:, :2], chains[:, 1:]])
    rows, y = stack_pairs(X, ends, answers(classes, ends))
    cv = PairKFold(3, random_state=1)
    model = PairLogisticRegressionCV(alphas=[0.05], covariance_power=0, prior_strength=0, cv=cv).fit(rows, y)
    points = AnswerGraph.from_y(y).row_point
    fold = cv.fold_of_points(y)[points]
    # No component is cut here, so that a fold is a fit of the other components.
    assert cv.n_cut(rows, y) == 0
    for k in range(3):
        out = np.isin(points, points[fold == k]) & (y[:, 0] != 0)
        part = PairLogisticRegression(1.0, covariance_power=0, prior_strength=0)
        n_all, n_part = (AnswerGraph.from_y(known).n_independent for known in (y, y[~out]))
        # A fold's loss is divided by all answers: its penalty weighs more beside its own mean.
        part.set_params(alpha=0.05 * n_all / n_part).fit(rows[~out], y[~out])
        expected = pair_log_likelihood(part, rows[out], y[out, 0])
        assert model.cv_results_[f"split{k}_test_score"][0] == pytest.approx(expected, abs=0.01)


def test_a_single_label_names_the_classes_and_no_fold_is_blamed_for_its_absence():
    """The class +1 of the label is the smaller one: no orientation asks for that."""
    X, classes = draw(200, shift=1.5, prior=0.8)
    ends = np.arange(160).reshape(-1, 2)
    known = np.full(200, np.nan)
    known[0] = -classes[0]
    rows, y = stack_pairs(X, ends, answers(classes, ends), labels=known)
    for make in BOTH:
        model = make().fit(rows, y)
        assert (model.predict(X) == -classes).mean() > 0.85
        assert model.prior_.value < 0.5
    # A coin has -log 2.
    assert model.cv_results_["mean_test_score"].max() > -0.55


def test_what_cannot_be_learned_from():
    X, _ = draw(20)
    rows, y = stack_pairs(X, np.empty((0, 2), dtype=int), [], labels=np.ones(20, dtype=int))
    with pytest.raises(InputError, match="labels are not of two classes"):
        PairLogisticRegression().fit(rows, y)
    rows, y = stack_pairs(X, star(10), np.ones(10, dtype=bool))
    with pytest.warns(OneKindWarning):
        PairLogisticRegression().fit(rows, y)


@pytest.mark.parametrize("design", ["chain", "tree"])
def test_one_slip_that_nothing_contradicts_costs_little(design):
    """Fault S1: with one person and no cycle all answers were certain, and a slip flipped every row behind it."""
    X, classes = draw(500, shift=1.2, d=5)
    rng = np.random.default_rng(0)
    after = np.arange(1, 101)
    ends = np.column_stack([after - 1 if design == "chain" else rng.integers(0, after), after])
    same = answers(classes, ends)
    lost = []
    for slip in (20, 50, 80):
        wrong = np.where(after - 1 == slip, ~same, same)
        models = [PairLogisticRegressionCV().fit(*stack_pairs(X, ends, given)) for given in (same, wrong)]
        right = [max(share, 1 - share) for share in (np.mean(m.predict(X[101:]) == classes[101:]) for m in models)]
        lost.append(right[0] - right[1])
        # The prior, too, is no longer that of a table half of which has changed sides.
        assert models[1].prior_.value == pytest.approx(models[0].prior_.value, abs=0.05)
    assert np.mean(lost) < 0.01
