"""Pictures come from one folder, and are pictures."""

import io

import numpy as np
import pytest
from PIL import Image

from sdulearn.errors import FileError, MissingFileError
from sdulearn.io.media import find_sound, grey_png, media_type, read_image
from sdulearn.tables.features import N_PIXELS, ImageFeatures, read_pixels
from tests.reference import refuses

PNG = grey_png(np.eye(3))


@pytest.fixture
def root(tmp_path):
    """A folder with a picture, and a secret one beside it."""
    root = tmp_path / "pictures"
    (root / "more").mkdir(parents=True)
    (root / "a.png").write_bytes(PNG)
    (root / "more" / "b.png").write_bytes(PNG)
    (tmp_path / "pictures-not").mkdir()
    for secret in ("secret.png", "pictures-not/secret.png"):
        (tmp_path / secret).write_bytes(PNG)
    return root


@pytest.mark.parametrize(
    "name",
    ["../secret.png", "more/../../secret.png", "../pictures-not/secret.png", "{outside}", "", ".", "more", "none.png",
     "a.png\0", "//etc/passwd", "/etc/passwd", "a.png/../../secret.png", "x" * 5000],
)  # fmt: skip
def test_no_way_out(root, name):
    with pytest.raises(MissingFileError):
        read_image(root, name.replace("{outside}", str(root.parent / "secret.png")))


def test_links_must_stay_within_and_only_pictures_are_shown(root):
    (root / "out.png").symlink_to(root.parent / "secret.png")
    (root / "folder").symlink_to(root.parent)
    (root / "in.png").symlink_to(root / "a.png")
    (root / "loop.png").symlink_to(root / "loop.png")
    for name in ("out.png", "folder/secret.png", "loop.png"):
        with pytest.raises(MissingFileError):
            read_image(root, name)
    for name in ("in.png", "a.png", "more/b.png", "more/../a.png", str(root / "a.png")):
        assert read_image(root, name) == (PNG, "image/png")
    (root / "page.png").write_text("<script>alert(1)</script>")
    (root / "drawing.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    (root / "passwords.txt").write_text("hunter2")
    for name in ("page.png", "drawing.svg", "passwords.txt"):
        with refuses(error=FileError, shows=["PNG"]):
            read_image(root, name)
    signatures = {b"\xff\xd8\xff\xe0": "image/jpeg", b"RIFF\0\0\0\0WEBPVP8 ": "image/webp", b"GIF89a": "image/gif"}
    assert {data: media_type(data, "image") for data in signatures} == signatures
    assert media_type(b"RIFF\0\0\0\0WAVE", "image") is None


def test_grey_png_holds_the_pixels():
    pixels = np.array([[0.0, 0.5, 1.0], [1.0, 0.25, 0.0]])
    with Image.open(io.BytesIO(grey_png(pixels))) as read:
        np.testing.assert_array_equal(np.asarray(read), [[255, 128, 0], [0, 191, 255]])


@pytest.mark.parametrize("n", [(N_PIXELS, N_PIXELS - 1), (3, N_PIXELS)])
def test_components_that_a_file_made_up_are_refused(n):
    with refuses():
        ImageFeatures(np.zeros(n[0]), np.zeros((n[1], 2)))


def test_features_are_the_principal_components_of_16_x_16_pixels(root):
    """Images of any size and mode; whole blocks of a larger one become its pixels."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (6, 16, 16, 3), dtype=np.uint8)
    for k, image in enumerate(pixels):
        Image.fromarray(image).save(root / f"{k}.png")
    cells = [f"{k}.png" for k in range(6)]
    np.testing.assert_allclose(read_pixels("t", cells, root, True), pixels.reshape(6, -1) / 255)
    transformer, features = ImageFeatures.fit("t", cells, root, True)
    centred = pixels.reshape(6, -1) / 255 - pixels.reshape(6, -1).mean(axis=0) / 255
    np.testing.assert_allclose(features @ features.T, centred @ centred.T, atol=1e-10)
    np.testing.assert_allclose(transformer.transform(cells, "t", root, True)[0], features, atol=1e-10)
    halves = np.zeros((320, 160, 3), dtype=np.uint8)
    halves[:160, :, 0] = 255
    Image.fromarray(halves).save(root / "halves.png")
    Image.fromarray(halves[:, :, 0]).save(root / "grey.png")
    red, grey = read_pixels("t", ["halves.png", "grey.png"], root, True).reshape(2, 16, 16, 3)
    assert (red[:7, :, 0] == 1).all()
    assert (red[9:] == 0).all()
    assert (red[:, :, 1:] == 0).all()
    np.testing.assert_array_equal(grey, red[:, :, :1].repeat(3, axis=2))


def test_several_pictures_in_a_cell_count_together(root):
    (root / "b.png").write_bytes(grey_png(np.tri(9)))
    one, other, both = read_pixels("t", ["a.png", "b.png", " a.png ;b.png;"], root, True)
    np.testing.assert_allclose(both, (one + other) / 2)


def test_sounds_of_the_folder(root):
    (root / "a.wav").write_bytes(b"RIFF\0\0\0\0WAVEfmt ")
    assert find_sound(root, "a.wav") == (root / "a.wav", "audio/wav")
    with refuses(error=FileError, shows=["WAV"]):
        find_sound(root, "a.png")
    with refuses(error=MissingFileError, shows=["'../secret.png'"]):
        find_sound(root, "../secret.png")
