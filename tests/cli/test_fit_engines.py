"""One fit, three engines: what is learned does not depend on how the table is read."""

import re
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from distributed import LocalCluster

from sdulearn import SDUClassifier, load_model
from sdulearn.blocks import LocalBlocks
from sdulearn.cli.main import build_parser, main
from sdulearn.cli.options import in_options
from sdulearn.errors import InputError
from sdulearn.io import tables
from sdulearn.workflow import options as engines
from sdulearn.workflow import predict_table
from sdulearn.workflow.codes import code_sums
from tests.reference import read_features

pytestmark = pytest.mark.usefixtures("no_importances")


def call(*arguments):
    """Run ``fit``; its errors are raised, in the words of the command line."""
    parsed = build_parser(["fit"]).parse_args(["fit", *map(str, arguments)])
    try:
        return parsed.run(parsed)
    except InputError as error:
        raise InputError(in_options(str(error))) from None


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Many parts, of several batches each."""
    monkeypatch.setattr(tables, "BATCH_ROWS", 64)


def fitted(tmp_path, *arguments):
    call("-o", tmp_path / "model.sdu", "--model", "linear", *arguments)
    return load_model(tmp_path / "model.sdu")


def coded(path):
    """Features, scaled, ids and pair codes."""
    columns, X, ids = read_features(path, drop=["code"])
    codes = np.concatenate([batch["code"].to_numpy() for _, batch in tables.open_table(path).batches(["code"])])
    return SimpleNamespace(X=columns.scaled(X), ids=ids, codes=codes)


def assert_same(one, other, tolerance=1e-8):
    a, b = one.estimator, other.estimator
    assert one.report.settings == pytest.approx(other.report.settings, rel=1e-8)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=0, atol=tolerance * np.abs(b.coef_).max())
    np.testing.assert_allclose(a.intercept_, b.intercept_, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.columns.scale, other.columns.scale, rtol=1e-10)
    np.testing.assert_allclose(one.columns.mean, other.columns.mean, rtol=1e-10)
    assert a.prior_.value == pytest.approx(b.prior_.value, rel=1e-12)
    assert [column.name for column in one.columns.columns] == [column.name for column in other.columns.columns]
    assert [column.categories for column in one.columns.columns] == [c.categories for c in other.columns.columns]
    assert asdict(one.report.accuracy) == pytest.approx(asdict(other.report.accuracy))
    same = ("findings", "n_rows", "n_unlabeled", "n_similar", "n_dissimilar", "n_unsure", "answers", "table")
    for name in same:
        assert getattr(one.report, name) == getattr(other.report, name), name


ALL, FEW = (), ("--unlabeled", 300)
CASES = [
    ("mixed", "joint", "squared", FEW), ("plain", "sudu", "logistic", ALL), ("mixed", "sddu", "double_hinge", ALL)
]  # fmt: skip


@pytest.mark.parametrize(("table", "method", "loss", "unlabeled"), CASES)
def test_stream_learns_what_memory_learns(files, folders, tmp_path, table, method, loss, unlabeled):
    given = ["--features", folders / table, "--pairs", files / "pairs.csv", "--missing", "mean"]
    given += ["--method", method, "--loss", loss, *unlabeled]
    memory, stream = (fitted(tmp_path, *given, "--engine", engine) for engine in ("memory", "stream"))
    assert_same(stream, memory)
    assert memory.report.n_unlabeled == (300 if unlabeled == FEW else 1500)


def test_a_table_is_read_in_one_pass(files, folders, tmp_path, monkeypatch):
    passes = []
    monkeypatch.setattr(LocalBlocks, "sum", counting(LocalBlocks.sum, passes))
    given = ["--features", folders / "mixed", "--pairs", files / "pairs.csv", "--engine", "stream"]
    fitted(tmp_path, *given, "--missing", "mean")
    assert [task.__name__ for task in passes] == ["survey"]
    passes.clear()
    fitted(tmp_path, "--features", folders / "coded", "--codes", "code", "--engine", "stream")
    assert [task.__name__ for task in passes] == ["count_codes", "survey"]


def counting(method, passes):
    def counted(self, task, *arguments):
        passes.append(task)
        return method(self, task, *arguments)

    return counted


@pytest.mark.parametrize(("method", "unlabeled"), [("joint", FEW), ("sudu", ALL)])
def test_codes_of_a_column(folders, tmp_path, capsys, method, unlabeled):
    given = ["--features", folders / "coded", "--codes", "code", "--method", method, *unlabeled]
    memory, stream = (fitted(tmp_path, *given, "--engine", engine) for engine in ("memory", "stream"))
    assert_same(stream, memory)
    out = capsys.readouterr().out
    assert out.count("similar and ") >= 2
    assert f"{300 if unlabeled == FEW else 700} rows used as unlabeled" in out
    assert "code" not in [column.name for column in stream.columns.columns]
    assert stream.report.n_unlabeled == (300 if unlabeled == FEW else 700)


def test_codes_of_a_csv_file_are_those_of_a_pair_file(files, folders, tmp_path):
    """The same pairs, told in either way, with all rows unlabeled or none: the same model."""
    table = coded(folders / "coded")
    ends = {k: np.flatnonzero(table.codes == k) for k in sorted(set(table.codes) - {0}, key=abs)}
    rows = [f"{table.ids[a]},{table.ids[b]},{int(k > 0)}" for k, (a, b) in ends.items()]
    (tmp_path / "p.csv").write_text("\n".join(["id_a,id_b,label", *rows]))
    frame = pa.csv.read_csv(files / "table.csv").append_column("code", pa.array(table.codes))
    pa.csv.write_csv(frame, tmp_path / "t.csv")
    given = ["--features", tmp_path / "t.csv", "--method", "sd"]
    by_codes = fitted(tmp_path, *given, "--codes", "code")
    by_pairs = fitted(tmp_path, *given, "--pairs", tmp_path / "p.csv", "--drop", "code")
    np.testing.assert_allclose(by_codes.estimator.coef_, by_pairs.estimator.coef_, rtol=1e-8)


@pytest.mark.parametrize("unlabeled", [ALL, FEW])
def test_all_pairs_count_where_settings_come_from_a_draw(folders, tmp_path, monkeypatch, unlabeled):
    monkeypatch.setattr("sdulearn.workflow.codes.MAX_PAIRS", 60)
    given = ["--features", folders / "coded", "--codes", "code", "--method", "sudu", *unlabeled]
    model = fitted(tmp_path, *given, "--engine", "stream")
    assert model.report.accuracy.n_answers == 60
    table = coded(folders / "coded")
    sums = code_sums(table.codes, np.arange(1500), None, 300 if unlabeled else 1500)
    used = np.sort(np.concatenate([np.flatnonzero(table.codes), sums.unlabeled[:, 0]]))
    found = model.estimator
    direct = SDUClassifier("sudu", alpha=found.alpha, gamma=found.gamma)
    direct.fit(table.X[used], table.codes[used])
    np.testing.assert_allclose(found.coef_[0], direct.coef_[0], rtol=0, atol=1e-8)
    assert found.prior_ == direct.prior_
    assert model.report.n_unlabeled == (300 if unlabeled else 700)


def test_the_joint_method_says_that_it_learns_from_a_draw(folders, tmp_path, monkeypatch, capsys):
    given = ["--features", folders / "coded", "--codes", "code", "--engine", "stream"]
    fitted(tmp_path, *given)
    assert "drawn at random" not in capsys.readouterr().out
    monkeypatch.setattr("sdulearn.workflow.codes.MAX_PAIRS", 60)
    report = fitted(tmp_path, *given).report
    assert "learns from 60 of the 400 pairs, drawn at random" in capsys.readouterr().out
    assert report.n_similar + report.n_dissimilar == 60


def change(table, name, values):
    return table.set_column(table.column_names.index(name), name, values)


def gap(table, name, value):
    values = table[name].to_pylist()
    values[1200] = value
    return change(table, name, pa.array(values))


BROKEN = {
    "gaps": (
        lambda t: gap(gap(t, "x3", None), "x5", float("nan")),
        r"'x3' \(1, the first in row 1,201\), 'x5' \(1, .*--missing mean",
    ),
    "infinite": (lambda t: gap(t, "x3", float("inf")), r"infinite values in 'x3' \(row 1,201\)"),
    "empty": (lambda t: change(t, "x3", pa.nulls(1500)), "missing values in 'x3' \\(1,500, "),
    "bytes": (lambda t: change(t, "x3", pa.array([b"x"] * 1500)), "neither numbers, dates nor texts in 'x3'"),
    "names": (lambda t: change(t, "x3", t["id"]), r"'x3' \(1,500\).*--max-categories"),
    # The stream sees only ids that the answers name; the test puts one of them on a second row.
    "repeated ids": (lambda t: t, "must tell rows apart, but '.*' occurs 2 times"),
    "other ids": (lambda t: change(t, "id", pa.array([f"s{k}" for k in range(1500)])), "not in the table"),
    "no ids": (lambda t: t.drop_columns("id"), "numbered 0 to 1499; name one with --id"),
    "no features": (lambda t: t.select(["id"]), "no columns to learn from"),
    "no rows": (lambda t: t[:0], "has no rows"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_both_engines_refuse_in_the_same_words(files, tmp_path, write_parquet, fault):
    spoil, message = BROKEN[fault]
    table = spoil(pa.csv.read_csv(files / "table.csv"))
    if fault == "repeated ids":
        table = gap(table, "id", pd.read_csv(files / "pairs.csv")["id_a"][0])
    write_parquet(tmp_path / "folder", table)
    told = []
    for engine in ("memory", "stream"):
        given = ["--features", tmp_path / "folder", "--pairs", files / "pairs.csv", "--missing", "error"]
        with pytest.raises(ValueError, match=message) as error:
            fitted(tmp_path, *given, "--engine", engine)
        told.append(str(error.value))
    assert told[0] == told[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]


WRONG_CODES = {
    "half a pair": (lambda c: np.where(np.arange(1500) == np.flatnonzero(c)[0], 0, c), "half a pair"),
    "three ends": (lambda c: np.where(np.arange(1500) == np.flatnonzero(c == 0)[0], c.max(), c), "on 3 rows"),
    "two signs": (lambda c: np.where(np.arange(1500) == np.argmax(c), -c, c), r"as \+ .*as - |on one row only"),
    "no pairs": (lambda c: 0 * c, "holds no pair codes but 0"),
    "few pairs": (lambda c: np.where(np.isin(c, [c.max(), c.min()]), c, 0), "1 similar and 1 dissimilar pairs to use"),
    "fractions": (lambda c: c + 0.5, "does not hold pair codes"),
    "texts": (lambda c: c.astype(str), r"'code' \(string\) does not hold pair codes"),
    "gaps": (lambda c: pa.array(c, mask=c == c.max()), "'code' lacks values.*Put in 0"),
}


@pytest.mark.parametrize("fault", WRONG_CODES)
def test_codes_that_cannot_be_used(folders, tmp_path, write_parquet, fault):
    spoil, message = WRONG_CODES[fault]
    table = coded(folders / "coded")
    columns = {"x": pa.array(table.X[:, 0]), "code": pa.array(spoil(table.codes))}
    pa.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    told = []
    for engine in ("memory", "stream"):
        with pytest.raises(ValueError, match=message) as error:
            fitted(tmp_path, "--features", tmp_path / "t.parquet", "--codes", "code", "--engine", engine)
        told.append(re.sub(r"/\S+/", "", str(error.value)))
    assert told[0] == told[1]


def test_half_a_pair_is_found_beyond_the_draw(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("sdulearn.workflow.codes.MAX_PAIRS", 60)
    table = coded(folders / "coded")
    sums = code_sums(table.codes, np.arange(1500), 60, 10)
    undrawn = np.setdiff1d(np.flatnonzero(table.codes), sums.ends[:, 0])
    codes = np.where(np.arange(1500) == undrawn[0], 0, table.codes)
    pa.parquet.write_table(pa.table({"x": table.X[:, 0], "code": codes}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"do not stand on exactly two rows with one sign.*aggregate"):
        fitted(tmp_path, "--features", tmp_path / "t.parquet", "--codes", "code", "--engine", "stream")


def test_wrong_calls(files, folders, tmp_path, capsys):
    parquet, pairs = ["--features", folders / "plain"], ["--pairs", files / "pairs.csv"]
    with pytest.raises(ValueError, match="--scheduler names a Dask cluster; it needs --engine dask"):
        fitted(tmp_path, *parquet, *pairs, "--scheduler", "tcp://127.0.0.1:1")
    with pytest.raises(ValueError, match=r"no column 'cod' to take pair codes from. Its columns: id, x0"):
        fitted(tmp_path, *parquet, "--codes", "cod", "--engine", "stream")
    for wrong, message in (
        ([*pairs, "--codes", "c"], "not allowed with"),
        ([], "one of the arguments --pairs --codes"),
    ):
        with pytest.raises(SystemExit):
            fitted(tmp_path, *parquet, *wrong)
        assert message in capsys.readouterr().err
    (tmp_path / "t.svm").write_text("1 1:2\n")
    with pytest.raises(ValueError, match="an svmlight file has no named columns"):
        fitted(tmp_path, "--features", tmp_path / "t.svm", "--codes", "code")
    with pytest.raises(ValueError, match=r"t.svm: --engine is for tables with named columns. Leave"):
        fitted(tmp_path, "--features", tmp_path / "t.svm", *pairs, "--engine", "stream")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty holds no .parquet files"):
        fitted(tmp_path, "--features", tmp_path / "empty", *pairs, "--engine", "stream")


def test_a_running_cluster(files, folders, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folders)
    given = ["--features", "coded", "--codes", "code", "--method", "sd"]
    with LocalCluster(n_workers=1, threads_per_worker=2, host="127.0.0.1", dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        dask = fitted(tmp_path, *given, "--engine", "dask", "--scheduler", address)
        assert f"cluster: running, 1 workers ({address})" in capsys.readouterr().out
        assert_same(dask, fitted(tmp_path, *given))
        predict = ["predict", tmp_path / "model.sdu", "coded", "--engine", "dask", "--scheduler", address, "-o"]
        assert main([*map(str, predict), str(tmp_path / "out")]) == 0
        assert main([*map(str, predict), str(tmp_path / "out.csv")]) == 2
        assert "write a folder of Parquet files" in capsys.readouterr().err
    found = pd.read_parquet(tmp_path / "out")
    whole = pd.concat(
        [pd.DataFrame({"id": one.ids.to_pylist(), "k": one.place}) for one in predict_table(dask, "coded")]
    )
    assert found["id"].astype(str).tolist() == whole["id"].tolist()
    assert found["label"].tolist() == [dask.classes[k] for k in whole["k"]]


def test_clusters_that_cannot_be_used(files, folders, tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "_PATIENCE", "1s")
    given = ["--features", folders / "plain", "--pairs", files / "pairs.csv", "--engine", "dask", "--scheduler"]
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(ValueError, match=f"No Dask scheduler answers at {address} within 1s.*dask scheduler"):
            fitted(tmp_path, *given, address)
    cluster = LocalCluster(n_workers=0, host="127.0.0.1", protocol="tcp://", processes=False, dashboard_address=":0")
    with cluster, pytest.raises(ValueError, match=r"has no workers\. Start some with: dask worker tcp"):
        fitted(tmp_path, *given, cluster.scheduler_address)
