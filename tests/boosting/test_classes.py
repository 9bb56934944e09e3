"""More than two classes: trees on the same likelihood, implied labels, names by labels or by orient, files."""

import numpy as np
import pytest

from sdulearn import PairBoostingClassifier, load_model, stack_pairs
from sdulearn.errors import InputError

pytest.importorskip("lightgbm")


def sectors(n, seed):
    """Three classes in the plane with steps between them, so that no lines separate them well."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    label = np.where(X[:, 0] > np.where(X[:, 1] > -0.4, 0.4, -0.6), 1, 2)
    label[X[:, 1] > np.where(np.abs(X[:, 0]) < 0.5, 0.1, 0.7)] = 3
    return X, label


@pytest.fixture(scope="module")
def answered():
    """Every point is compared with two others; a few labels."""
    X, label = sectors(500, 0)
    rng = np.random.default_rng(1)
    pairs = np.array([(i, j) for i in range(400) for j in rng.choice(400, 2, replace=False) if i != j])
    same = label[pairs[:, 0]] == label[pairs[:, 1]]
    labels = np.zeros(500, dtype=int)
    labels[400:430] = label[400:430]
    return stack_pairs(X, pairs, same, labels=labels)


@pytest.fixture(scope="module")
def model(answered):
    return PairBoostingClassifier(n_classes=3, max_iter=40, n_iter_no_change=10, cv=3).fit(*answered)


def test_three_classes_from_answers(model):
    X, label = sectors(1000, 2)
    assert np.mean(model.predict(X) == label) > 0.85
    # The first entry is that of the linear start.
    assert model.held_out_log_likelihood_.max() > model.held_out_log_likelihood_[0] + 0.05
    assert model.classes_.tolist() == [1, 2, 3]
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_models_of_folds_know_no_answer_about_their_points(model, answered):
    """Rows of one point are in one fold, though answers that labels imply, and their rows, are left out of the fit."""
    rows, y = answered
    fold_of_point = {}
    for k, (its_rows, fold) in enumerate(model.fold_models_):
        for point in y[its_rows, 1].tolist():
            assert fold_of_point.setdefault(point, k) == k
        predicted = fold.predict(rows[its_rows])
        assert np.mean(predicted == model.predict(rows[its_rows])) > 0.75
        np.testing.assert_array_equal(predicted, 1 + np.argmax(fold.decision_function(rows[its_rows]), axis=1))
    assert len(np.concatenate([its_rows for its_rows, _ in model.fold_models_])) == len(y)


def test_orient_renames_and_files_keep_it(model, tmp_path):
    X, label = sectors(200, 3)
    before = model.decision_function(X)
    turned = np.array([0, 2, 3, 1])
    model.save(tmp_path / "before.sdu")
    again = load_model(tmp_path / "before.sdu")
    again.orient(X, turned[label])
    np.testing.assert_array_equal(again.decision_function(X), before[:, [2, 0, 1]])
    again.save(tmp_path / "after.sdu")
    np.testing.assert_array_equal(load_model(tmp_path / "after.sdu").predict(X), turned[model.predict(X)])
    for wrong in (label + 1, label[:7]):
        with pytest.raises(InputError):
            again.orient(X, wrong)


def rings(n, seed):
    """Three classes, one inside another: to lines, the outer ones look alike on all sides."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 1 + np.digitize(np.hypot(*X.T), [0.75, 1.5])


def test_linked_answers_are_worth_labels_where_no_line_sees_a_class():
    X, label = rings(300, 0)
    examples = [int(np.flatnonzero(label == k)[0]) for k in (1, 2, 3)]
    others = [i for i in range(300) if i not in examples]
    ends = np.array([(e, f) for e in examples for f in examples if e < f] + [(e, i) for i in others for e in examples])
    rows, y = stack_pairs(X, ends, label[ends[:, 0]] == label[ends[:, 1]])
    test, truth = rings(1000, 1)
    model = PairBoostingClassifier(n_classes=3, cv=3).fit(rows, y).orient(X[examples], [1, 2, 3])
    assert np.mean(model.predict(test) == truth) > 0.9
    assert not model.start_.coef.any()


def test_answers_that_may_be_wrong_imply_no_labels():
    label = 1 + np.arange(36) % 3
    X = np.random.default_rng(0).normal(size=(36, 3)) + 4 * np.eye(3)[label - 1]
    ends = np.array([(i, j) for i in range(36) for j in range(3) if j < i])
    rows, y = stack_pairs(X, ends, label[ends[:, 0]] == label[ends[:, 1]])
    model = PairBoostingClassifier(n_classes=3, cv=2, max_iter=1, error_rate=0.1).fit(rows, y)
    assert model.start_.coef.any()


def test_without_more_answers_than_labels_trees_start_at_the_shares_of_the_labels():
    X, label = sectors(300, 2)
    kept = np.append(np.flatnonzero(label == 1), np.flatnonzero(label != 1)[:60])
    X, label = X[kept], label[kept]
    pairs = np.arange(40).reshape(-1, 2)
    pairs = np.vstack([pairs, np.column_stack([np.arange(20), np.arange(len(X) - 20, len(X))])])
    same = label[pairs[:, 0]] == label[pairs[:, 1]]
    model = PairBoostingClassifier(n_classes=3, max_iter=3, cv=2).fit(*stack_pairs(X, pairs, same, labels=label))
    counts = np.bincount(label)[1:] + 1
    np.testing.assert_allclose(np.exp(model.start_.intercept), counts / counts.sum())
    assert not model.start_.coef.any()
