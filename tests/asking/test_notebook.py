"""The cell of a notebook, driven by what its script sends."""

import base64
import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from sdulearn.asking import Asker, QuestionCell
from sdulearn.asking.notebook import _widget_type
from sdulearn.errors import InputError, MissingExtraError
from sdulearn.io.media import encode_png, media_type

pytest.importorskip("anywidget")
RNG = np.random.default_rng(0)
Y = np.arange(60) % 2
X = RNG.normal(size=(60, 3)) + 3 * Y[:, None]


@pytest.fixture
def asker():
    return Asker(X, repeat_share=0, random_state=0)


def press(cell, said):
    """What the script sends when somebody clicks or presses a key."""
    cell.widget._handle_custom_msg({"reply": said}, [])


def answer(cell):
    """What somebody who knows the classes answers."""
    question = cell.asker.next(cell.annotator)
    press(cell, "same" if Y[question.left] == Y[question.right] else "different")


def question(cell):
    return cell.widget.shown["question"]


def status(cell):
    return cell.widget.shown["status"]


def fields(cell, place=0):
    """Fields of one thing: name to value and deviation."""
    (part,) = question(cell)["items"][place]["parts"]
    return {name: rest for name, *rest in part["fields"]}


def test_presses_are_answers_and_undo_takes_them_back(asker):
    cell = QuestionCell(asker, X, annotator="ann")
    shown = []
    for said in ("same", "different", "unsure"):
        shown.append(question(cell))
        press(cell, said)
    assert asker.answers["answer"] == ["same", "different", "unsure"]
    assert asker.answers["annotator"] == ["ann"] * 3
    assert len({one["items"][0]["id"] for one in shown}) == 3
    assert status(cell) == "3 answers"
    for number in (3, 2, 1):
        press(cell, "undo")
        assert question(cell) == shown[number - 1]
        assert f"Answer {number} is taken back" in status(cell)
    cell.press("undo")
    assert "no answer to undo" in status(cell)
    cell.press("perhaps")
    assert "got 'perhaps'" in status(cell)


def test_the_accuracy_is_shown_once_there_is_one():
    asker = Asker(X, random_share=1, repeat_share=0, random_state=0)
    cell = QuestionCell(asker, X)
    for _ in range(5):
        answer(cell)
    assert re.search(r"Estimated accuracy after 5: unknown, random questions still missing: \d$", status(cell))
    for _ in range(10):
        answer(cell)
    found = asker.accuracy()
    words = f"Estimated accuracy after 15: {found.value:.1%} ({found.low:.0%} to {found.high:.0%})"
    assert status(cell) == f"15 answers. {words}"
    assert status(QuestionCell(asker, X)) == status(cell)
    answer(cell)
    assert status(cell) == f"16 answers. {words}"


def test_an_answer_to_a_question_that_is_gone_does_not_count_and_at_the_end_there_is_none(asker):
    old, new = (QuestionCell(asker, X) for _ in range(2))
    answer(new)
    press(old, "same")
    assert asker.n_answers == 1
    assert status(old) == "1 answer. This question was out of date. Here is the one of now."
    assert question(old) == question(new)
    cell = QuestionCell(Asker(X[:3], repeat_share=0, random_state=0), X)
    while question(cell):
        answer(cell)
    assert "nothing is left to ask" in status(cell)
    press(cell, "undo")
    assert question(cell)


def test_texts_and_fields_go_to_the_page_as_they_are(asker):
    texts = [f"<script>{k}</script>" for k in range(60)]
    values = {"<b>": texts, "alike": ["x"] * 60, "unlike": np.arange(60) + 0.5, "gone": [None] * 60}
    frame = pd.DataFrame(values)
    left = asker.next().left
    for things in (texts, texts.__getitem__):
        assert question(QuestionCell(asker, things))["items"][0]["parts"] == [{"kind": "text", "text": texts[left]}]
    for things in (frame, pl.from_pandas(frame)):
        found = fields(QuestionCell(asker, things))
        assert found["<b>"] == [texts[left], None]
        assert found["gone"] == ["", None]
        assert found["unlike"] == [f"{left + 0.5:g}", pytest.approx((left - 29.5) / np.std(np.arange(60)))]
    # Forty fields are shown of many.
    many = fields(QuestionCell(asker, pd.DataFrame(np.zeros((60, 42)), columns=[f"c{k}" for k in range(42)])))
    assert list(many) == [f"c{k}" for k in range(40)]


def test_rows_of_x_by_default_dense_and_sparse():
    zeros = np.where(X > 1, X, 0)
    asked = Asker(zeros, random_state=0).next()
    both = np.flatnonzero((zeros[[asked.left, asked.right]] != 0).any(axis=0))
    dense = QuestionCell(Asker(zeros, random_state=0), zeros)
    few = QuestionCell(Asker(zeros, random_state=0), sparse.csr_array(zeros))
    assert list(fields(dense)) == [f"feature {k}" for k in range(3)]
    for side, row in enumerate(asked.items):
        # Both sides have the same fields, empty where one is zero.
        assert sorted(fields(few, side)) == [f"feature {k}" for k in both]
        for k in both:
            value = f"{zeros[row, k]:.6g}"
            assert fields(dense, side)[f"feature {k}"][0] == value
            assert fields(few, side)[f"feature {k}"] == [value if zeros[row, k] else "", None]


@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 3), (5, 4, 4)])
@pytest.mark.parametrize("kind", [float, np.uint8])
def test_pictures(asker, shape, kind):
    pictures = (RNG.random((60, *shape)) * (255 if kind is np.uint8 else 1)).astype(kind)
    (part,) = question(QuestionCell(asker, pictures))["items"][0]["parts"]
    data = base64.b64decode(part["src"].removeprefix("data:image/png;base64,"))
    assert (part["kind"], media_type(data, "image")) == ("image", "image/png")
    # Numbers between 0 and 1, or whole numbers to 255.
    pixels = pictures[asker.next().left] * (1 if kind is np.uint8 else 255)
    assert data == encode_png(np.rint(pixels).astype(np.uint8))
    with pytest.raises(InputError):
        QuestionCell(asker, np.zeros((60, 5, 4, 2)))
    # What shows itself.
    drawn = SimpleNamespace(_repr_png_=lambda: b"\x89PNG")
    (part,) = question(QuestionCell(asker, lambda row: drawn))["items"][1]["parts"]
    assert part["src"].endswith(base64.b64encode(b"\x89PNG").decode())


def test_an_asker_displays_itself_or_says_what_to_install(asker, monkeypatch):
    view = asker._repr_mimebundle_(include=None, exclude=None)
    # What else it gives back is metadata.
    assert "application/vnd.jupyter.widget-view+json" in (view[0] if isinstance(view, tuple) else view)
    assert repr(asker) == "Asker(design='linked', n_classes=2), 0 answers"
    monkeypatch.setitem(sys.modules, "anywidget", None)
    _widget_type.cache_clear()
    view = asker._repr_mimebundle_(include=None, exclude=None)
    assert view["text/plain"].startswith(repr(asker))
    assert "sdulearn[notebook]" in view["text/plain"]
    with pytest.raises(MissingExtraError):
        QuestionCell(asker, X)


def test_match_questions_have_all_choices():
    asker = Asker(X, n_classes="auto", random_state=0)
    cell = QuestionCell(asker, X)
    for _ in range(8):
        asked = asker.next()
        assert [one["id"] for one in question(cell)["items"]] == [str(row) for row in asked.items]
        like = [k for k, row in enumerate(asked.choices) if Y[row] == Y[asked.left]]
        press(cell, like[0] if like else "none")
    assert len(asker.classes()) == 2
    press(cell, "undo")
    assert asker.n_answers == 7
