"""Columns of images: features, models, files that cannot be read."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from sdulearn import fit_table, load_model
from sdulearn.cli.main import main
from sdulearn.errors import InputError, UnseenCategoryWarning
from tests.reference import refuses

pytestmark = pytest.mark.usefixtures("no_importances")


def picture(bright_above, rng):
    """The upper or the left half is bright, in any colours, with noise."""
    pixels = np.full((48, 40, 3), rng.uniform(20, 110, 3))
    half = (slice(24), slice(40)) if bright_above else (slice(48), slice(20))
    pixels[half] = rng.uniform(130, 220, 3)
    pixels += rng.normal(0, 12, pixels.shape)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def shown(answers_about, tmp_path_factory):
    """A folder with 110 pictures in a table, answers about them, and a model of these."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "files").mkdir()
    rng = np.random.default_rng(0)
    y = np.where(rng.random(110) < 0.6, 1, -1)
    names = [f"files/{k}.{'jpg' if k % 2 else 'png'}" for k in range(110)]
    for name, kind in zip(names, y, strict=True):
        picture(kind > 0, rng).save(folder / name)
    table = pd.DataFrame({"id": [f"r{k}" for k in range(110)], "photo": names})
    table.to_csv(folder / "t.csv", index=False)
    answers = answers_about(y, rng.permutation(110)[:100].reshape(-1, 2))
    answers.to_csv(folder / "a.csv", index=False)
    return folder, table, answers, y, fit_table(folder / "t.csv", answers, images=["photo"], model="linear")


def test_the_model_finds_the_classes_and_keeps_them(shown, tmp_path):
    folder, table, _, y, model = shown
    assert model.columns.columns[0].kind == "image"
    assert "images, with the number of features: photo (100)" in model.summary()
    right = np.mean(model.predict(table) == y)
    assert max(right, 1 - right) > 0.95
    # The features keep their weights, and vary by one unit on average.
    X = model.columns.scaled(model.features(table))
    assert X.var(axis=0)[:3].mean() > 2 * X.var(axis=0).mean() == pytest.approx(2)
    model.save(tmp_path / "m.sdu")
    out = tmp_path / "out.csv"
    # The pictures are found beside the table, wherever the model is.
    assert main(["predict", str(tmp_path / "m.sdu"), str(folder / "t.csv"), "-o", str(out)]) == 0
    np.testing.assert_array_equal(pd.read_csv(out)["probability"], model.predict_proba(table)[:, 1])
    table.to_csv(tmp_path / "t.csv", index=False)
    assert main(["predict", str(tmp_path / "m.sdu"), str(tmp_path / "t.csv"), "-o", str(out)]) == 2
    found = ["predict", str(tmp_path / "m.sdu"), str(tmp_path / "t.csv"), "--image-root", str(folder), "-o", str(out)]
    assert main(found) == 0
    assert load_model(tmp_path / "m.sdu").columns.width == 100


def test_pictures_that_cannot_be_read_are_named(shown, tmp_path):
    folder, table, answers, _, _ = shown
    (folder / "files" / "half.png").write_bytes((folder / "files" / "0.png").read_bytes()[:300])
    (tmp_path / "outside.png").write_bytes((folder / "files" / "0.png").read_bytes())
    cells = ["files/half.png", "gone.png", "", None, "https://x.org/a.png", str(tmp_path / "outside.png"), "t.csv"]
    bad = table.assign(photo=[*cells, *table.photo[len(cells) :]])
    bad.to_csv(folder / "bad.csv", index=False)
    with pytest.raises(InputError) as error:
        fit_table(folder / "bad.csv", answers, images=["photo"])
    for part in ("'photo': 7 images", "'files/half.png'", "'gone.png'", "an empty cell", "`missing='mean'`"):
        assert part in str(error.value)
    model = fit_table(folder / "bad.csv", answers, images=["photo"], missing="mean", model="linear")
    assert "7 images in column 'photo' cannot be read and count as the mean image" in model.summary()
    with pytest.warns(UnseenCategoryWarning, match="7 images in column 'photo'"):
        X = model.features(bad)
    assert not X[:7].any()
    assert X[7:].any(axis=1).all()
    with refuses(shows=["'.'"]):
        fit_table(bad, answers, images=["photo"], missing="mean", image_root=".")
