"""Tables and answers that several commands are tried on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sdulearn.cli.main import main
from sdulearn.datasets import make_waveform


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A table of 1500 waveforms in odd units with 0.7 of class +1, 400 random answers, and the truth."""
    folder = tmp_path_factory.mktemp("fit")
    X, y = make_waveform(4000, random_state=0)
    rng = np.random.default_rng(0)
    chosen = np.concatenate([np.flatnonzero(y == 1)[:1050], np.flatnonzero(y == -1)[:450]])
    rng.shuffle(chosen)
    X, y = X[chosen] * rng.uniform(0.01, 100, 21) + 30, y[chosen]
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(21)])
    frame.insert(0, "id", [f"r{k}" for k in range(len(y))])
    frame.to_csv(folder / "table.csv", index=False)
    ends = rng.integers(0, len(y), (800, 2))
    ends = ends[ends[:, 0] != ends[:, 1]][:400]
    same = np.where(y[ends[:, 0]] == y[ends[:, 1]], "similar", "dissimilar")
    answers = {"id_a": [f"r{k}" for k in ends[:, 0]], "id_b": [f"r{k}" for k in ends[:, 1]], "label": same}
    pd.DataFrame(answers).to_csv(folder / "pairs.csv", index=False)
    few = {"id": frame["id"][:20], "label": np.where(y[:20] > 0, "cat", "dog")}
    pd.DataFrame(few).to_csv(folder / "few.csv", index=False)
    np.save(folder / "y.npy", y)
    return folder


@pytest.fixture
def call():
    """Run a command in this process; the exit code."""
    return lambda *arguments: main([str(argument) for argument in arguments])


@pytest.fixture
def refused(call, capsys):
    """Run a command that must be refused in one line; the line."""

    def run(*arguments):
        assert call(*arguments) == 2
        told = capsys.readouterr().err
        assert told.startswith("sdulearn: ")
        assert told.count("\n") == 1
        return told

    return run
