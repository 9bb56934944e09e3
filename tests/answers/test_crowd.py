"""A crowd: classes, tables and careless people, by draws."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from sdulearn import PairLogisticRegression, load_model, stack_pairs
from sdulearn.answers import AnswerGraph, AnswerModel, Rate
from sdulearn.answers import crowd as crowds
from sdulearn.answers.answer_model import crowd_probabilities, is_crowd, posteriors
from sdulearn.answers.clusters import colour_points
from sdulearn.errors import ClassNumberWarning, InputError
from sdulearn.metrics import class_agreement

TABLE = np.array([[0.9, 0.05, 0.4], [0.05, 0.8, 0.1], [0.4, 0.1, 0.95]])


def draw(sizes=(30, 18, 12), n_answers=900, n_people=30, seed=0, table=TABLE, careless=None):
    """Classes, answers and the share of wrong ones; careless people press "same"."""
    rng = np.random.default_rng(seed)
    classes = np.array([k for j in range(max(sizes)) for k, n in enumerate(sizes) if j < n])
    ends = rng.permuted(np.tile(np.arange(len(classes)), (n_answers, 1)), axis=1)[:, :2]
    who = rng.integers(0, n_people, n_answers)
    share = np.zeros(n_people) if careless is None else careless
    chance = (1 - share[who]) * table[classes[ends[:, 0]], classes[ends[:, 1]]] + share[who]
    same = rng.random(n_answers) < chance
    wrong = np.mean(same != (classes[ends[:, 0]] == classes[ends[:, 1]]))
    return classes, AnswerGraph.from_answers(ends, same, annotators=who + 1), wrong


@pytest.fixture(scope="module")
def crowd():
    """Three of 30 people are careless; person 99 has three answers, two of which others contradict."""
    classes, graph, wrong = draw(careless=np.repeat([0.9, 0.0], [3, 27]))
    ends = np.concatenate([graph.ends, graph.ends[:3]])
    same = np.concatenate([graph.same, graph.same[:3] * [-1, -1, 1]])
    who = np.concatenate([graph.annotators, [99, 99, 99]])
    graph = AnswerGraph.from_answers(ends, same, annotators=who)
    return classes, graph, wrong, AnswerModel.estimate(graph, 3)


def order_of(probabilities, classes):
    """Which column is each class."""
    size = probabilities.shape[1]
    counts = np.zeros((size, size))
    np.add.at(counts, (classes, probabilities.argmax(axis=1)), 1)
    return linear_sum_assignment(-counts)[1]


def share_right(model, graph, classes):
    """Of the points, in their class by answers alone."""
    probabilities = posteriors(model, graph, np.zeros((graph.n_points, classes.max() + 1)))
    return np.mean(order_of(probabilities, classes)[classes] == probabilities.argmax(axis=1))


def test_probabilities_with_known_parameters_are_those_of_enumeration(monkeypatch):
    """Answers of one question are careless together."""
    rng = np.random.default_rng(1)
    ends = np.array([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (0, 4), (1, 3), (1, 3)])
    same = np.array([True, True, False, False, True, False, True, False])
    who = np.array([0, 1, 1, 0, 0, 1, 0, 1])
    question = np.array([1, 2, 2, 1, 1, 3, 4, 2])
    careless = np.array([0.3, 0.1])
    pressed = np.array([0.8, 0.4])
    log_p = np.log(rng.dirichlet(np.ones(3), 5))
    graph = AnswerGraph.from_answers(ends, same, annotators=who, labels=[0, 0, 0, 0, 2], questions=question)
    expected = np.zeros((5, 3))
    for c in map(np.array, product(range(3), repeat=5)):
        weight = (c[4] == 1) * np.exp(log_p[np.arange(5), c].sum())
        for a, q in set(zip(who, question, strict=True)):
            pairs = np.flatnonzero((who == a) & (question == q))
            table = TABLE[c[ends[pairs, 0]], c[ends[pairs, 1]]]
            careful, by_chance = (np.prod(np.where(same[pairs], p, 1 - p)) for p in (table, pressed[a]))
            weight *= (1 - careless[a]) * careful + careless[a] * by_chance
        expected[np.arange(5), c] += weight
    expected /= expected.sum(axis=1, keepdims=True)
    # Without a bootstrap every chain draws from this distribution.
    monkeypatch.setattr(crowds.CrowdSampler, "bootstrap", lambda self, _: np.tile(self.weights, (self.n_chains, 1)))
    people = {a: Rate(0.1, 0.1, 0.1, 4, careless[a], pressed[a]) for a in (0, 1)}
    found = posteriors(AnswerModel(people[0], people, TABLE), graph, log_p)
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_classes_that_look_alike_are_two():
    """Half of the answers call two of five species the same."""
    table = np.where(np.eye(5, dtype=bool), 0.9, 0.1)
    table[0, 1] = table[1, 0] = 0.55
    classes, graph, _ = draw((24,) * 5, 3500, 60, table=table)
    assert share_right(AnswerModel.estimate(graph, 5), graph, classes) > 0.9


def test_a_careless_person_moves_no_classes():
    classes, graph, _ = draw(n_answers=900)
    rng = np.random.default_rng(5)
    ends = np.concatenate([graph.ends, rng.permuted(np.tile(np.arange(60), (300, 1)), axis=1)[:, :2]])
    same = np.concatenate([graph.same, rng.choice([-1, 1], 300)])
    more = AnswerGraph.from_answers(ends, same, annotators=np.append(graph.annotators, np.full(300, 99)))
    before, after = (AnswerModel.estimate(each, 3) for each in (graph, more))
    assert after.by_annotator[99].careless > 0.7
    assert abs(share_right(after, more, classes) - share_right(before, graph, classes)) <= 0.05


@pytest.mark.parametrize(("n_points", "tolerance"), [(30, 0.06), (400, 1e-6)])
def test_weights_are_repeated_answers(n_points, tolerance):
    """Of 3 classes, in a crowd and where two people answer the same loose pairs."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, n_points)
    ends = rng.permuted(np.tile(np.arange(n_points), (200, 1)), axis=1)[:, :2].repeat(2, axis=0)
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) ^ (rng.random(400) < 0.15)
    who = 1 + np.arange(400) % 2
    times = np.where(rng.random(400) < 0.3, 3, 1)
    again = np.arange(400).repeat(times)
    weighted, repeated, equal = (
        AnswerModel.estimate(graph, 3, answer_table=False)
        for graph in (
            AnswerGraph.from_answers(ends, same, annotators=who, weights=times),
            AnswerGraph.from_answers(ends[again], same[again], annotators=who[again]),
            AnswerGraph.from_answers(ends, same, annotators=who),
        )
    )
    assert weighted.of_crowd == (n_points == 30)
    assert list(weighted.rates.values()) == pytest.approx(list(repeated.rates.values()), abs=tolerance)
    assert weighted.rates != equal.rates


def test_the_classes_the_table_and_careless_people_are_found(crowd):
    classes, graph, wrong, model = crowd
    probabilities = posteriors(model, graph, np.zeros((60, 3)))
    # The largest class is the first.
    assert order_of(probabilities, classes).tolist() == [0, 1, 2]
    assert np.mean(probabilities.argmax(axis=1) == classes) > 0.9
    np.testing.assert_allclose(model.table, TABLE, atol=0.2)
    assert model.table[0, 2] > model.table[0, 1] + 0.1
    np.testing.assert_array_equal(model.table, model.table.T)
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
    # Such answers carry no information.
    assert model.errors(np.array([1, 2, 3])).max() <= 0.5
    assert model.error_rate.low <= wrong <= model.error_rate.high
    assert model.error_rate.high - model.error_rate.low < 0.2
    # A person with few answers is near the mean of all.
    few = by_person[99]
    assert 0.05 < few.value < 0.45
    assert few.high - few.low > 0.25


def test_points_that_nobody_was_asked_about_change_nothing():
    _, graph, _ = draw(n_answers=400)
    more = AnswerGraph.from_answers(2 * graph.ends + 1000, graph.same, annotators=graph.annotators, n_points=1500)
    first, second = (AnswerModel.estimate(each, 3, answer_table=True) for each in (graph, more))
    np.testing.assert_array_equal(first.crowd.log_posteriors, second.crowd.log_posteriors)
    assert first.error_rate == second.error_rate
    # Too few points to be clustered: two people, one question.
    few = AnswerGraph.from_answers([(5, 7)] * 4, [1, 1, 1, -1], annotators=[1, 2, 1, 2], n_points=50)
    assert AnswerModel.estimate(few, 3, answer_table=True).table.shape == (3, 3)


@pytest.mark.parametrize(
    ("n_points", "n_left_out", "expected"), [(5, 0, False), (6, 0, True), (6, 3, True), (6, 4, False)]
)
def test_a_crowd_has_two_questions_a_point_and_three_points_a_class(n_points, n_left_out, expected):
    """All pairs of some points but a few, of which one answer contradicts the others."""
    ends = list(combinations(range(n_points), 2))[n_left_out:]
    same = np.arange(len(ends)) < len(ends) - 1
    assert is_crowd(AnswerGraph.from_answers(ends, same)) == expected
    assert not is_crowd(AnswerGraph.from_answers(ends, np.ones(len(ends), dtype=bool)))


def test_two_classes_are_refused_where_more_explain_the_answers():
    table = np.where(np.eye(5, dtype=bool), 0.9, 0.1)
    _, graph, _ = draw((8,) * 5, n_answers=700, table=table)
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
    rows, y = stack_pairs(blobs(classes), graph.ends, graph.same > 0, annotators=graph.annotators)
    model = PairLogisticRegression(n_classes=3, answer_table=True).fit(rows, y)
    posterior = model.posterior(rows, y)
    truth = classes[y[:, 1] - y[:, 1].min()]
    order = order_of(posterior, truth)
    assert np.mean(posterior[:, order].argmax(axis=1) == truth) > 0.9
    # The largest class is the first, also where features, whose classes come in any order, tell of the points.
    assert order.tolist() == order_of(model.predict_proba(rows), truth).tolist() == [0, 1, 2]
    np.testing.assert_allclose(model.class_shares_, [0.5, 0.3, 0.2], atol=0.07)
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
    model.orient(rows, model.predict(rows) % 3 + 1)
    renamed = [2, 0, 1]
    np.testing.assert_allclose(model.answer_model_.table, before[np.ix_(renamed, renamed)])
    np.testing.assert_allclose(model.posterior(rows, y), posterior[:, renamed], atol=1e-9)


def test_features_help_where_answers_are_few_and_one_rate_needs_no_table():
    table = np.where(np.eye(3, dtype=bool), 0.85, 0.15)
    classes, graph, wrong = draw((20, 20, 20), n_answers=240, table=table, seed=2)
    alone = AnswerModel.estimate(graph, 3)
    assert alone.table is None
    assert alone.of_crowd
    assert alone.error_rate.low <= wrong <= alone.error_rate.high
    rows, y = stack_pairs(blobs(classes, 1, 4.0), graph.ends, graph.same > 0, annotators=graph.annotators)
    model = PairLogisticRegression(n_classes=3, answer_table=False).fit(rows, y)
    truth = classes[y[:, 1] - y[:, 1].min()]
    by_both = model.posterior(rows, y)
    by_answers = posteriors(alone, graph, np.zeros((60, 3)))
    right = [np.mean(order_of(p, c)[c] == p.argmax(axis=1)) for p, c in ((by_both, truth), (by_answers, classes))]
    assert right[0] > right[1]
    assert not model.answer_model_.of_crowd


OTHER = AnswerModel(Rate(0.1, 0.1, 0.1, 2), {}, np.eye(3))


@pytest.mark.parametrize(
    ("options", "name"),
    [({"answer_table": "yes"}, "answer_table"), ({"answer_table": True}, "answer_table"),
     ({"n_classes": 4, "error_rate": OTHER}, "n_classes=3")],
)  # fmt: skip
def test_what_does_not_fit_is_refused(options, name):
    with pytest.raises(ValueError, match=name):
        PairLogisticRegression(**options).fit(np.eye(4), [1, 1, -2, -2])


def test_a_crowds_table_is_symmetric_and_its_model_equal_to_itself(crowd):
    """Which of two rows comes first does not matter; nor does the same estimate made twice."""
    _, graph, _, model = crowd
    np.testing.assert_array_equal(model.table, model.table.T)
    assert AnswerModel.estimate(graph, 3) == model


def test_all_answers_of_a_crowd_count_alone(crowd):
    """A prior changes nothing about rows in answers, not even about those in one."""
    _, graph, _, _ = crowd
    ends = np.concatenate([graph.ends, [[0, graph.n_points]]])
    same = np.append(graph.same, 1)
    more = AnswerGraph.from_answers(ends, same, annotators=np.append(graph.annotators, 5))
    model = AnswerModel.estimate(more, 3)
    flat = posteriors(model, more, np.log(np.full((more.n_points, 3), 1 / 3)))
    pulled = posteriors(model, more, np.log(np.tile([0.9, 0.05, 0.05], (more.n_points, 1))))
    np.testing.assert_allclose(pulled, flat)


def test_points_of_one_colour_are_in_no_answer_together():
    rng = np.random.default_rng(0)
    for n in (2, 5, 30):
        ends = np.array([rng.choice(n, 2, replace=False) for _ in range(3 * n)])
        colour = colour_points(ends, n)
        assert (colour[ends[:, 0]] != colour[ends[:, 1]]).all()
        assert sorted(set(colour.tolist())) == list(range(colour.max() + 1))


def test_which_row_of_an_answer_comes_first_does_not_matter(crowd):
    """Answers whose rows always come in the order of their classes, and in the opposite order."""
    classes, graph, _, _ = crowd
    ends = np.take_along_axis(graph.ends, np.argsort(classes[graph.ends], axis=1, kind="stable"), axis=1)
    models = [
        AnswerModel.estimate(AnswerGraph.from_answers(order, graph.same, annotators=graph.annotators), 3)
        for order in (ends, ends[:, ::-1])
    ]
    np.testing.assert_allclose(models[0].table, models[1].table, atol=0.05)
    wanted = np.array([model.table for model in models])
    assert np.abs(wanted - TABLE[np.ix_(*[names_of(models[0].table)] * 2)]).max() < 0.2


def names_of(table):
    """The order of the classes of TABLE that a table has."""
    orders = list(permutations(range(3)))
    return min(orders, key=lambda order: np.abs(table - TABLE[np.ix_(order, order)]).sum())


def test_answers_of_little_weight_hardly_count():
    """Two in three answers about some points name another class; with a small weight they lose to the third."""
    rng = np.random.default_rng(0)
    classes = np.arange(45) % 3
    sure = rng.integers(0, 36, (400, 2))
    sure = sure[sure[:, 0] != sure[:, 1]]
    claimed = np.concatenate([np.column_stack([np.full(36, k), np.arange(36)]) for k in range(36, 45)])
    rows = np.arange(36)[None, :] % 9 < 3
    truly = np.broadcast_to(rows, (9, 36)).ravel()
    said = np.where(truly, classes[claimed[:, 0]], (classes[claimed[:, 0]] + 1) % 3)
    same = np.r_[classes[sure[:, 0]] == classes[sure[:, 1]], said == classes[claimed[:, 1]]]
    weights = np.r_[np.ones(len(sure)), np.where(truly, 1.0, 0.01)]
    ends = np.concatenate([sure, claimed])
    right = []
    for given in (weights, np.ones(len(ends))):
        graph = AnswerGraph.from_answers(ends, same, annotators=1 + np.arange(len(ends)) % 4, weights=given)
        found = crowd_probabilities(AnswerModel.estimate(graph, 3, answer_table=False), graph).argmax(axis=1)
        names = [np.bincount(classes[:36][found[:36] == k], minlength=3).argmax() for k in range(3)]
        right.append((np.array(names)[found[36:]] == classes[36:]).mean())
    assert right[0] == 1
    assert right[1] < 0.5
