"""Predictions of a file from Python; the command that writes them is in tests/cli/test_predict.py."""

import json
import threading
import time

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_breast_cancer

from sdulearn import PairLogisticRegression, TableModel, fit_table
from sdulearn.cli.main import main
from sdulearn.errors import FileError
from sdulearn.parts import in_threads
from sdulearn.tables import source as tables
from sdulearn.tables.columns import Column
from sdulearn.workflow import predict, predict_table, write_predictions
from sdulearn.workflow.predict import counts_of, findings_of, no_counts
from tests.reference import refuses, unscaled


def test_results_come_in_order_and_few_at_a_time():
    """The first job is the slowest, and nobody runs far ahead of the reader."""
    begun, lock = [], threading.Lock()

    def job(k):
        with lock:
            begun.append(k)
        time.sleep(0.05 if k == 0 else 0)
        return k

    results = in_threads((lambda k=k: job(k) for k in range(50)), 3)
    assert next(results) == 0
    assert len(begun) <= 4
    assert list(results) == list(range(1, 50))
    with pytest.raises(ZeroDivisionError):
        list(in_threads([lambda: 1, lambda: 1 / 0, lambda: 2], 1))


@pytest.fixture
def parts(waveform, tmp_path):
    """A model, a table in three files, one with row groups and one without rows, and answers about some rows."""
    rows, codes = waveform
    layout = unscaled([Column(f"x{k}", "number") for k in range(21)], "id")
    model = TableModel(PairLogisticRegression(error_rate=0.1).fit(rows, codes), layout)
    frame = pd.DataFrame(rows, columns=layout.feature_names).assign(id=[f"r{k}" for k in range(len(rows))])
    (tmp_path / "in").mkdir()
    for name, piece in (("a", frame[:100]), ("b", frame[:0]), ("c", frame[100:])):
        piece = pa.Table.from_pandas(piece, preserve_index=False)
        if name == "c":
            place = piece.column_names.index("id")
            piece = piece.set_column(place, "id", piece["id"].cast(pa.large_string()))
        pq.write_table(piece, tmp_path / "in" / f"{name}.parquet", row_group_size=40)
    pd.DataFrame({"id_a": ["r3", "r9"], "id_b": ["r150", "r3"], "label": [1, 0]}).to_csv(
        tmp_path / "a.csv", index=False
    )
    return model, frame, tmp_path


@pytest.mark.parametrize("stored", ["parquet", "dask"])
@pytest.mark.parametrize("answers", [None, "a.csv"])
def test_parts_are_written_in_the_order_of_the_rows(parts, monkeypatch, stored, answers):
    model, frame, folder = parts
    monkeypatch.setattr(tables, "BATCH_ROWS", 40)
    monkeypatch.setattr(predict, "_PART_ROWS", 80)
    given = {"answers": None if answers is None else folder / answers}
    whole = list(predict_table(model, folder / "in", **given))
    # A partition is a file, unless it is empty.
    table = (
        folder / "in" if stored == "parquet" else dd.concat([dd.from_pandas(frame[:0], 1), dd.from_pandas(frame, 3)])
    )
    counts = write_predictions(model, table, folder / "out", **given)
    files = sorted((folder / "out").iterdir())
    expected = [80, 60, 60] if stored == "parquet" else [67, 67, 66]
    assert [len(pd.read_parquet(one)) for one in files] == expected
    # Files of one table store ids in one way.
    assert len({str(pq.read_schema(one).field("id").type) for one in files}) == 1
    found = pd.concat(map(pd.read_parquet, files))
    assert found["id"].tolist() == frame["id"].tolist()
    expected = np.concatenate([one.probability[:, 1] for one in whole])
    np.testing.assert_allclose(found["probability"], expected, rtol=1e-12)
    assert counts["by_class"].sum() == len(frame)
    assert counts["n_asked"] == (0 if answers is None else 3)
    if answers is not None:
        assert found.set_index("id")["n_answers"].nlargest(2).to_dict() == {"r3": 2, "r9": 1}


def test_a_folder_appears_whole_or_not_at_all(parts):
    model, frame, folder = parts
    frame[["id", "x0"]].to_parquet(folder / "in" / "b.parquet")
    with refuses(shows=[".parquet"]):
        write_predictions(model, folder / "in", folder / "out")
    frame.assign(x3=np.inf).to_parquet(folder / "in" / "b.parquet")
    with refuses(shows=["infinite"]):
        write_predictions(model, folder / "in", folder / "out")
    assert sorted(one.name for one in folder.iterdir()) == ["a.csv", "in"]
    (folder / "in" / "b.parquet").unlink()
    write_predictions(model, folder / "in", folder / "out")
    with refuses(error=FileError):
        write_predictions(model, folder / "in", folder / "out")
    frame[:0].to_parquet(folder / "none.parquet")
    with refuses(shows=["no rows"]):
        write_predictions(model, folder / "none.parquet", folder / "none")
    assert not (folder / "none").exists()


def test_empty_and_repeated_ids_are_counted_and_located(parts, monkeypatch, capsys):
    """In any batch and file, and on the workers; numbers of rows are ids that nothing is wrong with."""
    model, frame, folder = parts
    monkeypatch.setattr(tables, "BATCH_ROWS", 40)
    model.save(folder / "m.sdu")
    odd = frame.copy()
    odd.loc[[150, 20, 199], "id"] = ["", None, "  "]
    odd.loc[[60, 110, 111], "id"] = ["r3", "r3", "r100"]
    odd.to_csv(folder / "odd.csv", index=False)
    predict_odd = ["predict", str(folder / "m.sdu")]
    for output in ("out.csv", "folder/"):
        assert main([*predict_odd, str(folder / "odd.csv"), "-o", f"{folder}/{output}", "--json"]) == 0
        found = {one["code"]: one["numbers"] for one in json.loads(capsys.readouterr().out)["findings"]}
        assert found["empty_ids"] == {"count": 3, "first": "line 22"}
        assert found["repeated_ids"] == {"count": 3, "name": "r3", "first": "line 62", "among": None}
    counts = write_predictions(model, dd.from_pandas(odd, 3), folder / "dask")
    codes = {finding.code: finding.count for finding in findings_of(counts, model)}
    assert codes == {"empty_ids": 3, "repeated_ids": 3}
    # Of a large table the first rows.
    monkeypatch.setattr(predict, "_MAX_IDS", 70)
    assert main([*predict_odd, str(folder / "odd.csv"), "-o", str(folder / "b.csv"), "--json"]) == 0
    found = {one["code"]: one["numbers"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert found["repeated_ids"] == {"count": 1, "name": "r3", "first": "line 62", "among": 80}
    assert found["empty_ids"]["count"] == 3
    for table, options in (("in", []), ("odd.csv", ["--id-column", ""])):
        assert main([*predict_odd, str(folder / table), "-o", str(folder / "b.csv"), *options]) == 0
        assert "warning" not in capsys.readouterr().out


@pytest.mark.parametrize("change", [lambda x: 1000 * x, lambda x: x + 4 * x.std(), lambda x: x.mean() - 9 * x.std()])
def test_a_column_of_another_unit_is_far_from_training(change, tmp_path, capsys):
    frame, y = _cancer()
    answers = _answers_about(frame, y, 0)
    fit_table(frame, answers, model="linear").save(tmp_path / "m.sdu")
    other = frame.assign(**{"mean radius": change(frame["mean radius"])})
    other.to_csv(tmp_path / "t.csv", index=False)
    model, table, output = (str(tmp_path / name) for name in ("m.sdu", "t.csv", "o.csv"))
    assert main(["predict", model, table, "-o", output, "--json"]) == 0
    found = {one["code"]: one["numbers"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert list(found["far_from_training"]["shares"]) == ["mean radius"]
    assert 0.5 < found["far_from_training"]["shares"]["mean radius"] <= 1


@pytest.mark.usefixtures("no_importances")
def test_random_tables_of_one_population_are_not_far_from_training():
    """Twenty random splits; the columns are skewed, some of them heavily, and one is rarely filled."""
    frame, y = _cancer()
    rng = np.random.default_rng(0)
    frame["heavy"] = rng.pareto(1.1, len(frame))
    frame["rare"] = rng.random(len(frame)) < 0.02
    frame["number"] = frame["rare"] * 5.0
    for seed in range(20):
        rows = np.random.default_rng(seed).permutation(len(frame))
        train, rest = np.sort(rows[:150]), rows[150:]
        table = frame.iloc[train].reset_index(drop=True)
        model = fit_table(table, _answers_about(table, y[train], seed), model="linear")
        for others in (rest, rest[:12], rest[:1]):
            sums = sum((counts_of(batch, 2) for batch in predict_table(model, frame.iloc[others])), no_counts(2))
            assert findings_of(sums, model) == []


def _cancer():
    """Ten features of tumours, and their classes."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:, :10].assign(id=[f"t{k}" for k in range(len(X))]), y.to_numpy()


def _answers_about(frame, y, seed):
    """True answers about forty random pairs."""
    ends = np.random.default_rng(seed).permutation(len(frame))[:80].reshape(-1, 2)
    ids = frame["id"].to_numpy()[ends]
    return pd.DataFrame({"id_a": ids[:, 0], "id_b": ids[:, 1], "label": y[ends[:, 0]] == y[ends[:, 1]]})
