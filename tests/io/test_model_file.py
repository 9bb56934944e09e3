import json
import struct

import numpy as np
import pandas as pd
import pytest

from sdulearn import PairKFold, SDUClassifier, SDUClassifierCV, load_model
from sdulearn.errors import ModelFileError
from sdulearn.io import container
from sdulearn.losses import Squared

MODELS = [
    SDUClassifier(),
    SDUClassifier((0.2, 0.3, 0.5), "double_hinge", prior=0.7),
    SDUClassifierCV(loss="logistic", gammas=np.array([0.0, 0.5]), cv=PairKFold(3, random_state=0)),
    SDUClassifierCV("su", prior=0.7),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_round_trip(waveform, tmp_path, model):
    rows, codes = waveform
    frame = pd.DataFrame(rows, columns=[f"x{k}" for k in range(rows.shape[1])])
    model.fit(frame, codes).save(tmp_path / "model.sdu")
    back = load_model(tmp_path / "model.sdu")
    assert type(back) is type(model)
    np.testing.assert_array_equal(back.decision_function(frame), model.decision_function(frame))
    assert back.prior_ == model.prior_
    assert back.feature_names_in_.tolist() == frame.columns.tolist()
    assert back.loss == model.loss
    for name in ("optimality_", "objective_", "n_iter_", "n_features_in_", "alpha_", "gamma_"):
        assert getattr(back, name, None) == getattr(model, name, None)
    if hasattr(model, "cv_results_"):
        for key, value in model.cv_results_.items():
            np.testing.assert_array_equal(back.cv_results_[key], value)
    back.score(frame, codes)
    assert [path.name for path in tmp_path.iterdir()] == ["model.sdu"]


@pytest.fixture
def saved(waveform, tmp_path):
    SDUClassifier().fit(*waveform).save(tmp_path / "model.sdu")
    return tmp_path / "model.sdu"


def test_every_truncation_and_every_flipped_byte_is_caught(saved):
    whole = saved.read_bytes()
    for length in range(len(whole)):
        saved.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=r"truncated|not an sdulearn model"):
            load_model(saved)
    for position in range(len(whole)):
        spoiled = bytearray(whole)
        spoiled[position] ^= 0x10
        saved.write_bytes(spoiled)
        with pytest.raises(ModelFileError, match=r"altered|not an sdulearn model|newer|format version"):
            load_model(saved)


def test_foreign_and_newer_files(saved):
    whole = saved.read_bytes()
    saved.write_bytes(b"\x80\x04\x95 a pickle")
    with pytest.raises(ModelFileError, match="not an sdulearn model file"):
        load_model(saved)
    saved.write_bytes(whole[:8] + struct.pack("<I", 99) + whole[12:])
    with pytest.raises(ModelFileError, match=r"format version 99.*Upgrade"):
        load_model(saved)
    with pytest.raises(FileNotFoundError):
        load_model(saved.with_name("nothing.sdu"))


def forge(path, change):
    """Rewrite a model file with another header and a valid checksum, as a hostile author could."""
    header, arrays = container.read(path)
    change(header, arrays)
    container.write(path, header, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda h, a: h.update(model="os.system"),
        lambda h, a: h.pop("params"),
        lambda h, a: h["params"].update(unknown=1),
        lambda h, a: h["params"].update(alpha=-1),
        lambda h, a: h["params"].update(alpha="x"),
        lambda h, a: h["fitted"].update(predict="x"),
        lambda h, a: h["fitted"].update(n_features_in_=3),
        lambda h, a: h["fitted"].update(prior_={"value": 0.7}),
        lambda h, a: h["fitted"].update(prior_={"value": 7, "low": 0, "high": 1, "identified": True}),
        lambda h, a: h.update(fitted=[]),
        lambda h, a: a.update(coef_=np.full((1, 21), np.nan)),
        lambda h, a: a.update(coef_=np.zeros((3, 7))),
        lambda h, a: a.update(classes_=np.array([0, 1])),
        lambda h, a: a.update(classes_=np.array([1])),
        lambda h, a: (
            a.update(classes_=np.empty(0), coef_=np.empty((0, 2**40)), intercept_=np.empty(0)),
            h["fitted"].update(n_features_in_=2**40),
        ),
        lambda h, a: h["fitted"].update(feature_names_in_=["x"]),
        lambda h, a: h["fitted"].update(feature_names_in_=[["x"]] * 21),
        lambda h, a: a.pop("intercept_"),
    ],
)
def test_a_forged_header_with_a_good_checksum(saved, change):
    forge(saved, change)
    with pytest.raises(ModelFileError, match="does not describe an sdulearn model"):
        load_model(saved)


def rewrite(path, text, tail=b""):
    import hashlib

    body = struct.pack("<8sIQ", b"SDULEARN", 1, len(text)) + text + tail
    path.write_bytes(body + hashlib.sha256(body).digest())


@pytest.mark.parametrize(
    "spec",
    [
        {"name": "coef_", "dtype": "f8", "shape": [2**40, 2**40]},
        {"name": "coef_", "dtype": "f8", "shape": [-1]},
        {"name": "coef_", "dtype": "O", "shape": [1]},
        {"name": "coef_", "dtype": "f8", "shape": ["1"]},
        {"name": "coef_", "dtype": "f8", "shape": [10**9]},
        {"dtype": "f8"},
        7,
    ],
)
def test_declared_sizes_are_checked_before_they_are_used(saved, spec):
    rewrite(saved, json.dumps({"model": "SDUClassifier", "arrays": [spec]}).encode())
    with pytest.raises(ModelFileError, match="damaged"):
        load_model(saved)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000])
def test_a_header_that_is_no_header(saved, text):
    rewrite(saved, text)
    with pytest.raises(ModelFileError, match="damaged"):
        load_model(saved)
    body = struct.pack("<8sIQ", b"SDULEARN", 1, 2**60)
    import hashlib

    saved.write_bytes(body + hashlib.sha256(body).digest())
    with pytest.raises(ModelFileError, match="longer than the file"):
        load_model(saved)


def test_a_loss_object_cannot_be_saved(waveform, tmp_path):
    model = SDUClassifier(loss=Squared()).fit(*waveform)
    with pytest.raises(ValueError, match="holds numbers, not code"):
        model.save(tmp_path / "model.sdu")
    assert not list(tmp_path.iterdir())
