"""A column of pictures as features: colours and gradients in a grid of cells, then principal components."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from sklearn.decomposition import PCA

from sdulearn.errors import FileError, InputError, SdulearnError, listed, quoted, reason, require
from sdulearn.io.images import read_image
from sdulearn.types import Array

# Features of a column, at most, and pictures that they are found by.
WIDTH = 100
MOST_PICTURES = 2_000
# Pixels of a side, and cells that gradients and colours are summed up in.
_SIDE = 64
_CELLS = 8
_COLOUR_CELLS = 4
_ANGLES = 9
# A file of a few bytes may unpack to more than the memory holds.
_MOST_PIXELS = 80_000_000
# Between the names of several pictures in one cell.
BETWEEN_FILES = ";"
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
N_DESCRIPTORS = _CELLS**2 * _ANGLES + _COLOUR_CELLS**2 * 6


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """How pictures become features."""

    centre: Array  # (n_descriptors,)
    components: Array  # (n_descriptors, width)

    kind: ClassVar[Literal["image"]] = "image"
    unseen: ClassVar[str] = "pictures in column {} cannot be read and count as the mean picture"

    def __post_init__(self) -> None:
        if self.centre.shape != (N_DESCRIPTORS,) or self.components.ndim != 2 or len(self.components) != N_DESCRIPTORS:
            raise InputError("Descriptors of pictures and their components do not fit together.")

    @classmethod
    def fit(cls, where: str, cells: Sequence[str | None], root: Path, refuse: bool) -> tuple[ImageFeatures, Array]:
        """By some pictures, with the features of those that can be read; see :func:`descriptors`."""
        found = descriptors(where, cells, root, refuse)
        found = found[np.isfinite(found[:, 0])]
        if not len(found):
            raise InputError(
                f"{where}: none of the pictures can be read. Is {quoted(str(root))} the folder they are in?"
            )
        pca = PCA(min(WIDTH, len(found)), random_state=0).fit(found)
        return cls(pca.mean_, np.ascontiguousarray(pca.components_.T)), pca.transform(found)

    @property
    def width(self) -> int:
        """Number of features."""
        return self.components.shape[1]

    def names(self, column: str) -> list[str]:
        """A name for each feature."""
        return [f"{column} {k}" for k in range(1, self.width + 1)]

    def transform(self, cells: Sequence[str | None], where: str, root: Path, refuse: bool) -> tuple[Array, int]:
        """Features of pictures, 0 as of the mean picture where one cannot be read, and how many those are."""
        found = (descriptors(where, cells, root, refuse) - self.centre) @ self.components
        unread = np.isnan(found).any(axis=1)
        found[unread] = 0.0
        return found, int(unread.sum())


def descriptors(where: str, cells: Sequence[str | None], root: Path, refuse: bool) -> Array:
    """Colours and gradients of picture files within a folder; NaN where one cannot be read, or an error.

    A cell may name several pictures of one thing: ``front.jpg;back.jpg``.
    """
    require("PIL.Image", "images")
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        found = list(pool.map(partial(_of_cell, root), cells))
    if refuse and (bad := [reason for reason in found if isinstance(reason, str)]):
        raise InputError(
            f"{where}: {len(bad):,} pictures cannot be read: {listed(bad, 5)}. Correct them or leave their rows out; "
            "`missing='mean'` takes the mean picture for them, `image_root` names the folder they are in."
        )
    nothing = np.full(N_DESCRIPTORS, np.nan)
    return np.array([nothing if isinstance(one, str) else one for one in found]).reshape(-1, N_DESCRIPTORS)


def is_link(name: str) -> bool:
    """Whether a cell holds an address instead of a file."""
    return name.lower().startswith(("http://", "https://"))


def _of_cell(root: Path, cell: str | None) -> Array | str:
    """Mean descriptors of the files in a cell, or what is wrong with it."""
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
            if opened.width * opened.height > _MOST_PIXELS:
                raise ValueError(f"more than {_MOST_PIXELS:,} pixels")
            opened.draft("RGB", (2 * _SIDE, 2 * _SIDE))  # a large JPEG is decoded small
            upright = require("PIL.ImageOps", "images").exif_transpose(opened)
            small = upright.convert("RGB").resize((_SIDE, _SIDE), image.Resampling.BILINEAR)
    except Exception as error:  # Pillow raises anything on a damaged file
        raise FileError(f"{quoted(name)} cannot be read ({reason(error)})") from None
    return describe(np.asarray(small, dtype=np.float64) / 255)


def describe(pixels: Array) -> Array:
    """Descriptors of a picture of shape (64, 64, 3) with values from 0 to 1.

    Of each of 8 x 8 cells a histogram of the directions of its gradients, relative to those around it, as
    Dalal and Triggs have it; of each of 4 x 4 cells mean and deviation of three colours.
    """
    grey = np.sqrt(pixels.mean(axis=2))
    down, right = np.gradient(grey)
    size = np.hypot(down, right)
    # Each gradient counts for the two directions it lies between.
    angle = (np.arctan2(down, right) % np.pi) * (_ANGLES / np.pi)
    low = np.floor(angle).astype(np.intp)
    cell = np.arange(_SIDE) * _CELLS // _SIDE
    place = (cell[:, None] * _CELLS + cell) * _ANGLES
    gradients = np.zeros(_CELLS**2 * _ANGLES)
    for bin_, share in ((low, 1 - (angle - low)), (low + 1, angle - low)):
        gradients += np.bincount((place + bin_ % _ANGLES).ravel(), (size * share).ravel(), len(gradients))
    cells = gradients.reshape(_CELLS, _CELLS, _ANGLES)
    energy = np.pad(np.square(cells).sum(axis=2), 1)
    around = sum(energy[i : i + _CELLS, j : j + _CELLS] for i in range(3) for j in range(3))
    relative = np.minimum(cells / np.sqrt(around + 1e-2)[:, :, None], 0.5)
    side = _SIDE // _COLOUR_CELLS
    blocks = pixels.reshape(_COLOUR_CELLS, side, _COLOUR_CELLS, side, 3)
    colours = np.concatenate([blocks.mean(axis=(1, 3)), blocks.std(axis=(1, 3))], axis=2)
    return np.concatenate([relative.ravel(), colours.ravel()])
