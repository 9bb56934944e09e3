"""The index of a pandas frame is no feature, in memory and in Parquet; with a name it may hold the ids."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sdulearn import fit_table
from sdulearn.tables.source import open_table
from sdulearn.workflow import predict_table
from tests.reference import refuses

pytestmark = pytest.mark.usefixtures("no_importances")
NOISE = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def noise():
    """A frame of noise that was sorted by class and shuffled, and answers about its ids."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, -1], [180, 120])
    frame = pd.DataFrame(rng.normal(size=(300, 4)), columns=NOISE).assign(id=[f"r{k}" for k in rng.permutation(300)])
    order = rng.permutation(300)
    frame, y = frame.iloc[order], y[order]
    ends = rng.integers(300, size=(80, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    names = frame["id"].to_numpy()[ends]
    return frame, y, pd.DataFrame({"id_a": names[:, 0], "id_b": names[:, 1], "label": y[ends].prod(axis=1)})


def stored(frame, folder, kind):
    """The frame, or a Parquet file that pandas wrote, or a folder of them: one part has no index of its own."""
    if kind == "frame":
        return frame
    if kind == "file":
        frame.to_parquet(folder / "t.parquet")
        return folder / "t.parquet"
    (folder / "parts").mkdir()
    frame[:200].to_parquet(folder / "parts" / "1.parquet")
    frame[200:].reset_index(drop=frame.index.name is None).to_parquet(folder / "parts" / "2.parquet")
    return folder / "parts"


@pytest.mark.parametrize(("kind", "name"), [("frame", None), ("file", None), ("file", "order"), ("folder", "order")])
def test_an_index_is_no_feature(noise, tmp_path, kind, name):
    """It told the class of each row: an accuracy of 99.7% where nothing is to be known."""
    frame, y, answers = noise
    table = stored(frame.rename_axis(name), tmp_path, kind)
    model = fit_table(table, answers, model="linear")
    assert model.columns.feature_names == NOISE
    assert model.columns.id_column == "id"
    assert abs(np.mean(model.predict(frame) == y) - 0.5) < 0.2
    predicted = list(predict_table(model, table))
    assert [row for batch in predicted for row in batch.ids.to_pylist()] == frame["id"].tolist()
    probabilities = np.concatenate([batch.probability for batch in predicted])
    np.testing.assert_allclose(probabilities, model.predict_proba(frame.reset_index(drop=True)))
    # It is said that a column is passed over.
    assert ("'order'" in model.summary()) == (name is not None)


@pytest.mark.parametrize("kind", ["frame", "file"])
def test_a_named_index_may_hold_the_ids(noise, tmp_path, kind):
    """It is found by the answers, or by its name; columns named as categories are features all the same."""
    frame, _, answers = noise
    table = stored(frame.rename(columns={"id": "person"}).set_index("person"), tmp_path, kind)
    for options in ({}, {"id_column": "person"}):
        model = fit_table(table, answers, model="linear", **options)
        assert (model.columns.id_column, model.columns.feature_names) == ("person", NOISE)
    assert [row for batch in predict_table(model, table) for row in batch.ids.to_pylist()] == frame["id"].tolist()
    groups = frame.assign(group=np.where(frame["a"] > 0, "u", "v")).set_index("group")
    group = stored(groups, tmp_path, kind)
    assert fit_table(group, answers, model="linear").columns.feature_names == NOISE
    model = fit_table(group, answers, model="linear", categories=["group"])
    assert model.columns.feature_names == [*NOISE, "group=u", "group=v"]


@pytest.mark.parametrize("kind", ["frame", "file"])
def test_numbers_that_may_be_labels_of_an_index_or_row_numbers_are_refused(noise, tmp_path, kind):
    """Of a shuffled frame they name different rows, and neither is to be guessed."""
    frame, y, _ = noise
    source = frame.drop(columns="id")
    table = stored(source, tmp_path, kind)
    ends = np.random.default_rng(1).permutation(300).reshape(-1, 2)
    answers = pd.DataFrame({"id_a": ends[:, 0], "id_b": ends[:, 1], "label": y[ends].prod(axis=1)})
    with refuses("id_column=''", shows=["index"]):
        fit_table(table, answers, model="linear")
    assert fit_table(table, answers, id_column="", model="linear").columns.id_column is None
    texts = source.set_axis([f"p{k}" for k in range(300)])
    named = answers.assign(**{end: [f"p{k}" for k in answers[end]] for end in ("id_a", "id_b")})
    with refuses(shows=["index"]):
        fit_table(stored(texts, tmp_path, kind), named, model="linear")
    # Where labels are row numbers there is nothing to ask.
    plain = stored(source.set_axis(np.arange(300)), tmp_path, kind)
    assert fit_table(plain, answers, model="linear").columns.feature_names == NOISE


def test_polars_and_arrow_have_no_index(noise):
    """But one that pandas wrote without a name is none of their columns either."""
    frame, _, _ = noise
    frame = frame.assign(order=np.arange(300))
    for table in (pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        assert list(open_table(table).types) == [*NOISE, "id", "order"]
    assert list(open_table(pl.from_arrow(pa.Table.from_pandas(frame))).types) == [*NOISE, "id", "order"]
    assert list(open_table(pa.Table.from_pandas(frame)).types) == [*NOISE, "id", "order"]
