"""Prodigy: a JSON object per task, with accept, reject or ignore, or one of several options."""

from __future__ import annotations

from sdulearn.io.files import as_text
from sdulearn.io.importers.sheet import Sheet, given_values, sheet_of
from sdulearn.io.rows import Content, Record
from sdulearn.pairs import DISSIMILAR, SIMILAR, UNSURE


def is_prodigy(content: Content) -> bool:
    """Tasks with Prodigy's hashes and an answer."""
    header = set(content.header)
    return "answer" in header and bool({"_task_hash", "_input_hash"} & header)


def read_prodigy(content: Content) -> Sheet:
    """A row per task; ids may stand in its ``meta``."""
    rows = [(n, task if isinstance(task, str) else _task_row(task)) for n, task in content.records()]
    columns = {"label": "answer"}
    for role, usual in (("annotator", ("_annotator_id", "_session_id")), ("time", ("_timestamp",))):
        if found := [name for name in usual if name in content.header]:
            columns[role] = found[0]
    words = {"accept": SIMILAR, "reject": DISSIMILAR, "ignore": UNSURE}
    return sheet_of("prodigy", rows, columns=columns, words=words, only_ids=True)


def _task_row(task: Record) -> Record | str:
    """A task with what its ``meta`` adds, and the option chosen where it offered some."""
    task = given_values(task)
    meta = task.pop("meta", None)
    if "accept" not in task and "options" not in task:
        return {**(meta if isinstance(meta, dict) else {}), **task}
    # Of a choice, "accept" says that the task is done and not that the two are alike.
    if task.get("answer") == "accept":
        chosen = task.get("accept")
        if not isinstance(chosen, list) or len(chosen) != 1:
            return "not one option chosen"
        task["answer"] = _option_text(task.get("options"), chosen[0])
    elif task.get("answer") == "reject":
        return "a choice that was rejected is no answer"
    return {**(meta if isinstance(meta, dict) else {}), **task}


def _option_text(options: object, chosen: object) -> str:
    """The text that was shown for an option, or else its id."""
    for option in options if isinstance(options, list) else []:
        if isinstance(option, dict) and option.get("id") == chosen and isinstance(option.get("text"), str):
            return str(option["text"])
    return as_text(chosen)
