"""The content of a report as findings: what was learned, how accurate it is, what was read; then charts.

All outputs show these: ``lines`` on a terminal, :mod:`sdulearn.report.page` as a page, ``as_json`` as data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import floor
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import numpy as np

from sdulearn.answers.answer_model import Rate
from sdulearn.answers.records import Answers, BadRow, flip_rate
from sdulearn.answers.y import DISSIMILAR, SIMILAR, UNSURE
from sdulearn.diagnostics import check_columns
from sdulearn.errors import listed, quoted, shortened
from sdulearn.findings import (
    MAX_COLUMNS,
    MAX_NAMES,
    Finding,
    Listing,
    UnreadableRows,
    count_of,
    error_rate,
    independent,
    interval,
)
from sdulearn.metrics.accuracy import ENOUGH_RANDOM, AccuracyEstimate
from sdulearn.metrics.classes import ClassAgreement, Share
from sdulearn.prior import PriorEstimate
from sdulearn.report.records import (
    AnnotatorReport,
    ColumnDependence,
    ColumnImportance,
    DoubtfulAnswer,
    FitReport,
    ModelChoice,
    chosen_settings,
    feature_strengths,
)
from sdulearn.tables.columns import Columns
from sdulearn.types import Between, Estimator, Probability

# A :class:`sdulearn.TableModel`, whose module is above this one.
TableModel: TypeAlias = Any
Kind = TypeVar("Kind", bound=Finding)

ANSWER_NAMES = {SIMILAR: "similar", DISSIMILAR: "dissimilar", UNSURE: "unsure"}
# An answer that is less likely to be wrong is not worth asking again.
MIN_DOUBT = 0.01
ITEMS_SHOWN = 5
_MAX_ASKED_ROWS = 50
# A wider confidence interval for the accuracy asks for more answers.
_MAX_WIDTH = 0.1
# From this estimate on, a model is right for "nearly all" rows.
_NEARLY_ALL = 0.985
_NOT_ACROSS = "No held-out answer compares random rows of two groups. Ask about pairs of such rows."
_NO_RANDOM = "No question was about a random row, and chosen rows do not represent the others."


# The first three sentences of every output


class Opening(Finding, severity="result"):
    """A sentence at the beginning."""


class Learned(Opening, severity="result"):
    kind: str
    n_classes: int
    n_answers: int
    n_labels: int
    n_rows: int
    classes: tuple[str, ...]  # names, if labels name them
    answers: str
    table: str

    def __str__(self) -> str:
        kind = {"linear": "a linear model", "boosted": "boosted trees"}[self.kind]
        names = f" ({listed(map(shortened, self.classes), MAX_NAMES)})" if self.classes else ""
        labels = f", {count_of(self.n_labels, 'label', 'labels')}" if self.n_labels else ""
        # Frames in memory have no name.
        answers, table = ("" if name.startswith("the ") else f" ({name})" for name in (self.answers, self.table))
        source = f"{self.n_answers:,} answers{answers}{labels} and {self.n_rows:,} rows{table}"
        return f"Learned {self.n_classes} classes{names} with {kind} from {source}."


class Headline(Opening, severity="result"):
    measure: Literal["accuracy", "agreement"]
    value: Annotated[float, Between(0, 1, nan=True)]
    low: Probability
    high: Probability
    confidence: float
    n: float
    basis: str
    unknown: bool
    always_different: float | None = None
    groups: str = ""  # a column of rows that belong together, and how many groups the answers are about
    n_groups: int = 0

    def __str__(self) -> str:
        if not self.n:
            return f"Estimated accuracy: unknown. {_NOT_ACROSS if self.groups else _NO_RANDOM}"
        if self.unknown:
            return (
                f"Estimated accuracy: unknown from {self.n:.0f} random questions. It takes {ENOUGH_RANDOM}; ask more."
            )
        known = f"{self.value:.1%}, {interval(self.low, self.high, self.confidence)}"
        if self.measure == "agreement":
            return (
                "Estimated accuracy: unknown. It takes `labels`, or more random questions about each class. "
                f"Agreement with held-out answers: "
                f"{known}{_beside(self.always_different)}."
            )
        if self.basis == "chosen pairs":
            return (
                f"Estimated accuracy on pairs like those that were asked about: {known}. They were chosen by their "
                "features, so the accuracy on new rows is unknown."
            )
        rows = f"rows of a new {shortened(self.groups)}" if self.groups else "new rows"
        groups = f", about {self.n_groups:,} groups" if self.groups else ""
        return f"Estimated accuracy: {of_hundred(self.value, self.low, rows)} ({known}; from {self._source}{groups})."

    @property
    def _source(self) -> str:
        rows = {
            "labels": "held-out labelled rows",
            "groups": "groups of rows that the answers connect, each matched with a class; slightly too high",
            "rows of random questions": "rows of random questions, whose classes follow from the answers",
            "crowd": "rows that people were asked about, whose classes follow from all answers",
        }
        if self.basis not in rows:
            return f"{self.n:,g} {self.basis}"
        return f"{rows[self.basis]}, as precise as {self.n:.0f} independent rows"


def of_hundred(value: float, low: float, rows: str = "new rows") -> str:
    """Say how many of a hundred rows are right: the lower end of the interval first."""
    least, likely = floor(round(100 * low, 1)), round(100 * value)
    if least >= likely:
        return f"about {likely} of 100 {rows}"
    return f"at least {least} of 100 {rows}, probably {'nearly all' if value >= _NEARLY_ALL else f'about {likely}'}"


def _beside(always_different: float | None) -> str:
    """Say what an agreement must be compared with: with many classes most answers are "different"."""
    if always_different is None:
        return ""
    return f'; always answering "different" would agree with {always_different:.1%}'


Step = Literal["random", "separate", "look", "name", "more", "predict"]


class Next(Opening, severity="result"):
    step: Step
    n_warnings: int

    def __str__(self) -> str:
        use = "predict the classes of other rows"
        steps = {
            "random": "ask about random rows too: without them the accuracy is unknown",
            "separate": "ask about more pairs, or look for features that separate the classes",
            "look": f"look at {count_of(self.n_warnings, 'warning', 'warnings')} below, then {use}",
            "name": f"name the classes with a few labelled rows (`labels`), and {use}",
            "more": f"{use}, or ask more: the interval is wide",
            "predict": use,
        }
        return f"Next: {steps[self.step]}."


# Numbers


class Majority(Finding, severity="result"):
    majority: float
    high: float
    beaten: bool

    def __str__(self) -> str:
        up_to = f", and at most {self.high:.1%}" if self.high > self.majority else ""
        shown = "The model is better." if self.beaten else "The model is not shown to be better."
        return f"Always predicting the larger class is right for {self.majority:.1%} of the rows{up_to}. {shown}"


class AgreementWithAnswers(Finding, severity="result"):
    value: float
    low: float | None = None
    high: float | None = None
    same: float | None = None
    different: float | None = None
    always_different: float | None = None
    assumed_error_rate: float | None = None

    def __str__(self) -> str:
        text = f"The model agrees with {self.value:.1%} of the held-out answers"
        text += "" if self.low is None or self.high is None else f" ({interval(self.low, self.high)})"
        kinds = (("same", self.same), ("different", self.different))
        shares = " and ".join(f'{share:.1%} of "{kind}"' for kind, share in kinds if share is not None)
        text += f", {shares}" if shares else ""
        if self.assumed_error_rate is not None:
            unknown = (
                "How many answers are wrong is unknown; if more are than assumed, the estimated accuracy is too low"
            )
            return f"{text}. {unknown} ({self.assumed_error_rate:.1%} assumed)."
        return f"{text}{_beside(self.always_different)}."


class Prior(Finding, severity="result"):
    name: str | None
    value: float
    low: float
    high: float
    identified: bool
    confidence: float | None
    n_answers: float | None

    def __str__(self) -> str:
        share = "in the larger class" if self.name is None else f"of class {self.name}"
        if self.confidence is None:
            return f"Prior: {self.value:.1%} of the rows are {share}, as given."
        if self.n_answers == 0:
            return f"Prior: unknown. {_NO_RANDOM}"
        source = "the answers" if self.n_answers is None else count_of(self.n_answers, "answer", "answers")
        known = f"{interval(self.low, self.high, self.confidence)}, from {source}"
        text = f"Prior: {self.value:.1%} of the rows are {share} ({known})."
        return text if self.identified else f"{text} The answers do not show which class is larger."


class ClassShares(Finding, severity="result"):
    n_classes: int
    interval: tuple[int, int] | None
    shares: Mapping[str, float]

    def __str__(self) -> str:
        text = f"{self.n_classes} classes"
        if self.interval is not None:
            low, high = self.interval
            allowed = "no other number" if low == high else f"{low} to {high}"
            text += f", a number chosen by the answers, which allow {allowed}"
        shares = ", ".join(f"{name} {share:.1%}" for name, share in self.shares.items())
        return f"{text}; estimated shares of the rows: {shares}." if shares else f"{text}."


class Annotators(Finding, severity="result"):
    annotators: tuple[AnnotatorReport, ...]
    rate: Rate

    def __str__(self) -> str:
        if len(self.annotators) <= MAX_COLUMNS:
            return f"Wrong answers by annotator: {'; '.join(map(_annotator, self.annotators))}."
        people = sorted(self.annotators, key=lambda person: -person.rate)
        worst = "; ".join(map(_annotator, people[:MAX_NAMES]))
        rate = error_rate(self.rate.value, self.rate.low, self.rate.high, self.rate.identified)
        return f"{rate} Of {len(people):,} people, most often wrong: {worst}."


def _annotator(person: AnnotatorReport) -> str:
    name = f"{person.name}, " if person.name else ""
    if not person.identified:
        few = f"unknown for {person.n_answers:,} answers, as few of them can be compared"
        return f"{name}{few} ({person.rate:.1%} assumed)"
    known = f" ({interval(person.low, person.high)})" if person.low < person.high else ""
    return f"{name}{person.rate:.1%} of {person.n_answers:,}{known}"


class LabelsUsed(Finding, severity="result"):
    classes: tuple[str, ...]
    n_labels: int
    n_right: int

    def __str__(self) -> str:
        names = self.classes
        named = f"{names[0]} is -1, {names[1]} is +1; t" if len(names) == 2 else "T"
        return f"{named}he model predicts {self.n_right:,} of the {self.n_labels:,} labels that it was fitted to."


class ModelKind(Finding, severity="result"):
    choice: ModelChoice

    def __str__(self) -> str:
        linear, boosted = (self.choice.scores[kind] for kind in ("linear", "boosted"))
        known = self.choice.gap_error is not None
        error = f", standard error {self.choice.gap_error:.3f}" if known else ""
        gap = f"linear {linear:.3f}, boosted {boosted:.3f} (difference {boosted - linear:+.3f}{error})"
        how = ", chosen by cross-validation" if known else ""
        return f"Model: {self.choice.name}{how}; held-out log-likelihood of an answer: {gap}."


# What was read


class AnswersRead(Finding, severity="result"):
    name: str
    format: str
    n_similar: int
    n_dissimilar: int
    n_unsure: int
    n_unanswered: int
    n_questions: int | None = None
    epsilon: float | None = None

    def __str__(self) -> str:
        counts = f"{self.n_similar:,} similar, {self.n_dissimilar:,} dissimilar, {self.n_unsure:,} unsure"
        if self.n_questions is not None:
            counts = f"{self.n_questions:,} answers to questions with several choices, which imply pairs: {counts}"
        text = f"{self.name}, read as {self.format}: {counts}."
        if self.n_unanswered:
            text += f" {count_of(self.n_unanswered, 'question has', 'questions have')} no answer yet."
        if self.epsilon is not None:
            flipped = f"Answers were flipped with probability {flip_rate(self.epsilon):.1%}"
            text += f" {flipped} (epsilon {self.epsilon:g})."
        return text


class Understood(Finding, severity="result"):
    columns: Mapping[str, str]
    words: Mapping[str, tuple[int, int]]

    def __str__(self) -> str:
        roles = ", ".join(f"{role} = {quoted(name)}" for role, name in self.columns.items())
        words = (f"{quoted(word)} = {ANSWER_NAMES[code]} ({count:,})" for word, (code, count) in self.words.items())
        return f"Columns of the answers: {roles or 'none'}. Labels: {', '.join(words) or 'none'}."


class AnswersUsed(Finding, severity="result"):
    answers: str
    n_similar: int
    n_dissimilar: int
    n_unsure: int
    n_points: int
    n_independent: int
    n_questions: int | None

    def __str__(self) -> str:
        n = self.n_similar + self.n_dissimilar
        kind = f"pairs from {self.n_questions:,} answers" if self.n_questions else "answers"
        used = f"{self.n_similar:,} similar and {self.n_dissimilar:,} dissimilar {kind} used"
        shared = ", each in one answer" if self.n_points == 2 * n else f"; {independent(self.n_independent, n)}"
        return f"{self.answers}: {used}, about {self.n_points:,} rows{shared}; {self.n_unsure:,} unsure."


class TableRead(Finding, severity="result"):
    table: str
    n_rows: int
    n_unlabeled: int
    n_columns: int
    n_features: int
    id_column: str | None

    def __str__(self) -> str:
        ids = f"ids from {quoted(self.id_column)}" if self.id_column else "rows numbered from 0"
        features = f"{count_of(self.n_columns, 'column', 'columns')}, {self.n_features:,} features"
        return f"{self.table}: {self.n_rows:,} rows, {features}, {ids}; {self.n_unlabeled:,} rows used as unlabeled."


class ColumnsRead(Finding, severity="result"):
    number: tuple[str, ...]
    boolean: tuple[str, ...]
    date: tuple[str, ...]
    category: Mapping[str, int]
    text: Mapping[str, int]
    image: Mapping[str, int]
    decimal_commas: tuple[str, ...]
    missing_texts: Mapping[str, tuple[str, ...]]
    missing: Mapping[str, int]
    missing_kept: bool

    def __str__(self) -> str:
        kinds: dict[str, Sequence[str] | Mapping[str, int]] = {
            "numbers": self.number,
            "true or false": self.boolean,
            "dates, in days": self.date,
            "categories, with their number": self.category,
            "texts, with the number of features": self.text,
            "images, with the number of features": self.image,
            "decimal commas in": self.decimal_commas,
        }
        shown = [f"{what}: {_named(columns)}" for what, columns in kinds.items() if columns]
        cells = [f"{shortened(name)} {', '.join(map(quoted, texts))}" for name, texts in self.missing_texts.items()]
        shown += [f"read as missing: {', '.join(cells)}"] if cells else []
        text = f"Columns read as {'; '.join(shown)}."
        if not self.missing:
            return text
        how = "which trees take as they are" if self.missing_kept else "filled with the mean, or treated as a category"
        return f"{text} Missing values, {how}: {_named(self.missing)}."


def _named(columns: Sequence[str] | Mapping[str, int]) -> str:
    """List columns, with their numbers if they have any."""
    numbers = {name: f" ({n:,})" for name, n in columns.items()} if isinstance(columns, Mapping) else {}
    return listed((shortened(name) + numbers.get(name, "") for name in columns), MAX_COLUMNS)


class Settings(Finding, severity="result"):
    estimator: str
    method: str
    loss: str
    settings: Mapping[str, float]
    start: Literal["linear", "kernel"] | None = None  # of trees

    def __str__(self) -> str:
        chosen = ", ".join(f"{name} {value:.3g}" for name, value in self.settings.items())
        kind = "joint likelihood of pairs" if self.method == "joint" else f"risk {self.method}, loss {self.loss}"
        if self.start is not None:
            kind += ", boosted trees" if self.settings["n_rounds"] else ", boosted trees (none kept)"
            kind += f" on a {'linear model' if self.start == 'linear' else 'kernel map'}"
        return f"Method: {kind}: {chosen or 'default settings'}."


# Classes of rows in answers


@dataclass(frozen=True)
class AskedRow:
    """A row in answers: its class by features and answers together."""

    id: str
    label: str
    probability: float
    n_answers: int


class Answered(Finding, severity="result"):
    n_rows: int
    mean: float
    rows: tuple[AskedRow, ...]

    def __str__(self) -> str:
        return (
            f"{self.n_rows:,} rows were asked about. From features and answers together, the mean probability of their "
            f"classes is {self.mean:.1%}."
        )


class ClassesFound(Finding, severity="result"):
    n_ids: int
    n_classes: int
    sizes: Mapping[str, int]
    n_open: int
    probability: float

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}: {size:,}" for name, size in self.sizes.items())
        known = f"mean probability {self.probability:.1%}"
        text = f"{self.n_classes} classes of {self.n_ids:,} connected ids ({sizes}); {known}."
        unknown = f" {count_of(self.n_open, 'id has', 'ids have')} no class: the answers leave it open."
        return text + (unknown if self.n_open else "")


class UnconnectedParts(Finding, severity="warning"):
    n_ids: int
    n_parts: int

    def __str__(self) -> str:
        ids = count_of(self.n_ids, "id is", "ids are")
        return (
            f"{ids} not connected with these by answers (number of parts: {self.n_parts:,}). Class 1 of one part need "
            "not be class 1 of another: ask about pairs of ids from different parts."
        )


# Charts


class Chart(Finding, severity="result"):
    """A finding for a chart: on the page, not on a terminal."""


class HeldOutCounts(Chart, severity="result"):
    classes: tuple[str, ...]
    same: tuple[tuple[float, ...], ...]
    different: tuple[tuple[float, ...], ...]

    def __str__(self) -> str:
        return "Held-out answers same / different, by the predicted classes of the two rows."


class Doubtful(Chart, severity="result"):
    answers: tuple[DoubtfulAnswer, ...]

    def __str__(self) -> str:
        if not self.answers:
            return f"No answer is doubtful: by model and other answers, each is right with {1 - MIN_DOUBT:.0%} or more."
        shown = "; ".join(f"{one.id_a} and {one.id_b} {one.wrong:.0%}" for one in self.answers[:MAX_NAMES])
        return f"Answers most likely to be wrong: {shown}."


class Strengths(Chart, severity="result"):
    strengths: Mapping[str, Mapping[str, float]]

    def __str__(self) -> str:
        return "Features by their strength in the decision."


class Importances(Chart, severity="result"):
    measure: str
    columns: tuple[ColumnImportance, ...]

    def __str__(self) -> str:
        return f"Loss of {self.measure} if a column is shuffled."


class Dependence(Chart, severity="result"):
    name: str
    curve: ColumnDependence

    def __str__(self) -> str:
        return f"Mean probability of class {self.name} by {self.curve.column}."


# Which findings an output shows


def findings_of_model(model: TableModel) -> list[Finding]:
    """Return the findings of a model in reading order: opening, warnings, notes, numbers, charts."""
    report: FitReport | None = model.report
    if report is None:
        return [*findings_of_estimator(model.estimator), strengths(model)]
    found = findings_of_report(report, model.names)
    found += [*_read(report, model.columns), _settings(model.estimator)]
    if model.asked is not None:
        sure = model.asked.probabilities.max(axis=1)
        rows = tuple(least_certain(model, _MAX_ASKED_ROWS))
        found.append(Answered(n_rows=len(sure), mean=float(sure.mean()), rows=rows))
    if report.agreement is not None and (counts := report.agreement.counts) is not None:
        names = tuple(model.names[number - 1] for number in counts.classes)
        found.append(HeldOutCounts(classes=names, same=counts.same, different=counts.different))
    if report.doubtful:
        found.append(Doubtful(answers=tuple(one for one in report.doubtful if one.wrong >= MIN_DOUBT)))
    found.append(strengths(model))
    if report.importances:
        measure = "accuracy" if len(model.classes) == 2 else "agreement with held-out answers"
        found.append(Importances(measure=measure, columns=report.importances))
    return [*found, *(Dependence(name=model.names[1], curve=curve) for curve in report.dependences)]


def findings_of_report(report: FitReport, names: Sequence[str]) -> list[Finding]:
    """Return the findings of a report alone: opening, warnings, notes, numbers; ``names`` of the classes."""
    headline = headline_of(report)
    severities = ("error", "warning", "info", "result")
    stored = sorted(report.findings, key=lambda finding: severities.index(finding.severity))
    found = [_learned(report, names), headline, _next(report, headline), *stored, *_beside_headline(report, headline)]
    found += findings_of_prior(report.prior, names[-1])
    # Two classes have one share, that of the prior.
    if report.prior is None or report.n_classes_interval is not None:
        shares = {} if report.prior is not None else dict(zip(names, report.class_shares, strict=False))
        found.append(ClassShares(n_classes=len(names), interval=report.n_classes_interval, shares=shares))
    # A single annotator without known errors is not worth a sentence.
    rate = report.error_rate
    if rate is not None and (len(report.annotators) > 1 or any(one.rate > 0 for one in report.annotators)):
        found.append(Annotators(annotators=report.annotators, rate=rate))
    if report.n_labels:
        found.append(LabelsUsed(classes=tuple(names), n_labels=report.n_labels, n_right=report.n_labels_right))
    if report.model_choice.scores:
        found.append(ModelKind(choice=report.model_choice))
    return [*found, _of(AnswersUsed, report), Understood(columns=report.answer_columns, words=report.answer_words)]


def findings_of_estimator(estimator: Estimator) -> list[Finding]:
    """Return the findings of an estimator without a table."""
    found: list[Finding] = [_settings(estimator), *findings_of_prior(estimator.prior_, "+1")]
    if estimator.prior_ is None:
        allowed = getattr(estimator, "n_classes_interval_", None)
        found.append(ClassShares(n_classes=len(estimator.classes_), interval=allowed, shares={}))
    return found


def findings_of_answers(answers: Answers) -> list[Finding]:
    """Return how a file of answers was read, and what could not be read."""
    counts = _of(AnswersRead, answers, n_questions=None if answers.questions is None else answers.n_questions)
    understood = Understood(columns=answers.columns, words=answers.words)
    return [counts, understood, *check_columns(answers), *unreadable(answers.bad_rows)]


def unreadable(rows: Sequence[BadRow]) -> list[Finding]:
    """Return a finding of rows that could not be read, if there are any."""
    items = tuple(f"line {row.line}: {row.reason}" for row in rows)
    return [UnreadableRows(count=len(items), items=items)] if items else []


def findings_of_prior(prior: PriorEstimate | None, name: str | None = None) -> list[Finding]:
    """Return the share of the class of that name, by default of the larger one; nothing without a prior."""
    if prior is None:
        return []
    counts = [n for n in (prior.n_similar, prior.n_dissimilar) if n is not None]
    return [_of(Prior, prior, name=name, n_answers=sum(counts) if counts else None)]


def _of(finding: type[Kind], record: object, /, **given: object) -> Kind:
    """Return a finding whose fields are the attributes of a record with their names, but for those given."""
    names = [field.name for field in fields(finding) if field.name not in given]
    return finding(**{name: getattr(record, name) for name in names}, **given)


def least_certain(model: TableModel, most: int) -> list[AskedRow]:
    """Return the rows in answers, least certain first."""
    asked = model.answered
    assert asked is not None
    sure = asked["probabilities"].max(axis=1)
    order = np.argsort(sure, kind="stable")[:most].tolist()
    ids, names, counts = asked["id"], asked["class"], asked["n_answers"]
    return [AskedRow(str(ids[k]), str(names[k]), float(sure[k]), int(counts[k])) for k in order]


def lines(found: Iterable[Finding], show: int = 0, indent: str = "") -> list[str]:
    """Return findings but charts as lines of text, ``indent``ed after the opening, with up to ``show`` items each."""
    prefix = {"result": "", "info": "note: ", "warning": "warning: ", "error": "error: "}
    text = []
    for finding in (finding for finding in found if not isinstance(finding, Chart)):
        space = "" if isinstance(finding, Opening) else indent
        text.append(f"{space}{prefix[finding.severity]}{finding}")
        if isinstance(finding, Listing) and show:
            text += [f"  {item}" for item in finding.items[:show]]
            if finding.items and finding.count > show:
                text.append(f"  ... and {finding.count - show:,} more (sdulearn check --limit {finding.count})")
    return text


def strengths(model: TableModel) -> Strengths:
    """Return features by class, strongest first: coefficients, or importances of trees."""
    names = model.columns.input_names
    by_class = feature_strengths(model.estimator, model.names)
    order = {name: np.argsort(-np.abs(values), kind="stable").tolist() for name, values in by_class.items()}
    return Strengths(strengths={name: {names[j]: float(by_class[name][j]) for j in order[name]} for name in order})


def _learned(report: FitReport, names: Sequence[str]) -> Learned:
    return _of(
        Learned,
        report,
        kind=report.model_choice.name,
        n_classes=len(names),
        n_answers=report.n_questions or report.n_similar + report.n_dissimilar,
        classes=tuple(names) if report.n_labels else (),
    )


def headline_of(report: FitReport) -> Headline:
    """Return the accuracy, or with more than two classes, where it is unknown, the agreement."""
    shown: AccuracyEstimate | Share
    measure: Literal["accuracy", "agreement"] = "accuracy"
    always_different = None
    n: float
    if report.agreement is None:
        assert report.accuracy is not None
        shown = report.accuracy
        n, basis, confidence = shown.n_answers, str(shown.basis), shown.confidence
    else:
        found = report.agreement
        shown = found.accuracy or found.agreement
        n, basis, confidence = shown.n, str(found.basis), found.confidence
        if found.accuracy is None:
            measure, basis, always_different = "agreement", "held-out answers", _always_different(found)
    # Too few random questions determine no accuracy.
    is_random = basis == "random questions"
    return Headline(
        measure=measure,
        value=shown.value,
        low=shown.low,
        high=shown.high,
        confidence=confidence,
        n=n,
        basis="rows of random questions" if is_random and report.agreement is not None else basis,
        unknown=not n or (is_random and n < ENOUGH_RANDOM),
        always_different=always_different,
        groups=report.groups,
        n_groups=report.n_groups,
    )


def _always_different(found: ClassAgreement) -> float | None:
    """Return the share of held-out answers that are "different"."""
    if found.counts is None:
        return None
    # The tables are symmetric, and an answer off the diagonal is in two places.
    same, different = (float(np.triu(table).sum()) for table in (found.counts.same, found.counts.different))
    return different / (same + different) if same + different else None


def _beside_headline(report: FitReport, headline: Headline) -> list[Finding]:
    """Return what to compare the headline with."""
    if report.agreement is not None:
        found = report.agreement
        if found.accuracy is None:
            return []
        return [
            AgreementWithAnswers(
                value=found.agreement.value,
                low=found.agreement.low,
                high=found.agreement.high,
                same=found.same.value if found.same.n else None,
                different=found.different.value if found.different.n else None,
                always_different=_always_different(found),
            )
        ]
    accuracy, prior = report.accuracy, report.prior
    if headline.unknown or accuracy is None:
        return []
    most = accuracy.majority if prior is None or prior.confidence is None else max(prior.high, 1 - prior.low)
    known = all(one.identified for one in report.annotators) or report.error_rate is None
    assumed = None if known else report.error_rate.value  # type: ignore[union-attr]
    return [
        Majority(majority=accuracy.majority, high=max(most, accuracy.majority), beaten=accuracy.beats_majority),
        AgreementWithAnswers(value=accuracy.agreement, assumed_error_rate=assumed),
    ]


def _next(report: FitReport, headline: Headline) -> Next:
    """Return the next step: the first thing that keeps the model from being used."""
    codes = {finding.code for finding in report.findings}
    n_warnings = sum(finding.severity != "info" for finding in report.findings)
    steps: dict[Step, bool] = {
        "random": headline.unknown or headline.basis == "chosen pairs",
        "separate": bool(codes & {"no_better_than_guessing", "no_better_than_majority"}),
        "look": n_warnings > len(codes & {"prior_not_identified", "names_uncertain"}),
        "name": not report.n_labels,
        "more": headline.high - headline.low > _MAX_WIDTH,
    }
    needed: list[Step] = [step for step, is_needed in steps.items() if is_needed]
    return Next(step=[*needed, "predict"][0], n_warnings=n_warnings)


def _read(report: FitReport, layout: Columns) -> list[Finding]:
    columns = layout.columns
    width = {name: transformer.width for name, transformer in layout.transformers.items()}
    table = _of(TableRead, report, n_columns=len(columns), n_features=layout.width, id_column=layout.id_column)
    kinds = ("number", "boolean", "date", "category", "text", "image")
    names = {kind: tuple(column.name for column in columns if column.kind == kind) for kind in kinds}
    spelled = [(column.name, column.text) for column in columns if column.text is not None]
    read = ColumnsRead(
        number=names["number"],
        boolean=names["boolean"],
        date=names["date"],
        category={column.name: len(column.categories) for column in columns if column.kind == "category"},
        text={name: width[name] for name in names["text"]},
        image={name: width[name] for name in names["image"]},
        decimal_commas=tuple(name for name, spelling in spelled if spelling.form == ","),
        missing_texts={name: tuple(spelling.marks) for name, spelling in spelled if spelling.marks},
        missing={column.name: column.n_gaps for column in columns if column.n_gaps},
        missing_kept=layout.keep_gaps,
    )
    return [table, read]


def _settings(estimator: Estimator) -> Settings:
    trees = hasattr(estimator, "n_rounds_")
    return Settings(
        estimator=type(estimator).__name__,
        method=getattr(estimator, "risk", "joint"),
        loss=getattr(estimator, "loss", ""),
        settings=chosen_settings(estimator),
        start=None if not trees else "kernel" if estimator.start_.has_kernel else "linear",
    )
