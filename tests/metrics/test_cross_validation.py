from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sdulearn import PairKFold, PairLogisticRegression, PairLogisticRegressionCV, SDUClassifier, stack_pairs
from sdulearn.errors import InputError
from sdulearn.metrics import (
    class_agreement,
    cross_val_accuracy,
    cross_val_agreement,
    folds_over_points,
    held_out,
    held_out_accuracy,
    pair_accuracy,
)
from sdulearn.metrics.accuracy import fold_spread
from sdulearn.metrics.cross_validation import held_out_same
from sdulearn.model_selection import splitter_of
from sdulearn.prior import clopper_pearson, prior_from_share
from tests.reference import blobs


def test_cross_validation_judges_by_models_that_have_not_seen_the_pair(waveform):
    rows, codes = waveform
    model = SDUClassifier()
    reference = model.fit(rows, codes).decision_function(rows)
    decision = held_out(model, rows, codes, reference, cv=PairKFold(4, random_state=3))
    for train, test in PairKFold(4, random_state=3).split(rows, codes):
        z = SDUClassifier().fit(rows[train], codes[train]).decision_function(rows[test])
        np.testing.assert_allclose(np.abs(decision[test]), np.abs(z))
    found = cross_val_accuracy(model, rows, codes, cv=PairKFold(4, random_state=3))
    assert found == held_out_accuracy(decision, codes, n_splits=4)
    # The same estimate as of decisions by one model, with an interval of 1 + 2/3 times the variance.
    plain = pair_accuracy(decision, codes)
    assert (found.value, found.agreement) == (plain.value, plain.agreement)
    effective = plain.n_answers / (1 + 2 / 3)
    _, high = clopper_pearson(plain.agreement * effective, (1 - plain.agreement) * effective, 0.95)
    assert found.high == pytest.approx(prior_from_share(high))
    folds = folds_over_points(100, codes)
    assert (folds.n_splits, folds.random_state) == (min(np.sum(codes > 0), np.sum(codes < 0)) // 2, 1)
    assert folds_over_points(10, [1, 1, 2, 2, -3, -3, -4, -4]).n_splits == 2
    assert cross_val_accuracy(model, rows, codes) == cross_val_accuracy(model, rows, codes, cv=10)
    # A number of folds means other folds here than within the estimators that choose a penalty by folds.
    by_number = held_out(model, rows, codes, reference, cv=4)
    assert not np.allclose(by_number, held_out(model, rows, codes, reference, cv=splitter_of(4)))
    frame = pd.DataFrame(rows, columns=[f"x{k}" for k in range(rows.shape[1])])
    assert cross_val_accuracy(model, frame, codes, cv=PairKFold(4, random_state=3)) == found
    with pytest.raises(InputError, match="must hold out every row once"):
        held_out(model, rows, codes, reference, cv=PredefinedSplit(np.where(np.arange(len(codes)) < 40, 0, -1)))


def test_weights_have_no_unit_and_weight_0_is_absence(waveform):
    """In the folds, the models of the folds, and the estimate; among answers of which some count, too."""
    rows, codes = waveform
    model = SDUClassifier()
    rng = np.random.default_rng(0)
    weight = np.where(codes == 0, rng.uniform(0.5, 2, len(codes)), rng.uniform(0.5, 2, 1000)[np.abs(codes)])
    weight[(np.abs(codes) % 5 == 1) | (np.arange(len(codes)) == len(codes) - 1)] = 0
    kept = weight > 0
    found = cross_val_accuracy(model, rows, codes, sample_weight=weight, cv=4)
    assert found == cross_val_accuracy(model, rows[kept], codes[kept], sample_weight=weight[kept], cv=4)
    other = cross_val_accuracy(model, rows, codes, sample_weight=100 * weight, cv=4)
    assert astuple(other)[:-1] == pytest.approx(astuple(found)[:-1], rel=1e-10)
    assert other.basis == found.basis
    # Rows of weight 0 keep the decision of the reference.
    reference = rng.normal(size=len(codes))
    decision = held_out(model, rows, codes, reference, sample_weight=weight, cv=4)
    part = held_out(model, rows[kept], codes[kept], reference[kept], sample_weight=weight[kept], cv=4)
    np.testing.assert_allclose(decision[kept], part)
    np.testing.assert_array_equal(decision[~kept], reference[~kept])
    # Unlabeled rows of weight 0 are no kind of rows that a fold could miss.
    bare = np.where(codes == 0, 0.0, weight)
    decision = held_out(PairLogisticRegression(), rows, codes, reference, sample_weight=bare, cv=2)
    assert len(np.unique(decision[bare > 0])) > 2
    with pytest.raises(InputError, match=r"All weights in `sample_weight` are zero"):
        cross_val_accuracy(model, rows, codes, sample_weight=np.zeros(len(codes)))
    with pytest.raises(InputError, match=r"Rows of weight 0 are left out before folds"):
        cross_val_accuracy(model, rows, codes, sample_weight=weight, cv=PredefinedSplit(np.arange(len(codes)) % 2))


class Contrary(SDUClassifier):
    """Names the classes the other way round on every other data set that it is fitted on."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if int(np.sum(np.abs(y))) // 2 % 2:
            self._rename(np.array([1, 0]))
        return self


def test_folds_that_name_the_classes_the_other_way_round_are_turned(waveform):
    rows, codes = waveform
    reference = SDUClassifier().fit(rows, codes).decision_function(rows)
    plain = held_out(SDUClassifier(), rows, codes, reference, cv=PairKFold(6, random_state=2))
    turned = held_out(Contrary(), rows, codes, reference, cv=PairKFold(6, random_state=2))
    odd = [int(np.sum(np.abs(codes[train]))) // 2 % 2 for train, _ in PairKFold(6, random_state=2).split(rows, codes)]
    assert 0 < sum(odd) < 6
    np.testing.assert_allclose(turned, plain)
    # As the reference names them.
    assert np.mean((plain > 0) == (reference > 0)) > 0.8
    mirrored = held_out(SDUClassifier(), rows, codes, -reference, cv=PairKFold(6, random_state=2))
    np.testing.assert_allclose(mirrored, -plain)


def test_the_models_of_folds_are_fitted_with_the_weights_of_their_rows(waveform):
    rows, codes = waveform
    weight = np.random.default_rng(0).uniform(0.1, 5, 1000)[np.abs(codes)]
    folds = PairKFold(3, random_state=1)
    reference = SDUClassifier().fit(rows, codes, sample_weight=weight).decision_function(rows)
    decided = held_out(SDUClassifier(), rows, codes, reference, sample_weight=weight, cv=folds)
    unweighted = held_out(SDUClassifier(), rows, codes, reference, cv=folds)
    assert np.abs(decided - unweighted).max() > 0.01
    for train, test in folds.split(rows, codes):
        model = SDUClassifier().fit(rows[train], codes[train], sample_weight=weight[train])
        np.testing.assert_allclose(np.abs(decided[test]), np.abs(model.decision_function(rows[test])), atol=1e-6)


def test_the_model_of_a_fold_saw_no_answer_about_its_points(shared):
    rows, known = shared
    reference = PairLogisticRegression().fit(rows, known).decision_function(rows)
    folds = PairKFold(5, random_state=0)
    decision = held_out(PairLogisticRegression(), rows, known, reference, cv=folds)
    for train, test in folds.split(rows, known):
        assert not set(known[train, 1]) & set(known[test, 1])
        z = PairLogisticRegression().fit(rows[train], known[train]).decision_function(rows[test])
        np.testing.assert_allclose(np.abs(decision[test]), np.abs(z))
    # Rows of one point have one decision, also those of answers between two folds.
    points, first = np.unique(known[:, 1], return_index=True)
    np.testing.assert_allclose(decision, decision[first][np.searchsorted(points, known[:, 1])])


@pytest.mark.parametrize("larger", [1.0, -1.0])
def test_a_fold_without_both_kinds_names_the_larger_class_for_all(larger):
    """Both "different" answers are about the last point: the model of its fold knows "same" ones alone."""
    ends = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (0, 11), (6, 11)]
    rows, known = stack_pairs(np.arange(12.0)[:, None], ends, [True] * 6 + [False] * 2)
    folds = PairKFold(2, random_state=0)
    decision = held_out(PairLogisticRegression(), rows, known, np.full(len(rows), larger), cv=folds)
    fold = folds.fold_of_points(known)
    assert (decision[fold[known[:, 1]] == fold[11]] == larger).all()
    assert np.isfinite(decision).all()


@pytest.fixture(scope="module")
def three_classes():
    """Rows of three classes, 150 answers and their classes."""
    X, truth = blobs(3, 320)
    pairs = np.random.default_rng(1).permutation(320)[:300].reshape(-1, 2)
    return *stack_pairs(X, pairs, truth[pairs[:, 0]] == truth[pairs[:, 1]]), truth


def test_three_classes_are_judged_by_models_that_have_not_seen_the_points(three_classes):
    rows, y, truth = three_classes
    model = make_pipeline(StandardScaler(), PairLogisticRegression(0.01, n_classes=3))
    found = cross_val_agreement(model, rows, y, cv=3)
    predicted = held_out(model, rows, y, clone(model).fit(rows, y).predict(rows), cv=3)
    plain = class_agreement(predicted, y)
    assert (found.agreement.value, found.counts) == (plain.agreement.value, plain.counts)
    # Folds share training data.
    assert found.agreement.n == pytest.approx(plain.agreement.n / fold_spread(3))
    assert found.agreement.low < plain.agreement.low < found.agreement.value
    # Answers about a random point count, each with two points of its own; the others do not.
    random = y[:, 1] % 3 == 0
    some = cross_val_agreement(model, rows, y, cv=3, random_points=random)
    n_asked = len(np.unique(y[random & (y[:, 0] != 0), 0]))
    assert 0 < 150 - n_asked < n_asked
    assert some.agreement.n == pytest.approx(n_asked / fold_spread(3, np.mean(random[y[:, 0] != 0])))
    table = np.array([[np.sum((predicted == a) & (truth[y[:, 1]] == b)) for a in (1, 2, 3)] for b in range(3)])
    right = table[linear_sum_assignment(-table)].sum() / table.sum()
    with pytest.raises(ValueError, match=r"the model has 3, .*cross_val_agreement\(estimator, X, y\)"):
        cross_val_accuracy(model, rows, y)
    labels = np.where(np.arange(len(y)) < 60, truth[y[:, 1]] + 1, 0)
    named = cross_val_agreement(model, rows, np.column_stack([y, np.zeros_like(labels), labels]), cv=3)
    assert named.basis == "labels"
    assert named.accuracy.low < right < named.accuracy.high


def test_folds_have_as_many_classes_as_all_answers_tell(three_classes, monkeypatch):
    rows, y, _ = three_classes
    seen = []
    fit = PairLogisticRegressionCV.fit
    monkeypatch.setattr(
        PairLogisticRegressionCV, "fit", lambda self, *given: seen.append(self.n_classes) or fit(self, *given)
    )
    model = make_pipeline("passthrough", PairLogisticRegressionCV(1, n_classes="auto", cv=2))
    found = cross_val_agreement(model, rows[:160], y[:160], cv=2)
    assert seen == ["auto", 3, 3]
    assert found.agreement.value > 0.85


def test_chances_of_same_are_those_of_models_without_the_points(waveform):
    rows, codes = waveform
    folds = PairKFold(3, random_state=0)
    chance, similar = held_out_same(PairLogisticRegression(), rows, codes, folds)
    assert similar.sum() == np.sum(codes > 0) // 2
    expected = []
    for train, test in folds.split(rows, codes):
        p = PairLogisticRegression().fit(rows[train], codes[train]).predict_proba(rows[test])[:, 1]
        ends = [p[codes[test] == code] for code in np.unique(codes[test][codes[test] != 0])]
        expected += [a * b + (1 - a) * (1 - b) for a, b in ends]
    np.testing.assert_allclose(np.sort(chance), np.sort(expected))
