"""The README keeps its word: its example prints what it shows and runs on any draw, and its commands run."""

import ast
import contextlib
import io
import itertools
import re
import runpy
import shlex
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from sdulearn.cli.main import main
from sdulearn.datasets import make_waveform
from sdulearn.errors import OrientationWarning

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
N_DRAWS = 1


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


EXAMPLE, OUTPUT = blocks("python")[0], blocks("text")[0]


def run_example(code, **names):
    """What the example prints, and the names it leaves."""
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen):
        exec(code, names)
    return screen.getvalue(), names


def with_other_data(source):
    """The example as a function of ``X``, ``truth``, ``pairs``: the same statements but those that set them."""
    tree = ast.parse(source)
    given = {"X", "truth", "n_pairs", "pairs"}
    kept = [node for node in tree.body if not (isinstance(node, ast.Assign) and targets(node) <= given)]
    assert len(tree.body) - len(kept) == 3, "the example no longer sets its data in three statements"
    return compile(ast.Module(kept, []), "README.md", "exec")


def targets(node):
    return {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def two_digits():
    """3 against 8: about equal in number, and not easy."""
    X, digit = load_digits(return_X_y=True)
    chosen = (digit == 3) | (digit == 8)
    return X[chosen], (digit[chosen] == 3).astype(int)


def waveforms():
    X, y = make_waveform(1000, random_state=0)
    return X, (y > 0).astype(int)


SETS = (lambda: load_breast_cancer(return_X_y=True), waveforms, two_digits)


def test_it_is_short():
    assert len(README.splitlines()) < 120


def test_the_example_prints_what_is_shown():
    printed, _ = run_example(EXAMPLE)
    assert printed == OUTPUT


def test_the_example_never_raises():
    """30 to 90 random pairs, and few enough rows that a draw is quick; the larger class may be either, or neither."""
    code = with_other_data(EXAMPLE)
    rng = np.random.default_rng(0)
    without_answer = 0
    for X, truth in itertools.chain.from_iterable([make()] * N_DRAWS for make in SETS):
        n_pairs = int(rng.integers(30, 91))
        rows = rng.permutation(len(X))[: 2 * n_pairs + 40]
        pairs = rng.permutation(len(rows))[: 2 * n_pairs].reshape(-1, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OrientationWarning)
            printed, left = run_example(code, X=X[rows], truth=truth[rows], pairs=pairs)
        assert len(printed.splitlines()) == len(OUTPUT.splitlines())
        assert 0.5 <= left["accuracy"].low <= left["accuracy"].value <= left["accuracy"].high <= 1
        assert 0.5 <= left["model"].score(left["rows"], left["codes"]) <= 1
        without_answer += left["same"].sum() <= n_pairs / 2
    assert without_answer, "the draws should include one whose counts have no answer for the prior"


def test_the_commands_run_one_after_the_other(tmp_path, monkeypatch):
    """Those on two files; `make demo` and `make test` have their own places."""
    monkeypatch.chdir(tmp_path)
    commands = blocks("console")[1].replace("$ ", "").splitlines()
    assert [shlex.split(line)[1] for line in commands[1:]] == ["plan", "check", "fit", "predict"]
    for line in commands:
        program, first, *rest = shlex.split(line)
        if program == "python":
            runpy.run_path(str(ROOT / first), run_name="__main__")
        else:
            # A plan of a few draws.
            assert main([first, *rest, *(["--repeats", "2"] if first == "plan" else [])]) == 0
    assert len((tmp_path / "classes.csv").read_text().splitlines()) == 70
