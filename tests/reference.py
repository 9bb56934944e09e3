"""What several tests draw, and what they compare with."""

import re
from contextlib import contextmanager

import numpy as np
import pytest
from scipy.special import logsumexp

from sdulearn.answers import AnswerGraph
from sdulearn.errors import InputError
from sdulearn.reading import Reading
from sdulearn.tables.columns import Columns
from sdulearn.workflow.data import draw_rows

# A loose pair, one asked twice, a star, a chain, a tree, a pair with two labels; 19 has a label, 20 and more nothing.
FOREST = [(0, 1), (2, 3), (3, 2), (4, 5), (4, 6), (7, 4), (8, 9), (9, 10), (11, 10), (12, 13), (13, 14), (13, 15),
          (15, 16), (17, 18)]  # fmt: skip
# A ring, with a star that cuts no cycle at the end of its tail; two triangles that share a point; a triangle with a
# label; a question asked three times.
RINGS = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 15), (4, 16), (20, 4), (5, 6), (6, 7), (7, 5), (7, 8), (8, 9),
         (9, 7), (10, 11), (11, 12), (12, 10), (13, 14), (14, 13), (13, 14)]  # fmt: skip
LABELLED = [8, 11, 17, 18, 19]
N_POINTS = 24


def random_ends(rng, n_points, count):
    """Random questions, each about two points."""
    ends = rng.integers(0, n_points, (2 * count, 2))
    return ends[ends[:, 0] != ends[:, 1]][:count]


def blobs(n_classes, n=150, apart=3.0, seed=0):
    """Rows of normal classes, one around each corner of a simplex, and their classes from 0."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, n_classes, n)
    return apart * np.eye(n_classes)[classes] + rng.normal(size=(n, n_classes)), classes


def random_answers(y, n=120, seed=0):
    """Random questions and their true answers."""
    ends = random_ends(np.random.default_rng(seed), len(y), n)
    return ends, y[ends[:, 0]] == y[ends[:, 1]]


def draw_answers(n_classes, rates, ends=FOREST, labels=True):
    """Answers with weights; those that are never wrong are true, and all others random."""
    rng = np.random.default_rng(0)
    classes = rng.integers(n_classes, size=N_POINTS)
    first, second = np.array(ends).T
    who = rng.integers(1, 3, len(ends))
    wrong = np.array([rates[a] if isinstance(rates, dict) else rates for a in who.tolist()])
    same = (classes[first] == classes[second]) ^ ((wrong > 0) & (rng.random(len(ends)) < 0.5))
    known = np.zeros(N_POINTS, dtype=int)
    if labels:
        known[LABELLED] = (2 * classes - 1 if n_classes == 2 else classes + 1)[LABELLED]
    weights = rng.uniform(0.5, 2, len(ends))
    return AnswerGraph.from_answers(ends, same, annotators=who, labels=known, n_points=N_POINTS, weights=weights)


def draw_crowd(n_points):
    """Answers of four people about points of three classes, one in ten wrong; the last point is in none."""
    rng = np.random.default_rng(0)
    classes = np.arange(n_points) % 3
    ends = random_ends(rng, n_points, 7 * n_points)
    same = (classes[ends[:, 0]] == classes[ends[:, 1]]) ^ (rng.random(len(ends)) < 0.1)
    return AnswerGraph.from_answers(ends, same, annotators=1 + np.arange(len(ends)) % 4, n_points=n_points + 1)


def enumerated(graph, log_p, errors):
    """Log likelihood, posteriors and answers that are right, from all K^n assignments of classes."""
    n, n_classes = log_p.shape
    classes = np.indices((n_classes,) * n).reshape(n, -1).T
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


def enumerated_parts(graph, log_p, errors):
    """The same, but for the likelihood of each component, from its own assignments."""
    values = np.empty(graph.n_components)
    posteriors = np.empty(log_p.shape)
    right = np.empty(graph.n_answers)
    for c in range(graph.n_components):
        points = np.flatnonzero(graph.component == c)
        inside = graph.component[graph.ends[:, 0]] == c
        parts = enumerated(graph.subgraph(points), log_p[points], errors[inside])
        values[c], posteriors[points], right[inside] = parts
    return values, posteriors, right


def assert_same_coefficients(one, other, tolerance=1e-8):
    """To a part of the largest."""
    ours, theirs = (np.append(model.coef_, model.intercept_) for model in (one, other))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * (1 + np.abs(theirs).max()))


def read_features(path, *, answer_ids=(), **options):
    """Columns, features and ids of a whole table."""
    return draw_rows(path, 10**9, Reading(**options), answer_ids=answer_ids)[:3]


def unscaled(columns, id_column=None):
    """Columns whose features are used as they are."""
    width = sum(len(column.features) for column in columns)
    return Columns(tuple(columns), id_column, np.zeros(width), np.ones(width))


@contextmanager
def refuses(*names, error=InputError, shows=()):
    """The block raises this error; its message names these parameters (``column`` for "`column`") and shows values.

    Values are ids, columns, cells, lines and counts: what a user must find in any wording.
    """
    with pytest.raises(error) as caught:
        yield caught
    message = str(caught.value)
    named = set(re.findall(r"`([^`]+)`", message))
    assert set(names) <= {name.partition("=")[0] for name in named} | named, message
    assert all(value in message for value in shows), message
