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
    MAX_CLASSES,
    POINTS_A_CLASS,
    AnswerModel,
    answers_left_in,
    is_behind,
    left_out_values,
    model_of_columns,
    number_by_answers,
)
from sdulearn.answers.clusters import group_points
from sdulearn.answers.graph import AnswerGraph, NumberOfClasses
from sdulearn.answers.rates import HIGHEST, LOWEST, PRIOR_ANSWERS, PRIOR_RATE, RateColumns, beta_ends
from sdulearn.types import Array, Indices, Mask

# The fewest groups with this share of the points are the fewest classes.
_MOST_POINTS = 0.7
# Groups are out of question if the sampler is better by so many standard errors.
_CLEARLY = 2.0
# Wrong answers join a few groups that are two classes.
_SLACK = 1.05


class Groups(NamedTuple):
    """Groups of the points in answers."""

    group: Indices  # (n_points,), the largest first
    sizes: Indices  # without points in no answer
    odds: Array  # (n_answers,), that an answer adds to the log odds that its points belong together

    @property
    def number(self) -> tuple[int, int, int]:
        """Number of groups with three points or more, the fewest that hold most points, and a few more than all.

        Entities may be as many as the points: of a thousand with two points each and 15% wrong answers a tenth were
        joined to others.
        """
        value = int(np.sum(self.sizes >= POINTS_A_CLASS))
        low = int(np.searchsorted(np.cumsum(self.sizes), _MOST_POINTS * self.sizes.sum())) + 1
        high = self.sizes.sum() if self.are_entities else np.ceil(_SLACK * len(self.sizes))
        return max(value, low), low, int(high)

    @property
    def are_entities(self) -> bool:
        """Whether half of the points that have any other are in groups of three or fewer."""
        shared = self.sizes[self.sizes > 1]
        return len(shared) > 0 and bool(shared[shared <= POINTS_A_CLASS].sum() * 2 >= shared.sum())


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
    used = answers_left_in(graph)
    groups = find_groups(graph, used)
    first, second = groups.group[graph.ends].T
    # Within a group, between two, and of a point whose group is too small to be a class.
    small = np.append(groups.sizes, np.zeros(graph.n_points))[groups.group] < POINTS_A_CLASS
    kind = np.where(first == second, 0, 1 + small[graph.ends].any(axis=1))
    # Each half of the answers left out is predicted as the other half turned out.
    half = np.random.default_rng(1).random(question.max(initial=-1) + 1)[question] < 0.5
    n = np.zeros((2, 2, 3))
    np.add.at(n, ((graph.same > 0).astype(int)[~used], half.astype(int)[~used], kind[~used]), 1.0)
    says_same = (n[1] + 1) / (n.sum(axis=0) + 2)
    chance = says_same[1 - half.astype(int), kind]
    values = np.log(np.where(graph.same > 0, chance, 1 - chance))
    by_question = np.bincount(question[~used], values[~used], int(question.max(initial=-1)) + 1)
    return np.asarray(by_question[np.unique(question[~used])], dtype=np.float64)


def number_of_classes(graph: AnswerGraph) -> NumberOfClasses:
    """Return the number of classes of a crowd, by the sampler or by groups, whichever predicts answers left out better.

    Where they predict these equally well, the interval has both numbers.
    """
    groups = find_groups(graph)
    by_groups = NumberOfClasses(*groups.number, groups.are_entities)
    left_out = left_out_by_groups(graph)
    # The sampler takes long with many points, and does not find many classes.
    if by_groups.low > MAX_CLASSES and not is_behind(left_out, left_out_values(graph, MAX_CLASSES, False), _CLEARLY):
        return by_groups
    number, by_sampler = number_by_answers(graph)
    if is_behind(left_out, by_sampler, _CLEARLY):
        return number
    if is_behind(by_sampler, left_out, 1.0):
        return by_groups
    better = number if by_sampler.sum() > left_out.sum() else by_groups
    return better._replace(low=min(number.low, by_groups.low), high=max(number.high, by_groups.high))


def groups_for(graph: AnswerGraph, n_classes: int) -> Groups | None:
    """Return the groups of a crowd where these predict answers left out better than so many classes of the sampler."""
    if n_classes <= MAX_CLASSES:
        by_sampler = max(float(left_out_values(graph, n_classes, kind).sum()) for kind in (False, True))
        if by_sampler > left_out_by_groups(graph).sum():
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
