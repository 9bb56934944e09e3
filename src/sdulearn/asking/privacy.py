"""What answers give away, and answers that are flipped before they are stored.

Where the answers join m people, one known class tells all m: a star of n answers tells n + 1, loose pairs 2.
Randomised response [1]_ flips an answer with probability

    e = 1 / (1 + exp(epsilon))                                                              (1)

so that no stored answer is more than exp(epsilon) times as likely under one truth as under the other. An answer about
which a model says little shrinks by 1 - 2 e, so n flipped answers tell about as much as

    n (1 - 2 e)^2 = n tanh(epsilon / 2)^2                                                   (2)

answers that are not.

References
----------
.. [1] S. L. Warner, "Randomized Response: A Survey Technique for Eliminating Evasive Answer Bias", Journal of the
   American Statistical Association 60 (1965).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdulearn.answers.graph import connect
from sdulearn.asking.records import Record, as_graph_input
from sdulearn.errors import InputError
from sdulearn.types import Indices


@dataclass(frozen=True)
class Leak:
    """How many classes follow if one becomes known.

    Attributes
    ----------
    largest : int
        The most points whose classes follow from one: with two classes all that answers join, with more all
        that answers "same" join. 0 without answers.
    sizes : tuple of int
        Number of points that hang together, the largest first.
    n_points : int
        Points in any answer.
    flip_rate : float
        Probability with which each stored answer is not the one that was given.
    """

    largest: int
    sizes: tuple[int, ...]
    n_points: int
    flip_rate: float


def find_leak(records: Sequence[Record], *, two_classes: bool, flip_rate: float = 0.0) -> Leak:
    """How many points hang together.

    Parameters
    ----------
    records : sequence of Record
        The answers.
    two_classes : bool
        Whether "different" tells the class, too.
    flip_rate : float, default=0.0
        Probability with which answers were flipped.

    Returns
    -------
    Leak
        Sizes of what hangs together.
    """
    ends, signs, _ = as_graph_input(records)
    points, local = np.unique(ends, return_inverse=True)
    joined: Indices = local.reshape(-1, 2)[(signs > 0) | two_classes]
    sizes = sorted(np.bincount(connect(joined, len(points))).tolist(), reverse=True) if len(points) else []
    return Leak(max(sizes, default=0), tuple(sizes), len(points), flip_rate)


def flip_rate(epsilon: float) -> float:
    """Equation (1): the probability with which an answer is flipped.

    Parameters
    ----------
    epsilon : float
        Privacy of one answer, above 0; the smaller, the more private.

    Returns
    -------
    float
        Between 0 and 1/2.

    Examples
    --------
    >>> from sdulearn.asking import flip_rate
    >>> round(flip_rate(1.0), 3)
    0.269
    """
    if not epsilon > 0 or not np.isfinite(epsilon):
        raise InputError(f"`epsilon` must be a number above 0, got {epsilon!r}. The smaller, the more private.")
    return float(1 / (1 + np.exp(epsilon)))


def effective_answers(n_answers: float, epsilon: float) -> float:
    """Equation (2): so many answers that are not flipped tell about as much.

    Parameters
    ----------
    n_answers : float
        Number of flipped answers.
    epsilon : float
        Privacy of one answer.

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
