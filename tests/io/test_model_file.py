"""Model files: what was saved comes back; an untrusted file is a model or a ModelFileError, soon, in small space."""

import copy
import hashlib
import json
import pickle
import struct
import time
import tracemalloc
from functools import reduce
from operator import getitem

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
from sdulearn.errors import ModelFileError, TrainingAnswersWarning
from sdulearn.io import container
from sdulearn.losses import Squared
from sdulearn.table_model import AskedRows

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


@pytest.mark.filterwarnings("ignore::sdulearn.errors.UselessModelWarning")
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
    with pytest.warns(TrainingAnswersWarning):
        back.score(frame, codes)
    assert [path.name for path in tmp_path.iterdir()] == ["model.sdu"]


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
def table_model(waveform, mixed_columns, fit_report):
    p = np.array([[0.75, 0.25], [0.1, 0.9]])
    asked = AskedRows(["r1", "é"], p, p, p, np.array([3, 1]))
    return TableModel(PairLogisticRegressionCV().fit(*waveform), mixed_columns, ("no", "yes"), fit_report, asked)


@pytest.fixture(scope="module")
def whole(table_model, folder):
    """The bytes of a file of a table model."""
    return saved(table_model, folder)


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
    return sealed(PREFIX.pack(b"SDULEARN", container.FORMAT_VERSION, len(text)) + text + tail)


def parts(whole: bytes):
    start = PREFIX.size + PREFIX.unpack_from(whole)[2]
    return json.loads(whole[PREFIX.size : start]), whole[start:-32]


def test_every_truncation_and_every_flipped_byte_is_caught(folder, estimator):
    """At both ends every byte, between them some."""
    places = [k for k in range(len(estimator)) if k < 60 or k > len(estimator) - 60 or k % 29 == 0]
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
    for version, advice in ((4, "Upgrade sdulearn"), (2, "Fit the model again"), (0, "Fit the model again")):
        with pytest.raises(ModelFileError, match=rf"has format version {version}\. .* {advice}\."):
            loaded(folder, estimator[:8] + struct.pack("<I", version) + estimator[12:])
    with pytest.raises(FileNotFoundError):
        load_model(folder / "nothing.sdu")


GONE = object()
COLUMN = {"name": "n", "kind": "number", "categories": [], "fill": None, "text": None}
FIRST = "layout columns 0"
LAST = "layout columns -1"
FITTED = "estimator fitted"
# Keys on the way to a value, of the header or (with @) of the arrays, and what is to stand there.
FORGED_ESTIMATORS = [
    ("model", "os.system"), ("params", GONE), ("params unknown", 1), ("params alpha", -1), ("params alpha", "x"),
    ("fitted predict", "x"), ("fitted n_features_in_", 3), ("fitted n_iter_", "x"), ("fitted objective_", "x"),
    ("fitted prior_", None), ("fitted prior_", {"value": 0.7}), ("fitted prior_", GONE), ("fitted", []),
    ("fitted prior_", {"value": 7, "low": 0, "high": 1, "identified": True}),
    ("@ coef_", np.full((1, 21), np.nan)), ("@ coef_", np.zeros((3, 7))), ("@ intercept_", np.full(1, np.inf)),
    ("@ intercept_", np.zeros(2)), ("@ intercept_", GONE), ("@ classes_", np.array([0, 1])),
    ("@ classes_", np.array([1])), ("@ cv_results_/x", np.zeros(1)), ("fitted feature_names_in_", ["x"]),
    ("fitted feature_names_in_", [["x"]] * 21),
    ("@ classes_", np.arange(1, 4), "@ coef_", np.zeros((3, 21)), "@ intercept_", np.zeros(3)),
    ("@ classes_", np.empty(0), "@ coef_", np.empty((0, 2**40)), "@ intercept_", np.empty(0),
     "fitted n_features_in_", 2**40),
]  # fmt: skip
FORGED_TABLE_MODELS = [
    ("layout", GONE), ("layout", []),
    (LAST, GONE), ("layout columns", {}), ("layout id_column", "x0"), ("layout id_column", 3),
    ("layout columns 1", {**COLUMN, "name": "x0"}), (FIRST, {**COLUMN, "kind": "code"}),
    (FIRST, {**COLUMN, "categories": ["a"]}), (FIRST, {**COLUMN, "fill": "a"}), (FIRST, {**COLUMN, "fill": True}),
    (FIRST, {**COLUMN, "name": "\ud800"}), (FIRST, {**COLUMN, "text": {"form": "x", "marks": []}}),
    (FIRST, {**COLUMN, "text": {"form": ".", "marks": [1]}}), (f"{LAST} categories", ["a", "a"]),
    (f"{LAST} categories", "ab"), (f"{LAST} fill", 1.0),
    ("@ scale", GONE), ("@ scale", np.ones(3)), ("@ scale", np.zeros(21)), ("@ mean", np.full(21, np.nan)),
    ("@ mean", np.arange(21)), ("classes", ["a"]), ("classes", ["a", "a"]), ("classes", ["a", 1]), ("report", []),
    ("report n_rows", -1), ("report settings", {"alpha": "x"}), ("report accuracy value", "x"),
    ("report accuracy", None), ("report classes", [1, 2, 3]), ("classes", [1, 10**30]),
    ("report findings", [{"code": "x", "severity": "fatal", "details": {}}]), ("estimator model", "TableModel"),
    ("estimator params alphas", -1), (f"{FITTED} answer_model_", GONE), (f"{FITTED} n_classes_", 3),
    (f"{FITTED} n_classes_", 1), (f"{FITTED} prior_ value", 10**400),
    ("asked", ["r1"]), ("asked", ["r1", 2]), ("asked", ["r1", "\ud800"]), ("asked", None), ("asked", "r1"),
    ("@ asked:n_answers", GONE), ("@ asked:n_answers", np.array([3, 0])), ("@ asked:n_answers", np.array([3.0, 1.0])),
    ("@ asked:n_answers", np.array([3])), ("@ asked:probabilities", GONE), ("@ asked:probabilities", np.eye(3)),
    ("@ asked:probabilities", np.full((2, 2), np.nan)), ("@ asked:probabilities", np.array([[2.0, -1.0], [1.0, 0.0]])),
    ("@ asked:probabilities", np.full((2, 2), 0.4)),
]  # fmt: skip
FORGED = [("estimator", *one) for one in FORGED_ESTIMATORS] + [("whole", *one) for one in FORGED_TABLE_MODELS]


@pytest.mark.parametrize(("name", "changes"), [(name, changes) for name, *changes in FORGED])
def test_a_forged_header_with_a_good_checksum(request, folder, name, changes):
    path = folder / "forged.sdu"
    path.write_bytes(request.getfixturevalue(name))
    header, arrays = container.read(path)
    for keys, value in zip(changes[::2], changes[1::2], strict=True):
        *route, last = [int(key) if key.lstrip("-").isdigit() else key for key in keys.split()]
        inner = reduce(getitem, route, {"@": arrays, **header}) if route else header
        if value is GONE:
            del inner[last]
        else:
            inner[last] = value
    container.write(path, header, arrays)
    with pytest.raises(ModelFileError, match=r"does not describe an sdulearn model: .* fit the model again\."):
        load_model(path)


SHAPES = [[2**40, 2**40], [2**48], [-1], [0, 0, 0], ["1"], [10**9], None]
SPECS = [7, *({"name": "coef_", "dtype": "f8", "shape": shape} for shape in SHAPES)]


@pytest.mark.parametrize("spec", [*SPECS, {"name": "coef_", "dtype": "O", "shape": [1]}])
def test_declared_sizes_are_checked_before_they_are_used(folder, spec):
    with pytest.raises(ModelFileError, match="damaged"):
        loaded(folder, rebuilt({"model": "SDUClassifier", "params": {}, "fitted": {}, "arrays": [spec]}))


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"\xff\xfe", b'{"arrays": [], "x": 1e999}', b'{"arrays": [], "x": NaN}']
)
def test_a_header_that_is_no_header(folder, text):
    with pytest.raises(ModelFileError, match="damaged"):
        loaded(folder, rebuilt(text))
    with pytest.raises(ModelFileError, match="longer than the file"):
        loaded(folder, sealed(PREFIX.pack(b"SDULEARN", container.FORMAT_VERSION, len(text) + 1) + text))


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
    "many arrays": json.dumps({"arrays": [{"name": "a", "dtype": "f8", "shape": [0]}] * 2_000}).encode(),
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
    for module, name in ((pickle, "loads"), (pickle, "load"), (np, "load")):
        monkeypatch.setattr(module, name, lambda *arguments, **keywords: pytest.fail("unpickled"))
    assert opened(folder, whole)
