"""Bars of long work: where, when, and one at a time."""

import inspect
import io
import json
import re
import sys
import threading
from types import SimpleNamespace

import pytest

from sdulearn import PairLogisticRegression, PairLogisticRegressionCV, progress
from sdulearn.cli import demo
from sdulearn.cli.main import main
from sdulearn.cli.options import waiting
from sdulearn.metrics import cross_val_accuracy
from sdulearn.progress import count_rows, long_work, steps

made = progress.new_bar


@pytest.fixture
def screen(monkeypatch):
    """What a terminal shows of work that is called long at once."""
    stream = io.StringIO()
    stream.isatty = lambda: True
    # pytest puts its own stream in the place of ``sys.stderr`` when the test begins.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream, modules=sys.modules))
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "new_bar", lambda **options: made(**{"mininterval": 0.0, **options}))
    return stream


@long_work
def work(n, fail_at=None, inner=2):
    """Add numbers up, slowly so to say."""
    total = 0
    for k in steps(range(n), "numbers"):
        total += sum(steps([k] * inner, "parts"))
        if k == fail_at:
            raise ZeroDivisionError
    return total


def bars(screen):
    """Every look at a bar."""
    return [one for one in screen.getvalue().split("\r") if one.strip()]


def test_only_the_outermost_steps_have_a_bar(screen):
    assert work(3) == 6
    seen = bars(screen)
    assert [re.search(r"numbers: .*? (\d/3) ", one)[1] for one in seen] == ["1/3", "2/3", "3/3"]
    # It is gone when the work is done.
    assert screen.getvalue().endswith("\r")
    assert inspect.signature(work) == inspect.signature(work.__wrapped__)
    assert work.__doc__.startswith("Add numbers")


def test_work_within_work_counts_its_patience(screen, monkeypatch):
    @long_work
    def two():
        return work(2), work(2)

    assert two() == (2, 2)
    assert len(re.findall("2/2", screen.getvalue())) == 2
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    screen.seek(0)
    screen.truncate()
    work(3)
    assert bars(screen) == []


def test_a_failure_leaves_no_bar_behind(screen):
    with pytest.raises(ZeroDivisionError) as kept:
        work(3, fail_at=1)
    screen.seek(0)
    screen.truncate()
    work(1)
    assert all("numbers" in one and "/1 " in one for one in bars(screen))
    assert kept.traceback  # as in a notebook, which keeps the last one


def test_where_nobody_looks_there_is_none(screen, monkeypatch):
    for k in steps(range(2), "numbers"):  # not called long
        assert k < 2
    other = threading.Thread(target=work, args=(3,))
    other.start()
    other.join()
    screen.isatty = lambda: False
    work(3)
    monkeypatch.setattr(progress, "is_there", lambda name: False)
    screen.isatty = lambda: True
    work(3)
    assert screen.getvalue() == ""


def test_fits_show_how_far_they_are(screen, waveform):
    PairLogisticRegressionCV(3).fit(*waveform)
    assert re.search(r"penalties: .*3/3", screen.getvalue())


def test_the_demo_shows_how_far_it_is(screen, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo, "accuracies", lambda name, n_pairs, seed: dict.fromkeys(demo.DRAWN, 0.9))
    monkeypatch.setattr(demo, "draw", lambda path, means: None)
    assert main(["demo", "--json", "--draws", "2", "-o", str(tmp_path)]) == 0
    assert [one for one in bars(screen) if one.startswith("settings: ")]
    # The results alone are printed.
    assert len(json.loads(capsys.readouterr().out)["results"]) > 0


def test_rows_are_counted_also_where_their_number_is_unknown(screen):
    for total, shown in ((None, "2.00k rows"), (4000, "2.00k/4.00k")):
        batches = [(begin, "cells") for begin in (0, 1000, 2000)]
        assert list(count_rows(batches, "reading", total)) == batches
        assert shown in screen.getvalue()


def test_what_has_no_steps_is_named(screen, monkeypatch):
    monkeypatch.setattr("sdulearn.cli.options.PATIENCE", 0.0)
    said = threading.Event()
    monkeypatch.setattr("sdulearn.cli.options.say", lambda text, error: (screen.write(text), said.set()))
    with waiting("Reading"):
        assert said.wait(10)
    assert screen.getvalue() == "Reading ..."
    monkeypatch.setattr("sdulearn.cli.options.PATIENCE", 60.0)
    with waiting("Learning"):
        pass
    assert "Learning" not in screen.getvalue()


def test_the_folds_of_an_accuracy_are_counted(screen, waveform):
    cross_val_accuracy(PairLogisticRegression(), *waveform, cv=3)
    assert "3/3" in [one for one in bars(screen) if one.startswith("folds")][-1]
