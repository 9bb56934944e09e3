"""Labels, crowds and numbers of classes together, through the public API."""

import numpy as np
import pytest

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, load_model, stack_pairs
from sdulearn.errors import InputError
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


def test_a_table_of_errors_has_the_classes_that_were_found():
    X, classes = blobs(3, n=200)
    rows, y = crowd_rows(X, classes, 900, 0.05, 8)
    model = PairLogisticRegressionCV(n_classes="auto", answer_table=True, alphas=3).fit(rows, y)
    assert model.answer_model_.table.shape == (3, 3)
    np.testing.assert_allclose(model.posterior(rows, y).sum(axis=1), 1)


def test_posteriors_of_a_crowd_are_the_same_after_a_file(tmp_path):
    X, classes = blobs(3, apart=1.5)
    rows, y = crowd_rows(X, classes, 400, 0.2, 20)
    model = PairLogisticRegression(n_classes=3).fit(rows, y)
    assert model.answer_model_.of_crowd
    model.save(tmp_path / "crowd.sdu")
    np.testing.assert_array_equal(load_model(tmp_path / "crowd.sdu").posterior(rows, y), model.posterior(rows, y))


def test_labels_of_two_classes_answer_how_many_there_are():
    X, classes = blobs(2)
    labels = np.where(np.arange(150) < 5, 2 * classes - 1, 0)
    model = PairLogisticRegressionCV(n_classes="auto").fit(*crowd_rows(X, classes, 200, 0.0, 1, labels=labels))
    assert model.classes_.tolist() == [-1, 1]
    assert model.coef_.shape == (1, 2)
    assert (model.predict(X) == 2 * classes - 1).mean() > 0.9
    with pytest.raises(InputError, match="`prior`"):
        PairLogisticRegressionCV(n_classes="auto", prior=0.4).fit(*crowd_rows(X, classes, 200, 0.0, 1))


@pytest.mark.filterwarnings("ignore")
def test_a_crowd_with_a_single_same_answer_is_fitted():
    X, classes = blobs(3)
    rows, y = crowd_rows(X, classes, 200, 0.0, 20)
    y[:, 0] = np.where(np.abs(y[:, 0]) == 1, 1, -np.abs(y[:, 0]))
    assert PairLogisticRegression(n_classes=3).fit(rows, y).n_classes_ == 3


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
