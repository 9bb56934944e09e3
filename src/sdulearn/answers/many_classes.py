"""Classes of the points in a crowd's answers where there are many: groups that answers "same" hold together.

The sampler of :mod:`sdulearn.answers.crowd` finds up to twenty classes, and needs several answers about each two of
them. With more, most pairs of classes are in no answer at all: what can be known is which points belong together. The
groups of :func:`~sdulearn.answers.clusters.group_points` are used where they predict questions left out better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import softmax

from sdulearn.answers.answer_model import (
    LEFT_OUT,
    MAX_CLASSES,
    AnswerModel,
    NumberOfClasses,
    is_behind,
    left_out_values,
    model_of_columns,
    number_by_answers,
)
from sdulearn.answers.clusters import group_points
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.rates import HIGHEST, LOWEST, PRIOR_ANSWERS, PRIOR_RATE, RateColumns, beta_ends
from sdulearn.types import Array, Indices, Mask

# A group of fewer points may be a part of another, or a few wrong answers.
_LEAST_POINTS = 3
# The fewest groups with this share of the points are the fewest classes.
_MOST_POINTS = 0.7
# Wrong answers join a few groups that are two classes.
_SLACK = 1.05


class Groups(NamedTuple):
    """Groups of the points in answers."""

    group: Indices  # (n_points,), the largest first
    sizes: Indices  # without points in no answer
    odds: Array  # (n_answers,), that an answer adds to the log odds that its points belong together

    @property
    def number(self) -> tuple[int, int, int]:
        """Number of groups with three points or more, the fewest that hold most points, and a few more than all."""
        value = int(np.sum(self.sizes >= _LEAST_POINTS))
        low = int(np.searchsorted(np.cumsum(self.sizes), _MOST_POINTS * self.sizes.sum())) + 1
        return max(value, low), low, int(np.ceil(_SLACK * len(self.sizes)))

    @property
    def are_entities(self) -> bool:
        """Whether half of the points that have any other are in groups of three or fewer."""
        shared = self.sizes[self.sizes > 1]
        return len(shared) > 0 and bool(shared[shared <= _LEAST_POINTS].sum() * 2 >= shared.sum())


def find_groups(graph: AnswerGraph, used: Mask | None = None) -> Groups:
    """Group the points by some of the answers; the pairs of m points count as m - 1 answers."""
    together = np.bincount(graph.question)[graph.question]
    weights = graph.weights * 2 / (0.5 + np.sqrt(0.25 + 2 * together))
    part = np.ones(graph.n_answers, dtype=bool) if used is None else used
    group, odds = group_points(graph.ends[part], graph.same[part] > 0, weights[part], graph.n_points)
    sizes = np.bincount(group, graph.degree > 0).astype(np.intp)
    order = np.argsort(-sizes, kind="stable")
    return Groups(np.argsort(order)[group], sizes[order][sizes[order] > 0], odds)


def left_out_by_groups(graph: AnswerGraph) -> Array:
    """Return log probabilities of the questions that :func:`left_out_values` leaves out, by groups of the others."""
    _, question = np.unique(graph.question, return_inverse=True)
    used = np.random.default_rng(0).random(len(question))[question] >= LEFT_OUT
    groups = find_groups(graph, used)
    # By the points' groups without these answers; both kinds are predicted as often as they were right.
    equal = groups.group[graph.ends[:, 0]] == groups.group[graph.ends[:, 1]]
    same = graph.same > 0
    says_same = [(np.sum(same & part & used) + 1) / (np.sum(part & used) + 2) for part in (~equal, equal)]
    chance = np.where(equal, says_same[1], says_same[0])
    values = np.log(np.where(same, chance, 1 - chance))
    by_question = np.bincount(question[~used], values[~used], int(question.max(initial=-1)) + 1)
    return np.asarray(by_question[np.unique(question[~used])], dtype=np.float64)


def groups_explain(graph: AnswerGraph, by_sampler: Array) -> bool:
    """Whether groups predict the questions left out as well as the sampler, within a standard error."""
    return not is_behind(left_out_by_groups(graph), by_sampler, 1.0)


def number_of_classes(graph: AnswerGraph) -> NumberOfClasses:
    """Return the number of classes of a crowd, by its groups where these explain the answers as well."""
    groups = find_groups(graph)
    by_groups = NumberOfClasses(*groups.number, groups.are_entities)
    # The sampler takes long with many points, and does not find many classes.
    many = by_groups.low > MAX_CLASSES and groups_explain(graph, left_out_values(graph, MAX_CLASSES, False))
    if many:
        return by_groups
    number, left_out = number_by_answers(graph)
    return by_groups if groups_explain(graph, left_out) else number


def groups_for(graph: AnswerGraph, n_classes: int) -> Groups | None:
    """Return the groups of a crowd where these explain the answers as well than so many classes of the sampler."""
    if n_classes <= MAX_CLASSES:
        by_sampler = max((left_out_values(graph, n_classes, kind) for kind in (False, True)), key=np.sum)
        if not groups_explain(graph, by_sampler):
            return None
    groups = find_groups(graph)
    return groups if len(groups.sizes) >= n_classes else None


def classes_of_groups(graph: AnswerGraph, groups: Groups, n_classes: int) -> tuple[AnswerModel, Array]:
    """Return how often answers are wrong, and the probabilities (n_points, n_classes) of the largest groups."""
    K = n_classes
    point, other = graph.ends.T.ravel(), graph.ends[:, ::-1].T.ravel()
    inside = groups.group[other] < K
    place = (point[inside], groups.group[other[inside]])
    sums = csr_matrix((np.tile(groups.odds, 2)[inside], place), shape=(graph.n_points, K)).toarray()
    # A point outside of all groups has no class: the answers about it speak for none.
    probabilities = softmax(np.where((sums.max(axis=1) > 0)[:, None], sums, 0.0), axis=1)
    equal = groups.group[graph.ends[:, 0]] == groups.group[graph.ends[:, 1]]
    _, annotator = np.unique(graph.annotators, return_inverse=True)
    n = np.bincount(annotator).astype(np.float64)
    wrong = np.bincount(annotator, equal != (graph.same > 0))
    rates = np.clip((wrong + PRIOR_ANSWERS * PRIOR_RATE) / (n + PRIOR_ANSWERS), LOWEST, HIGHEST)
    low, high = beta_ends(wrong / n, n)
    columns = RateColumns(rates, np.minimum(low, rates), np.maximum(high, rates))
    return model_of_columns(graph.annotators, columns), probabilities
