"""Dask arrays and frames: as blocks, lazy predictions, and both ends of each pair in one chunk."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from operator import getitem
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.core import flatten
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.typing import Key
from dask.utils import is_dataframe_like
from distributed import futures_of
from numpy.typing import NDArray
from scipy import sparse

from sdulearn.base import LinearClassifier
from sdulearn.blocks import as_matrix, check_lengths, make_block
from sdulearn.distributed.cluster import DaskBlocks, DaskCollection, Layer
from sdulearn.errors import InputError, require
from sdulearn.pairs import read_columns, read_pairs, scramble
from sdulearn.sklearn_private import safe_indexing
from sdulearn.solvers.linalg import joined
from sdulearn.types import Array, Frame, MatrixLike, Rows

VectorLike: TypeAlias = Any  # one value per row: a dask array, a dask Series or array-like
# A chunk of a collection: an array, a sparse matrix, a pandas frame or Series.
Chunk: TypeAlias = Any
# Rows of X, codes and weights of one block, and the target block of each row.
Bundle: TypeAlias = tuple[Chunk, ...]

# Blocks that one block is split into at a time; more blocks than this take further rounds.
WIDTH = 32


def is_frame(X: DaskCollection) -> bool:
    """Whether a dask collection is a DataFrame."""
    return is_dask_collection(X) and is_dataframe_like(X)


def dask_blocks(X: DaskCollection, y: VectorLike, sample_weight: VectorLike | None = None) -> DaskBlocks:
    """Return one block per chunk of rows of ``X``; nothing is computed."""
    columns = delayed_parts(aligned(X, y, sample_weight))
    layer = Layer("block")
    chunks = enumerate(zip(*columns, strict=True))
    keys = [layer.add(i, make_block, i, *(chunk.key for chunk in row)) for i, row in chunks]
    return DaskBlocks(layer.delayed(keys, [chunk for column in columns for chunk in column]))


def aligned(X: DaskCollection, y: VectorLike, sample_weight: VectorLike | None) -> list[DaskCollection]:
    """Return ``X`` in chunks of whole rows; ``y`` and the weights, if any, in the same chunks."""
    X = whole_rows(X)
    if is_dask_collection(y):
        # A y with columns comes in whole rows too.
        y = whole_rows(y) if y.ndim == 2 else y
    elif hasattr(y, "columns"):
        # An array has no names of columns.
        y = np.asarray(read_pairs(y))
    columns = [X, align(X, y, "y")]
    return columns if sample_weight is None else [*columns, align(X, sample_weight, "sample_weight")]


def whole_rows(X: DaskCollection) -> DaskCollection:
    """Return ``X`` with all columns in one chunk."""
    if is_frame(X):
        return X
    if not isinstance(X, da.Array):
        raise InputError(
            f"`X` is a {type(X).__name__}; rows of features come as a dask array or a dask "
            "DataFrame. dask.array.from_array and dask.dataframe.from_pandas make them."
        )
    if X.ndim != 2:
        raise InputError(f"`X` must have rows and columns, got a dask array of {X.ndim} dimension(s).")
    if X.numblocks[1] == 1:
        return X
    # Not by rechunk, which knows some sparse formats only.
    layer = Layer("rows")
    for i, keys in enumerate(X.__dask_keys__()):
        layer.add((i, 0), side_by_side, keys)
    chunks = (X.chunks[0], (sum(X.chunks[1]),))
    return da.Array(layer.graph([X]), layer.name, chunks, meta=X._meta, dtype=X.dtype)


def side_by_side(chunks: list[Rows]) -> Rows:
    """Join the columns of some rows."""
    if sparse.issparse(chunks[0]):
        return sparse.hstack(chunks, format="csr")
    return np.concatenate(chunks, axis=1)


def align(X: DaskCollection, vector: VectorLike, name: str) -> DaskCollection:
    """Return a vector in the row chunks of ``X``, of the same lengths where these are known."""
    lengths = known_lengths(X)
    if not is_dask_collection(vector):
        vector = da.from_array(np.asarray(vector), chunks=-1)
    own = known_lengths(vector)
    if lengths is not None and own is not None:
        if sum(own) != sum(lengths):
            raise InputError(f"`X` has {sum(lengths)} rows, but `{name}` has {sum(own)}. Give one for each row.")
        return vector if own == lengths else vector.rechunk({0: lengths})
    if vector.npartitions != X.npartitions:
        raise InputError(
            f"`X` comes in {X.npartitions} blocks of rows and `{name}` in {vector.npartitions}, and their lengths are "
            f"not known, so Dask cannot tell which rows belong together. Take `X` and `{name}` from one "
            "dask frame, or call compute_chunk_sizes() on the arrays (frame.to_dask_array(lengths=True) "
            "for a frame)."
        )
    return vector


def map_rows(model: LinearClassifier, method: str, X: DaskCollection) -> DaskCollection:
    """Apply a method of a fitted model to every chunk of whole rows, lazily."""
    by_class = method == "predict_proba" or (method == "decision_function" and len(model.classes_) > 2)
    columns = model.classes_.tolist() if by_class else None
    dtype = np.int64 if method == "predict" else np.float64
    empty = np.empty((0,) if columns is None else (0, len(columns)), dtype)
    if is_frame(X):
        meta = _framed(X._meta.index, empty, columns)
        return X.map_partitions(_on_partition, model, method, columns, meta=meta)
    evaluate = partial(X.map_blocks, _on_chunk, model, method, dtype=dtype, meta=empty)
    if columns is None:
        return evaluate(drop_axis=1)
    return evaluate(chunks=(X.chunks[0], (len(columns),)))


def _on_chunk(X: MatrixLike, model: LinearClassifier, method: str) -> Array:
    # Dask's chunks may be empty, which scikit-learn refuses.
    if X.shape[0]:
        return getattr(model, method)(as_matrix(X))
    return getattr(model, method)(np.zeros((1, X.shape[1])))[:0]


def _on_partition(X: Frame, model: LinearClassifier, method: str, columns: list[int] | None) -> Frame:
    return _framed(X.index, _on_chunk(X, model, method), columns)


def _framed(index: Frame, values: NDArray[np.number], columns: list[int] | None) -> Frame:
    """Return values as a Series or, one column per class, as a frame."""
    pandas = require("pandas", "dask")
    return pandas.Series(values, index) if columns is None else pandas.DataFrame(values, index, columns)


def known_lengths(collection: DaskCollection) -> tuple[int, ...] | None:
    """Return the number of rows in each chunk, or None if Dask does not know them."""
    if not isinstance(collection, da.Array) or any(math.isnan(n) for n in collection.chunks[0]):
        return None
    return collection.chunks[0]


def delayed_parts(collections: Sequence[DaskCollection]) -> list[list[Delayed]]:
    """Return the chunks of each collection along the rows; what arrays share is computed once."""
    arrays = [one for one in collections if isinstance(one, da.Array)]
    keys = [list(flatten(one.__dask_keys__())) for one in arrays]
    layer = Layer("chunk")
    if arrays:
        merged = HighLevelGraph.merge(*(one.__dask_graph__() for one in arrays))
        layer.tasks = dict(arrays[0].__dask_optimize__(merged, keys))
    # Dask leaves persisted chunks out.
    layer.tasks |= {future.key: future for future in futures_of(arrays)}
    delayed = iter([layer.delayed(some, []) for some in keys])
    return [next(delayed) if isinstance(one, da.Array) else one.to_delayed() for one in collections]


def gather_pairs(
    X: DaskCollection, y: VectorLike, sample_weight: VectorLike | None = None
) -> tuple[DaskCollection, ...]:
    """Bring both ends of each pair into one block; the same rows, in as many blocks.

    :class:`~sdulearn.distributed.PairLogisticRegression` needs its rows that way. Unlabeled rows
    and pairs that are together already stay where they are; every other end goes to a block chosen
    by its code. Nothing is computed here, and no rows pass through the client. It moves up to all
    rows of pairs between workers once for every power of 32 blocks, so keep the result
    (``dask.persist``) if you fit more than once.

    Parameters
    ----------
    X : dask array (dense or CSR chunks) or dask DataFrame of shape (n_rows, n_features)
        Rows.
    y : dask array, dask Series or array-like of shape (n_rows,)
        Pair codes: +k similar, -k dissimilar, 0 unlabeled.
    sample_weight : dask array, dask Series or array-like of shape (n_rows,), optional
        A weight per row.

    Returns
    -------
    X, y : dask collections of the kind that was given
        The rows in their new order; chunk sizes are unknown. Half a pair stays half a pair: ``fit``
        names it.
    sample_weight : dask collection
        Only where one was given.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from sdulearn.distributed import gather_pairs
    >>> X = da.from_array(np.arange(8.0).reshape(4, 2), chunks=(2, 2))
    >>> rows, codes = gather_pairs(X, da.from_array(np.array([1, -2, 1, -2]), chunks=2))
    >>> codes.compute()
    array([-2, -2,  1,  1])
    """
    columns = aligned(X, y, sample_weight)
    parts = delayed_parts(columns)
    layer = Layer("gather")
    bundles = []
    for i, row in enumerate(zip(*parts, strict=True)):
        bundles.append(layer.add(i, addressed, i, len(parts[0]), *(chunk.key for chunk in row)))
    pieces = shuffle(layer, bundles)
    # One task brings the whole layer along.
    moved = layer.delayed(bundles[:1], [chunk for column in parts for chunk in column])
    return tuple(_collection(like, k, pieces, moved) for k, like in enumerate(columns))


def addressed(number: int, n_blocks: int, X: MatrixLike, y: VectorLike, *weight: VectorLike) -> Bundle:
    """Return a block with the target block of each of its rows."""
    check_lengths(X, y, *weight)
    size = np.abs(read_columns(y)[0]) if len(y) else np.empty(0, dtype=np.int64)
    _, place, count = np.unique(size, return_inverse=True, return_counts=True)
    stays = (size == 0) | (count[place] == 2)
    target = (scramble(size) % np.uint64(n_blocks)).astype(np.intp)
    return X, y, *weight, np.where(stays, number, target)


def shuffle(layer: Layer, bundles: list[Key], width: int = WIDTH) -> list[list[Key]]:
    """Return, for each block, the keys of the pieces that make it up."""
    # Written in ``base``, the number of a row's block becomes that of its target one digit per
    # round: each round takes blocks x base pieces, where a single one would take blocks squared.
    n_blocks = len(bundles)
    rounds = next(r for r in range(1, 65) if width**r >= n_blocks)
    base = next(b for b in range(1, n_blocks + 1) if b**rounds >= n_blocks)
    at: dict[int, Key] = dict(enumerate(bundles))
    for k in range(rounds):
        step = base**k
        pieces: dict[int, list[Key]] = defaultdict(list)
        for place, bundle in at.items():
            split_bundle = layer.add(("split", k, place), split, bundle, step, base)
            for digit in range(base):
                piece = layer.add(("piece", k, place, digit), getitem, split_bundle, digit)
                pieces[place + (digit - place // step % base) * step].append(piece)
        if k < rounds - 1:
            at = {i: layer.add(("join", k, i), one_bundle, group) for i, group in pieces.items()}
    return [pieces[number] for number in range(n_blocks)]


def split(bundle: Bundle, step: int, base: int) -> list[Bundle]:
    """Split the rows of a bundle by one digit of their target block."""
    digits = bundle[-1] // step % base
    rows = [np.flatnonzero(digits == digit) for digit in range(base)]
    return [tuple(safe_indexing(column, some) for column in bundle) for some in rows]


def one_bundle(pieces: list[Bundle]) -> Bundle:
    """Join several bundles."""
    return tuple(joined_column(pieces, k) for k in range(len(pieces[0])))


def joined_column(pieces: list[Bundle], k: int) -> Chunk:
    """Join one column of several bundles."""
    parts = [piece[k] for piece in pieces]
    return require("pandas", "dask").concat(parts) if hasattr(parts[0], "iloc") else joined(parts)


def _collection(like: DaskCollection, k: int, pieces: list[list[Key]], moved: list[Delayed]) -> DaskCollection:
    """Return column ``k`` as a lazy collection of the kind of ``like``."""
    layer = Layer("gathered")
    is_array = isinstance(like, da.Array)
    zeros = (0,) * (like.ndim - 1)
    keys = []
    for i, group in enumerate(pieces):
        keys.append(layer.add((i, *zeros) if is_array else i, joined_column, group, k))
    if is_array:
        chunks = ((np.nan,) * len(keys), *like.chunks[1:])
        graph = layer.graph(moved)
        return da.Array(graph, layer.name, chunks, meta=like._meta, dtype=like.dtype)
    blocks = layer.delayed(keys, moved)
    frame = require("dask.dataframe", "dask")
    return frame.from_delayed(blocks, meta=like._meta, verify_meta=False)
