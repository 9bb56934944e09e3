"""Questions, and answers as people gave them.

A question shows a few items; an answer says which of them belong together:

======== ============================================ ====================================================
form     items                                        reply
======== ============================================ ====================================================
"pair"   a new item and an example, or any two        "same" or "different", or a bool
"match"  a new item, and one example of each class    position in ``choices``, or "none"
"sort"   three to five, some of them examples         a list with the group of each item, None if not placed
"nearer" a new item, and examples of two classes      position in ``choices`` of the one it is more like
======== ============================================ ====================================================

Every reply may be "unsure". ``read_reply`` is the only place that reads a reply, whether it comes from the page, from
Python, from another program or from a log; ``implied_pairs`` the only one that turns answers into pairs. "Nearer"
implies no pair: a person who is not offered "none" has to choose one of two examples, even if the item is in neither
of their classes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Generic, Literal, NamedTuple, TypeGuard, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from sdulearn.answers.graph import classes_of_examples, number_questions
from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.errors import InputError, shortened
from sdulearn.reading import Reading
from sdulearn.types import Array, Codes, Indices, Mask

# Range of the privacy parameter: below it answers are noise, above it they are never flipped.
EPSILONS = (1e-3, 100.0)
# Why a machine's question is asked again, of a person.
AUDIT = "audit"

Form = Literal["pair", "match", "sort", "nearer"]
FORMS: tuple[Form, ...] = get_args(Form)
# Fewest and most items of a question; a match question shows as many examples as there are classes.
N_ITEMS: dict[Form, tuple[int, float]] = {"pair": (2, 2), "match": (2, np.inf), "sort": (3, 5), "nearer": (3, 3)}
# An item: its row number in an Asker, its id in a log.
Point = TypeVar("Point", bound=int | str)
Other = TypeVar("Other", bound=int | str)
# Number of the group of each item, in the order of their first items; None if an item was not placed.
Groups = tuple[int | None, ...]


class Question(NamedTuple, Generic[Point]):
    """Items to compare.

    Attributes
    ----------
    form : {"pair", "match", "sort", "nearer"}
        What is asked: are the two of one class; which example is of the class of the first item; which items
        belong together; which of two examples is the first item more like.
    items : tuple
        Row numbers in an :class:`Asker`, ids in a log; except when sorting, the first is the one asked about.
    why : str
        Why it is asked, such as "random", "uncertain" or "repeat". Estimates use only what their assumptions allow.
    rank : int, tuple or None
        Place of the item asked about in the random order of all items; in a question to sort, of each item, None
        for examples.
    """

    form: Form
    items: tuple[Point, ...]
    why: str = "uncertain"
    rank: int | tuple[int | None, ...] | None = None

    @property
    def left(self) -> Point:
        """The first item."""
        return self.items[0]

    @property
    def right(self) -> Point:
        """The second item."""
        return self.items[1]

    @property
    def choices(self) -> tuple[Point, ...]:
        """The items that the first one is compared with."""
        return self.items[1:]

    @property
    def key(self) -> tuple[object, ...]:
        """What is asked, independent of the order in which it is shown."""
        first = () if self.form in ("pair", "sort") else self.items[:1]
        return (self.form, *first, *sorted(self.items[len(first) :]))

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """Rank of each item; None for examples, and if it is not known."""
        return self.rank if isinstance(self.rank, tuple) else (self.rank, *[None] * len(self.choices))

    def about(self, items: Sequence[Other]) -> Question[Other]:
        """Return the same question with other names for its items.

        Parameters
        ----------
        items : sequence
            Ids instead of row numbers, for example.

        Returns
        -------
        Question
            With these items.
        """
        return Question(self.form, tuple(items), self.why, self.rank)


class Given(NamedTuple):
    """When, where and how an answer was given."""

    time: str = ""  # when it was first given, in UTC
    session: str = ""  # start of the program in which it was given
    number: int = 0  # within its session
    line: int = 0  # in the log
    comment: str = ""
    seconds: float | None = None  # how long it took
    probability: float | None = None  # that it is right, as stated by the annotator
    cost: float | None = None  # of an answer by a machine
    epsilon: float | None = None  # privacy of the answer


class Answer(NamedTuple, Generic[Point]):
    """An answer; the same record in a log, in an Asker and in a session."""

    question: Question[Point]
    groups: Groups | None  # by item; None for "nearer"
    nearer: int | None = None  # position in ``choices``; None if unsure
    annotator: str = ""  # who answered; empty where not known
    given: Given = Given()

    @property
    def left(self) -> Point:
        """The first item of the question."""
        return self.question.left

    @property
    def right(self) -> Point:
        """The second item of the question."""
        return self.question.right

    @property
    def choices(self) -> tuple[Point, ...]:
        """The items that the first one was compared with."""
        return self.question.choices

    @property
    def key(self) -> tuple[str, int]:
        """Unique key of the answer, also among logs that are merged."""
        return self.given.session, self.given.number

    @property
    def is_unsure(self) -> bool:
        """Whether it says nothing."""
        return self.nearer is None if self.groups is None else set(self.groups) == {None}

    @property
    def sign(self) -> int:
        """The answer as a code: +1 if some items belong together, -1 if none do; 0 if unsure, and for "nearer"."""
        groups = self.groups or ()
        n_placed = len(groups) - groups.count(None)
        return UNSURE if not n_placed else SIMILAR if len({*groups, None}) - 1 < n_placed else DISSIMILAR

    @property
    def picked(self) -> Point | None:
        """The choice of the same class, in an answer to a pair or match question."""
        if self.question.form in ("sort", "nearer") or self.sign != SIMILAR:
            return None
        assert self.groups is not None
        return self.choices[self.groups[1:].index(0)]

    @property
    def reply(self) -> int | str | list[int | None]:
        """The answer as :func:`read_reply` reads it."""
        if self.is_unsure:
            return "unsure"
        if self.groups is None:
            assert self.nearer is not None
            return self.nearer
        if self.question.form == "sort":
            return list(self.groups)
        if self.question.form == "pair":
            return "same" if self.picked is not None else "different"
        return "none" if self.picked is None else self.choices.index(self.picked)

    @property
    def verdict(self) -> object:
        """The answer, independent of the order in which the items were shown."""
        if self.groups is None:
            return None if self.nearer is None else self.choices[self.nearer]
        together: dict[int | None, set[Point]] = {}
        for item, group in zip(self.question.items, self.groups, strict=True):
            together.setdefault(group, set()).add(item)
        return frozenset(frozenset(items) for group, items in together.items() if group is not None)

    def with_reply(self, reply: object) -> Answer[Point]:
        """Return another answer to the same question, by the same person."""
        return read_reply(self.question, reply)._replace(annotator=self.annotator, given=self.given)

    def about(self, items: Sequence[Other]) -> Answer[Other]:
        """Return the same answer with other names for the items."""
        return Answer(self.question.about(items), *self[1:])

    def pairs(self) -> list[tuple[Point, Point, int]]:
        """Return the pairs that it implies: both items, and +1 for "same" or -1 for "different".

        A match answer is about the pairs of its first item alone; sorting is about all pairs of the items that were
        placed, and each of at least three is the first of some pair.
        """
        if self.groups is None:
            return []
        every = zip(self.question.items, self.groups, strict=True)
        placed = [(item, group) for item, group in every if group is not None]
        codes = {True: SIMILAR, False: DISSIMILAR}
        if self.question.form != "sort":
            return [(placed[0][0], item, codes[group == placed[0][1]]) for item, group in placed[1:]]
        n = len(placed)
        order = [(i, j) if j - i <= n // 2 else (j, i) for i in range(n) for j in range(i + 1, n)]
        return [(placed[i][0], placed[j][0], codes[placed[i][1] == placed[j][1]]) for i, j in order]


_REPLIES: dict[Form, str] = {
    "pair": '"same" or "different" (or True, False), or "unsure"',
    "match": 'a position in `choices` from 0 to {last}, "none" or "unsure"',
    "sort": 'a list with the group of each of the {n} items, None for items that were not placed, or "unsure"',
    "nearer": 'a position in `choices`, 0 or 1, or "unsure"',
}


def read_reply(question: Question[Point], reply: object) -> Answer[Point]:
    """Return the answer that a reply gives; an InputError says what it may be.

    Parameters
    ----------
    question : Question
        The question.
    reply : object
        As the form of the question wants it; except for "nearer" also a list with the group of each item.

    Returns
    -------
    Answer
        Without annotator, time and number.
    """
    check_question(question)
    form, n = question.form, len(question.items)
    if isinstance(reply, np.ndarray | np.generic):
        reply = reply.tolist()
    groups: Groups | None = None
    if isinstance(reply, str):
        words: dict[str, Groups] = {"unsure": (None,) * n}
        if form == "pair":
            words |= {"same": (0, 0), "different": (0, 1)}
        if form == "match":
            words["none"] = tuple(range(n))
        if form == "nearer" and reply == "unsure":
            return Answer(question, None)
        groups = words.get(reply)
    elif isinstance(reply, bool):
        groups = (0, int(not reply)) if form == "pair" else None
    elif isinstance(reply, int):
        if form == "nearer" and reply in (0, 1):
            return Answer(question, None, reply)
        if form == "match" and 0 <= reply < n - 1:
            groups = _numbered([0, *(-(k != reply) * (k + 1) for k in range(n - 1))])
    elif isinstance(reply, list | tuple) and len(reply) == n and form != "nearer":
        groups = _groups_of(form, reply)
    if groups is None:
        ways = _REPLIES[form].format(n=n, last=n - 2)
        raise InputError(f"An answer to a question of the form {form!r} is {ways}; got {shortened(repr(reply))}.")
    return Answer(question, groups)


def _groups_of(form: Form, labels: Sequence[object]) -> Groups | None:
    """Return groups given by their labels; None if the form does not allow them."""
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if any(
        isinstance(label, bool) or not (label is None or isinstance(label, int | str)) or label == "" for label in plain
    ):
        return None
    groups = _numbered(plain)
    placed = [group for group in groups if group is not None]
    if form != "sort" and len(placed) not in (0, len(groups)):
        return None
    if form == "match" and placed and len(set(groups[1:])) < len(groups) - 1:
        # Its examples are of different classes.
        return None
    # An item by itself is compared with nothing.
    return groups if len(placed) > 1 else (None,) * len(groups)


def _numbered(labels: Sequence[Hashable | None]) -> Groups:
    """Number groups in the order of their first items."""
    numbers: dict[Hashable, int] = {}
    return tuple(None if label is None else numbers.setdefault(label, len(numbers)) for label in labels)


def check_question(question: Question[Point]) -> None:
    """Refuse a question of an unknown form, or with too few or repeated items."""
    form, items = question.form, question.items
    if form not in FORMS:
        raise InputError(f"The form of a question is {', '.join(FORMS)}; got {shortened(repr(form))}.")
    low, high = N_ITEMS[form]
    if not low <= len(items) <= high:
        wanted = f"{low}" if low == high else f"at least {low}" if high == np.inf else f"{low} to {high}"
        raise InputError(f"A question of the form {form!r} has {wanted} items; got {len(items)}.")
    if len(set(items)) < len(items):
        raise InputError(f"The items of a question must differ; got {shortened(repr(items))}.")
    if isinstance(question.rank, tuple) and (form != "sort" or len(question.rank) != len(items)):
        raise InputError("`rank` is one number; in a question to sort, one number or None per item.")


class PairTable(NamedTuple):
    """The pairs that answers imply; answers \"unsure\" and \"nearer\" imply none."""

    ends: NDArray[Any]  # (n_pairs, 2) items
    signs: Codes  # +1 same, -1 different, 0 unsure
    annotators: Codes  # numbers of the annotators
    answers: Indices  # position of the answer that implies it

    @property
    def questions(self) -> Codes:
        """Number of the question of each pair, from 1; 0 if it implies no other pair."""
        return np.where(np.bincount(self.answers)[self.answers] > 1, self.answers + 1, 0)


def implied_pairs(answers: Sequence[Answer[Point]], unsure: bool = False) -> PairTable:
    """Return all pairs that answers imply; with ``unsure`` also the first two items of such answers, of code 0."""
    numbers = number_annotators(answers)
    pairs = [(k, *pair) for k, answer in enumerate(answers) for pair in answer.pairs()]
    for k, answer in enumerate(answers if unsure else ()):
        if answer.is_unsure and answer.groups is not None:
            pairs.append((k, answer.left, answer.right, UNSURE))
    pairs.sort(key=itemgetter(0))
    ends = np.empty((len(pairs), 2), dtype=object)
    ends[:] = [pair[1:3] for pair in pairs] or ends
    if not any(isinstance(answer.left, str) for answer in answers[:1]):
        ends = ends.astype(np.intp)
    of = np.array([k for k, *_ in pairs], dtype=np.intp)
    who = np.array([numbers[answers[k].annotator] for k in of.tolist()], dtype=np.int64)
    return PairTable(ends, np.array([sign for *_, sign in pairs], dtype=np.int64), who, of)


def number_annotators(answers: Sequence[Answer[Point]]) -> dict[str, int]:
    """Number the annotators from 1 in the order of their first answers; without a name it is 0."""
    names = dict.fromkeys(["", *(answer.annotator for answer in answers)])
    return {name: k for k, name in enumerate(names)}


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
        Weights; 1 if none are given.
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
        Number of the question of each answer, from 0, if a question implies several pairs.
    nearer : object array of shape (n, 3) or None
        Forced choices, which imply no pair: ids of the item, of the example it is more like, and of the other one.
    reading : Reading or None
        How the table of a log was read, as in :func:`sdulearn.fit_table`.
    audits : dict or None
        By annotator: number of answers asked again, and number of those answered differently.
    stated_classes : int or None
        Number of classes that was given when the questions were asked.
    unused_columns : dict
        The other columns of a file of answers, and whether each may say who answered.
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
    stated_classes: int | None = None
    unused_columns: dict[str, bool] = field(default_factory=dict)

    @property
    def n_questions(self) -> int:
        """Number of answered questions, including "unsure"."""
        return len(self.answers) if self.questions is None else len(np.unique(self.questions))

    @property
    def n_classes(self) -> int | None:
        """Number of classes as stated, or found by questions about several items; None without such questions.

        See :func:`~sdulearn.answers.graph.classes_of_examples`.
        """
        if self.stated_classes or self.questions is None or self.kinds is None:
            return self.stated_classes
        sure = self.answers != UNSURE
        points, ends = np.unique(self.ids[sure].astype(str), return_inverse=True)
        question = np.unique(self.questions[sure], return_inverse=True)[1]
        return classes_of_examples(ends.reshape(-1, 2), self.answers[sure], question, len(points)).value

    @property
    def annotator_names(self) -> tuple[str, ...]:
        """Who answered, in the order of their first answers."""
        names = [] if self.annotators is None else self.annotators.tolist()
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def annotator_numbers(self) -> Codes:
        """Annotator of each answer: k for the k-th of ``annotator_names``, 0 if not known."""
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
    columns.pop("nearer", None)
    return replace(answers, **{name: value[kept] for name, value in columns.items()})


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
