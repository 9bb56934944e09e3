"""Questions with buttons in a notebook cell, by ipywidgets (extra ``notebook``)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from sdulearn.asking.records import Question
from sdulearn.errors import InputError, NothingToAskError, UndeterminedError, require
from sdulearn.io.images import encode_png

if TYPE_CHECKING:
    from sdulearn.asking.asker import Asker

# An accuracy takes longer than a question: it is worked out anew after so many answers.
_ACCURACY_EVERY = 5
_MOST_FIELDS = 40
_LONGEST_VALUE = 500
_CELL = "style='text-align:left;padding:2px 12px;vertical-align:top'"


class QuestionCell:
    """A question with buttons, to be answered in a notebook.

    It shows itself where it is the last line of a cell. An Asker does so, too, with the rows of its
    ``X``; this class shows anything else.

    Parameters
    ----------
    asker : Asker
        Gives the questions and takes the answers: they are there at once, in ``asker.answers``.
    things : frame, list of str, array of pictures or callable
        What is shown of each row of ``X``: the row of a frame, a text, or a picture of shape
        (height, width) or (height, width, 3), of integers to 255 or floats to 1. Anything with
        ``_repr_html_`` or ``_repr_png_`` shows itself. A function of the row number gives one of these.
    annotator : str, optional
        Who answers.

    Attributes
    ----------
    buttons : dict of str to ipywidgets.Button
        By name: same, different, unsure and undo; of a match question 1, 2, ... and none.
    pair, status, box : ipywidgets.HTML and VBox
        The two things, how far it is, and all of it.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sdulearn.asking import Asker, QuestionCell
    >>> digits = load_digits()
    >>> asker = Asker(digits.data, n_classes="auto", random_state=0)
    >>> cell = QuestionCell(asker, digits.images / 16)
    >>> cell.buttons["1"].click()
    >>> asker.n_answers
    1
    """

    def __init__(self, asker: Asker, things: Any, annotator: str | None = None) -> None:
        widgets = require("ipywidgets", "notebook")
        self.asker = asker
        self.annotator = annotator
        self._thing = _shower(things)
        self._question: Question | None = None
        self._accuracy = ""
        self.pair = widgets.HTML()
        self.status = widgets.HTML()
        self.buttons: dict[str, Any] = {}
        self._row = widgets.HBox()
        self.box = widgets.VBox([self.pair, self._row, self.status])
        self._estimate()
        self._show()

    def _set_buttons(self) -> None:
        """Those that the question needs; of a match question one for each choice."""
        widgets = require("ipywidgets", "notebook")
        styles = {"same": "success", "different": "danger"}
        if self.asker.design == "match":
            n = 0 if self._question is None else len(self._question.choices)
            styles = {**{str(k): "success" for k in range(1, n + 1)}, "none": "danger"}
        styles |= {"unsure": "", "undo": "warning"}
        if list(styles) != list(self.buttons):
            self.buttons = {}
            for name, style in styles.items():
                self.buttons[name] = widgets.Button(description=name.capitalize(), button_style=style)
                self.buttons[name].on_click(partial(self._clicked, name))
            self._row.children = list(self.buttons.values())
        for name, button in self.buttons.items():
            button.disabled = self.asker.n_answers == 0 if name == "undo" else self._question is None

    def _clicked(self, name: str, button: object) -> None:
        try:
            note = self._answer(name)
        except InputError as error:
            note = str(error)
        self._show(note)

    def _answer(self, answer: str) -> str:
        if answer == "undo":
            taken = self.asker.undo(self.annotator)
            self._estimate()
            return f"Answer {taken.number} is taken back."
        if self._question is None or self.asker.next(self.annotator) != self._question:
            # Answered or undone in another cell.
            return "This question was out of date. Here is the one of now."
        self.asker.tell(self._question, int(answer) - 1 if answer.isdecimal() else answer, self.annotator)
        if self.asker.n_answers % _ACCURACY_EVERY == 0:
            self._estimate()
        return ""

    def _show(self, note: str = "") -> None:
        try:
            self._question = self.asker.next(self.annotator)
            others = [self._thing(row) for row in self._question.choices]
            self.pair.value = _side_by_side(self._thing(self._question.left), *others)
        except NothingToAskError as error:
            self._question = None
            self.pair.value = escape(str(error))
        self._set_buttons()
        n = self.asker.n_answers
        parts = ["1 answer" if n == 1 else f"{n} answers", self._accuracy, escape(note)]
        self.status.value = ". ".join(part for part in parts if part)

    def _estimate(self) -> None:
        try:
            found = self.asker.accuracy()
            words = f"{found.value:.1%} ({found.low:.0%} to {found.high:.0%})"
        except UndeterminedError as error:
            words = f"unknown, {error.missing} random questions are missing" if error.missing else "unknown"
        n = self.asker.n_answers
        self._accuracy = f"Estimated accuracy after {n}: {words}" if n else ""

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.box._repr_mimebundle_(**options)


def _shower(things: Any) -> Callable[[int], Any]:
    """What to show of a row, as a function of its number."""
    if callable(things):
        return things
    if hasattr(things, "iloc"):
        return lambda row: things.iloc[row].to_dict()
    if hasattr(things, "row") and hasattr(things, "columns"):
        return lambda row: things.row(row, named=True)
    if sparse.issparse(things):
        rows = sparse.csr_array(things)
        # Zeros are not shown.
        return lambda row: {f"feature {k}": rows[row, k] for k in rows[[row]].indices}
    if isinstance(things, np.ndarray) and things.ndim == 2:
        return lambda row: {f"feature {k}": value for k, value in enumerate(things[row])}
    return things.__getitem__


def _side_by_side(*things: Any) -> str:
    """Things as HTML: fields in a table, differences in bold; all else beside each other."""
    head = ""
    if len(things) > 2:
        head = "".join(f"<th {_CELL}>{name}</th>" for name in ("Like which?", *range(1, len(things))))
    if all(isinstance(thing, Mapping) for thing in things):
        return _fields(head, things)
    cells = "".join(f"<td {_CELL}>{_as_html(thing)}</td>" for thing in things)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}<tr>{cells}</tr></table>"


def _fields(head: str, things: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for thing in things for name in thing))
    lines = [f"<tr><th></th>{head}</tr>"] if head else []
    for name in names[:_MOST_FIELDS]:
        values = [escape(_value(fields.get(name))) for fields in things]
        tag = "td" if len(set(values)) == 1 or head else "th"
        cells = "".join(f"<{tag} {_CELL}>{value}</{tag}>" for value in values)
        lines.append(f"<tr><td {_CELL}>{escape(str(name))}</td>{cells}</tr>")
    if len(names) > _MOST_FIELDS:
        lines.append(f"<tr><td {_CELL}>and {len(names) - _MOST_FIELDS} more</td></tr>")
    return f"<table>{''.join(lines)}</table>"


def _value(value: Any) -> str:
    """A field in a few words; a missing one is empty."""
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    text = f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
    return text[:_LONGEST_VALUE]


def _as_html(thing: Any) -> str:
    if isinstance(thing, np.ndarray):
        return _picture(encode_png(_bytes_of(thing)))
    for method, convert in (("_repr_html_", str), ("_repr_png_", _picture)):
        if hasattr(thing, method):
            return convert(getattr(thing, method)())
    return f"<div style='white-space:pre-wrap;max-width:40em'>{escape(str(thing))}</div>"


def _bytes_of(picture: np.ndarray) -> np.ndarray:
    """Pixels between 0 and 255."""
    if picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] not in (3, 4)):
        raise InputError(
            f"A picture has the shape (height, width) or (height, width, 3), got {picture.shape}. For other things "
            "give a function as `things`."
        )
    scale = 255 if np.issubdtype(picture.dtype, np.floating) else 1
    return np.rint(np.clip(scale * picture, 0, 255)).astype(np.uint8)


def _picture(data: bytes) -> str:
    code = base64.b64encode(data).decode("ascii")
    style = "height:12em;image-rendering:pixelated;border:1px solid"
    return f"<img alt='' style='{style}' src='data:image/png;base64,{code}'>"
