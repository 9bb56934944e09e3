"""fit_table on frames of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer

from sdulearn import estimate_prior, fit_table, stack_pairs
from sdulearn.answers import AnswerGraph
from sdulearn.datasets import make_waveform
from sdulearn.errors import InputError


@pytest.fixture(scope="module")
def frames():
    """600 waveforms with ids, a text and a true/false column, and 190 answers."""
    X, y = make_waveform(3000, random_state=1)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(X[:600], columns=[f"x{k}" for k in range(21)])
    table = table.assign(id=[f"r{k}" for k in range(600)], city=rng.choice(["Oslo", "Rome"], 600), member=y[:600] > 0)
    ends = rng.permutation(600)[:380].reshape(-1, 2)
    ids = table["id"].to_numpy()
    same = y[ends[:, 0]] == y[ends[:, 1]]
    return table, pd.DataFrame({"id_a": ids[ends[:, 0]], "id_b": ids[ends[:, 1]], "label": same})


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "csv", "xlsx", "index", "category"])
def test_the_same_model_from_every_kind_of_frame(frames, tmp_path, kind):
    table, answers = frames
    model = fit_table(table, answers, method="sddu")
    if kind == "polars":
        other = fit_table(pl.from_pandas(table), pl.from_pandas(answers), method="sddu")
    elif kind == "pyarrow":
        other = fit_table(pa.Table.from_pandas(table), pa.Table.from_pandas(answers), method="sddu")
    elif kind == "index":
        other = fit_table(table.set_index("id"), answers, method="sddu")
    elif kind == "category":
        other = fit_table(table.assign(city=table["city"].astype("category")), answers, method="sddu")
    else:
        path = tmp_path / f"t.{kind}"
        (table.to_csv if kind == "csv" else table.to_excel)(path, index=False)
        other = fit_table(path, answers, method="sddu")
    assert other.layout.id_column == "id"
    assert other.layout.feature_names == model.layout.feature_names
    np.testing.assert_allclose(other.estimator.coef_, model.estimator.coef_, rtol=1e-6, atol=1e-9)
    assert other.report.accuracy == model.report.accuracy
    np.testing.assert_array_equal(other.predict(pl.from_pandas(table)), model.predict(table))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "x"}, "`method` must be one of auto, joint"),
        ({"loss": "x"}, "`loss` must be one of"),
        ({"missing": "x"}, "`missing` must be one of error, mean"),
        ({"prior": 1.5}, "`prior` must lie between 0 and 1"),
        ({"codes": "c"}, "either `answers` or `codes`"),
        ({"engine": "x"}, "`engine` must be one of"),
        ({"engine": "stream"}, "A frame is in memory already"),
        ({"labels": {"zzz": "a"}}, "no row with the id 'zzz'"),
        ({"categories": ["zzz"]}, "no column 'zzz' to read as texts"),
    ],
)
def test_bad_choices(frames, change, message):
    with pytest.raises(InputError, match=message):
        fit_table(*frames, **change)


def test_bad_tables_and_answers(frames):
    table, answers = frames
    with pytest.raises(InputError, match="ndarray cannot be used as one"):
        fit_table(table.to_numpy(), answers)
    with pytest.raises(InputError, match=r"columns such as id_a, id_b and label; got list"):
        fit_table(table, [("r1", "r2", True)])
    with pytest.raises(InputError, match=r"neither numbers nor text: 'day' \(timestamp.*`drop`"):
        fit_table(table.assign(day=pd.date_range("2020", periods=600)), answers)
    with pytest.raises(InputError, match="'x0' holds infinite values"):
        fit_table(table.assign(x0=np.inf), answers)
    with pytest.raises(InputError, match="0 similar and 0 dissimilar pairs to use"):
        fit_table(table, answers.assign(label="unsure"))


def test_the_report_is_data(frames):
    table, answers = frames
    repeated = pd.concat([answers, answers[:3]])
    report = fit_table(table, repeated, labels={"r0": "a", "r1": "b", "r2": "a", "r3": "b"}).report
    assert (report.table, report.answers) == ("the table", "the answers")
    assert report.n_similar + report.n_dissimilar == len(repeated)
    assert report.n_labels == 4
    assert report.answer_columns == {"id_a": "id_a", "id_b": "id_b", "label": "label"}
    assert set(report.answer_words) == {"true", "false"}
    settings = {"linear": {"alpha", "covariance_power"}, "boosted": {"n_rounds"}}
    assert set(report.settings) == settings[report.model_choice.name]
    (again,) = [finding for finding in report.findings if finding.code == "repeated_questions"]
    assert (again.severity, again.details) == ("info", {"count": 3, "by_majority": False})


def test_no_part_is_altered_after_the_fit(frames):
    """The scaler holds the table's own mean and deviation, and the estimator is one of standardised features."""
    table, answers = frames
    model = fit_table(table, answers)
    X = model.features(table)
    np.testing.assert_allclose(model.scaler.mean, X.mean(axis=0))
    np.testing.assert_allclose(model.scaler.scale, X.std(axis=0))
    expected = model.estimator.decision_function((X - X.mean(axis=0)) / X.std(axis=0))
    np.testing.assert_allclose(model.decision_function(table), expected, atol=1e-12)
    assert not hasattr(model.estimator, "feature_names_in_")


@pytest.mark.parametrize("design", ["40 points", "star"])
def test_answers_that_share_points_do_not_flatter_the_model(design):
    """By folds of pairs it would be 100% (99% to 100%) here: the model has seen every point in another answer."""
    X, y = make_waveform(6000, random_state=2)
    covered = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(6000)[:700]
        truth = y[chosen]
        table = pd.DataFrame(X[chosen], columns=[f"x{k}" for k in range(21)]).assign(id=np.arange(700))
        ends = rng.integers(0, 40, (230, 2))
        if design == "star":
            ends = np.column_stack([np.zeros(200, dtype=int), np.arange(1, 201)])
        ends = ends[ends[:, 0] != ends[:, 1]][:200]
        same = truth[ends[:, 0]] == truth[ends[:, 1]]
        model = fit_table(table, pd.DataFrame({"id_a": ends[:, 0], "id_b": ends[:, 1], "label": same}))
        rest = np.arange(210, 700)
        right = np.mean(model.predict(table.iloc[rest]).astype(int) == truth[rest])
        found = model.report.accuracy
        covered += found.low - 0.01 <= max(right, 1 - right) <= found.high + 0.01
        assert "shared_points" in [finding.code for finding in model.report.findings]
    assert covered >= 5


def table_with_points(n_answers=200, n_shared=60):
    """Rows of a table that show their points once for every answer about them, and further rows."""
    X, y = make_waveform(3000, random_state=4)
    rng = np.random.default_rng(0)
    ends = rng.integers(0, n_shared, (2 * n_answers, 2))
    ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    ends = rng.permutation(ends)[:n_answers]
    same = y[ends[:, 0]] == y[ends[:, 1]]
    rows, known = stack_pairs(X[:800], ends, same, unlabeled="rest")
    table = pd.DataFrame(rows, columns=[f"x{k}" for k in range(21)])
    return table.assign(code=known[:, 0], shown=known[:, 1]), ends, same


@pytest.mark.parametrize("method", ["joint", "sd"])
@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_points_of_a_column(method, engine, tmp_path):
    """Pair codes with points are the answers with ids, in memory and row group by row group."""
    table, ends, same = table_with_points()
    table.to_parquet(tmp_path / "t.parquet", row_group_size=300)
    model = fit_table(tmp_path / "t.parquet", codes="code", points="shown", method=method, engine=engine)
    report = model.report
    graph = AnswerGraph.from_answers(ends, same)
    assert report.n_points == np.sum(graph.degree > 0)
    assert report.n_independent == graph.n_independent
    (found,) = [one for one in report.findings if one.code == "shared_points"]
    assert found.details["n_answers"] == 200
    assert [column.name for column in model.layout.columns] == [f"x{k}" for k in range(21)]
    if method == "sd":
        assert report.prior.value == pytest.approx(estimate_prior(y=table[["code", "shown"]].to_numpy()).value)
        assert report.prior.n_effective == graph.n_independent
    # Without the column every row would be a point of its own, and the model seem to know every test point.
    flattered = fit_table(tmp_path / "t.parquet", codes="code", drop=["shown"], method=method, engine=engine).report
    assert flattered.n_points == 400
    assert flattered.accuracy.high - flattered.accuracy.low < report.accuracy.high - report.accuracy.low


def test_more_answers_that_share_points_than_are_drawn(tmp_path, monkeypatch):
    table, _, _ = table_with_points()
    table.to_parquet(tmp_path / "t.parquet", row_group_size=300)
    monkeypatch.setattr("sdulearn.workflow.streamed.MAX_PAIRS", 100)
    with pytest.raises(InputError, match=r"The 200 answers share 60 points.*`engine='memory'`"):
        fit_table(tmp_path / "t.parquet", codes="code", points="shown", method="sd", engine="stream")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": "nowhere"}, "no column 'nowhere' to take points from"),
        ({"points": "x1"}, "column 'x1' .* does not say which point each row shows"),
        ({"codes": None, "answers": pd.DataFrame()}, "`points` goes with `codes`"),
    ],
)
def test_columns_of_points_that_are_none(change, message):
    table, _, _ = table_with_points()
    with pytest.raises(InputError, match=message):
        fit_table(table, **({"codes": "code", "points": "shown"} | change))


def test_one_slip_in_fifty_linked_answers_is_reported_and_costs_nothing():
    X, y = load_breast_cancer(return_X_y=True)
    table = pd.DataFrame(X).rename(columns=str)
    table.insert(0, "id", [f"r{i}" for i in range(len(X))])
    order = np.random.default_rng(0).permutation(len(X))
    hub = np.full(50, order[0])
    others = order[1:51]
    same = y[hub] == y[others]
    # The first question once more, answered the other way.
    answers = pd.DataFrame({"id_a": hub, "id_b": others, "same": same})
    answers = pd.concat([answers, answers[:1].assign(same=~same[0])])
    answers = pd.DataFrame(
        {
            "id_a": "r" + answers["id_a"].astype(str),
            "id_b": "r" + answers["id_b"].astype(str),
            "label": np.where(answers["same"], "similar", "dissimilar"),
        }
    )
    model = fit_table(table, answers, model="linear")
    rest = order[51:]
    right = np.mean(np.asarray(model.predict(table.iloc[rest])).astype(int) == 2 * y[rest] - 1)
    assert right > 0.93
    assert model.report.accuracy.low < right < model.report.accuracy.high
    assert model.report.accuracy.high - model.report.accuracy.low < 0.3
    (people,) = model.report.annotators
    assert 0 < people.rate < 0.05
    assert "contradictions" in [one.code for one in model.report.findings]
