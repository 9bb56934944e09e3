"""The end of ``sdulearn ask``: a model of the answers so far, its report, and what to do with them."""

from __future__ import annotations

import argparse
import csv
import shlex
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.answer_files.log import log_answers
from sdulearn.answers.records import Answers
from sdulearn.asking.session import Session
from sdulearn.cli import options as cli
from sdulearn.cli.predict import write_answered, written
from sdulearn.errors import InputError, is_installed, require
from sdulearn.io.files import as_cell, written_whole
from sdulearn.report.results import Headline, Learned, findings_of_model, headline_of, least_certain, lines
from sdulearn.table_model import TableModel
from sdulearn.workflow.fit import fit_table
from sdulearn.workflow.predict import predict_table

_ASKED_SHOWN = 500
_EXAMPLES_SHOWN = 3
_MOST_IN_SHEET = 1_048_576  # rows, with the header
# A demonstration with fewer answers ends without a model.
_FEWEST = 10


NEXT = """What to try next:
  {program} predict {model} {table} -o classes.csv
  {program} ask TABLE.csv -o answers.jsonl    # with a table of your own"""
FORCED_CHOICES = (
    "sdulearn fit learns nothing from forced choices alone, as they do not say that two rows are of the same class. "
    "Ask some questions with --design match, too, into the same log."
)


class Finish:
    """Fits models of the answers of a session, beside its log."""

    def __init__(self, arguments: argparse.Namespace, session: Session) -> None:
        self.arguments = arguments
        self.session = session
        self.model: TableModel | None = None
        # Of the last fit: its answers, whether lines of the log were left out, and what was written of it.
        self._answers: Answers | None = None
        self._skip_bad = False
        self._exported: dict[str, Path] = {}
        self._exporting = threading.Lock()
        assert session.store.path is not None
        self.log = session.store.path

    def fit(self, labels: Mapping[str, str]) -> dict[str, Any]:
        """Fit a model, and write it and its report beside the log; return what the page shows."""
        table, session = self.arguments.table, self.session
        ends = (".sdu", ".html", ".labels.csv", ".answered.csv")
        model_path, report, labels_path, answered = (self.log.with_suffix(end) for end in ends)
        # While people answer on, this fit is about the answers of now.
        with session.store.lock:
            n_classes = 0 if session.asker.design == "random" else len(session.asker.groups())
            answers = log_answers(str(self.log), session.store.contents)
            has_bad_rows = bool(session.store.contents.bad_rows)
        # The log says how the table is read.
        classes = n_classes if n_classes > 2 else None
        try:
            model = fit_table(table, answers, labels=dict(labels) or None, classes=classes, skip_bad=has_bad_rows)
        except InputError as error:
            # The page has no parameters of functions.
            raise InputError(cli.in_options(str(error))) from None
        with self._exporting:
            self.model, self._answers, self._skip_bad = model, answers, has_bad_rows
            self._exported = {}
        model.save(model_path)
        model.write_report(report, model_path=model_path)
        write_answered(answered, model)
        write_both_probabilities(answered, model)
        accuracy = headline(model, session)
        again = ["sdulearn", "fit", table, self.log, "-o", model_path]
        again += ["--classes", classes] if classes else []
        again += ["--skip-bad"] if has_bad_rows else []
        if labels:
            cli.write_csv(labels_path, [("id", "label"), *(map(as_cell, row) for row in labels.items())])
            again += ["--labels", labels_path]
        return {
            "accuracy": None if accuracy is None else accuracy.numbers(),
            "classes": classes_found(model),
            "n_asked": len(model.asked.ids) if model.asked else 0,
            "these": share_right(model, accuracy),
            "excel": is_installed("openpyxl"),
            "lines": cli.in_options(model.summary()).split("\n"),
            "model": str(model_path),
            "report": str(report),
            "answered": str(answered),
            "asked": [{**vars(row), "class": row.label} for row in least_certain(model, _ASKED_SHOWN)],
            "predict": shlex.join(["sdulearn", "predict", str(model_path), str(table), "-o", "classes.csv"]),
            "fit": shlex.join(map(str, again)),
        }

    def export(self, kind: str) -> Path | None:
        """Write the classes of all rows beside the log, once after each fit; None before the first."""
        with self._exporting:
            model = self.model
            if model is None or kind in self._exported:
                return self._exported.get(kind)
            path = self.log.with_suffix(".classes.csv")
            if "csv" not in self._exported:
                with written(path, model, Counter(), True) as write:
                    for batch in predict_table(
                        model, self.arguments.table, answers=self._answers, skip_bad=self._skip_bad
                    ):
                        write(batch)
                write_both_probabilities(path, model)
                self._exported["csv"] = path
            if kind == "xlsx":
                self._exported[kind] = write_sheet(path)
            return self._exported[kind]

    def say_end(self) -> None:
        """Say how to learn from the answers, if no model was fitted; a demonstration ends with a model."""
        if not self.session.n_answers:
            return
        if self.arguments.demo:
            self._say_result()
        elif all(answer.question.form == "nearer" for answer in self.session.history()):
            cli.say(FORCED_CHOICES)
        elif self.model is None:
            command = ["sdulearn", "fit", self.arguments.table, self.log, "-o", self.log.with_suffix(".sdu")]
            cli.say(f"Learn from them: {shlex.join(map(str, command))}")

    def _say_result(self) -> None:
        """Show the model of a demonstration and its classes, and say what to try next."""
        if self.model is None and self.session.n_answers < _FEWEST:
            cli.say("These are too few answers to learn from. The same command continues where you stopped.")
            return
        if self.model is None:
            with cli.waiting("Learning from the answers"):
                try:
                    self.fit({})
                except InputError as error:
                    cli.say(f"{cli.in_options(str(error))} The same command continues where you stopped.")
                    return
        assert self.model is not None
        findings = findings_of_model(self.model)
        accuracy = headline(self.model, self.session)
        shown = lines(finding for finding in findings if isinstance(finding, Learned))
        # A quarter of the questions is about random rows.
        more = 4 * self.session.numbers()["missing"]
        unknown = f"Its accuracy is not known yet: about {more} more answers show it."
        shown.append(unknown if accuracy is None else str(accuracy))
        classes = []
        for group in classes_found(self.model):
            examples = f", such as {', '.join(group['ids'])}" if group["ids"] else ""
            classes.append(f"  class {group['name']}: {group['share']:.0%} of the rows{examples}")
        model, report = (self.log.with_suffix(end) for end in (".sdu", ".html"))
        cli.say("\n".join([*shown, *classes, f"The model is in {model}, its report in {report}."]))
        cli.say(NEXT.format(program=cli.program(), model=model, table=self.arguments.table))


def write_both_probabilities(path: Path, model: TableModel) -> None:
    """Give a file of two classes the probability of each, as those of more have: one alone is misread."""
    if len(model.names) > 2 or model.link is None:
        return
    with (
        written_whole(path) as draft,
        path.open(encoding="utf-8", newline="") as file,
        draft.open("w", encoding="utf-8", newline="") as other,
    ):
        rows, writer = csv.reader(file), csv.writer(other, lineterminator="\n")
        row_id, label, _, *rest = next(rows)
        writer.writerow([row_id, label, *(f"probability_{name}" for name in model.names), *rest])
        for row_id, label, p, *rest in rows:
            writer.writerow([row_id, label, 1 - float(p), p, *rest])


def write_sheet(path: Path) -> Path:
    """Write a CSV file of classes as an Excel file beside it."""
    sheet_path = path.with_suffix(".xlsx")
    book = require("openpyxl", "excel").Workbook(write_only=True)
    sheet = book.create_sheet("classes")
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file)):
            if number >= _MOST_IN_SHEET:
                raise InputError(f"A sheet of Excel has at most {_MOST_IN_SHEET:,} rows. Download the CSV file.")
            # Ids stay texts: a number would lose its zeros.
            sheet.append(row if number == 0 else [*row[:2], *map(float, row[2:])])
    with written_whole(sheet_path) as draft:
        book.save(draft)
    return sheet_path


def share_right(model: TableModel, accuracy: Headline | None) -> dict[str, Any] | None:
    """Return which share of the rows that were asked about, and of all rows of the table, the model has right."""
    asked, report = model.answered, model.report
    if asked is None or report is None or not len(asked["id"]):
        return None
    n_asked, n_rows = len(asked["id"]), report.n_rows
    of_asked = float(asked["probabilities"].max(axis=1).mean())
    share = None if accuracy is None else (n_asked * of_asked + (n_rows - n_asked) * accuracy.value) / n_rows
    return {"asked": of_asked, "n_asked": n_asked, "share": share, "n_rows": n_rows}


def headline(model: TableModel, session: Session) -> Headline | None:
    """Return the accuracy of the model, or that from the questions; None if neither is known."""
    assert model.report is not None
    of_model = headline_of(model.report)
    if of_model.measure == "accuracy" and not of_model.unknown:
        return of_model
    accuracy = session.numbers(wait=True)["accuracy"]
    if accuracy is None:
        return None
    return Headline(
        measure="accuracy",
        value=accuracy["value"],
        low=accuracy["low"],
        high=accuracy["high"],
        confidence=0.95,
        n=accuracy["n_random"],
        basis="random questions",
        unknown=False,
    )


def classes_found(model: TableModel) -> list[dict[str, Any]]:
    """Return name and share of each class, and the rows that are most likely in it."""
    report, asked = model.report, model.answered
    assert report is not None
    assert asked is not None
    classes = []
    for name, share, p in zip(model.classes, report.class_shares, asked["probabilities"].T, strict=True):
        likeliest = np.argsort(-p, kind="stable")[:_EXAMPLES_SHOWN]
        ids = [asked["id"][row] for row in likeliest if asked["class"][row] == name]
        classes.append({"name": name, "share": share, "ids": ids})
    return classes
