"""What a fit was given and what it found, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sdulearn.diagnostics import Finding
from sdulearn.io.checked import (
    checked_finite,
    checked_interval,
    checked_list,
    checked_prior,
    checked_share,
    checked_text,
    checked_whole,
)
from sdulearn.metrics import AccuracyEstimate, AnswerCounts, ClassAgreement, Share
from sdulearn.prior import PriorEstimate

_KINDS = ("linear", "boosted")


@dataclass(frozen=True)
class AnnotatorReport:
    """One of those who answered.

    Attributes
    ----------
    name : str
        The name in the answers; empty where it is not known who answered.
    rate : float
        Probability that an answer is wrong.
    low, high : float
        95% interval of the rate.
    identified : bool
        Whether the answers say anything about the rate; where they do not, it is taken to be 0.
    n_answers : int
        Number of answers.
    """

    name: str
    rate: float
    low: float
    high: float
    identified: bool
    n_answers: int


@dataclass(frozen=True)
class ModelChoice:
    """Which kind of model was fitted, and why.

    Attributes
    ----------
    name : {"linear", "boosted"}
        A line (more classes: a line each), or boosted trees that start from one.
    scores : dict
        Mean log-likelihood of a held-out answer by each kind that was compared; empty where none was.
    gap_error : float or None
        Standard error of the difference of the two scores over components of the answers; None where unknown.
    """

    name: str = "linear"
    scores: Mapping[str, float] = field(default_factory=dict)
    gap_error: float | None = None


@dataclass(frozen=True)
class DoubtfulAnswer:
    """An answer that may be wrong, to be asked again.

    Attributes
    ----------
    id_a, id_b : str
        The two rows.
    similar : bool
        The answer.
    annotator : str
        Who gave it; empty where that is not known.
    wrong : float
        Probability that it is wrong, given the model and all other answers. The model learned from this answer
        too, so it is rather too low.
    """

    id_a: str
    id_b: str
    similar: bool
    annotator: str
    wrong: float


@dataclass(frozen=True)
class ColumnImportance:
    """What a column of the table is worth to a model.

    Attributes
    ----------
    column : str
        Its name.
    loss : float
        Accuracy that is lost where the column is shuffled, by held-out answers; with more than two classes, agreement
        with these. All answers count as right. Columns that say the same share what they are worth.
    error : float
        Standard error of the loss, for the models as they are.
    """

    column: str
    loss: float
    error: float


@dataclass(frozen=True)
class ColumnDependence:
    """What a model says on average where a column has a value and all others are as they are.

    Attributes
    ----------
    column : str
        Its name.
    values : tuple of float or of str
        Numbers, rising, or categories.
    probability : tuple of float
        Mean probability of the second class. It mixes values that may never meet in a row.
    """

    column: str
    values: tuple[float | str, ...]
    probability: tuple[float, ...]


@dataclass(frozen=True)
class FitReport:
    """What a fit was given and what it found, as data.

    Attributes
    ----------
    sdulearn : str
        Version that fitted the model.
    method : str
        "joint", or a risk of the paper.
    settings : dict
        Settings that were chosen, such as alpha.
    table, answers : str
        Names of what was read.
    n_rows, n_unlabeled : int
        Rows of the table, and rows used as unlabeled.
    n_similar, n_dissimilar, n_unsure : int
        Answers used, and answers "unsure".
    n_points, n_independent : int
        Points in the answers used, and answers among these that do not follow from the others.
    answer_columns : dict
        Which column of the answers was read as what.
    answer_words : dict
        What each word for an answer was taken for, and how often it occurs.
    accuracy : AccuracyEstimate or None
        By cross-validation on the answers, or on those to random questions where a log says that others were chosen
        (``basis``); None with more than two classes, whose accuracy answers alone do not tell.
    prior : PriorEstimate or None
        Share of class +1, by the same answers; None with more than two classes.
    annotators : tuple of AnnotatorReport
        Who answered, and how often wrongly; empty for methods that take all answers for right.
    n_labels, n_labels_right : int
        Labels that named the classes, and how many of them the model predicts.
    findings : tuple of Finding
        Where the data disagree with what the method assumes, and what the result leaves open.
    seconds : dict
        Time spent on reading and on fitting.
    agreement : ClassAgreement or None
        With more than two classes: how predictions agree with held-out answers, and the accuracy where labels or
        large groups of answers tell it. Intervals are widened for what folds, and answers about one point, have
        in common.
    class_shares : tuple of float
        Mean probability of each class over the unlabeled rows; empty where the loss gives none.
    n_classes_interval : tuple of two int, or None
        The fewest and the most classes that the answers allow, where the number of classes was found by them.
    model_choice : ModelChoice
        Which kind of model, and by what margin.
    doubtful : tuple of DoubtfulAnswer
        The most doubtful answers, the worst first; empty for methods that take all answers for right, and where
        the table was not read whole.
    importances : tuple of ColumnImportance
        The columns that the model goes by, the most important first, at most 15; empty where the table was not read
        whole, and where all answers are of one kind.
    dependences : tuple of ColumnDependence
        Of the first four of these whose loss is more than its error; empty with more than two classes and where the
        model gives no probabilities.
    """

    sdulearn: str
    method: str
    settings: Mapping[str, float]
    table: str
    answers: str
    n_rows: int
    n_unlabeled: int
    n_similar: int
    n_dissimilar: int
    n_unsure: int
    n_points: int
    n_independent: int
    answer_columns: Mapping[str, str]
    answer_words: Mapping[str, Sequence[int]]
    accuracy: AccuracyEstimate | None
    prior: PriorEstimate | None
    annotators: tuple[AnnotatorReport, ...]
    n_labels: int
    n_labels_right: int
    findings: tuple[Finding, ...]
    seconds: Mapping[str, float]
    agreement: ClassAgreement | None = None
    class_shares: tuple[float, ...] = ()
    n_classes_interval: tuple[int, int] | None = None
    model_choice: ModelChoice = field(default_factory=ModelChoice)
    doubtful: tuple[DoubtfulAnswer, ...] = ()
    importances: tuple[ColumnImportance, ...] = ()
    dependences: tuple[ColumnDependence, ...] = ()


def parse_report(report: Mapping[str, Any]) -> FitReport:
    """A report from a model file, every value checked."""
    answers = ("n_similar", "n_dissimilar", "n_unsure", "n_points", "n_independent")
    counts = ("n_rows", "n_unlabeled", *answers, "n_labels", "n_labels_right")
    known: dict[str, Any] = {name: checked_text(report[name]) for name in ("sdulearn", "method", "table", "answers")}
    known |= {name: checked_whole(report[name], 0, 2**62) for name in counts}
    return FitReport(
        **known,
        settings={checked_text(name): checked_finite(value) for name, value in report["settings"].items()},
        answer_columns={checked_text(role): checked_text(name) for role, name in report["answer_columns"].items()},
        answer_words={
            checked_text(word): (checked_whole(answer, -1, 1), checked_whole(count, 0, 2**62))
            for word, (answer, count) in report["answer_words"].items()
        },
        accuracy=None if report["accuracy"] is None else _parse_accuracy(report["accuracy"]),
        prior=None if report["prior"] is None else checked_prior(report["prior"]),
        annotators=tuple(_parse_annotator(one) for one in checked_list(report["annotators"])),
        findings=tuple(_parse_finding(finding) for finding in checked_list(report["findings"])),
        seconds={checked_text(name): checked_finite(value) for name, value in report["seconds"].items()},
        **_parse_later(report),
    )


def _parse_later(report: Mapping[str, Any]) -> dict[str, Any]:
    """What files of earlier versions do not have."""
    if "model_choice" not in report:
        return {}
    agreement = report["agreement"]
    interval = report.get("n_classes_interval")
    return {
        "agreement": None if agreement is None else _parse_agreement(agreement),
        "class_shares": tuple(checked_share(share) for share in checked_list(report["class_shares"])),
        "n_classes_interval": None if interval is None else checked_interval(interval),
        "model_choice": _parse_choice(report["model_choice"]),
        "doubtful": tuple(_parse_doubtful(one) for one in checked_list(report["doubtful"])),
        "importances": tuple(_parse_importance(one) for one in checked_list(report.get("importances", []))),
        "dependences": tuple(_parse_dependence(one) for one in checked_list(report.get("dependences", []))),
    }


def _parse_agreement(found: Mapping[str, Any]) -> ClassAgreement:
    if found["basis"] not in ("labels", "groups", "random questions", None):
        raise ValueError(f"unknown basis {found['basis']!r}")
    accuracy = None if found["accuracy"] is None else _parse_share(found["accuracy"])
    shares = {name: _parse_share(found[name]) for name in ("agreement", "same", "different")}
    return ClassAgreement(
        **shares,
        accuracy=accuracy,
        basis=found["basis"],
        confidence=checked_share(found["confidence"]),
        counts=None if found.get("counts") is None else _parse_counts(found["counts"]),
    )


def _parse_counts(found: Mapping[str, Any]) -> AnswerCounts:
    classes = tuple(checked_whole(name, -1, 2**31) for name in checked_list(found["classes"]))
    tables = {}
    for kind in ("same", "different"):
        table = tuple(tuple(checked_finite(n) for n in checked_list(row)) for row in checked_list(found[kind]))
        if [len(row) for row in table] != [len(classes)] * len(classes):
            raise ValueError("counts of answers are not a square of the classes")
        tables[kind] = table
    return AnswerCounts(classes, **tables)


def _parse_share(numbers: Mapping[str, Any]) -> Share:
    low, high = (checked_share(numbers[name]) for name in ("low", "high"))
    n = checked_finite(numbers["n"])
    # Of nothing there is no share.
    return Share(checked_share(numbers["value"]) if n else float("nan"), low, high, n)


def _parse_choice(choice: Mapping[str, Any]) -> ModelChoice:
    scores = {checked_text(name): checked_finite(score) for name, score in choice["scores"].items()}
    if choice["name"] not in _KINDS or set(scores) not in (set(), set(_KINDS)):
        raise ValueError("the kinds of models are not known")
    gap_error = None if choice["gap_error"] is None else checked_finite(choice["gap_error"])
    return ModelChoice(choice["name"], scores, gap_error)


def _parse_doubtful(answer: Mapping[str, Any]) -> DoubtfulAnswer:
    if type(answer["similar"]) is not bool:
        raise TypeError("expected true or false")
    texts = {name: checked_text(answer[name]) for name in ("id_a", "id_b", "annotator")}
    return DoubtfulAnswer(**texts, similar=answer["similar"], wrong=checked_share(answer["wrong"]))


def _parse_importance(one: Mapping[str, Any]) -> ColumnImportance:
    return ColumnImportance(checked_text(one["column"]), checked_finite(one["loss"]), checked_finite(one["error"]))


def _parse_dependence(one: Mapping[str, Any]) -> ColumnDependence:
    given = checked_list(one["values"])
    named = bool(given) and isinstance(given[0], str)
    values = tuple(checked_text(value) if named else checked_finite(value) for value in given)
    probability = tuple(checked_share(share) for share in checked_list(one["probability"]))
    if len(values) != len(probability):
        raise ValueError("values and probabilities do not fit together")
    return ColumnDependence(checked_text(one["column"]), values, probability)


def _parse_accuracy(numbers: Mapping[str, Any]) -> AccuracyEstimate:
    shares = {
        name: checked_share(numbers[name]) for name in ("value", "low", "high", "agreement", "confidence", "majority")
    }
    basis = numbers.get("basis", "held-out answers")
    if basis not in ("held-out answers", "random questions"):
        raise ValueError(f"unknown basis {basis!r}")
    return AccuracyEstimate(**shares, n_answers=checked_whole(numbers["n_answers"], 0, 2**62), basis=basis)


def _parse_annotator(numbers: Mapping[str, Any]) -> AnnotatorReport:
    if type(numbers["identified"]) is not bool:
        raise TypeError("expected true or false")
    rates = {name: checked_share(numbers[name]) for name in ("rate", "low", "high")}
    return AnnotatorReport(
        name=checked_text(numbers["name"]),
        **rates,
        identified=numbers["identified"],
        n_answers=checked_whole(numbers["n_answers"], 0, 2**62),
    )


def _parse_finding(finding: Mapping[str, Any]) -> Finding:
    severity = finding["severity"]
    if severity not in ("info", "warning", "error"):
        raise ValueError(f"unknown severity {severity!r}")
    details = finding["details"]
    if not isinstance(details, dict):
        raise TypeError("a finding has no details")
    return Finding(checked_text(finding["code"]), severity, details)
