"""How often answers are wrong, by questions that were asked for this.

Two answers to one question, each wrong with probability e, disagree with probability 2 e (1 - e); the
product of the answers around a triangle is odd with probability (1 - (1 - 2 e)^3) / 2, with two classes. Questions
that are asked again because they look doubtful would overstate e: they do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sdulearn.asking.records import Record
from sdulearn.types import Array

_GRID = np.linspace(0.0025, 0.4, 160)
# People err in a few percent to 16% of such answers: the weight of 12 answers of which one is wrong.
_PRIOR_RIGHT = 11.0


def disagreement_rate(e: Array) -> Array:
    """Probability that two answers to one question disagree."""
    return 2 * e * (1 - e)


def odd_triangle_rate(e: Array) -> Array:
    """Probability that three answers around a triangle contradict each other, with two classes."""
    return (1 - (1 - 2 * e) ** 3) / 2


def estimate_error(records: Sequence[Record], *, two_classes: bool) -> float:
    """Posterior mean of the error rate; 0 where no check failed."""
    n_repeats, n_disagree = count_repeats(records)
    n_triangles, n_odd = count_triangles(records) if two_classes else (0, 0)
    if n_disagree + n_odd == 0:
        return 0.0
    log_p = _PRIOR_RIGHT * np.log1p(-_GRID)
    for rate, n, bad in (
        (disagreement_rate(_GRID), n_repeats, n_disagree),
        (odd_triangle_rate(_GRID), n_triangles, n_odd),
    ):
        log_p += bad * np.log(rate) + (n - bad) * np.log1p(-rate)
    p = np.exp(log_p - log_p.max())
    return float(p @ _GRID / p.sum())


def count_repeats(records: Sequence[Record]) -> tuple[int, int]:
    """Questions asked again by design, and how many of them got the other answer than the first time."""
    first: dict[tuple[int, int], int] = {}
    n = 0
    disagree = 0
    for record in records:
        if not record.answer:
            continue
        if record.kind == "repeat" and record.pair in first:
            n += 1
            disagree += record.answer != first[record.pair]
        first.setdefault(record.pair, record.answer)
    return n, disagree


def count_triangles(records: Sequence[Record]) -> tuple[int, int]:
    """Triangles closed by design, and how many of them are odd."""
    first: dict[int, dict[int, int]] = {}
    n = 0
    odd = 0
    for record in records:
        if not record.answer:
            continue
        one = first.setdefault(record.left, {})
        other = first.setdefault(record.right, {})
        common = next((point for point in one if point in other), None)
        if record.kind == "triangle" and common is not None:
            n += 1
            odd += record.answer * one[common] * other[common] < 0
        one.setdefault(record.right, record.answer)
        other.setdefault(record.left, record.answer)
    return n, odd
