import itertools

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.errors import InputError
from tests.reference import FOREST, N_POINTS, RINGS, draw_answers, enumerated, enumerated_parts

RATES = np.array([0.1, 0.02, 0.3, 0.2])


def factors_of(graph, n_classes, rates):
    known = dict(enumerate(rates)) if isinstance(rates, np.ndarray) else rates
    return AnswerModel.given(known, graph).factor_graph(graph, n_classes)


def propagate(graph, log_p, rates=0.0, **options):
    return factors_of(graph, np.shape(log_p)[-1], rates).propagate(log_p, **options)


def exact(factors):
    """Whether each component is free of cycles that stay when the pivots are taken in each class."""
    found = [one.groups[one.network.ends[one.network.loopy]].ravel() for one in factors.networks]
    return ~np.isin(np.arange(factors.graph.n_components), factors.component[np.concatenate(found)])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("rates", [0.0, 0.1, {1: 0.0, 2: 0.2}], ids=["certain", "wrong", "one annotator"])
@pytest.mark.parametrize("ends", [FOREST, RINGS], ids=["trees", "cycles through one group"])
def test_answers_are_exact(ends, rates, n_classes):
    """With annotators, repeats, labels and weights."""
    logits = np.random.default_rng(5).normal(size=(N_POINTS, n_classes))
    for labels in (False, True):
        graph = draw_answers(n_classes, rates, ends, labels)
        factors = factors_of(graph, n_classes, rates)
        assert exact(factors).all()
        errors = AnswerModel.given(rates, graph).errors(graph.annotators)
        # Also where all classes are equally likely.
        for log_p in (log_softmax(2 * logits, axis=1), log_softmax(0 * logits, axis=1)):
            result = factors.propagate(log_p)
            values, posteriors, right = enumerated_parts(graph, log_p, errors)
            np.testing.assert_allclose(result.component_values, values, atol=1e-10)
            assert result.value == pytest.approx(values.sum(), abs=1e-9)
            np.testing.assert_allclose(result.posteriors, posteriors, atol=1e-10)
            np.testing.assert_allclose(result.right, right, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_too_small_for_a_float_stay_exact(n_classes):
    """Two points that are each of the first class for sure, and said to differ."""
    logits = np.zeros((2, n_classes))
    logits[0, 0] = 2000
    logits[1, 0] = 1990
    log_p = log_softmax(logits, axis=1)
    result = propagate(AnswerGraph.from_answers([(0, 1)], [False]), log_p)
    # The second point is the other one: exp(-1990) for each other class, exp(-2000) the other way.
    odds = np.exp(-10)
    assert result.value == pytest.approx(np.log(n_classes - 1) - 1990 + np.log1p(odds), rel=1e-14)
    assert result.posteriors[0, 0] == pytest.approx(1 / (1 + odds), rel=1e-9)
    chain = AnswerGraph.from_answers(np.column_stack([np.arange(999), np.arange(1, 1000)]), np.ones(999, int))
    tiled = np.tile(log_p[:1], (1000, 1))
    assert propagate(chain, tiled, 1e-3).value == pytest.approx(999 * np.log1p(-1e-3))


@pytest.mark.parametrize(("n_classes", "with_errors", "mean"), [(2, True, 0.005), (3, True, 0.01), (3, False, 0.03)])
def test_the_error_on_cycles_is_small(n_classes, with_errors, mean):
    """Small graphs with cycles, answers of moderate errors to true classes."""
    rng = np.random.default_rng(17)
    off = []
    values = []
    for _ in range(20 if with_errors else 50):
        # As many points as can be enumerated fast.
        n = int(rng.integers(4, 13 if n_classes == 2 else 9))
        classes = rng.integers(n_classes, size=n)
        edges = np.array([rng.choice(n, 2, replace=False) for _ in range(rng.integers(n, 2 * n + 1))])
        who = rng.integers(4, size=len(edges))
        errors = RATES[who] * with_errors
        same = (classes[edges[:, 0]] == classes[edges[:, 1]]) ^ (rng.random(len(edges)) < errors)
        graph = AnswerGraph.from_answers(edges, same, annotators=who, n_points=n)
        log_p = log_softmax(rng.normal(size=(n, n_classes)) + np.eye(n_classes)[classes], axis=1)
        factors = factors_of(graph, n_classes, RATES * with_errors)
        result = factors.propagate(log_p)
        value, posteriors, _ = enumerated(graph, log_p, errors)
        if not exact(factors).all():
            off.append(np.abs(result.posteriors - posteriors).ravel())
            values.append(abs(result.value - value) / graph.n_answers)
    off = np.concatenate(off)
    assert off.mean() < mean
    assert off.max() < 0.3
    assert np.mean(values) < 0.02
    assert max(values) < 0.1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_fisher_s_identity(n_classes):
    """The gradient in the logits is posterior - node probability on cycles too, where messages rest."""
    rng = np.random.default_rng(2)
    edges = np.array(list(itertools.combinations(range(5), 2)))
    graph = AnswerGraph.from_answers(edges, rng.choice([-1, 1], len(edges)), labels=[0, 0, 0, 0, 1])
    logits = rng.normal(size=(5, n_classes))

    def at(shift):
        return propagate(graph, log_softmax(logits + shift, axis=1), 0.2, tol=1e-12, max_iter=2000)

    shifts = 1e-5 * np.eye(logits.size).reshape(-1, *logits.shape)
    slopes = [(at(shift).value - at(-shift).value) / 2e-5 for shift in shifts]
    expected = at(0).posteriors - softmax(logits, axis=1)
    np.testing.assert_allclose(slopes, expected.ravel(), atol=1e-8)


def test_neighbours_take_a_class():
    """Points 5 and 6 differ from the first two classes, by labels, so that point 2 is not of the third."""
    ends = [(2, 3), (2, 4), (5, 2), (2, 6), (0, 5), (1, 5), (0, 6), (1, 6)]
    for n_answers in (6, 8):
        graph = AnswerGraph.from_answers(ends[:n_answers], [False] * n_answers, labels=[1, 2, 0, 0, 0, 0, 0])
        log_p = log_softmax(np.random.default_rng(0).normal(size=(7, 3)), axis=1)
        result = propagate(graph, log_p)
        value, posteriors, _ = enumerated(graph, log_p, np.zeros(n_answers))
        assert result.value == pytest.approx(value)
        np.testing.assert_allclose(result.posteriors, posteriors, atol=1e-12)


def test_labels_that_contradict_the_answers():
    """Two different neighbours leave the third class, which a label then takes away."""
    star = AnswerGraph.from_answers([(0, 1), (0, 2), (0, 3)], [False] * 3, labels=[0, 1, 2, 3])
    with pytest.raises(InputError, match="or the labels"):
        propagate(star, np.log([0.2, 0.3, 0.5]))
    four = propagate(star, np.log([0.2, 0.3, 0.4, 0.1]))
    np.testing.assert_allclose(four.posteriors[0], [0, 0, 0, 1])


@pytest.mark.parametrize(
    ("n_classes", "rates", "labels", "text"),
    [
        (1, 0.0, None, "classes"),
        (2, 0.51, None, "got 0.51"),
        (2, np.nan, None, "got nan"),
        (2, {0: 0.1}, None, "annotator 2"),
        (3, 0.0, [-1, 0, 0], "[Ll]abels"),
        (3, 0.0, [1, 4, 0], "[Ll]abels"),
        (2, 0.0, [2, 0, 0], "[Ll]abels"),
    ],
)
def test_bad_inputs(n_classes, rates, labels, text):
    graph = AnswerGraph.from_answers([(0, 1), (1, 2)], [True, True], annotators=[0, 2], labels=labels)
    with pytest.raises(InputError, match=text):
        propagate(graph, np.full(n_classes, -np.log(n_classes)), rates)


def match_questions(rng, truth, n_choices, careless):
    """New point, examples and the position that was picked (the number of examples: none of them)."""
    for _ in range(5):
        new, *examples = rng.permutation(len(truth))[: n_choices + 1].tolist()
        alike = np.flatnonzero(truth[examples] == truth[new])
        if len(alike) < 2:
            picked = int(alike[0]) if len(alike) else n_choices
            yield new, examples, int(rng.integers(n_choices + 1)) if rng.random() < careless else picked


def test_answers_given_together_go_wrong_together():
    """Posteriors of match questions by enumeration of equation (8), closer than with independent errors."""
    n_classes, n_points, n_choices, careless = 4, 6, 3, 0.3
    states = np.array(list(itertools.product(range(n_classes), repeat=n_points)))
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(25):
        truth = rng.integers(0, n_classes, n_points)
        p = 0.6 * np.eye(n_classes)[truth] + 0.1
        weight = p[np.arange(n_points), states].prod(axis=1)
        ends, same, questions = [], [], []
        for number, (new, examples, picked) in enumerate(match_questions(rng, truth, n_choices, careless), 1):
            wanted = np.arange(n_choices) == picked
            right = ((states[:, [new]] == states[:, examples]) == wanted).all(axis=1)
            weight = weight * ((1 - careless) * right + careless / (n_choices + 1))
            ends += [(new, example) for example in examples]
            same += wanted.tolist()
            questions += [number] * n_choices
        by_states = np.array([np.bincount(states[:, i], weight, n_classes) for i in range(n_points)]) / weight.sum()
        for together in (questions, None):
            graph = AnswerGraph.from_answers(ends, same, questions=together, n_points=n_points)
            errors.append(
                np.abs(
                    propagate(graph, np.log(p), careless * n_choices / (n_choices + 1)).posteriors - by_states
                ).mean()
            )
    together, apart = np.reshape(errors, (-1, 2)).mean(axis=0)
    assert together < 0.02
    assert together < 0.85 * apart
