"""Tables and answers that several commands are tried on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
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


def write_folder(path, table):
    """A pyarrow table as a folder: three files, one in a folder of its own, row groups of several sizes."""
    (path / "part=2").mkdir(parents=True)
    pa.parquet.write_table(table[:400], path / "a.parquet", row_group_size=170)
    pa.parquet.write_table(table[400:1000].select(table.column_names[::-1]), path / "b.pq", row_group_size=600)
    pa.parquet.write_table(table[1000:], path / "part=2" / "c.parquet", row_group_size=90)
    (path / "_SUCCESS").write_text("")
    (path / "_old.parquet").write_text("no data")
    (path / ".c.parquet").write_text("no data")
    return path


@pytest.fixture(scope="session")
def write_parquet():
    """The function that writes a folder."""
    return write_folder


@pytest.fixture(scope="session")
def folders(files, tmp_path_factory):
    """The same table as Parquet: ``plain`` as it is, ``mixed`` with texts, gaps and whole numbers, ``coded``."""
    root = tmp_path_factory.mktemp("folders")
    table = pa.csv.read_csv(files / "table.csv")
    write_folder(root / "plain", table)
    rng = np.random.default_rng(1)
    y = np.load(files / "y.npy")
    city = np.where(rng.random(1500) < 0.6, np.where(y > 0, "Köln", "Łódź"), rng.choice(["Oslo", "Rome"], 1500))
    age = (40 + 10 * y + rng.normal(0, 10, 1500)).round().astype(int)
    mixed = table.append_column("city", pa.array(city, mask=rng.random(1500) < 0.05))
    mixed = mixed.append_column("age", pa.array(age, mask=rng.random(1500) < 0.1))
    mixed = mixed.append_column("big", pa.array(1e6 + rng.normal(size=1500) * (1 + y)))
    write_folder(root / "mixed", mixed.append_column("member", pa.array(rng.random(1500) < 0.3)))
    codes = np.zeros(1500, dtype=np.int64)
    ends = rng.permutation(1500)[:800].reshape(-1, 2)
    # Numbers with gaps between them, in no order.
    names = rng.permutation(5000)[: len(ends)] + 1
    codes[ends] = (np.where(y[ends[:, 0]] == y[ends[:, 1]], 1, -1) * names)[:, None]
    write_folder(root / "coded", table.append_column("code", pa.array(codes)))
    return root


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
