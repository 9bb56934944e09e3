"""``y``: what is known about each row, as integers.

Its first column holds pair codes: ``+k`` marks an end of similar pair ``k``, ``-k`` an end of dissimilar pair ``k``,
``0`` a row in no pair. Each ``k >= 1`` is on exactly two rows, with the same sign. Further columns hold the point that
the row shows, the annotator, the label and the question, 0 where it is not known; answers given together share the
number of their question. A 1-D ``y`` is the first column alone, and every row is its own point.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdulearn.errors import InputError
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Codes, Frame, Indices, Mask, MatrixLike, Rows

# Answers, as the sign of a pair code.
SIMILAR = 1
DISSIMILAR = -1
UNSURE = 0
# The columns of y, in this order; a frame may have some of them, by name.
COLUMNS = ("answer", "point", "annotator", "label", "question")
# Sources of rows, in the paper's letters: ends of similar pairs, of dissimilar pairs, unlabeled rows.
S, D, U = range(3)
# Up to here the square of a mean of squares does not overflow, with room for the number of rows; weights are no smaller
# than its inverse.
LARGEST_NUMBER = 1e50

# Labels 0 are a class where at least this many answers about two of them, and about one, say so with this share: with
# three classes of which most points are unlabeled, a third of the answers about two unlabeled points is "same".
_MIN_TREATED = 5
_TREATED_SO = 0.8


def check_rows(ends: Indices, known: dict[str, Codes]) -> None:
    """Check the columns beside the pair codes, of which ``ends`` are the rows of each pair."""
    points = known.get("point")
    if points is not None:
        if (points < 0).any():
            raise InputError(
                f"Point numbers in `y` must not be negative, but row {np.argmax(points < 0)} has {points.min()}. "
                "Remove rows whose id was not found."
            )
        _refuse_loops(points[ends], "y", "point")
    for name in [name for name in ("annotator", "question") if name in known]:
        first, second = answer_numbers(known[name], len(known[name]), f"{name}s")[ends].T
        if (unequal := np.flatnonzero(first != second)).size:
            k = unequal[0]
            raise InputError(
                f"Rows {ends[k, 0]} and {ends[k, 1]} are one answer, but `y` names {name}s {first[k]} "
                f"and {second[k]}. Give both rows of an answer the same {name}."
            )
    if "label" in known:
        _check_one_label(known["label"], points)


def check_pair_weights(weight: Array, ends: Indices) -> None:
    """Raise where the two ends of a pair differ in weight."""
    first, second = weight[ends].T
    if (unequal := np.flatnonzero(first != second)).size:
        a, b = ends[unequal[0]]
        raise InputError(
            f"The two ends of a pair must carry one weight in `sample_weight`, but rows {a} and {b} weigh "
            f"{weight[a]:g} and {weight[b]:g}. Give both the weight of the pair; weight 0 on both leaves it out."
        )


def check_weights(weights: ArrayLike, size: int, name: str) -> Array:
    """Return weights as floats, or raise where they are negative, not finite or extreme."""
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (size,):
        raise InputError(f"`{name}` must have shape ({size},), got {values.shape}.")
    if not (np.isfinite(values) & (values >= 0)).all():
        raise InputError(f"`{name}` must be finite and not negative. Weight 0 leaves a row or an answer out.")
    positive = values[values > 0]
    if positive.size and not (positive.min() >= 1 / LARGEST_NUMBER and positive.max() <= LARGEST_NUMBER):
        raise InputError(
            f"`{name}` has weights from {positive.min():g} to {positive.max():g}, too small or too large. Only their "
            "ratios matter: divide all by the largest."
        )
    return values


def mean_weight(weight: Array) -> float:
    """Return the mean of positive weights, exactly where all are equal."""
    largest = float(weight.max())
    # Divided first: the sum of large numbers could overflow.
    return largest if (weight == largest).all() else largest * float(np.mean(weight / largest))


def read_columns(y: ArrayLike) -> tuple[Codes, dict[str, Codes]]:
    """Return the pair codes and the other columns by name, without checking that codes pair up."""
    names = [str(name) for name in getattr(y, "columns", ())]
    if not set(names) & set(COLUMNS):
        table = np.asarray(y)
        if table.ndim != 2:
            return _check_codes(table), {}
        if not 1 <= table.shape[1] <= len(COLUMNS):
            raise InputError(
                f"`y` has {table.shape[1]} columns, but there are at most {len(COLUMNS)}: {', '.join(COLUMNS)}."
            )
        columns = dict(zip(COLUMNS, table.T, strict=False))
    else:
        if "answer" not in names:
            raise InputError("`y` has no column 'answer', which contains the pair codes.")
        frame: Frame = y
        columns = {name: np.asarray(frame[name]) for name in names}
    return check_columns(columns)


def check_columns(columns: dict[str, NDArray[Any]]) -> tuple[Codes, dict[str, Codes]]:
    """Return the pair codes, and the other columns, as integers, or raise."""
    if unknown := [name for name in columns if name not in COLUMNS]:
        raise InputError(f"`y` has a column {unknown[0]!r}, but its columns are {', '.join(COLUMNS)}. Leave it out.")
    codes = _check_codes(columns["answer"])
    return codes, {name: whole_numbers(columns[name], f"{name} of y") for name in columns if name != "answer"}


def _refuse_loops(ends: Indices, name: str, noun: str) -> None:
    if (own := np.flatnonzero(ends[:, 0] == ends[:, 1])).size:
        loop = f"Answer {own[0]} of `{name}` joins {noun} {ends[own[0], 0]} with itself"
        raise InputError(f"{loop} ({own.size} such answers). Remove them.")


def _check_one_label(labels: Codes, points: Codes | None) -> None:
    """Raise where the rows of a point have two labels; rows without a label are fine."""
    known = check_labels(labels, len(labels), "row of `y`") != 0
    if points is None:
        return
    pairs = np.unique(np.column_stack([points[known], labels[known]]), axis=0)
    if (twice := np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])).size:
        (point, first), (_, second) = pairs[twice[0] : twice[0] + 2]
        raise InputError(
            f"Point {point} has two labels in `y`, {first} and {second}. Keep the right one and set the other to 0."
        )


def check_labels(labels: ArrayLike, size: int, noun: str) -> Codes:
    """Return labels as integers, one per row or point, or raise where they mix two codings."""
    numbers = whole_numbers(labels, "labels")
    if numbers.shape != (size,):
        raise InputError(f"`labels` must contain one label per {noun}, {size} in all, but has shape {numbers.shape}.")
    if (numbers < -1).any() or ((numbers == -1).any() and (numbers > 1).any()):
        raise InputError(
            "Labels must be -1 and +1 (two classes) or 1 to K (more), with 0 where they are not known; "
            f"got {np.unique(numbers)[:10].tolist()}."
        )
    return numbers


def whole_numbers(values: ArrayLike, name: str) -> Codes:
    """Return integers as int64, also those stored as floats, or raise."""
    numbers = np.asarray(values)
    if numbers.dtype.kind in "iu" or numbers.size == 0:
        return numbers.astype(np.int64)
    if numbers.dtype.kind != "f" or not (np.isfinite(numbers) & (numbers == np.rint(numbers))).all():
        raise InputError(
            f"`{name}` must contain integers, got dtype {numbers.dtype}. Number what it names first, for example with "
            "pandas.Index(ids).get_indexer(...)."
        )
    return numbers.astype(np.int64)


def pair_up(codes: Codes) -> Indices:
    """Return the rows of each pair by ascending code; raise unless each is on two, with one sign."""
    named = np.flatnonzero(codes)
    order = named[np.argsort(np.abs(codes[named]), kind="stable")]
    by_code = codes[order]
    _, starts, counts = np.unique(np.abs(by_code), return_index=True, return_counts=True)
    if (half := starts[counts == 1]).size:
        raise InputError(
            f"Pair code {by_code[half[0]]} appears on only one row ({half.size} such codes): half a pair. Keep both "
            "ends together, for example with `cv=sdulearn.PairKFold()` instead of a plain K-fold."
        )
    if (crowd := np.flatnonzero(counts > 2)).size:
        raise InputError(
            f"Pair code {abs(by_code[starts[crowd[0]]])} appears on {counts[crowd[0]]} rows, but a pair has two ends. "
            + _more_than_two(counts)
        )
    if (mixed := starts[by_code[starts] != by_code[starts + 1]]).size:
        raise InputError(
            f"Pair code {abs(by_code[mixed[0]])} appears on one row as + (similar) and on the other as - (dissimilar). "
            "Give both ends of a pair the same sign."
        )
    return order.reshape(-1, 2)


def _more_than_two(counts: Indices) -> str:
    """Return what to do about codes on more than two rows."""
    # Numbered anew, all unlabeled rows have one code, and pairs keep two rows each.
    if len(counts) > 2 and np.sum(counts != 2) == 1:
        return (
            "Something has renumbered the codes, as cross_val_predict of scikit-learn does unless `method='predict'`: "
            "use sdulearn.metrics.held_out instead."
        )
    return "`y` must contain pair codes, which sdulearn.stack_pairs makes, not class labels."


def sources(codes: Codes) -> Indices:
    """Return the source of each row: S, D or U (0, 1, 2)."""
    return np.where(codes > 0, S, np.where(codes < 0, D, U))


def source_totals(source: Indices, weight: Array | None) -> Array:
    """Return the total weight of each source, or its number of rows without weights."""
    return np.bincount(source, weights=weight, minlength=3).astype(np.float64)


def scramble(keys: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Hash each key to 64 bits (splitmix64): the same on every machine."""
    z = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def pair_checksum(codes: Codes, weight: Array | None = None) -> int:
    """Return 0 where codes are on two rows with one sign, hardly ever else; join parts with ``^``."""
    named = np.flatnonzero(codes)
    keys = scramble(codes[named])
    if weight is not None:
        keys = scramble(keys ^ (weight[named] + 0.0).view(np.uint64))
    return int(np.bitwise_xor.reduce(keys, initial=np.uint64(0)))


def _check_codes(codes: NDArray[Any]) -> Codes:
    """Return pair codes as int64, or raise."""
    if codes.ndim != 1:
        raise InputError(f"`y` should be a 1d array of pair codes, got an array of shape {codes.shape} instead.")
    if codes.size == 0:
        raise InputError("`y` is empty: at least one pair is needed.")
    if codes.dtype.kind == "f" and not np.isfinite(codes).all():
        raise InputError("Input `y` contains NaN or infinity. Mark unlabeled rows with the pair code 0.")
    if codes.dtype.kind not in "iuf" or (codes != np.rint(codes)).any():
        holds = "contains fractions" if codes.dtype.kind == "f" else f"has dtype {codes.dtype}"
        raise InputError(f"Unknown label type: `y` {holds}, but pair codes are integers: see sdulearn.stack_pairs.")
    if (np.abs(codes.astype(np.float64)) >= 2.0**62).any():
        raise InputError("Pair codes must be smaller than 2**62 in size; number the pairs 1, 2, 3, ...")
    return codes.astype(np.int64, copy=False)


def join_columns(codes: Codes, known: dict[str, Codes]) -> Codes:
    """Return the codes alone, or all columns up to the last known one."""
    if not known:
        return codes
    points = {"point": np.arange(len(codes))}
    n_columns = 1 + max(COLUMNS.index(name) for name in known)
    columns = [(points | known).get(name, np.zeros_like(codes)) for name in COLUMNS[1:n_columns]]
    return np.column_stack([codes, *columns])


def stack_pairs(
    X: MatrixLike,
    pairs: ArrayLike,
    same: ArrayLike,
    *,
    unlabeled: str | ArrayLike | None = "rest",
    annotators: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    questions: ArrayLike | None = None,
) -> tuple[Rows, Codes]:
    """Turn a table, pairs of row numbers and same/different answers into rows and ``y``.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_points, n_features)
        One row per point.
    pairs : array-like of shape (n_pairs, 2)
        Row numbers in ``X`` of the two ends of each pair. A point may be in several pairs.
    same : array-like of shape (n_pairs,)
        The answers: booleans, +1 for "same class" and -1 for "different", or these words, "same" and "different".
    unlabeled : {"rest", "all", None} or array-like of row numbers or booleans, default="rest"
        Which rows of ``X`` to add as unlabeled: those in no pair, all, none, or the ones listed. Points with a label
        are always added.
    annotators : array-like of shape (n_pairs,), optional
        Who answered: numbers from 1 on, 0 or NaN if not known; or names, which are numbered from 1 in alphabetical
        order, with "" or None if not known.
    labels : array-like of shape (n_points,), optional
        Known labels of the rows of ``X``: -1 or +1 with two classes, 1 to K with more, 0 or NaN if not known. If 0
        seems to be a class, it is refused: write a 0/1 target as ``2 * y - 1``, and classes 0 to K - 1 as ``y + 1``.
    questions : array-like of shape (n_pairs,), optional
        Answers that were given together share the number of their question, from 1 on; 0 is a question of its own.

    Returns
    -------
    X_rows : same type as ``X``
        The ends of all pairs (two rows each), then the unlabeled rows.
    y : int array of shape (n_rows, 2 to 5)
        The pair code of each row (+k or -k for the k-th pair, 0 for unlabeled), the point that it shows (its row
        number in ``X``) and, if given, annotator, label and question.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn import stack_pairs
    >>> X = np.arange(10.0).reshape(5, 2)
    >>> rows, y = stack_pairs(X, [(0, 1), (1, 2)], [True, False])
    >>> y.T
    array([[ 1,  1, -2, -2,  0,  0],
           [ 0,  1,  1,  2,  3,  4]])
    >>> rows[:, 0]
    array([0., 2., 2., 4., 6., 8.])
    """
    n_points = X.shape[0] if hasattr(X, "shape") else len(X)
    ends = check_ends(pairs, n_points, "pairs", "row")
    signs = answer_signs(same, len(ends))
    rows = np.concatenate([ends.ravel(), _unlabeled_rows(unlabeled, n_points, ends)])
    columns = {}
    if labels is not None:
        known = _known_labels(labels, n_points, ends, signs)
        rows = np.concatenate([rows, np.setdiff1d(np.flatnonzero(known), rows)])
        columns["label"] = known[rows]
    columns["point"] = rows

    def of_rows(of_answers: Codes) -> Codes:
        return np.pad(np.repeat(of_answers, 2), (0, len(rows) - ends.size))

    if annotators is not None:
        columns["annotator"] = of_rows(answer_numbers(annotators, len(ends), "annotators"))
    if questions is not None:
        columns["question"] = of_rows(answer_numbers(questions, len(ends), "questions"))
    return safe_indexing(X, rows), join_columns(of_rows(signs * np.arange(1, len(ends) + 1)), columns)


def answer_numbers(values: ArrayLike | None, n_answers: int, name: str) -> Codes:
    """Return annotators or questions of answers as integers, 0 where not known, or raise."""
    given = np.zeros(n_answers, dtype=np.int64) if values is None else np.asarray(values)
    if name == "annotators" and given.dtype.kind in "OU" and given.size:
        who = [value if is_known(value) else "" for value in given.ravel()]
        if all(isinstance(value, Integral) for value in who if value != ""):
            given = np.array([value or 0 for value in who]).reshape(given.shape)
        else:
            # "" sorts first, and is added so that it is number 0.
            given = np.unique([*map(str, who), ""], return_inverse=True)[1][:-1].reshape(given.shape)
    if given.dtype.kind == "f":
        given = np.where(np.isnan(given), 0, given)
    numbers = whole_numbers(given, name)
    if numbers.shape != (n_answers,):
        raise InputError(f"`{name}` must have one number per answer: {n_answers} answers, but shape {numbers.shape}.")
    if (numbers < 0).any():
        raise InputError(f"{name.capitalize()} are numbered from 1, with 0 for none; got {numbers.min()}.")
    return numbers


def is_known(value: object) -> bool:
    """Return whether a value of an object column is neither None, NaN nor pandas.NA."""
    try:
        return value is not None and bool(value == value)
    except TypeError:
        # pandas.NA is neither equal to itself nor different.
        return False


def number_together(questions: Codes) -> Indices:
    """Number questions from 0, those of a single answer (0) each by itself."""
    alone = questions.max(initial=0) + 1 + np.arange(len(questions))
    return np.unique(np.where(questions > 0, questions, alone), return_inverse=True)[1]


def _known_labels(labels: ArrayLike, n_points: int, ends: Indices, signs: Codes) -> Codes:
    """Return labels with 0 for NaN, or raise where 0 seems to be a class, as beside NaN."""
    given = np.asarray(labels)
    absent = np.isnan(given) if given.dtype.kind == "f" else np.zeros(given.shape, dtype=bool)
    known = check_labels(np.where(absent, 0, given), n_points, "row of `X`")
    zero = (known == 0) & ~absent
    most = known.max(initial=0)
    if known.min(initial=0) < 0 or not zero.any() or not most:
        return known
    if absent.any() or most == 1 or zero.sum() < len(known) / 2 or _is_class(zero, ends, signs):
        remedy = "the two classes as -1 and +1: `labels=2 * y - 1`" if most == 1 else "`labels=y + 1`, classes 1 to K"
        raise InputError(
            f"`labels` has 0 to {most}, and 0 means 'not known'. Write {remedy}; mark rows of unknown class with NaN."
        )
    return known


def _is_class(points: Mask, ends: Indices, signs: Codes) -> bool:
    """Return whether answers treat these points as one class: alike, and different from all others."""
    n_inside = points[ends].sum(axis=1)
    alike = signs[n_inside == 2] == SIMILAR
    apart = signs[n_inside == 1] == DISSIMILAR
    return all(len(part) >= _MIN_TREATED and part.mean() >= _TREATED_SO for part in (alike, apart))


def check_ends(values: ArrayLike, n_points: int, name: str, noun: str) -> Indices:
    """Return the two row or point numbers of each answer, or raise."""
    ends = _numbers_below(values, n_points, name, noun)
    if ends.size == 0:
        ends = ends.reshape(0, 2)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise InputError(f"`{name}` must have shape (n_answers, 2), two {noun} numbers per answer; got {ends.shape}.")
    _refuse_loops(ends, name, noun)
    return ends


def _numbers_below(values: ArrayLike, n_points: int, name: str, noun: str) -> Indices:
    numbers = whole_numbers(values, name)
    outside = numbers[(numbers < 0) | (numbers >= n_points)]
    if outside.size:
        raise InputError(f"`{name}` names {noun} {outside[0]}, but {noun}s are numbered 0 to {n_points - 1}.")
    return numbers.astype(np.intp, copy=False)


def answer_signs(same: ArrayLike, n_pairs: int) -> Codes:
    """Return answers as +1 and -1, or raise."""
    answers = np.asarray(same)
    if answers.shape != (n_pairs,):
        raise InputError(f"`same` must contain one answer per pair: {n_pairs} pairs, but shape {answers.shape}.")
    if answers.dtype.kind == "b" or not n_pairs:
        return np.where(answers.astype(bool), SIMILAR, DISSIMILAR)
    if answers.dtype.kind in "iuf" and np.isin(answers, (-1, 1)).all():
        return answers.astype(np.int64)
    if answers.dtype.kind in "OU" and np.isin(answers.astype(str), ("same", "different")).all():
        return np.where(answers.astype(str) == "same", SIMILAR, DISSIMILAR)
    raise InputError(
        '`same` must be boolean, +1 and -1, or "same" and "different". If 0/1, say which is which: `same=(same == 1)`.'
    )


def _unlabeled_rows(unlabeled: str | ArrayLike | None, n_points: int, ends: Indices) -> Indices:
    if unlabeled is None:
        return np.empty(0, dtype=np.intp)
    if isinstance(unlabeled, str):
        if unlabeled in ("all", "rest"):
            return np.delete(np.arange(n_points), ends.ravel() if unlabeled == "rest" else [])
        raise InputError(f"`unlabeled` must be 'rest', 'all', None or row numbers, got {unlabeled!r}.")
    chosen = np.asarray(unlabeled)
    if chosen.ndim != 1:
        raise InputError(
            "`unlabeled` must be a 1d array of row numbers of `X`. To add other rows, concatenate them to `X` first."
        )
    if chosen.dtype.kind == "b" and chosen.shape == (n_points,):
        return np.flatnonzero(chosen)
    return _numbers_below(chosen, n_points, "unlabeled", "row")
