"""The likelihood of answers and labels: enumeration of all classes, derivatives, weights, folds and invariance."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.errors import InputError
from tests.reference import FOREST, LABELLED, N_POINTS, RINGS, draw_answers, draw_crowd, enumerated_parts, random_ends

# None is wrong; some are; those of one annotator, so that closed forms and messages stand side by side.
RATES = {"certain": 0.0, "wrong": 0.1, "one annotator": {1: 0.0, 2: 0.2}}


def likelihood_of(graph, n_classes, rates=0.0):
    return AnswerModel.given(rates, graph).likelihood(graph, n_classes)


def draw_scores(n_classes, n_points=N_POINTS, scales=(1, 4)):
    """A set of scores of every scale."""
    return np.random.default_rng(7).normal(size=(n_points, 1 if n_classes == 2 else n_classes, 1)) * scales


def assert_enumerated(likelihood, rates, Z, atol=1e-9):
    """Every component by itself; on the path messages converge less far."""
    log_p, slope = likelihood.terms(Z, exact=True)
    graph = likelihood.graph
    errors = AnswerModel.given(rates, graph).errors(graph.annotators)
    for b, z in enumerate(np.moveaxis(Z, 2, 0)):
        given = log_softmax(z if likelihood.n_scores > 1 else z * [0, 1], axis=1)
        values, posteriors, _ = enumerated_parts(graph, given, errors)
        np.testing.assert_allclose(log_p[:, b], values, atol=atol)
        np.testing.assert_allclose(slope[:, :, b], (posteriors - np.exp(given))[:, -Z.shape[1] :], atol=10 * atol)
        np.testing.assert_allclose(likelihood.terms(Z).log_p[:, b], values, atol=1e-6)
        np.testing.assert_allclose(likelihood.posterior(Z)[:, :, b], posteriors, atol=1e-5)


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_trees_are_the_sum_over_all_classes(n_classes, labels, rates):
    graph = draw_answers(n_classes, rates, labels=labels)
    assert_enumerated(likelihood_of(graph, n_classes, rates), rates, draw_scores(n_classes))


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
def test_cycles_of_two_classes_through_one_point_are_the_sum_over_all_classes(rates):
    likelihood = likelihood_of(draw_answers(2, rates, RINGS), 2, rates)
    # Of nine sets of scores those that have converged are dropped.
    assert_enumerated(likelihood, rates, draw_scores(2, scales=np.geomspace(0.01, 6, 9)), atol=1e-6)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_a_cycle_of_more_classes_has_each_answer_once(n_classes):
    """The composite likelihood of a triangle is that of its three answers about points of their own."""
    ends, same = np.array([(0, 1), (1, 2), (2, 0)]), np.array([True, False, False])
    Z = draw_scores(n_classes, 3)
    apart = AnswerGraph.from_answers(np.arange(6).reshape(3, 2), same)
    of_answers = likelihood_of(apart, n_classes, 0.1).terms(Z[ends.ravel()])
    log_p, slope = likelihood_of(AnswerGraph.from_answers(ends, same), n_classes, 0.1).terms(Z)
    np.testing.assert_allclose(log_p[0], of_answers.log_p.sum(axis=0), rtol=1e-12)
    expected = np.zeros_like(slope)
    np.add.at(expected, ends.ravel(), of_answers.slope)
    np.testing.assert_allclose(slope, expected, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_too_small_for_a_float_keep_their_digits(n_classes):
    graph = AnswerGraph.from_answers([(0, 1), (2, 3)], [False, True])
    sure = np.array([[40.0], [41], [40], [-42]])[:, None]
    assert_enumerated(likelihood_of(graph, n_classes), 0.0, sure if n_classes == 2 else sure * np.eye(3)[:, :1])


def test_log_odds_of_two_classes_have_the_fixed_points_of_propagation_around_many_cycles():
    rng = np.random.default_rng(0)
    graph = AnswerGraph.from_answers(random_ends(rng, 60, 90), rng.random(90) < 0.5, annotators=rng.choice([1, 3], 90))
    rates = {1: 0.1, 3: 0.3}
    Z = draw_scores(2, graph.n_points)
    log_p, slope = likelihood_of(graph, 2, rates).terms(Z, exact=True)
    for b, z in enumerate(np.moveaxis(Z, 2, 0)):
        given = log_softmax(z * [0, 1], axis=1)
        expected = AnswerModel.given(rates, graph).factor_graph(graph, 2).propagate(given, max_iter=500, tol=1e-11)
        np.testing.assert_allclose(log_p[:, b], expected.component_values, atol=1e-8)
        np.testing.assert_allclose(slope[:, 0, b], (expected.posteriors - np.exp(given))[:, 1], atol=1e-7)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("ends", [FOREST, RINGS], ids=["forest", "rings"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_slope_is_the_derivative(n_classes, ends, exact):
    """Also around cycles, where the likelihood of more classes is a composite one."""
    likelihood = likelihood_of(draw_answers(n_classes, 0.1, ends), n_classes, 0.1)
    Z = draw_scores(n_classes)
    steps = 1e-5 * np.eye(Z[:, :, 0].size).reshape(*Z.shape[:2], -1)
    slope = likelihood.terms(Z, exact).slope
    for b in range(Z.shape[2]):
        up, down = (likelihood.terms(Z[:, :, [b]] + sign * steps, exact).log_p.sum(axis=0) for sign in (1, -1))
        expected = ((up - down) / 2e-5).reshape(Z.shape[:2])
        # Messages converge to 1e-4 on the path, and to 1e-6 with more classes.
        np.testing.assert_allclose(slope[:, :, b], expected, atol=1e-7 if exact and n_classes == 2 else 2e-4)


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_neither_order_nor_names_matter(n_classes, rates):
    rng = np.random.default_rng(1)
    graph = draw_answers(n_classes, rates)
    Z = draw_scores(n_classes)
    value, slope = likelihood_of(graph, n_classes, rates).mean(Z, exact=True)
    place = rng.permutation(N_POINTS)
    order = rng.permutation(graph.n_answers)
    swap = rng.random((graph.n_answers, 1)) < 0.5
    classes = rng.permutation(n_classes)
    labels = np.zeros(N_POINTS, dtype=int)
    labels[place] = -graph.labels if n_classes == 2 else np.append(classes + 1, 0)[graph.labels - 1]
    moved = AnswerGraph.from_answers(
        place[np.where(swap, graph.ends[:, ::-1], graph.ends)][order], graph.same[order], labels=labels,
        annotators=graph.annotators[order], weights=graph.weights[order],
    )  # fmt: skip

    def renamed(scores):
        other = np.empty_like(scores)
        other[place] = -scores if n_classes == 2 else scores[:, np.argsort(classes)]
        return other

    other_value, other_slope = likelihood_of(moved, n_classes, rates).mean(renamed(Z), exact=True)
    np.testing.assert_allclose(other_value, value, rtol=1e-10)
    np.testing.assert_allclose(other_slope, renamed(slope), atol=1e-9)


@pytest.mark.parametrize("rates", [0.0, 0.1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_component_of_weight_two_is_two_components(n_classes, rates):
    ends = np.array([(0, 1), (2, 3), (3, 4)])
    same = [True, True, False]
    weights = np.array([1.0, 2.0, 2.0])
    once = likelihood_of(AnswerGraph.from_answers(ends, same, weights=weights), n_classes, rates)
    twice = likelihood_of(AnswerGraph.from_answers([*ends, (5, 6), (6, 7)], [*same, *same[1:]]), n_classes, rates)
    assert once.total == twice.total == 5
    Z = draw_scores(n_classes, 5)
    value, slope = once.mean(Z)
    again, parts = twice.mean(Z[[0, 1, 2, 3, 4, 2, 3, 4]])
    np.testing.assert_allclose(value, again)
    parts[2:5] += parts[5:]
    np.testing.assert_allclose(slope, parts[:5])
    # The unit of the weights does not matter.
    unit = likelihood_of(AnswerGraph.from_answers(ends, same, weights=7 * weights), n_classes, rates)
    np.testing.assert_allclose(unit.mean(Z)[0], value)


def test_independent_answers_and_labels_are_counted():
    """Within a component of two classes points but one; of more, ties, edges and labelled groups."""
    ends = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 3)]
    labels = [0, 0, 0, 1, 0, 2, 0]
    graph = AnswerGraph.from_answers(ends, [True, True, True, False, False], labels=labels)
    assert likelihood_of(graph, 3).total == 2 + 2 + 1
    assert likelihood_of(graph, 3, 0.1).total == 3 + 2 + 1
    two = AnswerGraph.from_answers(ends, graph.same, labels=-np.sign(labels))
    assert likelihood_of(two, 2).total == likelihood_of(two, 2, 0.1).total == 2 + 2 + 1


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fold_knows_what_touches_no_point_left_out(n_classes, rates):
    whole = likelihood_of(draw_answers(n_classes, rates), n_classes, rates)
    graph = whole.graph
    shown = ~np.isin(np.arange(N_POINTS), [1, 5, 10, 15, 17, 19])
    fold = whole.folds(shown[:, None])
    kept = [k for k, (a, b) in enumerate(graph.ends) if shown[a] and shown[b]]
    for name in ("ends", "same", "weights", "annotators"):
        np.testing.assert_array_equal(getattr(fold.graph, name), getattr(graph, name)[kept])
    np.testing.assert_array_equal(fold.graph.labels, graph.labels * shown)
    Z = draw_scores(n_classes)
    assert_enumerated(fold, rates, Z)
    # Weights are those of all answers: values of folds can be compared.
    by_point = whole.weight[graph.component]
    np.testing.assert_allclose(fold.weight[fold.graph.component], by_point)
    log_p, slope = fold.terms(Z)
    value, mean_slope = fold.mean(Z)
    np.testing.assert_allclose(value, fold.weight @ log_p / whole.total)
    np.testing.assert_allclose(mean_slope, by_point[:, None, None] * slope / whole.total)


def test_answers_of_more_classes_that_are_rarely_wrong_are_ties():
    """Of loose pairs and a chain nothing tells the rate; with a contradiction there are no ties, also in folds."""
    ends = [(0, 1), (1, 2), (3, 4), (5, 6)]
    graph = AnswerGraph.from_answers(ends, [True, True, False, True])
    model = AnswerModel.estimate(graph, 3)
    Z = draw_scores(3, 7)
    likelihood = model.likelihood(graph, 3)
    for ours in (likelihood, likelihood.folds(np.arange(7)[:, None] != 0)):
        np.testing.assert_allclose(ours.terms(Z).log_p, likelihood_of(ours.graph, 3).terms(Z).log_p)
        assert (ours.errors > 0).all()
    both = AnswerGraph.from_answers([*ends, (0, 2)], [True, True, False, True, False])
    np.testing.assert_allclose(model.likelihood(both, 3).terms(Z).log_p, likelihood_of(both, 3, 0.02).terms(Z).log_p)
    assert_enumerated(model.likelihood(graph, 2), model.rates, draw_scores(2, 7))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contradictions_need_an_error_rate(n_classes):
    """Of labels, of a question asked twice, and around a triangle."""
    labels = [1, -1] if n_classes == 2 else [1, 2]
    graphs = [
        AnswerGraph.from_answers([(0, 1)], [1], labels=labels),
        AnswerGraph.from_answers([(0, 1), (1, 0)], [1, -1]),
        AnswerGraph.from_answers([(2, 3), (0, 1), (1, 2), (2, 0)], [1, 1, 1, -1]),
    ]
    for graph in graphs:
        with pytest.raises(InputError, match="contradict each other"):
            likelihood_of(graph, n_classes)
        assert np.isfinite(likelihood_of(graph, n_classes, 0.1).mean(draw_scores(n_classes, graph.n_points))[0]).all()


def test_sides_are_those_of_the_graph_and_follow_labels():
    graph = draw_answers(2, 0.0)
    sides = likelihood_of(graph, 2).sides
    first = np.unique(graph.component, return_index=True)[1][graph.component]
    np.testing.assert_allclose(sides * sides[first], graph.sides * graph.sides[first])
    np.testing.assert_allclose(sides[LABELLED], graph.labels[LABELLED])
    # Relative to the point with the most answers, a chain of answers that may be wrong loses 1 - 2 e by step.
    chain = likelihood_of(AnswerGraph.from_answers([(0, 1), (1, 2), (1, 3), (3, 4)], [1, 1, -1, 1]), 2, 0.1)
    np.testing.assert_allclose(chain.sides, [0.8, 1, 0.8, -0.8, -0.64], atol=1e-6)


@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_other_shares_of_the_classes_are_better(n_classes, rates):
    """Of one larger class among equal ones, any of which labels may name."""
    larger = np.eye(3) if n_classes > 2 else np.array([[-1.0], [1.0]])
    tried = larger[:, None, :, None] * np.linspace(0, 7, 200) * np.ones((N_POINTS, 1, 1))
    for labels in (False, True):
        likelihood = likelihood_of(draw_answers(n_classes, rates, labels=labels), n_classes, rates)
        best = max(likelihood.mean(Z)[0].max() for Z in tried)
        assert likelihood.best_constant() == pytest.approx(best, abs=2e-3)


def test_points_of_a_crowd_are_independent_given_its_evidence():
    """Every point has the likelihood of its own class by the answers; one without answers, none."""
    graph = draw_crowd(24)
    likelihood = AnswerModel.estimate(graph, 3, answer_table=False).likelihood(graph, 3)
    Z = draw_scores(3, 25)
    for ours in (likelihood, likelihood.folds(np.arange(25)[:, None] >= 8)):
        evidence = np.where(ours.graph.degree[:, None] > 0, likelihood.evidence, 0.0)
        by_class = log_softmax(Z, axis=1) + evidence[:, :, None]
        log_p = np.zeros((ours.graph.n_components, 2))
        np.add.at(log_p, ours.graph.component, logsumexp(by_class, axis=1))
        np.testing.assert_allclose(ours.terms(Z).log_p, log_p, atol=1e-12)
        np.testing.assert_allclose(ours.posterior(Z), softmax(by_class, axis=1), atol=1e-12)
        np.testing.assert_allclose(ours.by_evidence, softmax(evidence, axis=1))
        assert ours.total == 24
