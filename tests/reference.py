"""What several tests draw, and what they compare with."""

import itertools

import numpy as np
from scipy.special import logsumexp

from sdulearn.columns import Columns
from sdulearn.workflow.data import draw_rows


def random_ends(rng, n_points, count):
    """Random questions, each about two points."""
    ends = rng.integers(0, n_points, (2 * count, 2))
    return ends[ends[:, 0] != ends[:, 1]][:count]


def random_answers(y, n=120, seed=0):
    """Random questions and their true answers."""
    ends = random_ends(np.random.default_rng(seed), len(y), n)
    return ends, y[ends[:, 0]] == y[ends[:, 1]]


def enumerated(graph, log_p, errors):
    """Log likelihood, posteriors and answers that are right, from all K^n assignments of classes."""
    n, n_classes = log_p.shape
    classes = np.array(list(itertools.product(range(n_classes), repeat=n)))
    log_joint = log_p[np.arange(n), classes].sum(axis=1)
    known = np.flatnonzero(graph.labels)
    column = (graph.labels > 0).astype(int) if n_classes == 2 else graph.labels - 1
    log_joint[(classes[:, known] != column[known]).any(axis=1)] = -np.inf
    equal = classes[:, graph.ends[:, 0]] == classes[:, graph.ends[:, 1]]
    is_right = equal == (graph.same > 0)
    with np.errstate(divide="ignore"):
        factor = np.where(is_right, np.log(1 - errors), np.log(errors))
    log_joint = log_joint + (factor * graph.weights).sum(axis=1)
    value = logsumexp(log_joint)
    weight = np.exp(log_joint - value)
    posteriors = np.stack([weight @ (classes == k) for k in range(n_classes)], axis=1)
    return value, posteriors, weight @ is_right


def assert_same_coefficients(one, other, tolerance=1e-8):
    """To a part of the largest."""
    ours, theirs = (np.append(model.coef_, model.intercept_) for model in (one, other))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * (1 + np.abs(theirs).max()))


def read_features(path, **options):
    """Columns, features and ids of a whole table."""
    return draw_rows(path, 10**9, **options)[:3]


def unscaled(columns, id_column=None):
    """Columns whose features are used as they are."""
    width = sum(len(column.features) for column in columns)
    return Columns(tuple(columns), id_column, np.zeros(width), np.ones(width))
