import itertools

import numpy as np
import pytest
from scipy import sparse

from sdulearn import PriorEstimate, estimate_prior, stack_pairs
from sdulearn.answers import AnswerGraph, Answers
from sdulearn.diagnostics import (
    check_alike,
    check_assumptions,
    check_entities,
    check_outcome,
    check_population,
    check_ratio,
    check_shared_points,
)
from sdulearn.errors import InputError
from sdulearn.findings import Contradictions, Hubs
from sdulearn.metrics import AccuracyEstimate
from tests.reference import random_ends


def codes_of(found):
    return [finding.code for finding in found]


CLEAN = [(501, 499, None), (20, 30, None), (9, 9, None), (75, 75, 0.5), (580, 420, 0.7)]
# As many of both kinds: chosen by the answer, or two classes of one size.
ODD = {"too_few_similar": (400, 600, None), "ratio_against_prior": (500, 500, 0.9), "balanced_answers": (75, 75, None)}


@pytest.mark.parametrize(("code", "counts"), [*((None, one) for one in CLEAN), *ODD.items()])
def test_the_ratio_of_loose_pairs(code, counts):
    n_similar, n_dissimilar, prior = counts
    n = n_similar + n_dissimilar
    y = np.repeat(np.where(np.arange(n) < n_similar, 1, -1) * np.arange(1, n + 1), 2)
    found = check_assumptions(np.zeros((2 * n, 1)), y, prior=prior)
    assert codes_of(found) == [code][: code is not None]
    if code == "balanced_answers":
        # Fault S11: a few points in two answers hid it.
        point = np.arange(2 * n)
        point[2::20] -= 1
        assert code in codes_of(check_assumptions(np.zeros((2 * n, 1)), np.column_stack([y, point])))


@pytest.mark.parametrize("as_sparse", [False, True])
def test_points_from_elsewhere(as_sparse):
    """Among skewed and rare features, of which one is shifted."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(5000, 10)), rng.exponential(size=(5000, 5)), rng.random((5000, 15)) < 0.01])
    X[:, 0] = np.where(rng.random(5000) < 0.5, 0, X[:, 0])
    table = sparse.csr_matrix(X) if as_sparse else X
    names = [f"f{k}" for k in range(30)]
    assert check_population(table, random_ends(rng, 5000, 100), names) == []
    upper = np.flatnonzero(X[:, 3] > 0)
    found = check_population(table, upper[random_ends(rng, len(upper), 100)], names)
    assert found[0].features[0] == "f3"
    assert found[0].standard_scores[0] > 5
    assert check_population(table, np.arange(5000).reshape(-1, 2), names) == []


def test_the_correction_for_a_finite_table():
    """Half of the rows drawn without replacement: the mean varies by half as much as with replacement."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 1))
    scores = []
    for _ in range(60):
        drawn = rng.permutation(400)[:200]
        error = np.sqrt(X.var() / 200 * (400 - 200) / (400 - 1))
        scores.append(float((X[drawn].mean() - X.mean()) / error))
        # The test's own score is that one: it finds a shift exactly where it is beyond the limit.
        found = check_population(X, drawn.reshape(-1, 2), ["x"])
        shown = [one.standard_scores[0] for one in found]
        assert shown == ([pytest.approx(scores[-1])] if abs(scores[-1]) > 2.5758 else [])
    assert np.std(scores) == pytest.approx(1, abs=0.2)


def known(ends, same):
    """``y`` of answers about numbered points."""
    return np.asarray(AnswerGraph.from_answers(ends, same))


STAR = np.column_stack([np.zeros(50, dtype=int), np.arange(1, 51)])


def test_answers_that_share_points():
    loose = np.arange(400).reshape(-1, 2)
    alternating = np.arange(200) % 2 == 0
    assert check_shared_points(AnswerGraph.from_y(known(loose, alternating))) == []
    # Two rings of five points: one answer of each follows from the others.
    ring = np.column_stack([np.arange(5), (np.arange(5) + 1) % 5])
    (found,) = check_shared_points(AnswerGraph.from_y(known(np.r_[ring, ring + 5], np.ones(10, dtype=bool))))
    assert found.severity == "info"
    expected = {"n_answers": 10, "n_points": 10, "n_independent": 8, "n_components": 2, "n_splits": 10}
    assert {name: found.numbers()[name] for name in expected} == expected
    # Ten points in ten folds: a ring in pieces of at most two points keeps two of its answers.
    assert 6 <= found.n_cut <= 10
    # One "different" answer contradicts the other four of a ring.
    contradictory = check_assumptions(np.zeros((10, 1)), known(ring, np.arange(5) > 0))
    assert contradictory[-1] == Contradictions(count=1, both_ways=0, closure=1, odd_cycles=0)
    shared, hubs = check_shared_points(AnswerGraph.from_y(known(STAR, alternating[:50])))
    assert shared.n_independent == 50
    assert hubs == Hubs(n_answers_of_each=(50,), n_hubs=1, n_answers=50)


@pytest.mark.parametrize(("design", "prior"), [("40 points", 0.7), ("star", 0.95)])
def test_the_ratio_of_connected_answers_keeps_its_level(design, prior):
    """The binomial test of 200 answers about 40 points alarms in 18% of the draws at a prior of 0.7."""
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(40):
        ends = STAR if design == "star" else random_ends(rng, int(design.split()[0]), 200)
        truth = rng.random(int(ends.max()) + 1) < prior
        graph = AnswerGraph.from_answers(ends, truth[ends[:, 0]] == truth[ends[:, 1]])
        alarms += bool(check_ratio(graph, prior)) + bool(check_ratio(graph, None))
    # Two tests of level 1%: more than four alarms in 80 come by chance once in a thousand.
    assert alarms <= 4


def test_the_ratio_of_connected_answers_sees_another_prior():
    truth = np.arange(51) < 26
    graph = AnswerGraph.from_answers(STAR, truth[0] == truth[1:])
    assert check_ratio(graph, None) == []
    assert check_ratio(graph, 0.55) == []
    (found,) = check_ratio(graph, 0.9)
    assert found.code == "ratio_against_prior"
    # 26 of 51 points on one side: (26 * 25 + 25 * 24) of the 51 * 50 ordered pairs are similar.
    assert found.share == pytest.approx((26 * 25 + 25 * 24) / (51 * 50))
    # Of loose pairs it is the share of the similar ones; without chosen points they have the binomial test.
    loose = AnswerGraph.from_answers(np.arange(200).reshape(-1, 2), np.arange(100) < 30)
    assert check_ratio(loose, 0.9, np.ones(200, dtype=bool))[0].share == pytest.approx(0.3)
    assert check_ratio(loose, 0.9)[0].n_points is None
    # Chains of three with the middle one apart, in which two classes of any size are seldom.
    chains = np.arange(150).reshape(-1, 3)[:, [0, 1, 1, 2]].reshape(-1, 2)
    different = AnswerGraph.from_answers(chains, np.zeros(100, dtype=bool))
    assert codes_of(check_ratio(different, None)) == ["too_few_similar"]


def test_a_point_counts_once():
    """A hub from elsewhere is one point of many, however many answers it is in."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 1))
    X[0] = 4
    ends = np.column_stack([np.zeros(100, dtype=int), np.arange(1, 101)])
    rows, y = stack_pairs(X, ends, rng.random(100) < 0.5)
    assert "other_population" not in codes_of(check_assumptions(rows, y))
    assert "other_population" in codes_of(check_assumptions(rows, y[:, 0]))


def test_all_at_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    X[:80, 1] += 3
    codes = np.r_[np.repeat(-np.arange(1, 41), 2), np.zeros(520, dtype=int)]
    found = check_assumptions(X, codes, feature_names=["a", "b", "c"])
    assert codes_of(found) == ["too_few_similar", "other_population"]
    assert found[1].features == ("b",)
    assert codes_of(check_assumptions(sparse.csr_matrix(X), codes, prior=0.7))[0] == "ratio_against_prior"
    with pytest.raises(InputError, match=r"`X` has shape \(3, 3\), but `y` has 600 rows"):
        check_assumptions(X[:3], codes)


@pytest.mark.parametrize("oriented", [True, False])
@pytest.mark.parametrize(
    ("low", "expected"),
    [(0.85, []), (0.65, ["no_better_than_majority"]), (0.5, ["no_better_than_guessing"])],
)
def test_the_outcome(low, oriented, expected):
    accuracy = AccuracyEstimate(0.9, low, 0.95, 0.82, 60, 0.95, majority=0.7)
    assert codes_of(check_outcome(PriorEstimate.given(0.3), accuracy, oriented)) == expected
    unknown = check_outcome(estimate_prior(20, 30), accuracy, oriented)
    assert codes_of(unknown) == expected + ([] if oriented else ["prior_not_identified"])


def answered(ends, similar):
    n = len(ends)
    ids = np.array(ends, dtype=str).astype(object)
    return Answers("p", ids, np.where(similar, 1, -1), np.ones(n), None, np.arange(n), {}, {})


def asked_again(ends, classes, n_times, wrong):
    """Each question to so many people, who are wrong at this rate."""
    ends = np.repeat(ends, n_times, axis=0)
    right = classes[ends[:, 0]] == classes[ends[:, 1]]
    return answered(ends, right ^ (np.random.default_rng(2).random(len(ends)) < wrong))


@pytest.mark.parametrize(("n_times", "wrong"), [(1, 0.0), (3, 0.0), (3, 0.18)])
@pytest.mark.parametrize("n_rows", [2, 3])
def test_answers_about_entities_do_not_chain(n_rows, n_times, wrong):
    """1,000 records of two or three rows, all their pairs, and seven random pairs a record."""
    entity = np.repeat(np.arange(1000), n_rows)
    pairs = np.array(list(itertools.combinations(range(n_rows), 2)))
    within = (n_rows * np.arange(1000)[:, None, None] + pairs).reshape(-1, 2)
    ends = np.concatenate([within, random_ends(np.random.default_rng(0), len(entity), 7000)])
    (found,) = check_entities(asked_again(ends, entity, n_times, wrong))
    assert (found.code, found.severity, found.median_size) == ("entities", "warning", n_rows)
    assert found.n_groups == 1000 if wrong == 0 else 400 < found.n_groups < 1100


@pytest.mark.parametrize("wrong", [0.0, 0.18])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("n_points", [None, 4000, 1000, 500])
def test_classes_are_not_taken_for_entities(n_classes, n_points, wrong):
    """2,000 questions, loose or about shared points: most groups are of two or three rows here, too."""
    ends = np.arange(4000).reshape(-1, 2) if n_points is None else random_ends(np.random.default_rng(0), n_points, 2000)
    classes = np.random.default_rng(1).integers(0, n_classes, 4000)
    for n_times in (1, 3):
        assert check_entities(asked_again(ends, classes, n_times, wrong)) == []


@pytest.mark.parametrize(
    ("n_similar", "n_dissimilar", "codes"),
    [(50, 50, []), (20, 980, []), (5, 995, ["many_classes"]), (1, 20, []), (0, 1000, []), (0, 0, [])],
)
def test_so_few_similar_answers_that_there_must_be_many_classes(n_similar, n_dissimilar, codes):
    """20 of 1000 are what fifty classes of one size give; dissimilar answers alone may be all that was asked for."""
    n = n_similar + n_dissimilar
    found = check_entities(answered(np.arange(2 * n).reshape(-1, 2), np.arange(n) < n_similar))
    assert codes_of(found) == codes
    assert all(one.n_classes == 50 for one in found)


@pytest.mark.parametrize(("n", "n_other", "found"), [(80, 0, 1), (80, 1, 0), (74, 0, 0)])
def test_people_who_always_agree_may_be_copies(n, n_other, found):
    """One who is as often wrong as the other, about the same questions, hides it."""
    rng = np.random.default_rng(0)
    ends = np.arange(400).reshape(-1, 2)
    same = rng.random(200) < 0.5
    copied = same[:n] ^ (np.arange(n) < n_other)
    graph = AnswerGraph.from_answers(
        np.vstack([ends, ends[:n, ::-1], ends[:120]]),
        np.r_[same, copied, rng.random(120) < 0.5],
        annotators=np.repeat([2, 7, 4], [200, n, 120]),
    )
    alike = check_alike(graph)
    assert len(alike) == found
    if alike:
        assert (alike[0].code, alike[0].first, alike[0].second, alike[0].n) == (
            "answers_alike",
            "Annotator 2",
            "Annotator 7",
            n,
        )
        assert check_alike(graph, ["a", "b", "c", "d", "e", "f", "g"])[0].second == "g"
    unknown = AnswerGraph.from_answers(np.vstack([ends, ends]), np.r_[same, same])
    assert check_alike(unknown) == check_alike(AnswerGraph.from_answers([], [])) == []
