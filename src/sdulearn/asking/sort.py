"""Which items to sort next: new ones, beside examples of at most two classes.

Each new item is one claim, "of the class of this example, or of none of those shown": an answer to a match question
with few choices. Items that were grouped without an example are pairs. The state reads these claims; so an item is
asked about until its class is known, beside the examples of its two likeliest classes that are left.

Items of one question share their two likeliest classes, because they share the examples. With two classes one example
is enough: what is not in its group is in the other class.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from sdulearn.answers.records import Question, read_reply
from sdulearn.asking.designs import FIRST_CHECK, Turn, due, example, representation_gain, still_exploring
from sdulearn.asking.records import RowAnswer, RowQuestion
from sdulearn.asking.state import State
from sdulearn.errors import NothingToAskError
from sdulearn.types import Array, Indices

MAX_EXAMPLES = 2
# A point is asked about this often at most.
_MOST_ASKED = 3
_LEAST_ITEMS = 3


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
    if (question := next(filter(None, _by_priority(turn)), None)) is not None:
        return question
    raise NothingToAskError("The class of every point that can be asked about is known: nothing is left to ask.")


def _by_priority(turn: Turn) -> Iterator[RowQuestion | None]:
    """What to ask, the most urgent first; None where there is no such question."""
    state = turn.state
    if not state.classes.members:
        yield _about(turn, _representatives(turn), "explore")
        return
    open_points = [point for point in state.classes.excluded if point not in state.given_up | _busy(turn)]
    if open_points:
        # A random point counts by its first question.
        yield _about(turn, _alike(turn, open_points, _by_margin(turn)), "uncertain")
    yield _about(turn, _to_check(turn, [state.answers[k].left for k in state.unconfirmed]), "doubtful")
    if len(state.answers) >= FIRST_CHECK and due(turn, ("repeat", "doubtful"), turn.check_share):
        if state.kinds["repeat"] > state.kinds["doubtful"]:
            yield _about(turn, _to_check(turn, [state.answers[k].left for k in state.doubtful]), "doubtful")
        yield _about(turn, _to_check(turn, _drawn(turn)), "repeat")
    if due(turn, ("random",), turn.random_share):
        yield _about(turn, _next_random(turn), "random")
    if still_exploring(state):
        yield _about(turn, _representatives(turn), "explore")
    else:
        yield _about(turn, _alike(turn, _by_margin(turn)), "uncertain")
    yield _about(turn, _next_random(turn), "random")


def _busy(turn: Turn) -> set[int]:
    """Items that open questions of others are about."""
    asked = (zip(question.items, question.ranks, strict=True) for question in turn.pending)
    return {item for items in asked for item, rank in items if rank is not None}


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


def _free(turn: Turn, closed: Collection[int] = ()) -> Indices:
    """Places of the candidates that nobody was asked about."""
    return np.flatnonzero(~np.isin(turn.state.points.candidates, [*turn.state.asked, *_busy(turn), *closed]))


def _by_margin(turn: Turn) -> list[int]:
    """The free candidates, the one with the smallest margin between its two likeliest classes first."""
    if turn.state.model is None:
        return []
    free = _free(turn)
    rising = np.sort(np.exp(turn.state.of_candidates[free]), axis=1)
    order = np.argsort(rising[:, -1] - rising[:, -2], kind="stable")
    return turn.state.points.candidates[free[order]].tolist()


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


# Points that are looked at for each new item of a question.
_POOL = 10


def _representatives(turn: Turn) -> list[int]:
    """Points that best represent others far from all that were asked about, one after the other."""
    points = turn.state.points
    chosen: list[int] = []
    asked = np.array(sorted(turn.state.asked | _busy(turn)), dtype=np.intp)
    if len(asked):
        known, Z = points.coordinates(asked), points.candidate_coordinates
        square = (Z**2).sum(axis=1)[:, None] + (known**2).sum(axis=1) - 2 * Z @ known.T
        nearest = np.sqrt(np.maximum(square.min(axis=1), 0))
    else:
        centre = int(np.argmin(points.distances.sum(axis=1)))
        chosen.append(int(points.candidates[centre]))
        nearest = points.distances[centre]
    while len(chosen) < _n_new(turn) and len(free := _free(turn, chosen)):
        best = free[np.argmax(representation_gain(points.distances, nearest)[free])]
        chosen.append(int(points.candidates[best]))
        nearest = np.minimum(nearest, points.distances[best])
    return chosen


def _next_random(turn: Turn) -> list[int]:
    """The next points of the random order that were not asked about."""
    order = turn.state.points.order[turn.state.n_sampled :].tolist()
    closed = turn.state.asked | _busy(turn)
    return [point for point in order if point not in closed][: _n_new(turn)]


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
    usable = [point for point in points if times[point] < _MOST_ASKED and point not in _busy(turn)]
    usable = [point for point in dict.fromkeys(usable) if point in state.classes.label]
    return _alike(turn, usable)
