"""Answers that come with a certainty."""

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logit

from sdulearn.answers import AnswerGraph, AnswerModel, classes_of_answers, read_answers
from sdulearn.answers.rates import calibrated_rates, split_by_certainty


def drawn(seed, n_points=40, n_answers=120):
    """Persons 1 and 3 are right as often as they say; Bob, the second, is right in 60% and says 90% or 95%."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_points)
    who = np.repeat([1, 2, 3], n_answers)
    ends = rng.permuted(np.tile(np.arange(n_points), (len(who), 1)), axis=1)[:, :2]
    certainty = np.where(who == 2, rng.choice([0.9, 0.95], len(who)), rng.choice([0.55, 0.75, 0.95], len(who)))
    right = rng.random(len(who)) < np.where(who == 2, 0.6, certainty)
    return ends, (y[ends[:, 0]] == y[ends[:, 1]]) == right, who, certainty, right


def loss(graph, model, right):
    """Mean logarithmic loss of the probability that each answer is right."""
    found = model.factor_graph(graph, 2).propagate(tol=1e-4).right
    return -np.mean(np.log(np.clip(np.where(right, found, 1 - found), 1e-6, 1)))


def test_soft_answers_are_worth_more_and_overconfidence_is_seen():
    ends, same, who, certainty, right = drawn(1)
    part, person, stated = split_by_certainty(who, certainty)
    soft = AnswerGraph.from_answers(ends, same, annotators=part)
    hard = AnswerGraph.from_answers(ends, same, annotators=who)
    rates = calibrated_rates(soft, person, stated, 2)
    errors = np.array([rates[k] for k in part.tolist()])
    # Who says more is believed more.
    for one in (1, 2, 3):
        order = np.argsort(certainty[who == one])
        assert (np.diff(errors[who == one][order]) <= 0).all()
    # Bob says that 8% of his answers are wrong.
    assert np.abs(errors[who == 2].mean() - np.mean(~right[who == 2])) < 0.05
    calibrated = loss(soft, AnswerModel.given(rates, soft), right)
    assert calibrated < loss(hard, AnswerModel.estimate(hard), right) - 0.05


def test_nobody_is_corrected_whom_no_answer_checks():
    ends = np.arange(40).reshape(-1, 2)
    part, person, stated = split_by_certainty(np.repeat([0, 1], 10), np.tile([0.6, 0.8, 0.8, 1.0, 0.75], 4))
    assert (person.tolist(), stated.tolist()) == ([0] * 4 + [1] * 4, [0.6, 0.75, 0.8, 0.99] * 2)
    assert part[:5].tolist() == [1, 3, 3, 4, 2]
    graph = AnswerGraph.from_answers(ends, np.arange(20) % 3 > 0, annotators=part)
    rates = calibrated_rates(graph, person, stated, 3)
    np.testing.assert_allclose([rates[k] for k in range(1, 9)], 1 - stated)


def test_labels_calibrate_by_the_posterior_of_equation_5():
    """Eight answers of one person, all checked by labels: most of the sure ones are wrong, the unsure ones right."""
    certainty = np.repeat([0.95, 0.55], 4)
    right = np.array([True, False, False, False, True, True, True, True])
    part, person, stated = split_by_certainty(np.ones(8, dtype=int), certainty)
    # All pairs of points truly differ.
    graph = AnswerGraph.from_answers(np.arange(16).reshape(-1, 2), ~right, annotators=part, labels=[1, -1] * 8)
    alpha, beta = np.meshgrid(np.linspace(-3, 3, 301), np.linspace(0, 2, 301))
    density = np.exp(-(alpha**2) / 2 - (beta - 1) ** 2 / (2 / 4))
    for c, hit in zip(certainty, right, strict=True):
        chance = expit(alpha + beta * logit(c))
        density *= chance if hit else 1 - chance
    mean = [np.average(parameter, weights=density) for parameter in (alpha, beta)]
    expected = np.minimum(expit(-mean[0] - mean[1] * logit(stated)), 0.5)
    found = calibrated_rates(graph, person, stated, 2)
    np.testing.assert_allclose(list(found.values()), expected, atol=0.02)


def test_certainty_is_calibrated_by_all_people_and_used_without_a_table():
    """Everybody states 1 to 3, and is wrong in 40, 25 and 5%: classes by answers alone are better, and few answers
    of one person are enough."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 40)
    ends = np.array([rng.choice(40, 2, replace=False) for _ in range(900)])
    level = rng.integers(0, 3, 900)
    wrong = rng.random(900) < np.array([0.4, 0.25, 0.05])[level]
    said = (truth[ends[:, 0]] == truth[ends[:, 1]]) ^ wrong
    frame = pd.DataFrame({"id_a": ends[:, 0], "id_b": ends[:, 1], "label": said.astype(int)})
    frame["annotator"] = rng.integers(0, 30, 900).astype(str)
    right = []
    for answers in (read_answers(frame.assign(certainty=level + 1)), read_answers(frame)):
        columns, model = classes_of_answers(answers, 3)
        known = columns["class"] != ""
        table = pd.crosstab(columns["class"][known], truth[columns["id"].astype(int)][known]).to_numpy()
        right.append(table[linear_sum_assignment(-table)].sum() / len(known))
        assert set(model.by_annotator) == set(range(1, 31))
        assert model.error_rate.low <= wrong.mean() <= model.error_rate.high
    assert right[0] > right[1]
    graph = AnswerGraph.from_answers(ends, said, annotators=1 + rng.integers(0, 30, 900))
    parts, people, stated = split_by_certainty(graph.annotators, np.full(900, 0.9) + 0.01 * level)
    rates = calibrated_rates(AnswerGraph.from_answers(ends, said, annotators=parts), people, stated, 3)
    of_level = [np.mean([rates[k + 1] for k in np.flatnonzero(stated == 0.9 + 0.01 * step)]) for step in range(3)]
    np.testing.assert_allclose(of_level, [0.4, 0.25, 0.05], atol=0.07)
