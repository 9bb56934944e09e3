"""Pictures and sounds: files within one folder that are safe to show, and PNG files made from numbers."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sdulearn.errors import FileError, MissingFileError
from sdulearn.types import Array

# By the bytes at a place, whatever their name. SVG is not among them: it can hold scripts.
_SIGNATURES = {
    (0, b"\x89PNG\r\n\x1a\n"): "image/png",
    (0, b"\xff\xd8\xff"): "image/jpeg",
    (0, b"GIF87a"): "image/gif",
    (0, b"GIF89a"): "image/gif",
    (8, b"WEBP"): "image/webp",
    (0, b"BM"): "image/bmp",
    (8, b"WAVE"): "audio/wav",
    (0, b"ID3"): "audio/mpeg",
    (0, b"\xff\xfb"): "audio/mpeg",
    (0, b"\xff\xf3"): "audio/mpeg",
    (0, b"\xff\xf2"): "audio/mpeg",
    (0, b"\xff\xf1"): "audio/aac",
    (0, b"\xff\xf9"): "audio/aac",
    (0, b"OggS"): "audio/ogg",
    (0, b"fLaC"): "audio/flac",
    (4, b"ftyp"): "audio/mp4",
    (0, b"\x1aE\xdf\xa3"): "audio/webm",
}
MAX_IMAGE_BYTES = 50_000_000
# The format's number for each count of colours a pixel: grey, red-green-blue, and that with opacity.
_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}


def media_type(data: bytes, kind: str) -> str | None:
    """The type of an "image" or of "audio"; None for all else."""
    found = (name for (place, begin), name in _SIGNATURES.items() if data.startswith(begin, place))
    return next((name for name in found if name.startswith(kind)), None)


def read_image(root: Path, name: str) -> tuple[bytes, str]:
    """A picture's bytes and media type; refused where the file lies outside the folder, by whatever way."""
    data = _read(_inside(root, name, "picture"), MAX_IMAGE_BYTES + 1)
    kind = media_type(data, "image")
    if kind is None or len(data) > MAX_IMAGE_BYTES:
        raise FileError(f"{name!r} is not a PNG, JPEG, GIF, WebP or BMP picture of at most 50 MB.")
    return data, kind


def find_sound(root: Path, name: str) -> tuple[Path, str]:
    """The file of a sound and its media type; refused as pictures are."""
    path = _inside(root, name, "sound")
    kind = media_type(_read(path, 16), "audio")
    if kind is None:
        raise FileError(f"{name!r} is not a WAV, MP3, AAC, Ogg, FLAC, MP4 or WebM sound.")
    return path, kind


def _inside(root: Path, name: str, what: str) -> Path:
    try:
        inside = root.resolve(strict=True)
        path = (inside / name).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        raise MissingFileError(f"There is no {what} {name!r} in {root}.") from None
    if not path.is_relative_to(inside) or not path.is_file():
        raise MissingFileError(f"There is no {what} {name!r} in {root}.")
    return path


def _read(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from None


def grey_png(pixels: Array) -> bytes:
    """A picture from numbers between 0 (white) and 1 (black), one a pixel."""
    return encode_png(np.rint(255 * (1 - np.clip(pixels, 0, 1))).astype(np.uint8))


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """A picture of shape (height, width) in grey, or (height, width, 3 or 4) in colours."""
    height, width = pixels.shape[:2]
    n_colours = 1 if pixels.ndim == 2 else pixels.shape[2]
    # Each line begins with the number of its filter: none.
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[n_colours], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines)) + _chunk(b"IEND", b"")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
