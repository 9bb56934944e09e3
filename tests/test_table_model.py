import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sdulearn import (
    ModelFileError,
    PairLogisticRegression,
    PairLogisticRegressionCV,
    SDUClassifier,
    SDUClassifierCV,
    load_model,
    modelfile,
)
from sdulearn.io.tables import Column, ColumnLayout, SparseLayout
from sdulearn.table_model import TableModel, fold_standardisation, link, load_table_model

LAYOUT = ColumnLayout(
    (
        *(Column(f"x{k}", "number", fill=float(k)) for k in range(18)),
        Column("member", "boolean"),
        Column("colour", "category", ("blue", "réd"), "blue"),
    ),
    "key",
)
ESTIMATORS = [
    PairLogisticRegression(),
    PairLogisticRegressionCV(),
    SDUClassifier(loss="double_hinge"),
    SDUClassifierCV("su", "logistic"),
    SDUClassifier(),
]


def made(estimator, waveform, layout=LAYOUT):
    rows, codes = waveform
    spread = np.linspace(1, 2, rows.shape[1])
    return TableModel(estimator.fit(rows, codes), layout, spread, ("no", "yes"), {"n": 3, "list": ["ä"]})


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("layout", [LAYOUT, SparseLayout(21, 0)], ids=["columns", "sparse"])
def test_round_trip(waveform, tmp_path, estimator, layout):
    model = made(estimator, waveform, layout)
    model.save(tmp_path / "model.sdu")
    back = load_table_model(tmp_path / "model.sdu")
    assert back.layout == layout
    assert back.classes == ("no", "yes")
    assert back.about == model.about
    np.testing.assert_array_equal(back.spread, model.spread)
    X = waveform[0]
    decision = back.decision(X)
    np.testing.assert_array_equal(decision, model.estimator.decision_function(X))
    assert back.labels(decision) == ["yes" if z > 0 else "no" for z in decision]
    probability = back.probability(decision)
    if hasattr(model.estimator, "predict_proba"):
        np.testing.assert_array_equal(probability, model.estimator.predict_proba(X)[:, 1])
    else:
        assert probability is None
        assert link(model.estimator) is None


def test_load_model_reads_it_as_a_plain_estimator(waveform, tmp_path):
    model = made(PairLogisticRegressionCV(), waveform)
    model.estimator.feature_names_in_ = np.array(LAYOUT.feature_names, dtype=object)
    model.save(tmp_path / "model.sdu")
    plain = load_model(tmp_path / "model.sdu")
    assert isinstance(plain, PairLogisticRegressionCV)
    frame = pd.DataFrame(waveform[0], columns=LAYOUT.feature_names)
    np.testing.assert_allclose(plain.decision_function(frame), model.decision(waveform[0]), rtol=1e-12)


def test_an_estimator_alone_is_no_table_model(waveform, tmp_path):
    SDUClassifier().fit(*waveform).save(tmp_path / "model.sdu")
    with pytest.raises(ModelFileError, match=r"saved from Python.*load_model.*sdulearn fit"):
        load_table_model(tmp_path / "model.sdu")


@pytest.mark.parametrize("as_sparse", [False, True])
def test_folding_the_standardisation_changes_no_prediction(waveform, as_sparse):
    rows, codes = waveform
    rng = np.random.default_rng(0)
    spread, mean = rng.uniform(0.01, 100, rows.shape[1]), rng.normal(size=rows.shape[1]) * 50 * (not as_sparse)
    raw = rows * spread + mean
    model = SDUClassifier().fit(rows, codes)
    before = model.decision_function(rows)
    fold_standardisation(model, mean, spread)
    np.testing.assert_allclose(model.decision_function(sparse.csr_matrix(raw) if as_sparse else raw), before, atol=1e-9)


def column(**change):
    return {"name": "n", "kind": "number", "categories": [], "fill": None, **change}


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.update(version=99),
        lambda t: t.update(version="1"),
        lambda t: t.pop("layout"),
        lambda t: t.update(layout=[]),
        lambda t: t["layout"].update(kind="pickle"),
        lambda t: t["layout"]["columns"].pop(),
        lambda t: t["layout"].update(columns={}),
        lambda t: t["layout"].update(id_column="x0"),
        lambda t: t["layout"].update(id_column=3),
        lambda t: t["layout"]["columns"].append(column(name="x1")),
        lambda t: t["layout"]["columns"].__setitem__(0, column(kind="code")),
        lambda t: t["layout"]["columns"].__setitem__(0, column(categories=["a"])),
        lambda t: t["layout"]["columns"].__setitem__(0, column(fill="a")),
        lambda t: t["layout"]["columns"].__setitem__(0, column(fill=True)),
        lambda t: t["layout"]["columns"].__setitem__(0, column(name="\ud800")),
        lambda t: t["layout"]["columns"][-1].update(categories=["a", "a"]),
        lambda t: t["layout"]["columns"][-1].update(categories="ab"),
        lambda t: t.update(layout={"kind": "sparse", "width": 7, "first": 1}),
        lambda t: t.update(layout={"kind": "sparse", "width": 2**60, "first": 1}),
        lambda t: t.update(spread=[1.0]),
        lambda t: t.update(spread=[10**400] * 21),
        lambda t: t.update(spread=["1"] * 21),
        lambda t: t.update(classes=["a"]),
        lambda t: t.update(classes=["a", 1]),
        lambda t: t.update(about=[]),
    ],
)
def test_a_forged_table(waveform, tmp_path, change):
    path = tmp_path / "model.sdu"
    made(SDUClassifier(), waveform).save(path)
    header, arrays = modelfile.read(path)
    change(header["table"])
    modelfile.write(path, header, arrays)
    with pytest.raises(ModelFileError, match="does not describe a table model"):
        load_table_model(path)
    load_model(path)
