"""One fit, several engines: what is learned does not depend on how the table is read, or how pairs are given."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sdulearn import SDUClassifier, fit_table, load_model
from sdulearn.blocks import LocalBlocks
from sdulearn.datasets import make_waveform
from sdulearn.errors import InputError
from sdulearn.io import tables
from sdulearn.pairs import scramble
from sdulearn.workflow import Engine, data
from sdulearn.workflow.codes import code_sums
from tests.reference import random_ends

pytestmark = pytest.mark.usefixtures("no_importances")
N = 700


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Many parts, of several batches each."""
    monkeypatch.setattr(tables, "BATCH_ROWS", 64)


@pytest.fixture(scope="module")
def frame():
    """Rows with numbers in odd units, texts, whole numbers, gaps, true or false, and pair codes; 70% of class +1."""
    X, y = make_waveform(3000, random_state=0)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(np.r_[np.flatnonzero(y == 1)[:490], np.flatnonzero(y == -1)[:210]])
    X, y = X[chosen, 5:16] * rng.uniform(0.01, 100, 11) + 30, y[chosen]
    city = np.where(rng.random(N) < 0.6, np.where(y > 0, "Köln", "Łódź"), rng.choice(["Oslo", "Rome"], N))
    age = (40 + 10 * y + rng.normal(0, 10, N)).round()
    codes = np.zeros(N, dtype=np.int64)
    ends = rng.permutation(N)[:400].reshape(-1, 2)
    # Numbers with gaps between them, in no order.
    codes[ends] = (np.where(y[ends[:, 0]] == y[ends[:, 1]], 1, -1) * (rng.permutation(5000)[:200] + 1))[:, None]
    return pd.DataFrame(X).add_prefix("x").assign(
        id=[f"r{k}" for k in range(N)],
        city=np.where(rng.random(N) < 0.05, None, city),
        age=pd.array(np.where(rng.random(N) < 0.1, np.nan, age), dtype="Int64"),
        big=1e6 + rng.normal(size=N) * (1 + y),
        member=rng.random(N) < 0.3,
        code=codes,
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


def both(*given, **options):
    """Fits of linear models in memory and of a stream."""
    return [fit_table(*given, model="linear", engine=engine, **options) for engine in ("memory", "stream")]


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
    for name in ("findings", "n_rows", "n_unlabeled", "n_similar", "n_dissimilar", "n_unsure", "answers", "table"):
        assert getattr(one.report, name) == getattr(other.report, name), name


CASES = [("joint", "squared", 300), ("sudu", "logistic", None), ("sddu", "double_hinge", None)]


@pytest.mark.parametrize(("method", "loss", "max_unlabeled"), CASES)
def test_stream_learns_what_memory_learns(folder, answers, method, loss, max_unlabeled):
    options = {"method": method, "loss": loss, "max_unlabeled": max_unlabeled, "missing": "mean", "drop": ["code"]}
    memory, stream = both(folder, answers, **options)
    assert_same(stream, memory)
    assert memory.report.n_unlabeled == (max_unlabeled or N)


@pytest.mark.parametrize(("method", "max_unlabeled"), [("joint", 200), ("sudu", None)])
def test_codes_of_a_column(folder, method, max_unlabeled):
    memory, stream = both(folder, codes="code", method=method, max_unlabeled=max_unlabeled)
    assert_same(stream, memory)
    assert "code" not in [column.name for column in stream.columns.columns]
    assert stream.report.n_unlabeled == (max_unlabeled or 300)
    assert (stream.report.answers, stream.report.answer_columns) == ("t, column 'code'", {"codes": "code"})
    assert stream.report.n_points == 2 * stream.report.n_independent == 400


def test_a_table_is_read_in_one_pass_after_that_of_its_codes(folder, answers, monkeypatch):
    passes, rows = [], []
    whole = LocalBlocks.sum
    monkeypatch.setattr(LocalBlocks, "sum", lambda self, task, *more: passes.append(task) or whole(self, task, *more))

    def expect(total):
        rows.append([total])
        return rows[-1].append

    engine = Engine("stream", progress=expect)
    fit_table(folder, answers, drop=["code"], model="linear", engine=engine)
    fit_table(folder, codes="code", model="linear", engine=engine)
    assert [task.__name__ for task in passes] == ["survey", "count_codes", "survey"]
    for given in ({"answers": answers, "drop": ["code"]}, {"codes": "code"}):
        fit_table(folder, **given, method="sd", missing="mean", engine=engine)
    # Each pass tells how many rows to expect, then of each batch, then that it is over.
    assert all((total, end) == (sum(parts), None) for total, *parts, end in rows)
    assert rows[-3][0] == N
    assert max(total for total, *_ in rows) == N + 400


@pytest.mark.parametrize("n_drawn", [10, 50, 200, 1000, 2500])
def test_rows_are_drawn_by_marks_and_a_larger_draw_begins_with_a_smaller_one(tmp_path, monkeypatch, n_drawn):
    """Whether the number of rows is known beforehand or not."""
    table = pd.DataFrame({"id": [f"r{k}" for k in range(3000)], "x": np.arange(3000.0)})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet", row_group_size=700)
    monkeypatch.setattr(data, "MAX_UNLABELED", 100)
    expected = [f"r{k}" for k in np.argsort(scramble(np.arange(3000)), kind="stable")[:n_drawn]]
    for name in ("t.csv", "t.parquet"):
        drawn = data.draw_rows(tmp_path / name, Engine(), n_drawn, id_column="id")
        assert (drawn.ids, drawn.n_rows) == (expected, 3000)
        assert drawn.cells["id"].to_pylist() == drawn.ids
        np.testing.assert_array_equal(drawn.X[:, 0], [int(one[1:]) for one in drawn.ids])
        assert drawn.columns.feature_names == ["x"]
    monkeypatch.undo()
    # A small table is there whole, in its own order.
    assert data.draw_rows(tmp_path / "t.csv", Engine(), 5000, id_column="id").ids == table["id"].tolist()


def test_a_sample_doubles_where_ten_rows_per_answer_are_too_few():
    sizes = {n: data.sample_sizes(n) for n in (0, 2000, 2001, 8000)}
    assert sizes == {0: [20_000], 2000: [20_000], 2001: [20_000, 40_000], 8000: [20_000, 40_000, 80_000]}


def test_codes_of_a_csv_file_are_those_of_answers(frame, tmp_path):
    """The same pairs, given in either way, without unlabeled rows: the same model."""
    codes = frame["code"].to_numpy()
    ends = np.array([np.flatnonzero(codes == k) for k in sorted(set(codes) - {0}, key=abs)])
    same = codes[ends[:, 0]] > 0
    pairs = pd.DataFrame({"id_a": frame["id"][ends[:, 0]].array, "id_b": frame["id"][ends[:, 1]].array, "label": same})
    frame.drop(columns="y").to_csv(tmp_path / "t.csv", index=False)
    by_codes = fit_table(tmp_path / "t.csv", codes="code", method="sd")
    by_pairs = fit_table(tmp_path / "t.csv", pairs, drop=["code"], method="sd")
    np.testing.assert_allclose(by_codes.estimator.coef_, by_pairs.estimator.coef_, rtol=1e-8)


@pytest.mark.parametrize("max_unlabeled", [None, 100])
def test_all_pairs_count_where_settings_come_from_a_draw(frame, folder, monkeypatch, max_unlabeled):
    monkeypatch.setattr("sdulearn.workflow.codes.MAX_PAIRS", 60)
    model = fit_table(folder, codes="code", method="sudu", max_unlabeled=max_unlabeled, engine="stream")
    assert model.report.accuracy.n_answers == 60
    assert model.report.n_similar + model.report.n_dissimilar == 200
    codes = frame["code"].to_numpy()
    drawn = code_sums(codes, np.arange(N), None, max_unlabeled or N).unlabeled[:, 0]
    used = np.sort(np.r_[np.flatnonzero(codes), drawn])
    found = model.estimator
    X = model.columns.scaled(model.features(frame))[used]
    direct = SDUClassifier("sudu", alpha=found.alpha, gamma=found.gamma).fit(X, codes[used])
    np.testing.assert_allclose(found.coef_[0], direct.coef_[0], rtol=0, atol=1e-8)
    assert found.prior_ == direct.prior_
    assert model.report.n_unlabeled == (max_unlabeled or 300)


def test_the_joint_method_says_that_it_learns_from_a_draw(folder, monkeypatch, tmp_path):
    options = {"codes": "code", "model": "linear", "engine": "stream"}
    assert "drawn at random" not in fit_table(folder, **options).summary()
    monkeypatch.setattr("sdulearn.workflow.codes.MAX_PAIRS", 60)
    model = fit_table(folder, **options)
    assert "learns from 60 of the 200 pairs, drawn at random" in model.summary()
    assert model.report.n_similar + model.report.n_dissimilar == 60
    model.save(tmp_path / "m.sdu")
    assert load_model(tmp_path / "m.sdu").report == model.report


def gap(table, name, value):
    return change(table, name, pa.array([*table[name].to_pylist()[:-9], value, *table[name].to_pylist()[-8:]]))


def change(table, name, values):
    return table.set_column(table.column_names.index(name), name, values)


BROKEN = {
    "gaps": (lambda t: gap(gap(t, "x3", None), "x5", float("nan")),
             r"'x3' \(1, the first in row 692\), 'x5' \(1, .*`missing='mean'`"),
    "infinite": (lambda t: gap(t, "x3", float("inf")), r"infinite values in 'x3' \(row 692\)"),
    "empty": (lambda t: change(t, "x3", pa.nulls(N)), "missing values in 'x3' \\(700, "),
    "bytes": (lambda t: change(t, "x3", pa.array([b"x"] * N)), "neither numbers, dates nor texts in 'x3'"),
    "names": (lambda t: change(t, "x3", t["id"]), r"'x3' \(700\).*`max_categories`"),
    # The stream sees only ids that the answers name.
    "repeated ids": (lambda t: gap(t, "id", "r7"), "must tell rows apart, but 'r7' occurs 2 times"),
    "other ids": (lambda t: change(t, "id", pa.array([f"s{k}" for k in range(N)])), "not in the table"),
    "no ids": (lambda t: t.drop_columns("id"), "numbered 0 to 699; name one with `id_column`"),
    "no features": (lambda t: t.select(["id"]), "no columns to learn from"),
    "no rows": (lambda t: t[:0], "has no rows"),
}  # fmt: skip


def refused_alike(message, *given, **options):
    """Both engines refuse in the same words."""
    texts = []
    for engine in ("memory", "stream"):
        with pytest.raises(InputError, match=message) as error:
            fit_table(*given, engine=engine, **options)
        texts.append(str(error.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("fault", BROKEN)
def test_both_engines_refuse_a_table_in_the_same_words(frame, answers, tmp_path, fault):
    spoil, message = BROKEN[fault]
    columns = ["id", *(f"x{k}" for k in range(11))]
    table = spoil(pa.Table.from_pandas(frame[columns], preserve_index=False))
    asked = pd.concat([answers, answers[:1].assign(id_a="r7", id_b="r8")])
    refused_alike(message, write_folder(tmp_path / "t", table), asked, missing="error")


WRONG_CODES = {
    "half a pair": (lambda c: np.where(np.arange(N) == np.flatnonzero(c)[0], 0, c), "half a pair"),
    "three ends": (lambda c: np.where(np.arange(N) == np.flatnonzero(c == 0)[0], c.max(), c), "on 3 rows"),
    "two signs": (lambda c: np.where(np.arange(N) == np.argmax(c), -c, c), r"as \+ .*as - |on one row only"),
    "no pairs": (lambda c: 0 * c, "holds no pair codes but 0"),
    "few pairs": (lambda c: np.where(np.isin(c, [c.max(), c.min()]), c, 0), "1 similar and 1 dissimilar pairs to use"),
    "fractions": (lambda c: c + 0.5, "does not hold pair codes"),
    "texts": (lambda c: c.astype(str), r"'code' \(string\) does not hold pair codes"),
    "gaps": (lambda c: pa.array(c, mask=c == c.max()), "'code' lacks values.*Put in 0"),
    "no column": (lambda c: c, "no column 'cod' to take pair codes from. Its columns: x, code"),
}


@pytest.mark.parametrize("fault", WRONG_CODES)
def test_codes_that_cannot_be_used(frame, tmp_path, fault):
    spoil, message = WRONG_CODES[fault]
    columns = {"x": frame["x0"].to_numpy(), "code": pa.array(spoil(frame["code"].to_numpy()))}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    refused_alike(message, tmp_path / "t.parquet", codes="cod" if fault == "no column" else "code")


def test_half_a_pair_is_found_beyond_the_draw(frame, tmp_path, monkeypatch):
    monkeypatch.setattr("sdulearn.workflow.codes.MAX_PAIRS", 60)
    codes = frame["code"].to_numpy()
    undrawn = np.setdiff1d(np.flatnonzero(codes), code_sums(codes, np.arange(N), 60, 10).ends[:, 0])
    codes = np.where(np.arange(N) == undrawn[0], 0, codes)
    pq.write_table(pa.table({"x": frame["x0"].to_numpy(), "code": codes}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"do not stand on exactly two rows with one sign.*aggregate"):
        fit_table(tmp_path / "t.parquet", codes="code", engine="stream")


def test_files_that_an_engine_cannot_read(answers, tmp_path):
    (tmp_path / "t.svm").write_text("1 1:2\n")
    for given in ({"codes": "code"}, {"answers": answers, "id_column": "id"}, {"answers": answers, "drop": ["x"]}):
        with pytest.raises(InputError, match="an svmlight file has no named columns"):
            fit_table(tmp_path / "t.svm", **given)
    with pytest.raises(InputError, match=r"t.svm: `engine` is for tables with named columns. Leave"):
        fit_table(tmp_path / "t.svm", answers, engine="stream")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty holds no .parquet files"):
        fit_table(tmp_path / "empty", answers, engine="stream")
