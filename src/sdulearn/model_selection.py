"""Cross-validation that never tears a pair apart, and the table of its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from sdulearn.errors import InputError
from sdulearn.pairs import Pairs, read_pairs
from sdulearn.types import Array, Indices, MatrixLike, RandomState, Splitter


class PairFolds:
    """What splitters that keep pairs whole have in common: they know the fold of every row."""

    def __init__(self, n_splits: int) -> None:
        if not (isinstance(n_splits, int | np.integer) and n_splits >= 2):
            raise InputError(f"`n_splits` must be an integer of 2 or more, got {n_splits!r}.")
        self.n_splits = int(n_splits)

    def get_n_splits(self, X: MatrixLike = None, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : ignored
            Here because scikit-learn passes them.

        Returns
        -------
        int
            ``n_splits``.
        """
        return self.n_splits

    def split(
        self, X: MatrixLike, y: ArrayLike | Pairs, groups: ArrayLike | None = None
    ) -> Iterator[tuple[Indices, Indices]]:
        """Yield the row numbers of training and test part, in ascending order.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n_rows, n_features)
            Rows; only hashed folds depend on them.
        y : array-like of shape (n_rows,)
            Pair codes: +k similar, -k dissimilar, 0 unlabeled.
        groups : ignored
            Here because scikit-learn passes it.

        Yields
        ------
        train, test : int arrays
            Row numbers.
        """
        fold = self._fold_of_rows(X, read_pairs(y))
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def _fold_of_rows(self, X: MatrixLike, pairs: Pairs) -> Indices:
        raise NotImplementedError


class PairKFold(PairFolds):
    """K folds with both ends of a pair in one fold.

    Similar pairs, dissimilar pairs and unlabeled rows are each spread evenly over all folds.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=True
        Whether pairs and unlabeled rows are dealt out in random order.
    random_state : int, RandomState or None, default=None
        Seed of the shuffle; give an int for the same folds every time.

    See Also
    --------
    sdulearn.blocks.HashedPairKFold : Folds for rows that come in blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from sdulearn import PairKFold
    >>> y = np.array([1, 1, 2, 2, -3, -3, -4, -4, 0, 0])
    >>> for train, test in PairKFold(2, shuffle=False).split(y, y):
    ...     print(y[test])
    [ 1  1 -3 -3  0]
    [ 2  2 -4 -4  0]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: RandomState = None) -> None:
        super().__init__(n_splits)
        self.shuffle = shuffle
        self.random_state = random_state

    def __repr__(self) -> str:
        return f"PairKFold({self.n_splits}, shuffle={self.shuffle}, random_state={self.random_state})"

    def folds(self, y: ArrayLike | Pairs) -> Indices:
        """Return the fold of every row.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            Pair codes: +k similar, -k dissimilar, 0 unlabeled.

        Returns
        -------
        int array of shape (n_rows,)
            Numbers from 0 to ``n_splits - 1``.
        """
        return self._fold_of_rows(None, read_pairs(y))

    def _fold_of_rows(self, X: MatrixLike, pairs: Pairs) -> Indices:
        rng = check_random_state(self.random_state)
        fold = np.empty(pairs.n_rows, dtype=np.intp)
        for name, kind in (("similar", pairs.similar), ("dissimilar", ~pairs.similar)):
            members = pairs.ends[kind]
            if 0 < len(members) < self.n_splits:
                raise InputError(
                    f"{self.n_splits} folds need at least {self.n_splits} {name} pairs, but there "
                    f"are {len(members)}. Lower `cv`, the number of folds, or add pairs."
                )
            fold[members] = self._deal(len(members), rng)[:, None]
        fold[pairs.unlabeled] = self._deal(len(pairs.unlabeled), rng)
        return fold

    def _deal(self, count: int, rng: np.random.RandomState) -> Indices:
        dealt = np.arange(count) % self.n_splits
        return rng.permutation(dealt) if self.shuffle else dealt


def splitter_of(cv: Splitter) -> Splitter:
    """A number of folds as the splitter it stands for, with a fixed seed."""
    return PairKFold(int(cv), random_state=0) if isinstance(cv, Integral) else cv


def positive_grid(name: str, values: Sequence[float]) -> list[float]:
    """A grid of penalties as floats, or an InputError."""
    grid = [float(value) for value in values]
    if not grid or not all(0 < value < np.inf for value in grid):
        raise InputError(f"`{name}` must hold at least one number, all greater than zero and finite; got {values!r}.")
    return grid


def grid_results(params: list[dict[str, float]], scores: Array) -> dict[str, Any]:
    """The table of GridSearchCV, without the times, which a joint fit of all settings has not.

    Parameters
    ----------
    params : list of dict
        The settings, all with the same names.
    scores : array of shape (n_splits, n_settings)
        The larger the better. A split with NaN for every setting says nothing and is left out of
        the means.

    Returns
    -------
    dict
        ``param_NAME`` (masked arrays), ``params``, ``splitK_test_score``, ``mean_test_score``,
        ``std_test_score`` and ``rank_test_score``.
    """
    results: dict[str, Any] = {}
    for name in params[0]:
        values = [setting[name] for setting in params]
        results[f"param_{name}"] = np.ma.MaskedArray(values, mask=np.zeros(len(params), dtype=bool))
    results["params"] = params
    for k, split in enumerate(scores):
        results[f"split{k}_test_score"] = split
    silent = np.isnan(scores).all(axis=1)
    counted = scores if silent.all() else scores[~silent]
    mean = counted.mean(axis=0)
    results["mean_test_score"] = mean
    results["std_test_score"] = counted.std(axis=0)
    # Rounded, so that settings with equal answers tie instead of being ranked by the last bit.
    ranked = np.where(np.isnan(mean), -np.inf, mean.round(10))
    results["rank_test_score"] = rankdata(-ranked, method="min").astype(np.int32)
    return results
