"""Features by contrast: an encoder that learns from the rows of the table, before the answers tell the classes.

``embedding="contrastive"``: each column of images is encoded from its pixels; without any, all features together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from sdulearn.errors import InputError, quoted
from sdulearn.tables.features import N_PIXELS, SIDE, read_pixels
from sdulearn.types import Array, Estimator

# Images that an encoder learns from. More than 16 x 16 pixels of each take hours without a GPU.
_MAX_IMAGES = 10_000
_N_COMPONENTS = 64


@dataclass(frozen=True, eq=False)
class EncodedImages:
    """The transformer of a column of images by an encoder that has learned from them."""

    encoder: Estimator  # a fitted ContrastiveEncoder

    kind: ClassVar[Literal["image"]] = "image"
    unseen: ClassVar[str] = "images in column {} cannot be read and count as the mean image"

    def __post_init__(self) -> None:
        if self.encoder.n_features_in_ != N_PIXELS or tuple(self.encoder.image_shape) != (3, SIDE, SIDE):
            raise InputError("The encoder of images does not fit their pixels.")

    @classmethod
    def fit(cls, where: str, cells: Sequence[str | None], root: Path, refuse: bool) -> tuple[EncodedImages, Array]:
        """Learn from some images, and return the features of those that can be read too."""
        pixels = _by_channel(read_pixels(where, cells[:_MAX_IMAGES], root, refuse))
        pixels = pixels[np.isfinite(pixels[:, 0])]
        if not len(pixels):
            folder = f"Is {quoted(str(root))} the folder they are in?"
            raise InputError(f"{where}: none of the images can be read. {folder}")
        encoder = new_encoder(image_shape=(3, SIDE, SIDE)).fit(pixels)
        return cls(encoder), encoder.transform(pixels).astype(np.float64)

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.encoder.components_)

    def names(self, column: str) -> list[str]:
        """Name each feature."""
        return [f"{column} {k}" for k in range(1, self.width + 1)]

    def transform(self, cells: Sequence[str | None], where: str, root: Path, refuse: bool) -> tuple[Array, int]:
        """Return features of images, 0 where one cannot be read, and how many those are."""
        pixels = _by_channel(read_pixels(where, cells, root, refuse))
        read = np.isfinite(pixels[:, 0])
        features = np.zeros((len(pixels), self.width))
        if read.any():
            features[read] = self.encoder.transform(pixels[read])
        return features, int(np.sum(~read))


def _by_channel(pixels: Array) -> Array:
    """Return pixels in the order that convolutions take: channels, rows, columns."""
    return pixels.reshape(-1, SIDE, SIDE, 3).transpose(0, 3, 1, 2).reshape(len(pixels), -1)


def new_encoder(**parameters: Any) -> Estimator:
    """Return an encoder that has not learned yet; torch is imported when it does."""
    from sdulearn.torch.encoder import ContrastiveEncoder

    return ContrastiveEncoder(n_components=_N_COMPONENTS, **parameters)
