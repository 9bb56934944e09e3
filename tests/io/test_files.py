"""A file is written whole or not at all."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sdulearn.errors import FileError
from sdulearn.io.files import file_format, open_bytes, written_whole
from tests.reference import refuses


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


def test_two_threads_may_write_one_file(tmp_path):
    """Whoever reads meanwhile sees one of the two, whole; nothing is left behind."""
    path = tmp_path / "model.sdu"
    texts = [letter * 100_000 for letter in "ab"]

    def write(text):
        for _ in range(20):
            with written_whole(path) as draft:
                draft.write_text(text)

    with ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(write, text) for text in texts]
        while not all(one.done() for one in writing):
            assert not path.exists() or path.read_text() in texts
    assert [one.result() for one in writing] == [None, None]
    assert [file.name for file in tmp_path.iterdir()] == ["model.sdu"]


def test_old_drafts_of_killed_processes_are_cleared_away(tmp_path):
    old, new, other = (tmp_path / f".{name}.part" for name in ("out.csv.1", "out.csv.2", "other.csv.3"))
    for draft in (old, new, other):
        draft.write_text("half")
    for draft in (old, other):
        os.utime(draft, (0, time.time() - 86_500))
    os.utime(new, (0, time.time() - 86_300))
    with written_whole(tmp_path / "out.csv") as draft:
        draft.write_text("whole")
    assert {file.name for file in tmp_path.iterdir()} == {"out.csv", new.name, other.name}


def test_a_file_has_the_rights_of_a_new_one(tmp_path):
    (tmp_path / "usual").touch()
    with written_whole(tmp_path / "out.csv"):
        pass
    assert (tmp_path / "out.csv").stat().st_mode == (tmp_path / "usual").stat().st_mode
    with (
        refuses(error=FileError, shows=["out.csv"]),
        written_whole(tmp_path / "no" / "out.csv"),
    ):
        pass


def test_files_that_cannot_be_opened(tmp_path):
    with refuses(error=FileNotFoundError, shows=["no.csv"]):
        open_bytes(tmp_path / "no.csv")
    with refuses(shows=["device"]):
        open_bytes("/dev/zero")
    with refuses(shows=["x.sav", ".csv, .tsv"]):
        file_format("x.sav", ("csv", "tsv"))
    assert file_format("a.b.CSV.gz", ("csv",)) == "csv"
