"""How far people agree: from the questions that several of them answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sdulearn.io.answer_log import LoggedAnswer

# Beyond this share of disagreement an error rate can no longer be told from guessing.
_NEAR_GUESSING = 0.49


@dataclass(frozen=True)
class Person:
    """What one person did."""

    name: str  # who
    n_answers: int  # answers that stand, and those of them that are "unsure"
    n_unsure: int
    error_rate: float | None  # estimated share of wrong answers; None where nobody else answered the same questions


@dataclass(frozen=True)
class Couple:
    """Two people and the questions both answered with "same" or "different"."""

    first: str  # who
    second: str
    n_both: int  # questions both answered, and those with the same answer
    n_agreed: int


@dataclass(frozen=True)
class Agreement:
    """People, and couples of people with questions in common."""

    people: tuple[Person, ...]
    couples: tuple[Couple, ...]


def agreement(answers: Iterable[LoggedAnswer]) -> Agreement:
    """Count agreement between people and estimate their error rates."""
    given = list(answers)
    names = sorted({one.annotator for one in given})
    said: dict[str, dict[tuple[str, ...], bool]] = defaultdict(dict)
    for one in given:
        if one.answer != "unsure":
            said[one.annotator][tuple(sorted((one.left, one.right)))] = one.answer == "same"
    couples = []
    for first, second in combinations(names, 2):
        both = said[first].keys() & said[second].keys()
        if both:
            agreed = sum(said[first][pair] == said[second][pair] for pair in both)
            couples.append(Couple(first, second, len(both), agreed))
    rates = error_rates(couples)
    people = []
    for name in names:
        own = [one for one in given if one.annotator == name]
        n_unsure = sum(one.answer == "unsure" for one in own)
        people.append(Person(name, len(own), n_unsure, rates.get(name)))
    return Agreement(tuple(people), tuple(couples))


def error_rates(couples: Iterable[Couple]) -> dict[str, float]:
    r"""Each person's share of wrong answers, from how often couples disagree.

    People who err independently disagree on a share d of their common questions with

    .. math:: 1 - 2 d_{ab} = (1 - 2 e_a)(1 - 2 e_b),

    so the logarithms add up: a linear system, solved by least squares with the number of common questions as
    weights. One couple alone cannot be told apart and shares its errors evenly (the shortest solution).
    """
    common = list(couples)
    names = sorted({name for one in common for name in (one.first, one.second)})
    place = {name: k for k, name in enumerate(names)}
    system = np.zeros((len(common), len(names)))
    logs = np.zeros(len(common))
    weights = np.sqrt([one.n_both for one in common])
    for k, one in enumerate(common):
        system[k, [place[one.first], place[one.second]]] = 1.0
        disagreement = min(1 - one.n_agreed / one.n_both, _NEAR_GUESSING)
        logs[k] = np.log1p(-2 * disagreement)
    if not common:
        return {}
    solution = np.linalg.lstsq(system * weights[:, None], logs * weights, rcond=None)[0]
    rates = (1 - np.exp(np.minimum(solution, 0.0))) / 2
    return dict(zip(names, rates.tolist(), strict=True))
