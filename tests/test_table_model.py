import numpy as np
import pandas as pd
import polars as pl
import pytest

from sdulearn import PairLogisticRegressionCV, SDUClassifier, TableModel
from sdulearn.errors import UnseenCategoryWarning
from sdulearn.tables.columns import Column
from tests.reference import refuses, unscaled


@pytest.fixture(scope="module")
def frame(mixed_columns):
    rng = np.random.default_rng(0)
    numbers = {column.name: rng.normal(size=40) for column in mixed_columns.columns[:18]}
    return pd.DataFrame({**numbers, "member": rng.random(40) < 0.5, "colour": rng.choice(["blue", "réd"], 40)})


@pytest.fixture(scope="module")
def model(waveform, mixed_columns):
    return TableModel(PairLogisticRegressionCV().fit(*waveform), mixed_columns, ("no", "yes"))


def test_frames_of_every_kind(model, frame):
    expected = model.decision_function(frame)
    np.testing.assert_array_equal(model.decision_function(pl.from_pandas(frame)), expected)
    np.testing.assert_array_equal(model.decision_function(frame[frame.columns[::-1]].assign(more=1)), expected)
    with refuses(shows=["'x3'"]):
        model.predict(frame.drop(columns="x3"))
    with refuses(shows=["int"]):
        model.predict(7)
    with pytest.warns(UnseenCategoryWarning, match="40 texts in column 'colour'") as caught:
        model.predict(frame.assign(colour="pink"))
    assert caught[0].filename == __file__


def test_a_loss_without_probabilities(waveform):
    columns = unscaled([Column(f"x{k}", "number") for k in range(21)])
    model = TableModel(SDUClassifier(loss="double_hinge").fit(*waveform), columns)
    with refuses("loss='logistic'"):
        model.predict_proba(pd.DataFrame(waveform[0], columns=columns.feature_names))
