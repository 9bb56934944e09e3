"""What the page may ask for and do: plain data in, plain data out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sdulearn.answers.records import flip_rate
from sdulearn.errors import InputError, SdulearnError
from sdulearn.io.answer_log import ANSWER_CODES, LoggedAnswer
from sdulearn.io.typed import plain
from sdulearn.web.session import AskingSession, Pending
from sdulearn.web.things import Things

Json = dict[str, Any]
_PAGE = 100
_EXAMPLES = 8
_LONGEST_LABEL = 60


@dataclass
class PageViews:
    """All that the page shows, of one session."""

    session: AskingSession  # people and their answers
    things: Things  # what is shown of each row
    title: str  # what is asked about: the table's name
    annotator: str = ""  # who answers unless they give another name
    # takes names of classes by row id, fits a model of all classes found, and gives back what to show of it: lines of
    # text, and the model's file, its report page and commands
    fit: Callable[[Mapping[str, str]], Json] | None = None
    report: Path | None = None  # the report page of the last fit
    _fitting: threading.Lock = field(default_factory=threading.Lock)

    def readers(self) -> Mapping[str, Callable[[Json], Json]]:
        """What can be asked for, by name."""
        return {
            "start": self.start,
            "question": self.question,
            "history": self.history,
            "numbers": self.numbers,
            "people": self.people,
            "classes": self.classes,
        }

    def writers(self) -> Mapping[str, Callable[[Json], Json]]:
        """What can be done, by name."""
        return {
            "answer": self.answer,
            "skip": self.skip,
            "undo": self.undo,
            "change": self.change,
            "finish": self.finish,
        }

    def start(self, given: Json) -> Json:
        """What the page needs once."""
        return {
            "title": self.title,
            "annotator": self.annotator,
            "people": self.session.people(),
            "points": len(self.things.ids),
            "log": str(self.session.log.path),
            "can_fit": self.fit is not None,
            "need_name": self.session.for_team,
            "flip_rate": None if self.session.epsilon is None else flip_rate(self.session.epsilon),
        }

    def question(self, given: Json) -> Json:
        """The question before a person."""
        return self._shown(_name(given))

    def answer(self, given: Json) -> Json:
        """Take an answer, and give the next question."""
        name = _name(given)
        written = self.session.answer(name, _whole(given, "token"), _answer(given))
        key = None if written is None else {"session": written.session, "number": written.number}
        return {"written": key, **self._shown(name)}

    def skip(self, given: Json) -> Json:
        """Put a question off."""
        name = _name(given)
        self.session.skip(name, _whole(given, "token"))
        return self._shown(name)

    def undo(self, given: Json) -> Json:
        """Take the last answer back."""
        name = _name(given)
        return {"undone": self.session.undo(name) is not None, **self._shown(name)}

    def change(self, given: Json) -> Json:
        """Change an earlier answer."""
        key = str(given.get("session", "")), _whole(given, "number")
        changed = self.session.change(key, _answer(given), _name(given))
        return {"answer": self._logged([changed], given)[0]}

    def history(self, given: Json) -> Json:
        """Answers from the last one back, a page at a time."""
        everything = self.session.history()
        begin = max(_whole(given, "begin", 0), 0)
        page = everything[begin : begin + _PAGE]
        return {"answers": self._logged(page, given), "total": len(everything), "begin": begin}

    def numbers(self, given: Json) -> Json:
        """Counts, classes, accuracy, what to look at again, and advice."""
        found = self.session.numbers()
        return plain({**found, "review": self._logged(found["review"], given)})

    def people(self, given: Json) -> Json:
        """Agreement and error rates."""
        return plain(asdict(self.session.agreement()))

    def classes(self, given: Json) -> Json:
        """Examples of each class, to name it by."""
        labels = self.session.log.contents.labels
        shown = []
        for rows in self.session.examples(_EXAMPLES):
            ids = [self.things.ids[row] for row in rows]
            names = [labels[name] for name in ids if name in labels]
            examples = [self._thing(row) for row in rows]
            shown.append({"ids": ids, "name": names[-1] if names else "", "examples": examples})
        return {"classes": shown}

    def finish(self, given: Json) -> Json:
        """Name the classes, then fit."""
        names = _labels(given.get("labels"))
        self._refuse_shared_names(names)
        self.session.label(names, _name(given))
        if self.fit is None:
            raise InputError("There is nothing to fit: this is a demonstration.")
        with self._fitting:
            # Names of an earlier time may have been changed since.
            result = self.fit(names)
            self.report = Path(result["report"])
            return result

    def _refuse_shared_names(self, names: Mapping[str, str]) -> None:
        """By the answers, classes differ: a name that two of them have would contradict them."""
        seen: set[str] = set()
        for rows in self.session.examples(_EXAMPLES):
            own = {names[self.things.ids[row]] for row in rows if self.things.ids[row] in names}
            if shared := sorted(own & seen):
                raise InputError(
                    f"Two classes are named {shared[0]!r}. Give them different names, or leave one of them empty."
                )
            seen |= own

    def _shown(self, annotator: str) -> Json:
        """A question as it is shown; nothing of the model is in it."""
        try:
            pending: Pending = self.session.question(annotator)
        except SdulearnError as error:
            return {"question": None, "reason": str(error), "answers": self.session.n_answers}
        question = pending.question
        return {
            "question": {
                "token": pending.token,
                "left": self._thing(question.left),
                "right": self._thing(question.right),
            },
            "answers": self.session.n_answers,
        }

    def _thing(self, row: int) -> Json:
        return {"id": self.things.ids[row], "parts": self.things.show(row)}

    def _logged(self, answers: Sequence[LoggedAnswer], given: Json) -> list[Json]:
        """Answers as they are listed, and which of them the one who looks at them may change."""
        name = _name(given)
        alone = self.session.is_alone(name)
        changeable = self.session.epsilon is None
        return [self._row(one) | {"may_change": changeable and (alone or one.annotator == name)} for one in answers]

    def _row(self, one: LoggedAnswer) -> Json:
        rows = (self.session.rows[one.left], self.session.rows[one.right])
        ends = [
            {
                "id": self.things.ids[row],
                "title": self.things.title(row),
                "row": row,
                "picture": self.things.has_picture(row),
            }
            for row in rows
        ]
        return {
            "session": one.session,
            "number": one.number,
            "left": ends[0],
            "right": ends[1],
            "answer": one.answer,
            "annotator": one.annotator,
            "time": one.time,
        }


def _name(given: Json) -> str:
    name = given.get("annotator", "")
    if not isinstance(name, str):
        raise InputError("A name is a text.")
    return name.strip()


def _whole(given: Json, name: str, default: int | None = None) -> int:
    value = given.get(name, default)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{name} must be a whole number.")
    return value


def _answer(given: Json) -> str:
    answer = given.get("answer")
    if not isinstance(answer, str) or answer not in ANSWER_CODES:
        raise InputError("An answer is same, different or unsure.")
    return answer


def _labels(given: object) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given.values()):
        raise InputError("Names of classes are texts by row id.")
    names = {str(row_id): name.strip() for row_id, name in given.items() if name.strip()}
    if any(len(name) > _LONGEST_LABEL or not name.isprintable() for name in names.values()):
        raise InputError(f"A class name has at most {_LONGEST_LABEL} characters that can be printed.")
    return names
