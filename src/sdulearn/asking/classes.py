"""Which classes the answers have found, and which point is in which.

Answers are read in the order in which they came, each question once, by the majority of its answers:

- Points that were given as examples open the first classes; without them the first choice of the first answer does.
- "Same" as a point of a class: in that class.
- "Different" from points of some classes: not in these. Where the number of classes is known and all are found, the
  last one that is left follows.
- Different from all classes: the point opens one, unless all are found.

Answers that disagree with all that came before them change nothing here: they are contradictions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from sdulearn.asking.records import RowAnswer


class Classes:
    """What the answers say."""

    def __init__(self, limit: int | None, seeds: Sequence[Sequence[int]] = ()) -> None:
        self.limit = limit  # number of classes where it is known
        self.label: dict[int, int] = {}  # class of each point that is in one, by point
        # Points of each class, in the order in which they were found; keys are the numbers of the classes.
        self.members: dict[int, list[int]] = {}
        self.excluded: dict[int, set[int]] = {}  # classes that each point under way is not in
        self._waiting: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for number, points in enumerate(seeds):
            for point in points:
                self._join(point, number)

    @property
    def complete(self) -> bool:
        """Whether there are as many classes as there can be."""
        return self.limit is not None and len(self.members) >= self.limit

    def read(self, a: int, others: Sequence[int], answer: int) -> None:
        """Take in that a point is of the same class as others, or of that of none of them."""
        if not self.members:
            # The others are examples; new points come first.
            self._join(others[0], 0)
        if a not in self.label:
            if there := {self.label[b] for b in others if b in self.label}:
                self._place(a, there, answer)
            for b in others:
                if b not in self.label:
                    self._waiting[a].append((b, answer))
                    self._waiting[b].append((a, answer))
            return
        for b in others:
            if b not in self.label:
                self._place(b, {self.label[a]}, answer)

    def _place(self, point: int, numbers: set[int], answer: int) -> None:
        """An answer about a point of no class yet, and some classes."""
        out = self.excluded.setdefault(point, set())
        if answer > 0:
            self._join(point, min(numbers))
            return
        out |= numbers
        rest = [other for other in self.members if other not in out]
        if self.complete:
            if len(rest) == 1:
                self._join(point, rest[0])
        elif not rest:
            self._join(point, len(self.members))

    def _join(self, point: int, number: int) -> None:
        self.label[point] = number
        self.members.setdefault(number, []).append(point)
        self.excluded.pop(point, None)
        for other, answer in self._waiting.pop(point, ()):
            self.read(point, (other,), answer)


def read_classes(answers: Sequence[RowAnswer], limit: int | None, seeds: Sequence[Sequence[int]] = ()) -> Classes:
    """Classes from answers, beside points that are examples of them."""
    classes = Classes(limit, seeds)
    votes = count_votes(answers)
    first: dict[tuple[int, ...], RowAnswer] = {}
    for one in answers:
        if one.sign:
            first.setdefault(one.asked, one)
    for one in first.values():
        # A tie leaves the first answer standing.
        picked, _ = votes[one.asked].most_common(1)[0]
        if picked is None or len(one.choices) == 1:
            classes.read(one.left, one.choices, -1 if picked is None else 1)
        else:
            classes.read(one.left, (picked,), 1)
    return classes


def count_votes(answers: Sequence[RowAnswer]) -> dict[tuple[int, ...], Counter[int | None]]:
    """How often each choice was picked, or none, in the answers to each question."""
    votes: dict[tuple[int, ...], Counter[int | None]] = defaultdict(Counter)
    for one in answers:
        if one.sign:
            # Either point of a pair may be called the choice.
            votes[one.asked][one.picked if len(one.choices) > 1 or one.sign < 0 else one.asked[1]] += 1
    return votes
