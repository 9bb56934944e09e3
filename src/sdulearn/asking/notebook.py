"""Questions in a notebook cell, as on the page of ``sdulearn ask`` (extra ``notebook``)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from sdulearn.asking.records import RowQuestion, are_examples
from sdulearn.errors import InputError, NothingToAskError, UndeterminedError, require
from sdulearn.io.media import encode_png

if TYPE_CHECKING:
    from sdulearn.asking.asker import Asker

# An accuracy takes longer than a question: estimate it after this many answers.
_ACCURACY_EVERY = 5
_MOST_FIELDS = 40
_LONGEST_VALUE = 500
# Mean and standard deviation of columns of numbers, by name.
Scales = Mapping[str, tuple[float, float]]


class QuestionCell:
    """Ask in a notebook, with the buttons and keys of the page of ``sdulearn ask``.

    It shows itself as the last line of a cell. An Asker does so, too, with the rows of its ``X``;
    this class shows anything else.

    Parameters
    ----------
    asker : Asker
        Chooses the questions and takes the answers: they are in ``asker.answers`` at once.
    things : frame, list of str, array of images or callable
        What is shown of each row of ``X``: the row of a frame, a text, or an image of shape
        (height, width) or (height, width, 3), of integers to 255 or floats to 1. Anything with
        ``_repr_png_`` shows itself. A function of the row number returns one of these or a mapping.
    annotator : str, optional
        Who answers.

    Attributes
    ----------
    widget : anywidget.AnyWidget
        The widget; its ``shown`` has the question, or None, and the status below it.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sdulearn.asking import Asker, QuestionCell
    >>> digits = load_digits()
    >>> asker = Asker(digits.data, n_classes="auto", random_state=0)
    >>> cell = QuestionCell(asker, digits.images / 16)
    >>> cell.press(0)
    >>> asker.n_answers
    1
    """

    def __init__(self, asker: Asker, things: Any, annotator: str | None = None) -> None:
        self.widget = _widget_type()()
        self.asker = asker
        self.annotator = annotator
        self._thing, self._scales = _shower(things)
        self._question: RowQuestion | None = None
        self._accuracy = ""
        self.widget.on_msg(lambda widget, content, buffers: self.press(content["reply"]))
        self._estimate()
        self._show()

    def press(self, reply: int | str | list[int | None]) -> None:
        """Do what a button or a key does.

        Parameters
        ----------
        reply : int, str or list
            An answer to the question that is shown, as for :meth:`Asker.tell`, or "undo".
        """
        try:
            note = self._answer(reply)
        except InputError as error:
            note = str(error)
        self._show(note)

    def _answer(self, reply: int | str | list[int | None]) -> str:
        if reply == "undo":
            taken = self.asker.undo(self.annotator)
            self._estimate()
            return f"Answer {taken.given.number} is taken back."
        if self._question is None or self.asker.next(self.annotator) != self._question:
            # It was answered or undone in another cell.
            return "This question was out of date. Here is the one of now."
        self.asker.tell(self._question, reply, self.annotator)
        if self.asker.n_answers % _ACCURACY_EVERY == 0:
            self._estimate()
        return ""

    def _show(self, note: str = "") -> None:
        shown = None
        try:
            self._question = self.asker.next(self.annotator)
            rows = self._question.items
            things = [self._thing(row) for row in rows]
            # All have the same fields.
            names = list(dict.fromkeys(name for thing in things if isinstance(thing, Mapping) for name in thing))
            parts = [_part(thing, names[:_MOST_FIELDS], self._scales) for thing in things]
            numbers = {row: number for number, members in enumerate(self.asker.groups()) for row in members}
            items = [
                {"id": str(row), "name": "", "place": numbers.get(row) if is_example else None, "parts": [part]}
                for row, is_example, part in zip(rows, are_examples(self._question), parts, strict=True)
            ]
            shown = {"form": self._question.form, "items": items}
        except NothingToAskError as error:
            self._question = None
            note = f"{note} {error}".strip()
        n = self.asker.n_answers
        status = ["1 answer" if n == 1 else f"{n} answers", self._accuracy, note]
        self.widget.shown = {"question": shown, "status": ". ".join(filter(None, status))}

    def _estimate(self) -> None:
        try:
            accuracy = self.asker.accuracy()
            words = f"{accuracy.value:.1%} ({accuracy.low:.0%} to {accuracy.high:.0%})"
        except UndeterminedError as error:
            words = f"unknown, random questions still missing: {error.missing}" if error.missing else "unknown"
        n = self.asker.n_answers
        self._accuracy = f"Estimated accuracy after {n}: {words}" if n else ""

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)


@cache
def _widget_type() -> Any:
    """Return a widget class with the scripts and styles of the page."""
    base = require("anywidget", "notebook").AnyWidget
    static = files("sdulearn.web") / "static"
    names = ("view.js", "texts/en.json", "cell.js", "view.css")
    view, texts, cell, style = ((static / name).read_text("utf-8") for name in names)
    shown = require("traitlets", "notebook").Dict().tag(sync=True)
    script = f'{view}\nspeak("en", {texts});\n{cell}'
    return type("QuestionView", (base,), {"_esm": script, "_css": style, "shown": shown})


def _shower(things: Any) -> tuple[Callable[[int], Any], Scales]:
    """Return a function from a row number to what is shown, and the scales of columns."""
    if callable(things):
        return things, {}
    if sparse.issparse(things):
        rows = sparse.csr_array(things)
        # Zeros are not shown.
        return (lambda row: {f"feature {k}": rows[row, k] for k in rows[[row]].indices}), {}
    if hasattr(things, "columns"):
        columns = {name: np.asarray(things[name]) for name in things.columns}
    elif isinstance(things, np.ndarray) and things.ndim == 2:
        columns = {f"feature {k}": column for k, column in enumerate(things.T)}
    else:
        return things.__getitem__, {}
    numbers = {name: values for name, values in columns.items() if values.dtype.kind in "iuf"}
    scales = {name: (np.nanmean(values), np.nanstd(values) or 1.0) for name, values in numbers.items()}
    return (lambda row: {name: values[row] for name, values in columns.items()}), scales


def _field(thing: Mapping[str, Any], name: str, scales: Scales) -> list[Any]:
    """Name, value as text, and for numbers the standard score."""
    value = thing.get(name)
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return [str(name), "", None]
    text = f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
    mean, deviation = scales.get(name, (0.0, 0.0))
    return [str(name), text[:_LONGEST_VALUE], float((value - mean) / deviation) if deviation else None]


def _part(thing: Any, names: Sequence[str], scales: Scales) -> dict[str, Any]:
    """Return the fields of these names, a picture or a text for the page."""
    if isinstance(thing, Mapping):
        return {"kind": "fields", "fields": [_field(thing, name, scales) for name in names]}
    if isinstance(thing, np.ndarray):
        data = encode_png(_bytes_of(thing))
    elif hasattr(thing, "_repr_png_"):
        data = thing._repr_png_()
    else:
        return {"kind": "text", "text": str(thing)}
    code = base64.b64encode(data).decode("ascii")
    return {"kind": "image", "src": f"data:image/png;base64,{code}", "pixels": True}


def _bytes_of(picture: np.ndarray) -> np.ndarray:
    """Return pixels from 0 to 255."""
    if picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] not in (3, 4)):
        shapes = "(height, width) or (height, width, 3)"
        raise InputError(f"A picture has the shape {shapes}, got {picture.shape}. Else give a function as `things`.")
    scale = 255 if np.issubdtype(picture.dtype, np.floating) else 1
    return np.rint(np.clip(scale * picture, 0, 255)).astype(np.uint8)
