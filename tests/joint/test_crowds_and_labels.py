"""Labels, crowds and numbers of classes together, through the public API."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from sdulearn import PairBoostingClassifier, PairLogisticRegression, PairLogisticRegressionCV, load_model, stack_pairs
from sdulearn.errors import ClassNumberWarning, InputError, ModelFileError
from sdulearn.io import container
from tests.reference import blobs, random_ends


def crowd_rows(X, classes, n_answers, wrong, n_people, n_asked=80, labels=None, seed=0):
    rng = np.random.default_rng(seed)
    ends = random_ends(rng, n_asked, n_answers)
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) != (rng.random(n_answers) < wrong)
    return stack_pairs(X, ends, same, annotators=rng.integers(1, n_people + 1, n_answers), labels=labels)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_labels_of_all_classes_beside_answers_that_contradict_each_other(n_classes):
    X, classes = blobs(n_classes)
    labels = np.where(np.arange(150) < 8, classes + 1, 0)
    model = PairLogisticRegression(n_classes=n_classes).fit(*crowd_rows(X, classes, 300, 0.1, 3, labels=labels))
    assert (model.predict(X) == classes + 1).mean() > 0.9
    assert all(0.02 < rate < 0.2 for rate in model.answer_model_.rates.values())


@pytest.mark.filterwarnings("ignore::sdulearn.errors.ClassNumberWarning")
def test_a_table_of_errors_has_the_classes_that_were_found():
    X, classes = blobs(3, n=200)
    rows, y = crowd_rows(X, classes, 900, 0.05, 8)
    model = PairLogisticRegressionCV(n_classes="auto", answer_table=True, alphas=3).fit(rows, y)
    assert model.n_classes_interval_[0] <= 3 <= model.n_classes_interval_[1]
    assert model.answer_model_.table.shape == (3, 3)
    np.testing.assert_allclose(model.posterior(rows, y).sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore::sdulearn.errors.SdulearnWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [PairLogisticRegression(), PairLogisticRegressionCV(alphas=2, cv=3), PairBoostingClassifier(max_iter=3, cv=3)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_posteriors_of_a_crowd_are_the_same_after_a_file(estimator, n_classes, tmp_path):
    """The models of folds judge training answers, and those that are left out or not asked about do not matter."""
    X, classes = blobs(n_classes, apart=1.5)
    rows, y = crowd_rows(X, classes, 200 if n_classes == 2 else 1200, 0.2, 5)
    weight = np.where(np.isin(np.abs(y[:, 0]), [4, 7]) | (np.arange(len(y)) > len(y) - 5), 0.0, 1.0)
    model = clone(estimator).set_params(n_classes=n_classes).fit(rows, y, weight)
    assert model.answer_model_.of_crowd == (n_classes == 3)
    posterior = model.posterior(rows, y, weight)
    unasked = ~np.isin(y[:, 1], y[(y[:, 0] != 0) & (weight > 0), 1])
    np.testing.assert_allclose(posterior[unasked], model.predict_proba(rows)[unasked], atol=1e-12)
    for _ in range(2):
        model.save(tmp_path / "crowd.sdu")
        again = load_model(tmp_path / "crowd.sdu")
        np.testing.assert_array_equal(again.posterior(rows, y, weight), model.posterior(rows, y, weight))
        np.testing.assert_array_equal(again.posterior(rows[weight > 0], y[weight > 0]), posterior[weight > 0])
        model = again


@pytest.mark.filterwarnings("ignore::sdulearn.errors.OrientationWarning")
def test_folds_of_a_forged_file_are_refused(tmp_path):
    X, classes = blobs(2)
    model = PairLogisticRegressionCV(alphas=2, cv=3).fit(*crowd_rows(X, classes, 100, 0.0, 1))
    whole = model.fold_parts_
    forged = [
        {"_learned_rows": model._learned_rows[::-1]},
        {"_learned_rows": model._learned_rows[:5]},
        *({f"fold_parts_/{name}": array[:-1]} for name, array in whole.items()),
        {"fold_parts_/fold": whole["fold"] + 1},
        {"fold_parts_/coef": whole["coef"] * np.nan},
    ]
    for changes in forged:
        header, arrays = container.describe_estimator(model)
        assert set(changes) <= set(arrays)
        container.write(tmp_path / "forged.sdu", header, arrays | changes)
        with pytest.raises(ModelFileError):
            load_model(tmp_path / "forged.sdu")


def test_labels_of_two_classes_answer_how_many_there_are():
    X, classes = blobs(2)
    labels = np.where(np.arange(150) < 5, 2 * classes - 1, 0)
    model = PairLogisticRegressionCV(n_classes="auto").fit(*crowd_rows(X, classes, 200, 0.0, 1, labels=labels))
    assert model.classes_.tolist() == [-1, 1]
    assert model.n_classes_interval_ == (2, 2)
    assert model.coef_.shape == (1, 2)
    assert (model.predict(X) == 2 * classes - 1).mean() > 0.9
    with pytest.raises(InputError, match="`prior`"):
        PairLogisticRegressionCV(n_classes="auto", prior=0.4).fit(*crowd_rows(X, classes, 200, 0.0, 1))


@pytest.mark.filterwarnings("ignore::sdulearn.errors.OrientationWarning")
def test_a_crowd_of_two_classes_needs_no_table():
    """The table is for the number of classes that "auto" finds, and two have none."""
    X, classes = blobs(2)
    rows, y = crowd_rows(X, classes, 300, 0.1, 3)
    with pytest.warns(ClassNumberWarning, match="2 were found, and 2 to"):
        model = PairLogisticRegressionCV(n_classes="auto", answer_table=True, alphas=3).fit(rows, y)
    assert (model.n_classes_, model.answer_model_.table) == (2, None)
    assert model.n_classes_interval_[0] == 2 < model.n_classes_interval_[1]
    with pytest.raises(InputError, match="more than two classes"):
        PairLogisticRegressionCV(answer_table=True).fit(rows, y)


@pytest.mark.filterwarnings("ignore")
def test_a_crowd_with_a_single_same_answer_is_fitted():
    X, classes = blobs(3)
    rows, y = crowd_rows(X, classes, 200, 0.0, 20)
    y[:, 0] = np.where(np.abs(y[:, 0]) == 1, 1, -np.abs(y[:, 0]))
    assert PairLogisticRegression(n_classes=3).fit(rows, y).n_classes_ == 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("asked", [[True, False], [True, True, False]], ids=["both ways", "in turns"])
def test_answers_of_which_each_point_has_as_many_of_either_kind_are_fitted(asked):
    """Nothing, or no point, is above the mean, where an eigenvector would begin."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    start = np.tile(np.arange(30), 2 * len(asked))
    ends = np.column_stack([start, (start + np.tile(np.repeat([1, 7], 30), len(asked))) % 30])
    rows, y = stack_pairs(X, ends, (start % 2 == 0) == np.repeat(asked, 60))
    model = PairLogisticRegression(n_classes=3).fit(rows, y)
    np.testing.assert_allclose(model.posterior(rows, y).sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore")
def test_sets_of_which_nothing_is_the_same_are_fitted_with_two_classes():
    """Of three items two are the same, so these answers are a crowd's, and all are of one kind."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    sets = np.array([rng.choice(30, 3, replace=False) for _ in range(25)])
    ends = sets[:, [[0, 1], [0, 2], [1, 2]]].reshape(-1, 2)
    rows, y = stack_pairs(X, ends, np.zeros(75, dtype=bool), questions=np.repeat(np.arange(1, 26), 3))
    posterior = PairLogisticRegression().fit(rows, y).posterior(rows, y)
    np.testing.assert_allclose(posterior.sum(axis=1), 1)


def test_class_shares_are_those_of_all_points():
    """Most answers are about rows of one class, so the rows left over are of the others."""
    rng = np.random.default_rng(0)
    classes = np.sort(rng.choice(3, 300, p=[0.4, 0.33, 0.27]))
    X = 3 * np.eye(3)[classes] + rng.normal(size=(300, 3))
    near = [rng.choice(120, 2, replace=False) for _ in range(80)]
    ends = np.array(near + [rng.choice(300, 2, replace=False) for _ in range(60)])
    model = PairLogisticRegressionCV(n_classes=3)
    model.fit(*stack_pairs(X, ends, classes[ends[:, 0]] == classes[ends[:, 1]]))
    predicted = np.bincount(model.predict(X), minlength=4)[1:] / 300
    np.testing.assert_allclose(model.class_shares_, predicted, atol=0.03)
    np.testing.assert_allclose(model.class_shares_, model.predict_proba(X).mean(axis=0), atol=0.03)


@pytest.mark.filterwarnings("ignore::sdulearn.errors.SdulearnWarning")
@pytest.mark.parametrize(("n_classes", "n_people"), [(6, 1), (6, 4), ("auto", 1)])
def test_features_count_where_answers_to_each_point_say_little(n_classes, n_people):
    """Six answers to each point, a sixth of them wrong, do not tell six classes without the features."""
    rng = np.random.default_rng(4)
    classes = rng.integers(0, 6, 900)
    X = 3.5 * np.eye(6)[classes] + rng.normal(size=(900, 6))
    ends = np.array([rng.choice(400, 2, replace=False) for _ in range(1200)])
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) ^ (rng.random(1200) < 1 / 6)
    annotators = rng.integers(1, n_people + 1, 1200)
    rows, y = stack_pairs(X[:400], ends, same, annotators=annotators)
    model = PairLogisticRegressionCV(n_classes=n_classes).fit(rows, y)
    assert model.n_classes_ == 6
    counts = np.zeros((6, 6))
    np.add.at(counts, (model.predict(X[400:]) - 1, classes[400:]), 1)
    assert counts[linear_sum_assignment(-counts)].sum() > 0.85 * 500
    rate = model.answer_model_.error_rate
    assert rate.low <= 1 / 6 <= rate.high
    assert rate.value == pytest.approx(1 / 6, abs=0.05)
    # Probabilities of the rows in answers are those of rates like it.
    likely = [one.by_annotator[1].value for one in model.answer_model_.likely()]
    assert min(likely) > rate.value - 0.02


@pytest.mark.filterwarnings("ignore::sdulearn.errors.SdulearnWarning")
@pytest.mark.parametrize("wrong", [0.1, 0.3])
def test_a_rate_that_too_many_answers_tell_for_their_cycles(wrong):
    rng = np.random.default_rng(5)
    classes = rng.integers(0, 8, 2500)
    X = 4 * np.eye(8)[classes] + rng.normal(size=(2500, 8))
    ends = rng.integers(0, 2000, (3200, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) ^ (rng.random(len(ends)) < wrong)
    model = PairLogisticRegressionCV(n_classes=8).fit(*stack_pairs(X[:2000], ends, same))
    rate = model.answer_model_.error_rate
    assert rate.low <= wrong <= rate.high
    assert rate.value == pytest.approx(wrong, abs=0.05)
    counts = np.zeros((8, 8))
    np.add.at(counts, (model.predict(X[2000:]) - 1, classes[2000:]), 1)
    assert counts[linear_sum_assignment(-counts)].sum() > 0.8 * 500
