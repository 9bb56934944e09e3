"""How answers go wrong: the laws of repeats and triangles, several people, any number of classes, doubtful answers."""

from dataclasses import astuple
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import beta, betabinom, binom

from sdulearn.answers import AnswerGraph, AnswerModel, Rate, doubtful_answers
from sdulearn.answers.rates import (
    annotators_in_contradictions,
    chances_of_strengths,
    likeliest_rate,
    log_factors,
    profile_ends,
    shrink,
)
from sdulearn.errors import InputError


def one_rate(*arguments, **options):
    """The rate of the only annotator, with two classes."""
    model = AnswerModel.estimate(AnswerGraph.from_answers(*arguments, **options))
    (rate,) = model.by_annotator.values()
    assert model.error_rate == rate
    return rate


def test_given_rates_are_their_own_intervals():
    graph = AnswerGraph.from_answers([(0, 1), (1, 2), (2, 3)], [True, False, True], annotators=[4, 4, 7])
    model = AnswerModel.given({4: 0.1, 7: 0.4, 9: 0.2}, graph)
    assert model.by_annotator == {4: Rate(0.1, 0.1, 0.1, 2), 7: Rate(0.4, 0.4, 0.4, 1)}
    assert astuple(model.error_rate)[:4] == pytest.approx((0.2, 0.2, 0.2, 3))
    assert not model.certain
    # Who is not known has the rate of all.
    np.testing.assert_allclose(model.errors(np.array([7, 1, 4])), [0.4, 0.2, 0.1])
    found = log_factors(graph.same, model.errors(graph.annotators), np.ones(3))
    np.testing.assert_allclose(np.exp(found), [[0.9, 0.1, 0.6], [0.1, 0.9, 0.4]])
    np.testing.assert_allclose(log_factors(graph.same, np.full(3, 0.1), np.full(3, 2.0))[0, :2], np.log([0.81, 0.01]))
    assert AnswerModel.given(0.0, graph).certain


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3])
def test_the_interval_of_an_audit_covers(rate):
    """Exactly, over all numbers of wrong answers among 60; who is in no audit is nearly always right."""
    found = [AnswerModel.audited([1] * 200 + [2], {1: (60, k)}).by_annotator for k in range(61)]
    covered = sum(binom.pmf(k, 60, rate) for k, one in enumerate(found) if one[1].low <= rate <= one[1].high)
    assert covered > 0.93
    assert all(one[1].low <= one[1].value <= one[1].high for one in found)
    assert (found[6][1].value, found[6][1].n_answers) == (pytest.approx(6.5 / 61), 200)
    assert 0 < found[6][2].high < 1e-3


@pytest.mark.parametrize("size", [2, 3])
def test_repeats_and_triangles_are_odd_at_the_rate_of_the_formula(size):
    """3 in 10 questions asked twice are answered both ways, or 3 in 10 triangles are odd."""
    points = np.arange(400 * size).reshape(-1, size)
    cycle = [[0, 1], [0, 1]] if size == 2 else [[0, 1], [1, 2], [0, 2]]
    ends = points[:, cycle].reshape(-1, 2)
    same = np.ones(len(ends), dtype=int)
    same[: 120 * size : size] = -1
    found = one_rate(ends, same)
    assert (1 - (1 - 2 * found.value) ** size) / 2 == pytest.approx(0.3, abs=0.01)
    assert found.low < found.value < found.high
    assert found.identified


@pytest.mark.parametrize("n_clean", [0, 1, 9])
def test_one_contradiction_among_few_checks_moves_a_rate_little(n_clean):
    ends = np.repeat(np.arange(2 + 2 * n_clean).reshape(-1, 2), 2, axis=0)
    same = np.ones(len(ends), dtype=int)
    same[0] = -1
    found = one_rate(ends, same)
    # A posterior mean under Beta(0.6, 29.4), mixed with weaker priors.
    assert 0.02 < found.value < 0.07
    assert found.high >= 1 / len(ends)
    assert found.identified == (n_clean == 9)


def test_few_checks_and_none():
    """Repeats without a contradiction, loose pairs of one annotator, and ten answers between labelled points."""
    clean = one_rate(np.repeat(np.arange(80).reshape(-1, 2), 2, axis=0), np.ones(80, dtype=int))
    assert 0 < clean.value < 0.01
    # Twice 40 e is the log likelihood that is lost; an exact bound for 0 of 40 disagreements is 0.046.
    assert 1.92 / 80 < clean.high < 0.046
    pairs = np.arange(20).reshape(-1, 2)
    assert one_rate(pairs, np.tile([1, -1], 5)) == Rate(0.02, 0.0, 0.5, 10)
    for n_classes, labels in ((2, np.tile([1, -1], 10)), (3, np.tile([1, 3], 10))):
        # Labels alone tell nothing.
        assert AnswerModel.estimate(AnswerGraph.from_answers([], [], labels=labels), n_classes).by_annotator == {}
        graph = AnswerGraph.from_answers(pairs, np.where(np.arange(10) < 2, 1, -1), labels=labels)
        found = AnswerModel.estimate(graph, n_classes).error_rate
        # Drawn from 0.2 to 0.02: ten checks are few.
        assert 0.04 < found.value < 0.2
        assert found.low < 0.2 < found.high


def everybody_answers(n_wrong, n_questions, seed):
    """Loose questions of two classes that all people answer, each as many of them wrongly as is said."""
    rng = np.random.default_rng(seed)
    classes = np.where(rng.random(2 * n_questions) < 0.65, 1, -1)
    ends = np.tile(np.arange(2 * n_questions).reshape(-1, 2), (len(n_wrong), 1))
    wrong = np.concatenate([rng.permutation(np.arange(n_questions) < n) for n in n_wrong])
    same = classes[ends[:, 0]] * classes[ends[:, 1]] * np.where(wrong, -1, 1)
    return AnswerGraph.from_answers(ends, same, annotators=np.repeat(3 + np.arange(len(n_wrong)), n_questions))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_wrong", [(5, 5, 10, 20, 50), (0, 2, 4, 6, 8, 10) * 2])
def test_where_everybody_answers_the_truth_is_known(n_wrong, n_classes):
    """Each rate has about the interval of a binomial share: by profiles, and of more than ten people by counts."""
    found = AnswerModel.estimate(everybody_answers(n_wrong, 100, 5), n_classes)
    assert list(found.rates) == list(range(3, 3 + len(n_wrong)))
    np.testing.assert_allclose(list(found.rates.values()), np.array(n_wrong) / 100, atol=0.04)
    assert found.error_rate.value == pytest.approx(np.mean(n_wrong) / 100, abs=0.02)
    if len(n_wrong) > 10:
        for rate in found.by_annotator.values():
            share = beta.ppf([0.025, 0.975], 0.5 + 100 * rate.value, 0.5 + 100 * (1 - rate.value))
            assert (rate.low, rate.high) == pytest.approx(share, abs=1e-3)


def couples():
    """Twelve people in couples: who of a couple was wrong is not known."""
    ends = np.repeat(np.arange(360).reshape(-1, 2), 2, axis=0)
    same = np.ones(360, dtype=bool)
    same[:120:6] = False
    who = 1 + 2 * np.repeat(np.arange(6), 60) + np.tile([0, 1], 180)
    return AnswerGraph.from_answers(ends, same, annotators=who)


def test_wrong_answers_of_two_who_disagree_tell_less_than_their_number():
    """So their intervals are wider."""
    for rate in AnswerModel.estimate(couples()).by_annotator.values():
        low, high = beta.ppf([0.025, 0.975], 0.5 + 30 * rate.value, 0.5 + 30 * (1 - rate.value))
        if rate.value > 0.05:
            assert rate.high - rate.low > 1.2 * (high - low)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("design", ["three people", "couples"])
def test_an_answer_of_weight_2_tells_as_much_as_two(design, n_classes):
    graph = couples() if design == "couples" else everybody_answers((1, 4, 8), 30, 2)
    weights = np.random.default_rng(0).integers(1, 3, graph.n_answers)
    parts = {"ends": graph.ends, "same": graph.same, "annotators": graph.annotators}
    weighted = AnswerModel.estimate(AnswerGraph.from_answers(**parts, weights=weights), n_classes)
    repeated = {name: np.repeat(part, weights, axis=0) for name, part in parts.items()}
    twice = AnswerModel.estimate(AnswerGraph.from_answers(**repeated), n_classes)
    plain = AnswerModel.estimate(graph, n_classes)
    assert weighted.rates != pytest.approx(plain.rates, abs=1e-3)
    for a, rate in twice.by_annotator.items():
        assert astuple(weighted.by_annotator[a])[:3] == pytest.approx(astuple(rate)[:3], abs=1e-6)


def test_a_model_that_knows_nothing_asserts_no_rate():
    """Answers against its predictions may be its own mistakes: loose pairs of one annotator still tell nothing."""
    rng = np.random.default_rng(0)
    ends = np.arange(400).reshape(-1, 2)
    same = rng.random(200) < 0.58
    noise = 3 * rng.normal(size=400)
    unknown = AnswerModel.estimate(AnswerGraph.from_answers(ends, same), logits=noise).error_rate
    assert unknown.value <= 0.1 + 1e-9
    assert not unknown.identified
    # A good model refutes a high rate: what it predicts is what people say.
    good = np.where(rng.random(400) < 0.6, 4.0, -4.0)
    agrees = good[ends[:, 0]] * good[ends[:, 1]] > 0
    refuted = AnswerModel.estimate(AnswerGraph.from_answers(ends, agrees), logits=good).error_rate
    assert refuted.value <= 0.02
    assert refuted.high < 0.05


def test_rates_are_drawn_to_those_of_the_others():
    """Equation (2) by hand, for the weakest prior: m = 2, and mu the rate of the others with 30 answers at 2%."""
    wrong, counts = np.array([4.0, 1.0]), np.array([20.0, 50.0])
    mu = np.array([(0.6 + 1) / 80, (0.6 + 4) / 50])
    weakest = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(shrink(wrong, counts, weakest), (2 * mu + wrong) / (2 + counts))
    # All strengths, each as likely as the counts are under it.
    strengths = np.array([30.0, 16, 8, 4, 2])
    likelihood = [np.prod(betabinom.pmf([4, 1], [20, 50], m * mu, m * (1 - mu))) for m in strengths]
    chances = np.array([20, 1, 1, 1, 1]) * likelihood
    np.testing.assert_allclose(chances_of_strengths(wrong, counts), chances / chances.sum())
    by_strength = np.array([(m * mu + wrong) / (m + counts) for m in strengths])
    np.testing.assert_allclose(shrink(wrong, counts, chances / chances.sum()), chances / chances.sum() @ by_strength)


@pytest.mark.parametrize(("wrong", "low", "high"), [(0, None, 0.0915), (4, 0.0669, 0.4053)])
def test_an_interval_is_the_wider_of_likelihood_ratio_and_posterior(wrong, low, high):
    """Of 20 answers; the ends of the likelihood ratio are given, the posterior has the prior 1 / sqrt(e)."""
    grid = np.linspace(1e-4, 0.5, 80)
    found = profile_ends(grid, wrong * np.log(grid) + (20 - wrong) * np.log1p(-grid))
    posterior = beta.ppf([0.025, 0.975], wrong + 0.5, 21 - wrong)
    assert found == pytest.approx((min(posterior[0], low or 1), max(posterior[1], high)), abs=2e-3)


def test_where_both_truths_are_equally_frequent_two_people_cannot_be_told_apart():
    """All of the errors may be the first's, or all the other's."""
    rng = np.random.default_rng(3)
    truth = np.repeat(rng.random(400) < 0.5, 2)
    same = truth ^ (rng.random(800) < np.tile([0.0, 0.2], 400))
    ends = np.repeat(np.arange(800).reshape(-1, 2), 2, axis=0)
    graph = AnswerGraph.from_answers(ends, same, annotators=np.tile([1, 2], 400))
    for rate in AnswerModel.estimate(graph, 3).by_annotator.values():
        assert rate.low < 0.03 < 0.17 < rate.high


def test_repeated_questions_of_two_and_one_who_shares_none():
    ends = np.repeat(np.arange(200).reshape(-1, 2), 2, axis=0)
    same = np.arange(200) % 10 == 0
    graph = AnswerGraph.from_answers([*ends, [500, 501]], [*same, False], annotators=[*np.tile([1, 2], 100), 3])
    found = AnswerModel.estimate(graph, 3).by_annotator
    # One question in five is disputed: 2 e (1 - e) = 0.2.
    assert (found[1].value + found[2].value) / 2 == pytest.approx((1 - np.sqrt(0.6)) / 2, abs=0.02)
    assert found[1].n_answers == found[2].n_answers == 100
    assert (found[3].value, found[3].low, found[3].high) == (0.02, 0.0, 0.5)


@pytest.mark.parametrize("n_repeats", [0, 2])
def test_triangles_that_cannot_be_tell_a_rate_of_three_classes(n_repeats):
    """One in ten answers is wrong; a question that was answered both ways does not take the place of triangles."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    corners = rng.permutation(150).reshape(-1, 3)
    ends = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    same = (y[ends[:, 0]] == y[ends[:, 1]]) ^ (rng.random(150) < 0.1)
    ends = np.concatenate([ends, np.full((n_repeats, 2), [150, 151])])
    same = np.concatenate([same, np.arange(n_repeats) == 0])
    rate = AnswerModel.estimate(AnswerGraph.from_answers(ends, same), 3).error_rate
    assert rate.identified
    assert rate.low < 0.1 < rate.high
    assert rate.value == pytest.approx(0.1, abs=0.06)


@pytest.mark.parametrize(("n_classes", "labels"), [(2, [1, 2, 0, 2]), (3, [1, 2, 0, 4]), (3, [-1, 1, 0, 1])])
def test_labels_of_other_classes_are_refused_and_not_guessed(n_classes, labels):
    """Labels 1 and 2 were both class +1, and an answer "different" between them an error."""
    graph = AnswerGraph.from_answers([(0, 1), (0, 2), (1, 2), (1, 3)], [False, True, False, True], labels=labels)
    with pytest.raises(InputError, match=f"Labels with {n_classes} classes"):
        AnswerModel.estimate(graph, n_classes)


def test_loose_pairs_are_judged_as_propagation_judges_them():
    """The closed form against messages, of three classes and several annotators, one of whom the model knows not."""
    rng = np.random.default_rng(3)
    known = {1: Rate(0.0, 0.0, 0.02, 40), 2: Rate(0.3, 0.2, 0.4, 40), 3: Rate(0.0, 0.0, 0.5, 4)}
    codes = np.repeat(np.arange(1, 21) * rng.choice([-1, 1], 20), 2)
    annotators = np.repeat(rng.integers(1, 5, 20), 2)
    y = np.column_stack([codes, rng.permutation(40), annotators])
    probability = rng.dirichlet(np.ones(3), 40)
    model = SimpleNamespace(
        answer_model_=AnswerModel(Rate(0.15, 0.1, 0.2, 84), known), predict_proba=lambda X: probability
    )
    found = doubtful_answers(model, np.zeros((40, 1)), y)
    graph = AnswerGraph.from_y(y)
    rates = {1: 1 / 80, 2: 0.3, 3: 0.05, 4: 0.15}
    log_p = np.log(graph.by_point(probability))
    right = AnswerModel.given(rates, graph).factor_graph(graph, 3).propagate(log_p).right
    np.testing.assert_allclose(found.wrong, np.sort(1 - right)[::-1], rtol=1e-12)
    np.testing.assert_array_equal(np.abs(found.code), 1 + np.argsort(right))
    np.testing.assert_array_equal(y[found.rows, 0], np.column_stack([found.code, found.code]))
    # A label that names one end for sure goes the way of messages.
    labelled = np.column_stack([y, np.where(np.arange(40) == 0, 2, 0)])
    assert not np.allclose(doubtful_answers(model, np.zeros((40, 1)), labelled).wrong, found.wrong)


def test_doubt_needs_a_probability_for_each_row():
    rate = Rate(0.1, 0.1, 0.1, 100)
    probability = np.array([[0.5, 0.5], [0.5, np.nan]])
    model = SimpleNamespace(answer_model_=AnswerModel(rate, {0: rate}), predict_proba=lambda X: probability)
    with pytest.raises(InputError, match="`X` has 2 rows"):
        doubtful_answers(model, np.zeros((2, 1)), [1, 1, 0])
    with pytest.raises(InputError, match=r"not numbers\. Look for missing values in `X`"):
        doubtful_answers(model, np.zeros((2, 1)), [1, 1])


def test_an_interval_of_loose_pairs_is_the_profile_of_their_likelihood():
    """Against scipy's optimum over the other rate and the share of blind points, at the scale that was chosen."""
    rng = np.random.default_rng(0)
    n = 60
    z = rng.normal(size=2 * n) * 6
    classes = rng.random(2 * n) < expit(z)
    ends = np.arange(2 * n).reshape(-1, 2)
    who = np.arange(n) % 2 + 1
    wrong = rng.random(n) < 0.2
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) ^ wrong
    graph = AnswerGraph.from_answers(ends, same, annotators=who)
    found = AnswerModel.estimate(graph, 2, z).by_annotator[2]

    def minus_log_likelihood(parameters, rate, scale):
        p = (1 - parameters[1]) * expit(scale * z) + parameters[1] / 2
        agree = p[ends].prod(axis=1) + (1 - p[ends]).prod(axis=1)
        error = np.where(who == 2, rate, parameters[0])
        likely = np.where(same, agree, 1 - agree)
        return -np.log((1 - error) * likely + error * (1 - likely)).sum()

    grid = np.linspace(1e-4, 0.5, 12)
    gaps = []
    for scale in (0.25, 0.5, 0.75, 1.0, 1.4, 2.0):
        best = [
            minimize(minus_log_likelihood, (0.05, 0.1), (rate, scale), bounds=[(1e-4, 0.5), (0, 1)]) for rate in grid
        ]
        low, high = profile_ends(grid, -np.array([one.fun for one in best]))
        gaps.append(max(abs(high - found.high), abs(low - found.low)))
    assert min(gaps) < 5e-3


def test_rates_do_not_depend_on_which_class_is_positive():
    """Also where the model is sure of itself and blind about many points, among answers on cycles."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=160) * 6 + 2
    classes = rng.random(160) < np.where(rng.random(160) < 0.3, 0.5, expit(z))
    point = np.arange(158)
    ends = np.concatenate([[(158, 159)], np.column_stack([point, point + 1]), np.column_stack([point, point + 2])[::4]])
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) ^ (rng.random(len(ends)) < 0.1)
    graph = AnswerGraph.from_answers(ends, same)
    rate, mirrored = (AnswerModel.estimate(graph, 2, sign * z).error_rate for sign in (1, -1))
    assert 0 < rate.low < rate.value < rate.high < 0.2
    assert (rate.value, rate.low, rate.high) == pytest.approx((mirrored.value, mirrored.low, mirrored.high), abs=1e-4)


@pytest.mark.parametrize(
    ("ends", "same", "labels", "involved"),
    [
        ([[0, 1], [1, 2], [0, 2]], [True, True, False], None, [True, True, True]),
        ([[0, 1], [1, 2], [0, 2]], [False, False, False], None, [False, False, False]),
        ([[0, 1], [2, 3], [4, 5]], [True, True, False], [1, 2, 0, 0, 3, 1, 0], [True, False, False]),
        ([[0, 1], [2, 3], [4, 5]], [True, True, False], [1, 0, 0, 0, 3, 3, 0], [False, False, True]),
    ],
)
def test_who_contradicts(ends, same, labels, involved):
    graph = AnswerGraph.from_answers(ends, same, annotators=[1, 2, 3], labels=labels, n_points=7)
    annotator = graph.annotators - 1
    found = annotators_in_contradictions(graph, annotator, np.ones(3, dtype=bool))
    assert found.tolist() == involved


def test_intervals_allow_for_the_ends_of_a_rate_that_tell_something():
    """Nothing tells the rate of one person's loose pairs: 0 to 1/2. A given rate is exact."""
    graph = AnswerGraph.from_answers(np.arange(40).reshape(-1, 2), np.arange(20) % 2 == 0)
    plausible = [model.rates[0] for model in AnswerModel.estimate(graph).plausible()]
    assert plausible == pytest.approx([0.02, 0.005, 0.3])
    given = AnswerModel.given(0.1, graph)
    assert given.plausible() == [given]


@pytest.mark.parametrize(("n_people", "narrower"), [(4, 1.0), (16, 4.0)])
def test_rates_of_few_people_may_err_together_and_those_of_many_apart(n_people, narrower):
    """The interval of the mean of n independent rates is narrower by the root of n, at both ends."""
    model = AnswerModel.audited(
        np.repeat(np.arange(1, n_people + 1), 5), dict.fromkeys(range(1, n_people + 1), (20, 4))
    )
    whole, person = model.error_rate, model.by_annotator[1]
    assert whole.value == pytest.approx(person.value)
    assert whole.value - whole.low == pytest.approx((person.value - person.low) / narrower)
    assert whole.high - whole.value == pytest.approx((person.high - person.value) / narrower)


@pytest.mark.parametrize("n_points", [2, 3])
def test_a_judge_who_knows_all_classes_counts_wrong_questions(n_points):
    """Where the probability that a question is answered rightly is 0 or 1, the rate is the share of zeros."""
    n = 2000
    first = n_points * np.arange(n)[:, None]
    ends = np.concatenate([first + pair for pair in ([0, 1], [1, 2], [0, 2])[: 2 * n_points - 3]])
    questions = np.tile(np.arange(1, n + 1), 2 * n_points - 3)
    graph = AnswerGraph.from_answers(ends, np.ones(len(ends), dtype=bool), questions=questions)
    chances = np.tile((np.arange(n) % 5 > 0).astype(float), (2, 1))
    rate = AnswerModel.estimate(graph, 3).judged(graph, chances).error_rate
    # A prior of 30 answers takes 0.003 off, and EM stops early.
    assert rate.value == pytest.approx(0.2, abs=0.008)
    assert 0.15 < rate.low < 0.2 < rate.high < 0.25


@pytest.mark.parametrize(("truth", "n"), [(0.17, 3000), (0.01, 3000), (0.2, 5)])
def test_the_likeliest_of_some_rates_and_its_interval(truth, n):
    """Answers whose rate is known have a binomial likelihood; five of them leave all open."""
    rates = np.array([0.02, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.36, 0.42])
    values = truth * np.log(rates) + (1 - truth) * np.log1p(-rates)
    value, low, high = likeliest_rate(rates.tolist(), values.tolist(), n)
    assert low <= truth <= high
    assert value == pytest.approx(truth, abs=0.02)
    assert (high - low < 0.1) == (n > 5)
