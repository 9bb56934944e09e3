"""What is learned does not depend on how the table is stored."""

from dataclasses import asdict

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sdulearn import Reading, fit_table
from sdulearn.answers.y import scramble
from sdulearn.datasets import make_waveform
from sdulearn.tables import scan as survey
from sdulearn.tables import source as tables
from sdulearn.workflow import data
from tests.reference import random_ends

pytestmark = pytest.mark.usefixtures("no_importances")
N = 700


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Many parts, of several batches each."""
    monkeypatch.setattr(tables, "BATCH_ROWS", 64)


@pytest.fixture(scope="module")
def frame():
    """Rows with numbers in odd units, texts, whole numbers, gaps, and true or false; 70% of class +1."""
    X, y = make_waveform(3000, random_state=0)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(np.r_[np.flatnonzero(y == 1)[:490], np.flatnonzero(y == -1)[:210]])
    X, y = X[chosen, 5:16] * rng.uniform(0.01, 100, 11) + 30, y[chosen]
    city = np.where(rng.random(N) < 0.6, np.where(y > 0, "Köln", "Łódź"), rng.choice(["Oslo", "Rome"], N))
    age = (40 + 10 * y + rng.normal(0, 10, N)).round()
    return pd.DataFrame(X).add_prefix("x").assign(
        id=[f"r{k}" for k in range(N)],
        city=np.where(rng.random(N) < 0.05, None, city),
        age=pd.array(np.where(rng.random(N) < 0.1, np.nan, age), dtype="Int64"),
        big=1e6 + rng.normal(size=N) * (1 + y),
        member=rng.random(N) < 0.3,
        y=y,
    )  # fmt: skip


@pytest.fixture(scope="module")
def answers(frame, answers_about):
    return answers_about(frame["y"].to_numpy(), random_ends(np.random.default_rng(1), N, 200))


def write_folder(path, table):
    """A pyarrow table as a folder: three files, one in a folder of its own, row groups of several sizes."""
    (path / "part=2").mkdir(parents=True)
    pq.write_table(table[:200], path / "a.parquet", row_group_size=70)
    pq.write_table(table[200:500].select(table.column_names[::-1]), path / "b.pq", row_group_size=300)
    pq.write_table(table[500:], path / "part=2" / "c.parquet", row_group_size=45)
    (path / "_SUCCESS").write_text("")
    for name in ("_old.parquet", ".c.parquet"):
        (path / name).write_text("no data")
    return path


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("tables") / "t", pa.Table.from_pandas(frame.drop(columns="y")))


def assert_same(one, other):
    a, b = one.estimator, other.estimator
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=0, atol=1e-8 * np.abs(b.coef_).max())
    np.testing.assert_allclose(a.intercept_, b.intercept_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(one.columns.scale, other.columns.scale, rtol=1e-10)
    np.testing.assert_allclose(one.columns.mean, other.columns.mean, rtol=1e-10)
    assert a.prior_.value == pytest.approx(b.prior_.value, rel=1e-12)
    for name in ("name", "categories"):
        assert [getattr(column, name) for column in one.columns.columns] == [
            getattr(column, name) for column in other.columns.columns
        ]
    assert one.report.settings == pytest.approx(other.report.settings, rel=1e-8)
    assert asdict(one.report.accuracy) == pytest.approx(asdict(other.report.accuracy))
    for name in ("findings", "n_rows", "n_unlabeled", "n_similar", "n_dissimilar", "n_unsure", "answers"):
        assert getattr(one.report, name) == getattr(other.report, name), name


CASES = [("joint", "squared", 300), ("sddu", "double_hinge", None)]


@pytest.mark.parametrize(("method", "loss", "max_unlabeled"), CASES)
def test_a_folder_a_frame_and_a_dask_frame_are_learned_alike(frame, folder, answers, method, loss, max_unlabeled):
    options = {"method": method, "loss": loss, "max_unlabeled": max_unlabeled, "missing": "mean", "model": "linear"}
    table = frame.drop(columns="y")
    memory, *others = (fit_table(one, answers, **options) for one in (table, folder, dd.from_pandas(table, 5)))
    for other in others:
        assert_same(other, memory)
    assert memory.report.n_unlabeled == (max_unlabeled or N)


@pytest.mark.parametrize("n_drawn", [10, 200, 2500])
def test_rows_are_drawn_by_marks_and_a_larger_draw_begins_with_a_smaller_one(tmp_path, monkeypatch, n_drawn):
    """Whether the number of rows is known beforehand or not."""
    table = pd.DataFrame({"id": [f"r{k}" for k in range(3000)], "x": np.arange(3000.0)})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet", row_group_size=700)
    monkeypatch.setattr(data, "MAX_UNLABELED", 100)
    monkeypatch.setattr(survey, "_SLACK", 20)
    passes = []
    monkeypatch.setattr(data, "surveyed", lambda *given: passes.append(survey.surveyed(*given)) or passes[-1])
    order = np.argsort(scramble(np.arange(3000)), kind="stable")
    asked = [17, 990, 2999]
    kept = [k for place, k in enumerate(order.tolist()) if place < n_drawn or k in asked]
    ids = [f"r{k}" for k in kept]
    # By their ids, and by their numbers.
    for id_column, names in (("id", [f"r{k}" for k in asked]), ("", list(map(str, asked)))):
        for name in ("t.csv", "t.parquet"):
            reading = Reading(id_column, drop=[] if id_column else ["id"])
            drawn = data.draw_rows(tmp_path / name, n_drawn, reading, answer_ids={*names, "gone"})
            assert (drawn.ids, drawn.n_rows) == (ids if id_column else list(map(str, kept)), 3000)
            assert drawn.cells["id"].to_pylist() == ids
            np.testing.assert_array_equal(drawn.X[:, 0], kept)
            np.testing.assert_allclose(drawn.columns.mean, [1499.5])
            # No more are kept on the way than a few times as many.
            assert len(passes[-1].rows) <= 4 * n_drawn + 20 + len(asked)
    monkeypatch.undo()
    # A small table is there whole, in its own order.
    assert data.draw_rows(tmp_path / "t.csv", 5000, Reading("id")).ids == table["id"].tolist()
