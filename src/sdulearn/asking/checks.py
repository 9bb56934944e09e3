"""Questions that check earlier answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from sdulearn.asking.records import Question, Record
from sdulearn.asking.state import State
from sdulearn.asking.turn import Turn


def checks_in_turn(turn: Turn) -> list[Callable[[Turn], Question | None]]:
    """Repeats, triangles (with two classes) and doubtful answers, the one asked least first."""
    kinds = turn.state.kinds
    checks = {"repeat": repeat, "doubtful": _doubtful}
    if turn.state.limit == 2:
        checks["triangle"] = _triangle
    return [checks[kind] for kind in sorted(checks, key=lambda kind: (kinds[kind], kind != "repeat"))]


def repeat(turn: Turn) -> Question | None:
    """A question drawn at random, asked again; by somebody else, where there is one."""
    first = _first_answers(turn)
    others = [r for r in first if r.annotator != turn.annotator]
    # Not what is still remembered.
    pool = others or first[:-3]
    if not pool:
        return None
    record = pool[turn.rng.integers(len(pool))]
    return turn.ask(record.left, record.right, "repeat")


def _first_answers(turn: Turn) -> list[Record]:
    """Answers to questions that were asked once and that nobody has before them."""
    times = Counter(record.pair for record in turn.state.records)
    asked = [record for record in turn.state.records if times[record.pair] == 1 and record.answer]
    return [record for record in asked if record.pair not in turn.waiting]


def _triangle(turn: Turn) -> Question | None:
    """Two points that were compared with the same third one, drawn at random."""
    told = [record for record in turn.state.records if record.answer]
    compared: dict[int, set[int]] = {}
    for record in told:
        compared.setdefault(record.right, set()).add(record.left)
    one = told[turn.rng.integers(len(told))]
    others = sorted(compared[one.right] - {one.left})
    if not others:
        return None
    other = others[turn.rng.integers(len(others))]
    pair = (min(one.left, other), max(one.left, other))
    asked = any(record.pair == pair for record in turn.state.records)
    return None if asked else turn.ask(one.left, other, "triangle")


def _doubtful(turn: Turn) -> Question | None:
    """The answer least likely to be right, if it is more likely wrong than not; asked three times at most."""
    times = Counter(record.pair for record in turn.state.records)
    for record, right in doubtful_records(turn.state):
        if right < 0.5 and times[record.pair] < 3 and record.pair not in turn.waiting:
            return turn.ask(record.left, record.right, "doubtful")
    return None


def doubtful_records(state: State, least_error: float = 0.05) -> list[tuple[Record, float]]:
    """Answers with the probability that they are right, the least likely first.

    Each point is judged by a model that did not see it, and answers may be wrong even where none was found to be.
    """
    if state.scorer is None or len(state.known) < 10:
        return []
    factors = state.factors(max(state.error, least_error))
    right = factors.propagate(state.held_out, tol=1e-4, max_iter=30).right
    order = np.argsort(right, kind="stable")
    return [(state.known_records[k], float(right[k])) for k in order]
