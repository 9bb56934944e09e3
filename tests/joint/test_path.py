"""The objective, starts, evidence, folds and names of the classes, from their definitions."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit, softmax
from sklearn.datasets import load_wine

from sdulearn import PairLogisticRegressionCV, PriorEstimate, stack_pairs
from sdulearn.answers import AnswerGraph, AnswerModel
from sdulearn.errors import OrientationWarning
from sdulearn.joint import path as paths
from sdulearn.joint.data import PriorPull, TrainingPoints, axis_penalties
from sdulearn.joint.estimators import class_sign, order_by_size
from sdulearn.joint.path import FoldFits, Folds, Problem
from sdulearn.solvers.smooth import gradient_norm
from tests.reference import N_POINTS, RINGS, draw_answers, draw_crowd, random_answers


def problem_of(X, graph, n_classes=2, rates=0.0, prior=None):
    points = TrainingPoints(X[graph.row_point], graph)
    likelihood = AnswerModel.given(rates, points.graph).likelihood(points.graph, n_classes)
    return Problem(points, likelihood, PriorPull.of(prior, 3.0, len(points.unlabeled), likelihood.n_classes))


def draw_problem(n_classes, rates=0.1):
    """Answers and labels with weights, and a prior that some points in no answer are pulled to."""
    graph = draw_answers(n_classes, rates, RINGS)
    X = np.random.default_rng(6).normal(size=(N_POINTS, 2))
    return problem_of(X, graph, n_classes, rates, 0.7 if n_classes == 2 else [0.5, 0.3, 0.2])


def draw_pairs(n_classes=2, n_pairs=40, d=2, labels=False, weights=None, **options):
    """Loose pairs of classes that the columns tell; the first points may have labels."""
    rng = np.random.default_rng(0)
    classes = rng.choice(n_classes, 2 * n_pairs, p=[0.7, 0.3] if n_classes == 2 else None)
    X = rng.normal(size=(2 * n_pairs, d))
    X[:, :2] += 1.5 * np.array([[1.0, 0], [-1, 1], [0, -1]])[classes]
    ends = np.arange(2 * n_pairs).reshape(-1, 2)
    same = classes[ends[:, 0]] == classes[ends[:, 1]]
    known = labels * (2 * classes - 1) * (np.arange(2 * n_pairs) % 2 == 0)
    return problem_of(X, AnswerGraph.from_answers(ends, same, labels=known, weights=weights), n_classes, **options)


def draw_folds(n_points, n_folds=3, n_always=2):
    """Points are left out in turn, but for the first ones."""
    shown = np.arange(n_points)[:, None] % n_folds != np.arange(n_folds)
    shown[:n_always] = True
    return shown


@pytest.mark.parametrize("rates", [0.0, 0.1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_objective_is_the_mean_loss_the_penalty_and_the_pull_and_its_gradient_the_derivative(n_classes, rates):
    problem = draw_problem(n_classes, rates)
    n_scores = problem.likelihood.n_scores
    pen = np.random.default_rng(4).uniform(0.1, 0.4, (2, 6))
    W = np.random.default_rng(5).normal(size=(3 * n_scores, 6))
    shown = draw_folds(problem.points.graph.n_points, 2)
    parts = [problem.likelihood.folds(of_fold[:, None]) for of_fold in shown.T]
    columns = np.array([3, 0, 5, 2, 2, 1])
    shares = problem.pull.shares
    for folds in (None, Folds(problem, shown)):
        values, gradients = problem.objective(W, columns, pen, folds, exact=True)
        for b, c in enumerate(columns):
            V = W[:, b].reshape(3, n_scores)
            known, unlabeled = (A @ V[:-1] + V[-1] for A in (problem.points.known, problem.points.unlabeled))
            likelihood = parts[c % 2] if folds else problem.likelihood
            p = softmax(unlabeled if n_scores > 1 else unlabeled * [0, 1], axis=1)
            expected = -likelihood.mean(known[:, :, None], exact=True)[0][0]
            expected += (pen[:, c] @ V[:-1] ** 2).sum() / 2 + 3 * shares @ np.log(shares / (problem.points.share @ p))
            assert values[b] == pytest.approx(expected, rel=1e-6)
            at = partial(problem.objective, columns=[c], pen=pen, folds=folds, exact=True)
            numeric = approx_fprime(W[:, b], lambda w, at=at: at(w[:, None])[0][0])
            np.testing.assert_allclose(gradients[:, b], numeric, atol=2e-5)
    # Without prior, strength or unlabeled points nothing is pulled.
    assert PriorPull.of(None, 3.0, 1, 2) is PriorPull.of(0.7, 0.0, 1, 2) is PriorPull.of(0.7, 3.0, 0, 2) is None


@pytest.mark.parametrize("power", [0, 0.5, 1, 2])
def test_the_penalty_falls_with_the_power_of_the_variance_and_has_no_unit(power):
    variance = np.array([0.2, 1.0, 7.0])
    penalty, twice = axis_penalties(variance, [0.3, 0.6], power).T
    np.testing.assert_allclose(twice, 2 * penalty)
    # One constant, the mean of variance**power as seen by the rows.
    np.testing.assert_allclose(penalty * variance**power, 0.3 * np.average(variance**power, weights=variance))
    np.testing.assert_allclose(axis_penalties(100 * variance, [0.3], [power])[:, 0], penalty)
    np.testing.assert_allclose(axis_penalties(np.full(3, 5.0), [0.3], power), 0.3)


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_at_alpha_max_zero_stops_to_be_a_minimum(power):
    """Of loose pairs with weights, along random directions of w."""
    rng = np.random.default_rng(0)
    problem = draw_pairs(d=3, weights=rng.uniform(0.5, 2, 40))
    directions = np.vstack([rng.normal(size=(3, 4000)), np.zeros(4000)])
    pen = problem.penalties(problem.starts.alpha_max(power) * np.array([1.02, 0.98]), power)
    above, below = (problem.objective(1e-3 * directions, np.full(4000, k), pen)[0].min() for k in range(2))
    assert above > np.log(2) > below


def test_alpha_max_of_more_classes_is_near_where_the_model_leaves_equal_chances():
    problem = draw_pairs(3, 300)
    alpha = problem.starts.alpha_max(0.0)
    start = 0.01 * np.random.default_rng(0).normal(size=(9, 1))
    above, below = (paths.best_of(problem, problem.penalties([a], 0.0), [start]).W for a in (2 * alpha, alpha / 2))
    assert np.abs(above[:-3]).max() < 1e-2
    assert np.abs(below[:-3]).max() > 0.1


def test_moments_of_two_classes_are_those_of_all_pairs_of_points_of_a_component():
    """Loose pairs, a chain whose sides are known, and labelled components, which are one."""
    labels = [0, 0, 0, 0, 0, 0, 1, -1, 0, 0, 0]
    graph = AnswerGraph.from_answers([(0, 1), (2, 3), (3, 4), (5, 6)], [-1, 1, -1, 1], labels=labels)
    problem = problem_of(np.random.default_rng(0).normal(size=(11, 3)), graph)
    A = problem.points.known
    moment = np.zeros((3, 3))
    for members, sides in (((0, 1), (1, -1)), ((2, 3, 4), (1, 1, -1)), ((5, 6, 7), (1, 1, -1))):
        rows = np.array(sides)[:, None] * A[list(members)]
        moment += (np.outer(rows.sum(axis=0), rows.sum(axis=0)) - rows.T @ rows) / (len(members) - 1)
    # In a unit in which the answers weigh two.
    np.testing.assert_allclose(problem.starts.moment, 2 * moment / 8, atol=1e-12)
    named = np.array([1, 1, -1]) @ (A[5:8] - A[5:8].mean(axis=0))
    np.testing.assert_allclose(problem.starts.named, named, atol=1e-12)
    # One start more, along the labels; a fold without them knows no direction.
    assert len(problem.starts.first()) == 2
    left = next(Folds(problem, ~np.isin(np.arange(8), (1, 3, 6, 7))[:, None]).starts())
    assert left.named is None
    np.testing.assert_allclose(left.moment, 0, atol=1e-12)


def test_twenty_random_starts_find_nothing_better():
    X, y = load_wine(return_X_y=True)
    graph = AnswerGraph.from_answers(*random_answers(y, 120, 0), n_points=len(X))
    problem = problem_of((X - X.mean(axis=0)) / X.std(axis=0), graph, 3)
    alpha = 0.01 * problem.starts.alpha_max(0.0)
    polished = paths.polish(problem, paths.descend(problem, alpha, 0.0), alpha, 0.0, 1e-3, 200)
    starts = np.random.default_rng(0).normal(size=(20, polished.W.size, 1))
    assert polished.value < paths.best_of(problem, problem.penalties([alpha], 0.0), list(starts)).values[0] + 1e-3


@pytest.mark.parametrize("kind", ["loose pairs", "fewer pairs than columns", "wrong answers", "labels"])
def test_the_evidence_is_laplace_s_with_fisher_information(kind):
    """Of the answer of a pair, by differences, or of two classes by labels; with weights."""
    n_pairs = 3 if kind == "fewer pairs than columns" else 40
    rng = np.random.default_rng(1)
    weights = np.ones(n_pairs) if kind == "labels" else rng.uniform(0.5, 2, n_pairs)
    error = 0.2 if kind == "wrong answers" else 0.0
    problem = draw_pairs(2, n_pairs, 5, kind == "labels", weights, rates=error)
    A = np.column_stack([problem.points.known, np.ones(2 * n_pairs)])
    # At small logits wrong answers keep the share (1 - 2 e)^2 of the information.
    w = rng.normal(size=A.shape[1]) * (1e-2 if error else 1.0)
    pen = rng.uniform(0.1, 1, A.shape[1] - 1)

    def chances(w):
        p = expit(A @ w)
        alike = (p[::2] * p[1::2]) + (1 - p[::2]) * (1 - p[1::2])
        return p if kind == "labels" else (1 - error) * alike + error * (1 - alike)

    p = chances(w)
    happened = problem.likelihood.sides > 0 if kind == "labels" else problem.likelihood.graph.same > 0
    share = np.repeat(weights, len(p) // n_pairs) / weights.sum() * n_pairs / len(p)
    n = 1 / (share @ share)
    J = np.array([chances(w + step) - chances(w - step) for step in 1e-6 * np.eye(len(w))[:-1]]) / 2e-6
    precision = n * np.diag(pen)
    F = n * (J * share / (p * (1 - p))) @ J.T
    expected = n * (share @ np.log(np.where(happened, p, 1 - p)) - pen @ w[:-1] ** 2 / 2)
    expected -= (np.linalg.slogdet(F + precision)[1] - np.linalg.slogdet(precision)[1]) / 2
    assert paths.log_evidence(problem, w[:, None], pen[:, None])[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rates", [0.0, 0.1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_fold_is_scored_by_each_answer_and_label_that_it_leaves_out(n_classes, rates):
    problem = draw_problem(n_classes, rates)
    whole = problem.likelihood
    graph = whole.graph
    shown = np.column_stack([draw_folds(graph.n_points, 3, 0), np.ones(graph.n_points, dtype=bool)])
    # The second fold leaves out all labels, and may name the classes as it likes.
    shown[graph.labels != 0] = np.array([True, False, True, True])
    parts = [whole.folds(of_fold[:, None]) for of_fold in shown.T]
    W = np.random.default_rng(0).normal(size=(3 * whole.n_scores, 2, 4))
    scores = paths.fold_scores(FoldFits(Folds(problem, shown), W), temperature=2.0)
    assert np.isnan(scores[3]).all()
    column = (graph.labels > 0).astype(int) if n_classes == 2 else graph.labels - 1
    for k, b in np.ndindex(3, 2):
        asked = np.flatnonzero(~shown[graph.ends, k].all(axis=1))
        named = np.flatnonzero(~shown[:, k] & (graph.labels != 0))
        weights = whole.weight[graph.component[np.r_[graph.ends[asked, 0], named]]]
        values = []
        for sign in (1, -1) if n_classes == 2 and k == 1 else (1,):
            q = parts[k].posterior(sign * problem.scores(W[:, b, [k]]) / 2)[:, :, 0]
            alike = np.sum(q[graph.ends[asked, 0]] * q[graph.ends[asked, 1]], axis=1)
            right = np.where(graph.same[asked] > 0, alike, 1 - alike)
            chances = np.r_[(1 - rates) * right + rates * (1 - right), q[named, column[named]]]
            values.append(np.average(np.log(np.maximum(chances, 1e-6)), weights=weights))
        assert scores[k, b] == pytest.approx(max(values), rel=1e-6)


def test_a_fold_of_a_crowd_is_scored_by_what_its_answers_say_of_each_point():
    graph = draw_crowd(24)
    points = TrainingPoints(np.random.default_rng(0).normal(size=(25, 2))[graph.row_point], graph)
    likelihood = AnswerModel.estimate(graph, 3, answer_table=False).likelihood(points.graph, 3)
    problem = Problem(points, likelihood, None)
    shown = np.column_stack([draw_folds(24, 2), np.ones(24, dtype=bool)])
    W = np.random.default_rng(1).normal(size=(9, 1, 3))
    scores = paths.fold_scores(FoldFits(Folds(problem, shown), W))[:, 0]
    says = softmax(likelihood.evidence, axis=1)[:, :, None]
    chances = np.log(np.sum(says * softmax(problem.scores(W[:, 0]), axis=1), axis=1))
    np.testing.assert_allclose(scores, [*(chances[~shown[:, k], k].mean() for k in range(2)), np.nan])


def test_the_temperature_suits_what_is_left_out_and_is_1_where_nothing_is():
    problem = draw_pairs()
    shown = np.repeat(draw_folds(40, 2, 0), 2, axis=0)
    folds = Folds(problem, shown)
    fits = FoldFits(folds, np.repeat(paths.descend(problem, 0.01, 1.0), 2).reshape(-1, 1, 2))
    values = [paths.fold_scores(fits, t).mean() for t in paths.TEMPERATURES]
    assert paths.best_temperature(fits) == paths.TEMPERATURES[int(np.argmax(values))]
    assert paths.best_temperature(FoldFits(folds, 30 * fits.W)) == max(paths.TEMPERATURES)
    assert paths.best_temperature(FoldFits(Folds(problem, np.ones_like(shown)), fits.W)) == 1.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_path_and_the_folds_are_solved_and_the_polished_solution_is_certified(n_classes):
    problem = draw_problem(n_classes)
    alphas = problem.starts.alpha_max(1.0) * np.array([1.0, 0.03, 0.001])
    path = paths.fit_path(problem, alphas[:, None], [1.0])[:, :, 0]
    shown = draw_folds(problem.points.graph.n_points)
    fits = paths.fit_folds(problem, alphas, 1.0, path, shown)
    pen = problem.penalties(alphas, 1.0)
    for folds, W in ((None, path.T), (fits.folds, fits.W.reshape(len(fits.W), -1))):
        every = pen if folds is None else np.repeat(pen, 3, axis=1)
        gradients = problem.objective(W, np.arange(W.shape[1]), every, folds)[1]
        assert gradient_norm(gradients, problem.scale(every)).max() < 0.01
    polished = paths.polish(problem, path[1], alphas[1], 1.0, 1e-7, 500)
    assert polished.optimality < 1e-7
    value, gradient = problem.objective(polished.W.reshape(-1, 1), [1], pen, exact=True)
    assert polished.value == pytest.approx(value[0])
    assert np.abs(gradient).max() < 1e-6
    # Held-out points have scores of the pilot, up to the names of the classes; those that all folds know have none.
    Z = paths.held_out(problem, 1.0, shown).scores
    assert (Z[:2] == 0).all()
    by_fold = problem.scores(paths.fit_folds(problem, alphas[[1]], 1.0, path[[1]], shown).W[:, 0])
    for k, hidden in enumerate(~shown.T):
        sign = np.sign(Z[hidden][0] * by_fold[hidden, :, k][0]) if n_classes == 2 else 1
        nameless = np.sort(sign * by_fold[hidden, :, k], axis=1)
        np.testing.assert_allclose(np.sort(Z[hidden], axis=1), nameless, atol=0.02)


@pytest.mark.parametrize("prior", [None, 0.7])
def test_a_model_that_cannot_leave_zero_is_not_chosen(prior):
    """Noise, where the evidence likes the largest penalty best; a prior leads away from zero."""
    rng = np.random.default_rng(2)
    graph = AnswerGraph.from_answers(np.arange(80).reshape(-1, 2), rng.random(40) < 0.5, n_points=90)
    problem = problem_of(rng.normal(size=(90, 2)), graph, prior=prior)
    alphas = problem.starts.alpha_max(1.0) * np.array([[4.0], [1.0], [0.9], [0.1]])
    choice = paths.choose(problem, alphas, [1.0], np.repeat(draw_folds(40, 2, 0), 2, axis=0))
    assert choice.scores.shape == (2, 4)
    assert (choice.alpha < alphas[1, 0]) == (prior is None)


@pytest.mark.parametrize("n_rows", [100, 2500])
@pytest.mark.parametrize("errors", [-2.1, -1.9, 0.1, 1.9, 2.1])
def test_names_are_uncertain_within_two_standard_errors(n_rows, errors):
    """A share of n rows has the standard error ``sqrt(1/4 / n)`` at one half."""
    prior = PriorEstimate(0.8, 0.7, 0.9, True, 60, 30, 0.95)
    share = 0.5 + errors * (0.25 / n_rows) ** 0.5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        signs = [class_sign(None, who, prior, share, 1 / n_rows) for who in ("majority", "minority")]
    assert [warning.category for warning in caught] == 2 * [OrientationWarning] * (abs(errors) < 2)
    assert signs == ([1, -1] if errors > 0 else [-1, 1])
    assert class_sign(0.2, "majority", prior, share, 1 / n_rows) == -signs[0]


def test_labelled_classes_keep_their_place_and_others_go_by_size():
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    assert order_by_size(shares, np.zeros(3, dtype=int)).tolist() == [3, 2, 1, 0]
    assert order_by_size(shares, np.array([0, 2, 2])).tolist() == [3, 1, 2, 0]


def test_a_refit_keeps_no_earlier_fit():
    rng = np.random.default_rng(0)
    y = (rng.random(120) < 0.3).astype(int)
    X = rng.normal(size=(120, 3)) + 2 * y[:, None]
    ends = rng.permutation(120).reshape(-1, 2)
    rows, known = stack_pairs(X, ends, y[ends[:, 0]] == y[ends[:, 1]])
    model = PairLogisticRegressionCV()
    sizes = [len(pickle.dumps(model.fit(rows, known))) for _ in range(3)]
    assert sizes[0] == sizes[1] == sizes[2]
