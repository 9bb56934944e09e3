"""What each column is worth to a fitted classifier, by answers alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_random_state

from sdulearn.answers.graph import AnswerGraph
from sdulearn.errors import InputError
from sdulearn.metrics.accuracy import pair_accuracy
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.sklearn_private import safe_indexing
from sdulearn.types import Array, Estimator, Indices, MatrixLike, RandomState


@dataclass(frozen=True, eq=False)
class PairImportance:
    """How much accuracy is lost where a column is shuffled.

    Attributes
    ----------
    mean, std : array of shape (n_features,)
        Mean and standard deviation of the loss over the repeats.
    losses : array of shape (n_features, n_repeats)
        Accuracy as it is less that with the column shuffled, both estimated from the answers.
    accuracy : float
        The accuracy as it is.
    """

    mean: Array
    std: Array
    losses: Array
    accuracy: float


def pair_importance(
    estimator: Estimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_repeats: int = 5,
    random_state: RandomState = None,
) -> PairImportance:
    """Permutation importance of each column, from answers that the classifier has not seen.

    A column is shuffled among the *points*: all rows that show a point keep one value. Columns that say the same
    share their importance, as in any permutation importance.

    Parameters
    ----------
    estimator : fitted estimator
        With ``decision_function``; two classes.
    X : array, sparse matrix or pandas frame of shape (n_rows, n_features)
        Rows.
    y : array-like of shape (n_rows,) or (n_rows, 2 to 4)
        What is known of each row.
    n_repeats : int, default=5
        Shuffles of each column.
    random_state : int, RandomState or None, default=None
        Seed of the shuffles.

    Returns
    -------
    PairImportance
        Lost accuracy by column. An accuracy by answers cannot tell a classifier from its mirror image, so it is
        never below 1/2.

    See Also
    --------
    pair_accuracy : The estimate of the accuracy.

    Examples
    --------
    >>> from sdulearn import PairKFold, PairLogisticRegression
    >>> from sdulearn.datasets import make_waveform, sample_sdu
    >>> from sdulearn.metrics import pair_importance
    >>> X, y = make_waveform(5000, random_state=0)
    >>> rows, codes = sample_sdu(X, y, n_pairs=800, n_unlabeled=0, prior=0.7, random_state=0)
    >>> train, test = next(PairKFold(2, random_state=0).split(rows, codes))
    >>> model = PairLogisticRegression().fit(rows[train], codes[train])
    >>> found = pair_importance(model, rows[test], codes[test], random_state=0)
    >>> bool(found.mean.max() > 0.02)
    True
    """
    if n_repeats < 1:
        raise InputError(f"`n_repeats` must be at least 1, got {n_repeats}.")
    pairs = read_pairs(y)
    rng = check_random_state(random_state)
    graph = AnswerGraph.from_y(pairs)
    first_row = np.unique(graph.row_point, return_index=True)[1]
    accuracy = _accuracy(estimator, X, pairs)
    losses = np.empty((X.shape[1], n_repeats))
    for column, of_column in enumerate(losses):
        for k in range(n_repeats):
            donors = first_row[rng.permutation(graph.n_points)][graph.row_point]
            of_column[k] = accuracy - _accuracy(estimator, shuffled(X, column, donors), pairs)
    return PairImportance(losses.mean(axis=1), losses.std(axis=1), losses, accuracy)


def _accuracy(estimator: Estimator, X: MatrixLike, pairs: Pairs) -> float:
    return pair_accuracy(estimator.decision_function(X), pairs).value


def shuffled(X: MatrixLike, column: int, donors: Indices) -> MatrixLike:
    """A copy of the rows with the values of one column taken from other rows."""
    if sparse.issparse(X):
        columns = sparse.csc_matrix(X).tolil()
        columns[:, column] = columns[donors, column]
        return columns.tocsr()
    if hasattr(X, "iloc"):
        copy = X.copy()
        copy[X.columns[column]] = safe_indexing(X, donors).iloc[:, column].to_numpy()
        return copy
    copy = np.array(X)
    copy[:, column] = copy[donors, column]
    return copy
