import importlib
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from sdulearn.answers import read_answers
from sdulearn.errors import InputError
from sdulearn.metrics import Difference, audit_predictions


def pairs_of(classes, n, rng, wrong=0.0):
    """Answers about pairs of random rows, as a frame."""
    rows = rng.choice(len(classes), 2 * n, replace=False).reshape(-1, 2)
    same = (classes[rows[:, 0]] == classes[rows[:, 1]]) ^ (rng.random(n) < wrong)
    return read_answers(pd.DataFrame({"id_a": rows[:, 0], "id_b": rows[:, 1], "same": same.astype(int)}))


def guesses(classes, accuracy, n_classes, rng):
    shift = rng.integers(1, n_classes, len(classes))
    return np.where(rng.random(len(classes)) < accuracy, classes, (classes + shift) % n_classes)


def test_labels_are_counted_and_names_matter_only_where_they_agree():
    """Nine of ten labels by name; clusters with other names are matched, and then less certain."""
    labels = {str(k): "ab"[k % 2] for k in range(10)}
    predicted = {**labels, "0": "b", "unlabelled": "a"}
    audit = audit_predictions(predicted, labels)
    assert (audit.accuracy.value, audit.basis, audit.n_rows) == (0.9, "labels", 10)
    clusters = {key: {"a": "1", "b": "2"}[name] for key, name in predicted.items()}
    by_cluster = audit_predictions(clusters, labels).accuracy
    assert by_cluster.low <= audit.accuracy.low
    assert by_cluster.value == pytest.approx(0.9)
    assert audit_predictions(pd.Series(predicted), pd.Series(labels)) == audit


@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_two_classes_by_pairs_hold_the_truth_in_most_draws(wrong):
    """At 95%, 34 of 40 draws or fewer happen in less than 1 of 1,000 runs; an error rate is allowed for."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(40):
        classes = (rng.random(1000) < rng.uniform(0.3, 0.7)).astype(int)
        predicted = guesses(classes, 0.85, 2, rng)
        accuracy = audit_predictions(predicted, pairs_of(classes, 150, rng, wrong)).accuracy
        hits += accuracy.low <= np.mean(predicted == classes) <= accuracy.high
    assert hits > 34


def test_pairs_of_many_classes_give_no_accuracy_but_an_agreement():
    rng = np.random.default_rng(3)
    classes = rng.integers(0, 10, 2000)
    predicted = rng.integers(0, 10, 2000)
    audit = audit_predictions(predicted, pairs_of(classes, 300, rng))
    assert (audit.accuracy, audit.basis, audit.n_classes) == (None, None, 10)
    assert audit.agreement.value < audit.always_different.value
    assert not audit.misses(0.99)
    # Two predicted classes do not make ten classes two.
    assert audit_predictions(predicted % 2, pairs_of(classes, 300, rng)).accuracy is None


@pytest.mark.parametrize("module", ["sdulearn", "answers", "asking", "metrics"])
def test_public_results_cannot_be_changed(module):
    module = importlib.import_module("sdulearn" if module == "sdulearn" else f"sdulearn.{module}")
    public = [getattr(module, name) for name in module.__all__]
    records = [one for one in public if is_dataclass(one) and not issubclass(one, BaseEstimator)]
    for record in records:
        with pytest.raises(FrozenInstanceError):
            setattr(object.__new__(record), fields(record)[0].name, None)


def test_two_classifiers_on_the_same_answers():
    rng = np.random.default_rng(4)
    classes = rng.integers(0, 2, 3000)
    good, bad = (guesses(classes, share, 2, rng) for share in (0.95, 0.7))
    audit = audit_predictions(good, pairs_of(classes, 400, rng), compare=bad)
    assert 0 < audit.difference.low < 0.25 < audit.difference.high
    assert audit.compared.accuracy.value < audit.accuracy.value
    labels = dict(enumerate(classes[:300].tolist()))
    by_labels = audit_predictions(good, labels, compare=bad).difference
    assert by_labels.high - by_labels.low < audit.difference.high - audit.difference.low


def test_what_cannot_be_audited():
    answers = read_answers(pd.DataFrame({"id_a": ["a"], "id_b": ["b"], "same": [1]}))
    with pytest.raises(InputError):
        audit_predictions({"x": 1, "y": 2}, answers)
    with pytest.raises(InputError):
        audit_predictions({"x": 1}, {"a": 1})
    with pytest.raises(InputError):
        audit_predictions(np.zeros((3, 2)), {"0": 1})


def test_guesses_have_no_difference_and_say_so():
    """Neither classifier agrees with more answers than chance: the difference is unknown, from -1 to 1, not 0."""
    rng = np.random.default_rng(5)
    classes = rng.integers(0, 2, 2000)
    found = audit_predictions(
        rng.integers(0, 2, 2000), pairs_of(classes, 100, rng), compare=1 - rng.integers(0, 2, 2000)
    )
    worse = [found, audit_predictions(np.arange(2000) % 2, opposite_of(np.arange(2000) % 2, rng), compare=classes)]
    unknown = [audit.difference for audit in worse if np.isnan(audit.difference.value)]
    assert all((gap.low, gap.high, str(gap)) == (-1, 1, "unknown") for gap in unknown)
    assert unknown


def opposite_of(predicted, rng):
    """Answers that contradict all predictions about pairs."""
    rows = rng.permutation(len(predicted))[:100].reshape(-1, 2)
    same = (predicted[rows[:, 0]] != predicted[rows[:, 1]]).astype(int)
    return read_answers(pd.DataFrame({"id_a": rows[:, 0], "id_b": rows[:, 1], "same": same}))


def test_a_difference_is_printed_in_percentage_points():
    assert str(Difference(0.05, -0.1, 0.2)) == "+5.0 percentage points (-10.0 to +20.0)"


def test_rows_without_a_class_have_no_prediction_and_whole_numbers_one_name():
    """As pandas writes them: gaps make a column of numbers 1.0, 2.0, NaN."""
    rng = np.random.default_rng(0)
    classes = rng.integers(1, 3, 300)
    predicted = guesses(classes - 1, 0.9, 2, rng) + 1
    answers = pairs_of(classes, 140, rng)
    kept = {k: int(name) for k, name in enumerate(predicted) if k >= 50}
    with_gaps = pd.Series(predicted, dtype=float).where(np.arange(300) >= 50)
    of_objects = {**kept, **dict.fromkeys(range(25), None), **dict.fromkeys(range(25, 50), pd.NA)}
    for evidence in (answers, dict(enumerate(classes))):
        expected = audit_predictions(kept, evidence)
        assert expected.n_missing > 0
        assert audit_predictions(with_gaps, evidence) == audit_predictions(of_objects, evidence) == expected
    # By name: whoever exchanges the classes is wrong about all.
    assert audit_predictions(pd.Series(3.0 - classes), dict(enumerate(classes))).accuracy.value == 0
    assert audit_predictions(kept, pd.Series(classes).where(np.arange(300) < 60)).n_rows == 10


@pytest.mark.parametrize("predicted", [pd.Series([1, 2], ["a", "a"]), pd.DataFrame({"a": [1]}), [[1, 2]]])
def test_predictions_of_another_shape_or_two_for_a_row_are_refused(predicted):
    with pytest.raises(InputError, match="`predicted`"):
        audit_predictions(predicted, {"a": 1})


def test_clusters_of_single_rows_show_nothing():
    """Ten rows, each alone in its cluster and in its class: every row is matched, and none by the others."""
    audit = audit_predictions({str(k): f"c{k}" for k in range(10)}, {str(k): f"g{k}" for k in range(10)})
    assert (audit.accuracy.low, audit.accuracy.high) == (0, 1)


def test_questions_asked_three_times_are_as_precise_as_once():
    rng = np.random.default_rng(6)
    classes = rng.integers(0, 2, 400)
    good, bad = (guesses(classes, share, 2, rng) for share in (0.95, 0.75))
    rows = rng.permutation(400).reshape(-1, 2)
    frame = pd.DataFrame({"id_a": rows[:, 0], "id_b": rows[:, 1], "same": np.diff(classes[rows])[:, 0] == 0})
    thrice = pd.concat([frame.assign(annotator=name) for name in "abc"])
    once, again = (
        audit_predictions(good, read_answers(each), compare=bad, error_rate=0.05) for each in (frame, thrice)
    )
    assert again.difference.value == pytest.approx(once.difference.value)
    assert again.difference.high - again.difference.low > 0.9 * (once.difference.high - once.difference.low)
    assert again.agreement.high - again.agreement.low > 0.9 * (once.agreement.high - once.agreement.low)


@pytest.mark.parametrize("error", [0.0, 0.1])
def test_random_rows_beside_examples_count_and_the_examples_do_not(error):
    """A wrong answer is about any other class: a difference of hits is one of accuracies times 1 - e K / (K - 1)."""
    rng = np.random.default_rng(7)
    classes = np.append([0, 1, 2], rng.integers(0, 3, 300))
    good, bad = (guesses(classes, share, 3, rng) for share in (0.95, 0.75))
    rows, example = np.divmod(np.arange(900), 3)
    frame = pd.DataFrame({"id_a": rows + 3, "id_b": example, "same": classes[rows + 3] == example})
    answers = replace(read_answers(frame), questions=rows + 1)
    audit = audit_predictions(good, answers, compare=bad, error_rate=error)
    hits = [predicted[3:] == classes[3:] for predicted in (good, bad)]
    assert (audit.basis, audit.accuracy.n, audit.n_classes) == ("random questions", 300, 3)
    scale = 1 - error * 3 / 2
    assert audit.difference.value == pytest.approx((hits[0].mean() - hits[1].mean()) / scale)
    # Nobody can be right about more than all.
    expected = min((hits[1].mean() - error / 2) / scale, 1)
    assert audit.compared.accuracy.value == pytest.approx(expected, abs=0.01)
