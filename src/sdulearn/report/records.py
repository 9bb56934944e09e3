"""The report of a fit as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Annotated, Literal, get_args

from sdulearn.answers.answer_model import Rate
from sdulearn.errors import InputError
from sdulearn.findings import Finding
from sdulearn.metrics.accuracy import AccuracyEstimate
from sdulearn.metrics.classes import ClassAgreement
from sdulearn.prior import PriorEstimate
from sdulearn.types import Array, Between, ClassName, Count, Estimator, Probability

ModelKind = Literal["linear", "boosted"]
# Rows that a partial dependence is measured on: more would not change the picture.
MAX_DEPENDENCE_ROWS = 300
ClassNumber = Annotated[int, Between(2, 2**16)]


@dataclass(frozen=True)
class AnnotatorReport:
    """Error rate of an annotator.

    Attributes
    ----------
    name : str
        The name in the answers; empty if unknown.
    rate, low, high : float
        Probability that an answer is wrong, and its 95% interval.
    identified : bool
        Whether the answers determine the rate; if not, a small rate is assumed.
    n_answers : int
        Number of answers.
    """

    name: str
    rate: Probability
    low: Probability
    high: Probability
    identified: bool
    n_answers: Count


@dataclass(frozen=True)
class ModelChoice:
    """Which kind of model was fitted, and why.

    Attributes
    ----------
    name : {"linear", "boosted"}
        A linear model, or boosted trees that start from one.
    scores : dict
        Mean log-likelihood of a held-out answer by kind of model; empty if none were compared.
    gap_error : float or None
        Standard error of the difference of the scores, over connected components of the answers; None if unknown.
    """

    name: ModelKind = "linear"
    scores: Mapping[str, float] = field(default_factory=dict)
    gap_error: float | None = None

    def __post_init__(self) -> None:
        if set(self.scores) not in (set(), set(get_args(ModelKind))):
            raise InputError("Scores are not those of a linear and a boosted model.")


@dataclass(frozen=True)
class DoubtfulAnswer:
    """An answer that may be wrong and should be asked again.

    Attributes
    ----------
    id_a, id_b, annotator : str
        The ids of the two rows, and who gave the answer (empty if unknown).
    similar : bool
        The answer.
    wrong : float
        Probability that it is wrong, given the model and all other answers. It is somewhat too
        low, as the model has learned from this answer, too.
    """

    id_a: str
    id_b: str
    similar: bool
    annotator: str
    wrong: Probability


@dataclass(frozen=True)
class ColumnImportance:
    """Importance of a column of the table for a model.

    Attributes
    ----------
    column : str
        Its name.
    loss : float
        Accuracy lost if the column is shuffled, from held-out answers; with more than two classes,
        agreement with these. All answers count as right. Correlated columns share their importance.
    error : float
        Standard error of the loss, given the fitted models.
    """

    column: str
    loss: float
    error: float


@dataclass(frozen=True)
class ColumnDependence:
    """Partial dependence: the mean prediction if all rows have a value in one column.

    Attributes
    ----------
    column : str
        Its name.
    values : tuple of float or of str
        Numbers in increasing order, or categories.
    probability : tuple of float
        Mean probability of the second class. It includes combinations of values that no row has.
    """

    column: str
    values: tuple[float, ...] | tuple[str, ...]
    probability: tuple[Probability, ...]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.probability):
            raise InputError("Values and probabilities do not fit together.")


@dataclass(frozen=True)
class FitReport:
    """The report of a fit: its data, settings, estimates and findings.

    Attributes
    ----------
    sdulearn, method, table, answers : str
        Version that fitted the model; "joint" or a risk of the paper; names of table and answers.
    settings, seconds : dict
        Chosen settings, such as alpha; time of reading and of fitting.
    n_rows, n_unlabeled : int
        Rows of the table, and rows used as unlabeled.
    n_similar, n_dissimilar, n_unsure : int
        Answers used, and answers "unsure".
    n_points, n_independent : int
        Points in the answers used, and answers that do not follow from the others.
    answer_columns, answer_words : dict
        How each column and each word of the answers was read, with the counts of the words.
    accuracy, prior : AccuracyEstimate and PriorEstimate, or None
        By cross-validation on the answers, and the share of class +1; by random questions alone if
        a log says that others were chosen. None with more than two classes.
    annotators, error_rate : tuple of AnnotatorReport, and Rate or None
        Error rates of each annotator, and of all together; empty and None for methods that take
        all answers to be right.
    n_labels, n_labels_right : int
        Labels that name the classes, and how many of them the model predicts.
    findings : tuple of Finding
        Disagreements of the data with the assumptions, and open questions.
    agreement : ClassAgreement or None
        With more than two classes: agreement of predictions with held-out answers, and the
        accuracy if labels or large groups of answers determine it.
    classes, class_shares : tuple of int or of str, and tuple of float
        Names of the classes, and their mean probabilities over the unlabeled rows; no shares if
        the loss gives no probabilities.
    n_classes_interval : tuple of two int, or None
        The fewest and the most classes that the answers allow, if the number was searched.
    model_choice : ModelChoice
        The kind of model, and the margin of the choice.
    doubtful : tuple of DoubtfulAnswer
        The ten most doubtful answers, the worst first; empty if all are taken to be right.
    importances : tuple of ColumnImportance
        At most 15 columns, the most important first; empty if all answers are of one kind.
    dependences : tuple of ColumnDependence
        Of the first four of these whose loss exceeds its error; empty with more than two classes
        or without probabilities.
    n_questions : int or None
        Number of questions with several choices, each about several pairs; None without these.
    groups, n_groups : str, int
        The column of rows that belong together, and how many groups the answers are about; the accuracy is that on
        new groups. Empty and 0 without one.
    """

    sdulearn: str
    method: str
    settings: Mapping[str, float]
    table: str
    answers: str
    n_rows: Count
    n_unlabeled: Count
    n_similar: Count
    n_dissimilar: Count
    n_unsure: Count
    n_points: Count
    n_independent: Count
    answer_columns: Mapping[str, str]
    answer_words: Mapping[str, tuple[Annotated[int, Between(-1, 1)], Count]]
    accuracy: AccuracyEstimate | None
    prior: PriorEstimate | None
    annotators: tuple[AnnotatorReport, ...]
    n_labels: Count
    n_labels_right: Count
    findings: tuple[Finding, ...]
    seconds: Mapping[str, float]
    agreement: ClassAgreement | None = None
    class_shares: tuple[Probability, ...] = ()
    n_classes_interval: tuple[ClassNumber, ClassNumber] | None = None
    model_choice: ModelChoice = field(default_factory=ModelChoice)
    doubtful: tuple[DoubtfulAnswer, ...] = ()
    importances: tuple[ColumnImportance, ...] = ()
    dependences: tuple[ColumnDependence, ...] = ()
    classes: tuple[ClassName, ...] | tuple[str, ...] = (-1, 1)
    error_rate: Rate | None = None
    n_questions: Count | None = None
    groups: str = ""
    n_groups: Count = 0

    def __post_init__(self) -> None:
        if self.accuracy is None and self.agreement is None:
            raise InputError("A report has neither an accuracy nor an agreement.")
        counts = None if self.agreement is None else self.agreement.counts
        if counts is not None and not set(counts.classes) <= {*range(1, len(self.classes) + 1)}:
            raise InputError("A report counts answers about classes that it does not have.")

    def __str__(self) -> str:
        """Return the report in the words of the command line."""
        from sdulearn.report.results import findings_of_report, lines

        return "\n".join(lines(findings_of_report(self, tuple(map(str, self.classes))), indent="  "))


def chosen_settings(model: Estimator) -> dict[str, float]:
    """Return the settings that a fitted estimator has, or has chosen; none for "auto"."""
    names = ("alpha", "covariance_power", "gamma", "n_rounds", "temperature")
    found = {name: getattr(model, f"{name}_", getattr(model, name, None)) for name in names}
    return {name: float(value) for name, value in found.items() if isinstance(value, Real)}


def feature_strengths(model: Estimator, classes: Sequence[str]) -> dict[str, Array]:
    """Return coefficients by class, or, of trees, importances under an empty name."""
    if not hasattr(model, "coef_"):
        return {"": model.feature_importances_}
    # Two classes have one row of coefficients, for the second class.
    return dict(zip(classes[-len(model.coef_) :], model.coef_, strict=True))
