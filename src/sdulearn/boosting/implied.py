"""Labels that answers imply: K groups that all differ from each other are the K classes, up to their names.

Questions that compare a new point with an example of each class make such groups. The likelihood does not change where
classes change names, so giving the groups the names 1 to K loses nothing, and what was a sum over all ways to
place the groups, with a local maximum for most of them, becomes the likelihood of labels.
"""

from __future__ import annotations

import numpy as np

from sdulearn.answers.graph import AnswerGraph, connect, different_groups
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.types import Codes, Indices, Mask


def implied_labels(graph: AnswerGraph, n_classes: int) -> Codes:
    """Label of each point, 0 where it is not known, if no answer is wrong."""
    labelled = _examples(graph.labels)
    group = connect(np.concatenate([graph.ends[graph.same > 0], *labelled.values()]), graph.n_points)
    first = [links[0, 0] for links in labelled.values()]
    apart = np.array([(a, b) for a in first for b in first if a < b], dtype=np.intp).reshape(-1, 2)
    different = group[np.concatenate([graph.ends[graph.same < 0], apart])]
    found = different_groups(different)
    if len(found) != n_classes or (different[:, 0] == different[:, 1]).any():
        # Too few groups, or too many, or a contradiction, which the likelihood itself refuses.
        return graph.labels
    name_of_group = np.zeros(int(group.max()) + 1, dtype=np.int64)
    name_of_group[group[first]] = list(labelled)
    unnamed = [g for g in found if name_of_group[g] == 0]
    by_size = sorted(unnamed, key=lambda g: -int(np.sum(group == g)))
    free = [name for name in range(1, n_classes + 1) if name not in labelled]
    # A label outside the groups leaves more of them than names: then nothing is implied.
    if len(by_size) != len(free):
        return graph.labels
    name_of_group[by_size] = free
    return name_of_group[group]


def _examples(labels: Codes) -> dict[int, Indices]:
    """For each label the points that have it, tied to the first of them."""
    ties = {}
    for name in np.unique(labels[labels != 0]).tolist():
        points = np.flatnonzero(labels == name)
        ties[name] = np.column_stack([np.full(len(points), points[0]), points])
    return ties


def with_labels(pairs: Pairs, graph: AnswerGraph, labels: Codes, n_folds: int) -> tuple[Indices, Pairs]:
    """The rows to keep, and what is known of them where labels take the place of the answers that imply them.

    Answers of a kind of which fewer than folds are left go too: no fold could be made of them.
    """
    known = labels[graph.row_point] != 0
    codes = np.where(_implied(pairs, known), 0, pairs.codes)
    for kind in (1, -1):
        if np.sum(np.sign(codes) == kind) < 2 * n_folds:
            codes = np.where(np.sign(codes) == kind, 0, codes)
    once = np.zeros(pairs.n_rows, dtype=bool)
    once[np.unique(graph.row_point, return_index=True)[1]] = True
    rows = np.flatnonzero(once | (codes != 0))
    annotators = np.zeros(pairs.n_rows, dtype=np.int64) if pairs.annotators is None else pairs.annotators
    table = np.column_stack([codes, graph.row_point, np.where(codes == 0, 0, annotators), labels[graph.row_point]])
    return rows, read_pairs(table[rows])


def _implied(pairs: Pairs, known: Mask) -> Mask:
    """Rows of answers between two points whose labels are known."""
    implied = np.zeros(pairs.n_rows, dtype=bool)
    implied[pairs.ends[known[pairs.ends].all(axis=1)]] = True
    return implied
