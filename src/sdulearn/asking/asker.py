"""The Asker: questions out, answers in."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from threading import RLock
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from sdulearn.answers.checks import check_answers
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.records import Answer
from sdulearn.asking import estimates
from sdulearn.asking.designs import Turn, examples, next_linked, next_random
from sdulearn.asking.match import MatchState
from sdulearn.asking.notebook import QuestionCell
from sdulearn.asking.oracles import open_questions
from sdulearn.asking.points import Points
from sdulearn.asking.privacy import Flips, Leak
from sdulearn.asking.records import (
    KINDS,
    Question,
    RowAnswer,
    answered,
    as_columns,
    as_pairs,
    check_answer,
    read_answers,
    read_said,
)
from sdulearn.asking.state import Settings, State, fit_quietly
from sdulearn.errors import InputError, MissingExtraError, NothingToAskError, UndeterminedError
from sdulearn.joint.estimators import PairLogisticRegressionCV
from sdulearn.metrics.accuracy import AccuracyEstimate
from sdulearn.metrics.cross_validation import cross_val_accuracy
from sdulearn.pairs import stack_pairs
from sdulearn.sklearn_private import check_feature_names
from sdulearn.types import Codes, Estimator, MatrixLike, RandomState, Rows

DESIGNS = {"linked": next_linked, "match": next_linked, "random": next_random}
# Penalty and power are chosen anew when the number of answers has grown by this factor.
_FIRST_CHOICE = 12
_GROWTH = 1.5
# A fit starts from the model of so many answers less, at most.
_START_EVERY = 8
# States that are kept: those after each possible answer to some questions.
_KEPT = 16
# The number of questions that stay aside; then the oldest may come again.
_MOST_SKIPPED = 20
# Answers to a match question that are worked out ahead, the likeliest ones.
_PREPARED = 2
# Beyond the answers themselves, so many points show a model of loose pairs how points vary.
_MOST_UNLABELED = 5000
# Where one is held out, five are left for the folds that choose a penalty.
_LEAST_OF_A_KIND = 6


class Asker:
    """Chooses which points to ask about next, takes the answers, and says what they have found.

    What it asks and estimates follows from the points, the seed and the answers: an Asker of the same
    points, seed and answers goes on where another one stopped.

    Parameters
    ----------
    X : array, CSR matrix or frame of shape (n_points, n_features)
        Features of all points. They need not be standardised.
    design : {"linked", "match", "random"}, optional
        "linked", the default for two classes: an informative point against an example of its likeliest
        class. "match", the default for more: against one example of each class found so far. "random",
        the default with ``private``: disjoint random pairs, as in the paper.
    n_classes : int or "auto", default=2
        Number of classes; "auto" finds it: a point that is like none of the examples opens a class.
    random_share : float, default=0.25
        Share of the questions about points in random order: accuracy and shares use these.
    repeat_share : float, default=0.05
        Share of the questions that check earlier answers: repeats, triangles, doubtful answers.
    answers : frame, mapping of columns or list of Answer, optional
        Answers to begin with, as :attr:`answers` gives them; annotator, kind and number if known.
    random_state : int, RandomState or None, default=None
        Seed.
    private : float, optional
        Epsilon, for two classes and the random design: flip each answer with probability
        1 / (1 + exp(private)) before it is stored. Fits allow for the flips, and no point is in two
        answers. The key of the flips is never stored: old answers can only be taken back.
    grown_from : sequence of int, default=()
        Numbers of points that ``X`` had before, where points were added at its end: the random order of
        the first points stays, and goes on with the others.
    seeds : list of row numbers, or of lists of them, optional
        Examples of the first classes of the match design, one or more each.

    Attributes
    ----------
    seed : int
        The seed in use, also where none was given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sdulearn.asking import Asker
    >>> X, y = load_iris(return_X_y=True)
    >>> asker = Asker(X, n_classes="auto", random_state=0)
    >>> for _ in range(60):
    ...     left, choices, *_ = question = asker.next()
    ...     like = [k for k, point in enumerate(choices) if y[point] == y[left]]
    ...     asker.tell(question, like[0] if like else "none")
    >>> len(asker.classes())
    3
    """

    def __init__(
        self,
        X: MatrixLike,
        *,
        design: str | None = None,
        n_classes: int | str = 2,
        random_share: float = 0.25,
        repeat_share: float = 0.05,
        answers: Any = None,
        random_state: RandomState = None,
        private: float | None = None,
        grown_from: Sequence[int] = (),
        seeds: Sequence[int | Sequence[int]] = (),
    ) -> None:
        default = "random" if private is not None else "linked" if n_classes == 2 else "match"
        self.design = design or default
        self.n_classes = n_classes
        _refuse_design(self.design, n_classes, private)
        for name, share in {"random_share": random_share, "repeat_share": repeat_share}.items():
            if not 0 <= share <= 1:
                raise InputError(f"`{name}` must lie between 0 and 1, got `{name}={share!r}`.")
        # None where it is to be found.
        self._limit = None if n_classes == "auto" else int(n_classes)
        # A second flipped answer would halve the protection, and the error rate is known.
        self._shares = (random_share, repeat_share if private is None else 0.0)
        self.private = private
        # The generator that all programs share is left alone.
        self.seed = secrets.randbits(31)
        if random_state is not None:
            self.seed = int(check_random_state(random_state).randint(2**31 - 1))
        self._X = X
        self._points = Points(X, np.random.default_rng(self.seed), grown_from)
        self._seeds = _checked_seeds(seeds, self._points.n_points, self.design)
        if self.design != "random":
            # All questions that explore need them; the first one should not wait.
            _ = self._points.distances
        self._answers = read_answers([] if answers is None else answers, self._points.n_points)
        self._flips = Flips(private, self._answers)
        # What an error calls a point; a program that shows rows of a table gives their ids here.
        self.name_point: Callable[[int], str] = "point {}".format
        self._pending: dict[str, Question] = {}
        self._skipped: list[Question] = []
        self._state_type = MatchState if self.design == "match" else State
        self._states = lru_cache(_KEPT)(self._new_state)
        self._stages = lru_cache(None)(self._new_stage)
        self._lock = RLock()

    def __repr__(self) -> str:
        return f"Asker(design={self.design!r}, n_classes={self.n_classes!r}), {self.n_answers} answers"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """In a notebook it asks; where anywidget is not installed, it says so."""
        try:
            return QuestionCell(self, self._X)._repr_mimebundle_(**options)
        except MissingExtraError as error:
            return {"text/plain": f"{self!r}. To answer here: {error}"}

    def next(self, annotator: str | None = None) -> Question:
        """The question to ask now: the same one until it is answered.

        Parameters
        ----------
        annotator : str, optional
            Who will answer. Each annotator has a question of their own.

        Returns
        -------
        Question
            Two points; a NothingToAskError where no question is left.
        """
        name = annotator or ""
        with self._lock:
            if name not in self._pending:
                self._pending[name] = self._choose(self.given, name)
            return self._pending[name]

    def prepare(self, question: Question, annotator: str | None = None) -> None:
        """Work out ahead, while the question is read, what follows each answer; changes nothing."""
        if self.private is not None:
            return
        for said in (*range(len(question.choices[:_PREPARED])), "none", "unsure"):
            given = answered(question, said, annotator or "")
            self._choose((*self.given, given), given.annotator)

    def tell(self, question: Question, answer: object, annotator: str | None = None) -> None:
        """Take an answer.

        Parameters
        ----------
        question : Question
            A question that :meth:`next` gave; any pair of points does.
        answer : {"same", "different", "unsure"}, bool, int or "none"
            The answer; to a match question the position of the choice that is of the same class,
            "none" or "unsure".
        annotator : str, optional
            Who gave it.
        """
        self.add(self.answer_to(question, answer, annotator))

    def answer_to(self, question: Question, answer: object, annotator: str | None = None) -> RowAnswer:
        """An answer as :meth:`tell` will store it, with ``private`` perhaps the other one."""
        said = read_said(answer, len(question.choices), match=self.design == "match")
        given = answered(question, said, annotator or "")
        with self._lock:
            return self._flips.stored(check_answer(given, self._points.n_points))

    def add(self, answer: RowAnswer) -> None:
        """Take an answer as :meth:`answer_to` gave it, perhaps named anew by a log."""
        with self._lock:
            if any(one.key == answer.key for one in self._answers):
                raise InputError(
                    f"Question {answer.number} is answered already. Change that answer with `change`, or ask for "
                    "the next question."
                )
            self._flips.remember(answer)
            self._answers.append(answer)
            self._skipped = [q for q in self._skipped if q[:2] != answer[:2]]
            self._pending = {who: q for who, q in self._pending.items() if q[:2] != answer[:2]}

    def undo(self, annotator: str | None = None, *, number: int | None = None, session: str = "") -> RowAnswer:
        """Take back the latest answer; as often as there are answers.

        Parameters
        ----------
        annotator : str, optional
            Of this annotator; by default of all.
        number, session : int and str, optional
            Number of its question, and the session of a log that it comes from.

        Returns
        -------
        Answer
            The answer that was taken back.
        """
        with self._lock:
            own = [k for k, one in enumerate(self._answers) if annotator in (None, one.annotator)]
            if number is None and not own:
                raise InputError("There is no answer to undo.")
            answer = self._answers.pop(own[-1] if number is None else self._place(number, session))
            # The open question of the one who gave it followed from what is gone.
            self._pending.pop(answer.annotator, None)
            return answer

    def change(self, number: int, answer: object, session: str = "") -> None:
        """Change an earlier answer.

        Parameters
        ----------
        number : int
            Number of its question.
        answer : {"same", "different", "unsure"}, bool, int or "none"
            The new answer, as in :meth:`tell`.
        session : str, default=""
            The session of a log that it comes from.
        """
        with self._lock:
            place = self._place(number, session)
            old = self._answers[place]
            said = read_said(answer, len(old.choices), match=self.design == "match")
            changed = self._flips.stored(old._replace(said=said))
            self._flips.remember(changed)
            self._answers[place] = changed
            self._pending.pop(changed.annotator, None)

    def merge(self, a: int, b: int) -> list[RowAnswer]:
        """Make two classes one: answers that told them apart now say "same".

        Parameters
        ----------
        a, b : int
            A point of each of the two classes.

        Returns
        -------
        list of Answer
            The answers, as they are changed.
        """
        return self._change_all(self.merging(a, b))

    def merging(self, a: int, b: int) -> list[RowAnswer]:
        """The answers that :meth:`merge` changes, as it changes them."""
        label = self._now.classes.label
        ours = self._class_of(a), self._class_of(b)
        changed = []
        for one in self._answers:
            others = [k for k, point in enumerate(one.choices) if {label.get(one.left), label.get(point)} == set(ours)]
            if one.said == "none" and others:
                changed.append(one._replace(said=others[0]))
        if not changed:
            both = f"{self.name_point(a)} and {self.name_point(b)}"
            raise InputError(f"Nothing to merge: {both} are of one class already, or examples that were given.")
        return changed

    def split(self, points: int | Sequence[int]) -> list[RowAnswer]:
        """Take points out of their class: answers that put them there now say "none".

        Where several points leave, it is asked next whether they are of one class.

        Parameters
        ----------
        points : int or sequence of int
            The points. The first point of a class stays: the others were compared with it.

        Returns
        -------
        list of Answer
            The answers, as they are changed.
        """
        return self._change_all(self.splitting(points))

    def splitting(self, points: int | Sequence[int]) -> list[RowAnswer]:
        """The answers that :meth:`split` changes, as it changes them."""
        leaving = set(np.atleast_1d(np.asarray(points, dtype=np.intp)).tolist())
        changed = [one._replace(said="none") for one in self._answers if one.left in leaving and one.sign > 0]
        if stay := leaving - {one.left for one in changed}:
            raise InputError(
                f"No answer put {self.name_point(min(stay))} into its class, so it cannot leave: others were compared "
                "with it. Take these out instead."
            )
        return changed

    def _change_all(self, changed: list[RowAnswer]) -> list[RowAnswer]:
        for one in changed:
            self.change(one.number, one.said, one.session)
        return changed

    def _class_of(self, point: int) -> int:
        label = self._now.classes.label
        if point not in label:
            raise InputError(f"No answer put {self.name_point(point)} into a class. Name an example of each class.")
        return label[point]

    def members(self, point: int) -> list[int]:
        """Points known to be of the class of a point, as they were found."""
        classes = self._now.classes
        return classes.members.get(classes.label.get(point, -1), [])

    def another_example(self, question: Question, position: int) -> Question:
        """The same question with another example of a class; it is the open one then.

        Parameters
        ----------
        question : Question
            An open question.
        position : int
            Place of the class in its choices.

        Returns
        -------
        Question
            With another point at that place; after the last one comes the first again.
        """
        with self._lock:
            choices = list(question.choices)
            shown = examples(self._now, self._class_of(choices[position]))
            if len(shown) < 2:
                raise InputError("This class has no other example yet.")
            # After the last one comes the first again.
            choices[position] = shown[(shown.index(choices[position]) + 1) % len(shown)]
            changed = question._replace(choices=tuple(choices))
            self._pending = {who: changed if one == question else one for who, one in self._pending.items()}
            return changed

    def skip(self, annotator: str | None = None, *, later: bool = True) -> None:
        """Put the open question aside: :meth:`next` gives another one.

        Parameters
        ----------
        annotator : str, optional
            Whose question it is.
        later : bool, default=True
            Whether nobody gets it now, so that it comes again later; else anybody may get it.
        """
        with self._lock:
            question = self._pending.pop(annotator or "", None)
            if question is not None and later:
                self._skipped = [*self._skipped, question][-_MOST_SKIPPED:]

    @property
    def answers(self) -> Mapping[str, list[Any]]:
        """All answers so far, as columns; match answers have ``choices`` in place of ``right``."""
        return as_columns(self._answers, pairs=self.design != "match")

    @property
    def given(self) -> tuple[RowAnswer, ...]:
        """All answers so far, as records."""
        return tuple(self._answers)

    @property
    def n_answers(self) -> int:
        """Number of answers, those "unsure" included."""
        return len(self._answers)

    def stack(self) -> tuple[Rows, Codes]:
        """Rows and ``y`` for an estimator: two rows an answer, then all points in none.

        Returns
        -------
        rows, y : rows of ``X``, and int array of shape (n_rows, 3)
            As of :func:`~sdulearn.stack_pairs`: columns answer, point and annotator.
        """
        return self._stack(self._answers, None)

    def model(self, estimator: Estimator | None = None) -> Estimator:
        """A classifier, fitted to all answers so far: the one that chooses the questions.

        With more than two classes a ``PairLogisticRegressionCV`` fitted to :meth:`stack` may be far
        worse: here the first point of each class names it.

        Parameters
        ----------
        estimator : estimator, optional
            Fit this one instead, to the rows and ``y`` of :meth:`stack` with at most 5,000 points in
            no answer: a :class:`~sdulearn.PairModelCV`, or a pipeline of a scaler and an estimator.

        Returns
        -------
        PairLogisticRegression or estimator
            Fitted to standardised columns, with coefficients for the columns as given. Two classes
            are -1 and +1, the larger; more are 1, 2, ..., the largest first, as in :meth:`classes`.
            Of random pairs it is a ``PairLogisticRegressionCV``.
        """
        rows, y = self._stack(self._answers, _MOST_UNLABELED)
        if not y[:, 0].any():
            raise UndeterminedError("A model needs answers. Answer more questions.")
        if estimator is not None:
            return estimator.fit(rows, y)
        if self.design == "random":
            return _for_columns(fit_quietly(self._of_random_pairs(rows), rows, y), rows)
        if self._now.model is None:
            raise UndeterminedError("A model needs two classes, and there is one so far. Answer more.")
        return estimates.model_on_features(self._now, self._X)

    def accuracy(self, confidence: float = 0.95) -> AccuracyEstimate:
        """Accuracy of the model, by the questions about random points alone.

        Parameters
        ----------
        confidence : float, default=0.95
            Level of the interval.

        Returns
        -------
        AccuracyEstimate
            With its interval; ``n_answers`` is the number of random points (linked) or pairs
            (random). An UndeterminedError where there are too few.
        """
        answers = tuple(self._answers)
        if self.design == "match":
            stages = [self._stage(answers[:n]) for n in stage_sizes(len(answers))]
            return estimates.match_accuracy(self._state(answers), stages, confidence)
        if self.design == "linked":
            return estimates.linked_accuracy(self._state(answers), confidence)
        rows, y = self._stack(answers, _MOST_UNLABELED, kinds=("random",))
        missing = [_LEAST_OF_A_KIND - int(np.sum(y[:, 0] * sign > 0)) // 2 for sign in (1, -1)]
        if max(missing) > 0:
            raise UndeterminedError(
                f"An accuracy needs {_LEAST_OF_A_KIND} answers of each kind. Answer more questions.",
                sum(n for n in missing if n > 0),
            )
        estimator = self._of_random_pairs(rows)
        return cross_val_accuracy(estimator, rows, y, error_rate=self._flips.rate, confidence=confidence)

    def advice(self) -> estimates.Advice:
        """Whether more answers are worth it.

        Returns
        -------
        Advice
            The gain to expect from the next 50 answers, by what the latest ones brought.
        """
        if self.design == "random":
            raise InputError("There is no advice on random pairs. See `PairLearningCurveDisplay` for these.")
        return estimates.advise(self._now, self._state(self._now.answers[: self.n_answers // 2]))

    def classes(self, confidence: float = 0.95) -> list[estimates.ClassFound]:
        """The classes found, the largest first.

        Parameters
        ----------
        confidence : float, default=0.95
            Level of the intervals of their shares.

        Returns
        -------
        list of ClassFound
            Their sizes, shares and examples.
        """
        if self.design == "random":
            raise InputError('Random pairs put no point into a class. Use `design="match"` to find classes.')
        return estimates.class_table(self._now, confidence)

    def labels(self) -> Codes:
        """The class of every point: by the answers where they tell it, by the model elsewhere.

        Returns
        -------
        int array of shape (n_points,)
            Named as the classes of :meth:`model`.
        """
        predicted = np.asarray(self.model().predict(self._X))
        return predicted if self.design == "random" else estimates.answered_or_predicted(self._now, predicted)

    def review(self, most: int = 20) -> list[RowAnswer]:
        """Answers to look at again, each once.

        Parameters
        ----------
        most : int, default=20
            Most answers to give.

        Returns
        -------
        list of Answer
            Those more likely wrong than right first, by models that did not see their points, the
            least likely first; then those that cannot all be right. None with ``private``.
        """
        if self.private is not None:
            # Nobody should say which answers are flipped.
            return []
        doubtful = self._now.doubtful if self.design != "random" else []
        found = [self._answers[k] for k in doubtful]
        ends, signs, _, places = as_pairs(self._answers)
        checks = check_answers(AnswerGraph.from_answers(ends, signs))
        cycles = checks.odd_cycles if self._limit == 2 else []
        for contradiction in (*checks.disagreements, *checks.closure, *cycles):
            found += [self._answers[places[k]] for k in contradiction.answers]
        return list({one.key: one for one in found}.values())[:most]

    def error_rate(self, annotator: str | None = None) -> float | None:
        """Share of wrong answers, by those that contradict others; with ``private`` that of the flips.

        Parameters
        ----------
        annotator : str, optional
            Of the answers of this annotator; by default of all.

        Returns
        -------
        float or None
            0 where no answer contradicts another; None of an annotator with nothing to compare.
        """
        return self._now.error if annotator is None else self._now.error_of(annotator)

    def leak(self) -> Leak:
        """How many classes follow if one becomes known, and how far flips protect them.

        Returns
        -------
        Leak
            Numbers of points that hang together; with ``private`` the epsilon of an answer, a point
            and a person. ``str`` says it in words.
        """
        return self._flips.leak(self._answers, two_classes=self._limit == 2)

    def _choose(self, answers: tuple[RowAnswer, ...], annotator: str) -> Question:
        # Other threads write to it meanwhile.
        pending = list(self._pending.items())
        others = [*(question for who, question in pending if who != annotator), *self._skipped]
        numbers = [*(one.number for one in answers), *(question.number for question in others)]
        # Not by the number: where answers were taken back, a log goes on with other ones.
        rng = np.random.default_rng([self.seed, len(answers) + len(others) + 1])
        closed = self._flips.closed_to(annotator)
        number = 1 + max(numbers, default=0)
        turn = Turn(self._state(answers), others, annotator, number, rng, *self._shares, closed)
        return DESIGNS[self.design](turn)

    @property
    def _now(self) -> State:
        return self._state(self._answers)

    def _state(self, answers: Sequence[RowAnswer]) -> State:
        """What the answers say; kept for some, as :meth:`prepare` works ahead."""
        return self._states(_as_said(answers))

    def _new_state(self, answers: tuple[RowAnswer, ...]) -> State:
        n = start_size(len(answers)) if self.design == "match" else 0
        before = self._state(answers[:n]) if n else None
        return self._new_stage(answers, before)

    def _stage(self, answers: Sequence[RowAnswer]) -> State:
        """What the answers up to a stage say; all are kept, for settings and for accuracies."""
        return self._stages(_as_said(answers))

    def _new_stage(self, answers: tuple[RowAnswer, ...], before: State | None = None) -> State:
        rate = self._flips.rate
        settings = self._settings_for(answers)
        return self._state_type(self._points, answers, self._limit, settings, rate, self._seeds, before)

    def _settings_for(self, answers: tuple[RowAnswer, ...]) -> Settings:
        """Penalty and power by the answers up to the last stage, so that they change rarely."""
        sizes = stage_sizes(len(answers))
        if not sizes or self.design == "random":
            return self._state_type.FIRST
        return self._stage(answers[: sizes[-1]]).next_settings

    def _stack(
        self, answers: Sequence[RowAnswer], most_unlabeled: int | None, kinds: tuple[str, ...] = KINDS
    ) -> tuple[Rows, Codes]:
        ends, signs, annotators, _ = as_pairs([one for one in answers if one.kind in kinds])
        asked = [point for one in answers for point in (one.left, *one.choices)]
        rest = np.setdiff1d(self._points.order[:most_unlabeled], asked)
        return stack_pairs(self._X, ends, signs, unlabeled=rest, annotators=annotators)

    def _place(self, number: int, session: str) -> int:
        """Where an answer stands."""
        for place, one in enumerate(self._answers):
            if one.key == (session, number):
                return place
        raise InputError(f"There is no answer with the number {number}.")

    def _of_random_pairs(self, rows: Rows) -> Pipeline:
        rate = self._flips.rate
        model = PairLogisticRegressionCV(error_rate="auto" if rate is None else rate)
        # Zeros of sparse rows stay.
        return make_pipeline(StandardScaler(with_mean=not sparse.issparse(rows)), model)


def ask(X: MatrixLike, oracle: Callable[..., Any], n: int, *, batch_size: int | None = None, **options: Any) -> Asker:
    """Ask a function: a person behind it, a crowd, a language model, or known classes.

    Parameters
    ----------
    X : array, CSR matrix or frame of shape (n_points, n_features)
        Features of all points.
    oracle : callable
        Gets two row numbers; gives "same", "different" or "unsure", or True and False. In the match
        design it gets a row number and a tuple of them; gives a position in it, "none" or "unsure".
    n : int
        Number of questions; fewer where no more are left.
    batch_size : int, optional
        Hand over lists of so many :class:`Question` instead: the oracle gives a list of answers. Questions of a
        list are chosen without the answers to each other.
    **options
        As in :class:`Asker`.

    Returns
    -------
    Asker
        With all answers.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sdulearn.asking import ask
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> asker = ask(X, lambda left, right: y[left] == y[right], 60, random_state=0)
    >>> bool(((asker.model().predict(X) > 0) == y).mean() > 0.93)
    True
    """
    asker = Asker(X, **options)
    n_told = 0
    while n_told < n:
        try:
            questions = open_questions(asker, min(batch_size or 1, n - n_told))
        except NothingToAskError:
            break
        if batch_size is None:
            (one,) = questions
            answers = [oracle(one.left, one.choices if asker.design == "match" else one.right)]
        else:
            answers = list(oracle(questions))
            if len(answers) != len(questions):
                raise InputError(
                    f"`oracle` gave {len(answers)} answers to {len(questions)} questions. Give one for each."
                )
        for question, answer in zip(questions, answers, strict=True):
            asker.tell(question, answer)
        n_told += len(questions)
    return asker


def stage_sizes(n_answers: int) -> list[int]:
    """12, 18, 27, ...: numbers of answers after which settings are chosen anew."""
    sizes = []
    n = _FIRST_CHOICE
    # Below it: there is time for the choice while a question is read.
    while n < n_answers:
        sizes.append(n)
        n = int(np.ceil(_GROWTH * n))
    return sizes


def start_size(n_answers: int) -> int:
    """Number of answers whose model a fit with the same settings starts from, or 0."""
    first = 1 + max(stage_sizes(n_answers), default=n_answers)
    return first + (n_answers - first - 1) // _START_EVERY * _START_EVERY if n_answers > first else 0


def _as_said(answers: Sequence[RowAnswer]) -> tuple[RowAnswer, ...]:
    """Answers without what a log adds to them: number, time, session and line do not matter."""
    return tuple(Answer(*one[:5]) for one in answers)


def _for_columns(fitted: Pipeline, rows: Rows) -> Estimator:
    """The model of a scaler and a model, with coefficients for the columns as given."""
    scaler, model = fitted
    model.coef_ = model.coef_ / scaler.scale_
    if scaler.with_mean:
        model.intercept_ = model.intercept_ - model.coef_ @ scaler.mean_
    check_feature_names(model, rows, reset=True)
    return model


def _refuse_design(design: str, n_classes: int | str, private: float | None) -> None:
    """Refuse a design or a number of classes that does not exist, or does not go with the rest."""
    if design not in DESIGNS:
        raise InputError(f"`design` is one of {', '.join(DESIGNS)}; got `design={design!r}`.")
    if n_classes != "auto" and (not isinstance(n_classes, (int, np.integer)) or n_classes < 2):
        raise InputError(f'`n_classes` must be 2 or more, or "auto"; got `n_classes={n_classes!r}`.')
    if private is not None and n_classes != 2:
        raise InputError(
            "`private` is for two classes: among more, a flipped answer opens a class that does not "
            "exist. Give `n_classes=2`."
        )
    if private is not None and design != "random":
        raise InputError(
            f"`private` needs a design in which no point is in many answers: {design!r} compares "
            "all points with the same few, and k answers about a point make its protection k "
            'epsilon. Give `design="random"`.'
        )
    if design != "match" and n_classes != 2:
        raise InputError(f'`design={design!r}` is for two classes. Leave `n_classes` out, or use `design="match"`.')


def _checked_seeds(seeds: Sequence[int | Sequence[int]], n_points: int, design: str) -> tuple[tuple[int, ...], ...]:
    """Points of each class that is given by examples."""
    found = tuple(tuple(int(p) for p in np.atleast_1d(np.asarray(points, dtype=np.intp))) for points in seeds)
    every = [point for points in found for point in points]
    if found and design != "match":
        raise InputError('`seeds` are examples of classes, for `design="match"`.')
    if not all(found) or len(set(every)) < len(every) or not all(0 <= point < n_points for point in every):
        raise InputError(
            f"`seeds` are row numbers from 0 to {n_points - 1}, at least one a class and none of them twice."
        )
    return found
