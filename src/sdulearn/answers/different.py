"""How many classes "different" answers force."""

from __future__ import annotations

from collections.abc import Sequence

from sdulearn.answers.graph import AnswerGraph, connect, find_sides
from sdulearn.answers.propagate import ErrorRates, answer_errors
from sdulearn.types import Indices

# Groups that differ from most others, from each of which mutually different ones are looked for.
_N_FIRST = 50


def least_classes(graph: AnswerGraph, error_rates: ErrorRates = 0.0) -> int:
    """Fewest classes that answers without errors, and labels, force: a lower bound, 2 or more.

    Groups of points that are all different from each other need a class each.
    """
    certain = answer_errors(graph.annotators, error_rates) == 0
    group = connect(graph.ends[certain & (graph.same > 0)], graph.n_points)
    ends = group[graph.ends[certain & (graph.same < 0)]]
    # An odd number of "different" around a cycle needs a third class.
    sides = find_sides(graph.ends[certain], graph.same[certain], graph.n_points)
    odd = 3 if (sides == 0).any() else 2
    return max(odd, int(graph.labels.max(initial=0)), len(different_groups(ends)))


def different_groups(edges: Indices) -> list[int]:
    """Groups that are all different from each other, as many as a greedy search finds."""
    neighbours: dict[int, set[int]] = {}
    for one, other in edges.tolist():
        if one != other:
            neighbours.setdefault(one, set()).add(other)
            neighbours.setdefault(other, set()).add(one)
    by_degree = sorted(neighbours, key=lambda node: (-len(neighbours[node]), node))
    found = [_clique(first, by_degree, neighbours) for first in by_degree[:_N_FIRST]]
    return max(found, key=len, default=[])


def _clique(first: int, by_degree: Sequence[int], neighbours: dict[int, set[int]]) -> list[int]:
    """A set of groups around one that all differ from each other."""
    common = neighbours[first]
    clique = [first]
    for node in by_degree:
        if node in common:
            clique.append(node)
            common = common & neighbours[node]
    return clique
