"""ONNX graphs: onnxruntime gives what the model gives, of raw columns too, gaps and unknown texts among them."""

import json

import numpy as np
import pandas as pd
import pytest

from sdulearn import PairBoostingClassifier, PairLogisticRegression, PairModelCV, SDUClassifier, TableModel, stack_pairs
from sdulearn.columns import Column, Columns
from sdulearn.errors import InputError, UnseenCategoryWarning
from sdulearn.io.onnx import export_onnx

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

MEAN = np.linspace(-1, 1, 21)
SCALE = np.linspace(0.5, 2, 21)
COLUMNS = (
    Column("colour", "category", ("", "blue", "red"), "red"),
    *(Column(f"x{k}", "number", fill=k / 10) for k in range(15)),
    Column("size", "category", ("L", "S"), "S"),
    Column("member", "boolean", fill=0.25),
)
BOOSTED = {"prior": 0.7, "max_iter": 6, "n_iter_no_change": 6}
ESTIMATORS = {
    "linear": PairLogisticRegression(),
    "squared": SDUClassifier(),
    "double_hinge": SDUClassifier(loss="double_hinge"),
    "boosted": PairBoostingClassifier(**BOOSTED),
    "turned": PairBoostingClassifier(**BOOSTED),
    "kernel": PairModelCV(["nystroem"], prior=0.7),
    "3 classes": PairLogisticRegression(n_classes=3),
    "3 boosted": PairBoostingClassifier(n_classes=3, max_iter=2, cv=2),
}


@pytest.fixture(scope="module")
def fitted(waveform):
    """Fitted models by name, each once."""
    rng = np.random.default_rng(0)
    centres = 2.5 * np.eye(3, 21)
    truth = rng.integers(0, 3, 90)
    X = centres[truth] + rng.normal(size=(90, 21))
    pairs = rng.integers(0, 90, (150, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    blobs = stack_pairs(X, pairs, truth[pairs[:, 0]] == truth[pairs[:, 1]])
    models = {}

    def get(name):
        if name not in models:
            model = ESTIMATORS[name].fit(*(blobs if name.startswith("3") else waveform))
            if name == "turned":
                rows = waveform[0][:40]
                model.orient(rows, -model.predict(rows))
            models[name] = model
        return models[name]

    return get


def run(model, path, **inputs):
    """Outputs by name, and the metadata."""
    export_onnx(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    metadata = session.get_modelmeta().custom_metadata_map
    return dict(zip(names, session.run(names, inputs), strict=True)), {k: json.loads(v) for k, v in metadata.items()}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator(fitted, waveform, tmp_path, name):
    model = fitted(name)
    rows = 3 * waveform[0][:80]
    if not hasattr(model, "coef_"):
        # Missing values, which trees know.
        rows[np.random.default_rng(0).random(rows.shape) < 0.1] = np.nan
    got, metadata = run(model, tmp_path / "m.onnx", numbers=rows)
    decision = model.decision_function(rows)
    assert len(np.unique(decision.round(6))) > 40
    np.testing.assert_allclose(got["decision"], decision, atol=1e-9)
    np.testing.assert_array_equal(got["label"], model.predict(rows))
    assert ("probability" in got) == hasattr(model, "predict_proba")
    if "probability" in got:
        expected = model.predict_proba(rows)
        np.testing.assert_allclose(got["probability"], expected[:, 1] if decision.ndim == 1 else expected, atol=1e-9)
    assert metadata["classes"] == {str(k): str(k) for k in model.classes_}
    assert metadata["columns"] == {"numbers": [str(k) for k in range(21)], "texts": []}


@pytest.mark.parametrize("name", ["linear", "boosted", "3 classes", "3 boosted"])
def test_raw_columns(fitted, tmp_path, name):
    """Columns of all kinds between each other, unknown and missing texts: what the table model says."""
    estimator = fitted(name)
    classes = ("a", "b", "c")[: len(estimator.classes_)]
    model = TableModel(estimator, Columns(COLUMNS, "id", MEAN, SCALE), classes)
    rng = np.random.default_rng(0)
    numbers = np.column_stack([3 * rng.normal(size=(60, 15)), rng.integers(0, 2, 60)])
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    texts = np.column_stack([rng.choice(["blue", "red", "pink"], 60), rng.choice(["L", "S", "XL", ""], 60)])
    frame = pd.DataFrame(numbers, columns=[*(f"x{k}" for k in range(15)), "member"])
    frame = frame.assign(colour=texts[:, 0], size=pd.Series(texts[:, 1]).replace("", None))
    got, metadata = run(model, tmp_path / "m.onnx", numbers=numbers, texts=texts.astype(object))
    with pytest.warns(UnseenCategoryWarning):
        X = model.features(frame)
    place, probability = model.decide(X)
    np.testing.assert_allclose(got["decision"], estimator.decision_function(model.columns.scaled(X)), atol=1e-9)
    shown = probability if probability.shape[1] > 2 else probability[:, 1]
    np.testing.assert_allclose(got["probability"], shown, atol=1e-9)
    np.testing.assert_array_equal(got["label"], estimator.classes_[place])
    assert metadata["columns"]["texts"] == ["colour", "size"]
    assert metadata["columns"]["numbers"] == [*(f"x{k}" for k in range(15)), "member"]
    assert list(metadata["classes"].values()) == list(classes)


@pytest.mark.parametrize("name", ["linear", "boosted"])
def test_a_gap_without_a_stand_in_has_no_decision(fitted, waveform, tmp_path, name):
    columns = tuple(Column(str(k), "number") for k in range(1, 22))
    model = TableModel(fitted(name), Columns(columns, None, np.zeros(21), SCALE))
    rows = waveform[0][:9] * SCALE
    rows[4, 2] = np.nan
    got, metadata = run(model, tmp_path / "m.onnx", numbers=rows)
    assert np.flatnonzero(np.isnan(got["decision"])).tolist() == [4]
    whole = pd.DataFrame(np.delete(rows, 4, axis=0), columns=[column.name for column in columns])
    np.testing.assert_allclose(np.delete(got["decision"], 4), model.decision_function(whole), atol=1e-9)
    assert metadata["columns"]["numbers"][0] == "1"


def test_categories_of_trees_are_refused(waveform, tmp_path):
    frame = pd.DataFrame(waveform[0][:, :2], columns=["a", "b"]).assign(kind=np.where(waveform[0][:, 2] > 0, "x", "y"))
    model = PairBoostingClassifier(**BOOSTED).fit(frame, waveform[1])
    with pytest.raises(InputError, match="A model with categorical columns cannot be written to ONNX"):
        export_onnx(model, tmp_path / "m.onnx")


@pytest.mark.parametrize(("name", "keep_gaps"), [("linear", False), ("boosted", False), ("boosted", True)])
def test_dates_and_gaps(fitted, tmp_path, name, keep_gaps):
    numbers = [Column(f"x{k}", "number", fill=0.5, n_gaps=9, marked=k == 3) for k in range(14)]
    day = Column("day", "date", fill=18_000.0, n_gaps=9, marked=True, cycles=("year", "week"))
    layout = Columns((*numbers[:5], day, *numbers[5:]), None, MEAN, SCALE, keep_gaps=keep_gaps)
    model = TableModel(fitted(name), layout)
    rng = np.random.default_rng(0)
    given = np.insert(3 * rng.normal(size=(60, 14)), 5, rng.integers(17_000, 19_000, 60), axis=1)
    given[rng.random(given.shape) < 0.2] = np.nan
    frame = pd.DataFrame(given, columns=[column.name for column in layout.columns])
    frame["day"] = pd.to_datetime(frame["day"], unit="D")
    got, _ = run(model, tmp_path / "m.onnx", numbers=given)
    assert np.isnan(model.features(frame)).any() == keep_gaps
    np.testing.assert_allclose(got["decision"], model.decision_function(frame), atol=1e-8)
