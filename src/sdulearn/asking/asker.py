"""The Asker: questions out, answers in."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from sdulearn.answer_files.log import Key
from sdulearn.answer_files.store import AnswerStore
from sdulearn.answers.answer_model import AnswerModel, Rate
from sdulearn.answers.checks import check_answers
from sdulearn.answers.graph import AnswerGraph
from sdulearn.answers.records import (
    N_ITEMS,
    Answer,
    Form,
    Given,
    PairTable,
    Question,
    implied_pairs,
    number_annotators,
    read_reply,
)
from sdulearn.answers.y import stack_pairs
from sdulearn.asking import estimates, records
from sdulearn.asking.designs import Turn, examples, next_linked, next_random, renewed_choices
from sdulearn.asking.notebook import QuestionCell
from sdulearn.asking.oracles import open_questions
from sdulearn.asking.points import Points
from sdulearn.asking.privacy import Leak, leak_of
from sdulearn.asking.records import RowAnswer, RowQuestion
from sdulearn.asking.sort import claims_of, next_sort
from sdulearn.asking.state import FORCED, State, first_settings, fit_quietly
from sdulearn.errors import InputError, MissingExtraError, NothingToAskError, UndeterminedError, quoted
from sdulearn.joint.estimators import PairLogisticRegression, PairLogisticRegressionCV
from sdulearn.metrics.accuracy import AccuracyEstimate
from sdulearn.metrics.cross_validation import cross_val_accuracy
from sdulearn.sklearn_private import check_feature_names
from sdulearn.tables.ids import unknown_ids
from sdulearn.types import Array, Codes, Estimator, Indices, MatrixLike, RandomState, Rows
from sdulearn.workflow.options import MAX_UNLABELED


class _Design(NamedTuple):
    """How questions are chosen, their form, and how many examples one shows; None: one of each class, or none."""

    choose: Callable[[Turn], RowQuestion]
    form: Form
    n_choices: int | None = None


DESIGNS = {
    "linked": _Design(next_linked, "pair", 1),
    "match": _Design(next_linked, "match"),
    "random": _Design(next_random, "pair", 1),
    "sort": _Design(next_sort, "sort"),
    "nearer": _Design(next_linked, "nearer", FORCED),
}
# Settings are chosen after the first of these numbers of answers, and after each growth by a factor.
_FIRST_CHOICE = 12
_GROWTH = 1.5
# A fit starts from the model of at most this many answers fewer.
_START_EVERY = 8
# States to keep: those after each possible answer to some questions.
_KEPT = 16
# Questions that are put aside at most; then the oldest may come again.
_MOST_SKIPPED = 20
# Picks of a match question to prepare for, the likeliest ones.
_PREPARED = 2
_MOST_UNLABELED = 5000
# Where one is held out, five are left for the folds that choose a penalty.
_LEAST_OF_A_KIND = 6


class Asker:
    """Choose which points to ask about next, take the answers, and estimate from them.

    Questions and estimates depend on the points, the seed and the answers alone: an Asker with the
    same points, seed and answers continues where another one stopped.

    Parameters
    ----------
    X : array, CSR matrix or frame of shape (n_points, n_features)
        Features of all points. They need not be standardised.
    design : {"linked", "match", "random", "sort", "nearer"}, optional
        "linked", the default for two classes: an informative point beside an example of its
        likeliest class. "match", the default for more: beside one example of each class found so
        far. "random", the default with ``private``: disjoint random pairs, as in the paper. "sort":
        a few points to put into groups, at most two of them examples. "nearer": which of two
        examples, given as ``seeds``, a point is more like; it implies no pair.
    n_classes : int or "auto", default=2
        Number of classes; "auto" finds it: a point that matches no example opens a class.
    random_share : float, default=0.25
        Share of the questions about points in random order: accuracy and class shares use these.
    repeat_share : float, default=0.05
        Share of the questions that check earlier answers: repeats, doubtful answers.
    answers : frame, mapping of columns or list of Answer, optional
        Answers to begin with, in the form of :attr:`answers`; annotator, why and number if known.
    random_state : int, RandomState or None, default=None
        Seed.
    private : float, optional
        Epsilon, for two classes and the random design: flip each answer with probability
        1 / (1 + exp(private)) before it is stored. Fits allow for the flips, and no point is in two
        answers. The key of the flips is never stored: old answers can only be undone.
    grown_from : sequence of int, default=()
        Numbers of points that ``X`` had before points were added at its end: the random order of
        the first points stays, and continues with the others.
    seeds : list of row numbers, or of lists of them, optional
        Examples of the first classes, one or more each; of all classes in the design "nearer".
    n_items : int, default=4
        Number of points of a question to sort, from 3 to 5.
    store : AnswerStore, optional
        Where answers are kept; by default in memory. ``sdulearn ask`` gives a store of its log.
    ids : sequence of str, optional
        How the store names the points; by default by their row numbers.

    Attributes
    ----------
    seed : int
        The seed in use, drawn if none was given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sdulearn.asking import Asker
    >>> X, y = load_iris(return_X_y=True)
    >>> asker = Asker(X, n_classes="auto", random_state=0)
    >>> for _ in range(60):
    ...     question = asker.next()
    ...     like = [k for k, point in enumerate(question.choices) if y[point] == y[question.left]]
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
        n_items: int = 4,
        store: AnswerStore | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        default = "random" if private is not None else "linked" if n_classes == 2 else "match"
        self.design = design or default
        self.n_classes = n_classes
        _refuse_design(self.design, n_classes, private)
        for name, share in {"random_share": random_share, "repeat_share": repeat_share}.items():
            if not 0 <= share <= 1:
                raise InputError(f"`{name}` must lie between 0 and 1, got `{name}={share!r}`.")
        self._limit = None if n_classes == "auto" else int(n_classes)
        # With flips, a repeat would halve the protection, and the error rate is known.
        self._shares = (random_share, repeat_share if private is None else 0.0)
        self.private = private
        # A draw from numpy's global generator would change the results of other code.
        drawn = random_state is None
        self.seed = secrets.randbits(31) if drawn else int(check_random_state(random_state).randint(2**31 - 1))
        self._X = X
        self._points = Points(X, np.random.default_rng(self.seed), grown_from)
        self._seeds = _checked_seeds(seeds, self._points.n_points, self.design)
        if self.design == "nearer":
            _refuse_seeds(len(self._seeds), n_classes)
            self._limit = len(self._seeds)
        low, high = N_ITEMS["sort"]
        if n_items not in range(low, int(high) + 1):
            raise InputError(f"`n_items` is {low} to {high:g}, got `n_items={n_items!r}`.")
        self.n_items = n_items
        if self.design != "random":
            # Questions that explore need them; the first one should not wait.
            _ = self._points.distances
        self._set_store(answers, store, ids)
        self._pending: dict[str, RowQuestion] = {}
        self._skipped: list[RowQuestion] = []
        self._states = lru_cache(_KEPT)(self._new_state)
        self._stages = lru_cache(None)(partial(self._new_state, is_stage=True))
        # Refuse a store of another table.
        _ = self.given

    def _set_store(self, answers: Any, store: AnswerStore | None, ids: Sequence[str] | None) -> None:
        """Take a store, or make one of answers, and the ids that it knows the points by."""
        n_points = self._points.n_points
        self.ids = list(map(str, range(n_points))) if ids is None else list(ids)
        self.rows = {name: row for row, name in enumerate(self.ids)}
        if len(self.rows) < n_points or "" in self.rows:
            row = next(row for row, name in enumerate(self.ids) if not name or self.rows[name] != row)
            raise InputError(f"`ids` must be different and not empty; see {quoted(self.ids[row])} of row {row}.")
        given = records.read_answers([] if answers is None else answers, n_points)
        named = (answer.about([self.ids[row] for row in answer.question.items]) for answer in given)
        self.store = AnswerStore.in_memory(named) if store is None else store
        self.store.keep_private(self.private)
        # One lock: with two, two threads could wait for each other.
        self._lock = self.store.lock
        self._by_key: dict[Key, tuple[Answer[str], RowAnswer]] = {}
        # The answers by row numbers, and the version of the store that they are of.
        self._given: tuple[RowAnswer, ...] = ()
        self._version = -1
        # The name of a point in errors.
        self.name_point = "point {}".format if ids is None else lambda row: f"row {quoted(self.ids[row])}"

    def __repr__(self) -> str:
        return f"Asker(design={self.design!r}, n_classes={self.n_classes!r}), {self.n_answers} answers"

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Ask in the notebook; without anywidget, say what to install."""
        try:
            return QuestionCell(self, self._X)._repr_mimebundle_(**options)
        except MissingExtraError as error:
            return {"text/plain": f"{self!r}. To answer here: {error}"}

    def next(self, annotator: str | None = None) -> RowQuestion:
        """Return the question to ask now: the same one until it is answered.

        Parameters
        ----------
        annotator : str, optional
            Who will answer. Each annotator has a question of their own.

        Returns
        -------
        Question
            The question. If none is left, a NothingToAskError is raised.
        """
        name = annotator or ""
        with self._lock:
            if name not in self._pending:
                self._pending[name] = self._choose(self.given, name)
            return self._pending[name]

    def prepare(self, question: RowQuestion, annotator: str | None = None) -> None:
        """Compute the next question for each likely answer, while this one is read."""
        if self.private is not None:
            return
        # There are too many ways to sort.
        known: dict[Form, list[object]] = {"pair": ["same", "different", "unsure"], "nearer": [0, 1]}
        replies = known.get(question.form, [])
        if question.form == "match":
            replies = [*self._likeliest(question)[:_PREPARED], "none", "unsure"]
        for reply in replies:
            answer = read_reply(question, reply)._replace(annotator=annotator or "")
            self._choose((*self.given, answer), answer.annotator)

    def _likeliest(self, question: RowQuestion) -> list[int]:
        """Positions of the choices of a question, the likeliest first."""
        now = self._now
        log_p = now.log_probabilities(np.array([question.left]))[0]
        numbers = [now.classes.label.get(choice) for choice in question.choices]
        likely = [-np.inf if number is None else log_p[number] for number in numbers]
        return np.argsort(-np.array(likely), kind="stable").tolist()

    def tell(self, question: RowQuestion, answer: object, annotator: str | None = None) -> None:
        """Store an answer.

        Parameters
        ----------
        question : Question
            A question from :meth:`next`, or about any other points.
        answer : {"same", "different", "unsure"}, bool, int, "none" or list
            The answer, as the form of the question wants it: to a pair "same" or "different"; to a match question
            the position of the choice of the same class, or "none"; to one to sort the group of each item, None for
            those not placed; to "nearer" the position of the choice that the point is more like.
        annotator : str, optional
            Who gave it.
        """
        self.add(question, answer, annotator or "")

    def add(
        self,
        question: RowQuestion,
        reply: object,
        annotator: str = "",
        given: Given = Given(),  # noqa: B008  (immutable)
        cells: Sequence[str] = (),
    ) -> Answer[str]:
        """Store an answer, and return it as it is stored: with ``private`` it may be flipped."""
        asked = records.check_rows(question, self._points.n_points)
        with self._lock:
            stored = self.store.add(asked.about([self.ids[row] for row in asked.items]), reply, annotator, given, cells)
            self._skipped = [open_one for open_one in self._skipped if open_one.items != asked.items]
            self._pending = {who: q for who, q in self._pending.items() if q.items != asked.items}
            return stored

    def undo(self, annotator: str | None = None, *, number: int | None = None, session: str = "") -> RowAnswer:
        """Undo the latest answer.

        Parameters
        ----------
        annotator : str, optional
            Whose answer; by default anybody's.
        number, session : int and str, optional
            Undo this answer instead: number of its question, and its session in a log.

        Returns
        -------
        Answer
            The answer that was undone.
        """
        with self._lock:
            own = [answer.key for answer in self.given if annotator in (None, answer.annotator)]
            if number is None and not own:
                raise InputError("There is no answer to undo.")
            taken = self._row_answer(self.store.undo(own[-1] if number is None else (session, number), annotator or ""))
            # Their open question was chosen by this answer.
            self._pending.pop(taken.annotator, None)
            return taken

    def change(self, number: int, answer: object, session: str = "") -> None:
        """Change an earlier answer.

        Parameters
        ----------
        number : int
            Number of its question.
        answer : {"same", "different", "unsure"}, bool, int, "none" or list
            The new answer, as in :meth:`tell`.
        session : str, default=""
            Its session in a log.
        """
        self.change_all({(session, number): answer})

    def change_all(self, changes: Mapping[Key, object], annotator: str = "") -> list[RowAnswer]:
        """Change several answers at once, all or none of them."""
        with self._lock:
            changed = [self._row_answer(answer) for answer in self.store.change(changes, annotator)]
            # Open questions may show classes that are gone.
            self._pending.clear()
            self._skipped.clear()
            return changed

    def merge(self, a: int, b: int, annotator: str | None = None) -> list[RowAnswer]:
        """Merge two classes: answers that separated them now say "same".

        Parameters
        ----------
        a, b : int
            A point of each of the two classes.
        annotator : str, optional
            Who says so.

        Returns
        -------
        list of Answer
            The changed answers.
        """
        label = self._now.classes.label
        both = {self._class_of(a), self._class_of(b)}
        changed = [merged for answer in self.given if (merged := _merged(answer, label, both))]
        if not changed:
            names = f"{self.name_point(a)} and {self.name_point(b)}"
            raise InputError(f"Nothing to merge: {names} are of one class already, or examples that were given.")
        return self._give(changed, annotator)

    def split(self, points: int | Sequence[int], annotator: str | None = None) -> list[RowAnswer]:
        """Remove points from their class: answers that put them there now say "none".

        If several points are removed, the next question asks whether they are of one class.

        Parameters
        ----------
        points : int or sequence of int
            The points. The first point of a class cannot be removed: the others were compared with it.
        annotator : str, optional
            Who says so.

        Returns
        -------
        list of Answer
            The changed answers.
        """
        leaving = set(np.atleast_1d(np.asarray(points, dtype=np.intp)).tolist())
        changed = []
        moved: set[int] = set()
        for answer in self.given:
            if out := _grouped(answer, leaving):
                changed.append(_taken_out(answer, out))
                moved |= {answer.question.items[k] for k in out}
        if stay := leaving - moved:
            name = self.name_point(min(stay))
            raise InputError(f"No answer put {name} into its class: others were compared with it. Take these out.")
        return self._give(changed, annotator)

    def _give(self, changed: list[RowAnswer], annotator: str | None) -> list[RowAnswer]:
        return self.change_all({answer.key: answer.reply for answer in changed}, annotator or "")

    def _class_of(self, point: int) -> int:
        label = self._now.classes.label
        if point not in label:
            raise InputError(f"No answer put {self.name_point(point)} into a class. Name an example of each class.")
        return label[point]

    def members(self, point: int) -> list[int]:
        """Return the points known to be of the class of a point, in the order of their answers."""
        classes = self._now.classes
        return classes.members.get(classes.label.get(point, -1), [])

    def groups(self) -> list[list[int]]:
        """Return the points known to be of each class, in the order in which the classes were found."""
        return list(self._now.classes.members.values())

    def renewed(self, question: Question) -> RowQuestion:
        """Return a question about the same point beside the examples of now; a pair stays as it is."""
        if question.form != "match":
            return question
        choices = renewed_choices(self._now, question.left, question.choices)
        return question._replace(items=(question.left, *choices))

    def another_example(self, question: RowQuestion, position: int) -> RowQuestion:
        """Replace one example in an open question by another one of its class.

        Parameters
        ----------
        question : Question
            An open question.
        position : int
            Position of the class in its choices.

        Returns
        -------
        Question
            The changed question; after the last example of the class comes the first again.
        """
        with self._lock:
            choices = list(question.choices)
            shown = examples(self._now, self._class_of(choices[position]))
            if len(shown) < 2:
                raise InputError("This class has no other example yet.")
            choices[position] = shown[(shown.index(choices[position]) + 1) % len(shown)]
            changed = question._replace(items=(question.left, *choices))
            self._pending = {who: changed if one == question else one for who, one in self._pending.items()}
            return changed

    def skip(self, annotator: str | None = None, *, later: bool = True) -> None:
        """Skip the open question: :meth:`next` returns another one.

        Parameters
        ----------
        annotator : str, optional
            Whose question.
        later : bool, default=True
            Whether it is asked again later; otherwise the next annotator may get it at once.
        """
        with self._lock:
            question = self._pending.pop(annotator or "", None)
            if question is not None and later:
                self._skipped = [*self._skipped, question][-_MOST_SKIPPED:]

    @property
    def answers(self) -> Mapping[str, list[Any]]:
        """All answers so far, as columns; match answers have ``choices`` instead of ``right``, sorting ``items``."""
        return records.as_columns(self.given)

    @property
    def given(self) -> tuple[RowAnswer, ...]:
        """All answers so far, as records."""
        snapshot = self.store.snapshot()
        with self._lock:
            # Another thread may have been faster.
            if snapshot.version > self._version:
                self._given, self._version = tuple(map(self._row_answer, snapshot.answers)), snapshot.version
            return self._given

    def _row_answer(self, answer: Answer[str]) -> RowAnswer:
        """Return an answer of the store by row numbers, each made once."""
        kept = self._by_key.get(answer.key)
        if kept is None or kept[0] is not answer:
            if unknown := [name for name in answer.question.items if name not in self.rows]:
                why = unknown_ids(unknown, self.rows, "", "log")
                raise InputError(f"{self.store.path}, line {answer.given.line}: {why} Is it the log of another table?")
            kept = answer, answer.about([self.rows[name] for name in answer.question.items])
            self._by_key[answer.key] = kept
        return kept[1]

    @property
    def n_answers(self) -> int:
        """Number of answers, those "unsure" included."""
        return len(self.store.contents.answers)

    def stack(self) -> tuple[Rows, Codes]:
        """Return rows and ``y`` for an estimator: two rows per answer, then all points in none.

        Returns
        -------
        rows, y : rows of ``X``, and int array of shape (n_rows, 3 or 5)
            As from :func:`~sdulearn.stack_pairs`, with columns answer, point and annotator, and the question if one
            implies several pairs.
        """
        return self._stack(None)

    def model(self, estimator: Estimator | None = None) -> Estimator:
        """Return the classifier that chooses the questions, fitted to all answers so far.

        A ``PairLogisticRegressionCV`` fitted to :meth:`stack` is about as good, and estimates error rates with
        intervals.

        Parameters
        ----------
        estimator : estimator, optional
            Fit this one instead, to the rows and ``y`` of :meth:`stack` with at most 5,000 points
            in no answer: a :class:`~sdulearn.PairModelCV`, or a pipeline with a scaler.

        Returns
        -------
        PairLogisticRegression or estimator
            Fitted to standardised columns, with coefficients for the columns as given. Two classes
            are -1 and +1, the larger one; more are 1, 2, ..., the largest first, as in
            :meth:`classes`. For random pairs it is a ``PairLogisticRegressionCV``.
        """
        rows, y = self._stack(_MOST_UNLABELED)
        if not y[:, 0].any() and (estimator is not None or not any(answer.nearer is not None for answer in self.given)):
            raise UndeterminedError("A model needs answers. Answer more questions.")
        if estimator is not None:
            return estimator.fit(rows, y)
        if self.design == "random":
            return _for_columns(fit_quietly(self._of_random_pairs(rows).fit, rows, y), rows)
        if self._now.model is None:
            raise UndeterminedError("A model needs two classes, and there is one so far. Answer more.")
        return estimates.model_on_features(self._now, self._X)

    def accuracy(self, confidence: float = 0.95) -> AccuracyEstimate:
        """Estimate the accuracy of the model from the questions about random points alone.

        Parameters
        ----------
        confidence : float, default=0.95
            Level of the interval.

        Returns
        -------
        AccuracyEstimate
            With its interval; ``n_answers`` is the number of random points, or of random pairs. If
            there are too few, an UndeterminedError is raised.
        """
        if self.design != "random":
            now = self._now
            if self.design == "nearer" and now.n_classes > 2:
                raise UndeterminedError(
                    "A choice between two of more classes does not tell the class of a random point, so there is no "
                    "accuracy. Ask match questions about random points."
                )
            stages = [self._state(now.answers[:n], is_stage=True) for n in stage_sizes(len(now.answers))]
            return estimates.accuracy(now, stages, confidence)
        rows, y = self._stack(_MOST_UNLABELED, why="random")
        missing = [_LEAST_OF_A_KIND - int(np.sum(y[:, 0] * sign > 0)) // 2 for sign in (1, -1)]
        if max(missing) > 0:
            needed = f"An accuracy needs {_LEAST_OF_A_KIND} answers of each kind. Answer more questions."
            raise UndeterminedError(needed, sum(n for n in missing if n > 0))
        estimator = self._of_random_pairs(rows)
        return cross_val_accuracy(estimator, rows, y, error_rate=self.store.flips.rate, confidence=confidence)

    def advice(self) -> estimates.Advice:
        """Estimate whether more answers are worth it.

        Returns
        -------
        Advice
            The expected gain of the next 50 answers, from the gain of the latest ones, and whether the accuracy is
            known well enough to stop.
        """
        if self.design == "random":
            raise InputError("There is no advice on random pairs. See `PairLearningCurveDisplay` for these.")
        now = self._now
        try:
            accuracy = self.accuracy()
        except UndeterminedError:
            accuracy = None
        return estimates.advise(now, self._state(now.answers[: len(now.answers) // 2]), accuracy)

    def classes(self, confidence: float = 0.95) -> list[estimates.ClassFound]:
        """Return the classes found so far, the largest first.

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
        """Return the most likely class of every point, from :meth:`posterior`.

        Returns
        -------
        int array of shape (n_points,)
            Classes as :meth:`model` names them.
        """
        likeliest = self.posterior().argmax(axis=1)
        n_classes = 2 if self.design == "random" else self._now.n_classes
        return 2 * likeliest - 1 if n_classes == 2 else likeliest + 1

    def posterior(self) -> Array:
        """Return the probability of each class for every point, from its features and the answers about it.

        Features are judged by models that have seen no answer about the point. How often answers are wrong is
        estimated from those that contradict each other, and from how often they contradict these models; so a
        single answer makes no class certain.

        Returns
        -------
        array of shape (n_points, n_classes)
            Columns as the classes of :meth:`model`: -1 and +1, or 1, 2, ..., the largest class first.
        """
        if self.design != "random":
            return estimates.with_answers(self._now, np.array(self.model().predict_proba(self._X)))
        rows, y = self._stack(_MOST_UNLABELED)
        asked = y[:, 0] != 0
        if not asked.any():
            raise UndeterminedError("Probabilities need answers. Answer more questions.")
        scaler, model = fit_quietly(self._of_random_pairs(rows).fit, rows, y)
        probabilities: Array = model.predict_proba(scaler.transform(self._points.X))
        probabilities[y[asked, 1]] = model.posterior(scaler.transform(rows), y)[asked]
        return probabilities

    def review(self, most: int = 20) -> list[RowAnswer]:
        """Return answers to check.

        Parameters
        ----------
        most : int, default=20
            Maximum number of answers.

        Returns
        -------
        list of Answer
            First those that are more likely wrong than right according to models that did not see their
            points; then those that contradict others. Empty with ``private``.
        """
        if self.private is not None:
            # They would tell which answers are flipped.
            return []
        given = self.given
        origin = [k for k, answer in enumerate(given) for _ in claims_of(answer)]
        # Of the same answers: another thread may add some meanwhile.
        state = self._state(_claims(given))
        positions = [] if self.design == "random" else [origin[k] for k in state.doubtful]
        ends, signs, _, places = implied_pairs(given)
        checks = check_answers(AnswerGraph.from_answers(ends, signs))
        cycles = checks.odd_cycles if self._limit == 2 else []
        for contradiction in (*checks.disagreements, *checks.closure, *cycles):
            positions += places[list(contradiction.answers)].tolist()
        return [given[k] for k in dict.fromkeys(positions)][:most]

    def error_rate(self) -> float:
        """Return the share of wrong answers, estimated from contradictions, or the share of flips.

        Returns
        -------
        float
            0 if no answer contradicts another.
        """
        if self.store.flips.rate is not None:
            return self.store.flips.rate
        if self.design != "random":
            return self._now.error
        ends, signs, annotators, _ = implied_pairs(self.given)
        graph = AnswerGraph.from_answers(ends, signs, annotators=annotators)
        return AnswerModel.estimate(graph).error_rate.value if graph.contradictory.any() else 0.0

    def annotator_rates(self) -> dict[str, Rate]:
        """Estimate how often each annotator is wrong, as :func:`~sdulearn.fit_table` does from the same answers.

        Returns
        -------
        dict of str to Rate
            By name, with 95% intervals; without annotators with too few answers, and empty
            with ``private``.
        """
        given = self.given
        pairs = implied_pairs(given)
        if self.private is not None or not len(pairs.ends):
            return {}
        n_classes = self._limit or max(self._now.n_classes, 2)
        rest = self._points.order[:MAX_UNLABELED]
        rows, y = _stacked(self._X, pairs, np.sort(rest))
        try:
            model = fit_quietly(PairLogisticRegression(n_classes=n_classes, prior_strength=0).fit, rows, y)
        except InputError:
            return {}
        rates = model.answer_model_.by_annotator
        numbers = number_annotators(given)
        return {name: rates[k] for name, k in numbers.items() if k in rates and rates[k].identified}

    def leak(self) -> Leak:
        """Return how many classes follow from a known one, and how far flips protect them.

        Returns
        -------
        Leak
            Numbers of connected points; with ``private`` the epsilon of an answer, a point and a
            person. ``str`` describes it in words.
        """
        return leak_of(self.given, self.store.flips, two_classes=self._limit == 2)

    def _choose(self, answers: tuple[RowAnswer, ...], annotator: str) -> RowQuestion:
        # Of a copy: other threads may change it meanwhile.
        others = [*(question for who, question in list(self._pending.items()) if who != annotator), *self._skipped]
        # By their count: a log does not use the numbers of undone answers again.
        rng = np.random.default_rng([self.seed, len(answers) + len(others) + 1])
        closed = frozenset(self.rows[name] for name in self.store.flips.closed_to(annotator))
        choose, form, _ = DESIGNS[self.design]
        state = self._state(_claims(answers))
        return choose(Turn(form, self.n_items, state, others, annotator, rng, *self._shares, closed))

    @property
    def _now(self) -> State:
        return self._state(_claims(self.given))

    def _state(self, answers: Sequence[RowAnswer], *, is_stage: bool = False) -> State:
        """Return what the answers say; all stages are kept, and the last few other states."""
        # When and where an answer was given does not matter.
        key = tuple(answer._replace(given=Given()) for answer in answers)
        return self._stages(key) if is_stage else self._states(key)

    def _new_state(self, answers: tuple[RowAnswer, ...], *, is_stage: bool = False) -> State:
        n_choices = DESIGNS[self.design].n_choices
        settings = first_settings(self._limit, n_choices)
        before = None
        sizes = stage_sizes(len(answers))
        if sizes and self.design != "random":
            # From the last stage on settings are the same, and a fit may start from another.
            settings = self._state(answers[: sizes[-1]], is_stage=True).next_settings
            n_more = len(answers) - sizes[-1] - 1
            if not is_stage and n_more:
                before = self._state(answers[: -1 - (n_more - 1) % _START_EVERY])
        return State(self._points, answers, self._limit, settings, self._seeds, before, n_choices)

    def _stack(self, most_unlabeled: int | None, why: str | None = None) -> tuple[Rows, Codes]:
        answers = self.given
        pairs = implied_pairs([answer for answer in answers if why in (None, answer.question.why)])
        asked = [point for answer in answers for point in answer.question.items]
        return _stacked(self._X, pairs, np.setdiff1d(self._points.order[:most_unlabeled], asked))

    def _of_random_pairs(self, rows: Rows) -> Pipeline:
        model = PairLogisticRegressionCV(error_rate="auto" if self.store.flips.rate is None else self.store.flips.rate)
        # Sparse rows stay sparse.
        return make_pipeline(StandardScaler(with_mean=not sparse.issparse(rows)), model)


def ask(X: MatrixLike, oracle: Callable[..., Any], n: int, *, batch_size: int | None = None, **options: Any) -> Asker:
    """Ask a function, such as one that calls a language model or knows the classes.

    Parameters
    ----------
    X : array, CSR matrix or frame of shape (n_points, n_features)
        Features of all points.
    oracle : callable
        Called with two row numbers; returns "same", "different" or "unsure", or True or False. In the match design it
        is called with a row number and a tuple of them, and returns a position in the tuple, "none" or "unsure"; in
        the sort design with a tuple of row numbers, and returns a list with the group of each; in the design "nearer"
        with three row numbers, and returns 0 or 1, the position among the last two of the one that the first is more
        like.
    n : int
        Number of questions; fewer if no more are left.
    batch_size : int, optional
        Call the oracle with lists of this many :class:`Question` instead; it returns a list of
        answers. Questions of a list are chosen without the answers to each other.
    **options
        Parameters of :class:`Asker`.

    Returns
    -------
    Asker
        The Asker with all answers.

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
    end = asker.n_answers + n
    while asker.n_answers < end:
        try:
            questions = open_questions(asker, min(batch_size or 1, end - asker.n_answers))
        except NothingToAskError:
            break
        if batch_size is None:
            answers = [_asked(oracle, question) for question in questions]
        else:
            answers = list(oracle(questions))
            if len(answers) != len(questions):
                raise InputError(f"`oracle` gave {len(answers)} answers to {len(questions)} questions.")
        for question, answer in zip(questions, answers, strict=True):
            asker.tell(question, answer)
    return asker


def _asked(oracle: Callable[..., Any], question: RowQuestion) -> object:
    """Ask a function one question."""
    if question.form == "sort":
        return oracle(question.items)
    return oracle(question.left, question.choices) if question.form == "match" else oracle(*question.items)


def _stacked(X: MatrixLike, pairs: PairTable, unlabeled: Indices) -> tuple[Rows, Codes]:
    """Return rows and ``y`` of pairs and of unlabeled points."""
    ends, signs, annotators, _ = pairs
    # Pairs that share no question need no column for it.
    questions = pairs.questions if pairs.questions.any() else None
    return stack_pairs(X, ends, signs, unlabeled=unlabeled, annotators=annotators, questions=questions)


def _claims(answers: Sequence[RowAnswer]) -> tuple[RowAnswer, ...]:
    """Return answers as those about one point each."""
    return tuple(claim for answer in answers for claim in claims_of(answer))


def _merged(answer: RowAnswer, label: Mapping[int, int], both: set[int]) -> RowAnswer | None:
    """Return an answer that separates two classes as it is if they are one; None if it does not."""
    if answer.groups is None:
        return None
    if answer.question.form == "sort":
        placed = zip(answer.question.items, answer.groups, strict=True)
        groups = {group for item, group in placed if group is not None and label.get(item) in both}
        joined = ["both" if group in groups else group for group in answer.groups]
        return answer.with_reply(joined) if len(groups) > 1 else None
    others = [k for k, point in enumerate(answer.choices) if {label.get(answer.left), label.get(point)} == both]
    if answer.sign >= 0 or not others:
        return None
    return answer.with_reply(others[0] if answer.question.form == "match" else "same")


def _grouped(answer: RowAnswer, points: set[int]) -> list[int]:
    """Return the places of these points that an answer puts into a group with others."""
    if answer.question.form != "sort":
        return [0] if answer.left in points and answer.sign > 0 else []
    groups = answer.groups or ()
    placed = zip(answer.question.items, groups, strict=True)
    return [
        k for k, (item, group) in enumerate(placed) if item in points and group is not None and groups.count(group) > 1
    ]


def _taken_out(answer: RowAnswer, places: Sequence[int]) -> RowAnswer:
    """Return the answer without some items in their groups: one alone is in a group of its own, others in none."""
    if answer.question.form != "sort":
        return answer.with_reply("none" if answer.question.form == "match" else "different")
    groups: list[object] = list(answer.groups or ())
    for k in places:
        groups[k] = "alone" if len(places) == 1 else None
    return answer.with_reply(groups)


def stage_sizes(n_answers: int) -> list[int]:
    """12, 18, 27, ...: numbers of answers after which settings are chosen again."""
    sizes = []
    n = _FIRST_CHOICE
    # Not at once, but while the next question is read.
    while n < n_answers:
        sizes.append(n)
        n = int(np.ceil(_GROWTH * n))
    return sizes


def _for_columns(fitted: Pipeline, rows: Rows) -> Estimator:
    """Return the model of a fitted pipeline with coefficients for the columns as given."""
    scaler, model = fitted
    model.coef_ = model.coef_ / scaler.scale_
    if scaler.with_mean:
        model.intercept_ = model.intercept_ - model.coef_ @ scaler.mean_
    check_feature_names(model, rows, reset=True)
    return model


def _refuse_design(design: str, n_classes: int | str, private: float | None) -> None:
    """Refuse unknown designs and numbers of classes, and combinations that do not work."""
    if design not in DESIGNS:
        raise InputError(f"`design` is one of {', '.join(DESIGNS)}; got `design={design!r}`.")
    if n_classes != "auto" and (not isinstance(n_classes, (int, np.integer)) or n_classes < 2):
        raise InputError(f'`n_classes` must be 2 or more, or "auto"; got `n_classes={n_classes!r}`.')
    if private is not None and n_classes != 2:
        raise InputError("`private` is for two classes: among more, a flip may open a class. Give `n_classes=2`.")
    if private is not None and design != "random":
        raise InputError(f'`private` needs disjoint pairs, unlike {design!r}. Give `design="random"`.')
    if design in ("linked", "random") and n_classes != 2:
        raise InputError(f'`design={design!r}` is for two classes. Leave `n_classes` out, or use `design="match"`.')


def _refuse_seeds(n_seeds: int, n_classes: int | str) -> None:
    """Refuse "nearer" without an example of each class: no answer opens one."""
    if n_seeds < 2 or n_classes not in ("auto", n_seeds):
        raise InputError(
            '`design="nearer"` compares points with examples of two classes: give at least one example of each class '
            f"as `seeds`, and their number as `n_classes`; got `n_classes={n_classes!r}`, seeds of {n_seeds} classes."
        )


def _checked_seeds(seeds: Sequence[int | Sequence[int]], n_points: int, design: str) -> tuple[tuple[int, ...], ...]:
    """Return the example points of each class."""
    classes = tuple(tuple(np.atleast_1d(np.asarray(points, dtype=np.intp)).tolist()) for points in seeds)
    every = [point for points in classes for point in points]
    if classes and design in ("linked", "random"):
        raise InputError('`seeds` are examples of classes, for `design="match"`, "sort" or "nearer".')
    if not all(classes) or len(set(every)) < len(every) or not all(0 <= point < n_points for point in every):
        raise InputError(f"`seeds` are row numbers from 0 to {n_points - 1}, at least one a class and none twice.")
    return classes
