"""Pictures come from one folder, and are pictures."""

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from sdulearn.errors import FileError, InputError, MissingFileError
from sdulearn.io.images import (
    N_DESCRIPTORS,
    ImageFeatures,
    describe,
    descriptors,
    find_sound,
    grey_png,
    media_type,
    read_image,
)
from tests.reference import read_features

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


def test_pictures_within_the_folder(root):
    for name in ("a.png", "more/b.png", "more/../a.png", str(root / "a.png")):
        assert read_image(root, name) == (PNG, "image/png")


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
    assert read_image(root, "in.png")[0] == PNG
    (root / "page.png").write_text("<script>alert(1)</script>")
    (root / "drawing.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    (root / "passwords.txt").write_text("hunter2")
    for name in ("page.png", "drawing.svg", "passwords.txt"):
        with pytest.raises(FileError, match="is not a PNG"):
            read_image(root, name)
    signatures = {b"\xff\xd8\xff\xe0": "image/jpeg", b"RIFF\0\0\0\0WEBPVP8 ": "image/webp", b"GIF89a": "image/gif"}
    assert {data: media_type(data, "image") for data in signatures} == signatures
    assert media_type(b"RIFF\0\0\0\0WAVE", "image") is None


def test_grey_png_holds_the_pixels():
    pixels = np.array([[0.0, 0.5, 1.0], [1.0, 0.25, 0.0]])
    with Image.open(io.BytesIO(grey_png(pixels))) as read:
        np.testing.assert_array_equal(np.asarray(read), [[255, 128, 0], [0, 191, 255]])


@pytest.mark.parametrize("n", [(N_DESCRIPTORS, N_DESCRIPTORS - 1), (3, N_DESCRIPTORS)])
def test_components_that_a_file_made_up_are_refused(n):
    with pytest.raises(InputError, match="do not fit together"):
        ImageFeatures(np.zeros(n[0]), np.zeros((n[1], 2)))


def test_descriptors_tell_directions_and_colours():
    across = np.zeros((64, 64, 3))
    across[::8] = across[1::8] = 1.0
    found = describe(across)
    turned = describe(across.transpose(1, 0, 2))
    assert found.shape == (N_DESCRIPTORS,)
    gradients, other = (one[:576].reshape(8, 8, 9).sum(axis=(0, 1)) for one in (found, turned))
    # Of unsigned angles the first is along the rows; 90 degrees lie between the fifth and the sixth.
    assert gradients[4:6].sum() > 0.99 * gradients.sum()
    assert other[0] > 0.99 * other.sum()
    red = np.zeros((64, 64, 3))
    red[:32, :, 0] = 1.0
    colours = describe(red)[576:].reshape(4, 4, 6)
    np.testing.assert_allclose(colours[:2, :, 0], 1)
    assert not colours[2:].any()
    assert not colours[:, :, 1:].any()


def test_descriptors_by_hand():
    """Gradients of a cell, shared by two directions, relative to those of the cells around it."""
    pixels = np.random.default_rng(0).random((64, 64, 3))
    down, right = np.gradient(np.sqrt(pixels.mean(axis=2)))
    cells = np.zeros((8, 8, 9))
    for (r, c), size in np.ndenumerate(np.hypot(down, right)):
        angle = np.arctan2(down[r, c], right[r, c]) % np.pi * 9 / np.pi
        low = int(angle)
        cells[r // 8, c // 8, low % 9] += size * (1 + low - angle)
        cells[r // 8, c // 8, (low + 1) % 9] += size * (angle - low)
    expected = np.zeros_like(cells)
    for r, c in np.ndindex(8, 8):
        around = np.square(cells[max(r - 1, 0) : r + 2, max(c - 1, 0) : c + 2]).sum()
        expected[r, c] = np.minimum(cells[r, c] / np.sqrt(around + 0.01), 0.5)
    found = describe(pixels)
    np.testing.assert_allclose(found[:576], expected.ravel())
    # Mean and standard deviation of the colours of a corner.
    corner = pixels[:16, :16].reshape(-1, 3)
    np.testing.assert_allclose(found[576:582], [*corner.mean(axis=0), *corner.std(axis=0)])


def test_several_pictures_in_a_cell_count_together(root):
    (root / "b.png").write_bytes(grey_png(np.tri(9)))
    (root / "half.png").write_bytes(PNG[:40])
    one, other, both = descriptors("t", ["a.png", "b.png", " a.png ;b.png;"], root, True)
    np.testing.assert_allclose(both, (one + other) / 2)
    cells = ["a.png", "half.png", "", None, "https://x.org/a.png", "gone.png"]
    assert np.isnan(descriptors("t", cells, root, False)).all(axis=1).tolist() == [False, True, True, True, True, True]
    with pytest.raises(InputError, match=r"5 pictures cannot be read: 'half.png' cannot be read \(.*an empty cell"):
        descriptors("t", cells, root, True)


def test_sounds_of_the_folder(root):
    (root / "a.wav").write_bytes(b"RIFF\0\0\0\0WAVEfmt ")
    assert find_sound(root, "a.wav") == (root / "a.wav", "audio/wav")
    with pytest.raises(FileError, match="is not a WAV, MP3, AAC, Ogg, FLAC, MP4 or WebM sound"):
        find_sound(root, "a.png")
    with pytest.raises(MissingFileError, match=r"There is no sound '\.\./secret\.png' in"):
        find_sound(root, "../secret.png")


def test_texts_and_pictures_become_components_of_one_scale(root):
    """They are scaled together, so that components keep their relative weights."""
    rng = np.random.default_rng(0)
    for k in range(12):
        (root / f"{k}.png").write_bytes(grey_png(rng.random((20, 20))))
    words = ["red", "blue", "car", "bus", "runs", "stands", "here"]
    notes = [" ".join(rng.choice(words, 5)) for _ in range(12)]
    table = pd.DataFrame({"photo": [f"{k}.png" for k in range(12)], "note": notes})
    for missing, cells in (("auto", table.photo), ("mean", [*table.photo[:11], "gone.png"])):
        source = table.assign(photo=cells)
        options = {"text": ["note"], "images": ["photo"], "image_root": root, "missing": missing}
        columns, X, _ = read_features(source, id_column="", **options)
        (photo, pixels), (note, terms) = columns.parts
        assert (photo.kind, photo.fill, note.kind, note.fill) == (
            "image",
            None if missing == "auto" else 0,
            "text",
            None,
        )
        for name, part in (("photo", pixels), ("note", terms)):
            assert len(set(columns.scale[part])) == 1
            assert columns.feature_names[part.start].startswith(f"{name} 1")
            rows = X[:11] if missing == "mean" and name == "photo" else X
            np.testing.assert_allclose(columns.scale[part][0], np.sqrt(rows[:, part].var(axis=0).mean()))
            np.testing.assert_allclose(columns.mean[part], rows[:, part].mean(axis=0), atol=1e-12)
    assert not X[11, pixels].any()
    assert columns.unseen_words("photo", 1).startswith("1 pictures in column 'photo' cannot be read")
    with pytest.raises(InputError, match="column 'photo': 1 pictures cannot be read: There is no picture 'gone"):
        read_features(source, **{**options, "missing": "auto"})
    with pytest.raises(InputError, match=r"none of the pictures can be read\. Is 'nowhere' the folder they are in"):
        read_features(source, **{**options, "image_root": "nowhere"})
