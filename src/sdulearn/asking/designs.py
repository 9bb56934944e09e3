"""Which question next.

``random``: disjoint pairs in a random order of the points.
``linked``, for two classes: a new point against an example of its likeliest class. ``match``: against an example of
every class found so far, the likeliest first. In both,

- a point that answers exclude from some classes is asked about again until its class is known,
- a share of the points comes in random order, whatever the model says (kind "random"),
- a share of the questions checks earlier answers (kinds "repeat", "triangle", "doubtful"),
- at first, points that stand for many others ("explore"), until these bring no new classes,
- then points that the model is unsure of ("linked").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sdulearn.asking.records import Question
from sdulearn.errors import NothingToAskError
from sdulearn.types import Array, Mask

if TYPE_CHECKING:
    from sdulearn.asking.state import State

# Checks begin when there is something to check.
FIRST_CHECK = 12
CHECKS = ("repeat", "doubtful", "triangle")
LEAST_EXPLORED = 12


class Turn(NamedTuple):
    """Somebody wants a question."""

    state: State  # the answers so far
    pending: Sequence[Question]  # questions that others have before them
    annotator: str  # who asks for one
    number: int  # number of the question
    rng: np.random.Generator  # depends on the seed and the number alone
    random_share: float  # share of the questions about points in random order
    check_share: float  # share of the questions that check earlier answers
    closed: frozenset[int]  # points that this annotator must not be asked about

    @property
    def busy(self) -> set[int]:
        """New points in questions that others have before them."""
        return {question.left for question in self.pending}

    @property
    def waiting(self) -> set[tuple[int, ...]]:
        """What these questions ask."""
        return {question.asked for question in self.pending}

    def ask(self, left: int, choices: Sequence[int], kind: str) -> Question:
        """A question of this turn's number."""
        compared = tuple(int(point) for point in choices)
        return Question(int(left), compared, kind, self.number, int(self.state.points.position[left]))


def next_random(turn: Turn) -> Question:
    """The next of the disjoint pairs, or a check of an earlier one."""
    if _due(turn, ("repeat",), turn.check_share) and (check := _repeat(turn)):
        return check
    order = turn.state.points.order
    used = turn.state.asked | turn.closed | turn.busy | {question.right for question in turn.pending}
    # Pairs are (0, 1), (2, 3), ... of the order: one that holds a used point is used.
    for k in range(0, len(order) - 1, 2):
        if order[k] not in used and order[k + 1] not in used:
            return turn.ask(order[k], [order[k + 1]], "random")
    raise NothingToAskError("All points are in a pair already: no disjoint random pair is left.")


def next_linked(turn: Turn) -> Question:
    """The next question of the linked or the match design."""
    for question in _by_priority(turn):
        if question is not None:
            return question
    raise NothingToAskError("The class of every point that can be asked about is known: nothing is left to ask.")


def _by_priority(turn: Turn) -> Iterator[Question | None]:
    """What to ask, the first that is possible; None is not."""
    state = turn.state
    if not state.classes.members:
        yield _first(turn)
    yield _under_way(turn)
    # A wrong answer that opened a class splits one in two.
    yield _again(turn, state.unconfirmed)
    if len(state.answers) >= FIRST_CHECK and _due(turn, CHECKS, turn.check_share):
        # The one asked least first.
        for kind in sorted(CHECKS, key=lambda kind: (state.kinds[kind], kind != "repeat")):
            yield _check(turn, kind)
    if _due(turn, ("random",), turn.random_share):
        yield _random_point(turn)
    yield _explore(turn) if still_exploring(state) else _uncertain(turn)
    yield _random_point(turn)


def _check(turn: Turn, kind: str) -> Question | None:
    """A question that checks earlier answers; match questions have no triangles."""
    if kind == "repeat":
        return _repeat(turn)
    if kind == "doubtful":
        return _again(turn, turn.state.doubtful)
    return None if turn.state.MATCH else _triangle(turn)


def _due(turn: Turn, kinds: Sequence[str], share: float) -> bool:
    """Whether questions of some kinds fall short of their share."""
    asked = sum(turn.state.kinds[kind] for kind in kinds) + sum(q.kind in kinds for q in turn.pending)
    total = len(turn.state.answers) + len(turn.pending) + 1
    return asked < int(share * total)


def _first(turn: Turn) -> Question:
    """Two points that stand for many."""
    points = turn.state.points
    first = int(np.argmin(points.distances.sum(axis=1)))
    free = _free(turn)
    free[first] = False
    gain = np.where(free, representation_gain(points.distances, points.distances[first]), -1.0)
    return turn.ask(points.candidates[np.argmax(gain)], [points.candidates[first]], "explore")


def _under_way(turn: Turn) -> Question | None:
    """A point that is in no class yet, against the classes that are left."""
    state = turn.state
    closed = state.given_up | turn.busy
    for point in state.classes.excluded:
        if point not in closed:
            kind = next(one.kind for one in state.answers if point in (one.left, *one.choices))
            return ask_about(turn, point, kind if kind in ("random", "explore") else "linked")
    return None


def ask_about(turn: Turn, point: int, kind: str) -> Question:
    """A point against an example of its likeliest class, or of all classes that it may be in."""
    state = turn.state
    out = state.classes.excluded.get(point, set())
    log_p = state.log_probabilities(np.array([point]))[0]
    rest = sorted((k for k in state.numbers if k not in out), key=lambda k: -log_p[k])
    return turn.ask(point, [example(state, k) for k in rest[: None if state.MATCH else 1]], kind)


def example(state: State, number: int) -> int:
    """The trusted point nearest to the centre of the first 1, 2, 4, ... points."""
    members = state.classes.members[number]
    usable = [point for point in members if point in state.trusted]
    if not usable:
        # With two classes "different from the other one" says as much.
        return state.founders[0]
    early = np.array(members[: 1 << (len(members).bit_length() - 1)])
    centre = state.points.coordinates(early).mean(axis=0)
    distance = np.linalg.norm(state.points.coordinates(np.array(usable)) - centre, axis=1)
    return usable[int(np.argmin(distance))]


def examples(state: State, number: int) -> list[int]:
    """Points that may stand for a class: the first example, trusted ones, then the likeliest."""
    members = state.classes.members[number]
    likely = state.log_probabilities(np.array(members))[:, number]
    order = sorted(range(len(members)), key=lambda k: (members[k] not in state.trusted, -likely[k]))
    first = example(state, number)
    return [first, *(members[k] for k in order if members[k] != first)]


def _random_point(turn: Turn) -> Question | None:
    """The next point of the random order whose class is not known."""
    state = turn.state
    closed = state.asked | turn.busy
    for point in state.points.order[state.n_sampled :]:
        if int(point) not in closed:
            return ask_about(turn, int(point), "random")
    return None


def still_exploring(state: State) -> bool:
    """Whether the last explored points opened classes, or are too few."""
    label = state.classes.label
    explored = list(dict.fromkeys(r.left for r in state.answers if r.kind == "explore" and r.left in label))
    if len(explored) < LEAST_EXPLORED or len(state.numbers) < 2:
        return True
    if state.classes.complete:
        return False
    latest = explored[-max(LEAST_EXPLORED, len(state.numbers)) :]
    return not set(state.founders).isdisjoint(latest)


def _explore(turn: Turn) -> Question | None:
    """The point that stands for most of those that no known point stands for."""
    points = turn.state.points
    free = _free(turn)
    if not free.any():
        return None
    known = points.coordinates(np.array(sorted(turn.state.asked | turn.busy)))
    Z = points.candidate_coordinates
    square = (Z**2).sum(axis=1)[:, None] + (known**2).sum(axis=1) - 2 * Z @ known.T
    nearest = np.sqrt(np.maximum(square.min(axis=1), 0))
    gain = np.where(free, representation_gain(points.distances, nearest), -1.0)
    return ask_about(turn, int(points.candidates[np.argmax(gain)]), "explore")


def representation_gain(distances: Array, nearest: Array) -> Array:
    """How much nearer all points come to a known one, by the point that is asked about."""
    return np.maximum(nearest[None, :].astype(distances.dtype) - distances, 0).sum(axis=1)


def _uncertain(turn: Turn) -> Question | None:
    """The point that the model is least sure of."""
    state = turn.state
    free = _free(turn)
    if not free.any() or state.model is None:
        return None
    # Probabilities of the classes, the likeliest last.
    rising = np.sort(np.exp(state.of_candidates), axis=1)
    score = np.where(free, 1 - (rising[:, -1] - rising[:, -2]), -1.0)
    return ask_about(turn, int(state.points.candidates[np.argmax(score)]), "linked")


def _free(turn: Turn) -> Mask:
    """Candidates that nobody was asked about."""
    used = np.array(sorted(turn.state.asked | turn.busy), dtype=np.intp)
    return ~np.isin(turn.state.points.candidates, used)


def _repeat(turn: Turn) -> Question | None:
    """A question drawn at random, asked again; by somebody else, where there is one."""
    times = Counter(one.asked for one in turn.state.answers)
    once = [one for one in turn.state.answers if times[one.asked] == 1 and one.sign]
    first = [one for one in once if one.asked not in turn.waiting]
    others = [one for one in first if one.annotator != turn.annotator]
    # Not what is still remembered.
    pool = others or first[:-3]
    if not pool:
        return None
    one = pool[turn.rng.integers(len(pool))]
    return turn.ask(one.left, one.choices, "repeat")


def _triangle(turn: Turn) -> Question | None:
    """Two points that were compared with the same third one, drawn at random."""
    decided = [one for one in turn.state.answers if one.sign]
    compared: dict[int, set[int]] = {}
    for one in decided:
        compared.setdefault(one.right, set()).add(one.left)
    one = decided[turn.rng.integers(len(decided))]
    others = sorted(compared[one.right] - {one.left})
    if not others:
        return None
    question = turn.ask(one.left, [others[turn.rng.integers(len(others))]], "triangle")
    return None if any(one.asked == question.asked for one in turn.state.answers) else question


def _again(turn: Turn, places: Sequence[int]) -> Question | None:
    """The question of the first of some answers, asked three times at most."""
    answers = turn.state.answers
    times = Counter(one.asked for one in answers)
    for one in (answers[k] for k in places):
        if times[one.asked] < 3 and one.asked not in turn.waiting:
            return turn.ask(one.left, one.choices, "doubtful")
    return None
