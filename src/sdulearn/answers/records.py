"""Answers as people gave them: the points that were compared, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from sdulearn.answers.graph import connect, number_questions
from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.errors import InputError
from sdulearn.reading import Reading
from sdulearn.types import Array, Codes, Indices, Mask

# Range of the privacy parameter: below it answers are noise, above it they are never flipped.
EPSILONS = (1e-3, 100.0)
# Answers about two points, as words and as answers to a question with one choice.
PAIR_WORDS: dict[str, int | str] = {"same": 0, "different": "none", "unsure": "unsure"}

# Kind of a question that a machine answered and a person is asked again.
AUDIT = "audit"

# A point: its row number in an Asker, its id in a log.
Point = TypeVar("Point", bound=int | str)


@dataclass(frozen=True)
class BadRow:
    """A row that could not be read.

    Attributes
    ----------
    line : int
        Line number of the row.
    reason : str
        What is wrong with it.
    """

    line: int
    reason: str


class Answer(NamedTuple, Generic[Point]):
    """A question and its answer; the same record in a log, in an Asker and in a session."""

    left: Point  # the point that is asked about
    choices: tuple[Point, ...]  # the points it was compared with; one in a pair question
    said: int | str  # position of the choice of the same class, "none" or "unsure"
    annotator: str = ""  # who answered; empty where not known
    kind: str = ""  # why it was asked, as the design calls it
    number: int = 0  # number of the answer within its session
    rank: int | None = None  # place of ``left`` in the random order of all points
    epsilon: float | None = None  # privacy of the answer
    time: str = ""  # when it was first given, in UTC
    session: str = ""  # start of the program in which it was given
    line: int = 0  # line in the log
    comment: str = ""  # free text
    seconds: float | None = None  # how long it took
    probability: float | None = None  # probability that it is right, as stated by the annotator
    cost: float | None = None  # cost of an answer by a machine

    @property
    def right(self) -> Point:
        """The second point of a pair."""
        return self.choices[0]

    @property
    def key(self) -> tuple[str, int]:
        """Unique key of the answer, also among logs that are merged."""
        return self.session, self.number

    @property
    def sign(self) -> int:
        """The answer as a code: +1 same class as a choice, -1 as none of them, 0 unsure."""
        return {"none": DISSIMILAR, "unsure": UNSURE}.get(str(self.said), SIMILAR)

    @property
    def word(self) -> str:
        """The answer as a word for pairs."""
        return {SIMILAR: "same", DISSIMILAR: "different", UNSURE: "unsure"}[self.sign]

    @property
    def spoken(self) -> int | str:
        """The answer as written to a log: the word for pairs."""
        return self.said if len(self.choices) > 1 else self.word

    @property
    def picked(self) -> Point | None:
        """The choice of the same class."""
        return self.choices[self.said] if isinstance(self.said, int) else None

    @property
    def asked(self) -> tuple[Point, ...]:
        """The question, independent of the order of its choices, or of the points of a pair."""
        if len(self.choices) > 1:
            return self.left, *sorted(self.choices)
        return tuple(sorted((self.left, self.right)))

    def pairs(self) -> list[tuple[Point, Point, int]]:
        """Return the answer as pairs: "same" with the choice, or "different" from each of them."""
        if self.picked is not None:
            return [(self.left, self.picked, SIMILAR)]
        return [(self.left, choice, DISSIMILAR) for choice in self.choices if self.said == "none"]


def given_pairs(answers: Sequence[Answer[Point]]) -> list[tuple[int, Point, Point, int]]:
    """Return the pairs that answers imply: number of the answer, both points and the code."""
    pairs = [(k, *pair) for k, answer in enumerate(answers) for pair in answer.pairs()]
    # A pick adds "different" only for choices not known to differ from it: a wrong pick is one wrong pair.
    points = dict.fromkeys(point for answer in answers for point in (answer.left, *answer.choices))
    place = {point: k for k, point in enumerate(points)}
    same = [(place[a], place[b]) for _, a, b, code in pairs if code == SIMILAR]
    group = dict(zip(points, connect(np.array(same, dtype=np.intp).reshape(-1, 2), len(place)).tolist(), strict=True))
    apart = {frozenset((group[a], group[b])) for _, a, b, code in pairs if code == DISSIMILAR}
    for k, answer in enumerate(answers):
        if answer.picked is not None:
            rest = [other for other in answer.choices if group[other] != group[answer.picked]]
            rest = [other for other in rest if frozenset((group[answer.picked], group[other])) not in apart]
            pairs += [(k, answer.left, other, DISSIMILAR) for other in rest]
    return sorted(pairs, key=lambda pair: pair[0])


def read_said(answer: object, n_choices: int, *, positions: bool) -> int | str | None:
    """Read an answer given as a word, a bool or a position; return None for anything else."""
    if isinstance(answer, (bool, np.bool_)):
        answer = "same" if answer else "different"
    if isinstance(answer, str):
        said = PAIR_WORDS.get(answer) if n_choices == 1 else None
        return answer if said is None and positions and answer in ("none", "unsure") else said
    # In pair answers of other programs 0 is not the first choice.
    is_position = positions and isinstance(answer, (int, np.integer)) and 0 <= answer < n_choices
    return int(answer) if is_position else None  # type: ignore[call-overload]


def is_epsilon(value: object) -> TypeGuard[float]:
    """Return whether a value is a number in the range of the privacy parameter; bools are not."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and bool(EPSILONS[0] <= value <= EPSILONS[1])  # type: ignore[operator]


def flip_rate(epsilon: float) -> float:
    """Return the probability of flipping an answer before storage: ``1 / (1 + exp(epsilon))``.

    Parameters
    ----------
    epsilon : float
        Privacy of one answer, from 0.001 to 100; the smaller, the more private.

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
    if not is_epsilon(epsilon):
        low, high = EPSILONS
        raise InputError(f"`epsilon` must be a number above 0, from {low:g} to {high:g}; got {str(epsilon)[:40]}.")
    return float(1 / (1 + np.exp(epsilon)))


@dataclass(frozen=True)
class Answers:
    """Answers by id, and how the file or frame was read.

    Attributes
    ----------
    name : str
        Name of the file or source.
    ids : object array of shape (n_answers, 2)
        The two ids of each answer, as text.
    answers, lines : int array of shape (n_answers,)
        +1 similar, -1 dissimilar, 0 unsure; line in the file, or number of the row or item from 1.
    weights : array of shape (n_answers,)
        Weights; 1 where none are given.
    annotators, times : object array of shape (n_answers,) or None
        Who answered and when, as written in the file.
    columns : dict
        Which column was read as ``id_a``, ``id_b``, ``label`` and so on.
    words : dict
        Meaning and count of each word: ``{"1": (1, 58), "0": (-1, 42)}``.
    bad_rows : tuple of BadRow
        Rows left out.
    format : str
        Format of the file, such as ``"csv"``, ``"answer_log"`` or ``"prodigy"``.
    n_unanswered : int
        Number of questions in the file without an answer.
    kinds : object array of shape (n_answers,) or None
        In a log: why each question was asked, "random" or as the design says, or empty.
    drawn : bool array of shape (n_answers,) or None
        With ``kinds``: whether each question is about a point of a random sample: drawn at random, or chosen but
        before the last random one in the random order.
    n_unranked : int
        Number of chosen questions whose points have no known place in that order.
    epsilon : float or None
        Privacy of a log: its answers were flipped with probability 1 / (1 + exp(epsilon)).
    seconds, certainty : array of shape (n_answers,) or None
        How long each answer took, and its stated probability of being right, from 0.5 to 1.
    questions : int array of shape (n_answers,) or None
        Number of the question of each answer, from 0, where questions showed more than two items.
    nearer : object array of shape (n_forced_choices, 3) or None
        Forced choices: an item, the one it was said to be nearer to, and the other. They are no answers about pairs.
    reading : Reading or None
        How the table of a log was read, as in :func:`sdulearn.fit_table`.
    audits : dict or None
        By annotator: number of answers asked again, and number of those answered differently.
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
    kinds: NDArray[np.object_] | None = None
    drawn: Mask | None = None
    n_unranked: int = 0
    epsilon: float | None = None
    seconds: Array | None = None
    certainty: Array | None = None
    questions: Indices | None = None
    nearer: NDArray[np.object_] | None = None
    reading: Reading | None = None
    audits: dict[str, tuple[int, int]] | None = None

    @property
    def n_questions(self) -> int:
        """Number of answered questions, including "unsure"."""
        return len(self.answers) if self.questions is None else len(np.unique(self.questions))

    @property
    def together(self) -> Codes | None:
        """Number of the question of each answer from 1 on, as a graph takes it; None where all questions are pairs."""
        # A log leaves out pairs that follow from others.
        if self.questions is None or self.kinds is not None or self.n_questions == len(self.answers):
            return None
        return self.questions.astype(np.int64) + 1

    @property
    def n_classes(self) -> int | None:
        """Number of classes found by the match questions of a log; None without such questions.

        The first pick of a point is its class; a point unlike all choices starts a new one.
        """
        if self.questions is None or self.kinds is None:
            return None
        sure = self.answers != UNSURE
        points, ends = np.unique(self.ids[sure].astype(str), return_inverse=True)
        ends = ends.reshape(-1, 2)[self.answers[sure] == SIMILAR]
        first = np.unique(ends[:, 0], return_index=True)[1]
        return len(np.unique(connect(ends[first], len(points))))

    @property
    def annotator_names(self) -> tuple[str, ...]:
        """Who answered, in the order of their first answers."""
        names = [] if self.annotators is None else self.annotators.tolist()
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def annotator_numbers(self) -> Codes:
        """Annotator of each answer: k for the k-th of ``annotator_names``, 0 where not known."""
        if self.annotators is None:
            return np.zeros(len(self.answers), dtype=np.int64)
        numbers = {name: k for k, name in enumerate(self.annotator_names, 1)}
        return np.array([numbers.get(name, 0) for name in self.annotators], dtype=np.int64)

    @property
    def n_chosen(self) -> int:
        """Number of questions that are not known to be random."""
        if self.kinds is None:
            return 0
        chosen = self.kinds != "random"
        return int(chosen.sum()) if self.questions is None else len(np.unique(self.questions[chosen]))

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


def some_answers(answers: Answers, kept: Mask) -> Answers:
    """Return some of the answers, as if the file held no others."""
    columns: dict[str, Any] = {name: value for name, value in vars(answers).items() if isinstance(value, np.ndarray)}
    return replace(answers, **{name: value[kept] for name, value in columns.items() if name != "nearer"})


def random_ends(answers: Answers, ends: Indices, used: Indices | Mask) -> Mask | None:
    """Return which ends of answers belong to a random sample; None where all are random pairs."""
    if answers.kinds is None or answers.drawn is None:
        return None
    drawn = answers.drawn[used]
    questions, _ = number_questions(ends, int(ends.max(initial=-1)) + 1)
    # A linked design compares a point with a chosen example; points of random pairs occur only once.
    loose = (np.bincount(questions.ravel())[ends] == 1).all(axis=1)
    marked = np.column_stack([drawn, drawn & loose])
    return None if loose.all() and np.isin(ends, ends[marked]).all() else marked
