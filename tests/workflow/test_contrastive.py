"""``embedding="contrastive"``: an encoder learns from the rows of the table, and goes into the model file."""

import json
import os
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from sdulearn import Reading, fit_table, load_model
from sdulearn.cli.main import main
from sdulearn.errors import MissingExtraError, ModelFileError, UnseenCategoryWarning
from sdulearn.io import container
from sdulearn.workflow import predict_table
from sdulearn.workflow.data import draw_rows


@pytest.fixture
def few_steps(monkeypatch):
    if not os.environ.get("SDULEARN_TORCH"):
        pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'sdulearn[torch]'")
    monkeypatch.setattr("sdulearn.torch.encoder._MIN_STEPS", 5)
    monkeypatch.setattr("sdulearn.torch.encoder._PASSES", 1)


@pytest.fixture(scope="module")
def digits(answers_about):
    X, y = load_digits(return_X_y=True)
    rows = np.flatnonzero(y < 2)[:160]
    table = pd.DataFrame(X[rows], columns=[f"p{k}" for k in range(64)])
    ends = np.random.default_rng(0).permutation(len(rows)).reshape(-1, 2)
    return table.assign(id=[f"r{k}" for k in range(len(rows))]), y[rows], answers_about(y[rows], ends)


@pytest.fixture(scope="module")
def images(digits, tmp_path_factory):
    """Files of the digits, in a folder with their table, and answers."""
    image = pytest.importorskip("PIL.Image")
    table, y, answers = digits
    folder = tmp_path_factory.mktemp("images")
    for name, pixels in zip(table["id"], table.to_numpy()[:, :64].astype(float), strict=True):
        image.fromarray((pixels.reshape(8, 8) * 15).astype(np.uint8)).save(folder / f"{name}.png")
    shown = pd.DataFrame({"id": table["id"], "file": table["id"] + ".png", "size": np.arange(len(table)) % 7})
    shown.to_csv(folder / "table.csv", index=False)
    answers.assign(label=answers["label"].astype(int)).to_csv(folder / "answers.csv", index=False)
    return folder, shown, y


def share_right(p, y):
    right = np.mean((p[:, 1] > 0.5) == (y == 1))
    return max(right, 1 - right)


@pytest.mark.usefixtures("few_steps")
def test_all_features_are_encoded_together_and_the_model_file_predicts_the_same(digits, tmp_path):
    table, y, answers = digits
    model = fit_table(table, answers, embedding="contrastive")
    p = model.predict_proba(table)
    assert share_right(p, y) > 0.95
    assert model.estimator.n_features_in_ == model.columns.n_inputs <= 64 == model.columns.width
    assert [one.column[0] for one in model.report.importances] == ["p"] * 15
    model.save(tmp_path / "m.sdu")
    again = load_model(tmp_path / "m.sdu")
    # The network computes in float32.
    np.testing.assert_allclose(again.predict_proba(table), p, atol=1e-4)
    assert again.summary() == model.summary()
    found = np.concatenate([part.probability for part in predict_table(again, table[::-1])])
    np.testing.assert_allclose(found[::-1], p, atol=1e-4)
    header, arrays = container.read(tmp_path / "m.sdu")
    for change in ({"model": "PairLogisticRegression"}, {"fitted": {}}):
        forged = json.loads(json.dumps(header))
        forged["layout"]["encoder"] |= change
        container.write(tmp_path / "forged.sdu", forged, arrays)
        with pytest.raises(ModelFileError):
            load_model(tmp_path / "forged.sdu")


@pytest.mark.usefixtures("few_steps", "no_importances")
def test_images_have_an_encoder_and_other_columns_stay(images, tmp_path):
    folder, shown, y = images
    model = fit_table(folder / "table.csv", folder / "answers.csv", images=["file"], embedding="contrastive")
    assert model.columns.encoder is None
    assert model.columns.width == model.columns.transformers["file"].width + 1
    model.save(folder / "m.sdu")
    p = np.concatenate([part.probability for part in predict_table(load_model(folder / "m.sdu"), folder / "table.csv")])
    assert share_right(p, y) > 0.8
    named = shown.assign(file=shown["file"].where(shown.index > 0, "none.png"))
    named.to_csv(tmp_path / "t.csv", index=False)
    again = fit_table(
        tmp_path / "t.csv",
        folder / "answers.csv",
        images=["file"],
        embedding="contrastive",
        image_root=folder,
        missing="mean",
    )
    with pytest.warns(UnseenCategoryWarning):
        p = again.predict_proba(shown[:5].assign(file="none.png"))
    assert np.isfinite(p).all()


@pytest.mark.usefixtures("few_steps", "no_importances")
def test_ask_learns_an_encoder_and_fit_follows_the_log(digits, tmp_path):
    table, y, _ = digits
    drawn = draw_rows(table, 100, Reading(embedding="contrastive"))
    assert drawn.columns.scaled(drawn.X).shape == (100, drawn.columns.n_inputs)
    table.assign(digit=y).to_csv(tmp_path / "t.csv", index=False)
    ask = ["ask", str(tmp_path / "t.csv"), "--embedding", "contrastive", "--oracle", "digit", "--questions", "12"]
    assert main([*ask, "--seed", "0", "-o", str(tmp_path / "log.jsonl")]) == 0
    model = fit_table(tmp_path / "t.csv", tmp_path / "log.jsonl")
    assert model.columns.encoder is not None
    assert [column.name for column in model.columns.columns] == [f"p{k}" for k in range(64)]


def test_without_torch_the_error_says_what_to_install(digits, monkeypatch):
    table, _, answers = digits
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"sdulearn\[torch\]"):
        fit_table(table, answers, embedding="contrastive")
