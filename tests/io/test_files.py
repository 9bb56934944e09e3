"""A file is written whole or not at all."""

import os
import threading

import numpy as np
import pytest

from sdulearn import SDUClassifier, load_model
from sdulearn.io import container, files
from sdulearn.io.files import written_whole


def test_whoever_has_the_old_file_open_reads_the_old_file(tmp_path):
    """The new file takes the old one's name and never touches its bytes."""
    path = tmp_path / "model.sdu"
    container.write(path, {"model": "one"}, {"w": np.zeros(3)})
    old = path.read_bytes()
    with path.open("rb") as reader:
        begun = reader.read(10)
        container.write(path, {"model": "another"}, {"w": np.ones(300)})
        assert begun + reader.read() == old
        assert os.fstat(reader.fileno()).st_ino != path.stat().st_ino
    assert container.read(path)[0]["model"] == "another"


def test_saving_a_model_over_another_is_atomic(tmp_path, waveform):
    path = tmp_path / "model.sdu"
    model = SDUClassifier(alpha=1.0).fit(*waveform)
    model.save(path)
    old = path.read_bytes()
    with path.open("rb") as reader:
        SDUClassifier(alpha=0.01).fit(*waveform).save(path)
        assert reader.read() == old
    assert load_model(path).alpha == 0.01


def write_half(path, there):
    with written_whole(path) as draft:
        draft.write_text("half a")
        assert draft.parent == path.parent
        assert path.exists() == there
        raise ZeroDivisionError


@pytest.mark.parametrize("there", [True, False], ids=["over another file", "new"])
def test_a_write_that_fails_leaves_everything_as_it_was(tmp_path, there):
    path = tmp_path / "out.csv"
    if there:
        path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write_half(path, there)
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"] * there
    if there:
        assert path.read_text() == "old"


def test_two_writers_of_one_file_have_drafts_of_their_own(tmp_path):
    path = tmp_path / "out.csv"
    with written_whole(path) as one:
        with written_whole(path) as other:
            assert one != other
            other.write_text("second")
        assert path.read_text() == "second"
        one.write_text("first")
    assert path.read_text() == "first"
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]


def test_on_windows_no_process_is_asked_whether_it_runs(tmp_path, monkeypatch):
    """There a signal 0 ends the process; a draft is old or it is not."""
    monkeypatch.setattr(files, "_WINDOWS", True)
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a process was killed"))
    old, new = (tmp_path / f".out.csv.{number}.x.part" for number in (123, 124))
    for draft in (old, new):
        draft.write_text("half")
    os.utime(old, (0, 0))
    with written_whole(tmp_path / "out.csv") as draft:
        draft.write_text("whole")
    assert sorted(one.name for one in tmp_path.iterdir()) == [new.name, "out.csv"]


def test_two_threads_may_write_one_file(tmp_path):
    """Whoever reads meanwhile sees one of the two, whole; nothing is left behind."""
    path = tmp_path / "model.sdu"
    texts = [letter * 100_000 for letter in "ab"]

    def write(text):
        for _ in range(50):
            with written_whole(path) as draft:
                draft.write_text(text)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            assert path.read_text() in texts
    assert [file.name for file in tmp_path.iterdir()] == ["model.sdu"]


def test_drafts_of_killed_processes_are_cleared_away(tmp_path):
    gone = 2**22 - 3  # beyond the largest number that Linux gives a process by default
    abandoned = tmp_path / f".model.sdu.{gone}.abc.part"
    at_work = tmp_path / f".model.sdu.{os.getpid()}.abc.part"
    other = tmp_path / f".other.sdu.{gone}.abc.part"
    for path in (abandoned, at_work, other):
        path.write_text("half")
    with written_whole(tmp_path / "model.sdu") as draft:
        draft.write_text("whole")
    assert {file.name for file in tmp_path.iterdir()} == {"model.sdu", at_work.name, other.name}
