"""Dask arrays and frames as blocks: rows, pair codes and weights, chunk by chunk."""

from __future__ import annotations

import math

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.core import flatten
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.utils import is_dataframe_like
from distributed import futures_of
from numpy.typing import NDArray
from scipy import sparse

from sdulearn.blocks import Block
from sdulearn.blocks.points import known_of_rows
from sdulearn.distributed.cluster import DaskBlocks
from sdulearn.distributed.graph import DaskArray, DaskCollection, Layer, VectorLike
from sdulearn.errors import InputError
from sdulearn.pairs import read_pairs
from sdulearn.types import MatrixLike, Rows


def is_frame(X: DaskCollection) -> bool:
    """Whether a dask collection is a DataFrame."""
    return is_dask_collection(X) and is_dataframe_like(X)


def dask_blocks(X: DaskCollection, y: VectorLike, sample_weight: VectorLike | None = None) -> DaskBlocks:
    """One part per chunk of rows of ``X``; nothing is computed."""
    X, y, weight = aligned(X, y, sample_weight)
    columns = delayed_parts(X, y) if weight is None else delayed_parts(X, y, weight)
    layer = Layer("block")
    chunks = enumerate(zip(*columns, strict=True))
    keys = [layer.add(i, make_block, i, *(chunk.key for chunk in row)) for i, row in chunks]
    return DaskBlocks(layer.delayed(keys, [chunk for column in columns for chunk in column]))


def aligned(
    X: DaskCollection, y: VectorLike, sample_weight: VectorLike | None = None
) -> tuple[DaskCollection, DaskCollection, DaskCollection | None]:
    """``X`` with whole rows in each chunk; ``y`` and the weights with the row chunks of ``X``."""
    X = whole_rows(X)
    weight = None if sample_weight is None else align(X, sample_weight, "sample_weight")
    # An array has no names by which its columns could be told.
    known = align(X, read_pairs(y).table if hasattr(y, "columns") and not is_dask_collection(y) else y, "y")
    # A table of what is known comes in whole rows too.
    return X, whole_rows(known) if getattr(known, "ndim", 1) == 2 else known, weight


def whole_rows(X: DaskCollection) -> DaskCollection:
    """``X`` with all columns in one chunk."""
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
    # Not rechunk, which knows some sparse formats only.
    layer = Layer("rows")
    for i, keys in enumerate(X.__dask_keys__()):
        layer.add((i, 0), side_by_side, keys)
    chunks = (X.chunks[0], (sum(X.chunks[1]),))
    return da.Array(layer.graph([X]), layer.name, chunks, meta=X._meta, dtype=X.dtype)


def side_by_side(chunks: list[Rows]) -> Rows:
    """All columns of some rows."""
    if sparse.issparse(chunks[0]):
        return sparse.hstack(chunks, format="csr")
    return np.concatenate(chunks, axis=1)


def align(X: DaskCollection, vector: VectorLike, name: str) -> DaskCollection:
    """A vector with one chunk per chunk of rows of ``X``, of the same lengths where known."""
    lengths = known_lengths(X)
    n_blocks = number_of_blocks(X)
    if not is_dask_collection(vector):
        return _cut(np.asarray(vector), lengths, n_blocks, name)
    own = known_lengths(vector)
    if lengths is not None and own is not None:
        _check_total(name, sum(own), sum(lengths))
        return vector if own == lengths else vector.rechunk({0: lengths})
    if number_of_blocks(vector) != n_blocks:
        raise InputError(
            f"`X` comes in {n_blocks} blocks of rows and `{name}` in {number_of_blocks(vector)}, and "
            "their lengths are not known, so Dask cannot tell which rows belong together. Take `X` and "
            f"`{name}` from one dask frame, or call compute_chunk_sizes() on the arrays "
            "(frame.to_dask_array(lengths=True) for a frame)."
        )
    return vector


def _check_total(name: str, found: int, n_rows: int) -> None:
    if found != n_rows:
        raise InputError(f"`X` has {n_rows} rows, but `{name}` has {found}. Give one for each row.")


def known_lengths(collection: DaskCollection) -> tuple[int, ...] | None:
    """Rows in each chunk, or None where Dask does not know them."""
    if not isinstance(collection, da.Array) or any(math.isnan(n) for n in collection.chunks[0]):
        return None
    return collection.chunks[0]


def number_of_blocks(collection: DaskCollection) -> int:
    """Chunks or partitions along the rows."""
    if isinstance(collection, da.Array):
        return int(collection.numblocks[0])
    return int(collection.npartitions)


def _cut(vector: NDArray[np.generic], lengths: tuple[int, ...] | None, n_blocks: int, name: str) -> DaskArray:
    """A plain vector, cut like ``X``."""
    if lengths is None and n_blocks == 1:
        return da.from_array(vector, chunks=-1)
    if lengths is None:
        raise InputError(
            f"`{name}` is a plain array, but the lengths of the blocks of `X` are not known, so Dask "
            f"cannot tell which rows belong together. Keep `{name}` in the same dask frame as `X`, or "
            "call X.compute_chunk_sizes() on an array (frame.to_dask_array(lengths=True) for a frame)."
        )
    _check_total(name, len(vector), sum(lengths))
    return da.from_array(vector, chunks=(lengths, *((n,) for n in vector.shape[1:])))


def delayed_parts(*collections: DaskCollection) -> list[list[Delayed]]:
    """The chunks of each collection along the rows, as Delayed objects."""
    arrays = iter(_delayed_arrays([one for one in collections if isinstance(one, da.Array)]))
    return [next(arrays) if isinstance(one, da.Array) else one.to_delayed() for one in collections]


def _delayed_arrays(arrays: list[DaskArray]) -> list[list[Delayed]]:
    """Chunks of arrays that are optimised together, so that what they share is computed once."""
    if not arrays:
        return []
    keys = [list(flatten(one.__dask_keys__())) for one in arrays]
    merged = HighLevelGraph.merge(*(one.__dask_graph__() for one in arrays))
    layer = Layer("chunk")
    layer.tasks = dict(arrays[0].__dask_optimize__(merged, keys))
    # Persisted chunks, which Dask leaves out.
    layer.tasks |= {future.key: future for future in futures_of(arrays)}
    return [layer.delayed(some, []) for some in keys]


def make_block(number: int, X: MatrixLike, y: VectorLike, weight: VectorLike | None = None) -> list[Block]:
    """A block from a chunk of each; none where it has no rows."""
    check_lengths(number, X, y=y, sample_weight=weight)
    if not X.shape[0]:
        return []
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64).reshape(-1)
    return [(as_matrix(X), known_of_rows(y, number), weight)]


def check_lengths(number: int, X: MatrixLike, **vectors: VectorLike) -> None:
    """What Dask could not check before it had the chunks."""
    for name, vector in vectors.items():
        if vector is not None and len(vector) != X.shape[0]:
            raise InputError(
                f"Block {number} has {X.shape[0]} rows in `X`, but {len(vector)} in `{name}`. Both need "
                f"the same rows in the same blocks: take `X` and `{name}` from one dask frame, or give "
                "arrays of known chunk sizes."
            )


def as_matrix(X: MatrixLike) -> Rows:
    """Features of a chunk: CSR where it is sparse, float32 where it is that, else float64."""
    matrix = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if matrix.dtype in (np.float32, np.float64):
        return matrix
    try:
        return matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"`X` holds values that are not numbers ({error}). Encode or drop those columns.") from None
