"""``sdulearn ask``."""

from __future__ import annotations

import argparse
import secrets
import threading
import webbrowser
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sdulearn.answer_files.log import LogContents, log_answers, read_log
from sdulearn.answer_files.rows import read_labels
from sdulearn.answer_files.store import AnswerStore
from sdulearn.answers.records import flip_rate
from sdulearn.asking.session import Goal, Session, continue_asker
from sdulearn.cli import digits
from sdulearn.cli import options as cli
from sdulearn.cli.finish import FORCED_CHOICES, Finish
from sdulearn.cli.machines import ask_machine
from sdulearn.diagnostics import check_source
from sdulearn.errors import InputError, require
from sdulearn.findings import MoreLabelsThanClasses
from sdulearn.io.files import as_text, decoded, read_bytes
from sdulearn.io.typed import plain
from sdulearn.reading import CONTRASTIVE, Reading
from sdulearn.report.results import ITEMS_SHOWN, lines, unreadable
from sdulearn.tables.ids import repeated_id, unknown_ids
from sdulearn.types import Rows
from sdulearn.web import is_loopback
from sdulearn.web.things import Things, things_of_table
from sdulearn.workflow.data import draw_rows, sample_sizes


class Asked(NamedTuple):
    """What is asked about."""

    X: Rows
    things: Things  # what is shown of rows
    labels: list[str]
    reading: Reading  # how the table was read, for the log
    digest: Callable[[int], str]  # of a row
    grown_from: Sequence[int]  # earlier sizes of a growing sample


def run(arguments: argparse.Namespace) -> int:
    """Read, ask, report."""
    log_path = _log_path(arguments)
    if arguments.demo:
        arguments.table = digits.write_table(log_path.with_suffix(".table.csv"))
    before = read_log(log_path) if log_path.exists() else LogContents()
    with cli.waiting(f"Reading {arguments.table}"):
        asked = _read(arguments, before)
    interrupted = False
    with AnswerStore(log_path) as log:
        if bad := log.contents.bad_rows:
            cli.say("\n".join([f"{log.path}:", *lines(unreadable(bad), ITEMS_SHOWN)]))
        with cli.waiting(f"Learning from {len(log.contents.answers):,} answers"):
            session = _session(arguments, asked, log)
        finish = Finish(arguments, session)
        try:
            if arguments.oracle is not None or arguments.command is not None:
                ask_machine(session, asked.things, asked.labels, _instructions(arguments), arguments)
                # An audit is by a person, not by the machine.
                arguments.annotator = ""
            if arguments.oracle is None and (arguments.command is None or arguments.audit is not None):
                _serve(arguments, session, asked, finish)
        except KeyboardInterrupt:
            interrupted = True
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
    finish.say_end()
    return 130 if interrupted else 0


def _log_path(arguments: argparse.Namespace) -> Path:
    if arguments.demo == (arguments.table is not None):
        raise InputError("Give a table, or --demo, and not both.")
    if arguments.output is None and not arguments.demo:
        raise InputError("Name the log of answers with -o, for example -o answers.jsonl.")
    path = Path(arguments.output or digits.LOG)
    cli.check_outputs((path,), (arguments.table,))
    return path


def _read(arguments: argparse.Namespace, before: LogContents) -> Asked:
    """Read the table as ``fit`` does, or a sample of a large one, and what is shown of it."""
    given = [*before.answers.values(), *before.withdrawn.values()]
    examples = {*before.examples, *(read_labels(arguments.examples).by_id if arguments.examples else ())}
    sizes = sample_sizes(len(given))
    reading = _reading(arguments)
    if before.reading is not None:
        reading = before.reading.continued(reading)
    drawn = draw_rows(
        arguments.table,
        sizes[-1],
        reading,
        stored=before.reading,
        answer_ids={name for answer in given for name in answer.question.items} | examples,
    )
    columns, ids, n_rows = drawn.columns, drawn.ids, drawn.n_rows
    if drawn.changes:
        cli.say("\n".join(lines(drawn.changes)))
    if "" in ids:
        raise InputError(
            "A row of the table has no id, so no answer could name it. Give every row an id, or name another column "
            "with `id_column` (an empty name stands for row numbers)."
        )
    name, times = Counter(ids).most_common(1)[0]
    if times > 1:
        raise repeated_id(name, times)
    if len(ids) < n_rows:
        cli.say(f"Questions are about {len(ids):,} of the {n_rows:,} rows, drawn at random: more with more answers.")
    scaled = columns.scaled(drawn.X)
    standardised = columns.standardised(drawn.X)
    if arguments.demo:
        things, labels = Things(ids, pictures=digits.images()), digits.labels()
    else:
        oracle = arguments.oracle
        labels = [] if oracle is None else [as_text(cell) for cell in drawn.cells[oracle].to_pylist()]
        things = things_of_table(
            drawn.cells,
            ids,
            columns.id_column,
            text=arguments.text,
            image=arguments.images,
            audio=arguments.audio,
            columns=arguments.show,
            hidden=reading.drop,
            root=arguments.image_root or arguments.table.parent,
            deviations={one.name: standardised[:, part.start] for one, part in columns.parts if one.kind == "number"},
        )
    reading = replace(reading.completed(columns.id_column, n_rows, drawn.digest), cells={})
    grown_from = [size for size in sizes[:-1] if size < n_rows]
    return Asked(scaled, things, labels, reading, drawn.row_digest, grown_from)


def _reading(arguments: argparse.Namespace) -> Reading:
    """How the table is read: sounds and labels are no features, nor texts and images beside vectors."""
    reading = cli.reading_of(arguments)
    # Columns of links are shown, and left out of the features.
    shown = (*reading.text, *reading.images) if reading.embedding and reading.embedding != CONTRASTIVE else ()
    others = (None if arguments.demo else arguments.oracle, arguments.audio, *shown)
    drop = tuple(dict.fromkeys([*reading.drop, *(name for name in others if name)]))
    text, images = (tuple(name for name in names if name not in drop) for names in (reading.text, reading.images))
    return replace(reading, drop=drop, text=text, images=images)


def _session(arguments: argparse.Namespace, asked: Asked, log: AnswerStore) -> Session:
    """Start a session; an old log keeps its seed, so that its random questions remain a sample."""
    ids = asked.things.ids
    classes: int | Literal["auto"] = arguments.classes or ("auto" if arguments.demo else 2)
    n_labels = len({*asked.labels} - {""})
    if arguments.oracle is not None and classes != "auto" and n_labels > classes:
        warned = MoreLabelsThanClasses(column=arguments.oracle, n_labels=n_labels, n_classes=classes)
        cli.say(cli.in_options("\n".join(lines([warned]))))
    seed = next(iter(log.contents.seeds.values()), None)
    if seed is None:
        seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    private = _privacy(arguments, log)
    if arguments.examples is not None:
        _add_examples(arguments.examples, ids, log)
    options: dict[str, Any] = {"design": arguments.design, "n_classes": classes, "private": private}
    if arguments.command is not None:
        # A machine would repeat itself; an audit by a person checks it.
        options["repeat_share"] = 0.0
    asker = continue_asker(asked.X, log, ids, random_state=seed, grown_from=asked.grown_from, **options)
    if asker.design == "nearer":
        cli.say(FORCED_CHOICES)
    goal = Goal(arguments.per_person, arguments.overlap, arguments.until, arguments.audit)
    session = Session(asker, not is_loopback(arguments.host), goal)
    settings: dict[str, Any] = {"design": asker.design, "classes": classes}
    if private is not None:
        settings["epsilon"] = private
        cli.say(f"Answers are private: each is flipped with probability {flip_rate(private):.1%} before it is stored.")
    settings["reading"] = plain(asked.reading.changed())
    session.digest = None if asked.reading.id_column else asked.digest
    log.begin(seed, **settings, table=arguments.table.name)
    return session


def _add_examples(path: Path, ids: Sequence[str], log: AnswerStore) -> None:
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


def _serve(arguments: argparse.Namespace, session: Session, asked: Asked, finish: Finish) -> None:
    require("starlette", "ask")
    require("uvicorn", "ask")
    from sdulearn.web.app import Page, serve

    def ready(address: str) -> None:
        if arguments.demo:
            cli.say(digits.BEGINNING)
        # With --quiet, too: without it nobody can answer.
        print(f"The page: {address}", flush=True)
        if session.for_team:
            cli.say("Everybody who can reach this machine and has this address sees the rows; nothing is encrypted.")
        cli.say("Stop with Ctrl-C; the same command continues where you stopped.")
        if not arguments.no_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    page = Page(
        session,
        asked.things,
        digits.TITLE if arguments.demo else arguments.table.name,
        arguments.annotator,
        finish.fit,
        finish.export,
        wording=arguments.question.strip(),
        instructions=_instructions(arguments),
        language=arguments.language,
        class_names=arguments.class_names,
        is_demo=arguments.demo,
    )
    serve(page, arguments.host, arguments.port, ready)


def _instructions(arguments: argparse.Namespace) -> str:
    path: Path | None = arguments.instructions
    return "" if path is None else decoded(path, read_bytes(path)).strip()
