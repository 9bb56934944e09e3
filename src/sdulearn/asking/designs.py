"""Which question next.

``random``: disjoint pairs, in a random order of the points.
``linked``, for two classes: a new point beside an example of its likeliest class.
``match``: a new point beside an example of every class found so far, each in its place.

The linked and the match design

- ask about a point until its class is known,
- ask about a share of the points in random order, whatever the model says ("random"),
- check earlier answers with a share of the questions ("repeat", "doubtful"),
- begin with points that represent many others ("explore"), until these bring no new classes,
- go on with points that the model is unsure about ("uncertain").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from sdulearn.answers.records import Answer, Form, Question
from sdulearn.asking.records import RowAnswer, RowQuestion
from sdulearn.asking.state import State
from sdulearn.errors import NothingToAskError
from sdulearn.types import Array, Indices

# Checks begin when there are this many answers to check.
FIRST_CHECK = 12
_LEAST_EXPLORED = 12


class Turn(NamedTuple):
    """A request for a question."""

    form: Form  # of the question
    n_items: int  # of a question to sort
    state: State  # of the answers so far
    pending: Sequence[RowQuestion]  # open questions of others
    annotator: str  # who will answer
    rng: np.random.Generator  # depends on the seed and the number of questions alone
    random_share: float  # of the questions, about points in random order
    check_share: float  # of the questions, to check earlier answers
    closed: frozenset[int]  # points that this annotator must not be asked about

    @property
    def busy(self) -> set[int]:
        """Points that open questions of others are about: not their examples."""
        asked = (zip(question.items, question.ranks, strict=True) for question in self.pending)
        return {item for items in asked for item, rank in items if rank is not None}

    def ask(self, left: int, choices: Sequence[int], why: str) -> RowQuestion:
        """Make the question."""
        items = (int(left), *map(int, choices))
        return Question(self.form, items, why, int(self.state.points.position[left]))


def next_random(turn: Turn) -> RowQuestion:
    """Return the next of the disjoint pairs, or an earlier one to check it."""
    if due(turn, ("repeat",), turn.check_share) and (check := _repeat(turn)):
        return check
    order = turn.state.points.order
    used = turn.state.asked | turn.closed | turn.busy | {question.right for question in turn.pending}
    # Pairs are (0, 1), (2, 3), ... of the order; a pair with a used point is used.
    for k in range(0, len(order) - 1, 2):
        if order[k] not in used and order[k + 1] not in used:
            return turn.ask(order[k], [order[k + 1]], "random")
    raise NothingToAskError("All rows are in a pair already: no disjoint random pair is left.")


def next_linked(turn: Turn) -> RowQuestion:
    """Return the next question of the linked or the match design."""
    return most_urgent(_by_priority(turn))


def most_urgent(questions: Iterator[RowQuestion | None]) -> RowQuestion:
    """Return the first question that there is."""
    if (question := next(filter(None, questions), None)) is not None:
        return question
    raise NothingToAskError("The class of every point that can be asked about is known: nothing is left to ask.")


def _by_priority(turn: Turn) -> Iterator[RowQuestion | None]:
    """What to ask, the most urgent first; None where there is no such question."""
    state = turn.state
    if not state.classes.members:
        yield _first(turn)
        return
    yield _under_way(turn)
    # A wrong answer that opened a class splits a true class in two.
    yield _again(turn, state.unconfirmed)
    if len(state.answers) >= FIRST_CHECK and due(turn, ("repeat", "doubtful"), turn.check_share):
        # The kind that was asked least comes first.
        for kind in sorted(("repeat", "doubtful"), key=state.kinds.__getitem__):
            yield _repeat(turn) if kind == "repeat" else _again(turn, state.doubtful)
    if due(turn, ("random",), turn.random_share):
        yield _about_first(turn, next_random_points(turn, 1), "random")
    if still_exploring(state):
        yield _about_first(turn, representatives(turn, 1), "explore")
    else:
        yield _about_first(turn, by_margin(turn), "uncertain")
    yield _about_first(turn, next_random_points(turn, 1), "random")


def due(turn: Turn, kinds: Collection[str], share: float) -> bool:
    """Whether there are fewer questions of these kinds than their share."""
    asked = sum(turn.state.kinds[kind] for kind in kinds) + sum(q.why in kinds for q in turn.pending)
    total = len(turn.state.answers) + len(turn.pending) + 1
    return asked < int(share * total)


def _first(turn: Turn) -> RowQuestion | None:
    """Two points that represent many others."""
    points = turn.state.points
    k = int(np.argmin(points.distances.sum(axis=1)))
    first = int(points.candidates[k])
    free = _free(turn, {first})
    if not len(free):
        return None
    second = free[np.argmax(_representation_gain(points.distances, points.distances[k])[free])]
    return turn.ask(points.candidates[second], [first], "explore")


def _under_way(turn: Turn) -> RowQuestion | None:
    """A point that answers exclude from some classes, beside the classes that are left."""
    state = turn.state
    closed = state.given_up | turn.busy
    for point in state.classes.excluded:
        if point not in closed:
            why = next(one.question.why for one in state.answers if point in one.question.items)
            return ask_about(turn, point, why if why in ("random", "explore") else "uncertain")
    return None


def ask_about(turn: Turn, point: int, why: str) -> RowQuestion:
    """Return a question about a point, beside examples of the classes that it may be in."""
    return turn.ask(point, shown_beside(turn.state, point), why)


def shown_beside(state: State, point: int) -> list[int]:
    """Return an example of the likeliest class; in a match question of each class, in the order they were found.

    A class keeps its place, so that its key can be learned, and the order does not give the model's guess away.
    """
    out = state.classes.excluded.get(point, set())
    rest = [k for k in range(state.n_classes) if k not in out]
    if state.n_choices is not None:
        log_p = state.log_probabilities(np.array([point]))[0]
        rest = sorted(sorted(rest, key=lambda k: -log_p[k])[: state.n_choices])
    shown = (example(state, k, point) for k in rest)
    return [row for row in shown if row is not None]


def example(state: State, number: int, point: int | None = None) -> int | None:
    """Return the trusted point nearest to the centre of the first 1, 2, 4, ... points of a class, other than one."""
    members = [member for member in state.classes.members[number] if member != point]
    usable = [member for member in members if member in state.trusted]
    if not usable:
        # With two classes, "different from the other one" says the same.
        founder = state.founders[number if state.n_choices is None else 0]
        return founder if founder != point else None
    return state.points.most_central(usable, members[: 1 << (len(members).bit_length() - 1)])


def examples(state: State, number: int) -> list[int]:
    """Return the points of a class: the example, other trusted ones, then the likeliest."""
    members = state.classes.members[number]
    likely = state.log_probabilities(np.array(members))[:, number]
    order = sorted(range(len(members)), key=lambda k: (members[k] not in state.trusted, -likely[k]))
    first = example(state, number)
    return [*([] if first is None else [first]), *(members[k] for k in order if members[k] != first)]


def _about_first(turn: Turn, points: Sequence[int], why: str) -> RowQuestion | None:
    """A question about the first of some points, if there is any."""
    return ask_about(turn, points[0], why) if points else None


def next_random_points(turn: Turn, n: int) -> list[int]:
    """Return the next points of the random order that were not asked about."""
    order = turn.state.points.order[turn.state.n_sampled :].tolist()
    closed = turn.state.asked | turn.busy
    return list(islice((point for point in order if point not in closed), n))


def still_exploring(state: State) -> bool:
    """Whether the last explored points opened classes, or there are too few of them."""
    label = state.classes.label
    explored = list(dict.fromkeys(r.left for r in state.answers if r.question.why == "explore" and r.left in label))
    if len(explored) < _LEAST_EXPLORED or state.n_classes < 2:
        return True
    if state.classes.complete:
        return False
    latest = explored[-max(_LEAST_EXPLORED, state.n_classes) :]
    return not set(state.founders).isdisjoint(latest)


def representatives(turn: Turn, n: int) -> list[int]:
    """Return points that best represent others far from all that were asked about, one after the other."""
    points = turn.state.points
    chosen: list[int] = []
    asked = np.array(sorted(turn.state.asked | turn.busy), dtype=np.intp)
    if len(asked):
        known, Z = points.coordinates(asked), points.candidate_coordinates
        square = (Z**2).sum(axis=1)[:, None] + (known**2).sum(axis=1) - 2 * Z @ known.T
        nearest = np.sqrt(np.maximum(square.min(axis=1), 0))
    else:
        centre = int(np.argmin(points.distances.sum(axis=1)))
        chosen.append(int(points.candidates[centre]))
        nearest = points.distances[centre]
    while len(chosen) < n and len(free := _free(turn, chosen)):
        best = free[np.argmax(_representation_gain(points.distances, nearest)[free])]
        chosen.append(int(points.candidates[best]))
        nearest = np.minimum(nearest, points.distances[best])
    return chosen


def _representation_gain(distances: Array, nearest: Array) -> Array:
    """How much the distances to the nearest known point shrink in sum, for each candidate."""
    return np.maximum(nearest[None, :].astype(distances.dtype) - distances, 0).sum(axis=1)


def by_margin(turn: Turn) -> list[int]:
    """Return the free candidates, the one with the smallest margin between its two likeliest classes first."""
    if turn.state.model is None:
        return []
    free = _free(turn)
    rising = np.sort(np.exp(turn.state.of_candidates[free]), axis=1)
    order = np.argsort(rising[:, -1] - rising[:, -2], kind="stable")
    return turn.state.points.candidates[free[order]].tolist()


def _free(turn: Turn, closed: Collection[int] = ()) -> Indices:
    """Places of the candidates that nobody was asked about."""
    return np.flatnonzero(~np.isin(turn.state.points.candidates, [*turn.state.asked, *turn.busy, *closed]))


def _repeat(turn: Turn) -> RowQuestion | None:
    """A question drawn at random, again; to somebody else, where possible."""
    answers = turn.state.answers
    times = _times_asked(turn.state)
    sure = [one for one in answers if not one.is_unsure]
    once = [one for one in sure if times[_subject(turn.state, one)] == 1 and not _is_waiting(turn, one)]
    others = [one for one in once if one.annotator != turn.annotator]
    # The last answers are still remembered.
    pool = others or once[:-3]
    if not pool:
        return None
    one = pool[turn.rng.integers(len(pool))]
    return turn.ask(one.left, renewed_choices(turn.state, one.left, one.choices), "repeat")


def renewed_choices(state: State, point: int, choices: Sequence[int]) -> Sequence[int]:
    """Return what to compare a point with when it is asked about again: of a match question all classes of now."""
    if state.n_choices is not None:
        return choices
    label = state.classes.label
    now = shown_beside(state, point)
    shown = [label.get(choice, -1) for choice in choices]
    # An answer in the same form can be compared with the earlier one.
    return now if now and shown != [label[choice] for choice in now] else choices


def _subject(state: State, one: RowAnswer | RowQuestion) -> object:
    """What a question asks: the class of a point, or whether two points are of one class."""
    question = one.question if isinstance(one, Answer) else one
    return question.key if state.n_choices is not None else question.left


def _times_asked(state: State) -> Counter[object]:
    return Counter(_subject(state, one) for one in state.answers)


def _is_waiting(turn: Turn, one: RowAnswer) -> bool:
    """Whether an open question of others asks the same."""
    return _subject(turn.state, one) in {_subject(turn.state, question) for question in turn.pending}


def _again(turn: Turn, places: Sequence[int]) -> RowQuestion | None:
    """The question of the first answer at these positions that was asked less than three times."""
    times = _times_asked(turn.state)
    for one in (turn.state.answers[k] for k in places):
        if times[_subject(turn.state, one)] < 3 and not _is_waiting(turn, one):
            return turn.ask(one.left, renewed_choices(turn.state, one.left, one.choices), "doubtful")
    return None
