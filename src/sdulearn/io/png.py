"""Pictures from numbers, as PNG files."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

# The format's number for each count of colours a pixel: grey, red-green-blue, and that with opacity.
_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}


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
