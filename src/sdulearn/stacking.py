"""``stack_pairs``: from a table, index pairs and answers to rows and what is known of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sdulearn.errors import InputError
from sdulearn.pairs import DISSIMILAR, SIMILAR, check_annotators, check_labels, whole_numbers
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Codes, Indices, MatrixLike, Rows


def stack_pairs(
    X: MatrixLike,
    pairs: ArrayLike,
    same: ArrayLike,
    *,
    unlabeled: str | ArrayLike | None = "rest",
    annotators: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> tuple[Rows, Codes]:
    """Turn a table, a list of index pairs and same/different answers into rows and what is known of each.

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
        listed. Points with a label come in any case.
    annotators : array-like of shape (n_pairs,), optional
        Who answered, as numbers from 1 on; 0 where that is not known.
    labels : array-like of shape (n_points,), optional
        Known labels of the rows of ``X``: -1 or +1 with two classes, 1 to K with more, 0 or NaN where the label is
        not known. Only 0 and 1 is refused, as it may be a 0/1 target: write that as -1 and +1 (``2 * y - 1``). If
        you know points of class 1 alone, mark all others with NaN.

    Returns
    -------
    X_rows : same type as ``X``
        The ends of all pairs (two rows each), then the unlabeled rows.
    y : int array of shape (n_rows, 2 to 4)
        What is known of each row: the pair code (+k and -k for the k-th pair, 0 for unlabeled), the
        point that it shows (its row number in ``X``) and, where given, annotator and label.

    Raises
    ------
    InputError
        Where a pair names a row that is not there, or one row twice, or an answer is neither; or
        where ``labels`` may be a 0/1 target.

    See Also
    --------
    PairKFold : Folds that keep the answers about a point together.
    SDUClassifierCV : Learns from such rows by the risks of the paper.
    PairLogisticRegressionCV : Learns from such rows by the joint likelihood of a pair.

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
    signs = answer_signs(same, len(ends))
    known = _known_labels(labels, n_points)
    rest = _unlabeled_rows(unlabeled, n_points, ends)
    if known is not None:
        rest = np.concatenate([rest, _lone_labels(known, ends, rest)])
    rows = np.concatenate([ends.ravel(), rest])
    columns = [_each_end(signs * np.arange(1, len(ends) + 1), len(rest)), rows]
    if annotators is not None or known is not None:
        columns.append(_each_end(_annotator_numbers(annotators, len(ends)), len(rest)))
    if known is not None:
        columns.append(known[rows])
    return safe_indexing(X, rows), np.column_stack(columns).astype(np.int64, copy=False)


def _each_end(values: Codes, n_rest: int) -> Codes:
    """A value a pair, at both of its rows; 0 for rows in no pair."""
    return np.concatenate([np.repeat(values, 2), np.zeros(n_rest, dtype=np.int64)])


def _annotator_numbers(annotators: ArrayLike | None, n_pairs: int) -> Codes:
    if annotators is None:
        return np.zeros(n_pairs, dtype=np.int64)
    numbers = whole_numbers(annotators, "annotators")
    if numbers.shape != (n_pairs,):
        raise InputError(f"`annotators` must hold one number an answer: {n_pairs} answers, but shape {numbers.shape}.")
    return check_annotators(numbers)


def _known_labels(labels: ArrayLike | None, n_points: int) -> Codes | None:
    if labels is None:
        return None
    given = np.asarray(labels)
    absent = np.isnan(given) if given.dtype.kind == "f" else np.zeros(given.shape, dtype=bool)
    known = check_labels(whole_numbers(np.where(absent, 0, given), "labels"))
    if known.shape != (n_points,):
        raise InputError(f"`labels` must hold one label a row of `X`: {n_points} rows, but shape {known.shape}.")
    if np.unique(known[~absent]).tolist() == [0, 1]:
        raise InputError(
            "`labels` holds only 0 and 1, and 0 means 'not known': the class 0 of a 0/1 target would be lost. Write "
            "the two classes as -1 and +1: `labels=2 * y - 1`; more classes are 1 to K. If you know points of class "
            "1 alone, mark all others with NaN instead of 0."
        )
    return known


def _lone_labels(known: Codes, ends: Indices, rest: Indices) -> Indices:
    """Points with a label that would else be on no row."""
    there = np.zeros(len(known), dtype=bool)
    there[ends] = True
    there[rest] = True
    return np.flatnonzero((known != 0) & ~there)


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


def answer_signs(same: ArrayLike, n_pairs: int) -> Codes:
    """Answers as +1 and -1, or an InputError."""
    answers = np.asarray(same)
    if answers.shape != (n_pairs,):
        raise InputError(f"`same` must hold one answer per pair: {n_pairs} pairs, but shape {answers.shape}.")
    if answers.dtype.kind == "b" or not n_pairs:
        return np.where(answers.astype(bool), SIMILAR, DISSIMILAR)
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
