"""Images and sounds: files that are safe to show, and PNG files of arrays."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import FileError, MissingFileError
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
# Separates the names of several images in a cell: front.jpg;back.jpg.
BETWEEN_FILES = ";"


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


def is_link(name: str) -> bool:
    """Whether a cell holds a web address instead of the name of a file."""
    return name.lower().startswith(("http://", "https://"))
