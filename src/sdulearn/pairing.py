"""Were the pairs drawn at random, or chosen by their features?

Prior and accuracy from answers rest on one assumption: who is compared with whom does not depend on the features. Near
neighbours, or rows of one group, break it: both ends are then right or wrong together, and the accuracy comes out far
too high. With standardised ranks r of feature j at the two points of an answer,

    c_j = mean over answers of r_j r_j',   A = |mean_j c_j|,   B = max_j |c_j|                 (1)

If questions do not depend on the features, any assignment of the rows to the points of the answer graph is equally
likely, so that permutations give the exact level of A and B, however many answers a point is in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

from sdulearn.answers.graph import ENOUGH, AnswerGraph
from sdulearn.types import Array, Indices, MatrixLike, Rows

# The level of tests with grave consequences: one false alarm in a thousand tables.
LEVEL = 0.001
# The first permutations clear nearly all tables of random pairs; the others settle the rest.
_FIRST, _ALL = 99, 3999
_CLEAR = 0.02
# A sample of the answers and of the columns of a large table shows as much, in a second.
_MAX_ANSWERS = 500
_MAX_COLUMNS = 200


@dataclass(frozen=True)
class Pairing:
    """How the two points of an answer resemble each other."""

    p_value: float  # of random pairs: the chance of so strong a resemblance, or more
    columns: Indices  # numbers of the columns that were judged, the most alike first
    correlations: Array  # rank correlation of the two points of an answer in each of these columns

    @property
    def is_chosen(self) -> bool:
        """Whether the pairs were chosen by their features, at the level 0.001."""
        return self.p_value < LEVEL


def is_chosen(X: MatrixLike, graph: AnswerGraph) -> bool:
    """Return whether the pairs among these rows were chosen by their features; False where rows are not numbers."""
    try:
        rows = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    # A point is shown by the first of its rows.
    return judge_pairing(rows[graph.rows[graph.first_row]], graph.ends).is_chosen


def judge_pairing(X: Rows, ends: Indices) -> Pairing:
    """Compare the points of answers, rows of ``X``, with the same points in random order."""
    rng = np.random.default_rng(0)
    if len(ends) > _MAX_ANSWERS:
        ends = ends[np.sort(rng.choice(len(ends), _MAX_ANSWERS, replace=False))]
    points, places = np.unique(ends, return_inverse=True)
    places = places.reshape(-1, 2)
    columns = np.arange(X.shape[1])
    if len(columns) > _MAX_COLUMNS:
        columns = np.sort(rng.choice(len(columns), _MAX_COLUMNS, replace=False))
    values = X[points][:, columns]
    ranks = rankdata(values.toarray() if sparse.issparse(values) else values, axis=0)
    ranks -= ranks.mean(axis=0)
    scale = np.sqrt(np.mean(ranks**2, axis=0))
    columns, ranks = columns[scale > 0], ranks[:, scale > 0] / scale[scale > 0]
    if len(ends) < ENOUGH or not len(columns):
        return Pairing(1.0, columns, np.zeros(len(columns)))

    def strengths(order: Indices) -> tuple[Array, Array]:
        first, second = order[places].T
        c = np.einsum("ij,ij->j", ranks[first], ranks[second]) / len(places)
        return c, np.array([abs(c.mean()), np.abs(c).max()])

    correlations, observed = strengths(np.arange(len(points)))
    # Rounding must not tell equal values apart.
    observed = observed * (1 - 1e-9)
    as_strong = np.zeros(2)
    for n in range(1, _ALL + 1):
        as_strong += strengths(rng.permutation(len(points)))[1] >= observed
        if n == _FIRST and (1 + as_strong).min() / (1 + n) > _CLEAR:
            break
    # The smaller of two p-values counts twice.
    p_value = min(2 * float((1 + as_strong).min()) / (1 + n), 1.0)
    alike = np.argsort(-np.abs(correlations), kind="stable")
    return Pairing(p_value, columns[alike], correlations[alike])
