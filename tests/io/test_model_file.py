"""Model files: what was saved comes back; an untrusted file is a model or a ModelFileError, soon, in small space."""

import copy
import hashlib
import json
import struct
import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sdulearn import (
    PairKFold,
    PairLogisticRegression,
    PairLogisticRegressionCV,
    SDUClassifier,
    SDUClassifierCV,
    TableModel,
    load_model,
)
from sdulearn.cli.inspect import describe_model
from sdulearn.columns import Column, Columns, NumberText
from sdulearn.errors import ModelFileError
from sdulearn.io import container
from sdulearn.losses import Squared

FUZZ = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
PREFIX = struct.Struct("<8sIQ")
MODELS = [
    SDUClassifier(),
    SDUClassifier((0.2, 0.3, 0.5), "double_hinge", prior=0.7),
    SDUClassifierCV(loss="logistic", gammas=np.array([0.0, 0.5]), cv=PairKFold(3, random_state=0)),
    SDUClassifierCV("su", prior=0.7),
    PairLogisticRegression(error_rate={0: 0.1, 3: 0.2}),
    PairLogisticRegressionCV(),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_an_estimator_comes_back(waveform, tmp_path, model):
    rows, codes = waveform
    frame = pd.DataFrame(rows, columns=[f"x{k}" for k in range(rows.shape[1])])
    model.fit(frame, codes).save(tmp_path / "model.sdu")
    back = load_model(tmp_path / "model.sdu")
    assert type(back) is type(model)
    for name in {"loss", "prior", "alpha", "error_rate", "tol"} & set(model.get_params()):
        assert getattr(back, name) == getattr(model, name)
    np.testing.assert_array_equal(back.decision_function(frame), model.decision_function(frame))
    for name in (name for name in model.FITTED if hasattr(model, name)):
        if name == "cv_results_":
            for key, value in model.cv_results_.items():
                np.testing.assert_array_equal(back.cv_results_[key], value)
        else:
            np.testing.assert_equal(getattr(back, name), getattr(model, name))
    back.score(frame, codes)
    assert [path.name for path in tmp_path.iterdir()] == ["model.sdu"]


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def saved(model, folder):
    model.save(folder / "whole.sdu")
    return (folder / "whole.sdu").read_bytes()


@pytest.fixture(scope="module")
def estimator(waveform, folder):
    """The bytes of a file of an estimator."""
    return saved(SDUClassifier().fit(*waveform), folder)


@pytest.fixture(scope="module")
def table_model(waveform, fit_report):
    return TableModel(PairLogisticRegressionCV().fit(*waveform), COLUMNS, ("no", "yes"), fit_report)


@pytest.fixture(scope="module")
def whole(table_model, folder):
    """The bytes of a file of a table model."""
    return saved(table_model, folder)


@pytest.mark.parametrize("columns", [COLUMNS, Columns.sparse(1, np.linspace(1, 2, 21))], ids=["columns", "sparse"])
def test_a_table_model_comes_back(table_model, tmp_path, columns):
    TableModel(table_model.estimator, columns, ("no", "yes"), table_model.report).save(tmp_path / "model.sdu")
    back = load_model(tmp_path / "model.sdu")
    np.testing.assert_array_equal(back.estimator.coef_, table_model.estimator.coef_)
    assert type(back.columns) is type(columns)
    assert (back.columns.columns, back.columns.id_column) == (columns.columns, columns.id_column)
    assert (back.classes, back.report) == (("no", "yes"), table_model.report)
    np.testing.assert_array_equal(back.columns.mean, columns.mean)
    np.testing.assert_array_equal(back.columns.scale, columns.scale)


def test_a_loss_object_cannot_be_saved(waveform, tmp_path):
    with pytest.raises(ValueError, match="holds numbers, not code"):
        SDUClassifier(loss=Squared()).fit(*waveform).save(tmp_path / "model.sdu")
    assert not list(tmp_path.iterdir())


def loaded(folder, data):
    path = folder / "spoiled.sdu"
    path.write_bytes(data)
    return load_model(path)


def opened(folder, data: bytes) -> bool:
    """Whether the file is a model; anything but a model or a ModelFileError is a failure of the test."""
    try:
        model = loaded(folder, data)
    except ModelFileError as error:
        return len(str(error)) > 1000
    # What is said about an untrusted model must not fail either.
    describe_model(model, 10)
    return True


def sealed(body: bytes) -> bytes:
    """With a checksum that fits, as a hostile author would make it."""
    return body + hashlib.sha256(body).digest()


def rebuilt(header, tail=b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return sealed(PREFIX.pack(b"SDULEARN", 1, len(text)) + text + tail)


def parts(whole: bytes):
    start = PREFIX.size + PREFIX.unpack_from(whole)[2]
    return json.loads(whole[PREFIX.size : start]), whole[start:-32]


def test_every_truncation_and_every_flipped_byte_is_caught(folder, estimator):
    """At both ends every byte, between them every seventh."""
    places = [k for k in range(len(estimator)) if k < 60 or k > len(estimator) - 60 or k % 7 == 0]
    for k in places:
        with pytest.raises(ModelFileError, match=r"truncated|not an sdulearn model"):
            loaded(folder, estimator[:k])
        spoiled = bytearray(estimator)
        spoiled[k] ^= 0x10
        with pytest.raises(ModelFileError, match=r"altered|not an sdulearn model|newer|format version"):
            loaded(folder, spoiled)


def test_foreign_and_newer_files(folder, estimator):
    with pytest.raises(ModelFileError, match="not an sdulearn model file"):
        loaded(folder, b"\x80\x04\x95 a pickle")
    with pytest.raises(ModelFileError, match=r"format version 2, and this sdulearn reads up to 1\. Upgrade"):
        loaded(folder, estimator[:8] + struct.pack("<I", 2) + estimator[12:])
    with pytest.raises(FileNotFoundError):
        load_model(folder / "nothing.sdu")


def column(**change):
    return {"name": "n", "kind": "number", "categories": [], "fill": None, "text": None, **change}


def first_column(**change):
    return lambda h, a: h["layout"]["columns"].__setitem__(0, column(**change))


ESTIMATORS = [
    lambda h, a: h.update(model="os.system"),
    lambda h, a: h.pop("params"),
    lambda h, a: h["params"].update(unknown=1),
    lambda h, a: h["params"].update(alpha=-1),
    lambda h, a: h["params"].update(alpha="x"),
    lambda h, a: h["fitted"].update(predict="x"),
    lambda h, a: h["fitted"].update(n_features_in_=3),
    lambda h, a: h["fitted"].update(n_iter_="x"),
    lambda h, a: h["fitted"].update(objective_="x"),
    lambda h, a: h["fitted"].update(prior_=None),
    lambda h, a: h["fitted"].update(prior_={"value": 0.7}),
    lambda h, a: h["fitted"].update(prior_={"value": 7, "low": 0, "high": 1, "identified": True}),
    lambda h, a: h["fitted"].pop("prior_"),
    lambda h, a: h.update(fitted=[]),
    lambda h, a: a.update(coef_=np.full((1, 21), np.nan)),
    lambda h, a: a.update(intercept_=np.full(1, np.inf)),
    lambda h, a: a.update(intercept_=np.zeros(2)),
    lambda h, a: a.update(coef_=np.zeros((3, 7))),
    lambda h, a: a.update(classes_=np.array([0, 1])),
    lambda h, a: a.update(classes_=np.array([1])),
    lambda h, a: a.update(classes_=np.arange(1, 4), coef_=np.zeros((3, 21)), intercept_=np.zeros(3)),
    lambda h, a: (
        a.update(classes_=np.empty(0), coef_=np.empty((0, 2**40)), intercept_=np.empty(0)),
        h["fitted"].update(n_features_in_=2**40),
    ),
    lambda h, a: h["fitted"].update(feature_names_in_=["x"]),
    lambda h, a: h["fitted"].update(feature_names_in_=[["x"]] * 21),
    lambda h, a: a.pop("intercept_"),
    lambda h, a: a.update({"cv_results_/x": np.zeros(1)}),
]
TABLE_MODELS = [
    lambda h, a: h.update(version=2),
    lambda h, a: h.update(version=0),
    lambda h, a: h.update(version="1"),
    lambda h, a: h.pop("layout"),
    lambda h, a: h.update(layout=[]),
    lambda h, a: h["layout"].update(kind="pickle"),
    lambda h, a: h["layout"]["columns"].pop(),
    lambda h, a: h["layout"].update(columns={}),
    lambda h, a: h["layout"].update(id_column="x0"),
    lambda h, a: h["layout"].update(id_column=3),
    lambda h, a: h["layout"]["columns"].append(column(name="x1")),
    first_column(kind="code"),
    first_column(categories=["a"]),
    first_column(fill="a"),
    first_column(fill=True),
    first_column(name="\ud800"),
    first_column(text={"decimal": "x", "marks": []}),
    first_column(text={"decimal": ".", "marks": [1]}),
    lambda h, a: h["layout"]["columns"][-1].update(categories=["a", "a"]),
    lambda h, a: h["layout"]["columns"][-1].update(categories="ab"),
    lambda h, a: h["layout"]["columns"][-1].update(fill=1.0),
    lambda h, a: h.update(layout={"kind": "sparse", "width": 7, "first": 1}),
    lambda h, a: h.update(layout={"kind": "sparse", "width": 21, "first": 2}),
    lambda h, a: h.update(layout={"kind": "sparse", "width": 2**60, "first": 1}),
    lambda h, a: a.pop("scale"),
    lambda h, a: a.update(scale=np.ones(3)),
    lambda h, a: a.update(scale=np.zeros(21)),
    lambda h, a: a.update(mean=np.full(21, np.nan)),
    lambda h, a: a.update(mean=np.arange(21)),
    lambda h, a: h.update(classes=["a"]),
    lambda h, a: h.update(classes=["a", "a"]),
    lambda h, a: h.update(classes=["a", 1]),
    lambda h, a: h.update(report=[]),
    lambda h, a: h["report"].update(n_rows=-1),
    lambda h, a: h["report"].update(settings={"alpha": "x"}),
    lambda h, a: h["report"].update(findings=[{"code": "x", "severity": "fatal", "details": {}}]),
    lambda h, a: h["report"]["accuracy"].update(value="x"),
    lambda h, a: h["estimator"].update(model="TableModel"),
    lambda h, a: h["estimator"]["params"].update(alphas=-1),
    lambda h, a: h["estimator"]["fitted"].pop("answer_model_"),
    lambda h, a: h["estimator"]["fitted"].update(n_classes_=3),
    lambda h, a: h["estimator"]["fitted"].update(n_classes_=1),
    lambda h, a: h["estimator"]["fitted"]["prior_"].update(value=10**400),
]
FORGED = [("estimator", change) for change in ESTIMATORS] + [("whole", change) for change in TABLE_MODELS]


@pytest.mark.parametrize(("name", "change"), FORGED)
def test_a_forged_header_with_a_good_checksum(request, folder, name, change):
    path = folder / "forged.sdu"
    path.write_bytes(request.getfixturevalue(name))
    header, arrays = container.read(path)
    change(header, arrays)
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match="does not describe an sdulearn model"):
        load_model(path)


@pytest.mark.parametrize(
    "spec",
    [
        {"name": "coef_", "dtype": "f8", "shape": [2**40, 2**40]},
        {"name": "coef_", "dtype": "f8", "shape": [2**48]},
        {"name": "coef_", "dtype": "f8", "shape": [-1]},
        {"name": "coef_", "dtype": "f8", "shape": [0, 0, 0]},
        {"name": "coef_", "dtype": "O", "shape": [1]},
        {"name": "coef_", "dtype": "f8", "shape": ["1"]},
        {"name": "coef_", "dtype": "f8", "shape": [10**9]},
        {"dtype": "f8"},
        7,
    ],
)
def test_declared_sizes_are_checked_before_they_are_used(folder, spec):
    with pytest.raises(ModelFileError, match="damaged"):
        loaded(folder, rebuilt({"model": "SDUClassifier", "params": {}, "fitted": {}, "arrays": [spec]}))


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff\xfe"])
def test_a_header_that_is_no_header(folder, text):
    with pytest.raises(ModelFileError, match="damaged"):
        loaded(folder, rebuilt(text))
    with pytest.raises(ModelFileError, match="longer than the file"):
        loaded(folder, sealed(PREFIX.pack(b"SDULEARN", 1, len(text) + 1) + text))


@FUZZ
@given(data=st.data())
def test_bytes_changed_under_a_good_checksum(folder, whole, data):
    body = bytearray(whole[:-32])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(body)))
        body[place : place + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    opened(folder, sealed(bytes(body)))


@FUZZ
@given(st.binary(max_size=300))
def test_any_bytes_at_all(folder, junk):
    assert not opened(folder, junk)
    assert not opened(folder, sealed(b"SDULEARN" + junk))


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.sampled_from([-(2**63), 2**48, 0, -1]),
    st.floats(allow_nan=True), st.text(max_size=5), st.sampled_from(["coef_", "\ud800", "squared", "f8", "\x1b[2J"]),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def places(value, path=()):
    """Paths to every entry of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("name", ["estimator", "whole"])
@FUZZ
@given(data=st.data())
def test_wrong_types_anywhere_in_the_header(request, folder, name, data):
    original, tail = parts(request.getfixturevalue(name))
    assert opened(folder, rebuilt(original, tail))
    header = copy.deepcopy(original)
    for _ in range(data.draw(st.integers(1, 2))):
        *route, last = data.draw(st.sampled_from(list(places(header))))
        inner = header
        for key in route:
            inner = inner[key]
        if data.draw(st.booleans()):
            del inner[last]
        else:
            inner[last] = data.draw(VALUES)
        if not header:
            break
    opened(folder, rebuilt(header, tail))


HOSTILE = {
    "deep list": b"[" * 200_000,
    "deep object": b'{"a":' * 200_000,
    "deep and closed": b'{"arrays":[],"model":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "many digits": b'{"arrays":[],"model":' + b"9" * 1_000_000 + b"}",
    "many arrays": json.dumps({"arrays": [{"name": "a", "dtype": "f8", "shape": [0]}] * 10_000}).encode(),
    "many keys": json.dumps({"arrays": [], "model": "x", **{str(k): k for k in range(50_000)}}).encode(),
    "long text": b'{"arrays":[],"model":"' + b"x" * 5_000_000 + b'"}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_time_and_memory_are_bounded_by_the_file_s_size(folder, text):
    data = rebuilt(text)
    tracemalloc.start()
    began = time.process_time()
    try:
        assert not opened(folder, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 10
    assert peak < 40 * len(data) + 10_000_000


def test_the_reader_never_unpickles(folder, whole, monkeypatch):
    import pickle

    for module, name in ((pickle, "loads"), (pickle, "load"), (np, "load")):
        monkeypatch.setattr(module, name, lambda *arguments, **keywords: pytest.fail("unpickled"))
    assert opened(folder, whole)
