"""Ask people "same class, or different?" about the rows of a table, on a page in the browser.

The page opens by itself. Answers go into a log (-o), line by line, on the disk before the next question shows:
stop at any time, and go on later with the same command. `sdulearn fit --pairs LOG` learns from it.

Without --text, --image or --columns all columns of a row are shown. Which two rows are asked about next is
chosen by the features in the other columns, as `sdulearn fit` reads them. Several people can answer at once: each
gives a name on the page. For people on other machines see --host.
"""

from __future__ import annotations

import argparse
import secrets
import shlex
import threading
import webbrowser
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sdulearn.answer_files.log import LogContents, log_answers, read_log
from sdulearn.answer_files.rows import read_labels
from sdulearn.answer_files.store import AnswerStore
from sdulearn.answers.records import EPSILONS, flip_rate, is_epsilon
from sdulearn.asking.session import Goal, Session, continue_asker
from sdulearn.cli import options as cli
from sdulearn.cli.machines import add_machine_options, ask_machine
from sdulearn.diagnostics import check_source
from sdulearn.errors import InputError, require
from sdulearn.io.files import as_cell, as_text, decoded, read_bytes
from sdulearn.io.typed import plain
from sdulearn.reading import CONTRASTIVE, Reading
from sdulearn.report.results import ITEMS_SHOWN, lines, unreadable
from sdulearn.table_model import TableModel
from sdulearn.tables.ids import repeated_id, unknown_ids
from sdulearn.types import Array, Rows
from sdulearn.web import LANGUAGES, is_loopback
from sdulearn.web.things import Things, things_of_table
from sdulearn.workflow.data import draw_rows, sample_sizes

_DEMO_LOG = Path("digits-answers.jsonl")
_ASKED_SHOWN = 500
_EXAMPLES_SHOWN = 3


class Asked(NamedTuple):
    """What is asked about."""

    X: Rows
    things: Things  # what is shown of rows
    labels: list[str]
    reading: Reading | None = None  # how the table was read, for the log; None in a demonstration
    digest: Callable[[int], str] | None = None  # of a row
    grown_from: Sequence[int] = ()  # earlier sizes of a growing sample


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``sdulearn ask``."""
    add = parser.add_argument
    add("table", type=Path, nargs="?", help=".csv, .tsv, .jsonl, .parquet or .xlsx, one row per item")
    add("-o", "--output", type=Path, metavar="LOG", help="the log of answers (.jsonl), new or to go on with")
    add("--demo", action="store_true", help="ask about scikit-learn's digits, as pictures")
    _add_shown_options(parser.add_argument_group("what is shown of a row"))
    _add_asking_options(parser.add_argument_group("what is asked, and whom"))
    add_machine_options(parser.add_argument_group("machines that answer"))
    _add_server_options(parser.add_argument_group("where"))
    cli.add_table_options(parser.add_argument_group("reading the table"))


def _add_shown_options(shown: argparse._ArgumentGroup) -> None:
    add = shown.add_argument
    several: dict[str, Any] = {"type": cli.names, "default": (), "metavar": "A,B,..."}
    add("--text", metavar="COLUMN", help="a column of texts, which become features")
    add("--image", **several, help="columns of picture files, which become features, or of links (then --drop them)")
    add("--audio", metavar="COLUMN", help="a column of sound files, which are no features")
    add("--columns", **several, help="columns side by side")
    cli.add_files_options(shown)
    add("--question", default="", metavar="TEXT", help="the question in your words, above the rows")
    add("--instructions", type=Path, metavar="FILE.md", help="what people should keep in mind (Markdown)")
    add("--language", choices=LANGUAGES, default="en", help="language of the page (%(default)s)")


def _add_asking_options(asking: argparse._ArgumentGroup) -> None:
    add = asking.add_argument
    add("--annotator", default="", metavar="NAME", help="who answers, unless they say otherwise")
    text = "a row beside an example of its likeliest class (default: 2 classes), of each class (more), or random pairs"
    add("--design", choices=("linked", "match", "random"), help=text)
    add("--classes", type=cli.number_of_classes, help="number of classes, or auto to find it (2; with --demo auto)")
    epsilon = cli.number(float, is_epsilon, "a number above 0, from {:g} to {:g}".format(*EPSILONS))
    text = "flip each answer with probability 1 / (1 + exp(EPSILON)) before it is stored; no row is in two answers"
    add("--private", type=epsilon, metavar="EPSILON", help=text)
    add("--seeds", type=Path, metavar="LABELS", help="examples of classes to begin with: a file id,label (match)")
    add("--class-names", type=cli.names, default=(), metavar="A,B,...", help="names of a new class to choose from")
    add("--per-person", type=cli.positive, metavar="N", help="thank a person after this many answers")
    text = "share of each person's questions that somebody else answers, too: it shows how often people are wrong"
    add("--overlap", type=cli.share, default=0.0, metavar="SHARE", help=text)
    add("--until", type=cli.share, metavar="WIDTH", help="until the accuracy's interval is that wide, such as 0.05")
    add("--seed", type=int, help="seed of a new log; an old one keeps its own")
    add("--oracle", metavar="COLUMN", help="answer by itself, from a column of labels; no page")
    add("--questions", type=cli.positive, default=200, help="how many, with --oracle (%(default)s)")


def _add_server_options(where: argparse._ArgumentGroup) -> None:
    add = where.add_argument
    add("--port", type=int, default=0, help="port of the page (any that is free)")
    text = (
        "address to listen on (%(default)s: this machine alone). With 0.0.0.0, everybody who can reach this "
        "machine and has the address with its key sees the rows and can answer; the connection is not encrypted"
    )
    add("--host", default="127.0.0.1", help=text)
    add("--no-browser", action="store_true", help="print the page's address, and do not open it")


def run(arguments: argparse.Namespace) -> int:
    """Read, ask, report."""
    log_path = _log_path(arguments)
    before = read_log(log_path) if log_path.exists() else LogContents()
    with cli.waiting(f"Reading {arguments.table}"):
        asked = _demo() if arguments.demo else _of_table(arguments, before)
    with AnswerStore(log_path) as log:
        if bad := log.contents.bad_rows:
            cli.say("\n".join([f"{log.path}:", *lines(unreadable(bad), ITEMS_SHOWN)]))
        with cli.waiting(f"Learning from {len(log.contents.answers):,} answers"):
            session = _session(arguments, asked, log)
        try:
            if arguments.oracle is not None or arguments.command is not None:
                ask_machine(session, asked.things, asked.labels, _instructions(arguments), arguments)
                # An audit is by a person, not by the machine.
                arguments.annotator = ""
            if arguments.oracle is None and (arguments.command is None or arguments.audit is not None):
                _serve(arguments, session, asked)
        finally:
            try:
                log.check()
            finally:
                session.close()
            cli.say(f"{log_path}: {session.n_answers:,} answers")
            if log.contents.audits():
                findings = check_source(log_answers(str(log_path), log.contents))
                cli.say("\n".join(str(finding) for finding in findings if finding.code == "audit"))
            if privacy := str(session.asker.leak()):
                cli.say(privacy)
    return 0


def _log_path(arguments: argparse.Namespace) -> Path:
    if arguments.demo == (arguments.table is not None):
        raise InputError("Give a table, or --demo, and not both.")
    if arguments.output is None and not arguments.demo:
        raise InputError("Name the log of answers with -o, for example -o answers.jsonl.")
    path: Path = arguments.output or _DEMO_LOG
    cli.check_outputs((path,), (arguments.table,))
    return path


def _demo() -> Asked:
    from sklearn.datasets import load_digits

    data = load_digits()
    pictures: Array = data.images / 16
    things = Things([str(k) for k in range(len(pictures))], pictures=pictures)
    return Asked(data.data, things, [str(label) for label in data.target])


def _of_table(arguments: argparse.Namespace, before: LogContents) -> Asked:
    """Read the table as ``fit`` does, or a sample of a large one, and what is shown of it."""
    given = [*before.answers.values(), *before.withdrawn.values()]
    examples = {*before.examples, *(read_labels(arguments.seeds).by_id if arguments.seeds else ())}
    sizes = sample_sizes(len(given))
    reading = reading_of(arguments)
    if before.reading is not None:
        reading = before.reading.continued(reading)
    drawn = draw_rows(
        arguments.table,
        sizes[-1],
        reading,
        stored=before.reading,
        answer_ids={name for one in given for name in (one.left, *one.choices)} | examples,
    )
    columns, ids, n_rows = drawn.columns, drawn.ids, drawn.n_rows
    if drawn.changes:
        cli.say("\n".join(lines(drawn.changes)))
    name, times = Counter(ids).most_common(1)[0]
    if times > 1:
        raise repeated_id(name, times)
    if len(ids) < n_rows:
        cli.say(f"Questions are about {len(ids):,} of the {n_rows:,} rows, drawn at random: more with more answers.")
    scaled = columns.scaled(drawn.X)
    standardised = columns.standardised(drawn.X)
    parts = columns.parts
    things = things_of_table(
        drawn.cells,
        ids,
        columns.id_column,
        text=arguments.text,
        image=arguments.image,
        audio=arguments.audio,
        columns=arguments.columns,
        hidden=(arguments.oracle,) if arguments.oracle else (),
        root=arguments.image_root or arguments.table.parent,
        deviations={one.name: standardised[:, part.start] for one, part in parts if one.kind == "number"},
    )
    labels = [] if arguments.oracle is None else [as_text(cell) for cell in drawn.cells[arguments.oracle].to_pylist()]
    reading = replace(reading.completed(columns.id_column, n_rows, drawn.digest), cells={})
    grown_from = [size for size in sizes[:-1] if size < n_rows]
    return Asked(scaled, things, labels, reading, drawn.row_digest, grown_from)


def reading_of(arguments: argparse.Namespace) -> Reading:
    """How the table is read: sounds and labels are no features, nor texts and pictures beside vectors."""
    text = (arguments.text,) if arguments.text else ()
    shown = (*text, *arguments.image) if arguments.embedding and str(arguments.embedding) != CONTRASTIVE else ()
    others = [name for name in (arguments.oracle, arguments.audio, *shown) if name]
    images = tuple(name for name in arguments.image if name not in arguments.drop)
    return Reading(
        id_column=arguments.id,
        drop=tuple(dict.fromkeys([*arguments.drop, *others])),
        categories=arguments.categories,
        text=() if shown else text,
        images=() if shown else images,
        image_root=arguments.image_root,
        embedding=arguments.embedding,
        sheet=arguments.sheet,
        skip_rows=arguments.skip_rows,
        missing=arguments.missing,
        max_categories=arguments.max_categories,
    )


def _session(arguments: argparse.Namespace, asked: Asked, log: AnswerStore) -> Session:
    """Start a session; an old log keeps its seed, so that its random questions remain a sample."""
    ids = asked.things.ids
    classes = arguments.classes or ("auto" if arguments.demo else 2)
    seed = next(iter(log.contents.seeds.values()), None)
    if seed is None:
        seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    private = _privacy(arguments, log)
    if arguments.seeds is not None:
        _add_seeds(arguments.seeds, ids, log)
    options: dict[str, Any] = {"design": arguments.design, "n_classes": classes, "private": private}
    if arguments.command is not None:
        # A machine would repeat itself; an audit by a person checks it.
        options["repeat_share"] = 0.0
    asker = continue_asker(asked.X, log, ids, random_state=seed, grown_from=asked.grown_from, **options)
    goal = Goal(arguments.per_person, arguments.overlap, arguments.until, arguments.audit)
    session = Session(asker, not is_loopback(arguments.host), goal)
    settings: dict[str, Any] = {"design": asker.design, "classes": classes}
    if private is not None:
        settings["epsilon"] = private
        cli.say(f"Answers are private: each is flipped with probability {flip_rate(private):.1%} before it is stored.")
    if asked.reading is not None:
        settings["reading"] = plain(asked.reading.changed())
        session.digest = None if asked.reading.id_column else asked.digest
    log.begin(seed, **settings, table="digits" if arguments.demo else arguments.table.name)
    return session


def _add_seeds(path: Path, ids: Sequence[str], log: AnswerStore) -> None:
    """Write examples of classes to the log."""
    labels = read_labels(path)
    labels.of_rows({name: row for row, name in enumerate(ids)}, partial(unknown_ids, known=ids, id_column=""))
    log.label({row: name for row, name in labels.by_id.items() if log.contents.examples.get(row) != name}, seed=True)


def _privacy(arguments: argparse.Namespace, log: AnswerStore) -> float | None:
    """Return epsilon; an old log keeps its own, as its answers must have one error rate."""
    given: float | None = arguments.private
    before = log.contents.next_epsilon
    if not log.contents.answers and not log.contents.withdrawn:
        return before if given is None else given
    if given is not None and given != before:
        flipped = "not at all" if before is None else f"with --private {before:g}"
        raise InputError(f"{log.path}: its answers were flipped {flipped}. Go on so, or name another log with -o.")
    return before


def _serve(arguments: argparse.Namespace, session: Session, asked: Asked) -> None:
    require("starlette", "ask")
    require("uvicorn", "ask")
    from sdulearn.web.app import Page, serve

    def ready(address: str) -> None:
        cli.say(f"The page: {address}")
        if session.for_team:
            cli.say("Everybody who can reach this machine and has this address sees the rows; nothing is encrypted.")
        cli.say("Stop with Ctrl-C; the same command continues where you stopped.")
        if not arguments.no_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    page = Page(
        session,
        asked.things,
        "digits" if arguments.demo else arguments.table.name,
        arguments.annotator,
        None if asked.reading is None else partial(_fit, arguments, session),
        wording=arguments.question.strip(),
        instructions=_instructions(arguments),
        language=arguments.language,
        class_names=arguments.class_names,
    )
    serve(page, arguments.host, arguments.port, ready)


def _instructions(arguments: argparse.Namespace) -> str:
    path: Path | None = arguments.instructions
    return "" if path is None else decoded(path, read_bytes(path)).strip()


def _fit(arguments: argparse.Namespace, session: Session, labels: Mapping[str, str]) -> dict[str, Any]:
    """Fit a model, and write it and its report beside the log; return what the page shows."""
    from sdulearn.cli.predict import write_answered
    from sdulearn.report.results import least_certain
    from sdulearn.workflow.fit import fit_table

    log_path = session.store.path
    assert log_path is not None
    ends = (".sdu", ".html", ".labels.csv", ".answered.csv")
    model_path, report, labels_path, answered = (log_path.with_suffix(end) for end in ends)
    # While people answer on, this fit is about the answers of now.
    with session.store.lock:
        n_classes = 0 if session.asker.design == "random" else len(session.asker.groups())
        answers = log_answers(str(log_path), session.store.contents)
        has_bad_rows = bool(session.store.contents.bad_rows)
    # The log says how the table is read.
    options: dict[str, Any] = {"classes": n_classes if n_classes > 2 else None, "skip_bad": has_bad_rows}
    model = fit_table(arguments.table, answers, labels=dict(labels) or None, **options)
    model.save(model_path)
    model.write_report(report, model_path=model_path)
    write_answered(answered, model)
    if labels:
        cli.write_csv(labels_path, [("id", "label"), *(map(as_cell, row) for row in labels.items())])
    same = ["sdulearn", "fit", "--features", arguments.table, "--pairs", log_path, "-o", model_path]
    named = {"labels": labels_path if labels else None}
    return {
        "accuracy": _headline(model, session),
        "classes": _classes_found(model),
        "n_asked": len(model.asked.ids) if model.asked else 0,
        "lines": cli.in_options(model.summary()).split("\n"),
        "model": str(model_path),
        "report": str(report),
        "answered": str(answered),
        "asked": [{**vars(row), "class": row.label} for row in least_certain(model, _ASKED_SHOWN)],
        "predict": shlex.join(["sdulearn", "predict", str(model_path), str(arguments.table), "-o", "classes.csv"]),
        "fit": shlex.join(map(str, [*same, *_as_options({**options, **named})])),
    }


def _headline(model: TableModel, session: Session) -> dict[str, Any] | None:
    """Return the accuracy of the model, or that by the questions; None if neither is known."""
    from sdulearn.report.results import headline_of

    assert model.report is not None
    headline = headline_of(model.report)
    if headline.measure == "accuracy" and not headline.unknown:
        return {name: getattr(headline, name) for name in ("value", "low", "high", "n", "basis")}
    accuracy = session.numbers(wait=True)["accuracy"]
    return accuracy and {**accuracy, "n": accuracy["n_random"], "basis": "random questions"}


def _classes_found(model: TableModel) -> list[dict[str, Any]]:
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


def _as_options(values: Mapping[str, Any]) -> list[object]:
    """Return parameters as options of ``sdulearn fit``."""
    options: list[object] = []
    for name, value in values.items():
        if value is True:
            options.append(cli.OPTIONS[name])
        elif value is not None and value is not False and value != ():
            options += [cli.OPTIONS[name], ",".join(value) if isinstance(value, tuple) else value]
    return options
