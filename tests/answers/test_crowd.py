"""A crowd: classes, tables and careless people, by draws."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from sdulearn import PairLogisticRegression, load_model, stack_pairs
from sdulearn.answers import AnswerGraph, AnswerModel, Rate
from sdulearn.answers import crowd as crowds
from sdulearn.answers.answer_model import posteriors
from sdulearn.errors import ClassNumberWarning, InputError
from sdulearn.metrics import class_agreement

TABLE = np.array([[0.9, 0.05, 0.4], [0.05, 0.8, 0.1], [0.4, 0.1, 0.95]])


def draw(n_points=60, n_answers=900, n_people=30, seed=0, table=TABLE, careless=None):
    """Classes, answers and who gave them; the people press "same" where they are careless."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n_points) % len(table)
    ends = rng.permuted(np.tile(np.arange(n_points), (n_answers, 1)), axis=1)[:, :2]
    who = rng.integers(0, n_people, n_answers)
    share = np.zeros(n_people) if careless is None else careless
    chance = (1 - share[who]) * table[classes[ends[:, 0]], classes[ends[:, 1]]] + share[who]
    same = rng.random(n_answers) < chance
    wrong = np.mean(same != (classes[ends[:, 0]] == classes[ends[:, 1]]))
    return classes, AnswerGraph.from_answers(ends, same, annotators=who + 1), wrong


@pytest.fixture(scope="module")
def crowd():
    careless = np.zeros(30)
    careless[:3] = 0.9
    classes, graph, wrong = draw(careless=careless)
    return classes, graph, wrong, AnswerModel.estimate(graph, 3)


def order_of(probabilities, classes):
    """Which column is each class."""
    counts = np.zeros((3, 3))
    np.add.at(counts, (classes, probabilities.argmax(axis=1)), 1)
    return linear_sum_assignment(-counts)[1]


def test_probabilities_with_known_parameters_are_those_of_enumeration(monkeypatch):
    rng = np.random.default_rng(1)
    n_points = 5
    ends = np.array([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (0, 4), (1, 3), (1, 3)])
    same = np.array([True, True, False, False, True, False, True, False])
    who = np.array([0, 1, 1, 0, 0, 1, 0, 1])
    careless = np.array([0.3, 0.1])
    pressed = np.array([0.8, 0.4])
    log_p = np.log(rng.dirichlet(np.ones(3), n_points))
    graph = AnswerGraph.from_answers(ends, same, annotators=who)
    expected = np.zeros((n_points, 3))
    for classes in product(range(3), repeat=n_points):
        c = np.array(classes)
        chance = (1 - careless[who]) * TABLE[c[ends[:, 0]], c[ends[:, 1]]] + careless[who] * pressed[who]
        weight = np.prod(np.where(same, chance, 1 - chance)) * np.exp(log_p[np.arange(n_points), c].sum())
        expected[np.arange(n_points), c] += weight
    expected /= expected.sum(axis=1, keepdims=True)
    # Without a bootstrap every chain draws from this distribution.
    monkeypatch.setattr(crowds, "_N_ALIKE", crowds._N_CHAINS)
    found = crowds.sample_classes(graph, TABLE, careless, pressed, log_p)
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_the_classes_the_table_and_careless_people_are_found(crowd):
    classes, graph, wrong, model = crowd
    probabilities = posteriors(model, graph, np.zeros((60, 3)))
    order = order_of(probabilities, classes)
    assert np.mean(probabilities[:, order].argmax(axis=1) == classes) > 0.9
    np.testing.assert_allclose(model.table[np.ix_(order, order)], TABLE, atol=0.2)
    assert model.table[np.ix_(order, order)][0, 2] > model.table[np.ix_(order, order)][0, 1] + 0.1
    by_person = model.by_annotator
    assert {a for a, rate in by_person.items() if rate.careless > 0.5} == {1, 2, 3}
    assert all(by_person[a].same_when_careless > 0.6 for a in (1, 2, 3))
    assert set(sorted(by_person, key=lambda a: -by_person[a].value)[:3]) == {1, 2, 3}
    # Who presses "same" is wrong about all pairs that differ, more often than by guessing.
    first, second = classes[graph.ends].T
    careful = np.where(first == second, 1 - TABLE[first, second], TABLE[first, second]).mean()
    often = 0.1 * careful + 0.9 * np.mean(first != second)
    assert often > 0.5
    for a in (1, 2, 3):
        assert by_person[a].low < often < by_person[a].high
    # Such answers say nothing.
    assert model.errors(np.array([1, 2, 3])).max() <= 0.5
    assert model.error_rate.low <= wrong <= model.error_rate.high
    assert model.error_rate.high - model.error_rate.low < 0.2


def test_points_that_nobody_was_asked_about_change_nothing():
    _, graph, _ = draw(n_answers=400)
    more = AnswerGraph.from_answers(2 * graph.ends + 1000, graph.same, annotators=graph.annotators, n_points=1500)
    one, other = (crowds.CrowdSampler(each, 3, n_chains=4).run(20, 10) for each in (graph, more))
    np.testing.assert_array_equal(one.posteriors, other.posteriors)
    np.testing.assert_array_equal(one.wrong, other.wrong)
    # Too few points to be clustered: two people, one question.
    few = AnswerGraph.from_answers([(5, 7)] * 4, [1, 1, 1, -1], annotators=[1, 2, 1, 2], n_points=50)
    assert crowds.CrowdSampler(few, 3).run(2, 2).table.shape == (3, 3)


def test_one_rate_needs_no_table():
    table = np.where(np.eye(3, dtype=bool), 0.9, 0.1)
    _, graph, wrong = draw(n_points=30, n_answers=350, table=table, seed=3)
    model = AnswerModel.estimate(graph, 3)
    assert model.table is None
    assert model.of_crowd
    assert model.error_rate.low <= wrong <= model.error_rate.high


def test_a_person_with_few_answers_is_near_the_mean_of_all():
    careless = np.zeros(30)
    careless[:15] = 0.5
    _, graph, _ = draw(seed=5, careless=careless)
    # One more person, with three answers, all of which others contradict.
    ends = np.concatenate([graph.ends, graph.ends[:3]])
    same = np.concatenate([graph.same, -graph.same[:3]])
    who = np.concatenate([graph.annotators, [99, 99, 99]])
    model = AnswerModel.estimate(AnswerGraph.from_answers(ends, same, annotators=who), 3, answer_table=True)
    rate = model.by_annotator[99]
    assert 0.05 < rate.value < 0.45
    assert rate.high - rate.low > 0.25


def test_two_classes_are_refused_where_more_explain_the_answers():
    table = np.where(np.eye(5, dtype=bool), 0.9, 0.1)
    _, graph, _ = draw(n_points=40, n_answers=700, table=table)
    with pytest.raises(
        InputError, match=r"Two classes do not explain the answers: \d+% of them would be wrong\. 5 classes"
    ):
        AnswerModel.estimate(graph)
    with pytest.warns(ClassNumberWarning, match="explained better by 5 classes than by 4"):
        AnswerModel.estimate(graph, 4, answer_table=False)


def blobs(classes, seed=0, apart=2.5):
    rng = np.random.default_rng(seed)
    return apart * np.eye(3)[classes] + rng.normal(size=(len(classes), 3))


def test_a_model_of_a_crowd(crowd, tmp_path):
    classes, graph, wrong, _ = crowd
    X = blobs(classes)
    rows, y = stack_pairs(X, graph.ends, graph.same > 0, annotators=graph.annotators)
    model = PairLogisticRegression(n_classes=3, answer_table=True).fit(rows, y)
    posterior = model.posterior(rows, y)
    truth = classes[y[:, 1] - y[:, 1].min()]
    order = order_of(posterior, truth)
    assert np.mean(posterior[:, order].argmax(axis=1) == truth) > 0.9
    assert np.mean(order_of(model.predict_proba(rows), truth) == order) == 1
    assert np.argmax(model.answer_model_.table[order[0]]) == order[0]
    assert model.answer_model_.error_rate.low <= wrong <= model.answer_model_.error_rate.high
    found = class_agreement(model.predict(rows), y, error_rate=model.answer_model_)
    assert found.basis == "crowd" or found.accuracy is None
    # The table is in the file, what the crowd said of each point is not: it is drawn again.
    model.save(tmp_path / "model.sdu")
    loaded = load_model(tmp_path / "model.sdu")
    np.testing.assert_allclose(loaded.answer_model_.table, model.answer_model_.table)
    again = loaded.posterior(rows, y)
    assert np.mean(again.argmax(axis=1) == posterior.argmax(axis=1)) > 0.9
    # New names go through the table, the people's classes and the model alike.
    before = model.answer_model_.table
    names = (np.arange(3) + 1)[np.argsort(order)][model.predict(rows) - 1] % 3 + 1
    model.orient(rows, names)
    renamed = np.array(
        [
            np.flatnonzero([np.allclose(before[k, k], d) for k in range(3)])[0]
            for d in np.diag(model.answer_model_.table)
        ]
    )
    np.testing.assert_allclose(model.answer_model_.table, before[np.ix_(renamed, renamed)])
    np.testing.assert_allclose(model.posterior(rows, y), posterior[:, renamed], atol=1e-9)


def test_the_largest_class_of_a_crowd_is_the_first():
    """Also where features, whose classes come in any order, tell of the points."""
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1, 2], [10, 18, 32])
    ends = rng.permuted(np.tile(np.arange(60), (600, 1)), axis=1)[:, :2]
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) ^ (rng.random(600) < 0.15)
    model = PairLogisticRegression(n_classes=3).fit(*stack_pairs(blobs(classes), ends, same))
    np.testing.assert_allclose(model.class_shares_, [32 / 60, 18 / 60, 10 / 60], atol=0.05)


def test_features_help_where_answers_are_few():
    table = np.where(np.eye(3, dtype=bool), 0.85, 0.15)
    classes, graph, _ = draw(n_points=60, n_answers=240, table=table, seed=2)
    rows, y = stack_pairs(blobs(classes, 1, 4.0), graph.ends, graph.same > 0, annotators=graph.annotators)
    model = PairLogisticRegression(n_classes=3, answer_table=False).fit(rows, y)
    alone = AnswerModel.estimate(graph, 3, answer_table=False)
    truth = classes[y[:, 1] - y[:, 1].min()]
    by_both = model.posterior(rows, y)
    by_answers = posteriors(alone, graph, np.zeros((60, 3)))
    right = [np.mean(order_of(p, c)[c] == p.argmax(axis=1)) for p, c in ((by_both, truth), (by_answers, classes))]
    assert right[0] > right[1]
    assert not model.answer_model_._crowd.alone


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"answer_table": "yes"}, "answer_table"),
        ({"answer_table": True}, "`answer_table=True` needs more than two classes"),
        (
            {"n_classes": 4, "error_rate": AnswerModel(Rate(0.1, 0.1, 0.1, 2), {}, np.eye(3))},
            "an answer model of 3 classes: give `n_classes=3`",
        ),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PairLogisticRegression(**options).fit(np.eye(4), [1, 1, -2, -2])
