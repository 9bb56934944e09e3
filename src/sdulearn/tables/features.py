"""Columns of texts and images as features.

Texts: TF-IDF of words and of pieces of words, then a truncated SVD. Images: principal components of 16 x 16 pixels.
scikit-learn computes all of it. Terms and plain arrays are kept, so that a model file needs no pickle and a loaded
model equals the saved one to the last bit.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.extmath import randomized_svd

from sdulearn.errors import FileError, InputError, SdulearnError, listed, quoted, reason, require
from sdulearn.io.media import BETWEEN_FILES, is_link, read_image
from sdulearn.types import Array

# Most features of a column; on short texts of ten classes more add little, and cost time.
WIDTH = 150
# Most terms of each kind.
_TERMS = 10_000
# Characters of a text that are used, and texts that are transformed at a time.
LONGEST_TEXT = 20_000
_AT_ONCE = 2_000
# Number of texts from which on a term must be in two of them.
_MANY = 100
# Components that are this much shorter than the longest are rounding errors.
_ROUNDING = 1e-6
_LIKE: dict[str, Any] = {"sublinear_tf": True, "lowercase": True}
_WORDS = {**_LIKE, "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"}
_PIECES = {**_LIKE, "ngram_range": (3, 4), "analyzer": "char_wb"}


# Maximum number of features of a column, and of images that the components are fitted to.
IMAGE_WIDTH = 100
MAX_IMAGES = 2_000
# Pixels of a side, and numbers that describe an image.
SIDE = 16
N_PIXELS = 3 * SIDE**2
# A small file may unpack to more than fits into memory.
_MAX_PIXELS = 80_000_000
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")


@dataclass(frozen=True, eq=False)
class TextFeatures:
    """The transformer of a column of texts."""

    words: tuple[str, ...]  # words, and pairs of adjacent words
    pieces: tuple[str, ...]  # three and four characters within a word
    weights: Array  # (n_terms,), inverse document frequencies
    components: Array  # (n_terms, width)

    kind: ClassVar[Literal["text"]] = "text"
    unseen: ClassVar[str] = "texts in column {} have no word in common with those of training"

    def __post_init__(self) -> None:
        terms = len(self.words) + len(self.pieces)
        if self.weights.shape != (terms,) or self.components.ndim != 2 or len(self.components) != terms:
            raise InputError("Terms of texts and their weights do not fit together.")
        if not terms or len(set(self.words)) + len(set(self.pieces)) < terms:
            raise InputError("Texts have no terms, or two of them are alike.")

    @classmethod
    def fit(cls, where: str, texts: Sequence[str | None]) -> tuple[TextFeatures, Array]:
        """Fit to some texts, and return their features too; ``where`` names them in an error."""
        cut = _cut(texts)
        words, of_words = _terms(_WORDS, cut)
        pieces, of_pieces = _terms(_PIECES, cut)
        if not words + pieces:
            raise InputError(f"{where} has no words, or none that is in two of its texts. Leave it out with `drop`.")
        weights = np.concatenate([of_words, of_pieces])
        rows = cls(words, pieces, weights, np.empty((len(weights), 0))).terms_of(cut)
        _, lengths, axes = randomized_svd(rows, max(1, min(WIDTH, min(rows.shape) - 1)), random_state=0)
        # Texts that are alike have fewer directions; the others hold rounding errors.
        axes = axes[: max(1, int(np.sum(lengths > _ROUNDING * lengths[0])))]
        fitted = cls(words, pieces, weights, np.ascontiguousarray(axes.T))
        return fitted, rows @ fitted.components

    @property
    def width(self) -> int:
        """Number of features."""
        return self.components.shape[1]

    def names(self, column: str) -> list[str]:
        """Name each feature by the words with the largest weights."""
        words = np.array((*self.words, *self.pieces), dtype=object)
        top = np.argsort(-np.abs(self.components[: len(self.words) or None]), axis=0, kind="stable")[:3]
        return [f"{column} {k} ({', '.join(words[top[:, k - 1]])})" for k in range(1, self.width + 1)]

    def transform(self, texts: Sequence[str | None]) -> tuple[Array, int]:
        """Return features of texts, and how many have no known term; a gap is an empty text."""
        pieces = [np.empty((0, self.width))]
        n_unknown = 0
        for begin in range(0, len(texts), _AT_ONCE):
            cut = _cut(texts[begin : begin + _AT_ONCE])
            rows = self.terms_of(cut)
            n_unknown += int(np.sum(np.diff(rows.indptr)[[k for k, text in enumerate(cut) if text.strip()]] == 0))
            pieces.append(rows @ self.components)
        return np.concatenate(pieces), n_unknown

    def terms_of(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """Return weighted terms, each kind normalised to length 1."""
        return sparse.hstack([vectorizer.transform(texts) for vectorizer in self._vectorizers], format="csr")

    @cached_property
    def _vectorizers(self) -> list[TfidfVectorizer]:
        vectorizers = []
        of_words, of_pieces = np.split(self.weights, [len(self.words)])
        for settings, terms, weights in ((_WORDS, self.words, of_words), (_PIECES, self.pieces, of_pieces)):
            if terms:
                vectorizers.append(TfidfVectorizer(**settings, vocabulary=terms))
                vectorizers[-1].idf_ = weights
        return vectorizers


def _terms(settings: Mapping[str, Any], texts: Sequence[str]) -> tuple[tuple[str, ...], Array]:
    """Return the terms of one kind in texts, and their weights."""
    vectorizer = TfidfVectorizer(**settings, min_df=2 if len(texts) >= _MANY else 1, max_features=_TERMS)
    try:
        vectorizer.fit(texts)
    except ValueError:
        return (), np.empty(0)
    return tuple(vectorizer.get_feature_names_out().tolist()), vectorizer.idf_


def _cut(texts: Sequence[str | None]) -> list[str]:
    return [(text or "")[:LONGEST_TEXT] for text in texts]


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
        pca = PCA(min(IMAGE_WIDTH, len(pixels)), random_state=0).fit(pixels)
        width = max(1, int(np.sum(pca.singular_values_ > _ROUNDING * pca.singular_values_[0])))
        return cls(pca.mean_, np.ascontiguousarray(pca.components_[:width].T)), pca.transform(pixels)[:, :width]

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
            opened.draft("RGB", (2 * SIDE, 2 * SIDE))  # a large JPEG is decoded small
            upright = require("PIL.ImageOps", "images").exif_transpose(opened)
            small = upright.convert("RGB").resize((SIDE, SIDE), image.Resampling.BILINEAR)
    except Exception as error:  # Pillow raises anything on a damaged file
        raise FileError(f"{quoted(name)} cannot be read ({reason(error)})") from None
    return np.asarray(small, dtype=np.float64).ravel() / 255
