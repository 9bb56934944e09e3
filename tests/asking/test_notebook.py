"""The cell of a notebook, driven by its buttons."""

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
from sdulearn.errors import InputError, MissingExtraError
from sdulearn.io.images import encode_png, media_type

pytest.importorskip("ipywidgets")
RNG = np.random.default_rng(0)
Y = np.arange(60) % 2
X = RNG.normal(size=(60, 3)) + 3 * Y[:, None]


@pytest.fixture
def asker():
    return Asker(X, repeat_share=0, random_state=0)


def answer(cell):
    """What somebody who knows the classes clicks."""
    question = cell.asker.next(cell.annotator)
    cell.buttons["same" if Y[question.left] == Y[question.right] else "different"].click()


def test_clicks_are_answers_and_undo_takes_them_back(asker):
    cell = QuestionCell(asker, X, annotator="ann")
    assert cell.buttons["undo"].disabled
    shown = []
    for name in ("same", "different", "unsure"):
        shown.append(cell.pair.value)
        cell.buttons[name].click()
    assert asker.answers["answer"] == ["same", "different", "unsure"]
    assert asker.answers["annotator"] == ["ann"] * 3
    assert len(set(shown)) == 3
    assert cell.status.value == "3 answers"
    for number in (3, 2, 1):
        cell.buttons["undo"].click()
        assert cell.pair.value == shown[number - 1]
        assert f"Answer {number} is taken back" in cell.status.value
    cell.buttons["undo"].click()
    assert "no answer to undo" in cell.status.value


def test_the_accuracy_is_shown_once_there_is_one():
    asker = Asker(X, random_share=1, repeat_share=0, random_state=0)
    cell = QuestionCell(asker, X)
    for _ in range(5):
        answer(cell)
    assert re.search(r"Estimated accuracy after 5: unknown, \d random questions are missing$", cell.status.value)
    for _ in range(10):
        answer(cell)
    found = asker.accuracy()
    words = f"Estimated accuracy after 15: {found.value:.1%} ({found.low:.0%} to {found.high:.0%})"
    assert cell.status.value == f"15 answers. {words}"
    assert QuestionCell(asker, X).status.value == cell.status.value
    answer(cell)
    assert cell.status.value == f"16 answers. {words}"


def test_a_click_on_a_question_that_is_gone_is_no_answer_and_at_the_end_there_is_none(asker):
    old, new = (QuestionCell(asker, X) for _ in range(2))
    answer(new)
    old.buttons["same"].click()
    assert asker.n_answers == 1
    assert old.status.value == "1 answer. This question was out of date. Here is the one of now."
    assert old.pair.value == new.pair.value
    cell = QuestionCell(Asker(X[:3], repeat_share=0, random_state=0), X)
    while not cell.buttons["same"].disabled:
        answer(cell)
    assert "<table>" not in cell.pair.value
    cell.buttons["undo"].click()
    assert not cell.buttons["same"].disabled
    assert "<table>" in cell.pair.value


def test_texts_and_fields_are_escaped_and_those_that_differ_bold(asker):
    texts = [f"<script>{k}</script>" for k in range(60)]
    values = {"<b>": texts, "alike": ["x"] * 60, "unlike": np.arange(60) + 0.5, "gone": [None] * 60}
    frame = pd.DataFrame(values)
    question = asker.next()
    for things in (texts, frame, pl.from_pandas(frame), frame["<b>"].tolist().__getitem__):
        shown = QuestionCell(asker, things).pair.value
        assert "<script>" not in shown
        assert f"&lt;script&gt;{question.left}&lt;" in shown
        assert "<b>" not in shown
        if hasattr(things, "columns"):
            assert shown.count("<th ") == 4
            assert f">{question.left + 0.5}</th>" in shown
            assert f">{question.right + 0.5}</th>" in shown
            assert ">alike</td>" in shown
    # Forty fields are shown of many.
    shown = QuestionCell(asker, pd.DataFrame(np.zeros((60, 42)), columns=[f"c{k}" for k in range(42)])).pair.value
    assert ("c39<" in shown, "c40<" in shown, "and 2 more" in shown) == (True, False, True)


def test_rows_of_x_by_default_dense_and_sparse():
    zeros = np.where(X > 1, X, 0)
    question = Asker(zeros, random_state=0).next()
    both = (zeros[[question.left, question.right]] != 0).any(axis=0)
    dense = QuestionCell(Asker(zeros, random_state=0), zeros).pair.value
    few = QuestionCell(Asker(zeros, random_state=0), sparse.csr_array(zeros)).pair.value
    assert dense.count("<tr>") == 3
    assert [k for k in range(3) if f"feature {k}<" in few] == np.flatnonzero(both).tolist()
    for k in np.flatnonzero(both):
        assert f">{zeros[question.left, k]:.6g}<" in dense
        assert f">{zeros[question.left, k]:.6g}<" in few or not zeros[question.left, k]


@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 3), (5, 4, 4)])
@pytest.mark.parametrize("kind", [float, np.uint8])
def test_pictures(asker, shape, kind):
    pictures = (RNG.random((60, *shape)) * (255 if kind is np.uint8 else 1)).astype(kind)
    codes = re.findall(r"base64,([^']+)'", QuestionCell(asker, pictures).pair.value)
    assert [media_type(base64.b64decode(code), "image") for code in codes] == ["image/png"] * 2
    # Numbers between 0 and 1, or whole numbers to 255.
    pixels = pictures[asker.next().left] * (1 if kind is np.uint8 else 255)
    assert base64.b64decode(codes[0]) == encode_png(np.rint(pixels).astype(np.uint8))
    with pytest.raises(InputError, match="shape"):
        QuestionCell(asker, np.zeros((60, 5, 4, 2)))


def test_things_that_show_themselves(asker):
    drawn = SimpleNamespace(_repr_png_=lambda: b"\x89PNG")
    assert base64.b64encode(b"\x89PNG").decode() in QuestionCell(asker, lambda row: drawn).pair.value
    marked = SimpleNamespace(_repr_html_=lambda: "<em>mine</em>")
    assert QuestionCell(asker, lambda row: marked).pair.value.count("<em>mine</em>") == 2


def test_an_asker_displays_itself_or_says_what_to_install(asker, monkeypatch):
    view = asker._repr_mimebundle_(include=None, exclude=None)
    assert "application/vnd.jupyter.widget-view+json" in view
    assert repr(asker) == "Asker(design='linked', n_classes=2), 0 answers"
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    view = asker._repr_mimebundle_(include=None, exclude=None)
    assert view["text/plain"] == repr(asker)
    assert "sdulearn[notebook]" in view["text/html"]
    with pytest.raises(MissingExtraError, match="notebook"):
        QuestionCell(asker, X)


def test_match_questions_have_a_button_for_each_choice():
    asker = Asker(X, n_classes="auto", random_state=0)
    cell = QuestionCell(asker, X)
    for _ in range(8):
        question = asker.next()
        assert list(cell.buttons) == [*map(str, range(1, len(question.choices) + 1)), "none", "unsure", "undo"]
        like = [k for k, row in enumerate(question.choices) if Y[row] == Y[question.left]]
        cell.buttons[str(like[0] + 1) if like else "none"].click()
    assert len(asker.classes()) == 2
    assert cell.pair.value.count("<th ") == 3
    cell.buttons["undo"].click()
    assert asker.n_answers == 7
