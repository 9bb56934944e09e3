"""What answers reveal, and answers that are flipped before they are stored.

If answers connect m rows, one known class reveals all m. Randomised response (Warner, JASA 60,
1965) flips an answer with probability

    e = 1 / (1 + exp(epsilon))                                                              (1)

so that no stored answer is more than exp(epsilon) times as likely under one truth as under the
other. A flip shrinks what a model learns from an answer by 1 - 2 e, so n flipped answers are worth

    n (1 - 2 e)^2 = n tanh(epsilon / 2)^2                                                   (2)

answers that are not flipped. What answers reveal adds up: after k answers about one row, or by one
person, the probability that somebody assigns to the truth rises from 1/2 to at most

    1 / (1 + exp(-k epsilon))                                                               (3)

So private questions are disjoint pairs, with one answer per row. A flip is a function of a secret
key, the two rows and the annotator; the key is kept in memory only and lost when the program ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sdulearn.answer_files.store import Flips
from sdulearn.answers.graph import connect
from sdulearn.answers.records import EPSILONS, flip_rate, implied_pairs
from sdulearn.asking.records import RowAnswer
from sdulearn.findings import MAX_NAMES
from sdulearn.types import Indices


@dataclass(frozen=True)
class Leak:
    """How many classes follow if one becomes known, and how far flips protect them.

    Attributes
    ----------
    largest, n_points : int
        Largest number of points whose classes follow from one; number of points in any answer.
    sizes : tuple of int
        Sizes of the groups that answers connect (with more than two classes: answers "same").
    flip_rate : float
        Probability that a stored answer is flipped.
    epsilon, row_epsilon : float or None
        Privacy of one answer; and of the class of a row: epsilon times the largest number of
        answers about a row, undone ones included.
    person_epsilons : mapping of str to float
        Privacy of all answers of a person together: epsilon times their number.
    """

    largest: int
    sizes: tuple[int, ...]
    n_points: int
    flip_rate: float
    epsilon: float | None = None
    row_epsilon: float | None = None
    person_epsilons: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """Say it in words; empty if answers are not flipped."""
        if self.epsilon is None or self.row_epsilon is None:
            return ""
        text = (
            f"Each answer is flipped with probability {self.flip_rate:.1%} (epsilon {self.epsilon:g}): "
            f"an observer who starts at 50:50 can be at most {certainty(self.epsilon):.2%} certain of one answer."
        )
        if not self.row_epsilon:
            return text
        ranked = sorted(self.person_epsilons.items(), key=lambda item: (-item[1], item[0]))
        people = [
            f"{name or 'no name'} {self._counted(total)}, epsilon {total:g}" for name, total in ranked[:MAX_NAMES]
        ]
        more = f", and {len(ranked) - MAX_NAMES} more people" if len(ranked) > MAX_NAMES else ""
        row = f"A row is in at most {self._counted(self.row_epsilon)}: epsilon {self.row_epsilon:g} for its class"
        sure = f"at most {certainty(self.row_epsilon):.2%} certain"
        return f"{text} {row}, {sure}. All answers of one person together: {', '.join(people)}{more}."

    def _counted(self, total: float) -> str:
        n = round(total / (self.epsilon or 1))
        return "1 answer" if n == 1 else f"{n:,} answers"


def leak_of(answers: Sequence[RowAnswer], flips: Flips, *, two_classes: bool) -> Leak:
    """Return how many points answers connect, and what flipped answers reveal."""
    ends, signs, *_ = implied_pairs(answers)
    points, local = np.unique(ends, return_inverse=True)
    joined: Indices = local.reshape(-1, 2)[(signs > 0) | two_classes]
    sizes = sorted(np.bincount(connect(joined, len(points))).tolist(), reverse=True) if len(points) else []
    largest = max(sizes, default=0)
    if flips.epsilon is None or flips.rate is None:
        return Leak(largest, tuple(sizes), len(points), 0.0)
    of_row = Counter(row for rows, _ in flips.ours for row in rows)
    most = max(of_row.values(), default=0) * flips.epsilon
    of_person = Counter(annotator for _, annotator in flips.ours)
    people = {name: n * flips.epsilon for name, n in of_person.items()}
    return Leak(largest, tuple(sizes), len(points), flips.rate, flips.epsilon, most, people)


def certainty(epsilon: float) -> float:
    """Equation (3): the largest probability of the truth, from even odds."""
    return 1 - 1 / (1 + np.exp(min(epsilon, EPSILONS[1])))


def effective_answers(n_answers: float, epsilon: float) -> float:
    """Return the number of answers without flips that are worth as much, by equation (2).

    Parameters
    ----------
    n_answers, epsilon : float
        Number of flipped answers, and privacy of one.

    Returns
    -------
    float
        Between 0 and ``n_answers``.

    Examples
    --------
    >>> from sdulearn.asking import effective_answers
    >>> round(effective_answers(200, epsilon=1.0))
    43
    """
    return float(n_answers * (1 - 2 * flip_rate(epsilon)) ** 2)
