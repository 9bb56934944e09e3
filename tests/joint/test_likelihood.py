"""The likelihood of two classes and the objective: enumeration, derivatives, information, folds, and its limits."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.errors import InputError
from sdulearn.joint.data import PriorPull, TrainingData
from sdulearn.joint.likelihood import LoosePairs, TwoClassLikelihood
from sdulearn.joint.path import PointProblem, fold_score
from tests.reference import enumerated

margins = st.floats(-30, 30)
N_POINTS = 14
# A triangle, a loose pair, a chain with a label, another pair, a pair asked twice, a labelled point, a point alone.
ENDS = [(0, 1), (1, 2), (2, 0), (3, 4), (5, 6), (6, 7), (8, 9), (10, 11), (11, 10)]
ANNOTATORS = [1, 2, 1, 2, 1, 1, 1, 1, 2]
# None is wrong; some are; those of one annotator, so that pairs, sides and messages stand side by side.
RATES = {"certain": 0.0, "wrong": 0.1, "one annotator": {1: 0.0, 2: 0.2}}


def pair_loss(z1, z2, s):
    """Minus the log probability of an answer, s = +1 or -1, that is never wrong."""
    factors = [[0.0], [-np.inf]] if s > 0 else [[-np.inf], [0.0]]
    return LoosePairs(*np.array(factors)).terms(np.array([[z1], [z2]]))[0][0, 0]


def likelihood_of(graph, rates=0.0, weight=None):
    return TwoClassLikelihood(graph, AnswerModel.given(rates, graph), weight)


def make_graph(labels=True, weights=None):
    classes = np.random.default_rng(0).choice([-1, 1], N_POINTS)
    known = np.zeros(N_POINTS, dtype=int)
    if labels:
        known[[5, 12]] = classes[[5, 12]]
    same = [classes[a] * classes[b] for a, b in ENDS]
    return AnswerGraph.from_answers(ENDS, same, annotators=ANNOTATORS, labels=known, n_points=N_POINTS, weights=weights)


def make_problem(rates, prior=0.6):
    codes = np.ones(N_POINTS, dtype=int)
    codes[13] = 0
    X = np.random.default_rng(1).normal(size=(N_POINTS, 3))
    data = TrainingData(X, make_graph(), codes, np.ones(N_POINTS))
    return PointProblem(data, likelihood_of(data.graph, rates, data.weight), prior, 3.0)


def error_of(graph, rates):
    return np.array([rates[a] if isinstance(rates, dict) else rates for a in graph.annotators])


@given(margins, margins, st.sampled_from([-1.0, 1.0]))
def test_a_pair_s_loss_is_the_log_probability_of_the_answer(z1, z2, s):
    same = expit(z1) * expit(z2) + expit(-z1) * expit(-z2)
    different = expit(z1) * expit(-z2) + expit(-z1) * expit(z2)
    loss = pair_loss(z1, z2, s)
    assert loss == pytest.approx(-np.log(same if s > 0 else different), rel=1e-9, abs=1e-12)
    assert loss == pytest.approx(pair_loss(z2, z1, s)) == pytest.approx(pair_loss(-z1, -z2, s))
    assert pair_loss(1e6, -1e6, 1.0) == pytest.approx(1e6)
    wrong = LoosePairs(*np.log([[0.8], [0.2]] if s > 0 else [[0.2], [0.8]])).terms(np.array([[z1], [z2]]))[0]
    chance = 0.8 * same + 0.2 * different if s > 0 else 0.2 * same + 0.8 * different
    assert wrong[0, 0] == pytest.approx(-np.log(chance), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
@pytest.mark.parametrize("labels", [False, True])
def test_the_likelihood_is_the_sum_over_all_classes(rates, labels):
    graph = make_graph(labels, weights=np.linspace(0.5, 2, len(ENDS)))
    Z = 2 * np.random.default_rng(3).normal(size=(N_POINTS, 2))
    likelihood = likelihood_of(graph, rates)
    losses, slopes = likelihood.terms(Z)
    for k in range(2):
        log_p = np.log(expit(np.outer(Z[:, k], [-1, 1])))
        value, posteriors, _ = enumerated(graph, log_p, error_of(graph, rates))
        assert -losses[:, k].sum() == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(expit(Z[:, k]) - slopes[:, k], posteriors[:, 1], atol=1e-6)


@pytest.mark.parametrize("prior", [None, 0.3, 0.7])
@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
def test_derivatives(rates, prior):
    problem = make_problem(rates, prior=prior)
    objective = partial(problem.objective, pen=np.full((3, 2), 0.1), exact=True)
    W = np.random.default_rng(4).normal(size=(4, 2))
    value, gradient = objective(W, [0, 1])
    for j, step in enumerate(1e-5 * np.eye(4)):
        up, _ = objective(W + step[:, None], [0, 1])
        down, _ = objective(W - step[:, None], [0, 1])
        np.testing.assert_allclose((up - down) / 2e-5, gradient[j], atol=1e-8)
    # A column of many is the problem by itself.
    one, alone = objective(W[:, 1:], [1])
    assert one[0] == pytest.approx(value[1], rel=1e-12)
    np.testing.assert_allclose(alone[:, 0], gradient[:, 1], atol=1e-12)
    # On the path messages converge less far.
    near, slope = problem.objective(W, [0, 1], np.full((3, 2), 0.1))
    np.testing.assert_allclose(near, value, rtol=2e-6)
    np.testing.assert_allclose(slope, gradient, atol=2e-6)


@pytest.mark.parametrize(
    "graph",
    [
        AnswerGraph.from_answers([(0, 1)], [1], labels=[1, -1]),
        AnswerGraph.from_answers([(0, 1), (1, 0)], [1, -1]),
        AnswerGraph.from_answers([(2, 3), (0, 1), (1, 2), (2, 0)], [1, 1, 1, -1]),
    ],
)
def test_answers_without_errors_that_contradict_each_other(graph):
    with pytest.raises(InputError, match=r"contradict each other .* `error_rate='auto'`"):
        likelihood_of(graph, 0.0)
    likelihood_of(graph, 0.1)


def fisher(A, z, chance):
    """Information of one event about w, by differences."""
    w = np.linalg.pinv(A) @ z
    slope = np.array([(chance(A @ (w + step)) - chance(A @ (w - step))) / 2e-6 for step in 1e-6 * np.eye(A.shape[1])])
    p = chance(z)
    return np.outer(slope, slope) / (p * (1 - p))


def test_information_of_a_pair_and_of_labels():
    """For a pair Fisher's, from the two probabilities of its answer; with a label that of logistic regression."""
    rng = np.random.default_rng(7)
    A = rng.normal(size=(2, 3))
    z = A @ rng.normal(size=3)

    def same(z):
        return np.prod(expit(z)) + np.prod(expit(-z))

    expected = fisher(A, z, same)
    for answer in (True, False):
        J = likelihood_of(AnswerGraph.from_answers([(0, 1)], [answer])).information(A, z)
        np.testing.assert_allclose(J.T @ J, expected, rtol=1e-6)
    # An answer and a label, one half each.
    J = likelihood_of(AnswerGraph.from_answers([(0, 1)], [True], labels=[1, 0])).information(A, z)
    np.testing.assert_allclose(2 * J.T @ J, A.T @ ((expit(z) * expit(-z))[:, None] * A), rtol=1e-12)


def test_information_that_wrong_answers_leave():
    """At small logits of a pair Fisher's, of an answer that is wrong with probability e: (1 - 2 e)^2 of the whole."""
    A = np.random.default_rng(8).normal(size=(3, 4))
    z = np.array([1e-3, 2e-3, -1e-3])
    q = 0.5 * (1 + np.tanh(z[0] / 2) * np.tanh(z[1] / 2))
    slope = 0.25 * (np.tanh(z[1] / 2) * A[0] + np.tanh(z[0] / 2) * A[1])
    p = 0.2 + 0.6 * q
    expected = 0.6**2 * np.outer(slope, slope) / (p * (1 - p))
    pair = likelihood_of(AnswerGraph.from_answers([(0, 1)], [1]), 0.2)
    J = pair.information(A[:2], z[:2])
    np.testing.assert_allclose(J.T @ J, expected, rtol=1e-4)
    chain = likelihood_of(AnswerGraph.from_answers([(0, 1), (1, 2)], [1, 1]), 0.2)
    J = chain.information(A, z)
    slope = 0.25 * (np.tanh((z[0] + z[1]) / 2) * A[2] + np.tanh(z[2] / 2) * (A[0] + A[1]))
    more = 0.6**2 * np.outer(slope, slope) / (p * (1 - p))
    # Two answers weigh one half each.
    np.testing.assert_allclose(J.T @ J, (expected + more) / 2, rtol=1e-2, atol=1e-9)


@pytest.mark.parametrize(("n_pairs", "d"), [(40, 5), (3, 5)], ids=["more answers than columns", "fewer"])
def test_the_evidence_is_laplace_s_with_fisher_information(n_pairs, d):
    """Written out with dense matrices: misfit, penalty and determinant, with weights."""
    rng = np.random.default_rng(0)
    weight = np.repeat(rng.uniform(0.5, 2, n_pairs), 2)
    same = rng.random(n_pairs) < 0.6
    graph = AnswerGraph.from_answers(np.arange(2 * n_pairs).reshape(-1, 2), same, weights=weight[::2])
    data = TrainingData(rng.normal(size=(2 * n_pairs, d)), graph, np.ones(2 * n_pairs), weight)
    problem = PointProblem(data, likelihood_of(data.graph, 0.0, data.weight), 0.7, 3.0)
    w = rng.normal(size=data.A.shape[1] + 1)
    pen = rng.random(data.A.shape[1]) + 0.1
    first, second = data.A[::2], data.A[1::2]
    s1, s2 = (expit(X @ w[:-1] + w[-1]) for X in (first, second))
    alike = s1 * s2 + (1 - s1) * (1 - s2)
    share = weight[::2] / weight[::2].sum()
    n = 1 / (share @ share)
    # Of one answer the information about w is g g' / (alike (1 - alike)), g the slope of the chance of "same".
    slope = ((2 * s2 - 1) * s1 * (1 - s1))[:, None] * first + ((2 * s1 - 1) * s2 * (1 - s2))[:, None] * second
    information = n * (slope * (share / (alike * (1 - alike)))[:, None]).T @ slope
    precision = n * np.diag(pen)
    expected = n * (share @ np.log(np.where(same, alike, 1 - alike)) - (pen @ w[:-1] ** 2) / 2)
    expected -= (np.linalg.slogdet(information + precision)[1] - np.linalg.slogdet(precision)[1]) / 2
    assert problem.log_evidence(w, pen) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
def test_a_fold_knows_what_touches_no_point_left_out(rates):
    """The likelihood and the slopes of a fold are those of a graph without these answers and labels."""
    graph = make_graph(labels=True)
    whole = likelihood_of(graph, rates, np.linspace(1, 2, graph.n_components))
    known = np.ones((N_POINTS, 2), dtype=bool)
    known[[1, 3, 6, 12], 0] = False
    known[[5], 1] = False
    Z = np.random.default_rng(1).normal(size=(N_POINTS, 4))
    for shown in known.T:
        fold = whole.restricted(shown)
        kept = shown[graph.ends].all(axis=1)
        part = AnswerGraph.from_answers(
            graph.ends[kept], graph.same[kept], annotators=graph.annotators[kept],
            labels=np.where(shown, graph.labels, 0), n_points=N_POINTS,
        )  # fmt: skip
        losses, slopes = likelihood_of(part, rates).terms(Z)
        for ours, alone in zip(fold.terms(Z), (losses, slopes), strict=True):
            np.testing.assert_allclose(ours, alone, atol=1e-6)
        np.testing.assert_allclose(fold.omega[fold.component], whole.omega[whole.component])
        # What is not known is scored by what is: each answer and label by itself.
        q = expit(Z[:, 0]) - slopes[:, 0]
        same = q[graph.ends].prod(axis=1) + (1 - q[graph.ends]).prod(axis=1)
        agrees = np.where(graph.same > 0, same, 1 - same)
        errors = error_of(graph, rates)
        chance = ((1 - errors) * agrees + errors * (1 - agrees))[~kept]
        hidden = np.flatnonzero(~shown & (graph.labels != 0))
        named = np.where(graph.labels[hidden] > 0, q[hidden], 1 - q[hidden])
        weight = whole.weight[whole.component[np.r_[graph.ends[~kept, 0], hidden]]]
        expected = np.average(np.log(np.r_[chance, named]), weights=weight)
        assert fold_score(whole, fold, shown, Z)[0] == pytest.approx(expected, abs=1e-6)
    # One that knows all has none.
    everything = np.ones(N_POINTS, dtype=bool)
    assert np.isnan(fold_score(whole, whole.restricted(everything), everything, Z)).all()


def test_the_pull_is_a_divergence_of_shares():
    pull = PriorPull(np.array([0.2, 0.3, 0.5]), 2.0)
    mean = np.array([[0.3], [0.3], [0.4]])
    value, first, second = pull.derivatives(mean)
    assert value[0] == pytest.approx(2 * (0.2 * np.log(0.2 / 0.3) + 0.5 * np.log(0.5 / 0.4)))
    np.testing.assert_allclose(first, -2 * pull.shares[:, None] / mean)
    np.testing.assert_allclose(second, 2 * pull.shares[:, None] / mean**2)
    two = PriorPull.of(0.7, 3.0, 1)
    for m in (0.2, 0.7):
        value, first, second = (float(x) for x in two.derivatives(np.array(m)))
        assert value == pytest.approx(3 * (0.7 * np.log(0.7 / m) + 0.3 * np.log(0.3 / (1 - m))), abs=1e-12)
        assert first == pytest.approx(3 * (0.3 / (1 - m) - 0.7 / m), abs=1e-12)
        assert second == pytest.approx(3 * (0.3 / (1 - m) ** 2 + 0.7 / m**2))
    assert PriorPull.of(None, 3.0, 1) is PriorPull.of(0.7, 0.0, 1) is PriorPull.of(0.7, 3.0, 0) is None
