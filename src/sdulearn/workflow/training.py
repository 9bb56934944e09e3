"""From a table and answers to the rows and pair codes that an estimator learns from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import sparse

from sdulearn.answers.checks import majority_votes
from sdulearn.answers.records import Answers, random_ends
from sdulearn.columns import Layout
from sdulearn.diagnostics import Finding, Population
from sdulearn.errors import InputError, quoted
from sdulearn.io.files import Location, is_location
from sdulearn.io.labels import ClassLabels
from sdulearn.io.tables import TableOptions
from sdulearn.pairs import SIMILAR, UNSURE, mean_weight, stack_pairs
from sdulearn.table_model import Scaler
from sdulearn.types import Array, Codes, Estimator, Frame, Indices, Mask, Rows

MAX_UNLABELED = 20_000
# Beyond so many columns rows must stay few: the eigenvectors of the smaller side are needed.
_WIDE = 3000
_UNLABELED_WIDE = 1000
_LINES_SHOWN = 5


@dataclass(frozen=True)
class Request:
    """What a fit is asked for; see :func:`sdulearn.fit_table`."""

    table: Location | Frame
    options: TableOptions
    method: str
    loss: str
    prior: float | None
    error_rate: str | float
    max_unlabeled: int | None
    skip_bad: bool
    classes: int | str | None = None
    model: str | None = None
    engine: str = "memory"
    prior_strength: float = 3.0

    @property
    def table_name(self) -> str:
        """The file, or what stands for it."""
        return str(self.table) if is_location(self.table) else "the table"

    def most_unlabeled(self, width: int) -> int:
        """Rows to draw as unlabeled: as many as asked for, and no more than a wide table bears."""
        asked = self.max_unlabeled or MAX_UNLABELED
        return min(asked, _UNLABELED_WIDE) if width > _WIDE else asked


@dataclass(frozen=True)
class Questions:
    """Usable answers by row number, who gave them where that is known, and what was left out.

    ``random`` says which ends were drawn at random to be asked about, where others were chosen; None where all were.
    """

    ends: Indices
    similar: Mask
    weights: Array
    findings: list[Finding] = field(default_factory=list)
    annotators: Codes | None = None
    random: Mask | None = None

    @property
    def n_similar(self) -> int:
        """Number of similar pairs."""
        return int(self.similar.sum())

    @property
    def n_dissimilar(self) -> int:
        """Number of dissimilar pairs."""
        return len(self.similar) - self.n_similar


@dataclass(frozen=True)
class AnswerSource:
    """Where the answers come from, and how many there are in all."""

    name: str
    n_similar: int
    n_dissimilar: int
    n_unsure: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, Sequence[int]] = field(default_factory=dict)
    annotators: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainingData:
    """All that a fit needs of a table and its answers; all row numbers are those of ``X``."""

    layout: Layout  # how the table becomes features
    n_rows: int  # rows of the table
    X: Rows  # all rows of the table, or those that are needed
    scaler: Scaler  # mean and scale of each feature over all rows of the table
    source: AnswerSource  # where the answers come from, and the answers as row numbers
    questions: Questions
    unlabeled: Indices  # rows that serve as unlabeled
    labels: ClassLabels | None  # A few true labels
    population: Population | None = None  # the whole table; None where ``X`` is just that
    findings: list[Finding] = field(default_factory=list)  # what was found on the way
    # gives a model with the settings that another has chosen, fitted on all rows
    refit: Callable[[Estimator], Estimator] | None = None
    n_unlabeled: int | None = None  # unlabeled rows of that fit
    points: Codes | None = None  # the point that each row of ``X`` shows; None where every row is a point of its own
    ids: Sequence[str] = ()  # id of each row of ``X``; empty where they are not kept

    def stacked(self) -> tuple[Rows, Codes, Array | None]:
        """Standardised rows with what is known of each, and weights where they differ."""
        questions = self.questions
        rows, y = stack_pairs(
            self.X,
            questions.ends,
            questions.similar,
            unlabeled=self.unlabeled,
            annotators=questions.annotators,
            labels=self._known_labels(),
        )
        weights = None
        if len(np.unique(questions.weights)) > 1:
            # A row in no answer weighs as much as the mean answer, whatever the unit of the file.
            by_answer = questions.weights / mean_weight(questions.weights)
            weights = np.concatenate([np.repeat(by_answer, 2), np.ones(len(y) - 2 * len(questions.ends))])
        if self.points is not None:
            y[:, 1] = self.points[y[:, 1]]
        return self.scaler.transform(rows), y, weights

    def random_points(self, n_rows: int) -> Mask | None:
        """Which of the stacked rows show a point drawn at random; None where all points in answers were."""
        if self.questions.random is None:
            return None
        marked = np.zeros(n_rows, dtype=bool)
        marked[: self.questions.random.size] = self.questions.random.ravel()
        return marked

    def _known_labels(self) -> Array | None:
        """The label of each row, NaN where it is not known: there may be labels of class 1 alone."""
        if self.labels is None:
            return None
        known = np.full(self.X.shape[0], np.nan)
        known[self.labels.rows] = self.labels.classes
        return known


def usable_questions(
    answers: Answers, place: Mapping[str, int], skip_bad: bool, hint: str = "", by_majority: bool = True
) -> Questions:
    """Answers that name two different rows.

    ``place`` gives the row of an id; ``hint`` says more where ids are unknown. A question asked again counts
    once, ``by_majority``, or every answer to it counts: what they disagree on tells how often they are wrong.
    """
    names = answers.ids.ravel().tolist()
    ends = np.array([place.get(name, -1) for name in names], dtype=np.intp).reshape(-1, 2)
    own = np.array([a == b for a, b in answers.ids], dtype=bool)
    unknown = np.any(ends < 0, axis=1) & ~own
    faults = [
        ("unreadable", [row.line for row in answers.bad_rows]),
        ("self_pairs", answers.lines[own].tolist()),
        ("unknown_ids", answers.lines[unknown].tolist()),
    ]
    faults = [(what, lines) for what, lines in faults if lines]
    if faults and not skip_bad:
        raise InputError(_refusal(answers.name, faults) + (_id_hint(names, place, hint) if unknown.any() else ""))
    usable = ~unknown & ~own & (answers.answers != UNSURE) & (answers.weights > 0)
    votes = majority_votes(ends, answers.answers, answers.weights, np.flatnonzero(usable).tolist())
    findings = [Finding("left_out", "warning", {"what": what, "count": len(lines), "lines": lines[:_LINES_SHOWN]})
                for what, lines in faults]  # fmt: skip
    if votes.n_repeated:
        findings.append(Finding("repeated_questions", "info", {"count": votes.n_repeated, "by_majority": by_majority}))
    chosen = np.flatnonzero(usable)
    if by_majority:
        chosen = votes.chosen
        if votes.n_tied:
            findings.append(Finding("tied_questions", "warning", {"count": votes.n_tied}))
    annotators = None if answers.annotators is None else answers.annotator_numbers[chosen]
    random = None
    if answers.kinds is not None and (marked := random_ends(ends[usable], answers.kinds[usable])) is not None:
        random = np.zeros(ends.shape, dtype=bool)
        random[usable] = marked
        random = random[chosen]
    return Questions(
        ends[chosen], answers.answers[chosen] == SIMILAR, answers.weights[chosen], findings, annotators, random
    )


def source_of_answers(answers: Answers, questions: Questions) -> AnswerSource:
    """Where a file of answers comes from, and how many of them are used."""
    return AnswerSource(
        name=Path(answers.name).name,
        n_similar=questions.n_similar,
        n_dissimilar=questions.n_dissimilar,
        n_unsure=answers.n_unsure,
        columns=answers.columns,
        words=answers.words,
        annotators=answers.annotator_names,
    )


FAULTS = {
    "unreadable": "unreadable rows",
    "self_pairs": "pairs of a point with itself",
    "unknown_ids": "pairs with an id not in the table",
}


def _refusal(name: str, faults: Sequence[tuple[str, list[int]]]) -> str:
    listed = " and ".join(f"{len(lines):,} {FAULTS[what]} (lines {_listed(lines)})" for what, lines in faults)
    return f"{name} has {listed}. `check_answers` lists them all; `skip_bad=True` leaves them out."


def _id_hint(names: Sequence[str], place: Mapping[str, int], hint: str) -> str:
    """Why ids may be unknown: leading zeros that a spreadsheet has taken off, or rows without ids."""
    unknown = [name for name in names if name not in place]
    if lost := [name for name in unknown if name.lstrip("0") in place]:
        return (
            f" The table has {quoted(lost[0].lstrip('0'))} where the answers have {quoted(lost[0])}: its ids have lost "
            "their leading zeros. Write the table again with that column as text."
        )
    padded = {name.lstrip("0"): name for name in place}
    if lost := [name for name in unknown if name in padded]:
        return (
            f" The answers have {quoted(lost[0])} where the table has {quoted(padded[lost[0]])}: their ids have lost "
            "their leading zeros. Write the answers again with the ids as text."
        )
    return hint


def _listed(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:_LINES_SHOWN]))
    return f"{shown}, ..." if len(lines) > _LINES_SHOWN else shown


def rows_of_ids(ids: Sequence[str]) -> dict[str, int]:
    """The row of every id; each must tell its row apart."""
    place = {name: row for row, name in enumerate(ids)}
    if len(place) < len(ids):
        raise repeated_id(*Counter(ids).most_common(1)[0])
    return place


def repeated_id(name: str, count: int) -> InputError:
    """The error of an id that is on several rows."""
    return InputError(f"The table's ids must tell rows apart, but {quoted(name)} occurs {count:,} times.")


def numbering_hint(id_column: str | None, n_rows: int) -> str:
    """What to know about ids where a table has none of its own."""
    if id_column is not None:
        return f" The ids of the table are in {quoted(id_column)}; name another column with `id_column`."
    return f" The table has no id column, so its rows are numbered 0 to {n_rows - 1}; name one with `id_column`."


def refuse_chosen(name: str, questions: Questions, method: str) -> None:
    """The paper's risks assume random pairs."""
    if questions.random is not None:
        n_random = int(questions.random.any(axis=1).sum())
        raise InputError(
            f"{name}: {len(questions.ends) - n_random:,} of the {len(questions.ends):,} questions were chosen, and "
            f"`method={method!r}` assumes random pairs. Leave `method` out, or give `method='joint'`."
        )


def check_enough(name: str, questions: Questions, method: str) -> None:
    """At least two pairs of each kind that the method learns from."""
    needed = {"su": questions.n_similar, "du": questions.n_dissimilar}
    fewest = needed.get(method, min(questions.n_similar, questions.n_dissimilar))
    if fewest >= 2:
        return
    alone = ""
    if questions.n_similar >= 2 or questions.n_dissimilar >= 2:
        risk = "su" if questions.n_similar >= 2 else "du"
        alone = f" With one kind alone, `method={risk!r}` with a known `prior` learns from it and the unlabeled rows."
    raise InputError(
        f"{name} has {questions.n_similar} similar and {questions.n_dissimilar} dissimilar pairs to use; at least 2 of "
        f"each are needed, and 50 of each are a start. Ask about more pairs.{alone}"
    )


def drawn_rows(n_rows: int, limit: int, seed: int = 0) -> Indices:
    """Numbers of the rows that serve as unlabeled, sorted."""
    if limit >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, limit, replace=False))


def fitted_scaler(X: Rows) -> Scaler:
    """Mean and standard deviation of each column; no mean where the table is sparse and must stay so."""
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
        return Scaler(np.zeros(X.shape[1]), usable_scale(mean, np.sqrt(np.maximum(variance, 0))))
    mean = X.mean(axis=0)
    return Scaler(mean, usable_scale(mean, X.std(axis=0)))


def usable_scale(mean: Array, deviation: Array) -> Array:
    """1 for a constant column: its deviation is rounding, and dividing by it would make noise of it."""
    return np.where(deviation > 1e-10 * np.maximum(np.abs(mean), 1e-200), deviation, 1.0)
