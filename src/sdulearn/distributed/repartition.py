"""Both ends of each pair into one block: what the joint likelihood needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import getitem
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from dask.typing import Key
from scipy import sparse

from sdulearn.distributed.align import aligned, check_lengths, delayed_parts, number_of_blocks
from sdulearn.distributed.graph import DaskCollection, Layer, VectorLike
from sdulearn.extras import require
from sdulearn.pairs import integer_codes, scramble
from sdulearn.types import Indices, MatrixLike

Chunk: TypeAlias = Any
"""A chunk of a collection: an array, a sparse matrix, a pandas frame or Series."""
Bundle: TypeAlias = tuple[Chunk, ...]
"""Rows of X, codes and weights of one block, and the block that each row should go to."""

# Blocks that one block is split into at a time; more blocks than this take further rounds.
WIDTH = 32


def gather_pairs(
    X: DaskCollection, y: VectorLike, sample_weight: VectorLike | None = None
) -> tuple[DaskCollection, ...]:
    """Bring both ends of each pair into one block; the same rows, in as many blocks.

    :class:`~sdulearn.distributed.PairLogisticRegression` needs its rows that way. Unlabeled rows
    and pairs that are together already stay where they are; every other end goes to the block that
    its code says. Nothing is computed here, and no rows pass through the client. It moves up to all
    rows of pairs between workers once for every power of 32 blocks, so keep what it gives
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

    See Also
    --------
    PairLogisticRegression : Needs its rows so.

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
    X, y, weight = aligned(X, y, sample_weight)
    columns = [X, y] if weight is None else [X, y, weight]
    parts = delayed_parts(*columns)
    layer = Layer("gather")
    n_blocks = number_of_blocks(X)
    bundles = []
    for i, row in enumerate(zip(*parts, strict=True)):
        bundles.append(layer.add(i, addressed, i, n_blocks, *(chunk.key for chunk in row)))
    pieces = shuffle(layer, bundles)
    # One task brings the whole layer along.
    moved = layer.delayed(bundles[:1], [chunk for column in parts for chunk in column])
    return tuple(_collection(like, k, pieces, moved) for k, like in enumerate(columns))


def addressed(number: int, n_blocks: int, X: MatrixLike, y: VectorLike, *weight: VectorLike) -> Bundle:
    """A block with the number of the block that each of its rows should go to."""
    check_lengths(number, X, y=y, sample_weight=weight[0] if weight else None)
    size = np.abs(integer_codes(y)) if len(y) else np.empty(0, dtype=np.int64)
    _, place, count = np.unique(size, return_inverse=True, return_counts=True)
    stays = (size == 0) | (count[place] == 2)
    target = (scramble(size) % np.uint64(n_blocks)).astype(np.intp)
    return X, y, *weight, np.where(stays, number, target)


def shuffle(layer: Layer, bundles: list[Key], width: int = WIDTH) -> list[list[Key]]:
    """For each block the keys of the pieces that make it up.

    Written with ``base`` digits, the number of the block that a row is in turns into the number of
    the one it should be in, one digit a round. That takes blocks x base pieces a round, where one
    round would take blocks squared.
    """
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
            at = {i: layer.add(("join", k, i), joined, group) for i, group in pieces.items()}
    return [pieces[number] for number in range(n_blocks)]


def split(bundle: Bundle, step: int, base: int) -> list[Bundle]:
    """The rows of a bundle by one digit of the block that they should go to."""
    digits = bundle[-1] // step % base
    rows = [np.flatnonzero(digits == digit) for digit in range(base)]
    return [tuple(_take(column, some) for column in bundle) for some in rows]


def joined(pieces: list[Bundle]) -> Bundle:
    """One bundle of several."""
    return tuple(_stack(column) for column in zip(*pieces, strict=True))


def joined_column(pieces: list[Bundle], k: int) -> Chunk:
    """One column of the bundle of several."""
    return _stack([piece[k] for piece in pieces])


def _take(column: Chunk, rows: Indices) -> Chunk:
    return column.iloc[rows] if hasattr(column, "iloc") else column[rows]


def _stack(columns: Sequence[Chunk]) -> Chunk:
    first = columns[0]
    if hasattr(first, "iloc"):
        return require("pandas", "dask").concat(columns)
    if sparse.issparse(first):
        return sparse.vstack(columns, format="csr")
    return np.concatenate(columns)


def _collection(like: DaskCollection, k: int, pieces: list[list[Key]], moved: list[Delayed]) -> DaskCollection:
    """Column ``k`` as a lazy collection of the kind of ``like``."""
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
