"""Which items to sort next: new ones, beside examples of at most two classes.

Each new item is one claim, "of the class of this example, or of none of those shown": an answer to a match question
with few choices. Items that were grouped without an example are pairs. The state reads these claims; so an item is
asked about until its class is known, beside the examples of its two likeliest classes that are left.

Items of one question share their two likeliest classes, because they share the examples. With two classes one example
is enough: what is not in its group is in the other class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sdulearn.answers.records import Question, read_reply
from sdulearn.asking.designs import (
    FIRST_CHECK,
    Turn,
    by_margin,
    due,
    example,
    most_urgent,
    next_random_points,
    representatives,
    still_exploring,
)
from sdulearn.asking.records import RowAnswer, RowQuestion
from sdulearn.asking.state import State
from sdulearn.types import Array, Indices

MAX_EXAMPLES = 2
# A point is asked about this often at most.
_MOST_ASKED = 3
_LEAST_ITEMS = 3
# Points that are looked at for each new item of a question.
_POOL = 10


def claims_of(answer: RowAnswer) -> list[RowAnswer]:
    """Return what an answer says as answers about one item each; those to other questions are as they are."""
    question, groups = answer.question, answer.groups
    if question.form != "sort" or groups is None:
        return [answer]
    has_examples = any(rank is not None for rank in question.ranks)
    shown = {k: item for k, item in enumerate(question.items) if has_examples and question.ranks[k] is None}
    claims: list[tuple[RowQuestion, object]] = []
    # By its group, the first example there.
    placed: dict[int, int] = {}
    for k, item in shown.items():
        group = groups[k]
        if group is not None and placed.setdefault(group, item) != item:
            # They were shown as examples of two classes.
            claims.append((Question("pair", (item, placed[group]), question.why), True))
    # The first item of each group without an example.
    first: dict[int, int] = {}
    for k, (item, group) in enumerate(zip(question.items, groups, strict=True)):
        if k in shown:
            continue
        rank = question.ranks[k] if has_examples else None
        if group is None:
            others = tuple(shown.values()) or question.items[:k] or question.items[1:]
            claims.append((Question("match", (item, *others), question.why, rank), "unsure"))
            continue
        if placed:
            asked = Question("match", (item, *placed.values()), question.why, rank)
            claims.append((asked, [*placed].index(group) if group in placed else "none"))
        if group not in placed:
            compared = {group: first[group]} if group in first else first
            for other, founder in compared.items():
                claims.append((Question("pair", (item, founder), question.why, rank), other == group))
            first.setdefault(group, item)
    return [read_reply(asked, reply)._replace(annotator=answer.annotator) for asked, reply in claims]


def next_sort(turn: Turn) -> RowQuestion:
    """Return the next set of items to sort."""
    return most_urgent(_by_priority(turn))


def _by_priority(turn: Turn) -> Iterator[RowQuestion | None]:
    """What to ask, the most urgent first; None where there is no such question."""
    state = turn.state
    if not state.classes.members:
        yield _about(turn, representatives(turn, _n_new(turn)), "explore")
        return
    open_points = [point for point in state.classes.excluded if point not in state.given_up | turn.busy]
    if open_points:
        # A random point counts by its first question.
        yield _about(turn, _alike(turn, open_points, by_margin(turn)), "uncertain")
    yield _about(turn, _to_check(turn, [state.answers[k].left for k in state.unconfirmed]), "doubtful")
    if len(state.answers) >= FIRST_CHECK and due(turn, ("repeat", "doubtful"), turn.check_share):
        if state.kinds["repeat"] > state.kinds["doubtful"]:
            yield _about(turn, _to_check(turn, [state.answers[k].left for k in state.doubtful]), "doubtful")
        yield _about(turn, _to_check(turn, _drawn(turn)), "repeat")
    if due(turn, ("random",), turn.random_share):
        yield _about(turn, next_random_points(turn, _n_new(turn)), "random")
    if still_exploring(state):
        yield _about(turn, representatives(turn, _n_new(turn)), "explore")
    else:
        yield _about(turn, _alike(turn, by_margin(turn)), "uncertain")
    yield _about(turn, next_random_points(turn, _n_new(turn)), "random")


def _n_new(turn: Turn) -> int:
    """Number of new items in a question: what the examples leave."""
    return turn.n_items - _n_examples(turn.state)


def _n_examples(state: State) -> int:
    return min(state.n_classes, 1 if state.limit == 2 else MAX_EXAMPLES)


def _about(turn: Turn, points: Sequence[int], why: str) -> RowQuestion | None:
    """Return a question about some points, beside examples of the classes that they may be in."""
    if not points:
        return None
    state = turn.state
    points = list(map(int, points))[: _n_new(turn)]
    likely = _open_probabilities(state, np.array(points)).sum(axis=0)
    order = np.argsort(-likely, kind="stable").tolist()
    found = ((k, example(state, k, points[0])) for k in order)
    usable = [(k, row) for k, row in found if row is not None and row not in points]
    # Too few new points are left at the end: a question has three items.
    n_examples = max(_n_examples(state), _LEAST_ITEMS - len(points))
    # In the order of the classes, which does not give the guess of the model away.
    shown = list(dict.fromkeys(row for _, row in sorted(usable[:n_examples])))
    known = (point for point in state.known.tolist() if point not in (*points, *shown))
    shown += [point for point, _ in zip(known, range(_LEAST_ITEMS - len(points) - len(shown)), strict=False)]
    if len(points) + len(shown) < _LEAST_ITEMS:
        return None
    ranks = [int(state.points.position[point]) for point in points]
    return Question("sort", (*points, *shown), why, (*ranks, *[None] * len(shown)))


def _open_probabilities(state: State, points: Indices) -> Array:
    """Probabilities of the classes that answers do not exclude, (n_points, n_classes)."""
    p = np.exp(state.log_probabilities(points))
    for row, point in enumerate(points.tolist()):
        p[row, list(state.classes.excluded.get(point, ()))] = 0.0
    return p


def _alike(turn: Turn, first: Sequence[int], more: Sequence[int] = ()) -> list[int]:
    """The first point, and others that are likely in its two likeliest classes: of the same list, then of another."""
    if not first:
        return []
    state = turn.state
    chosen = list(first[:1])
    n_new = _n_new(turn)
    two = np.argsort(-_open_probabilities(state, np.array(chosen))[0], kind="stable")[:MAX_EXAMPLES]
    # Those that are both uncertain and alike: the list begins with the most uncertain.
    for pool in (first[1:], more):
        pool = [point for point in pool if point not in chosen][: _POOL * n_new]
        if len(chosen) < n_new and pool:
            likely = _open_probabilities(state, np.array(pool))[:, two].sum(axis=1)
            order = np.argsort(-likely, kind="stable")[: n_new - len(chosen)]
            chosen += [pool[k] for k in order]
    return chosen


def _drawn(turn: Turn) -> list[int]:
    """Points that were asked about once, drawn at random; of others, where possible."""
    answers = [answer for answer in turn.state.answers if answer.sign]
    others = [answer for answer in answers if answer.annotator != turn.annotator]
    # The last answers are still remembered.
    pool = list(dict.fromkeys(answer.left for answer in others or answers[: -turn.n_items]))
    return [pool[k] for k in turn.rng.permutation(len(pool))]


def _to_check(turn: Turn, points: Sequence[int]) -> list[int]:
    """Those of some points of known class that may be asked about again, alike in their classes."""
    state = turn.state
    times = np.bincount([answer.left for answer in state.answers], minlength=state.points.n_points)
    busy = turn.busy
    usable = [point for point in points if times[point] < _MOST_ASKED and point not in busy]
    usable = [point for point in dict.fromkeys(usable) if point in state.classes.label]
    return _alike(turn, usable)
