"""Ask people "same class, or different?" about the rows of a table, on a page in the browser.

The page opens by itself. Answers go into a log (-o), line by line, on the disk before the next question shows:
stop at any time, and go on later with the same command. `sdulearn fit --pairs LOG` learns from it.

Rows are shown by a text (--text), a picture (--image: file names, relative to the table's folder or --image-root) or
some of their columns (--columns), or several of these; by default all columns. Which two rows are asked about next is
chosen by the features in the other columns, as `sdulearn fit` reads them.

Several people can answer at once: each gives a name on the page. For people on other machines see --host.
"""

from __future__ import annotations

import argparse
import secrets
import shlex
import threading
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sdulearn.answers.records import EPSILONS
from sdulearn.asking import flip_rate
from sdulearn.cli.console import ask_in_console
from sdulearn.cli.fit import add_table_options
from sdulearn.cli.options import in_options, names, positive
from sdulearn.cli.screen import refuse_overwriting, say
from sdulearn.errors import InputError, NothingToAskError
from sdulearn.io.answer_log import AnswerLog, LogContents, log_answers, read_log
from sdulearn.io.files import as_cell, as_text, written_whole
from sdulearn.io.survey import read_features
from sdulearn.io.tables import read_whole
from sdulearn.types import Array, Rows
from sdulearn.web.security import is_loopback
from sdulearn.web.server import serve
from sdulearn.web.session import Session, continue_asker
from sdulearn.web.things import Things, things_of_table
from sdulearn.workflow.fit import fit_table

_DEMO_LOG = Path("digits-answers.jsonl")
_DEFAULT_QUESTIONS = 200
_TOLD_EVERY = 50
_LINES_SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn ask``."""
    parser.add_argument("table", type=Path, nargs="?", help=".csv, .tsv, .jsonl, .parquet or .xlsx, a row a thing")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="LOG", help="the log of answers (.jsonl), new or to go on with"
    )
    parser.add_argument("--demo", action="store_true", help="ask about scikit-learn's digits, as pictures")
    _add_shown_options(parser.add_argument_group("what is shown of a row"))
    _add_asking_options(parser.add_argument_group("what is asked, and whom"))
    _add_server_options(parser.add_argument_group("where"))
    add_table_options(parser.add_argument_group("reading the table"))


def _add_shown_options(shown: argparse._ArgumentGroup) -> None:
    shown.add_argument("--text", metavar="COLUMN", help="a column of texts")
    shown.add_argument("--image", metavar="COLUMN", help="a column of picture files, or links")
    shown.add_argument("--columns", type=names, default=(), metavar="A,B,...", help="columns side by side")
    shown.add_argument("--image-root", type=Path, metavar="FOLDER", help="pictures lie in here (the table's folder)")


def _add_asking_options(asking: argparse._ArgumentGroup) -> None:
    asking.add_argument("--annotator", default="", metavar="NAME", help="who answers, unless they say otherwise")
    asking.add_argument(
        "--design",
        choices=("linked", "random"),
        help="linked: a new row against an example of its likeliest class; random: random pairs (linked; with "
        "--private random)",
    )
    asking.add_argument("--classes", type=_classes, help="number of classes, or auto to find it (2; with --demo auto)")
    asking.add_argument(
        "--private",
        type=_epsilon,
        metavar="EPSILON",
        help="flip each answer with probability 1 / (1 + exp(EPSILON)) before it is stored; fits allow for it. No row "
        "is in two answers",
    )
    asking.add_argument("--seed", type=int, help="seed of a new log; an old one goes on with its own")
    asking.add_argument("--oracle", metavar="COLUMN", help="answer by itself, from a column of labels; no page")
    asking.add_argument(
        "--questions", type=positive, default=_DEFAULT_QUESTIONS, help="how many, with --oracle (%(default)s)"
    )


def _add_server_options(where: argparse._ArgumentGroup) -> None:
    where.add_argument("--port", type=int, default=0, help="port of the page (any that is free)")
    where.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (%(default)s: this machine alone). With 0.0.0.0, everybody who can reach this "
        "machine and has the address with its key sees the rows and can answer; the connection is not encrypted",
    )
    where.add_argument("--no-browser", action="store_true", help="print the page's address, and do not open it")
    where.add_argument("--console", action="store_true", help="ask in this terminal instead of a page")


def _classes(text: str) -> int | str:
    if text == "auto":
        return text
    if not text.isdigit() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor a whole number of 2 or more")
    return int(text)


def _epsilon(text: str) -> float:
    try:
        epsilon = float(text)
        flip_rate(epsilon)
    except ValueError:
        low, high = EPSILONS
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, from {low:g} to {high:g}") from None
    return epsilon


@dataclass(frozen=True)
class _Material:
    """What is asked about."""

    X: Rows
    things: Things
    labels: list[str] | None = None
    id_column: str | None = None


def run(arguments: argparse.Namespace) -> int:
    """Read, ask, tell."""
    log_path = _log_path(arguments)
    before = read_log(log_path) if log_path.exists() else LogContents()
    material = _demo(arguments) if arguments.demo else _of_table(arguments, before)
    with AnswerLog(log_path) as log:
        _warn_of_damage(log)
        session = _session(arguments, material, log)
        try:
            if arguments.oracle is not None:
                _ask_oracle(session, material, arguments)
            elif arguments.console:
                ask_in_console(session, material.things, arguments.annotator)
            else:
                _serve(arguments, session, material)
        finally:
            try:
                log.check()
            finally:
                session.close()
            say(f"{log_path}: {session.n_answers:,} answers")
            if privacy := session.privacy():
                say(privacy)
    return 0


def _warn_of_damage(log: AnswerLog) -> None:
    """Lines that cannot be read may have held answers."""
    if bad := log.contents.bad_rows:
        shown = "; ".join(f"line {row.line}: {row.reason}" for row in bad[:_LINES_SHOWN])
        more = f"; and {len(bad) - _LINES_SHOWN:,} more" if len(bad) > _LINES_SHOWN else ""
        say(f"Warning: {log.path} has lines that cannot be read, and what they said is left out ({shown}{more}).")


def _log_path(arguments: argparse.Namespace) -> Path:
    if arguments.demo == (arguments.table is not None):
        raise InputError("Give a table, or --demo, and not both.")
    path: Path | None = arguments.output
    if path is None:
        if not arguments.demo:
            raise InputError("Name the log of answers with -o, for example -o answers.jsonl.")
        path = _DEMO_LOG
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} to write {path.name} into. Make it first.")
    refuse_overwriting((path,), (arguments.table,))
    return path


def _demo(arguments: argparse.Namespace) -> _Material:
    from sklearn.datasets import load_digits

    data = load_digits()
    pictures: Array = data.images / 16
    things = Things([str(k) for k in range(len(pictures))], pictures=pictures)
    return _Material(data.data, things, [str(label) for label in data.target])


def _of_table(arguments: argparse.Namespace, before: LogContents) -> _Material:
    """The table as features, as ``fit`` reads it, and as it is shown."""
    columns, X, ids = read_features(
        arguments.table,
        id_column=arguments.id,
        drop=dropped_columns(arguments),
        missing=arguments.missing,
        max_categories=arguments.max_categories,
        categories=arguments.categories,
        answer_ids={name for one in before.answers.values() for name in (one.left, one.right)},
    )
    if len(set(ids)) < len(ids):
        raise InputError(f"{arguments.table}: an id stands on two rows. Name another column with `id_column`.")
    raw = read_whole(arguments.table)
    things = things_of_table(
        raw,
        ids,
        columns.id_column,
        text=arguments.text,
        image=arguments.image,
        columns=arguments.columns,
        hidden=(arguments.oracle,) if arguments.oracle else (),
        image_root=arguments.image_root or arguments.table.parent,
    )
    labels = None
    if arguments.oracle is not None:
        labels = [as_text(value) for value in raw[arguments.oracle].to_pylist()]
    return _Material(columns.scaled(X), things, labels, columns.id_column)


def dropped_columns(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Columns that are no features: those left out, and those that are shown as a text or a picture, or hold labels."""
    others = [name for name in (arguments.text, arguments.image, arguments.oracle) if name is not None]
    return tuple(dict.fromkeys([*arguments.drop, *others]))


def _session(arguments: argparse.Namespace, material: _Material, log: AnswerLog) -> Session:
    """The session; an old log goes on with its own seed, so that its random questions stay random ones."""
    classes = arguments.classes or ("auto" if arguments.demo else 2)
    seed = log.contents.seed
    if seed is None:
        seed = secrets.randbits(31) if arguments.seed is None else arguments.seed

    private = _privacy(arguments, log)
    arguments.design = arguments.design or ("linked" if private is None else "random")

    ids = material.things.ids
    options = {"design": arguments.design, "n_classes": classes, "random_state": seed, "private": private}
    session = Session(continue_asker(material.X, log, ids, **options), log, ids, not is_loopback(arguments.host))
    settings = {"design": arguments.design, "classes": classes}
    if private is not None:
        settings["epsilon"] = private
        say(
            f"Answers are randomised: each is flipped with probability {flip_rate(private):.1%} before it is stored. "
            "Questions are random pairs, and no row is in two of them: each answer about a row tells more of it."
        )
    log.begin(seed, **settings, table="digits" if arguments.demo else arguments.table.name)
    return session


def _privacy(arguments: argparse.Namespace, log: AnswerLog) -> float | None:
    """Epsilon of the answers: an old log goes on with its own, or the error rate of the whole would not be known."""
    given: float | None = arguments.private
    before = log.contents.next_epsilon
    if not log.contents.answers and not log.contents.withdrawn:
        return before if given is None else given
    if given is not None and given != before:
        flipped = "not at all" if before is None else f"with --private {before:g}"
        raise InputError(f"{log.path}: its answers were flipped {flipped}. Go on so, or name another log with -o.")
    return before


def _ask_oracle(session: Session, material: _Material, arguments: argparse.Namespace) -> None:
    """Answer from the labels, and tell now and then what is found."""
    assert material.labels is not None
    labels = np.array(material.labels)
    for k in range(1, arguments.questions + 1):
        try:
            token, question = session.question(arguments.annotator)
        except NothingToAskError as error:
            say(describe_numbers(session.numbers()))
            say(f"Only {k - 1:,} of {arguments.questions:,} questions were asked. {error}")
            return
        left = labels[question.left]
        right = labels[question.right]
        answer = "unsure" if "" in (left, right) else "same" if left == right else "different"
        session.answer(arguments.annotator, token, answer)
        if k % _TOLD_EVERY == 0 or k == arguments.questions:
            say(describe_numbers(session.numbers()))


def describe_numbers(numbers: Mapping[str, Any]) -> str:
    """What the answers have found, in one line."""
    parts = [f"{numbers['n_answers']:,} answers"]
    if numbers["classes"]:
        shares = ", ".join(f"{one['share']:.0%}" for one in numbers["classes"])
        parts.append(f"{len(numbers['classes'])} classes ({shares})")
    if accuracy := numbers["accuracy"]:
        interval = f"{accuracy['low']:.1%} to {accuracy['high']:.1%}"
        parts.append(f"estimated accuracy {accuracy['value']:.1%} ({interval}), judged by the random questions")
    if advice := numbers["advice"]:
        parts.append(f"the next {advice['n_next']} may add {100 * advice['gain']:.1f} points")
    return "; ".join(parts)


def _serve(arguments: argparse.Namespace, session: Session, material: _Material) -> None:
    title = "digits" if arguments.demo else arguments.table.name
    fit = None if arguments.demo else _fitter(arguments, session, material)
    session.rebuild_curve()

    def ready(address: str) -> None:
        say(f"The page: {address}")
        if session.for_team:
            say(
                "Everybody who can reach this machine and has this address can see the rows and answer. The connection "
                "is not encrypted: use it in a network that you trust."
            )
        say("Stop with Ctrl-C; the same command goes on where you stopped.")
        if not arguments.no_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    serve(
        session,
        material.things,
        title=title,
        annotator=arguments.annotator,
        fit=fit,
        host=arguments.host,
        port=arguments.port,
        ready=ready,
    )


def _fitter(
    arguments: argparse.Namespace, session: Session, material: _Material
) -> Callable[[Mapping[str, str]], dict[str, Any]]:
    """What the page's last button does: a model and its report beside the log, and the commands to use them."""
    log_path = session.log.path
    model_path = log_path.with_suffix(".sdu")
    report = log_path.with_suffix(".html")
    labels_path = log_path.with_suffix(".labels.csv")

    def fit(labels: Mapping[str, str]) -> dict[str, Any]:
        numbers = session.numbers()
        damaged = bool(session.log.contents.bad_rows)
        classes = len(numbers["classes"]) if len(numbers["classes"]) > 2 else None
        model = fit_table(
            arguments.table,
            log_answers(str(log_path), session.log.contents),
            labels=dict(labels) or None,
            classes=classes,
            id_column=material.id_column or "",
            drop=dropped_columns(arguments),
            categories=arguments.categories,
            missing=arguments.missing,
            max_categories=arguments.max_categories,
            skip_bad=damaged,
        )
        model.save(model_path)
        model.write_report(report, model_path=model_path)
        if labels:
            _write_labels(labels_path, labels)
        return {
            "lines": in_options(model.summary()).split("\n"),
            "model": str(model_path),
            "report": str(report),
            "predict": shlex.join(["sdulearn", "predict", str(model_path), str(arguments.table), "-o", "classes.csv"]),
            "fit": shlex.join(
                _fit_command(arguments, log_path, model_path, labels_path if labels else None, classes, damaged)
            ),
        }

    return fit


def _fit_command(
    arguments: argparse.Namespace, log: Path, model: Path, labels: Path | None, classes: int | None, damaged: bool
) -> list[str]:
    command = ["sdulearn", "fit", "--features", str(arguments.table), "--pairs", str(log), "-o", str(model)]
    if labels is not None:
        command += ["--labels", str(labels)]
    if classes is not None:
        command += ["--classes", str(classes)]
    if arguments.id is not None:
        command += ["--id", arguments.id]
    for option, columns in (("--drop", dropped_columns(arguments)), ("--categories", arguments.categories)):
        command += [option, ",".join(columns)] if columns else []
    if damaged:
        command.append("--skip-bad")
    if arguments.missing != "error":
        command += ["--missing", arguments.missing]
    return command


def _write_labels(path: Path, labels: Mapping[str, str]) -> None:
    import csv

    with written_whole(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        rows = [(as_cell(row_id), as_cell(name)) for row_id, name in labels.items()]
        csv.writer(file).writerows([("id", "label"), *rows])
