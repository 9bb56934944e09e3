"""The README keeps its word: its commands run, and print and write what it shows; so does its example."""

import contextlib
import io
import re
import runpy
import shlex
from pathlib import Path

import pytest

from sdulearn.cli.main import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each command on two files prints, and the folder where they ran."""
    folder = tmp_path_factory.mktemp("readme")
    found = {}
    with contextlib.chdir(folder):
        for line in blocks("console")[2].splitlines():
            program, first, *rest = shlex.split(line.removeprefix("$ "))
            if program == "python":
                runpy.run_path(str(ROOT / first), run_name="__main__")
                continue
            with contextlib.redirect_stdout(io.StringIO()) as screen:
                assert main([first, *rest]) == 0
            found[first] = screen.getvalue()
    return found, folder


def test_it_is_short():
    assert len(README.split()) <= 700


def test_the_commands_run_one_after_the_other(printed):
    found, folder = printed
    assert list(found) == ["check", "fit", "predict"]
    assert found["fit"].startswith(blocks("text")[0])
    assert len((folder / "classes.csv").read_text().splitlines()) == 70


def test_the_example_prints_what_is_shown(printed):
    with contextlib.chdir(printed[1]), contextlib.redirect_stdout(io.StringIO()) as screen:
        exec(blocks("python")[0], {})
    assert screen.getvalue() == blocks("text")[1]
