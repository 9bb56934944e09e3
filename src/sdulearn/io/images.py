"""Images and sounds: files that are safe to show, PNG files of arrays, and features of images.

The features are principal components of 16 x 16 pixels.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from sdulearn.errors import FileError, InputError, MissingFileError, SdulearnError, listed, quoted, reason, require
from sdulearn.types import Array

# Offset and first bytes of each type. SVG is missing because it can hold scripts.
_SIGNATURES: dict[str, tuple[int, tuple[bytes, ...]]] = {
    "image/png": (0, (b"\x89PNG\r\n\x1a\n",)),
    "image/jpeg": (0, (b"\xff\xd8\xff",)),
    "image/gif": (0, (b"GIF87a", b"GIF89a")),
    "image/webp": (8, (b"WEBP",)),
    "image/bmp": (0, (b"BM",)),
    "audio/wav": (8, (b"WAVE",)),
    "audio/mpeg": (0, (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")),
    "audio/aac": (0, (b"\xff\xf1", b"\xff\xf9")),
    "audio/ogg": (0, (b"OggS",)),
    "audio/flac": (0, (b"fLaC",)),
    "audio/mp4": (4, (b"ftyp",)),
    "audio/webm": (0, (b"\x1aE\xdf\xa3",)),
}
MAX_IMAGE_BYTES = 50_000_000
# PNG's code for the number of channels: grey, RGB, RGB with opacity.
_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}
# Maximum number of features of a column, and of images that the components are fitted to.
WIDTH = 100
MAX_IMAGES = 2_000
# Pixels of a side, and numbers that describe an image.
_SIDE = 16
N_PIXELS = 3 * _SIDE**2
# A small file may unpack to more than fits into memory.
_MAX_PIXELS = 80_000_000
# Separates the names of several images in a cell: front.jpg;back.jpg.
BETWEEN_FILES = ";"
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")


def media_type(data: bytes, kind: str) -> str | None:
    """Return the media type of an "image" or of "audio", or None."""
    found = (name for name, (place, begin) in _SIGNATURES.items() if data.startswith(begin, place))
    return next((name for name in found if name.startswith(kind)), None)


def read_image(root: Path, name: str) -> tuple[bytes, str]:
    """Return bytes and media type of an image; refuse a file outside the folder."""
    data = _read(_inside(root, name, "image"), MAX_IMAGE_BYTES + 1)
    kind = media_type(data, "image")
    if kind is None or len(data) > MAX_IMAGE_BYTES:
        raise FileError(f"{name!r} is not a PNG, JPEG, GIF, WebP or BMP image of at most 50 MB.")
    return data, kind


def find_sound(root: Path, name: str) -> tuple[Path, str]:
    """Return file and media type of a sound; refuse a file outside the folder."""
    path = _inside(root, name, "sound")
    kind = media_type(_read(path, 16), "audio")
    if kind is None:
        raise FileError(f"{name!r} is not a WAV, MP3, AAC, Ogg, FLAC, MP4 or WebM sound.")
    return path, kind


def _inside(root: Path, name: str, what: str) -> Path:
    with suppress(OSError, ValueError, RuntimeError):
        inside = root.resolve(strict=True)
        path = (inside / name).resolve(strict=True)
        if path.is_relative_to(inside) and path.is_file():
            return path
    raise MissingFileError(f"There is no {what} {name!r} in {root}.")


def _read(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from None


def grey_png(pixels: Array) -> bytes:
    """Return an image of numbers between 0 (white) and 1 (black), one per pixel."""
    return encode_png(np.rint(255 * (1 - np.clip(pixels, 0, 1))).astype(np.uint8))


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return an image of shape (height, width) in grey, or (height, width, 3 or 4) in colours."""
    height, width = pixels.shape[:2]
    n_colours = 1 if pixels.ndim == 2 else pixels.shape[2]
    # Each line begins with the code of its filter: none.
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[n_colours], 0, 0, 0)
    chunks = {b"IHDR": header, b"IDAT": zlib.compress(lines), b"IEND": b""}
    packed = b"\x89PNG\r\n\x1a\n"
    for name, data in chunks.items():
        check = zlib.crc32(name + data)
        packed += struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)
    return packed


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """The transformer of a column of images."""

    centre: Array  # (N_PIXELS,)
    components: Array  # (N_PIXELS, width)

    kind: ClassVar[Literal["image"]] = "image"
    unseen: ClassVar[str] = "images in column {} cannot be read and count as the mean image"

    def __post_init__(self) -> None:
        if (self.centre.shape, self.components.shape) != ((N_PIXELS,), (N_PIXELS, self.width)):
            raise InputError("Pixels of images and their components do not fit together.")

    @classmethod
    def fit(cls, where: str, cells: Sequence[str | None], root: Path, refuse: bool) -> tuple[ImageFeatures, Array]:
        """Fit to some images, and return the features of those that can be read too."""
        pixels = read_pixels(where, cells, root, refuse)
        pixels = pixels[np.isfinite(pixels[:, 0])]
        if not len(pixels):
            folder = f"Is {quoted(str(root))} the folder they are in?"
            raise InputError(f"{where}: none of the images can be read. {folder}")
        pca = PCA(min(WIDTH, len(pixels)), random_state=0).fit(pixels)
        return cls(pca.mean_, np.ascontiguousarray(pca.components_.T)), pca.transform(pixels)

    @property
    def width(self) -> int:
        """Number of features."""
        return self.components.shape[1]

    def names(self, column: str) -> list[str]:
        """Name each feature."""
        return [f"{column} {k}" for k in range(1, self.width + 1)]

    def transform(self, cells: Sequence[str | None], where: str, root: Path, refuse: bool) -> tuple[Array, int]:
        """Return features of images, 0 where one cannot be read, and how many those are."""
        features = (read_pixels(where, cells, root, refuse) - self.centre) @ self.components
        unread = np.isnan(features).any(axis=1)
        features[unread] = 0.0
        return features, int(unread.sum())


def read_pixels(where: str, cells: Sequence[str | None], root: Path, refuse: bool) -> Array:
    """Return the pixels of each cell's images, from 0 to 1; NaN if one cannot be read, or raise if ``refuse``."""
    require("PIL.Image", "images")
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        rows = list(pool.map(partial(_of_cell, root), cells))
    if refuse and (bad := [row for row in rows if isinstance(row, str)]):
        raise InputError(
            f"{where}: {len(bad):,} images cannot be read: {listed(bad, 5)}. Correct them or leave their "
            "rows out; `missing='mean'` uses the mean image, `image_root` names the folder they are in."
        )
    nothing = np.full(N_PIXELS, np.nan)
    return np.reshape([nothing if isinstance(row, str) else row for row in rows], (-1, N_PIXELS))


def is_link(name: str) -> bool:
    """Whether a cell holds a web address instead of the name of a file."""
    return name.lower().startswith(("http://", "https://"))


def _of_cell(root: Path, cell: str | None) -> Array | str:
    """Return the mean pixels of the files in a cell, or what is wrong with it."""
    names = [name.strip() for name in (cell or "").split(BETWEEN_FILES) if name.strip()]
    try:
        return np.mean([_of_file(root, name) for name in names], axis=0) if names else "an empty cell"
    except SdulearnError as error:
        return str(error).removesuffix(".")


def _of_file(root: Path, name: str) -> Array:
    if is_link(name):
        raise FileError(f"{quoted(name)} is a link: download it, or keep the column from the features with `drop`")
    image = require("PIL.Image", "images")
    data = read_image(root, name)[0]
    try:
        with image.open(io.BytesIO(data), formats=_FORMATS) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                raise ValueError(f"more than {_MAX_PIXELS:,} pixels")
            opened.draft("RGB", (2 * _SIDE, 2 * _SIDE))  # a large JPEG is decoded small
            upright = require("PIL.ImageOps", "images").exif_transpose(opened)
            small = upright.convert("RGB").resize((_SIDE, _SIDE), image.Resampling.BILINEAR)
    except Exception as error:  # Pillow raises anything on a damaged file
        raise FileError(f"{quoted(name)} cannot be read ({reason(error)})") from None
    return np.asarray(small, dtype=np.float64).ravel() / 255
