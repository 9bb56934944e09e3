"""Columns of texts as sentence embeddings: vectors of a pretrained model, by sentence-transformers.

A model file holds the name of the text model and a checksum of its vectors, never its weights. No code that comes with
a text model is run, and no weights are read but those in safetensors.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from sdulearn.errors import InputError, quoted, reason, require
from sdulearn.progress import long_work, steps
from sdulearn.tables.features import LONGEST_TEXT
from sdulearn.types import Array

# Texts that are encoded at a time.
_AT_ONCE = 256
# Texts that decide the scale of the features.
_FITTED = 2_000
# Texts in a checksum, their longest part, and how far it may be off on another machine.
_CHECKED, _CHECKED_LONGEST, _TOLERANCE = 10, 200, 1e-3
# Further digits of a vector depend on which other texts are encoded with it.
_DIGITS = 5
# Files that hold neither code nor pickled weights.
_SAFE_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_OWN = "sentence_transformers."
# Models of several threads share the processor, and progress bars would mix.
_encoding = threading.Lock()


@dataclass(frozen=True, eq=False)
class EmbeddedTexts:
    """The transformer of a column of texts into vectors of a text model."""

    model: str  # name or folder
    width: int  # numbers of a vector
    texts: tuple[str, ...]  # some texts of training
    checksum: tuple[float, ...]  # one number for the vector of each
    may_download: bool = field(default=False, compare=False)  # whether the user has named the model now

    kind: ClassVar[Literal["text"]] = "text"
    unseen: ClassVar[str] = "texts in column {} are empty"

    def __post_init__(self) -> None:
        if self.width < 1 or len(self.texts) != len(self.checksum) or not self.texts:
            raise InputError("The checksum of a text model does not fit its texts.")

    @classmethod
    def fit(cls, where: str, model: str, texts: Sequence[str | None]) -> tuple[EmbeddedTexts, Array]:
        """Return the transformer, and the vectors of some of the texts; ``where`` names them in an error."""
        some = [text for text in texts[:_FITTED] if (text or "").strip()]
        if not some:
            raise InputError(f"{where} has no texts. Leave it out with `drop`.")
        checked = tuple(dict.fromkeys(_cut(text, _CHECKED_LONGEST) for text in some))[:_CHECKED]
        vectors = encoded(model, True, checked)
        fitted = cls(model, vectors.shape[1], checked, tuple(_checksum(vectors)), True)
        return fitted, fitted.transform(some)[0]

    def names(self, column: str) -> list[str]:
        """Name each feature."""
        return [f"{column} {k}" for k in range(1, self.width + 1)]

    def transform(self, texts: Sequence[str | None]) -> tuple[Array, int]:
        """Return vectors of texts, and 0: no text is unknown; a gap is an empty text."""
        _check(self.model, self.may_download, self.texts, self.checksum)
        return encoded(self.model, self.may_download, [_cut(text, LONGEST_TEXT) for text in texts]), 0


def _cut(text: str | None, longest: int) -> str:
    return (text or "").strip()[:longest]


def _checksum(vectors: Array) -> list[float]:
    """Return the component of each vector along a fixed direction."""
    direction = np.cos(np.arange(1, vectors.shape[1] + 1))
    return np.round(vectors @ direction, 6).tolist()


@lru_cache(maxsize=16)
def _check(model: str, may_download: bool, texts: tuple[str, ...], checksum: tuple[float, ...]) -> None:
    """Refuse a text model whose vectors are not those of training."""
    if not np.allclose(_checksum(encoded(model, may_download, texts)), checksum, atol=_TOLERANCE):
        raise InputError(
            f"The text model {quoted(model)} is not the one that this model was fitted with: its vectors of "
            f"{len(texts)} training texts differ. Name the right one with `text_model`, or fit again."
        )


@long_work
def encoded(model: str, may_download: bool, texts: Sequence[str]) -> Array:
    """Return the unit vectors of texts, of which equal ones are encoded once."""
    loaded = load_text_model(model, may_download)
    distinct, place = np.unique(np.array(texts, dtype=object), return_inverse=True)
    # Texts of one length waste no padding.
    order = np.argsort([len(text) for text in distinct], kind="stable")
    vectors = np.zeros((len(distinct), _width(loaded)))
    with _encoding, _quiet():
        for begin in steps(range(0, len(order), _AT_ONCE), "texts"):
            batch = order[begin : begin + _AT_ONCE]
            found = loaded.encode(distinct[batch].tolist(), normalize_embeddings=True, show_progress_bar=False)
            vectors[batch] = np.round(np.asarray(found, dtype=np.float64), _DIGITS)
    return vectors[place]


def _width(loaded: Any) -> int:
    # Earlier versions have another name for it.
    name = "get_embedding_dimension"
    return int(getattr(loaded, name if hasattr(loaded, name) else "get_sentence_embedding_dimension")())


@lru_cache(maxsize=2)
def load_text_model(model: str, may_download: bool) -> Any:
    """Load a text model from a folder, or by its name from the cache or, if it may be, the hub."""
    with _quiet():
        library = require("sentence_transformers", "embeddings")
    with _quiet():
        folder = Path(model)
        if not folder.is_dir():
            folder = _downloaded(model, may_download)
        _check_safe(model, folder)
        options: dict[str, Any] = {"model_kwargs": {"use_safetensors": True}, "local_files_only": True}
        try:
            return library.SentenceTransformer(str(folder), trust_remote_code=False, **options)
        except Exception as error:  # libraries below raise anything
            raise InputError(f"The text model {quoted(model)} cannot be loaded: {reason(error)}.") from None


def _downloaded(model: str, may_download: bool) -> Path:
    """Return the folder of a model of the hub."""
    if model.startswith((".", "/", "~")) or "\\" in model:
        raise InputError(f"There is no folder {quoted(model)} with a text model: correct `text_model`.")
    name = model if "/" in model else f"sentence-transformers/{model}"
    try:
        hub = require("huggingface_hub", "embeddings")
        return Path(hub.snapshot_download(name, local_files_only=not may_download, allow_patterns=list(_SAFE_FILES)))
    except Exception as error:  # no network, no such model, no right to read it
        fetch = f"python -c \"import huggingface_hub as h; h.snapshot_download('{name}')\""
        raise InputError(
            f"The text model {quoted(model)} is not on this machine and cannot be loaded ({reason(error)}). Name it "
            f"with `text_model` where there is a network, run {fetch}, or give the folder of a copy."
        ) from None


def _check_safe(model: str, folder: Path) -> None:
    """Refuse a model with code of its own, or with pickled weights alone."""
    modules = folder / "modules.json"
    try:
        kinds = [str(module["type"]) for module in json.loads(modules.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, KeyError):
        raise InputError(f"{quoted(str(folder))} has no model of sentence-transformers: no modules.json.") from None
    if own := [kind for kind in kinds if not kind.startswith(_OWN)]:
        raise InputError(f"The text model {quoted(model)} brings code of its own ({own[0]}), which is not run.")
    for path in folder.rglob("*"):
        if path.suffix in _PICKLES and not any(path.parent.glob("*.safetensors")):
            raise InputError(
                f"The text model {quoted(model)} has weights in {path.name} alone, which may contain code. Use a model "
                "with weights in .safetensors."
            )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the bars of loading and the warnings of the libraries below, also about forks."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "transformers" in sys.modules:
            sys.modules["transformers"].utils.logging.disable_progress_bar()
        yield
