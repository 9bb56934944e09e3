"""Cells that say the same give the same features, whatever the type of their column."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sdulearn import fit_table
from sdulearn.answers import read_answers
from sdulearn.tables.decide import odd_values
from tests.reference import refuses

pytestmark = pytest.mark.usefixtures("no_importances")
N = 60
RNG = np.random.default_rng(3)
Y = RNG.permutation(np.repeat([0, 1], [24, 36]))
TABLE = pd.DataFrame({"id": [f"r{k}" for k in range(N)], "x": (RNG.normal(size=N) + 3 * Y).round(3), "kind": Y + 1})
PAIRS = RNG.permutation(N).reshape(-1, 2)
ANSWERS = pd.DataFrame({"id_a": TABLE["id"][PAIRS[:, 0]].array, "id_b": TABLE["id"][PAIRS[:, 1]].array,
                        "label": Y[PAIRS[:, 0]] == Y[PAIRS[:, 1]]})  # fmt: skip


def categories(table):
    model = fit_table(table, ANSWERS, model="linear")
    column = {column.name: column for column in model.columns.columns}["kind"]
    assert column.kind == "category"
    # A model of a frame's own categories reads the same texts from any table.
    np.testing.assert_allclose(
        model.predict_proba(table), model.predict_proba(TABLE.assign(kind=list(as_texts(table))))
    )
    return column.categories


def as_texts(table):
    return [str(cell).strip() for cell in table["kind"].to_numpy(zero_copy_only=False)] if isinstance(
        table, pa.Table) else [str(cell).strip() for cell in table["kind"].to_list()]  # fmt: skip


@pytest.mark.parametrize("make", ["pandas", "polars", "arrow"])
def test_categories_of_every_library(make):
    if make == "polars":
        table = pl.from_pandas(TABLE).with_columns(pl.col("kind").cast(pl.String).cast(pl.Categorical))
    elif make == "arrow":
        table = pa.table(TABLE.to_dict("list"))
        table = table.set_column(2, "kind", table["kind"].dictionary_encode())
    else:
        table = TABLE.astype({"kind": "category"})
    assert categories(table) == ("1", "2")


@pytest.mark.parametrize("ending", ["csv", "parquet", "frame"])
def test_blanks_around_categories_do_not_count(tmp_path, ending):
    table = TABLE.assign(kind=np.where(Y, "u", np.where(TABLE.index % 2, "v ", " v")))
    given = table if ending == "frame" else tmp_path / f"t.{ending}"
    if ending == "csv":
        table.to_csv(given, index=False)
    elif ending == "parquet":
        table.to_parquet(given)
    model = fit_table(given, ANSWERS, model="linear")
    assert model.columns.columns[-1].categories == ("u", "v")
    np.testing.assert_array_equal(model.predict(table), model.predict(table.assign(kind=table["kind"].str.strip())))


def test_blank_cells_are_missing(tmp_path):
    cells = [" " if k == 7 else str(x) for k, x in enumerate(TABLE["x"])]
    TABLE.assign(x=cells, kind=np.where(Y, "u", "  ")).to_csv(tmp_path / "t.csv", index=False)
    model = fit_table(tmp_path / "t.csv", ANSWERS, model="linear")
    assert [(one.kind, one.n_gaps) for one in model.columns.columns] == [("number", 1), ("category", 24)]


@pytest.mark.parametrize(("column", "factor"), [("rt", 1000), ("rt", 1), ("rt_ms", 1000), ("seconds", 1)])
def test_times_of_answers_are_seconds(column, factor):
    """``rt`` of jsPsych is in milliseconds."""
    took = RNG.uniform(0.5, 9, len(ANSWERS)).round(3)
    answers = read_answers(ANSWERS.assign(**{column: took * factor}))
    np.testing.assert_allclose(answers.seconds, took)


def test_a_model_with_vectors_predicts_in_python(tmp_path):
    vectors = RNG.normal(size=(N, 3)) + 2 * Y[:, None]
    np.save(tmp_path / "v.npy", vectors)
    model = fit_table(TABLE, ANSWERS, embedding=tmp_path / "v.npy", model="linear")
    with refuses("embedding"):
        model.predict(TABLE)
    assert model.predict(TABLE, embedding=tmp_path / "v.npy").shape == (N,)
    assert model.predict_proba(TABLE, embedding=tmp_path / "v.npy").shape == (N, 2)
    np.save(tmp_path / "few.npy", vectors[:10])
    with refuses(shows=["vector"]):
        model.predict(TABLE, embedding=tmp_path / "few.npy")


def odd(table):
    found = fit_table(table, ANSWERS, model="linear").report.findings
    return [one.numbers() for one in found if one.code == "odd_value"]


def test_a_number_that_stands_for_something_else_is_a_warning():
    """It takes the whole range of the standardised column, so that the others say nothing."""
    assert odd(TABLE) == []
    x = TABLE["x"]
    shown = {"column": "x", "low": x[6:].min(), "high": x[6:].max()}
    assert odd(TABLE.assign(x=[-999.0] * 6 + x[6:].to_list())) == [{**shown, "value": -999.0, "count": 6}]
    (both,) = odd(TABLE.assign(x=[1234.5, *x[1:]]))
    assert (both["value"], both["count"]) == (1234.5, 1)
    assert len(odd(TABLE.assign(x=[1234.5, -999, -999, *x[3:]]))) == 2


@pytest.mark.parametrize("draw", ["normal", "exponential", "lognormal", "standard_t", "geometric"])
def test_heavy_tails_and_counts_are_no_odd_values(draw):
    given = {"standard_t": {"df": 3}, "geometric": {"p": 0.2}}.get(draw, {})
    X = getattr(np.random.default_rng(0), draw)(size=(500, 100), **given).astype(float)
    assert len(odd_values((str(k), column) for k, column in enumerate(X.T))) <= 1


def test_texts_that_are_nearly_alike_have_no_features_of_rounding():
    texts = [f"the same long sentence about item number {k % 7}" for k in range(N)]
    model = fit_table(TABLE.assign(note=texts), ANSWERS, text=["note"], model="linear")
    assert not [one for one in model.report.findings if one.code == "fit_warning"]
    parts = {column.name: part for column, part in model.columns.parts}["note"]
    assert 1 <= parts.stop - parts.start <= 7
