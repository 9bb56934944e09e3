"""Probabilities of the classes of all points, those that were asked about among them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, make_classification

from sdulearn import fit_table
from sdulearn.answer_files.store import AnswerStore
from sdulearn.asking import Asker, ask
from tests.made import made


def two_classes(seed, n=400):
    return make_classification(n, 6, n_informative=4, class_sep=0.8, flip_y=0, random_state=seed)


def judge(y, wrong, seed):
    """Compares two points, and errs now and then."""
    rng = np.random.default_rng(seed)
    return lambda a, b: bool((y[a] == y[b]) != (rng.random() < wrong))


def asked_points(asker):
    return np.unique([point for answer in asker.given for point in answer.question.items])


def mean_and_right(asker, y):
    """Mean probability of the likeliest classes of points in answers, and share of them that are right."""
    points = asked_points(asker)
    p = asker.posterior()[points]
    likeliest = p.argmax(axis=1)
    names = np.array([np.bincount(y[points][likeliest == k], minlength=1).argmax() for k in range(p.shape[1])])
    return float(p.max(axis=1).mean()), float(np.mean(names[likeliest] == y[points]))


@pytest.mark.parametrize("wrong", [0.05, 0.3])
def test_probabilities_of_asked_points_are_true(wrong):
    """A judge who errs is noticed, though nobody else answers and few questions are repeated."""
    results = []
    for seed in range(4):
        X, y = two_classes(seed)
        results.append(mean_and_right(ask(X, judge(y, wrong, seed), 80, random_state=seed), y))
    probability, right = np.mean(results, axis=0)
    assert right > 1 - wrong - 0.1
    assert abs(probability - right) < 0.08
    assert all(mean < 0.99 for mean, _ in results)


@pytest.mark.parametrize("wrong", [0.15, 0.3])
def test_probabilities_of_match_questions_are_true(matcher, wrong):
    X, y = load_digits(n_class=5, return_X_y=True)
    asker = ask(X, matcher(y, wrong=wrong, seed=1), 90, n_classes=5, random_state=0)
    probability, right = mean_and_right(asker, y)
    assert abs(probability - right) < 0.1
    # Answers and features together are better than the answers.
    state = asker._now
    names = np.array([np.bincount(y[members]).argmax() for members in state.classes.members.values()])
    assert right > np.mean(names[state.known_class] == y[state.known])


@pytest.mark.usefixtures("no_importances")
def test_a_fit_does_not_trust_single_answers_more_than_features(matcher, tmp_path):
    """One judge of match questions who errs: probabilities of asked rows are true, and no worse than predictions."""
    digits = load_digits()
    X, y = digits.data[digits.target < 5], digits.target[digits.target < 5]
    ids = [f"r{k}" for k in range(len(y))]
    table = pd.DataFrame(X).add_prefix("x").assign(id=ids)
    with AnswerStore(tmp_path / "log.jsonl") as log:
        ask(X, matcher(y, 0.15), 150, n_classes=5, store=log, ids=ids, random_state=1)
    model = fit_table(table, tmp_path / "log.jsonl", classes=5, model="linear")
    asked = model.answered
    rows = [ids.index(name) for name in asked["id"]]
    predicted = model.predict(table)
    name_of = {k: pd.Series(predicted[y == k]).mode()[0] for k in range(5)}
    truth = np.array([name_of[k] for k in y[rows]])
    right = np.mean(np.array(asked["class"]) == truth)
    assert right > np.mean(predicted[rows] == truth) - 0.06
    assert abs(asked["probabilities"].max(axis=1).mean() - right) < 0.08


@pytest.mark.parametrize("design", ["linked", "match", "random"])
def test_columns_are_those_of_the_model_and_points_in_no_answer_have_its_probabilities(design):
    X, y = two_classes(0)
    rng = np.random.default_rng(0)

    def oracle(left, right):
        same = [point for point in np.atleast_1d(right) if y[point] == y[left]]
        if design != "match":
            return bool(same) != (rng.random() < 0.1)
        return int(np.flatnonzero(np.isin(right, same))[0]) if same else "none"

    asker = ask(X, oracle, 50, design=design, random_state=0)
    model, p = asker.model(), asker.posterior()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    rest = np.setdiff1d(np.arange(len(X)), asked_points(asker))
    np.testing.assert_allclose(p[rest], model.predict_proba(X[rest]), atol=1e-8)
    assert not np.allclose(p[asked_points(asker)], model.predict_proba(X[asked_points(asker)]), atol=0.01)
    np.testing.assert_array_equal(asker.labels(), model.classes_[p.argmax(axis=1)])


def test_one_answer_makes_no_class_certain():
    X, y = two_classes(1)
    answers = [made(k, (0,), bool(y[k] == y[0]), number=k) for k in range(1, 12)]
    for n in (4, 11):
        asker = Asker(X, answers=answers[:n], random_state=0)
        assert asker.error_rate() == 0
        assert asker.posterior().max() < 1


def test_a_point_that_fits_only_some_classes_is_in_none_of_the_others():
    X, y = load_digits(n_class=3, return_X_y=True)
    first = [int(np.flatnonzero(y == k)[0]) for k in range(3)]
    opened = [made(first[1], (first[0],), "none", form="match", number=1), made(first[2], first[:2], "none", number=2)]
    more = [made(int(k), first, int(y[k]), number=3 + int(k)) for k in np.flatnonzero(y >= 0)[20:35]]
    left = int(np.flatnonzero(y == 1)[5])
    excluded = made(left, first[:1], "none", form="match", number=99)
    asker = Asker(X, n_classes=3, answers=[*opened, *more, excluded], random_state=0)
    out = asker.labels()[first[0]] - 1
    by_features, p = asker.model().predict_proba(X)[left], asker.posterior()[left]
    assert p[out] / (1 - p[out]) < 0.1 * by_features[out] / (1 - by_features[out])
    assert p.sum() == pytest.approx(1)


def test_answers_that_are_noise_leave_the_model_unsure():
    """A model that is too sure of itself would make every answer noise, and stay so."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 5))
    for seed in range(3):
        y = rng.random(300) < 0.5
        asker = ask(X, judge(y, 0.3, seed), 90, random_state=seed)
        assert asker.model().predict_proba(X).max(axis=1).mean() < 0.85


def test_reasons_of_earlier_versions_are_read():
    X, y = two_classes(3)
    answers = [made(k, (0,), bool(y[k] == y[0]), why="linked", number=k) for k in range(1, 9)]
    asker = Asker(X, answers=[*answers, made(1, (2,), bool(y[1] == y[2]), why="triangle", number=9)])
    assert asker.answers["why"] == ["uncertain"] * 8 + ["repeat"]


def test_a_match_question_of_two_classes_shows_both():
    X, y = two_classes(4)
    asker = Asker(X, design="match", random_state=0)
    for _ in range(15):
        question = asker.next()
        like = [k for k, point in enumerate(question.choices) if y[point] == y[question.left]]
        asker.tell(question, like[0] if like else "none")
    assert len(asker.next().choices) == 2
