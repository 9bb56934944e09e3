"""PairLogisticRegression with K classes: fits, names, labels, inputs, files."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, load_model, stack_pairs
from sdulearn.base import match_names
from sdulearn.errors import ClassNumberWarning, InputError, OneKindWarning
from tests.reference import random_answers


def iris():
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y + 1


@pytest.fixture(scope="module")
def fitted():
    X, y = iris()
    rows, table = stack_pairs(X, *random_answers(y))
    return PairLogisticRegression(n_classes=3).fit(rows, table)


def test_shapes_and_probabilities(fitted):
    X, _ = iris()
    assert fitted.coef_.shape == (3, 4)
    assert fitted.intercept_.shape == (3,)
    assert fitted.classes_.tolist() == [1, 2, 3]
    assert fitted.decision_function(X).shape == (150, 3)
    assert fitted.predict_proba(X).sum(axis=1) == pytest.approx(1)
    assert (fitted.predict(X) == np.argmax(fitted.predict_proba(X), axis=1) + 1).all()
    assert fitted.coef_.sum(axis=0) == pytest.approx(0, abs=1e-12)
    assert fitted.optimality_ <= fitted.tol
    # Classes are numbered by size.
    assert (np.diff(fitted.class_shares_) <= 0).all()
    assert fitted.class_shares_.sum() == pytest.approx(1)


def test_labelled_points_name_the_classes(fitted):
    X, y = iris()
    some = np.arange(0, 150, 10)
    for names in ([1, 2, 3], [3, 1, 2]):
        truth = np.array(names)[y - 1]
        fitted.orient(X[some], truth[some])
        assert np.mean(fitted.predict(X) == truth) > 0.9
    assert fitted.orient(X[some], y[some]) is fitted
    for wrong in ([0, 1], [1]):
        with pytest.raises(InputError):
            fitted.orient(X[:2], wrong)
    # And so do labels in y.
    labels = np.where(np.arange(150) % 15, 0, y)
    model = PairLogisticRegression(n_classes=3).fit(*stack_pairs(X, *random_answers(y, 60), labels=labels))
    assert np.mean(model.predict(X) == y) > 0.9


def test_names_are_matched_all_at_once():
    # Both labels like column 0 best, but the second has no other claim.
    log_p = np.log([[0.6, 0.3, 0.1], [0.9, 0.05, 0.05]])
    assert match_names(log_p, np.array([1, 2])).tolist() == [1, 0, 2]
    # A name without a labelled point gets what is left.
    assert match_names(log_p[:1], np.array([3])).tolist() == [1, 2, 0]


def test_labels_alone_are_logistic_regression():
    X, y = iris()
    table = np.column_stack([np.zeros(150), np.arange(150), np.zeros(150), y]).astype(int)
    model = PairLogisticRegression(0.02, n_classes=3, covariance_power=0, error_rate=0).fit(X, table)
    reference = LogisticRegression(C=1 / (150 * 0.02), tol=1e-8, max_iter=1000).fit(X, y)
    assert model.predict_proba(X) == pytest.approx(reference.predict_proba(X), abs=1e-5)


def test_labels_alone_choose_a_penalty():
    X, y = iris()
    labels = np.where(np.arange(150) % 5, 0, y)
    rows, table = stack_pairs(X, np.zeros((0, 2), dtype=int), np.zeros(0, dtype=bool), labels=labels)
    assert np.mean(PairLogisticRegressionCV(n_classes=3).fit(rows, table).predict(X) == y) > 0.9


def test_the_default_penalty_suits_many_classes():
    """Eight classes that differ in seven directions, beside one in which all rows vary most."""
    rng = np.random.default_rng(1)
    y = np.arange(400) % 8 + 1
    X = 3 * np.eye(8)[y - 1] + 0.7 * rng.normal(size=(400, 8)) + 3 * rng.normal(size=(400, 1))
    model = PairLogisticRegression(n_classes=8, tol=1e-3).fit(*stack_pairs(X, *random_answers(y, 300)))
    assert np.mean(model.orient(X, y).predict(X) == y) > 0.95


def test_given_shares_pull_the_mean_prediction():
    X, y = iris()
    rows, table = stack_pairs(X, *random_answers(y, 60))
    model = PairLogisticRegression(n_classes=3, prior=[0.2, 0.5, 0.3], prior_strength=30, tol=1e-3).fit(rows, table)
    assert model.class_shares_ == pytest.approx([0.2, 0.5, 0.3], abs=0.05)


def test_numbers_beyond_what_the_answers_force_are_tried():
    """Loose pairs of five classes force two: the likelihood rises up to five, and is followed two further."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 500)
    ends = rng.permutation(500).reshape(-1, 2)
    rows, table = stack_pairs(4 * np.eye(5)[y] + rng.normal(size=(500, 5)), ends, y[ends[:, 0]] == y[ends[:, 1]])
    model = PairLogisticRegressionCV(2, covariance_power=0, n_classes="auto", cv=3).fit(rows, table)
    assert (model.n_classes_, model.n_classes_interval_) == (5, (5, 5))
    assert model.alpha_ in model.alphas_
    assert len(model.cv_results_["mean_test_score"]) == 2


def test_few_answers_leave_the_number_of_classes_open(tmp_path):
    """Six classes, of which 24 answers have six "same": the fit finds fewer, and says that there may be more."""
    rng = np.random.default_rng(9)
    y = np.arange(60) % 6
    X = (3 * rng.normal(size=(6, 4)))[y] + rng.normal(size=(60, 4))
    ends = rng.permutation(60)[:48].reshape(-1, 2)
    rows, table = stack_pairs(X, ends, y[ends[:, 0]] == y[ends[:, 1]])
    model = PairLogisticRegressionCV(1, covariance_power=0, n_classes="auto", cv=2)
    with pytest.warns(ClassNumberWarning, match=r'to \d+ are possible\. 6 of the 24 answers are "same"'):
        model.fit(rows, table)
    low, high = model.n_classes_interval_
    assert low <= model.n_classes_ < 6 <= high
    model.save(tmp_path / "model.sdu")
    assert load_model(tmp_path / "model.sdu").n_classes_interval_ == (low, high)


def test_classes_without_rows_are_warned_of():
    X, y = iris()
    rows, table = stack_pairs(X, *random_answers(y, 200))
    for model in (PairLogisticRegression(n_classes=6), PairLogisticRegressionCV(1, n_classes=6, cv=2)):
        with pytest.warns(ClassNumberWarning, match=rf"of 6 have no row among the {len(rows)}: .*fewer classes"):
            model.fit(rows, table)
        # The largest class is the first, so the empty ones are the last.
        assert np.unique(model.predict(rows)).tolist() == [1, 2, 3]
        assert getattr(model, "n_classes_interval_", None) is None


def test_few_same_answers_and_one_kind_of_answer_are_warned_of():
    X, y = iris()
    with pytest.warns(OneKindWarning, match='All answers are "same"'):
        PairLogisticRegression(n_classes=3).fit(X[:5], [[1, 0], [1, 1], [2, 2], [2, 3], [0, 4]])
    ends = np.array([(0, 50), (1, 100), (51, 101), (2, 3), (52, 53), (102, 103)])
    rows, table = stack_pairs(X, ends, y[ends[:, 0]] == y[ends[:, 1]])
    with pytest.warns(ClassNumberWarning, match=r'too few for 3 classes.* 3 of the 6 answers are "same"'):
        PairLogisticRegression(n_classes=3).fit(rows, table)
    labels = np.where(np.arange(len(y)) % 50 < 5, y, 0)
    rows, table = stack_pairs(X, ends, y[ends[:, 0]] == y[ends[:, 1]], labels=labels)
    PairLogisticRegression(n_classes=3).fit(rows, table)


@pytest.mark.filterwarnings("ignore::sdulearn.errors.ClassNumberWarning")
def test_every_class_that_is_found_has_rows():
    """Few answers about classes of unequal size: the likelihood alone would keep empty ones here."""
    rng = np.random.default_rng(29)
    y = rng.choice(4, 100, p=[0.6, 0.3, 0.06, 0.04])
    X = (1.5 * rng.normal(size=(4, 5)))[y] + rng.normal(size=(100, 5))
    ends = rng.permutation(100)[:50].reshape(-1, 2)
    rows, table = stack_pairs(X, ends, y[ends[:, 0]] == y[ends[:, 1]])
    model = PairLogisticRegressionCV(3, covariance_power=0, n_classes="auto", cv=3).fit(rows, table)
    assert np.unique(model.predict(rows)).tolist() == model.classes_.tolist()


LOOSE = [[1, 0], [1, 1], [-2, 2], [-2, 3], [0, 4]]
# Four points that all differ, and two that do not.
CLIQUE = [[-k, p] for k, ends in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], 1) for p in ends]
CLIQUE += [[7, 4], [7, 5]]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ([[1, 0, 0, 4], [1, 1, 0, 0]], {}, "Labels with 3 classes are 1 to 3"),
        ([[0, 0, 0, 0], [0, 1, 0, 0]], {}, "has no answers"),
        (LOOSE, {"prior": [0.5, 0.5]}, "`prior` must contain 3 class shares"),
        (LOOSE, {"prior": 0.5}, "`prior` must contain 3 class shares"),
        (LOOSE, {"prior": [0.5, 0.5], "n_classes": 2}, "`prior` is one number"),
        (LOOSE, {"n_classes": 6}, "`X` shows 5 points. Lower `n_classes`"),
        ([*LOOSE, [-3, 1], [-3, 0]], {"error_rate": 0.0}, "contradict each other"),
        (CLIQUE, {"error_rate": 0.0}, r"at least 4 classes, but `n_classes=3`.*Raise `n_classes`"),
    ],
)
def test_bad_input_is_refused_in_words_of_the_parameters(table, options, message):
    with pytest.raises(InputError, match=message):
        PairLogisticRegression(**{"n_classes": 3, **options}).fit(iris()[0][: len(table)], np.array(table))


# A class is lost at the wrong rate.
@pytest.mark.filterwarnings("ignore::sdulearn.errors.ClassNumberWarning")
@pytest.mark.parametrize("seed", [1, 5])
def test_one_person_who_is_often_wrong_about_four_classes(seed):
    """No answer checks another: models that have not seen them tell the rate, and a fit at it finds the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 800)
    X = 2.4 * np.eye(4, 8)[y] + rng.normal(size=(800, 8))
    ends = rng.permutation(800).reshape(-1, 2)
    same = (y[ends[:, 0]] == y[ends[:, 1]]) ^ (rng.random(400) < 0.2)
    rows, known = stack_pairs(X, ends, same)
    right = {}
    for rate in ("auto", 0.02, 0.2):
        model = PairLogisticRegressionCV(n_classes=4, error_rate=rate).fit(rows, known)
        counts = np.zeros((4, 4))
        np.add.at(counts, (model.predict(X) - 1, y), 1)
        right[rate] = counts[linear_sum_assignment(-counts)].sum() / 800
        if rate == "auto":
            found = model.answer_model_.error_rate
            assert found.low <= 0.2 <= found.high
            assert found.value > 0.1
    assert right["auto"] > right[0.02] + 0.1
    assert right["auto"] > right[0.2] - 0.02


def test_labels_of_more_classes_than_are_ever_tried_name_their_number():
    """The search ends at 20 classes, but labels say that there are 22."""
    rng = np.random.default_rng(0)
    classes = np.tile(np.arange(22), 12)
    X = np.eye(22)[classes] + 0.1 * rng.normal(size=(264, 22))
    ends = rng.permutation(264)[:200].reshape(-1, 2)
    ends = np.vstack([ends, np.column_stack([np.arange(22), np.arange(22) + 22])])
    labels = np.where(np.arange(264) < 66, classes + 1, 0)
    rows, y = stack_pairs(X, ends, classes[ends[:, 0]] == classes[ends[:, 1]], labels=labels)
    model = PairLogisticRegressionCV(2, n_classes="auto", cv=2).fit(rows, y)
    assert model.n_classes_ == 22
    assert (model.predict(X) == classes + 1).all()


@pytest.mark.parametrize("n_examples", [1, 2])
def test_classes_that_nothing_tells_apart_are_reported(n_examples):
    """Comparisons with one example of three classes leave the other two as one; with two examples none is open."""
    rng = np.random.default_rng(0)
    classes = np.r_[0, 1, rng.integers(0, 3, 298)]
    X = 4 * np.eye(3)[classes] + rng.normal(size=(300, 3))
    ends = np.array([(example, k) for k in range(2, 102) for example in range(n_examples)])
    rows, y = stack_pairs(X, ends, classes[ends[:, 0]] == classes[ends[:, 1]])
    model = PairLogisticRegressionCV(2, n_classes=3)
    if n_examples == 2:
        model.fit(rows, y)
        return
    with pytest.warns(ClassNumberWarning, match=r"Classes \d, \d of 3 have"):
        model.fit(rows, y)
