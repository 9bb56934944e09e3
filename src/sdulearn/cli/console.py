"""The questions of ``sdulearn ask`` in a terminal."""

from __future__ import annotations

from sdulearn.cli.screen import say
from sdulearn.errors import SdulearnError
from sdulearn.web.session import Session
from sdulearn.web.things import Things

_ANSWERS = {"s": "same", "d": "different", "u": "unsure"}
_HELP = "s same, d different, u unsure, z undo, k later, q stop"


def ask_in_console(session: Session, things: Things, annotator: str) -> None:
    """Ask until the person stops or nothing is left to ask."""
    say(_HELP)
    while True:
        try:
            token, question = session.question(annotator)
        except SdulearnError as error:
            say(str(error))
            return
        for name, row in (("first", question.left), ("second", question.right)):
            say(f"\n{name}: {things.ids[row]}")
            say("\n".join("  " + line for line in things.plain(row)))
        try:
            key = input(f"{session.n_answers + 1}. same, or different? ").strip().lower()[:1]
        except EOFError:
            return
        if key == "q":
            return
        if key in _ANSWERS:
            session.answer(annotator, token, _ANSWERS[key])
        elif key == "z":
            if session.undo(annotator) is None:
                say("There is nothing to take back.")
        elif key == "k":
            session.skip(annotator, token)
        else:
            say(_HELP)
