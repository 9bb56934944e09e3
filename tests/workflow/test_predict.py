"""Predictions of a file from Python; the command that writes them is in tests/cli/test_predict.py."""

import threading
import time

import numpy as np
import pandas as pd
import pytest

from sdulearn import SDUClassifier, TableModel
from sdulearn.columns import Column, Columns
from sdulearn.errors import InputError
from sdulearn.workflow import predict_table
from sdulearn.workflow.predict import in_order


def test_a_file_is_predicted_as_a_frame_and_watched(waveform, tmp_path):
    rows, codes = waveform
    layout = Columns.unscaled([Column(f"x{k}", "number") for k in range(21)], "id")
    model = TableModel(SDUClassifier(loss="logistic").fit(rows, codes), layout)
    frame = pd.DataFrame(rows, columns=[f"x{k}" for k in range(21)]).assign(id=[f"r{k}" for k in range(len(rows))])
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=50)
    watched = []
    found = list(predict_table(model, tmp_path / "t.parquet", progress=lambda n: watched.append(n) or watched.append))
    assert [name for one in found for name in one.id_texts()] == frame["id"].tolist()
    np.testing.assert_allclose(np.concatenate([one.probability for one in found]), model.predict_proba(frame))
    total, *parts, end = watched
    assert (total, sum(parts), end) == (len(rows), len(rows), None)
    numbered = next(predict_table(model, tmp_path / "t.parquet", id_column=""))
    assert numbered.ids.to_pylist()[:3] == [0, 1, 2]
    (tmp_path / "t.svm").write_text("0 1:1\n")
    with pytest.raises(InputError, match="fitted on a table with named columns"):
        next(predict_table(model, tmp_path / "t.svm"))


def test_results_come_in_order_and_few_at_a_time():
    """The first job is the slowest, and nobody runs far ahead of the reader."""
    begun, lock = [], threading.Lock()

    def job(k):
        with lock:
            begun.append(k)
        time.sleep(0.05 if k == 0 else 0)
        return k

    results = in_order((lambda k=k: job(k) for k in range(50)), 3)
    assert next(results) == 0
    assert len(begun) <= 4
    assert list(results) == list(range(1, 50))
    with pytest.raises(ZeroDivisionError):
        list(in_order([lambda: 1, lambda: 1 / 0, lambda: 2], 1))
