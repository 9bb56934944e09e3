"""A set of answers as people gave them: who was compared with whom, and what was said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from sdulearn.pairs import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.types import Array, Codes

# Privacy that means something: beyond these an answer is noise, or is never flipped.
EPSILONS = (1e-3, 100.0)


@dataclass(frozen=True)
class BadRow:
    """A row that could not be understood.

    Attributes
    ----------
    line : int
        Where it stands.
    reason : str
        What is wrong with it.
    """

    line: int
    reason: str


def is_epsilon(value: object) -> TypeGuard[float]:
    """Whether a value is a number that can be the privacy of an answer; True and False are none."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and bool(EPSILONS[0] <= value <= EPSILONS[1])  # type: ignore[operator]


@dataclass(frozen=True)
class Answers:
    """Answers by id, and what was understood of the file or frame they come from.

    Attributes
    ----------
    name : str
        The file, or what stands for it.
    ids : object array of shape (n_answers, 2)
        The two ids of each answer, as text.
    answers : int array of shape (n_answers,)
        +1 similar, -1 dissimilar, 0 unsure.
    weights : array of shape (n_answers,)
        Weights; 1 where none are given.
    annotators : object array of shape (n_answers,) or None
        Who answered, as text; None where that is not said.
    lines : int array of shape (n_answers,)
        Line of the file (row, counted from 1, of a Parquet file, a workbook or a frame; item of a JSON list).
    columns : dict
        Which column was read as ``id_a``, ``id_b``, ``label``, ``weight``, ``annotator``, ``time``.
    words : dict
        How often each word for an answer occurs, and what it was taken for:
        ``{"1": (1, 58), "0": (-1, 42)}``.
    bad_rows : tuple of BadRow
        Rows left out.
    times : object array of shape (n_answers,) or None
        When each was answered, as the file says it; None where that is not said.
    format : str
        What the file was read as, such as ``"csv"``, ``"answer_log"`` or ``"prodigy"``.
    n_unanswered : int
        Questions in the file that nobody has answered yet.
    n_chosen : int
        Answers to questions that a design chose, as a log says: not a random draw.
    epsilon : float or None
        Privacy of each answer, where a log says that they were flipped with probability 1 / (1 + exp(epsilon)) before
        they were stored.
    """

    name: str
    ids: NDArray[np.object_]
    answers: Codes
    weights: Array
    annotators: NDArray[np.object_] | None
    lines: Codes
    columns: dict[str, str]
    words: dict[str, tuple[int, int]]
    bad_rows: tuple[BadRow, ...] = ()
    times: NDArray[np.object_] | None = None
    format: str = "csv"
    n_unanswered: int = 0
    n_chosen: int = 0
    epsilon: float | None = None

    @property
    def annotator_names(self) -> tuple[str, ...]:
        """Who answered, in the order of their first answers."""
        names = [] if self.annotators is None else self.annotators.tolist()
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def annotator_numbers(self) -> Codes:
        """Who gave each answer: k for the k-th of ``annotator_names``, 0 where that is not known."""
        if self.annotators is None:
            return np.zeros(len(self.answers), dtype=np.int64)
        numbers = {name: k for k, name in enumerate(self.annotator_names, 1)}
        return np.array([numbers.get(name, 0) for name in self.annotators], dtype=np.int64)

    @property
    def n_similar(self) -> int:
        """Number of answers "similar"."""
        return int(np.sum(self.answers == SIMILAR))

    @property
    def n_dissimilar(self) -> int:
        """Number of answers "dissimilar"."""
        return int(np.sum(self.answers == DISSIMILAR))

    @property
    def n_unsure(self) -> int:
        """Number of answers "unsure"."""
        return int(np.sum(self.answers == UNSURE))
