"""An untrusted model file: whatever is in it, the answer is a model or a ModelFileError, soon, in small space."""

import copy
import hashlib
import json
import struct
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sdulearn import PairLogisticRegressionCV, SDUClassifierCV, TableModel, load_model
from sdulearn.cli.inspect import describe_model
from sdulearn.columns import Column, Columns
from sdulearn.errors import ModelFileError
from sdulearn.io import container

FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
PREFIX = struct.Struct("<8sIQ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(
    scope="module", params=[PairLogisticRegressionCV(), SDUClassifierCV(gammas=(0, 1))], ids=["joint", "sdu"]
)
def whole(request, waveform, folder, fit_report):
    """The bytes of a good table model."""
    rows, codes = waveform
    model = request.param.fit(rows, codes)
    columns = [Column(f"x{k}", "number", fill=0.5) for k in range(rows.shape[1] - 2)]
    layout = Columns.unscaled((*columns, Column("colour", "category", ("red", "blue"), "red")), "id")
    path = folder / "whole.sdu"
    TableModel(model, layout, ("no", "yes"), fit_report).save(path)
    return path.read_bytes()


def sealed(body: bytes) -> bytes:
    """With a checksum that fits, as a hostile author would make it."""
    return body + hashlib.sha256(body).digest()


def rebuilt(header, tail=b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return sealed(PREFIX.pack(b"SDULEARN", 1, len(text)) + text + tail)


def parts(whole: bytes):
    size = PREFIX.unpack_from(whole)[2]
    start = PREFIX.size + size
    return json.loads(whole[PREFIX.size : start]), whole[start:-32]


def opened(folder, data: bytes) -> bool:
    """Whether the file is a model; anything but a model or a ModelFileError is a failure of the test."""
    path = folder / "spoiled.sdu"
    path.write_bytes(data)
    try:
        model = load_model(path)
    except ModelFileError:
        return False
    # What is said about an untrusted model must not fail either.
    describe_model(model, 10)
    return True


def test_the_whole_file_opens(folder, whole):
    assert opened(folder, whole)
    header, tail = parts(whole)
    assert opened(folder, rebuilt(header, tail))


@FUZZ
@given(data=st.data())
def test_truncated_and_flipped(folder, whole, data):
    length = data.draw(st.integers(0, len(whole) - 1))
    assert not opened(folder, whole[:length])
    position, bit = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 7))
    spoiled = bytearray(whole)
    spoiled[position] ^= 1 << bit
    assert not opened(folder, bytes(spoiled))


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


@FUZZ
@given(data=st.data())
def test_wrong_types_anywhere_in_the_header(folder, whole, data):
    original, tail = parts(whole)
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


@FUZZ
@given(st.lists(st.one_of(st.integers(-2, 3), st.sampled_from([2**31, 2**47, 2**48, 2**63])), max_size=3))
def test_declared_shapes(folder, shape):
    spec = {"name": "coef_", "dtype": "f8", "shape": shape}
    assert not opened(folder, rebuilt({"model": "SDUClassifier", "params": {}, "fitted": {}, "arrays": [spec]}))


HOSTILE = {
    "deep list": b"[" * 200_000,
    "deep object": b'{"a":' * 200_000,
    "deep and closed": b'{"arrays":[],"model":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "many digits": b'{"arrays":[],"model":' + b"9" * 1_000_000 + b"}",
    "many arrays": json.dumps({"arrays": [{"name": "a", "dtype": "f8", "shape": [0]}] * 20_000}).encode(),
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


def test_a_prior_beyond_all_floats(folder, whole):
    header, tail = parts(whole)
    header["estimator"]["fitted"]["prior_"]["value"] = 10**400
    assert not opened(folder, rebuilt(header, tail))


def test_errors_are_short_even_if_the_file_is_not(folder):
    path = folder / "long.sdu"
    path.write_bytes(rebuilt(HOSTILE["long text"]))
    with pytest.raises(ModelFileError) as caught:
        load_model(path)
    assert len(str(caught.value)) < 10_000


def test_the_reader_never_unpickles(folder, whole, monkeypatch):
    import pickle

    def refuse(*arguments, **keywords):
        raise AssertionError("unpickled")

    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(np, "load", refuse)
    assert opened(folder, whole)
    assert container.read(folder / "spoiled.sdu")[0]["model"] == "TableModel"
