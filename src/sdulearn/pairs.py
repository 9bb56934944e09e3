"""Pair codes: one integer per row says which row is an end of which pair.

``+k`` marks an end of similar pair ``k``, ``-k`` an end of dissimilar pair ``k``, ``0`` an
unlabeled row. Each ``k >= 1`` stands on exactly two rows, with one sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sdulearn.errors import InputError
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Codes, Indices, Mask, MatrixLike, Rows

# An answer, as the sign of a pair code.
SIMILAR = 1
DISSIMILAR = -1
UNSURE = 0
# Sources of rows, in the paper's letters: ends of similar pairs, ends of dissimilar pairs,
# unlabeled rows.
S, D, U = range(3)


@dataclass(frozen=True)
class Pairs:
    """What a vector of pair codes says, as row numbers; made by :func:`read_pairs`, which checks them.

    It stands for the codes wherever ``y`` is expected, so that they are checked once: as an array
    it is the codes.

    Attributes
    ----------
    codes : array of shape (n_rows,)
        The pair codes themselves.
    ends : array of shape (n_pairs, 2)
        Row numbers of the two ends of each pair, pairs in ascending order of their code.
    similar : bool array of shape (n_pairs,)
        Whether the pair is similar.
    unlabeled : array of shape (n_unlabeled,)
        Row numbers of the unlabeled rows.
    """

    codes: Codes
    ends: Indices
    similar: Mask
    unlabeled: Indices

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Codes:
        return np.array(self.codes, dtype=dtype) if copy else np.asarray(self.codes, dtype=dtype)

    @cached_property
    def source(self) -> Indices:
        """Which of S, D, U each row comes from; all that a marginal risk needs to know."""
        return sources(self.codes)

    @property
    def n_rows(self) -> int:
        """Number of rows, ends and unlabeled."""
        return len(self.codes)

    def source_weight(self, sample_weight: Array | None) -> Array:
        """Total weight of S, D and U; ends of pairs count one by one.

        Parameters
        ----------
        sample_weight : array of shape (n_rows,) or None
            A weight per row; None for ones.

        Returns
        -------
        array of shape (3,)
            The totals.
        """
        return source_totals(self.source, sample_weight)

    def source_squares(self, sample_weight: Array | None) -> Array:
        """Sum of the squared weights of S, D and U.

        Parameters
        ----------
        sample_weight : array of shape (n_rows,) or None
            A weight per row; None for ones.

        Returns
        -------
        array of shape (3,)
            The sums.
        """
        return source_totals(self.source, None if sample_weight is None else sample_weight**2)

    def pair_weights(self, sample_weight: Array) -> Array:
        """One weight per pair; both ends must carry the same one.

        Parameters
        ----------
        sample_weight : array of shape (n_rows,)
            A weight per row.

        Returns
        -------
        array of shape (n_pairs,)
            The weight of each pair.
        """
        first = sample_weight[self.ends[:, 0]]
        second = sample_weight[self.ends[:, 1]]
        if (unequal := np.flatnonzero(first != second)).size:
            a, b = self.ends[unequal[0]]
            raise InputError(
                "The two ends of a pair must carry one weight in `sample_weight`, but rows "
                f"{a} and {b} are one pair and weigh {sample_weight[a]:g} and {sample_weight[b]:g}. "
                "Give both rows the weight of the pair."
            )
        return first


def stack_pairs(
    X: MatrixLike,
    pairs: ArrayLike,
    same: ArrayLike,
    *,
    unlabeled: str | ArrayLike | None = "rest",
) -> tuple[Rows, Codes]:
    """Turn a table, a list of index pairs and same/different answers into rows and pair codes.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_points, n_features)
        One row per point.
    pairs : array-like of shape (n_pairs, 2)
        Row numbers in ``X`` of the two ends of each pair. A point may be in several pairs.
    same : array-like of shape (n_pairs,)
        The answers: booleans, or +1 for "same class" and -1 for "different".
    unlabeled : {"rest", "all", None} or array-like of row numbers or booleans, default="rest"
        Which rows of ``X`` to add as unlabeled: those in no pair, all of them, none, or the ones
        listed.

    Returns
    -------
    X_rows : same type as ``X``
        The ends of all pairs (two rows each), then the unlabeled rows.
    y : int array of shape (n_rows,)
        Pair codes: +k and -k for the k-th pair, 0 for unlabeled.

    Raises
    ------
    InputError
        Where a pair names a row that is not there, or one row twice, or an answer is neither.

    See Also
    --------
    PairKFold : Folds that keep both ends of a pair together.
    SDUClassifierCV : Learns from such rows by the risks of the paper.
    PairLogisticRegressionCV : Learns from such rows by the joint likelihood of a pair.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn import stack_pairs
    >>> X = np.arange(10.0).reshape(5, 2)
    >>> rows, y = stack_pairs(X, [(0, 1), (1, 2)], [True, False])
    >>> y
    array([ 1,  1, -2, -2,  0,  0])
    >>> rows[:, 0]
    array([0., 2., 2., 4., 6., 8.])
    """
    n_points = X.shape[0] if hasattr(X, "shape") else len(X)
    ends = _row_numbers(pairs, n_points, "pairs")
    if ends.size == 0:
        ends = ends.reshape(0, 2)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise InputError(
            f"`pairs` must have shape (n_pairs, 2), two row numbers of `X` per pair; got shape {ends.shape}."
        )
    if (self_pairs := np.flatnonzero(ends[:, 0] == ends[:, 1])).size:
        raise InputError(
            f"`pairs[{self_pairs[0]}]` joins row {ends[self_pairs[0], 0]} with itself, which says "
            f"nothing about the classes ({self_pairs.size} such pairs). Remove them."
        )
    signs = _answer_signs(same, len(ends))
    codes = np.repeat(signs * np.arange(1, len(ends) + 1), 2)
    extra = _unlabeled_rows(unlabeled, n_points, ends)
    rows = np.concatenate([ends.ravel(), extra])
    return safe_indexing(X, rows), np.concatenate([codes, np.zeros(len(extra), dtype=np.int64)])


def read_pairs(y: ArrayLike | Pairs) -> Pairs:
    """Check pair codes and return what they say.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or Pairs
        Pair codes: +k similar, -k dissimilar, 0 unlabeled. What was read before is handed on as it is.

    Returns
    -------
    Pairs
        The same as row numbers.
    """
    return y if isinstance(y, Pairs) else check_pair_codes(y)


def check_pair_codes(y: ArrayLike) -> Pairs:
    """Read ``y`` as pair codes, or raise an InputError that says what is wrong with them."""
    codes = integer_codes(y)
    named = np.flatnonzero(codes)
    order = named[np.argsort(np.abs(codes[named]), kind="stable")]
    _check_two_ends(codes[order])
    ends = order.reshape(-1, 2)
    return Pairs(codes, ends, codes[ends[:, 0]] > 0, np.flatnonzero(codes == 0))


def _check_two_ends(by_code: Codes) -> None:
    """Refuse codes, sorted by their size, that do not stand on two rows each, with one sign."""
    if not by_code.size:
        return
    same_code = np.abs(by_code[1:]) == np.abs(by_code[:-1])
    starts = np.flatnonzero(np.r_[True, ~same_code])
    counts = np.diff(np.r_[starts, by_code.size])
    if (half := starts[counts == 1]).size:
        raise InputError(
            f"Pair code {by_code[half[0]]} stands on one row only ({half.size} such codes): half a "
            "pair. Each code must stand on exactly two rows; keep both ends together, for example "
            "with `cv=sdulearn.PairKFold()` instead of a plain K-fold."
        )
    if (crowd := np.flatnonzero(counts > 2)).size:
        raise InputError(
            f"Pair code {abs(by_code[starts[crowd[0]]])} stands on {counts[crowd[0]]} rows, but a "
            "pair has two ends. `y` must hold pair codes (+k similar, -k dissimilar, 0 unlabeled), "
            "not class labels; sdulearn.stack_pairs makes them from a list of pairs and answers."
            f"{_renumbered(by_code)}"
        )
    if (mixed := starts[by_code[starts] != by_code[starts + 1]]).size:
        raise InputError(
            f"Pair code {abs(by_code[mixed[0]])} stands on one row as + (similar) and on the other "
            "as - (dissimilar). Give both ends of a pair the same sign."
        )


def _renumbered(by_code: Codes) -> str:
    """A hint where the codes look like the numbers 0, 1, 2, ... of classes that they were taken for."""
    if by_code[0] < 0 or len(np.unique(by_code)) < 3 or (by_code < 0).any():
        return ""
    return (
        " If it did, something renumbered them: sklearn's cross_val_predict does so for "
        "`method='predict_proba'` and `method='decision_function'`; use "
        "sdulearn.metrics.held_out_decisions, or `method='predict'`."
    )


def sources(codes: Codes) -> Indices:
    """Which of S, D, U (0, 1, 2) each row comes from; all that a marginal risk needs to know."""
    return np.where(codes > 0, S, np.where(codes < 0, D, U))


def source_totals(source: Indices, weight: Array | None) -> Array:
    """Total weight of each source; number of its rows without weights."""
    return np.bincount(source, weights=weight, minlength=3).astype(np.float64)


def scramble(keys: NDArray[np.integer]) -> NDArray[np.uint64]:
    """A random-looking 64-bit number for each key, the same everywhere (splitmix64)."""
    z = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def pair_checksum(codes: Codes, weight: Array | None = None) -> int:
    """Zero where every code stands on an even number of rows, with one sign and one weight; hardly ever elsewhere.

    Checksums of parts are joined with ``^`` in any order, so it finds half a pair whose rows are
    nowhere together.
    """
    named = np.flatnonzero(codes)
    keys = scramble(codes[named])
    if weight is not None:
        keys = scramble(keys ^ (weight[named] + 0.0).view(np.uint64))
    return int(np.bitwise_xor.reduce(keys, initial=np.uint64(0)))


def integer_codes(y: ArrayLike) -> Codes:
    """``y`` as int64 codes, each taken by itself: whether they pair up is not checked."""
    codes = np.asarray(y)
    if codes.ndim == 2 and codes.shape[1] == 1:
        codes = codes.ravel()
    if codes.ndim != 1:
        raise InputError(f"`y` should be a 1d array of pair codes, got an array of shape {codes.shape} instead.")
    if codes.size == 0:
        raise InputError("`y` is empty: at least one pair is needed.")
    if codes.dtype.kind == "f":
        if not np.isfinite(codes).all():
            raise InputError("Input `y` contains NaN or infinity. Mark unlabeled rows with the pair code 0.")
        if (codes != np.rint(codes)).any():
            raise InputError(
                "Unknown label type: `y` holds fractions, but pair codes are integers (+k similar, "
                "-k dissimilar, 0 unlabeled)."
            )
    elif codes.dtype.kind not in "iu":
        raise InputError(
            f"Unknown label type: `y` has dtype {codes.dtype}, but pair codes are integers (+k "
            "similar, -k dissimilar, 0 unlabeled). sdulearn.stack_pairs makes them from pairs and "
            "answers."
        )
    if codes.size and (np.abs(codes.astype(np.float64)) >= 2.0**62).any():
        raise InputError("Pair codes must be smaller than 2**62 in size; number the pairs 1, 2, 3, ...")
    return codes.astype(np.int64, copy=False)


def _row_numbers(values: ArrayLike, n_points: int, name: str) -> Indices:
    numbers = np.asarray(values)
    if numbers.size == 0:
        return numbers.astype(np.intp)
    if numbers.dtype.kind not in "iu":
        raise InputError(
            f"`{name}` must hold integer row numbers of `X`, got dtype {numbers.dtype}. Where your "
            "points have ids, translate them first, for example with "
            "pandas.Index(ids).get_indexer(...)."
        )
    if ((numbers < 0) | (numbers >= n_points)).any():
        bad = numbers[(numbers < 0) | (numbers >= n_points)][0]
        raise InputError(f"`{name}` names row {bad}, but `X` has rows 0 to {n_points - 1}.")
    return numbers.astype(np.intp, copy=False)


def _answer_signs(same: ArrayLike, n_pairs: int) -> Codes:
    answers = np.asarray(same)
    if answers.shape != (n_pairs,):
        raise InputError(f"`same` must hold one answer per pair: {n_pairs} pairs, but shape {answers.shape}.")
    if answers.dtype.kind == "b":
        return np.where(answers, 1, -1)
    if answers.dtype.kind in "iuf" and np.isin(answers, (-1, 1)).all():
        return answers.astype(np.int64)
    raise InputError(
        "`same` must be boolean, or +1 (same class) and -1 (different). If yours is 0/1, say which "
        "is which: `same=(answers == 1)`."
    )


def _unlabeled_rows(unlabeled: str | ArrayLike | None, n_points: int, ends: Indices) -> Indices:
    if unlabeled is None:
        return np.empty(0, dtype=np.intp)
    if isinstance(unlabeled, str):
        if unlabeled == "all":
            return np.arange(n_points)
        if unlabeled == "rest":
            in_no_pair = np.ones(n_points, dtype=bool)
            in_no_pair[ends] = False
            return np.flatnonzero(in_no_pair)
        raise InputError(f"`unlabeled` must be 'rest', 'all', None or row numbers, got {unlabeled!r}.")
    chosen = np.asarray(unlabeled)
    if chosen.ndim != 1:
        raise InputError(
            f"`unlabeled` must be a 1d array of row numbers of `X`, got shape {chosen.shape}. To add "
            "rows of another table, concatenate them to `X` first."
        )
    if chosen.dtype.kind == "b" and chosen.shape == (n_points,):
        return np.flatnonzero(chosen)
    return _row_numbers(chosen, n_points, "unlabeled")
