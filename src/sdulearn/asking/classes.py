"""Which classes the answers have found, and which point is in which.

Answers are read in the order in which they came, each question once, by the majority of its answers:

- The example of the first answer opens the first class.
- "Same" as a point of a class: in that class.
- "Different" from it: not in that class. With two classes the other one follows.
- Different from all classes: the point opens one. A point that was asked about to explore does so when it differs from
  ``TRIES`` classes, the likeliest ones, as the design asks about them first. Classes that no answer tells apart yet
  are *unproven*: they may be one. No class is opened early while there are ``MAX_UNPROVEN`` such pairs.
- "Same" between points of two unproven classes: these are one class.

Answers that disagree with all that came before them change nothing here: they are contradictions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

from sdulearn.asking.records import RowAnswer

# An explored point that differs from so many classes opens one; comparing it with all others can wait.
TRIES = 3
# But not while so many pairs of classes may be one: where points differ from the likeliest classes all the time, the
# model is not yet good enough to know which are the likeliest.
MAX_UNPROVEN = 45


class Classes:
    """What the answers say."""

    def __init__(self, limit: int | None, explored: Sequence[int] = ()) -> None:
        self.limit = limit  # number of classes where it is known
        self.explored = set(explored)  # points that were asked about to explore
        self.label: dict[int, int] = {}  # class of each point that is in one, by point
        # Points of each class, in the order in which they were found; keys are the numbers of the classes.
        self.members: dict[int, list[int]] = {}
        self.excluded: dict[int, set[int]] = {}  # classes that each point under way is not in
        self.apart: set[tuple[int, int]] = set()  # classes that an answer tells apart, the smaller number first
        self._waiting: dict[int, list[tuple[int, int]]] = defaultdict(list)

    @property
    def unproven(self) -> list[tuple[int, int]]:
        """Pairs of classes that may be one."""
        return [pair for pair in combinations(self.members, 2) if pair not in self.apart]

    @property
    def n_unproven(self) -> int:
        """Number of these pairs."""
        return math.comb(len(self.members), 2) - len(self.apart)

    @property
    def complete(self) -> bool:
        """Whether there are as many classes as there can be, and answers tell all of them apart."""
        return self.limit is not None and len(self.members) >= self.limit and not self.n_unproven

    def read(self, a: int, b: int, answer: int) -> None:
        """Take in an answer."""
        if not self.members:
            # The second point is the example; new points come first.
            self._join(b, 0)
        if a in self.label and b in self.label:
            self._compare_classes(self.label[a], self.label[b], answer)
        elif a in self.label:
            self._place(b, self.label[a], answer)
        elif b in self.label:
            self._place(a, self.label[b], answer)
        else:
            self._waiting[a].append((b, answer))
            self._waiting[b].append((a, answer))

    def _compare_classes(self, one: int, other: int, answer: int) -> None:
        if one == other:
            return
        pair = (min(one, other), max(one, other))
        if answer < 0:
            self.apart.add(pair)
        elif pair not in self.apart:
            self._merge(*pair)

    def _place(self, point: int, number: int, answer: int) -> None:
        """An answer about a point of no class yet, and a class."""
        out = self.excluded.setdefault(point, set())
        if answer > 0:
            self._join(point, number)
            return
        out.add(number)
        rest = [other for other in self.members if other not in out]
        if self.complete:
            if len(rest) == 1:
                self._join(point, rest[0])
        elif not rest or (len(out) >= TRIES and point in self.explored and self.n_unproven < MAX_UNPROVEN):
            self._join(point, max(self.members) + 1)

    def _join(self, point: int, number: int) -> None:
        self.label[point] = number
        self.members.setdefault(number, []).append(point)
        for other in self.excluded.pop(point, ()):
            if other != number and other in self.members:
                self.apart.add((min(other, number), max(other, number)))
        for other, answer in self._waiting.pop(point, ()):
            self.read(point, other, answer)

    def _merge(self, kept: int, gone: int) -> None:
        for point in self.members.pop(gone):
            self.label[point] = kept
            self.members[kept].append(point)
        renamed = {gone: kept}
        pairs = [{renamed.get(number, number) for number in pair} for pair in self.apart]
        self.apart = {(min(pair), max(pair)) for pair in pairs if len(pair) == 2}
        for point, out in self.excluded.items():
            self.excluded[point] = {renamed.get(number, number) for number in out}

    def open_excluded(self) -> None:
        """Points that no class is left for open one, where there is room again after a merger."""
        for point in list(self.excluded):
            if not self.complete and point in self.excluded and self.excluded[point] >= set(self.members):
                self._join(point, max(self.members) + 1)


def read_classes(answers: Sequence[RowAnswer], limit: int | None) -> Classes:
    """Classes from answers."""
    votes = count_votes(answers)
    first: dict[tuple[int, int], RowAnswer] = {}
    for one in answers:
        if one.sign:
            first.setdefault(one.pair, one)
    classes = Classes(limit, [one.left for one in first.values() if one.kind == "explore"])
    for pair, one in first.items():
        # A tie leaves the first answer standing.
        classes.read(one.left, one.right, votes[pair] or one.sign)
    classes.open_excluded()
    return classes


def count_votes(answers: Sequence[RowAnswer]) -> dict[tuple[int, int], int]:
    """Answers "same" less answers "different" to each question."""
    votes: dict[tuple[int, int], int] = defaultdict(int)
    for one in answers:
        votes[one.pair] += one.sign
    return votes
