"""How much each column moves the score of a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from sdulearn.boosting.start import LinearScore
from sdulearn.types import Array, Rows

_ROWS = 500


def mean_contributions(start: LinearScore, boosters: list[Any], X: Rows) -> Array:
    """Mean absolute contribution of each column to the score, of sum 1.

    The contribution of a column to the trees is its Shapley value, as LightGBM computes it; to the linear start it is
    ``coef (x - mean)``. Both are in units of the score, so they add up. Of a kernel map it is the change of the
    score where the column is set to its mean.
    """
    some = X[: _ROWS * max(1, X.shape[0] // _ROWS) : max(1, X.shape[0] // _ROWS)]
    total = start.contributions(some)
    n_rows, n_features, n_scores = total.shape
    some = some.toarray() if sparse.issparse(some) else some
    for booster in boosters:
        found = booster.predict(some, pred_contrib=True, num_threads=1).reshape(n_rows, n_scores, n_features + 1)
        # The last column is the mean of the score.
        total = total + found[:, :, :-1].transpose(0, 2, 1) / len(boosters)
    size = np.abs(total).mean(axis=(0, 2))
    return np.asarray(size / size.sum()) if size.sum() > 0 else size
