"""What a design knows when somebody wants a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdulearn.asking.records import Question
from sdulearn.asking.state import State


@dataclass(frozen=True, eq=False)
class Turn:
    """Somebody wants a question."""

    state: State  # the answers so far
    pending: Sequence[Question]  # questions that others have before them
    annotator: str  # who asks for one
    number: int  # number of the question
    rng: np.random.Generator  # depends on the seed and the number alone
    closed: frozenset[int] = frozenset()  # points that this annotator must not be asked about

    @property
    def busy(self) -> set[int]:
        """New points in questions that others have before them."""
        return {question.left for question in self.pending}

    @property
    def waiting(self) -> set[tuple[int, int]]:
        """Pairs of points in these questions."""
        return {(min(q.left, q.right), max(q.left, q.right)) for q in self.pending}

    def ask(self, left: int, right: int, kind: str) -> Question:
        """A question of this turn's number."""
        return Question(int(left), int(right), kind, self.number)
