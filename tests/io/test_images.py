"""Pictures come from one folder, and are pictures."""

import io

import numpy as np
import pytest
from PIL import Image

from sdulearn.errors import FileError, InputError, MissingFileError
from sdulearn.io.images import N_DESCRIPTORS, ImageFeatures, grey_png, media_type, read_image

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
