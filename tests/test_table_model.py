import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from sdulearn import (
    PairLogisticRegression,
    PairLogisticRegressionCV,
    SDUClassifier,
    SDUClassifierCV,
    TableModel,
    load_model,
)
from sdulearn.columns import Column, Columns, NumberText, SparseColumns
from sdulearn.errors import InputError, ModelFileError, UnseenCategoryWarning
from sdulearn.io import container

COLUMNS = Columns(
    (
        *(Column(f"x{k}", "number", fill=float(k)) for k in range(17)),
        Column("price", "number", fill=2.5, text=NumberText(",", ("-",))),
        Column("member", "boolean"),
        Column("colour", "category", ("blue", "réd"), "blue"),
    ),
    "key",
    np.linspace(-1, 1, 21),
    np.linspace(1, 2, 21),
)
SPARSE = SparseColumns(21, 1, np.linspace(1, 2, 21))
ESTIMATORS = [
    PairLogisticRegression(),
    PairLogisticRegressionCV(),
    SDUClassifier(loss="double_hinge"),
    SDUClassifierCV("su", "logistic"),
    SDUClassifier(),
]


def made(estimator, waveform, columns=COLUMNS, report=None):
    return TableModel(estimator.fit(*waveform), columns, ("no", "yes"), report)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    columns = {f"x{k}": rng.normal(size=40) for k in range(17)}
    return pd.DataFrame(
        {
            "key": [f"r{k}" for k in range(40)],
            **columns,
            "price": rng.normal(size=40),
            "member": rng.random(40) < 0.5,
            "colour": rng.choice(["blue", "réd"], 40),
        }
    )


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("columns", [COLUMNS, SPARSE], ids=["columns", "sparse"])
def test_round_trip(waveform, tmp_path, frame, fit_report, estimator, columns):
    model = made(estimator, waveform, columns, fit_report)
    model.save(tmp_path / "model.sdu")
    back = load_model(tmp_path / "model.sdu")
    assert isinstance(back, TableModel)
    assert type(back.estimator) is type(estimator)
    assert back.columns.columns == columns.columns
    assert back.columns.id_column == columns.id_column
    assert back.classes == ("no", "yes")
    assert back.report == fit_report
    np.testing.assert_array_equal(back.columns.mean, model.columns.mean)
    np.testing.assert_array_equal(back.columns.scale, model.columns.scale)
    table = frame if columns is COLUMNS else waveform[0]
    decision = back.decision_function(table)
    np.testing.assert_array_equal(decision, model.decision_function(table))
    assert back.predict(table).tolist() == ["yes" if z > 0 else "no" for z in decision]
    if hasattr(model.estimator, "predict_proba"):
        np.testing.assert_array_equal(back.predict_proba(table), model.predict_proba(table))
    else:
        with pytest.raises(InputError, match="gives no probabilities"):
            back.predict_proba(table)


def test_the_parts_are_used_in_their_order(waveform, frame):
    """Columns to features, features to standardised ones, and those into the estimator as it was fitted."""
    model = made(PairLogisticRegressionCV(), waveform)
    colours = (frame["colour"].to_numpy()[:, None] == np.array(["blue", "réd"])).astype(float)
    X = np.column_stack([frame[[c.name for c in COLUMNS.columns[:-1]]].to_numpy(dtype=float), colours])
    scaled = (X - model.columns.mean) / model.columns.scale
    np.testing.assert_allclose(model.decision_function(frame), model.estimator.decision_function(scaled))
    np.testing.assert_allclose(model.predict_proba(frame), model.estimator.predict_proba(scaled))
    (coef,), (intercept,) = model.raw_coefficients
    np.testing.assert_allclose(X @ coef + intercept, model.decision_function(frame))


def test_frames_of_every_kind(waveform, frame):
    model = made(SDUClassifier(), waveform)
    expected = model.decision_function(frame)
    np.testing.assert_array_equal(model.decision_function(pl.from_pandas(frame)), expected)
    np.testing.assert_array_equal(model.decision_function(frame[frame.columns[::-1]].assign(more=1)), expected)
    with pytest.raises(InputError, match="lacks the column 'x3' that the model needs"):
        model.predict(frame.drop(columns="x3"))
    with pytest.raises(InputError, match="a pandas, polars or pyarrow frame; int cannot be used"):
        model.predict(7)
    with pytest.warns(UnseenCategoryWarning, match="40 texts in column 'colour'") as caught:
        model.predict(frame.assign(colour="pink"))
    assert caught[0].filename == __file__


def test_a_sparse_matrix(waveform):
    model = made(SDUClassifier(), waveform, SPARSE)
    rows = waveform[0]
    np.testing.assert_allclose(model.decision_function(sparse.csr_matrix(rows)), model.decision_function(rows))
    with pytest.raises(InputError, match=r"shape \(140, 20\), but the model has 21 features|shape \(\d+, 20\)"):
        model.predict(rows[:, :20])


def column(**change):
    return {"name": "n", "kind": "number", "categories": [], "fill": None, "text": None, **change}


FORGERIES = [
    lambda h, a: h.update(version=99),
    lambda h, a: h.update(version="1"),
    lambda h, a: h.pop("layout"),
    lambda h, a: h.update(layout=[]),
    lambda h, a: h["layout"].update(kind="pickle"),
    lambda h, a: h["layout"]["columns"].pop(),
    lambda h, a: h["layout"].update(columns={}),
    lambda h, a: h["layout"].update(id_column="x0"),
    lambda h, a: h["layout"].update(id_column=3),
    lambda h, a: h["layout"]["columns"].append(column(name="x1")),
    lambda h, a: h["layout"]["columns"].__setitem__(0, column(kind="code")),
    lambda h, a: h["layout"]["columns"].__setitem__(0, column(categories=["a"])),
    lambda h, a: h["layout"]["columns"].__setitem__(0, column(fill="a")),
    lambda h, a: h["layout"]["columns"].__setitem__(0, column(fill=True)),
    lambda h, a: h["layout"]["columns"].__setitem__(0, column(name="\ud800")),
    lambda h, a: h["layout"]["columns"].__setitem__(0, column(text={"decimal": "x", "marks": []})),
    lambda h, a: h["layout"]["columns"].__setitem__(0, column(text={"decimal": ".", "marks": [1]})),
    lambda h, a: h["layout"]["columns"][-1].update(categories=["a", "a"]),
    lambda h, a: h["layout"]["columns"][-1].update(categories="ab"),
    lambda h, a: h.update(layout={"kind": "sparse", "width": 7, "first": 1}),
    lambda h, a: h.update(layout={"kind": "sparse", "width": 2**60, "first": 1}),
    lambda h, a: a.pop("scale"),
    lambda h, a: a.update(scale=np.ones(3)),
    lambda h, a: a.update(scale=np.zeros(21)),
    lambda h, a: a.update(mean=np.full(21, np.nan)),
    lambda h, a: a.update(mean=np.arange(21)),
    lambda h, a: h.update(classes=["a"]),
    lambda h, a: h.update(classes=["a", 1]),
    lambda h, a: h.update(report=[]),
    lambda h, a: h["report"].update(n_rows=-1),
    lambda h, a: h["report"].update(settings={"alpha": "x"}),
    lambda h, a: h["report"].update(findings=[{"code": "x", "severity": "fatal", "details": {}}]),
    lambda h, a: h["report"]["accuracy"].update(value="x"),
    lambda h, a: h["estimator"].update(model="TableModel"),
    lambda h, a: h["estimator"]["params"].update(alpha=-1),
]


@pytest.mark.parametrize("change", FORGERIES)
def test_a_forged_table_model(waveform, tmp_path, fit_report, change):
    path = tmp_path / "model.sdu"
    made(SDUClassifier(), waveform, report=fit_report).save(path)
    header, arrays = container.read(path)
    change(header, arrays)
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match="does not describe an sdulearn model"):
        load_model(path)
